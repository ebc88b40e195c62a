// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: every collective operation against a scalar oracle. All ranks compute what all brought, so each checks
 * every element that it got; what it must not write is guarded and compared. Cases are drawn by a seed that all ranks
 * share and that a failure prints: PLDK_COLL_SEED=N runs the cases from there.
 */
#include "pldk_test_case.h"

/* Counts that matter: nothing, one, what fits a cell's line and just not, primes, around chunks and slots. */
static size_t draw_count(uint64_t x, int size, size_t width, bool brief)
{
	static const size_t edges[] = { 16u << 10, 32u << 10, 64u << 10, 128u << 10, 256u << 10, 1u << 20 };
	static const size_t primes[] = { 7, 31, 97, 257, 1009, 4093 };
	size_t n;

	switch (x % 8) {
	case 0:
		return x / 8 % 2;
	case 1:
		return 40 / width + x / 8 % 3 - 1;
	case 2:
	case 3:
		return x / 8 % (4 * (size_t)size + 4);
	case 4:
	case 5:
		return primes[x / 8 % (ARRAY_SIZE(primes) - brief)];
	default:
		n = edges[x / 8 % (ARRAY_SIZE(edges) - (brief ? 4 : 1))] / width;
		if (x / 64 % 2)
			n /= (size_t)size;
		return n + x / 128 % 3 - 1;
	}
}

static void draw(struct plan *plan, uint64_t seed, int size, bool brief)
{
	static const enum pldk_mode modes[] = { PLDK_MODE_AUTO, PLDK_MODE_MESH, PLDK_MODE_TWO_PHASE,
						PLDK_MODE_RING };
	uint64_t x = pt_mix(seed, (uint64_t)size, 7);
	size_t most;

	plan->seed = seed;
	plan->op = (enum op)(seed % OPS);
	plan->dtype = (enum pldk_dtype)(1 + x % PT_DTYPES);
	plan->reduce = (enum pldk_reduce_op)(x / 16 % 4);
	plan->mode = modes[(x >> 48) % ARRAY_SIZE(modes)];
	plan->count = draw_count(x >> 8, size, pldk_dtype_size(plan->dtype), brief);
	most = (ROOM - 4096) / pldk_dtype_size(plan->dtype);
	if (has_in_rows(plan->op) || has_out_rows(plan->op))
		most /= (size_t)size;
	if (plan->count > most)
		plan->count = most;
	plan->shift = (x >> 32) % 4 == 2 ? 3 : (x >> 32) % 4 == 1;
	plan->root = (int)((x >> 36) % (uint64_t)size);
	plan->in_place = x >> 44 & 1;
	plan->placement = (int)((x >> 45) % 3);
}

struct range {
	uint64_t from;
	uint64_t to;
};

RANK(run_cases)
{
	const struct range *range = arg;
	bool brief = pt_scale() < 100 || pt_is_far();
	struct pldk_window *window = pt_window(_metadata, world, 2 * ROOM);
	char *shared = pldk_window_base(window), *places[4] = { malloc(ROOM), malloc(ROOM), shared, shared + ROOM };

	for (uint64_t seed = range->from; seed < range->to; seed++) {
		struct plan plan;

		draw(&plan, seed, size, brief);
		run_case(_metadata, world, &plan, places);
		/* The same memory is filled anew at once: no rank may be reading it any more. */
	}
	free(places[0]);
	free(places[1]);
	(void)rank;
}

TEST(every_operation_type_and_count_gives_what_the_oracle_says)
{
	const char *text = getenv("PLDK_COLL_SEED");
	uint64_t from = text ? strtoull(text, NULL, 0) : 1;

	for (int size = 1; size <= 9; size += pt_scale() < 100 && size > 2 ? 3 : 1) {
		struct range range = { from, from + (uint64_t)pt_rounds(pt_is_far() ? 240 : 720) };
		struct pt_run run = { .nranks = size, .body = run_cases, .arg = &range, .limit_ms = 60000 };

		pt_start(_metadata, &run);
		pt_finish(_metadata, &run);
	}
}

