// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: how much memory, how large, how many. What is granted is there; what cannot be had is refused when it
 * is asked for, with numbers, and nobody is killed for it; sizes are counted in 64 bits everywhere.
 */
#include "pldk_test.h"

#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

static bool is_all(const void *data, unsigned char value, size_t n)
{
	const unsigned char *p = data;

	return !n || (p[0] == value && !memcmp(p, p + 1, n - 1));
}

static sigjmp_buf bus_jump;

static void on_bus(int nr)
{
	siglongjmp(bus_jump, nr);
}

/* C2: allocation "succeeds", the first write gives SIGBUS */
RANK(write_all_that_was_granted)
{
	const size_t step = 1 << 20;
	struct sigaction action = { .sa_handler = on_bus };
	struct pldk_window *windows[512];
	static int n; /* static: its value must survive siglongjmp() */
	int ret = 0, first;

	n = 0;
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	while (n < (pt_scale() < 100 ? 24 : 200)) {
		struct pldk_window_options options = PLDK_WINDOW_OPTIONS_INIT;

		options.timeout_ns = PT_LONG;
		ret = pldk_window_create(world, step, &options, &windows[n]);
		if (ret)
			break;
		n++;
	}
	EXPECT_TRUE(ret == 0 || ret == -ENOMEM || ret == -EPERM || ret == -ENOSPC)
	TH_LOG("%d: %s", ret, pldk_last_error());
	if (ret == -EPERM)
		EXPECT_SAYS("RLIMIT_MEMLOCK|memlock", "ulimit|raise|limits.conf|CAP_IPC_LOCK");
	first = sigsetjmp(bus_jump, 1);
	ASSERT_EQ(0, first) TH_LOG("signal %d on a granted window", first);
	for (int i = 0; i < n; i++)
		memset(pldk_window_base(windows[i]), 1 + rank, step);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int i = 0; i < n; i++) {
		ASSERT_TRUE(is_all(pldk_window_base(windows[i]), 1 + rank, step));
	}
	(void)size;
}

TEST(every_granted_byte_can_be_written)
{
	struct rlimit limit = { 64 << 20, 64 << 20 };

	setrlimit(RLIMIT_MEMLOCK, &limit);
	run_ranks(2, write_all_that_was_granted, NULL);
}

/* Reserving more than a page in a file fails from now on, as it does when there is no memory. Giving it back works. */
static int refuse_memory(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 4096, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(filter), .filter = filter };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

RANK(be_refused_memory)
{
	struct pldk_window *window = pt_window(_metadata, world, 4096);

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	ASSERT_EQ(0, refuse_memory());
	window = PT_POISON_PTR;
	EXPECT_RET(-ENOMEM, pldk_window_create(world, 1 << 20, NULL, &window));
	EXPECT_SAYS("no memory", "bytes asked");
	EXPECT_EQ(PT_POISON_PTR, window);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)rank;
	(void)size;
}

/* C2: memory is reserved when the window is made, and that it could not be is an error there, on all ranks */
TEST(a_window_whose_memory_cannot_be_reserved_is_not_made)
{
	SKIP_ON_DEV("the kernel reserves the memory");
	run_ranks(2, be_refused_memory, NULL);
}

/*
 * A memory cgroup of one's own
 */

struct group {
	char dir[512];
	bool is_v1;
};

