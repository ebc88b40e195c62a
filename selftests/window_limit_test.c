// SPDX-License-Identifier: GPL-2.0
/*
 * How much memory windows may have and who pays: sizes, memory in pieces, the caps, RLIMIT_MEMLOCK, cgroups. An id such
 * as C12 in a comment names the report that a test answers.
 */
#include "pld_test_window.h"

TEST_F(window, limits_stay_charged_while_pages_are_mapped)
{
	struct pld_window_create c;
	uint64_t before;
	char *a;

	PLD_NEED_COUNTERS();
	before = pld_counter("pages");
	ASSERT_EQ(0, data_window(self->r0, 1, 16 * PLD_PAGE, &c));
	EXPECT_EQ(before + 32, pld_counter("pages"));
	a = pld_map(self->r0, c.out_mmap_offset, 2 * PLD_PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, a);
	EXPECT_EQ(0, pld_window_destroy(self->r0, 1));
	EXPECT_EQ(before + 32, pld_counter("pages"));
	EXPECT_EQ(0, munmap(a, PLD_PAGE));
	EXPECT_EQ(before + 32, pld_counter("pages"));
	EXPECT_EQ(0, munmap(a + PLD_PAGE, PLD_PAGE));
	EXPECT_EQ(before, pld_counter("pages"));
}

/* Create, touch all, destroy: by a domain of @nranks. */
static int use_window(uint32_t nranks, uint64_t bytes)
{
	int dom = pld_domain_new(nranks), r = pld_join(dom, 0), ret;
	struct pld_window_create c;
	char *a;

	ret = data_window(r, 1, bytes, &c);
	if (!ret) {
		a = pld_map(r, c.out_mmap_offset, nranks * c.out_stride, PROT_READ | PROT_WRITE);
		ret = a == MAP_FAILED ? -errno : touch_all(a, nranks * c.out_stride);
		if (a != MAP_FAILED)
			munmap(a, nranks * c.out_stride);
	}
	close(r);
	close(dom);
	return ret;
}

/* C10, C2: windows over 4 MiB, over 130 MiB, of 1 GiB: memory need not be in one piece; what is granted is there. */
TEST_F_TIMEOUT(window, sizes_from_one_page_to_a_gibibyte_work, 150)
{
	static const uint64_t mib[] = { 1, 4, 5, 130, 1024 };
	uint64_t end = pld_now() + 60 * SEC;
	struct pld_info info = {};
	unsigned int i;

	ASSERT_EQ(0, pld_ioctl(self->r0, PLD_IOC_GET_INFO, &info));
	for (i = 0; i < sizeof(mib) / sizeof(mib[0]) && pld_now() < end; i++) {
		uint32_t nranks = info.out_total_bytes_left < 2 * (mib[i] << 20) ? 1 : 2;

		if (info.out_total_bytes_left < mib[i] << 20)
			break;
		EXPECT_EQ(0, use_window(nranks, mib[i] << 20)) TH_LOG("%u MiB", (unsigned int)mib[i]);
	}
	EXPECT_LE(4, i);
}

static int parameter_write(const char *text)
{
	int fd = open("/sys/module/pld/parameters/max_bytes", O_WRONLY), ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
	close(fd);
	return ret;
}

/* Free memory in blocks of 2 MiB and more. */
static uint64_t whole_blocks(void)
{
	uint64_t bytes = 0, n;
	char line[512], *p;
	FILE *f = fopen("/proc/buddyinfo", "r");
	int order;

	while (f && fgets(line, sizeof(line), f)) {
		p = strstr(line, "zone");
		p = p ? strpbrk(p + 5, " ") : NULL;
		while (p && *p == ' ')
			p++;
		/* Words of the line: the zone's name, then one number an order. */
		for (order = 0; p && *p >= '0' && *p <= '9'; order++) {
			n = strtoull(p, &p, 10);
			if (order >= 9)
				bytes += n << (order + 12);
			while (*p == ' ')
				p++;
		}
	}
	if (f)
		fclose(f);
	return bytes;
}

/*
 * C10: the same on a machine whose memory is in pieces, with neighbours that nobody can move: windows took all of it,
 * then every other one was closed.
 */
