// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Far peers when things go wrong between a rank and the agent: it is stopped, it is late, it refuses, it throws a rank
 * out. What goes well is the business of the other lib_* programs, with PLDK_SHM_FAR=1.
 *
 * What the agent refuses nobody can send through the public functions, which check first; so this program has its own
 * sendmsg(2), which spoils messages on their way.
 */
#include "pldk_test_agent.h"

#include <sys/socket.h>

#define CANARY 0x7ea57ea5

/* A message as it travels, see lib/far.h. */
struct wire {
	uint32_t magic, op, len, window;
	uint64_t seq, domain, page;
	uint32_t rank, from, what, kind;
	uint64_t offset;
	int64_t value, expected;
	uint64_t bounce;
};

static void (*spoil)(struct wire *msg); /* done to the next message, once */
static void (*before_hello)(void);

ssize_t sendmsg(int fd, const struct msghdr *mh, int flags)
{
	if (spoil && mh->msg_iovlen && mh->msg_iov[0].iov_len == sizeof(struct wire)) {
		spoil(mh->msg_iov[0].iov_base);
		spoil = NULL;
	}
	return syscall(SYS_sendmsg, fd, mh, flags);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	int ret = (int)syscall(SYS_connect, fd, addr, len);

	if (before_hello) {
		before_hello();
		before_hello = NULL;
	}
	return ret;
}

#define SKIP_UNLESS_FAR()                                                                                              \
	do {                                                                                                           \
		if (!pt_is_far())                                                                                      \
			SKIP(return, "near peers: there is no agent");                                                 \
	} while (0)

/* Of the world that this process has open. */
static pid_t agent_pid(void)
{
	char link[300], to[64];
	const struct dirent *entry;
	bool found = false;
	struct stat world;
	ssize_t n;
	DIR *dir;

	dir = opendir("/proc/self/fd");
	while (dir && !found && (entry = readdir(dir))) {
		snprintf(link, sizeof(link), "/proc/self/fd/%s", entry->d_name);
		n = readlink(link, to, sizeof(to) - 1);
		to[n < 0 ? 0 : n] = 0;
		found = strstr(to, "memfd:pldk-world") && !stat(link, &world);
	}
	if (dir)
		closedir(dir);
	return found ? pt_agent_of(&world) : 0;
}

/*
 * An agent that does not move
 */

#define ROWS 64
#define COLS 4096
#define BOX (ROWS * COLS)

