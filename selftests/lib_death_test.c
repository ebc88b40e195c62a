// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: ranks that die, leave or abort while others wait for them. The others are told who, which process and
 * how, within 100 ms, in every phase; what was already there still succeeds; who does not depend on the dead goes on.
 */
#include "pldk_test.h"

#include <sys/time.h>

/* Shared words */
enum {
	W_READY = 0,	/* + rank: this rank stands where the phase wants it */
	W_PID = 32,	/* + rank */
	W_WHEN = 64,	/* the moment of the death, ns */
	W_OPS = 96,	/* + rank: operations done */
	W_GO = 128,
	W_TOOK = 160,	/* + rank: how long after the death it was told, ns */
};

enum phase { IN_WAIT, IN_WAIT_ALL, IN_NOTIFY_WAIT, IN_BARRIER, IN_ALLREDUCE, IN_BROADCAST, IN_ALLGATHER, IN_CREATE,
	     IN_SUBSET, IN_RESET, VICTIM_WAITS, VICTIM_IN_BARRIER, VICTIM_IN_ALLREDUCE, VICTIM_IN_BROADCAST,
	     VICTIM_IN_ALLGATHER, PHASES };

static const char *const phase_names[] = { "wait", "wait_all", "notify_wait", "barrier", "allreduce", "broadcast",
					   "allgather", "window_create", "subset", "window_reset", "victim waits",
					   "victim in barrier", "victim in allreduce", "victim in broadcast",
					   "victim in allgather" };

struct death {
	enum phase phase;
	int victim;
	int way; /* of dying: index into ways[], or -1 for kill -9 from outside */
	bool spins;
};

/* The call of a phase, without a timeout. */
static int64_t block(enum phase phase, struct pldk_domain *world, struct pldk_window *signal, int victim)
{
	struct pldk_window *window = NULL;
	struct pldk_domain *subset = NULL;
	int all[16], size = pldk_size(world);
	static float x[16], y[16];
	struct pldk_await await = AWAIT(signal, 0, PLDK_GE, victim, 1);

	for (int r = 0; r < size; r++)
		all[r] = r;
	switch (phase) {
	case IN_WAIT:
	case VICTIM_WAITS:
		/* The victim's own wait has an end: all waiting for ever would be a deadlock, and told as one. */
		return pldk_wait(signal, 0, PLDK_GE, 1,
				 phase == VICTIM_WAITS && pldk_rank(world) == victim ? PLDK_SEC(60) : PLDK_FOREVER);
	case IN_WAIT_ALL:
		return pldk_wait_all(&await, 1, PLDK_FOREVER);
	case IN_NOTIFY_WAIT:
		return pldk_notify_wait(&POST(signal, pldk_right(world), PLDK_NOTIFY_ADD, 1, 1), 1, &await, 1,
					PLDK_FOREVER);
	case IN_BARRIER:
	case VICTIM_IN_BARRIER:
		return pldk_barrier(world, PLDK_FOREVER);
	case IN_ALLREDUCE:
	case VICTIM_IN_ALLREDUCE:
		return pldk_allreduce(world, x, y, 16, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PLDK_FOREVER);
	case IN_BROADCAST:
		return pldk_broadcast(world, x, 16, PLDK_FP32, victim, PLDK_FOREVER);
	case VICTIM_IN_BROADCAST: /* waits for its root, which comes late */
		return pldk_broadcast(world, x, 16, PLDK_FP32, (victim + 1) % size, PLDK_FOREVER);
	case IN_ALLGATHER:
	case VICTIM_IN_ALLGATHER:
		return pldk_allgather(world, x, (float[16 * 16]){ 0 }, 16, PLDK_FP32, PLDK_FOREVER);
	case IN_CREATE:
		return pldk_window_create(world, 4096, NULL, &window);
	case IN_SUBSET:
		return pldk_subset(world, all, size, PLDK_FOREVER, &subset);
	case IN_RESET:
		return pldk_window_reset(signal, PLDK_FOREVER);
	default:
		return -1000;
	}
}

static void die_exit3(void) { _exit(3); }
static void die_exit0(void) { exit(0); }
static void die_abort(void) { signal(SIGABRT, SIG_DFL); abort(); }
static void die_segv(void) { signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); }
static void die_term(void) { raise(SIGTERM); }
static void die_exec(void) { execl("/bin/true", "true", (char *)NULL); _exit(1); }

