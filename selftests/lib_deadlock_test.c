// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: deadlock. A set of ranks that nobody can wake any more is told so within a second, with a sentence that
 * shows the circle; a rank that could still be woken, by however slow a means, never is.
 */
#include "pldk_test.h"

#include <sys/ptrace.h>

enum { W_READY = 0, W_GO = 32, W_DONE = 33, W_RET = 64 };

/* How long a wait must be left alone before "not reported" is believed; verdicts come well within it. */
#define QUIET_MS 1300
#define VERDICT_MS 1000

static int deadlock_of(struct pldk_window *signal, int64_t cell, int64_t expected)
{
	return pldk_wait(signal, cell, PLDK_GE, expected, PLDK_FOREVER);
}

/*
 * Must be found
 */

/* A4: the wait placed before the notify. Afterwards the domain works. */
RANK(wait_before_notify)
{
	static const int64_t cells[] = { 4, 2, 7 }, expected[] = { 71, 95, 83 };
	struct pldk_window *signal = pt_signal(_metadata, world, 8);
	int next = pldk_right(world);
	int64_t start;

	ASSERT_OK(pldk_notify(signal, rank, cells[rank], PLDK_NOTIFY_SET, -30 - rank));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	start = pt_now();
	EXPECT_RET(-EDEADLK, deadlock_of(signal, cells[rank], expected[rank]));
	EXPECT_LT(pt_ms_since(start), pt_slow_ms(VERDICT_MS));
	EXPECT_SAYS("rank 0", "rank 1", "cell", "4", "2", "71", "95", "-30", "-31");
	if (size == 3)
		EXPECT_SAYS("rank 2", "7", "83", "-32");
	/* A satisfied wait succeeds: nobody notifies before all were told. */
	atomic_fetch_add(pt_word(W_DONE), 1);
	ASSERT_TRUE(pt_until(atomic_load(pt_word(W_DONE)) == size, 5000));
	ASSERT_OK(pldk_notify(signal, next, cells[next], PLDK_NOTIFY_SET, expected[next]));
	EXPECT_OK(deadlock_of(signal, cells[rank], expected[rank]));
	ASSERT_OK(pldk_barrier(world, PLDK_FOREVER));
}

TEST(two_ranks_that_wait_before_they_notify_get_edeadlk)
{
	run_ranks(2, wait_before_notify, NULL);
}

TEST(a_circle_of_three_gets_edeadlk)
{
	run_ranks(3, wait_before_notify, NULL);
}

TEST(sleepers_that_never_spun_get_edeadlk)
{
	setenv("PLDK_SPIN_US", "0", 1);
	run_ranks(2, wait_before_notify, NULL);
}

RANK(wait_for_any_and_all)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 8);
	struct pldk_await awaits[2] = { AWAIT(signal, rank, PLDK_GE, PLDK_RANK_ANY, 1),
					AWAIT(signal, rank + 4, PLDK_EQ, (rank + 1) % size, 6) };
	size_t index = 77;

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank % 2)
		EXPECT_RET(-EDEADLK, pldk_wait_any(awaits, 2, PLDK_FOREVER, &index));
	else
		EXPECT_RET(-EDEADLK, pldk_wait_all(awaits, 2, PLDK_FOREVER));
	EXPECT_EQ(77, index);
	EXPECT_EQ(0, awaits[0].seen);
	EXPECT_EQ(0, awaits[1].seen);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(vector_waits_can_deadlock_too)
{
	run_ranks(4, wait_for_any_and_all, NULL);
}

/* Two groups of the same ranks, entered in opposite order, while a third rank computes: it is no member. */
RANK(enter_opposite)
{
	struct pldk_domain *first = NULL, *second = NULL;
	int64_t start;

	if (rank == 2) {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(W_DONE)) == 2, 20000));
		return;
	}
	ASSERT_OK(pldk_subset(world, (const int[]){ 0, 1 }, 2, PT_LONG, &first));
	ASSERT_OK(pldk_subset(world, (const int[]){ 1, 0 }, 2, PT_LONG, &second));
	start = pt_now();
	EXPECT_RET(-EDEADLK, pldk_barrier(rank ? second : first, PLDK_FOREVER));
	EXPECT_LT(pt_ms_since(start), pt_slow_ms(VERDICT_MS));
	EXPECT_SAYS("rank 0", "rank 1", "barrier");
	atomic_fetch_add(pt_word(W_DONE), 1);
	(void)size;
}

TEST(collectives_entered_in_opposite_order_get_edeadlk_while_others_compute)
{
	run_ranks(3, enter_opposite, NULL);
}

/* Rank 0 waits for nobody's notify in the world; ranks 1 and 2 are stuck in their subset. All are hopeless. */
RANK(depend_on_the_stuck)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 2), *theirs;
	struct pldk_domain *subset = NULL;

	if (rank == 0) {
		EXPECT_RET(-EDEADLK, deadlock_of(signal, 0, 1));
		atomic_store(pt_word(W_DONE), 1);
		return;
	}
	ASSERT_OK(pldk_subset(world, (const int[]){ 1, 2 }, 2, PT_LONG, &subset));
	theirs = pt_signal(_metadata, subset, 1);
	EXPECT_RET(-EDEADLK, deadlock_of(theirs, 0, 1));
	EXPECT_TRUE(pt_until(atomic_load(pt_word(W_DONE)), 2000)) TH_LOG("rank 0 was not told with the others");
	(void)size;
}

