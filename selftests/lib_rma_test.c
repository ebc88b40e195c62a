// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: one-sided transfers. Every byte that should move moves, no other does, and every mistake is an error of
 * its own before a byte moves.
 */
#include "pldk_test.h"
#include "pldk_test_dtypes.h"

/* Row-major copy of a block, the slow way: what a transfer must have done. */
struct block {
	int ndim;
	int64_t dst_shape[4], src_shape[4], dst_off[4], src_off[4], shape[4];
};

static void copy_block(const struct block *b, int32_t *dst, const int32_t *src)
{
	int64_t total = 1, at[4];

	for (int d = 0; d < b->ndim; d++)
		total *= b->shape[d];
	for (int64_t n = 0; n < total; n++) {
		int64_t rest = n, to = 0, from = 0;

		for (int d = b->ndim - 1; d >= 0; d--) {
			at[d] = rest % b->shape[d];
			rest /= b->shape[d];
		}
		for (int d = 0; d < b->ndim; d++) {
			to = to * b->dst_shape[d] + b->dst_off[d] + at[d];
			from = from * b->src_shape[d] + b->src_off[d] + at[d];
		}
		dst[to] = src[from];
	}
}

static int64_t count_of(int ndim, const int64_t *shape)
{
	int64_t n = 1;

	while (ndim--)
		n *= shape[ndim];
	return n;
}

static const struct block blocks[] = {
	{ 1, { 64 }, { 64 }, { 0 }, { 0 }, { 64 } },
	{ 1, { 100 }, { 40 }, { 33 }, { 7 }, { 31 } },
	{ 2, { 7, 11 }, { 5, 13 }, { 2, 3 }, { 1, 4 }, { 4, 8 } },
	{ 2, { 6, 9 }, { 6, 9 }, { 0, 0 }, { 0, 0 }, { 6, 9 } },
	{ 2, { 30, 1 }, { 40, 3 }, { 5, 0 }, { 9, 2 }, { 25, 1 } },
	{ 3, { 4, 5, 6 }, { 3, 7, 8 }, { 1, 0, 2 }, { 0, 3, 1 }, { 3, 4, 4 } },
	{ 3, { 2, 5, 6 }, { 2, 5, 6 }, { 0, 1, 0 }, { 0, 0, 0 }, { 2, 3, 6 } },
	{ 4, { 3, 3, 4, 5 }, { 2, 4, 4, 6 }, { 1, 0, 1, 2 }, { 0, 1, 0, 3 }, { 2, 3, 3, 3 } },
};

static const struct {
	int64_t rows, cols;
	int pipeline;
} chunks[] = { { 0, 0, 0 }, { 1, 1, 0 }, { 2, 3, 0 }, { 2, 3, 1 }, { 1000, 1000, 1 }, { 0, 5, 0 }, { 3, 0, 0 } };

#define CANARY 0x7ea57ea5

