// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The sizes of the collectives: slots of the outbox, chunks, how many are under way. All ranks must come to the same
 * numbers, so they follow from what is equal on all: ranks, arguments, and whether ranks share a CPU
 * (domain->is_shared; shares_cpu and has_far differ from rank to rank).
 *
 * Where every rank has a CPU of its own, chunks overlap: while the peers read one, the next is written. They are small
 * enough that those under way stay in the second-level cache, and not below 16 KiB, where the cost of handing over a
 * line rises (copy.c). Where ranks share a CPU, each number costs a switch of processes on each CPU, which is more than
 * copying half a MiB: few large chunks, one at a time.
 */
#include "coll.h"

#define ALIGN UINT64_C(64)
#define DEEP_SLOTS (2u * PLDK__LOOK)
#define DEEP_SLOT_BYTES (128u << 10)
#define FLAT_SLOTS 2u
#define FLAT_BYTES (32u << 20)		/* one slot of each rank together */
#define FLAT_SLOT_MIN (32u << 10)	/* holds 1,024 rows of 32 bytes, and 1,024 counts */
#define FLAT_SLOT_MAX (1u << 20)
#define DIRECT_BYTES (64u << 10)	/* of the larger buffer */
#define DIRECT_SHARED_COMBINE (256u << 10) /* the same where ranks share a CPU */
#define DIRECT_SHARED_MOVE (512u << 10)
#define TWO_PHASE_BYTES (256u << 10)	/* a block of each rank together */
#define TWO_PHASE_PAIR_BYTES (2u << 20)	/* the same for two ranks */

/* Several numbers under way: there must be cells for them (announce.c), and a CPU for each rank. */
static bool is_deep(const struct pldk_domain *domain)
{
	return !domain->is_shared && domain->depth >= 2 * PLDK__LOOK;
}

/**
 * pldk__coll_geometry() - the outbox of a rank
 * @out_slots: at least twice the numbers under way: see coll_slot.c
 */
void pldk__coll_geometry(const struct pldk_domain *domain, uint32_t *out_slots, uint32_t *out_slot_bytes)
{
	uint32_t bytes = FLAT_BYTES / domain->nranks & ~4095u;

	_Static_assert(DEEP_SLOTS >= 2 * PLDK__LOOK && FLAT_SLOTS >= 2, "slots are written while they are read");
	if (is_deep(domain)) {
		*out_slots = DEEP_SLOTS;
		*out_slot_bytes = DEEP_SLOT_BYTES;
		return;
	}
	*out_slots = FLAT_SLOTS;
	*out_slot_bytes = bytes < FLAT_SLOT_MIN ? FLAT_SLOT_MIN : bytes > FLAT_SLOT_MAX ? FLAT_SLOT_MAX : bytes;
}

/*
 * Two-phase reads 2 N where flat reads P N, but takes a number more. Measured, flat / two-phase (2 CPUs, shm, private
 * FP32, medians of one interleaved run):
 *
 *           16 KiB  64 KiB  256 KiB  1 MiB  4 MiB
 *   P = 2    0.81    0.97    0.96    1.04   1.12
 *   P = 3    0.77    0.96    1.25    1.13   1.25
 *   P = 4    0.83    0.98    1.34    1.35   1.67
 *   P = 8    0.79    1.29    1.86    2.36   2.29
 */
static bool is_two_phase(const struct pldk__coll *coll)
{
	const uint32_t op = coll->args.op;
	uint32_t nranks = coll->domain->nranks;

	if ((op != PLDK_EV_ALLREDUCE && op != PLDK_EV_REDUCE) || nranks == 1 || !coll->len)
		return false;
	if (op == PLDK_EV_ALLREDUCE && coll->args.mode != PLDK_MODE_AUTO)
		return coll->args.mode == PLDK_MODE_TWO_PHASE;
	return coll->len >= (nranks > 2 ? TWO_PHASE_BYTES : TWO_PHASE_PAIR_BYTES) / nranks;
}

static bool is_ring(const struct pldk__coll *coll)
{
	return coll->args.op == PLDK_EV_ALLREDUCE && coll->args.mode == PLDK_MODE_RING && coll->domain->nranks > 1 &&
	       coll->len;
}

/*
 * Working on the buffers where they are saves the copies, but takes a number at the end, and one at the beginning in
 * vain if it cannot be. Measured, direct / staged (2 CPUs, shm, windows, all data touched, medians of one interleaved
 * run; sizes are of the larger buffer):
 *
 *                          32 KiB  64 KiB  128 KiB  512 KiB  4 MiB
 *   allreduce       P = 2    1.05    0.86     0.76              0.56
 *   reduce_scatter  P = 2    0.96    0.76     0.85              0.64
 *   broadcast       P = 2    0.96    0.94     0.81              0.73
 *   allgather       P = 2    1.02    1.02     0.97              0.77
 *   allreduce       P = 8    1.11             1.02     0.83     0.57
 *   reduce_scatter  P = 8    1.28             0.98     0.75     0.56
 *   broadcast       P = 8    1.72             1.19     1.04     1.00
 *   allgather       P = 8    1.67             1.31     1.04     0.93
 */
static bool is_direct(const struct pldk__coll *coll)
{
	bool has_rows = coll->rule->has_in_rows || coll->rule->has_out_rows;
	uint64_t bytes = coll->len * (has_rows ? coll->domain->nranks : 1);
	uint64_t least = DIRECT_BYTES;

	if (coll->domain->is_shared)
		least = coll->rule->kind == PLDK__COLL_COMBINE ? DIRECT_SHARED_COMBINE : DIRECT_SHARED_MOVE;
	return bytes >= least && pldk__direct_can(coll);
}

static void choose_staged(struct pldk__coll *coll)
{
	uint64_t rows = coll->rule->has_in_rows ? coll->domain->nranks : 1;
	uint64_t bytes = coll->len * rows;
	uint64_t most;
	uint32_t slots;
	uint32_t slot_bytes;

	pldk__coll_geometry(coll->domain, &slots, &slot_bytes);
	if (is_two_phase(coll)) {
		coll->step = pldk__two_phase_step;
		pldk__two_phase_plan(coll, slot_bytes);
		return;
	}
	/* Where a carrier may be late, a number must have been told to all before the next is. */
	coll->look = is_deep(coll->domain) && !coll->domain->is_spread ? PLDK__LOOK : 1;
	if (is_ring(coll)) {
		coll->step = pldk__ring_step;
		pldk__ring_plan(coll, slot_bytes, coll->look);
		return;
	}
	coll->is_inline = coll->len <= PLDK__INLINE && !coll->domain->is_spread && !coll->args.send_counts &&
			  !(coll->domain->nrounds && coll->rule->has_in_rows);
	most = slot_bytes;
	if (coll->look > 1 && bytes > (32u << 10))
		most = bytes <= (256u << 10) ? 32u << 10 : 64u << 10;
	coll->chunk = most / rows;
	/* A multiple of every element size; of a line, if there is room. */
	coll->chunk &= coll->chunk >= ALIGN ? ~(ALIGN - 1) : ~UINT64_C(7);
	if (coll->chunk > coll->len)
		coll->chunk = coll->len;
	coll->chunks = pldk__flat_chunks(coll);
}

/**
 * pldk__coll_choose() - algorithm, chunk and look of a call whose arguments are checked
 */
void pldk__coll_choose(struct pldk__coll *coll)
{
	choose_staged(coll);
	if (is_direct(coll)) {
		coll->staged = coll->step;
		coll->step = pldk__direct_step;
	}
}