static const struct {
	void (*die)(void);
	int state;
	int status;
	const char *words;
} ways[] = {
	{ die_exit3, PLDK_MEMBER_EXITED, 3, "exit" },
	{ die_exit0, PLDK_MEMBER_EXITED, 0, "exit" },
	{ die_abort, PLDK_MEMBER_KILLED, 6, "signal 6|SIGABRT" },
	{ die_segv, PLDK_MEMBER_KILLED, 11, "signal 11|SIGSEGV" },
	{ die_term, PLDK_MEMBER_KILLED, 15, "signal 15|SIGTERM" },
	{ die_exec, -1, 0, "" },
};

RANK(survive)
{
	const struct death *death = arg;
	struct pldk_window *signal = pt_signal(_metadata, world, 2);
	struct pldk_member member;
	int64_t took, ret;
	char who[32], pid[16];
	bool victim_is_in = death->phase >= VICTIM_IN_BARRIER;
	bool late = victim_is_in && rank == (death->victim + 1) % size;

	atomic_store(pt_word(W_PID + rank), getpid());
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == death->victim) {
		atomic_store(pt_word(W_READY + rank), 1);
		if (death->phase == VICTIM_WAITS || victim_is_in)
			block(death->phase, world, signal, death->victim);
		while (death->way < 0 || !atomic_load(pt_word(W_GO)))
			pt_nap();
		atomic_store(pt_word(W_WHEN), pt_now());
		ways[death->way].die();
		return;
	}
	if (late) { /* enters after the death */
		atomic_store(pt_word(W_READY + rank), 2);
		ASSERT_TRUE(pt_until(atomic_load(pt_word(W_WHEN)), 20000));
	} else {
		atomic_store(pt_word(W_READY + rank), 1);
	}
	ret = block(death->phase, world, signal, death->victim);
	took = pt_now() - atomic_load(pt_word(W_WHEN));
	/* A victim that had entered has done its part of a collective: it may still end well, for all or for some. */
	if (!victim_is_in || ret) {
		EXPECT_EQ(-EOWNERDEAD, ret) TH_LOG("%s: %s", phase_names[death->phase], pldk_last_error());
	} else {
		EXPECT_RET(-EOWNERDEAD, pldk_barrier(world, PLDK_FOREVER));
	}
	snprintf(who, sizeof(who), "rank %d", death->victim);
	snprintf(pid, sizeof(pid), "%d", (int)atomic_load(pt_word(W_PID + death->victim)));
	EXPECT_SAYS(who, pid);
	atomic_store(pt_word(W_TOOK + rank), took);
	EXPECT_LT(took / 1000000, pt_slow_ms(1000))
	TH_LOG("%s: told %d ms after the death", phase_names[death->phase], (int)(took / 1000000));
	ASSERT_OK(pldk_member(world, death->victim, &member));
	EXPECT_NE(PLDK_MEMBER_ALIVE, member.state);
	EXPECT_NE(PLDK_MEMBER_FINALISED, member.state);
	/* Each time again, at once. */
	EXPECT_RET(-EOWNERDEAD, pldk_wait(signal, 0, PLDK_GE, 1, PLDK_FOREVER));
	EXPECT_RET(-EOWNERDEAD, pldk_barrier(world, PLDK_FOREVER));
	/* What is already there succeeds; so does what one does alone. */
	EXPECT_OK(pldk_notify(signal, rank, 0, PLDK_NOTIFY_SET, 5));
	EXPECT_OK(pldk_wait(signal, 0, PLDK_GE, 1, PLDK_FOREVER));
	EXPECT_RET(1, pldk_test(signal, 0, PLDK_EQ, 5));
}

FIXTURE(death)
{
	int unused;
};

FIXTURE_VARIANT(death)
{
	const char *spin;
	bool launcher;
};

FIXTURE_VARIANT_ADD(death, asleep_with_launcher)
{
	.spin = "0", .launcher = true,
};

FIXTURE_VARIANT_ADD(death, asleep_without_launcher)
{
	.spin = "0",
};

FIXTURE_VARIANT_ADD(death, spinning_with_launcher)
{
	.spin = "400000", .launcher = true,
};