/* Put every block with every chunking to the right, get it back from there, compare with the slow copy. */
RANK(move_blocks)
{
	struct pldk_window *window = pt_window(_metadata, world, 4096);
	int peer = pldk_right(world);
	int32_t *base = pldk_window_base(window);

	for (size_t b = 0; b < ARRAY_SIZE(blocks); b++) {
		const struct block *block = &blocks[b];
		int64_t n_dst = count_of(block->ndim, block->dst_shape),
			n_src = count_of(block->ndim, block->src_shape);
		struct pldk_region region = { block->dst_off, block->src_off, block->shape };
		struct pldk_region back = { block->src_off, block->dst_off, block->shape };
		int32_t *src = calloc((size_t)n_src, 4), *expected = calloc((size_t)n_dst + 8, 4);
		int32_t *got = calloc((size_t)n_src, 4), *expected_got = calloc((size_t)n_src, 4);
		struct pldk_tensor from, to;
		struct pldk_dtensor view;

		ASSERT_OK(pldk_view(window, 16, block->ndim, block->dst_shape, PLDK_INT32, &view));
		ASSERT_OK(pldk_tensor_of(&from, src, PLDK_INT32, block->ndim, block->src_shape));
		ASSERT_OK(pldk_tensor_of(&to, got, PLDK_INT32, block->ndim, block->src_shape));
		for (size_t c = 0; c < ARRAY_SIZE(chunks); c++) {
			struct pldk_rma_options options = PLDK_RMA_OPTIONS_INIT;
			int left = pldk_left(world);

			options.chunk_rows = chunks[c].rows;
			options.chunk_cols = chunks[c].cols;
			options.pipeline = chunks[c].pipeline;
			for (int64_t i = 0; i < 1024; i++)
				base[i] = CANARY;
			ASSERT_OK(pldk_barrier(world, PT_LONG));
			for (int64_t i = 0; i < n_src; i++)
				src[i] = peer << 24 | (int32_t)c << 16 | (int32_t)i;
			ASSERT_OK(pldk_put(&view, peer, &from, &region, &options));
			ASSERT_OK(pldk_barrier(world, PT_LONG));
			/* What the left neighbour put here. */
			for (int64_t i = 0; i < n_src; i++)
				src[i] = rank << 24 | (int32_t)c << 16 | (int32_t)i;
			for (int64_t i = 0; i < n_dst + 8; i++)
				expected[i] = CANARY;
			copy_block(block, expected + 4, src);
			ASSERT_EQ(0, memcmp(expected, base, (size_t)(n_dst + 8) * 4))
			TH_LOG("put: block %zu, chunks %zu, from rank %d", b, c, left);

			for (int64_t i = 0; i < n_src; i++)
				got[i] = expected_got[i] = CANARY;
			for (int64_t i = 0; i < n_src; i++)
				src[i] = peer << 24 | (int32_t)c << 16 | (int32_t)i;
			for (int64_t i = 0; i < n_dst + 8; i++)
				expected[i] = CANARY;
			copy_block(block, expected + 4, src);
			copy_block(&(struct block){ .ndim = block->ndim,
						    .dst_shape = { block->src_shape[0], block->src_shape[1],
								   block->src_shape[2], block->src_shape[3] },
						    .src_shape = { block->dst_shape[0], block->dst_shape[1],
								   block->dst_shape[2], block->dst_shape[3] },
						    .dst_off = { block->src_off[0], block->src_off[1],
								 block->src_off[2], block->src_off[3] },
						    .src_off = { block->dst_off[0], block->dst_off[1],
								 block->dst_off[2], block->dst_off[3] },
						    .shape = { block->shape[0], block->shape[1], block->shape[2],
							       block->shape[3] } },
				   expected_got, expected + 4);
			ASSERT_OK(pldk_get(&to, &view, peer, &back, &options));
			ASSERT_EQ(0, memcmp(expected_got, got, (size_t)n_src * 4))
			TH_LOG("get: block %zu, chunks %zu", b, c);
			ASSERT_OK(pldk_barrier(world, PT_LONG));
		}
		free(src);
		free(got);
		free(expected);
		free(expected_got);
	}
	(void)size;
}

TEST(blocks_of_one_to_four_dimensions_land_and_nothing_else_changes)
{
	run_ranks(1, move_blocks, NULL);
	run_ranks(3, move_blocks, NULL);
}

/* G6: plain transfers may be misaligned: 1..129 bytes at each offset of a line */
RANK(move_odd_sizes)
{
	struct pldk_window *window = pt_window(_metadata, world, 512);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_UINT8, 512);
	unsigned char mine[256], *base = pldk_window_base(window), got[256];
	struct pldk_tensor from = pt_tensor(_metadata, mine, PLDK_UINT8, 256),
			   to = pt_tensor(_metadata, got, PLDK_UINT8, 256);
	int peer = pldk_right(world), step = pt_is_far() || pt_scale() < 100 ? 7 : 1;

	for (int i = 0; i < 256; i++)
		mine[i] = (unsigned char)(i * 7 + 1);
	for (int offset = 0; offset < 64; offset += step) {
		for (int n = 1; n <= 129; n += step) {
			struct pldk_region region = { SHAPE(64 + offset), SHAPE(offset / 2), SHAPE(n) };
			struct pldk_region back = { SHAPE(offset / 2), SHAPE(64 + offset), SHAPE(n) };

			memset(base, 0xee, 512);
			ASSERT_OK(pldk_barrier(world, PT_LONG));
			ASSERT_OK(pldk_put(&view, peer, &from, &region, NULL));
			ASSERT_OK(pldk_barrier(world, PT_LONG));
			ASSERT_EQ(0, memcmp(base + 64 + offset, mine + offset / 2, (size_t)n))
			TH_LOG("%d bytes at %d", n, offset);
			for (int i = 0; i < 512; i++)
				if (i < 64 + offset || i >= 64 + offset + n) {
					ASSERT_EQ(0xee, base[i])
					TH_LOG("%d bytes at %d: byte %d", n, offset, i - 64 - offset);
				}
			memset(got, 0x11, sizeof(got));
			ASSERT_OK(pldk_get(&to, &view, peer, &back, NULL));
			ASSERT_EQ(0, memcmp(got + offset / 2, mine + offset / 2, (size_t)n));
			ASSERT_EQ(0x11, got[offset / 2 + n]);
			ASSERT_OK(pldk_barrier(world, PT_LONG));
		}
	}
	(void)rank;
	(void)size;
}

