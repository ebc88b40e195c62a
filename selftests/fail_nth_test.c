// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation and user copy of a create/use/destroy sequence fails once (/proc/self/fail-nth). A failure must be
 * one of the errors that the contract allows, undone completely, and the step must succeed when tried again.
 */
#include "pld_test.h"

FIXTURE(fail_nth)
{
	struct pld_counts before;
};

static const char *const switches[] = { "failslab", "fail_page_alloc", "fail_usercopy" };

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static int injection_on(void)
{
	char path[128];
	unsigned int i;
	int any = -ENOENT;

	pld_counter("domains"); /* mounts debugfs */
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/verbose", switches[i]);
		if (!write_file(path, "0"))
			any = 0;
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-wait", switches[i]);
		write_file(path, "N");
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-highmem", switches[i]);
		write_file(path, "N");
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/min-order", switches[i]);
		write_file(path, "0");
	}
	return any;
}

/* A variant a step, in the order of steps[]. */
FIXTURE_VARIANT(fail_nth)
{
	unsigned int step;
};

FIXTURE_VARIANT_ADD(fail_nth, domain_create) { 0 };
FIXTURE_VARIANT_ADD(fail_nth, join_first) { 1 };
FIXTURE_VARIANT_ADD(fail_nth, join_second) { 2 };
FIXTURE_VARIANT_ADD(fail_nth, subset) { 3 };
FIXTURE_VARIANT_ADD(fail_nth, create_window) { 4 };
FIXTURE_VARIANT_ADD(fail_nth, attach_window) { 5 };
FIXTURE_VARIANT_ADD(fail_nth, data_window) { 6 };
FIXTURE_VARIANT_ADD(fail_nth, mmap) { 7 };
FIXTURE_VARIANT_ADD(fail_nth, notify) { 8 };
FIXTURE_VARIANT_ADD(fail_nth, wait) { 9 };
FIXTURE_VARIANT_ADD(fail_nth, sleep) { 10 };
FIXTURE_VARIANT_ADD(fail_nth, ledger) { 11 };
FIXTURE_VARIANT_ADD(fail_nth, deadlock) { 12 };
FIXTURE_VARIANT_ADD(fail_nth, destroy) { 13 };

FIXTURE_SETUP(fail_nth)
{
	PLD_NEED_DEVICE();
	PLD_NEED_COUNTERS();
	if (access("/proc/self/fail-nth", W_OK) || injection_on())
		PLD_SKIP("needs CONFIG_FAULT_INJECTION with failslab (debug kernel)");
	self->before = pld_counts_now();
}

FIXTURE_TEARDOWN(fail_nth)
{
}

/* What a rank has after so many steps of its life. */
struct life {
	int nth;
	int dev;
	int dom;
	int r0;
	int r1;
	int sub;
	struct pld_window_create c;
	char *map;
};

static int do_create(struct life *l)
{
	struct pld_domain_create d = { .nranks = 2 };
	int ret = pld_ioctl(l->dev, PLD_IOC_DOMAIN_CREATE, &d);

	l->dom = d.out_fd;
	return ret;
}

static int do_join0(struct life *l)
{
	return (l->r0 = pld_join(l->dom, 0)) < 0 ? l->r0 : 0;
}

static int do_join1(struct life *l)
{
	return (l->r1 = pld_join(l->dom, 1)) < 0 ? l->r1 : 0;
}

static int do_subset(struct life *l)
{
	return (l->sub = pld_subset(l->r0, 1, 2, (uint32_t[]){ 0, 1 })) < 0 ? l->sub : 0;
}

static int do_signal0(struct life *l)
{
	return pld_signal_window(l->r0, 1, 640, NULL);
}

static int do_signal1(struct life *l)
{
	return pld_signal_window(l->r1, 1, 640, NULL);
}

static int do_data(struct life *l)
{
	return pld_window(l->r0, 2, PLD_WINDOW_DATA, 0, 40 * PLD_PAGE, &l->c);
}

static int do_map(struct life *l)
{
	l->map = pld_map(l->r0, l->c.out_mmap_offset, 80 * PLD_PAGE, PROT_READ | PROT_WRITE);
	return l->map == MAP_FAILED ? -errno : 0;
}

static int do_notify(struct life *l)
{
	struct pld_notify_cell e[40];
	struct pld_notify n = { .cells = pld_ptr(e), .ncells = 40, .cell_size = sizeof(e[0]) };
	int i;

	for (i = 0; i < 40; i++)
		e[i] = (struct pld_notify_cell){ .window_id = 1, .rank = 0, .cell = i };
	return pld_ioctl(l->r1, PLD_IOC_CELL_NOTIFY, &n);
}

