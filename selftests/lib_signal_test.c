// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: notify, wait, test and read. What they do, what they refuse and that nothing changed then, what they
 * order, and that no wake-up is lost.
 */
#include "pldk_test.h"

#include <sys/time.h>

/*
 * Values
 */

RANK(set_and_add)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 4);
	int64_t value = PT_POISON;

	(void)rank;
	EXPECT_OK(pldk_read(signal, 0, &value));
	EXPECT_EQ(0, value);
	EXPECT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_SET, 41));
	EXPECT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_ADD, 1));
	EXPECT_OK(pldk_wait(signal, 0, PLDK_EQ, 42, PLDK_TRY));
	EXPECT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_ADD, -50));
	EXPECT_OK(pldk_read(signal, 0, &value));
	EXPECT_EQ(-8, value);
	EXPECT_OK(pldk_notify(signal, 0, 1, PLDK_NOTIFY_SET, INT64_MAX));
	EXPECT_OK(pldk_notify(signal, 0, 1, PLDK_NOTIFY_ADD, 1));
	EXPECT_OK(pldk_read(signal, 1, &value));
	EXPECT_EQ(INT64_MIN, value);
	EXPECT_OK(pldk_notify(signal, 0, 1, PLDK_NOTIFY_ADD, -1));
	EXPECT_OK(pldk_read(signal, 1, &value));
	EXPECT_EQ(INT64_MAX, value);
	for (int cell = 2; cell < 4; cell++) {
		EXPECT_OK(pldk_read(signal, cell, &value));
		EXPECT_EQ(0, value);
	}
}

TEST(set_and_add_are_64_bit_signed_and_wrap)
{
	run_ranks(1, set_and_add, NULL);
}

RANK(compare)
{
	static const int64_t values[] = { INT64_MIN, -1, 0, 1, (int64_t)1 << 32, INT64_MAX };
	struct pldk_window *signal = pt_signal(_metadata, world, 1);

	(void)rank;
	for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
		ASSERT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_SET, values[v]));
		for (size_t e = 0; e < ARRAY_SIZE(values); e++) {
			const bool holds[] = {
				[PLDK_EQ] = values[v] == values[e], [PLDK_GE] = values[v] >= values[e],
				[PLDK_NE] = values[v] != values[e], [PLDK_GT] = values[v] > values[e],
				[PLDK_LE] = values[v] <= values[e], [PLDK_LT] = values[v] < values[e],
			};

			for (int cmp = 0; cmp < 6; cmp++) {
				EXPECT_RET(holds[cmp], pldk_test(signal, 0, cmp, values[e]));
				EXPECT_RET(holds[cmp] ? 0 : -EAGAIN, pldk_wait(signal, 0, cmp, values[e], PLDK_TRY));
			}
		}
	}
}

TEST(every_comparison_is_signed)
{
	run_ranks(1, compare, NULL);
}

RANK(notify_all_peers)
{
	struct pldk_window *signal = NULL;
	int64_t cell, value;

	ASSERT_OK(pldk_signal_create(world, 2, SHAPE(size, 3), NULL, &signal));
	for (int peer = 0; peer < size; peer++) {
		cell = pldk_cell(signal, 2, SHAPE(rank, 1));
		EXPECT_EQ(rank * 3 + 1, cell);
		ASSERT_OK(pldk_notify(signal, peer, cell, PLDK_NOTIFY_SET, 1000 * (rank + 1) + peer));
		ASSERT_OK(pldk_notify(signal, peer, 0, PLDK_NOTIFY_ADD, 1 << 2 * rank));
	}
	for (int from = 0; from < size; from++)
		ASSERT_OK(pldk_wait(signal, from * 3 + 1, PLDK_EQ, 1000 * (from + 1) + rank, PT_LONG));
	ASSERT_OK(pldk_wait(signal, 0, PLDK_EQ, ((1 << 2 * size) - 1) / 3, PT_LONG));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (cell = 0; cell < size * 3; cell++) {
		ASSERT_OK(pldk_read(signal, cell, &value));
		if (cell && cell % 3 != 1) {
			EXPECT_EQ(0, value) TH_LOG("cell %d", (int)cell);
		}
	}
}

