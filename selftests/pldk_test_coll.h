/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The oracle of the collectives' tests: what each rank brings, and what that makes when it is combined. All are pure
 * functions of a few numbers, so every rank knows all inputs and can check every element that it got.
 */
#ifndef _PLDK_TEST_COLL_H
#define _PLDK_TEST_COLL_H

#include "pldk_test_dtypes.h"

/**
 * struct pt_oracle - one case
 * @salt: another one gives other elements
 * @every: one in so many floats is special: NaN, an infinity, -0, overflow
 */
struct pt_oracle {
	enum pldk_dtype dtype;
	enum pldk_reduce_op op;
	uint64_t salt;
	uint32_t every;
};

static inline uint64_t pt_mix(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t x = (a + 1) * 0x9e3779b97f4a7c15u ^ (b + 1) * 0xbf58476d1ce4e5b9u ^ (c + 1) * 0x94d049bb133111ebu;

	x ^= x >> 31;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 29;
}

/* Element i of a rank's input. Integers: any bits. */
static inline void pt_element(const struct pt_oracle *oracle, int rank, size_t i, void *out)
{
	static const double special[] = { NAN, INFINITY, -INFINITY, -0.0, 0.0, 65504, -65504, 1e-7, 3.0e38, 1e300 };
	uint64_t x = pt_mix((uint64_t)rank, i, oracle->salt);

	if (oracle->dtype > PLDK_BF16)
		memcpy(out, &x, pldk_dtype_size(oracle->dtype));
	else if (x % oracle->every == 0)
		pt_store(oracle->dtype, out, 0, special[x / oracle->every % (sizeof(special) / sizeof(special[0]))]);
	else
		pt_store(oracle->dtype, out, 0,
			 ldexp((double)(int64_t)(x >> 12 & 0xffff) - 32768, (int)(x >> 40) % 12 - 20));
}

#define PT_COMBINE(acc, x, op)                                                                                         \
	((op) == PLDK_SUM    ? (acc) + (x)                                                                             \
	 : (op) == PLDK_PROD ? (acc) * (x)                                                                             \
	 : (acc) != (acc)    ? (acc)                                                                                   \
	 : (x) != (x)	     ? (x)                                                                                     \
	 : (op) == PLDK_MAX  ? ((acc) > (x) ? (acc) : (x))                                                             \
			     : ((acc) < (x) ? (acc) : (x)))

/*
 * Element i of n ranks of size, combined in order from rank first on. 16-bit floats in binary32, rounded once, or at
 * each hop; integers wrap.
 */
static inline void pt_combined_from(const struct pt_oracle *oracle, int first, int n, int size, bool is_hop, size_t i,
				    void *want)
{
	double fp64 = 0;
	float fp32 = 0;
	int64_t whole = 0;

	for (int r = 0; r < n; r++) {
		int64_t bits = 0;

		pt_element(oracle, (first + r) % size, i, &bits);
		if (oracle->dtype == PLDK_FP64) {
			double x = pt_load(oracle->dtype, &bits, 0);

			fp64 = r ? PT_COMBINE(fp64, x, oracle->op) : x;
		} else if (oracle->dtype <= PLDK_BF16) {
			float x = (float)pt_load(oracle->dtype, &bits, 0);

			fp32 = r ? PT_COMBINE(fp32, x, oracle->op) : x;
			if (is_hop) {
				pt_store(oracle->dtype, &bits, 0, (double)fp32);
				fp32 = (float)pt_load(oracle->dtype, &bits, 0);
			}
		} else {
			int64_t x = oracle->dtype == PLDK_INT64 ? bits : (int64_t)pt_load(oracle->dtype, &bits, 0);

			if (r && oracle->op == PLDK_SUM)
				whole = (int64_t)((uint64_t)whole + (uint64_t)x);
			else if (r && oracle->op == PLDK_PROD)
				whole = (int64_t)((uint64_t)whole * (uint64_t)x);
			else
				whole = r ? PT_COMBINE(whole, x, oracle->op) : x;
		}
	}
	if (oracle->dtype == PLDK_FP64)
		pt_store(oracle->dtype, want, 0, fp64);
	else if (oracle->dtype <= PLDK_BF16)
		pt_store(oracle->dtype, want, 0, (double)fp32);
	else
		memcpy(want, &whole, pldk_dtype_size(oracle->dtype)); /* low bytes first: truncation wraps */
}

/* Element i of ranks 0..n-1, combined in that order. */
static inline void pt_combined(const struct pt_oracle *oracle, int n, size_t i, void *want)
{
	pt_combined_from(oracle, 0, n, n, false, i, want);
}

/* Of combined elements. NaN is NaN whatever its bits, and which zero MAX and MIN give is open; all else is exact. */
static inline bool pt_agrees(const struct pt_oracle *oracle, const void *want, const void *got)
{
	double a, b;

	if (oracle->dtype > PLDK_BF16)
		return !memcmp(want, got, pldk_dtype_size(oracle->dtype));
	a = pt_load(oracle->dtype, want, 0);
	b = pt_load(oracle->dtype, got, 0);
	if (a != a || b != b)
		return a != a && b != b;
	return a == b && (oracle->op == PLDK_MAX || oracle->op == PLDK_MIN || signbit(a) == signbit(b));
}

#endif /* _PLDK_TEST_COLL_H */