static int wait_long(struct life *l, uint64_t deadline)
{
	struct pld_wait_cell e[40];
	struct pld_wait w = pld_wait_of(e, 40, 0, deadline);
	int i, ret;

	for (i = 0; i < 40; i++)
		e[i] = (struct pld_wait_cell)PLD_WAIT_CELL(1, i, PLD_CMP_GE, !!deadline, PLD_RANK_ANY);
	ret = pld_ioctl(l->r0, PLD_IOC_CELL_WAIT, &w);
	return ret == -ETIMEDOUT || ret == -EDEADLK ? 0 : ret;
}

static int do_wait(struct life *l)
{
	return wait_long(l, 0);
}

static int do_sleep(struct life *l)
{
	return wait_long(l, 1);
}

/* Both ranks are this one thread: the referee is asked after 50 ms. If it cannot allocate, it is asked again. */
static int do_deadlock(struct life *l)
{
	return wait_long(l, PLD_DEADLINE_NEVER);
}

static int do_ledger(struct life *l)
{
	struct pld_ledger_entry e[4];
	struct pld_ledger u = { .entries = pld_ptr(e), .nentries = 4, .entry_size = sizeof(e[0]) };

	return pld_ioctl(l->dom, PLD_IOC_LEDGER, &u);
}

static int do_destroy(struct life *l)
{
	return pld_window_destroy(l->r0, 2);
}

/* In the order of life; @key and @undone: what fdinfo of the domain must say when the step failed. */
static const struct step {
	const char *name;
	int (*run)(struct life *l);
	const char *key;
	uint64_t undone;
} steps[] = {
	{ "domain_create", do_create, NULL, 0 },
	{ "join 0", do_join0, "joined", 0 },
	{ "join 1", do_join1, "joined", 1 },
	{ "subset", do_subset, "joined", 2 },
	{ "create window", do_signal0, "windows", 0 },
	{ "attach window", do_signal1, "windows", 1 },
	{ "data window", do_data, "windows", 1 },
	{ "mmap", do_map, "windows", 2 },
	{ "notify", do_notify, "windows", 2 },
	{ "wait", do_wait, "waiters", 0 },
	{ "sleep", do_sleep, "waiters", 0 },
	{ "ledger", do_ledger, "waiters", 0 },
	{ "deadlock", do_deadlock, "waiters", 0 },
	{ "destroy", do_destroy, "windows", 2 },
};

enum outcome { FAILED = 10, SURVIVED, NOT_REACHED };

static int arm(int fd, int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	return pwrite(fd, text, len, 0) == len ? 0 : -errno;
}

/* In a child: live up to step @k, let its @n-th chance to fail be one. */
static void live(unsigned int k, int n)
{
	struct life l = { .nth = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC), .dev = pld_open() };
	char left[16] = {};
	unsigned int i;
	int ret;

	PLD_CHILD_CHECK(l.nth >= 0 && l.dev >= 0);
	for (i = 0; i < k; i++)
		PLD_CHILD_CHECK(!steps[i].run(&l));
	PLD_CHILD_CHECK(!arm(l.nth, n));
	ret = steps[k].run(&l);
	/* The copy to us may be the one that fails: then nothing had been reached before. */
	if (pread(l.nth, left, sizeof(left) - 1, 0) <= 0)
		_exit(NOT_REACHED);
	PLD_CHILD_CHECK(!arm(l.nth, 0));
	if (atoi(left))
		_exit(NOT_REACHED);
	if (!ret)
		_exit(SURVIVED); /* by a fallback */
	PLD_CHILD_CHECK(ret == -ENOMEM || ret == -EFAULT || ret == -ENFILE || ret == -EMFILE);
	if (steps[k].key)
		PLD_CHILD_CHECK(pld_fdinfo(l.dom, steps[k].key) == steps[k].undone);
	PLD_CHILD_CHECK(!steps[k].run(&l));
	_exit(FAILED);
}

TEST_F_TIMEOUT(fail_nth, every_failure_of_the_step_is_clean, 280)
{
	const struct step *step = &steps[variant->step];
	unsigned int n, count[3] = {};
	int status;
	pid_t pid;

	for (n = 1; n < 400 && !count[NOT_REACHED - FAILED]; n++) {
		pid = pld_fork();
		if (!pid)
			live(variant->step, n);
		status = pld_reap(pid, 20000);
		ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) >= FAILED && WEXITSTATUS(status) <= NOT_REACHED)
		{
			TH_LOG("%s, failure %u: status %x", step->name, n, status);
		}
		ASSERT_TRUE(PLD_WAIT_FOR(pld_counts_are(&self->before), 10000))
		{
			TH_LOG("%s, failure %u: something stayed behind", step->name, n);
		}
		count[WEXITSTATUS(status) - FAILED]++;
	}
	EXPECT_EQ(1, count[NOT_REACHED - FAILED]);
	TH_LOG("%s: %u failures, %u survived", step->name, count[0], count[1]);
}

TEST_HARNESS_MAIN
