// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What users of other libraries have suffered from, by the numbers of the field reports, as far as it concerns
 * collectives and is not told elsewhere (grep for the number).
 */
#include "pldk_test_case.h"

#include <linux/pld.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

FIXTURE(slow)
{
};

FIXTURE_SETUP(slow)
{
	(void)self;
}

FIXTURE_TEARDOWN(slow)
{
	(void)self;
}

/*
 * D3: with the smallest queue the tail was published before what it counts. Many ranks have two slots each, and cells
 * for two numbers: rows of random lengths, call after call.
 */
RANK(rush_through_two_slots)
{
	enum { ROW = 600 };
	const size_t n = (size_t)size;
	int32_t *in = calloc(n * ROW, sizeof(*in)), *out = calloc(n * ROW, sizeof(*out));
	size_t *send = calloc(n, sizeof(*send)), *recv = calloc(n, sizeof(*recv));

	(void)arg;
	for (int turn = 0; turn < pt_rounds(100); turn++) {
		for (size_t r = 0; r < n; r++) {
			send[r] = pt_mix((uint64_t)rank, r, (uint64_t)turn) % (ROW + 1);
			recv[r] = pt_mix(r, (uint64_t)rank, (uint64_t)turn) % (ROW + 1);
			for (size_t i = 0; i < send[r]; i++)
				in[r * ROW + i] = turn << 20 | rank << 10 | (int32_t)i;
		}
		ASSERT_OK(pldk_all_to_all_v(world, in, out, ROW, send, recv, PLDK_INT32, PT_LONG));
		for (size_t r = 0; r < n; r++) {
			for (size_t i = 0; i < recv[r]; i++) {
				ASSERT_EQ(turn << 20 | (int32_t)r << 10 | (int32_t)i, out[r * ROW + i])
				TH_LOG("turn %d, row %zu, element %zu", turn, r, i);
			}
		}
	}
	free(in);
	free(out);
	free(send);
	free(recv);
}

