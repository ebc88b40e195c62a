// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Barrier: one rendezvous and nothing else.
 */
#include "coll.h"

#include <string.h>

/**
 * pldk_barrier_at() - nobody leaves before all have entered; see coll.h
 */
int pldk_barrier_at(struct pldk_site *site, struct pldk_domain *domain, int64_t timeout_ns)
{
	struct pldk__coll coll;
	int ret;

	memset(coll.call.args, 0, sizeof(coll.call.args));
	coll.input = NULL;
	coll.output = NULL;
	ret = pldk__coll_begin(&coll, site, domain, PLDK_EV_BARRIER, false, timeout_ns);
	if (pldk__unlikely(ret))
		return ret;
	ret = pldk__coll_meet(&coll);
	pldk__coll_end(&coll, ret);
	return ret;
}

int(pldk_barrier)(struct pldk_domain *domain, int64_t timeout_ns)
{
	return pldk_barrier_at(PLDK__CALLER(), domain, timeout_ns);
}
