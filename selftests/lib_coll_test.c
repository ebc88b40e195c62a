// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: barrier, allreduce, broadcast, allgather. Results against a scalar reference in rank order, the same
 * bits on every rank; order also where nothing moves; and no rank left waiting when they disagree.
 */
#include "pldk_test.h"
#include "pldk_test_coll.h"

static int64_t digest(const void *data, size_t n)
{
	const unsigned char *p = data;
	uint64_t sum = 14695981039346656037u;

	while (n--)
		sum = (sum ^ *p++) * 1099511628211u;
	return (int64_t)sum;
}

/* One allreduce, checked to the last element, to the canaries, and for equal bits on all ranks. */
static void reduce_once(struct __test_metadata *_metadata, struct pldk_domain *world, enum pldk_dtype dtype,
			enum pldk_reduce_op op, size_t count, char *in, char *out, enum pldk_mode mode)
{
	static uint64_t salt;
	struct pt_oracle oracle = { dtype, op, ++salt, 16 };
	size_t width = pldk_dtype_size(dtype);
	int rank = pldk_rank(world), size = pldk_size(world);
	bool in_place = in == out;
	size_t stride = count > 2000 ? 37 : 1; /* of long ones every 37th element is computed */

	for (size_t i = 0; i < count; i++)
		pt_element(&oracle, rank, i, in + i * width);
	memset(out + count * width, 0x7e, 64);
	if (!in_place)
		memset(out, 0x55, count * width);
	ASSERT_OK(
		pldk_allreduce(world, in_place && salt % 2 ? PLDK_IN_PLACE : in, out, count, dtype, op, mode, PT_LONG));
	for (size_t i = 0; i < count; i += stride) {
		int64_t want = 0;

		pt_combined(&oracle, size, i, &want);
		ASSERT_TRUE(pt_agrees(&oracle, &want, out + i * width))
		TH_LOG("%s op %d of %zu on %d ranks, element %zu: %g, wanted %g", pldk_dtype_name(dtype), op, count,
		       size, i, pt_load(dtype, out + i * width, 0), pt_load(dtype, &want, 0));
	}
	for (int i = 0; i < 64; i++) {
		ASSERT_EQ(0x7e, out[count * width + (size_t)i]);
	}
	if (!in_place)
		for (size_t i = 0; i < count; i += stride) {
			int64_t mine = 0;

			pt_element(&oracle, rank, i, &mine);
			ASSERT_EQ(0, memcmp(&mine, in + i * width, width));
		}
	atomic_store(pt_word((int)(salt % 2) * 16 + rank), digest(out, count * width));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	ASSERT_EQ(atomic_load(pt_word((int)(salt % 2) * 16)), atomic_load(pt_word((int)(salt % 2) * 16 + rank)))
	TH_LOG("rank %d has other bits than rank 0", rank);
}

#define MOST 100003

RANK(reduce_everything)
{
	struct pldk_window *window = pt_window(_metadata, world, 2 * (MOST * 8 + 128));
	char *shared = pldk_window_base(window), *in = calloc(1, MOST * 8 + 64), *out = calloc(1, MOST * 8 + 64);
	static const size_t primes[] = { 97, 1009, 4093, MOST };
	bool brief = pt_scale() < 100 || pt_is_far();
	unsigned int turn = 0;

	for (int dtype = 1; dtype <= PT_DTYPES; dtype++) {
		for (int op = PLDK_SUM; op <= PLDK_PROD; op++) {
			for (size_t count = 0; count <= 4 * (size_t)size + 3; count += brief ? 5 : 1) {
				/* Private, in place, in a window, from a window. */
				static const int ways[4][2] = { { 0, 1 }, { 1, 1 }, { 2, 3 }, { 3, 3 } };
				char *const places[4] = { in, out, shared, shared + MOST * 8 + 64 };
				const int *way = ways[turn++ % 4];

				reduce_once(_metadata, world, dtype, op, count, places[way[0]], places[way[1]],
					    turn % 3 ? PLDK_MODE_AUTO : PLDK_MODE_MESH);
			}
		}
		for (size_t i = 0; i < ARRAY_SIZE(primes) - (brief && dtype > 2); i++) {
			reduce_once(_metadata, world, dtype, PLDK_SUM, primes[i], in, out, PLDK_MODE_AUTO);
			reduce_once(_metadata, world, dtype, PLDK_MAX, primes[i], shared, shared, PLDK_MODE_AUTO);
		}
	}
	free(in);
	free(out);
	(void)rank;
}

