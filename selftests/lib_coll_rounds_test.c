// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: collectives of more ranks than tell each other directly. What few ranks can rely on, many can: all
 * hear of a mistake, a failure and a death, who is late is named, who leaves a call can go on with it later and holds
 * nobody up.
 */
#include "pldk_test.h"

enum { W_COUNT, W_GO, W_ROUND, W_TIDS };

static const int sizes[] = { 9, 12, 16, 17, 33 };

static int64_t value(int rank, long round, size_t i)
{
	return (rank + 1) * 1000003 + round * 7919 + (int64_t)i;
}

/* Sum of all ranks' values. */
static int64_t sum(int size, long round, size_t i)
{
	return (int64_t)size * (size + 1) / 2 * 1000003 + size * (round * 7919 + (int64_t)i);
}

static int allreduce(struct pldk_domain *world, const int64_t *in, int64_t *out, size_t n, int64_t timeout_ns)
{
	return pldk_allreduce(world, in, out, n, PLDK_INT64, PLDK_SUM, PLDK_MODE_AUTO, timeout_ns);
}

/* One element a rank: in the cells where that is possible, else in slots. */
RANK(move_small_blocks)
{
	int64_t *in = calloc((size_t)size, sizeof(*in)), *out = calloc((size_t)size, sizeof(*out));
	long rounds = pt_rounds(40);

	for (long round = 0; round < rounds; round++) {
		int root = (int)(round % size);

		ASSERT_OK(pldk_barrier(world, PT_LONG));
		in[0] = value(rank, round, 0);
		ASSERT_OK(allreduce(world, in, out, 1, PT_LONG));
		ASSERT_EQ(sum(size, round, 0), out[0]);
		ASSERT_OK(pldk_scan(world, in, out, 1, PLDK_INT64, PLDK_MAX, PT_LONG));
		ASSERT_EQ(value(rank, round, 0), out[0]);
		out[0] = rank == root ? value(root, round, 1) : 0;
		ASSERT_OK(pldk_broadcast(world, out, 1, PLDK_INT64, root, PT_LONG));
		ASSERT_EQ(value(root, round, 1), out[0]);
		ASSERT_OK(pldk_allgather(world, in, out, 1, PLDK_INT64, PT_LONG));
		for (int r = 0; r < size; r++)
			ASSERT_EQ(value(r, round, 0), out[r]);
		for (int r = 0; r < size; r++)
			in[r] = value(rank, round, (size_t)r);
		ASSERT_OK(pldk_all_to_all(world, in, out, 1, PLDK_INT64, PT_LONG));
		for (int r = 0; r < size; r++)
			ASSERT_EQ(value(r, round, (size_t)rank), out[r]);
		ASSERT_OK(pldk_reduce_scatter(world, in, out, 1, PLDK_INT64, PLDK_SUM, PT_LONG));
		ASSERT_EQ(sum(size, round, (size_t)rank), out[0]);
		ASSERT_OK(pldk_scatter(world, in, out, 1, PLDK_INT64, root, PT_LONG));
		ASSERT_EQ(value(root, round, (size_t)rank), out[0]);
	}
	free(in);
	free(out);
}

TEST(small_blocks_reach_everybody)
{
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		run_ranks(sizes[i], move_small_blocks, NULL);
}

/* From private memory, and from a window in which the others look for it themselves. */
RANK(move_large_blocks)
{
	enum { N = 50021 };
	struct pldk_window *window = pt_window(_metadata, world, 2 * N * sizeof(int64_t));
	int64_t *data = pldk_window_base(window), *out = data + N;
	int64_t *own = calloc(N, sizeof(*own));

	for (long round = 0; round < 2; round++) {
		for (size_t i = 0; i < N; i++)
			own[i] = data[i] = value(rank, round, i);
		ASSERT_OK(allreduce(world, data, out, N, PT_LONG));
		for (size_t i = 0; i < N; i++)
			ASSERT_EQ(sum(size, round, i), out[i]);
		ASSERT_OK(allreduce(world, PLDK_IN_PLACE, own, N, PT_LONG));
		EXPECT_EQ(0, memcmp(own, out, N * sizeof(*own)));
		ASSERT_OK(pldk_allreduce(world, data, own, N, PLDK_INT64, PLDK_SUM, PLDK_MODE_RING, PT_LONG));
		EXPECT_EQ(0, memcmp(own, out, N * sizeof(*own)));
	}
	ASSERT_OK(pldk_window_destroy(window));
	free(own);
}