RANK(stop_the_agent)
{
	struct pldk_window *window = pt_window(_metadata, world, BOX * 4), *signal = pt_signal(_metadata, world, 8);
	struct pldk_window *counter = pt_window(_metadata, world, 64);
	struct pldk_rma_options options = PLDK_RMA_OPTIONS_INIT;
	struct pldk_region left_half = { SHAPE(0, 0), SHAPE(0, 0), SHAPE(ROWS, COLS / 2) };
	struct pldk_dtensor view, count = pt_view(_metadata, counter, PLDK_INT64, 8);
	struct pldk_handle *handle = NULL;
	int32_t *mine = malloc(BOX * 4), *base = pldk_window_base(window);
	struct pldk_tensor own;
	pid_t agent = agent_pid();
	int64_t old = PT_POISON, start;

	ASSERT_GT(agent, 0);
	for (int i = 0; i < BOX; i++)
		base[i] = mine[i] = rank;
	ASSERT_OK(pldk_view(window, 0, 2, SHAPE(ROWS, COLS), PLDK_INT32, &view));
	ASSERT_OK(pldk_tensor_of(&own, mine, PLDK_INT32, 2, SHAPE(ROWS, COLS)));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	options.timeout_ns = PLDK_MS(50);
	if (rank == 0) {
		ASSERT_OK(pldk_set_timeout(PLDK_MS(50)));
		ASSERT_EQ(0, kill(agent, SIGSTOP));
		start = pt_now();
		for (int i = 0; i < BOX; i++)
			mine[i] = CANARY;
		EXPECT_RET(-ETIMEDOUT, pldk_fetch_add(&count, 1, SHAPE(0), 1, &old));
		EXPECT_SAYS("agent", "stopped", "carried out");
		EXPECT_RET(-ETIMEDOUT, pldk_get(&own, &view, 1, &left_half, &options));
		EXPECT_SAYS("agent", "stopped");
		EXPECT_RET(-ETIMEDOUT, pldk_get(&own, &view, 1, NULL, NULL));
		EXPECT_RET(-ETIMEDOUT, pldk_fetch_add(&count, 1, SHAPE(0), 1, &old)); /* no place for the answer */
		EXPECT_SAYS("agent", "stopped", "taken");
		EXPECT_EQ(PT_POISON, old);
		EXPECT_RET(-ETIMEDOUT, pldk_remote_load(&own, &view, 1, SHAPE(0, 0), SHAPE(ROWS, COLS), NULL));
		/* Larger than what fits on the way. */
		EXPECT_RET(-ETIMEDOUT, pldk_put(&view, 1, &own, NULL, &options));
		EXPECT_SAYS("agent", "stopped", "taken");
		EXPECT_RET(-ETIMEDOUT, pldk_put_nb(&view, 1, &own, NULL, &options, &handle));
		EXPECT_RET(-ETIMEDOUT, pldk_remote_store(&own, &view, 1, SHAPE(0, 0), PLDK_ATOMIC_NONE));
		EXPECT_RET(-ETIMEDOUT, pldk_put_notify(&view, 1, &own, NULL, &options,
						       &(struct pldk_signal_to){ signal, 0, 1, PLDK_NOTIFY_ADD }));
		EXPECT_RET(-ETIMEDOUT, pldk_notify(signal, 0, 0, PLDK_NOTIFY_ADD, 1)); /* the put comes first */
		EXPECT_RET(-ETIMEDOUT, pldk_flush(world, 1, PLDK_MS(50)));
		EXPECT_RET(-ETIMEDOUT, pldk_barrier(world, PLDK_MS(50)));
		EXPECT_RET(-EAGAIN, pldk_barrier(world, PLDK_TRY));
		EXPECT_LT(pt_ms_since(start), pt_slow_ms(5000));
		ASSERT_EQ(0, kill(agent, SIGCONT));
		ASSERT_OK(pldk_set_timeout(PLDK_FOREVER));
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	/* All that was given up has been carried out by now, and nothing of it came here. */
	for (int i = 0; rank == 0 && i < BOX; i++) {
		ASSERT_EQ(CANARY, mine[i]);
	}
	if (rank == 1)
		EXPECT_EQ(1, *(int64_t *)pldk_window_base(counter)); /* the first had been sent */
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 0) {
		ASSERT_OK(pldk_put(&view, 1, &own, NULL, &options));
		mine[0] = 0;
		options.timeout_ns = 0;
		ASSERT_OK(pldk_get(&own, &view, 1, NULL, &options));
		EXPECT_EQ(CANARY, mine[0]);
		ASSERT_OK(pldk_fetch_add(&count, 1, SHAPE(0), 1, &old));
		EXPECT_EQ(1, old);
		ASSERT_OK(pldk_notify(signal, 1, 1, PLDK_NOTIFY_SET, 7));
	} else {
		ASSERT_OK(pldk_wait(signal, 1, PLDK_EQ, 7, PT_LONG));
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	free(mine);
	(void)size;
}

TEST(a_stopped_agent_ends_what_waits_for_it_in_time)
{
	SKIP_UNLESS_FAR();
	run_ranks(2, stop_the_agent, NULL);
}

/* More peers than the way takes notifies: the announcement of a barrier stops half way, and is gone on with. */
#define MANY 24

RANK(half_announced)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);
	pid_t agent = agent_pid();
	int sent = 0, ret = 0;

	ASSERT_GT(agent, 0);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 0) {
		ASSERT_EQ(0, kill(agent, SIGSTOP));
		ASSERT_OK(pldk_set_timeout(PLDK_MS(50)));
		while (!ret && ++sent < 100000)
			ret = pldk_notify(signal, 1, 0, PLDK_NOTIFY_ADD, 1);
		EXPECT_EQ(-ETIMEDOUT, ret);
		EXPECT_SAYS("agent", "stopped");
		EXPECT_RET(-ETIMEDOUT, pldk_barrier(world, PLDK_MS(50)));
		EXPECT_RET(-ETIMEDOUT, pldk_barrier(world, PLDK_MS(50)));
		ASSERT_EQ(0, kill(agent, SIGCONT));
		atomic_store(pt_word(0), sent - 1);
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 1)
		EXPECT_OK(pldk_wait(signal, 0, PLDK_EQ, atomic_load(pt_word(0)), PT_LONG));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)size;
}

