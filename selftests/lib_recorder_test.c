// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: the flight recorder. What a rank did last, in order, with the place in its source, readable by itself
 * and by the others, also when it is dead.
 */
#include "pldk_test.h"

#define ROOM 4096
static struct pldk_event events[ROOM];

/* The newest event of an operation with this value, or NULL. */
static struct pldk_event *find(int n, uint32_t op, int64_t value)
{
	while (n-- > 0)
		if (events[n].op == op && events[n].value == value)
			return &events[n];
	return NULL;
}

#define EXPECT_SITE(event, line_)                                                                                      \
	do {                                                                                                           \
		EXPECT_EQ((uint32_t)(line_), (event)->line);                                                           \
		EXPECT_NE(NULL, strstr((event)->file, "lib_recorder_test.c")) TH_LOG("file is \"%s\"", (event)->file); \
	} while (0)

RANK(record_each)
{
	struct pldk_window_options options = PLDK_WINDOW_OPTIONS_INIT;
	struct pldk_window *signal = NULL, *data = NULL;
	struct pldk_dtensor view;
	int32_t mine[5] = { 0 };
	struct pldk_tensor tensor = pt_tensor(_metadata, mine, PLDK_INT32, 5);
	struct pldk_event *event;
	int lines[6], n, peer = pldk_right(world);
	int64_t old, before = pt_now();
	float x = 0;

	options.id = 21;
	options.timeout_ns = PT_LONG;
	ASSERT_OK(pldk_signal_create(world, 1, SHAPE(8), &options, &signal));
	options.id = 22;
	ASSERT_OK(pldk_window_create(world, 4096, &options, &data));
	ASSERT_OK(pldk_view(data, 64, 1, SHAPE(5), PLDK_INT32, &view));
	lines[0] = __LINE__ + 1;
	ASSERT_OK(pldk_put(&view, peer, &tensor, NULL, NULL));
	lines[1] = __LINE__ + 1;
	ASSERT_OK(pldk_notify(signal, peer, 3, PLDK_NOTIFY_ADD, 1234567));
	lines[2] = __LINE__ + 1;
	ASSERT_OK(pldk_notify(signal, rank, 5, PLDK_NOTIFY_SET, -98765));
	lines[3] = __LINE__ + 1;
	ASSERT_OK(pldk_wait(signal, 3, PLDK_EQ, 1234567, PT_LONG));
	lines[4] = __LINE__ + 1;
	ASSERT_OK(pldk_get(&tensor, &view, peer, NULL, NULL));
	ASSERT_OK(pldk_fetch_add(&view, peer, SHAPE(0), 1, &old));
	lines[5] = __LINE__ + 1;
	ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, &x, 1, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	n = pldk_recorder_read(world, rank, events, ROOM);
	ASSERT_GT(n, 8) TH_LOG("%s", pldk_last_error());

	event = find(n, PLDK_EV_PUT, 20);
	ASSERT_NE(NULL, event);
	EXPECT_EQ(peer, event->peer);
	EXPECT_EQ(22, event->window);
	EXPECT_EQ(64, event->offset);
	EXPECT_EQ(rank, event->rank);
	EXPECT_EQ(peer == rank, !!(event->flags & PLDK_EVENT_SELF));
	EXPECT_SITE(event, lines[0]);
	event = find(n, PLDK_EV_NOTIFY_ADD, 1234567);
	ASSERT_NE(NULL, event);
	EXPECT_EQ(peer, event->peer);
	EXPECT_EQ(21, event->window);
	EXPECT_EQ(3, event->offset);
	EXPECT_GE(event->time_ns, before);
	EXPECT_LE(event->time_ns, pt_now());
	EXPECT_SITE(event, lines[1]);
	event = find(n, PLDK_EV_NOTIFY_SET, -98765);
	ASSERT_NE(NULL, event);
	EXPECT_EQ(5, event->offset);
	EXPECT_TRUE(event->flags & PLDK_EVENT_SELF);
	EXPECT_SITE(event, lines[2]);
	event = find(n, PLDK_EV_WAIT, 1234567);
	ASSERT_NE(NULL, event);
	EXPECT_EQ(21, event->window);
	EXPECT_EQ(3, event->offset);
	EXPECT_SITE(event, lines[3]);
	event = find(n, PLDK_EV_GET, 20);
	ASSERT_NE(NULL, event);
	EXPECT_SITE(event, lines[4]);
	EXPECT_LT(find(n, PLDK_EV_PUT, 20), event);
	EXPECT_LT(find(n, PLDK_EV_NOTIFY_ADD, 1234567), find(n, PLDK_EV_WAIT, 1234567));
	EXPECT_LT(find(n, PLDK_EV_WAIT, 1234567), event);
	for (int i = n; i--;)
		if (events[i].op == PLDK_EV_ALLREDUCE) {
			EXPECT_SITE(&events[i], lines[5]);
			break;
		} else {
			ASSERT_GT(i, 0) TH_LOG("no allreduce");
		}
	/* The collective's own traffic does not fill the ring. */
	for (int i = 0; i < n; i++) {
		EXPECT_TRUE(events[i].op != PLDK_EV_NONE && strcmp(pldk_event_name(events[i].op), "?"));
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)size;
}