TEST(large_blocks_reach_everybody)
{
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		run_ranks(sizes[i], move_large_blocks, NULL);
}

/* Each rank in turn says something else, or cannot do what it says, and then does nothing until all have heard. */
RANK(disagree)
{
	int64_t in[3] = { rank, 1, 2 }, out[3];
	int64_t start;
	char who[16];

	for (int culprit = 0; culprit < size; culprit += 4) {
		snprintf(who, sizeof(who), "rank %d", culprit);
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		start = pt_now();
		ASSERT_RET(-EPROTO, allreduce(world, in, out, rank == culprit ? 2 : 1, PT_LONG));
		EXPECT_SAYS("count", who);
		EXPECT_LT(pt_ms_since(start), pt_slow_ms(1000));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		if (rank == culprit) {
			ASSERT_RET(-EINVAL, allreduce(world, in, NULL, 1, PT_LONG));
			ASSERT_TRUE(pt_until(atomic_load(pt_word(W_COUNT)) == size - 1, 5000));
			atomic_store(pt_word(W_COUNT), 0);
		} else {
			ASSERT_RET(-EINVAL, allreduce(world, in, out, 1, PT_LONG));
			EXPECT_SAYS(who, "output is NULL");
			atomic_fetch_add(pt_word(W_COUNT), 1);
		}
		ASSERT_OK(allreduce(world, in, out, 1, PT_LONG));
		ASSERT_EQ(size * (size - 1) / 2, out[0]);
	}
}

TEST(a_mistake_of_one_of_many_is_told_to_all)
{
	run_ranks(9, disagree, NULL);
	run_ranks(17, disagree, NULL);
}

/* One rank comes late. All others give up, and some of them do not come back before the last has been served. */
RANK(be_late_and_leave)
{
	const int late = 5 % size, absent = (size - 1) / 2;
	int64_t in = value(rank, 0, 0), out = -1;
	char who[16];

	snprintf(who, sizeof(who), "rank %d (", late);
	if (rank == late) {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(W_COUNT)) == size - 1, 20000));
		ASSERT_OK(allreduce(world, &in, &out, 1, PT_LONG));
	} else {
		ASSERT_RET(-ETIMEDOUT, allreduce(world, &in, &out, 1, PLDK_MS(200)));
		EXPECT_SAYS(": 1 of ", " ranks have not arrived: ", who);
		EXPECT_EQ(-1, out);
		in = 0; /* has been given */
		atomic_fetch_add(pt_word(W_COUNT), 1);
		if (rank == absent) {
			ASSERT_TRUE(pt_until(atomic_load(pt_word(W_GO)) == size - 1, 20000));
			ASSERT_OK(allreduce(world, &in, &out, 1, PLDK_TRY));
		} else {
			ASSERT_OK(allreduce(world, &in, &out, 1, PT_LONG));
		}
	}
	ASSERT_EQ(sum(size, 0, 0), out);
	atomic_fetch_add(pt_word(W_GO), 1);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(who_leaves_a_call_holds_nobody_up_and_who_is_late_is_named)
{
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		pt_clear_words();
		run_ranks(sizes[i], be_late_and_leave, NULL);
	}
}