TEST(every_size_at_every_offset_between_canaries)
{
	run_ranks(2, move_odd_sizes, NULL);
}

/*
 * Mistakes
 */

struct refused {
	int err;
	const char *words[3];
	int64_t dst_off[2], src_off[2], shape[2];
};

RANK(refuse_transfers)
{
	struct pldk_window *window = pt_window(_metadata, world, 4096), *signal = pt_signal(_metadata, world, 2);
	int32_t mine[40], clean[40];
	float other[40];
	struct pldk_dtensor view, flat = pt_view(_metadata, window, PLDK_INT32, 40);
	struct pldk_tensor tensor, line = pt_tensor(_metadata, mine, PLDK_INT32, 40), floats;
	struct pldk_rma_options options = PLDK_RMA_OPTIONS_INIT;
	struct pldk_handle *handle = PT_POISON_PTR;
	static const struct refused table[] = {
		{ -EINVAL, { "dimension 0|dim 0", "3", "5" }, { 3, 0 }, { 0, 0 }, { 3, 8 } },
		{ -EINVAL, { "dimension 1|dim 1", "1", "8" }, { 0, 1 }, { 0, 0 }, { 5, 8 } },
		{ -EINVAL, { "dimension 0|dim 0", "-1" }, { -1, 0 }, { 0, 0 }, { 2, 2 } },
		{ -EINVAL, { "dimension 1|dim 1", "-2" }, { 0, 0 }, { 0, -2 }, { 2, 2 } },
		{ -EINVAL, { "dimension 1|dim 1", "0" }, { 0, 0 }, { 0, 0 }, { 2, 0 } },
		{ -EINVAL, { "dimension 0|dim 0", "-3" }, { 0, 0 }, { 0, 0 }, { -3, 2 } },
		{ -EINVAL, { "dimension 0|dim 0" }, { INT64_MAX, 0 }, { 0, 0 }, { 2, 2 } },
		{ -EINVAL, { "dimension 1|dim 1" }, { 0, 0 }, { 0, INT64_MAX - 1 }, { 2, 2 } },
		{ -EINVAL, { "dimension 0|dim 0" }, { 0, 0 }, { 1, 0 }, { INT64_MAX, 2 } },
	};

	for (int i = 0; i < 40; i++)
		mine[i] = clean[i] = 100 + i;
	ASSERT_OK(pldk_view(window, 0, 2, SHAPE(5, 8), PLDK_INT32, &view));
	ASSERT_OK(pldk_tensor_of(&tensor, mine, PLDK_INT32, 2, SHAPE(5, 8)));
	ASSERT_OK(pldk_tensor_of(&floats, other, PLDK_FP32, 2, SHAPE(5, 8)));

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct refused *row = &table[i];
		struct pldk_region region = { row->dst_off, row->src_off, row->shape };
		const char *word;

		EXPECT_RET(row->err, pldk_put(&view, 1, &tensor, &region, NULL));
		word = pt_lacks(pldk_last_error(),
				(const char *const[]){ row->words[0], row->words[1], row->words[2], NULL });
		EXPECT_EQ(NULL, word) TH_LOG("row %zu: \"%s\" lacks \"%s\"", i, pldk_last_error(), word);
		EXPECT_RET(row->err, pldk_get(&tensor, &view, 1, &region, NULL));
		EXPECT_RET(row->err, pldk_put_nb(&view, 1, &tensor, &region, NULL, &handle));
		EXPECT_RET(row->err, pldk_get_nb(&tensor, &view, 1, &region, NULL, &handle));
		EXPECT_RET(row->err, pldk_put_notify(&view, 1, &tensor, &region, NULL,
						     &(struct pldk_signal_to){ signal, 0, 1, PLDK_NOTIFY_ADD }));
	}
	EXPECT_RET(-EINVAL, pldk_put(&view, -1, &tensor, NULL, NULL));
	EXPECT_SAYS("-1");
	EXPECT_RET(-EINVAL, pldk_put(&view, size, &tensor, NULL, NULL));
	EXPECT_SAYS("2");
	EXPECT_RET(-EINVAL, pldk_get(&tensor, &view, size, NULL, NULL));
	EXPECT_RET(-EINVAL, pldk_put(NULL, 0, &tensor, NULL, NULL));
	EXPECT_RET(-EINVAL, pldk_put(&view, 0, NULL, NULL, NULL));
	EXPECT_RET(-EINVAL, pldk_get(NULL, &view, 0, NULL, NULL));
	EXPECT_RET(-EDOM, pldk_put(&view, 1, &floats, NULL, NULL));
	EXPECT_SAYS("INT32", "FP32");
	EXPECT_RET(-EDOM, pldk_get(&floats, &view, 1, NULL, NULL));
	/* Dimensions and whole shapes. */
	EXPECT_RET(-EDOM, pldk_put(&view, 1, &line, NULL, NULL));
	EXPECT_SAYS("1", "2");
	ASSERT_OK(pldk_tensor_of(&tensor, mine, PLDK_INT32, 2, SHAPE(8, 5)));
	EXPECT_RET(-EINVAL, pldk_put(&view, 1, &tensor, NULL, NULL));
	EXPECT_SAYS("dimension 0|dim 0", "8", "5");
	ASSERT_OK(pldk_tensor_of(&tensor, mine, PLDK_INT32, 2, SHAPE(5, 8)));
	/* Options. */
	options.atomic = 2;
	EXPECT_RET(-EINVAL, pldk_put(&view, 1, &tensor, NULL, &options));
	options.atomic = PLDK_ATOMIC_NONE;
	options.chunk_rows = -1;
	EXPECT_RET(-EINVAL, pldk_put(&view, 1, &tensor, NULL, &options));
	EXPECT_SAYS("-1");
	options.chunk_rows = 2;
	options.pipeline = 1;
	EXPECT_RET(-EINVAL, pldk_put(&view, 1, &tensor, NULL, &options));
	options = (struct pldk_rma_options)PLDK_RMA_OPTIONS_INIT;
	options.atomic = PLDK_ATOMIC_ADD;
	EXPECT_RET(-EINVAL, pldk_get(&tensor, &view, 1, NULL, &options));
	/* The notify of put_notify is checked before a byte moves. */
	EXPECT_RET(-EINVAL, pldk_put_notify(&view, 1, &tensor, NULL, NULL,
					    &(struct pldk_signal_to){ signal, 2, 1, PLDK_NOTIFY_ADD }));
	EXPECT_SAYS("cell", "2");
	EXPECT_RET(-EINVAL, pldk_put_notify(&view, 1, &tensor, NULL, NULL,
					    &(struct pldk_signal_to){ signal, 0, 1, 9 }));
	EXPECT_RET(-EDOM, pldk_put_notify(&view, 1, &tensor, NULL, NULL,
					  &(struct pldk_signal_to){ window, 0, 1, PLDK_NOTIFY_ADD }));
	EXPECT_RET(-EINVAL, pldk_put_notify(&view, 1, &tensor, NULL, NULL, NULL));
	EXPECT_RET(-EINVAL, pldk_put_nb(&view, 1, &tensor, NULL, NULL, NULL));
	EXPECT_EQ(PT_POISON_PTR, handle);
	(void)flat;
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int i = 0; i < 40; i++) {
		EXPECT_EQ(0, ((int32_t *)pldk_window_base(window))[i]);
	}
	EXPECT_EQ(0, memcmp(mine, clean, sizeof(mine)));
	EXPECT_RET(1, pldk_test(signal, 0, PLDK_EQ, 0));
	(void)rank;
}

