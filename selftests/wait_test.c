// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting: predicates, deadlines, POSIX signals, deaths and destroys, and that no wake-up is lost.
 */
#include "pld_test.h"

FIXTURE(wait)
{
	int dom;
	int r0;
	int r1;
	struct pld_window_create c;
	struct pld_cell *slab0;
};

FIXTURE_SETUP(wait)
{
	PLD_NEED_DEVICE();
	self->dom = pld_domain_new(3);
	self->r0 = pld_join(self->dom, 0);
	self->r1 = pld_join(self->dom, 1);
	ASSERT_LE(0, self->r1);
	ASSERT_EQ(0, pld_signal_window(self->r0, 1, 5000, NULL));
	ASSERT_EQ(0, pld_signal_window(self->r1, 1, 5000, &self->c));
	self->slab0 = pld_map(self->r1, self->c.out_mmap_offset, self->c.out_stride, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, self->slab0);
}

FIXTURE_TEARDOWN(wait)
{
	close(self->r1);
	close(self->r0);
	close(self->dom);
}

/* A wait in a thread of its own. */
struct waiter {
	pthread_t thread;
	int fd;
	int ret;
	struct pld_wait w;
	struct pld_wait_cell e[4];
};

static void *waiter_run(void *arg)
{
	struct waiter *t = arg;

	t->w.cells = pld_ptr(t->e);
	t->ret = pld_ioctl(t->fd, PLD_IOC_CELL_WAIT, &t->w);
	return NULL;
}

/* With predicates that the caller has set, more than t->e has room for. */
static void *long_waiter_run(void *arg)
{
	struct waiter *t = arg;

	t->ret = pld_ioctl(t->fd, PLD_IOC_CELL_WAIT, &t->w);
	return NULL;
}

static void waiter_start(struct waiter *t, int fd, uint32_t n, uint32_t flags, uint64_t deadline)
{
	t->fd = fd;
	t->w = pld_wait_of(t->e, n, flags, deadline);
	pthread_create(&t->thread, NULL, waiter_run, t);
}

static bool is_asleep(int fd, uint32_t n)
{
	return pld_fdinfo(fd, "waiters") == n;
}

TEST_F(wait, every_comparison_means_what_it_says)
{
	static const struct {
		uint32_t cmp;
		int holds[3]; /* for value 4, 5, 6 against 5 */
	} t[] = {
		{ PLD_CMP_EQ, { 0, 1, 0 } }, { PLD_CMP_GE, { 0, 1, 1 } }, { PLD_CMP_NE, { 1, 0, 1 } },
		{ PLD_CMP_GT, { 0, 0, 1 } }, { PLD_CMP_LE, { 1, 1, 0 } }, { PLD_CMP_LT, { 1, 0, 0 } },
	};
	unsigned int i, k;

	for (k = 0; k < 3; k++) {
		ASSERT_EQ(0, pld_notify(self->r1, 1, 0, 9, PLD_NOTIFY_SET, 4 + k));
		for (i = 0; i < 6; i++) {
			struct pld_wait_cell e = PLD_WAIT_CELL(1, 9, t[i].cmp, 5, PLD_RANK_ANY);
			struct pld_wait w = pld_wait_of(&e, 1, 0, PLD_DEADLINE_POLL);

			EXPECT_EQ(t[i].holds[k] ? 0 : -EAGAIN, pld_ioctl(self->r0, PLD_IOC_CELL_WAIT, &w));
			EXPECT_EQ(4 + k, e.out_value);
		}
	}
}

TEST_F(wait, values_are_signed)
{
	EXPECT_EQ(0, pld_notify(self->r1, 1, 0, 0, PLD_NOTIFY_SET, -1));
	EXPECT_EQ(-EAGAIN, pld_wait_ge(self->r0, 1, 0, 0, PLD_RANK_ANY, 0, PLD_DEADLINE_POLL));
	EXPECT_EQ(0, pld_wait_ge(self->r0, 1, 0, INT64_MIN, PLD_RANK_ANY, 0, PLD_DEADLINE_POLL));
}

