// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: time. Every call that can block takes a timeout and keeps it: none at all, one given, the process-wide
 * default by function and by environment, and for ever. One table; a new blocking call is a new row.
 */
#include "pldk_test_agent.h"

/* Shared words */
enum { W_CALLS = 0, W_DONE = 1, W_AGENT = 2 };

/* What the calls work on. */
struct scene {
	struct pldk_domain *world;
	struct pldk_window *signal, *data;
	int rank;
};

/* How the time is said. */
enum how { TRY, GIVEN, BY_FUNCTION, BY_ENVIRONMENT, FOREVER, HOWS };
static const char *const how_names[] = { "PLDK_TRY", "50 ms", "pldk_set_timeout()", "PLDK_TIMEOUT_MS", "for ever" };

#define SHORT_MS 50
#define LATE_MS 80 /* when the other side does its part of a wait for ever */

static int64_t wait_one(struct scene *s, int64_t timeout)
{
	return pldk_wait(s->signal, 0, PLDK_GE, 1, timeout);
}

static int64_t wait_all(struct scene *s, int64_t timeout)
{
	return pldk_wait_all(&AWAIT(s->signal, 0, PLDK_GE, PLDK_RANK_ANY, 1), 1, timeout);
}

static int64_t wait_any(struct scene *s, int64_t timeout)
{
	size_t index;

	return pldk_wait_any(&AWAIT(s->signal, 0, PLDK_GE, PLDK_RANK_ANY, 1), 1, timeout, &index);
}

static int64_t notify_wait(struct scene *s, int64_t timeout)
{
	return pldk_notify_wait(NULL, 0, &AWAIT(s->signal, 0, PLDK_GE, PLDK_RANK_ANY, 1), 1, timeout);
}

static int64_t barrier(struct scene *s, int64_t timeout)
{
	return pldk_barrier(s->world, timeout);
}

static int64_t allreduce(struct scene *s, int64_t timeout)
{
	float x = 1;

	return pldk_allreduce(s->world, PLDK_IN_PLACE, &x, 1, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, timeout);
}

static int64_t broadcast(struct scene *s, int64_t timeout)
{
	float x = 1;

	return pldk_broadcast(s->world, &x, 1, PLDK_FP32, 1, timeout);
}

static int64_t allgather(struct scene *s, int64_t timeout)
{
	float x = 1, all[2];

	return pldk_allgather(s->world, &x, all, 1, PLDK_FP32, timeout);
}

static int64_t create(struct scene *s, int64_t timeout)
{
	struct pldk_window_options options = PLDK_WINDOW_OPTIONS_INIT;
	struct pldk_window *window;

	options.timeout_ns = timeout;
	return pldk_window_create(s->world, 4096, &options, &window);
}

static int64_t create_typed(struct scene *s, int64_t timeout)
{
	struct pldk_window_options options = PLDK_WINDOW_OPTIONS_INIT;
	struct pldk_window *window;

	options.timeout_ns = timeout;
	return pldk_window_create_typed(s->world, 1, SHAPE(100), PLDK_FP32, &options, &window);
}

static int64_t create_signal(struct scene *s, int64_t timeout)
{
	struct pldk_window_options options = PLDK_WINDOW_OPTIONS_INIT;
	struct pldk_window *window;

	options.timeout_ns = timeout;
	return pldk_signal_create(s->world, 1, SHAPE(4), &options, &window);
}

static int64_t reset(struct scene *s, int64_t timeout)
{
	return pldk_window_reset(s->data, timeout);
}

static int64_t subset(struct scene *s, int64_t timeout)
{
	struct pldk_domain *both;

	return pldk_subset(s->world, (const int[]){ 0, 1 }, 2, timeout, &both);
}

