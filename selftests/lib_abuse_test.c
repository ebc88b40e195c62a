// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Every function of lib/libpldk.map, called as it must not be called: NULL, what was closed or destroyed or ended, what
 * is of another kind; then domains, windows, views and worlds with numbers out of range, sums that overflow, structs of
 * options that nobody initialised. The same of transfers, cells and collectives: lib_abuse_ops_test.c.
 *
 * tools/check-map.sh compares the names in these two files with the map: a function that is not abused here fails.
 */
#include "pldk_test_abuse.h"

/* Every function that takes a domain. */
static void abuse_domain(struct __test_metadata *_metadata, struct pldk_domain *d, int err)
{
	static const size_t counts[2] = { 1, 1 };
	static const int ranks[1] = { 0 };
	void *to = out.data;

	ABUSE(err, pldk_rank(d));
	ABUSE(err, pldk_size(d));
	ABUSE(err, pldk_left(d));
	ABUSE(err, pldk_right(d));
	ABUSE(err, pldk_device(d, 0));
	ABUSE(err, strcmp(pldk_provider(d), "?") ? 0 : err);
	ABUSE(err, pldk_member(d, 0, &out.member));
	ABUSE(err, pldk_abort(d, 1));
	ABUSE(err, pldk_limits(d, &out.limits));
	ABUSE(err, pldk_recorder_read(d, 0, out.events, 2));
	ABUSE(err, pldk_domain_close(d));
	if (d)
		ABUSE(err, pldk_finalize(d));
	ABUSE(err, pldk_dim(d, "x") ? 0 : err);
	ABUSE(err, pldk_dim_bind(d, "x", 1));
	ABUSE(err, pldk_dim_value(d, "x"));
	BOTH(err, pldk_subset, d, ranks, 1, T, &out.domain);
	BOTH(err, pldk_window_create, d, 64, NULL, &out.window);
	BOTH(err, pldk_window_create_typed, d, 1, SHAPE(4), PLDK_FP32, NULL, &out.window);
	BOTH(err, pldk_signal_create, d, 1, SHAPE(4), NULL, &out.window);
	BOTH(err, pldk_flush, d, 0, T);
	BOTH(err, pldk_fence, d, 0);
	FORMS(err, T, pldk_barrier, d);
	FORMS(err, T, pldk_allreduce, d, IN, to, N, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO);
	FORMS(err, T, pldk_broadcast, d, to, N, PLDK_FP32, 0);
	FORMS(err, T, pldk_allgather, d, IN, to, N, PLDK_FP32);
	FORMS(err, T, pldk_reduce_scatter, d, IN, to, N, PLDK_FP32, PLDK_SUM);
	FORMS(err, T, pldk_all_to_all, d, IN, to, N, PLDK_FP32);
	FORMS(err, T, pldk_all_to_all_v, d, IN, to, N, counts, counts, PLDK_FP32);
	FORMS(err, T, pldk_reduce, d, IN, to, N, PLDK_FP32, PLDK_SUM, 0);
	FORMS(err, T, pldk_gather, d, IN, to, N, PLDK_FP32, 0);
	FORMS(err, T, pldk_scatter, d, IN, to, N, PLDK_FP32, 0);
	FORMS(err, T, pldk_scan, d, IN, to, N, PLDK_FP32, PLDK_SUM);
	FORMS(err, T, pldk_exscan, d, IN, to, N, PLDK_FP32, PLDK_SUM);
}