TEST_F(wait, past_deadline_times_out_and_shows_the_value)
{
	struct pld_wait_cell e = PLD_WAIT_CELL(1, 3, PLD_CMP_GE, 5, PLD_RANK_ANY);
	struct pld_wait w = pld_wait_of(&e, 1, 0, 1);

	EXPECT_EQ(-ETIMEDOUT, pld_ioctl(self->r0, PLD_IOC_CELL_WAIT, &w));
	EXPECT_EQ(0, e.out_value);
	EXPECT_EQ(POISON32, w.out_rank);
	EXPECT_EQ(POISON32, w.out_index);
	EXPECT_EQ(0, pld_fdinfo(self->r0, "waiters"));
	EXPECT_EQ(0, self->slab0[3].sleepers);
}

TEST_F(wait, a_deadline_is_kept)
{
	uint64_t start = pld_now(), end = start + 50 * MSEC;

	EXPECT_EQ(-ETIMEDOUT, pld_wait_ge(self->r0, 1, 3, 5, PLD_RANK_ANY, 0, end));
	EXPECT_LE(end, pld_now());
	EXPECT_GT(start + 2 * SEC, pld_now());
}

TEST_F(wait, bad_vectors_are_refused_before_anything)
{
	static const struct {
		size_t at;
		uint32_t value;
		int error;
	} bad[] = {
		{ offsetof(struct pld_wait_cell, window_id), 99, -ENOENT },
		{ offsetof(struct pld_wait_cell, window_id), 2, -EDOM },
		{ offsetof(struct pld_wait_cell, generation), 0x7777, -ESTALE },
		{ offsetof(struct pld_wait_cell, cell), 5000, -EINVAL },
		{ offsetof(struct pld_wait_cell, cmp), 6, -EINVAL },
		{ offsetof(struct pld_wait_cell, from), 3, -EINVAL },
		{ offsetof(struct pld_wait_cell, reserved), 1, -EINVAL },
	};
	struct pld_wait_cell e[2];
	struct pld_wait w;
	unsigned int i;
	uint64_t mask = 1;

	ASSERT_EQ(0, pld_window(self->r0, 2, PLD_WINDOW_DATA, 0, PLD_PAGE, NULL));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		e[0] = e[1] = (struct pld_wait_cell)PLD_WAIT_CELL(1, 3, PLD_CMP_GE, 0, PLD_RANK_ANY);
		memcpy((char *)&e[1] + bad[i].at, &bad[i].value, 4);
		w = pld_wait_of(e, 2, 0, PLD_DEADLINE_POLL);
		EXPECT_EQ(bad[i].error, pld_ioctl(self->r0, PLD_IOC_CELL_WAIT, &w)) TH_LOG("case %u", i);
		EXPECT_EQ(POISON, e[0].out_value);
	}
	w = pld_wait_of(e, 0, 0, PLD_DEADLINE_POLL);
	EXPECT_EQ(-EINVAL, pld_ioctl(self->r0, PLD_IOC_CELL_WAIT, &w));
	w = pld_wait_of(e, 1, 0, PLD_DEADLINE_POLL);
	w.from_words = 1;
	EXPECT_EQ(-EINVAL, pld_ioctl(self->r0, PLD_IOC_CELL_WAIT, &w));
	w.from_mask = pld_ptr(&mask);
	EXPECT_EQ(0, pld_ioctl(self->r0, PLD_IOC_CELL_WAIT, &w));
	mask = 8; /* rank 3 of 3 */
	EXPECT_EQ(-EINVAL, pld_ioctl(self->r0, PLD_IOC_CELL_WAIT, &w));
	mask = 0;
	EXPECT_EQ(-EINVAL, pld_ioctl(self->r0, PLD_IOC_CELL_WAIT, &w));
	w.from_mask = 8;
	EXPECT_EQ(-EFAULT, pld_ioctl(self->r0, PLD_IOC_CELL_WAIT, &w));
}