static bool write_file(const char *dir, const char *name, const char *text)
{
	char path[600];
	bool done;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

/* Make a group below the own one, of either version. False if that cannot be done here. */
static bool make_group(struct group *group, long mib)
{
	char text[4096], *line, limit[32];

	pt_slurp("/proc/self/cgroup", text, sizeof(text));
	line = strstr(text, ":memory:/");
	group->is_v1 = line;
	line = line ? line + strlen(":memory:") : strstr(text, "0::/") ? strstr(text, "0::/") + strlen("0::") : NULL;
	if (!line)
		return false;
	line[strcspn(line, "\n")] = 0;
	snprintf(limit, sizeof(limit), "%ldM", mib);
	/* The path may be one of another namespace: then the root is what is to be had. */
	for (int i = 0; i < 2; i++) {
		snprintf(group->dir, sizeof(group->dir), "/sys/fs/cgroup%s%.400s/pldk_test_%d",
			 group->is_v1 ? "/memory" : "", i ? "" : line, getpid());
		if (mkdir(group->dir, 0755))
			continue;
		if (write_file(group->dir, group->is_v1 ? "memory.limit_in_bytes" : "memory.max", limit)) {
			write_file(group->dir, group->is_v1 ? "memory.memsw.limit_in_bytes" : "memory.swap.max",
				   group->is_v1 ? limit : "0");
			return true;
		}
		rmdir(group->dir);
	}
	return false;
}

/* Run it in a group of 64 MiB, which is gone afterwards. */
#define IN_GROUP(body)                                                                                                 \
	do {                                                                                                           \
		struct group group_;                                                                                   \
		if (!make_group(&group_, 64))                                                                          \
			SKIP(return, "no memory cgroup can be made here");                                             \
		in_child(body, &group_);                                                                               \
		EXPECT_TRUE(pt_until(!rmdir(group_.dir), 5000));                                                       \
	} while (0)

CHILD(fill_a_group)
{
	const struct group *group = arg;
	struct pldk_window *windows[80], *window = PT_POISON_PTR;
	struct pldk_domain *world = NULL;
	int64_t ret = 0, start;
	int fd = -1, n = 0;

	ASSERT_TRUE(write_file(group->dir, "cgroup.procs", "0"));
	ASSERT_OK(pldk_world_create(1, NULL, &fd));
	ASSERT_OK(pldk_world_join(fd, 0, PT_LONG, &world));
	start = pt_now();
	EXPECT_RET(-ENOMEM, pldk_window_create(world, 128 << 20, NULL, &window));
	EXPECT_SAYS("cgroup", "134217728");
	EXPECT_LT(pt_ms_since(start), pt_slow_ms(1000));
	EXPECT_EQ(PT_POISON_PTR, window);
	/* Little by little as well: no step is so small that it may end in the OOM killer. */
	while (n < 80 && !ret) {
		ret = pldk_window_create(world, 1 << 20, NULL, &windows[n]);
		n += !ret;
	}
	EXPECT_EQ(-ENOMEM, ret) TH_LOG("%s", pldk_last_error());
	EXPECT_SAYS("cgroup");
	EXPECT_GE(n, 32);
	EXPECT_LT(n, 64);
	for (int i = 0; i < n; i++)
		memset(pldk_window_base(windows[i]), 1, 1 << 20);
	for (int i = 0; i < n; i++)
		EXPECT_OK(pldk_window_destroy(windows[i]));
	/* What was given back can be had again. */
	ASSERT_OK(pldk_window_create(world, (size_t)(n - 8) << 20, NULL, &window));
	memset(pldk_window_base(window), 1, (size_t)(n - 8) << 20);
	EXPECT_OK(pldk_finalize(world));
}

/* C2, C7: a full container is a return code, not a SIGBUS in a memcpy and not a process killed */
TEST(a_full_memory_cgroup_refuses_windows_and_kills_nobody)
{
	IN_GROUP(fill_a_group);
}

CHILD(ask_in_a_group)
{
	const struct group *group = arg;
	struct pldk_window *window = PT_POISON_PTR;
	struct pldk_domain *world = NULL;
	const size_t over = pt_is_dev() ? 8 << 20 : 2 << 20;
	struct pldk_limits limits;
	int fd = -1;

	ASSERT_TRUE(write_file(group->dir, "cgroup.procs", "0"));
	ASSERT_OK(pldk_world_create(1, NULL, &fd));
	ASSERT_OK(pldk_world_join(fd, 0, PT_LONG, &world));
	ASSERT_OK(pldk_limits(world, &limits));
	EXPECT_STREQ("cgroup", limits.left_by);
	EXPECT_LT(limits.left_bytes, 64 << 20);
	ASSERT_GT(limits.left_bytes, 32 << 20);
	/*
	 * What else the process has changes by some pages meanwhile. The tenth that pldk_limits() keeps free is kept by
	 * the library on shm; the module may fill the group to the brim: the kernel refuses it more and kills nobody.
	 */
	EXPECT_RET(-ENOMEM, pldk_window_create(world, limits.left_bytes + over, NULL, &window));
	EXPECT_EQ(PT_POISON_PTR, window);
	ASSERT_OK(pldk_window_create(world, limits.left_bytes - (2 << 20), NULL, &window));
	memset(pldk_window_base(window), 1, limits.left_bytes - (2 << 20));
	EXPECT_OK(pldk_finalize(world));
}

/* C5: in a container it is the container's memory that counts */
TEST(limits_know_the_memory_cgroup)
{
	IN_GROUP(ask_in_a_group);
}

CHILD(cache_a_file)
{
	const struct group *group = arg;
	struct pldk_window *window = NULL;
	struct pldk_domain *world = NULL;
	char name[] = "pldk_test_XXXXXX", *piece = calloc(1, 1 << 20);
	int file, fd = -1;

	ASSERT_TRUE(write_file(group->dir, "cgroup.procs", "0"));
	file = mkstemp(name);
	ASSERT_LE(0, file);
	unlink(name);
	for (int i = 0; i < 40; i++)
		ASSERT_EQ(1 << 20, write(file, piece, 1 << 20));
	fsync(file);
	ASSERT_OK(pldk_world_create(1, NULL, &fd));
	ASSERT_OK(pldk_world_join(fd, 0, PT_LONG, &world));
	ASSERT_OK(pldk_window_create(world, 40 << 20, NULL, &window));
	memset(pldk_window_base(window), 1, 40 << 20);
	EXPECT_OK(pldk_finalize(world));
	close(file);
	free(piece);
}

TEST(files_in_memory_make_room_for_windows)
{
	struct statfs fs;

	if (statfs(".", &fs) || fs.f_type == TMPFS_MAGIC || fs.f_type == OVERLAYFS_SUPER_MAGIC)
		SKIP(return, "needs a folder on a disk");
	IN_GROUP(cache_a_file);
}

/* C5: people ask how much could be allocated, and a refusal tells neither how much too much it was nor what to turn */
RANK(ask_the_limits)
{
	const char *limit = pt_is_dev() ? "RLIMIT_MEMLOCK" : "RLIMIT_FSIZE";
	struct pldk_window *window = PT_POISON_PTR;
	char asked[32], left[32], over[48];
	struct pldk_limits limits;
	size_t exact;

	/* A user without the privilege that memlock does not bind; its descriptor came from one who had the device. */
	if (pt_is_dev() && !geteuid())
		ASSERT_EQ(0, setresuid(4242, 4242, 4242));
	EXPECT_RET(-EINVAL, pldk_limits(world, NULL));
	memset(&limits, 0xee, sizeof(limits));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	ASSERT_OK(pldk_limits(world, &limits));
	EXPECT_GE(limits.max_ranks, size);
	EXPECT_LE(limits.max_ranks, PLDK_MAX_RANKS);
	EXPECT_GT(limits.window_bytes_max, 0);
	ASSERT_STREQ(limit, limits.left_by);
	exact = limits.left_bytes / (size_t)size;
	EXPECT_GE(exact, 1 << 20);
	EXPECT_EQ(0, exact % 4096);
	/* One page more is refused, and the sentence has the same numbers. */
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	snprintf(asked, sizeof(asked), "%zu bytes asked", (exact + 4096) * (size_t)size);
	snprintf(left, sizeof(left), "leaves %zu", exact * (size_t)size);
	snprintf(over, sizeof(over), "%d too many; raise", 4096 * size);
	EXPECT_RET(pt_is_dev() ? -EPERM : -ENOMEM, pldk_window_create(world, exact + 4096, NULL, &window));
	EXPECT_SAYS(asked, limit, left, over);
	EXPECT_EQ(PT_POISON_PTR, window);
	/* So much can be had, once. */
	ASSERT_OK(pldk_window_create(world, exact, NULL, &window));
	memset(pldk_window_base(window), 1, exact);
	ASSERT_OK(pldk_limits(world, &limits));
	EXPECT_EQ(0, limits.left_bytes);
	EXPECT_RET(pt_is_dev() ? -EPERM : -ENOMEM, pldk_window_create(world, 2 << 20, NULL, &window));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)rank;
}

