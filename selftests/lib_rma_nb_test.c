// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: transfers that complete later. Handles and how they end, flush and fence, and a get whose peer dies.
 */
#include "pldk_test.h"

#define CANARY 0x7ea57ea5

RANK(start_and_wait)
{
	const int64_t n = 4096;
	struct pldk_window *window = pt_window(_metadata, world, 8 * 4096 * 8),
			   *signal = pt_signal(_metadata, world, 8);
	int64_t *mine = calloc(8 * 4096, 8), *got = calloc(8 * 4096, 8), *base = pldk_window_base(window);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT64, 8 * n);
	struct pldk_tensor from = pt_tensor(_metadata, mine, PLDK_INT64, 8 * n);
	struct pldk_tensor to = pt_tensor(_metadata, got, PLDK_INT64, 8 * n);
	int peer = pldk_right(world), left = pldk_left(world);
	struct pldk_handle *handles[8];

	for (int round = 0; round < 20; round++) {
		for (int64_t i = 0; i < 8 * n; i++)
			mine[i] = (int64_t)rank << 40 | (int64_t)round << 24 | i;
		for (int h = 0; h < 8; h++) {
			struct pldk_region part = { SHAPE(h * n), SHAPE(h * n), SHAPE(n) };

			ASSERT_OK(pldk_put_nb(&view, peer, &from, &part, NULL, &handles[h]));
		}
		/* Each way to end a handle. */
		ASSERT_OK(pldk_handle_wait(handles[0], PT_LONG));
		ASSERT_OK(pldk_handle_wait(handles[1], PLDK_FOREVER));
		ASSERT_TRUE(pt_until(pldk_handle_test(handles[2]) == 1, 10000));
		for (int h = 3; h < 8; h++)
			pldk_handle_free(handles[h]);
		ASSERT_OK(pldk_flush(world, round % 2 ? peer : PLDK_RANK_ANY, PT_LONG));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		for (int64_t i = 0; i < 8 * n; i++) {
			ASSERT_EQ((int64_t)left << 40 | (int64_t)round << 24 | i, base[i]);
		}
		memset(got, 0xff, (size_t)(8 * n * 8));
		for (int h = 0; h < 8; h++) {
			struct pldk_region part = { SHAPE(h * n), SHAPE((7 - h) * n), SHAPE(n) };

			ASSERT_OK(pldk_get_nb(&to, &view, peer, &part, NULL, &handles[h]));
		}
		/* Freed ones are complete when the flush is. */
		for (int h = 8; h--;)
			if (round % 2)
				ASSERT_OK(pldk_handle_wait(handles[h], PT_LONG));
			else
				pldk_handle_free(handles[h]);
		ASSERT_OK(pldk_flush(world, peer, PT_LONG));
		for (int64_t i = 0; i < 8 * n; i++) {
			ASSERT_EQ((int64_t)rank << 40 | (int64_t)round << 24 | ((7 - i / n) * n + i % n), got[i]);
		}
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		for (int h = 0; h < 8; h++) {
			struct pldk_region part = { SHAPE(h * n), SHAPE((7 - h) * n), SHAPE(n) };

			ASSERT_OK(pldk_put_notify_nb(&view, peer, &from, &part, NULL,
						     &(struct pldk_signal_to){ signal, h, round + 1, PLDK_NOTIFY_SET },
						     &handles[h]));
		}
		for (int h = 0; h < 8; h++) {
			ASSERT_OK(pldk_wait(signal, h, PLDK_EQ, round + 1, PT_LONG));
			ASSERT_EQ((int64_t)left << 40 | (int64_t)round << 24 | (7 - h) * n, base[h * n]);
			ASSERT_EQ((int64_t)left << 40 | (int64_t)round << 24 | ((7 - h) * n + n - 1),
				  base[h * n + n - 1]);
		}
		for (int h = 0; h < 8; h++)
			ASSERT_OK(pldk_handle_wait(handles[h], PT_LONG));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
	}
	pldk_handle_free(NULL);
	EXPECT_RET(-EINVAL, pldk_handle_wait(NULL, PLDK_TRY));
	EXPECT_RET(-EINVAL, pldk_handle_test(NULL));
	EXPECT_RET(-EINVAL, pldk_flush(world, size, PLDK_TRY));
	EXPECT_RET(-EINVAL, pldk_flush(world, -2, PLDK_TRY));
	EXPECT_RET(-EINVAL, pldk_fence(world, size));
	EXPECT_OK(pldk_fence(world, peer));
	free(mine);
	free(got);
}