/* Some time out in the middle and come back at once, others later: all numbers are completed. */
RANK(leave_at_random)
{
	uint64_t seed = 88172645463325252u + (uint64_t)rank * 7919;
	long rounds = pt_rounds(150);
	int64_t in, out;
	int ret;

	for (long round = 0; round < rounds; round++) {
		struct pldk_handle *handle = NULL;
		uint64_t way = pt_random(&seed) % 8;

		in = value(rank, round, 0);
		out = -1;
		if (way == 0) {
			ASSERT_OK(pldk_allreduce_start(world, &in, &out, 1, PLDK_INT64, PLDK_SUM, PLDK_MODE_AUTO, NULL,
						       &handle));
			for (uint64_t n = pt_random(&seed) % 4; n; n--)
				sched_yield();
			ASSERT_OK(pldk_handle_wait(handle, PT_LONG));
		} else if (way < 3) {
			int64_t timeout_ns = way == 1 ? PLDK_TRY : (int64_t)(pt_random(&seed) % 100000);

			while ((ret = allreduce(world, &in, &out, 1, timeout_ns)) == -EAGAIN || ret == -ETIMEDOUT)
				if (pt_random(&seed) % 2)
					sched_yield();
			ASSERT_EQ(0, ret) TH_LOG("round %ld: %s", round, pldk_last_error());
		} else {
			ASSERT_OK(allreduce(world, &in, &out, 1, PT_LONG));
		}
		ASSERT_EQ(sum(size, round, 0), out) TH_LOG("round %ld, way %d", round, (int)way);
		if (way == 7)
			ASSERT_OK(pldk_barrier(world, PT_LONG));
		else
			while ((ret = pldk_barrier(world, way == 6 ? PLDK_TRY : PT_LONG)) == -EAGAIN)
				;
	}
}

TEST(calls_that_are_left_and_taken_up_at_random_agree)
{
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		run_ranks(sizes[i], leave_at_random, NULL);
}

/* Nobody needs a rank that has started its part and computes. */
RANK(start_and_compute)
{
	int64_t in[2] = { value(rank, 0, 0), value(rank, 1, 0) }, out[2] = { -1, -1 };
	struct pldk_handle *handle = NULL;

	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank % 3 == 1) {
		ASSERT_OK(pldk_allreduce_start(world, &in[0], &out[0], 1, PLDK_INT64, PLDK_SUM, PLDK_MODE_AUTO, NULL,
					       &handle));
		ASSERT_TRUE(pt_until(atomic_load(pt_word(W_COUNT)) == size - (size + 1) / 3, 5000));
		ASSERT_EQ(1, pldk_handle_test(handle));
	} else {
		ASSERT_OK(allreduce(world, &in[0], &out[0], 1, PT_LONG));
		atomic_fetch_add(pt_word(W_COUNT), 1);
	}
	ASSERT_EQ(sum(size, 0, 0), out[0]);
	ASSERT_OK(allreduce(world, &in[1], &out[1], 1, PT_LONG));
	ASSERT_EQ(sum(size, 1, 0), out[1]);
}

TEST(who_has_started_its_part_is_not_needed)
{
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		pt_clear_words();
		run_ranks(sizes[i], start_and_compute, NULL);
	}
}

/* arg: which rank dies, or -1 - that which finalises. The others may be anywhere in a call, or not there yet. */
RANK(lose_one)
{
	const int which = *(const int *)arg, lost = which < 0 ? -1 - which : which;
	uint64_t seed = (uint64_t)rank * 977 + (uint64_t)lost + 1;
	int64_t in = 1, out, start = 0;
	int ret = 0;
	char who[24];

	snprintf(who, sizeof(who), "rank %d (", lost);
	for (long round = 0; !ret; round++) {
		if (rank == lost && round == 10 + lost) {
			if (which < 0)
				return;
			raise(SIGKILL);
		}
		if (pt_random(&seed) % 8 == 0)
			sched_yield();
		start = pt_now();
		ret = round % 2 ? pldk_barrier(world, PT_LONG) : allreduce(world, &in, &out, 1, PT_LONG);
	}
	EXPECT_EQ(which < 0 ? -ESHUTDOWN : -EOWNERDEAD, ret) TH_LOG("%s", pldk_last_error());
	EXPECT_LT(pt_ms_since(start), pt_slow_ms(1000));
	EXPECT_SAYS(who);
	/* Who gives up first is not blamed by the others. */
	atomic_fetch_add(pt_word(W_COUNT), 1);
	ASSERT_TRUE(pt_until(atomic_load(pt_word(W_COUNT)) == size - 1, 5000));
}