TEST(so_much_can_be_had_as_limits_tell_and_not_a_page_more)
{
	rlim_t bytes = pt_is_dev() ? 64 << 20 : 300 << 20;
	int nranks = pt_is_dev() ? 2 : 1; /* on shm, ranks that come at the same time take file space twice */

	setrlimit(pt_is_dev() ? RLIMIT_MEMLOCK : RLIMIT_FSIZE, &(struct rlimit){ bytes, bytes });
	run_ranks(nranks, ask_the_limits, NULL);
}

/* C13: over 70 % of the memory, and the OOM killer comes. Here refused at once: twice the memory, and 95 % of it */
RANK(ask_for_the_moon)
{
	struct pldk_window *window = PT_POISON_PTR;
	size_t bytes = (size_t)pt_proc_kb("/proc/meminfo", "MemTotal:") * 1024 * 2;
	int64_t start = pt_now(), ret = pldk_window_create(world, bytes, NULL, &window);

	EXPECT_TRUE(ret == -ENOMEM || ret == -EPERM || ret == -ENOSPC) TH_LOG("%d: %s", (int)ret, pldk_last_error());
	EXPECT_LT(pt_ms_since(start), pt_slow_ms(1000));
	EXPECT_SAYS("bytes asked", "too many", pt_is_dev() ? "max_bytes|RLIMIT_MEMLOCK" : "MemAvailable|cgroup");
	EXPECT_EQ(PT_POISON_PTR, window);
	/* Most of what is there, but not all of it: a share stays for others. */
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	bytes = (size_t)pt_proc_kb("/proc/meminfo", "MemAvailable:") * 1024 / (size_t)size / 100 * 95;
	EXPECT_LT(pldk_window_create(world, bytes, NULL, &window), 0);
	EXPECT_EQ(PT_POISON_PTR, window);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)rank;
}