TEST(a_barrier_that_was_announced_to_some_goes_on)
{
	SKIP_UNLESS_FAR();
	run_ranks(MANY, half_announced, NULL);
}

/* Leaving does not wait for ever. */
RANK(leave_a_stopped_agent)
{
	struct pldk_window *window = pt_window(_metadata, world, 64);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT64, 8);
	int64_t mine[8] = { 0 };
	struct pldk_tensor own = pt_tensor(_metadata, mine, PLDK_INT64, 8);
	struct pldk_handle *handle;

	ASSERT_OK(pldk_set_timeout(PLDK_MS(200)));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 1)
		atomic_store(pt_word(1), 1);
	if (rank == 0) {
		/* What rank 0 said in the barrier may still be with the agent. */
		ASSERT_TRUE(pt_until(atomic_load(pt_word(1)), 20000));
		ASSERT_EQ(0, kill(agent_pid(), SIGSTOP));
		ASSERT_OK(pldk_get_nb(&own, &view, 1, NULL, NULL, &handle));
		ASSERT_OK(pldk_window_destroy(window));
		atomic_store(pt_word(0), agent_pid());
	}
	(void)size;
}

TEST(who_leaves_does_not_wait_for_a_stopped_agent_for_ever)
{
	struct pt_run run = { .nranks = 2, .body = leave_a_stopped_agent, .leave = true };

	SKIP_UNLESS_FAR();
	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
	ASSERT_GT(atomic_load(pt_word(0)), 0);
	kill((pid_t)atomic_load(pt_word(0)), SIGCONT); /* it finds itself alone, and ends */
}

/*
 * An agent that refuses
 */

static void wrong_rank(struct wire *msg)
{
	msg->rank = 77;
}

static void not_myself(struct wire *msg)
{
	msg->from ^= 1;
}

static void no_domain(struct wire *msg)
{
	msg->domain += 4096;
}

static void no_window(struct wire *msg)
{
	msg->window = 60000;
}

static void other_page(struct wire *msg)
{
	msg->page += 4096;
}

static void beyond_the_end(struct wire *msg)
{
	msg->offset = 1 << 30;
}

static void beyond_the_bounce(struct wire *msg)
{
	msg->bounce = UINT64_MAX - 4;
}

static void no_such_operation(struct wire *msg)
{
	msg->op = 99;
}

static void another_language(struct wire *msg)
{
	msg->magic = 1;
}

static const struct {
	void (*spoil)(struct wire *);
	int err;
} refusals[] = {
	{ wrong_rank, -EINVAL },     { not_myself, -EINVAL },	 { no_domain, -EINVAL },
	{ no_window, -ESTALE },	     { other_page, -ESTALE },	 { beyond_the_end, -EINVAL },
	{ beyond_the_bounce, -EINVAL }, { no_such_operation, -EINVAL },
};

