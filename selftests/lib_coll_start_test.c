// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: collectives that were started and go on later. That each operation gives the right bytes in this form
 * too is lib_coll_ops_test's affair; here it is order, handles and errors.
 */
#include "pldk_test.h"

#define SUM(in_, out_, n_, handle_)                                                                                    \
	pldk_allreduce_start(world, in_, out_, n_, PLDK_INT32, PLDK_SUM, PLDK_MODE_AUTO, NULL, handle_)
#define SUM_NOW(in_, out_, n_)                                                                                         \
	pldk_allreduce(world, in_, out_, n_, PLDK_INT32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG)

static bool all_are(const int32_t *at, size_t n, int32_t want)
{
	for (size_t i = 0; i < n; i++)
		if (at[i] != want)
			return false;
	return true;
}

RANK(compute_meanwhile)
{
	int32_t in[16], out[16] = { 0 };
	struct pldk_handle *handle;

	for (int i = 0; i < 16; i++)
		in[i] = rank + i;
	if (rank == 0) {
		ASSERT_OK(SUM(in, out, 16, &handle));
		/* No call of the library from here on until the others are through. */
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == size - 1, 20000));
		EXPECT_RET(1, pldk_handle_test(handle));
	} else {
		ASSERT_OK(SUM_NOW(in, out, 16));
		atomic_fetch_add(pt_word(0), 1);
	}
	for (int i = 0; i < 16; i++)
		EXPECT_EQ(size * i + size * (size - 1) / 2, out[i]);
}

TEST(the_others_complete_a_small_one_while_a_rank_computes)
{
	for (int size = 2; size <= 5; size++) {
		pt_clear_words();
		run_ranks(size, compute_meanwhile, NULL);
	}
}

RANK(start_before_anybody_comes)
{
	int32_t in = rank, out = -1;
	struct pldk_handle *handle;

	if (rank == 0) {
		ASSERT_OK(SUM(&in, &out, 1, &handle));
		for (int i = 0; i < 100; i++)
			ASSERT_RET(0, pldk_handle_test(handle));
		EXPECT_RET(-EAGAIN, pldk_handle_wait(handle, PLDK_TRY));
		EXPECT_SAYS("not complete");
		EXPECT_RET(-ETIMEDOUT, pldk_handle_wait(handle, PLDK_MS(10)));
		EXPECT_SAYS("rank 1", "allreduce");
		EXPECT_EQ(-1, out);
		atomic_store(pt_word(0), 1);
		EXPECT_OK(pldk_handle_wait(handle, PT_LONG));
		EXPECT_RET(-ESTALE, pldk_handle_wait(handle, PT_LONG));
		EXPECT_RET(-ESTALE, pldk_handle_test(handle));
	} else {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 20000));
		ASSERT_OK(SUM_NOW(&in, &out, 1));
	}
	EXPECT_EQ(size * (size - 1) / 2, out);
}

TEST(a_handle_that_timed_out_goes_on_and_one_that_ended_is_stale)
{
	pt_clear_words();
	run_ranks(2, start_before_anybody_comes, NULL);
}

/* As many as there may be, of many sizes, ended in an order of each rank's own. */
RANK(start_many)
{
	enum { MOST = 20000 };
	struct pldk_handle *handles[PLDK_COLL_STARTED_MAX + 1] = { NULL };
	int32_t *in[PLDK_COLL_STARTED_MAX], *out[PLDK_COLL_STARTED_MAX], x = 1, y = 0;
	size_t n[PLDK_COLL_STARTED_MAX];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < PLDK_COLL_STARTED_MAX; i++) {
			n[i] = (size_t)(i % 7 == 3 ? MOST - i : i % 5 == 1 ? 0 : i * 13);
			in[i] = malloc((n[i] + 1) * sizeof(int32_t));
			out[i] = calloc(n[i] + 1, sizeof(int32_t));
			for (size_t k = 0; k < n[i]; k++)
				in[i][k] = i + rank;
			ASSERT_OK(SUM(in[i], out[i], n[i], &handles[i]));
		}
		handles[PLDK_COLL_STARTED_MAX] = PT_POISON_PTR;
		EXPECT_RET(-EBUSY, SUM(&x, &y, 1, &handles[PLDK_COLL_STARTED_MAX]));
		EXPECT_SAYS("64", "wait");
		EXPECT_EQ(PT_POISON_PTR, handles[PLDK_COLL_STARTED_MAX]);
		for (int i = 0; i < PLDK_COLL_STARTED_MAX; i++) {
			int k = (i * 37 + rank * 11 + round) % PLDK_COLL_STARTED_MAX;

			ASSERT_OK(pldk_handle_wait(handles[k], PT_LONG));
			ASSERT_TRUE(all_are(out[k], n[k], size * k + size * (size - 1) / 2)) TH_LOG("collective %d", k);
		}
		/* There is room again. */
		ASSERT_OK(SUM(&x, &y, 1, &handles[0]));
		ASSERT_OK(pldk_handle_wait(handles[0], PT_LONG));
		EXPECT_EQ(size, y);
		y = 0;
		for (int i = 0; i < PLDK_COLL_STARTED_MAX; i++) {
			free(in[i]);
			free(out[i]);
		}
	}
}