TEST(more_than_the_machine_has_is_refused_at_once)
{
	run_ranks(2, ask_for_the_moon, NULL);
}

/*
 * Sizes
 */

#define BLOCK 65536
#define GIB (UINT64_C(1) << 30)

/* A block that is told from every other: by who put it and where. */
static void fill(unsigned char *block, int rank, uint64_t offset)
{
	uint64_t seed = offset * 2654435761u + (uint64_t)rank + 1;

	for (int i = 0; i < BLOCK / 8; i++)
		memcpy(block + 8 * i, &(uint64_t){ pt_random(&seed) }, 8);
}

/* Offsets of blocks: both ends, and across each power of two from 2 GiB on. Returns their number. */
static int block_offsets(uint64_t bytes, uint64_t *offsets)
{
	int n = 0;

	offsets[n++] = 0;
	for (uint64_t edge = 2 * GIB; edge + BLOCK / 2 < bytes - BLOCK; edge *= 2)
		offsets[n++] = edge - BLOCK / 2;
	if (bytes >= 2 * BLOCK)
		offsets[n++] = bytes - BLOCK;
	return n;
}

static void use_both_ends(struct __test_metadata *_metadata, struct pldk_domain *world, struct pldk_window *window)
{
	const uint64_t bytes = pldk_window_bytes(window);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_UINT8, (int64_t)bytes);
	struct pldk_dtensor words = pt_view(_metadata, window, PLDK_INT64, (int64_t)(bytes / 8));
	static unsigned char mine[BLOCK], want[BLOCK], got[BLOCK];
	struct pldk_tensor from = pt_tensor(_metadata, mine, PLDK_UINT8, BLOCK);
	struct pldk_tensor to = pt_tensor(_metadata, got, PLDK_UINT8, BLOCK);
	int rank = pldk_rank(world), right = pldk_right(world), left = pldk_left(world);
	unsigned char *base = pldk_window_base(window);
	uint64_t offsets[8];
	int n = block_offsets(bytes, offsets);
	int64_t old = PT_POISON;

	for (int i = 0; i < n; i++) {
		fill(mine, rank, offsets[i]);
		ASSERT_OK(pldk_put(&view, right, &from,
				   &(struct pldk_region){ SHAPE((int64_t)offsets[i]), SHAPE(0), SHAPE(BLOCK) }, NULL));
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int i = 0; i < n; i++) {
		fill(want, left, offsets[i]);
		EXPECT_EQ(0, memcmp(base + offsets[i], want, BLOCK))
		TH_LOG("%" PRIu64 " bytes: block at %" PRIu64, bytes, offsets[i]);
		fill(want, rank, offsets[i]);
		ASSERT_OK(pldk_get(&to, &view, right,
				   &(struct pldk_region){ SHAPE(0), SHAPE((int64_t)offsets[i]), SHAPE(BLOCK) }, NULL));
		EXPECT_EQ(0, memcmp(got, want, BLOCK))
		TH_LOG("%" PRIu64 " bytes: get at %" PRIu64, bytes, offsets[i]);
	}
	/* Nothing came where it would with an offset cut to 32 bits, or anywhere else between. */
	for (int i = 0; i + 1 < n; i++) {
		for (uint64_t at = offsets[i] + BLOCK; at + 4096 <= offsets[i + 1]; at += GIB / 8) {
			EXPECT_TRUE(is_all(base + at, 0, 4096)) TH_LOG("%" PRIu64, at);
		}
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	/* One element, the last one. */
	ASSERT_OK(pldk_swap(&words, right, SHAPE((int64_t)(bytes / 8) - 1), 77 + rank, &old));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_EQ(77 + left, *(int64_t *)(void *)(base + bytes / 8 * 8 - 8));
	EXPECT_RET(-EINVAL, pldk_swap(&words, right, SHAPE((int64_t)(bytes / 8)), 1, &old));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

RANK(use_size)
{
	const uint64_t bytes = *(const uint64_t *)arg;
	struct pldk_window *window = pt_window(_metadata, world, bytes);

	EXPECT_EQ(bytes, pldk_window_bytes(window));
	use_both_ends(_metadata, world, window);
	(void)rank;
	(void)size;
}

/* Does so much fit here, with room for others? */
static bool fits(struct __test_metadata *_metadata, uint64_t bytes)
{
	struct pldk_domain *world = NULL;
	struct pldk_limits limits;
	int fd = -1;

	ASSERT_OK(pldk_world_create(1, NULL, &fd));
	ASSERT_OK(pldk_world_join(fd, 0, PT_LONG, &world));
	ASSERT_OK(pldk_limits(world, &limits));
	EXPECT_OK(pldk_finalize(world));
	close(fd);
	return limits.left_bytes >= bytes + bytes / 4;
}

/* C10: buffers over 4 MiB, over 130 MiB, of 1 GiB fail, for want of memory in one piece */
TEST(windows_from_one_page_to_a_gibibyte)
{
	static const uint64_t mib[] = { 1, 4, 5, 130, 1024 };
	size_t done = 0;

	for (size_t i = 0; i < ARRAY_SIZE(mib); i++) {
		uint64_t bytes = mib[i] << 20;

		/* Where two such slabs do not fit, one rank alone may do. */
		if (!fits(_metadata, bytes))
			break;
		run_ranks(fits(_metadata, 2 * bytes) ? 2 : 1, use_size, &bytes);
		done++;
	}
	EXPECT_GE(done, 4) TH_LOG("%zu sizes fit", done);
}

/* One put as long as the slab. */
static void put_it_all(struct __test_metadata *_metadata, struct pldk_domain *world, struct pldk_window *window)
{
	const uint64_t bytes = pldk_window_bytes(window);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_UINT8, (int64_t)bytes);
	unsigned char *base = pldk_window_base(window), want[64];
	struct pldk_tensor own;

	ASSERT_OK(pldk_view_local(&view, &own));
	if (pldk_rank(world) == 0) {
		for (uint64_t at = 0; at < bytes; at += 1 << 20)
			memset(base + at, (int)(at >> 20) * 7 + 1, sizeof(want));
		ASSERT_OK(pldk_put(&view, 1, &own, NULL, NULL));
	}
	ASSERT_OK(pldk_barrier(world, PLDK_SEC(60)));
	for (uint64_t at = 0; at < bytes; at += 1 << 20) {
		memset(want, (int)(at >> 20) * 7 + 1, sizeof(want));
		ASSERT_EQ(0, memcmp(base + at, want, sizeof(want))) TH_LOG("at %" PRIu64, at);
	}
}

