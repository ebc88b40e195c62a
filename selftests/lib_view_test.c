// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: views, symbolic dimensions and tensors: what does not fit is refused with both sides of the mismatch,
 * and a refusal writes and binds nothing.
 */
#include "pldk_test.h"

RANK(view)
{
	struct pldk_window *window = pt_window(_metadata, world, 1000), *signal = pt_signal(_metadata, world, 2),
			   *small;
	struct pldk_dtensor out, clean;
	struct pldk_tensor tensor;
	int64_t nr = pldk_dim(world, "NR"), rows = pldk_dim(world, "rows"), huge = INT64_MAX / 2;

	small = pt_window(_metadata, world, 4);
	memset(&out, 0xa5, sizeof(out));
	clean = out;
	EXPECT_RET(-EINVAL, pldk_view(small, 0, 2, SHAPE(4, 256), PLDK_FP32, &out));
	EXPECT_SAYS("4 bytes", "[4,256]|[4, 256]", "FP32", "bytes");
	EXPECT_RET(-EINVAL, pldk_view(window, 0, 1, SHAPE(251), PLDK_FP32, &out));
	EXPECT_RET(-EINVAL, pldk_view(window, 4, 1, SHAPE(250), PLDK_FP32, &out));
	EXPECT_RET(-EINVAL, pldk_view(window, 2, 1, SHAPE(1), PLDK_FP32, &out));
	EXPECT_SAYS("2", "4");
	EXPECT_RET(-EINVAL, pldk_view(window, 4, 1, SHAPE(1), PLDK_FP64, &out));
	EXPECT_RET(-EINVAL, pldk_view(window, SIZE_MAX - 3, 1, SHAPE(1), PLDK_FP32, &out));
	EXPECT_RET(-EINVAL, pldk_view(window, 0, 0, SHAPE(1), PLDK_FP32, &out));
	EXPECT_RET(-EINVAL, pldk_view(window, 0, 9, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), PLDK_FP32, &out));
	EXPECT_RET(-EINVAL, pldk_view(window, 0, 2, SHAPE(3, 0), PLDK_FP32, &out));
	EXPECT_RET(-EINVAL, pldk_view(window, 0, 2, SHAPE(-3, 1), PLDK_FP32, &out));
	EXPECT_RET(-EINVAL, pldk_view(window, 0, 1, SHAPE(3), 0, &out));
	EXPECT_RET(-EINVAL, pldk_view(window, 0, 1, SHAPE(3), 10, &out));
	EXPECT_RET(-EINVAL, pldk_view(window, 0, 1, NULL, PLDK_FP32, &out));
	EXPECT_RET(-EINVAL, pldk_view(window, 0, 1, SHAPE(3), PLDK_FP32, NULL));
	EXPECT_RET(-EINVAL, pldk_view(NULL, 0, 1, SHAPE(3), PLDK_FP32, &out));
	EXPECT_RET(-EDOM, pldk_view(signal, 0, 1, SHAPE(3), PLDK_INT32, &out));
	EXPECT_RET(-EOVERFLOW, pldk_view(window, 0, 2, SHAPE(huge, 4), PLDK_FP32, &out));
	EXPECT_RET(-ENOENT, pldk_view(window, 0, 2, SHAPE(rows, 2), PLDK_FP32, &out));
	EXPECT_SAYS("rows");
	EXPECT_EQ(0, memcmp(&clean, &out, sizeof(out)));

	EXPECT_OK(pldk_view(window, 996, 1, SHAPE(1), PLDK_FP32, &out));
	EXPECT_OK(pldk_view(window, 16, 3, SHAPE(nr, 2, 5), PLDK_INT16, &out));
	EXPECT_EQ(3, out.ndim);
	EXPECT_EQ(size, out.shape[0]);
	EXPECT_EQ(16, out.offset);
	EXPECT_EQ(window, out.window);
	EXPECT_OK(pldk_view_local(&out, &tensor));
	EXPECT_EQ((char *)pldk_window_base(window) + 16, tensor.data);
	EXPECT_EQ(PLDK_INT16, tensor.dtype);
	EXPECT_EQ(size, tensor.shape[0]);

	EXPECT_OK(pldk_view_expect(&out, 3, SHAPE(nr, 2, 5), PLDK_INT16));
	EXPECT_OK(pldk_view_expect(&out, 3, SHAPE(size, 2, 5), 0));
	EXPECT_RET(-EINVAL, pldk_view_expect(&out, 3, SHAPE(size, 3, 5), 0));
	EXPECT_SAYS("1", "3", "2");
	EXPECT_RET(-EDOM, pldk_view_expect(&out, 2, SHAPE(size, 2), 0));
	EXPECT_RET(-EDOM, pldk_view_expect(&out, 3, SHAPE(size, 2, 5), PLDK_FP16));
	EXPECT_SAYS("INT16", "FP16");
	/* A mismatch binds nothing; a match binds the free symbol. */
	EXPECT_RET(-EINVAL, pldk_view_expect(&out, 3, SHAPE(size, rows, 6), 0));
	EXPECT_RET(-ENOENT, pldk_dim_value(world, "rows"));
	EXPECT_OK(pldk_view_expect(&out, 3, SHAPE(size, rows, 5), 0));
	EXPECT_RET(2, pldk_dim_value(world, "rows"));
	EXPECT_RET(-EINVAL, pldk_view_expect(&out, 3, SHAPE(nr, 2, nr), 0));
	EXPECT_SAYS("NR", "2", "5");
	(void)rank;
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(views_are_checked_against_the_window)
{
	run_ranks(2, view, NULL);
}

