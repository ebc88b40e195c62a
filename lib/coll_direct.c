// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The direct algorithm, for large blocks in windows: nothing is staged, each rank reads the others' buffers where they
 * are and writes results where they belong.
 *
 * Whether it can be is known only when all have said where their buffers are. So the first number of such a call
 * carries no data but each rank's places, in the cells' lines. When it has arrived, every rank knows the same places
 * and comes to the same conclusion. Either all work on the buffers and the second number says that they are through: no
 * rank leaves before, so nobody reads an input or writes a result that its owner has back. Or the algorithm that stages
 * goes on behind the first number. Calls that would do so always (small, far, many ranks) do not ask: coll_table.c.
 *
 * A place can be used when every rank has the window open that it is in, and which it has, a rank says by having a
 * place in it: then its mapping is there. A window of an earlier generation is another window. What is written by
 * others than its owner must not be in a window that only owners write.
 *
 * Who writes what: results of a rank's slice (allreduce, reduce) by that rank, on all; everything else by its owner,
 * but for the half of a broadcast to one other rank that the root brings. Nobody reads a slice but the rank that
 * combines it, so an input may be the output.
 *
 * A rank that was interrupted while it waited for either number has its buffers in the others' hands until it has
 * completed the call, or another collective of the domain (coll.h).
 */
#include "coll.h"
#include "reduce.h"

#include <errno.h>
#include <string.h>

#define RANKS_MAX 8u /* as many as have a line from everybody: announce.c */
#define OWNER_WRITES (UINT32_C(1) << 31)

/**
 * struct place - where a buffer of a rank begins
 * @window: its id + 1, and OWNER_WRITES; 0: in private memory
 */
struct place {
	uint32_t window;
	uint32_t generation;
	uint64_t offset;
};

struct places {
	struct place in;
	struct place out;
};

_Static_assert(sizeof(struct places) <= PLDK__INLINE, "places travel in the line of a cell");

/**
 * struct buffers - what all ranks work on
 * @windows: in which the own buffers are, held; NULL: in none
 * @in, @out: of each rank; NULL if it cannot be used by the others
 */
struct buffers {
	struct pldk_window *windows[2];
	const char *in[RANKS_MAX];
	char *out[RANKS_MAX];
};

/* Whose buffers must be usable. */
static const struct {
	uint8_t in;
	uint8_t out;
} needs[] = {
	[PLDK_EV_ALLREDUCE] = { PLDK__COLL_ALL, PLDK__COLL_ALL },
	[PLDK_EV_BROADCAST] = { PLDK__COLL_ROOT, PLDK__COLL_NOBODY },
	[PLDK_EV_ALLGATHER] = { PLDK__COLL_ALL, PLDK__COLL_NOBODY },
	[PLDK_EV_REDUCE_SCATTER] = { PLDK__COLL_ALL, PLDK__COLL_NOBODY },
	[PLDK_EV_ALL_TO_ALL] = { PLDK__COLL_ALL, PLDK__COLL_NOBODY },
	[PLDK_EV_REDUCE] = { PLDK__COLL_ALL, PLDK__COLL_ROOT },
	[PLDK_EV_GATHER] = { PLDK__COLL_ALL, PLDK__COLL_NOBODY },
	[PLDK_EV_SCATTER] = { PLDK__COLL_ROOT, PLDK__COLL_NOBODY },
};

/**
 * pldk__direct_can() - is there a direct form of the call in this domain? The same on all ranks
 */
bool pldk__direct_can(const struct pldk__coll *coll)
{
	const struct pldk_domain *domain = coll->domain;
	const uint32_t op = coll->args.op;

	if (op >= PLDK__ARRAY_SIZE(needs) || !needs[op].in)
		return false;
	if (op == PLDK_EV_ALLREDUCE && coll->args.mode != PLDK_MODE_AUTO && coll->args.mode != PLDK_MODE_TWO_PHASE)
		return false;
	return domain->nranks > 1 && domain->nranks <= RANKS_MAX && !domain->is_spread;
}

/*
 * The window of this rank's input or output, held, or NULL. A buffer that is not used here has unknown length; it may
 * still name a window that is open.
 */
static struct pldk_window *window_of(const struct pldk__coll *coll, bool is_out)
{
	const struct pldk__coll_args *args = &coll->args;
	const struct pldk__coll_rule *rule = coll->rule;
	bool has_rows = is_out ? rule->has_out_rows : rule->has_in_rows;
	uint64_t len = has_rows ? coll->len * coll->domain->nranks : coll->len;

	if (!pldk__coll_is(coll->domain, args->root, is_out ? rule->writes : rule->reads))
		len = 1;
	return pldk__window_at(coll->domain, is_out ? args->output : args->input, len);
}

static struct place place_in(const struct pldk_window *window, const void *address)
{
	const char *slab = window ? pldk__slab(window->map, window->domain->rank) : NULL;

	if (!window)
		return (struct place){ 0 };
	return (struct place){
		.window = (window->id + 1) | (window->flags & PLD_WINDOW_F_OWNER_WRITES ? OWNER_WRITES : 0),
		.generation = window->generation,
		.offset = (uint64_t)((const char *)address - slab),
	};
}