FIXTURE_VARIANT_ADD(death, spinning_without_launcher)
{
	.spin = "400000",
};

FIXTURE_SETUP(death)
{
	setenv("PLDK_SPIN_US", variant->spin, 1);
}

FIXTURE_TEARDOWN(death)
{
}

/* All stand where the phase wants them; those who wait without spinning are asleep. */
static bool all_stand(const struct pt_run *run, const struct death *death)
{
	for (int r = 0; r < run->nranks; r++) {
		int64_t ready = atomic_load(pt_word(W_READY + r));

		if (!ready)
			return false;
		if (ready == 1 && (r != death->victim || death->phase >= VICTIM_WAITS) && !death->spins &&
		    !pt_is_asleep(run->pid[r], run->pid[r]))
			return false;
	}
	return true;
}

/* Survivors told so far, and how many of them later than 100 ms after the death. */
static int told, late;

static void run_death(struct __test_metadata *_metadata, int size, struct death *death, bool launcher)
{
	struct pt_run run = { .nranks = size, .body = survive, .arg = death, .launcher = launcher, .limit_ms = 5000 };
	int status, failed = !_metadata->passed;

	_metadata->passed = 1; /* so that each phase that fails is named; put together again below */
	pt_clear_words();
	run.may_die[death->victim] = true;
	pt_start(_metadata, &run);
	EXPECT_TRUE(pt_until(all_stand(&run, death), 5000)) TH_LOG("%s of %d", phase_names[death->phase], size);
	if (death->way < 0) {
		atomic_store(pt_word(W_WHEN), pt_now());
		pt_kill(&run, death->victim);
	} else {
		atomic_store(pt_word(W_GO), 1);
	}
	pt_finish(_metadata, &run);
	for (int r = 0; r < size; r++) {
		int64_t took = atomic_load(pt_word(W_TOOK + r));

		told += took > 0;
		late += took / 1000000 >= pt_slow_ms(100);
	}
	if (!_metadata->passed)
		TH_LOG("that was %d ranks, rank %d killed, phase %s", size, death->victim, phase_names[death->phase]);
	_metadata->passed = _metadata->passed && !failed;
	status = run.status[death->victim];
	if (death->way < 0) {
		EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

/* B15: one rank dies, the others stay stuck inside the collective */
TEST_F(death, kill_9_in_every_phase_is_told_to_all_survivors_in_100_ms)
{
	static const int sizes[] = { 2, 3, 4, 8 };

	told = late = 0;
	for (size_t s = 0; s < ARRAY_SIZE(sizes) - (pt_scale() < 100); s++) {
		for (int phase = 0; phase < PHASES; phase++) {
			struct death death = { .phase = phase, .victim = (phase + (int)s) % sizes[s], .way = -1,
					       .spins = variant->spin[0] != '0' };

			if (sizes[s] == 2 && phase == VICTIM_WAITS)
				continue; /* both would wait: a deadlock */
			if (sizes[s] == 8 && death.spins)
				continue; /* eight spinners on two CPUs measure the scheduler */
			run_death(_metadata, sizes[s], &death, variant->launcher);
		}
	}
	/* Each within a second; nearly all within 100 ms, whatever else the machine does meanwhile. */
	EXPECT_LT(0, told);
	EXPECT_LE(4 * late, told) TH_LOG("%d of %d were told later than 100 ms after the death", late, told);
}

RANK(tell_how)
{
	const struct death *death = arg;
	struct pldk_window *signal = pt_signal(_metadata, world, 1);
	struct pldk_member member;
	int64_t start;

	atomic_store(pt_word(W_PID + rank), getpid());
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == death->victim) {
		atomic_store(pt_word(W_WHEN), pt_now());
		ways[death->way].die();
	}
	start = pt_now();
	EXPECT_RET(-EOWNERDEAD, pldk_wait(signal, 0, PLDK_GE, 1, PLDK_FOREVER));
	EXPECT_SAYS("rank 1");
	EXPECT_LT(pt_ms_since(start), pt_slow_ms(1000));
	ASSERT_OK(pldk_member(world, death->victim, &member));
	EXPECT_EQ(atomic_load(pt_word(W_PID + 1)), member.pid);
	if (ways[death->way].state >= 0 && (pt_is_dev() || atomic_load(pt_word(W_GO)))) {
		EXPECT_SAYS(ways[death->way].words);
		EXPECT_EQ(ways[death->way].state, member.state) TH_LOG("way %d", death->way);
		EXPECT_EQ(ways[death->way].status, member.status) TH_LOG("way %d", death->way);
	}
	(void)size;
}

/* B13, B18: a rank that failed cannot exit, or nobody hears that it did. Each way is death, and told */
TEST_F(death, every_way_to_end_without_finalize_is_death)
{
	for (int way = 0; way < (int)ARRAY_SIZE(ways); way++) {
		struct death death = { .victim = 1, .way = way };
		struct pt_run run = { .nranks = 3, .body = tell_how, .arg = &death, .launcher = variant->launcher };

		pt_clear_words();
		atomic_store(pt_word(W_GO), variant->launcher);
		run.may_die[1] = true;
		pt_start(_metadata, &run);
		pt_finish(_metadata, &run);
	}
}

/*
 * Who does not depend on the dead
 */

RANK(go_on_without)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 4), *theirs = NULL;
	struct pldk_domain *subset = NULL;
	struct pldk_await awaits[2];
	size_t index = 77;

	if (rank != 1) {
		ASSERT_OK(pldk_subset(world, (const int[]){ 0, 2 }, 2, PT_LONG, &subset));
		theirs = pt_signal(_metadata, subset, 1);
	}
	ASSERT_OK(pldk_notify(signal, 0, 3, PLDK_NOTIFY_ADD, 1));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 1)
		_exit(5);
	EXPECT_RET(-EOWNERDEAD, pldk_wait(signal, 0, PLDK_GE, 1, PLDK_FOREVER));
	if (rank == 0) {
		/* Satisfied before the death. */
		EXPECT_OK(pldk_wait(signal, 3, PLDK_EQ, 3, PLDK_FOREVER));
		/* Named notifiers: only the dead one's wait is hopeless. */
		awaits[0] = AWAIT(signal, 0, PLDK_GE, 1, 1);
		EXPECT_RET(-EOWNERDEAD, pldk_wait_all(awaits, 1, PLDK_FOREVER));
		EXPECT_RET(-EOWNERDEAD, pldk_wait_any(awaits, 1, PLDK_FOREVER, &index));
		EXPECT_EQ(77, index);
		awaits[1] = AWAIT(signal, 2, PLDK_GE, 2, 1);
		/* The dead one is among those that were named, also where any would do: drop it to go on. */
		EXPECT_RET(-EOWNERDEAD, pldk_wait_any(awaits, 2, PLDK_FOREVER, &index));
		EXPECT_EQ(77, index);
		atomic_store(pt_word(W_READY), 1);
		EXPECT_OK(pldk_wait_any(awaits + 1, 1, PLDK_FOREVER, &index));
		EXPECT_EQ(0, index);
		EXPECT_RET(-EOWNERDEAD, pldk_wait_all(awaits, 2, PLDK_FOREVER));
		EXPECT_OK(pldk_wait_any(awaits, 2, PLDK_FOREVER, &index));
		EXPECT_EQ(1, index);
	} else {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(W_READY)) == 1, 20000));
		ASSERT_OK(pldk_notify(signal, 0, 2, PLDK_NOTIFY_ADD, 1));
	}
	/* Another domain, without the dead one. */
	for (int round = 1; round <= 100; round++) {
		ASSERT_OK(pldk_notify(theirs, pldk_right(subset), 0, PLDK_NOTIFY_ADD, 1));
		ASSERT_OK(pldk_wait(theirs, 0, PLDK_GE, round, PLDK_FOREVER));
		ASSERT_OK(pldk_barrier(subset, PLDK_FOREVER));
	}
	(void)size;
}