static const struct blocking {
	const char *name;
	int64_t (*call)(struct scene *scene, int64_t timeout);
	bool is_wait; /* ended by a notify; the others by the same call of the other rank */
} table[] = {
	{ "wait", wait_one, true },	  { "wait_all", wait_all, true },	 { "wait_any", wait_any, true },
	{ "notify_wait", notify_wait, true }, { "barrier", barrier, false },	 { "allreduce", allreduce, false },
	{ "broadcast", broadcast, false }, { "allgather", allgather, false },	 { "window_create", create, false },
	{ "window_create_typed", create_typed, false }, { "signal_create", create_signal, false },
	{ "window_reset", reset, false },  { "subset", subset, false },
};

struct row {
	const struct blocking *blocking;
	enum how how;
};

static int64_t timeout_of(enum how how)
{
	switch (how) {
	case TRY:
		return PLDK_TRY;
	case GIVEN:
		return PLDK_MS(SHORT_MS);
	case FOREVER:
		return PLDK_FOREVER;
	default:
		return PLDK_TIMEOUT_DEFAULT;
	}
}

/* Make the call, see what it gave and how long it took. A sentence belongs to every failure. */
static void keep_time(struct __test_metadata *_metadata, const struct row *row, struct scene *scene)
{
	const char *name = row->blocking->name, *how = how_names[row->how];
	int64_t start, ret;
	long took;

	if (row->how == BY_FUNCTION)
		ASSERT_OK(pldk_set_timeout(PLDK_MS(SHORT_MS)));
	atomic_store(pt_word(W_CALLS), 1);
	start = pt_now();
	ret = row->blocking->call(scene, timeout_of(row->how));
	took = pt_ms_since(start);
	if (row->how == FOREVER) {
		EXPECT_EQ(0, ret) TH_LOG("%s, %s: %s", name, how, pldk_last_error());
		EXPECT_GE(took, LATE_MS - 1) TH_LOG("%s, %s: %ld ms", name, how, took);
	} else if (row->how == TRY) {
		EXPECT_EQ(-EAGAIN, ret) TH_LOG("%s, %s: %s", name, how, pldk_last_error());
		EXPECT_LT(took, pt_slow_ms(100)) TH_LOG("%s, %s: %ld ms", name, how, took);
	} else {
		EXPECT_EQ(-ETIMEDOUT, ret) TH_LOG("%s, %s: %s", name, how, pldk_last_error());
		EXPECT_GE(took, SHORT_MS - 1) TH_LOG("%s, %s: %ld ms", name, how, took);
		EXPECT_LT(took, pt_slow_ms(400)) TH_LOG("%s, %s: %ld ms", name, how, took);
		EXPECT_SAYS(row->blocking->is_wait ? "cell" : "rank 1");
	}
	atomic_store(pt_word(W_DONE), 1);
}

/* Rank 0 makes the call; rank 1 stays away, or comes late to end a wait for ever. */
RANK(come_alone)
{
	const struct row *row = arg;
	struct scene scene = { .world = world, .rank = rank, .signal = pt_signal(_metadata, world, 1),
			       .data = pt_window(_metadata, world, 4096) };

	(void)size;
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 0) {
		keep_time(_metadata, row, &scene);
		return;
	}
	ASSERT_TRUE(pt_until(atomic_load(pt_word(W_CALLS)), 20000));
	if (row->how == FOREVER) {
		nanosleep(&(struct timespec){ .tv_nsec = LATE_MS * 1000000 }, NULL);
		if (row->blocking->is_wait)
			ASSERT_OK(pldk_notify(scene.signal, 0, 0, PLDK_NOTIFY_ADD, 1));
		else
			ASSERT_EQ(0, row->blocking->call(&scene, PT_LONG)) TH_LOG("%s", pldk_last_error());
	}
	ASSERT_TRUE(pt_until(atomic_load(pt_word(W_DONE)), 20000));
}

/* A10: a barrier without a timeout, and one missing worker is a stuck cluster */
TEST(every_blocking_call_keeps_its_time)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", SHORT_MS);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		for (int how = 0; how < HOWS; how++) {
			struct row row = { &table[i], how };

			if (how == BY_ENVIRONMENT)
				setenv("PLDK_TIMEOUT_MS", text, 1);
			else
				unsetenv("PLDK_TIMEOUT_MS");
			/* A world each: an interrupted collective is not to be mended. */
			pt_clear_words();
			run_ranks(2, come_alone, &row);
		}
	}
}