TEST(a_notify_changes_the_cell_of_that_peer_and_no_other)
{
	for (int size = 2; size <= 8; size += 3)
		run_ranks(size, notify_all_peers, NULL);
}

/*
 * What is refused
 */

static void expect_cells(struct __test_metadata *_metadata, struct pldk_window *signal, int64_t n, int64_t expected)
{
	int64_t value;

	for (int64_t cell = 0; cell < n; cell++) {
		ASSERT_OK(pldk_read(signal, cell, &value));
		EXPECT_EQ(expected, value);
	}
}

RANK(refuse)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 3), *data = pt_window(_metadata, world, 4096);
	struct pldk_await await = AWAIT(signal, 0, PLDK_GE, PLDK_RANK_ANY, 1);
	struct pldk_post posts[2] = { POST(signal, rank, PLDK_NOTIFY_ADD, 0, 5) };
	int64_t value = PT_POISON;
	size_t index = 77;

	EXPECT_RET(-EINVAL, pldk_notify(signal, -1, 0, PLDK_NOTIFY_ADD, 1));
	EXPECT_SAYS("-1", "(r-1+P)%P|% P");
	EXPECT_RET(-EINVAL, pldk_notify(signal, size, 0, PLDK_NOTIFY_ADD, 1));
	EXPECT_SAYS("2");
	EXPECT_RET(-EINVAL, pldk_notify(signal, rank, 3, PLDK_NOTIFY_ADD, 1));
	EXPECT_SAYS("cell", "3");
	EXPECT_RET(-EINVAL, pldk_notify(signal, rank, -1, PLDK_NOTIFY_ADD, 1));
	EXPECT_RET(-EINVAL, pldk_notify(signal, rank, INT64_MAX, PLDK_NOTIFY_ADD, 1));
	EXPECT_RET(-EINVAL, pldk_notify(signal, rank, (int64_t)1 << 32, PLDK_NOTIFY_ADD, 1));
	EXPECT_RET(-EINVAL, pldk_notify(signal, rank, 0, 2, 1));
	EXPECT_RET(-EINVAL, pldk_notify(NULL, rank, 0, PLDK_NOTIFY_ADD, 1));
	EXPECT_RET(-EDOM, pldk_notify(data, rank, 0, PLDK_NOTIFY_ADD, 1));

	EXPECT_RET(-EINVAL, pldk_wait(signal, 3, PLDK_GE, 1, PLDK_TRY));
	EXPECT_RET(-EINVAL, pldk_wait(signal, -1, PLDK_GE, 1, PLDK_TRY));
	EXPECT_RET(-EINVAL, pldk_wait(signal, 0, 6, 1, PLDK_TRY));
	EXPECT_RET(-EINVAL, pldk_wait(NULL, 0, PLDK_GE, 1, PLDK_TRY));
	EXPECT_RET(-EDOM, pldk_wait(data, 0, PLDK_GE, 1, PLDK_TRY));
	EXPECT_RET(-EINVAL, pldk_test(signal, 3, PLDK_GE, 1));
	EXPECT_RET(-EINVAL, pldk_test(signal, 0, -1, 1));
	EXPECT_RET(-EDOM, pldk_test(data, 0, PLDK_GE, 1));
	EXPECT_RET(-EINVAL, pldk_read(signal, 3, &value));
	EXPECT_RET(-EINVAL, pldk_read(signal, 0, NULL));
	EXPECT_RET(-EDOM, pldk_read(data, 0, &value));
	EXPECT_EQ(PT_POISON, value);

	await.cell = 3;
	EXPECT_RET(-EINVAL, pldk_wait_all(&await, 1, PLDK_TRY));
	EXPECT_RET(-EINVAL, pldk_wait_any(&await, 1, PLDK_TRY, &index));
	await.cell = 0;
	await.from = size;
	await.flags = PLDK_AWAIT_FROM;
	EXPECT_RET(-EINVAL, pldk_wait_all(&await, 1, PLDK_TRY));
	await.flags = 1u << 31;
	EXPECT_RET(-EOPNOTSUPP, pldk_wait_all(&await, 1, PLDK_TRY));
	await.flags = 0;
	await.signal = data;
	EXPECT_RET(-EDOM, pldk_wait_all(&await, 1, PLDK_TRY));
	await.signal = signal;
	EXPECT_EQ(PT_POISON, await.seen);
	EXPECT_RET(-EINVAL, pldk_wait_any(&await, 0, PLDK_TRY, &index));
	EXPECT_RET(-EINVAL, pldk_wait_all(NULL, 1, PLDK_TRY));
	EXPECT_OK(pldk_wait_all(NULL, 0, PLDK_TRY));
	EXPECT_EQ(77, index);

	/* All entries are checked before the first is done. */
	posts[1] = posts[0];
	posts[1].cell = 99;
	EXPECT_RET(-EINVAL, pldk_notify_all(posts, 2));
	EXPECT_RET(-EINVAL, pldk_notify_wait(posts, 2, NULL, 0, PLDK_TRY));
	posts[1].cell = 1;
	posts[1].peer = -1;
	EXPECT_RET(-EINVAL, pldk_notify_all(posts, 2));
	posts[1].peer = rank;
	await.cell = 99;
	EXPECT_RET(-EINVAL, pldk_notify_wait(posts, 2, &await, 1, PLDK_TRY));
	EXPECT_OK(pldk_notify_all(posts, 0));
	expect_cells(_metadata, signal, 3, 0);

	EXPECT_EQ(2, pldk_cell(signal, 1, SHAPE(2)));
	EXPECT_EQ(-EINVAL, pldk_cell(signal, 1, SHAPE(3)));
	EXPECT_SAYS("3");
	EXPECT_EQ(-EINVAL, pldk_cell(signal, 1, SHAPE(-1)));
	EXPECT_EQ(-EINVAL, pldk_cell(signal, 2, SHAPE(0, 0)));
	EXPECT_SAYS("1", "2");
	EXPECT_EQ(-EDOM, pldk_cell(data, 1, SHAPE(0)));
	EXPECT_EQ(-EINVAL, pldk_cell(NULL, 1, SHAPE(0)));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	expect_cells(_metadata, signal, 3, 0);
}