TEST(wrong_transfers_are_named_and_move_nothing)
{
	run_ranks(2, refuse_transfers, NULL);
}

/*
 * remote_load and remote_store
 */

RANK(load_ragged)
{
	struct pldk_window *window = pt_window(_metadata, world, 4096);
	int32_t block[12], *base = pldk_window_base(window);
	struct pldk_dtensor view;
	struct pldk_tensor tensor;
	int peer = pldk_right(world);

	ASSERT_OK(pldk_view(window, 0, 2, SHAPE(5, 7), PLDK_INT32, &view));
	ASSERT_OK(pldk_tensor_of(&tensor, block, PLDK_INT32, 2, SHAPE(3, 4)));
	for (int i = 0; i < 35; i++)
		base[i] = rank << 24 | i;
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int variant = 0; variant < 4; variant++) {
		static const int64_t offsets[][2] = { { 1, 2 }, { 3, 4 }, { 3, 4 }, { 4, 6 } };
		static const int64_t valids[][2] = { { 3, 4 }, { 2, 3 }, { 1, 0 }, { 1, 1 } };
		const int64_t *at = offsets[variant], *valid = valids[variant];

		for (int i = 0; i < 12; i++)
			block[i] = CANARY;
		ASSERT_OK(pldk_remote_load(&tensor, &view, peer, at, SHAPE(3, 4), variant ? valid : NULL));
		for (int y = 0; y < 3; y++)
			for (int x = 0; x < 4; x++) {
				int expected = y < valid[0] && x < valid[1] ?
						       peer << 24 | (int)((at[0] + y) * 7 + at[1] + x) :
						       CANARY;

				EXPECT_EQ(expected, block[y * 4 + x]) TH_LOG("variant %d at %d,%d", variant, y, x);
			}
	}
	for (int i = 0; i < 12; i++)
		block[i] = CANARY;
	EXPECT_RET(-EINVAL, pldk_remote_load(&tensor, &view, peer, SHAPE(3, 4), SHAPE(3, 4), NULL));
	EXPECT_SAYS("valid_shape");
	EXPECT_RET(-EINVAL, pldk_remote_load(&tensor, &view, peer, SHAPE(3, 4), SHAPE(3, 4), SHAPE(3, 3)));
	EXPECT_RET(-EINVAL, pldk_remote_load(&tensor, &view, peer, SHAPE(0, 0), SHAPE(3, 4), SHAPE(3, 5)));
	EXPECT_RET(-EINVAL, pldk_remote_load(&tensor, &view, peer, SHAPE(0, 0), SHAPE(3, 4), SHAPE(-1, 4)));
	EXPECT_RET(-EINVAL, pldk_remote_load(&tensor, &view, peer, SHAPE(0, 0), SHAPE(3, 3), NULL));
	EXPECT_RET(-EINVAL, pldk_remote_load(&tensor, &view, peer, SHAPE(-1, 0), SHAPE(3, 4), NULL));
	EXPECT_RET(-EINVAL, pldk_remote_load(&tensor, &view, peer, NULL, SHAPE(3, 4), NULL));
	EXPECT_RET(-EINVAL, pldk_remote_load(&tensor, &view, peer, SHAPE(0, 0), NULL, NULL));
	EXPECT_RET(-EINVAL, pldk_remote_load(&tensor, &view, size, SHAPE(0, 0), SHAPE(3, 4), NULL));
	for (int i = 0; i < 12; i++) {
		EXPECT_EQ(CANARY, block[i]);
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(remote_load_reads_the_valid_part_and_keeps_the_rest)
{
	run_ranks(2, load_ragged, NULL);
}

RANK(store_blocks)
{
	struct pldk_window *window = pt_window(_metadata, world, 4096);
	int32_t block[6], *base = pldk_window_base(window);
	struct pldk_dtensor view;
	struct pldk_tensor tensor, line, cube;
	int peer = pldk_right(world), left = pldk_left(world);

	ASSERT_OK(pldk_view(window, 0, 3, SHAPE(3, 4, 5), PLDK_INT32, &view));
	ASSERT_OK(pldk_tensor_of(&tensor, block, PLDK_INT32, 2, SHAPE(2, 3)));
	ASSERT_OK(pldk_tensor_of(&line, block, PLDK_INT32, 1, SHAPE(6)));
	ASSERT_OK(pldk_tensor_of(&cube, block, PLDK_INT32, 4, SHAPE(1, 1, 2, 3)));
	for (int i = 0; i < 6; i++)
		block[i] = (rank + 1) * 100 + i;
	ASSERT_OK(pldk_remote_store(&tensor, &view, peer, SHAPE(1, 2, 2), PLDK_ATOMIC_NONE));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int z = 0; z < 3; z++)
		for (int y = 0; y < 4; y++)
			for (int x = 0; x < 5; x++) {
				bool in = z == 1 && y >= 2 && x >= 2;

				EXPECT_EQ(in ? (left + 1) * 100 + (y - 2) * 3 + x - 2 : 0, base[z * 20 + y * 5 + x]);
			}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	for (int r = 0; r < size; r++)
		ASSERT_OK(pldk_remote_store(&tensor, &view, r, SHAPE(2, 0, 0), PLDK_ATOMIC_ADD));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_EQ(size * (size + 1) / 2 * 100, base[40]);

	EXPECT_RET(-EINVAL, pldk_remote_store(&tensor, &view, peer, SHAPE(1, 3, 2), PLDK_ATOMIC_NONE));
	EXPECT_SAYS("dimension 1|dim 1", "3", "2", "4");
	EXPECT_RET(-EINVAL, pldk_remote_store(&tensor, &view, peer, SHAPE(3, 0, 0), PLDK_ATOMIC_NONE));
	EXPECT_RET(-EINVAL, pldk_remote_store(&tensor, &view, peer, SHAPE(0, -1, 0), PLDK_ATOMIC_NONE));
	EXPECT_RET(-EINVAL, pldk_remote_store(&line, &view, peer, SHAPE(0, 0, 0), PLDK_ATOMIC_NONE));
	EXPECT_RET(-EDOM, pldk_remote_store(&cube, &view, peer, SHAPE(0, 0, 0), PLDK_ATOMIC_NONE));
	EXPECT_RET(-EINVAL, pldk_remote_store(&tensor, &view, peer, NULL, PLDK_ATOMIC_NONE));
	EXPECT_RET(-EINVAL, pldk_remote_store(&tensor, &view, peer, SHAPE(0, 0, 0), 5));
	EXPECT_RET(-EINVAL, pldk_remote_store(&tensor, &view, -1, SHAPE(0, 0, 0), PLDK_ATOMIC_NONE));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_EQ(0, base[0]);
	EXPECT_EQ(0, base[20]);
}

