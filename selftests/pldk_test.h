/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Helpers of the library's conformance suite (lib_*_test.c).
 *
 * The suite is black-box: it includes <pldk.h>, reads /proc, and knows nothing else. The same programs run on the
 * embedded provider, with far peers (PLDK_SHM_FAR=1) and on /dev/pld (PLDK_PROVIDER=dev); without a word in the
 * environment they take shm.
 *
 * A rank is a forked process (or, on shm, a thread) that runs a RANK() body. EXPECT_* and ASSERT_* work in bodies: each
 * has its own copy of the harness' _metadata, prints file:line itself and ends with 1 if anything failed, which
 * pt_finish() turns into a failure of the test. Nothing sleeps to synchronise: pt_until() polls for a fact.
 *
 * PLDK_TEST_SCALE=N is per cent of the usual number of rounds; below 100 the time limits grow by the same factor.
 */
#ifndef _PLDK_TEST_H
#define _PLDK_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

/* The harness compares what it is given and defines its helpers without prototypes. */
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kselftest_harness.h>
#include <pldk.h>

/* A test that does not end natively in this many seconds hangs; the VM is slower by an order of magnitude. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 110

#define PT_MAX_RANKS 260
#define PT_ERRNO 4242                                /* errno before each call: the library must leave it */
#define PT_POISON INT64_C(0x5ca1ab1e0ddba11)         /* outputs before each call that must not write them */
#define PT_POISON_PTR ((void *)(uintptr_t)0xdeadbee0u)

/*
 * Scale and time
 */

/* PLDK_TEST_SCALE, 1..100000 per cent. */
static inline long pt_scale(void)
{
	const char *text = getenv("PLDK_TEST_SCALE");
	long scale = text ? atol(text) : 100;

	return scale < 1 ? 100 : scale;
}

/* n rounds, scaled, at least 1. */
static inline long pt_rounds(long n)
{
	long scaled = n * pt_scale() / 100;

	return scaled < 1 ? 1 : scaled;
}

/* A limit of ms milliseconds, in milliseconds of a machine that is as slow as the scale says. */
static inline long pt_slow_ms(long ms)
{
	return pt_scale() < 100 ? ms * 100 / pt_scale() : ms;
}

static inline int64_t pt_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline long pt_ms_since(int64_t start)
{
	return (long)((pt_now() - start) / 1000000);
}

/* A timeout that only a hang reaches: a timed wait never counts as deadlocked. */
#define PT_LONG PLDK_MS(pt_slow_ms(8000) > 40000 ? 40000 : pt_slow_ms(8000))

static inline void pt_nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

/* Poll for a fact; false if it is not one after ms (slow machines get more). */
#define pt_until(condition, ms)                                                                                        \
	(__extension__({                                                                                               \
		int64_t pt_start_ = pt_now();                                                                          \
		bool pt_true_;                                                                                         \
		while (!(pt_true_ = (condition)) && pt_ms_since(pt_start_) < pt_slow_ms(ms))                           \
			pt_nap();                                                                                      \
		pt_true_;                                                                                              \
	}))

/*
 * Which provider
 */

static inline const char *pt_provider(void)
{
	const char *name = getenv("PLDK_PROVIDER");

	return name && *name ? name : "shm";
}

static inline bool pt_is_dev(void)
{
	return !strcmp(pt_provider(), "dev");
}

static inline bool pt_is_far(void)
{
	const char *far = getenv("PLDK_SHM_FAR");

	return !pt_is_dev() && far && *far && strcmp(far, "0");
}

/* Before main: the suite never takes a provider by chance. */
static void __attribute__((constructor)) pt_set_provider(void)
{
	setenv("PLDK_PROVIDER", pt_provider(), 1);
}

/*
 * Checks
 */

/* First of the words that is not in the text, or NULL. A word may give alternatives: "rank 1|rank1". No case. */
static inline const char *pt_lacks(const char *text, const char *const *words)
{
	for (; *words; words++) {
		char word[256];
		char *save = NULL;
		bool found = !**words;

		snprintf(word, sizeof(word), "%s", *words);
		for (char *part = strtok_r(word, "|", &save); part; part = strtok_r(NULL, "|", &save))
			found = found || strcasestr(text, part);
		if (!found)
			return *words;
	}
	return NULL;
}