TEST_F(wait, notify_wakes_only_whom_it_satisfies)
{
	struct waiter a = { .e = { PLD_WAIT_CELL(1, 1, PLD_CMP_GE, 2, PLD_RANK_ANY) } };
	struct waiter b = { .e = { PLD_WAIT_CELL(1, 2, PLD_CMP_GE, 1, PLD_RANK_ANY) } };

	waiter_start(&a, self->r0, 1, 0, pld_now() + 20 * SEC);
	waiter_start(&b, self->r0, 1, 0, pld_now() + 20 * SEC);
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->r0, 2), 5000));
	EXPECT_EQ(1, self->slab0[1].sleepers);
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 1, 1));
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 2, 1));
	pthread_join(b.thread, NULL);
	EXPECT_EQ(0, b.ret);
	EXPECT_TRUE(is_asleep(self->r0, 1));
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 1, 1));
	pthread_join(a.thread, NULL);
	EXPECT_EQ(0, a.ret);
	EXPECT_EQ(2, a.e[0].out_value);
	EXPECT_TRUE(is_asleep(self->r0, 0));
}

TEST_F(wait, all_needs_every_cell_and_any_needs_one)
{
	struct waiter all = { .e = { PLD_WAIT_CELL(1, 1, PLD_CMP_GE, 1, PLD_RANK_ANY),
				     PLD_WAIT_CELL(1, 2, PLD_CMP_GE, 1, PLD_RANK_ANY),
				     PLD_WAIT_CELL(1, 3, PLD_CMP_GE, 1, PLD_RANK_ANY) } };
	struct waiter any = all;

	waiter_start(&all, self->r0, 3, 0, pld_now() + 20 * SEC);
	waiter_start(&any, self->r0, 3, PLD_WAIT_F_ANY, pld_now() + 20 * SEC);
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->r0, 2), 5000));
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 2, 7));
	pthread_join(any.thread, NULL);
	EXPECT_EQ(0, any.ret);
	EXPECT_EQ(1, any.w.out_index);
	EXPECT_EQ(7, any.e[1].out_value);
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 3, 1));
	EXPECT_TRUE(is_asleep(self->r0, 1));
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 1, 1));
	pthread_join(all.thread, NULL);
	EXPECT_EQ(0, all.ret);
	EXPECT_EQ(7, all.e[1].out_value);
}

TEST_F(wait, a_long_vector_waits_for_all_its_cells)
{
	struct pld_wait_cell *e = calloc(4096, sizeof(*e));
	struct pld_notify_cell *n = calloc(4096, sizeof(*n));
	struct pld_notify notify = { .cells = pld_ptr(n), .ncells = 4096, .cell_size = sizeof(*n) };
	struct pld_wait w = pld_wait_of(e, 4096, 0, pld_now() + 20 * SEC);
	pid_t pid;
	int i;

	for (i = 0; i < 4096; i++) {
		e[i] = (struct pld_wait_cell)PLD_WAIT_CELL(1, i, PLD_CMP_EQ, i + 1, 1);
		n[i] = (struct pld_notify_cell){ .window_id = 1, .rank = 2, .cell = 4095 - i, .value = 4096 - i };
	}
	pid = pld_fork();
	if (!pid) {
		int r2 = pld_join(self->dom, 2);

		PLD_CHILD_CHECK(!pld_signal_window(r2, 1, 5000, NULL));
		PLD_CHILD_CHECK(!pld_ioctl(r2, PLD_IOC_CELL_WAIT, &w));
		PLD_CHILD_CHECK(e[4095].out_value == 4096);
		_exit(0);
	}
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->dom, 1), 5000));
	EXPECT_EQ(0, pld_ioctl(self->r1, PLD_IOC_CELL_NOTIFY, &notify));
	EXPECT_CHILD_OK(pid);
}

