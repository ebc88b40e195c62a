/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * One case of a collective: all ranks fill their buffers, call, and compare every element that they got with the
 * oracle of pldk_test_coll.h; what must not be written is guarded and compared. A case is a struct plan, the same on
 * all ranks; its seed decides the form of the call (blocking, impatient, started) and is printed by a failure.
 */
#ifndef _PLDK_TEST_CASE_H
#define _PLDK_TEST_CASE_H

#include "pldk_test.h"
#include "pldk_test_coll.h"

enum op {
	BARRIER, ALLREDUCE, BROADCAST, ALLGATHER, REDUCE_SCATTER, ALL_TO_ALL, ALL_TO_ALL_V,
	REDUCE, GATHER, SCATTER, SCAN, EXSCAN, OPS
};

static const char *const names[OPS] = { "barrier", "allreduce", "broadcast", "allgather", "reduce_scatter", "all_to_all",
					"all_to_all_v", "reduce", "gather", "scatter", "scan", "exscan" };

#define GUARD 64
#define ROOM (6u << 20) /* bytes of a buffer */

/**
 * struct plan - a case, the same on all ranks
 * @mode: of an allreduce
 * @count: elements of a block
 * @shift: elements by which the buffers are off their alignment
 * @in_place: the input stands in the output where the operation knows that
 * @placement: 0 private, 1 window, 2 mixed from rank to rank
 */
struct plan {
	uint64_t seed;
	enum op op;
	enum pldk_dtype dtype;
	enum pldk_reduce_op reduce;
	enum pldk_mode mode;
	size_t count;
	size_t shift;
	int root;
	int in_place;
	int placement;
};

static struct pt_oracle oracle_of(const struct plan *plan)
{
	return (struct pt_oracle){ plan->dtype, plan->reduce, plan->seed, 32 };
}

/* What rank has at element i of its input; i counts over all rows. */
static void element(const struct plan *plan, int rank, size_t i, void *out)
{
	struct pt_oracle oracle = oracle_of(plan);

	pt_element(&oracle, rank, i, out);
}

static void combined(const struct plan *plan, int n, size_t i, void *want)
{
	struct pt_oracle oracle = oracle_of(plan);

	pt_combined(&oracle, n, i, want);
}

/* Element i of an allreduce by ring: the segment's number is that of the rank that comes last. */
static void ringed(const struct plan *plan, int size, size_t i, void *want)
{
	struct pt_oracle oracle = oracle_of(plan);
	int segment = 0;

	while ((size_t)(segment + 1) * plan->count / (size_t)size <= i)
		segment++;
	pt_combined_from(&oracle, segment + 1, size, size, true, i, want);
}

static bool agrees(const struct plan *plan, bool is_combined, const void *want, const void *got)
{
	struct pt_oracle oracle = oracle_of(plan);

	return is_combined ? pt_agrees(&oracle, want, got) : !memcmp(want, got, pldk_dtype_size(plan->dtype));
}

/* How many elements rank `from` sends to rank `to` in an all_to_all_v: nothing, a part, all. */
static size_t sends(const struct plan *plan, int from, int to)
{
	uint64_t x = pt_mix((uint64_t)from * 64 + (uint64_t)to, 99, plan->seed);

	return x % 4 == 0 ? 0 : x % 4 == 1 ? plan->count : plan->count ? x / 4 % (plan->count + 1) : 0;
}

static bool combines(enum op op)
{
	return op == ALLREDUCE || op == REDUCE_SCATTER || op == REDUCE || op == SCAN || op == EXSCAN;
}

static bool has_in_rows(enum op op)
{
	return op == REDUCE_SCATTER || op == ALL_TO_ALL || op == ALL_TO_ALL_V || op == SCATTER;
}

static bool has_out_rows(enum op op)
{
	return op == ALLGATHER || op == ALL_TO_ALL || op == ALL_TO_ALL_V || op == GATHER;
}