TEST(remote_store_lands_in_the_innermost_dimensions)
{
	run_ranks(3, store_blocks, NULL);
}

/*
 * Atomics
 */

RANK(add_from_all)
{
	const int64_t n = 259;
	int rounds = (int)pt_rounds(pt_is_far() ? 20 : 200);

	for (int dtype = 1; dtype <= PT_DTYPES; dtype++) {
		size_t bytes = pldk_dtype_size(dtype);
		struct pldk_window *window = pt_window(_metadata, world, (size_t)n * bytes + 64);
		struct pldk_rma_options options = PLDK_RMA_OPTIONS_INIT;
		unsigned char *mine = calloc((size_t)n, 8), *base = pldk_window_base(window);
		struct pldk_tensor tensor = pt_tensor(_metadata, mine, dtype, n - 2);
		struct pldk_dtensor view = pt_view(_metadata, window, dtype, n);
		/* Small enough that every type counts exactly. */
		int times = dtype == PLDK_INT8 || dtype == PLDK_UINT8 || dtype == PLDK_BF16 ? 20 : rounds;

		options.atomic = PLDK_ATOMIC_ADD;
		memset(base + (size_t)n * bytes, 0xcc, 64);
		for (int64_t i = 0; i < n; i++)
			pt_store(dtype, mine, (size_t)i, i % 3 ? 1 : dtype == PLDK_UINT8 ? 2 : -1);
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		for (int t = 0; t < times; t++)
			for (int peer = 0; peer < size; peer++)
				ASSERT_OK(pldk_put(&view, (peer + rank) % size, &tensor,
						   &(struct pldk_region){ SHAPE(1), SHAPE(0), SHAPE(n - 2) },
						   &options));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		for (int64_t i = 0; i < n; i++) {
			bool in = i >= 1 && i < n - 1;
			double each = (i - 1) % 3	  ? 1 :
				      dtype == PLDK_UINT8 ? 2 :
							    -1,
			       want = in ? each * times * size : 0;

			if (dtype == PLDK_UINT8)
				want = (uint8_t)(int)want;
			ASSERT_EQ(want, pt_load(dtype, base, (size_t)i))
			TH_LOG("%s element %d: %g, wanted %g", pldk_dtype_name(dtype), (int)i,
			       pt_load(dtype, base, (size_t)i), want);
		}
		for (int i = 0; i < 64; i++) {
			ASSERT_EQ(0xcc, base[(size_t)n * bytes + (size_t)i]);
		}
		free(mine);
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		ASSERT_OK(pldk_window_destroy(window));
	}
}