TEST(wrong_arguments_are_named_and_change_nothing)
{
	run_ranks(2, refuse, NULL);
}

RANK(mix_domains)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1), *theirs;
	struct pldk_domain *other = NULL;
	int fd = -1;

	(void)rank;
	ASSERT_OK(pldk_world_create(1, NULL, &fd));
	ASSERT_OK(pldk_world_join(fd, 0, PT_LONG, &other));
	theirs = pt_signal(_metadata, other, 1);
	EXPECT_RET(-EINVAL, pldk_notify_all((struct pldk_post[]){ POST(signal, 0, PLDK_NOTIFY_ADD, 0, 1),
								  POST(theirs, 0, PLDK_NOTIFY_ADD, 0, 1) }, 2));
	EXPECT_RET(-EINVAL, pldk_wait_all((struct pldk_await[]){ AWAIT(signal, 0, PLDK_EQ, PLDK_RANK_ANY, 0),
								 AWAIT(theirs, 0, PLDK_EQ, PLDK_RANK_ANY, 0) },
					  2, PLDK_TRY));
	expect_cells(_metadata, signal, 1, 0);
	expect_cells(_metadata, theirs, 1, 0);
	EXPECT_OK(pldk_finalize(other));
	close(fd);
}

TEST(one_vector_is_one_domain)
{
	run_ranks(1, mix_domains, NULL);
}