TEST(transfers_complete_by_wait_test_flush_and_free)
{
	run_ranks(2, start_and_wait, NULL);
	run_ranks(3, start_and_wait, NULL);
}

RANK(end_handles_twice)
{
	struct pldk_window *window = pt_window(_metadata, world, 4096);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT64, 8);
	int64_t mine[8] = { 0 };
	struct pldk_tensor from = pt_tensor(_metadata, mine, PLDK_INT64, 8);
	int peer = pldk_right(world);
	struct pldk_handle *old[3], *more[600];

	for (int i = 0; i < 3; i++)
		ASSERT_OK(pldk_put_nb(&view, peer, &from, NULL, NULL, &old[i]));
	ASSERT_OK(pldk_handle_wait(old[0], PT_LONG));
	ASSERT_TRUE(pt_until(pldk_handle_test(old[1]) == 1, 10000));
	pldk_handle_free(old[2]);
	/* At once, and again when others have taken their place. */
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3; i++) {
			EXPECT_RET(-ESTALE, pldk_handle_wait(old[i], PT_LONG));
			EXPECT_RET(-ESTALE, pldk_handle_test(old[i]));
			pldk_handle_free(old[i]);
			EXPECT_NE(NULL, strstr(pldk_last_error(), "ended before"));
		}
		for (int i = 0; !round && i < 600; i++)
			ASSERT_OK(pldk_put_nb(&view, peer, &from, NULL, NULL, &more[i]));
	}
	for (int i = 0; i < 600; i++)
		ASSERT_OK(pldk_handle_wait(more[i], PT_LONG));
	/* What never was one. */
	EXPECT_RET(-EINVAL, pldk_handle_wait((struct pldk_handle *)(void *)mine, PT_LONG));
	EXPECT_RET(-EINVAL, pldk_handle_test((struct pldk_handle *)UINTPTR_MAX));
	/* A domain takes its handles with it. */
	{
		int all[2] = { 0, 1 };
		struct pldk_domain *both;
		struct pldk_window *theirs;

		ASSERT_OK(pldk_subset(world, all, 2, PT_LONG, &both));
		theirs = pt_window(_metadata, both, 4096);
		view = pt_view(_metadata, theirs, PLDK_INT64, 8);
		ASSERT_OK(pldk_put_nb(&view, peer, &from, NULL, NULL, &old[0]));
		ASSERT_OK(pldk_flush(both, peer, PT_LONG));
		ASSERT_OK(pldk_domain_close(both));
		EXPECT_RET(-ESTALE, pldk_handle_wait(old[0], PT_LONG));
	}
	(void)rank;
	(void)size;
}

TEST(a_handle_that_was_ended_is_told)
{
	run_ranks(2, end_handles_twice, NULL);
}

#define HANDLE_ENDERS 4

struct ender {
	pthread_barrier_t *start;
	struct pldk_handle **handles;
	int n;
	int ended;
	int stale;
};

static void *end_all(void *data)
{
	struct ender *ender = data;

	pthread_barrier_wait(ender->start);
	for (int i = 0; i < ender->n; i++) {
		int ret = pldk_handle_wait(ender->handles[i], PT_LONG);

		ender->ended += !ret;
		ender->stale += ret == -ESTALE;
	}
	return NULL;
}

RANK(race_to_end)
{
	struct pldk_window *window = pt_window(_metadata, world, 4096);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT64, 8);
	int64_t mine[8] = { 0 };
	struct pldk_tensor from = pt_tensor(_metadata, mine, PLDK_INT64, 8);
	struct pldk_handle *handles[300];
	struct ender enders[HANDLE_ENDERS];
	pthread_t threads[HANDLE_ENDERS];
	pthread_barrier_t start;
	int ended = 0, stale = 0;

	pthread_barrier_init(&start, NULL, HANDLE_ENDERS);
	for (int i = 0; i < 300; i++)
		ASSERT_OK(pldk_put_nb(&view, pldk_right(world), &from, NULL, NULL, &handles[i]));
	for (int i = 0; i < HANDLE_ENDERS; i++) {
		enders[i] = (struct ender){ &start, handles, 300, 0, 0 };
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, end_all, &enders[i]));
	}
	for (int i = 0; i < HANDLE_ENDERS; i++) {
		pthread_join(threads[i], NULL);
		ended += enders[i].ended;
		stale += enders[i].stale;
	}
	EXPECT_EQ(300, ended);
	EXPECT_EQ(300 * (HANDLE_ENDERS - 1), stale);
	pthread_barrier_destroy(&start);
	(void)rank;
	(void)size;
}