TEST(the_death_of_one_of_many_is_told_to_all)
{
	static const int nranks[] = { 9, 17, 17, 33 }, lost[] = { 0, 3, 16, 20 };

	for (size_t i = 0; i < ARRAY_SIZE(nranks); i++) {
		struct pt_run run = { .nranks = nranks[i], .body = lose_one, .arg = (void *)&lost[i] };

		run.may_die[lost[i]] = true;
		pt_clear_words();
		pt_start(_metadata, &run);
		pt_finish(_metadata, &run);
	}
}

TEST(the_farewell_of_one_of_many_is_told_to_all)
{
	static const int nranks[] = { 9, 17, 33 }, lost[] = { -1, -7, -33 };

	for (size_t i = 0; i < ARRAY_SIZE(nranks); i++) {
		pt_clear_words();
		run_ranks(nranks[i], lose_one, (void *)&lost[i]);
	}
}

/* Killed from outside wherever they are just then. */
RANK(go_on_until_somebody_dies)
{
	int64_t in = 1, out;
	int ret = 0;

	while (!ret) {
		ret = allreduce(world, &in, &out, 1, PT_LONG);
		if (!ret)
			ret = pldk_barrier(world, PT_LONG);
		atomic_fetch_add(pt_word(W_ROUND), 1);
	}
	EXPECT_EQ(-EOWNERDEAD, ret) TH_LOG("rank %d: %s", rank, pldk_last_error());
	atomic_fetch_add(pt_word(W_COUNT), 1);
	ASSERT_TRUE(pt_until(atomic_load(pt_word(W_COUNT)) >= size - 1, 5000));
}

TEST(a_rank_that_is_killed_anywhere_in_a_call_is_missed_by_all)
{
	uint64_t seed = 20261201;

	for (long round = 0; round < pt_rounds(12); round++) {
		struct pt_run run = { .nranks = round % 2 ? 17 : 12, .body = go_on_until_somebody_dies };
		int victim = (int)(pt_random(&seed) % (uint64_t)run.nranks);
		int64_t until = 300 + (int64_t)(pt_random(&seed) % 1000);

		run.may_die[victim] = true;
		pt_clear_words();
		pt_start(_metadata, &run);
		EXPECT_TRUE(pt_until(atomic_load(pt_word(W_ROUND)) >= until, 10000));
		pt_kill(&run, victim);
		pt_finish(_metadata, &run);
	}
}

static bool others_are_asleep(int rank, int n)
{
	for (int r = 0; r < n; r++) {
		pid_t tid = (pid_t)atomic_load(pt_word(W_TIDS + r));

		if (r != rank && (!tid || !pt_is_asleep(tid, tid)))
			return false;
	}
	return true;
}

/*
 * All in one barrier, but one in another that the same ranks share. It comes last, so that all are in the circle when
 * it closes. The last rank computes, or there is none.
 */
RANK(wait_in_a_circle)
{
	const bool has_last = arg != NULL;
	struct pldk_domain *first = NULL, *second = NULL;
	int ranks[2][32];
	int n = has_last ? size - 1 : size;
	int64_t start;

	for (int i = 0; i < n; i++) {
		ranks[0][i] = i;
		ranks[1][i] = n - 1 - i;
	}
	if (rank < n) {
		ASSERT_OK(pldk_subset(world, ranks[0], n, PT_LONG, &first));
		ASSERT_OK(pldk_subset(world, ranks[1], n, PT_LONG, &second));
		atomic_store(pt_word(W_TIDS + rank), gettid());
		if (rank == n / 2)
			ASSERT_TRUE(pt_until(others_are_asleep(rank, n), 10000));
		start = pt_now();
		EXPECT_RET(-EDEADLK, pldk_barrier(rank == n / 2 ? second : first, PLDK_FOREVER));
		if (rank == n / 2)
			EXPECT_LT(pt_ms_since(start), pt_slow_ms(2000));
		atomic_fetch_add(pt_word(W_COUNT), 1);
	}
	ASSERT_TRUE(pt_until(atomic_load(pt_word(W_COUNT)) == n, 10000));
}

TEST(a_circle_of_many_gets_edeadlk)
{
	run_ranks(9, wait_in_a_circle, NULL);
	pt_clear_words();
	run_ranks(18, wait_in_a_circle, "");
}

TEST_HARNESS_MAIN