/* What stands at element i of row `row` of this rank's output afterwards. False: it is left as it was. */
static bool wanted(const struct plan *plan, int rank, int size, int row, size_t i, void *want)
{
	switch (plan->op) {
	case ALLREDUCE:
		if (plan->mode == PLDK_MODE_RING)
			ringed(plan, size, i, want);
		else
			combined(plan, size, i, want);
		return true;
	case REDUCE:
		combined(plan, size, i, want);
		return rank == plan->root;
	case REDUCE_SCATTER:
		combined(plan, size, (size_t)rank * plan->count + i, want);
		return true;
	case SCAN:
		combined(plan, rank + 1, i, want);
		return true;
	case EXSCAN:
		combined(plan, rank, i, want);
		return rank > 0;
	case BROADCAST:
		element(plan, plan->root, i, want);
		return true;
	case SCATTER:
		element(plan, plan->root, (size_t)rank * plan->count + i, want);
		return true;
	case ALLGATHER:
		element(plan, row, i, want);
		return true;
	case GATHER:
		element(plan, row, i, want);
		return rank == plan->root;
	case ALL_TO_ALL:
		element(plan, row, (size_t)rank * plan->count + i, want);
		return true;
	case ALL_TO_ALL_V:
		element(plan, row, (size_t)rank * plan->count + i, want);
		return i < sends(plan, row, rank);
	default:
		return false;
	}
}

static int call(struct pldk_domain *world, const struct plan *plan, const void *in, void *out, int64_t timeout)
{
	size_t send[PT_MAX_RANKS], recv[PT_MAX_RANKS], n = plan->count;
	int rank = pldk_rank(world);
	enum pldk_dtype t = plan->dtype;

	for (int r = 0; r < pldk_size(world); r++) {
		send[r] = sends(plan, rank, r);
		recv[r] = sends(plan, r, rank);
	}
	switch (plan->op) {
	case ALLREDUCE:
		return pldk_allreduce(world, in, out, n, t, plan->reduce, plan->mode, timeout);
	case BROADCAST:
		return pldk_broadcast(world, out, n, t, plan->root, timeout);
	case ALLGATHER:
		return pldk_allgather(world, in, out, n, t, timeout);
	case REDUCE_SCATTER:
		return pldk_reduce_scatter(world, in, out, n, t, plan->reduce, timeout);
	case ALL_TO_ALL:
		return pldk_all_to_all(world, in, out, n, t, timeout);
	case ALL_TO_ALL_V:
		return pldk_all_to_all_v(world, in, out, n, send, recv, t, timeout);
	case REDUCE:
		return pldk_reduce(world, in, out, n, t, plan->reduce, plan->root, timeout);
	case GATHER:
		return pldk_gather(world, in, out, n, t, plan->root, timeout);
	case SCATTER:
		return pldk_scatter(world, in, out, n, t, plan->root, timeout);
	case SCAN:
		return pldk_scan(world, in, out, n, t, plan->reduce, timeout);
	case EXSCAN:
		return pldk_exscan(world, in, out, n, t, plan->reduce, timeout);
	default:
		return pldk_barrier(world, timeout);
	}
}

/* The same, started. */
static int begin(struct pldk_domain *world, const struct plan *plan, const void *in, void *out, size_t *counts,
		 struct pldk_handle **handle)
{
	size_t *send = counts, *recv = counts + PT_MAX_RANKS, n = plan->count;
	enum pldk_dtype t = plan->dtype;

	for (int r = 0; r < pldk_size(world); r++) {
		send[r] = sends(plan, pldk_rank(world), r);
		recv[r] = sends(plan, r, pldk_rank(world));
	}
	switch (plan->op) {
	case ALLREDUCE:
		return pldk_allreduce_start(world, in, out, n, t, plan->reduce, plan->mode, NULL, handle);
	case BROADCAST:
		return pldk_broadcast_start(world, out, n, t, plan->root, NULL, handle);
	case ALLGATHER:
		return pldk_allgather_start(world, in, out, n, t, NULL, handle);
	case REDUCE_SCATTER:
		return pldk_reduce_scatter_start(world, in, out, n, t, plan->reduce, NULL, handle);
	case ALL_TO_ALL:
		return pldk_all_to_all_start(world, in, out, n, t, NULL, handle);
	case ALL_TO_ALL_V:
		return pldk_all_to_all_v_start(world, in, out, n, send, recv, t, NULL, handle);
	case REDUCE:
		return pldk_reduce_start(world, in, out, n, t, plan->reduce, plan->root, NULL, handle);
	case GATHER:
		return pldk_gather_start(world, in, out, n, t, plan->root, NULL, handle);
	case SCATTER:
		return pldk_scatter_start(world, in, out, n, t, plan->root, NULL, handle);
	case SCAN:
		return pldk_scan_start(world, in, out, n, t, plan->reduce, NULL, handle);
	case EXSCAN:
		return pldk_exscan_start(world, in, out, n, t, plan->reduce, NULL, handle);
	default:
		return pldk_barrier_start(world, NULL, handle);
	}
}

