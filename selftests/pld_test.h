/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of pld.ko share: ioctl wrappers that return 0 or -errno, children that cannot outlive the test, and
 * the two places where the module shows its state (fdinfo and debugfs).
 *
 * Rules: every output is filled with POISON before a call; nobody sleeps to give others time, but waits for an
 * observable state with PLD_WAIT_FOR(); a missing device, right or kernel option is SKIP with its reason.
 */
#ifndef PLD_TEST_H
#define PLD_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/pld.h>

/* EXPECT_EQ(0, unsigned) is the harness's idiom, and its wrappers have parameters that not every test uses. */
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"

#include "kselftest_harness.h"

#define POISON 0x5a5a5a5a5a5a5a5aull
#define POISON32 0x5a5a5a5au
#define PLD_PAGE 4096ul
#define MSEC 1000000ull
#define SEC 1000000000ull

/*
 * SKIP that also works in FIXTURE_SETUP: there, 6.1's harness would go on with the test after a return. 255 is how a
 * test's process says SKIP to it.
 */
#define PLD_SKIP(fmt, ...)                                        \
	do {                                                      \
		SKIP(fflush(NULL), fmt, ##__VA_ARGS__);           \
		_exit(255);                                       \
	} while (0)

#define PLD_NEED_DEVICE()                                                       \
	do {                                                                    \
		if (access("/dev/pld", R_OK | W_OK))                            \
			PLD_SKIP("cannot open /dev/pld: %s", strerror(errno));  \
	} while (0)

#define PLD_NEED_ROOT()                           \
	do {                                      \
		if (geteuid())                    \
			PLD_SKIP("needs root");   \
	} while (0)

static inline uint64_t pld_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SEC + t.tv_nsec;
}

/* True when @cond came true within @ms milliseconds. */
#define PLD_WAIT_FOR(cond, ms)                                                          \
	({                                                                              \
		uint64_t _end = pld_now() + (ms) * MSEC;                                \
		bool _ok;                                                               \
		while (!(_ok = (cond)) && pld_now() < _end)                             \
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);      \
		_ok;                                                                    \
	})

static inline int pld_ioctl(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? -errno : 0;
}

static inline uint64_t pld_ptr(const void *p)
{
	return (uintptr_t)p;
}

static inline int pld_open(void)
{
	return open("/dev/pld", O_RDWR | O_CLOEXEC);
}

/* A new domain file, or -errno. */
static inline int pld_domain_new(uint32_t nranks)
{
	struct pld_domain_create c = { .nranks = nranks, .out_fd = -1 };
	int fd = pld_open(), ret;

	if (fd < 0)
		return -errno;
	ret = pld_ioctl(fd, PLD_IOC_DOMAIN_CREATE, &c);
	close(fd);
	return ret ? ret : c.out_fd;
}

/* A new rank file, or -errno. */
static inline int pld_join(int domain, uint32_t rank)
{
	struct pld_domain_join j = { .rank = rank, .out_fd = -1 };
	int ret = pld_ioctl(domain, PLD_IOC_DOMAIN_JOIN, &j);

	return ret ? ret : j.out_fd;
}

static inline int pld_subset(int rank_fd, uint32_t key, uint32_t n, const uint32_t *ranks)
{
	struct pld_domain_subset s = { .key = key, .nranks = n, .ranks = pld_ptr(ranks), .out_fd = -1 };
	int ret = pld_ioctl(rank_fd, PLD_IOC_DOMAIN_SUBSET, &s);

	return ret ? ret : s.out_fd;
}

static inline int pld_leave(int rank_fd)
{
	struct pld_domain_leave l = {};

	return pld_ioctl(rank_fd, PLD_IOC_DOMAIN_LEAVE, &l);
}

static inline int pld_poison(int fd, uint32_t reason)
{
	struct pld_domain_poison p = { .reason = reason };

	return pld_ioctl(fd, PLD_IOC_DOMAIN_POISON, &p);
}