TEST_F(death, waits_that_do_not_need_the_dead_and_other_domains_go_on)
{
	struct pt_run run = { .nranks = 3, .body = go_on_without, .launcher = variant->launcher };

	run.may_die[1] = true;
	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

/*
 * Finalised, aborted
 */

RANK(finalise_early)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 2);
	int64_t start;
	float x = 0;

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == size - 1)
		return;
	start = pt_now();
	EXPECT_RET(-ESHUTDOWN, pldk_barrier(world, PLDK_FOREVER));
	EXPECT_SAYS(size == 2 ? "rank 1" : "rank 2", "final");
	EXPECT_RET(-ESHUTDOWN,
		   pldk_allreduce(world, PLDK_IN_PLACE, &x, 1, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PLDK_FOREVER));
	if (size == 2)
		EXPECT_RET(-ESHUTDOWN, pldk_wait(signal, 0, PLDK_GE, 1, PLDK_FOREVER));
	EXPECT_RET(-ESHUTDOWN, pldk_wait_all(&AWAIT(signal, 0, PLDK_GE, size - 1, 1), 1, PLDK_FOREVER));
	EXPECT_LT(pt_ms_since(start), pt_slow_ms(1000));
	if (size == 3) {
		/* The other one is still there and may notify. */
		ASSERT_OK(pldk_notify(signal, 1 - rank, 1, PLDK_NOTIFY_ADD, 1));
		EXPECT_OK(pldk_wait(signal, 1, PLDK_GE, 1, PLDK_FOREVER));
	}
}