/* Start it and come to its end step by step, with pauses that differ from rank to rank: each step is reached. */
static int start_and_end(struct pldk_domain *world, const struct plan *plan, const void *in, void *out, uint64_t x)
{
	size_t counts[2 * PT_MAX_RANKS];
	struct pldk_handle *handle = NULL;
	int64_t start = pt_now();
	int ret = begin(world, plan, in, out, counts, &handle);

	if (ret || x % 2)
		return ret ? ret : pldk_handle_wait(handle, PT_LONG);
	do {
		ret = pldk_handle_test(handle);
		if (pt_random(&x) % 4 == 0)
			sched_yield();
		else if (pt_random(&x) % 16 == 0)
			pt_nap();
	} while (!ret && pt_ms_since(start) < pt_slow_ms(20000));
	return ret == 1 ? 0 : ret ? ret : -ETIMEDOUT;
}

/* A rank that is impatient gives up at any place and comes again: it goes on where it was. */
static int call_until_done(struct pldk_domain *world, const struct plan *plan, const void *in, void *out)
{
	uint64_t x = pt_mix((uint64_t)pldk_rank(world), 3, plan->seed);
	int64_t start = pt_now();
	int ret;

	/* A third of all is started, on all ranks or on some: those meet calls that block. */
	if (plan->seed / OPS % 6 == 1 || (plan->seed / OPS % 6 == 2 && x % 2))
		return start_and_end(world, plan, in, out, x / 6);
	if (plan->seed / OPS % 6 || x % 3)
		return call(world, plan, in, out, PT_LONG);
	do {
		sched_yield();
		ret = call(world, plan, in, out, x / 3 % 2 ? PLDK_TRY : (int64_t)(pt_random(&x) % 20000));
	} while ((ret == -ETIMEDOUT || ret == -EAGAIN) && pt_ms_since(start) < pt_slow_ms(20000));
	return ret;
}

static void fill(const struct plan *plan, int rank, size_t from, size_t n, char *at)
{
	size_t width = pldk_dtype_size(plan->dtype);

	for (size_t i = 0; i < n; i++)
		element(plan, rank, from + i, at + i * width);
}

/*
 * Run one case. Private and window halves of a rank's memory: places[0..1] are private, [2..3] in a window.
 */