RANK(end_the_first_alone)
{
	int32_t in = rank, a = -1, b = -1;
	struct pldk_handle *first, *second;

	ASSERT_OK(SUM(&in, &a, 1, &first));
	if (rank == 0) {
		ASSERT_OK(SUM(&in, &b, 1, &second));
		EXPECT_OK(pldk_handle_wait(first, PT_LONG));
		EXPECT_RET(0, pldk_handle_test(second));
		atomic_store(pt_word(0), 1);
	} else {
		EXPECT_OK(pldk_handle_wait(first, PT_LONG));
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 20000));
		ASSERT_OK(SUM(&in, &b, 1, &second));
	}
	EXPECT_OK(pldk_handle_wait(second, PT_LONG));
	EXPECT_EQ(size * (size - 1) / 2, a);
	EXPECT_EQ(size * (size - 1) / 2, b);
}

TEST(a_handle_waits_for_those_before_it_but_not_for_those_after)
{
	pt_clear_words();
	run_ranks(2, end_the_first_alone, NULL);
}

TEST(as_many_as_may_be_started_end_in_any_order)
{
	run_ranks(2, start_many, NULL);
	run_ranks(4, start_many, NULL);
}

RANK(mix_with_others)
{
	enum { N = 5000 };
	static int32_t a[N], b[N], c[N];
	struct pldk_handle *first, *second;
	struct pldk_window *window;
	struct pldk_domain *subset;
	int ranks[] = { 0, 1 };
	int32_t one = 1, sum = 0;

	for (int i = 0; i < N; i++)
		a[i] = rank + 1;
	/* What blocks counts in the same order, and completes what was started. */
	ASSERT_OK(SUM(a, b, N, &first));
	ASSERT_OK(SUM(a, c, N, &second));
	ASSERT_OK(SUM_NOW(&one, &sum, 1));
	EXPECT_EQ(size, sum);
	EXPECT_TRUE(all_are(b, N, size * (size + 1) / 2));
	EXPECT_TRUE(all_are(c, N, size * (size + 1) / 2));
	EXPECT_RET(1, pldk_handle_test(second));
	EXPECT_OK(pldk_handle_wait(first, PT_LONG));
	/* So do a window's creation and reset, and a subset's collectives are not concerned. */
	memset(b, 0, sizeof(b));
	ASSERT_OK(SUM(a, b, N, &first));
	ASSERT_OK(pldk_window_create(world, 4096, NULL, &window));
	EXPECT_TRUE(all_are(b, N, size * (size + 1) / 2));
	EXPECT_OK(pldk_handle_wait(first, PT_LONG));
	ASSERT_OK(SUM(a, b, N, &first));
	ASSERT_OK(pldk_window_reset(window, PT_LONG));
	EXPECT_RET(1, pldk_handle_test(first));
	ASSERT_OK(SUM(a, b, N, &first));
	if (rank < 2) {
		ASSERT_OK(pldk_subset(world, ranks, 2, PT_LONG, &subset));
		ASSERT_OK(pldk_barrier(subset, PT_LONG));
		ASSERT_OK(pldk_domain_close(subset));
	}
	EXPECT_OK(pldk_handle_wait(first, PT_LONG));
	ASSERT_OK(pldk_window_destroy(window));
}

