// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Element kernels: every element type combined by every reduce operation, and the atomic add of RMA.
 *
 * Contract of the reductions: sources are combined in the order given (rank order, so all ranks get the same bits);
 * 16-bit floats are combined in binary32 and rounded once, to nearest even; a NaN in any source makes the result a
 * NaN, for max and min too; floats overflow to infinity, integers wrap. Max and min of two zeros give the later one.
 *
 * The kernels (reduce_kernels.h) are written with vector extensions, so their speed does not hang on the optimiser's
 * level, and are compiled once for each instruction set; the set is chosen by the processor at the first use. Measured
 * on 4 KiB of FP32 and two sources: SSE2 110 ns, AVX2 53 ns, AVX-512 32 ns; at 1 MiB all are equal.
 */
#include "reduce.h"

#include "atomic.h"
#include "half.h"
#include "provider.h"

#include <pldk/types.h>

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#define WIDE_MIN 64u

/* Bytes at..end of all arrays. */
typedef void (*kernel_fn)(char *dst, const char *const *srcs, uint32_t nsrcs, size_t at, size_t end);

struct kernels {
	kernel_fn fn[PLDK_UINT8 + 1][PLDK_PROD + 1];
};

#define COMBINE_SUM(a, b) ((a) + (b))
#define COMBINE_PROD(a, b) ((a) * (b))

/* a where mask is set, else b */
#define SELECT(mask, a, b)                                                                                             \
	((__typeof__(a))(((__typeof__(mask))(a) & (mask)) | ((__typeof__(mask))(b) & ~(mask))))

#define COMBINE_MAX(a, b) SELECT((a) > (b), (a), (b))
#define COMBINE_MIN(a, b) SELECT((a) < (b), (a), (b))

/* A NaN compares false, so one in b is taken as b; one in a must be held. */
#define COMBINE_FMAX(a, b) SELECT(((a) > (b)) | ((a) != (a)), (a), (b))
#define COMBINE_FMIN(a, b) SELECT(((a) < (b)) | ((a) != (a)), (a), (b))

/*
 * The same one by one, for the few elements at the end that fill no vector.
 */
#define ONE_SUM(a, b) ((a) + (b))
#define ONE_PROD(a, b) ((a) * (b))
#define ONE_MAX(a, b) ((a) > (b) ? (a) : (b))
#define ONE_MIN(a, b) ((a) < (b) ? (a) : (b))
#define ONE_FMAX(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define ONE_FMIN(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define GET_PLAIN(e) (e)
#define PUT_PLAIN(w) (w)
#define GET_FP16(e) pldk__float_of_fp16(e)
#define PUT_FP16(w) pldk__fp16_of_float(w)
#define GET_BF16(e) pldk__float_of_bf16(e)
#define PUT_BF16(w) pldk__bf16_of_float(w)

#define END_ONE_BY_ONE(NAME, ELEM, WORK, GET, ONE, PUT)                                                                \
	for (; at < end; at += sizeof(ELEM)) {                                                                         \
		ELEM e;                                                                                                \
		WORK a;                                                                                                \
                                                                                                                       \
		memcpy(&e, srcs[0] + at, sizeof(e));                                                                   \
		a = (WORK)GET(e);                                                                                      \
		for (uint32_t k = 1; k < nsrcs; k++) {                                                                 \
			WORK b;                                                                                        \
                                                                                                                       \
			memcpy(&e, srcs[k] + at, sizeof(e));                                                           \
			b = (WORK)GET(e);                                                                              \
			a = ONE(a, b);                                                                                 \
		}                                                                                                      \
		e = (ELEM)PUT(a);                                                                                      \
		memcpy(dst + at, &e, sizeof(e));                                                                       \
	}

/* What every processor of this architecture has: 16-byte vectors, halves by integer arithmetic as in half.h. */
#define WIDEN(half)                                                                                                    \
	({                                                                                                             \
		v_u32_baseline half_ = (half);                                                                         \
		v_s32_baseline size_ = (v_s32_baseline)(half_ & 0x7fffu);                                              \
		v_u32_baseline special_ = (v_u32_baseline)(size_ >= 0x7c00);                                           \
		v_u32_baseline nan_ = (v_u32_baseline)(size_ > 0x7c00);                                                \
		v_u32_baseline small_ = (v_u32_baseline)(size_ < 0x400);                                               \
		v_u32_baseline tiny_ = (v_u32_baseline)(__builtin_convertvector(size_, v_f32_baseline) * 0x1p-24f);    \
		v_u32_baseline normal_ = ((v_u32_baseline)size_ << 13) + 0x38000000u;                                  \
                                                                                                                       \
		normal_ |= (special_ & 0x7f800000u) | (nan_ & 0x400000u);                                              \
		(v_f32_baseline)((half_ & 0x8000u) << 16 | (tiny_ & small_) | (normal_ & ~small_));                    \
	})
