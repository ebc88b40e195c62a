// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Allreduce, mesh: for each chunk every rank gives its elements to all and combines everybody's itself.
 *
 * All ranks combine the same bytes in the same order (rank 0..P-1) with the same instructions, so the results have the
 * same bits, whatever the count and whichever ranks are far. One pass over memory a chunk; see lib/reduce.c.
 */
#include "coll.h"
#include "reduce.h"

#include <errno.h>
#include <string.h>

static int check_mode(const char *op, enum pldk_mode mode)
{
	switch (mode) {
	case PLDK_MODE_AUTO:
	case PLDK_MODE_MESH:
		return 0;
	case PLDK_MODE_RING:
		return pldk__fail(-EOPNOTSUPP, "%s: mode ring is not built: use PLDK_MODE_AUTO or PLDK_MODE_MESH", op);
	case PLDK_MODE_TWO_PHASE:
		return pldk__fail(-EOPNOTSUPP, "%s: mode two-phase is not built: use PLDK_MODE_AUTO or PLDK_MODE_MESH", op);
	}
	return pldk__fail(-EINVAL, "%s: mode is %d: one of enum pldk_mode", op, (int)mode);
}

static int check(const void *input, const void *output, size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op,
		 enum pldk_mode mode, uint64_t *out_len)
{
	static const char name[] = "allreduce";
	int ret = check_mode(name, mode);

	if (ret)
		return ret;
	if ((unsigned int)op > PLDK_PROD)
		return pldk__fail(-EINVAL, "%s: op is %d: one of PLDK_SUM, PLDK_MAX, PLDK_MIN, PLDK_PROD", name, (int)op);
	ret = pldk__coll_bytes(name, count, dtype, 1, out_len);
	if (ret || !count)
		return ret;
	if (!input || !output)
		return pldk__fail(-EINVAL, "%s: %s is NULL but count is %zu", name, input ? "output" : "input", count);
	if (output == PLDK_IN_PLACE)
		return pldk__fail(-EINVAL, "%s: output is PLDK_IN_PLACE: only the input can be", name);
	if (input == PLDK_IN_PLACE || input == output)
		return 0;
	if (pldk__coll_overlap(input, *out_len, output, *out_len))
		return pldk__fail(-EINVAL,
				  "%s: input and output overlap but are not equal: use one buffer or PLDK_IN_PLACE", name);
	return 0;
}

/**
 * pldk_allreduce_at() - combine element by element over all ranks; see coll.h
 */
int pldk_allreduce_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		      enum pldk_dtype dtype, enum pldk_reduce_op op, enum pldk_mode mode, int64_t timeout_ns)
{
	struct pldk__coll coll;
	size_t elem_size;
	uint64_t len;
	int ret;

	ret = check(input, output, count, dtype, op, mode, &len);
	if (pldk__unlikely(ret))
		return ret;
	coll.input = count && input != PLDK_IN_PLACE ? input : output;
	coll.output = output;
	memset(coll.call.args, 0, sizeof(coll.call.args));
	coll.call.args[0] = (int64_t)count;
	coll.call.args[1] = dtype;
	coll.call.args[2] = op;
	coll.call.args[3] = PLDK_MODE_MESH;
	ret = pldk__coll_begin(&coll, site, domain, PLDK_EV_ALLREDUCE, count > 0, timeout_ns);
	if (pldk__unlikely(ret))
		return ret;
	elem_size = pldk_dtype_size(dtype);
	do {
		const char *from = (const char *)coll.input + coll.at;
		char *to = (char *)coll.output + coll.at;
		uint64_t n = pldk__coll_chunk(&coll, len);

		if (pldk__likely(n))
			pldk__coll_give(&coll, from, n);
		ret = pldk__coll_meet(&coll);
		if (pldk__unlikely(ret || !n))
			break;
		if (pldk__unlikely(domain->nranks == 1)) {
			memmove(to, from, n);
		} else {
			ret = pldk__coll_view(&coll, n);
			if (pldk__unlikely(ret))
				break;
			pldk__reduce(to, coll.staging->sources, domain->nranks, n / elem_size, dtype, op);
		}
		pldk__coll_next(&coll, n);
	} while (coll.at < len);
	pldk__coll_end(&coll, ret);
	return ret;
}

int(pldk_allreduce)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		    enum pldk_reduce_op op, enum pldk_mode mode, int64_t timeout_ns)
{
	return pldk_allreduce_at(PLDK__CALLER(), domain, input, output, count, dtype, op, mode, timeout_ns);
}