TEST(atomic_adds_of_every_type_from_several_ranks_all_land)
{
	run_ranks(2, add_from_all, NULL);
	run_ranks(3, add_from_all, NULL);
}

/* 16-bit floats: each add rounds once to nearest even; overflow is infinity, NaN stays. */
RANK(add_halves)
{
	static const float pairs[][2] = {
		{ 1, 1.0f / 2048 }, { 1, 3.0f / 2048 }, { 2048, 1 },	   { 60000, 60000 },
		{ 6e-8f, 6e-8f },   { -1, 1 },		{ 1, 1.0f / 256 }, { 1, 3.0f / 256 }
	};

	for (int dtype = PLDK_FP16; dtype <= PLDK_BF16; dtype++) {
		struct pldk_window *window = pt_window(_metadata, world, 64);
		uint16_t mine[8], *base = pldk_window_base(window);
		struct pldk_tensor tensor = pt_tensor(_metadata, mine, dtype, 8);
		struct pldk_dtensor view = pt_view(_metadata, window, dtype, 8);

		for (int i = 0; i < 8; i++) {
			pt_store(dtype, base, (size_t)i, (double)pairs[i][0]);
			pt_store(dtype, mine, (size_t)i, (double)pairs[i][1]);
		}
		ASSERT_OK(pldk_remote_store(&tensor, &view, 0, SHAPE(0), PLDK_ATOMIC_ADD));
		for (int i = 0; i < 8; i++) {
			uint16_t a, b, want;

			pt_store(dtype, &a, 0, (double)pairs[i][0]);
			pt_store(dtype, &b, 0, (double)pairs[i][1]);
			pt_store(dtype, &want, 0,
				 (double)((float)pt_load(dtype, &a, 0) + (float)pt_load(dtype, &b, 0)));
			EXPECT_EQ(want, base[i]) TH_LOG("%s %g + %g", pldk_dtype_name(dtype), (double)pairs[i][0],
							(double)pairs[i][1]);
		}
	}
	(void)rank;
	(void)size;
}