#define NARROW(v)                                                                                                      \
	({                                                                                                             \
		v_u32_baseline bits_ = (v_u32_baseline)(v);                                                            \
		v_s32_baseline size_ = (v_s32_baseline)(bits_ & 0x7fffffffu);                                          \
		v_u32_baseline nan_ = (v_u32_baseline)(size_ > 0x7f800000);                                            \
		v_u32_baseline inf_ = (v_u32_baseline)(size_ >= 0x477ff000) & ~nan_;                                   \
		v_u32_baseline small_ = (v_u32_baseline)(size_ < 0x38800000);                                          \
		v_u32_baseline tiny_ = (v_u32_baseline)((v_f32_baseline)size_ + 0.5f) - 0x3f000000u;                   \
		v_u32_baseline normal_ = (v_u32_baseline)size_ + 0xfffu + ((v_u32_baseline)size_ >> 13 & 1u);          \
                                                                                                                       \
		normal_ = (normal_ - 0x38000000u) >> 13;                                                               \
		normal_ = (normal_ & ~(nan_ | inf_)) | (inf_ & 0x7c00u);                                               \
		normal_ |= nan_ & (0x7e00u | ((v_u32_baseline)size_ >> 13 & 0x3ffu));                                  \
		(bits_ >> 16 & 0x8000u) | (tiny_ & small_) | (normal_ & ~small_);                                      \
	})

#define PLDK__ISA(name) name##_baseline
#define PLDK__TARGET
#define PLDK__WIDTH 16
#define PLDK__END(NAME, ELEM, WORK, GET, ONE, PUT) END_ONE_BY_ONE(NAME, ELEM, WORK, GET, ONE, PUT)
#define PLDK__FP16_LO(p) WIDEN(PLAIN_LO(v_u32, p) & 0xffffu)
#define PLDK__FP16_HI(p) WIDEN(PLAIN_LO(v_u32, p) >> 16)
#define PLDK__FP16_STORE(p, lo, hi) (*(v_u32_at_baseline *)(void *)(p) = NARROW(lo) | NARROW(hi) << 16)
#include "reduce_kernels.h"

#if defined(__x86_64__)

/* The end of an array goes on with smaller vectors. */
#define END_BASELINE(NAME)                                                                                             \
	if (at < end)                                                                                                  \
		NAME##_baseline(dst, srcs, nsrcs, at, end);

#define PLDK__ISA(name) name##_avx2
#define PLDK__TARGET __attribute__((target("avx2,f16c")))
#define PLDK__WIDTH 32
#define PLDK__END(NAME, ...) END_BASELINE(NAME)
#define PLDK__FP16_LO(p) ((v_f32_avx2)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p))))
#define PLDK__FP16_HI(p) PLDK__FP16_LO((p) + 16)
#define PLDK__FP16_STORE(p, lo, hi)                                                                                    \
	do {                                                                                                           \
		_mm_storeu_si128((__m128i *)(void *)(p), _mm256_cvtps_ph((__m256)(lo), _MM_FROUND_TO_NEAREST_INT));    \
		_mm_storeu_si128((__m128i *)(void *)((p) + 16),                                                        \
				 _mm256_cvtps_ph((__m256)(hi), _MM_FROUND_TO_NEAREST_INT));                            \
	} while (0)
#include "reduce_kernels.h"

#define PLDK__ISA(name) name##_avx512
#define PLDK__TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define PLDK__WIDTH 64
#define PLDK__END(NAME, ...) END_BASELINE(NAME)
#define PLDK__FP16_LO(p) ((v_f32_avx512)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(p))))
#define PLDK__FP16_HI(p) PLDK__FP16_LO((p) + 32)
#define PLDK__FP16_STORE(p, lo, hi)                                                                                    \
	do {                                                                                                           \
		_mm256_storeu_si256((__m256i *)(void *)(p),                                                            \
				    _mm512_cvtps_ph((__m512)(lo), _MM_FROUND_TO_NEAREST_INT));                         \
		_mm256_storeu_si256((__m256i *)(void *)((p) + 32),                                                     \
				    _mm512_cvtps_ph((__m512)(hi), _MM_FROUND_TO_NEAREST_INT));                         \
	} while (0)
#include "reduce_kernels.h"

