/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* What the tutorial programs share: giving up on an error, and a clock. */
#ifndef _TUTORIAL_COMMON_H
#define _TUTORIAL_COMMON_H

#include <pldk.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/**
 * must() - go on only if a pldk call succeeded
 * @ret: what it returned
 *
 * The sentence says which rank failed in which call and why. Ending without pldk_finalize() is what tells the other
 * ranks: their waits fail at once instead of hanging.
 */
static inline void must(int ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s\n", pldk_last_error());
	exit(1);
}

/** seconds_now() - monotonic time */
static inline double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif /* _TUTORIAL_COMMON_H */