TEST(every_operation_is_recorded_with_its_place)
{
	run_ranks(1, record_each, NULL);
	run_ranks(2, record_each, NULL);
}

RANK(fail_an_operation)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 2);
	int n;

	EXPECT_RET(-ETIMEDOUT, pldk_wait(signal, 1, PLDK_GE, 77, PLDK_MS(5)));
	n = pldk_recorder_read(world, rank, events, ROOM);
	ASSERT_GT(n, 1);
	ASSERT_NE(NULL, find(n, PLDK_EV_WAIT, 77));
	for (int i = n; i--;)
		if (events[i].op == PLDK_EV_WAIT_END) {
			EXPECT_TRUE(events[i].flags & PLDK_EVENT_FAILED);
			EXPECT_GT(events[i].time_ns, 0);
			break;
		} else {
			ASSERT_GT(i, 0) TH_LOG("a wait of 5 ms has no end");
		}
	(void)size;
}

TEST(a_wait_that_slept_has_an_end_and_a_failed_one_says_so)
{
	run_ranks(1, fail_an_operation, NULL);
}

RANK(wrap)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);
	int room = *(int *)arg, n;

	for (int i = 1; i <= 5000; i++)
		ASSERT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_SET, i));
	n = pldk_recorder_read(world, 0, events, ROOM);
	EXPECT_GE(n, room * 9 / 10);
	EXPECT_LE(n, room);
	for (int i = 0; i < n; i++) {
		ASSERT_EQ(PLDK_EV_NOTIFY_SET, events[i].op);
		ASSERT_EQ(5000 - n + 1 + i, events[i].value);
		if (i) {
			ASSERT_GE(events[i].time_ns, events[i - 1].time_ns);
		}
	}
	/* Less room: the newest. */
	memset(events, 0x66, sizeof(events));
	EXPECT_RET(10, pldk_recorder_read(world, 0, events, 10));
	EXPECT_EQ(5000, events[9].value);
	EXPECT_EQ(4991, events[0].value);
	EXPECT_EQ(0x66666666, events[10].op);
	EXPECT_RET(0, pldk_recorder_read(world, 0, events, 0));
	EXPECT_RET(-EINVAL, pldk_recorder_read(world, 0, NULL, 10));
	EXPECT_SAYS("events is NULL");
	EXPECT_RET(-EINVAL, pldk_recorder_read(world, 0, events, (size_t)INT32_MAX + 1));
	EXPECT_SAYS("max", "2147483647");
	EXPECT_RET(-EINVAL, pldk_recorder_read(world, size, events, 10));
	EXPECT_RET(-EINVAL, pldk_recorder_read(world, -1, events, 10));
	EXPECT_RET(-EINVAL, pldk_recorder_read(NULL, 0, events, 10));
	(void)rank;
}

TEST(the_ring_keeps_the_newest_1024_in_order)
{
	int room = 1024;

	run_ranks(1, wrap, &room);
}

TEST(the_ring_may_be_smaller)
{
	int room = 64;

	setenv("PLDK_RING", "64", 1);
	run_ranks(1, wrap, &room);
}

RANK(record_nothing)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);

	ASSERT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_SET, 1));
	ASSERT_OK(pldk_wait(signal, 0, PLDK_EQ, 1, PLDK_TRY));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_RET(-EOPNOTSUPP, pldk_recorder_read(world, rank, events, ROOM));
	EXPECT_SAYS("PLDK_RING");
	(void)size;
}

TEST(the_recorder_can_be_off)
{
	setenv("PLDK_RING", "0", 1);
	run_ranks(1, record_nothing, NULL);
}

/* Plain functions, as from another language: the place is an address. */
RANK(call_without_a_site)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);
	struct pldk_event *event;
	int n;

	ASSERT_OK((pldk_notify)(signal, 0, 0, PLDK_NOTIFY_ADD, 4711));
	n = pldk_recorder_read(world, rank, events, ROOM);
	event = find(n, PLDK_EV_NOTIFY_ADD, 4711);
	ASSERT_NE(NULL, event);
	EXPECT_EQ(0, event->line);
	/* A wrapper passes the place of its own caller on. */
	ASSERT_OK(
		pldk_notify_at(&(struct pldk_site){ "solver.c", "step", 321, 0 }, signal, 0, 0, PLDK_NOTIFY_ADD, 4712));
	n = pldk_recorder_read(world, rank, events, ROOM);
	event = find(n, PLDK_EV_NOTIFY_ADD, 4712);
	ASSERT_NE(NULL, event);
	EXPECT_EQ(321, event->line);
	EXPECT_STREQ("solver.c", event->file);
	(void)size;
}

