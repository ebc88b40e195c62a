// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Transfers, notifies and waits, and collectives, called as they must not be called: numbers out of range, what
 * overlaps or overflows, what is of another kind, options that nobody initialised. See lib_abuse_test.c.
 */
#include "pldk_test_abuse.h"

/*
 * Transfers
 */

/* All forms that take a region and options, in both directions. */
static void abuse_transfers(struct __test_metadata *_metadata, const struct pldk_dtensor *v, int peer,
			    const struct pldk_tensor *t, const struct pldk_region *r, const struct pldk_rma_options *o,
			    const struct pldk_signal_to *s, int err)
{
	BOTH(err, pldk_put, v, peer, t, r, o);
	BOTH(err, pldk_get, t, v, peer, r, o);
	BOTH(err, pldk_put_notify, v, peer, t, r, o, s);
	BOTH(err, pldk_put_nb, v, peer, t, r, o, &out.handle);
	BOTH(err, pldk_get_nb, t, v, peer, r, o, &out.handle);
	BOTH(err, pldk_put_notify_nb, v, peer, t, r, o, s, &out.handle);
}

RANK(bad_transfers)
{
	struct pldk_window *data = pt_window(_metadata, world, 64), *cells = pt_signal(_metadata, world, 4);
	struct pldk_dtensor view = pt_view(_metadata, data, PLDK_INT32, N), floats;
	struct pldk_tensor mine = pt_tensor(_metadata, out.data, PLDK_INT32, N), bad;
	struct pldk_rma_options init = PLDK_RMA_OPTIONS_INIT, o;
	struct pldk_signal_to signal = { cells, 0, 1, PLDK_NOTIFY_ADD }, s;
	const struct pldk_region holes[3] = { { NULL, SHAPE(0), SHAPE(1) }, { SHAPE(0), NULL, SHAPE(1) },
					      { SHAPE(0), SHAPE(0), NULL } };
	static const int64_t offs[] = { -1, N, INT64_MAX, INT64_MIN };
	static const size_t sizes[] = { 0, 1, sizeof(init) - 1, 4097, (size_t)-1 };
	_Alignas(16) char room[4096];

	for (int i = 0; i < 4; i++) {
		int peer = ((int[]){ -1, size, INT_MAX, INT_MIN })[i];

		abuse_transfers(_metadata, &view, peer, &mine, NULL, NULL, &signal, -EINVAL);
		BOTH(-EINVAL, pldk_remote_load, &mine, &view, peer, SHAPE(0), SHAPE(N), NULL);
		BOTH(-EINVAL, pldk_remote_store, &mine, &view, peer, SHAPE(0), PLDK_ATOMIC_NONE);
		BOTH(-EINVAL, pldk_fetch_add, &view, peer, SHAPE(0), 1, &out.old);
		BOTH(-EINVAL, pldk_swap, &view, peer, SHAPE(0), 1, &out.old);
		BOTH(-EINVAL, pldk_compare_swap, &view, peer, SHAPE(0), 0, 1, &out.old);
	}
	/* The other side. */
	abuse_transfers(_metadata, &view, rank, NULL, NULL, NULL, &signal, -EINVAL);
	bad = mine;
	bad.magic = 0;
	abuse_transfers(_metadata, &view, rank, &bad, NULL, NULL, &signal, -EDOM);
	abuse_transfers(_metadata, &view, rank, (const struct pldk_tensor *)&view, NULL, NULL, &signal, -EDOM);
	bad = mine;
	bad.ndim = 9;
	abuse_transfers(_metadata, &view, rank, &bad, NULL, NULL, &signal, -EINVAL);
	bad = mine;
	bad.data = NULL;
	abuse_transfers(_metadata, &view, rank, &bad, NULL, NULL, &signal, -EINVAL);
	bad = mine;
	bad.dtype = PLDK_FP32;
	abuse_transfers(_metadata, &view, rank, &bad, NULL, NULL, &signal, -EDOM);
	bad = mine;
	bad.shape[0] = N + 1;
	abuse_transfers(_metadata, &view, rank, &bad, NULL, NULL, &signal, -EINVAL);
	BOTH(-EINVAL, pldk_remote_load, NULL, &view, rank, SHAPE(0), SHAPE(N), NULL);
	BOTH(-EINVAL, pldk_remote_store, NULL, &view, rank, SHAPE(0), PLDK_ATOMIC_NONE);
	BOTH(-EINVAL, pldk_remote_load, &mine, &view, rank, NULL, SHAPE(N), NULL);
	BOTH(-EINVAL, pldk_remote_load, &mine, &view, rank, SHAPE(0), NULL, NULL);
	BOTH(-EINVAL, pldk_remote_load, &mine, &view, rank, SHAPE(0), SHAPE(N - 1), NULL);
	BOTH(-EINVAL, pldk_remote_load, &mine, &view, rank, SHAPE(0), SHAPE(N), SHAPE(N + 1));
	BOTH(-EINVAL, pldk_remote_load, &mine, &view, rank, SHAPE(0), SHAPE(N), SHAPE(INT64_MIN));
	BOTH(-EINVAL, pldk_remote_store, &mine, &view, rank, NULL, PLDK_ATOMIC_NONE);
	BOTH(-EINVAL, pldk_remote_store, &mine, &view, rank, SHAPE(0), (enum pldk_atomic)2);
	BOTH(-EINVAL, pldk_remote_store, &mine, &view, rank, SHAPE(0), (enum pldk_atomic)-1);
	/* Edited views: their end is compared with the window. */
	floats = view;
	floats.shape[0] = 17;
	bad = mine;
	bad.shape[0] = 17;
	abuse_transfers(_metadata, &floats, rank, &bad, NULL, NULL, &signal, -EINVAL);
	floats.offset = UINT64_MAX - 3;
	abuse_transfers(_metadata, &floats, rank, &bad, NULL, NULL, &signal, -EINVAL);
	floats = view;
	floats.shape[0] = INT64_MAX;
	bad.shape[0] = INT64_MAX;
	abuse_transfers(_metadata, &floats, rank, &bad, NULL, NULL, &signal, -EOVERFLOW);
	BOTH(-EOVERFLOW, pldk_fetch_add, &floats, rank, SHAPE(0), 1, &out.old);
	floats = view;
	floats.shape[0] = -1;
	BOTH(-EOVERFLOW, pldk_swap, &floats, rank, SHAPE(0), 1, &out.old);
	floats = view;
	floats.dtype = PLDK_FP32;
	BOTH(-EDOM, pldk_fetch_add, &floats, rank, SHAPE(0), 1, &out.old);
	BOTH(-EDOM, pldk_swap, &floats, rank, SHAPE(0), 1, &out.old);
	BOTH(-EDOM, pldk_compare_swap, &floats, rank, SHAPE(0), 0, 1, &out.old);
	floats = view;
	floats.offset = 2;
	floats.shape[0] = 1;
	BOTH(-EINVAL, pldk_fetch_add, &floats, rank, SHAPE(0), 1, &out.old);
	/* Regions and coordinates. */
	for (int i = 0; i < 3; i++)
		abuse_transfers(_metadata, &view, rank, &mine, &holes[i], NULL, &signal, -EINVAL);
	for (int i = 0; i < 4; i++) {
		struct pldk_region there = { &offs[i], SHAPE(0), SHAPE(1) }, from = { SHAPE(0), &offs[i], SHAPE(1) },
				   much = { SHAPE(0), SHAPE(0), SHAPE(i ? offs[i] + (i == 1) : 0) };

		abuse_transfers(_metadata, &view, rank, &mine, &there, NULL, &signal, -EINVAL);
		abuse_transfers(_metadata, &view, rank, &mine, &from, NULL, &signal, -EINVAL);
		abuse_transfers(_metadata, &view, rank, &mine, &much, NULL, &signal, -EINVAL);
		BOTH(-EINVAL, pldk_remote_load, &mine, &view, rank, &offs[i], SHAPE(N), NULL);
		BOTH(-EINVAL, pldk_remote_store, &mine, &view, rank, &offs[i], PLDK_ATOMIC_NONE);
		BOTH(-EINVAL, pldk_fetch_add, &view, rank, &offs[i], 1, &out.old);
		BOTH(-EINVAL, pldk_swap, &view, rank, &offs[i], 1, &out.old);
		BOTH(-EINVAL, pldk_compare_swap, &view, rank, &offs[i], 0, 1, &out.old);
	}
	BOTH(-EINVAL, pldk_fetch_add, &view, rank, NULL, 1, &out.old);
	BOTH(-EINVAL, pldk_fetch_add, &view, rank, SHAPE(0), 1, NULL);
	BOTH(-EINVAL, pldk_swap, &view, rank, NULL, 1, &out.old);
	BOTH(-EINVAL, pldk_swap, &view, rank, SHAPE(0), 1, NULL);
	BOTH(-EINVAL, pldk_swap, &view, rank, SHAPE(0), INT64_MAX, &out.old);
	BOTH(-EINVAL, pldk_compare_swap, &view, rank, NULL, 0, 1, &out.old);
	BOTH(-EINVAL, pldk_compare_swap, &view, rank, SHAPE(0), 0, 1, NULL);
	BOTH(-EINVAL, pldk_compare_swap, &view, rank, SHAPE(0), INT64_MIN, 1, &out.old);
	/* Options. */
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		abuse_transfers(_metadata, &view, rank, &mine, NULL,
				bad_options(room, sizes[i], &init, sizeof(init), 0), &signal, -EINVAL);
	abuse_transfers(_metadata, &view, rank, &mine, NULL,
			bad_options(room, sizeof(init) + 8, &init, sizeof(init), 1), &signal, -E2BIG);
	for (int i = 0; i < 6; i++) {
		o = init;
		if (i < 2)
			o.atomic = ((int[]){ 2, -1 })[i];
		else if (i < 4)
			o.pipeline = ((int[]){ 2, 1 })[i - 2];
		else if (i == 4)
			o.chunk_rows = -1;
		else
			o.chunk_cols = INT64_MIN;
		abuse_transfers(_metadata, &view, rank, &mine, NULL, &o, &signal, -EINVAL);
	}
	o = init;
	o.atomic = PLDK_ATOMIC_ADD;
	BOTH(-EINVAL, pldk_get, &mine, &view, rank, NULL, &o);
	/* The notify. */
	BOTH(-EINVAL, pldk_put_notify, &view, rank, &mine, NULL, NULL, NULL);
	BOTH(-EINVAL, pldk_put_notify_nb, &view, rank, &mine, NULL, NULL, NULL, &out.handle);
	for (int i = 0; i < 7; i++) {
		s = signal;
		if (i < 4)
			s.cell = offs[i];
		else if (i < 6)
			s.op = i == 4 ? 2 : -1;
		else
			s.signal = NULL;
		BOTH(-EINVAL, pldk_put_notify, &view, rank, &mine, NULL, NULL, &s);
		BOTH(-EINVAL, pldk_put_notify_nb, &view, rank, &mine, NULL, NULL, &s, &out.handle);
	}
	s = signal;
	s.signal = data;
	BOTH(-EDOM, pldk_put_notify, &view, rank, &mine, NULL, NULL, &s);
	BOTH(-EDOM, pldk_put_notify_nb, &view, rank, &mine, NULL, NULL, &s, &out.handle);
	BOTH(-EINVAL, pldk_put_nb, &view, rank, &mine, NULL, NULL, NULL);
	BOTH(-EINVAL, pldk_get_nb, &mine, &view, rank, NULL, NULL, NULL);
	BOTH(-EINVAL, pldk_put_notify_nb, &view, rank, &mine, NULL, NULL, &signal, NULL);
	/* None of all that moved a byte or notified. */
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int i = 0; i < 16; i++)
		EXPECT_EQ(0, ((const int32_t *)pldk_window_base(data))[i]);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(1, pldk_test(cells, i, PLDK_EQ, 0));
	works(_metadata, world);
}

