// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: collectives at their edges, as field reports tell of them: buffers that a rank does not use, one rank
 * alone, sizes that no 32 bits hold, more ranks than CPUs.
 */
#include "pldk_test.h"

RANK(leave_out_what_is_not_used)
{
	const bool is_root = rank == 1;
	int32_t in[4] = { rank, 1, 2, 3 }, out[16];

	/* NULL where the rank gets or gives nothing. */
	ASSERT_OK(pldk_reduce(world, in, is_root ? out : NULL, 4, PLDK_INT32, PLDK_SUM, 1, PT_LONG));
	if (is_root) {
		EXPECT_EQ(size * (size - 1) / 2, out[0]);
	}
	ASSERT_OK(pldk_gather(world, in, is_root ? out : NULL, 4, PLDK_INT32, 1, PT_LONG));
	ASSERT_OK(pldk_scatter(world, is_root ? out : NULL, in, 4, PLDK_INT32, 1, PT_LONG));
	EXPECT_EQ(rank, in[0]);
	ASSERT_OK(pldk_exscan(world, in, rank ? out : NULL, 4, PLDK_INT32, PLDK_SUM, PT_LONG));
	/* The root needs it: that is an error for all, and at once. */
	EXPECT_RET(-EINVAL, pldk_reduce(world, in, is_root ? NULL : out, 4, PLDK_INT32, PLDK_SUM, 1, PT_LONG));
	EXPECT_SAYS("output is NULL", "rank 1");
	EXPECT_RET(-EINVAL, pldk_gather(world, in, is_root ? NULL : out, 4, PLDK_INT32, 1, PT_LONG));
	EXPECT_RET(-EINVAL, pldk_scatter(world, is_root ? NULL : out, in, 4, PLDK_INT32, 1, PT_LONG));
	EXPECT_SAYS("input is NULL", "rank 1");
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

/* H4: reduce hangs unless ranks that are not the root give a receive buffer, too */
TEST(a_buffer_that_a_rank_does_not_use_may_be_null)
{
	run_ranks(2, leave_out_what_is_not_used, NULL);
	run_ranks(4, leave_out_what_is_not_used, NULL);
}

RANK(be_alone)
{
	static const enum pldk_mode modes[] = { PLDK_MODE_AUTO, PLDK_MODE_MESH, PLDK_MODE_TWO_PHASE, PLDK_MODE_RING };
	int32_t in[3] = { 7, 8, 9 }, out[3] = { 0 };

	for (size_t m = 0; m < 4; m++) {
		memset(out, 0, sizeof(out));
		ASSERT_OK(pldk_allreduce(world, in, out, 3, PLDK_INT32, PLDK_PROD, modes[m], PLDK_TRY));
		EXPECT_EQ(0, memcmp(in, out, sizeof(in)));
	}
	EXPECT_EQ(0, pldk_left(world));
	EXPECT_EQ(0, pldk_right(world));
	(void)rank;
	(void)size;
}

/* H6: world size 0 or negative is accepted; and a ring of one has no step */
TEST(a_world_has_at_least_one_rank_and_one_is_enough)
{
	int fd = PT_ERRNO;

	EXPECT_RET(-EINVAL, pldk_world_create(0, NULL, &fd));
	EXPECT_RET(-EINVAL, pldk_world_create(-1, NULL, &fd));
	EXPECT_RET(-EINVAL, pldk_world_create(PLDK_MAX_RANKS + 1, NULL, &fd));
	EXPECT_EQ(PT_ERRNO, fd);
	run_ranks(1, be_alone, NULL);
}

RANK(free_nothing_on_one_rank)
{
	if (rank == 0) {
		EXPECT_OK(pldk_window_destroy(NULL));
		pldk_handle_free(NULL);
		EXPECT_OK(pldk_finalize(NULL));
		EXPECT_RET(-EINVAL, pldk_domain_close(NULL));
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)size;
}

/* H17: is free(NULL) a barrier? No, and neither is any other way to give something back */
TEST(giving_back_synchronises_nobody)
{
	run_ranks(2, free_nothing_on_one_rank, NULL);
}

#define MANY (((size_t)2 << 30) + 4099) /* bytes a rank */

RANK(gather_more_than_32_bits_count)
{
	char *all = mmap(NULL, MANY * (size_t)size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	static const size_t at[] = { 0, 4096, (size_t)1 << 31, MANY - 1 };

	ASSERT_NE(MAP_FAILED, all);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		all[(size_t)rank * MANY + at[i]] = (char)(1 + rank + 10 * (int)i);
	ASSERT_OK(pldk_allgather(world, PLDK_IN_PLACE, all, MANY, PLDK_UINT8, PLDK_SEC(60)));
	for (int r = 0; r < size; r++) {
		for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
			ASSERT_EQ(1 + r + 10 * (int)i, all[(size_t)r * MANY + at[i]]);
		}
	}
	munmap(all, MANY * (size_t)size);
}

/* O1: a gather of 4 GiB has a negative count */
TEST(an_allgather_of_more_than_4_gib)
{
	struct pt_run run = { .nranks = 2, .body = gather_more_than_32_bits_count, .limit_ms = 90000 };

	if (pt_scale() < 100 || pt_is_far() || pt_proc_kb("/proc/meminfo", "MemAvailable:") < 8L << 20)
		SKIP(return, "needs 8 GiB of free memory, and a machine that copies them");
	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

RANK(go_on_slowly)
{
	enum { N = 1 << 18 };
	float *data = calloc(N, sizeof(*data));

	if (nice(19) < 0)
		TH_LOG("nice: %s", strerror(errno));
	for (int i = 0; i < (int)pt_rounds(100); i++)
		ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, data, N, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO,
					 PLDK_TIMEOUT_DEFAULT));
	atomic_store(pt_word(0), 1);
	free(data);
	(void)rank;
	(void)size;
}

/* F6: with more ranks than CPUs, and a CPU that others want, the timeouts of a slow job are false alarms */
TEST(a_slow_job_does_not_time_out)
{
	struct pt_run run = { .nranks = 8, .body = go_on_slowly, .limit_ms = 90000 };
	pid_t hog;

	pt_clear_words();
	hog = fork();
	if (!hog) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!atomic_load(pt_word(1)))
			;
		_exit(0);
	}
	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
	atomic_store(pt_word(1), 1);
	waitpid(hog, NULL, 0);
}

RANK(set_instead_of_add)
{
	struct pldk_window *signal = NULL;

	ASSERT_OK(pldk_signal_create(world, 1, (int64_t[]){ 1 }, NULL, &signal));
	if (rank)
		ASSERT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_SET, 1));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (!rank) {
		EXPECT_RET(-ETIMEDOUT, pldk_wait(signal, 0, PLDK_GE, size - 1, PLDK_MS(20)));
		EXPECT_SAYS(">= 3, seen 1", "last of 3 notifies: SET", "ADD");
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

/* E12: Set instead of AtomicAdd, and a count that never comes */
TEST(many_sets_where_adds_were_meant_are_told)
{
	run_ranks(4, set_instead_of_add, NULL);
}

TEST_HARNESS_MAIN