/* H1, H5, H7, H11, H13 */
TEST(allreduce_of_every_type_op_and_count_is_exact_and_the_same_everywhere)
{
	for (int size = 1; size <= 9; size += pt_scale() < 100 && size > 3 ? 4 : 1) {
		struct pt_run run = { .nranks = size, .body = reduce_everything, .limit_ms = 40000 };

		pt_start(_metadata, &run);
		pt_finish(_metadata, &run);
	}
}

RANK(round_once)
{
	uint16_t fp16 = pt_to_fp16(rank == 2 ? -60000 : 60000), bf16 = pt_to_bf16(rank ? 1.0f / 512 : 1);
	uint16_t over = pt_to_fp16(60000);

	ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, &fp16, 1, PLDK_FP16, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	EXPECT_EQ(pt_to_fp16(60000), fp16);
	ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, &bf16, 1, PLDK_BF16, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	EXPECT_EQ(pt_to_bf16(1.0f + 2.0f / 512), bf16);
	ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, &over, 1, PLDK_FP16, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	EXPECT_EQ(0x7c00, over);
	(void)size;
}

/* H13: saturation hop by hop */
TEST(allreduce_of_16_bit_floats_rounds_once_and_overflows_to_infinity)
{
	run_ranks(3, round_once, NULL);
}

/*
 * broadcast, allgather
 */

RANK(tell_from_each_root)
{
	static const size_t counts[] = { 0, 1, 3, 64, 1000, 30011 };
	struct pldk_window *window = pt_window(_metadata, world, 30011 * 4 + 64);
	int32_t *private = calloc(30011 + 16, 4), *shared = pldk_window_base(window);

	for (int root = 0; root < size; root++) {
		for (size_t c = 0; c < ARRAY_SIZE(counts) - (pt_scale() < 100); c++) {
			int32_t *buffer = (c + (size_t)root) % 2 ? private : shared;
			size_t n = counts[c];

			for (size_t i = 0; i < n; i++)
				buffer[i] = rank << 24 | root << 16 | (int32_t)(i & 0xffff);
			buffer[n] = -77;
			ASSERT_OK(pldk_broadcast(world, buffer, n, PLDK_INT32, root, PT_LONG));
			for (size_t i = 0; i < n; i++) {
				ASSERT_EQ(root << 24 | root << 16 | (int32_t)(i & 0xffff), buffer[i])
				TH_LOG("root %d, element %zu holds rank %d's", root, i, buffer[i] >> 24);
			}
			ASSERT_EQ(-77, buffer[n]);
		}
	}
	free(private);
}

/* H16: own slice instead of the root's */
TEST(broadcast_from_each_root)
{
	for (int size = 1; size <= 9; size += size < 5 ? 1 : 2)
		run_ranks(size, tell_from_each_root, NULL);
}