TEST_F_TIMEOUT(window, memory_in_pieces_is_enough, 300)
{
	const uint64_t piece = 64 << 10, left = 64 << 20, want = 130 << 20;
	uint64_t whole, bytes, end = pld_now() + 45 * SEC; /* closing them takes longer on an instrumented kernel */
	int dom, r, ret;
	uint32_t n, i;

	PLD_NEED_ROOT();
	bytes = pld_key_of("/proc/meminfo", "MemFree") * 1024;
	if (bytes < left + 6 * want)
		PLD_SKIP("needs 850 MiB of free memory");
	if (parameter_write("18446744073709551615"))
		PLD_SKIP("the module's parameter cannot be set here");
	dom = pld_domain_new(1);
	r = pld_join(dom, 0);
	for (n = 0; n < (bytes - left) / piece && n <= PLD_WINDOW_ID_MAX && pld_now() < end; n++)
		if (pld_window(r, n, PLD_WINDOW_DATA, 0, piece, NULL))
			break;
	for (i = 0; i < n; i += 2)
		pld_window_destroy(r, i);
	whole = whole_blocks();
	ret = use_window(2, want);
	close(r);
	close(dom);
	EXPECT_EQ(0, parameter_write("0"));
	if (whole >= 2 * want)
		PLD_SKIP("%u MiB are free in whole blocks: the memory could not be broken", (unsigned int)(whole >> 20));
	EXPECT_EQ(0, ret);
}

/* C12: mappings are split until vm.max_map_count is reached. Here one a window, five thousand of them. */
TEST_F_TIMEOUT(window, five_thousand_windows_cost_one_mapping_each, 90)
{
	uint64_t end = pld_now() + 60 * SEC; /* an instrumented kernel in an emulator does fewer */
	struct pld_window_create c;
	char line[512];
	uint32_t i;
	int n = 0;
	FILE *f;

	for (i = 0; i < 5000 && pld_now() < end; i++) {
		ASSERT_EQ(0, data_window(self->r0, i, PLD_PAGE, &c));
		ASSERT_NE(MAP_FAILED, pld_map(self->r0, c.out_mmap_offset, 2 * PLD_PAGE, PROT_READ | PROT_WRITE));
	}
	f = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), f))
		n += !!strstr(line, "[pld-rank]");
	fclose(f);
	EXPECT_LE(500, i);
	EXPECT_GE(i, n);
	EXPECT_EQ(i, pld_fdinfo(self->r0, "windows"));
}

/* C13: over 70 % of the memory, and the OOM killer comes. Here it is refused at once. */
TEST_F(window, twice_the_memory_of_the_machine_is_refused_at_once)
{
	uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * PLD_PAGE, start = pld_now();
	struct pld_window_create c;

	EXPECT_EQ(-ENOSPC, data_window(self->r0, 1, ram, &c));
	EXPECT_GT(SEC, pld_now() - start);
	EXPECT_EQ(0, pld_fdinfo(self->r0, "windows"));
}

/* C13: and the share that windows may have can be set. */
TEST_F(window, the_cap_of_all_windows_can_be_set)
{
	struct pld_window_create c;
	struct pld_info info = {};
	char text[32];

	PLD_NEED_ROOT();
	PLD_NEED_COUNTERS();
	snprintf(text, sizeof(text), "%llu", (unsigned long long)((pld_counter("pages") + 32) * PLD_PAGE));
	if (parameter_write(text))
		PLD_SKIP("the module's parameter cannot be set here");
	EXPECT_EQ(-ENOSPC, data_window(self->r0, 1, 17 * PLD_PAGE, &c));
	EXPECT_EQ(0, data_window(self->r0, 1, 16 * PLD_PAGE, &c));
	EXPECT_EQ(0, pld_ioctl(self->r0, PLD_IOC_GET_INFO, &info));
	EXPECT_EQ(0, info.out_total_bytes_left);
	EXPECT_EQ(-ENOSPC, data_window(self->r0, 2, PLD_PAGE, &c));
	EXPECT_EQ(0, parameter_write("0"));
	EXPECT_EQ(0, data_window(self->r0, 2, PLD_PAGE, &c));
}