TEST(who_depends_on_the_stuck_is_told_as_well)
{
	run_ranks(3, depend_on_the_stuck, NULL);
}

RANK(wait_for_oneself)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);

	EXPECT_RET(-EDEADLK, deadlock_of(signal, 0, 1));
	EXPECT_SAYS("rank 0");
	(void)rank;
	(void)size;
}

TEST(a_rank_that_is_alone_and_waits_gets_edeadlk)
{
	run_ranks(1, wait_for_oneself, NULL);
}

/*
 * Must not be reported: each of these is woken in the end, and the wait succeeds
 */

static void sleep_in_user_code(long ms)
{
	struct timespec rest = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&rest, NULL);
}

static void compute(long ms)
{
	int64_t start = pt_now();

	while (pt_ms_since(start) < ms)
		;
}

enum innocent { SLOW_SLEEPS, SLOW_COMPUTES, TIMED, SECOND_THREAD, TESTS_IN_A_LOOP };

static void *notify_later(void *arg)
{
	compute(QUIET_MS);
	if (pldk_notify(arg, 1, 0, PLDK_NOTIFY_ADD, 1))
		atomic_store(pt_word(W_RET), 1);
	return NULL;
}

/* Ranks 0 and 1 wait for each other or for the last rank; one thing is still alive. */
RANK(be_innocent)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);
	enum innocent what = *(int *)arg;
	pthread_t thread;
	int last = size - 1;

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	switch (what) {
	case SLOW_SLEEPS:
	case SLOW_COMPUTES:
		if (rank != last) {
			EXPECT_OK(deadlock_of(signal, 0, 1));
			break;
		}
		if (what == SLOW_SLEEPS)
			sleep_in_user_code(QUIET_MS);
		else
			compute(QUIET_MS);
		for (int r = 0; r < last; r++)
			ASSERT_OK(pldk_notify(signal, r, 0, PLDK_NOTIFY_ADD, 1));
		break;
	case TIMED:
		if (rank != last) {
			EXPECT_OK(deadlock_of(signal, 0, 1));
			break;
		}
		EXPECT_RET(-ETIMEDOUT, pldk_wait(signal, 0, PLDK_GE, 1, PLDK_MS(QUIET_MS)));
		for (int r = 0; r < last; r++)
			ASSERT_OK(pldk_notify(signal, r, 0, PLDK_NOTIFY_ADD, 1));
		break;
	case SECOND_THREAD:
		if (rank == 0)
			ASSERT_EQ(0, pthread_create(&thread, NULL, notify_later, signal));
		EXPECT_OK(deadlock_of(signal, 0, 1));
		ASSERT_OK(pldk_notify(signal, pldk_right(world), 0, PLDK_NOTIFY_ADD, 1));
		if (rank == 0) {
			pthread_join(thread, NULL);
			EXPECT_EQ(0, atomic_load(pt_word(W_RET)));
		}
		break;
	case TESTS_IN_A_LOOP:
		if (rank != last) {
			EXPECT_OK(deadlock_of(signal, 0, 1));
			break;
		}
		for (int64_t start = pt_now(); pt_ms_since(start) < QUIET_MS;)
			ASSERT_EQ(0, pldk_test(signal, 0, PLDK_GE, 1));
		for (int r = 0; r < last; r++)
			ASSERT_OK(pldk_notify(signal, r, 0, PLDK_NOTIFY_ADD, 1));
		break;
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

static void expect_innocent(struct __test_metadata *_metadata, int size, enum innocent what)
{
	int arg = what;

	run_ranks(size, be_innocent, &arg);
}

TEST(a_slow_rank_is_not_a_deadlock)
{
	expect_innocent(_metadata, 2, SLOW_SLEEPS);
}

TEST(two_that_wait_while_a_third_computes_are_no_deadlock)
{
	expect_innocent(_metadata, 3, SLOW_COMPUTES);
}

TEST(a_timed_wait_is_no_deadlock)
{
	expect_innocent(_metadata, 2, TIMED);
}

TEST(a_rank_with_a_second_thread_running_is_no_deadlock)
{
	expect_innocent(_metadata, 2, SECOND_THREAD);
}

TEST(a_test_loop_is_no_deadlock)
{
	expect_innocent(_metadata, 2, TESTS_IN_A_LOOP);
}

CHILD(join_late_world)
{
	const int *args = arg; /* descriptor, rank */
	struct pldk_domain *world = NULL;
	struct pldk_window *window = NULL;

	if (args[1] >= 2)
		sleep_in_user_code(QUIET_MS);
	ASSERT_OK(pldk_world_join(args[0], args[1], args[1] % 2 ? PLDK_TRY : PLDK_FOREVER, &world));
	EXPECT_OK(pldk_window_create(world, 4096, NULL, &window));
	EXPECT_OK(pldk_barrier(world, PLDK_FOREVER));
	EXPECT_OK(pldk_finalize(world));
}

/* 2 of 4 joined so far: one in join, one in a collective */
TEST(ranks_that_wait_for_those_not_yet_joined_are_no_deadlock)
{
	int fd = -1, status;
	pid_t pids[4];

	ASSERT_OK(pldk_world_create(4, NULL, &fd));
	for (int r = 0; r < 4; r++) {
		pids[r] = fork();
		if (!pids[r]) {
			in_child(join_late_world, ((int[]){ fd, r }));
			_exit(!_metadata->passed);
		}
	}
	for (int r = 0; r < 4; r++) {
		waitpid(pids[r], &status, 0);
		EXPECT_EQ(0, status) TH_LOG("rank %d", r);
	}
	close(fd);
}

/*
 * Stopped and traced: whoever holds the process may do anything with it. Once it is let go, the circle is a circle.
 */

RANK(wait_for_each_other)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	atomic_store(pt_word(W_READY + rank), 1);
	if (rank == 0) {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(W_GO)) == 1, 20000));
	}
	EXPECT_RET(-EDEADLK, deadlock_of(signal, 0, 1));
	atomic_store(pt_word(W_RET + rank), 1);
	(void)size;
}