TEST(what_blocks_completes_what_was_started_before)
{
	run_ranks(2, mix_with_others, NULL);
	run_ranks(3, mix_with_others, NULL);
}

/* Given to the library: it is complete after the next collective that blocks. */
RANK(forget_handles)
{
	enum { N = 70000 };
	int32_t *in = calloc(N, sizeof(*in)), *out = calloc(N, sizeof(*out));
	struct pldk_handle *handle;

	for (int round = 0; round < 200; round++) { /* more than there is room for at a time */
		for (int i = 0; i < N; i += 997)
			in[i] = rank + round;
		ASSERT_OK(SUM(in, out, N, &handle));
		pldk_handle_free(handle);
		EXPECT_RET(-ESTALE, pldk_handle_test(handle));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		for (int i = 0; i < N; i++)
			ASSERT_EQ(i % 997 ? 0 : size * round + size * (size - 1) / 2, out[i]);
	}
	free(in);
	free(out);
}

TEST(a_freed_handle_leaves_the_completion_to_the_library)
{
	run_ranks(3, forget_handles, NULL);
}

RANK(start_wrongly)
{
	struct pldk_coll_options options = PLDK_COLL_OPTIONS_INIT;
	struct pldk_handle *handle = PT_POISON_PTR, *before;
	int32_t in = 1, out = 0, got = 0;

	/* More often than there is room for: nothing of a refused one stays. */
	for (int i = 0; i < 2 * PLDK_COLL_STARTED_MAX; i++) {
		const int what = i % 4;

		got = 0;
		/* Something good stands before it in the queue. */
		ASSERT_OK(SUM(&in, &got, 1, &before));
		handle = PT_POISON_PTR;
		if (rank == size - 1) {
			options = (struct pldk_coll_options)PLDK_COLL_OPTIONS_INIT;
			switch (what) {
			case 0:
				EXPECT_RET(-EINVAL, SUM(NULL, &out, 1, &handle));
				EXPECT_SAYS("input is NULL");
				break;
			case 1:
				EXPECT_RET(-EINVAL, SUM(&in, &out, 1, NULL));
				EXPECT_SAYS("out is NULL");
				break;
			case 2:
				options.flags = 1;
				EXPECT_RET(-EOPNOTSUPP, pldk_allreduce_start(world, &in, &out, 1, PLDK_INT32, PLDK_SUM,
									     PLDK_MODE_AUTO, &options, &handle));
				EXPECT_SAYS("flags");
				break;
			case 3:
				options.size = 3;
				EXPECT_RET(-EINVAL, pldk_allreduce_start(world, &in, &out, 1, PLDK_INT32, PLDK_SUM,
									 PLDK_MODE_AUTO, &options, &handle));
				EXPECT_SAYS("size");
				break;
			}
			EXPECT_EQ(PT_POISON_PTR, handle);
		} else {
			ASSERT_OK(SUM(&in, &out, 1, &handle));
			EXPECT_RET(what == 2 ? -EOPNOTSUPP : -EINVAL, pldk_handle_wait(handle, PT_LONG));
			EXPECT_SAYS(size == 2 ? "rank 1" : "rank 2");
		}
		EXPECT_OK(pldk_handle_wait(before, PT_LONG));
		EXPECT_EQ(size, got);
		/* The next one works. */
		ASSERT_OK(SUM_NOW(&in, &got, 1));
		EXPECT_EQ(size, got);
	}
}

TEST(a_start_that_is_refused_is_told_to_the_others_in_its_turn)
{
	run_ranks(2, start_wrongly, NULL);
	run_ranks(3, start_wrongly, NULL);
}