/* A7: a barrier that some ranks only enter, after the others have left in order, hangs */
TEST(waiting_for_a_rank_that_finalised_is_eshutdown)
{
	run_ranks(2, finalise_early, NULL);
	run_ranks(3, finalise_early, NULL);
}

/* Rank 2 dies, rank 0 cannot go on without it and exits: who needs rank 0 hears of both. */
RANK(fall_one_after_the_other)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 2);

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 2)
		_exit(3);
	if (rank == 0) {
		EXPECT_RET(-EOWNERDEAD, pldk_barrier(world, PT_LONG));
		_exit(4);
	}
	EXPECT_RET(-EOWNERDEAD, pldk_wait_all(&AWAIT(signal, 0, PLDK_GE, 0, 1), 1, PT_LONG));
	EXPECT_SAYS("rank 0", "first to die", "rank 2");
	(void)size;
}

TEST(a_death_that_follows_another_is_told_with_the_first)
{
	struct pt_run run = { .nranks = 3, .body = fall_one_after_the_other, .launcher = true,
			      .may_die = { [0] = true, [2] = true } };

	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

static struct pldk_domain *abort_domain;
static _Atomic int aborted;

static void abort_in_handler(int nr)
{
	int64_t start = pt_now();

	(void)nr;
	if (pldk_abort(abort_domain, 7) || pt_ms_since(start) >= pt_slow_ms(100))
		atomic_store(pt_word(W_GO), -1);
	atomic_store(pt_word(W_WHEN), start);
	atomic_store(&aborted, 1);
}

/* Rank 0 is busy in the library, with its locks and its memory, when the handler comes. */
static void be_busy_until_aborted(struct __test_metadata *_metadata, struct pldk_domain *world,
				  struct pldk_window *signal)
{
	struct itimerval soon = { .it_value = { .tv_usec = 1000 + getpid() * 7919L % 20000 } };
	struct sigaction action = { .sa_handler = abort_in_handler };
	struct pldk_domain *alone = NULL;
	int64_t ret = 0;

	ASSERT_OK(pldk_subset(world, (const int[]){ 0 }, 1, PT_LONG, &alone));
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (int64_t start = pt_now(); !atomic_load(&aborted) && pt_ms_since(start) < pt_slow_ms(5000);) {
		struct pldk_window *window = NULL;

		ret = pldk_window_create(alone, 5000, NULL, &window);
		if (!ret)
			ret = pldk_window_destroy(window);
		if (!ret)
			ret = pldk_notify(signal, 0, 1, PLDK_NOTIFY_ADD, 1);
		if (!ret)
			ret = pldk_wait(signal, 1, PLDK_GE, 1, PLDK_MS(1));
		/* Interrupted, or told of its own abort. */
		EXPECT_TRUE(!ret || ret == -EINTR || ret == -ECANCELED) TH_LOG("%s", pldk_last_error());
	}
	EXPECT_EQ(1, atomic_load(&aborted));
	EXPECT_EQ(0, atomic_load(pt_word(W_GO))) TH_LOG("pldk_abort() failed, or did not come back at once");
}

RANK(abort_all)
{
	const struct death *death = arg;
	struct pldk_window *signal = pt_signal(_metadata, world, 2);
	int64_t ret, took;

	EXPECT_RET(-EINVAL, pldk_abort(world, -1));
	EXPECT_RET(-EINVAL, pldk_abort(world, 65536));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 0) {
		abort_domain = world;
		ASSERT_TRUE(pt_until(atomic_load(pt_word(W_READY + 1)) && atomic_load(pt_word(W_READY + 2)), 20000));
		be_busy_until_aborted(_metadata, world, signal);
		ASSERT_TRUE(pt_until(atomic_load(pt_word(W_OPS)) == size - 1, 20000));
		EXPECT_OK(pldk_abort(world, 9)); /* the first wins */
		EXPECT_RET(-ECANCELED, pldk_barrier(world, PLDK_FOREVER));
		EXPECT_SAYS("7");
		return;
	}
	atomic_store(pt_word(W_READY + rank), 1);
	ret = block(death->phase, world, signal, 0);
	/* This may be before the handler has written down the time. */
	ASSERT_TRUE(pt_until(atomic_load(pt_word(W_WHEN)), 5000));
	took = pt_now() - atomic_load(pt_word(W_WHEN));
	EXPECT_EQ(-ECANCELED, ret) TH_LOG("%s: %s", phase_names[death->phase], pldk_last_error());
	EXPECT_SAYS("rank 0", "7");
	EXPECT_LT(took / 1000000, pt_slow_ms(1000)) TH_LOG("%d ms", (int)(took / 1000000));
	atomic_store(pt_word(W_TOOK + rank), took);
	EXPECT_RET(-ECANCELED, pldk_wait(signal, 0, PLDK_GE, 1, PLDK_FOREVER));
	EXPECT_RET(-ECANCELED, pldk_notify(signal, 0, 0, PLDK_NOTIFY_ADD, 1));
	EXPECT_RET(-ECANCELED, pldk_barrier(world, PLDK_FOREVER));
	atomic_fetch_add(pt_word(W_OPS), 1);
}