static inline uint32_t pld_member_state(int fd, uint32_t rank)
{
	struct pld_domain_member m = { .rank = rank };

	return pld_ioctl(fd, PLD_IOC_DOMAIN_MEMBER, &m) ? POISON32 : m.out_member.state;
}

static inline int pld_window(int rank_fd, uint32_t id, uint32_t kind, uint32_t flags, uint64_t bytes,
			     struct pld_window_create *out)
{
	struct pld_window_create local, *c = out ? out : &local;

	memset(c, 0x5a, sizeof(*c));
	c->window_id = id;
	c->kind = kind;
	c->flags = flags;
	c->reserved = 0;
	c->tag = 0;
	c->bytes = bytes;
	return pld_ioctl(rank_fd, PLD_IOC_WINDOW_CREATE, c);
}

/* Create or attach a signal window of @ncells cells. */
static inline int pld_signal_window(int rank_fd, uint32_t id, uint32_t ncells, struct pld_window_create *out)
{
	return pld_window(rank_fd, id, PLD_WINDOW_SIGNAL, PLD_WINDOW_F_ATTACH, (uint64_t)ncells * PLD_CELL_SIZE, out);
}

static inline int pld_window_destroy(int rank_fd, uint32_t id)
{
	struct pld_window_destroy d = { .window_id = id };

	return pld_ioctl(rank_fd, PLD_IOC_WINDOW_DESTROY, &d);
}

static inline void *pld_map(int rank_fd, uint64_t offset, size_t len, int prot)
{
	/* mmap64: 32-bit programs need mmap2's page offsets. */
	return mmap64(NULL, len, prot, MAP_SHARED, rank_fd, offset);
}

static inline int pld_notify(int rank_fd, uint32_t window, uint32_t rank, uint32_t cell, uint32_t op, int64_t value)
{
	struct pld_notify_cell e = { .window_id = window, .rank = rank, .cell = cell, .op = op, .value = value,
				     .out_value = POISON };
	struct pld_notify n = { .cells = pld_ptr(&e), .ncells = 1, .cell_size = sizeof(e) };

	return pld_ioctl(rank_fd, PLD_IOC_CELL_NOTIFY, &n);
}

static inline int pld_add(int rank_fd, uint32_t window, uint32_t rank, uint32_t cell, int64_t value)
{
	return pld_notify(rank_fd, window, rank, cell, PLD_NOTIFY_ADD, value);
}

#define PLD_WAIT_CELL(_window, _cell, _cmp, _expected, _from)                                                   \
	{                                                                                                       \
		.window_id = _window, .cell = _cell, .cmp = _cmp, .from = _from, .expected = _expected,         \
		.out_value = (int64_t)POISON                                                                    \
	}

static inline struct pld_wait pld_wait_of(const struct pld_wait_cell *cells, uint32_t n, uint32_t flags,
					  uint64_t deadline)
{
	struct pld_wait w = { .cells = pld_ptr(cells), .ncells = n, .cell_size = sizeof(*cells), .flags = flags,
			      .deadline_ns = deadline, .out_index = POISON32, .out_rank = POISON32,
			      .out_verdict = POISON32 };

	return w;
}

/* Wait for value >= expected from @from. */
static inline int pld_wait_ge(int rank_fd, uint32_t window, uint32_t cell, int64_t expected, uint32_t from,
			      uint32_t flags, uint64_t deadline)
{
	struct pld_wait_cell e = PLD_WAIT_CELL(window, cell, PLD_CMP_GE, expected, from);
	struct pld_wait w = pld_wait_of(&e, 1, flags, deadline);

	return pld_ioctl(rank_fd, PLD_IOC_CELL_WAIT, &w);
}