TEST(transfers_that_cannot_be_move_nothing)
{
	run_ranks(2, bad_transfers, NULL);
}

/*
 * Cells
 */

RANK(bad_signals)
{
	struct pldk_window *cells = pt_signal(_metadata, world, 4), *elsewhere;
	static const int64_t bad_cells[] = { -1, 4, INT64_MAX, INT64_MIN, INT64_C(1) << 32 };
	struct pldk_await await = { .signal = cells, .cmp = PLDK_EQ }, a;
	struct pldk_post post = { .signal = cells }, p;
	struct pldk_domain *subset;
	int mine[1] = { rank };

	ASSERT_OK(pldk_subset(world, mine, 1, PT_LONG, &subset));
	elsewhere = pt_signal(_metadata, subset, 4);
	for (int i = 0; i < 5; i++) {
		int64_t cell = bad_cells[i];

		ABUSE(-EINVAL, pldk_cell(cells, 1, &cell));
		BOTH(-EINVAL, pldk_notify, cells, rank, cell, PLDK_NOTIFY_ADD, 1);
		BOTH(-EINVAL, pldk_wait, cells, cell, PLDK_EQ, 0, T);
		BOTH(-EINVAL, pldk_test, cells, cell, PLDK_EQ, 0);
		BOTH(-EINVAL, pldk_read, cells, cell, &out.value);
		a = await;
		a.cell = cell;
		BOTH(-EINVAL, pldk_wait_all, &a, 1, T);
		BOTH(-EINVAL, pldk_wait_any, &a, 1, T, &out.index);
		BOTH(-EINVAL, pldk_notify_wait, &post, 1, &a, 1, T);
		p = post;
		p.cell = cell;
		p.value = 1;
		BOTH(-EINVAL, pldk_notify_all, &p, 1);
		BOTH(-EINVAL, pldk_notify_wait, &p, 1, &await, 1, T);
	}
	ABUSE(-EINVAL, pldk_cell(cells, 1, NULL));
	ABUSE(-EINVAL, pldk_cell(cells, 0, SHAPE(0)));
	ABUSE(-EINVAL, pldk_cell(cells, 2, SHAPE(0, 0)));
	ABUSE(-EINVAL, pldk_cell(cells, INT_MIN, SHAPE(0)));
	for (int i = 0; i < 4; i++) {
		int peer = ((int[]){ -1, size, INT_MAX, INT_MIN })[i];

		BOTH(-EINVAL, pldk_notify, cells, peer, 0, PLDK_NOTIFY_ADD, 1);
		p = post;
		p.peer = peer;
		BOTH(-EINVAL, pldk_notify_all, &p, 1);
		a = await;
		a.flags = PLDK_AWAIT_FROM;
		a.from = peer;
		BOTH(-EINVAL, pldk_wait_all, &a, 1, T);
	}
	for (int i = 0; i < 4; i++) {
		int bad = ((int[]){ -1, 6, INT_MAX, INT_MIN })[i];

		BOTH(-EINVAL, pldk_notify, cells, rank, 0, (enum pldk_notify_op)bad, 1);
		BOTH(-EINVAL, pldk_wait, cells, 0, (enum pldk_cmp)bad, 0, T);
		BOTH(-EINVAL, pldk_test, cells, 0, (enum pldk_cmp)bad, 0);
		p = post;
		p.op = bad;
		BOTH(-EINVAL, pldk_notify_all, &p, 1);
		a = await;
		a.cmp = bad;
		BOTH(-EINVAL, pldk_wait_any, &a, 1, T, &out.index);
	}
	a = await;
	a.flags = 2;
	BOTH(-EOPNOTSUPP, pldk_wait_all, &a, 1, T);
	BOTH(-EOPNOTSUPP, pldk_wait_any, &a, 1, T, &out.index);
	a = await;
	a.reserved = 1;
	BOTH(-EINVAL, pldk_wait_all, &a, 1, T);
	a = await;
	a.reserved32 = 1;
	BOTH(-EINVAL, pldk_wait_any, &a, 1, T, &out.index);
	p = post;
	p.reserved[1] = 1;
	BOTH(-EINVAL, pldk_notify_all, &p, 1);
	BOTH(-EINVAL, pldk_notify_wait, &p, 1, NULL, 0, T);
	BOTH(-EINVAL, pldk_read, cells, 0, NULL);
	BOTH(-EINVAL, pldk_wait_all, NULL, 1, T);
	BOTH(-EINVAL, pldk_wait_any, NULL, 1, T, &out.index);
	BOTH(-EINVAL, pldk_wait_any, NULL, 0, T, &out.index);
	BOTH(-EINVAL, pldk_wait_any, &await, 1, T, NULL);
	BOTH(-EINVAL, pldk_notify_all, NULL, 1);
	BOTH(-EINVAL, pldk_notify_wait, NULL, 1, NULL, 0, T);
	BOTH(-EINVAL, pldk_notify_wait, NULL, 0, NULL, 1, T);
	BOTH(-EINVAL, pldk_wait_all, &await, FAR_TOO_MANY, T);
	BOTH(-EINVAL, pldk_wait_any, &await, PLDK_MAX_VECTOR + 1, T, &out.index);
	BOTH(-EINVAL, pldk_notify_all, &post, FAR_TOO_MANY);
	BOTH(-EINVAL, pldk_notify_wait, &post, FAR_TOO_MANY, NULL, 0, T);
	BOTH(-EINVAL, pldk_wait_all, ((struct pldk_await[]){ await, { .signal = elsewhere } }), 2, T);
	BOTH(-EINVAL, pldk_notify_all, ((struct pldk_post[]){ post, { .signal = elsewhere } }), 2);
	BOTH(-EINVAL, pldk_notify_wait, &post, 1, &(struct pldk_await){ .signal = elsewhere }, 1, T);
	/* Not satisfied, and asked only once: the sentence says of what. */
	BOTH(-EAGAIN, pldk_wait, cells, 0, PLDK_EQ, 5, T);
	/* A limit that ends at the end of time is no limit that has passed. */
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	ASSERT_OK(pldk_notify(cells, (rank + 1) % size, 1, PLDK_NOTIFY_ADD, 1));
	ASSERT_OK(pldk_wait(cells, 1, PLDK_GE, 1, INT64_MAX));
	ASSERT_OK(pldk_notify(cells, (rank + 1) % size, 1, PLDK_NOTIFY_ADD, 1));
	ASSERT_OK(pldk_wait(cells, 1, PLDK_GE, 2, INT64_MIN + 1));
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(1, pldk_test(cells, i, PLDK_EQ, i == 1 ? 2 : 0));
	ASSERT_OK(pldk_domain_close(subset));
	works(_metadata, world);
}

