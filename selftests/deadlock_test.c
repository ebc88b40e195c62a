// SPDX-License-Identifier: GPL-2.0
/*
 * The referee. Half of these tests are deadlocks that must be found in less than a second although nobody set a
 * time limit; the other half only look like one and must be left alone.
 */
#include "pld_test.h"

#include <sys/ptrace.h>

#define QUICK_NS SEC
/* Long enough for the sleeper's slices at 50, 150 and 350 ms to have asked the referee. */
#define LOOK_NS (450 * MSEC)

struct shared {
	int ret[8];
	uint32_t verdict[8];
	uint64_t end[8];
	int go;
	int done;
};

FIXTURE(deadlock)
{
	struct shared *s;
	int dom;
	pid_t pid[8];
	int n;
};

FIXTURE_SETUP(deadlock)
{
	PLD_NEED_DEVICE();
	self->s = pld_shared(sizeof(*self->s));
	self->dom = pld_domain_new(2);
	ASSERT_LE(0, self->dom);
}

FIXTURE_TEARDOWN(deadlock)
{
	int i;

	for (i = 0; i < self->n; i++)
		if (self->pid[i] > 0) {
			kill(self->pid[i], SIGKILL);
			waitpid(self->pid[i], NULL, 0);
		}
	close(self->dom);
}

/* Become rank @rank with a window of 16 cells. */
static int become(int dom, uint32_t rank)
{
	int r = pld_join(dom, rank);

	PLD_CHILD_CHECK(r >= 0);
	PLD_CHILD_CHECK(!pld_signal_window(r, 1, 16, NULL));
	return r;
}

/* Wait without limit for cell @cell >= 1, and put the outcome down at @slot. */
static void wait_forever(struct shared *s, int slot, int r, uint32_t cell, uint32_t from, uint32_t flags)
{
	struct pld_wait_cell e = PLD_WAIT_CELL(1, cell, PLD_CMP_GE, 1, from);
	struct pld_wait w = pld_wait_of(&e, 1, flags, PLD_DEADLINE_NEVER);

	w.site = 1000 + slot;
	s->ret[slot] = pld_ioctl(r, PLD_IOC_CELL_WAIT, &w);
	s->verdict[slot] = w.out_verdict;
	s->end[slot] = pld_now();
	__atomic_fetch_add(&s->done, 1, __ATOMIC_RELEASE);
}

#define CHILD(self, i)                       \
	((self)->n = (i) + 1 > (self)->n ? (i) + 1 : (self)->n, ((self)->pid[i] = pld_fork()) == 0)

static bool all_done(struct shared *s, int n)
{
	return __atomic_load_n(&s->done, __ATOMIC_ACQUIRE) == n;
}

static bool sleepers(int dom, uint32_t n)
{
	return pld_fdinfo(dom, "waiters") == n;
}

/* Nothing is reported while the referee has had several looks. */
static bool is_left_alone(struct shared *s, int n, int dom, uint32_t nwaiters)
{
	return !PLD_WAIT_FOR(__atomic_load_n(&s->done, __ATOMIC_ACQUIRE) > n, LOOK_NS / MSEC) &&
	       sleepers(dom, nwaiters);
}

/* A4: each waits before it notifies. */
TEST_F(deadlock, two_ranks_that_wait_for_each_other_are_told_at_once)
{
	struct pld_ledger_entry e[4];
	struct pld_verdict v = { .entries = pld_ptr(e), .nentries = 4, .entry_size = sizeof(e[0]) };
	uint64_t start = pld_now();
	int i;

	for (i = 0; i < 2; i++)
		if (CHILD(self, i)) {
			wait_forever(self->s, i, become(self->dom, i), 2 + i, PLD_RANK_ANY, 0);
			pause();
		}
	ASSERT_TRUE(PLD_WAIT_FOR(all_done(self->s, 2), 10000));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-EDEADLK, self->s->ret[i]);
		EXPECT_GT(start + QUICK_NS, self->s->end[i]);
	}
	EXPECT_EQ(self->s->verdict[0], self->s->verdict[1]);
	v.verdict = self->s->verdict[0];
	memset(e, 0x5a, sizeof(e));
	ASSERT_EQ(0, pld_ioctl(self->dom, PLD_IOC_VERDICT, &v));
	EXPECT_EQ(2, v.nentries);
	EXPECT_EQ(0, e[0].rank);
	EXPECT_EQ(2, e[0].cell);
	EXPECT_EQ(1000, e[0].site);
	EXPECT_EQ(self->pid[0], e[0].tid);
	EXPECT_EQ(self->pid[0], e[0].pid);
	EXPECT_EQ(pld_fdinfo(self->dom, "domain"), e[0].domain_id);
	EXPECT_EQ(1, e[0].generation);
	EXPECT_EQ(1, e[1].rank);
	EXPECT_EQ(3, e[1].cell);
	EXPECT_EQ(self->pid[1], e[1].pid);
	EXPECT_EQ(POISON32, e[2].rank);
	v.verdict++;
	EXPECT_EQ(-ENOENT, pld_ioctl(self->dom, PLD_IOC_VERDICT, &v));
	v = (struct pld_verdict){};
	EXPECT_EQ(0, pld_ioctl(self->dom, PLD_IOC_VERDICT, &v));
	EXPECT_EQ(2, v.nentries);
	EXPECT_EQ(self->s->verdict[0], v.verdict);
}

