// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: ranks in containers. They need a descriptor and nothing else: no right to trace, no user, no file, no
 * namespace in common but that of process ids (on shm); and they leave nothing behind.
 */
#include "pldk_test.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mount.h>

/* Something of everything that a rank does. */
RANK(work)
{
	struct pldk_window *window = pt_window(_metadata, world, 1 << 20), *signal = pt_signal(_metadata, world, 2);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT32, 1000);
	int32_t mine[1000], got[1000], all[64];
	struct pldk_tensor from = pt_tensor(_metadata, mine, PLDK_INT32, 1000);
	struct pldk_tensor to = pt_tensor(_metadata, got, PLDK_INT32, 1000);
	struct pldk_domain *subset = NULL;
	int64_t sum = rank, old = PT_POISON;
	int32_t number = rank * 3;

	(void)arg;
	for (int i = 0; i < 1000; i++)
		mine[i] = rank << 24 | i;
	ASSERT_OK(pldk_put_notify(&view, pldk_right(world), &from, NULL, NULL,
				  &(struct pldk_signal_to){ signal, 0, 1, PLDK_NOTIFY_ADD }));
	ASSERT_OK(pldk_wait(signal, 0, PLDK_GE, 1, PT_LONG));
	ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, &sum, 1, PLDK_INT64, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	EXPECT_EQ(size * (size - 1) / 2, sum);
	ASSERT_OK(pldk_get(&to, &view, pldk_right(world), NULL, NULL));
	for (int i = 0; i < 1000; i++) {
		ASSERT_EQ(rank << 24 | i, got[i]);
		ASSERT_EQ(pldk_left(world) << 24 | i, ((int32_t *)pldk_window_base(window))[i]);
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	ASSERT_OK(pldk_fetch_add(&view, 0, SHAPE(999), 1, &old));
	ASSERT_OK(pldk_allgather(world, &number, all, 1, PLDK_INT32, PT_LONG));
	for (int r = 0; r < size; r++)
		EXPECT_EQ(r * 3, all[r]);
	if (rank < 2) {
		ASSERT_OK(pldk_subset(world, (const int[]){ 1, 0 }, 2, PT_LONG, &subset));
		ASSERT_OK(pldk_barrier(subset, PT_LONG));
	}
	ASSERT_OK(pldk_notify(signal, pldk_left(world), 1, PLDK_NOTIFY_SET, 5));
	ASSERT_OK(pldk_wait(signal, 1, PLDK_EQ, 5, PT_LONG));
	ASSERT_OK(pldk_window_reset(window, PT_LONG));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

/*
 * Rights
 */

/* Allow all but a list, which gives what. */
static int forbid(const int *calls, size_t n, uint32_t what)
{
	struct sock_filter filter[32] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
	struct sock_fprog program = { .len = (unsigned short)(n + 3), .filter = filter };

	for (size_t i = 0; i < n; i++)
		filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i],
							     (uint8_t)(n - i), 0);
	filter[n + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[n + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/*
 * A container as it comes: no call that needs the right to trace (here it kills, so that a try is seen), those refused
 * that say where memory lies, /proc/PID not the process' own, no privilege.
 */
static int be_contained(void)
{
	static const int traces[] = { SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd,
				      SYS_kcmp };
	static const int places[] = { SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy, SYS_move_pages,
				      SYS_migrate_pages, SYS_userfaultfd, SYS_keyctl, SYS_bpf, SYS_perf_event_open };

	if (!geteuid() && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
		return -1;
	prctl(PR_SET_DUMPABLE, 0);
	if (forbid(places, ARRAY_SIZE(places), SECCOMP_RET_ERRNO | EPERM))
		return -1;
	return forbid(traces, ARRAY_SIZE(traces), SECCOMP_RET_KILL_PROCESS);
}

/* J1: process_vm_readv needs ptrace rights, which containers do not have: each message fails, or aborts */
TEST(everything_works_without_any_right_to_trace)
{
	struct pt_run run = { .nranks = 3, .body = work };

	/* The device is opened by one who may; ranks have its descriptor. */
	if (pt_is_dev())
		pt_create(_metadata, &run);
	if (be_contained())
		SKIP(return, "seccomp is not to be had: %s", strerror(errno));
	if (!pt_is_dev())
		pt_create(_metadata, &run);
	for (int r = 0; r < 3; r++)
		pt_start_rank(_metadata, &run, r);
	pt_finish(_metadata, &run);
}

/*
 * Namespaces
 */

/* As root or by a user namespace. */
static int leave(int namespaces)
{
	return unshare(namespaces) && unshare(CLONE_NEWUSER | namespaces) ? -errno : 0;
}

struct abroad {
	int fd;
	int rank;
	int left; /* namespaces */
	int expected;
};

CHILD(join_from_abroad)
{
	const struct abroad *abroad = arg;
	struct pldk_domain *world = PT_POISON_PTR;
	char name[16];

	if (abroad->left & CLONE_NEWUTS) {
		snprintf(name, sizeof(name), "elsewhere%d", abroad->rank);
		EXPECT_EQ(0, sethostname(name, strlen(name)));
	}
	if (abroad->left & CLONE_NEWNS) {
		EXPECT_EQ(0, mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
		EXPECT_EQ(0, mount("none", "/dev/shm", "tmpfs", 0, NULL));
		EXPECT_EQ(0, mount("none", "/tmp", "tmpfs", 0, NULL));
	}
	EXPECT_RET(abroad->expected, pldk_world_join(abroad->fd, abroad->rank, PT_LONG, &world));
	if (abroad->expected) {
		EXPECT_EQ(PT_POISON_PTR, world);
		EXPECT_SAYS(abroad->left & CLONE_NEWPID ? "another PID namespace" : "rank 1 failed",
			    abroad->left & CLONE_NEWPID ? "PLDK_PROVIDER=dev" : "EPERM");
		return;
	}
	work(_metadata, world, abroad->rank, 3, NULL);
	EXPECT_OK(pldk_finalize(world));
}

/*
 * Three processes that have only the descriptor in common join. Each leaves namespaces first; a new PID namespace
 * begins with the next child.
 */
static void meet_abroad(struct __test_metadata *_metadata, struct abroad *abroad)
{
	int fd = -1, status, err;
	pid_t pids[3];

	ASSERT_OK(pldk_world_create(3, NULL, &fd));
	for (int r = 0; r < 3; r++) {
		abroad[r].fd = fd;
		abroad[r].rank = r;
		/* Who is refused is not the first, and the others are there to hear of it. */
		if (r == 1)
			nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		pids[r] = fork();
		if (pids[r])
			continue;
		err = abroad[r].left ? leave(abroad[r].left) : 0;
		if (err)
			_exit(77);
		in_child(join_from_abroad, &abroad[r]);
		_exit(!_metadata->passed);
	}
	err = 0;
	for (int r = 0; r < 3; r++) {
		waitpid(pids[r], &status, 0);
		err = err || (WIFEXITED(status) && WEXITSTATUS(status) == 77);
		if (!err)
			EXPECT_EQ(0, status) TH_LOG("rank %d", r);
	}
	close(fd);
	if (err)
		SKIP(return, "namespaces are not to be had");
}

/* J7: who can share memory was guessed from host names and namespaces, wrong both ways; here it is tried */
TEST(ranks_with_other_names_files_and_networks_share_memory)
{
	struct abroad abroad[3] = {
		{ .left = CLONE_NEWUTS | CLONE_NEWNS },
		{ .left = CLONE_NEWIPC | (pt_is_far() ? 0 : CLONE_NEWNET) | CLONE_NEWNS | CLONE_NEWUTS },
		{ .left = 0 },
	};

	meet_abroad(_metadata, abroad);
}

/* J7: and who cannot be seen to live is refused at once, for all, rather than called dead later */
TEST(a_rank_of_another_pid_namespace_works_on_dev_and_is_refused_on_shm)
{
	int refused = pt_is_dev() ? 0 : -EPERM, cancelled = pt_is_dev() ? 0 : -ECANCELED;
	struct abroad abroad[3] = { { .expected = cancelled }, { .left = CLONE_NEWPID, .expected = refused },
				    { .expected = cancelled } };

	meet_abroad(_metadata, abroad);
}

RANK(wait_for_the_dead)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);

	(void)arg;
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 1)
		_exit(5);
	EXPECT_RET(-EOWNERDEAD, pldk_wait(signal, 0, PLDK_GE, size, PLDK_FOREVER));
	EXPECT_SAYS("rank 1");
}

CHILD(be_in_a_new_pid_namespace)
{
	struct pt_run run = { .nranks = 3, .body = wait_for_the_dead };

	(void)arg;
	run_ranks(3, work, NULL);
	run.may_die[1] = true;
	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

/* J7: all of them in one container is the usual case, with its /proc or with that of outside */
TEST(a_job_in_a_pid_namespace_of_its_own_works_and_sees_deaths)
{
	if (leave(CLONE_NEWPID | CLONE_NEWNS))
		SKIP(return, "no PID namespace is to be had: %s", strerror(errno));
	in_child(be_in_a_new_pid_namespace, NULL);
}

/*
 * Nothing is left
 */

static const char *const places[] = { "/dev/shm", "/tmp", "/run" };

/* Empty places of our own. Without the right to have them, what others do there disturbs. */
static bool have_own_places(void)
{
	bool own = !leave(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		own = own && !mount("none", places[i], "tmpfs", 0, NULL);
	return own;
}

/* Lines of /proc/sysvipc: shared memory, semaphores and queues of this IPC namespace. */
static int sysv_objects(void)
{
	static const char *const files[] = { "/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg" };
	char text[65536];
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		pt_slurp(files[i], text, sizeof(text));
		for (const char *p = text; *p; p++)
			n += *p == '\n';
	}
	return n;
}

/* Open files of the whole machine: each world, window, process descriptor or socket is one. */
static long open_files(void)
{
	char text[64];

	pt_slurp("/proc/sys/fs/file-nr", text, sizeof(text));
	return atol(text);
}

/* B5: 100,000 files in /dev/shm after runs that had succeeded */
TEST(two_thousand_worlds_leave_no_file_no_descriptor_no_mapping)
{
	int before[ARRAY_SIZE(places)], fds, maps, sysv;
	long rounds = pt_rounds(2000), files;

	if (!have_own_places())
		SKIP(return, "no mount namespace is to be had");
	run_ranks(4, work, NULL);
	fds = pt_fds();
	maps = pt_maps(NULL, NULL);
	sysv = sysv_objects();
	files = open_files();
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		before[i] = pt_entries(places[i]);
	for (long i = 0; i < rounds; i++)
		run_ranks(4, work, NULL);
	EXPECT_EQ(fds, pt_fds());
	EXPECT_GE(maps + 2, pt_maps(NULL, NULL));
	EXPECT_EQ(sysv, sysv_objects());
	/* Others open files meanwhile, but hardly one a round. */
	EXPECT_TRUE(pt_until(open_files() < files + rounds / 2 + 500, 5000));
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		EXPECT_EQ(before[i], pt_entries(places[i])) TH_LOG("%s", places[i]);
	}
}

/* As people do who want their machine back. */
static int remove_everything(void)
{
	int failed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		char command[64];

		snprintf(command, sizeof(command), "find %s -mindepth 1 -delete", places[i]);
		failed |= system(command);
	}
	return failed;
}