/*
 * Joining
 */

struct joining {
	int fd;
	enum how how;
	bool by_init;
};

CHILD(join_alone)
{
	const struct joining *joining = arg;
	struct pldk_domain *world = PT_POISON_PTR;
	char text[16];
	int64_t start = pt_now(), ret;
	long took;

	if (joining->by_init) {
		snprintf(text, sizeof(text), "%d", joining->fd);
		setenv("PLDK_FD", text, 1);
		setenv("PLDK_RANK", "0", 1);
		setenv("PLDK_NRANKS", "2", 1);
		snprintf(text, sizeof(text), "%d", joining->how == FOREVER ? -1 : SHORT_MS);
		setenv("PLDK_INIT_TIMEOUT_MS", text, 1);
	} else if (joining->how == BY_FUNCTION) {
		ASSERT_OK(pldk_set_timeout(PLDK_MS(SHORT_MS)));
	} else if (joining->how == BY_ENVIRONMENT) {
		snprintf(text, sizeof(text), "%d", SHORT_MS);
		setenv("PLDK_TIMEOUT_MS", text, 1);
	}
	atomic_store(pt_word(W_CALLS), 1);
	ret = joining->by_init ? pldk_init(&world) :
				 pldk_world_join(joining->fd, 0, timeout_of(joining->how), &world);
	took = pt_ms_since(start);
	if (joining->how == TRY || joining->how == FOREVER) {
		ASSERT_EQ(0, ret) TH_LOG("%s: %s", how_names[joining->how], pldk_last_error());
		EXPECT_EQ(0, pldk_rank(world));
	} else {
		EXPECT_EQ(-ETIMEDOUT, ret) TH_LOG("%s: %s", how_names[joining->how], pldk_last_error());
		EXPECT_SAYS("rank 1");
		EXPECT_EQ(PT_POISON_PTR, world);
	}
	/* PLDK_TRY is to come in and look around, whoever else is there. */
	if (joining->how == TRY) {
		EXPECT_LT(took, pt_slow_ms(400)) TH_LOG("%ld ms", took);
	} else {
		EXPECT_GE(took, joining->how == FOREVER ? LATE_MS - 1 : SHORT_MS - 1)
		TH_LOG("%s: %ld ms", how_names[joining->how], took);
	}
	EXPECT_LT(took, pt_slow_ms(1500)) TH_LOG("%s: %ld ms", how_names[joining->how], took);
	if (!ret)
		EXPECT_OK(pldk_finalize(world));
}

/* Rank 1 comes late, and only to end a wait for ever. */
CHILD(join_late)
{
	const struct joining *joining = arg;
	struct pldk_domain *world = NULL;

	ASSERT_TRUE(pt_until(atomic_load(pt_word(W_CALLS)), 20000));
	nanosleep(&(struct timespec){ .tv_nsec = LATE_MS * 1000000 }, NULL);
	ASSERT_OK(pldk_world_join(joining->fd, 1, PT_LONG, &world));
	EXPECT_OK(pldk_finalize(world));
}

static void join_in_time(struct __test_metadata *_metadata, bool by_init, enum how how)
{
	struct joining joining = { .how = how, .by_init = by_init };
	pid_t late = 0;
	int status = 0;

	pt_clear_words();
	ASSERT_OK(pldk_world_create(2, NULL, &joining.fd));
	if (how == FOREVER) {
		late = fork();
		if (!late) {
			in_child(join_late, &joining);
			_exit(!_metadata->passed);
		}
	}
	in_child(join_alone, &joining);
	if (late)
		waitpid(late, &status, 0);
	EXPECT_EQ(0, status);
	close(joining.fd);
}

/* A10: the same for the very first call */
TEST(joining_keeps_its_time)
{
	for (int how = 0; how < HOWS; how++)
		join_in_time(_metadata, false, how);
	join_in_time(_metadata, true, BY_ENVIRONMENT);
	join_in_time(_metadata, true, FOREVER);
}