/* The calling thread's last error sentence has all these words. */
#define EXPECT_SAYS(...)                                                                                               \
	do {                                                                                                           \
		const char *pt_lack_ = pt_lacks(pldk_last_error(), (const char *const[]){ __VA_ARGS__, NULL });        \
		EXPECT_EQ(NULL, pt_lack_)                                                                              \
		TH_LOG("\"%s\" does not say \"%s\"", pldk_last_error(), pt_lack_);                                     \
	} while (0)

#define PT_RESULT_(check, expected, expected_text, call, call_text)                                                   \
	do {                                                                                                           \
		errno = PT_ERRNO;                                                                                      \
		int64_t pt_result_ = (call);                                                                           \
		int pt_errno_ = errno;                                                                                 \
		EXPECT_EQ(PT_ERRNO, pt_errno_) TH_LOG("errno changed by %s", call_text);                               \
		check((int64_t)(expected), pt_result_)                                                                 \
		TH_LOG("%s = %" PRId64 " (%s), wanted %s: \"%s\"", call_text, pt_result_,                              \
		       pt_result_ < 0 ? strerror((int)-pt_result_) : "", expected_text, pldk_last_error());           \
	} while (0)

/* The call gives exactly this (0, a count, or a negative errno) and leaves errno alone. */
#define EXPECT_RET(expected, call) PT_RESULT_(EXPECT_EQ, expected, #expected, call, #call)
#define ASSERT_RET(expected, call) PT_RESULT_(ASSERT_EQ, expected, #expected, call, #call)
#define EXPECT_OK(call) PT_RESULT_(EXPECT_EQ, 0, "0", call, #call)
#define ASSERT_OK(call) PT_RESULT_(ASSERT_EQ, 0, "0", call, #call)

/*
 * /proc
 */

/* Read a file of /proc into text; empty if it is not there. */
static inline void pt_slurp(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t got;

	text[0] = 0;
	if (fd < 0)
		return;
	while (have + 1 < room && (got = read(fd, text + have, room - 1 - have)) > 0)
		have += (size_t)got;
	text[have] = 0;
	close(fd);
}

/* Run state of a thread: 'R', 'S', 'D', 'T', 't', 'Z', or 0. */
static inline char pt_run_state(pid_t pid, pid_t tid)
{
	char path[64], text[512], *paren;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	pt_slurp(path, text, sizeof(text));
	paren = strrchr(text, ')');
	return paren && paren[1] ? paren[2] : 0;
}

/* Is the thread asleep in the system call that its provider sleeps in? */
static inline bool pt_is_asleep(pid_t pid, pid_t tid)
{
	char path[64], text[256];
	long nr;

	if (pt_run_state(pid, tid) != 'S')
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	pt_slurp(path, text, sizeof(text));
	if (sscanf(text, "%ld", &nr) != 1)
		return true; /* not readable here: the state is all there is */
	return nr == SYS_ioctl || nr == SYS_futex || nr == SYS_ppoll || nr == 449 /* futex_waitv */;
}

/* Voluntary context switches of the calling thread. */
static inline long pt_switches(void)
{
	char text[4096], *line;

	pt_slurp("/proc/thread-self/status", text, sizeof(text));
	line = strstr(text, "\nvoluntary_ctxt_switches:");
	return line ? atol(line + 25) : -1;
}

/* kB that a line of /proc/meminfo or /proc/self/status gives. */
static inline long pt_proc_kb(const char *path, const char *key)
{
	char text[8192], *line;

	pt_slurp(path, text, sizeof(text));
	line = strstr(text, key);
	return line ? atol(line + strlen(key)) : -1;
}

/* Entries of a directory. */
static inline int pt_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline int pt_fds(void)
{
	return pt_entries("/proc/self/fd");
}

/* Lines of /proc/self/maps; with a word, those that have it. *bytes: their sum, if not NULL. */
static inline int pt_maps(const char *word, size_t *bytes)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	if (bytes)
		*bytes = 0;
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long from, to;

		if (word && !strstr(line, word))
			continue;
		n++;
		if (bytes && sscanf(line, "%lx-%lx", &from, &to) == 2)
			*bytes += to - from;
	}
	if (maps)
		fclose(maps);
	return n;
}

/*
 * What test, ranks and threads share: a page of counters
 */

#define PT_WORDS 512
static _Atomic int64_t *pt_words_;

