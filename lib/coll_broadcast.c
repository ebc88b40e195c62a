// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Broadcast: for each chunk the root gives, all meet, and the others take.
 *
 * The rendezvous is of all with all, so more is ordered than broadcast promises; what it promises is the root's entry
 * before the others' exit. The root's slot is not written again before everybody has taken: see lib/coll.c.
 */
#include "coll.h"

#include <errno.h>
#include <string.h>

/**
 * pldk_broadcast_at() - the root's elements to all; see coll.h
 */
int pldk_broadcast_at(struct pldk_site *site, struct pldk_domain *domain, void *buffer, size_t count,
		      enum pldk_dtype dtype, int root, int64_t timeout_ns)
{
	static const char name[] = "broadcast";
	struct pldk__coll coll;
	uint64_t len;
	int ret;

	ret = pldk__coll_bytes(name, count, dtype, 1, &len);
	if (ret)
		return ret;
	if (count && !buffer)
		return pldk__fail(-EINVAL, "%s: buffer is NULL but count is %zu", name, count);
	if (count && buffer == PLDK_IN_PLACE)
		return pldk__fail(-EINVAL, "%s: buffer is PLDK_IN_PLACE: a broadcast has one buffer, pass it", name);
	if (domain && (root < 0 || root >= pldk_size(domain)))
		return pldk__fail(-EINVAL, "%s: root %d is not in 0..%d", name, root, pldk_size(domain) - 1);
	coll.input = buffer;
	coll.output = buffer;
	memset(coll.call.args, 0, sizeof(coll.call.args));
	coll.call.args[0] = (int64_t)count;
	coll.call.args[1] = dtype;
	coll.call.args[2] = root;
	ret = pldk__coll_begin(&coll, site, domain, PLDK_EV_BROADCAST, count > 0, timeout_ns);
	if (ret)
		return ret;
	do {
		char *at = (char *)buffer + coll.at;
		uint64_t n = pldk__coll_chunk(&coll, len);
		bool is_root = domain->rank == (uint32_t)root;

		if (n && is_root)
			pldk__coll_give(&coll, at, n);
		ret = pldk__coll_meet(&coll);
		if (!ret && n && !is_root)
			ret = pldk__coll_take(&coll, (uint32_t)root, at, n);
		if (ret)
			break;
		pldk__coll_next(&coll, n);
	} while (coll.at < len);
	pldk__coll_end(&coll, ret);
	return ret;
}

int(pldk_broadcast)(struct pldk_domain *domain, void *buffer, size_t count, enum pldk_dtype dtype, int root,
		    int64_t timeout_ns)
{
	return pldk_broadcast_at(PLDK__CALLER(), domain, buffer, count, dtype, root, timeout_ns);
}