/* Rank 0 is impatient, and then wrong: it cannot tell at once, because its first call is open. */
RANK(refuse_while_open)
{
	int32_t in = 1, out = 0, other = 0;

	if (rank == 0) {
		EXPECT_RET(-EAGAIN, pldk_allreduce(world, &in, &out, 1, PLDK_INT32, PLDK_SUM, PLDK_MODE_AUTO,
						   PLDK_TRY));
		EXPECT_RET(-EINVAL, pldk_broadcast(world, NULL, 1, PLDK_INT32, 0, PLDK_TRY));
		EXPECT_SAYS("buffer is NULL");
		EXPECT_RET(-EINVAL, pldk_scan(world, NULL, &out, 1, PLDK_INT32, PLDK_SUM, PLDK_TRY));
		atomic_store(pt_word(0), 1);
	} else {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 20000));
		ASSERT_OK(SUM_NOW(&in, &out, 1));
		EXPECT_EQ(size, out);
		EXPECT_RET(-EINVAL, pldk_broadcast(world, &in, 1, PLDK_INT32, 0, PT_LONG));
		EXPECT_SAYS("rank 0", "buffer is NULL");
		EXPECT_RET(-EINVAL, pldk_scan(world, &in, &out, 1, PLDK_INT32, PLDK_SUM, PT_LONG));
		EXPECT_SAYS("rank 0", "input is NULL");
	}
	/* With the same buffers it would go on with the first call. */
	ASSERT_OK(SUM_NOW(&in, &other, 1));
	EXPECT_EQ(size, other);
}

TEST(a_call_that_is_refused_while_another_is_open_is_told_in_its_turn)
{
	for (int size = 2; size <= 3; size++) {
		pt_clear_words();
		run_ranks(size, refuse_while_open, NULL);
	}
}

RANK(disagree)
{
	int32_t in[8] = { 1 }, out[8], got = 0;
	struct pldk_handle *a, *b, *c;

	ASSERT_OK(SUM(in, &got, 1, &a));
	ASSERT_OK(SUM(in, out, rank == 1 ? 7 : 8, &b));
	ASSERT_OK(SUM(in, out, 4, &c));
	EXPECT_OK(pldk_handle_wait(a, PT_LONG));
	EXPECT_EQ(size, got);
	EXPECT_RET(-EPROTO, pldk_handle_wait(b, PT_LONG));
	EXPECT_SAYS("7", "8", "rank 1");
	EXPECT_OK(pldk_handle_wait(c, PT_LONG));
	EXPECT_EQ(size, out[0]);
	ASSERT_OK(SUM(in, out, rank == 1 ? 7 : 8, &b));
	EXPECT_OK(pldk_barrier(world, PT_LONG)); /* it was found out in here, and is told by the handle */
	EXPECT_RET(-EPROTO, pldk_handle_test(b));
	EXPECT_SAYS("7", "8", "rank 1");
}

TEST(ranks_that_start_different_things_all_hear_it_from_the_handle)
{
	run_ranks(2, disagree, NULL);
	run_ranks(3, disagree, NULL);
}

RANK(lose_a_rank)
{
	enum { N = 1 << 20 }; /* more than a slot holds: rank 1 dies in the middle */
	static int32_t in[N], out[N];
	struct pldk_handle *handles[3];

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 1) {
		ASSERT_OK(SUM(in, out, N, &handles[0]));
		atomic_store(pt_word(0), 1);
		pause();
	}
	/* A start goes as far as it can: with the others there, it might go through. */
	ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 20000));
	for (int i = 0; i < 3; i++)
		ASSERT_OK(SUM(in, out, N, &handles[i]));
	if (arg) { /* by polling only */
		int ret;

		ASSERT_TRUE(pt_until((ret = pldk_handle_test(handles[0])) != 0, 20000));
		EXPECT_EQ(-EOWNERDEAD, ret);
	} else {
		EXPECT_RET(-EOWNERDEAD, pldk_handle_wait(handles[0], PT_LONG));
	}
	EXPECT_SAYS("rank 1");
	for (int i = 1; i < 3; i++) {
		EXPECT_RET(-EOWNERDEAD, pldk_handle_wait(handles[i], PT_LONG));
		EXPECT_SAYS("rank 1");
	}
	EXPECT_RET(-EOWNERDEAD, pldk_barrier(world, PT_LONG));
	(void)size;
}

TEST(a_death_ends_all_handles)
{
	for (int poll = 0; poll < 2; poll++) {
		for (int launcher = 0; launcher < 2; launcher++) {
			struct pt_run run = { .nranks = 3, .body = lose_a_rank, .arg = poll ? &poll : NULL,
					      .launcher = launcher };

			pt_clear_words();
			run.may_die[1] = true;
			pt_start(_metadata, &run);
			ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 20000));
			pt_kill(&run, 1);
			pt_finish(_metadata, &run);
		}
	}
}