/*
 * Vectors
 */

RANK(wait_vectors)
{
	struct pldk_window *a = pt_signal(_metadata, world, 4), *b = pt_signal(_metadata, world, 4);
	struct pldk_await awaits[3] = {
		AWAIT(a, 0, PLDK_GE, PLDK_RANK_ANY, 1),
		AWAIT(b, 3, PLDK_EQ, PLDK_RANK_ANY, -5),
		AWAIT(a, 2, PLDK_NE, PLDK_RANK_ANY, 0),
	};
	size_t index = 77;

	if (rank) {
		for (int i = 0; i < 2; i++) {
			ASSERT_OK(pldk_wait(a, 1, PLDK_GE, i + 1, PT_LONG));
			ASSERT_OK(pldk_notify_all((struct pldk_post[]){ POST(b, 0, PLDK_NOTIFY_SET, 3, -5),
									POST(a, 0, PLDK_NOTIFY_ADD, 2, 7),
									POST(a, 0, PLDK_NOTIFY_ADD, 0, 1) },
						  i ? 3 : 1));
		}
		return;
	}
	EXPECT_RET(-EAGAIN, pldk_wait_all(awaits, 3, PLDK_TRY));
	EXPECT_EQ(0, awaits[0].seen);
	EXPECT_EQ(0, awaits[1].seen);
	EXPECT_EQ(0, awaits[2].seen);
	EXPECT_RET(-EAGAIN, pldk_wait_any(awaits, 3, PLDK_TRY, &index));
	EXPECT_EQ(77, index);
	ASSERT_OK(pldk_notify(a, 1, 1, PLDK_NOTIFY_ADD, 1));
	EXPECT_OK(pldk_wait_any(awaits, 3, PT_LONG, &index));
	EXPECT_EQ(1, index);
	EXPECT_EQ(-5, awaits[1].seen);
	EXPECT_RET(-ETIMEDOUT, pldk_wait_all(awaits, 3, PLDK_MS(20)));
	EXPECT_EQ(0, awaits[0].seen);
	EXPECT_EQ(-5, awaits[1].seen);
	EXPECT_OK(pldk_notify_wait((struct pldk_post[]){ POST(a, 1, PLDK_NOTIFY_ADD, 1, 1) }, 1, awaits, 3, PT_LONG));
	EXPECT_EQ(1, awaits[0].seen);
	EXPECT_EQ(-5, awaits[1].seen);
	EXPECT_EQ(7, awaits[2].seen);
	EXPECT_OK(pldk_wait_any(awaits, 3, PLDK_TRY, &index));
	EXPECT_EQ(0, index);
}

TEST(wait_all_and_any_over_cells_of_two_windows)
{
	run_ranks(2, wait_vectors, NULL);
}

RANK(wait_many)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 64);
	struct pldk_await awaits[64];
	struct pldk_post posts[64];

	for (int round = 1; round <= 50; round++) {
		for (int i = 0; i < 64; i++) {
			posts[i] = POST(signal, pldk_right(world), PLDK_NOTIFY_ADD, 63 - i, 1);
			awaits[i] = AWAIT(signal, i, PLDK_GE, pldk_left(world), round);
		}
		ASSERT_OK(pldk_notify_wait(posts, 64, awaits, 64, PT_LONG));
		for (int i = 0; i < 64; i++) {
			EXPECT_GE(awaits[i].seen, round);
		}
	}
	(void)rank;
}

TEST(notify_wait_of_64_cells_in_a_ring)
{
	run_ranks(3, wait_many, NULL);
}

/*
 * Time
 */

