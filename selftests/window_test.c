// SPDX-License-Identifier: GPL-2.0
/*
 * Windows: how they begin and end, zeroed memory, placement, and what mmap allows. An id such as C12 in a comment names
 * the report that a test answers. How much memory they may have is in window_limit_test.c.
 */
#include "pld_test_window.h"

static int window_info(int fd, uint32_t id, uint32_t rank, struct pld_window_info *i)
{
	memset(i, 0x5a, sizeof(*i));
	i->window_id = id;
	i->rank = rank;
	return pld_ioctl(fd, PLD_IOC_WINDOW_INFO, i);
}

TEST_F(window, create_refuses_what_makes_no_sense)
{
	struct pld_window_create c;
	int fd = self->r0;

	EXPECT_EQ(-EINVAL, pld_window(fd, 1, PLD_WINDOW_DATA, 0, 0, &c));
	EXPECT_EQ(-EINVAL, pld_window(fd, 1, 2, 0, PLD_PAGE, &c));
	EXPECT_EQ(-EINVAL, pld_window(fd, 1, PLD_WINDOW_SIGNAL, 0, 65, &c));
	EXPECT_EQ(-EINVAL, pld_window(fd, PLD_WINDOW_ID_SYSTEM, PLD_WINDOW_DATA, 0, PLD_PAGE, &c));
	EXPECT_EQ(-EINVAL, pld_window(fd, 1, PLD_WINDOW_DATA, PLD_WINDOW_F_SYSTEM, PLD_PAGE, &c));
	EXPECT_EQ(-EINVAL, pld_window(fd, PLD_WINDOW_ID_SYSTEM + PLD_SYSTEM_WINDOWS, PLD_WINDOW_DATA,
				      PLD_WINDOW_F_SYSTEM, PLD_PAGE, &c));
	EXPECT_EQ(-EOPNOTSUPP, pld_window(fd, 1, PLD_WINDOW_DATA, 1u << 31, PLD_PAGE, &c));
	EXPECT_EQ(-EOVERFLOW, pld_window(fd, 1, PLD_WINDOW_DATA, 0, ~0ull, &c));
	EXPECT_EQ(POISON, c.out_mmap_offset);
	EXPECT_EQ(0, pld_fdinfo(fd, "windows"));
}

TEST_F(window, attach_opens_what_is_equal_and_tells_what_is_there)
{
	struct pld_window_create a, b;

	EXPECT_EQ(0, data_window(self->r0, 7, 10000, &a));
	EXPECT_EQ(1, a.out_created);
	EXPECT_EQ(12288, a.out_stride);
	EXPECT_EQ(-EEXIST, data_window(self->r0, 7, 10000, &b));
	EXPECT_EQ(-EEXIST, pld_window(self->r1, 7, PLD_WINDOW_DATA, 0, 10000, &b));
	EXPECT_EQ(-EPROTO, data_window(self->r1, 7, 10001, &b));
	EXPECT_EQ(10000, b.out_other_bytes);
	EXPECT_EQ(0, b.out_other_tag);
	EXPECT_EQ(POISON, b.out_mmap_offset);
	EXPECT_EQ(-EPROTO, pld_window(self->r1, 7, PLD_WINDOW_DATA, PLD_WINDOW_F_ATTACH | PLD_WINDOW_F_OWNER_WRITES,
				      10000, &b));
	EXPECT_EQ(1, pld_fdinfo(self->r0, "opened"));
	EXPECT_EQ(0, pld_fdinfo(self->r1, "opened"));
	EXPECT_EQ(0, data_window(self->r1, 7, 10000, &b));
	EXPECT_EQ(0, b.out_created);
	EXPECT_EQ(a.out_mmap_offset, b.out_mmap_offset);
	EXPECT_EQ(a.out_generation, b.out_generation);
}