static void run_case(struct __test_metadata *_metadata, struct pldk_domain *world, const struct plan *plan,
		     char *const *places)
{
	int rank = pldk_rank(world), size = pldk_size(world);
	size_t width = pldk_dtype_size(plan->dtype), len = plan->count * width, skew = GUARD + plan->shift * width;
	int out_rows = has_out_rows(plan->op) ? size : 1, in_rows = has_in_rows(plan->op) ? size : 1, row = 0;
	bool is_root = rank == plan->root, in_place = plan->in_place;
	bool is_combined = combines(plan->op);
	bool shared = plan->placement == 1 || (plan->placement == 2 && (plan->seed + (uint64_t)rank) % 2);
	char *in = places[shared ? 2 : 0] + skew, *out = places[shared ? 3 : 1] + skew, *own_out;
	const void *given = in;
	int ret;
	/* Long blocks are computed at their ends, at chunk edges, and now and then. */
	size_t stride = plan->count > 3000 ? 61 : 1, out_len = (size_t)out_rows * len;

	if (plan->op == BARRIER || plan->op == BROADCAST || plan->op == ALL_TO_ALL || plan->op == ALL_TO_ALL_V ||
	    plan->op == SCATTER)
		in_place = false;
	if (plan->op == REDUCE || plan->op == GATHER)
		in_place = in_place && is_root;
	if (in_place && plan->op == REDUCE_SCATTER)
		out_len = (size_t)size * len;
	memset(out - GUARD, 0xa5, out_len + 2 * GUARD);
	memset(in - GUARD, 0x5a, (size_t)in_rows * len + 2 * GUARD);
	fill(plan, rank, 0, (size_t)in_rows * plan->count, in);
	own_out = out;
	if (in_place && has_out_rows(plan->op)) {
		fill(plan, rank, 0, plan->count, out + (size_t)rank * len);
		given = plan->seed % 2 ? PLDK_IN_PLACE : out + (size_t)rank * len;
	} else if (in_place) {
		fill(plan, rank, 0, (size_t)in_rows * plan->count, out);
		given = plan->seed % 2 || plan->op == REDUCE_SCATTER ? PLDK_IN_PLACE : out;
		if (plan->op == REDUCE_SCATTER) {
			row = rank;
			own_out = out + (size_t)rank * len;
		}
	}
	if (plan->op == BROADCAST && is_root)
		fill(plan, rank, 0, plan->count, out);
	ret = call_until_done(world, plan, given, out);
	ASSERT_EQ(0, ret) TH_LOG("%s, seed %" PRIu64 ": %s", names[plan->op], plan->seed, pldk_last_error());
	for (int r = 0; r < out_rows; r++) {
		for (size_t i = 0; i < plan->count; i += i > 40 && i + 40 < plan->count ? stride : 1) {
			int64_t want = 0;
			char *got = own_out + ((size_t)r * plan->count + i) * width;

			if (!wanted(plan, rank, size, r, i, &want)) {
				memset(&want, 0xa5, sizeof(want));
				if (in_place && (plan->op == EXSCAN))
					element(plan, rank, i, &want);
				ASSERT_EQ(0, memcmp(&want, got, width))
				TH_LOG("%s wrote row %d element %zu on rank %d of %d: count %zu %s root %d, seed %" PRIu64,
				       names[plan->op], r, i, rank, size, plan->count, pldk_dtype_name(plan->dtype),
				       plan->root, plan->seed);
				continue;
			}
			ASSERT_TRUE(agrees(plan, is_combined, &want, got))
			TH_LOG("%s row %d element %zu on rank %d of %d: %g (%#" PRIx64 ") wanted: count %zu %s op %d root %d in_place %d placement %d, seed %" PRIu64,
			       names[plan->op], r, i, rank, size, pt_load(plan->dtype, &want, 0), (uint64_t)want,
			       plan->count, pldk_dtype_name(plan->dtype), plan->reduce, plan->root, in_place,
			       plan->placement, plan->seed);
		}
	}
	/* Guards, the rows beside the own one, and the input. */
	for (size_t i = 0; i < GUARD; i++) {
		ASSERT_EQ(0xa5, (unsigned char)out[(ssize_t)i - GUARD]) TH_LOG("%s, seed %" PRIu64, names[plan->op], plan->seed);
		ASSERT_EQ(0xa5, (unsigned char)out[out_len + i]) TH_LOG("%s, seed %" PRIu64, names[plan->op], plan->seed);
		ASSERT_EQ(0x5a, (unsigned char)in[(ssize_t)i - GUARD]);
		ASSERT_EQ(0x5a, (unsigned char)in[(size_t)in_rows * len + i]);
	}
	for (int r = 0; r < in_rows; r++) {
		for (size_t i = 0; i < plan->count; i += stride) {
			size_t at = (size_t)r * plan->count + i;
			int64_t mine = 0;

			element(plan, rank, at, &mine);
			ASSERT_EQ(0, memcmp(&mine, in + at * width, width))
			TH_LOG("%s changed its input, seed %" PRIu64, names[plan->op], plan->seed);
			if (in_place && plan->op == REDUCE_SCATTER && r != row) {
				ASSERT_EQ(0, memcmp(&mine, out + at * width, width))
				TH_LOG("reduce_scatter in place wrote row %d of rank %d, seed %" PRIu64, r, rank, plan->seed);
			}
		}
	}
}

#endif /* _PLDK_TEST_CASE_H */
