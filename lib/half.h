/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * 16-bit floats by integer arithmetic: IEEE binary16 and bfloat16 to binary32 and back, rounding to nearest even.
 *
 * Widening is exact. Narrowing overflows to infinity, keeps subnormals, and keeps a NaN a (quiet) NaN with the upper
 * bits of its payload: the same bits as the F16C instructions give, so that a result does not depend on the processor.
 */
#ifndef _PLDK_HALF_H
#define _PLDK_HALF_H

#include <stdint.h>
#include <string.h>

static inline float pldk__float_of_bits(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static inline uint32_t pldk__bits_of_float(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static inline float pldk__float_of_bf16(uint16_t h)
{
	return pldk__float_of_bits((uint32_t)h << 16);
}

static inline uint16_t pldk__bf16_of_float(float f)
{
	uint32_t x = pldk__bits_of_float(f);

	if ((x & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(x >> 16 | 0x40u);
	return (uint16_t)((x + 0x7fffu + (x >> 16 & 1u)) >> 16);
}

static inline float pldk__float_of_fp16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
	uint32_t exponent = h >> 10 & 0x1fu;
	uint32_t fraction = h & 0x3ffu;

	if (exponent == 0x1fu)
		return pldk__float_of_bits(sign | 0x7f800000u | fraction << 13 | (fraction ? 0x400000u : 0));
	if (exponent)
		return pldk__float_of_bits(sign | (exponent + 112u) << 23 | fraction << 13);
	/* Subnormal: fraction * 2^-24 is exact in binary32. */
	return pldk__float_of_bits(sign | pldk__bits_of_float((float)fraction * 0x1p-24f));
}

static inline uint16_t pldk__fp16_of_float(float f)
{
	uint32_t x = pldk__bits_of_float(f);
	uint32_t sign = x >> 16 & 0x8000u;
	uint32_t magnitude = x & 0x7fffffffu;

	if (magnitude > 0x7f800000u)
		return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
	if (magnitude >= 0x477ff000u) /* 65520 and more round to infinity */
		return (uint16_t)(sign | 0x7c00u);
	if (magnitude < 0x38800000u) {
		/* Below 2^-14: adding 0.5 aligns the last bit kept with binary32's last bit, so that the FPU rounds. */
		uint32_t rounded = pldk__bits_of_float(pldk__float_of_bits(magnitude) + 0.5f);

		return (uint16_t)(sign | (rounded - 0x3f000000u));
	}
	magnitude += 0xfffu + (magnitude >> 13 & 1u);
	return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
}

#endif /* _PLDK_HALF_H */