TEST_F(window, the_last_destroy_frees_the_id_and_generations_differ)
{
	struct pld_window_create a, b;

	EXPECT_EQ(-ENOENT, pld_window_destroy(self->r0, 3));
	ASSERT_EQ(0, data_window(self->r0, 3, PLD_PAGE, &a));
	EXPECT_EQ(-ENOENT, pld_window_destroy(self->r1, 3));
	ASSERT_EQ(0, data_window(self->r1, 3, PLD_PAGE, &b));
	EXPECT_EQ(0, pld_window_destroy(self->r0, 3));
	EXPECT_EQ(1, pld_fdinfo(self->r0, "windows"));
	EXPECT_EQ(0, pld_window_destroy(self->r1, 3));
	EXPECT_EQ(0, pld_fdinfo(self->r0, "windows"));
	EXPECT_EQ(0, pld_fdinfo(self->r0, "pages"));
	ASSERT_EQ(0, data_window(self->r0, 3, 2 * PLD_PAGE, &b));
	EXPECT_NE(a.out_generation, b.out_generation);
	EXPECT_EQ(1, b.out_created);
}

TEST_F(window, info_tells_what_create_told)
{
	struct pld_window_create c;
	struct pld_window_info i;

	ASSERT_EQ(0, pld_signal_window(self->r0, 3, 100, &c));
	EXPECT_EQ(-ENOENT, window_info(self->r1, 3, 0, &i));
	EXPECT_EQ(-EINVAL, window_info(self->r0, 3, 2, &i));
	ASSERT_EQ(0, window_info(self->r0, 3, 1, &i));
	EXPECT_EQ(PLD_WINDOW_SIGNAL, i.out_kind);
	EXPECT_EQ(6400, i.out_bytes);
	EXPECT_EQ(c.out_stride, i.out_stride);
	EXPECT_EQ(c.out_mmap_offset, i.out_mmap_offset);
	EXPECT_EQ(c.out_generation, i.out_generation);
	EXPECT_EQ(1, i.out_opened);
	EXPECT_EQ(PLD_PAGE, i.out_page_bytes);
}

TEST_F(window, ranks_see_each_others_stores)
{
	struct pld_window_create c;
	char *a, *b;

	ASSERT_EQ(0, data_window(self->r0, 1, PLD_PAGE, &c));
	ASSERT_EQ(0, data_window(self->r1, 1, PLD_PAGE, &c));
	a = pld_map(self->r0, c.out_mmap_offset, 2 * c.out_stride, PROT_READ | PROT_WRITE);
	b = pld_map(self->r1, c.out_mmap_offset + c.out_stride, c.out_stride, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, a);
	ASSERT_NE(MAP_FAILED, b);
	b[5] = 77;
	EXPECT_EQ(77, a[c.out_stride + 5]);
}

TEST_F(window, mmap_refuses_private_executable_foreign_and_outside)
{
	struct pld_window_create c;

	ASSERT_EQ(0, data_window(self->r0, 1, PLD_PAGE, &c));
	EXPECT_EQ(MAP_FAILED, mmap64(NULL, PLD_PAGE, PROT_READ, MAP_PRIVATE, self->r0, c.out_mmap_offset));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, pld_map(self->r0, c.out_mmap_offset, PLD_PAGE, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(MAP_FAILED, pld_map(self->r1, c.out_mmap_offset, PLD_PAGE, PROT_READ)); /* not opened by rank 1 */
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, pld_map(self->r0, c.out_mmap_offset, 3 * PLD_PAGE, PROT_READ));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, pld_map(self->r0, c.out_mmap_offset + 2 * PLD_PAGE, PLD_PAGE, PROT_READ));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, pld_map(self->r0, PLD_PAGE, PLD_PAGE, PROT_READ));
	EXPECT_EQ(EINVAL, errno);
}

