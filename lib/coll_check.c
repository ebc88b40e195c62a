// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What the collectives are, as a table, and everything that can be refused without the others.
 *
 * Whoever fails here on a good domain still takes part: see coll.c. Only what the rank itself uses is looked at: a NULL
 * output is fine on a rank that gets nothing.
 */
#include "coll.h"

#include <errno.h>

static const struct pldk__coll_rule rules[] = {
#define ALL PLDK__COLL_ALL
#define ROOT PLDK__COLL_ROOT
#define OTHERS PLDK__COLL_OTHERS
#define NOBODY PLDK__COLL_NOBODY
	/* kind, reads, writes, in place; rows of input, of output; reduces, has a root */
	[PLDK_EV_BARRIER] = { PLDK__COLL_NOTHING, NOBODY, NOBODY, NOBODY, false, false, false, false },
	[PLDK_EV_ALLREDUCE] = { PLDK__COLL_COMBINE, ALL, ALL, ALL, false, false, true, false },
	[PLDK_EV_BROADCAST] = { PLDK__COLL_FROM_ROOT, ROOT, OTHERS, NOBODY, false, false, false, true },
	[PLDK_EV_ALLGATHER] = { PLDK__COLL_ROWS, ALL, ALL, ALL, false, true, false, false },
	[PLDK_EV_REDUCE_SCATTER] = { PLDK__COLL_COMBINE, ALL, ALL, ALL, true, false, true, false },
	[PLDK_EV_ALL_TO_ALL] = { PLDK__COLL_ROWS, ALL, ALL, NOBODY, true, true, false, false },
	[PLDK_EV_ALL_TO_ALL_V] = { PLDK__COLL_ROWS, ALL, ALL, NOBODY, true, true, false, false },
	[PLDK_EV_REDUCE] = { PLDK__COLL_COMBINE, ALL, ROOT, ROOT, false, false, true, true },
	[PLDK_EV_GATHER] = { PLDK__COLL_ROWS, ALL, ROOT, ROOT, false, true, false, true },
	[PLDK_EV_SCATTER] = { PLDK__COLL_FROM_ROOT, ROOT, ALL, NOBODY, true, false, false, true },
	[PLDK_EV_SCAN] = { PLDK__COLL_COMBINE, ALL, ALL, ALL, false, false, true, false },
	[PLDK_EV_EXSCAN] = { PLDK__COLL_COMBINE, ALL, ALL, ALL, false, false, true, false },
#undef ALL
#undef ROOT
#undef OTHERS
#undef NOBODY
};

/** pldk__coll_rule() - what an operation is; NULL if it is no collective */
const struct pldk__coll_rule *pldk__coll_rule(uint32_t op)
{
	return op < PLDK__ARRAY_SIZE(rules) && (rules[op].kind || op == PLDK_EV_BARRIER) ? &rules[op] : NULL;
}

/* Does the operation exist in this mode, for this type and reduction? What it has no use for is not looked at. */
static int check_kind(const struct pldk__coll_rule *rule, const struct pldk__coll_args *args)
{
	const char *op = pldk_event_name(args->op);

	if (args->op == PLDK_EV_ALLREDUCE && args->mode > PLDK_MODE_AUTO)
		return pldk__fail(-EINVAL, "%s: mode is %d: one of enum pldk_mode", op, (int)args->mode);
	if (rule->has_reduce && args->reduce > PLDK_PROD)
		return pldk__fail(-EINVAL, "%s: op is %d: one of PLDK_SUM, PLDK_MAX, PLDK_MIN, PLDK_PROD", op, (int)args->reduce);
	return rule->kind == PLDK__COLL_NOTHING ? 0 : pldk__check_dtype(args->dtype, op);
}

/**
 * pldk_coll_supported() - see coll.h
 */
int pldk_coll_supported(enum pldk_event_op op, enum pldk_mode mode, enum pldk_dtype dtype, enum pldk_reduce_op reduce)
{
	const struct pldk__coll_rule *rule = pldk__coll_rule((uint32_t)op);
	const struct pldk__coll_args args = {
		.op = (uint32_t)op,
		.mode = (uint32_t)mode,
		.dtype = (uint32_t)dtype,
		.reduce = (uint32_t)reduce,
	};

	return rule ? check_kind(rule, &args) :
		      pldk__fail(-EINVAL, "coll_supported: op %d is no collective", (int)op);
}

/* Kind, root and size. */
static int check_numbers(const struct pldk_domain *domain, const struct pldk__coll_rule *rule,
			 const struct pldk__coll_args *args, uint64_t *out_len, uint32_t *out_elem_size)
{
	uint64_t rows = rule->has_in_rows || rule->has_out_rows ? domain->nranks : 1;
	const char *op = pldk_event_name(args->op);
	uint64_t all;
	int ret;

	ret = check_kind(rule, args);
	if (ret)
		return ret;
	*out_elem_size = (uint32_t)pldk_dtype_size((enum pldk_dtype)args->dtype);
	if (__builtin_mul_overflow((uint64_t)args->count, *out_elem_size, out_len) ||
	    __builtin_mul_overflow(*out_len, rows, &all) || all > INT64_MAX)
		return pldk__fail(-EOVERFLOW, "%s: %zu elements of %s are more bytes than memory has addresses", op, args->count,
				  pldk_dtype_name((enum pldk_dtype)args->dtype));
	if (rule->has_root && (args->root < 0 || (uint32_t)args->root >= domain->nranks))
		return pldk__fail(-EINVAL, "%s: root %d is not in 0..%u", op, args->root, domain->nranks - 1);
	return 0;
}