/* Every function that takes a view, with one that is bad. */
static void abuse_view(struct __test_metadata *_metadata, const struct pldk_dtensor *v, int err)
{
	struct pldk_tensor mine = pt_tensor(_metadata, out.data, PLDK_INT32, N);
	const struct pldk_tensor *t = &mine;

	BOTH(err, pldk_put, v, 0, t, NULL, NULL);
	BOTH(err, pldk_get, t, v, 0, NULL, NULL);
	BOTH(err, pldk_put_notify, v, 0, t, NULL, NULL, NULL);
	BOTH(err, pldk_put_nb, v, 0, t, NULL, NULL, &out.handle);
	BOTH(err, pldk_get_nb, t, v, 0, NULL, NULL, &out.handle);
	BOTH(err, pldk_put_notify_nb, v, 0, t, NULL, NULL, NULL, &out.handle);
	BOTH(err, pldk_remote_load, t, v, 0, SHAPE(0), SHAPE(N), NULL);
	BOTH(err, pldk_remote_store, t, v, 0, SHAPE(0), PLDK_ATOMIC_NONE);
	BOTH(err, pldk_fetch_add, v, 0, SHAPE(0), 1, &out.old);
	BOTH(err, pldk_swap, v, 0, SHAPE(0), 1, &out.old);
	BOTH(err, pldk_compare_swap, v, 0, SHAPE(0), 0, 1, &out.old);
	ABUSE(err, pldk_view_expect(v, 1, SHAPE(N), PLDK_INT32));
	ABUSE(err, pldk_view_local(v, &out.tensor));
}

/* Every function that takes a signal window or, by fields, a struct that has one. */
static void abuse_signal(struct __test_metadata *_metadata, struct pldk_window *w, int err)
{
	struct pldk_await await = { .signal = w, .cmp = PLDK_EQ };
	struct pldk_post post = { .signal = w };

	ABUSE(err, pldk_cell(w, 1, SHAPE(0)));
	BOTH(err, pldk_notify, w, 0, 0, PLDK_NOTIFY_ADD, 1);
	BOTH(err, pldk_wait, w, 0, PLDK_EQ, 0, T);
	BOTH(err, pldk_test, w, 0, PLDK_EQ, 0);
	BOTH(err, pldk_read, w, 0, &out.value);
	BOTH(err, pldk_wait_all, &await, 1, T);
	BOTH(err, pldk_wait_any, &await, 1, T, &out.index);
	BOTH(err, pldk_notify_all, &post, 1);
	BOTH(err, pldk_notify_wait, &post, 1, NULL, 0, T);
	BOTH(err, pldk_notify_wait, NULL, 0, &await, 1, T);
}

/* Collectives on a signal window. */
static void abuse_collectives_on(struct __test_metadata *_metadata, struct pldk_window *w, int err)
{
	static const size_t counts[2] = { 1, 1 };
	void *to = out.data;

	BOTH(err, pldk_barrier_on, w, T);
	BOTH(err, pldk_allreduce_on, w, IN, to, N, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, T);
	BOTH(err, pldk_broadcast_on, w, to, N, PLDK_FP32, 0, T);
	BOTH(err, pldk_allgather_on, w, IN, to, N, PLDK_FP32, T);
	BOTH(err, pldk_reduce_scatter_on, w, IN, to, N, PLDK_FP32, PLDK_SUM, T);
	BOTH(err, pldk_all_to_all_on, w, IN, to, N, PLDK_FP32, T);
	BOTH(err, pldk_all_to_all_v_on, w, IN, to, N, counts, counts, PLDK_FP32, T);
	BOTH(err, pldk_reduce_on, w, IN, to, N, PLDK_FP32, PLDK_SUM, 0, T);
	BOTH(err, pldk_gather_on, w, IN, to, N, PLDK_FP32, 0, T);
	BOTH(err, pldk_scatter_on, w, IN, to, N, PLDK_FP32, 0, T);
	BOTH(err, pldk_scan_on, w, IN, to, N, PLDK_FP32, PLDK_SUM, T);
	BOTH(err, pldk_exscan_on, w, IN, to, N, PLDK_FP32, PLDK_SUM, T);
}

/* Every function that takes any window. */
static void abuse_window(struct __test_metadata *_metadata, struct pldk_window *w, int err)
{
	abuse_signal(_metadata, w, err);
	abuse_collectives_on(_metadata, w, err);
	ABUSE(err, pldk_view(w, 0, 1, SHAPE(N), PLDK_INT32, &out.view));
	BOTH(err, pldk_window_reset, w, T);
	ABUSE(err, pldk_window_id(w));
	if (w)
		ABUSE(err, pldk_window_destroy(w));
	EXPECT_EQ(NULL, pldk_window_base(w));
	EXPECT_EQ(NULL, pldk_window_peer(w, 0));
	EXPECT_EQ(0, pldk_window_bytes(w));
	EXPECT_EQ(0, pldk_window_page_bytes(w));
	EXPECT_EQ(NULL, pldk_window_domain(w));
}