TEST(cells_that_are_not_there_are_told)
{
	run_ranks(2, bad_signals, NULL);
}

/*
 * Collectives. All ranks make the same mistakes, in the same order; then they meet.
 */

/* All but barrier, with the same bad dtype, count, and so on. */
static void abuse_collectives(struct __test_metadata *_metadata, struct pldk_domain *d, const void *in, void *to,
			      size_t n, int type, int err)
{
	static const size_t counts[2] = { 1, 1 };
	enum pldk_dtype dtype = (enum pldk_dtype)type;

	FORMS(err, PT_LONG, pldk_allreduce, d, in, to, n, dtype, PLDK_SUM, PLDK_MODE_AUTO);
	if (in)
		FORMS(err, PT_LONG, pldk_broadcast, d, to, n, dtype, pldk_rank(d));
	FORMS(err, PT_LONG, pldk_allgather, d, in, to, n, dtype);
	FORMS(err, PT_LONG, pldk_reduce_scatter, d, in, to, n, dtype, PLDK_SUM);
	FORMS(err, PT_LONG, pldk_all_to_all, d, in, to, n, dtype);
	FORMS(err, PT_LONG, pldk_all_to_all_v, d, in, to, n, counts, counts, dtype);
	FORMS(err, PT_LONG, pldk_reduce, d, in, to, n, dtype, PLDK_SUM, pldk_rank(d));
	FORMS(err, PT_LONG, pldk_gather, d, in, to, n, dtype, pldk_rank(d));
	if (to)
		FORMS(err, PT_LONG, pldk_scatter, d, in, to, n, dtype, pldk_rank(d));
	FORMS(err, PT_LONG, pldk_scan, d, in, to, n, dtype, PLDK_SUM);
	if (to)
		FORMS(err, PT_LONG, pldk_exscan, d, in, to, n, dtype, PLDK_SUM);
}

