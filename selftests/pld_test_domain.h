/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tests of domains share: a domain of four ranks.
 */
#ifndef _PLD_TEST_DOMAIN_H
#define _PLD_TEST_DOMAIN_H

#include "pld_test.h"

FIXTURE(domain)
{
	int fd;
};

FIXTURE_SETUP(domain)
{
	PLD_NEED_DEVICE();
	self->fd = pld_domain_new(4);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(domain)
{
	close(self->fd);
}

static void *wait_thread(void *arg)
{
	return (void *)(long)pld_wait_ge(*(int *)arg, 1, 0, 1, PLD_RANK_ANY, 0, pld_now() + 20 * SEC);
}

#endif /* _PLD_TEST_DOMAIN_H */