RANK(symbols)
{
	char name[40];
	int n = 0;

	(void)rank;
	EXPECT_RET(size, pldk_dim_value(world, "NR"));
	EXPECT_LE(pldk_dim(world, "NR"), PLDK_DIM_FIRST);
	EXPECT_EQ(pldk_dim(world, "hidden"), pldk_dim(world, "hidden"));
	EXPECT_NE(pldk_dim(world, "hidden"), pldk_dim(world, "NR"));
	EXPECT_EQ(0, pldk_dim(world, ""));
	EXPECT_EQ(0, pldk_dim(world, NULL));
	EXPECT_EQ(0, pldk_dim(NULL, "x"));
	EXPECT_EQ(0, pldk_dim(world, "a_name_of_more_than_thirty_one_bytes"));
	EXPECT_RET(-ENOENT, pldk_dim_value(world, "hidden"));
	EXPECT_RET(-EINVAL, pldk_dim_bind(world, "hidden", 0));
	EXPECT_RET(-EINVAL, pldk_dim_bind(world, "hidden", -4));
	EXPECT_OK(pldk_dim_bind(world, "hidden", 256));
	EXPECT_OK(pldk_dim_bind(world, "hidden", 256));
	EXPECT_RET(-EEXIST, pldk_dim_bind(world, "hidden", 512));
	EXPECT_SAYS("hidden", "256", "512");
	EXPECT_RET(-EEXIST, pldk_dim_bind(world, "NR", size + 1));
	EXPECT_RET(256, pldk_dim_value(world, "hidden"));
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "dim%d", i);
		n += pldk_dim(world, name) != 0;
	}
	EXPECT_EQ(62, n); /* and NR and hidden are 64 */
	EXPECT_SAYS("64");
}

TEST(symbols_are_named_bound_once_and_limited)
{
	run_ranks(2, symbols, NULL);
}

RANK(describe)
{
	struct pldk_tensor tensor, clean;
	struct pldk_dtensor dt;
	struct pldk_window *window = pt_window(_metadata, world, 64);
	float data[6];

	(void)rank;
	(void)size;
	memset(&tensor, 0xa5, sizeof(tensor));
	clean = tensor;
	EXPECT_RET(-EINVAL, pldk_tensor_of(NULL, data, PLDK_FP32, 1, SHAPE(6)));
	EXPECT_RET(-EINVAL, pldk_tensor_of(&tensor, NULL, PLDK_FP32, 1, SHAPE(6)));
	EXPECT_RET(-EINVAL, pldk_tensor_of(&tensor, data, 0, 1, SHAPE(6)));
	EXPECT_RET(-EINVAL, pldk_tensor_of(&tensor, data, PLDK_FP32, 0, SHAPE(6)));
	EXPECT_RET(-EINVAL, pldk_tensor_of(&tensor, data, PLDK_FP32, 9, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1)));
	EXPECT_RET(-EINVAL, pldk_tensor_of(&tensor, data, PLDK_FP32, 2, SHAPE(2, -3)));
	EXPECT_RET(-EINVAL, pldk_tensor_of(&tensor, data, PLDK_FP32, 2, NULL));
	EXPECT_RET(-EOVERFLOW, pldk_tensor_of(&tensor, data, PLDK_FP32, 2, SHAPE(INT64_MAX, 2)));
	EXPECT_EQ(0, memcmp(&clean, &tensor, sizeof(tensor)));
	EXPECT_OK(pldk_tensor_of(&tensor, NULL, PLDK_FP32, 2, SHAPE(0, 3)));
	EXPECT_OK(pldk_tensor_of(&tensor, data, PLDK_FP32, 2, SHAPE(2, 3)));
	EXPECT_EQ(3, tensor.shape[1]);
	/* A view passed as a tensor by a cast, and the other way round. */
	dt = pt_view(_metadata, window, PLDK_FP32, 6);
	EXPECT_RET(-EDOM, pldk_put(&dt, 0, (const struct pldk_tensor *)(const void *)&dt, NULL, NULL));
	ASSERT_OK(pldk_tensor_of(&tensor, data, PLDK_FP32, 1, SHAPE(6)));
	EXPECT_RET(-EDOM, pldk_put((const struct pldk_dtensor *)(const void *)&tensor, 0, &tensor, NULL, NULL));
	EXPECT_RET(-EDOM, pldk_view_expect((const struct pldk_dtensor *)(const void *)&tensor, 1, SHAPE(6), 0));
}

TEST(tensors_are_checked_and_a_view_is_no_tensor)
{
	run_ranks(1, describe, NULL);
}

TEST_HARNESS_MAIN