static void let_go(struct pldk_window *const windows[2])
{
	for (int i = 0; i < 2; i++)
		if (windows[i])
			pldk__window_release(windows[i]);
}

/* Where the own buffers are. The windows are held. */
static struct places own_places(const struct pldk__coll *coll, struct pldk_window *windows[2])
{
	windows[0] = window_of(coll, false);
	windows[1] = window_of(coll, true);
	return (struct places){ place_in(windows[0], coll->args.input), place_in(windows[1], coll->args.output) };
}

static void say_places(struct pldk__coll *coll)
{
	const struct pldk__payload payload = { coll->own, sizeof(struct places), 0 };
	struct pldk_window *windows[2];
	struct places places;

	if (pldk__likely(!coll->call.err)) {
		places = own_places(coll, windows);
		let_go(windows);
		memcpy(coll->own, &places, sizeof(places));
	}
	pldk__announce(coll->domain, &coll->call, coll->digest, coll->call.err ? NULL : &payload);
}

/* What everybody said in the first number, which has arrived. */
static void read_places(const struct pldk__coll *coll, struct places *all)
{
	const struct pldk_domain *domain = coll->domain;

	for (uint32_t r = 0; r < domain->nranks; r++)
		memcpy(&all[r], pldk__payload_of(domain, r, coll->first), sizeof(all[r]));
	memcpy(&all[domain->rank], coll->own, sizeof(all[0]));
}

static bool is_same_window(const struct place *a, const struct place *b)
{
	return a->window == b->window && a->generation == b->generation;
}

/* Does every rank have the place's window open? */
static bool is_usable(const struct place *place, const struct places *all, uint32_t nranks)
{
	uint32_t r;

	if (!place->window)
		return false;
	for (r = 0; r < nranks; r++)
		if (!is_same_window(place, &all[r].in) && !is_same_window(place, &all[r].out))
			return false;
	return true;
}

static bool is_usable_out(const struct place *place, const struct places *all, uint32_t nranks)
{
	return !(place->window & OWNER_WRITES) && is_usable(place, all, nranks);
}

static bool is_needed(uint8_t who, int root, uint32_t rank)
{
	return who == PLDK__COLL_ALL || (who == PLDK__COLL_ROOT && (uint32_t)root == rank);
}

/* The same on all ranks: what they know is the same. */
static bool can_work(const struct pldk__coll *coll, const struct places *all)
{
	const uint32_t op = coll->args.op;
	const uint32_t nranks = coll->domain->nranks;
	const int root = coll->args.root;

	for (uint32_t r = 0; r < nranks; r++)
		if ((is_needed(needs[op].in, root, r) && !is_usable(&all[r].in, all, nranks)) ||
		    (is_needed(needs[op].out, root, r) && !is_usable_out(&all[r].out, all, nranks)))
			return false;
	return true;
}

/* A usable place at a rank: every usable window is one of the two in which the own buffers are. */
static char *address_of(const struct place *place, uint32_t rank, const struct places *own,
			struct pldk_window *const windows[2])
{
	const struct pldk_window *window = windows[is_same_window(place, &own->in) ? 0 : 1];

	return pldk__slab(window->map, rank) + place->offset;
}

/*
 * Fill buffers and hold the own windows.
 *
 * Return: 0, or -ESTALE: this rank was interrupted and has destroyed one of them meanwhile.
 */
static int open_buffers(const struct pldk__coll *coll, const struct places *all, struct buffers *buffers)
{
	const struct pldk_domain *domain = coll->domain;
	const struct places *own = &all[domain->rank];
	const struct places now = own_places(coll, buffers->windows);

	if (memcmp(&now, own, sizeof(now))) {
		let_go(buffers->windows);
		return pldk__fail(-ESTALE, "rank %u: %s: the window of its buffer was destroyed while the call was interrupted",
				  domain->rank, pldk_event_name(coll->call.op));
	}
	for (uint32_t r = 0; r < domain->nranks; r++) {
		const struct places *at = &all[r];

		buffers->in[r] = is_usable(&at->in, all, domain->nranks) ?
					 address_of(&at->in, r, own, buffers->windows) :
					 NULL;
		buffers->out[r] = is_usable_out(&at->out, all, domain->nranks) ?
					  address_of(&at->out, r, own, buffers->windows) :
					  NULL;
	}
	return 0;
}

static void combine(const struct pldk__coll *coll, const struct buffers *buffers, uint64_t at, char *to, uint64_t len)
{
	const void *sources[RANKS_MAX];

	for (uint32_t r = 0; r < coll->domain->nranks; r++)
		sources[r] = buffers->in[r] + at;
	pldk__reduce(to, sources, coll->domain->nranks, len, coll->args.dtype, coll->args.reduce);
}