RANK(use_more_than_4_gib)
{
	struct pldk_window *window = pt_window(_metadata, world, *(const uint64_t *)arg);

	use_both_ends(_metadata, world, window);
	/* A length that does not fit 32 bits; the loopback link of far peers would take a minute for it. */
	if (!pt_is_far())
		put_it_all(_metadata, world, window);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)rank;
	(void)size;
}

static void use_large(struct __test_metadata *_metadata, int nranks, pt_body body, uint64_t bytes)
{
	struct pt_run run = { .nranks = nranks, .body = body, .arg = &bytes, .limit_ms = 90000 };

	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

/* C10: exactly 2 GiB or exactly 4 GiB fail: a size that does not fit 32 bits */
TEST(windows_of_exactly_2_and_4_gib)
{
	SKIP_FAR("one rank alone has no far peer");
	if (!fits(_metadata, 4 * GIB))
		SKIP(return, "needs 5 GiB of free memory");
	use_large(_metadata, 1, use_size, 2 * GIB);
	use_large(_metadata, 1, use_size, 4 * GIB);
}

/* C10: offsets and lengths over 2 GiB and over 4 GiB, on a peer's slab */
TEST(windows_beyond_4_gib)
{
	if (!fits(_metadata, 9 * GIB))
		SKIP(return, "needs 11 GiB of free memory");
	use_large(_metadata, 2, use_more_than_4_gib, 4 * GIB + 4 * BLOCK);
}

/*
 * Numbers
 */

/* C12: one mapping a window, or vm.max_map_count is reached with plenty of memory; and all on one descriptor */
RANK(map_many)
{
	int n = pt_scale() < 100 ? 200 : 5000, fds, maps;
	struct pldk_window **windows = calloc((size_t)n, sizeof(*windows));

	/* What the first window and the first barrier bring along stays. */
	ASSERT_OK(pldk_window_destroy(pt_window(_metadata, world, 4096)));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	fds = pt_fds();
	maps = pt_maps(NULL, NULL);
	for (int i = 0; i < n; i++)
		ASSERT_OK(pldk_window_create(world, 4096, NULL, &windows[i]));
	EXPECT_LE(pt_maps(NULL, NULL), maps + n * (pt_is_far() ? (size + 1) / 2 : 1) + 4);
	EXPECT_LE(pt_fds(), fds + 2);
	for (int i = 0; i < n; i++)
		*(int *)pldk_window_base(windows[i]) = rank + i;
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int i = 0; i < n; i++) {
		ASSERT_EQ(rank + i, *(int *)pldk_window_base(windows[i]));
	}
	for (int i = n; i--;)
		ASSERT_OK(pldk_window_destroy(windows[i]));
	EXPECT_LE(pt_maps(NULL, NULL), maps + 4);
	EXPECT_LE(pt_fds(), fds);
	free(windows);
}