/* Word i of a page that was shared before anybody forked; 0 at the start. */
static inline _Atomic int64_t *pt_word(int i)
{
	return &pt_words_[i];
}

static void __attribute__((constructor)) pt_share_words(void)
{
	pt_words_ =
		mmap(NULL, PT_WORDS * sizeof(*pt_words_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pt_words_ == MAP_FAILED)
		abort();
}

static bool pt_words_are_fresh_;

static inline void pt_clear_words(void)
{
	for (int i = 0; i < PT_WORDS; i++)
		atomic_store(&pt_words_[i], 0);
	pt_words_are_fresh_ = true;
}

/* Each test is a process of its own: its first world finds no words of another test. */
static inline void pt_fresh_words(void)
{
	if (!pt_words_are_fresh_)
		pt_clear_words();
}

/*
 * Ranks
 */

typedef void (*pt_body)(struct __test_metadata *_metadata, struct pldk_domain *world, int rank, int size, void *arg);

/* RANK(name) { ... }: what one rank does. Finalising is done for it. */
#define RANK(name)                                                                                                     \
	static void name(struct __test_metadata *_metadata, struct pldk_domain *world, int rank, int size, void *arg)

/**
 * struct pt_run - one world and its ranks
 * @nranks: ranks
 * @body: what each does
 * @arg: for @body
 * @launcher: report every end by pldk_world_mark_dead(), as pldrun does
 * @leave: do not finalise after the body: the rank then exits with its windows open
 * @limit_ms: kill by pid what still runs then; 0 is 20 s natively
 * @options: of the world, or NULL
 * @fd: the world
 * @pid: of each rank, 0 before it was started and after it ended
 * @status: as from waitpid(2), -1 before
 * @may_die: a rank may end otherwise than by exit(0)
 */
struct pt_run {
	int nranks;
	pt_body body;
	void *arg;
	bool launcher;
	bool leave;
	long limit_ms;
	const struct pldk_world_options *options;
	int fd;
	pid_t pid[PT_MAX_RANKS];
	int status[PT_MAX_RANKS];
	bool may_die[PT_MAX_RANKS];
};

/* Join, run the body with an environment of its own for ASSERT, finalise. True if nothing failed. */
static bool pt_be_rank(struct __test_metadata *of_test, struct pt_run *run, int rank)
{
	struct __test_metadata *_metadata = calloc(1, sizeof(*_metadata));
	struct pldk_domain *world = NULL;
	bool passed;

	*_metadata = *of_test;
	_metadata->passed = 1;
	_metadata->trigger = 0;
	_metadata->aborted = false;
	if (!setjmp(_metadata->env)) {
		ASSERT_OK(pldk_world_join(run->fd, rank, PT_LONG, &world));
		ASSERT_EQ(rank, pldk_rank(world));
		ASSERT_EQ(run->nranks, pldk_size(world));
		run->body(_metadata, world, rank, run->nranks, run->arg);
		if (!run->leave)
			EXPECT_OK(pldk_finalize(world));
	} else {
		fprintf(stderr, "# rank %d of %d stopped at the assertion\n", rank, run->nranks);
		pldk_abort(world, 99);
	}
	passed = _metadata->passed;
	free(_metadata);
	return passed;
}

/* Start one rank as a process. */
static void pt_start_rank(struct __test_metadata *_metadata, struct pt_run *run, int rank)
{
	pid_t parent = getpid();

	run->status[rank] = -1;
	run->pid[rank] = fork();
	ASSERT_GE(run->pid[rank], 0);
	if (run->pid[rank])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(9);
	_exit(!pt_be_rank(_metadata, run, rank));
}

/* Make the world, start nobody. */
static void pt_create(struct __test_metadata *_metadata, struct pt_run *run)
{
	run->fd = -1;
	pt_fresh_words();
	ASSERT_LE(run->nranks, PT_MAX_RANKS);
	ASSERT_OK(pldk_world_create(run->nranks, run->options, &run->fd));
	for (int r = 0; r < run->nranks; r++)
		run->status[r] = -1;
}

/* Make the world and start its ranks as processes. */
static void pt_start(struct __test_metadata *_metadata, struct pt_run *run)
{
	pt_create(_metadata, run);
	for (int r = 0; r < run->nranks; r++)
		pt_start_rank(_metadata, run, r);
}

static inline int pt_rank_left(const struct pt_run *run)
{
	for (int r = 0; r < run->nranks; r++)
		if (run->pid[r])
			return r;
	return -1;
}

/* Collect whoever ends within ms (not scaled). Returns a rank that ended, or -1. */
static int pt_collect_one(struct pt_run *run, long ms)
{
	struct pollfd fds[PT_MAX_RANKS];
	int rank_of[PT_MAX_RANKS], n = 0, ended = -1;

	for (int r = 0; r < run->nranks; r++) {
		if (!run->pid[r])
			continue;
		fds[n].fd = (int)syscall(SYS_pidfd_open, run->pid[r], 0);
		fds[n].events = POLLIN;
		rank_of[n++] = r;
	}
	poll(fds, (nfds_t)n, (int)ms);
	for (int i = 0; i < n; i++) {
		int r = rank_of[i];

		if (ended < 0 && (fds[i].revents & POLLIN) && waitpid(run->pid[r], &run->status[r], WNOHANG) > 0) {
			run->pid[r] = 0;
			ended = r;
			if (run->launcher)
				pldk_world_mark_dead(run->fd, r, run->status[r]);
		}
		close(fds[i].fd);
	}
	return ended;
}

/* Kill -9 one rank by pid and, in a run with a launcher, tell it. */
static void pt_kill(struct pt_run *run, int rank)
{
	kill(run->pid[rank], SIGKILL);
	if (!run->launcher)
		return; /* nobody reaps: the others must find out themselves */
	waitpid(run->pid[rank], &run->status[rank], 0);
	run->pid[rank] = 0;
	pldk_world_mark_dead(run->fd, rank, run->status[rank]);
}

/* Collect all ranks; what does not end in time is described and killed. Every rank must have ended with exit(0). */
static void pt_finish(struct __test_metadata *_metadata, struct pt_run *run)
{
	long limit = pt_slow_ms(run->limit_ms ? run->limit_ms : 20000);
	int64_t start = pt_now();
	int failed = 0;

	if (limit > 100000)
		limit = 100000;
	while (pt_rank_left(run) >= 0) {
		long left = limit - pt_ms_since(start);
		int r;

		if (left > 0) {
			pt_collect_one(run, left);
			continue;
		}
		r = pt_rank_left(run);
		TH_LOG("rank %d of %d (pid %d, state %c) still runs after %ld ms: killed", r, run->nranks, run->pid[r],
		       pt_run_state(run->pid[r], run->pid[r]), limit);
		kill(run->pid[r], SIGKILL);
		waitpid(run->pid[r], &run->status[r], 0);
		run->pid[r] = 0;
		failed++;
	}
	for (int r = 0; r < run->nranks; r++) {
		if (run->status[r] == 0 || run->may_die[r])
			continue;
		TH_LOG("rank %d of %d ended with %s %d", r, run->nranks,
		       WIFSIGNALED(run->status[r]) ? "signal" : "exit code",
		       WIFSIGNALED(run->status[r]) ? WTERMSIG(run->status[r]) : WEXITSTATUS(run->status[r]));
		failed++;
	}
	if (run->fd >= 0)
		close(run->fd);
	EXPECT_EQ(0, failed);
}

/* P processes run body to the end; all must succeed. */
static void pt_run_ranks(struct __test_metadata *_metadata, int nranks, pt_body body, void *arg)
{
	struct pt_run run = { .nranks = nranks, .body = body, .arg = arg };

	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}
#define run_ranks(nranks, body, arg) pt_run_ranks(_metadata, nranks, body, arg)

struct pt_thread {
	struct __test_metadata *metadata;
	struct pt_run *run;
	pthread_t thread;
	int rank;
	bool passed;
};

static void *pt_thread_main(void *arg)
{
	struct pt_thread *self = arg;

	self->passed = pt_be_rank(self->metadata, self->run, self->rank);
	return NULL;
}

/* P threads of this process run body, each as a rank. Only shm can do it: callers skip elsewhere. */
static void pt_run_threads(struct __test_metadata *_metadata, int nranks, pt_body body, void *arg)
{
	struct pt_run run = { .nranks = nranks, .body = body, .arg = arg };
	struct pt_thread *threads = calloc((size_t)nranks, sizeof(*threads));
	pthread_attr_t attr;

	pt_create(_metadata, &run);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 512 * 1024);
	for (int r = 0; r < nranks; r++) {
		threads[r] = (struct pt_thread){ .metadata = _metadata, .run = &run, .rank = r };
		ASSERT_EQ(0, pthread_create(&threads[r].thread, &attr, pt_thread_main, &threads[r]));
	}
	for (int r = 0; r < nranks; r++) {
		pthread_join(threads[r].thread, NULL);
		EXPECT_TRUE(threads[r].passed) TH_LOG("thread rank %d of %d failed", r, nranks);
	}
	pthread_attr_destroy(&attr);
	free(threads);
	close(run.fd);
}
#define run_threads(nranks, body, arg) pt_run_threads(_metadata, nranks, body, arg)

