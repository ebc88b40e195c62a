/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What tests of abuse share: a call that must not be made gives one exact errno and a sentence of its own and writes
 * none of its outputs; the world works afterwards. tools/check-map.sh reads the names in lib_abuse*_test.c.
 */
#ifndef _PLDK_TEST_ABUSE_H
#define _PLDK_TEST_ABUSE_H

#define PLDK_NO_SITES
#include <limits.h>

#include "pldk_test.h"

#define FAR_TOO_MANY ((size_t)-1)

static struct pldk_site here = { "abuse.c", "abuse", 1, 0 };

/* Everything that a call may write to, and how it was before. */
static __thread struct outputs {
	int64_t cells[8];
	int64_t old;
	int64_t value;
	int64_t data[64];
	size_t index;
	int fd;
	uint8_t token[16];
	struct pldk_domain *domain;
	struct pldk_window *window;
	struct pldk_handle *handle;
	struct pldk_tensor tensor;
	struct pldk_dtensor view;
	struct pldk_member member;
	struct pldk_limits limits;
	struct pldk_event events[2];
} out, before;

static void poison_outputs(void)
{
	memset(&out, 0x5a, sizeof(out));
	before = out;
}

/* A sentence that no call in this file gives, so that a call which gives none is found out. */
static void forget_sentence(void)
{
	int fd = -1;

	pldk_world_create(-424242, NULL, &fd);
}

/* The call gives this errno, says why, and writes nothing. */
#define ABUSE(expected, call)                                                                                          \
	do {                                                                                                           \
		poison_outputs();                                                                                      \
		forget_sentence();                                                                                     \
		EXPECT_RET(expected, call);                                                                            \
		EXPECT_TRUE(*pldk_last_error() && !strstr(pldk_last_error(), "-424242"))                               \
		TH_LOG("%s: no sentence of its own: \"%s\"", #call, pldk_last_error());                                \
		EXPECT_EQ(0, memcmp(&out, &before, sizeof(out))) TH_LOG("%s wrote an output", #call);                  \
	} while (0)

/* The same for a function that exists with a call site as well. */
#define BOTH(expected, op, ...)                                                                                        \
	do {                                                                                                           \
		ABUSE(expected, op(__VA_ARGS__));                                                                      \
		ABUSE(expected, op##_at(&here, __VA_ARGS__));                                                          \
		ABUSE(expected, op##_at(NULL, __VA_ARGS__));                                                           \
	} while (0)

/* And for a collective, which can be started, too. */
#define FORMS(expected, timeout, op, ...)                                                                              \
	do {                                                                                                           \
		BOTH(expected, op, __VA_ARGS__, timeout);                                                              \
		BOTH(expected, op##_start, __VA_ARGS__, NULL, &out.handle);                                            \
	} while (0)

#define T PLDK_TRY
#define IN ((const void *)before.data)
#define N 4

/* The world still does what it is for. */
static void works(struct __test_metadata *_metadata, struct pldk_domain *world)
{
	int32_t sum = pldk_rank(world);
	int size = pldk_size(world);

	ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, &sum, 1, PLDK_INT32, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	ASSERT_EQ(size * (size - 1) / 2, sum);
}

/* Options whose size is wrong, or that ask for what this library does not know. */
static void *bad_options(char *room, size_t size, const void *init, size_t init_size, int tail)
{
	memset(room, 0, 4096);
	memcpy(room, init, init_size);
	if (tail)
		room[init_size] = 1;
	memcpy(room, &size, sizeof(size));
	return room;
}

#endif /* _PLDK_TEST_ABUSE_H */
