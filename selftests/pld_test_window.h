/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tests of windows share: a domain of two ranks and both rank files.
 */
#ifndef _PLD_TEST_WINDOW_H
#define _PLD_TEST_WINDOW_H

#include "pld_test.h"

FIXTURE(window)
{
	int dom;
	int r0;
	int r1;
};

FIXTURE_SETUP(window)
{
	PLD_NEED_DEVICE();
	self->dom = pld_domain_new(2);
	ASSERT_LE(0, self->dom);
	self->r0 = pld_join(self->dom, 0);
	self->r1 = pld_join(self->dom, 1);
	ASSERT_LE(0, self->r0);
	ASSERT_LE(0, self->r1);
}

FIXTURE_TEARDOWN(window)
{
	close(self->r1);
	close(self->r0);
	close(self->dom);
}

static int data_window(int fd, uint32_t id, uint64_t bytes, struct pld_window_create *c)
{
	return pld_window(fd, id, PLD_WINDOW_DATA, PLD_WINDOW_F_ATTACH, bytes, c);
}

/* Read and write the memory: 0 when every byte was reachable. */
static int touch_all(volatile char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i += PLD_PAGE)
		p[i] = p[i] + 1;
	return 0;
}

#endif /* _PLD_TEST_WINDOW_H */