/*
 * Mistakes of one rank
 */

enum mistake { DTYPE, NO_BUFFER, REDUCE_OP, ROOT_RANGE, OVERLAPPING, COUNTS, IN_PLACE, HUGE_COUNT, MISTAKES };

static bool has_root(enum op op)
{
	return op == BROADCAST || op == REDUCE || op == GATHER || op == SCATTER;
}

/* Can a rank that is not the root make this mistake? */
static bool can_make(enum op op, enum mistake mistake)
{
	switch (mistake) {
	case REDUCE_OP:
		return combines(op);
	case ROOT_RANGE:
		return has_root(op);
	case OVERLAPPING: /* such a rank has one buffer only */
		return op != BARRIER && !has_root(op);
	case COUNTS:
		return op == ALL_TO_ALL_V;
	case IN_PLACE:
		return op != BARRIER && op != SCATTER && op != BROADCAST;
	case HUGE_COUNT:
		return op != BARRIER && op != ALL_TO_ALL_V;
	default:
		return op != BARRIER;
	}
}

/* The operation with one thing wrong. */
static int make_mistake(struct pldk_domain *world, enum op op, enum mistake mistake)
{
	static char buffer[4096];
	struct plan plan = { .op = op, .mode = PLDK_MODE_AUTO, .dtype = PLDK_INT32, .count = 4, .seed = 1 };
	const size_t good[4] = { 4, 4, 4, 4 }, bad[4] = { 4, 5, 4, 4 };
	const void *in = buffer;
	void *out = buffer + 2048;

	switch (mistake) {
	case DTYPE:
		plan.dtype = (enum pldk_dtype)77;
		break;
	case NO_BUFFER:
		in = op == SCATTER ? in : NULL;
		out = op == SCATTER || op == BROADCAST ? NULL : out;
		break;
	case REDUCE_OP:
		plan.reduce = (enum pldk_reduce_op)4;
		break;
	case ROOT_RANGE:
		plan.root = pldk_size(world);
		break;
	case OVERLAPPING:
		out = buffer + 4;
		break;
	case IN_PLACE:
		if (has_root(op) || op == ALL_TO_ALL || op == ALL_TO_ALL_V)
			in = PLDK_IN_PLACE;
		else
			out = (void *)(uintptr_t)PLDK_IN_PLACE;
		break;
	case HUGE_COUNT:
		plan.count = SIZE_MAX / 3;
		break;
	default:
		break;
	}
	if (op == ALL_TO_ALL_V)
		return pldk_all_to_all_v(world, in, out, plan.count, mistake == COUNTS ? bad : good, good, plan.dtype,
					 PT_LONG);
	return call(world, &plan, in, out, PT_LONG);
}

RANK(one_is_wrong)
{
	const size_t good[4] = { 4, 4, 4, 4 };
	int32_t in[16] = { 0 }, out[16];

	for (int op = BARRIER; op < OPS; op++) {
		for (int mistake = 0; mistake < MISTAKES; mistake++) {
			struct plan plan = { .op = (enum op)op, .dtype = PLDK_INT32, .count = 4, .seed = 1 };
			int expected = mistake == HUGE_COUNT ? -EOVERFLOW : -EINVAL;
			int64_t start = pt_now(), ret = 0, sum = 1;

			if (!can_make((enum op)op, (enum mistake)mistake))
				continue;
			if (rank == 1)
				ret = make_mistake(world, (enum op)op, (enum mistake)mistake);
			else if (op == ALL_TO_ALL_V)
				ret = pldk_all_to_all_v(world, in, out, 4, good, good, PLDK_INT32, PT_LONG);
			else
				ret = call(world, &plan, in, out, PT_LONG);
			if (rank != 1)
				EXPECT_SAYS("rank 1", names[op]);
			EXPECT_EQ(expected, ret)
			TH_LOG("%s mistake %d on rank %d: %s", names[op], mistake, rank, pldk_last_error());
			EXPECT_LT(pt_ms_since(start), pt_slow_ms(2000));
			/* Nobody was left behind. */
			ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, &sum, 1, PLDK_INT64, PLDK_SUM, PLDK_MODE_AUTO,
						 PT_LONG));
			ASSERT_EQ(size, sum);
		}
	}
}

