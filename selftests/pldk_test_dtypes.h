/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Element types for the conformance suite, slow and plain: a second opinion that shares no line with the library.
 */
#ifndef _PLDK_TEST_DTYPES_H
#define _PLDK_TEST_DTYPES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <pldk/types.h>

#define PT_DTYPES 9 /* PLDK_FP64 .. PLDK_UINT8 */

static inline float pt_from_bf16(uint16_t h)
{
	uint32_t bits = (uint32_t)h << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* Round to nearest, ties to even. */
static inline uint16_t pt_to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	if (f != f)
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float pt_from_fp16(uint16_t h)
{
	int exponent = h >> 10 & 31, fraction = h & 1023;
	float f;

	if (exponent == 31)
		f = fraction ? NAN : INFINITY;
	else if (exponent)
		f = ldexpf((float)(1024 + fraction), exponent - 25);
	else
		f = ldexpf((float)fraction, -24);
	return h & 0x8000 ? -f : f;
}

static inline uint16_t pt_to_fp16(float f)
{
	uint16_t sign = signbit(f) ? 0x8000 : 0;
	int exponent;
	float a = fabsf(f), steps;

	if (f != f)
		return sign | 0x7e00;
	if (a >= 65520.0f)
		return sign | 0x7c00;
	frexpf(a, &exponent);
	if (exponent < -13)
		exponent = -13;
	/* In steps of one unit in the last place; nearbyint is to nearest even, and a carry moves on by itself. */
	steps = nearbyintf(ldexpf(a, 11 - exponent));
	if (steps < 1024)
		return (uint16_t)(sign | (int)steps);
	return (uint16_t)(sign | (((exponent + 13) << 10) + (int)steps));
}

/* Element i as a number. INT64 beyond 2^53 does not fit: such tests compare bits. */
static inline double pt_load(enum pldk_dtype dtype, const void *data, size_t i)
{
	switch (dtype) {
	case PLDK_FP64:
		return ((const double *)data)[i];
	case PLDK_FP32:
		return (double)((const float *)data)[i];
	case PLDK_FP16:
		return (double)pt_from_fp16(((const uint16_t *)data)[i]);
	case PLDK_BF16:
		return (double)pt_from_bf16(((const uint16_t *)data)[i]);
	case PLDK_INT8:
		return ((const int8_t *)data)[i];
	case PLDK_INT16:
		return ((const int16_t *)data)[i];
	case PLDK_INT32:
		return ((const int32_t *)data)[i];
	case PLDK_INT64:
		return (double)((const int64_t *)data)[i];
	case PLDK_UINT8:
		return ((const uint8_t *)data)[i];
	}
	return 0;
}

/* Integers wrap. */
static inline void pt_store(enum pldk_dtype dtype, void *data, size_t i, double value)
{
	switch (dtype) {
	case PLDK_FP64:
		((double *)data)[i] = value;
		break;
	case PLDK_FP32:
		((float *)data)[i] = (float)value;
		break;
	case PLDK_FP16:
		((uint16_t *)data)[i] = pt_to_fp16((float)value);
		break;
	case PLDK_BF16:
		((uint16_t *)data)[i] = pt_to_bf16((float)value);
		break;
	case PLDK_INT8:
		((int8_t *)data)[i] = (int8_t)(int64_t)value;
		break;
	case PLDK_INT16:
		((int16_t *)data)[i] = (int16_t)(int64_t)value;
		break;
	case PLDK_INT32:
		((int32_t *)data)[i] = (int32_t)(int64_t)value;
		break;
	case PLDK_INT64:
		((int64_t *)data)[i] = (int64_t)value;
		break;
	case PLDK_UINT8:
		((uint8_t *)data)[i] = (uint8_t)(int64_t)value;
		break;
	}
}

#endif /* _PLDK_TEST_DTYPES_H */
