// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: collectives of large blocks in windows, which work on the buffers where they are; and what must be when
 * not everybody's buffers allow that. That the results are right is tested here from rank to rank at other places; the
 * oracle's cases of all kinds are in lib_coll_ops_test.c.
 */
#include "pldk_test_case.h"

#define LARGE (600u << 10) /* bytes; well above where buffers are asked for */
#define FLOATS (LARGE / sizeof(float))
#define HUGE (3u << 20)

/* A large case of an operation, at a place that differs from rank to rank. */
static void draw(struct plan *plan, uint64_t seed, int size)
{
	uint64_t x = pt_mix(seed, (uint64_t)size, 11);
	size_t width, rows;

	memset(plan, 0, sizeof(*plan));
	plan->seed = seed;
	plan->op = (enum op)(seed % OPS);
	plan->dtype = (enum pldk_dtype)(1 + x % PT_DTYPES);
	plan->reduce = (enum pldk_reduce_op)(x / 16 % 4);
	plan->mode = x / 64 % 2 ? PLDK_MODE_AUTO : PLDK_MODE_TWO_PHASE;
	width = pldk_dtype_size(plan->dtype);
	rows = has_in_rows(plan->op) || has_out_rows(plan->op) ? (size_t)size : 1;
	plan->count = (LARGE + x / 128 % LARGE) / rows / width;
	if (plan->op == BROADCAST && x >> 50 & 1)
		plan->count = HUGE / width;
	plan->root = (int)(x / 1024 % (uint64_t)size);
	plan->in_place = x >> 44 & 1;
	plan->placement = x >> 45 & 3 ? 1 : 2;
	plan->shift = x >> 47 & 3;
}

RANK(run_large)
{
	struct pldk_window *window = pt_window(_metadata, world, 2 * ROOM);
	char *base = pldk_window_base(window), *private[2] = { malloc(ROOM), malloc(ROOM) };
	uint64_t cases = (uint64_t)pt_rounds(10 * OPS);

	(void)arg;
	for (uint64_t seed = 0; seed < cases; seed++) {
		size_t skew = seed % 3 ? (size_t)rank * 72 : 0;
		char *places[4] = { private[0], private[1], base + skew, base + ROOM + 2 * skew };
		struct plan plan;

		draw(&plan, seed, size);
		run_case(_metadata, world, &plan, places);
	}
	free(private[0]);
	free(private[1]);
}

TEST(large_blocks_in_windows_are_combined_and_moved_as_everywhere)
{
	static const int sizes[] = { 2, 3, 4, 8, 9 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		run_ranks(sizes[i], run_large, NULL);
}

/* Mappings of the windows' memory in this process. */
static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (maps && fgets(line, sizeof(line), maps))
		n += strstr(line, "[pld-rank]") || strstr(line, "memfd:");
	if (maps)
		fclose(maps);
	return n;
}

