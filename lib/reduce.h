/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Element kernels of the reductions. See lib/reduce.c.
 */
#ifndef _PLDK_REDUCE_H
#define _PLDK_REDUCE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Combine the elements of nsrcs >= 1 sources of len bytes in the order given. dst may be one of them, or must not
 * overlap them.
 */
void pldk__reduce(void *dst, const void *const *srcs, uint32_t nsrcs, size_t len, uint32_t dtype, uint32_t op);

#endif /* _PLDK_REDUCE_H */