/* C5: what the query says can be had, a page more cannot. */
TEST_F(window, the_limit_that_info_tells_is_exact)
{
	struct rlimit lim = { 64 * PLD_PAGE, 64 * PLD_PAGE };
	struct pld_window_create c;
	struct pld_info info = {};
	pid_t pid;

	PLD_NEED_ROOT();
	ASSERT_EQ(0, pld_ioctl(self->r0, PLD_IOC_GET_INFO, &info));
	EXPECT_EQ(-ENOSPC, data_window(self->r0, 1, info.out_total_bytes_left / 2 + PLD_PAGE, &c));
	pid = pld_fork();
	if (!pid) {
		int dom = pld_domain_new(2), r;

		setrlimit(RLIMIT_MEMLOCK, &lim);
		PLD_CHILD_CHECK(!syscall(SYS_setresuid, 4242, 4242, 4242));
		r = pld_join(dom, 0);
		PLD_CHILD_CHECK(!pld_ioctl(r, PLD_IOC_GET_INFO, &info));
		PLD_CHILD_CHECK(info.out_memlock_bytes_left == 64 * PLD_PAGE);
		PLD_CHILD_CHECK(data_window(r, 1, 33 * PLD_PAGE, &c) == -EPERM);
		PLD_CHILD_CHECK(data_window(r, 1, 32 * PLD_PAGE, &c) == 0);
		PLD_CHILD_CHECK(data_window(r, 2, PLD_PAGE, &c) == -EPERM);
		PLD_CHILD_CHECK(!pld_ioctl(r, PLD_IOC_GET_INFO, &info) && !info.out_memlock_bytes_left);
		/* Library windows stand beside the limit, within a cap of their own. */
		PLD_CHILD_CHECK(pld_window(r, PLD_WINDOW_ID_SYSTEM, PLD_WINDOW_DATA, PLD_WINDOW_F_SYSTEM,
					   PLD_SYSTEM_BYTES_MAX, &c) == 0);
		PLD_CHILD_CHECK(pld_window(r, PLD_WINDOW_ID_SYSTEM + 1, PLD_WINDOW_DATA, PLD_WINDOW_F_SYSTEM,
					   PLD_PAGE, &c) == -ENOSPC);
		PLD_CHILD_CHECK(!pld_window_destroy(r, PLD_WINDOW_ID_SYSTEM));
		PLD_CHILD_CHECK(pld_window(r, PLD_WINDOW_ID_SYSTEM + 1, PLD_WINDOW_DATA, PLD_WINDOW_F_SYSTEM,
					   PLD_PAGE, &c) == 0);
		PLD_CHILD_CHECK(!pld_window_destroy(r, 1));
		PLD_CHILD_CHECK(data_window(r, 3, 32 * PLD_PAGE, &c) == 0);
		_exit(0);
	}
	EXPECT_CHILD_OK(pid);
}

/* The charge belongs to the creator's user, whoever lets go last. */
TEST_F(window, memlock_charge_is_undone_by_another_process)
{
	struct rlimit lim = { 64 * PLD_PAGE, 64 * PLD_PAGE };
	int *state = pld_shared(PLD_PAGE), dom = pld_domain_new(2);
	struct pld_window_create c;
	pid_t creator;
	int r1;

	PLD_NEED_ROOT();
	creator = pld_fork();
	if (!creator) {
		int r = pld_join(dom, 0);

		setrlimit(RLIMIT_MEMLOCK, &lim);
		PLD_CHILD_CHECK(!syscall(SYS_setresuid, 4243, 4243, 4243));
		PLD_CHILD_CHECK(!data_window(r, 1, 32 * PLD_PAGE, &c));
		__atomic_store_n(state, 1, __ATOMIC_RELEASE);
		pause();
	}
	ASSERT_TRUE(PLD_WAIT_FOR(__atomic_load_n(state, __ATOMIC_ACQUIRE), 5000));
	r1 = pld_join(dom, 1);
	ASSERT_EQ(0, data_window(r1, 1, 32 * PLD_PAGE, &c));
	kill(creator, SIGKILL);
	EXPECT_EQ(SIGKILL, pld_reap(creator, 5000));
	EXPECT_EQ(0, pld_window_destroy(r1, 1));
	creator = pld_fork();
	if (!creator) {
		struct pld_info info = {};
		int dev;

		setrlimit(RLIMIT_MEMLOCK, &lim);
		dev = pld_open();
		PLD_CHILD_CHECK(!syscall(SYS_setresuid, 4243, 4243, 4243));
		PLD_CHILD_CHECK(!pld_ioctl(dev, PLD_IOC_GET_INFO, &info));
		PLD_CHILD_CHECK(info.out_memlock_bytes_left == 64 * PLD_PAGE);
		_exit(0);
	}
	EXPECT_CHILD_OK(creator);
}

static int cgroup_write(const char *group, const char *file, const char *text)
{
	char path[256];
	int fd, ret;

	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/%s", group, file);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
	close(fd);
	return ret;
}