TEST_F(deadlock, no_verdict_is_enoent)
{
	struct pld_verdict v = {};

	EXPECT_EQ(-ENOENT, pld_ioctl(self->dom, PLD_IOC_VERDICT, &v));
}

TEST_F(deadlock, only_the_newest_eight_verdicts_are_kept)
{
	struct pld_verdict v = {};
	uint32_t first = 0;
	int r, i, dom = pld_domain_new(1);

	r = pld_join(dom, 0);
	ASSERT_EQ(0, pld_signal_window(r, 1, 16, NULL));
	for (i = 0; i < 9; i++) {
		wait_forever(self->s, 0, r, 0, PLD_RANK_ANY, 0);
		ASSERT_EQ(-EDEADLK, self->s->ret[0]);
		if (!i)
			first = self->s->verdict[0];
	}
	v.verdict = first;
	EXPECT_EQ(-ENOENT, pld_ioctl(dom, PLD_IOC_VERDICT, &v));
	v.verdict = self->s->verdict[0];
	EXPECT_EQ(0, pld_ioctl(dom, PLD_IOC_VERDICT, &v));
}

TEST_F(deadlock, a_slow_rank_is_not_a_deadlock)
{
	int r1;

	if (CHILD(self, 0)) {
		wait_forever(self->s, 0, become(self->dom, 0), 0, PLD_RANK_ANY, 0);
		pause();
	}
	r1 = pld_join(self->dom, 1);
	ASSERT_EQ(0, pld_signal_window(r1, 1, 16, NULL));
	ASSERT_TRUE(PLD_WAIT_FOR(sleepers(self->dom, 1), 5000));
	EXPECT_TRUE(is_left_alone(self->s, 0, self->dom, 1));
	EXPECT_EQ(0, pld_add(r1, 1, 0, 0, 1));
	ASSERT_TRUE(PLD_WAIT_FOR(all_done(self->s, 1), 5000));
	EXPECT_EQ(0, self->s->ret[0]);
}

TEST_F(deadlock, two_that_wait_while_a_third_computes_are_left_alone)
{
	int dom = pld_domain_new(3), r2, i;

	for (i = 0; i < 2; i++)
		if (CHILD(self, i)) {
			wait_forever(self->s, i, become(dom, i), 0, PLD_RANK_ANY, 0);
			pause();
		}
	r2 = pld_join(dom, 2);
	ASSERT_EQ(0, pld_signal_window(r2, 1, 16, NULL));
	ASSERT_TRUE(PLD_WAIT_FOR(sleepers(dom, 2), 5000));
	EXPECT_TRUE(is_left_alone(self->s, 0, dom, 2));
}

TEST_F(deadlock, ranks_not_yet_joined_may_still_come)
{
	int dom = pld_domain_new(4), i;

	for (i = 0; i < 2; i++)
		if (CHILD(self, i)) {
			wait_forever(self->s, i, become(dom, i), 0, PLD_RANK_ANY, 0);
			pause();
		}
	ASSERT_TRUE(PLD_WAIT_FOR(sleepers(dom, 2), 5000));
	EXPECT_TRUE(is_left_alone(self->s, 0, dom, 2));
}

static void *idle_thread(void *arg)
{
	return (void *)(long)read(*(int *)arg, &(char){ 0 }, 1);
}