/* What a user-space notifier does: change, look at sleepers, ask for the wake-up. */
/* Whoever walks the waiters of a rank holds a spinlock meanwhile: their number is bounded. */
TEST_F(wait, predicates_asleep_in_one_rank_are_bounded)
{
	enum { N = PLD_MAX_WAIT_CELLS_PER_RANK / PLD_MAX_CELLS_PER_CALL };
	struct pld_wait_cell *e = calloc(PLD_MAX_CELLS_PER_CALL, sizeof(*e));
	struct pld_wait_cell one = PLD_WAIT_CELL(1, 0, PLD_CMP_GE, 1, PLD_RANK_ANY);
	struct waiter t[N] = {};
	struct pld_wait w;
	uint32_t i;

	for (i = 0; i < PLD_MAX_CELLS_PER_CALL; i++)
		e[i] = (struct pld_wait_cell)PLD_WAIT_CELL(1, i, PLD_CMP_GE, 1, PLD_RANK_ANY);
	for (i = 0; i < N; i++) {
		t[i].fd = self->r0;
		t[i].w = pld_wait_of(e, PLD_MAX_CELLS_PER_CALL, PLD_WAIT_F_ANY, PLD_DEADLINE_NEVER);
		pthread_create(&t[i].thread, NULL, long_waiter_run, &t[i]);
	}
	ASSERT_TRUE(PLD_WAIT_FOR(pld_fdinfo(self->r0, "waiters") == N, 10000));
	w = pld_wait_of(&one, 1, 0, pld_now() + 10 * SEC);
	EXPECT_EQ(-ENOSPC, pld_ioctl(self->r0, PLD_IOC_CELL_WAIT, &w));
	EXPECT_EQ(POISON, one.out_value);
	EXPECT_EQ(N, pld_fdinfo(self->r0, "waiters"));
	w = pld_wait_of(&one, 1, 0, PLD_DEADLINE_POLL);
	EXPECT_EQ(-EAGAIN, pld_ioctl(self->r0, PLD_IOC_CELL_WAIT, &w));
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 7, 1));
	for (i = 0; i < N; i++) {
		pthread_join(t[i].thread, NULL);
		EXPECT_EQ(0, t[i].ret);
		EXPECT_EQ(7, t[i].w.out_index);
	}
	w = pld_wait_of(&one, 1, 0, pld_now() + MSEC);
	EXPECT_EQ(-ETIMEDOUT, pld_ioctl(self->r0, PLD_IOC_CELL_WAIT, &w));
	free(e);
}

TEST_F(wait, user_space_notify_with_wake)
{
	struct waiter a = { .e = { PLD_WAIT_CELL(1, 1, PLD_CMP_GE, 1, PLD_RANK_ANY) } };

	waiter_start(&a, self->r0, 1, 0, pld_now() + 20 * SEC);
	ASSERT_TRUE(PLD_WAIT_FOR(__atomic_load_n(&self->slab0[1].sleepers, __ATOMIC_SEQ_CST) == 1, 5000));
	__atomic_fetch_add(&self->slab0[1].value, 1, __ATOMIC_SEQ_CST);
	EXPECT_EQ(0, pld_notify(self->r1, 1, 0, 1, PLD_NOTIFY_WAKE, 0));
	pthread_join(a.thread, NULL);
	EXPECT_EQ(0, a.ret);
}

static volatile sig_atomic_t nsignals;

static void on_signal(int sig)
{
	nsignals += sig == SIGUSR1;
}

static int signal_setup(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	nsignals = 0;
	return sigaction(SIGUSR1, &sa, NULL);
}

