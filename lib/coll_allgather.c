// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Allgather: for each chunk of its block every rank gives, all meet, and each takes the others' into their rows.
 */
#include "coll.h"

#include <errno.h>
#include <string.h>

static int check(const struct pldk_domain *domain, const void *input, const void *output, size_t count,
		 enum pldk_dtype dtype, uint64_t *out_len)
{
	static const char name[] = "allgather";
	const char *own_row;
	int ret;

	ret = pldk__coll_bytes(name, count, dtype, domain->nranks, out_len);
	if (ret || !count)
		return ret;
	if (!input || !output)
		return pldk__fail(-EINVAL, "%s: %s is NULL but count is %zu", name, input ? "output" : "input", count);
	if (output == PLDK_IN_PLACE)
		return pldk__fail(-EINVAL, "%s: output is PLDK_IN_PLACE: only the input can be", name);
	own_row = (const char *)output + domain->rank * *out_len;
	if (input == PLDK_IN_PLACE || input == own_row)
		return 0;
	if (pldk__coll_overlap(input, *out_len, output, domain->nranks * *out_len))
		return pldk__fail(-EINVAL,
				  "%s: input overlaps output but is not row %u of it: use PLDK_IN_PLACE or another buffer", name,
				  domain->rank);
	return 0;
}

/**
 * pldk_allgather_at() - everybody's elements to all, in rank order; see coll.h
 */
int pldk_allgather_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		      enum pldk_dtype dtype, int64_t timeout_ns)
{
	struct pldk__coll coll;
	uint64_t len;
	int ret;

	if (!domain)
		return pldk__enter_refused(domain);
	ret = check(domain, input, output, count, dtype, &len);
	if (ret)
		return ret;
	coll.input = count && input != PLDK_IN_PLACE ? input : (char *)output + domain->rank * len;
	coll.output = output;
	memset(coll.call.args, 0, sizeof(coll.call.args));
	coll.call.args[0] = (int64_t)count;
	coll.call.args[1] = dtype;
	ret = pldk__coll_begin(&coll, site, domain, PLDK_EV_ALLGATHER, count > 0, timeout_ns);
	if (ret)
		return ret;
	do {
		const char *own = (const char *)coll.input + coll.at;
		uint64_t n = pldk__coll_chunk(&coll, len);

		if (n)
			pldk__coll_give(&coll, own, n);
		ret = pldk__coll_meet(&coll);
		for (uint32_t i = 0; i < domain->nranks && n && !ret; i++) {
			/* Each rank begins with its neighbour, so that not all read the same slot at once. */
			uint32_t rank = (domain->rank + i) % domain->nranks;
			char *row = (char *)coll.output + rank * len + coll.at;

			if (rank != domain->rank)
				ret = pldk__coll_take(&coll, rank, row, n);
			else if (row != own)
				pldk__copy(row, own, n);
		}
		if (ret)
			break;
		pldk__coll_next(&coll, n);
	} while (coll.at < len);
	pldk__coll_end(&coll, ret);
	return ret;
}

int(pldk_allgather)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		    int64_t timeout_ns)
{
	return pldk_allgather_at(PLDK__CALLER(), domain, input, output, count, dtype, timeout_ns);
}