TEST(of_threads_that_end_a_handle_one_does)
{
	run_ranks(2, race_to_end, NULL);
}

RANK(put_in_order)
{
	struct pldk_window *window = pt_window(_metadata, world, 1 << 20);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT64, 1 << 17);
	int64_t *mine = calloc(1 << 17, 8);
	struct pldk_tensor from = pt_tensor(_metadata, mine, PLDK_INT64, 1 << 17);
	int peer = pldk_right(world);

	for (int round = 1; round <= 50; round++) {
		struct pldk_handle *handle = NULL;

		for (int64_t i = 0; i < 1 << 17; i += 512)
			mine[i] = round;
		ASSERT_OK(pldk_put_nb(&view, peer, &from, NULL, NULL, &handle));
		ASSERT_OK(pldk_fence(world, peer));
		pldk_handle_free(handle);
		ASSERT_OK(pldk_flush(world, peer, PT_LONG));
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int64_t i = 0; i < 1 << 17; i += 512) {
		ASSERT_EQ(50, ((int64_t *)pldk_window_base(window))[i]);
	}
	free(mine);
	(void)rank;
	(void)size;
}

TEST(fence_and_flush_keep_puts_to_a_peer_in_order)
{
	run_ranks(2, put_in_order, NULL);
}

/*
 * Rank 1 is killed while rank 0 gets rows from it: once the get has failed, the destination is the caller's again,
 * whatever comes from far ranks afterwards.
 */
#define GONE_ROWS 2000
#define GONE_COLS 256

RANK(get_from_the_dying)
{
	struct pldk_window *window = pt_window(_metadata, world, GONE_ROWS * GONE_COLS * 4);
	int32_t *mine = calloc(GONE_ROWS * GONE_COLS, 4), *base = pldk_window_base(window);
	struct pldk_region left_half = { SHAPE(0, 0), SHAPE(0, 0), SHAPE(GONE_ROWS, GONE_COLS / 2) };
	struct pldk_dtensor view;
	struct pldk_tensor to, other;
	int32_t elsewhere = 0;
	int64_t ret = 0;

	for (int64_t i = 0; i < GONE_ROWS * GONE_COLS; i++)
		base[i] = rank;
	ASSERT_OK(pldk_view(window, 0, 2, SHAPE(GONE_ROWS, GONE_COLS), PLDK_INT32, &view));
	ASSERT_OK(pldk_tensor_of(&to, mine, PLDK_INT32, 2, SHAPE(GONE_ROWS, GONE_COLS)));
	ASSERT_OK(pldk_tensor_of(&other, &elsewhere, PLDK_INT32, 2, SHAPE(1, 1)));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 1) {
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
		kill(getpid(), SIGKILL);
	}
	if (rank == 0) {
		while (!ret)
			ret = pldk_get(&to, &view, 1, &left_half, NULL);
		EXPECT_EQ(-EOWNERDEAD, ret);
		for (int64_t i = 0; i < GONE_ROWS * GONE_COLS; i++)
			mine[i] = CANARY;
		EXPECT_OK(pldk_get(&other, &view, 2, &(struct pldk_region){ SHAPE(0, 0), SHAPE(0, 0), SHAPE(1, 1) },
				   NULL));
		EXPECT_EQ(2, elsewhere);
		for (int64_t i = 0; i < GONE_ROWS * GONE_COLS; i++) {
			ASSERT_EQ(CANARY, mine[i]);
		}
		atomic_store(pt_word(0), 1);
	}
	EXPECT_TRUE(pt_until(atomic_load(pt_word(0)), 20000));
	free(mine);
	(void)size;
}

TEST(a_get_that_failed_writes_nothing_afterwards)
{
	struct pt_run run = { .nranks = 3, .body = get_from_the_dying, .launcher = true, .limit_ms = 20000 };

	if (!pt_is_far())
		SKIP(return, "near peers: bytes move before the call returns");
	for (int i = 0; i < 5; i++) {
		pt_clear_words();
		run.may_die[1] = true;
		pt_start(_metadata, &run);
		pt_finish(_metadata, &run);
	}
}

TEST_HARNESS_MAIN
