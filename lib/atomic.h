/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Every access to a word that another rank or thread may change goes through here. No volatile, no barriers of one's
 * own elsewhere: a check greps for them. The letters (A)..(D) are explained in kmod/wait.c, "Sleeping and waking".
 */
#ifndef _PLDK_ATOMIC_H
#define _PLDK_ATOMIC_H

#include <stdint.h>

#define pldk__load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define pldk__load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define pldk__load_seq(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define pldk__store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define pldk__store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define pldk__store_seq(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define pldk__add_relaxed(p, v) __atomic_add_fetch((p), (v), __ATOMIC_RELAXED)
#define pldk__add_seq(p, v) __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)
#define pldk__sub_seq(p, v) __atomic_sub_fetch((p), (v), __ATOMIC_SEQ_CST)
#define pldk__or_seq(p, v) __atomic_or_fetch((p), (v), __ATOMIC_SEQ_CST)
#define pldk__xchg_seq(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)

/* Compare and swap; *expected becomes what was there. True if it swapped. */
#define pldk__cas_seq(p, expected, v)                                                                                  \
	__atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)

#define pldk__fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define pldk__fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
#define pldk__fence_seq() __atomic_thread_fence(__ATOMIC_SEQ_CST)
/* Orders a thread with its own POSIX signal handlers and with whoever stops it; costs nothing. */
#define pldk__fence_signal() __atomic_signal_fence(__ATOMIC_SEQ_CST)

static inline void pldk__pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

#if __GCC_ATOMIC_LLONG_LOCK_FREE != 2 || __GCC_ATOMIC_INT_LOCK_FREE != 2
#error "cells need lock-free 32- and 64-bit atomics"
#endif

#endif /* _PLDK_ATOMIC_H */