RANK(give_up)
{
	int32_t in[1] = { 1 }, out[1];
	struct pldk_handle *handle;

	if (rank == 0) {
		ASSERT_OK(SUM(in, out, 1, &handle)); /* and finalise */
		atomic_store(pt_word(0), 1);
	} else if (arg) {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 20000));
		EXPECT_OK(pldk_abort(world, 7));
		atomic_store(pt_word(0), 2);
	}
	if (rank == 0 && arg) {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 2, 20000));
		EXPECT_RET(-ECANCELED, pldk_handle_wait(handle, PT_LONG));
		EXPECT_SAYS("7");
		EXPECT_RET(-ESTALE, pldk_handle_test(handle));
	} else if (!arg && rank) {
		ASSERT_OK(SUM(in, out, 1, &handle));
		EXPECT_OK(pldk_handle_wait(handle, PT_LONG)); /* rank 0 had given its part */
		EXPECT_EQ(size, out[0]);
		EXPECT_RET(-ESHUTDOWN, pldk_barrier(world, PT_LONG));
	}
}

TEST(handles_end_with_the_domain)
{
	pt_clear_words();
	run_ranks(2, give_up, NULL);
	pt_clear_words();
	run_ranks(2, give_up, &(int){ 1 });
}

static void *wait_in_barrier(void *arg)
{
	struct pldk_domain *world = arg;

	atomic_store(pt_word(2), (int64_t)gettid());
	return (void *)(intptr_t)pldk_barrier(world, PT_LONG);
}

RANK(collide)
{
	int32_t one = 1, sum = 0;
	struct pldk_handle *handle, *other = PT_POISON_PTR;
	void *ret = PT_POISON_PTR;
	pthread_t thread;

	ASSERT_OK(SUM(&one, &sum, 1, &handle));
	if (rank) {
		ASSERT_OK(pldk_handle_wait(handle, PT_LONG));
		ASSERT_TRUE(pt_until(atomic_load(pt_word(3)) == 1, 20000));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		return;
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_in_barrier, world));
	ASSERT_TRUE(pt_until(atomic_load(pt_word(2)) && pt_is_asleep(getpid(), (pid_t)atomic_load(pt_word(2))), 5000));
	EXPECT_RET(-EBUSY, pldk_handle_test(handle));
	EXPECT_SAYS("barrier");
	EXPECT_RET(-EBUSY, SUM(&one, &sum, 1, &other));
	EXPECT_EQ(PT_POISON_PTR, other);
	atomic_store(pt_word(3), 1);
	pthread_join(thread, &ret);
	EXPECT_EQ(NULL, ret);
	EXPECT_OK(pldk_handle_wait(handle, PT_LONG));
	EXPECT_EQ(size, sum);
}

TEST(a_second_thread_gets_ebusy_and_the_handle_lives)
{
	pt_clear_words();
	run_ranks(2, collide, NULL);
}

/* One starts and waits for a signal that the other gives after its collective: nobody moves the rest. */
RANK(wait_for_each_other)
{
	enum { N = 400000 };
	int32_t *in = calloc(N, sizeof(*in)), *out = calloc(N, sizeof(*out));
	struct pldk_window *signal;
	struct pldk_handle *handle;

	ASSERT_OK(pldk_signal_create(world, 1, (int64_t[]){ 2 }, NULL, &signal));
	if (rank == 0) {
		ASSERT_OK(SUM(in, out, N, &handle));
		atomic_store(pt_word(0), 1);
		EXPECT_RET(-EDEADLK, pldk_wait(signal, 0, PLDK_GE, 1, PLDK_FOREVER));
		EXPECT_SAYS("1 collectives started", "handle_wait");
	} else {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 20000));
		EXPECT_RET(-EDEADLK, pldk_allreduce(world, in, out, N, PLDK_INT32, PLDK_SUM, PLDK_MODE_AUTO,
						    PLDK_FOREVER));
	}
	free(in);
	free(out);
	(void)size;
}

TEST(a_wait_that_depends_on_an_open_handle_is_reported_as_a_deadlock)
{
	pt_clear_words();
	run_ranks(2, wait_for_each_other, NULL);
}

TEST_HARNESS_MAIN