TEST_F(wait, a_signal_interrupts_or_restarts_as_sigaction_says)
{
	struct waiter a = { .e = { PLD_WAIT_CELL(1, 1, PLD_CMP_GE, 1, PLD_RANK_ANY) } }, b = a;

	signal_setup(0);
	waiter_start(&a, self->r0, 1, 0, pld_now() + 20 * SEC);
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->r0, 1), 5000));
	pthread_kill(a.thread, SIGUSR1);
	pthread_join(a.thread, NULL);
	EXPECT_EQ(-EINTR, a.ret);
	EXPECT_EQ(POISON, a.e[0].out_value);
	EXPECT_EQ(1, nsignals);
	signal_setup(SA_RESTART);
	waiter_start(&b, self->r0, 1, 0, pld_now() + 20 * SEC);
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->r0, 1), 5000));
	pthread_kill(b.thread, SIGUSR1);
	ASSERT_TRUE(PLD_WAIT_FOR(nsignals == 1, 5000));
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->r0, 1), 5000));
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 1, 1));
	pthread_join(b.thread, NULL);
	EXPECT_EQ(0, b.ret);
}

struct combined {
	pthread_t thread;
	int fd;
	int ret;
	struct pld_notify_wait nw;
	struct pld_notify_cell n;
	struct pld_wait_cell e;
};

static void *combined_run(void *arg)
{
	struct combined *c = arg;

	c->ret = pld_ioctl(c->fd, PLD_IOC_CELL_NOTIFY_WAIT, &c->nw);
	return NULL;
}

static void combined_init(struct combined *c, int fd, uint64_t deadline)
{
	c->fd = fd;
	c->n = (struct pld_notify_cell){ .window_id = 1, .rank = 1, .cell = 8, .value = 1 };
	c->e = (struct pld_wait_cell)PLD_WAIT_CELL(1, 1, PLD_CMP_GE, 1, PLD_RANK_ANY);
	c->nw.notify_cells = pld_ptr(&c->n);
	c->nw.notify_ncells = 1;
	c->nw.notify_cell_size = sizeof(c->n);
	c->nw.wait = pld_wait_of(&c->e, 1, 0, deadline);
}

TEST_F(wait, notify_wait_notifies_once_even_when_restarted)
{
	struct combined c = {};

	signal_setup(SA_RESTART);
	combined_init(&c, self->r0, pld_now() + 20 * SEC);
	pthread_create(&c.thread, NULL, combined_run, &c);
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->r0, 1), 5000));
	pthread_kill(c.thread, SIGUSR1);
	ASSERT_TRUE(PLD_WAIT_FOR(nsignals == 1, 5000));
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->r0, 1), 5000));
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 1, 1));
	pthread_join(c.thread, NULL);
	EXPECT_EQ(0, c.ret);
	EXPECT_EQ(1, pld_value(self->dom, 1, 1, 8));
	EXPECT_EQ(1, c.n.out_value);
	EXPECT_EQ(0, c.nw.notify_ncells);
}

TEST_F(wait, notify_wait_tells_that_it_notified_when_the_wait_fails)
{
	struct combined c = {};

	combined_init(&c, self->r0, 1);
	EXPECT_EQ(-ETIMEDOUT, pld_ioctl(self->r0, PLD_IOC_CELL_NOTIFY_WAIT, &c.nw));
	EXPECT_EQ(0, c.nw.notify_ncells);
	EXPECT_EQ(1, pld_value(self->dom, 1, 1, 8));
	EXPECT_EQ(-ETIMEDOUT, pld_ioctl(self->r0, PLD_IOC_CELL_NOTIFY_WAIT, &c.nw));
	EXPECT_EQ(1, pld_value(self->dom, 1, 1, 8));
}

TEST_F(wait, notify_wait_with_a_bad_wait_does_not_notify)
{
	struct combined c = {};

	combined_init(&c, self->r0, 1);
	c.e.cell = 5000;
	EXPECT_EQ(-EINVAL, pld_ioctl(self->r0, PLD_IOC_CELL_NOTIFY_WAIT, &c.nw));
	EXPECT_EQ(1, c.nw.notify_ncells);
	EXPECT_EQ(0, pld_value(self->dom, 1, 1, 8));
}