static uint64_t cgroup_current(const char *group)
{
	char path[256];
	unsigned long long v = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/memory.current", group);
	f = fopen(path, "r");
	if (f) {
		if (fscanf(f, "%llu", &v) != 1)
			v = 0;
		fclose(f);
	}
	return v;
}

static int cgroup_make(const char *group, const char *max)
{
	char path[256];

	if (access("/sys/fs/cgroup/cgroup.controllers", R_OK) && mount("none", "/sys/fs/cgroup", "cgroup2", 0, NULL))
		return -errno;
	cgroup_write("", "cgroup.subtree_control", "+memory");
	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", group);
	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	return cgroup_write(group, "memory.max", max);
}

/* C7: the memory is charged, and a full group is refused rather than killed. */
TEST_F_TIMEOUT(window, a_full_memory_cgroup_refuses_the_window, 90)
{
	struct pld_window_create c;
	pid_t pid;

	PLD_NEED_ROOT();
	if (cgroup_make("pld-a", "67108864"))
		PLD_SKIP("needs cgroup2 with the memory controller");
	pid = pld_fork();
	if (!pid) {
		int dom = pld_domain_new(1), r = pld_join(dom, 0);
		uint64_t before;

		PLD_CHILD_CHECK(!cgroup_write("pld-a", "cgroup.procs", "0"));
		PLD_CHILD_CHECK(data_window(r, 1, 128 << 20, &c) == -ENOMEM);
		before = cgroup_current("pld-a");
		PLD_CHILD_CHECK(!data_window(r, 2, 32 << 20, &c));
		PLD_CHILD_CHECK(cgroup_current("pld-a") >= before + (30 << 20));
		PLD_CHILD_CHECK(pld_fdinfo(r, "windows") == 1);
		_exit(0);
	}
	EXPECT_CHILD_OK(pid);
	EXPECT_TRUE(PLD_WAIT_FOR(cgroup_current("pld-a") < (8 << 20), 10000));
	rmdir("/sys/fs/cgroup/pld-a");
}

/* C8: the creator pays, not who touches; the charge goes when the last mapping goes. */
TEST_F_TIMEOUT(window, the_creators_cgroup_pays_until_the_last_unmap, 90)
{
	int *state = pld_shared(PLD_PAGE), dom = pld_domain_new(2);
	struct pld_window_create c;
	pid_t creator, peer;

	PLD_NEED_ROOT();
	if (cgroup_make("pld-a", "max") || cgroup_make("pld-b", "max"))
		PLD_SKIP("needs cgroup2 with the memory controller");
	creator = pld_fork();
	if (!creator) {
		int r = pld_join(dom, 0);

		PLD_CHILD_CHECK(!cgroup_write("pld-a", "cgroup.procs", "0"));
		PLD_CHILD_CHECK(!data_window(r, 1, 16 << 20, &c));
		__atomic_store_n(state, 1, __ATOMIC_RELEASE);
		pause();
	}
	ASSERT_TRUE(PLD_WAIT_FOR(__atomic_load_n(state, __ATOMIC_ACQUIRE) == 1, 5000));
	peer = pld_fork();
	if (!peer) {
		int r = pld_join(dom, 1);
		char *a;

		PLD_CHILD_CHECK(!cgroup_write("pld-b", "cgroup.procs", "0"));
		PLD_CHILD_CHECK(!data_window(r, 1, 16 << 20, &c));
		a = pld_map(r, c.out_mmap_offset, 32 << 20, PROT_READ | PROT_WRITE);
		PLD_CHILD_CHECK(a != MAP_FAILED);
		touch_all(a, 32 << 20);
		__atomic_store_n(state, 2, __ATOMIC_RELEASE);
		pause();
	}
	ASSERT_TRUE(PLD_WAIT_FOR(__atomic_load_n(state, __ATOMIC_ACQUIRE) == 2, 5000));
	EXPECT_LE(30 << 20, cgroup_current("pld-a"));
	EXPECT_GT(8 << 20, cgroup_current("pld-b"));
	kill(creator, SIGKILL);
	pld_reap(creator, 5000);
	EXPECT_LE(30 << 20, cgroup_current("pld-a"));
	kill(peer, SIGKILL);
	pld_reap(peer, 5000);
	EXPECT_TRUE(PLD_WAIT_FOR(cgroup_current("pld-a") < (8 << 20), 10000));
	rmdir("/sys/fs/cgroup/pld-a");
	rmdir("/sys/fs/cgroup/pld-b");
}

TEST_HARNESS_MAIN