static int check_counts(const struct pldk_domain *domain, const struct pldk__coll_args *args)
{
	const char *op = pldk_event_name(args->op);
	uint32_t r;

	if (!args->send_counts || !args->recv_counts)
		return pldk__fail(-EINVAL, "%s: %s is NULL", op, args->send_counts ? "recv_counts" : "send_counts");
	for (r = 0; r < domain->nranks; r++) {
		bool is_send = args->send_counts[r] > args->count;

		if (is_send || args->recv_counts[r] > args->count)
			return pldk__fail(-EINVAL, "%s: %s[%u] is %zu, but a row has %zu elements", op,
					  is_send ? "send_counts" : "recv_counts", r,
					  is_send ? args->send_counts[r] : args->recv_counts[r], args->count);
	}
	return 0;
}

/* Resolve PLDK_IN_PLACE and its twin, equal pointers. True if the input stands where the result will be. */
static bool in_place(const struct pldk_domain *domain, const struct pldk__coll_rule *rule, struct pldk__coll_args *args,
		     uint64_t len)
{
	char *own = (char *)args->output + domain->rank * len;

	if (rule->has_out_rows) {
		if (args->input != PLDK_IN_PLACE && args->input != own)
			return false;
		args->input = own;
		return true;
	}
	if (args->input != PLDK_IN_PLACE && args->input != args->output)
		return false;
	args->input = args->output;
	if (rule->has_in_rows)
		args->output = own;
	return true;
}

/* NULL, PLDK_IN_PLACE, one buffer for both, or buffers that share bytes. */
static int check_special(const struct pldk_domain *domain, struct pldk__coll_args *args, uint64_t len)
{
	const struct pldk__coll_rule *rule = pldk__coll_rule(args->op);
	const char *op = pldk_event_name(args->op);
	bool reads = pldk__coll_is(domain, args->root, rule->reads);
	bool writes = pldk__coll_is(domain, args->root, rule->writes);
	uint64_t in_len = rule->has_in_rows ? domain->nranks * len : len;
	uint64_t out_len = rule->has_out_rows ? domain->nranks * len : len;
	const char *own_row;

	if (!args->count)
		return 0;
	if ((args->op == PLDK_EV_EXSCAN && !domain->rank) || (args->op == PLDK_EV_SCATTER && reads))
		writes = args->output != NULL; /* may be left out */
	if ((reads && !args->input) || (writes && !args->output))
		return pldk__fail(-EINVAL, "%s: %s is NULL but count is %zu", op,
				  args->op == PLDK_EV_BROADCAST ? "buffer" :
				  reads && !args->input		? "input" :
								  "output",
				  args->count);
	if (args->op == PLDK_EV_BROADCAST)
		return args->input == PLDK_IN_PLACE ?
			       pldk__fail(-EINVAL, "%s: buffer is PLDK_IN_PLACE: a broadcast has one buffer, pass it", op) :
			       0;
	if (writes && args->output == PLDK_IN_PLACE)
		return pldk__fail(-EINVAL, "%s: output is PLDK_IN_PLACE: only the input can be", op);
	if (reads && writes && pldk__coll_is(domain, args->root, rule->in_place) && in_place(domain, rule, args, len))
		return 0;
	if (reads && args->input == PLDK_IN_PLACE)
		return pldk__fail(-EINVAL, "%s: input is PLDK_IN_PLACE, which %s cannot be", op,
				  rule->in_place == PLDK__COLL_ROOT ? "on another rank than the root it" : "here it");
	if (!reads || !writes)
		return 0;
	own_row = (const char *)args->input + domain->rank * len;
	if (args->op == PLDK_EV_SCATTER && args->output == own_row) {
		args->output = NULL;
		return 0;
	}
	if (args->op == PLDK_EV_REDUCE_SCATTER && args->output == own_row)
		return 0;
	if (pldk__overlap(args->input, in_len, args->output, out_len))
		return pldk__fail(-EINVAL, "%s: input and output overlap%s", op,
				  rule->in_place == PLDK__COLL_NOBODY ? ": use another buffer" :
				  rule->has_out_rows ? ", but the input is not the own row of the output: use PLDK_IN_PLACE or another buffer" :
						       " but are not equal: use one buffer or PLDK_IN_PLACE");
	return 0;
}

/**
 * pldk__coll_check_buffers() - the part that looks at the buffers that this rank uses; see coll.h
 */
int pldk__coll_check_buffers(const struct pldk_domain *domain, struct pldk__coll_args *args, uint64_t len)
{
	const struct pldk__coll_rule *rule = &rules[args->op];
	uint64_t in_len = rule->has_in_rows ? domain->nranks * len : len;
	uint64_t out_len = rule->has_out_rows ? domain->nranks * len : len;

	return pldk__coll_is_plain(args, in_len, out_len) ? 0 : check_special(domain, args, len);
}

/**
 * pldk__coll_check() - may this collective be?
 * @domain: entered
 * @args: PLDK_IN_PLACE is replaced by the address that it stands for
 * @out_len: bytes of a block
 *
 * Return: 0, -EINVAL, -EOVERFLOW, -EOPNOTSUPP.
 */
int pldk__coll_check(const struct pldk_domain *domain, struct pldk__coll_args *args, uint64_t *out_len,
		     uint32_t *out_elem_size)
{
	const struct pldk__coll_rule *rule = pldk__coll_rule(args->op);
	int ret;

	if (rule->kind == PLDK__COLL_NOTHING)
		return 0;
	ret = check_numbers(domain, rule, args, out_len, out_elem_size);
	if (!ret && args->op == PLDK_EV_ALL_TO_ALL_V)
		ret = check_counts(domain, args);
	return ret ? ret : pldk__coll_check_buffers(domain, args, *out_len);
}
