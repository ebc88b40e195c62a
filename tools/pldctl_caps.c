// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * pldctl caps: which collectives there are, as the library itself decides it. One line for each operation, mode and
 * element type, with the reductions that it takes.
 */
#include "pldctl.h"

#include <pldk.h>

#include <stdio.h>

static const enum pldk_event_op ops[] = {
	PLDK_EV_BARRIER, PLDK_EV_ALLREDUCE, PLDK_EV_BROADCAST, PLDK_EV_ALLGATHER, PLDK_EV_REDUCE_SCATTER,
	PLDK_EV_ALL_TO_ALL, PLDK_EV_ALL_TO_ALL_V, PLDK_EV_REDUCE, PLDK_EV_GATHER, PLDK_EV_SCATTER, PLDK_EV_SCAN,
	PLDK_EV_EXSCAN,
};

static const char *const modes[] = {
	[PLDK_MODE_MESH] = "mesh",
	[PLDK_MODE_RING] = "ring",
	[PLDK_MODE_TWO_PHASE] = "two_phase",
	[PLDK_MODE_AUTO] = "auto",
};

static const char *const reductions[] = {
	[PLDK_SUM] = "sum",
	[PLDK_MAX] = "max",
	[PLDK_MIN] = "min",
	[PLDK_PROD] = "prod",
};

#define ENTRIES(array) (sizeof(array) / sizeof((array)[0]))

/* An argument that an operation has no use for can be anything. */
static bool has_mode(enum pldk_event_op op)
{
	return pldk_coll_supported(op, (enum pldk_mode)ENTRIES(modes), PLDK_INT32, PLDK_SUM) != 0;
}

static bool has_dtype(enum pldk_event_op op)
{
	return pldk_coll_supported(op, PLDK_MODE_AUTO, (enum pldk_dtype)(PLDK_UINT8 + 1), PLDK_SUM) != 0;
}

static bool has_reduction(enum pldk_event_op op)
{
	return pldk_coll_supported(op, PLDK_MODE_AUTO, PLDK_INT32, (enum pldk_reduce_op)ENTRIES(reductions)) != 0;
}

static void print_line(enum pldk_event_op op, enum pldk_mode mode, enum pldk_dtype dtype)
{
	bool is_there = false;

	for (size_t r = 0; r < ENTRIES(reductions); r++)
		is_there |= pldk_coll_supported(op, mode, dtype, (enum pldk_reduce_op)r) == 0;
	if (!is_there)
		return;
	printf("%-15s %-10s %s", pldk_event_name(op), has_mode(op) ? modes[mode] : "-",
	       has_dtype(op) ? pldk_dtype_name(dtype) : "-");
	for (size_t r = 0; has_reduction(op) && r < ENTRIES(reductions); r++)
		if (pldk_coll_supported(op, mode, dtype, (enum pldk_reduce_op)r) == 0)
			printf(" %s", reductions[r]);
	printf("\n");
}

/**
 * pldctl_caps() - see pldctl.h
 */
void pldctl_caps(void)
{
	for (size_t o = 0; o < ENTRIES(ops); o++)
		for (int mode = has_mode(ops[o]) ? 0 : PLDK_MODE_AUTO; mode <= PLDK_MODE_AUTO; mode++)
			for (int dtype = PLDK_FP64; dtype <= (has_dtype(ops[o]) ? PLDK_UINT8 : PLDK_FP64); dtype++)
				print_line(ops[o], (enum pldk_mode)mode, (enum pldk_dtype)dtype);
}
