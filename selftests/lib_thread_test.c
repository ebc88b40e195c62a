// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: several threads of one rank. Any of them may notify, wait, put and get at the same time; a wait of one
 * never takes what belongs to another; threads come and go; ranks may be threads (shm).
 */
#include "pldk_test.h"

#define THREADS 4

struct worker {
	struct pldk_domain *world;
	struct pldk_window *signal;
	struct pldk_window *data;
	struct pldk_dtensor view;
	long rounds;
	int number;
	int failed;
	const char *what;
	char said[256];
	_Atomic int tid;
	pthread_t thread;
};

/* In worker threads: remember the first failure; the rank's main thread checks it. */
#define WORK(call)                                                                                                     \
	do {                                                                                                           \
		int64_t work_ret_ = (call);                                                                            \
		if (work_ret_ && !w->failed) {                                                                         \
			w->failed = (int)work_ret_;                                                                    \
			w->what = #call;                                                                               \
			snprintf(w->said, sizeof(w->said), "%s", pldk_last_error());                                   \
		}                                                                                                      \
		if (work_ret_)                                                                                         \
			return NULL;                                                                                   \
	} while (0)

static void run_workers(struct __test_metadata *_metadata, struct worker *workers, int n, void *(*main)(void *))
{
	for (int i = 0; i < n; i++)
		ASSERT_EQ(0, pthread_create(&workers[i].thread, NULL, main, &workers[i]));
	for (int i = 0; i < n; i++) {
		ASSERT_EQ(0, pthread_join(workers[i].thread, NULL));
		EXPECT_EQ(0, workers[i].failed) TH_LOG("thread %d: %s: %s", i, workers[i].what, workers[i].said);
	}
}

/* Thread t of each rank plays its own ring on its own cell and its own part of the data. */
static void *play(void *arg)
{
	struct worker *w = arg;
	int rank = pldk_rank(w->world), right = pldk_right(w->world), left = pldk_left(w->world);
	int64_t mine[16];
	struct pldk_tensor tensor;
	const int64_t *base = pldk_window_base(w->data);

	WORK(pldk_tensor_of(&tensor, mine, PLDK_INT64, 1, SHAPE(16)));
	for (long round = 1; round <= w->rounds; round++) {
		int64_t at = w->number * 32 + round % 2 * 16;

		for (int i = 0; i < 16; i++)
			mine[i] = (int64_t)rank << 48 | (int64_t)w->number << 40 | round << 8 | i;
		WORK(pldk_put_notify(&w->view, right, &tensor, &(struct pldk_region){ SHAPE(at), SHAPE(0), SHAPE(16) },
				     NULL, &(struct pldk_signal_to){ w->signal, w->number, 1, PLDK_NOTIFY_ADD }));
		WORK(pldk_wait(w->signal, w->number, PLDK_GE, round, PT_LONG));
		for (int i = 0; i < 16; i++)
			if (base[at + i] != ((int64_t)left << 48 | (int64_t)w->number << 40 | round << 8 | i)) {
				w->failed = 1;
				w->what = "another thread's data";
				return NULL;
			}
		WORK(pldk_notify(w->signal, left, THREADS + w->number, PLDK_NOTIFY_ADD, 1));
		WORK(pldk_wait(w->signal, THREADS + w->number, PLDK_GE, round, PT_LONG));
	}
	return NULL;
}

RANK(play_in_threads)
{
	struct worker workers[THREADS] = { 0 };
	struct pldk_window *signal = pt_signal(_metadata, world, 2 * THREADS);
	struct pldk_window *data = pt_window(_metadata, world, THREADS * 32 * 8);

	for (int t = 0; t < THREADS; t++)
		workers[t] = (struct worker){ .world = world, .signal = signal, .data = data, .number = t,
					      .view = pt_view(_metadata, data, PLDK_INT64, THREADS * 32),
					      .rounds = pt_rounds(pt_is_far() ? 200 : 2000) };
	run_workers(_metadata, workers, THREADS, play);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)rank;
	(void)size;
}

TEST(threads_put_notify_and_wait_at_the_same_time)
{
	run_ranks(2, play_in_threads, NULL);
	run_ranks(3, play_in_threads, NULL);
}

/* Many sleepers on one cell: one notify wakes all that it satisfies, and only them. */
static void *wait_for_number(void *arg)
{
	struct worker *w = arg;

	atomic_store(&w->tid, (int)gettid());
	WORK(pldk_wait(w->signal, 0, PLDK_GE, w->number + 1, PT_LONG));
	atomic_fetch_add(pt_word(pldk_rank(w->world)), 1);
	return NULL;
}

