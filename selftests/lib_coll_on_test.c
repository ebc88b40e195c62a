// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: collectives on a signal window of the caller. The bytes they move are those of the forms without one, so
 * each is compared with that; here it is cells, shapes, layouts and what a call that was given up leaves.
 */
#include "pldk_test.h"

#define N 5

static struct pldk_window *signal_of(struct __test_metadata *_metadata, struct pldk_domain *world,
				     enum pldk_event_op op, enum pldk_mode mode)
{
	struct pldk_window *signal = NULL;
	int64_t shape[2] = { 0, 0 };

	ASSERT_OK(pldk_coll_signal_shape(op, mode, pldk_size(world), shape));
	ASSERT_OK(pldk_signal_create(world, 2, shape, NULL, &signal));
	return signal;
}

static bool all_zero(struct pldk_window *signal, int cells)
{
	for (int i = 0; i < cells; i++) {
		int64_t value = 1;

		if (pldk_read(signal, i, &value) || value)
			return false;
	}
	return true;
}

#define BOTH_FORMS(op, ...)                                                                                            \
	do {                                                                                                           \
		memset(out, 0, sizeof(out));                                                                           \
		memset(want, 0, sizeof(want));                                                                         \
		to = want;                                                                                             \
		ASSERT_OK(pldk_##op(world, __VA_ARGS__));                                                              \
		to = out;                                                                                              \
		ASSERT_OK(pldk_##op##_on(signal, __VA_ARGS__));                                                        \
		EXPECT_EQ(0, memcmp(want, out, sizeof(out))) TH_LOG("%s", #op);                                        \
		EXPECT_TRUE(all_zero(signal, size)) TH_LOG("%s leaves a cell that is not 0", #op);                     \
	} while (0)

RANK(every_operation)
{
	struct pldk_window *signal = signal_of(_metadata, world, PLDK_EV_BARRIER, PLDK_MODE_AUTO);
	int32_t in[8 * N], out[8 * N], want[8 * N], *to;
	size_t counts[8];

	for (int i = 0; i < 8 * N; i++)
		in[i] = rank * 1000 + i;
	for (int r = 0; r < size; r++)
		counts[r] = (size_t)(r + rank) % (N + 1);
	for (int round = 0; round < pt_rounds(100); round++) {
		const int root = round % size;

		BOTH_FORMS(allreduce, in, to, N, PLDK_INT32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG);
		BOTH_FORMS(allgather, in, to, N, PLDK_INT32, PT_LONG);
		BOTH_FORMS(reduce_scatter, in, to, N, PLDK_INT32, PLDK_MAX, PT_LONG);
		BOTH_FORMS(all_to_all, in, to, N, PLDK_INT32, PT_LONG);
		BOTH_FORMS(all_to_all_v, in, to, N, counts, counts, PLDK_INT32, PT_LONG);
		BOTH_FORMS(reduce, in, to, N, PLDK_INT32, PLDK_MIN, root, PT_LONG);
		BOTH_FORMS(gather, in, to, N, PLDK_INT32, root, PT_LONG);
		BOTH_FORMS(scatter, in, to, N, PLDK_INT32, root, PT_LONG);
		BOTH_FORMS(scan, in, to, N, PLDK_INT32, PLDK_SUM, PT_LONG);
		BOTH_FORMS(exscan, in, to, N, PLDK_INT32, PLDK_SUM, PT_LONG);
		ASSERT_OK(pldk_broadcast_on(signal, rank == root ? in : out, N, PLDK_INT32, root, PT_LONG));
		EXPECT_EQ(root * 1000 + 1, rank == root ? root * 1000 + 1 : out[1]);
		ASSERT_OK(pldk_barrier_on(signal, PT_LONG));
		EXPECT_TRUE(all_zero(signal, size));
	}
	ASSERT_OK(pldk_window_destroy(signal));
}

/* E1: one signal window for any number of collectives, one after the other */
TEST(one_window_serves_all_operations_again_and_again_and_reads_zero)
{
	for (int size = 1; size <= 4; size++)
		run_ranks(size, every_operation, NULL);
}

RANK(every_mode)
{
	static const enum pldk_mode modes[] = { PLDK_MODE_MESH, PLDK_MODE_TWO_PHASE, PLDK_MODE_RING };
	enum { MANY = 30000 };
	int32_t *in = malloc(MANY * sizeof(*in)), *out = malloc(MANY * sizeof(*out));

	for (int i = 0; i < MANY; i++)
		in[i] = rank + i;
	for (size_t m = 0; m < 3; m++) {
		struct pldk_window *signal = signal_of(_metadata, world, PLDK_EV_ALLREDUCE, modes[m]);

		for (int round = 0; round < 20; round++) {
			ASSERT_OK(pldk_allreduce_on(signal, in, out, MANY, PLDK_INT32, PLDK_SUM, modes[m], PT_LONG));
			for (int i = 0; i < MANY; i += 97)
				ASSERT_EQ(size * i + size * (size - 1) / 2, out[i]);
		}
		EXPECT_TRUE(all_zero(signal, size));
		ASSERT_OK(pldk_window_destroy(signal));
	}
	free(in);
	free(out);
}

TEST(every_mode_has_its_layout)
{
	for (int size = 1; size <= 4; size++)
		run_ranks(size, every_mode, NULL);
}

TEST(shapes_are_those_of_the_layouts)
{
	int64_t shape[2] = { 77, 77 };

	ASSERT_OK(pldk_coll_signal_shape(PLDK_EV_SCAN, PLDK_MODE_AUTO, 6, shape));
	EXPECT_TRUE(shape[0] == 6 && shape[1] == 1);
	ASSERT_OK(pldk_coll_signal_shape(PLDK_EV_ALLREDUCE, PLDK_MODE_TWO_PHASE, 6, shape));
	EXPECT_TRUE(shape[0] == 2 && shape[1] == 6);
	ASSERT_OK(pldk_coll_signal_shape(PLDK_EV_ALLREDUCE, PLDK_MODE_RING, 6, shape));
	EXPECT_TRUE(shape[0] == 10 && shape[1] == 6);
	ASSERT_OK(pldk_coll_signal_shape(PLDK_EV_ALLREDUCE, PLDK_MODE_RING, 1, shape));
	EXPECT_TRUE(shape[0] == 1 && shape[1] == 1);
	shape[0] = shape[1] = 77;
	EXPECT_RET(-EINVAL, pldk_coll_signal_shape(PLDK_EV_PUT, PLDK_MODE_AUTO, 6, shape));
	EXPECT_RET(-EINVAL, pldk_coll_signal_shape((enum pldk_event_op)-1, PLDK_MODE_AUTO, 6, shape));
	EXPECT_RET(-EINVAL, pldk_coll_signal_shape(PLDK_EV_SCAN, (enum pldk_mode)4, 6, shape));
	EXPECT_RET(-EINVAL, pldk_coll_signal_shape(PLDK_EV_SCAN, PLDK_MODE_AUTO, 0, shape));
	EXPECT_RET(-EINVAL, pldk_coll_signal_shape(PLDK_EV_SCAN, PLDK_MODE_AUTO, PLDK_MAX_RANKS + 1, shape));
	EXPECT_RET(-EINVAL, pldk_coll_signal_shape(PLDK_EV_SCAN, PLDK_MODE_AUTO, 6, NULL));
	EXPECT_TRUE(shape[0] == 77 && shape[1] == 77);
}

RANK(wrong_windows)
{
	struct pldk_window *small, *large, *flat, *data, *ring, *other;
	struct pldk_domain *subset;
	int ranks[] = { 0, 1, 2 };
	int32_t x = 1, y = PT_ERRNO;

	ASSERT_EQ(3, size);
	ASSERT_OK(pldk_signal_create(world, 2, (int64_t[]){ 2, 1 }, NULL, &small));
	ASSERT_OK(pldk_signal_create(world, 2, (int64_t[]){ 4, 1 }, NULL, &large));
	ASSERT_OK(pldk_signal_create(world, 1, (int64_t[]){ 3 }, NULL, &flat));
	ASSERT_OK(pldk_window_create(world, 4096, NULL, &data));
	ASSERT_OK(pldk_signal_create(world, 2, (int64_t[]){ 3, 3 }, NULL, &ring)); /* one row less than [4, 3] */
	ASSERT_OK(pldk_subset(world, ranks, 3, PT_LONG, &subset));
	ASSERT_OK(pldk_signal_create(subset, 1, (int64_t[]){ 3 }, NULL, &other));
	EXPECT_RET(-EINVAL, pldk_barrier_on(small, PT_LONG));
	EXPECT_SAYS("[2, 1]", "[3, 1]");
	EXPECT_RET(-EINVAL, pldk_barrier_on(large, PT_LONG));
	EXPECT_SAYS("[4, 1]", "[3, 1]");
	EXPECT_RET(-EINVAL, pldk_allreduce_on(ring, &x, &y, 1, PLDK_INT32, PLDK_SUM, PLDK_MODE_RING, PT_LONG));
	EXPECT_SAYS("[3, 3]", "[4, 3]", "ring");
	EXPECT_RET(-EINVAL, pldk_allreduce_on(flat, &x, &y, 1, PLDK_INT32, PLDK_SUM, PLDK_MODE_TWO_PHASE, PT_LONG));
	EXPECT_SAYS("[3]", "[2, 3]", "two-phase");
	EXPECT_RET(-EDOM, pldk_barrier_on(data, PT_LONG));
	EXPECT_RET(-EINVAL, pldk_barrier_on(NULL, PT_LONG));
	EXPECT_EQ(PT_ERRNO, y);
	/* The wrong one on one rank alone is told to all. */
	EXPECT_RET(-EINVAL, pldk_barrier_on(rank == 1 ? small : flat, PT_LONG));
	EXPECT_SAYS("[2, 1]");
	ASSERT_OK(pldk_barrier_on(flat, PT_LONG)); /* [NR] serves as [NR, 1] does */
	ASSERT_OK(pldk_barrier_on(other, PT_LONG));
	ASSERT_OK(pldk_window_destroy(flat));
	EXPECT_RET(-ESTALE, pldk_barrier_on(flat, PT_LONG));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

/* E14: the exact shape is in the error */
TEST(a_window_of_another_shape_or_kind_is_refused_on_all_ranks)
{
	run_ranks(3, wrong_windows, NULL);
}

RANK(differ_in_the_window)
{
	struct pldk_window *one = signal_of(_metadata, world, PLDK_EV_BARRIER, PLDK_MODE_AUTO);
	struct pldk_window *two = signal_of(_metadata, world, PLDK_EV_BARRIER, PLDK_MODE_AUTO);
	int32_t x = 1;

	EXPECT_RET(-EPROTO, pldk_barrier_on(rank ? two : one, PLDK_FOREVER));
	EXPECT_SAYS("signal window is 0 on rank 0", "1 on rank");
	EXPECT_RET(-EPROTO, rank ? pldk_barrier(world, PLDK_FOREVER) : pldk_barrier_on(one, PLDK_FOREVER));
	EXPECT_SAYS("signal window is 0 on rank 0", "none on rank");
	EXPECT_RET(-EPROTO, pldk_broadcast_on(rank ? two : one, &x, 1, PLDK_INT32, 0, PLDK_FOREVER));
	EXPECT_TRUE(all_zero(one, size) && all_zero(two, size));
	ASSERT_OK(pldk_barrier_on(two, PT_LONG));
}

TEST(ranks_that_use_different_windows_get_eproto)
{
	run_ranks(2, differ_in_the_window, NULL);
	run_ranks(3, differ_in_the_window, NULL);
}

RANK(two_layouts)
{
	struct pldk_window *signal;
	int32_t x = 1, y = 0;

	/* For two ranks the layouts two-phase and ring have the same shape: only the window's memory tells. */
	ASSERT_OK(pldk_signal_create(world, 2, (int64_t[]){ 2, 2 }, NULL, &signal));
	ASSERT_OK(pldk_allreduce_on(signal, &x, &y, 1, PLDK_INT32, PLDK_SUM, PLDK_MODE_TWO_PHASE, PT_LONG));
	EXPECT_RET(-EBUSY, pldk_allreduce_on(signal, &x, &y, 1, PLDK_INT32, PLDK_SUM, PLDK_MODE_RING, PT_LONG));
	EXPECT_SAYS("two-phase", "ring", "lib_coll_on_test.c:", "reset");
	ASSERT_OK(pldk_window_reset(signal, PT_LONG));
	ASSERT_OK(pldk_allreduce_on(signal, &x, &y, 1, PLDK_INT32, PLDK_SUM, PLDK_MODE_RING, PT_LONG));
	EXPECT_EQ(2, y);
	(void)rank;
	(void)size;
}

TEST(a_second_layout_on_one_window_is_refused_with_the_first_call)
{
	run_ranks(2, two_layouts, NULL);
}

/* Rank 0 gives up in the last step, when the credit of rank 1 is missing; rank 1 comes, and rank 0 is elsewhere. */
RANK(give_up)
{
	struct pldk_window *signal = signal_of(_metadata, world, PLDK_EV_BARRIER, PLDK_MODE_AUTO);
	int64_t value = 0;

	/* A credit that nobody has given in a call: as if rank 0's call had been given up. */
	if (rank == 0)
		ASSERT_OK(pldk_notify(signal, 1, 0, PLDK_NOTIFY_ADD, 1));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_RET(-EBUSY, pldk_barrier_on(signal, PT_LONG));
	EXPECT_SAYS("cell 0", "rank 0", "reset");
	ASSERT_OK(pldk_read(signal, 0, &value));
	EXPECT_EQ(rank == 1, value);
	ASSERT_OK(pldk_window_reset(signal, PT_LONG));
	ASSERT_OK(pldk_barrier_on(signal, PT_LONG));
	EXPECT_TRUE(all_zero(signal, size));
}

TEST(credits_that_were_left_are_ebusy_on_all_until_the_reset)
{
	run_ranks(2, give_up, NULL);
	run_ranks(3, give_up, NULL);
}

RANK(come_again)
{
	struct pldk_window *signal = signal_of(_metadata, world, PLDK_EV_BARRIER, PLDK_MODE_AUTO);

	if (rank == 0) {
		EXPECT_RET(-ETIMEDOUT, pldk_barrier_on(signal, PLDK_MS(10)));
		EXPECT_SAYS("rank 1", "barrier");
		atomic_store(pt_word(0), 1);
	} else {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 20000));
	}
	for (int i = 0; i < 1000; i++) {
		int ret;

		do
			ret = pldk_barrier_on(signal, rank ? PT_LONG : i % 7 * 1000);
		while (ret == -ETIMEDOUT || ret == -EAGAIN);
		ASSERT_EQ(0, ret) TH_LOG("%s", pldk_last_error());
	}
	EXPECT_TRUE(all_zero(signal, size));
}

TEST(a_call_that_timed_out_goes_on_where_it_was)
{
	pt_clear_words();
	run_ranks(2, come_again, NULL);
	pt_clear_words();
	run_ranks(3, come_again, NULL);
}

RANK(start_on)
{
	struct pldk_coll_options options = PLDK_COLL_OPTIONS_INIT;
	struct pldk_window *signal = signal_of(_metadata, world, PLDK_EV_BARRIER, PLDK_MODE_AUTO);
	struct pldk_handle *handles[8];
	int32_t in = rank, out[8];

	options.signal = signal;
	if (rank == 0) {
		ASSERT_OK(pldk_barrier_start(world, &options, &handles[0]));
		EXPECT_RET(-EBUSY, pldk_window_destroy(signal));
		EXPECT_SAYS("window 0");
		atomic_store(pt_word(0), 1);
	} else {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 20000));
		ASSERT_OK(pldk_barrier_start(world, &options, &handles[0]));
	}
	ASSERT_OK(pldk_handle_wait(handles[0], PT_LONG));
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 8; i++)
			ASSERT_OK(pldk_allreduce_start(world, &in, &out[i], 1, PLDK_INT32, PLDK_SUM, PLDK_MODE_AUTO,
						       i % 2 ? NULL : &options, &handles[i]));
		ASSERT_OK(pldk_handle_wait(handles[7], PT_LONG));
		for (int i = 0; i < 7; i++)
			ASSERT_RET(1, pldk_handle_test(handles[i]));
		for (int i = 0; i < 8; i++)
			ASSERT_EQ(size * (size - 1) / 2, out[i]);
		EXPECT_TRUE(all_zero(signal, size));
	}
	ASSERT_OK(pldk_window_destroy(signal));
	EXPECT_RET(-ESTALE, pldk_allreduce_start(world, &in, &out[0], 1, PLDK_INT32, PLDK_SUM, PLDK_MODE_AUTO, &options,
						 &handles[0]));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(started_collectives_use_a_window_too_and_keep_it)
{
	pt_clear_words();
	run_ranks(2, start_on, NULL);
	pt_clear_words();
	run_ranks(3, start_on, NULL);
}

TEST_HARNESS_MAIN