RANK(work_on)
{
	(void)arg;
	while (!atomic_load(pt_word(0))) {
		work(_metadata, world, rank, size, NULL);
		atomic_fetch_add(pt_word(8 + rank), 1);
		/* All leave in the same round. */
		if (rank == 0 && atomic_load(pt_word(1)))
			atomic_store(pt_word(0), 1);
		ASSERT_OK(pldk_barrier(world, PT_LONG));
	}
}

static bool all_did(int rounds)
{
	return atomic_load(pt_word(8)) >= rounds && atomic_load(pt_word(9)) >= rounds &&
	       atomic_load(pt_word(10)) >= rounds;
}

/* B11: after a kill -9 files were removed by hand, and the name could not be used again until the next boot */
TEST(nothing_that_can_be_removed_is_needed)
{
	struct pt_run run = { .nranks = 3, .body = work_on };
	int64_t done;

	if (!have_own_places())
		SKIP(return, "no mount namespace is to be had");
	pt_start(_metadata, &run);
	ASSERT_TRUE(pt_until(all_did(2), 10000));
	EXPECT_EQ(0, remove_everything());
	done = atomic_load(pt_word(8));
	/* Full, and not to be written: what else becomes of such places. */
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		EXPECT_EQ(0, mount("none", places[i], NULL, MS_REMOUNT | MS_RDONLY, NULL)) TH_LOG("%s", places[i]);
	}
	EXPECT_TRUE(pt_until(all_did((int)done + 2), 10000));
	/* After a kill -9 there is nothing to be removed, and the next job begins in such a place. */
	for (int r = 0; r < 3; r++) {
		run.may_die[r] = true;
		kill(run.pid[r], SIGKILL);
	}
	pt_finish(_metadata, &run);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		EXPECT_EQ(2, pt_entries(places[i])) TH_LOG("%s", places[i]); /* . and .. */
	}
	pt_clear_words();
	atomic_store(pt_word(1), 1);
	run_ranks(3, work_on, NULL);
}

TEST_HARNESS_MAIN