RANK(be_refused)
{
	struct pldk_window *window = pt_window(_metadata, world, 1 << 20), *signal = pt_signal(_metadata, world, 8);
	int64_t *mine = malloc(1 << 20), *base = pldk_window_base(window), old = PT_POISON;
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT64, 1 << 17);
	struct pldk_tensor own = pt_tensor(_metadata, mine, PLDK_INT64, 1 << 17);

	for (int i = 0; i < 1 << 17; i++)
		base[i] = rank;
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (size_t i = 0; rank == 0 && i < ARRAY_SIZE(refusals); i++) {
		/* One of 16 pieces is refused: the get fails, and what is written is not what the next get is told. */
		spoil = refusals[i].spoil;
		EXPECT_RET(refusals[i].err, pldk_get(&own, &view, 1, NULL, NULL));
		EXPECT_SAYS("refused");
		memset(mine, 0, 1 << 20);
		EXPECT_OK(pldk_get(&own, &view, 1, NULL, NULL));
		EXPECT_EQ(1, mine[0]);
		EXPECT_EQ(1, mine[(1 << 17) - 1]);
		spoil = refusals[i].spoil;
		EXPECT_RET(refusals[i].err, pldk_fetch_add(&view, 1, SHAPE(0), 0, &old));
		EXPECT_EQ(PT_POISON, old);
		/* Nobody waits for a put: whoever asks next is told, once. */
		if (refusals[i].spoil != beyond_the_bounce && refusals[i].spoil != no_such_operation) {
			spoil = refusals[i].spoil;
			EXPECT_OK(pldk_put(&view, 1, &own, NULL, NULL));
			EXPECT_RET(refusals[i].err, pldk_notify(signal, 0, 0, PLDK_NOTIFY_ADD, 1));
			EXPECT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_ADD, 1));
			spoil = refusals[i].spoil;
			EXPECT_OK(pldk_notify(signal, 1, 0, PLDK_NOTIFY_ADD, 1));
			EXPECT_TRUE(pt_until(pldk_notify(signal, 1, 1, PLDK_NOTIFY_ADD, 1) == refusals[i].err, 10000));
		}
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 1)
		EXPECT_RET(0, pldk_test(signal, 0, PLDK_GT, 0)); /* what was refused was not done */
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	free(mine);
	(void)size;
}

TEST(what_the_agent_refuses_is_told)
{
	SKIP_UNLESS_FAR();
	run_ranks(2, be_refused, NULL);
}

/* It ends the lane of a rank that it does not understand: for that rank, it is dead. */
RANK(speak_another_language)
{
	struct pldk_window *window = pt_window(_metadata, world, 64);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT64, 8);
	int64_t mine[8] = { 0 };
	struct pldk_tensor own = pt_tensor(_metadata, mine, PLDK_INT64, 8);

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 0) {
		spoil = another_language;
		EXPECT_RET(-EOWNERDEAD, pldk_get(&own, &view, 1, NULL, NULL));
		EXPECT_SAYS("agent");
	}
	(void)size;
}

TEST(an_agent_that_does_not_understand_a_rank_ends_its_lane)
{
	struct pt_run run = { .nranks = 2, .body = speak_another_language, .leave = true };

	SKIP_UNLESS_FAR();
	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

/*
 * A rank that is stopped between connect and hello longer than the agent waits for a hello
 */

static void sleep_long(void)
{
	struct timespec left = { .tv_sec = 6 };

	while (nanosleep(&left, &left))
		;
}

static void come_late(int rank)
{
	if (rank == 1)
		before_hello = sleep_long;
}

RANK(meet)
{
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)rank;
	(void)size;
}

TEST(a_rank_that_was_stopped_before_its_hello_comes_again)
{
	struct pt_run run = { .nranks = 2, .body = meet };

	SKIP_UNLESS_FAR();
	pt_create(_metadata, &run);
	for (int r = 0; r < 2; r++) {
		come_late(r);
		pt_start_rank(_metadata, &run, r);
		before_hello = NULL;
	}
	pt_finish(_metadata, &run);
}

TEST_HARNESS_MAIN