/* One more thread can notify; when it has gone, the deadlock is there. */
TEST_F(deadlock, a_rank_with_a_running_thread_is_alive_until_that_ends)
{
	int p[2];

	ASSERT_EQ(0, pipe(p));
	if (CHILD(self, 0)) {
		wait_forever(self->s, 0, become(self->dom, 0), 0, PLD_RANK_ANY, 0);
		pause();
	}
	if (CHILD(self, 1)) {
		int r = become(self->dom, 1);
		pthread_t t;

		pthread_create(&t, NULL, idle_thread, &p[0]);
		wait_forever(self->s, 1, r, 0, PLD_RANK_ANY, 0);
		pause();
	}
	ASSERT_TRUE(PLD_WAIT_FOR(sleepers(self->dom, 2), 5000));
	EXPECT_TRUE(is_left_alone(self->s, 0, self->dom, 2));
	ASSERT_EQ(1, write(p[1], "x", 1)); /* the thread's read ends, and so does the thread */
	ASSERT_TRUE(PLD_WAIT_FOR(all_done(self->s, 2), 5000));
	EXPECT_EQ(-EDEADLK, self->s->ret[0]);
	EXPECT_EQ(-EDEADLK, self->s->ret[1]);
}

TEST_F(deadlock, a_stopped_rank_is_alive)
{
	if (CHILD(self, 0)) {
		wait_forever(self->s, 0, become(self->dom, 0), 0, PLD_RANK_ANY, 0);
		pause();
	}
	if (CHILD(self, 1)) {
		int r = become(self->dom, 1);

		raise(SIGSTOP);
		wait_forever(self->s, 1, r, 0, PLD_RANK_ANY, 0);
		pause();
	}
	ASSERT_TRUE(PLD_WAIT_FOR(pld_proc_state(self->pid[1]) == 'T', 5000));
	ASSERT_TRUE(PLD_WAIT_FOR(sleepers(self->dom, 1), 5000));
	EXPECT_TRUE(is_left_alone(self->s, 0, self->dom, 1));
	kill(self->pid[1], SIGCONT);
	ASSERT_TRUE(PLD_WAIT_FOR(all_done(self->s, 2), 5000));
	EXPECT_EQ(-EDEADLK, self->s->ret[0]);
}

TEST_F(deadlock, a_traced_rank_is_alive)
{
	int status;

	if (CHILD(self, 0)) {
		wait_forever(self->s, 0, become(self->dom, 0), 0, PLD_RANK_ANY, 0);
		pause();
	}
	if (CHILD(self, 1)) {
		int r = become(self->dom, 1);

		while (!__atomic_load_n(&self->s->go, __ATOMIC_ACQUIRE))
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		wait_forever(self->s, 1, r, 0, PLD_RANK_ANY, 0);
		pause();
	}
	ASSERT_TRUE(PLD_WAIT_FOR(sleepers(self->dom, 1), 5000));
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, self->pid[1], 0, 0));
	__atomic_store_n(&self->s->go, 1, __ATOMIC_RELEASE);
	ASSERT_TRUE(PLD_WAIT_FOR(sleepers(self->dom, 2), 5000));
	EXPECT_TRUE(is_left_alone(self->s, 0, self->dom, 2));
	ASSERT_EQ(0, ptrace(PTRACE_INTERRUPT, self->pid[1], 0, 0));
	ASSERT_EQ(self->pid[1], waitpid(self->pid[1], &status, 0));
	ASSERT_EQ(0, ptrace(PTRACE_DETACH, self->pid[1], 0, 0));
	ASSERT_TRUE(PLD_WAIT_FOR(all_done(self->s, 2), 5000));
	EXPECT_EQ(-EDEADLK, self->s->ret[0]);
}

TEST_F(deadlock, a_timed_wait_is_never_part_of_one)
{
	int i;

	for (i = 0; i < 2; i++)
		if (CHILD(self, i)) {
			int r = become(self->dom, i);

			if (i)
				wait_forever(self->s, i, r, 0, PLD_RANK_ANY, 0);
			else
				self->s->ret[0] = pld_wait_ge(r, 1, 0, 1, PLD_RANK_ANY, 0, pld_now() + 5 * SEC);
			pause();
		}
	ASSERT_TRUE(PLD_WAIT_FOR(sleepers(self->dom, 2), 5000));
	EXPECT_TRUE(is_left_alone(self->s, 0, self->dom, 2));
}

