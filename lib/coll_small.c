// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The short way of a collective that takes one number, when a program makes the same one again.
 *
 * It does what the flat algorithm does, with the same words in the same order (coll_flat.c, announce.c): check the
 * buffers, write the ledger, tell every peer, look for their cells, take. What it leaves out is what the last call has
 * found out already (coll->is_planned), and all that can only be otherwise after something unusual: it is taken only
 * when nothing is open, started, failed or to be woken. Whatever then turns out unusual (a peer that is late or says
 * something else) is left to the driver, for which everything is in place as if it had announced the number itself.
 */
#include "coll.h"
#include "reduce.h"

#include <string.h>

#define RANKS_MAX 8u

/**
 * pldk__small_plan() - may calls with the same numbers go the short way? At the end of choosing
 */
void pldk__small_plan(struct pldk__coll *coll)
{
	const struct pldk__coll_rule *rule = coll->rule;
	const struct pldk_domain *domain = coll->domain;

	coll->is_small = coll->step == pldk__flat_step && coll->chunks == 1 && !domain->is_spread &&
			 domain->nranks > 1 && domain->nranks <= RANKS_MAX && !coll->args.signal &&
			 !pldk__call_is_full(&coll->call);
	coll->takes_one = coll->args.op == PLDK_EV_BROADCAST ||
			  (rule->in_place == PLDK__COLL_ALL && !rule->has_in_rows && !rule->has_out_rows);
	coll->gives = coll->is_inline && coll->len && pldk__coll_is(domain, coll->args.root, coll->rule->reads);
}

/* Most blocks are one element: then the length is known here. */
static inline void copy_block(void *to, const void *from, uint64_t len)
{
	if (len == 8)
		memcpy(to, from, 8);
	else if (len == 4)
		memcpy(to, from, 4);
	else
		memcpy(to, from, len);
}

/* The cells of a number at a rank, one from each. */
static struct pld_cell *cells_at(const struct pldk_domain *domain, uint32_t rank, uint64_t number)
{
	char *slab = domain->epochs->base + rank * domain->epochs->stride; /* all are near */

	return (struct pld_cell *)(void *)slab + pldk__epoch_index(domain, number, 0);
}

static void tell(struct pldk__coll *coll, uint64_t number, int64_t value)
{
	struct pldk_domain *domain = coll->domain;
	const char *input = coll->args.input;
	const uint64_t stride = coll->rule->has_in_rows ? coll->len : 0;

	for (uint32_t rank = 0; rank < domain->nranks; rank++) {
		struct pld_cell *cell = cells_at(domain, rank, number) + domain->rank;

		if (rank == domain->rank) {
			if (coll->gives)
				copy_block(coll->own, input + rank * stride, coll->len);
			continue;
		}
		if (coll->gives)
			copy_block(cell->payload, input + rank * stride, coll->len);
		if (pldk__unlikely(pldk__cell_notify(cell, PLD_NOTIFY_SET, value, domain->rank)))
			domain->wakes[domain->nwakes++] = (struct pldk__wake){
				domain->epochs, rank, pldk__epoch_index(domain, number, domain->rank)
			};
	}
}

/* Has everybody said the value? Looks for a moment. */
static bool look(const struct pldk_domain *domain, const struct pld_cell *cells, int64_t value)
{
	for (uint32_t rank = 0, turn = 1; rank < domain->nranks; rank++) {
		while (rank != domain->rank && pldk__load_acquire(&cells[rank].value) != value) {
			if (turn++ == PLDK__LOOKS)
				return false;
			if (turn % PLDK__LOOKS_PER_PAUSE == 0)
				pldk__pause();
		}
	}
	return true;
}

/* Everybody's part is here. */
static int take(struct pldk__coll *coll, const struct pld_cell *cells)
{
	const struct pldk_domain *domain = coll->domain;
	const struct pldk__coll_args *args = &coll->args;
	const void *sources[RANKS_MAX];

	if (!coll->len)
		return 0;
	if (!coll->is_inline || args->op != PLDK_EV_ALLREDUCE)
		return pldk__flat_take(coll);
	for (uint32_t rank = 0; rank < domain->nranks; rank++)
		sources[rank] = rank == domain->rank ? (const void *)coll->own : cells[rank].payload;
	pldk__reduce(args->output, sources, domain->nranks, coll->len, args->dtype, args->reduce);
	return 0;
}

/**
 * pldk__small_run() - a call that is like the last one
 * @coll: is_planned and is_small
 * @args: its buffers are checked
 *
 * Return: as pldk__coll_drive().
 */
int pldk__small_run(struct pldk__coll *coll, const struct pldk__coll_args *args, uint32_t site, bool *out_at_once)
{
	struct pldk_domain *domain = coll->domain;
	const uint64_t number = domain->seq + 1;
	const struct pld_cell *cells = cells_at(domain, domain->rank, number);
	const int64_t value = (int64_t)(number << PLDK__DIGEST_BITS) | pldk__digest_at(coll->digest, 0);

	coll->args.input = args->input;
	coll->args.output = args->output;
	coll->call.site = site;
	coll->call.err = 0;
	coll->call.phase = 0;
	coll->first = number;
	coll->given = 0;
	coll->taken = 0;
	coll->passed = 0;
	coll->is_open = false;
	if (!coll->is_inline)
		pldk__flat_give(coll);
	coll->given = 1;
	domain->told = value;
	domain->announced = number;
	domain->ntold = domain->nranks - 1;
	domain->seq = number;
	pldk__ledger_write(domain, number, &coll->call);
	tell(coll, number, value);
	/* Lines travel while the counter is read. */
	for (uint32_t rank = 0; rank < domain->nranks; rank++)
		__builtin_prefetch(&cells[rank]);
	pldk__coll_stamp(domain);
	if (pldk__unlikely(domain->nwakes || domain->shares_cpu || !domain->spin_ns) || !look(domain, cells, value))
		return pldk__coll_drive(coll, false);
	domain->met = number;
	*out_at_once = true;
	return take(coll, cells);
}