static void abuse_handle(struct __test_metadata *_metadata, struct pldk_handle *h, int err)
{
	BOTH(err, pldk_handle_wait, h, T);
	BOTH(err, pldk_handle_test, h);
	if (h)
		ABUSE(err, (pldk_handle_free(h), err));
}

/*
 * Nothing, closed things, things of another kind
 */

RANK(null_and_closed)
{
	struct pldk_window *data = pt_window(_metadata, world, 64), *in_subset, *cells_in_subset;
	struct pldk_window *cells = pt_signal(_metadata, world, 4);
	struct pldk_dtensor view = pt_view(_metadata, data, PLDK_INT32, N), subset_view, no_view = { 0 };
	struct pldk_tensor tensor;
	struct pldk_domain *subset = NULL;
	struct pldk_handle *handle = NULL;
	int all[2] = { 0, 1 };

	abuse_domain(_metadata, NULL, -EINVAL);
	abuse_window(_metadata, NULL, -EINVAL);
	abuse_view(_metadata, NULL, -EINVAL);
	abuse_view(_metadata, &no_view, -EDOM);
	abuse_handle(_metadata, NULL, -EINVAL);

	/* One kind for another. */
	abuse_domain(_metadata, (struct pldk_domain *)cells, -EINVAL);
	abuse_window(_metadata, (struct pldk_window *)world, -EINVAL);
	abuse_handle(_metadata, (struct pldk_handle *)world, -EINVAL);
	abuse_handle(_metadata, (struct pldk_handle *)(uintptr_t)-1, -EINVAL);
	abuse_signal(_metadata, data, -EDOM);
	ABUSE(-EDOM, pldk_view(cells, 0, 1, SHAPE(N), PLDK_INT32, &out.view));
	EXPECT_EQ(NULL, pldk_window_base(cells));
	tensor = pt_tensor(_metadata, out.data, PLDK_INT32, N);
	abuse_view(_metadata, (const struct pldk_dtensor *)&tensor, -EDOM);

	/* Ended, destroyed, closed. */
	ASSERT_OK(pldk_put_nb(&view, rank, &tensor, NULL, NULL, &handle));
	ASSERT_OK(pldk_handle_wait(handle, PT_LONG));
	abuse_handle(_metadata, handle, -ESTALE);
	ASSERT_OK(pldk_put_nb(&view, rank, &tensor, NULL, NULL, &handle));

	ASSERT_OK(pldk_subset(world, all, size, PT_LONG, &subset));
	in_subset = pt_window(_metadata, subset, 64);
	cells_in_subset = pt_signal(_metadata, subset, 4);
	subset_view = pt_view(_metadata, in_subset, PLDK_INT32, N);
	ASSERT_OK(pldk_window_destroy(in_subset));
	abuse_window(_metadata, in_subset, -ESTALE);
	abuse_view(_metadata, &subset_view, -ESTALE);
	works(_metadata, subset);
	ASSERT_OK(pldk_domain_close(subset));
	abuse_domain(_metadata, subset, -EINVAL);
	abuse_window(_metadata, in_subset, -ESTALE);
	abuse_window(_metadata, cells_in_subset, -ESTALE);
	abuse_view(_metadata, &subset_view, -ESTALE);

	/* What comes later is not taken for what was there before. */
	for (int i = 0; i < 4; i++) {
		struct pldk_domain *later = NULL;
		struct pldk_window *window;

		ASSERT_OK(pldk_subset(world, all, size, PT_LONG, &later));
		window = pt_window(_metadata, later, 64);
		EXPECT_NE(subset, later);
		EXPECT_NE(in_subset, window);
		EXPECT_RET(-EINVAL, pldk_rank(subset));
		EXPECT_RET(-ESTALE, pldk_window_destroy(in_subset));
		EXPECT_RET(-ESTALE, pldk_view_local(&subset_view, &tensor));
		ASSERT_OK(pldk_domain_close(later));
	}
	works(_metadata, world);
	ASSERT_OK(pldk_finalize(world));
	abuse_domain(_metadata, world, -EINVAL);
	abuse_window(_metadata, data, -ESTALE);
	abuse_window(_metadata, cells, -ESTALE);
	abuse_view(_metadata, &view, -ESTALE);
	abuse_handle(_metadata, handle, -ESTALE);
}

