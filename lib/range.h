/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What both providers need: addresses for windows (range.c), how much memory is left (limits.c), errno kept.
 */
#ifndef _PLDK_RANGE_H
#define _PLDK_RANGE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include <pldk/domain.h>

/* Providers keep errno, whatever the system calls in between do to it. */
#define pldk__keep_errno(call)     \
	(__extension__({           \
		int keep_ = errno; \
		int ret_ = (call); \
		errno = keep_;     \
		ret_;              \
	}))

void *pldk__range_take(uint64_t bytes);
void pldk__range_give(void *addr, uint64_t bytes);
const char *pldk__range_why(int err, char *buf, size_t len);
void pldk__limits_memory(struct pldk_limits *limits);

#endif /* _PLDK_RANGE_H */