/* B17: an abort hangs itself when only some ranks abort; here one does, in a handler, in the middle of other calls */
TEST_F(death, abort_from_a_signal_handler_wakes_everybody)
{
	static const int phases[] = { IN_WAIT, IN_NOTIFY_WAIT, IN_BARRIER, IN_ALLREDUCE, IN_CREATE, IN_SUBSET };

	told = late = 0;
	for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
		struct death death = { .phase = phases[i] };

		pt_clear_words();
		run_ranks(3, abort_all, &death);
		for (int r = 1; r < 3; r++) {
			told += atomic_load(pt_word(W_TOOK + r)) > 0;
			late += atomic_load(pt_word(W_TOOK + r)) / 1000000 >= pt_slow_ms(100);
		}
	}
	EXPECT_LT(0, told);
	EXPECT_LE(4 * late, told) TH_LOG("%d of %d were told later than 100 ms after the abort", late, told);
}

/*
 * Coming after the dead
 */

/* B9, B19: nobody takes the place of a dead rank, and who comes late is told */
TEST(the_place_of_a_dead_rank_stays_empty)
{
	for (int round = 0; round < 20; round++) {
		struct pldk_domain *world = PT_POISON_PTR;
		int fd = -1;
		pid_t pid;

		pt_clear_words();
		ASSERT_OK(pldk_world_create(2, NULL, &fd));
		pid = fork();
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (!pldk_world_join(fd, 1, PLDK_TRY, &world))
				atomic_store(pt_word(W_READY), 1);
			for (;;)
				pause();
		}
		ASSERT_TRUE(pt_until(atomic_load(pt_word(W_READY)), 10000));
		EXPECT_RET(-EEXIST, pldk_world_join(fd, 1, PLDK_TRY, &world));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		EXPECT_RET(-ESTALE, pldk_world_join(fd, 1, PLDK_TRY, &world));
		EXPECT_RET(-EOWNERDEAD, pldk_world_join(fd, 0, PT_LONG, &world));
		EXPECT_SAYS("rank 1");
		EXPECT_EQ(PT_POISON_PTR, world);
		close(fd);
	}
}

/*
 * The storm
 */