RANK(name_the_late)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 4);

	if (rank == 0) {
		EXPECT_RET(-ETIMEDOUT, pldk_wait(signal, 3, PLDK_GE, 7, PLDK_MS(30)));
		EXPECT_SAYS("rank 0", "cell", "3", "7", "0", "rank 1|ranks 1");
		EXPECT_OK(pldk_notify(signal, 0, 3, PLDK_NOTIFY_SET, 5));
		EXPECT_RET(-ETIMEDOUT, pldk_wait_all(&AWAIT(signal, 3, PLDK_EQ, 2, 7), 1, PLDK_MS(30)));
		EXPECT_SAYS("5", "7", "rank 2");
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(a_timeout_names_the_cell_what_was_seen_and_who_is_late)
{
	run_ranks(3, name_the_late, NULL);
}

static _Atomic int alarms;

static void on_alarm(int nr)
{
	(void)nr;
	atomic_fetch_add(&alarms, 1);
}

RANK(be_interrupted)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);
	/* Again and again: a handler that runs between two looks of the sleeper interrupts nothing. */
	struct itimerval soon = { .it_value = { .tv_usec = 50000 }, .it_interval = { .tv_usec = 30000 } };
	struct sigaction action = { .sa_handler = on_alarm };
	int64_t value;

	if (rank) {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 20000));
		return;
	}
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	EXPECT_RET(-EINTR, pldk_wait(signal, 0, PLDK_GE, 1, PLDK_FOREVER));
	EXPECT_LE(1, atomic_load(&alarms));
	setitimer(ITIMER_REAL, &soon, NULL);
	EXPECT_RET(-EINTR, pldk_notify_wait((struct pldk_post[]){ POST(signal, 1, PLDK_NOTIFY_SET, 0, 3) }, 1,
					    &AWAIT(signal, 0, PLDK_GE, PLDK_RANK_ANY, 1), 1, PT_LONG));
	EXPECT_LE(2, atomic_load(&alarms));
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	ASSERT_OK(pldk_read(signal, 0, &value));
	EXPECT_EQ(0, value);
	atomic_store(pt_word(0), 1);
}

TEST(a_handler_of_a_posix_signal_ends_a_wait_with_eintr)
{
	run_ranks(2, be_interrupted, NULL);
}

/*
 * Order
 */

static uint32_t checksum(const unsigned char *data, size_t n)
{
	uint32_t sum = 2166136261u;

	for (size_t i = 0; i < n; i++)
		sum = (sum ^ data[i]) * 16777619u;
	return sum;
}

/* D1: put, notify; wait, check. Plain loads of the own slab after the wait. */
RANK(pass_messages)
{
	struct pldk_window *data = pt_window(_metadata, world, 8192), *signal = pt_signal(_metadata, world, 2);
	struct pldk_dtensor view = pt_view(_metadata, data, PLDK_UINT8, 8192);
	unsigned char buffer[4096 + 8], *base = pldk_window_base(data);
	long rounds = pt_rounds(pt_is_far() ? 10000 : 100000);
	uint64_t seed = 88172645463325252u;

	ASSERT_NE(NULL, base);
	for (long round = 1; round <= rounds; round++) {
		size_t n = 1 + pt_random(&seed) % (round % 64 ? 64 : 4096);
		uint32_t sum;

		if (rank == 0) {
			struct pldk_tensor from = pt_tensor(_metadata, buffer, PLDK_UINT8, (int64_t)n + 4);

			memset(buffer + 4, (int)(round * 31), n);
			memcpy(buffer + 4, &round, n < sizeof(round) ? n : sizeof(round));
			sum = checksum(buffer + 4, n);
			memcpy(buffer, &sum, 4);
			ASSERT_OK(pldk_put(&view, 1, &from,
					   &(struct pldk_region){ SHAPE(0), SHAPE(0), SHAPE((int64_t)n + 4) }, NULL));
			ASSERT_OK(pldk_notify(signal, 1, 0, PLDK_NOTIFY_SET, round));
			ASSERT_OK(pldk_wait(signal, 1, PLDK_EQ, round, PT_LONG));
		} else {
			ASSERT_OK(pldk_wait(signal, 0, PLDK_EQ, round, PT_LONG));
			memcpy(&sum, base, 4);
			ASSERT_EQ(checksum(base + 4, n), sum) TH_LOG("round %ld, %zu bytes", round, n);
			ASSERT_EQ(0, memcmp(base + 4, &round, n < sizeof(round) ? n : sizeof(round)));
			ASSERT_OK(pldk_notify(signal, 0, 1, PLDK_NOTIFY_SET, round));
		}
	}
}