TEST_F(deadlock, an_idle_worker_is_never_part_of_one)
{
	int i;

	for (i = 0; i < 2; i++)
		if (CHILD(self, i)) {
			wait_forever(self->s, i, become(self->dom, i), 0, PLD_RANK_ANY, i ? PLD_WAIT_F_IDLE : 0);
			pause();
		}
	ASSERT_TRUE(PLD_WAIT_FOR(sleepers(self->dom, 2), 5000));
	EXPECT_TRUE(is_left_alone(self->s, 0, self->dom, 2));
}

/* Who is certain (F_EXACT) of its notifier is found although a third rank computes. */
TEST_F(deadlock, an_exact_cycle_is_found_while_others_compute)
{
	int dom = pld_domain_new(3), r2, i;
	uint64_t start = pld_now();

	r2 = pld_join(dom, 2);
	ASSERT_LE(0, r2);
	for (i = 0; i < 2; i++)
		if (CHILD(self, i)) {
			wait_forever(self->s, i, become(dom, i), 0, !i, PLD_WAIT_F_EXACT);
			pause();
		}
	ASSERT_TRUE(PLD_WAIT_FOR(all_done(self->s, 2), 10000));
	EXPECT_EQ(-EDEADLK, self->s->ret[0]);
	EXPECT_EQ(-EDEADLK, self->s->ret[1]);
	EXPECT_GT(start + QUICK_NS, self->s->end[1]);
}

/* The same with a user's claim is no proof: rank 2 may notify. */
TEST_F(deadlock, a_claim_is_no_proof)
{
	int dom = pld_domain_new(3), r2, i;

	r2 = pld_join(dom, 2);
	ASSERT_LE(0, r2);
	for (i = 0; i < 2; i++)
		if (CHILD(self, i)) {
			wait_forever(self->s, i, become(dom, i), 0, !i, 0);
			pause();
		}
	ASSERT_TRUE(PLD_WAIT_FOR(sleepers(dom, 2), 5000));
	EXPECT_TRUE(is_left_alone(self->s, 0, dom, 2));
}

/* The waits of a verdict that the domain of @fd keeps: their number, if all are its own; else -1. */
static int own_waits(int fd, uint32_t number)
{
	struct pld_ledger_entry e[4];
	struct pld_verdict v = { .entries = pld_ptr(e), .nentries = 4, .entry_size = sizeof(e[0]), .verdict = number };
	int i;

	if (pld_ioctl(fd, PLD_IOC_VERDICT, &v) || v.verdict != number)
		return -1;
	for (i = 0; i < (int)v.nentries; i++)
		if (e[i].domain_id != pld_fdinfo(fd, "domain"))
			return -1;
	return v.nentries;
}

/* Two groups entered in opposite order: each process waits in another domain. */
TEST_F(deadlock, a_cycle_over_two_domains_is_found)
{
	uint32_t ranks[] = { 0, 1 };
	uint64_t start;
	int i;

	for (i = 0; i < 2; i++)
		if (CHILD(self, i)) {
			int r = become(self->dom, i), a = pld_subset(r, 1, 2, ranks), b = pld_subset(r, 2, 2, ranks);

			PLD_CHILD_CHECK(!pld_signal_window(a, 1, 16, NULL) && !pld_signal_window(b, 1, 16, NULL));
			while (pld_fdinfo(a, "joined") != 2 || pld_fdinfo(b, "joined") != 2)
				;
			wait_forever(self->s, i, i ? a : b, 0, PLD_RANK_ANY, 0);
			self->s->ret[2 + i] = 10 * own_waits(a, self->s->verdict[i]) +
					      own_waits(b, self->s->verdict[i]);
			__atomic_fetch_add(&self->s->go, 1, __ATOMIC_RELEASE);
			pause();
		}
	start = pld_now();
	ASSERT_TRUE(PLD_WAIT_FOR(all_done(self->s, 2), 10000));
	EXPECT_EQ(-EDEADLK, self->s->ret[0]);
	EXPECT_EQ(-EDEADLK, self->s->ret[1]);
	EXPECT_EQ(self->s->verdict[0], self->s->verdict[1]);
	EXPECT_GT(start + QUICK_NS, self->s->end[1]);
	/* The number is that of both domains, and each keeps the wait of its own member. */
	ASSERT_TRUE(PLD_WAIT_FOR(__atomic_load_n(&self->s->go, __ATOMIC_ACQUIRE) == 2, 5000));
	EXPECT_EQ(11, self->s->ret[2]);
	EXPECT_EQ(11, self->s->ret[3]);
}