/* CHILD(name) { ... }: what a process of its own does, with an environment of its own. */
#define CHILD(name) static void name(struct __test_metadata *_metadata, void *arg)

/* Run body in a forked process; it must end in time and without a failure. */
static void pt_in_child(struct __test_metadata *_metadata, void (*body)(struct __test_metadata *, void *), void *arg)
{
	pid_t pid;
	int status = -1, pidfd;

	pt_fresh_words();
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_metadata->passed = 1;
		if (!setjmp(_metadata->env))
			body(_metadata, arg);
		_exit(!_metadata->passed);
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, (int)pt_slow_ms(20000)) < 1) {
		TH_LOG("child %d (state %c) hangs: killed", pid, pt_run_state(pid, pid));
		kill(pid, SIGKILL);
	}
	close(pidfd);
	waitpid(pid, &status, 0);
	EXPECT_EQ(0, status);
}
#define in_child(body, arg) pt_in_child(_metadata, body, arg)

#define SKIP_ON_DEV(why)                                                                                               \
	do {                                                                                                           \
		if (pt_is_dev())                                                                                       \
			SKIP(return, "dev: %s", why);                                                                  \
	} while (0)

#define SKIP_FAR(why)                                                                                                  \
	do {                                                                                                           \
		if (pt_is_far())                                                                                       \
			SKIP(return, "far peers: %s", why);                                                            \
	} while (0)

