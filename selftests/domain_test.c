// SPDX-License-Identifier: GPL-2.0
/*
 * Domains and membership: who may join, what others see, how it ends. Subsets are in subset_test.c, death by the many
 * ways of dying in lifetime_test.c.
 */
#include "pld_test_domain.h"

TEST_F(domain, create_refuses_bad_rank_counts)
{
	EXPECT_EQ(-EINVAL, pld_domain_new(0));
	EXPECT_EQ(-EINVAL, pld_domain_new(PLD_MAX_RANKS + 1));
}

TEST_F(domain, create_takes_the_maximum_of_ranks)
{
	int fd = pld_domain_new(PLD_MAX_RANKS), r;

	ASSERT_LE(0, fd);
	r = pld_join(fd, PLD_MAX_RANKS - 1);
	EXPECT_LE(0, r);
	EXPECT_EQ(PLD_MEMBER_ALIVE, pld_member_state(fd, PLD_MAX_RANKS - 1));
	close(r);
	close(fd);
}

TEST_F(domain, duplicate_device_ids_are_refused)
{
	uint32_t same[] = { 7, 9, 7 }, odd[] = { 7, 900, 3 };
	struct pld_domain_create c = { .nranks = 3, .device_ids = pld_ptr(same), .out_fd = -2 };
	struct pld_domain_member m = { .rank = 1 };
	int dev = pld_open();

	EXPECT_EQ(-EINVAL, pld_ioctl(dev, PLD_IOC_DOMAIN_CREATE, &c));
	EXPECT_EQ(-2, c.out_fd);
	c.device_ids = pld_ptr(odd);
	ASSERT_EQ(0, pld_ioctl(dev, PLD_IOC_DOMAIN_CREATE, &c));
	EXPECT_EQ(0, pld_ioctl(c.out_fd, PLD_IOC_DOMAIN_MEMBER, &m));
	EXPECT_EQ(900, m.out_member.device_id);
}

TEST_F(domain, offline_cpus_are_refused)
{
	uint32_t cpus[] = { 0, 100000 };
	struct pld_domain_create c = { .nranks = 2, .cpus = pld_ptr(cpus), .out_fd = -2 };
	int dev = pld_open();

	EXPECT_EQ(-EINVAL, pld_ioctl(dev, PLD_IOC_DOMAIN_CREATE, &c));
	cpus[1] = 0;
	EXPECT_EQ(0, pld_ioctl(dev, PLD_IOC_DOMAIN_CREATE, &c));
}

TEST_F(domain, info_puts_devices_on_the_callers_cpus_in_turn)
{
	struct pld_info a = { .device_id = 0 }, b = { .device_id = 0 };
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	int dev = pld_open();

	b.device_id = n;
	EXPECT_EQ(0, pld_ioctl(dev, PLD_IOC_GET_INFO, &a));
	EXPECT_EQ(0, pld_ioctl(dev, PLD_IOC_GET_INFO, &b));
	EXPECT_EQ(a.out_cpu, b.out_cpu);
	EXPECT_EQ(PLD_ABI_LEVEL, a.out_abi_level);
	EXPECT_NE(0, a.out_features & PLD_FEATURE_DEADLOCK);
	EXPECT_EQ(a.out_instance, b.out_instance);
	EXPECT_NE(0, a.out_instance);
}

TEST_F(domain, a_rank_joins_once)
{
	int r = pld_join(self->fd, 1);

	ASSERT_LE(0, r);
	EXPECT_EQ(-EEXIST, pld_join(self->fd, 1));
	EXPECT_EQ(-EINVAL, pld_join(self->fd, 4));
	EXPECT_EQ(PLD_MEMBER_ALIVE, pld_member_state(self->fd, 1));
	EXPECT_EQ(PLD_MEMBER_ABSENT, pld_member_state(self->fd, 0));
	EXPECT_EQ(1, pld_fdinfo(self->fd, "joined"));
	close(r);
	EXPECT_EQ(PLD_MEMBER_RELEASED, pld_member_state(self->fd, 1));
	EXPECT_EQ(-ESTALE, pld_join(self->fd, 1));
	EXPECT_EQ(1, pld_fdinfo(self->fd, "dead"));
}