/* Both threads of a process wait, in different ranks: then it is blocked. */
struct thread_arg {
	struct shared *s;
	int slot;
	int r;
};

static void *deadlock_thread(void *arg)
{
	struct thread_arg *a = arg;

	wait_forever(a->s, a->slot, a->r, a->slot, PLD_RANK_ANY, 0);
	return NULL;
}

TEST_F(deadlock, all_threads_of_all_ranks_must_wait)
{
	int i;

	for (i = 0; i < 2; i++)
		if (CHILD(self, i)) {
			struct thread_arg a = { self->s, 2 * i + 1, become(self->dom, i) };
			pthread_t t;

			pthread_create(&t, NULL, deadlock_thread, &a);
			wait_forever(self->s, 2 * i, a.r, 2 * i, PLD_RANK_ANY, 0);
			pthread_join(t, NULL);
			pause();
		}
	ASSERT_TRUE(PLD_WAIT_FOR(all_done(self->s, 4), 10000));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(-EDEADLK, self->s->ret[i]);
}

/* A wait for any of two: one branch is hopeless, the other is not. */
TEST_F(deadlock, any_is_alive_through_one_branch_and_all_is_not)
{
	int dom = pld_domain_new(3), r2;

	r2 = pld_join(dom, 2);
	ASSERT_EQ(0, pld_signal_window(r2, 1, 16, NULL));
	if (CHILD(self, 0)) {
		struct pld_wait_cell e[] = { PLD_WAIT_CELL(1, 0, PLD_CMP_GE, 1, 1),
					     PLD_WAIT_CELL(1, 1, PLD_CMP_GE, 1, 2) };
		struct pld_wait w = pld_wait_of(e, 2, PLD_WAIT_F_ANY | PLD_WAIT_F_EXACT, PLD_DEADLINE_NEVER);

		self->s->ret[0] = pld_ioctl(become(dom, 0), PLD_IOC_CELL_WAIT, &w);
		__atomic_fetch_add(&self->s->done, 1, __ATOMIC_RELEASE);
		pause();
	}
	if (CHILD(self, 1)) {
		wait_forever(self->s, 1, become(dom, 1), 0, 0, PLD_WAIT_F_EXACT);
		pause();
	}
	ASSERT_TRUE(PLD_WAIT_FOR(sleepers(dom, 2), 5000));
	EXPECT_TRUE(is_left_alone(self->s, 0, dom, 2));
	EXPECT_EQ(0, pld_add(r2, 1, 0, 1, 1));
	ASSERT_TRUE(PLD_WAIT_FOR(all_done(self->s, 1), 5000));
	EXPECT_EQ(0, self->s->ret[0]);
}

/* A notify that was done in user space just before its author fell asleep counts. */
TEST_F_TIMEOUT(deadlock, a_satisfied_wait_is_never_called_hopeless, 90)
{
	const int rounds = 2000;
	int i;

	for (i = 0; i < 2; i++)
		if (CHILD(self, i)) {
			struct pld_window_create c;
			struct pld_cell *m;
			int r = pld_join(self->dom, i), k, ret;

			PLD_CHILD_CHECK(!pld_signal_window(r, 1, 1, &c));
			m = pld_map(r, c.out_mmap_offset, 2 * c.out_stride, PROT_READ | PROT_WRITE);
			PLD_CHILD_CHECK(m != MAP_FAILED);
			while (pld_fdinfo(r, "joined") != 2 || pld_fdinfo(r, "windows") != 1)
				;
			for (k = 1; k <= rounds; k++) {
				struct pld_cell *peer = (void *)((char *)m + !i * c.out_stride);

				__atomic_fetch_add(&peer->value, 1, __ATOMIC_SEQ_CST);
				if (__atomic_load_n(&peer->sleepers, __ATOMIC_SEQ_CST))
					PLD_CHILD_CHECK(!pld_notify(r, 1, !i, 0, PLD_NOTIFY_WAKE, 0));
				ret = pld_wait_ge(r, 1, 0, k, PLD_RANK_ANY, 0, PLD_DEADLINE_NEVER);
				PLD_CHILD_CHECK(ret == 0);
			}
			_exit(0);
		}
	/* The one that is through first may not let the other wait for a dead rank: both counts are complete then. */
	EXPECT_EQ(0, pld_reap(self->pid[0], 60000));
	EXPECT_EQ(0, pld_reap(self->pid[1], 60000));
	self->n = 0;
}

TEST_HARNESS_MAIN