TEST(what_is_not_there_is_told)
{
	struct pt_run run = { .nranks = 2, .body = null_and_closed, .leave = true };

	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

/*
 * Numbers
 */

RANK(bad_domain_arguments)
{
	struct pldk_domain *subset;
	char long_name[64];
	int mine[1] = { rank };

	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[63] = 0;
	for (int i = 0; i < 4; i++) {
		int bad = ((int[]){ -1, size, INT_MAX, INT_MIN })[i];

		ABUSE(-EINVAL, pldk_device(world, bad));
		ABUSE(-EINVAL, pldk_member(world, bad, &out.member));
		ABUSE(-EINVAL, pldk_recorder_read(world, bad, out.events, 2));
		ABUSE(-EINVAL, pldk_abort(world, i == 1 ? 0x10000 : bad));
		BOTH(-EINVAL, pldk_subset, world, &bad, 1, T, &out.domain);
		BOTH(-EINVAL, pldk_subset, world, mine, i == 1 ? size + 1 : i ? bad : 0, T, &out.domain);
		if (bad != PLDK_RANK_ANY) {
			BOTH(-EINVAL, pldk_flush, world, bad, T);
			BOTH(-EINVAL, pldk_fence, world, bad);
		}
	}
	ABUSE(-EINVAL, pldk_member(world, 0, NULL));
	ABUSE(-EINVAL, pldk_limits(world, NULL));
	ABUSE(-EINVAL, pldk_recorder_read(world, 0, NULL, 2));
	ABUSE(-EINVAL, pldk_recorder_read(world, 0, out.events, FAR_TOO_MANY));
	ABUSE(-EINVAL, pldk_domain_close(world));
	BOTH(-EINVAL, pldk_subset, world, NULL, 1, T, &out.domain);
	BOTH(-EINVAL, pldk_subset, world, mine, 1, T, NULL);
	ABUSE(-EINVAL, pldk_dim(world, NULL) ? 0 : -EINVAL);
	ABUSE(-EINVAL, pldk_dim(world, "") ? 0 : -EINVAL);
	ABUSE(-EINVAL, pldk_dim(world, long_name) ? 0 : -EINVAL);
	ABUSE(-EINVAL, pldk_dim_bind(world, NULL, 1));
	ABUSE(-EINVAL, pldk_dim_bind(world, "x", 0));
	ABUSE(-EINVAL, pldk_dim_bind(world, "x", INT64_MIN));
	ABUSE(-EEXIST, pldk_dim_bind(world, "NR", size + 1));
	ABUSE(-EINVAL, pldk_dim_value(world, NULL));
	ABUSE(-ENOENT, pldk_dim_value(world, "never bound"));
	works(_metadata, world);
	ASSERT_OK(pldk_subset(world, mine, 1, PT_LONG, &subset));
	ABUSE(-EINVAL, pldk_finalize(subset));
	ABUSE(-EINVAL, pldk_recorder_read(subset, 0, out.events, 2));
	ASSERT_OK(pldk_domain_close(subset));
}

TEST(numbers_that_no_domain_has_are_told)
{
	run_ranks(2, bad_domain_arguments, NULL);
}

RANK(bad_window_arguments)
{
	struct pldk_window_options init = PLDK_WINDOW_OPTIONS_INIT, o;
	struct pldk_window **to = &out.window;
	_Alignas(16) char room[4096];
	int64_t nine[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	int64_t unbound = pldk_dim(world, "unbound");
	static const size_t sizes[] = { 0, 1, sizeof(init) - 1, 4097, (size_t)-1 };

	/* Each rank says by itself that it cannot; nobody waits. */
	BOTH(-EINVAL, pldk_window_create, world, 0, NULL, to);
	BOTH(-EINVAL, pldk_window_create, world, 64, NULL, NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		BOTH(-EINVAL, pldk_window_create, world, 64, bad_options(room, sizes[i], &init, sizeof(init), 0), to);
	BOTH(-E2BIG, pldk_window_create, world, 64, bad_options(room, sizeof(init) + 8, &init, sizeof(init), 1), to);
	o = init;
	o.flags = 1u << 31;
	BOTH(-EOPNOTSUPP, pldk_window_create, world, 64, &o, to);
	for (int i = 0; i < 4; i++) {
		o = init;
		o.id = ((int[]){ -2, 65535, INT_MAX, INT_MIN })[i];
		BOTH(-EINVAL, pldk_window_create, world, 64, &o, to);
		BOTH(-EINVAL, pldk_signal_create, world, 1, SHAPE(4), &o, to);
		BOTH(-EINVAL, pldk_window_create_typed, world, 1, SHAPE(4), PLDK_FP32, &o, to);
	}
	o = init;
	o.name = "a name that is longer than thirty-one bytes";
	BOTH(-EINVAL, pldk_window_create, world, 64, &o, to);
	o.name = "new\nline";
	BOTH(-EINVAL, pldk_window_create, world, 64, &o, to);
	o = init;
	o.flags = PLDK_WINDOW_OWNER_WRITES;
	BOTH(-EINVAL, pldk_signal_create, world, 1, SHAPE(4), &o, to);
	for (int i = 0; i < 5; i++) {
		int dtype = ((int[]){ 0, 10, -1, INT_MAX, INT_MIN })[i];

		BOTH(-EINVAL, pldk_window_create_typed, world, 1, SHAPE(4), (enum pldk_dtype)dtype, NULL, to);
		EXPECT_EQ(0, pldk_dtype_size((enum pldk_dtype)dtype));
		EXPECT_EQ(0, strcmp("?", pldk_dtype_name((enum pldk_dtype)dtype)));
		ABUSE(-EINVAL, pldk_tensor_of(&out.tensor, room, (enum pldk_dtype)dtype, 1, SHAPE(4)));
	}
	for (int i = 0; i < 5; i++) {
		int ndim = ((int[]){ 0, 9, -1, INT_MAX, INT_MIN })[i];

		BOTH(-EINVAL, pldk_window_create_typed, world, ndim, nine, PLDK_FP32, NULL, to);
		BOTH(-EINVAL, pldk_signal_create, world, ndim, nine, NULL, to);
		ABUSE(-EINVAL, pldk_tensor_of(&out.tensor, room, PLDK_FP32, ndim, nine));
	}
	BOTH(-EINVAL, pldk_window_create_typed, world, 1, NULL, PLDK_FP32, NULL, to);
	BOTH(-EINVAL, pldk_signal_create, world, 1, NULL, NULL, to);
	for (int i = 0; i < 4; i++) {
		int64_t extent = ((int64_t[]){ 0, -1, -4095, INT64_MIN })[i];

		BOTH(-EINVAL, pldk_window_create_typed, world, 1, &extent, PLDK_FP32, NULL, to);
		BOTH(-EINVAL, pldk_signal_create, world, 1, &extent, NULL, to);
	}
	BOTH(-ENOENT, pldk_window_create_typed, world, 1, &unbound, PLDK_FP32, NULL, to);
	BOTH(-ENOENT, pldk_signal_create, world, 1, &unbound, NULL, to);
	BOTH(-EOVERFLOW, pldk_window_create_typed, world, 1, SHAPE(INT64_MAX), PLDK_FP32, NULL, to);
	BOTH(-EOVERFLOW, pldk_window_create_typed, world, 2, SHAPE(INT64_MAX, INT64_MAX), PLDK_INT8, NULL, to);
	BOTH(-EOVERFLOW, pldk_signal_create, world, 1, SHAPE(INT64_MAX), NULL, to);
	BOTH(-EOVERFLOW, pldk_signal_create, world, 2, SHAPE(INT64_C(1) << 32, INT64_C(1) << 32), NULL, to);

	ABUSE(-EINVAL, pldk_tensor_of(NULL, room, PLDK_FP32, 1, SHAPE(4)));
	ABUSE(-EINVAL, pldk_tensor_of(&out.tensor, NULL, PLDK_FP32, 1, SHAPE(4)));
	ABUSE(-EINVAL, pldk_tensor_of(&out.tensor, room, PLDK_FP32, 1, NULL));
	ABUSE(-EINVAL, pldk_tensor_of(&out.tensor, room, PLDK_FP32, 1, SHAPE(-1)));
	ABUSE(-EOVERFLOW, pldk_tensor_of(&out.tensor, room, PLDK_FP32, 1, SHAPE(INT64_MAX)));
	ABUSE(-EOVERFLOW, pldk_tensor_of(&out.tensor, (void *)(UINTPTR_MAX - 8), PLDK_FP32, 1, SHAPE(4)));
	works(_metadata, world);
}

TEST(windows_that_cannot_be_are_told)
{
	run_ranks(2, bad_window_arguments, NULL);
}

/* More memory than there is: all ranks hear it, and the next window is made as ever. */
RANK(too_large)
{
	static const size_t sizes[] = { (size_t)-1, (size_t)1 << 63, (size_t)1 << 62, (size_t)1 << 50 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		int ret;

		poison_outputs();
		ret = pldk_window_create(world, sizes[i], NULL, &out.window);
		EXPECT_TRUE(ret == -ENOMEM || ret == -EOVERFLOW || ret == -EPERM || ret == -ENOSPC || ret == -EINVAL)
		TH_LOG("%zu bytes: %d \"%s\"", sizes[i], ret, pldk_last_error());
		EXPECT_EQ(0, memcmp(&out, &before, sizeof(out)));
	}
	works(_metadata, world);
	pt_window(_metadata, world, 4096);
}

TEST(windows_larger_than_memory_leave_nothing)
{
	run_ranks(2, too_large, NULL);
}

RANK(bad_view_arguments)
{
	struct pldk_window *data = pt_window(_metadata, world, 64);
	struct pldk_dtensor view = pt_view(_metadata, data, PLDK_INT32, N), bad;
	struct pldk_dtensor *to = &out.view;
	int64_t unbound = pldk_dim(world, "unbound"), nine[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };

	ABUSE(-EINVAL, pldk_view(data, 0, 1, SHAPE(N), PLDK_INT32, NULL));
	ABUSE(-EINVAL, pldk_view(data, 0, 1, NULL, PLDK_INT32, to));
	ABUSE(-EINVAL, pldk_view(data, 0, 0, nine, PLDK_INT32, to));
	ABUSE(-EINVAL, pldk_view(data, 0, 9, nine, PLDK_INT32, to));
	ABUSE(-EINVAL, pldk_view(data, 0, INT_MIN, nine, PLDK_INT32, to));
	ABUSE(-EINVAL, pldk_view(data, 2, 1, SHAPE(N), PLDK_INT32, to));
	ABUSE(-EINVAL, pldk_view(data, 64, 1, SHAPE(1), PLDK_INT32, to));
	ABUSE(-EINVAL, pldk_view(data, FAR_TOO_MANY - 3, 1, SHAPE(1), PLDK_INT32, to));
	ABUSE(-EINVAL, pldk_view(data, 0, 1, SHAPE(17), PLDK_INT32, to));
	ABUSE(-EINVAL, pldk_view(data, 0, 1, SHAPE(0), PLDK_INT32, to));
	ABUSE(-EINVAL, pldk_view(data, 0, 1, SHAPE(-1), PLDK_INT32, to));
	ABUSE(-EINVAL, pldk_view(data, 0, 1, SHAPE(INT64_MIN), PLDK_INT32, to));
	ABUSE(-EOVERFLOW, pldk_view(data, 0, 1, SHAPE(INT64_MAX), PLDK_INT32, to));
	ABUSE(-ENOENT, pldk_view(data, 0, 1, &unbound, PLDK_INT32, to));
	ABUSE(-EINVAL, pldk_view(data, 0, 1, SHAPE(N), (enum pldk_dtype)0, to));
	ABUSE(-EINVAL, pldk_view(data, 0, 1, SHAPE(N), (enum pldk_dtype)-1, to));
	ABUSE(-EINVAL, pldk_view_local(&view, NULL));
	ABUSE(-EINVAL, pldk_view_expect(&view, 1, NULL, PLDK_INT32));
	ABUSE(-EINVAL, pldk_view_expect(&view, 0, nine, PLDK_INT32));
	ABUSE(-EINVAL, pldk_view_expect(&view, 9, nine, PLDK_INT32));
	ABUSE(-EDOM, pldk_view_expect(&view, 2, nine, PLDK_INT32));
	ABUSE(-EINVAL, pldk_view_expect(&view, 1, SHAPE(5), PLDK_INT32));
	ABUSE(-EINVAL, pldk_view_expect(&view, 1, SHAPE(INT64_MIN), PLDK_INT32));
	ABUSE(-EDOM, pldk_view_expect(&view, 1, SHAPE(N), PLDK_FP32));
	ABUSE(-EINVAL, pldk_view_expect(&view, 1, SHAPE(N), (enum pldk_dtype)-1));

	/* A view is a plain value: it may have been edited. */
	bad = view;
	bad.ndim = 0;
	abuse_view(_metadata, &bad, -EDOM);
	bad.ndim = 9;
	abuse_view(_metadata, &bad, -EDOM);
	bad = view;
	bad.window = NULL;
	abuse_view(_metadata, &bad, -EDOM);
	bad = view;
	bad.window = (struct pldk_window *)world;
	abuse_view(_metadata, &bad, -EINVAL);
	bad = view;
	bad.generation++;
	abuse_view(_metadata, &bad, -ESTALE);
	bad = view;
	bad.offset = UINT64_MAX - 3;
	ABUSE(-EINVAL, pldk_view_local(&bad, &out.tensor));
	bad = view;
	bad.shape[0] = INT64_MAX;
	ABUSE(-EOVERFLOW, pldk_view_local(&bad, &out.tensor));
	bad.shape[0] = 17;
	ABUSE(-EINVAL, pldk_view_local(&bad, &out.tensor));
	bad.shape[0] = -1;
	ABUSE(-EINVAL, pldk_view_local(&bad, &out.tensor));
	bad = view;
	bad.dtype = 77;
	ABUSE(-EINVAL, pldk_view_local(&bad, &out.tensor));
	works(_metadata, world);
}

TEST(views_that_do_not_fit_are_told)
{
	run_ranks(2, bad_view_arguments, NULL);
}

/*
 * Worlds
 */

TEST(worlds_that_cannot_be_are_told)
{
	struct pldk_world_options init = PLDK_WORLD_OPTIONS_INIT, o;
	static const size_t sizes[] = { 0, 1, sizeof(init) - 1, 4097, (size_t)-1 };
	uint8_t no_token[16] = { 0 };
	_Alignas(16) char room[4096];
	int world, file = open("/dev/null", O_RDWR | O_CLOEXEC);
	int gone = -1;

	ABUSE(-EINVAL, pldk_init(NULL));
	for (int i = 0; i < 5; i++) {
		int nranks = ((int[]){ 0, -1, PLDK_MAX_RANKS + 1, INT_MAX, INT_MIN })[i];

		ABUSE(-EINVAL, pldk_world_create(nranks, NULL, &out.fd));
	}
	ABUSE(-EINVAL, pldk_world_create(1, NULL, NULL));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		ABUSE(-EINVAL, pldk_world_create(1, bad_options(room, sizes[i], &init, sizeof(init), 0), &out.fd));
	ABUSE(-E2BIG, pldk_world_create(1, bad_options(room, sizeof(init) + 8, &init, sizeof(init), 1), &out.fd));
	o = init;
	o.provider = "no such";
	ABUSE(-EINVAL, pldk_world_create(1, &o, &out.fd));
	o.provider = "";
	ABUSE(-EINVAL, pldk_world_create(1, &o, &out.fd));
	o = init;
	o.device_ids = (int[]){ 3, 3 };
	ABUSE(-EINVAL, pldk_world_create(2, &o, &out.fd));
	o.device_ids = (int[]){ 0, -1 };
	ABUSE(-EINVAL, pldk_world_create(2, &o, &out.fd));
	o = init;
	o.cpus = (int[]){ 0, -1 };
	ABUSE(-EINVAL, pldk_world_create(2, &o, &out.fd));
	for (int i = 0; i < 4; i++) {
		o = init;
		o.far = ((int[]){ 2, -2, INT_MAX, INT_MIN })[i];
		ABUSE(-EINVAL, pldk_world_create(2, &o, &out.fd));
	}
	ASSERT_OK(pldk_world_create(2, NULL, &world));
	for (int i = 0; i < 6; i++) {
		int fd = ((int[]){ -1, INT_MIN, INT_MAX, gone = dup(file), file, 0 })[i];

		close(gone);
		ABUSE(-EBADF, pldk_world_join(fd, 0, T, &out.domain));
		ABUSE(-EBADF, pldk_world_token(fd, out.token));
		ABUSE(-EBADF, pldk_world_mark_dead(fd, 0, 0));
		ABUSE(-EBADF, pldk_world_poison(fd, 1));
	}
	for (int i = 0; i < 4; i++) {
		int bad = ((int[]){ -1, 2, INT_MAX, INT_MIN })[i];

		ABUSE(-EINVAL, pldk_world_join(world, bad, T, &out.domain));
		ABUSE(-EINVAL, pldk_world_mark_dead(world, bad, 0));
		ABUSE(-EINVAL, pldk_world_poison(world, bad == 2 ? 0x10000 : bad));
	}
	ABUSE(-EINVAL, pldk_world_join(world, 0, T, NULL));
	ABUSE(-EINVAL, pldk_world_mark_dead(world, 0, 0x137f)); /* stopped */
	ABUSE(-EINVAL, pldk_world_mark_dead(world, 0, 0xffff)); /* continued */
	if (pt_is_dev())
		ABUSE(-EINVAL, pldk_world_token(world, NULL));
	else
		ABUSE(-EOPNOTSUPP, pldk_world_token(world, out.token));
	ABUSE(-ENOENT, pldk_world_join_token(no_token, 0, T, &out.domain));
	ABUSE(-EINVAL, pldk_world_join_token(NULL, 0, T, &out.domain));
	ABUSE(-EINVAL, pldk_world_join_token(no_token, -1, T, &out.domain));
	ABUSE(-EINVAL, pldk_world_join_token(no_token, 0, T, NULL));
	close(world);
	close(file);
}

/* What cannot fail takes anything. */
TEST(questions_take_anything)
{
	for (int i = 0; i < 6; i++) {
		int bad = ((int[]){ 0, -1, 1000, 35, INT_MAX, INT_MIN })[i];

		EXPECT_NE(NULL, pldk_strerror(bad));
		EXPECT_NE(NULL, pldk_event_name((uint32_t)bad));
		EXPECT_NE(NULL, pldk_dtype_name((enum pldk_dtype)bad));
		EXPECT_EQ(0, pldk_dtype_size((enum pldk_dtype)bad));
		EXPECT_EQ(0, pldk_set_timeout(bad));
		pldk_set_log(NULL, NULL, (enum pldk_log_level)bad);
	}
	EXPECT_EQ(0, pldk_set_timeout(PLDK_TIMEOUT_DEFAULT));
	ABUSE(-EINVAL, pldk_coll_signal_shape((enum pldk_event_op)-1, PLDK_MODE_AUTO, 2, (int64_t *)out.data));
	ABUSE(-EINVAL, pldk_coll_supported((enum pldk_event_op)-1, PLDK_MODE_AUTO, PLDK_FP32, PLDK_SUM));
	EXPECT_NE(NULL, pldk_version());
	EXPECT_NE(NULL, pldk_last_error());
	EXPECT_EQ(0, pldk_finalize(NULL));
	EXPECT_EQ(0, pldk_window_destroy(NULL));
	pldk_handle_free(NULL);
}

TEST_HARNESS_MAIN