TEST(what_was_put_before_a_notify_is_there_after_the_wait)
{
	struct pt_run run = { .nranks = 2, .body = pass_messages, .limit_ms = 60000 };

	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

/* Rank 0 puts to 1, tells 2; 2 tells 1; 1 must see the data. */
RANK(pass_by_a_third)
{
	struct pldk_window *data = pt_window(_metadata, world, 65536), *signal = pt_signal(_metadata, world, 1);
	struct pldk_dtensor view = pt_view(_metadata, data, PLDK_INT64, 8192);
	const int64_t *base = pldk_window_base(data);
	static int64_t buffer[8192];
	struct pldk_tensor from = pt_tensor(_metadata, buffer, PLDK_INT64, 8192);

	for (long round = 1; round <= pt_rounds(2000); round++) {
		if (rank == 0) {
			for (int i = 0; i < 8192; i += 8)
				buffer[i] = round + i;
			ASSERT_OK(pldk_put(&view, 1, &from, NULL, NULL));
			ASSERT_OK(pldk_notify(signal, 2, 0, PLDK_NOTIFY_SET, round));
		} else if (rank == 2) {
			ASSERT_OK(pldk_wait(signal, 0, PLDK_EQ, round, PT_LONG));
			ASSERT_OK(pldk_notify(signal, 1, 0, PLDK_NOTIFY_SET, round));
		} else {
			ASSERT_OK(pldk_wait(signal, 0, PLDK_EQ, round, PT_LONG));
			for (int i = 0; i < 8192; i += 8) {
				ASSERT_EQ(round + i, base[i]);
			}
			ASSERT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_SET, round));
		}
		if (rank == 0)
			ASSERT_OK(pldk_wait(signal, 0, PLDK_EQ, round, PT_LONG));
	}
}

TEST(order_passes_through_a_third_rank)
{
	run_ranks(3, pass_by_a_third, NULL);
}

/* D9: users assume that the signal of a put covers earlier puts as well; elsewhere it does not */
RANK(put_two)
{
	const int64_t big = *(int64_t *)arg;
	struct pldk_window *x = pt_window(_metadata, world, (size_t)big * 8), *y = pt_window(_metadata, world, 8);
	struct pldk_window *signal = pt_signal(_metadata, world, 1);
	struct pldk_dtensor view_x = pt_view(_metadata, x, PLDK_INT64, big),
			    view_y = pt_view(_metadata, y, PLDK_INT64, 1);
	const int64_t *base_x = pldk_window_base(x), *base_y = pldk_window_base(y);
	int64_t *buffer = calloc(big, 8), small;
	struct pldk_tensor from_x = pt_tensor(_metadata, buffer, PLDK_INT64, big);
	struct pldk_tensor from_y = pt_tensor(_metadata, &small, PLDK_INT64, 1);

	long rounds = pt_rounds((big > 1000 ? 1000 : 100000) / (pt_is_far() ? 10 : 1));

	for (long round = 1; round <= rounds; round++) {
		if (rank == 0) {
			for (int64_t i = 0; i < big; i += 512)
				buffer[i] = round;
			buffer[big - 1] = small = round;
			ASSERT_OK(pldk_put(&view_x, 1, &from_x, NULL, NULL));
			ASSERT_OK(pldk_put_notify(&view_y, 1, &from_y, NULL, NULL,
						  &(struct pldk_signal_to){ signal, 0, 1, PLDK_NOTIFY_ADD }));
			ASSERT_OK(pldk_wait(signal, 0, PLDK_GE, round, PT_LONG));
		} else {
			ASSERT_OK(pldk_wait(signal, 0, PLDK_GE, round, PT_LONG));
			ASSERT_EQ(round, base_y[0]);
			for (int64_t i = 0; i < big; i += 512) {
				ASSERT_EQ(round, base_x[i]);
			}
			ASSERT_EQ(round, base_x[big - 1]);
			ASSERT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_ADD, 1));
		}
	}
	free(buffer);
}