static bool has_f16c(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

#endif /* __x86_64__ */

static const struct kernels *chosen;

static const struct kernels *choose(void)
{
	const struct kernels *k = &kernels_baseline;

#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		k = &kernels_avx512;
	else if (__builtin_cpu_supports("avx2") && has_f16c())
		k = &kernels_avx2;
#endif
	/* Every thread that gets here stores the same pointer to constant data. */
	pldk__store_relaxed(&chosen, k);
	return k;
}

static inline const struct kernels *kernels(void)
{
	const struct kernels *k = pldk__load_relaxed(&chosen);

	return k ? k : choose();
}

/**
 * pldk__reduce() - combine sources element by element, in one pass over memory
 * @dst: result; may be one of the sources, or must not overlap them
 * @srcs: sources, combined in this order; any alignment
 * @nsrcs: their number, at least 1
 * @len: bytes of each; whole elements, may be 0
 * @dtype: enum pldk_dtype, checked by the caller
 * @op: enum pldk_reduce_op, checked by the caller
 */
void pldk__reduce(void *dst, const void *const *srcs, uint32_t nsrcs, size_t len, uint32_t dtype, uint32_t op)
{
	/* What fills no wide vector would be handed on by those kernels. */
	const struct kernels *k = len < WIDE_MIN ? &kernels_baseline : kernels();

	k->fn[dtype][op](dst, (const char *const *)srcs, nsrcs, 0, len);
}

/* Four 16-bit floats of a word, added one by one. */
static uint64_t add_halves(uint64_t word, uint64_t addend, uint32_t dtype)
{
	uint16_t a[4];
	uint16_t b[4];

	memcpy(a, &word, sizeof(a));
	memcpy(b, &addend, sizeof(b));
	for (int i = 0; i < 4; i++)
		if (dtype == PLDK_BF16)
			a[i] = pldk__bf16_of_float(pldk__float_of_bf16(a[i]) + pldk__float_of_bf16(b[i]));
		else
			a[i] = pldk__fp16_of_float(pldk__float_of_fp16(a[i]) + pldk__float_of_fp16(b[i]));
	memcpy(&word, a, sizeof(a));
	return word;
}

/* All lanes of a word at once; top is the sign bit of each lane: no carry leaves a lane. */
static uint64_t add_lanes(uint64_t word, uint64_t addend, uint64_t top)
{
	return ((word & ~top) + (addend & ~top)) ^ ((word ^ addend) & top);
}

/*
 * Elements of one or two bytes: compare and swap on the aligned 8-byte word around them. All adds of these types go
 * through words of the same size, so that they are atomic against each other on every architecture. Bytes of the word
 * outside the range keep what is there: a neighbour that changes meanwhile makes the swap fail and is read again. The
 * word never reaches beyond the slab, which is a number of pages.
 */
static void add_narrow(char *dst, const char *src, size_t len, uint32_t dtype)
{
	while (len) {
		size_t skip = (uintptr_t)dst & 7u;
		size_t take = len < 8 - skip ? len : 8 - skip;
		uint64_t *at = (uint64_t *)(void *)(dst - skip);
		uint64_t old = pldk__load_relaxed(at);
		uint64_t addend = 0;
		uint64_t mask = 0;
		uint64_t sum;

		memcpy((char *)&addend + skip, src, take);
		memset((char *)&mask + skip, 0xff, take);
		do {
			if (dtype == PLDK_INT16)
				sum = add_lanes(old, addend, UINT64_C(0x8000800080008000));
			else if (dtype == PLDK_INT8 || dtype == PLDK_UINT8)
				sum = add_lanes(old, addend, UINT64_C(0x8080808080808080));
			else
				sum = add_halves(old, addend, dtype);
			sum = (sum & mask) | (old & ~mask);
		} while (!pldk__cas_seq(at, &old, sum));
		dst += take;
		src += take;
		len -= take;
	}
}

static void add_fp32(uint32_t *dst, const char *src)
{
	uint32_t old = pldk__load_relaxed(dst);
	float addend;
	uint32_t sum;

	memcpy(&addend, src, sizeof(addend));
	do
		sum = pldk__bits_of_float(pldk__float_of_bits(old) + addend);
	while (!pldk__cas_seq(dst, &old, sum));
}

static void add_fp64(uint64_t *dst, const char *src)
{
	uint64_t old = pldk__load_relaxed(dst);
	double addend;
	double value;
	uint64_t sum;

	memcpy(&addend, src, sizeof(addend));
	do {
		memcpy(&value, &old, sizeof(value));
		value += addend;
		memcpy(&sum, &value, sizeof(sum));
	} while (!pldk__cas_seq(dst, &old, sum));
}

/**
 * pldk__atomic_add() - add elements to memory that others may be adding to as well
 * @dst: aligned for its elements
 * @src: addends; any alignment
 * @count: elements, may be 0
 * @dtype: enum pldk_dtype, checked by the caller
 *
 * Each element is added atomically, the whole is not. Integers wrap; 16-bit floats are added in binary32 and rounded.
 */
void pldk__atomic_add(void *dst, const void *src, size_t count, uint32_t dtype)
{
	const char *from = src;
	int32_t narrow;
	int64_t wide;

	switch (dtype) {
	case PLDK_INT32:
		for (size_t i = 0; i < count; i++) {
			memcpy(&narrow, from + 4 * i, sizeof(narrow));
			pldk__add_relaxed((int32_t *)dst + i, narrow);
		}
		break;
	case PLDK_INT64:
		for (size_t i = 0; i < count; i++) {
			memcpy(&wide, from + 8 * i, sizeof(wide));
			pldk__add_relaxed((int64_t *)dst + i, wide);
		}
		break;
	case PLDK_FP32:
		for (size_t i = 0; i < count; i++)
			add_fp32((uint32_t *)dst + i, from + 4 * i);
		break;
	case PLDK_FP64:
		for (size_t i = 0; i < count; i++)
			add_fp64((uint64_t *)dst + i, from + 8 * i);
		break;
	case PLDK_FP16:
	case PLDK_BF16:
	case PLDK_INT16:
		add_narrow(dst, from, 2 * count, dtype);
		break;
	default:
		add_narrow(dst, from, count, dtype);
		break;
	}
}