TEST_F(wait, destroy_ends_the_own_waits_in_the_window)
{
	struct waiter a = { .e = { PLD_WAIT_CELL(1, 1, PLD_CMP_GE, 1, PLD_RANK_ANY) } };
	struct waiter b = { .e = { PLD_WAIT_CELL(2, 1, PLD_CMP_GE, 1, PLD_RANK_ANY) } };

	ASSERT_EQ(0, pld_signal_window(self->r0, 2, 4, NULL));
	ASSERT_EQ(0, pld_signal_window(self->r1, 2, 4, NULL));
	waiter_start(&a, self->r0, 1, 0, pld_now() + 20 * SEC);
	waiter_start(&b, self->r0, 1, 0, pld_now() + 20 * SEC);
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->r0, 2), 5000));
	EXPECT_EQ(0, pld_window_destroy(self->r1, 1)); /* another rank's */
	EXPECT_TRUE(is_asleep(self->r0, 2));
	EXPECT_EQ(0, pld_window_destroy(self->r0, 1));
	pthread_join(a.thread, NULL);
	EXPECT_EQ(-ECANCELED, a.ret);
	EXPECT_TRUE(is_asleep(self->r0, 1));
	EXPECT_EQ(0, pld_add(self->r1, 2, 0, 1, 1));
	pthread_join(b.thread, NULL);
	EXPECT_EQ(0, b.ret);
}

/* B15: a death ends the waits that may depend on it, and those only. */
TEST_F(wait, death_ends_waits_that_may_depend_on_the_dead)
{
	struct waiter all = { .e = { PLD_WAIT_CELL(1, 1, PLD_CMP_GE, 1, PLD_RANK_ANY) } };
	struct waiter named = { .e = { PLD_WAIT_CELL(1, 2, PLD_CMP_GE, 1, 2) } };
	struct waiter other = { .e = { PLD_WAIT_CELL(1, 3, PLD_CMP_GE, 1, 1) } };
	struct waiter mask = { .e = { PLD_WAIT_CELL(1, 4, PLD_CMP_GE, 1, PLD_RANK_ANY) } };
	struct waiter without = { .e = { PLD_WAIT_CELL(1, 5, PLD_CMP_GE, 1, PLD_RANK_ANY) } };
	uint64_t with2 = 6, without2 = 3, deadline = pld_now() + 20 * SEC;
	int r2 = pld_join(self->dom, 2);

	waiter_start(&all, self->r0, 1, 0, deadline);
	waiter_start(&named, self->r0, 1, 0, deadline);
	waiter_start(&other, self->r0, 1, 0, deadline);
	mask.w.from_mask = pld_ptr(&with2);
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->r0, 3), 5000));
	mask.fd = without.fd = self->r0;
	mask.w = pld_wait_of(mask.e, 1, 0, deadline);
	mask.w.from_mask = pld_ptr(&with2);
	mask.w.from_words = 1;
	without.w = pld_wait_of(without.e, 1, 0, deadline);
	without.w.from_mask = pld_ptr(&without2);
	without.w.from_words = 1;
	pthread_create(&mask.thread, NULL, waiter_run, &mask);
	pthread_create(&without.thread, NULL, waiter_run, &without);
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->r0, 5), 5000));
	close(r2);
	pthread_join(all.thread, NULL);
	pthread_join(named.thread, NULL);
	pthread_join(mask.thread, NULL);
	EXPECT_EQ(-EOWNERDEAD, all.ret);
	EXPECT_EQ(2, all.w.out_rank);
	EXPECT_EQ(0, all.e[0].out_value);
	EXPECT_EQ(-EOWNERDEAD, named.ret);
	EXPECT_EQ(2, named.w.out_rank);
	EXPECT_EQ(-EOWNERDEAD, mask.ret);
	EXPECT_TRUE(is_asleep(self->r0, 2));
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 3, 1));
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 5, 1));
	pthread_join(other.thread, NULL);
	pthread_join(without.thread, NULL);
	EXPECT_EQ(0, other.ret);
	EXPECT_EQ(0, without.ret);
	/* Each time, and at once; but what is satisfied succeeds. */
	EXPECT_EQ(-EOWNERDEAD, pld_wait_ge(self->r0, 1, 1, 1, PLD_RANK_ANY, 0, PLD_DEADLINE_POLL));
	EXPECT_EQ(-EOWNERDEAD, pld_wait_ge(self->r0, 1, 1, 1, 2, 0, PLD_DEADLINE_NEVER));
	EXPECT_EQ(0, pld_wait_ge(self->r0, 1, 1, 0, PLD_RANK_ANY, 0, PLD_DEADLINE_NEVER));
	EXPECT_EQ(-EAGAIN, pld_wait_ge(self->r0, 1, 1, 1, 1, 0, PLD_DEADLINE_POLL));
}