RANK(gather)
{
	static const size_t counts[] = { 0, 1, 7, 64, 1021, 20011 };
	size_t most = 20011 * (size_t)size;
	struct pldk_window *window = pt_window(_metadata, world, most * 4 + 64);
	int32_t *private = calloc(most + 16, 4), *shared = pldk_window_base(window), *in = calloc(20011, 4);

	for (size_t c = 0; c < ARRAY_SIZE(counts) - (pt_scale() < 100); c++) {
		for (int way = 0; way < 4; way++) {
			int32_t *out = way & 1 ? shared : private,
				*mine = way & 2 ? out + (size_t)rank * counts[c] : in;
			size_t n = counts[c];

			for (size_t i = 0; i < n * (size_t)size; i++)
				out[i] = -1;
			out[n * (size_t)size] = -77;
			for (size_t i = 0; i < n; i++)
				mine[i] = rank << 24 | way << 20 | (int32_t)i;
			ASSERT_OK(pldk_allgather(world, way & 2 ? PLDK_IN_PLACE : mine, out, n, PLDK_INT32, PT_LONG));
			for (size_t i = 0; i < n * (size_t)size; i++) {
				ASSERT_EQ((int32_t)(i / n) << 24 | way << 20 | (int32_t)(i % n), out[i])
				TH_LOG("slot %zu holds rank %d's block", i / n, out[i] >> 24);
			}
			ASSERT_EQ(-77, out[n * (size_t)size]);
		}
	}
	free(private);
	free(in);
}

TEST(allgather_in_rank_order_in_place_and_not)
{
	for (int size = 1; size <= 9; size += size < 5 ? 1 : 2)
		run_ranks(size, gather, NULL);
}

RANK(move_every_type)
{
	for (int dtype = 1; dtype <= PT_DTYPES; dtype++) {
		struct pt_oracle oracle = { dtype, PLDK_SUM, 5, 16 };
		size_t width = pldk_dtype_size(dtype);
		char in[5 * 8], out[4 * 5 * 8], want[5 * 8];

		for (size_t i = 0; i < 5; i++)
			pt_element(&oracle, rank, i, in + i * width);
		ASSERT_OK(pldk_allgather(world, in, out, 5, dtype, PT_LONG));
		for (int r = 0; r < size; r++) {
			for (size_t i = 0; i < 5; i++)
				pt_element(&oracle, r, i, want + i * width);
			ASSERT_EQ(0, memcmp(want, out + (size_t)r * 5 * width, 5 * width));
		}
		ASSERT_OK(pldk_broadcast(world, in, 5, dtype, size - 1, PT_LONG));
		ASSERT_EQ(0, memcmp(want, in, 5 * width));
	}
}

TEST(broadcast_and_allgather_move_every_type_bit_for_bit)
{
	run_ranks(4, move_every_type, NULL);
}

/*
 * Order
 */