TEST_F_TIMEOUT(slow, d3_the_smallest_outbox_never_gives_what_is_not_there_yet, 120)
{
	struct pt_run run = { .nranks = pt_scale() < 100 ? 12 : 32, .body = rush_through_two_slots, .limit_ms = 90000 };

	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

/*
 * D6: the stages of an algorithm cut the data differently, and flags shared a word. One cell is one line; every count
 * around the edges of slices gives every element once.
 */
RANK(cut_slices)
{
	struct pldk_window *window = pt_window(_metadata, world, 2 * 8192 * sizeof(int32_t));
	int32_t *in = pldk_window_base(window), *out = in + 8192;

	(void)arg;
	for (size_t count = 0; count < 5 * 16 * (size_t)size; count += pt_scale() < 100 ? 7 : 1) {
		for (size_t i = 0; i <= count; i++) {
			in[i] = (rank + 1) * 1000 + (int32_t)i;
			out[i] = -7;
		}
		ASSERT_OK(pldk_allreduce(world, in, out, count, PLDK_INT32, PLDK_SUM, PLDK_MODE_TWO_PHASE, PT_LONG));
		for (size_t i = 0; i < count; i++) {
			ASSERT_EQ(size * (size + 1) / 2 * 1000 + size * (int32_t)i, out[i])
			TH_LOG("%zu of %zu", i, count);
		}
		ASSERT_EQ(-7, out[count]);
	}
}

TEST(d6_slices_cover_every_element_once)
{
	EXPECT_EQ(64, sizeof(struct pld_cell));
	EXPECT_EQ(0, offsetof(struct pld_cell, value) % sizeof(int64_t));
	for (int size = 2; size <= 5; size++)
		run_ranks(size, cut_slices, NULL);
}

/* E13: a pointer to data was passed where signals are, and waited for ever. */
RANK(mix_up_windows)
{
	const int64_t shape[2] = { size, 1 };
	struct pldk_window *data = pt_window(_metadata, world, 4096), *signal = NULL;
	struct pldk_dtensor view;
	const int64_t n = 8;
	int64_t value;

	(void)rank;
	(void)arg;
	ASSERT_OK(pldk_signal_create(world, 2, shape, NULL, &signal));
	EXPECT_RET(-EDOM, pldk_notify(data, 0, 0, PLDK_NOTIFY_ADD, 1));
	EXPECT_SAYS("data window");
	EXPECT_RET(-EDOM, pldk_wait(data, 0, PLDK_GE, 1, PT_LONG));
	EXPECT_RET(-EDOM, pldk_read(data, 0, &value));
	EXPECT_RET(-EDOM, pldk_barrier_on(data, PT_LONG));
	EXPECT_SAYS("data window", "signal window is wanted");
	EXPECT_RET(-EDOM, pldk_view(signal, 0, 1, &n, PLDK_FP32, &view));
	EXPECT_RET(-EINVAL, pldk_notify((struct pldk_window *)pldk_window_base(data), 0, 0, PLDK_NOTIFY_ADD, 1));
	ASSERT_OK(pldk_barrier_on(signal, PT_LONG));
}

TEST(e13_data_and_signal_windows_are_never_taken_for_each_other)
{
	run_ranks(2, mix_up_windows, NULL);
}

static int64_t cpu_ns(const struct rusage *usage)
{
	return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * PLDK_SEC(1) +
	       (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

/* F5: idle workers burned a core each between commands. */
RANK(idle_between_commands)
{
	const int seconds = 3;
	struct pldk_window *signal = pt_signal(_metadata, world, 4);
	struct rusage before, after;
	int64_t ns;

	(void)arg;
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (!rank) {
		sleep((unsigned int)seconds);
		for (int r = 1; r < size; r++)
			ASSERT_OK(pldk_notify(signal, r, 0, PLDK_NOTIFY_ADD, 1));
		return;
	}
	getrusage(RUSAGE_SELF, &before);
	ASSERT_OK(pldk_wait(signal, 0, PLDK_GE, 1, PT_LONG));
	getrusage(RUSAGE_SELF, &after);
	ns = cpu_ns(&after) - cpu_ns(&before);
	/* On shm a sleeper looks after the others two or three times a second; on dev the kernel does. */
	EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, pt_is_dev() ? 10 : 10 + 6 * seconds);
	EXPECT_LE(ns, pt_slow_ms(20) * PLDK_MS(1));
}

TEST(f5_idle_workers_sleep)
{
	run_ranks(4, idle_between_commands, NULL);
}

/* H18: the documentation had one list of types and modes, the code another. */
RANK(try_all_kinds)
{
	int64_t in[4] = { 0 }, out[4];

	(void)rank;
	(void)size;
	(void)arg;
	for (int mode = -1; mode <= PLDK_MODE_AUTO + 1; mode++)
		for (int dtype = -1; dtype <= PLDK_UINT8 + 1; dtype++)
			for (int reduce = -1; reduce <= PLDK_PROD + 1; reduce++) {
				const enum pldk_mode m = (enum pldk_mode)mode;
				const enum pldk_dtype t = (enum pldk_dtype)dtype;
				const enum pldk_reduce_op op = (enum pldk_reduce_op)reduce;

				EXPECT_EQ(pldk_coll_supported(PLDK_EV_ALLREDUCE, m, t, op),
					  pldk_allreduce(world, in, out, 1, t, op, m, PT_LONG));
				EXPECT_EQ(pldk_coll_supported(PLDK_EV_REDUCE_SCATTER, m, t, op),
					  pldk_reduce_scatter(world, in, out, 1, t, op, PT_LONG));
				EXPECT_EQ(pldk_coll_supported(PLDK_EV_REDUCE, m, t, op),
					  pldk_reduce(world, in, out, 1, t, op, 0, PT_LONG));
				EXPECT_EQ(pldk_coll_supported(PLDK_EV_SCAN, m, t, op),
					  pldk_scan(world, in, out, 1, t, op, PT_LONG));
				EXPECT_EQ(pldk_coll_supported(PLDK_EV_EXSCAN, m, t, op),
					  pldk_exscan(world, in, out, 1, t, op, PT_LONG));
				EXPECT_EQ(pldk_coll_supported(PLDK_EV_ALLGATHER, m, t, op),
					  pldk_allgather(world, in, out, 1, t, PT_LONG));
				EXPECT_EQ(pldk_coll_supported(PLDK_EV_ALL_TO_ALL, m, t, op),
					  pldk_all_to_all(world, in, out, 1, t, PT_LONG));
				EXPECT_EQ(pldk_coll_supported(PLDK_EV_BROADCAST, m, t, op),
					  pldk_broadcast(world, in, 1, t, 0, PT_LONG));
				EXPECT_EQ(pldk_coll_supported(PLDK_EV_GATHER, m, t, op),
					  pldk_gather(world, in, out, 1, t, 0, PT_LONG));
				EXPECT_EQ(pldk_coll_supported(PLDK_EV_SCATTER, m, t, op),
					  pldk_scatter(world, in, out, 1, t, 0, PT_LONG));
				EXPECT_EQ(0, pldk_coll_supported(PLDK_EV_BARRIER, m, t, op));
			}
	EXPECT_EQ(0, pldk_coll_supported(PLDK_EV_ALLREDUCE, PLDK_MODE_RING, PLDK_BF16, PLDK_PROD));
	EXPECT_RET(-EINVAL, pldk_coll_supported(PLDK_EV_PUT, PLDK_MODE_AUTO, PLDK_FP32, PLDK_SUM));
	EXPECT_SAYS("no collective");
}

TEST(h18_what_is_said_to_be_supported_is_what_calls_accept)
{
	run_ranks(1, try_all_kinds, NULL);
}

/* O3: exactly 4 GiB failed; and windows beyond it must not meet. */
RANK(map_around_4_gib)
{
	static const uint64_t sizes[] = { (UINT64_C(1) << 31) - 1, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 4096 };

	(void)rank;
	(void)size;
	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct pldk_window *large = pt_window(_metadata, world, sizes[i]);
		struct pldk_window *next = pt_window(_metadata, world, 8192);
		char *at = pldk_window_base(large), *beside = pldk_window_base(next);

		ASSERT_EQ(sizes[i], pldk_window_bytes(large));
		at[0] = 1;
		at[sizes[i] - 1] = 2;
		at[sizes[i] / 2] = 3;
		EXPECT_EQ(0, beside[0]);
		EXPECT_EQ(0, beside[8191]);
		beside[0] = 4;
		beside[8191] = 5;
		EXPECT_EQ(1, at[0]);
		EXPECT_EQ(2, at[sizes[i] - 1]);
		EXPECT_EQ(3, at[sizes[i] / 2]);
		ASSERT_OK(pldk_window_destroy(next));
		ASSERT_OK(pldk_window_destroy(large));
	}
}

TEST_F_TIMEOUT(slow, o3_windows_around_4_gib_are_whole_and_apart, 120)
{
	struct pt_run run = { .nranks = 1, .body = map_around_4_gib, .limit_ms = 90000 };
	struct sysinfo info;

	SKIP_FAR("a rank alone has no far peers");
	sysinfo(&info);
	if ((uint64_t)info.freeram * info.mem_unit < UINT64_C(8) << 30)
		SKIP(return, "needs 8 GiB of free memory");
	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

TEST_HARNESS_MAIN
