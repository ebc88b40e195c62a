/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Types that every other header of pldk uses: element types, operations, tensors, timeouts, call sites.
 *
 * All functions of the library return 0 (or a count) on success and a negative errno otherwise; each errno has one
 * meaning (pldk(7)), and pldk_last_error() has the sentence. Outputs are written only on success. errno is preserved.
 */
#ifndef _PLDK_TYPES_H
#define _PLDK_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pldk_domain; /* an ordered set of ranks, seen by one of them */
struct pldk_window; /* one slab a rank, same size on each */
struct pldk_handle; /* a transfer that completes later */

#define PLDK_MAX_DIMS 8
#define PLDK_MAX_RANKS 1024

/* Timeouts are relative, in nanoseconds. */
#define PLDK_TRY INT64_C(0)                       /* ask once: -EAGAIN instead of waiting */
#define PLDK_FOREVER INT64_C(-1)                  /* any negative number but the next */
#define PLDK_TIMEOUT_DEFAULT INT64_MIN            /* PLDK_TIMEOUT_MS, or pldk_set_timeout(); for ever if unset */
#define PLDK_MS(n) ((int64_t)(n) * INT64_C(1000000))
#define PLDK_SEC(n) ((int64_t)(n) * INT64_C(1000000000))

#define PLDK_RANK_ANY (-1)

/** enum pldk_dtype - element types. 0 is none, so that a forgotten dtype is an error. Values are never reused. */
enum pldk_dtype {
	PLDK_FP64 = 1,
	PLDK_FP32 = 2,
	PLDK_FP16 = 3,
	PLDK_BF16 = 4,
	PLDK_INT8 = 5,
	PLDK_INT16 = 6,
	PLDK_INT32 = 7,
	PLDK_INT64 = 8,
	PLDK_UINT8 = 9
};

/** enum pldk_reduce_op - how a reduction combines elements */
enum pldk_reduce_op { PLDK_SUM = 0, PLDK_MAX = 1, PLDK_MIN = 2, PLDK_PROD = 3 };

/**
 * enum pldk_notify_op - what a notify does to the cell. ADD when several ranks notify one cell, SET for 1:1 exchanges
 */
enum pldk_notify_op { PLDK_NOTIFY_ADD = 0, PLDK_NOTIFY_SET = 1 };

/** enum pldk_cmp - a wait ends when (value CMP expected), signed 64-bit */
enum pldk_cmp { PLDK_EQ = 0, PLDK_GE = 1, PLDK_NE = 2, PLDK_GT = 3, PLDK_LE = 4, PLDK_LT = 5 };

/** enum pldk_atomic - how a store combines with what is there */
enum pldk_atomic { PLDK_ATOMIC_NONE = 0, PLDK_ATOMIC_ADD = 1 };

/**
 * struct pldk_tensor - elements in the caller's own memory, row-major and dense
 * @magic: set by pldk_tensor_of(); checked by every call, so that a view passed by a cast is refused (-EDOM)
 * @dtype: enum pldk_dtype
 * @ndim: 1..PLDK_MAX_DIMS
 * @shape: extents in elements, each >= 0
 * @data: first element
 * @reserved64: zero, as @reserved
 */
struct pldk_tensor {
	uint32_t magic;
	uint32_t dtype;
	uint32_t ndim;
	uint32_t reserved;
	int64_t shape[PLDK_MAX_DIMS];
	void *data;
	uint64_t reserved64[4];
};

/**
 * struct pldk_dtensor - a view: shape and dtype laid over a window, the same on every rank
 * @magic: set by pldk_view(); another one than a tensor's
 * @dtype: enum pldk_dtype
 * @ndim: 1..PLDK_MAX_DIMS
 * @generation: of the window; a view of a destroyed window, or of one of a closed domain, is -ESTALE
 * @shape: extents in elements; symbols are resolved
 * @offset: bytes from the start of each rank's slab
 * @window: what it lies over
 * @reserved64: zero
 *
 * Different C types on purpose: passing one for the other does not compile. Both are plain values: copy them freely.
 */
struct pldk_dtensor {
	uint32_t magic;
	uint32_t dtype;
	uint32_t ndim;
	uint32_t generation;
	int64_t shape[PLDK_MAX_DIMS];
	uint64_t offset;
	struct pldk_window *window;
	uint64_t reserved64[4];
};

/**
 * struct pldk_site - where in the user's program a call stands
 * @file: source file
 * @func: function
 * @line: line
 * @id: number that the library gave to it, 0 before the first use
 */
struct pldk_site {
	const char *file;
	const char *func;
	uint32_t line;
	uint32_t id;
};

/*
 * Every operation exists twice: pldk_op() for function pointers and other languages, and pldk_op_at() with a call
 * site first. A macro of the first name calls the second, so that reports say file:line. -DPLDK_NO_SITES turns the
 * macros off (C inline functions that are not static need that): sites are then return addresses. A wrapper passes its
 * caller's place on with pldk_op_at(). In C++ a site has no function name, because a lambda makes it.
 */
#ifdef __cplusplus
#define PLDK_SITE()                                                                                                    \
	([]() -> struct pldk_site * {                                                                                  \
		static struct pldk_site pldk_site_here_ = { __FILE__, "", __LINE__, 0 };                               \
		return &pldk_site_here_;                                                                               \
	}())
#else
#define PLDK_SITE()                                                                                                    \
	(__extension__({                                                                                               \
		static struct pldk_site pldk_site_here_ = { __FILE__, __func__, __LINE__, 0 };                         \
		&pldk_site_here_;                                                                                      \
	}))
#endif

/** pldk_dtype_size() - bytes of one element; 0 for no dtype */
size_t pldk_dtype_size(enum pldk_dtype dtype);

/** pldk_dtype_name() - "FP32"; "?" for no dtype. Never NULL */
const char *pldk_dtype_name(enum pldk_dtype dtype);

/**
 * pldk_tensor_of() - describe memory of one's own
 * @out: the tensor
 * @data: first element; NULL only if an extent is 0
 * @dtype: element type
 * @ndim: 1..PLDK_MAX_DIMS
 * @shape: @ndim extents, each >= 0
 *
 * Return: 0, -EINVAL (NULL, ndim, a negative extent, dtype), -EOVERFLOW (more bytes than memory has addresses).
 */
int pldk_tensor_of(struct pldk_tensor *out, void *data, enum pldk_dtype dtype, int ndim, const int64_t *shape);

#ifdef __cplusplus
}
#endif

#endif /* _PLDK_TYPES_H */
