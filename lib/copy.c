// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The one copy routine for memory that ranks share.
 *
 * Why not memcpy: a line that a peer has read is Shared in its cache, and an ordinary store (of any width) must first
 * take it back. Between cores without a common last-level cache that costs about five times what the copy itself does.
 * `rep movsb` writes whole lines without reading them first, but only once a single instruction covers a few KiB; libc
 * leaves that path again at sizes that its tunables decide (1 MiB on some machines). Hence: one instruction a call
 * from MOVSB_MIN on, memcpy below. Callers pass whole pieces and do not split them further.
 *
 * Ordering: on x86 the stores of `rep movsb` may pass each other but not a later store, so the release of the notify
 * that follows covers them.
 */
#include "provider.h"

#include <string.h>

/* Below this the start-up of the string instruction costs more than it saves. */
#define MOVSB_MIN 4096u

/**
 * pldk__copy() - copy into memory that another rank will read or has read
 * @dst: where to; must not overlap @src
 * @src: where from
 * @len: bytes, may be 0
 */
void pldk__copy(void *dst, const void *src, size_t len)
{
#if defined(__x86_64__) || defined(__i386__)
	if (len >= MOVSB_MIN) {
		__asm__ __volatile__("rep movsb" : "+D"(dst), "+S"(src), "+c"(len) : : "memory");
		return;
	}
#endif
	if (len)
		memcpy(dst, src, len);
}
