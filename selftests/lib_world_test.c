// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: how a world comes to be and ends. pldk_world_create() and _join(), who is missing, what a launcher says,
 * what a rank knows, and that nothing is left behind. pldk_init() is in lib_init_test.c.
 */
#include "pldk_test_hello.h"

#include <grp.h>
#include <linux/pld.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>

/*
 * The wall clock of this program jumps by a day at every look. A library that asks it for anything at all (an
 * identity, a deadline) is caught by the count.
 */
static _Atomic int wall_clock_looks;

static bool is_wall_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int ret = (int)syscall(SYS_clock_gettime, clock, now);

	if (!ret && is_wall_clock(clock))
		now->tv_sec += 86400L * (1 + atomic_fetch_add(&wall_clock_looks, 1));
	return ret;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	now->tv_sec = ts.tv_sec;
	now->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *out)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (out)
		*out = ts.tv_sec;
	return ts.tv_sec;
}

/*
 * Making a world
 */

TEST(world_create_checks_its_arguments)
{
	static const int twice[] = { 4, 5, 4 }, negative[] = { 0, -7 };
	static const struct {
		int nranks;
		const int *ids;
		const char *word;
	} table[] = {
		{ 0, NULL, "0" },	{ -1, NULL, "-1" },	 { PLDK_MAX_RANKS + 1, NULL, "1024" },
		{ 3, twice, "4" },	{ 2, negative, "-7" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct pldk_world_options options = PLDK_WORLD_OPTIONS_INIT;
		int fd = 12345, fds = pt_fds();

		options.device_ids = table[i].ids;
		EXPECT_RET(-EINVAL, pldk_world_create(table[i].nranks, &options, &fd));
		EXPECT_SAYS(table[i].word);
		EXPECT_EQ(12345, fd);
		EXPECT_EQ(fds, pt_fds());
	}
}

TEST(world_create_refuses_a_null_output_and_an_unknown_provider)
{
	struct pldk_world_options options = PLDK_WORLD_OPTIONS_INIT;
	int fd = 12345;

	EXPECT_RET(-EINVAL, pldk_world_create(2, NULL, NULL));
	options.provider = "telepathy";
	EXPECT_RET(-EINVAL, pldk_world_create(2, &options, &fd));
	EXPECT_SAYS("telepathy", "shm", "dev");
	EXPECT_EQ(12345, fd);
}

CHILD(have_no_right_to_dev)
{
	struct pldk_world_options options = PLDK_WORLD_OPTIONS_INIT;
	const struct stat *st = arg;
	char mode[32], owner[64];
	int fd = 12345;

	snprintf(mode, sizeof(mode), "mode %04o root:", st->st_mode & 07777);
	snprintf(owner, sizeof(owner), "you are uid 65534 gid 65534; add yourself to group ");
	if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
		return; /* not root: whoever this is must be able to read the answer too */
	options.provider = "dev";
	EXPECT_RET(-EPERM, pldk_world_create(2, &options, &fd));
	EXPECT_SAYS("cannot open /dev/pld: Permission denied", mode, owner, "PLDK_PROVIDER=shm");
	EXPECT_EQ(12345, fd);
	/* The advice is good. */
	options.provider = "shm";
	EXPECT_OK(pldk_world_create(2, &options, &fd));
}

CHILD(have_no_device)
{
	struct pldk_world_options options = PLDK_WORLD_OPTIONS_INIT;
	int fd = 12345;

	options.provider = "dev";
	EXPECT_RET(-ENODEV, pldk_world_create(2, &options, &fd));
	EXPECT_SAYS("/dev/pld", "modprobe pld", "PLDK_PROVIDER=shm");
	EXPECT_EQ(12345, fd);
	snprintf(arg, 256, "%s", pldk_last_error());
	options.provider = "shm";
	ASSERT_OK(pldk_world_create(2, &options, &fd));
}

CHILD(have_no_device_as_nobody)
{
	if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
		return;
	have_no_device(_metadata, arg);
}

/* C11, J11: root gets a friendly message and users a raw one; advice is given that does not work */
TEST(a_device_that_cannot_be_opened_is_explained_with_advice_that_works)
{
	char *says = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct stat st;

	ASSERT_NE(MAP_FAILED, says);
	if (stat("/dev/pld", &st)) {
		in_child(have_no_device, says);
		if (geteuid())
			return;
		in_child(have_no_device_as_nobody, says + 1024);
		EXPECT_STREQ(says, says + 1024);
		return;
	}
	if ((st.st_mode & 07) || geteuid())
		SKIP(return, "/dev/pld has mode %o and this is uid %d", st.st_mode & 0777, geteuid());
	in_child(have_no_right_to_dev, &st);
}

TEST(world_descriptor_is_close_on_exec)
{
	int fd = -1;

	ASSERT_OK(pldk_world_create(1, NULL, &fd));
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	close(fd);
}

TEST(world_of_the_most_ranks_can_be_made)
{
	int fd = -1;

	ASSERT_OK(pldk_world_create(PLDK_MAX_RANKS, NULL, &fd));
	close(fd);
}

/*
 * Joining it
 */

TEST(join_checks_descriptor_rank_and_output)
{
	struct pldk_domain *world = PT_POISON_PTR;
	int null = open("/dev/null", O_RDWR), fd = -1;

	ASSERT_OK(pldk_world_create(2, NULL, &fd));
	EXPECT_RET(-EBADF, pldk_world_join(-1, 0, PLDK_TRY, &world));
	EXPECT_RET(-EBADF, pldk_world_join(null, 0, PLDK_TRY, &world));
	EXPECT_RET(-EBADF, pldk_world_join(9999, 0, PLDK_TRY, &world));
	EXPECT_RET(-EINVAL, pldk_world_join(fd, -1, PLDK_TRY, &world));
	EXPECT_SAYS("-1", "2");
	EXPECT_RET(-EINVAL, pldk_world_join(fd, 2, PLDK_TRY, &world));
	EXPECT_RET(-EINVAL, pldk_world_join(fd, 0, PLDK_TRY, NULL));
	EXPECT_EQ(PT_POISON_PTR, world);
	ASSERT_OK(pldk_world_join(fd, 0, PLDK_TRY, &world));
	EXPECT_OK(pldk_finalize(world));
	close(null);
	close(fd);
}

CHILD(take_a_taken_rank)
{
	struct pldk_domain *world = PT_POISON_PTR;

	EXPECT_RET(*(int *)arg, pldk_world_join(*((int *)arg + 1), 0, PLDK_TRY, &world));
	EXPECT_SAYS("rank 0");
	EXPECT_EQ(PT_POISON_PTR, world);
}

/* B9: nobody takes a rank for another's, alive or gone */
TEST(join_as_a_rank_that_is_alive_or_gone_is_refused)
{
	struct pldk_domain *world = NULL;
	int args[2] = { -EEXIST, -1 };

	ASSERT_OK(pldk_world_create(2, NULL, &args[1]));
	ASSERT_OK(pldk_world_join(args[1], 0, PLDK_TRY, &world));
	in_child(take_a_taken_rank, args);
	EXPECT_OK(pldk_finalize(world));
	args[0] = -ESTALE;
	in_child(take_a_taken_rank, args);
	close(args[1]);
}

RANK(join_only)
{
	(void)world;
}

TEST(join_times_out_and_names_exactly_the_missing_ranks)
{
	struct pldk_domain *world = PT_POISON_PTR;
	struct pt_run run = { .nranks = 5, .body = join_only, .limit_ms = 5000 };
	int64_t start;

	pt_create(_metadata, &run);
	start = pt_now();
	EXPECT_RET(-ETIMEDOUT, pldk_world_join(run.fd, 0, PLDK_MS(150), &world));
	EXPECT_GE(pt_ms_since(start), 149);
	EXPECT_LT(pt_ms_since(start), pt_slow_ms(1500));
	EXPECT_SAYS("1", "2", "3", "4");
	EXPECT_EQ(PT_POISON_PTR, world);
	close(run.fd);
}

CHILD(miss_one)
{
	struct pldk_domain *world = PT_POISON_PTR;

	EXPECT_RET(-ETIMEDOUT, pldk_world_join(*(int *)arg, *((int *)arg + 1), PLDK_MS(pt_slow_ms(400)), &world));
	EXPECT_SAYS("rank 2|ranks 2|missing: 2|2 of", "missing|not joined|absent|not arrived");
	for (int r = 0; r < 4; r++) {
		char word[16];

		snprintf(word, sizeof(word), "rank %d", r);
		if (r != 2 && r != *((int *)arg + 1)) {
			EXPECT_EQ(NULL, strstr(pldk_last_error(), word)) TH_LOG("%s", pldk_last_error());
		}
	}
	EXPECT_EQ(PT_POISON_PTR, world);
}

/* K7: one rank does not reach init, and which one is found by adding prints */
TEST(join_of_three_of_four_names_the_fourth)
{
	int fd = -1, status;
	pid_t pids[4];

	ASSERT_OK(pldk_world_create(4, NULL, &fd));
	for (int r = 0; r < 4; r++) {
		if (r == 2)
			continue;
		pids[r] = fork();
		if (!pids[r]) {
			in_child(miss_one, ((int[]){ fd, r }));
			_exit(!_metadata->passed);
		}
	}
	for (int r = 0; r < 4; r++) {
		if (r == 2)
			continue;
		waitpid(pids[r], &status, 0);
		EXPECT_EQ(0, status) TH_LOG("rank %d", r);
	}
	close(fd);
}

/* A12: a rank that ends before it joins */
TEST(join_fails_when_the_launcher_says_that_a_rank_never_came)
{
	struct pldk_domain *world = PT_POISON_PTR;
	int fd = -1;

	ASSERT_OK(pldk_world_create(3, NULL, &fd));
	EXPECT_RET(-EINVAL, pldk_world_mark_dead(fd, 3, 0));
	EXPECT_RET(-EINVAL, pldk_world_mark_dead(fd, -1, 0));
	EXPECT_RET(-EBADF, pldk_world_mark_dead(-1, 1, 0));
	EXPECT_RET(-EINVAL, pldk_world_mark_dead(fd, 1, -1));
	EXPECT_RET(-EINVAL, pldk_world_mark_dead(fd, 1, SIGSTOP << 8 | 0x7f));
	EXPECT_SAYS("waitpid");
	EXPECT_OK(pldk_world_mark_dead(fd, 1, 3 << 8));
	EXPECT_RET(-EOWNERDEAD, pldk_world_join(fd, 0, PT_LONG, &world));
	EXPECT_SAYS("rank 1", "code 3");
	EXPECT_RET(-ESTALE, pldk_world_join(fd, 1, PT_LONG, &world));
	EXPECT_EQ(PT_POISON_PTR, world);
	close(fd);
}

TEST(join_of_a_poisoned_world_is_cancelled)
{
	struct pldk_domain *world = PT_POISON_PTR;
	int fd = -1;

	ASSERT_OK(pldk_world_create(2, NULL, &fd));
	EXPECT_RET(-EBADF, pldk_world_poison(-1, 7));
	EXPECT_OK(pldk_world_poison(fd, 7));
	EXPECT_RET(-ECANCELED, pldk_world_join(fd, 0, PT_LONG, &world));
	EXPECT_SAYS("aborted from outside", "code 7");
	EXPECT_EQ(PT_POISON_PTR, world);
	close(fd);
}

TEST(hello_in_worlds_of_one_to_nine)
{
	for (int size = 1; size <= 9; size++)
		run_ranks(size, hello, NULL);
}

/* P3: works to 127 ranks, unreproducible errors at 256 */
TEST(hello_at_the_usual_limits)
{
	static const int sizes[] = { 128, 129, 256, 257 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		/* A far window needs a mapping a rank, and all these ranks are threads of one process. */
		if (pt_is_far()) {
			run_threads(64 + (int)i, hello, NULL);
			continue;
		}
		if (pt_is_dev())
			run_ranks(sizes[i], hello, NULL);
		else
			run_threads(sizes[i], hello, NULL);
	}
}

/*
 * What a rank knows
 */

RANK(know_devices)
{
	static const int ids[] = { 9, 4, 5 };

	for (int r = 0; r < size; r++)
		EXPECT_RET(ids[r], pldk_device(world, r));
	EXPECT_RET(-EINVAL, pldk_device(world, -1));
	EXPECT_RET(-EINVAL, pldk_device(world, size));
	EXPECT_RET(-EINVAL, pldk_device(NULL, 0));
	hello(_metadata, world, rank, size, arg);
}

TEST(device_ids_need_not_start_at_zero_nor_be_in_order)
{
	struct pldk_world_options options = PLDK_WORLD_OPTIONS_INIT;
	struct pt_run run = { .nranks = 3, .body = know_devices, .options = &options };

	options.device_ids = (const int[]){ 9, 4, 5 };
	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

RANK(know_members)
{
	struct pldk_member member;

	for (int r = 0; r < size; r++) {
		memset(&member, 0xee, sizeof(member));
		ASSERT_OK(pldk_member(world, r, &member));
		EXPECT_EQ(PLDK_MEMBER_ALIVE, member.state);
		EXPECT_EQ(r, member.device_id);
		EXPECT_GT(member.pid, 0);
		EXPECT_GE(member.cpu, 0);
		if (r == rank) {
			EXPECT_EQ(getpid(), member.pid);
		}
		if (r != rank) {
			EXPECT_EQ(pt_is_far() && r % 2, member.is_far) TH_LOG("rank %d of rank %d", r, rank);
		}
	}
	member.pid = 4711;
	EXPECT_RET(-EINVAL, pldk_member(world, size, &member));
	EXPECT_RET(-EINVAL, pldk_member(world, -1, &member));
	EXPECT_RET(-EINVAL, pldk_member(NULL, 0, &member));
	EXPECT_RET(-EINVAL, pldk_member(world, 0, NULL));
	EXPECT_EQ(4711, member.pid);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 1)
		return; /* finalises */
	ASSERT_TRUE(pt_until(!pldk_member(world, 1, &member) && member.state == PLDK_MEMBER_FINALISED, 5000));
}

TEST(member_tells_state_pid_and_device)
{
	run_ranks(3, know_members, NULL);
}

TEST(queries_of_nothing_are_errors_not_crashes)
{
	EXPECT_RET(-EINVAL, pldk_rank(NULL));
	EXPECT_RET(-EINVAL, pldk_size(NULL));
	EXPECT_RET(-EINVAL, pldk_left(NULL));
	EXPECT_RET(-EINVAL, pldk_right(NULL));
	EXPECT_RET(-EINVAL, pldk_abort(NULL, 0));
	EXPECT_RET(-EINVAL, pldk_init(NULL));
	EXPECT_RET(-EINVAL, pldk_limits(NULL, &(struct pldk_limits){ 0 }));
	EXPECT_RET(-EINVAL, pldk_barrier(NULL, PLDK_TRY));
	EXPECT_RET(-EINVAL, pldk_flush(NULL, 0, PLDK_TRY));
	EXPECT_RET(-EINVAL, pldk_fence(NULL, 0));
	EXPECT_OK(pldk_finalize(NULL));
	EXPECT_STREQ("?", pldk_provider(NULL));
	EXPECT_EQ(0, pldk_dtype_size(0));
	EXPECT_EQ(0, pldk_dtype_size(99));
	EXPECT_STREQ("?", pldk_dtype_name(99));
	EXPECT_STREQ("FP32", pldk_dtype_name(PLDK_FP32));
	EXPECT_STREQ("?", pldk_event_name(9999));
	EXPECT_STREQ(PLDK_VERSION, pldk_version());
	EXPECT_STREQ(pldk_strerror(EDEADLK), pldk_strerror(-EDEADLK));
	EXPECT_NE(NULL, pldk_strerror(123456));
	EXPECT_NE(NULL, pldk_last_error());
}

/*
 * Two worlds, no clock
 */

RANK(use_two_worlds)
{
	struct pldk_domain *other = NULL, *few = NULL, *others = NULL;
	struct pldk_window *here, *there;

	ASSERT_OK(pldk_world_join(*(int *)arg, size - 1 - rank, PT_LONG, &other));
	here = pt_signal(_metadata, world, 2);
	there = pt_signal(_metadata, other, 2);
	EXPECT_EQ(world, pldk_window_domain(here));
	EXPECT_EQ(other, pldk_window_domain(there));
	/* The same members in the same order in both. */
	ASSERT_OK(pldk_subset(world, (const int[]){ 2, 0, 1 }, 3, PT_LONG, &few));
	ASSERT_OK(pldk_subset(other, (const int[]){ 2, 0, 1 }, 3, PT_LONG, &others));
	for (int round = 1; round <= 100; round++) {
		int32_t ours = rank + round, theirs = -rank;
		int64_t value = 0;

		ASSERT_OK(pldk_broadcast(few, &ours, 1, PLDK_INT32, 0, PT_LONG));
		EXPECT_EQ(2 + round, ours);
		ASSERT_OK(pldk_broadcast(others, &theirs, 1, PLDK_INT32, 0, PT_LONG));
		EXPECT_EQ(0, theirs);
		ASSERT_OK(pldk_notify(here, pldk_right(world), 0, PLDK_NOTIFY_SET, round));
		ASSERT_OK(pldk_notify(there, pldk_right(other), 0, PLDK_NOTIFY_SET, -round));
		ASSERT_OK(pldk_wait(there, 0, PLDK_LE, -round, PT_LONG));
		ASSERT_OK(pldk_wait(here, 0, PLDK_GE, round, PT_LONG));
		ASSERT_OK(pldk_read(here, 0, &value));
		EXPECT_GT(value, 0);
		ASSERT_OK(pldk_barrier(round % 2 ? world : other, PT_LONG));
	}
	EXPECT_OK(pldk_finalize(other));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

/* K3: two communicators in one process collide on names. Here two worlds with two domains each, in turns */
TEST(two_worlds_in_the_same_processes_do_not_meet)
{
	int fd = -1;

	ASSERT_OK(pldk_world_create(3, NULL, &fd));
	run_ranks(3, use_two_worlds, &fd);
	close(fd);
}

/* K4: the clock is set, and a token made of the time matches an old one */
RANK(never_ask_the_wall_clock)
{
	struct pldk_window *signal;
	int64_t start = pt_now();

	hello(_metadata, world, rank, size, arg);
	signal = pt_signal(_metadata, world, 1);
	EXPECT_RET(-ETIMEDOUT, pldk_wait(signal, 0, PLDK_GE, 1, PLDK_MS(30)));
	EXPECT_GE(pt_ms_since(start), 29);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_EQ(0, atomic_load(&wall_clock_looks));
}

TEST(the_wall_clock_is_never_asked)
{
	run_ranks(2, never_ask_the_wall_clock, NULL);
	EXPECT_EQ(0, atomic_load(&wall_clock_looks));
}

/*
 * The token
 */

CHILD(join_by_token)
{
	struct pldk_domain *world = NULL;

	ASSERT_OK(pldk_world_join_token(arg, 1, PT_LONG, &world));
	hello(_metadata, world, 1, 2, NULL);
	EXPECT_OK(pldk_finalize(world));
}

CHILD(join_beside_the_token)
{
	struct pldk_domain *world = NULL;

	ASSERT_OK(pldk_world_join(*(int *)arg, 0, PT_LONG, &world));
	hello(_metadata, world, 0, 2, NULL);
	EXPECT_OK(pldk_finalize(world));
}

/* J7: who can share memory is decided by trying */
TEST(a_token_opens_the_world_on_dev_and_does_not_exist_on_shm)
{
	struct pldk_domain *world = PT_POISON_PTR;
	uint8_t token[16] = { 0 }, other[16];
	int fd = -1, status;
	pid_t pid;

	ASSERT_OK(pldk_world_create(2, NULL, &fd));
	if (!pt_is_dev()) {
		EXPECT_RET(-EOPNOTSUPP, pldk_world_token(fd, token));
		EXPECT_RET(-ENOENT, pldk_world_join_token(token, 0, PLDK_TRY, &world));
		EXPECT_EQ(PT_POISON_PTR, world);
		close(fd);
		return;
	}
	EXPECT_RET(-EBADF, pldk_world_token(-1, token));
	ASSERT_OK(pldk_world_token(fd, token));
	memcpy(other, token, sizeof(other));
	other[3] ^= 1;
	EXPECT_RET(-ENOENT, pldk_world_join_token(other, 1, PLDK_TRY, &world));
	EXPECT_SAYS("/dev/pld");
	pid = fork();
	if (!pid) {
		in_child(join_by_token, token);
		_exit(!_metadata->passed);
	}
	in_child(join_beside_the_token, &fd);
	waitpid(pid, &status, 0);
	EXPECT_EQ(0, status);
	close(fd);

	/* Who comes by token learns as much as who comes by descriptor. */
	ASSERT_OK(pldk_world_create(2, NULL, &fd));
	ASSERT_OK(pldk_world_token(fd, token));
	ASSERT_OK(pldk_world_poison(fd, 77));
	EXPECT_RET(-ECANCELED, pldk_world_join_token(token, 1, PLDK_TRY, &world));
	EXPECT_SAYS("aborted from outside", "code 77");
	EXPECT_EQ(PT_POISON_PTR, world);
	close(fd);
}

/*
 * Upgrades, and what is left
 */

/* The module of an older release, as far as it says. */
static bool is_old_module;

int ioctl(int fd, unsigned long cmd, ...)
{
	va_list args;
	void *arg;
	int ret;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	ret = (int)syscall(SYS_ioctl, fd, cmd, arg);
	if (is_old_module && !ret && cmd == PLD_IOC_GET_INFO)
		((struct pld_info *)arg)->out_abi_level = PLD_ABI_LEVEL - 1;
	return ret;
}

/* I7: a new library, and after the upgrade the old module is still loaded */
TEST(a_module_that_is_too_old_is_told_with_both_levels)
{
	char wants[32], has[32];
	int fd = -77;

	if (!pt_is_dev())
		SKIP(return, "shm: there is no module");
	is_old_module = true;
	EXPECT_RET(-EOPNOTSUPP, pldk_world_create(1, NULL, &fd));
	snprintf(wants, sizeof(wants), "ABI %u or newer", PLD_ABI_LEVEL);
	snprintf(has, sizeof(has), "loaded is %u", PLD_ABI_LEVEL - 1);
	EXPECT_SAYS(wants, has, "rmmod pld && modprobe pld", "PLDK_PROVIDER=shm");
	EXPECT_EQ(-77, fd);
	is_old_module = false;
	ASSERT_OK(pldk_world_create(1, NULL, &fd));
	close(fd);
}

TEST(join_and_finalize_in_one_process_leak_nothing)
{
	int fds = 0, maps = 0;

	for (int round = 0; round < 100; round++) {
		struct pldk_domain *world = NULL;
		int fd = -1;

		ASSERT_OK(pldk_world_create(1, NULL, &fd));
		ASSERT_OK(pldk_world_join(fd, 0, PT_LONG, &world));
		close(fd);
		hello(_metadata, world, 0, 1, NULL);
		pt_window(_metadata, world, 100000);
		EXPECT_OK(pldk_finalize(world));
		if (round == 5) {
			fds = pt_fds();
			maps = pt_maps(NULL, NULL);
		}
	}
	EXPECT_EQ(fds, pt_fds());
	EXPECT_GE(maps + 2, pt_maps(NULL, NULL));
}

TEST_HARNESS_MAIN