static void expect_quiet(struct __test_metadata *_metadata)
{
	int64_t start = pt_now();

	while (pt_ms_since(start) < QUIET_MS) {
		ASSERT_EQ(0, atomic_load(pt_word(W_RET + 0)) + atomic_load(pt_word(W_RET + 1)))
		TH_LOG("reported after %ld ms", pt_ms_since(start));
		pt_nap();
	}
}

TEST(a_stopped_rank_is_no_deadlock_until_it_goes_on)
{
	struct pt_run run = { .nranks = 2, .body = wait_for_each_other };
	int64_t start;

	pt_start(_metadata, &run);
	ASSERT_TRUE(pt_until(atomic_load(pt_word(W_READY + 1)) && pt_is_asleep(run.pid[1], run.pid[1]), 5000));
	kill(run.pid[1], SIGSTOP);
	ASSERT_TRUE(pt_until(pt_run_state(run.pid[1], run.pid[1]) == 'T', 5000));
	atomic_store(pt_word(W_GO), 1);
	expect_quiet(_metadata);
	kill(run.pid[1], SIGCONT);
	start = pt_now();
	pt_finish(_metadata, &run);
	/* Looked at again at ever longer intervals, up to 5 s. */
	EXPECT_LT(pt_ms_since(start), pt_slow_ms(6000));
}

TEST(a_traced_rank_is_no_deadlock_until_it_is_let_go)
{
	struct pt_run run = { .nranks = 2, .body = wait_for_each_other };
	int status;

	pt_start(_metadata, &run);
	ASSERT_TRUE(pt_until(atomic_load(pt_word(W_READY + 1)) && pt_is_asleep(run.pid[1], run.pid[1]), 5000));
	if (ptrace(PTRACE_SEIZE, run.pid[1], NULL, NULL)) {
		int err = errno;

		for (int r = 0; r < 2; r++) {
			run.may_die[r] = true;
			kill(run.pid[r], SIGKILL);
		}
		pt_finish(_metadata, &run);
		SKIP(return, "tracing is not allowed: %s", strerror(err));
	}
	atomic_store(pt_word(W_GO), 1);
	expect_quiet(_metadata);
	ASSERT_EQ(0, ptrace(PTRACE_INTERRUPT, run.pid[1], NULL, NULL));
	ASSERT_EQ(run.pid[1], waitpid(run.pid[1], &status, __WALL));
	ASSERT_EQ(0, ptrace(PTRACE_DETACH, run.pid[1], NULL, NULL));
	pt_finish(_metadata, &run);
}

/*
 * PLDK_DEADLOCK
 */

RANK(wait_until_cancelled)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	atomic_store(pt_word(W_READY + rank), 1);
	EXPECT_RET(-ECANCELED, deadlock_of(signal, 0, 1));
	atomic_store(pt_word(W_RET + rank), 1);
	(void)size;
}

static void expect_only_a_report(struct __test_metadata *_metadata, const char *policy)
{
	struct pt_run run = { .nranks = 2, .body = wait_until_cancelled };

	setenv("PLDK_DEADLOCK", policy, 1);
	pt_start(_metadata, &run);
	EXPECT_TRUE(pt_until(atomic_load(pt_word(W_READY)) && atomic_load(pt_word(W_READY + 1)), 5000));
	expect_quiet(_metadata);
	EXPECT_OK(pldk_world_poison(run.fd, 3));
	pt_finish(_metadata, &run);
}

TEST(deadlock_off_lets_them_wait)
{
	expect_only_a_report(_metadata, "off");
}

TEST(deadlock_report_lets_them_wait)
{
	expect_only_a_report(_metadata, "report");
}

TEST_HARNESS_MAIN