/* M7: after a while one side sees no more of the other's updates. Here it is one page for all, whatever is done. */
TEST_F(window, fork_mprotect_and_mremap_keep_one_page_for_all)
{
	struct pld_window_create c;
	char *a, *b, *m;
	pid_t pid;

	ASSERT_EQ(0, data_window(self->r0, 1, 4 * PLD_PAGE, &c));
	ASSERT_EQ(0, data_window(self->r1, 1, 4 * PLD_PAGE, &c));
	a = pld_map(self->r0, c.out_mmap_offset, 8 * PLD_PAGE, PROT_READ | PROT_WRITE);
	b = pld_map(self->r1, c.out_mmap_offset, 8 * PLD_PAGE, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, a);
	ASSERT_NE(MAP_FAILED, b);
	EXPECT_EQ(-1, mprotect(a, PLD_PAGE, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mremap(a, 8 * PLD_PAGE, 9 * PLD_PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(MAP_FAILED, mremap(a, 0, PLD_PAGE, MREMAP_MAYMOVE));
	pid = pld_fork();
	if (!pid) {
		/* Not inherited: a store in the child cannot go to a copy, it faults. */
		PLD_CHILD_CHECK(msync(a, PLD_PAGE, MS_ASYNC) == -1 && errno == ENOMEM);
		_exit(0);
	}
	EXPECT_CHILD_OK(pid);
	a[0] = 1;
	EXPECT_EQ(0, mprotect(a + PLD_PAGE, PLD_PAGE, PROT_READ));
	EXPECT_EQ(0, mprotect(a + PLD_PAGE, PLD_PAGE, PROT_READ | PROT_WRITE));
	a[PLD_PAGE] = 2;
	m = mremap(a + 2 * PLD_PAGE, PLD_PAGE, PLD_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		   mmap(NULL, PLD_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	ASSERT_NE(MAP_FAILED, m);
	m[0] = 3;
	EXPECT_EQ(0, madvise(a + 3 * PLD_PAGE, PLD_PAGE, MADV_DONTNEED));
	a[3 * PLD_PAGE] = 4; /* entries that were dropped come back */
	EXPECT_EQ(1, b[0]);
	EXPECT_EQ(2, b[PLD_PAGE]);
	EXPECT_EQ(3, b[2 * PLD_PAGE]);
	EXPECT_EQ(4, b[3 * PLD_PAGE]);
}

TEST_F(window, owner_writes_protects_the_slabs_of_others)
{
	uint32_t flags = PLD_WINDOW_F_OWNER_WRITES | PLD_WINDOW_F_ATTACH;
	struct pld_window_create c;
	char *own, *all;

	ASSERT_EQ(0, pld_window(self->r0, 1, PLD_WINDOW_DATA, flags, PLD_PAGE, &c));
	ASSERT_EQ(0, pld_window(self->r1, 1, PLD_WINDOW_DATA, flags, PLD_PAGE, &c));
	EXPECT_EQ(MAP_FAILED, pld_map(self->r1, c.out_mmap_offset, 2 * PLD_PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, pld_map(self->r1, c.out_mmap_offset, PLD_PAGE, PROT_READ | PROT_WRITE));
	own = pld_map(self->r1, c.out_mmap_offset + c.out_stride, PLD_PAGE, PROT_READ | PROT_WRITE);
	all = pld_map(self->r1, c.out_mmap_offset, 2 * PLD_PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, own);
	ASSERT_NE(MAP_FAILED, all);
	own[0] = 9;
	EXPECT_EQ(9, all[c.out_stride]);
	EXPECT_EQ(-1, mprotect(all, PLD_PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(window, mapped_pages_outlive_destroy_and_the_rank)
{
	struct pld_window_create c;
	char *a;

	ASSERT_EQ(0, data_window(self->r0, 1, 4 * PLD_PAGE, &c));
	a = pld_map(self->r0, c.out_mmap_offset, 8 * PLD_PAGE, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, a);
	a[3] = 3;
	EXPECT_EQ(0, pld_window_destroy(self->r0, 1));
	EXPECT_EQ(0, pld_leave(self->r0));
	EXPECT_EQ(3, a[3]);
	EXPECT_EQ(0, touch_all(a, 8 * PLD_PAGE));
	EXPECT_EQ(0, madvise(a, 8 * PLD_PAGE, MADV_DONTNEED));
	EXPECT_EQ(0, touch_all(a, 8 * PLD_PAGE));
	EXPECT_EQ(3, a[3]);
}

/* E4, J5: a new window is zero although its pages were somebody's secret a moment ago. */
TEST_F_TIMEOUT(window, recycled_memory_is_zero_a_thousand_times, 90)
{
	uint64_t end = pld_now() + 60 * SEC; /* an instrumented kernel in an emulator does fewer */
	struct pld_window_create c;
	char *a;
	int i;

	for (i = 0; i < 1000 && pld_now() < end; i++) {
		ASSERT_EQ(0, data_window(self->r0, 1, 16 * PLD_PAGE, &c));
		a = pld_map(self->r0, c.out_mmap_offset, 2 * c.out_stride, PROT_READ | PROT_WRITE);
		ASSERT_NE(MAP_FAILED, a);
		ASSERT_TRUE(pld_all_zero(a, 2 * c.out_stride));
		memset(a, 0xa5, 2 * c.out_stride);
		munmap(a, 2 * c.out_stride);
		ASSERT_EQ(0, pld_window_destroy(self->r0, 1));
	}
	EXPECT_LE(50, i);
}

/* G1: each slab on its owner's node. */
TEST_F(window, slabs_lie_on_their_owners_nodes)
{
	struct pld_domain_member m = { .rank = 1 };
	uint32_t cpus[] = { 0, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) - 1 };
	struct pld_domain_create d = { .nranks = 2, .cpus = pld_ptr(cpus) };
	struct pld_window_create c;
	struct pld_window_info i;
	int dev = pld_open(), r;

	if (access("/sys/devices/system/node/node1", F_OK))
		PLD_SKIP("needs two NUMA nodes");
	ASSERT_EQ(0, pld_ioctl(dev, PLD_IOC_DOMAIN_CREATE, &d));
	r = pld_join(d.out_fd, 0);
	ASSERT_EQ(0, pld_ioctl(d.out_fd, PLD_IOC_DOMAIN_MEMBER, &m));
	EXPECT_EQ(1, m.out_member.node);
	ASSERT_EQ(0, data_window(r, 1, 1 << 20, &c));
	ASSERT_EQ(0, window_info(r, 1, 0, &i));
	EXPECT_EQ(0, i.out_node);
	EXPECT_EQ(256, i.out_node_pages);
	ASSERT_EQ(0, window_info(r, 1, 1, &i));
	EXPECT_EQ(1, i.out_node);
	EXPECT_EQ(256, i.out_node_pages);
	ASSERT_EQ(0, pld_window(r, 2, PLD_WINDOW_DATA, PLD_WINDOW_F_INTERLEAVE, 1 << 20, &c));
	ASSERT_EQ(0, window_info(r, 2, 0, &i));
	EXPECT_EQ(128, i.out_node_pages);
}

/* G3: everything is mapped at once. */
TEST_F_TIMEOUT(window, touching_a_mapping_takes_no_faults, 90)
{
	struct rusage before, after;
	struct pld_window_create c;
	char *a;

	ASSERT_EQ(0, data_window(self->r0, 1, 32 << 20, &c));
	a = pld_map(self->r0, c.out_mmap_offset, 2 * c.out_stride, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, a);
	getrusage(RUSAGE_SELF, &before);
	touch_all(a, 2 * c.out_stride);
	getrusage(RUSAGE_SELF, &after);
	EXPECT_GE(64, after.ru_minflt - before.ru_minflt);
	EXPECT_EQ(before.ru_majflt, after.ru_majflt);
}

/* G7: huge pages are a wish; the answer says what was got. */
TEST_F(window, huge_is_a_wish_and_huge_only_a_demand)
{
	struct pld_window_create c;

	EXPECT_EQ(0, pld_window(self->r0, 1, PLD_WINDOW_DATA, PLD_WINDOW_F_HUGE, 4 << 20, &c));
	EXPECT_EQ(PLD_PAGE, c.out_page_bytes);
	EXPECT_EQ(-EOPNOTSUPP, pld_window(self->r0, 2, PLD_WINDOW_DATA, PLD_WINDOW_F_HUGE_ONLY, 4 << 20, &c));
	EXPECT_EQ(1, pld_fdinfo(self->r0, "windows"));
}

/* The pages are ordinary ones for the rest of the kernel: read(2) into them, process_vm_readv, O_DIRECT. */
TEST_F(window, the_kernel_can_read_into_and_out_of_a_mapping)
{
	char path[] = "/tmp/pld-test-XXXXXX", *a, out[64];
	struct iovec local = { out, sizeof(out) }, remote;
	struct pld_window_create c;
	int fd, p[2], direct;

	ASSERT_EQ(0, data_window(self->r0, 1, PLD_PAGE, &c));
	a = pld_map(self->r0, c.out_mmap_offset, c.out_stride, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, a);
	ASSERT_EQ(0, pipe(p));
	EXPECT_EQ(5, write(p[1], "hello", 5));
	EXPECT_EQ(5, read(p[0], a, 5));
	remote.iov_base = a;
	remote.iov_len = sizeof(out);
	memset(out, 0x5a, sizeof(out));
	EXPECT_EQ(sizeof(out), syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0));
	EXPECT_EQ(0, memcmp(out, "hello", 6));
	fd = mkstemp(path);
	ASSERT_LE(0, fd);
	memset(a, 'x', PLD_PAGE);
	EXPECT_EQ(PLD_PAGE, write(fd, a, PLD_PAGE));
	direct = open(path, O_RDONLY | O_DIRECT);
	if (direct >= 0) {
		memset(a, 0, PLD_PAGE);
		EXPECT_EQ(PLD_PAGE, read(direct, a, PLD_PAGE));
		EXPECT_EQ('x', a[100]);
	}
	unlink(path);
}

/* L10: a debugger reads window memory by /proc/PID/mem and ptrace, which is what gdb does. */
TEST_F_TIMEOUT(window, a_debugger_reads_window_memory, 200)
{
	int *ready = pld_shared(PLD_PAGE), fd;
	char path[64], out[8] = {};
	pid_t pid = pld_fork();
	uint64_t *where = (uint64_t *)(ready + 2);

	if (!pid) {
		struct pld_window_create c;
		int r, dom = pld_domain_new(1);
		char *a;

		r = pld_join(dom, 0);
		PLD_CHILD_CHECK(!data_window(r, 1, PLD_PAGE, &c));
		a = pld_map(r, c.out_mmap_offset, PLD_PAGE, PROT_READ | PROT_WRITE);
		PLD_CHILD_CHECK(a != MAP_FAILED);
		strcpy(a, "secret");
		*where = pld_ptr(a);
		__atomic_store_n(ready, 1, __ATOMIC_RELEASE);
		pause();
	}
	ASSERT_TRUE(PLD_WAIT_FOR(__atomic_load_n(ready, __ATOMIC_ACQUIRE), 5000));
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_EQ(7, pread64(fd, out, 7, *where));
	EXPECT_EQ(0, strcmp(out, "secret"));
	if (!system("command -v gdb >/dev/null 2>&1")) {
		char cmd[256];

		snprintf(cmd, sizeof(cmd), "gdb -batch -nx -p %d -ex 'x/s 0x%llx' 2>/dev/null | grep -q secret", pid,
			 (unsigned long long)*where);
		EXPECT_EQ(0, system(cmd));
	}
	kill(pid, SIGKILL);
	pld_reap(pid, 5000);
}

static void *touch_thread(void *arg)
{
	return (void *)(long)touch_all(arg, 64 * PLD_PAGE);
}

/* M3: two threads fault the same page at once, the second insertion fails, and the kernel with it. */
TEST_F_TIMEOUT(window, sixteen_threads_may_fault_the_same_pages, 90)
{
	uint64_t end = pld_now() + 40 * SEC;
	struct pld_window_create c;
	pthread_t t[16];
	char *a;
	int i, k;

	ASSERT_EQ(0, data_window(self->r0, 1, 32 * PLD_PAGE, &c));
	a = pld_map(self->r0, c.out_mmap_offset, 64 * PLD_PAGE, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, a);
	for (i = 0; i < 1000 && pld_now() < end; i++) {
		madvise(a, 64 * PLD_PAGE, MADV_DONTNEED);
		for (k = 0; k < 16; k++)
			ASSERT_EQ(0, pthread_create(&t[k], NULL, touch_thread, a));
		for (k = 0; k < 16; k++)
			pthread_join(t[k], NULL);
	}
}

static int storm_dom;

static void *storm_thread(void *arg)
{
	int r = *(int *)arg, n = 0;
	uint64_t end = pld_now() + 3 * SEC;
	struct pld_window_create c;
	char *a;

	while (pld_now() < end) {
		uint32_t id = n++ % 3;

		if (pld_signal_window(r, id, 64, &c))
			c.out_mmap_offset = 16 << 20;
		a = pld_map(r, c.out_mmap_offset, 2 * PLD_PAGE, PROT_READ | PROT_WRITE);
		pld_wait_ge(r, id, 0, 1, PLD_RANK_ANY, 0, pld_now() + MSEC);
		pld_add(r, id, 0, 0, 1);
		pld_window_destroy(r, id);
		if (a != MAP_FAILED)
			munmap(a, 2 * PLD_PAGE);
	}
	return NULL;
}

/*
 * M4: detach and exit lock the same two things in opposite order. Map, unmap, destroy, wait and exit at once; lockdep
 * of the debug kernel watches. A round takes 3 s; PLD_STORM_ROUNDS sets their number.
 */
TEST_F_TIMEOUT(window, a_storm_of_map_destroy_wait_and_exit_ends_clean, 280)
{
	int rounds = getenv("PLD_STORM_ROUNDS") ? atoi(getenv("PLD_STORM_ROUNDS")) : 2;
	struct pld_counts before;
	pid_t pid[2];
	int round, i;

	PLD_NEED_COUNTERS();
	before = pld_counts_now();
	for (round = 0; round < rounds; round++) {
		storm_dom = pld_domain_new(2);
		for (i = 0; i < 2; i++) {
			pid[i] = pld_fork();
			if (!pid[i]) {
				int r = pld_join(storm_dom, i), k;
				pthread_t t[3];

				for (k = 0; k < 3; k++)
					pthread_create(&t[k], NULL, storm_thread, &r);
				if (i) { /* one leaves in order, one in the middle of it */
					nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
					if (round % 2)
						kill(getpid(), SIGKILL);
					_exit(0);
				}
				for (k = 0; k < 3; k++)
					pthread_join(t[k], NULL);
				_exit(0);
			}
		}
		EXPECT_EQ(0, pld_reap(pid[0], 20000));
		EXPECT_EQ(round % 2 ? SIGKILL : 0, pld_reap(pid[1], 20000));
		close(storm_dom);
		ASSERT_TRUE(PLD_WAIT_FOR(pld_counts_are(&before), 5000)) TH_LOG("round %d", round);
	}
}

/* C11: who may not open the device is told by an ordinary errno. */
TEST(the_device_is_closed_to_other_users)
{
	struct stat st;
	pid_t pid;

	PLD_NEED_DEVICE();
	PLD_NEED_ROOT();
	ASSERT_EQ(0, stat("/dev/pld", &st));
	EXPECT_EQ(0660, st.st_mode & 0777);
	pid = pld_fork();
	if (!pid) {
		PLD_CHILD_CHECK(!syscall(SYS_setgroups, 0, NULL) && !syscall(SYS_setresgid, 65534, 65534, 65534));
		PLD_CHILD_CHECK(!syscall(SYS_setresuid, 65534, 65534, 65534));
		PLD_CHILD_CHECK(pld_open() == -1 && errno == EACCES);
		_exit(0);
	}
	EXPECT_CHILD_OK(pid);
}

TEST_HARNESS_MAIN
