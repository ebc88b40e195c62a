// SPDX-License-Identifier: GPL-2.0
/*
 * B3: every way to go away, with and without a thread asleep, leaves the counters as they were; peers are told how
 * the rank ended. Also who may not keep a dead rank alive.
 */
#include "pld_test.h"

enum how { CLOSE_FD, MUNMAP_FIRST, CLOSE_FIRST, EXIT, KILL, EXEC, EXEC_KEEPING_FD, FD_PASSED, ABORT };

FIXTURE(lifetime)
{
	struct pld_counts before;
	int dom;
	int peer;
	int *go;
	int sock[2];
};

FIXTURE_VARIANT(lifetime)
{
	enum how how;
	bool sleeper;
	uint32_t state;
	int32_t status;
};

#define VARIANT(name, _how, _state, _status)                                                       \
	FIXTURE_VARIANT_ADD(lifetime, name) { _how, false, PLD_MEMBER_##_state, _status };         \
	FIXTURE_VARIANT_ADD(lifetime, name##_with_sleeper) { _how, true, PLD_MEMBER_##_state, _status }

/* clang-format off */
VARIANT(close_fd,        CLOSE_FD,        EXITED,   6);
VARIANT(munmap_first,    MUNMAP_FIRST,    RELEASED, 0);
VARIANT(close_first,     CLOSE_FIRST,     RELEASED, 0);
VARIANT(exit,            EXIT,            EXITED,   7);
VARIANT(kill,            KILL,            KILLED,   SIGKILL);
VARIANT(abort,           ABORT,           KILLED,   SIGABRT);
VARIANT(exec,            EXEC,            RELEASED, 0);
VARIANT(exec_keeping_fd, EXEC_KEEPING_FD, RELEASED, 0);
VARIANT(fd_passed,       FD_PASSED,       EXITED,   5);
/* clang-format on */

FIXTURE_SETUP(lifetime)
{
	PLD_NEED_DEVICE();
	PLD_NEED_COUNTERS();
	self->before = pld_counts_now();
	self->go = pld_shared(PLD_PAGE);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, self->sock));
	self->dom = pld_domain_new(2);
	self->peer = pld_join(self->dom, 1);
	ASSERT_LE(0, self->peer);
	ASSERT_EQ(0, pld_signal_window(self->peer, 1, 64, NULL));
}

FIXTURE_TEARDOWN(lifetime)
{
	close(self->peer);
	close(self->dom);
	if (self->go)
		EXPECT_TRUE(PLD_WAIT_FOR(pld_counts_are(&self->before), 10000));
}

static void *sleeper_run(void *arg)
{
	pld_wait_ge(*(int *)arg, 1, 0, 1, PLD_RANK_ANY, 0, pld_now() + 20 * SEC);
	return NULL;
}

static void go_away(enum how how, bool sleeper, int r, char *map, size_t len, int sock)
{
	switch (how) {
	case CLOSE_FD:
		close(r);
		_exit(6); /* mapped to the end */
	case MUNMAP_FIRST:
		munmap(map, len);
		close(r);
		pause(); /* a sleeping thread holds the file for the time of its call */
		break;
	case CLOSE_FIRST:
		close(r);
		munmap(map, len);
		pause();
		break;
	case EXIT:
		_exit(7);
	case KILL:
		kill(getpid(), SIGKILL);
		break;
	case ABORT:
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		abort();
	case EXEC_KEEPING_FD:
		fcntl(r, F_SETFD, 0);
		/* fallthrough */
	case EXEC:
		execl("/bin/sleep", "sleep", "50", NULL);
		_exit(98);
	case FD_PASSED:
		PLD_CHILD_CHECK(!pld_send_fd(sock, r));
		close(r);
		munmap(map, len);
		_exit(5);
	}
	(void)sleeper;
}

