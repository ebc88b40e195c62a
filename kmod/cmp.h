/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later OR MIT */
/*
 * The wait predicates, once for pld.ko and the library.
 */
#ifndef _PLD_CMP_H
#define _PLD_CMP_H

#include <linux/pld.h>
#include <linux/types.h>

/* value CMP expected. An unknown number counts as PLD_CMP_LT: callers have checked it. */
static inline int pld_cmp_holds(__s64 value, __u32 cmp, __s64 expected)
{
	switch (cmp) {
	case PLD_CMP_EQ:
		return value == expected;
	case PLD_CMP_GE:
		return value >= expected;
	case PLD_CMP_NE:
		return value != expected;
	case PLD_CMP_GT:
		return value > expected;
	case PLD_CMP_LE:
		return value <= expected;
	default:
		return value < expected;
	}
}

#endif /* _PLD_CMP_H */
