// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: domains of some of the ranks. They overlap, work at the same time, number their ranks for themselves,
 * and members that disagree are told.
 */
#include "pldk_test.h"

RANK(work_in_subsets)
{
	static const int lists[3][4] = { { 0, 1, 2, -1 }, { 3, 2, 1, -1 }, { 3, 0, -1, -1 } };
	struct pldk_domain *subsets[3] = { NULL };

	for (int s = 0; s < 3; s++) {
		int n = 0, me = -1;

		for (; n < 4 && lists[s][n] >= 0; n++)
			if (lists[s][n] == rank)
				me = n;
		if (me < 0)
			continue;
		ASSERT_OK(pldk_subset(world, lists[s], n, PT_LONG, &subsets[s]));
		EXPECT_RET(me, pldk_rank(subsets[s]));
		EXPECT_RET(n, pldk_size(subsets[s]));
		EXPECT_RET(rank, pldk_device(subsets[s], me));
	}
	for (int round = 0; round < (int)pt_rounds(300); round++) {
		for (int s = 0; s < 3; s++) {
			double sum = 1 << rank, want = 0;

			if (!subsets[s])
				continue;
			for (int i = 0; i < pldk_size(subsets[s]); i++)
				want += 1 << lists[s][i];
			ASSERT_OK(pldk_allreduce(subsets[s], PLDK_IN_PLACE, &sum, 1, PLDK_FP64, PLDK_SUM,
						 PLDK_MODE_AUTO, PT_LONG));
			ASSERT_EQ(want, sum);
		}
		if (round % 10 == 0)
			ASSERT_OK(pldk_barrier(world, PT_LONG));
	}
	/* RMA and signals by the subset's ranks. */
	if (subsets[1]) {
		struct pldk_window *window = pt_window(_metadata, subsets[1], 64),
				   *signal = pt_signal(_metadata, subsets[1], 1);
		struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT32, 1);
		int32_t mine = rank * 11;
		struct pldk_tensor tensor = pt_tensor(_metadata, &mine, PLDK_INT32, 1);

		ASSERT_OK(pldk_put_notify(&view, pldk_right(subsets[1]), &tensor, NULL, NULL,
					  &(struct pldk_signal_to){ signal, 0, 1, PLDK_NOTIFY_ADD }));
		ASSERT_OK(pldk_wait(signal, 0, PLDK_EQ, 1, PT_LONG));
		EXPECT_EQ(lists[1][pldk_left(subsets[1])] * 11, *(int32_t *)pldk_window_base(window));
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int s = 0; s < 3; s++)
		if (subsets[s])
			EXPECT_OK(pldk_domain_close(subsets[s]));
	EXPECT_RET(-EINVAL, pldk_domain_close(world));
	EXPECT_RET(-EINVAL, pldk_domain_close(NULL));
	(void)size;
}

TEST(overlapping_subsets_work_at_the_same_time)
{
	run_ranks(4, work_in_subsets, NULL);
}

RANK(make_wrong_subsets)
{
	struct pldk_domain *subset = PT_POISON_PTR;

	EXPECT_RET(-EINVAL, pldk_subset(world, (const int[]){ 0, 1, 0 }, 3, PT_LONG, &subset));
	EXPECT_RET(-EINVAL, pldk_subset(world, (const int[]){ rank, size }, 2, PT_LONG, &subset));
	EXPECT_SAYS("3");
	EXPECT_RET(-EINVAL, pldk_subset(world, (const int[]){ rank, -1 }, 2, PT_LONG, &subset));
	EXPECT_RET(-EINVAL, pldk_subset(world, (const int[]){ (rank + 1) % size }, 1, PT_LONG, &subset));
	EXPECT_RET(-EINVAL, pldk_subset(world, (const int[]){ rank }, 0, PT_LONG, &subset));
	EXPECT_RET(-EINVAL, pldk_subset(world, NULL, 1, PT_LONG, &subset));
	EXPECT_RET(-EINVAL, pldk_subset(NULL, (const int[]){ rank }, 1, PT_LONG, &subset));
	EXPECT_RET(-EINVAL, pldk_subset(world, (const int[]){ rank }, 1, PT_LONG, NULL));
	EXPECT_EQ(PT_POISON_PTR, subset);
	ASSERT_OK(pldk_subset(world, (const int[]){ rank }, 1, PT_LONG, &subset));
	EXPECT_RET(0, pldk_rank(subset));
	ASSERT_OK(pldk_barrier(subset, PLDK_FOREVER));
	EXPECT_OK(pldk_domain_close(subset));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	subset = PT_POISON_PTR;
	if (rank == 0) {
		EXPECT_RET(-ETIMEDOUT, pldk_subset(world, (const int[]){ 0, 2 }, 2, PLDK_MS(50), &subset));
		EXPECT_SAYS("rank 2|ranks 2");
		EXPECT_EQ(PT_POISON_PTR, subset);
		atomic_store(pt_word(4), 1);
	} else {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(4)) == 1, 10000));
	}
}

TEST(wrong_subsets_are_refused)
{
	run_ranks(3, make_wrong_subsets, NULL);
}

RANK(list_differently)
{
	struct pldk_domain *subset = PT_POISON_PTR;
	int64_t start = pt_now();

	EXPECT_RET(-EPROTO, pldk_subset(world, rank == 2 ? (const int[]){ 0, 2, 1 } : (const int[]){ 0, 1, 2 }, 3,
					PLDK_FOREVER, &subset));
	EXPECT_SAYS("rank 2|rank 0");
	EXPECT_EQ(PT_POISON_PTR, subset);
	EXPECT_LT(pt_ms_since(start), pt_slow_ms(1000));
	(void)size;
}

TEST(subset_members_with_different_lists_get_eproto)
{
	run_ranks(3, list_differently, NULL);
}

TEST_HARNESS_MAIN