/* Combine the own slice, piece by piece: what is brought to the others is still in the cache. */
static void combine_slice(const struct pldk__coll *coll, const struct buffers *buffers)
{
	const struct pldk_domain *domain = coll->domain;
	bool is_reduce = coll->args.op == PLDK_EV_REDUCE;
	uint64_t len;
	uint64_t at;
	uint64_t end;

	len = pldk__coll_slice(domain, domain->rank, coll->len, &at);
	for (end = at + len; at < end; at += len) {
		uint32_t from = is_reduce ? (uint32_t)coll->args.root : domain->rank;
		char *piece = buffers->out[from] + at;

		len = end - at < PLDK__BLOCK ? end - at : PLDK__BLOCK;
		if (from != domain->rank)
			piece = coll->colls->block;
		combine(coll, buffers, at, piece, len);
		for (uint32_t r = 0; r < domain->nranks; r++)
			if (piece != buffers->out[r] + at && (!is_reduce || r == from))
				pldk__copy(buffers->out[r] + at, piece, len);
	}
}

/* Row `row` of every rank's input, the neighbour's first. */
static void take_rows(const struct pldk__coll *coll, const struct buffers *buffers, uint32_t row)
{
	const uint32_t nranks = coll->domain->nranks;
	uint32_t rank = coll->domain->rank;

	for (uint32_t i = 0; i < nranks; i++) {
		char *to = (char *)coll->args.output + rank * coll->len;
		const char *from = buffers->in[rank] + row * coll->len;

		if (to != from)
			pldk__copy(to, from, coll->len);
		rank = rank + 1 == nranks ? 0 : rank + 1;
	}
}

/*
 * A pair shares the work: the root brings the first half, if it can, the other takes the rest. That takes 0.7 of the
 * time from 4 MiB on; below, it is level with taking all (2 CPUs, buffers touched, medians).
 */
static void broadcast(const struct pldk__coll *coll, const struct buffers *buffers)
{
	const struct pldk_domain *domain = coll->domain;
	const uint32_t root = (uint32_t)coll->args.root;
	const uint32_t peer = !root;
	const char *from = buffers->in[root];
	uint64_t half = 0;

	if (domain->nranks == 2 && buffers->out[peer])
		half = coll->len / 2 & ~UINT64_C(4095);
	if (domain->rank != root)
		pldk__copy((char *)coll->args.output + half, from + half, coll->len - half);
	else if (half)
		pldk__copy(buffers->out[peer], from, half);
}

static void work(const struct pldk__coll *coll, const struct buffers *buffers)
{
	const struct pldk_domain *domain = coll->domain;
	const uint32_t root = (uint32_t)coll->args.root;

	switch (coll->args.op) {
	case PLDK_EV_ALLREDUCE:
	case PLDK_EV_REDUCE:
		combine_slice(coll, buffers);
		break;
	case PLDK_EV_REDUCE_SCATTER:
		combine(coll, buffers, domain->rank * coll->len, coll->args.output, coll->len);
		break;
	case PLDK_EV_ALLGATHER:
		take_rows(coll, buffers, 0);
		break;
	case PLDK_EV_ALL_TO_ALL:
		take_rows(coll, buffers, domain->rank);
		break;
	case PLDK_EV_GATHER:
		if (domain->rank == root)
			take_rows(coll, buffers, 0);
		break;
	case PLDK_EV_BROADCAST:
		broadcast(coll, buffers);
		break;
	default: /* scatter */
		if (coll->args.output)
			pldk__copy(coll->args.output, buffers->in[root] + domain->rank * coll->len, coll->len);
	}
}

/* The first number has arrived. 1: the work is done, or has failed, which the second number says; 0: it cannot be. */
static bool work_if_all_can(struct pldk__coll *coll)
{
	struct places all[RANKS_MAX];
	struct buffers buffers;

	read_places(coll, all);
	if (!can_work(coll, all))
		return false;
	coll->call.err = open_buffers(coll, all, &buffers);
	if (pldk__unlikely(coll->call.err))
		return true;
	work(coll, &buffers);
	let_go(buffers.windows);
	return true;
}

/* The algorithm that stages goes on behind the first number. */
static int stage(struct pldk__coll *coll)
{
	coll->passed = 1;
	coll->first++;
	coll->given = 0;
	if (!coll->colls->map)
		coll->call.err = pldk__slot_open(coll->domain, coll->colls);
	return coll->staged(coll);
}

/**
 * pldk__direct_step() - go as far as possible without waiting; as pldk__flat_step()
 */
int pldk__direct_step(struct pldk__coll *coll)
{
	int ret;

	if (coll->passed)
		return coll->staged(coll);
	while (coll->taken < 2) {
		if (coll->given == coll->taken) {
			coll->call.phase = (uint32_t)coll->given;
			if (coll->given)
				pldk__announce(coll->domain, &coll->call, coll->digest, NULL);
			else
				say_places(coll);
			coll->given++;
			if (pldk__unlikely(coll->call.err))
				return coll->call.err;
		}
		coll->call.phase = (uint32_t)coll->taken;
		ret = pldk__arrived(coll->domain, &coll->call, coll->digest, coll->first + coll->taken);
		if (ret)
			return ret;
		if (!coll->taken && !work_if_all_can(coll))
			return stage(coll);
		coll->taken++;
	}
	return 0;
}