RANK(order_by_nothing)
{
	int rounds = (int)pt_rounds(200);

	/* Each enters late in turn; nobody may leave before. */
	for (int round = 1; round <= rounds; round++) {
		int late = round % size;

		if (rank == late) {
			for (int i = 0; i < 20; i++)
				sched_yield();
			atomic_store(pt_word(0), round);
		}
		switch (round % 3) {
		case 0:
			ASSERT_OK(pldk_barrier(world, PT_LONG));
			break;
		case 1:
			ASSERT_OK(pldk_allreduce(world, NULL, NULL, 0, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
			break;
		case 2:
			ASSERT_OK(pldk_allgather(world, NULL, NULL, 0, PLDK_FP32, PT_LONG));
			break;
		}
		ASSERT_EQ(round, atomic_load(pt_word(0)));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		if (rank == late)
			atomic_store(pt_word(1), round);
		ASSERT_OK(pldk_broadcast(world, NULL, 0, PLDK_INT8, late, PT_LONG));
		ASSERT_EQ(round, atomic_load(pt_word(1)));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
	}
}

/* H1: zero-byte calls still synchronise */
TEST(collectives_of_nothing_still_synchronise)
{
	for (int size = 1; size <= 5; size++)
		run_ranks(size, order_by_nothing, NULL);
}

/* E1, E3: reuse of the same buffers without anything between, with random delays */
RANK(back_to_back)
{
	long rounds = pt_rounds(pt_is_far() ? 1000 : 10000);
	uint64_t seed = (uint64_t)rank * 77 + 5;
	long rss = 0;
	int32_t all[8] = { 0 };

	for (long round = 1; round <= rounds; round++) {
		int64_t sum = (rank + 1) * round;
		int32_t told = rank == round % size ? (int32_t)round : -1, mine = (int32_t)round * 16 + rank;

		if (pt_random(&seed) % 64 == 0)
			sched_yield();
		ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, &sum, 1, PLDK_INT64, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
		ASSERT_EQ(size * (size + 1) / 2 * round, sum);
		ASSERT_OK(pldk_broadcast(world, &told, 1, PLDK_INT32, (int)(round % size), PT_LONG));
		ASSERT_EQ(round, told);
		ASSERT_OK(pldk_allgather(world, &mine, all, 1, PLDK_INT32, PT_LONG));
		for (int r = 0; r < size; r++) {
			ASSERT_EQ((int32_t)round * 16 + r, all[r]);
		}
		if (round == rounds / 2)
			rss = pt_proc_kb("/proc/self/status", "VmRSS:");
	}
	EXPECT_LE(pt_proc_kb("/proc/self/status", "VmRSS:"), rss + 512) TH_LOG("memory grows with the number of calls");
}

TEST(ten_thousand_back_to_back)
{
	for (int size = 2; size <= 5; size += 3) {
		struct pt_run run = { .nranks = size, .body = back_to_back, .limit_ms = 30000 };

		pt_start(_metadata, &run);
		pt_finish(_metadata, &run);
	}
}

/* Window buffers that peers read and write while the next call is already on. */
RANK(stream_windows)
{
	const size_t n = 10007;
	struct pldk_window *window = pt_window(_metadata, world, n * 4 * (size_t)size);
	float *data = pldk_window_base(window);

	for (int round = 1; round <= (int)pt_rounds(50); round++) {
		for (size_t i = 0; i < n; i++)
			data[i] = (float)(rank + round);
		ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, data, n, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
		for (size_t i = 0; i < n; i++) {
			ASSERT_EQ((float)(size * round + size * (size - 1) / 2), data[i]);
		}
		for (size_t i = 0; i < n; i++)
			data[i] = (float)(rank == round % size ? round : -1);
		ASSERT_OK(pldk_broadcast(world, data, n, PLDK_FP32, round % size, PT_LONG));
		ASSERT_EQ((float)round, data[0]);
		ASSERT_EQ((float)round, data[n - 1]);
		for (size_t i = 0; i < n; i++)
			data[(size_t)rank * n + i] = (float)(rank * 1000 + round);
		ASSERT_OK(pldk_allgather(world, PLDK_IN_PLACE, data, n, PLDK_FP32, PT_LONG));
		for (int r = 0; r < size; r++) {
			ASSERT_EQ((float)(r * 1000 + round), data[(size_t)r * n]);
			ASSERT_EQ((float)(r * 1000 + round), data[(size_t)r * n + n - 1]);
		}
	}
}

TEST(windows_can_be_reused_at_once_after_each_collective)
{
	run_ranks(4, stream_windows, NULL);
}

/*
 * Mistakes
 */

RANK(refuse_collectives)
{
	float in[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, out[8], clean[8];

	memset(out, 0x5a, sizeof(out));
	memcpy(clean, out, sizeof(out));
#define REDUCE(in_, out_, n, dtype, op, mode) pldk_allreduce(world, in_, out_, n, dtype, op, mode, PT_LONG)
	EXPECT_RET(-EINVAL, REDUCE(NULL, out, 4, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO));
	EXPECT_RET(-EINVAL, REDUCE(in, NULL, 4, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO));
	EXPECT_RET(-EINVAL, REDUCE(in, out, 4, 0, PLDK_SUM, PLDK_MODE_AUTO));
	EXPECT_RET(-EINVAL, REDUCE(in, out, 4, 99, PLDK_SUM, PLDK_MODE_AUTO));
	EXPECT_SAYS("99");
	EXPECT_RET(-EINVAL, REDUCE(in, out, 0, 99, PLDK_SUM, PLDK_MODE_AUTO));
	EXPECT_RET(-EINVAL, REDUCE(in, out, 4, PLDK_FP32, 4, PLDK_MODE_AUTO));
	EXPECT_RET(-EINVAL, REDUCE(in, out, 4, PLDK_FP32, PLDK_SUM, 9));
	EXPECT_RET(-EOVERFLOW, REDUCE(in, out, SIZE_MAX / 2, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO));
	EXPECT_RET(-EINVAL, REDUCE(in, in + 2, 4, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO));
	EXPECT_SAYS("overlap");
	EXPECT_RET(-EINVAL, REDUCE(in + 3, in, 4, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO));
#undef REDUCE
	EXPECT_RET(-EINVAL, pldk_broadcast(world, NULL, 4, PLDK_FP32, 0, PT_LONG));
	EXPECT_RET(-EINVAL, pldk_broadcast(world, out, 4, PLDK_FP32, size, PT_LONG));
	EXPECT_SAYS("2");
	EXPECT_RET(-EINVAL, pldk_broadcast(world, out, 4, PLDK_FP32, -1, PT_LONG));
	EXPECT_RET(-EINVAL, pldk_broadcast(world, out, 4, 77, 0, PT_LONG));
	EXPECT_RET(-EOVERFLOW, pldk_broadcast(world, out, SIZE_MAX / 2, PLDK_FP32, 0, PT_LONG));
	EXPECT_RET(-EINVAL, pldk_allgather(world, in, NULL, 4, PLDK_FP32, PT_LONG));
	EXPECT_RET(-EINVAL, pldk_allgather(world, NULL, out, 4, PLDK_FP32, PT_LONG));
	EXPECT_RET(-EINVAL, pldk_allgather(world, in, out, 4, 0, PT_LONG));
	EXPECT_RET(-EOVERFLOW, pldk_allgather(world, in, out, SIZE_MAX / 8, PLDK_FP64, PT_LONG));
	EXPECT_RET(-EINVAL, pldk_allgather(world, in + 1, in, 4, PLDK_FP32, PT_LONG));
	EXPECT_EQ(0, memcmp(out, clean, sizeof(out)));
	EXPECT_EQ(1, in[0]);
	/* Nobody was left waiting: the next one works. */
	ASSERT_OK(pldk_allreduce(world, in, out, 8, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	EXPECT_EQ(16, out[7]);
	(void)rank;
}

/* H2: zero-size datatype divides by zero */
TEST(wrong_collectives_are_refused_before_anybody_waits)
{
	run_ranks(2, refuse_collectives, NULL);
}

RANK(try_every_mode)
{
	for (int mode = PLDK_MODE_MESH; mode <= PLDK_MODE_AUTO; mode++) {
		for (int dtype = 1; dtype <= PT_DTYPES; dtype++) {
			for (int op = PLDK_SUM; op <= PLDK_PROD; op++) {
				int64_t start = pt_now(), value = 0, got = 0, ret;

				pt_store(dtype, &value, 0, 1);
				ret = pldk_allreduce(world, &value, &got, 1, dtype, op, mode, PT_LONG);
				EXPECT_TRUE(ret == 0 || ret == -EOPNOTSUPP)
				TH_LOG("%d: %s", (int)ret, pldk_last_error());
				if (!ret) {
					EXPECT_EQ(op == PLDK_SUM ? size : 1, pt_load(dtype, &got, 0));
				} else {
					EXPECT_EQ(0, got);
				}
				EXPECT_LT(pt_ms_since(start), pt_slow_ms(500));
				EXPECT_EQ(0, ret);
			}
		}
	}
	(void)rank;
}

/* A11: an unimplemented collective, and both ranks stop at 0 % CPU */
TEST(what_is_not_supported_says_so_at_once_on_all_ranks)
{
	run_ranks(2, try_every_mode, NULL);
}

enum difference { COUNT, DTYPE, OP, ROOT, OPERATION, EMPTY, DIFFERENCES };

RANK(disagree)
{
	int what = *(int *)arg, odd = rank == 1;
	float in[16] = { 0 }, out[16 * 4];
	int64_t start = pt_now();

	switch (what) {
	case COUNT:
		EXPECT_RET(-EPROTO, pldk_allreduce(world, in, out, odd ? 12 : 11, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO,
						   PLDK_FOREVER));
		EXPECT_SAYS("11", "12");
		break;
	case DTYPE:
		EXPECT_RET(-EPROTO, pldk_allgather(world, in, out, 4, odd ? PLDK_INT32 : PLDK_FP32, PLDK_FOREVER));
		EXPECT_SAYS("INT32", "FP32");
		break;
	case OP:
		EXPECT_RET(-EPROTO, pldk_allreduce(world, in, out, 4, PLDK_FP32, odd ? PLDK_MAX : PLDK_SUM,
						   PLDK_MODE_AUTO, PLDK_FOREVER));
		EXPECT_SAYS("max", "sum");
		break;
	case ROOT:
		EXPECT_RET(-EPROTO, pldk_broadcast(world, in, 4, PLDK_FP32, odd, PLDK_FOREVER));
		EXPECT_SAYS("root");
		break;
	case OPERATION:
		if (odd)
			EXPECT_RET(-EPROTO, pldk_barrier(world, PLDK_FOREVER));
		else
			EXPECT_RET(-EPROTO, pldk_allreduce(world, in, out, 4, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO,
							   PLDK_FOREVER));
		EXPECT_SAYS("barrier", "allreduce");
		break;
	case EMPTY:
		EXPECT_RET(-EPROTO, pldk_allreduce(world, in, out, odd ? 0 : 4, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO,
						   PLDK_FOREVER));
		break;
	}
	EXPECT_SAYS("rank 1");
	EXPECT_LT(pt_ms_since(start), pt_slow_ms(1000));
	(void)size;
}

/* A16: only a subset of ranks is submitting */
TEST(ranks_that_disagree_all_get_eproto_and_the_odd_one_is_named)
{
	for (int size = 2; size <= 4; size++)
		for (int what = 0; what < DIFFERENCES; what++)
			run_ranks(size, disagree, &what);
}

/*
 * Who gave up too early and filled its input anew is still part of the first call, with what it had announced. Of a
 * large block nothing may have been by then; what counts is the same on all ranks in any case.
 */
RANK(give_up_and_come_again)
{
	const size_t count = arg ? *(const size_t *)arg : 1;
	float *input = malloc(count * sizeof(*input)), *output = malloc(count * sizeof(*output)), most, least;
	int64_t ret = 0;

	for (size_t i = 0; i < count; i++)
		input[i] = 1;
	if (rank == 0) {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == size - 1, 20000));
	} else {
		EXPECT_RET(-ETIMEDOUT, pldk_allreduce(world, input, output, count, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO,
						      PLDK_MS(20)));
		input[0] = 10;
		atomic_fetch_add(pt_word(0), 1);
	}
	ret = pldk_allreduce(world, input, output, count, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG);
	ASSERT_OK(ret);
	ASSERT_OK(pldk_allreduce(world, output, &most, 1, PLDK_FP32, PLDK_MAX, PLDK_MODE_AUTO, PT_LONG));
	ASSERT_OK(pldk_allreduce(world, output, &least, 1, PLDK_FP32, PLDK_MIN, PLDK_MODE_AUTO, PT_LONG));
	ASSERT_EQ(most, least);
	ASSERT_TRUE(output[0] == size || (count > 1 && output[0] == 1 + 10 * (size - 1)));
	for (size_t i = 1; i < count; i++)
		ASSERT_EQ(size, output[i]);
	free(input);
	free(output);
}

TEST(an_interrupted_allreduce_goes_on_with_what_was_announced)
{
	size_t many = 20000;

	pt_clear_words();
	run_ranks(3, give_up_and_come_again, NULL);
	pt_clear_words();
	run_ranks(3, give_up_and_come_again, &many);
}

RANK(pass_in_place_as_output)
{
	float x = 1;

	(void)rank;
	(void)size;
	EXPECT_RET(-EINVAL, pldk_broadcast(world, (void *)PLDK_IN_PLACE, 1, PLDK_FP32, 0, PT_LONG));
	EXPECT_RET(-EINVAL, pldk_allreduce(world, &x, (void *)PLDK_IN_PLACE, 1, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO,
					   PT_LONG));
	EXPECT_RET(-EINVAL, pldk_allgather(world, &x, (void *)PLDK_IN_PLACE, 1, PLDK_FP32, PT_LONG));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(in_place_is_no_place_for_results)
{
	run_ranks(2, pass_in_place_as_output, NULL);
}

/* A1: exactly the absent are named */
RANK(wait_for_the_absent)
{
	if (rank == 3 || rank == 6) {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == size - 2, 20000));
		return;
	}
	EXPECT_RET(-ETIMEDOUT, pldk_barrier(world, PLDK_MS(pt_slow_ms(300))));
	EXPECT_SAYS("3", "6", "barrier");
	for (int r = 0; r < size; r++) {
		char word[32];

		snprintf(word, sizeof(word), "rank %d (", r);
		if (r != 3 && r != 6 && r != rank) {
			EXPECT_EQ(NULL, strstr(pldk_last_error(), word)) TH_LOG("%s", pldk_last_error());
		}
	}
	atomic_fetch_add(pt_word(0), 1);
}

TEST(a_collective_that_times_out_names_exactly_the_absent_ranks)
{
	run_ranks(8, wait_for_the_absent, NULL);
}

/* What waits costs no CPU: it wakes 20 times in the first second, then 3 times a second. */
RANK(rest_in_barrier)
{
	const int seconds = 3;
	long before = pt_switches();

	if (rank == 0)
		sleep(seconds);
	ASSERT_OK(pldk_barrier(world, PLDK_FOREVER));
	if (rank) {
		EXPECT_LE(pt_switches() - before, 20 + 3 * seconds + 10);
	}
	(void)size;
}

TEST(ranks_that_wait_long_hardly_wake)
{
	run_ranks(8, rest_in_barrier, NULL);
}

static void *enter_barrier(void *arg)
{
	struct pldk_domain *world = arg;

	atomic_store(pt_word(2), (int64_t)gettid());
	return (void *)(intptr_t)pldk_barrier(world, PT_LONG);
}

RANK(collide)
{
	pthread_t thread;
	void *ret = PT_POISON_PTR;
	float x = 1;

	if (rank) {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(3)) == 1, 20000));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		return;
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, enter_barrier, world));
	ASSERT_TRUE(pt_until(atomic_load(pt_word(2)) && pt_is_asleep(getpid(), (pid_t)atomic_load(pt_word(2))), 5000));
	EXPECT_RET(-EBUSY, pldk_barrier(world, PT_LONG));
	EXPECT_SAYS("barrier");
	EXPECT_RET(-EBUSY, pldk_allreduce(world, PLDK_IN_PLACE, &x, 1, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	EXPECT_RET(-EBUSY, pldk_finalize(world));
	EXPECT_EQ(1, x);
	atomic_store(pt_word(3), 1);
	pthread_join(thread, &ret);
	EXPECT_EQ(NULL, ret);
	(void)size;
}

/* M9: two threads of one rank in collectives of one domain */
TEST(a_second_thread_in_a_collective_gets_ebusy)
{
	run_ranks(2, collide, NULL);
}

TEST_HARNESS_MAIN