RANK(wake_exactly)
{
	struct worker workers[8] = { 0 };
	struct pldk_window *signal = pt_signal(_metadata, world, 1);

	for (int t = 0; t < 8; t++) {
		workers[t] = (struct worker){ .world = world, .signal = signal, .number = t };
		ASSERT_EQ(0, pthread_create(&workers[t].thread, NULL, wait_for_number, &workers[t]));
	}
	for (int t = 0; t < 8; t++) {
		ASSERT_TRUE(pt_until(workers[t].tid && pt_is_asleep(getpid(), workers[t].tid), 5000));
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int n = 1; n <= 8; n++) {
		ASSERT_OK(pldk_notify(signal, pldk_right(world), 0, PLDK_NOTIFY_ADD, 1));
		ASSERT_TRUE(pt_until(atomic_load(pt_word(rank)) >= n, 5000));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		EXPECT_EQ(n, atomic_load(pt_word(rank)));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
	}
	for (int t = 0; t < 8; t++) {
		pthread_join(workers[t].thread, NULL);
		EXPECT_EQ(0, workers[t].failed) TH_LOG("%s: %s", workers[t].what, workers[t].said);
	}
	(void)size;
}

TEST(many_threads_on_one_cell_wake_when_theirs_is_reached)
{
	setenv("PLDK_SPIN_US", "0", 1);
	run_ranks(2, wake_exactly, NULL);
}

/* Threads come and go by the hundred, each leaves nothing. */
static void *once(void *arg)
{
	struct worker *w = arg;

	WORK(pldk_notify(w->signal, pldk_right(w->world), 0, PLDK_NOTIFY_ADD, 1));
	WORK(pldk_wait(w->signal, 0, PLDK_GE, w->number, PT_LONG));
	return NULL;
}

RANK(come_and_go)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);
	int n = (int)pt_rounds(600), maps = 0, fds = pt_fds();

	for (int i = 1; i <= n; i++) {
		struct worker worker = { .world = world, .signal = signal, .number = i };

		run_workers(_metadata, &worker, 1, once);
		if (i == n / 2)
			maps = pt_maps(NULL, NULL);
	}
	EXPECT_LE(pt_maps(NULL, NULL), maps + 3);
	EXPECT_EQ(fds, pt_fds());
	(void)rank;
	(void)size;
}

TEST(threads_that_come_and_go_leave_nothing)
{
	run_ranks(2, come_and_go, NULL);
}

/* M3: sixteen threads touch the same fresh mapping at once */
static void *touch(void *arg)
{
	struct worker *w = arg;
	_Atomic int64_t *base = pldk_window_base(w->data);

	for (size_t i = 0; i < (1 << 20) / 8; i += 512)
		atomic_fetch_add(&base[i], 1);
	return NULL;
}

RANK(touch_together)
{
	for (int round = 0; round < (int)pt_rounds(60); round++) {
		struct worker workers[16] = { 0 };
		struct pldk_window *data = pt_window(_metadata, world, 1 << 20);
		int64_t *base = pldk_window_base(data);

		for (int t = 0; t < 16; t++)
			workers[t] = (struct worker){ .world = world, .data = data };
		run_workers(_metadata, workers, 16, touch);
		for (size_t i = 0; i < (1 << 20) / 8; i += 512) {
			ASSERT_EQ(16, base[i]);
		}
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		ASSERT_OK(pldk_window_destroy(data));
	}
	(void)rank;
	(void)size;
}

TEST(sixteen_threads_touch_a_fresh_window_at_once)
{
	run_ranks(2, touch_together, NULL);
}

/* M4: some threads wait, one creates and destroys windows, others fork and exit; a storm for a second. */
static void *disturb(void *arg)
{
	struct worker *w = arg;
	int64_t start = pt_now();

	while (pt_ms_since(start) < 1000) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		w->rounds++;
	}
	return NULL;
}

static void *keep_playing(void *arg)
{
	struct worker *w = arg;

	w->rounds = pt_rounds(3000);
	return play(w);
}

static void *create_and_destroy(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < (int)pt_rounds(100); i++) {
		struct pldk_window *window = NULL;

		WORK(pldk_window_create(w->world, 100000, NULL, &window));
		memset(pldk_window_base(window), 1, 100000);
		WORK(pldk_window_destroy(window));
	}
	return NULL;
}