TEST_F(domain, new_descriptors_are_close_on_exec)
{
	int r = pld_join(self->fd, 0);

	EXPECT_EQ(FD_CLOEXEC, fcntl(self->fd, F_GETFD));
	EXPECT_EQ(FD_CLOEXEC, fcntl(r, F_GETFD));
}

TEST_F(domain, a_join_without_a_free_descriptor_leaves_the_rank_absent)
{
	struct rlimit old, none = { 0, 0 };

	getrlimit(RLIMIT_NOFILE, &old);
	none.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	EXPECT_EQ(-EMFILE, pld_join(self->fd, 2));
	setrlimit(RLIMIT_NOFILE, &old);
	EXPECT_EQ(PLD_MEMBER_ABSENT, pld_member_state(self->fd, 2));
	EXPECT_LE(0, pld_join(self->fd, 2));
}

TEST_F(domain, a_join_whose_result_cannot_be_stored_leaves_the_rank_absent)
{
	struct pld_domain_join *j = mmap(NULL, PLD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	j->rank = 3;
	mprotect(j, PLD_PAGE, PROT_READ);
	EXPECT_EQ(-EFAULT, pld_ioctl(self->fd, PLD_IOC_DOMAIN_JOIN, j));
	EXPECT_EQ(PLD_MEMBER_ABSENT, pld_member_state(self->fd, 3));
	EXPECT_EQ(0, pld_fdinfo(self->fd, "joined"));
	EXPECT_LE(0, pld_join(self->fd, 3));
}

TEST_F(domain, status_page_tells_the_states_and_cannot_be_written)
{
	int r0 = pld_join(self->fd, 0), r1 = pld_join(self->fd, 1);
	struct pld_status *s;
	struct pld_member *m;
	uint32_t events;

	EXPECT_EQ(MAP_FAILED, pld_map(r0, PLD_MMAP_STATUS, PLD_PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	s = pld_map(r0, PLD_MMAP_STATUS, PLD_PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, s);
	EXPECT_EQ(-1, mprotect(s, PLD_PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(PLD_STATUS_VERSION, s->version);
	EXPECT_EQ(sizeof(*m), s->member_size);
	EXPECT_EQ(4, s->nranks);
	EXPECT_EQ(2, s->joined);
	EXPECT_EQ(PLD_RANK_ANY, s->first_dead);
	m = (void *)((char *)s + PLD_STATUS_HEADER);
	EXPECT_EQ(PLD_MEMBER_ALIVE, m[1].state);
	EXPECT_EQ(getpid(), m[1].pid);
	EXPECT_EQ(PLD_MEMBER_ABSENT, m[2].state);
	events = s->events;
	EXPECT_EQ(0, pld_leave(r1));
	EXPECT_EQ(events + 1, s->events);
	EXPECT_EQ(PLD_MEMBER_FINALISED, m[1].state);
	EXPECT_EQ(1, s->finalised);
	EXPECT_EQ(0, s->dead);
	EXPECT_EQ(0, pld_poison(r0, 42));
	EXPECT_EQ(PLD_POISON_SET | 42, s->poison);
	EXPECT_EQ(0, s->poison_rank);
}

TEST_F(domain, status_of_many_ranks_spans_pages)
{
	int fd = pld_domain_new(1024), r = pld_join(fd, 1000);
	size_t len = (PLD_STATUS_HEADER + 1024 * sizeof(struct pld_member) + PLD_PAGE - 1) & ~(PLD_PAGE - 1);
	char *s = pld_map(r, PLD_MMAP_STATUS, len, PROT_READ);

	ASSERT_NE(MAP_FAILED, s);
	EXPECT_EQ(PLD_MEMBER_ALIVE, ((struct pld_member *)(s + PLD_STATUS_HEADER))[1000].state);
	EXPECT_EQ(1000, ((struct pld_member *)(s + PLD_STATUS_HEADER))[1000].device_id);
}

TEST_F(domain, a_left_rank_cannot_act)
{
	struct pld_window_create c;
	int r = pld_join(self->fd, 0);

	EXPECT_EQ(0, pld_leave(r));
	EXPECT_EQ(-ENOTCONN, pld_leave(r));
	EXPECT_EQ(-ENOTCONN, pld_window(r, 1, PLD_WINDOW_DATA, 0, PLD_PAGE, &c));
	EXPECT_EQ(-ENOTCONN, pld_add(r, 1, 0, 0, 1));
	EXPECT_EQ(PLD_MEMBER_FINALISED, pld_member_state(r, 0));
	EXPECT_EQ(-ESTALE, pld_join(self->fd, 0));
}

TEST_F(domain, leave_is_refused_while_a_thread_waits)
{
	int r = pld_join(self->fd, 0);
	pthread_t t;
	void *ret;

	ASSERT_EQ(0, pld_signal_window(r, 1, 1, NULL));
	pthread_create(&t, NULL, wait_thread, &r);
	ASSERT_TRUE(PLD_WAIT_FOR(pld_fdinfo(r, "waiters") == 1, 5000));
	EXPECT_EQ(-EBUSY, pld_leave(r));
	EXPECT_EQ(PLD_MEMBER_ALIVE, pld_member_state(r, 0));
	EXPECT_EQ(0, pld_add(r, 1, 0, 0, 1));
	pthread_join(t, &ret);
	EXPECT_EQ(0, (long)ret);
	EXPECT_EQ(0, pld_leave(r));
}

TEST_F(domain, a_forked_child_may_not_use_the_rank)
{
	int r = pld_join(self->fd, 0);
	pid_t pid = pld_fork();

	if (!pid) {
		PLD_CHILD_CHECK(pld_leave(r) == -ENOTCONN);
		PLD_CHILD_CHECK(pld_map(r, 0, PLD_PAGE, PROT_READ) == MAP_FAILED && errno == ENOTCONN);
		PLD_CHILD_CHECK(pld_join(self->fd, 1) >= 0); /* the domain file is open to it */
		_exit(0);
	}
	EXPECT_CHILD_OK(pid);
	EXPECT_EQ(PLD_MEMBER_ALIVE, pld_member_state(self->fd, 0));
	EXPECT_EQ(PLD_MEMBER_EXITED, pld_member_state(self->fd, 1));
}

TEST_F(domain, token_opens_the_domain_to_the_same_user_only)
{
	struct pld_domain_token t = {};
	struct pld_domain_join_token j = { .rank = 2, .out_fd = -2 };
	int dev = pld_open();
	pid_t pid;

	EXPECT_EQ(-ENOENT, pld_ioctl(dev, PLD_IOC_DOMAIN_JOIN_TOKEN, &j));
	EXPECT_EQ(0, pld_ioctl(self->fd, PLD_IOC_DOMAIN_TOKEN, &t));
	EXPECT_FALSE(pld_all_zero(&t, sizeof(t)));
	memcpy(j.token, t.out_token, sizeof(j.token));
	if (!geteuid()) {
		pid = pld_fork();
		if (!pid) {
			PLD_CHILD_CHECK(!syscall(SYS_setresuid, 65534, 65534, 65534));
			PLD_CHILD_CHECK(pld_ioctl(dev, PLD_IOC_DOMAIN_JOIN_TOKEN, &j) == -EPERM);
			_exit(0);
		}
		EXPECT_CHILD_OK(pid);
	}
	EXPECT_EQ(PLD_MEMBER_ABSENT, pld_member_state(self->fd, 2));
	EXPECT_EQ(0, pld_ioctl(dev, PLD_IOC_DOMAIN_JOIN_TOKEN, &j));
	EXPECT_EQ(PLD_MEMBER_ALIVE, pld_member_state(self->fd, 2));
	j.token[0] ^= 1;
	j.rank = 3;
	EXPECT_EQ(-ENOENT, pld_ioctl(dev, PLD_IOC_DOMAIN_JOIN_TOKEN, &j));
}

TEST_F(domain, poison_fails_joins_windows_and_notifies_and_the_first_reason_stays)
{
	int r = pld_join(self->fd, 0);

	ASSERT_EQ(0, pld_signal_window(r, 1, 4, NULL));
	EXPECT_EQ(-EINVAL, pld_poison(self->fd, 0x10000));
	EXPECT_EQ(0, pld_fdinfo(r, "poison"));
	EXPECT_EQ(0, pld_poison(self->fd, 5));
	EXPECT_EQ(0, pld_poison(r, 6));
	EXPECT_EQ(PLD_POISON_SET | 5, pld_fdinfo(r, "poison"));
	EXPECT_EQ(-ECANCELED, pld_join(self->fd, 1));
	EXPECT_EQ(-ECANCELED, pld_add(r, 1, 0, 0, 1));
	EXPECT_EQ(0, pld_value(r, 1, 0, 0));
	EXPECT_EQ(-ECANCELED, pld_wait_ge(r, 1, 0, 1, PLD_RANK_ANY, 0, PLD_DEADLINE_NEVER));
	EXPECT_EQ(0, pld_wait_ge(r, 1, 0, 0, PLD_RANK_ANY, 0, PLD_DEADLINE_NEVER)); /* satisfied */
}

/* B17: the poisoner never waits, and everybody asleep hears of it. */
TEST_F(domain, poison_wakes_sleepers_of_all_ranks)
{
	pid_t pid[3];
	int i;

	for (i = 0; i < 3; i++) {
		pid[i] = pld_fork();
		if (!pid[i]) {
			int r = pld_join(self->fd, i);

			PLD_CHILD_CHECK(!pld_signal_window(r, 1, 4, NULL));
			PLD_CHILD_CHECK(pld_wait_ge(r, 1, 0, 1, PLD_RANK_ANY, 0, PLD_DEADLINE_NEVER) == -ECANCELED);
			_exit(0);
		}
	}
	ASSERT_TRUE(PLD_WAIT_FOR(pld_fdinfo(self->fd, "waiters") == 3, 5000));
	EXPECT_EQ(0, pld_poison(self->fd, 1));
	for (i = 0; i < 3; i++)
		EXPECT_CHILD_OK(pid[i]);
}

static int end_absent(int fd, uint32_t rank, uint32_t state, int32_t status)
{
	struct pld_domain_member_end e = { .rank = rank, .state = state, .status = status };

	return pld_ioctl(fd, PLD_IOC_DOMAIN_MEMBER_END, &e);
}

/* A12: only a launcher knows of a process that ended before it joined. */
TEST_F(domain, a_launchers_word_ends_a_rank_that_never_joined)
{
	uint32_t ranks[] = { 0, 3, 2 };
	int r = pld_join(self->fd, 0), s = pld_subset(r, 1, 3, ranks);
	struct pld_status *page = pld_map(r, PLD_MMAP_STATUS, PLD_PAGE, PROT_READ);
	const struct pld_member *m;
	uint32_t events;

	ASSERT_NE(MAP_FAILED, page);
	m = (const struct pld_member *)((char *)page + PLD_STATUS_HEADER) + 3;
	events = page->events;
	ASSERT_EQ(0, pld_signal_window(r, 1, 1, NULL));
	ASSERT_EQ(0, pld_signal_window(s, 1, 1, NULL));
	EXPECT_EQ(-EINVAL, end_absent(self->fd, 4, PLD_MEMBER_EXITED, 0));
	EXPECT_EQ(-EINVAL, end_absent(self->fd, 3, PLD_MEMBER_FINALISED, 0));
	EXPECT_EQ(-EINVAL, end_absent(self->fd, 3, PLD_MEMBER_RELEASED, 0));
	EXPECT_EQ(-EINVAL, end_absent(self->fd, 3, PLD_MEMBER_EXITED, 256));
	EXPECT_EQ(-EINVAL, end_absent(self->fd, 3, PLD_MEMBER_EXITED, -1));
	EXPECT_EQ(-EINVAL, end_absent(self->fd, 3, PLD_MEMBER_KILLED, 0));
	EXPECT_EQ(-EINVAL, end_absent(self->fd, 3, PLD_MEMBER_KILLED, 128));
	EXPECT_EQ(-EEXIST, end_absent(self->fd, 0, PLD_MEMBER_EXITED, 0));
	EXPECT_EQ(-ENOTTY, end_absent(r, 3, PLD_MEMBER_EXITED, 0));
	EXPECT_EQ(events, page->events);
	EXPECT_EQ(PLD_MEMBER_ABSENT, pld_member_state(s, 1));

	EXPECT_EQ(0, end_absent(self->fd, 3, PLD_MEMBER_KILLED, 11));
	EXPECT_EQ(events + 1, page->events);
	EXPECT_EQ(1, page->joined);
	EXPECT_EQ(1, page->dead);
	EXPECT_EQ(3, page->first_dead);
	EXPECT_EQ(PLD_MEMBER_KILLED, m->state);
	EXPECT_EQ(11, m->status);
	EXPECT_EQ(0, m->pid);
	EXPECT_EQ(PLD_MEMBER_KILLED, pld_member_state(s, 1));
	EXPECT_EQ(-EOWNERDEAD, pld_wait_ge(r, 1, 0, 1, 3, 0, pld_now() + 10 * SEC));
	EXPECT_EQ(-EOWNERDEAD, pld_wait_ge(s, 1, 0, 1, 1, 0, pld_now() + 10 * SEC));
	EXPECT_EQ(-ESTALE, end_absent(self->fd, 3, PLD_MEMBER_EXITED, 0));
	EXPECT_EQ(-ESTALE, pld_join(self->fd, 3));
	EXPECT_EQ(0, pld_fdinfo(r, "poison"));
}

TEST_F(domain, a_launchers_word_wakes_who_waits_for_that_rank)
{
	pid_t pid = pld_fork();

	if (!pid) {
		int r = pld_join(self->fd, 0);

		PLD_CHILD_CHECK(!pld_signal_window(r, 1, 1, NULL));
		PLD_CHILD_CHECK(pld_wait_ge(r, 1, 0, 1, 2, 0, PLD_DEADLINE_NEVER) == -EOWNERDEAD);
		_exit(0);
	}
	ASSERT_TRUE(PLD_WAIT_FOR(pld_fdinfo(self->fd, "waiters") == 1, 5000));
	EXPECT_EQ(0, end_absent(self->fd, 2, PLD_MEMBER_EXITED, 1));
	EXPECT_CHILD_OK(pid);
}

TEST_F(domain, a_refused_join_tells_who_poisoned_and_why)
{
	struct pld_domain_join j = { .rank = 2, .out_fd = -2 };
	struct pld_domain_join_token jt = { .rank = 2, .out_fd = -2 };
	struct pld_domain_token t;
	int r = pld_join(self->fd, 1), dev = pld_open();

	ASSERT_EQ(0, pld_ioctl(self->fd, PLD_IOC_DOMAIN_TOKEN, &t));
	memcpy(jt.token, t.out_token, sizeof(jt.token));
	ASSERT_EQ(0, pld_poison(r, 0x1234));
	EXPECT_EQ(-ECANCELED, pld_ioctl(self->fd, PLD_IOC_DOMAIN_JOIN, &j));
	EXPECT_EQ(-2, j.out_fd);
	EXPECT_EQ(PLD_POISON_SET | 0x1234, j.out_poison);
	EXPECT_EQ(1, j.out_poison_rank);
	EXPECT_EQ(-ECANCELED, pld_ioctl(dev, PLD_IOC_DOMAIN_JOIN_TOKEN, &jt));
	EXPECT_EQ(-2, jt.out_fd);
	EXPECT_EQ(PLD_POISON_SET | 0x1234, jt.out_poison);
	EXPECT_EQ(1, jt.out_poison_rank);
}

static uint64_t info_id(int fd, uint32_t *out_nranks, uint32_t *out_rank)
{
	struct pld_info info;

	memset(&info, 0x5a, sizeof(info));
	info.flags = 0;
	info.device_id = 0;
	if (pld_ioctl(fd, PLD_IOC_GET_INFO, &info))
		return POISON;
	*out_nranks = info.out_nranks;
	*out_rank = info.out_rank;
	return info.out_domain_id;
}

#define PARAMETERS "/sys/module/pld/parameters/"

/* Write a module parameter; the value before, or ~0. */
static uint64_t set_parameter(const char *name, uint64_t value)
{
	char path[128];
	unsigned long long old = ~0ull;
	FILE *f;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	f = fopen(path, "r+e");
	if (!f)
		return ~0ull;
	if (fscanf(f, "%llu", &old) != 1)
		old = ~0ull;
	rewind(f);
	fprintf(f, "%" PRIu64 "\n", value);
	fclose(f);
	return old;
}

/* J9: what no resource limit counts is limited by the module, for each user apart. */
TEST_F(domain, a_user_may_have_so_many_domains)
{
	uint64_t before;
	pid_t pid;

	PLD_NEED_ROOT();
	before = set_parameter("user_domains", 3);
	ASSERT_NE(~0ull, before);
	pid = pld_fork();
	if (!pid) {
		struct pld_domain_create c = { .nranks = 2, .out_fd = -2 };
		uint32_t ranks[] = { 1, 0 };
		int dev = pld_open(), fd, r;

		PLD_CHILD_CHECK(!syscall(SYS_setresuid, 4244, 4244, 4244));
		PLD_CHILD_CHECK(!pld_ioctl(dev, PLD_IOC_DOMAIN_CREATE, &c));
		fd = c.out_fd;
		r = pld_join(fd, 0);
		PLD_CHILD_CHECK(pld_subset(r, 1, 2, ranks) >= 0);
		PLD_CHILD_CHECK(!pld_ioctl(dev, PLD_IOC_DOMAIN_CREATE, &c));
		PLD_CHILD_CHECK(pld_subset(r, 2, 2, ranks) == -ENOSPC);
		PLD_CHILD_CHECK(pld_ioctl(dev, PLD_IOC_DOMAIN_CREATE, &(struct pld_domain_create){ .nranks = 1 }) ==
				-ENOSPC);
		close(c.out_fd);
		PLD_CHILD_CHECK(pld_subset(r, 2, 2, ranks) >= 0);
		_exit(0);
	}
	EXPECT_CHILD_OK(pid);
	EXPECT_EQ(3, set_parameter("user_domains", before));
}

TEST_F(domain, a_user_may_have_so_much_memory_outside_memlock)
{
	uint64_t before;
	pid_t pid;

	PLD_NEED_ROOT();
	before = set_parameter("user_system_bytes", 64 * PLD_PAGE);
	ASSERT_NE(~0ull, before);
	pid = pld_fork();
	if (!pid) {
		const uint32_t id = PLD_WINDOW_ID_SYSTEM, f = PLD_WINDOW_F_SYSTEM;
		struct pld_domain_create c = { .nranks = 2 };
		int dev = pld_open(), r, other;

		PLD_CHILD_CHECK(!syscall(SYS_setresuid, 4245, 4245, 4245));
		PLD_CHILD_CHECK(!pld_ioctl(dev, PLD_IOC_DOMAIN_CREATE, &c));
		r = pld_join(c.out_fd, 0);
		PLD_CHILD_CHECK(!pld_ioctl(dev, PLD_IOC_DOMAIN_CREATE, &c));
		other = pld_join(c.out_fd, 0);
		PLD_CHILD_CHECK(pld_window(r, id, PLD_WINDOW_DATA, f, 33 * PLD_PAGE, NULL) == -ENOSPC);
		PLD_CHILD_CHECK(!pld_window(r, id, PLD_WINDOW_DATA, f, 16 * PLD_PAGE, NULL));
		PLD_CHILD_CHECK(!pld_window(other, id, PLD_WINDOW_DATA, f, 16 * PLD_PAGE, NULL));
		PLD_CHILD_CHECK(pld_window(other, id + 1, PLD_WINDOW_DATA, f, 1, NULL) == -ENOSPC);
		PLD_CHILD_CHECK(!pld_window_destroy(r, id));
		PLD_CHILD_CHECK(!pld_window(other, id + 1, PLD_WINDOW_DATA, f, 16 * PLD_PAGE, NULL));
		_exit(0);
	}
	EXPECT_CHILD_OK(pid);
	EXPECT_EQ(64 * PLD_PAGE, set_parameter("user_system_bytes", before));
}

TEST_F(domain, info_says_what_a_file_is)
{
	uint32_t ranks[] = { 3, 1 }, nranks, rank;
	int dev = pld_open(), r = pld_join(self->fd, 1), s = pld_subset(r, 1, 2, ranks);

	EXPECT_EQ(0, info_id(dev, &nranks, &rank));
	EXPECT_EQ(0, nranks);
	EXPECT_EQ(PLD_RANK_ANY, rank);
	EXPECT_EQ(pld_fdinfo(self->fd, "domain"), info_id(self->fd, &nranks, &rank));
	EXPECT_EQ(4, nranks);
	EXPECT_EQ(PLD_RANK_ANY, rank);
	EXPECT_EQ(pld_fdinfo(self->fd, "domain"), info_id(r, &nranks, &rank));
	EXPECT_EQ(4, nranks);
	EXPECT_EQ(1, rank);
	EXPECT_EQ(pld_fdinfo(s, "domain"), info_id(s, &nranks, &rank));
	EXPECT_NE(pld_fdinfo(self->fd, "domain"), info_id(s, &nranks, &rank));
	EXPECT_EQ(2, nranks);
	EXPECT_EQ(1, rank);
}

/* Holders of a rank file may look, whoever they are and although the rank has gone. */
static bool may_look_only(int fd, int32_t value)
{
	struct pld_ledger l = {};
	struct pld_verdict v = {};
	uint32_t nranks, rank;

	return info_id(fd, &nranks, &rank) != POISON && rank == 0 && pld_member_state(fd, 1) == PLD_MEMBER_ABSENT &&
	       !pld_ioctl(fd, PLD_IOC_LEDGER, &l) && pld_ioctl(fd, PLD_IOC_VERDICT, &v) == -ENOENT &&
	       pld_value(fd, 1, 0, 0) == value && pld_add(fd, 1, 0, 0, 1) == -ENOTCONN && pld_leave(fd) == -ENOTCONN &&
	       pld_poison(fd, 1) == -ENOTCONN && pld_window_destroy(fd, 1) == -ENOTCONN;
}

TEST_F(domain, every_holder_of_a_rank_file_may_look_and_nothing_else)
{
	int r = pld_join(self->fd, 0), r2 = pld_join(self->fd, 2), sock[2], fd;
	pid_t pid;

	ASSERT_EQ(0, pld_signal_window(r, 1, 1, NULL));
	ASSERT_EQ(0, pld_signal_window(r2, 1, 1, NULL));
	ASSERT_EQ(0, pld_add(r, 1, 0, 0, 5));
	pid = pld_fork();
	if (!pid) {
		PLD_CHILD_CHECK(may_look_only(r, 5));
		_exit(0);
	}
	EXPECT_CHILD_OK(pid);
	EXPECT_EQ(0, pld_leave(r));
	EXPECT_TRUE(may_look_only(r, 5));
	/* A descriptor from a process that has gone. */
	self->fd = (close(r2), close(r), close(self->fd), pld_domain_new(4));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid = pld_fork();
	if (!pid) {
		int mine = pld_join(self->fd, 0);

		PLD_CHILD_CHECK(!pld_send_fd(sock[1], mine));
		_exit(0);
	}
	fd = pld_recv_fd(sock[0]);
	EXPECT_CHILD_OK(pid);
	r2 = pld_join(self->fd, 2);
	ASSERT_EQ(0, pld_signal_window(r2, 1, 1, NULL));
	EXPECT_TRUE(may_look_only(fd, 0));
	EXPECT_EQ(PLD_MEMBER_EXITED, pld_member_state(fd, 0));
}

TEST_F(domain, member_tells_pid_status_and_run_state)
{
	struct pld_domain_member m = { .rank = 0 };
	int *ready = pld_shared(PLD_PAGE);
	pid_t pid = pld_fork();

	if (!pid) {
		int r = pld_join(self->fd, 0);

		PLD_CHILD_CHECK(r >= 0);
		__atomic_store_n(ready, 1, __ATOMIC_RELEASE);
		pause();
	}
	ASSERT_TRUE(PLD_WAIT_FOR(__atomic_load_n(ready, __ATOMIC_ACQUIRE), 5000));
	ASSERT_TRUE(PLD_WAIT_FOR(pld_proc_state(pid) == 'S', 5000));
	EXPECT_EQ(0, pld_ioctl(self->fd, PLD_IOC_DOMAIN_MEMBER, &m));
	EXPECT_EQ(pid, m.out_member.pid);
	EXPECT_EQ('S', m.out_run_state);
	kill(pid, SIGSTOP);
	ASSERT_TRUE(PLD_WAIT_FOR(pld_proc_state(pid) == 'T', 5000));
	EXPECT_EQ(0, pld_ioctl(self->fd, PLD_IOC_DOMAIN_MEMBER, &m));
	EXPECT_EQ('T', m.out_run_state);
	kill(pid, SIGKILL);
	EXPECT_EQ(SIGKILL, pld_reap(pid, 5000));
	EXPECT_EQ(0, pld_ioctl(self->fd, PLD_IOC_DOMAIN_MEMBER, &m));
	EXPECT_EQ(PLD_MEMBER_KILLED, m.out_member.state);
	EXPECT_EQ(SIGKILL, m.out_member.status);
	EXPECT_EQ(0, m.out_run_state);
	m.rank = 4;
	EXPECT_EQ(-EINVAL, pld_ioctl(self->fd, PLD_IOC_DOMAIN_MEMBER, &m));
}

TEST_HARNESS_MAIN