TEST(arguments_that_are_wrong_on_one_rank_are_told_to_all)
{
	for (int size = 2; size <= 4; size++)
		run_ranks(size, one_is_wrong, NULL);
}

RANK(counts_differ)
{
	size_t send[4], recv[4];
	int64_t sum = 1;
	int32_t in[4 * 9], out[4 * 9];

	memset(in, 0, sizeof(in));
	for (int r = 0; r < size; r++)
		send[r] = recv[r] = 3;
	/* Rank 1 wants more from rank 0 than that sends. */
	if (rank == 1)
		recv[0] = 7;
	EXPECT_RET(-EPROTO, pldk_all_to_all_v(world, in, out, 9, send, recv, PLDK_INT32, PT_LONG));
	EXPECT_SAYS("rank 0", "rank 1", "3", "7");
	ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, &sum, 1, PLDK_INT64, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	ASSERT_EQ(size, sum);
}

TEST(receive_counts_that_are_not_what_is_sent_are_eproto_on_all)
{
	for (int size = 2; size <= 4; size++)
		run_ranks(size, counts_differ, NULL);
}

/* A call of many chunks is given up in the middle and another one made: all hear of it, and then all is well again. */
RANK(give_up_for_another)
{
	const size_t count = 1u << 18;
	float *in = malloc(count * sizeof(*in)), *out = malloc(count * sizeof(*out));
	int64_t ret, sum;

	for (int round = 0; round < 20; round++) {
		sum = 1;
		for (size_t i = 0; i < count; i++)
			in[i] = 1;
		if (rank == 0) {
			ret = pldk_allreduce(world, in, out, count, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO,
					     10000 * round);
			if (ret != -ETIMEDOUT && ret != -EAGAIN) {
				EXPECT_EQ(0, ret);
				atomic_store(pt_word(round), 1);
				ASSERT_OK(pldk_barrier(world, PT_LONG));
				continue;
			}
			/* If only the last chunk was open, this meets their next call, the barrier. */
			ret = pldk_scan(world, in, out, 1, PLDK_FP32, PLDK_SUM, PT_LONG);
			EXPECT_EQ(-EPROTO, ret);
		} else {
			ret = pldk_allreduce(world, in, out, count, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG);
			if (!ret) {
				ret = pldk_barrier(world, PT_LONG);
				if (!ret) {
					EXPECT_EQ(1, atomic_load(pt_word(round)));
					continue;
				}
			}
			EXPECT_EQ(-EPROTO, ret) TH_LOG("%s", pldk_last_error());
		}
		EXPECT_SAYS("scan");
		ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, &sum, 1, PLDK_INT64, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
		ASSERT_EQ(size, sum);
	}
	free(in);
	free(out);
}

TEST(a_call_given_up_for_another_is_eproto_on_all_and_the_next_one_works)
{
	for (int size = 2; size <= 4; size++) {
		pt_clear_words();
		run_ranks(size, give_up_for_another, NULL);
	}
}

/* Ranks that have a CPU each, as far as the library knows, have several chunks under way. */
TEST(chunks_that_overlap_give_what_the_oracle_says)
{
	static const int cpus[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	struct pldk_world_options options = PLDK_WORLD_OPTIONS_INIT;

	SKIP_ON_DEV("the module knows the CPUs");
	options.cpus = cpus;
	for (int size = 2; size <= 8; size += 3) {
		struct range range = { 10000, 10000 + (uint64_t)pt_rounds(120) };
		struct pt_run run = {
			.nranks = size, .body = run_cases, .arg = &range, .options = &options, .limit_ms = 60000
		};

		pt_start(_metadata, &run);
		pt_finish(_metadata, &run);
		pt_clear_words();
		run.body = give_up_for_another;
		run.arg = NULL;
		pt_start(_metadata, &run);
		pt_finish(_metadata, &run);
	}
}

TEST_HARNESS_MAIN