TEST(a_call_without_a_macro_has_no_line_and_a_wrapper_may_give_one)
{
	run_ranks(1, call_without_a_site, NULL);
}

enum { W_STANDS, W_LINE, W_PID };

RANK(die_recorded)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 8);
	struct pldk_event *event;
	int n;

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 2) {
		for (int i = 0; i < 100; i++)
			ASSERT_OK(pldk_notify(signal, 0, 1, PLDK_NOTIFY_SET, 1000 + i));
		atomic_store(pt_word(W_LINE), __LINE__ + 2);
		atomic_store(pt_word(W_STANDS), 1);
		pldk_wait(signal, 6, PLDK_GE, 555, PLDK_SEC(60)); /* for ever would be a deadlock of all three */
		return;
	}
	EXPECT_RET(-EOWNERDEAD, pldk_wait(signal, 0, PLDK_GE, 1, PLDK_FOREVER));
	n = pldk_recorder_read(world, 2, events, ROOM);
	ASSERT_GT(n, 100) TH_LOG("%s", pldk_last_error());
	event = &events[n - 1];
	EXPECT_EQ(PLDK_EV_WAIT, event->op) TH_LOG("the last of rank 2 is %s", pldk_event_name(event->op));
	EXPECT_EQ(555, event->value);
	EXPECT_EQ(6, event->offset);
	EXPECT_EQ(2, event->rank);
	EXPECT_SITE(event, atomic_load(pt_word(W_LINE)));
	EXPECT_EQ(PLDK_EV_NOTIFY_SET, events[n - 2].op);
	EXPECT_EQ(1099, events[n - 2].value);
	(void)size;
}

/* L2: kill -9, and the others have what it did */
TEST(survivors_read_the_ring_of_a_killed_rank)
{
	struct pt_run run = { .nranks = 3, .body = die_recorded, .launcher = true };

	run.may_die[2] = true;
	pt_start(_metadata, &run);
	ASSERT_TRUE(pt_until(atomic_load(pt_word(W_STANDS)) && pt_is_asleep(run.pid[2], run.pid[2]), 5000));
	pt_kill(&run, 2);
	pt_finish(_metadata, &run);
}

RANK(read_each_other)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);

	ASSERT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_ADD, 100 + rank));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int r = 0; r < size; r++) {
		int n;

		if (pt_is_far() && r != rank && r % 2) {
			EXPECT_RET(-EOPNOTSUPP, pldk_recorder_read(world, r, events, ROOM));
			continue;
		}
		n = pldk_recorder_read(world, r, events, ROOM);
		ASSERT_GT(n, 0) TH_LOG("rank %d: %s", r, pldk_last_error());
		EXPECT_NE(NULL, find(n, PLDK_EV_NOTIFY_ADD, 100 + r));
		for (int i = 0; i < n; i++) {
			EXPECT_EQ(r, events[i].rank);
		}
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(ranks_read_each_others_rings)
{
	run_ranks(3, read_each_other, NULL);
}

/* A ring of its own for each thread */
static struct pldk_window *thread_signal;

static void *record_in_thread(void *arg)
{
	intptr_t number = (intptr_t)arg;

	for (int i = 0; i < 300; i++)
		if (pldk_notify(thread_signal, 0, number, PLDK_NOTIFY_SET, i + 1))
			return (void *)1;
	/* The ring of a thread that ended may be another's: all stay to the end. */
	atomic_fetch_add(pt_word(W_STANDS), 1);
	return pt_until(atomic_load(pt_word(W_STANDS)) == 6, 10000) ? NULL : (void *)2;
}

RANK(record_threads)
{
	pthread_t threads[6];
	int n, last[6] = { 0 }, of[6];

	thread_signal = pt_signal(_metadata, world, 6);
	for (intptr_t t = 0; t < 6; t++) {
		of[t] = -1;
		ASSERT_EQ(0, pthread_create(&threads[t], NULL, record_in_thread, (void *)t));
	}
	for (int t = 0; t < 6; t++) {
		void *ret = PT_POISON_PTR;

		pthread_join(threads[t], &ret);
		EXPECT_EQ(NULL, ret);
	}
	n = pldk_recorder_read(world, rank, events, ROOM);
	for (int i = 0; i < n; i++) {
		int t = (int)events[i].offset;

		if (events[i].op != PLDK_EV_NOTIFY_SET)
			continue;
		ASSERT_TRUE(t >= 0 && t < 6);
		/* In order, none lost, each thread in a ring of its own. */
		ASSERT_EQ(last[t] + 1, events[i].value) TH_LOG("thread %d", t);
		last[t]++;
		if (of[t] < 0)
			of[t] = events[i].thread;
		ASSERT_EQ(of[t], events[i].thread);
	}
	for (int t = 0; t < 6; t++) {
		EXPECT_EQ(300, last[t]) TH_LOG("thread %d", t);
	}
	(void)size;
}

TEST(each_thread_has_a_ring_of_its_own)
{
	run_ranks(1, record_threads, NULL);
}

TEST_HARNESS_MAIN
