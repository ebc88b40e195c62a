// SPDX-License-Identifier: GPL-2.0
/*
 * B1: ranks that notify, wait and store are killed in random order, again and again. Nobody hangs in D state, the
 * survivors of each round are told, and nothing stays behind. PLD_STORM_ROUNDS sets the number of rounds.
 */
#include "pld_test.h"

#define RANKS 8

/* Work without end: store, notify all peers, wait for any of them a little, map and unmap. */
static void work(int dom, uint32_t me)
{
	struct pld_notify_cell n[RANKS];
	struct pld_window_create c, d;
	struct pld_wait_cell e = PLD_WAIT_CELL(1, me, PLD_CMP_GE, 0, PLD_RANK_ANY);
	struct pld_notify_wait nw = {};
	int r = pld_join(dom, me);
	int64_t round = 0;
	char *m;

	if (r < 0 || pld_signal_window(r, 1, 64, &c) ||
	    pld_window(r, 2, PLD_WINDOW_DATA, PLD_WINDOW_F_ATTACH, 64 * PLD_PAGE, &d))
		_exit(96);
	m = pld_map(r, d.out_mmap_offset, RANKS * d.out_stride, PROT_READ | PROT_WRITE);
	if (m == MAP_FAILED)
		_exit(95);
	for (;;) {
		char *more = pld_map(r, c.out_mmap_offset, c.out_stride, PROT_READ | PROT_WRITE);

		memset(m + (me + round) % RANKS * d.out_stride, me, PLD_PAGE);
		for (uint32_t i = 0; i < RANKS; i++)
			n[i] = (struct pld_notify_cell){ .window_id = 1, .rank = i, .cell = me, .value = 1 };
		e.expected = ++round;
		e.cell = (me + 1) % RANKS;
		nw.notify_cells = pld_ptr(n);
		nw.notify_ncells = RANKS;
		nw.notify_cell_size = sizeof(n[0]);
		nw.wait = pld_wait_of(&e, 1, 0, round % 3 ? PLD_DEADLINE_NEVER : pld_now() + MSEC);
		pld_ioctl(r, PLD_IOC_CELL_NOTIFY_WAIT, &nw); /* deaths of others are not our subject */
		if (more != MAP_FAILED)
			munmap(more, c.out_stride);
	}
}

/* 0 when the child is gone; it may not be in D state for a second. */
static int reap(pid_t pid)
{
	uint64_t since = pld_now(), end = since + 20 * SEC;
	int status;

	while (pld_now() < end) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return 0;
		if (pld_proc_state(pid) != 'D')
			since = pld_now();
		if (pld_now() - since > SEC)
			return -EDEADLK;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return -ETIMEDOUT;
}

FIXTURE(storm)
{
	struct pld_counts before;
};

FIXTURE_SETUP(storm)
{
	PLD_NEED_DEVICE();
	PLD_NEED_COUNTERS();
	self->before = pld_counts_now();
}

FIXTURE_TEARDOWN(storm)
{
}

TEST_F_TIMEOUT(storm, killed_ranks_leave_nothing_and_nobody_hangs, 280)
{
	int rounds = getenv("PLD_STORM_ROUNDS") ? atoi(getenv("PLD_STORM_ROUNDS")) : 20;
	unsigned int seed = getenv("PLD_STORM_SEED") ? (unsigned int)atoi(getenv("PLD_STORM_SEED")) : getpid();
	int round, i, k;

	TH_LOG("%d rounds, PLD_STORM_SEED=%u", rounds, seed);
	for (round = 0; round < rounds; round++) {
		int dom = pld_domain_new(RANKS);
		pid_t pid[RANKS], swap;

		ASSERT_LE(0, dom);
		for (i = 0; i < RANKS; i++) {
			pid[i] = pld_fork();
			if (!pid[i])
				work(dom, i);
		}
		ASSERT_TRUE(PLD_WAIT_FOR(pld_fdinfo(dom, "joined") == RANKS && pld_fdinfo(dom, "windows") == 2, 20000));
		nanosleep(&(struct timespec){ .tv_nsec = rand_r(&seed) % 20000000 }, NULL); /* somewhere in its work */
		for (i = RANKS - 1; i > 0; i--) {
			k = rand_r(&seed) % (i + 1);
			swap = pid[i];
			pid[i] = pid[k];
			pid[k] = swap;
		}
		for (i = 0; i < RANKS; i++)
			kill(pid[i], SIGKILL);
		for (i = 0; i < RANKS; i++)
			ASSERT_EQ(0, reap(pid[i])) TH_LOG("round %d", round);
		EXPECT_EQ(RANKS, pld_fdinfo(dom, "dead"));
		close(dom);
		ASSERT_TRUE(PLD_WAIT_FOR(pld_counts_are(&self->before), 10000)) TH_LOG("round %d", round);
	}
}

/* B15: a rank dies in the middle of others' waits; each survivor hears of it at once. */
TEST_F_TIMEOUT(storm, every_survivor_hears_of_each_death, 120)
{
	int victim, i;

	for (victim = 0; victim < 4; victim++) {
		int dom = pld_domain_new(4);
		pid_t pid[4];
		uint64_t killed;

		for (i = 0; i < 4; i++) {
			pid[i] = pld_fork();
			if (!pid[i]) {
				struct pld_wait_cell e = PLD_WAIT_CELL(1, 0, PLD_CMP_GE, 1, PLD_RANK_ANY);
				struct pld_wait w = pld_wait_of(&e, 1, PLD_WAIT_F_IDLE, PLD_DEADLINE_NEVER);
				int r = pld_join(dom, i);

				PLD_CHILD_CHECK(!pld_signal_window(r, 1, 4, NULL));
				PLD_CHILD_CHECK(pld_ioctl(r, PLD_IOC_CELL_WAIT, &w) == -EOWNERDEAD);
				PLD_CHILD_CHECK(w.out_rank == (uint32_t)victim);
				PLD_CHILD_CHECK(!pld_leave(r));
				_exit(0);
			}
		}
		ASSERT_TRUE(PLD_WAIT_FOR(pld_fdinfo(dom, "waiters") == 4, 10000));
		killed = pld_now();
		kill(pid[victim], SIGKILL);
		for (i = 0; i < 4; i++)
			EXPECT_EQ(i == victim ? SIGKILL : 0, pld_reap(pid[i], 10000));
		EXPECT_GT(2 * SEC, pld_now() - killed);
		close(dom);
	}
	EXPECT_TRUE(PLD_WAIT_FOR(pld_counts_are(&self->before), 10000));
}

TEST_HARNESS_MAIN