static inline int64_t pld_value(int fd, uint32_t window, uint32_t rank, uint32_t cell)
{
	struct pld_cell_history h = { .window_id = window, .rank = rank, .cell = cell };

	return pld_ioctl(fd, PLD_IOC_CELL_HISTORY, &h) ? (int64_t)POISON : h.out_value;
}

/* Number after "key:" in @path, or ~0. */
static inline uint64_t pld_key_of(const char *path, const char *key)
{
	uint64_t value = ~0ull;
	size_t n = strlen(key);
	char line[512];
	FILE *f = fopen(path, "re");

	if (!f)
		return value;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, n) && line[n] == ':') {
			value = strtoull(line + n + 1, NULL, 10);
			break;
		}
	fclose(f);
	return value;
}

static inline uint64_t pld_fdinfo(int fd, const char *key)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return pld_key_of(path, key);
}

#define PLD_COUNTERS "/sys/kernel/debug/pld/counters"

/* A global counter of the module; mounts debugfs in our own mount namespace's view when it is missing. */
static inline uint64_t pld_counter(const char *key)
{
	if (access(PLD_COUNTERS, R_OK) && mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL))
		return ~0ull;
	return pld_key_of(PLD_COUNTERS, key);
}

#define PLD_NEED_COUNTERS()                                                          \
	do {                                                                         \
		if (pld_counter("domains") == ~0ull)                                 \
			PLD_SKIP("cannot read %s (debugfs, root)", PLD_COUNTERS);     \
	} while (0)

static const char *const pld_counter_names[] = { "domains", "members", "windows", "pages", "waiters" };
#define PLD_NCOUNTERS 5

struct pld_counts {
	uint64_t v[PLD_NCOUNTERS];
};

static inline struct pld_counts pld_counts_now(void)
{
	struct pld_counts c;
	int i;

	for (i = 0; i < PLD_NCOUNTERS; i++)
		c.v[i] = pld_counter(pld_counter_names[i]);
	return c;
}

static inline bool pld_counts_are(const struct pld_counts *want)
{
	struct pld_counts c = pld_counts_now();

	return !memcmp(&c, want, sizeof(c));
}

/* fork(); the child dies with the test, and after 60 s in any case. */
static inline pid_t pld_fork(void)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(99);
		alarm(60);
	}
	return pid;
}

/* Wait status of the child, or -1 when it did not end in time. */
static inline int pld_reap(pid_t pid, uint64_t ms)
{
	int status;

	if (PLD_WAIT_FOR(waitpid(pid, &status, WNOHANG) == pid, ms))
		return status;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -1;
}

/* In a child: the exit code says which line failed (modulo 200). */
#define PLD_CHILD_CHECK(cond)                                                                        \
	do {                                                                                         \
		if (!(cond)) {                                                                       \
			fprintf(stderr, "# %s:%d: child: %s (errno %d)\n", __FILE__, __LINE__, #cond, errno); \
			_exit(1 + __LINE__ % 200);                                                   \
		}                                                                                    \
	} while (0)

#define EXPECT_CHILD_OK(pid) EXPECT_EQ(0, pld_reap(pid, 20000))

/* Room in memory that two processes share without pld. */
static inline void *pld_shared(size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static inline int pld_send_fd(int sock, int fd)
{
	char byte = 0, buf[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = buf, .msg_controllen = sizeof(buf) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(sock, &m, 0) == 1 ? 0 : -errno;
}

static inline int pld_recv_fd(int sock)
{
	char byte, buf[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = buf, .msg_controllen = sizeof(buf) };
	int fd = -1;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return fd;
}

static inline char pld_proc_state(pid_t pid)
{
	char path[64], c = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%*d (%*[^)]) %c", &c) != 1)
		c = 0;
	fclose(f);
	return c;
}

static inline bool pld_all_zero(const void *p, size_t len)
{
	const unsigned char *c = p;

	return !len || (!c[0] && !memcmp(c, c + 1, len - 1));
}

#endif /* PLD_TEST_H */