TEST(put_notify_covers_every_earlier_put_to_that_peer)
{
	/* In elements: a megabyte seldom, a kilobyte often. */
	static int64_t sizes[] = { 1 << 17, 1 << 7 };

	for (int i = 0; i < 2; i++) {
		struct pt_run run = { .nranks = 2, .body = put_two, .arg = &sizes[i], .limit_ms = 45000 };

		pt_start(_metadata, &run);
		pt_finish(_metadata, &run);
	}
}

/*
 * No lost wake-up
 */

RANK(ping_pong)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);
	long rounds = *(long *)arg, before = pt_switches(), slept;

	for (long round = 1; round <= rounds; round++) {
		if (rank == 0)
			ASSERT_OK(pldk_notify(signal, 1, 0, PLDK_NOTIFY_ADD, 1));
		ASSERT_OK(pldk_wait(signal, 0, PLDK_GE, round, PT_LONG));
		if (rank == 1)
			ASSERT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_ADD, 1));
	}
	slept = pt_switches() - before;
	atomic_store(pt_word(rank), slept);
	(void)size;
}

TEST(a_million_spinning_pairs_lose_no_wake_up)
{
	long rounds = pt_rounds(pt_is_far() ? 20000 : 1000000);
	struct pt_run run = { .nranks = 2, .body = ping_pong, .arg = &rounds, .limit_ms = 95000 };

	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

/* F3: PLDK_SPIN_US=0 takes the sleeping path at once */
TEST(pairs_that_sleep_lose_no_wake_up_and_really_sleep)
{
	long rounds = pt_rounds(pt_is_far() ? 20000 : 200000);
	struct pt_run run = { .nranks = 2, .body = ping_pong, .arg = &rounds, .limit_ms = 95000 };

	setenv("PLDK_SPIN_US", "0", 1);
	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
	EXPECT_GT(atomic_load(pt_word(0)) + atomic_load(pt_word(1)), rounds / 4);
}

RANK(storm)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);
	long rounds = *(long *)arg;

	for (long round = 1; round <= rounds; round++) {
		for (int peer = 0; peer < size; peer++)
			if (peer != rank)
				ASSERT_OK(pldk_notify(signal, peer, 0, PLDK_NOTIFY_ADD, 1));
		ASSERT_OK(pldk_wait(signal, 0, PLDK_GE, round * (size - 1), PT_LONG));
	}
}

/* Several writers on one cell, one sleeper, more ranks than CPUs. The sum is exact: nothing was lost or doubled. */
RANK(storm_then_count)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);
	long rounds = *(long *)arg;
	int64_t value;

	for (long i = 0; i < rounds; i++)
		ASSERT_OK(pldk_notify(signal, (int)((rank + i) % size), 0, PLDK_NOTIFY_ADD, 1));
	ASSERT_OK(pldk_wait(signal, 0, PLDK_GE, rounds, PT_LONG));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	ASSERT_OK(pldk_read(signal, 0, &value));
	EXPECT_EQ(rounds, value);
}

TEST(many_writers_of_one_cell_are_all_counted)
{
	long rounds = pt_rounds(pt_is_far() ? 4000 : 80000) / 8 * 8 + 8, few = pt_rounds(pt_is_far() ? 500 : 5000);

	run_ranks(8, storm_then_count, &rounds);
	run_ranks(5, storm, &few);
	setenv("PLDK_SPIN_US", "0", 1);
	run_ranks(5, storm, &few);
}

TEST_HARNESS_MAIN