RANK(bad_collectives)
{
	static const size_t counts[2] = { 1, 1 }, more[2] = { N + 1, FAR_TOO_MANY };
	void *to = out.data;

	abuse_collectives(_metadata, world, NULL, to, N, PLDK_FP32, -EINVAL);
	abuse_collectives(_metadata, world, IN, NULL, N, PLDK_FP32, -EINVAL);
	works(_metadata, world);
	for (int i = 0; i < 5; i++)
		abuse_collectives(_metadata, world, IN, to, N, ((int[]){ 0, 10, -1, INT_MAX, INT_MIN })[i], -EINVAL);
	works(_metadata, world);
	abuse_collectives(_metadata, world, IN, to, FAR_TOO_MANY, PLDK_FP32, -EOVERFLOW);
	abuse_collectives(_metadata, world, IN, to, (size_t)1 << 62, PLDK_FP16, -EOVERFLOW);
	works(_metadata, world);
	for (int i = 0; i < 4; i++) {
		int root = ((int[]){ -1, size, INT_MAX, INT_MIN })[i];
		int bad = ((int[]){ -1, 4, INT_MAX, INT_MIN })[i];

		BOTH(-EINVAL, pldk_broadcast, world, to, N, PLDK_FP32, root, PT_LONG);
		BOTH(-EINVAL, pldk_reduce, world, IN, to, N, PLDK_FP32, PLDK_SUM, root, PT_LONG);
		BOTH(-EINVAL, pldk_gather, world, IN, to, N, PLDK_FP32, root, PT_LONG);
		BOTH(-EINVAL, pldk_scatter, world, IN, to, N, PLDK_FP32, root, PT_LONG);
		BOTH(-EINVAL, pldk_allreduce, world, IN, to, N, PLDK_FP32, (enum pldk_reduce_op)bad, PLDK_MODE_AUTO,
		     PT_LONG);
		BOTH(-EINVAL, pldk_allreduce, world, IN, to, N, PLDK_FP32, PLDK_SUM, (enum pldk_mode)bad, PT_LONG);
		BOTH(-EINVAL, pldk_reduce_scatter, world, IN, to, N, PLDK_FP32, (enum pldk_reduce_op)bad, PT_LONG);
		BOTH(-EINVAL, pldk_reduce, world, IN, to, N, PLDK_FP32, (enum pldk_reduce_op)bad, 0, PT_LONG);
		BOTH(-EINVAL, pldk_scan, world, IN, to, N, PLDK_FP32, (enum pldk_reduce_op)bad, PT_LONG);
		BOTH(-EINVAL, pldk_exscan, world, IN, to, N, PLDK_FP32, (enum pldk_reduce_op)bad, PT_LONG);
	}
	works(_metadata, world);
	BOTH(-EINVAL, pldk_all_to_all_v, world, IN, to, N, NULL, counts, PLDK_FP32, PT_LONG);
	BOTH(-EINVAL, pldk_all_to_all_v, world, IN, to, N, counts, NULL, PLDK_FP32, PT_LONG);
	BOTH(-EINVAL, pldk_all_to_all_v, world, IN, to, N, more, counts, PLDK_FP32, PT_LONG);
	BOTH(-EINVAL, pldk_all_to_all_v, world, IN, to, N, counts, more, PLDK_FP32, PT_LONG);
	/* In place where it cannot be, and what overlaps but is not equal. */
	BOTH(-EINVAL, pldk_all_to_all, world, PLDK_IN_PLACE, to, N, PLDK_FP32, PT_LONG);
	BOTH(-EINVAL, pldk_all_to_all, world, to, to, N, PLDK_FP32, PT_LONG);
	BOTH(-EINVAL, pldk_broadcast, world, (void *)(uintptr_t)PLDK_IN_PLACE, N, PLDK_FP32, rank, PT_LONG);
	BOTH(-EINVAL, pldk_allreduce, world, IN, (void *)(uintptr_t)PLDK_IN_PLACE, N, PLDK_FP32, PLDK_SUM,
	     PLDK_MODE_AUTO, PT_LONG);
	BOTH(-EINVAL, pldk_scatter, world, PLDK_IN_PLACE, to, N, PLDK_FP32, rank, PT_LONG);
	BOTH(-EINVAL, pldk_reduce, world, PLDK_IN_PLACE, to, N, PLDK_FP32, PLDK_SUM, (rank + 1) % size, PT_LONG);
	BOTH(-EINVAL, pldk_allreduce, world, out.data + 1, to, N, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG);
	BOTH(-EINVAL, pldk_allgather, world, out.data + 1, to, 2 * N, PLDK_FP32, PT_LONG);
	BOTH(-EINVAL, pldk_scan, world, out.data + 1, to, N, PLDK_FP32, PLDK_SUM, PT_LONG);
	works(_metadata, world);
	/* The other one does not come yet: the call can be made again. */
	if (!rank) {
		BOTH(-EAGAIN, pldk_barrier, world, T);
		atomic_store(pt_word(0), 1);
	} else {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)), 8000));
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(collectives_that_cannot_be_leave_the_world_whole)
{
	struct pt_run run = { .nranks = 2, .body = bad_collectives };

	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

TEST_HARNESS_MAIN