TEST(atomic_adds_of_16_bit_floats_round_once)
{
	run_ranks(1, add_halves, NULL);
}

/* G6: a misaligned atomic dumps core, or locks the whole bus. A view at such an offset does not exist, of any type */
RANK(misalign)
{
	struct pldk_window *window = pt_window(_metadata, world, 64);
	struct pldk_dtensor view;

	(void)rank;
	(void)size;
	for (int dtype = 1; pldk_dtype_size(dtype); dtype++) {
		size_t align = pldk_dtype_size(dtype);

		for (size_t offset = 0; offset + align <= 64; offset++) {
			char at[32], multiple[32];

			if (offset % align == 0) {
				EXPECT_OK(pldk_view(window, offset, 1, SHAPE(1), dtype, &view));
				continue;
			}
			memset(&view, 0x5a, sizeof(view));
			EXPECT_RET(-EINVAL, pldk_view(window, offset, 1, SHAPE(1), dtype, &view));
			EXPECT_EQ(0x5a, *(unsigned char *)&view);
			snprintf(at, sizeof(at), "%zu", offset);
			snprintf(multiple, sizeof(multiple), "multiple of %zu", align);
			EXPECT_SAYS(at, multiple);
		}
	}
}

TEST(a_misaligned_atomic_cannot_be_said)
{
	run_ranks(1, misalign, NULL);
}

RANK(fetch)
{
	int rounds = (int)pt_rounds(pt_is_far() ? 200 : 5000);

	for (int dtype = PLDK_INT32; dtype <= PLDK_INT64; dtype++) {
		struct pldk_window *window = pt_window(_metadata, world, 4096);
		struct pldk_dtensor view;
		int64_t old = PT_POISON, mask = dtype == PLDK_INT32 ? INT32_MAX : INT64_MAX, sum = 0;

		ASSERT_OK(pldk_view(window, 8, 2, SHAPE(3, 4), dtype, &view));
		/* Tickets: every number once. */
		for (int i = 0; i < rounds; i++) {
			ASSERT_OK(pldk_fetch_add(&view, 0, SHAPE(1, 2), 1, &old));
			ASSERT_TRUE(old >= 0 && old < (int64_t)rounds * size);
			sum += old;
		}
		atomic_fetch_add(pt_word(dtype), sum);
		/* A lock from compare_swap, a plain counter under it by get and put. */
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		if (rank == 0) {
			int64_t n = (int64_t)rounds * size;

			EXPECT_EQ(n * (n - 1) / 2, atomic_load(pt_word(dtype)));
			ASSERT_OK(pldk_swap(&view, 0, SHAPE(1, 2), -1, &old));
			EXPECT_EQ(n & mask, old);
			ASSERT_OK(pldk_fetch_add(&view, 0, SHAPE(1, 2), 0, &old));
			EXPECT_EQ(-1, old);
		}
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		for (int i = 0; i < rounds / 10 + 1; i++) {
			do {
				ASSERT_OK(pldk_compare_swap(&view, size - 1, SHAPE(2, 3), 0, rank + 1, &old));
				ASSERT_TRUE(old >= 0 && old <= size);
				if (old)
					sched_yield();
			} while (old);
			ASSERT_OK(pldk_compare_swap(&view, size - 1, SHAPE(2, 3), rank + 1, 0, &old));
			ASSERT_EQ(rank + 1, old);
		}
		old = PT_POISON;
		EXPECT_RET(-EINVAL, pldk_fetch_add(&view, 0, SHAPE(3, 0), 1, &old));
		EXPECT_SAYS("dimension 0|dim 0", "3");
		EXPECT_RET(-EINVAL, pldk_swap(&view, 0, SHAPE(0, -1), 1, &old));
		EXPECT_RET(-EINVAL, pldk_compare_swap(&view, size, SHAPE(0, 0), 1, 1, &old));
		EXPECT_RET(-EINVAL, pldk_fetch_add(&view, 0, NULL, 1, &old));
		EXPECT_RET(-EINVAL, pldk_fetch_add(&view, 0, SHAPE(0, 0), 1, NULL));
		ASSERT_OK(pldk_view(window, 0, 1, SHAPE(4), PLDK_FP32, &view));
		EXPECT_RET(-EDOM, pldk_fetch_add(&view, 0, SHAPE(0), 1, &old));
		EXPECT_SAYS("FP32");
		EXPECT_EQ(PT_POISON, old);
		ASSERT_OK(pldk_barrier(world, PT_LONG));
	}
}