TEST(five_thousand_windows_take_one_mapping_each)
{
	struct pt_run run = { .nranks = 2, .body = map_many, .limit_ms = 60000 };

	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

/* Take mappings until the kernel gives no more; every second page has other rights, so none can be joined. */
static size_t take_all_mappings(char **out, size_t bytes)
{
	char *all = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t at = 0;

	*out = all;
	if (all == MAP_FAILED)
		return 0;
	while (at < bytes && !mprotect(all + at, 4096, PROT_READ))
		at += 2 * 4096;
	return at;
}

RANK(run_out_of_mappings)
{
	struct pldk_window *windows[64], *before = pt_window(_metadata, world, 4096);
	size_t most = (size_t)atol((const char *)arg), taken;
	int64_t ret = 0;
	char *all = NULL;
	int n = 0;

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 0) {
		taken = take_all_mappings(&all, most * 2 * 4096);
		ASSERT_GT(taken, 0);
		/* Some back, so that the last windows that fit are seen as well. */
		ASSERT_EQ(0, munmap(all + taken - 40 * 4096, 40 * 4096));
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	while (n < 64 && !ret) {
		ret = pldk_window_create(world, 4096, NULL, &windows[n]);
		n += !ret;
	}
	EXPECT_EQ(-ENOMEM, ret) TH_LOG("after %d windows: %s", n, pldk_last_error());
	EXPECT_SAYS("rank 0");
	if (rank == 0)
		EXPECT_SAYS("vm.max_map_count", "raise it");
	/* What was there before still is. */
	*(int *)pldk_window_base(before) = rank;
	for (int i = 0; i < n; i++)
		*(int *)pldk_window_base(windows[i]) = i;
	if (rank == 0)
		munmap(all, most * 2 * 4096);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_OK(pldk_window_create(world, 4096, NULL, &windows[0]));
	(void)size;
}

/* C12: and when it is reached, the sentence says so instead of "cannot allocate memory" */
TEST(without_a_mapping_left_the_sentence_names_the_knob)
{
	char most[32];

	pt_slurp("/proc/sys/vm/max_map_count", most, sizeof(most));
	if (atol(most) <= 0 || atol(most) > 300000)
		SKIP(return, "vm.max_map_count is %ld", atol(most));
	run_ranks(2, run_out_of_mappings, most);
}

/* Bytes that windows hold on the whole machine, as far as that can be seen: on dev by what the module has left. */
static int64_t taken(struct __test_metadata *_metadata)
{
	struct pldk_domain *world = NULL;
	struct pldk_limits limits;
	int fd = -1;

	if (!pt_is_dev())
		return pt_proc_kb("/proc/meminfo", "Shmem:") * 1024;
	ASSERT_OK(pldk_world_create(1, NULL, &fd));
	ASSERT_OK(pldk_world_join(fd, 0, PT_LONG, &world));
	ASSERT_OK(pldk_limits(world, &limits));
	EXPECT_OK(pldk_finalize(world));
	close(fd);
	return -(int64_t)limits.left_bytes;
}

RANK(grow)
{
	struct pldk_window *window;

	/* Some are closed, and the largest is still open at the end. */
	for (size_t bytes = 4096; bytes <= 64 << 20; bytes *= 4) {
		window = pt_window(_metadata, world, bytes);
		memset(pldk_window_base(window), 1, bytes);
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		if (bytes < 1 << 20)
			ASSERT_OK(pldk_window_destroy(window));
	}
	(void)rank;
	(void)size;
	(void)arg;
}

/* C14: what had grown stayed after a normal exit */
TEST(bigger_and_bigger_windows_leave_nothing)
{
	int64_t before = taken(_metadata);

	for (int round = 0; round < 4; round++) {
		/* By pldk_finalize() and by plain exit, in turns. */
		struct pt_run run = { .nranks = 2, .body = grow, .leave = round % 2 };

		pt_start(_metadata, &run);
		pt_finish(_metadata, &run);
	}
	/* Others use the machine as well; a leak would be a hundred megabytes a round. */
	EXPECT_TRUE(pt_until(taken(_metadata) < before + (48 << 20), 5000))
	TH_LOG("%" PRId64 " kB are left", (taken(_metadata) - before) / 1024);
}

TEST_HARNESS_MAIN
