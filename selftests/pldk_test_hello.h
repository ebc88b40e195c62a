/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What tests of worlds share.
 */
#ifndef _PLDK_TEST_HELLO_H
#define _PLDK_TEST_HELLO_H

#include "pldk_test.h"

/* What every rank of a whole world can do: greet the right neighbour and hear the left one, then a barrier. */
RANK(hello)
{
	struct pldk_window *signal = pt_signal(_metadata, world, 1);
	int64_t value = PT_POISON;

	EXPECT_RET((rank + 1) % size, pldk_right(world));
	EXPECT_RET((rank + size - 1) % size, pldk_left(world));
	ASSERT_OK(pldk_notify(signal, pldk_right(world), 0, PLDK_NOTIFY_ADD, rank + 1));
	ASSERT_OK(pldk_wait(signal, 0, PLDK_GE, 1, PT_LONG));
	ASSERT_OK(pldk_read(signal, 0, &value));
	EXPECT_EQ(pldk_left(world) + 1, value);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

#endif /* _PLDK_TEST_HELLO_H */
