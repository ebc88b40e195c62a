/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Touching data as programs do: the producer writes all of it before a call, the consumer reads all of it afterwards.
 *
 * Without that, data that nobody changes stays in the reader's cache and a library that maps its peers' memory seems to
 * move it in no time. pldbench and tools/peers/mpi_bench.c both use these, and nothing else of each other.
 *
 * The stores are plain ones of 16 bytes: memset() has instructions that need not fetch the line first, which a program
 * that computes its data has not. The width is in the types, so that options of the compiler change nothing.
 */
#ifndef _PLDK_TOUCH_H
#define _PLDK_TOUCH_H

#include <stddef.h>

typedef float touch_floats __attribute__((vector_size(16), aligned(1), may_alias));
typedef unsigned int touch_words __attribute__((vector_size(16), aligned(1), may_alias));

/**
 * touch_write() - write all bytes, numbers that change from turn to turn
 * @data: where
 * @bytes: how many
 * @turn: number of the call
 */
static inline void touch_write(void *data, size_t bytes, long turn)
{
	float value = 1.0f + (float)(turn & 1);
	touch_floats four = { value, value, value, value }, *at = data;
	char *end = (char *)data + bytes;

	for (; (char *)(at + 4) <= end; at += 4) {
		at[0] = four;
		at[1] = four;
		at[2] = four;
		at[3] = four;
	}
	for (char *rest = (char *)at; rest < end; rest++)
		*rest = ((const char *)&four)[(size_t)(rest - (char *)at) % sizeof(four)];
}

/**
 * touch_read() - read all bytes
 * @data: where
 * @bytes: how many
 *
 * Return: a sum, for the caller to keep where the compiler must think that it matters.
 */
static inline unsigned int touch_read(const void *data, size_t bytes)
{
	const touch_words *at = data;
	const char *end = (const char *)data + bytes;
	touch_words a = { 0 }, b = { 0 };
	unsigned int sum = 0;

	for (; (const char *)(at + 4) <= end; at += 4) {
		a += at[0] + at[1];
		b += at[2] + at[3];
	}
	a += b;
	for (const char *rest = (const char *)at; rest < end; rest++)
		sum += (unsigned char)*rest;
	return sum + a[0] + a[1] + a[2] + a[3];
}

#endif /* _PLDK_TOUCH_H */