RANK(be_in_the_storm)
{
	struct pldk_window *window = pt_window(_metadata, world, 1 << 20), *signal = pt_signal(_metadata, world, 8);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_UINT8, 1 << 20);
	unsigned char mine[5000] = { 0 };
	struct pldk_tensor tensor = pt_tensor(_metadata, mine, PLDK_UINT8, sizeof(mine));
	uint64_t seed = (uint64_t)getpid() * 2654435761u | 1;
	int64_t told = 0, ret = 0;

	(void)arg;
	while (!ret) {
		uint64_t dice = pt_random(&seed);
		int peer = (int)(dice % (uint64_t)size);
		int64_t n = 1 + (int64_t)(dice >> 8) % (int64_t)sizeof(mine);

		ret = pldk_put_notify(
			&view, peer, &tensor,
			&(struct pldk_region){ SHAPE((int64_t)(dice >> 24) % 900000), SHAPE(0), SHAPE(n) }, NULL,
			&(struct pldk_signal_to){ signal, rank, 1, PLDK_NOTIFY_ADD });
		if (!ret)
			ret = pldk_notify(signal, pldk_right(world), rank, PLDK_NOTIFY_ADD, 1);
		told++;
		if (!ret)
			ret = pldk_wait(signal, pldk_left(world), PLDK_GE, told, PLDK_FOREVER);
		if (!ret)
			ret = pldk_get(&tensor, &view, pldk_left(world),
				       &(struct pldk_region){ SHAPE(0), SHAPE(0), SHAPE(n) }, NULL);
		if (!ret && told % 64 == 0)
			ret = pldk_barrier(world, PLDK_FOREVER);
		atomic_fetch_add(pt_word(W_OPS + rank), 1);
	}
	EXPECT_EQ(-EOWNERDEAD, ret) TH_LOG("%s", pldk_last_error());
	for (;;) /* to be killed as well */
		pause();
}

static bool all_work(int size)
{
	for (int r = 0; r < size; r++)
		if (atomic_load(pt_word(W_OPS + r)) < 20)
			return false;
	return true;
}

static void storm(struct __test_metadata *_metadata, uint64_t *seed, bool launcher)
{
	struct pt_run run = { .nranks = 8, .body = be_in_the_storm, .launcher = launcher };
	int order[8];

	pt_clear_words();
	pt_start(_metadata, &run);
	EXPECT_TRUE(pt_until(all_work(8), 10000));
	for (int i = 0; i < 8; i++) {
		int j = (int)(pt_random(seed) % (uint64_t)(i + 1));

		order[i] = order[j];
		order[j] = i;
	}
	for (int i = 0; i < 8; i++) {
		int64_t start = pt_now();

		run.may_die[order[i]] = true;
		pt_kill(&run, order[i]);
		while (pt_now() - start < (int64_t)(pt_random(seed) % 500000))
			;
	}
	run.limit_ms = 5000;
	pt_finish(_metadata, &run);
	for (int r = 0; r < 8; r++) {
		EXPECT_TRUE(WIFSIGNALED(run.status[r]) && WTERMSIG(run.status[r]) == SIGKILL) TH_LOG("rank %d", r);
	}
}

/* B1, B3, B7: killed jobs leave processes in D state, pages pinned, files in /dev/shm. Here 8 ranks, in random order */
TEST_F_TIMEOUT(death, kill_storm_leaves_nothing, 900)
{
	const char *text = getenv("PLDK_STORM_ROUNDS");
	long rounds = text ? atol(text) : pt_rounds(20);
	uint64_t seed = 0x1234567;
	long shmem;
	int fds, files;

	if (variant->spin[0] != '0')
		SKIP(return, "the storm is for sleepers: eight spinners on few CPUs hardly run");
	storm(_metadata, &seed, variant->launcher);
	fds = pt_fds();
	files = pt_entries("/dev/shm");
	shmem = pt_proc_kb("/proc/meminfo", "Shmem:");
	for (long round = 0; round < rounds; round++)
		storm(_metadata, &seed, variant->launcher);
	EXPECT_EQ(fds, pt_fds());
	EXPECT_EQ(files, pt_entries("/dev/shm"));
	/* Others use the machine as well; a leak would be 8 MiB a round. */
	EXPECT_TRUE(pt_until(pt_proc_kb("/proc/meminfo", "Shmem:") < shmem + rounds * 4096, 5000))
	TH_LOG("Shmem grew by %ld kB", pt_proc_kb("/proc/meminfo", "Shmem:") - shmem);
}

TEST_HARNESS_MAIN