/*
 * Windows and tensors, short
 */

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

/* A data window of bytes. */
static inline struct pldk_window *pt_window(struct __test_metadata *_metadata, struct pldk_domain *domain, size_t bytes)
{
	struct pldk_window *window = NULL;

	ASSERT_OK(pldk_window_create(domain, bytes, NULL, &window));
	return window;
}

/* A signal window of cells. */
static inline struct pldk_window *pt_signal(struct __test_metadata *_metadata, struct pldk_domain *domain,
					    int64_t cells)
{
	struct pldk_window *window = NULL;

	ASSERT_OK(pldk_signal_create(domain, 1, &cells, NULL, &window));
	return window;
}

/* A view of n elements from the start of a window. */
static inline struct pldk_dtensor pt_view(struct __test_metadata *_metadata, struct pldk_window *window,
					  enum pldk_dtype dtype, int64_t n)
{
	struct pldk_dtensor view;

	memset(&view, 0, sizeof(view));
	ASSERT_OK(pldk_view(window, 0, 1, &n, dtype, &view));
	return view;
}

/* n elements of the caller's own. */
static inline struct pldk_tensor pt_tensor(struct __test_metadata *_metadata, void *data, enum pldk_dtype dtype,
					   int64_t n)
{
	struct pldk_tensor tensor;

	memset(&tensor, 0, sizeof(tensor));
	ASSERT_OK(pldk_tensor_of(&tensor, data, dtype, 1, &n));
	return tensor;
}

/* One entry of a vector. */
#define AWAIT(signal_, cell_, cmp_, from_, expected_)                                                                  \
	((struct pldk_await){ .signal = (signal_), .cell = (cell_), .cmp = (cmp_), .from = (from_),                    \
			      .flags = (from_) == PLDK_RANK_ANY ? 0 : PLDK_AWAIT_FROM, .expected = (expected_),        \
			      .seen = PT_POISON })
#define POST(signal_, peer_, op_, cell_, value_)                                                                       \
	((struct pldk_post){ .signal = (signal_), .peer = (peer_), .op = (op_), .cell = (cell_), .value = (value_) })

/* xorshift: the same numbers on every machine. */
static inline uint64_t pt_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

#endif /* _PLDK_TEST_H */