/* A7: who has left in order will not come. */
TEST_F(wait, finalised_notifiers_end_the_wait_with_eshutdown)
{
	struct waiter a = { .e = { PLD_WAIT_CELL(1, 1, PLD_CMP_GE, 1, 1) } };
	uint64_t start;

	waiter_start(&a, self->r0, 1, 0, pld_now() + 20 * SEC);
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->r0, 1), 5000));
	start = pld_now();
	EXPECT_EQ(0, pld_leave(self->r1));
	pthread_join(a.thread, NULL);
	EXPECT_GT(SEC, pld_now() - start);
	EXPECT_EQ(-ESHUTDOWN, a.ret);
	EXPECT_EQ(1, a.w.out_rank);
	/* Rank 2 may still join and notify. */
	EXPECT_EQ(-ETIMEDOUT, pld_wait_ge(self->r0, 1, 1, 1, PLD_RANK_ANY, 0, 1));
	EXPECT_EQ(0, pld_leave(pld_join(self->dom, 2)));
	EXPECT_EQ(-ESHUTDOWN, pld_wait_ge(self->r0, 1, 1, 1, PLD_RANK_ANY, 0, PLD_DEADLINE_NEVER));
}

TEST_F(wait, the_ledger_shows_who_waits_for_what)
{
	struct waiter a = { .e = { PLD_WAIT_CELL(1, 1, PLD_CMP_GE, 0, PLD_RANK_ANY),
				   PLD_WAIT_CELL(1, 17, PLD_CMP_EQ, 9, 1) } };
	struct pld_ledger_entry e[4];
	struct pld_ledger l = { .entry_size = sizeof(e[0]) };

	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 17, 4));
	a.fd = self->r0;
	a.w = pld_wait_of(a.e, 2, 0, pld_now() + 20 * SEC);
	a.w.site = 123;
	pthread_create(&a.thread, NULL, waiter_run, &a);
	ASSERT_TRUE(PLD_WAIT_FOR(is_asleep(self->r0, 1), 5000));
	EXPECT_EQ(0, pld_ioctl(self->dom, PLD_IOC_LEDGER, &l));
	EXPECT_EQ(1, l.nentries);
	memset(e, 0x5a, sizeof(e));
	l = (struct pld_ledger){ .entries = pld_ptr(e), .nentries = 4, .entry_size = sizeof(e[0]) };
	EXPECT_EQ(0, pld_ioctl(self->r1, PLD_IOC_LEDGER, &l));
	EXPECT_EQ(1, l.nentries);
	EXPECT_EQ(0, e[0].rank);
	EXPECT_NE(0, e[0].tid);
	EXPECT_EQ(17, e[0].cell);
	EXPECT_EQ(PLD_CMP_EQ, e[0].cmp);
	EXPECT_EQ(1, e[0].from);
	EXPECT_EQ(9, e[0].expected);
	EXPECT_EQ(4, e[0].value);
	EXPECT_EQ(123, e[0].site);
	EXPECT_EQ(2, e[0].npreds);
	EXPECT_EQ(1, e[0].last_notifier);
	EXPECT_EQ(a.w.deadline_ns, e[0].deadline_ns);
	EXPECT_EQ(pld_fdinfo(self->dom, "domain"), e[0].domain_id);
	EXPECT_EQ(getpid(), e[0].pid);
	EXPECT_EQ(self->c.out_generation, e[0].generation);
	EXPECT_EQ(POISON32, e[1].rank);
	/* A reader in a pid namespace of its own does not see the process. */
	if (!geteuid() && !unshare(CLONE_NEWPID)) {
		pid_t pid = fork(); /* pld_fork() looks for its parent, which is not visible either */

		if (!pid) {
			alarm(60);
			l.nentries = 4;
			PLD_CHILD_CHECK(!pld_ioctl(self->dom, PLD_IOC_LEDGER, &l) && l.nentries == 1);
			PLD_CHILD_CHECK(!e[0].pid && !e[0].tid && e[0].cell == 17);
			_exit(0);
		}
		EXPECT_CHILD_OK(pid);
	}
	l.entry_size = sizeof(e[0]) - 8;
	EXPECT_EQ(-EINVAL, pld_ioctl(self->r1, PLD_IOC_LEDGER, &l));
	EXPECT_EQ(0, pld_notify(self->r1, 1, 0, 17, PLD_NOTIFY_SET, 9));
	pthread_join(a.thread, NULL);
	EXPECT_EQ(0, a.ret);
}

