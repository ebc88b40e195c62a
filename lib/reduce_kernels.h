/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Body of lib/reduce.c, included once for each instruction set, with
 *   PLDK__ISA(name)          the name with a suffix of its own
 *   PLDK__TARGET             function attribute, or nothing
 *   PLDK__WIDTH              bytes of its vectors
 *   PLDK__END(name, ELEM, ...)  what to do with the last bytes of a kernel
 *   PLDK__FP16_LO(p), PLDK__FP16_HI(p), PLDK__FP16_STORE(p, lo, hi)  PLDK__WIDTH bytes of halves at p as two vectors of
 *                            floats, and back, rounded once
 * All of these are undefined again at the end.
 *
 * Every kernel walks all sources side by side and keeps the running values of a piece in registers: each source is read
 * once and the destination written once, whatever the number of ranks. Pieces are counted from element 0, never from
 * an address, so that all ranks do the same arithmetic on the same element.
 */

/* NAME: a vector in registers; NAME_at: the same in memory, at any address. */
#define VECTOR(NAME, ELEM)                                                                                             \
	typedef ELEM PLDK__ISA(NAME) __attribute__((vector_size(PLDK__WIDTH)));                                        \
	typedef ELEM PLDK__ISA(NAME##_at) __attribute__((vector_size(PLDK__WIDTH), aligned(1), may_alias))

VECTOR(v_f64, double);
VECTOR(v_f32, float);
VECTOR(v_s8, int8_t);
VECTOR(v_s16, int16_t);
VECTOR(v_s32, int32_t);
VECTOR(v_s64, int64_t);
VECTOR(v_u8, uint8_t);
VECTOR(v_u16, uint16_t);
VECTOR(v_u32, uint32_t);
VECTOR(v_u64, uint64_t);

/*
 * How elements lie in memory. A pair is the unit: two vectors of running values. *_LO and *_HI load them, *_STORE
 * stores them.
 */
#define PLAIN_BYTES (2 * PLDK__WIDTH)
#define PLAIN_LO(V, p) (*(const PLDK__ISA(V##_at) *)(const void *)(p))
#define PLAIN_HI(V, p) (*(const PLDK__ISA(V##_at) *)(const void *)((p) + PLDK__WIDTH))
#define PLAIN_STORE(V, p, lo, hi)                                                                                      \
	do {                                                                                                           \
		*(PLDK__ISA(V##_at) *)(void *)(p) = (lo);                                                              \
		*(PLDK__ISA(V##_at) *)(void *)((p) + PLDK__WIDTH) = (hi);                                              \
	} while (0)

#define FP16_BYTES PLDK__WIDTH
#define FP16_LO(V, p) PLDK__FP16_LO(p)
#define FP16_HI(V, p) PLDK__FP16_HI(p)
#define FP16_STORE(V, p, lo, hi) PLDK__FP16_STORE(p, lo, hi)

/* bfloat16 is the upper half of a float: even elements to one vector, odd ones to the other, no shuffle needed. */
#define BF16_BYTES PLDK__WIDTH
#define BF16_LO(V, p) ((PLDK__ISA(v_f32))(PLAIN_LO(v_u32, p) << 16))
#define BF16_HI(V, p) ((PLDK__ISA(v_f32))(PLAIN_LO(v_u32, p) & 0xffff0000u))
#define BF16_ROUND(v)                                                                                                  \
	({                                                                                                             \
		PLDK__ISA(v_u32) bits_ = (PLDK__ISA(v_u32))(v);                                                        \
		PLDK__ISA(v_s32) size_ = (PLDK__ISA(v_s32))(bits_ & 0x7fffffffu);                                      \
		PLDK__ISA(v_u32) nan_ = (PLDK__ISA(v_u32))(size_ > 0x7f800000);                                        \
                                                                                                                       \
		((bits_ + 0x7fffu + (bits_ >> 16 & 1u)) & ~nan_) | ((bits_ | 0x400000u) & nan_);                       \
	})
#define BF16_STORE(V, p, lo, hi)                                                                                       \
	(*(PLDK__ISA(v_u32_at) *)(void *)(p) = BF16_ROUND(lo) >> 16 | (BF16_ROUND(hi) & 0xffff0000u))

/* V, LAYOUT: running values and how they lie in memory. The rest is for PLDK__END(). */
#define KERNEL(NAME, V, LAYOUT, COMBINE, ELEM, ...)                                                                    \
	PLDK__TARGET static void PLDK__ISA(NAME)(char *dst, const char *const *srcs, uint32_t nsrcs, size_t at,        \
						 size_t end)                                                           \
	{                                                                                                              \
		for (; at + 2 * LAYOUT##_BYTES <= end; at += 2 * LAYOUT##_BYTES) {                                     \
			const char *s = srcs[0] + at;                                                                  \
			PLDK__ISA(V) a0 = LAYOUT##_LO(V, s);                                                           \
			PLDK__ISA(V) a1 = LAYOUT##_HI(V, s);                                                           \
			PLDK__ISA(V) a2 = LAYOUT##_LO(V, s + LAYOUT##_BYTES);                                          \
			PLDK__ISA(V) a3 = LAYOUT##_HI(V, s + LAYOUT##_BYTES);                                          \
                                                                                                                       \
			for (uint32_t k = 1; k < nsrcs; k++) {                                                         \
				s = srcs[k] + at;                                                                      \
				PLDK__ISA(V) b0 = LAYOUT##_LO(V, s);                                                   \
				PLDK__ISA(V) b1 = LAYOUT##_HI(V, s);                                                   \
				PLDK__ISA(V) b2 = LAYOUT##_LO(V, s + LAYOUT##_BYTES);                                  \
				PLDK__ISA(V) b3 = LAYOUT##_HI(V, s + LAYOUT##_BYTES);                                  \
                                                                                                                       \
				a0 = COMBINE(a0, b0);                                                                  \
				a1 = COMBINE(a1, b1);                                                                  \
				a2 = COMBINE(a2, b2);                                                                  \
				a3 = COMBINE(a3, b3);                                                                  \
			}                                                                                              \
			LAYOUT##_STORE(V, dst + at, a0, a1);                                                           \
			LAYOUT##_STORE(V, dst + at + LAYOUT##_BYTES, a2, a3);                                          \
		}                                                                                                      \
		if (at + LAYOUT##_BYTES <= end) {                                                                      \
			PLDK__ISA(V) a0 = LAYOUT##_LO(V, srcs[0] + at);                                                \
			PLDK__ISA(V) a1 = LAYOUT##_HI(V, srcs[0] + at);                                                \
                                                                                                                       \
			for (uint32_t k = 1; k < nsrcs; k++) {                                                         \
				PLDK__ISA(V) b0 = LAYOUT##_LO(V, srcs[k] + at);                                        \
				PLDK__ISA(V) b1 = LAYOUT##_HI(V, srcs[k] + at);                                        \
                                                                                                                       \
				a0 = COMBINE(a0, b0);                                                                  \
				a1 = COMBINE(a1, b1);                                                                  \
			}                                                                                              \
			LAYOUT##_STORE(V, dst + at, a0, a1);                                                           \
			at += LAYOUT##_BYTES;                                                                          \
		}                                                                                                      \
		PLDK__END(NAME, ELEM, __VA_ARGS__)                                                                     \
	}

#define KERNELS_FLOAT(NAME, V, LAYOUT, ELEM, WORK, GET, PUT)                                                           \
	KERNEL(NAME##_sum, V, LAYOUT, COMBINE_SUM, ELEM, WORK, GET, ONE_SUM, PUT)                                      \
	KERNEL(NAME##_max, V, LAYOUT, COMBINE_FMAX, ELEM, WORK, GET, ONE_FMAX, PUT)                                    \
	KERNEL(NAME##_min, V, LAYOUT, COMBINE_FMIN, ELEM, WORK, GET, ONE_FMIN, PUT)                                    \
	KERNEL(NAME##_prod, V, LAYOUT, COMBINE_PROD, ELEM, WORK, GET, ONE_PROD, PUT)

/* U is V with unsigned elements: integers wrap. One by one they are widened, which wraps alike. */
#define KERNELS_INT(NAME, V, U, ELEM)                                                                                  \
	KERNEL(NAME##_sum, U, PLAIN, COMBINE_SUM, ELEM, uint64_t, GET_PLAIN, ONE_SUM, PUT_PLAIN)                       \
	KERNEL(NAME##_max, V, PLAIN, COMBINE_MAX, ELEM, ELEM, GET_PLAIN, ONE_MAX, PUT_PLAIN)                           \
	KERNEL(NAME##_min, V, PLAIN, COMBINE_MIN, ELEM, ELEM, GET_PLAIN, ONE_MIN, PUT_PLAIN)                           \
	KERNEL(NAME##_prod, U, PLAIN, COMBINE_PROD, ELEM, uint64_t, GET_PLAIN, ONE_PROD, PUT_PLAIN)

KERNELS_FLOAT(fp64, v_f64, PLAIN, double, double, GET_PLAIN, PUT_PLAIN)
KERNELS_FLOAT(fp32, v_f32, PLAIN, float, float, GET_PLAIN, PUT_PLAIN)
KERNELS_FLOAT(fp16, v_f32, FP16, uint16_t, float, GET_FP16, PUT_FP16)
KERNELS_FLOAT(bf16, v_f32, BF16, uint16_t, float, GET_BF16, PUT_BF16)
KERNELS_INT(int8, v_s8, v_u8, int8_t)
KERNELS_INT(int16, v_s16, v_u16, int16_t)
KERNELS_INT(int32, v_s32, v_u32, int32_t)
KERNELS_INT(int64, v_s64, v_u64, int64_t)
KERNELS_INT(uint8, v_u8, v_u8, uint8_t)

#define ROW(NAME)                                                                                                      \
	{                                                                                                              \
		[PLDK_SUM] = PLDK__ISA(NAME##_sum), [PLDK_MAX] = PLDK__ISA(NAME##_max),                                \
		[PLDK_MIN] = PLDK__ISA(NAME##_min), [PLDK_PROD] = PLDK__ISA(NAME##_prod),                              \
	}

static const struct kernels PLDK__ISA(kernels) = {
	.fn = {
		[PLDK_FP64] = ROW(fp64),
		[PLDK_FP32] = ROW(fp32),
		[PLDK_FP16] = ROW(fp16),
		[PLDK_BF16] = ROW(bf16),
		[PLDK_INT8] = ROW(int8),
		[PLDK_INT16] = ROW(int16),
		[PLDK_INT32] = ROW(int32),
		[PLDK_INT64] = ROW(int64),
		[PLDK_UINT8] = ROW(uint8),
	},
};

#undef ROW
#undef KERNELS_INT
#undef KERNELS_FLOAT
#undef KERNEL
#undef BF16_STORE
#undef BF16_ROUND
#undef BF16_HI
#undef BF16_LO
#undef BF16_BYTES
#undef FP16_STORE
#undef FP16_HI
#undef FP16_LO
#undef FP16_BYTES
#undef PLAIN_STORE
#undef PLAIN_HI
#undef PLAIN_LO
#undef PLAIN_BYTES
#undef VECTOR
#undef PLDK__ISA
#undef PLDK__TARGET
#undef PLDK__WIDTH
#undef PLDK__END
#undef PLDK__FP16_LO
#undef PLDK__FP16_HI
#undef PLDK__FP16_STORE