RANK(stage_nothing)
{
	struct pldk_window *in = pt_window(_metadata, world, LARGE), *out = pt_window(_metadata, world, LARGE);
	float *input = pldk_window_base(in), *output = pldk_window_base(out);
	int before;

	(void)arg;
	for (size_t i = 0; i < FLOATS; i++)
		input[i] = (float)(i % 100) + (float)rank;
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	before = mappings();
	ASSERT_OK(pldk_allreduce(world, input, output, FLOATS, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	for (size_t i = 0; i < FLOATS; i++)
		ASSERT_EQ((float)(i % 100 * (size_t)size) + (float)(size * (size - 1) / 2), output[i]);
	ASSERT_OK(pldk_broadcast(world, output, FLOATS, PLDK_FP32, 1, PT_LONG));
	ASSERT_OK(pldk_reduce_scatter(world, input, output, FLOATS / (size_t)size, PLDK_FP32, PLDK_SUM, PT_LONG));
	EXPECT_EQ(before, mappings());
	/* One rank that is elsewhere, and all stage. */
	if (rank == 1)
		input = calloc(FLOATS, sizeof(float));
	ASSERT_OK(pldk_allreduce(world, input, output, FLOATS, PLDK_FP32, PLDK_MAX, PLDK_MODE_AUTO, PT_LONG));
	EXPECT_LT(before, mappings());
	if (rank == 1)
		free(input);
}

TEST(nothing_is_staged_when_all_buffers_are_in_windows)
{
	SKIP_FAR("what is far is staged");
	run_ranks(2, stage_nothing, NULL);
	run_ranks(3, stage_nothing, NULL);
}

/* A result in a window that only its owner writes: it must arrive, and by the owner's own hand. */
RANK(result_where_only_the_owner_writes)
{
	struct pldk_window_options options = PLDK_WINDOW_OPTIONS_INIT;
	struct pldk_window *in = pt_window(_metadata, world, LARGE), *out = NULL;
	float *input = pldk_window_base(in), *output;

	(void)arg;
	options.flags = PLDK_WINDOW_OWNER_WRITES;
	ASSERT_OK(pldk_window_create(world, HUGE, &options, &out));
	output = pldk_window_base(out);
	for (size_t i = 0; i < FLOATS; i++)
		input[i] = 1;
	ASSERT_OK(pldk_allreduce(world, input, output, FLOATS, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	for (size_t i = 0; i < FLOATS; i++)
		ASSERT_EQ((float)size, output[i]);
	for (int root = 0; root < size; root++) {
		for (size_t i = 0; i < HUGE / sizeof(float); i++)
			output[i] = (float)(rank + 5);
		ASSERT_OK(pldk_broadcast(world, output, HUGE / sizeof(float), PLDK_FP32, root, PT_LONG));
		for (size_t i = 0; i < HUGE / sizeof(float); i++)
			ASSERT_EQ((float)(root + 5), output[i]);
	}
}

TEST(a_window_that_only_its_owner_writes_gets_its_result)
{
	run_ranks(2, result_where_only_the_owner_writes, NULL);
	run_ranks(3, result_where_only_the_owner_writes, NULL);
}

/* Rank 0 gives up, destroys the window of its buffers, and comes back with the same addresses. */
RANK(destroy_while_open)
{
	struct pldk_window *window = pt_window(_metadata, world, 2 * LARGE);
	float *input = pldk_window_base(window), *output = input + FLOATS, one = 1, sum = 0;

	(void)arg;
	for (size_t i = 0; i < FLOATS; i++)
		input[i] = 1;
	if (!rank) {
		ASSERT_RET(-ETIMEDOUT, pldk_allreduce(world, input, output, FLOATS, PLDK_FP32, PLDK_SUM,
						      PLDK_MODE_AUTO, PLDK_MS(20)));
		ASSERT_OK(pldk_window_destroy(window));
		atomic_store(pt_word(0), 1);
	} else {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 20000));
	}
	EXPECT_RET(-ESTALE, pldk_allreduce(world, input, output, FLOATS, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	EXPECT_SAYS("rank 0", "allreduce", "destroyed while the call was interrupted");
	ASSERT_OK(pldk_allreduce(world, &one, &sum, 1, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	EXPECT_EQ((float)size, sum);
}

TEST(a_window_destroyed_while_its_collective_is_interrupted_is_told_to_all)
{
	SKIP_FAR("what is far is staged");
	pt_clear_words();
	run_ranks(2, destroy_while_open, NULL);
	pt_clear_words();
	run_ranks(3, destroy_while_open, NULL);
}

/* Impatient, at any place: the call goes on. */
RANK(come_and_go)
{
	struct pldk_window *window = pt_window(_metadata, world, 2 * LARGE);
	float *input = pldk_window_base(window), *output = input + FLOATS;
	int64_t timeout = rank ? PT_LONG : PLDK_TRY, ret;
	int64_t start = pt_now();

	(void)arg;
	for (int turn = 0; turn < pt_rounds(200); turn++) {
		for (size_t i = 0; i < FLOATS; i++)
			input[i] = (float)turn;
		do
			ret = pldk_allreduce(world, input, output, FLOATS, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO,
					     timeout);
		while (ret == -EAGAIN && pt_ms_since(start) < pt_slow_ms(20000));
		ASSERT_OK(ret);
		for (size_t i = 0; i < FLOATS; i++)
			ASSERT_EQ((float)(turn * size), output[i]);
	}
}

TEST(an_impatient_rank_goes_on_with_its_collective_in_windows)
{
	run_ranks(2, come_and_go, NULL);
	run_ranks(3, come_and_go, NULL);
}

/* Rank 0 gives up before it knows where the others' buffers are, and calls something else. */
RANK(give_up_for_another)
{
	struct pldk_window *window = pt_window(_metadata, world, 2 * LARGE);
	float *input = pldk_window_base(window), *output = input + FLOATS;

	(void)arg;
	(void)size;
	if (!rank) {
		ASSERT_RET(-ETIMEDOUT, pldk_allreduce(world, input, output, FLOATS, PLDK_FP32, PLDK_SUM,
						      PLDK_MODE_AUTO, PLDK_MS(20)));
		atomic_store(pt_word(0), 1);
		EXPECT_RET(-EPROTO, pldk_allreduce(world, input, output, FLOATS, PLDK_FP32, PLDK_MAX, PLDK_MODE_AUTO,
						   PT_LONG));
	} else {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 20000));
		EXPECT_RET(-EPROTO, pldk_allreduce(world, input, output, FLOATS, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO,
						   PT_LONG));
	}
	EXPECT_SAYS("sum", "max");
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(another_call_than_the_interrupted_one_is_a_disagreement)
{
	SKIP_FAR("what is far is staged");
	pt_clear_words();
	run_ranks(2, give_up_for_another, NULL);
	pt_clear_words();
	run_ranks(3, give_up_for_another, NULL);
}

TEST_HARNESS_MAIN