/*
 * No wake-up is lost: two processes play ping-pong; one notifies through the kernel, the other in user space. A lost
 * wake-up shows as a time-out.
 */
TEST_F_TIMEOUT(wait, ping_pong_loses_no_wake_up, 90)
{
	const int rounds = 5000;
	pid_t pid;
	int i;

	close(self->r0);
	close(self->dom);
	self->dom = pld_domain_new(2);
	pid = pld_fork();
	if (!pid) {
		int r = pld_join(self->dom, 1);
		struct pld_window_create c;
		struct pld_cell *m;

		PLD_CHILD_CHECK(!pld_signal_window(r, 1, 1, &c));
		m = pld_map(r, c.out_mmap_offset, 2 * c.out_stride, PROT_READ | PROT_WRITE);
		PLD_CHILD_CHECK(m != MAP_FAILED);
		for (i = 1; i <= rounds; i++) {
			PLD_CHILD_CHECK(!pld_wait_ge(r, 1, 0, i, 0, 0, pld_now() + 10 * SEC));
			__atomic_fetch_add(&m->value, 1, __ATOMIC_SEQ_CST);
			if (__atomic_load_n(&m->sleepers, __ATOMIC_SEQ_CST))
				PLD_CHILD_CHECK(!pld_notify(r, 1, 0, 0, PLD_NOTIFY_WAKE, 0));
		}
		_exit(0);
	}
	self->r0 = pld_join(self->dom, 0);
	ASSERT_EQ(0, pld_signal_window(self->r0, 1, 1, NULL));
	ASSERT_TRUE(PLD_WAIT_FOR(pld_fdinfo(self->r0, "joined") == 2, 5000));
	for (i = 1; i <= rounds; i++) {
		ASSERT_EQ(0, pld_add(self->r0, 1, 1, 0, 1));
		ASSERT_EQ(0, pld_wait_ge(self->r0, 1, 0, i, 1, 0, pld_now() + 10 * SEC)) TH_LOG("round %d", i);
	}
	EXPECT_CHILD_OK(pid);
}

TEST_HARNESS_MAIN