TEST(fetch_add_swap_and_compare_swap_are_atomic_between_ranks)
{
	run_ranks(3, fetch, NULL);
}

RANK(overflow_the_32_bits)
{
	struct pldk_window *window = pt_window(_metadata, world, 64);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT32, 1);
	int32_t *base = pldk_window_base(window);
	int64_t old = PT_POISON;
	int64_t ret;

	(void)rank;
	(void)size;
	*base = INT32_MAX;
	ASSERT_OK(pldk_fetch_add(&view, 0, SHAPE(0), 1, &old));
	EXPECT_EQ(INT32_MAX, old);
	EXPECT_EQ(INT32_MIN, *base);
	/* A value that 32 bits do not hold is refused or wraps, but never touches the neighbour. */
	base[1] = CANARY;
	ret = pldk_swap(&view, 0, SHAPE(0), INT64_C(1) << 40, &old);
	EXPECT_TRUE(ret == 0 || ret == -EINVAL || ret == -EOVERFLOW);
	EXPECT_EQ(CANARY, base[1]);
}

TEST(int32_atomics_stay_inside_their_element)
{
	run_ranks(1, overflow_the_32_bits, NULL);
}

/*
 * Sizes
 */

RANK(move_64_mib)
{
	const int64_t n = (int64_t)(pt_scale() < 100 ? 8 : 64) << 20;
	struct pldk_window *window = pt_window(_metadata, world, (size_t)n);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_UINT8, n);
	unsigned char *mine = malloc((size_t)n), *base = pldk_window_base(window);
	struct pldk_tensor tensor = pt_tensor(_metadata, mine, PLDK_UINT8, n);

	memset(mine, rank + 1, (size_t)n);
	mine[0] = mine[n - 1] = 200;
	ASSERT_OK(pldk_put(&view, pldk_right(world), &tensor, NULL, NULL));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_EQ(200, base[0]);
	EXPECT_EQ(200, base[n - 1]);
	EXPECT_TRUE(!memcmp(base + 1, base + 2, (size_t)n - 3) && base[1] == pldk_left(world) + 1);
	memset(mine, 0, (size_t)n);
	ASSERT_OK(pldk_get(&tensor, &view, pldk_right(world), NULL, NULL));
	EXPECT_EQ(200, mine[n - 1]);
	EXPECT_TRUE(!memcmp(mine + 1, mine + 2, (size_t)n - 3) && mine[1] == rank + 1);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	free(mine);
	(void)size;
}

TEST(big_transfers_arrive_whole)
{
	run_ranks(2, move_64_mib, NULL);
}

RANK(move_nothing)
{
	struct pldk_window *window = pt_window(_metadata, world, 64);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT32, 4);
	struct pldk_tensor none;

	(void)rank;
	(void)size;
	ASSERT_OK(pldk_tensor_of(&none, NULL, PLDK_INT32, 1, SHAPE(0)));
	EXPECT_RET(-EINVAL, pldk_put(&view, 0, &none, NULL, NULL));
	EXPECT_RET(-EINVAL, pldk_put(&view, 0, &none, &(struct pldk_region){ SHAPE(0), SHAPE(0), SHAPE(1) }, NULL));
	EXPECT_EQ(0, *(int32_t *)pldk_window_base(window));
}

TEST(an_empty_tensor_fits_no_view)
{
	run_ranks(1, move_nothing, NULL);
}

TEST_HARNESS_MAIN