RANK(storm)
{
	struct worker workers[4] = { 0 };
	struct pldk_window *signal = pt_signal(_metadata, world, 2 * THREADS);
	struct pldk_window *data = pt_window(_metadata, world, THREADS * 32 * 8);
	void *(*const mains[4])(void *) = { keep_playing, keep_playing, create_and_destroy, disturb };

	for (int t = 0; t < 4; t++) {
		workers[t] = (struct worker){ .world = world, .signal = signal, .data = data, .number = t,
					      .view = pt_view(_metadata, data, PLDK_INT64, THREADS * 32) };
		ASSERT_EQ(0, pthread_create(&workers[t].thread, NULL, mains[t], &workers[t]));
	}
	for (int t = 0; t < 4; t++) {
		pthread_join(workers[t].thread, NULL);
		EXPECT_EQ(0, workers[t].failed) TH_LOG("thread %d: %s: %s", t, workers[t].what, workers[t].said);
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)rank;
	(void)size;
}

TEST(waits_puts_creates_and_forks_at_the_same_time)
{
	run_ranks(2, storm, NULL);
}

/* M7: every mapper sees the same page, whatever is done to the mapping around it */
RANK(map_hard)
{
	struct pldk_window *data = pt_window(_metadata, world, 1 << 16);
	char *base = pldk_window_base(data);
	_Atomic int64_t *counter = (_Atomic int64_t *)(void *)base;
	struct pldk_dtensor view = pt_view(_metadata, data, PLDK_INT64, 8);
	int64_t old = 0;

	for (int round = 0; round < 200; round++) {
		ASSERT_OK(pldk_fetch_add(&view, pldk_right(world), SHAPE(0), 1, &old));
		ASSERT_EQ(0, mprotect(base, 1 << 16, PROT_READ));
		ASSERT_EQ(0, mprotect(base, 1 << 16, PROT_READ | PROT_WRITE));
		atomic_fetch_add(&counter[1], 1);
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_EQ(200, atomic_load(&counter[0]));
	EXPECT_EQ(200, atomic_load(&counter[1]));
	if (pt_is_dev()) {
		/* VM_DONTEXPAND, and no execution from shared memory. */
		EXPECT_EQ(MAP_FAILED, mremap(base, 1 << 16, 1 << 20, MREMAP_MAYMOVE));
		EXPECT_NE(0, mprotect(base, 4096, PROT_READ | PROT_EXEC));
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)rank;
	(void)size;
}

TEST(increments_stay_visible_through_changes_of_the_mapping)
{
	run_ranks(2, map_hard, NULL);
}

/* A thread that ends with a sentence of its own leaves the others' alone. */
static void *fail_differently(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < 2000; i++) {
		char word[32];

		if (pldk_notify(w->signal, 100 + w->number, 0, PLDK_NOTIFY_ADD, 1) != -EINVAL)
			w->failed = 1;
		snprintf(word, sizeof(word), "%d", 100 + w->number);
		if (!strstr(pldk_last_error(), word)) {
			w->failed = 2;
			w->what = "another thread's sentence";
			snprintf(w->said, sizeof(w->said), "%s", pldk_last_error());
		}
	}
	return NULL;
}

RANK(fail_in_threads)
{
	struct worker workers[THREADS] = { 0 };
	struct pldk_window *signal = pt_signal(_metadata, world, 1);

	for (int t = 0; t < THREADS; t++)
		workers[t] = (struct worker){ .world = world, .signal = signal, .number = t };
	run_workers(_metadata, workers, THREADS, fail_differently);
	(void)rank;
	(void)size;
}

TEST(the_last_error_is_each_threads_own)
{
	run_ranks(1, fail_in_threads, NULL);
}

/* Ranks as threads of one process. */
RANK(ring)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1), *data = pt_window(_metadata, world, 4096);
	struct pldk_dtensor view = pt_view(_metadata, data, PLDK_INT64, 1);
	int64_t mine;
	struct pldk_tensor tensor = pt_tensor(_metadata, &mine, PLDK_INT64, 1);

	for (int64_t round = 1; round <= pt_rounds(500); round++) {
		mine = round * 100 + rank;
		ASSERT_OK(pldk_put_notify(&view, pldk_right(world), &tensor, NULL, NULL,
					  &(struct pldk_signal_to){ signal, 0, 1, PLDK_NOTIFY_ADD }));
		ASSERT_OK(pldk_wait(signal, 0, PLDK_GE, round, PT_LONG));
		ASSERT_EQ(round * 100 + pldk_left(world), *(int64_t *)pldk_window_base(data));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
	}
	(void)size;
}

TEST(ranks_may_be_threads_of_one_process)
{
	SKIP_ON_DEV("a process is one rank");
	run_threads(2, ring, NULL);
	run_threads(7, ring, NULL);
}

TEST_HARNESS_MAIN