TEST_F(lifetime, the_end_is_seen_and_nothing_stays_behind)
{
	struct pld_domain_member m = { .rank = 0 };
	uint64_t deadline;
	int fd = -1;
	pid_t pid;

	pid = pld_fork();
	if (!pid) {
		struct pld_window_create c;
		int r = pld_join(self->dom, 0);
		pthread_t t;
		char *map;

		close(self->peer);
		PLD_CHILD_CHECK(r >= 0 && !pld_signal_window(r, 1, 64, NULL));
		PLD_CHILD_CHECK(!pld_window(r, 2, PLD_WINDOW_DATA, 0, 64 * PLD_PAGE, &c));
		map = pld_map(r, c.out_mmap_offset, 2 * c.out_stride, PROT_READ | PROT_WRITE);
		PLD_CHILD_CHECK(map != MAP_FAILED);
		if (variant->sleeper) {
			pthread_create(&t, NULL, sleeper_run, &r);
			PLD_CHILD_CHECK(PLD_WAIT_FOR(pld_fdinfo(r, "waiters") == 1, 5000));
		}
		__atomic_store_n(self->go, 1, __ATOMIC_RELEASE);
		go_away(variant->how, variant->sleeper, r, map, 2 * c.out_stride, self->sock[1]);
		_exit(97);
	}
	ASSERT_TRUE(PLD_WAIT_FOR(__atomic_load_n(self->go, __ATOMIC_ACQUIRE), 10000));
	if (variant->how == FD_PASSED) {
		fd = pld_recv_fd(self->sock[0]); /* we hold the dead rank's file, and cannot keep it alive */
		ASSERT_LE(0, fd);
	}
	if (variant->sleeper && (variant->how == MUNMAP_FIRST || variant->how == CLOSE_FIRST)) {
		/* The sleeping call holds the file; ending the wait lets it go. */
		EXPECT_EQ(0, pld_add(self->peer, 1, 0, 0, 1));
	}
	/* Our own wait is how a peer learns of it. */
	deadline = pld_now() + 10 * SEC;
	EXPECT_EQ(-EOWNERDEAD, pld_wait_ge(self->peer, 1, 5, 1, 0, 0, deadline));
	ASSERT_EQ(0, pld_ioctl(self->dom, PLD_IOC_DOMAIN_MEMBER, &m));
	EXPECT_EQ(variant->state, m.out_member.state);
	EXPECT_EQ(variant->status, m.out_member.status);
	EXPECT_TRUE(PLD_WAIT_FOR(!pld_fdinfo(self->dom, "waiters"), 5000));
	EXPECT_TRUE(PLD_WAIT_FOR(pld_fdinfo(self->dom, "windows") == 1, 5000));
	if (fd >= 0) {
		EXPECT_EQ(-ENOTCONN, pld_add(fd, 1, 1, 0, 1));
		EXPECT_EQ(MAP_FAILED, pld_map(fd, 0, PLD_PAGE, PROT_READ));
		close(fd);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

FIXTURE(inherited)
{
	struct pld_counts before;
	int dom;
};

FIXTURE_SETUP(inherited)
{
	PLD_NEED_DEVICE();
	PLD_NEED_COUNTERS();
	self->before = pld_counts_now();
	self->dom = pld_domain_new(2);
}

FIXTURE_TEARDOWN(inherited)
{
	close(self->dom);
	EXPECT_TRUE(PLD_WAIT_FOR(pld_counts_are(&self->before), 10000));
}

/* What rmmod does. */
static int unload(void)
{
	return syscall(SYS_delete_module, "pld", O_NONBLOCK) ? -errno : 0;
}

TEST_F(inherited, a_child_with_the_descriptor_does_not_keep_the_rank_alive)
{
	int p[2], status;
	pid_t pid, grandchild = 0;

	ASSERT_EQ(0, pipe(p));
	pid = pld_fork();
	if (!pid) {
		int r = pld_join(self->dom, 0);

		PLD_CHILD_CHECK(r >= 0);
		grandchild = fork();
		if (!grandchild) {
			char c;

			close(p[1]);
			_exit(read(p[0], &c, 1) < 0); /* lives until the test ends */
		}
		_exit(3);
	}
	EXPECT_EQ(3 << 8, pld_reap(pid, 10000));
	EXPECT_EQ(PLD_MEMBER_EXITED, pld_member_state(self->dom, 0));
	status = pld_fdinfo(self->dom, "dead");
	EXPECT_EQ(1, status);
	close(p[1]);
	close(p[0]);
}

TEST_F(inherited, exec_is_the_end_even_if_a_child_holds_the_descriptor)
{
	int p[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(p));
	pid = pld_fork();
	if (!pid) {
		int r = pld_join(self->dom, 0);

		PLD_CHILD_CHECK(r >= 0);
		if (!fork()) {
			char c;

			close(p[1]);
			_exit(read(p[0], &c, 1) < 0);
		}
		execl("/bin/sleep", "sleep", "50", NULL);
		_exit(98);
	}
	EXPECT_TRUE(PLD_WAIT_FOR(pld_member_state(self->dom, 0) == PLD_MEMBER_RELEASED, 10000));
	kill(pid, SIGKILL);
	pld_reap(pid, 5000);
	close(p[1]);
	close(p[0]);
}

static void *unshared_thread(void *arg)
{
	(void)arg;
	return (void *)(long)unshare(CLONE_FILES); /* a table of its own, closed when the thread exits */
}

TEST_F(inherited, a_thread_with_its_own_descriptor_table_may_exit)
{
	int r = pld_join(self->dom, 0);
	pthread_t t;
	void *ret;

	ASSERT_EQ(0, pld_signal_window(r, 1, 1, NULL));
	pthread_create(&t, NULL, unshared_thread, NULL);
	pthread_join(t, &ret);
	ASSERT_EQ(0, (long)ret);
	EXPECT_EQ(PLD_MEMBER_ALIVE, pld_member_state(self->dom, 0));
	EXPECT_EQ(0, pld_add(r, 1, 0, 0, 1));
	close(r);
}

TEST_F(inherited, closing_one_of_two_descriptors_is_not_the_end)
{
	int r = pld_join(self->dom, 0), d = dup(r);

	close(r);
	EXPECT_EQ(PLD_MEMBER_ALIVE, pld_member_state(self->dom, 0));
	EXPECT_EQ(0, pld_signal_window(d, 1, 1, NULL));
	close(d);
	EXPECT_EQ(PLD_MEMBER_RELEASED, pld_member_state(self->dom, 0));
}

TEST_F(inherited, the_leader_may_exit_before_its_threads)
{
	int *go = pld_shared(PLD_PAGE);
	pid_t pid = pld_fork();

	if (!pid) {
		int r = pld_join(self->dom, 0);
		pthread_t t;

		PLD_CHILD_CHECK(!pld_signal_window(r, 1, 1, NULL));
		__atomic_store_n(&go[1], r, __ATOMIC_RELEASE);
		pthread_create(&t, NULL, sleeper_run, &go[1]);
		PLD_CHILD_CHECK(PLD_WAIT_FOR(pld_fdinfo(r, "waiters") == 1, 5000));
		__atomic_store_n(go, 1, __ATOMIC_RELEASE);
		syscall(SYS_exit, 0); /* this thread only */
	}
	ASSERT_TRUE(PLD_WAIT_FOR(pld_proc_state(pid) == 'Z', 10000));
	EXPECT_EQ(PLD_MEMBER_ALIVE, pld_member_state(self->dom, 0));
	EXPECT_EQ(1, pld_fdinfo(self->dom, "waiters"));
	kill(pid, SIGKILL);
	EXPECT_EQ(SIGKILL, pld_reap(pid, 10000));
	EXPECT_EQ(PLD_MEMBER_KILLED, pld_member_state(self->dom, 0));
}

/*
 * The end of a process that gave its rank file away is worked off by a kernel worker. Here that work is also the end of
 * a subset, whose other member joined and left long ago: the last reference goes inside it.
 */
TEST_F(inherited, the_unseen_end_of_a_process_frees_a_subset)
{
	uint32_t both[] = { 0, 1 };
	int *go = pld_shared(PLD_PAGE), r0 = pld_join(self->dom, 0), s0 = pld_subset(r0, 1, 2, both);
	uint64_t before;
	pid_t pid;

	PLD_NEED_COUNTERS();
	ASSERT_LE(0, s0);
	close(s0);
	before = pld_counter("domains");
	pid = pld_fork();
	if (!pid) {
		int r1 = pld_join(self->dom, 1);

		PLD_CHILD_CHECK(r1 >= 0);
		if (!fork()) {
			alarm(60);
			PLD_WAIT_FOR(__atomic_load_n(go, __ATOMIC_ACQUIRE), 50000);
			_exit(0);
		}
		close(r1);
		_exit(5);
	}
	EXPECT_EQ(5 << 8, pld_reap(pid, 10000));
	EXPECT_TRUE(PLD_WAIT_FOR(pld_counter("domains") == before - 1, 10000));
	EXPECT_EQ(PLD_MEMBER_EXITED, pld_member_state(self->dom, 1));
	__atomic_store_n(go, 1, __ATOMIC_RELEASE);
	close(r0);
}

TEST_F(inherited, a_process_killed_and_reaped_at_once_is_told_as_killed)
{
	struct pld_domain_member m = { .rank = 0 };
	int *go = pld_shared(PLD_PAGE);
	pid_t pid = pld_fork();

	if (!pid) {
		int r = pld_join(self->dom, 0);

		PLD_CHILD_CHECK(r >= 0);
		if (!fork()) {
			alarm(60);
			PLD_WAIT_FOR(__atomic_load_n(go, __ATOMIC_ACQUIRE), 50000);
			_exit(0);
		}
		close(r);
		raise(SIGUSR1);
	}
	EXPECT_EQ(SIGUSR1, pld_reap(pid, 10000));
	EXPECT_TRUE(PLD_WAIT_FOR(pld_member_state(self->dom, 0) > PLD_MEMBER_ALIVE, 10000));
	EXPECT_EQ(0, pld_ioctl(self->dom, PLD_IOC_DOMAIN_MEMBER, &m));
	EXPECT_EQ(PLD_MEMBER_KILLED, m.out_member.state);
	EXPECT_EQ(SIGUSR1, m.out_member.status);
	__atomic_store_n(go, 1, __ATOMIC_RELEASE);
}

TEST_F(inherited, survivors_mapping_of_a_dead_ranks_slab_stays_valid)
{
	struct pld_window_create c;
	int r1 = pld_join(self->dom, 1);
	char *a;
	pid_t pid;

	ASSERT_EQ(0, pld_window(r1, 1, PLD_WINDOW_DATA, PLD_WINDOW_F_ATTACH, PLD_PAGE, &c));
	a = pld_map(r1, c.out_mmap_offset, 2 * PLD_PAGE, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, a);
	pid = pld_fork();
	if (!pid) {
		int r0 = pld_join(self->dom, 0);
		char *b;

		PLD_CHILD_CHECK(!pld_window(r0, 1, PLD_WINDOW_DATA, PLD_WINDOW_F_ATTACH, PLD_PAGE, &c));
		b = pld_map(r0, c.out_mmap_offset, PLD_PAGE, PROT_READ | PROT_WRITE);
		strcpy(b, "last words");
		kill(getpid(), SIGSEGV);
		_exit(1);
	}
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	EXPECT_EQ(SIGSEGV, pld_reap(pid, 10000) & 0x7f);
	EXPECT_EQ(PLD_MEMBER_KILLED, pld_member_state(self->dom, 0));
	EXPECT_EQ(0, strcmp(a, "last words"));
	a[0] = 'p';
	munmap(a, 2 * PLD_PAGE);
	close(r1);
}

/* Each kind of file, and a mapping without one. */
TEST_F(inherited, a_module_in_use_is_not_unloaded)
{
	struct pld_window_create c;
	int dev = pld_open(), dom = pld_domain_new(1), r = pld_join(dom, 0);
	char *a;

	PLD_NEED_ROOT();
	close(self->dom);
	self->dom = -1;
	ASSERT_EQ(0, pld_window(r, 1, PLD_WINDOW_DATA, PLD_WINDOW_F_ATTACH, PLD_PAGE, &c));
	a = pld_map(r, c.out_mmap_offset, PLD_PAGE, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, a);
	EXPECT_EQ(-EWOULDBLOCK, unload()); /* all of them */
	close(r);
	close(dom);
	EXPECT_EQ(-EWOULDBLOCK, unload()); /* the device, and what the mapping holds */
	close(dev);
	EXPECT_EQ(-EWOULDBLOCK, unload()); /* the mapping */
	a[0] = 'x';
	dom = pld_domain_new(1);
	munmap(a, PLD_PAGE);
	EXPECT_EQ(-EWOULDBLOCK, unload()); /* a domain that nobody joined */
	r = pld_join(dom, 0);
	close(dom);
	EXPECT_EQ(-EWOULDBLOCK, unload()); /* a rank */
	dev = pld_open();
	close(r);
	EXPECT_EQ(-EWOULDBLOCK, unload()); /* the device alone */
	close(dev);
}

TEST_HARNESS_MAIN