/*
 * Transfers: only those of far peers can be late
 */

static void *let_it_go_on(void *arg)
{
	(void)arg;
	nanosleep(&(struct timespec){ .tv_nsec = LATE_MS * 1000000 }, NULL);
	kill((pid_t)atomic_load(pt_word(W_AGENT)), SIGCONT);
	return NULL;
}

RANK(transfer_late)
{
	const bool flushes = *(int *)arg;
	struct pldk_window *data = pt_window(_metadata, world, 4096);
	struct pldk_dtensor view = pt_view(_metadata, data, PLDK_UINT8, 4096);
	unsigned char *mine = calloc(1, 4096);
	struct pldk_tensor from = pt_tensor(_metadata, mine, PLDK_UINT8, 4096);
	struct pldk_handle *handle = NULL;

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int how = 0; rank == 0 && how < HOWS; how++) {
		int64_t start, timeout = timeout_of(how), ret;
		pthread_t thread;
		long took;

		if (how == BY_ENVIRONMENT)
			continue;
		if (how == BY_FUNCTION)
			ASSERT_OK(pldk_set_timeout(PLDK_MS(SHORT_MS)));
		if (pt_is_far()) {
			ASSERT_EQ(0, kill((pid_t)atomic_load(pt_word(W_AGENT)), SIGSTOP));
			ASSERT_TRUE(pt_until(pt_run_state((pid_t)atomic_load(pt_word(W_AGENT)),
							  (pid_t)atomic_load(pt_word(W_AGENT))) == 'T', 5000));
		}
		if (!handle)
			ASSERT_OK(pldk_put_nb(&view, 1, &from, NULL, NULL, &handle));
		if (pt_is_far() && how == FOREVER)
			ASSERT_EQ(0, pthread_create(&thread, NULL, let_it_go_on, NULL));
		start = pt_now();
		ret = flushes ? pldk_flush(world, 1, timeout) : pldk_handle_wait(handle, timeout);
		took = pt_ms_since(start);
		if (!pt_is_far() || how == FOREVER) {
			EXPECT_EQ(0, ret) TH_LOG("%s: %s", how_names[how], pldk_last_error());
			if (flushes && !pldk_handle_wait(handle, PT_LONG))
				handle = NULL;
			if (!flushes)
				handle = NULL;
		} else {
			EXPECT_EQ(how == TRY ? -EAGAIN : -ETIMEDOUT, ret)
			TH_LOG("%s: %s", how_names[how], pldk_last_error());
			EXPECT_GE(took, how == TRY ? 0 : SHORT_MS - 1) TH_LOG("%s: %ld ms", how_names[how], took);
		}
		EXPECT_LT(took, pt_slow_ms(400)) TH_LOG("%s: %ld ms", how_names[how], took);
		if (pt_is_far() && how == FOREVER) {
			EXPECT_GE(took, LATE_MS - 1);
			pthread_join(thread, NULL);
		}
	}
	if (rank == 0)
		ASSERT_OK(pldk_set_timeout(PLDK_FOREVER));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	ASSERT_OK(pldk_window_destroy(data));
	free(mine);
	(void)size;
}

/* A10: and for the end of a transfer, here with the agent of far peers stopped */
TEST(transfers_keep_their_time)
{
	for (int flushes = 0; flushes < 2; flushes++) {
		struct pt_run run = { .nranks = 2, .body = transfer_late, .arg = &flushes };
		struct stat world;
		pid_t agent = 0;

		pt_clear_words();
		pt_create(_metadata, &run);
		ASSERT_EQ(0, fstat(run.fd, &world));
		ASSERT_TRUE(!pt_is_far() || pt_until((agent = pt_agent_of(&world)), 5000));
		atomic_store(pt_word(W_AGENT), agent);
		for (int r = 0; r < 2; r++)
			pt_start_rank(_metadata, &run, r);
		pt_finish(_metadata, &run);
		if (agent)
			kill(agent, SIGCONT);
	}
}

TEST_HARNESS_MAIN
