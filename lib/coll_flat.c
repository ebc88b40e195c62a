// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The flat algorithm, for all operations: everybody tells everybody.
 *
 * Data is cut into chunks, one number each. Whoever has something to give writes it into its slot and announces the
 * number; when the number has arrived, whoever wants something takes it from the others' slots. A block of at most
 * PLDK__INLINE bytes travels in the line of the cell itself. Operations with a block for each rank put one piece a rank
 * into the slot.
 *
 * Combining reads all sources in rank order in one pass over memory, on each rank that wants the result: the same
 * bytes in the same order by the same instructions, so the bits are the same everywhere, whatever the count and
 * whichever ranks are far.
 *
 * In place is safe: a chunk of the output is written after the same chunk of the input was given, and each rank reads
 * its own part too from what it gave. (Only the own row of an input with rows is given to nobody and read where it is.)
 *
 * all_to_all_v agrees on its counts first. Number 0 of the call carries each rank's send counts. Who finds that they
 * are not its receive counts fails in number 1 (all hear of it there); otherwise number 1 carries the first chunk. How
 * many chunks there are follows from the largest count of all, which all know then.
 */
#include "coll.h"
#include "reduce.h"

#include <errno.h>
#include <string.h>

static bool has_counts(const struct pldk__coll *coll)
{
	return coll->args.send_counts != NULL;
}

static uint64_t chunks_of(const struct pldk__coll *coll, uint64_t len)
{
	return len ? (len + coll->chunk - 1) / coll->chunk : 1;
}

/**
 * pldk__flat_chunks() - see coll.h
 */
uint64_t pldk__flat_chunks(const struct pldk__coll *coll)
{
	return has_counts(coll) ? 2 : chunks_of(coll, coll->len);
}

/* Where in a block a number's chunk begins. */
static uint64_t chunk_at(const struct pldk__coll *coll, uint64_t chunk)
{
	return (chunk - has_counts(coll)) * coll->chunk;
}

/* Bytes of a block's chunk that begins at `at`; elems are those that the block has. */
static uint64_t chunk_len(const struct pldk__coll *coll, uint64_t at, size_t elems)
{
	uint64_t len = (uint64_t)elems * coll->elem_size;

	return at >= len ? 0 : len - at < coll->chunk ? len - at : coll->chunk;
}

/**
 * pldk__flat_give() - put chunk `given` into the own slot, of the next number
 */
void pldk__flat_give(struct pldk__coll *coll)
{
	const struct pldk__coll_args *args = &coll->args;
	uint32_t nranks = coll->domain->nranks;
	char *slot;
	uint64_t at;
	uint32_t r;

	if (!coll->len || !pldk__coll_is(coll->domain, args->root, coll->rule->reads))
		return;
	slot = pldk__slot_own(coll, coll->domain->seq + 1);
	if (has_counts(coll) && !coll->given) {
		for (r = 0; r < nranks; r++)
			((uint64_t *)(void *)slot)[r] = args->send_counts[r];
		return;
	}
	at = chunk_at(coll, coll->given);
	if (!coll->rule->has_in_rows) {
		pldk__copy(slot, (const char *)args->input + at, chunk_len(coll, at, args->count));
		return;
	}
	for (r = 0; r < nranks; r++)
		if (r != coll->domain->rank)
			pldk__copy(slot + r * coll->chunk, (const char *)args->input + r * coll->len + at,
				   chunk_len(coll, at, has_counts(coll) ? args->send_counts[r] : args->count));
}

/* Where the own row of the input is, which nobody else wants: it does not go through the slot. NULL: there is none. */
static const char *own_row(const struct pldk__coll *coll, uint64_t at)
{
	if (coll->is_inline || !coll->rule->has_in_rows)
		return NULL;
	return (const char *)coll->args.input + coll->domain->rank * coll->len + at;
}

/* All send counts are here: are they what this rank wants to receive, and how many chunks do they make? */
static int take_counts(struct pldk__coll *coll)
{
	struct pldk_domain *domain = coll->domain;
	const size_t *wanted = coll->args.recv_counts;
	uint64_t most = 0;
	uint32_t r;
	uint32_t d;
	int ret;

	ret = pldk__slot_view(coll, domain->nranks, coll->first, 0, domain->nranks * sizeof(uint64_t));
	if (ret)
		return ret;
	for (r = 0; r < domain->nranks; r++) {
		const uint64_t *counts = coll->colls->sources[r];

		for (d = 0; d < domain->nranks; d++)
			most = counts[d] > most ? counts[d] : most;
		if (counts[domain->rank] != wanted[r] && !coll->call.err)
			coll->call.err = pldk__fail(
				-EPROTO, "rank %u: all_to_all_v: rank %u sends %llu elements to rank %u, which expects %zu",
				domain->rank, r, (unsigned long long)counts[domain->rank], domain->rank, wanted[r]);
	}
	coll->chunks = 1 + chunks_of(coll, most * coll->elem_size);
	return 0;
}

/* Ranks whose blocks are combined here: 0..n-1. */
static uint32_t combined(const struct pldk__coll *coll)
{
	switch (coll->args.op) {
	case PLDK_EV_SCAN:
		return coll->domain->rank + 1;
	case PLDK_EV_EXSCAN:
		return coll->domain->rank;
	default:
		return coll->domain->nranks;
	}
}

/* What a rank sent to this one in its cell; it has arrived. */
static const void *inline_part(const struct pldk__coll *coll, uint32_t rank)
{
	const struct pldk_domain *domain = coll->domain;

	if (rank == domain->rank)
		return coll->own;
	return pldk__payload_of(domain, rank, coll->first);
}

/* Pointers to what the first ranks put for this one into the chunk. */
static int view(struct pldk__coll *coll, uint32_t nranks, uint64_t piece, uint64_t len)
{
	const char *own = own_row(coll, chunk_at(coll, coll->taken));
	uint32_t r;
	int ret;

	if (coll->is_inline) {
		for (r = 0; r < nranks; r++)
			coll->colls->sources[r] = inline_part(coll, r);
		return 0;
	}
	ret = pldk__slot_view(coll, nranks, coll->first + coll->taken, piece, len);
	if (!ret && own)
		coll->colls->sources[coll->domain->rank] = own;
	return ret;
}

/* Copy what one rank put for this one into the chunk. */
static int copy(struct pldk__coll *coll, uint32_t rank, uint64_t piece, char *to, uint64_t len)
{
	const char *own = rank == coll->domain->rank ? own_row(coll, chunk_at(coll, coll->taken)) : NULL;

	if (own) {
		pldk__copy(to, own, len);
		return 0;
	}
	if (!coll->is_inline)
		return pldk__slot_take(coll, rank, coll->first + coll->taken, piece, to, len);
	memcpy(to, inline_part(coll, rank), len);
	return 0;
}

static int combine(struct pldk__coll *coll, uint64_t piece, char *to, uint64_t len)
{
	uint32_t n = combined(coll);
	int ret;

	if (n <= 1)
		return n ? copy(coll, 0, piece, to, len) : 0;
	ret = view(coll, n, piece, len);
	if (!ret)
		pldk__reduce(to, coll->colls->sources, n, len, coll->args.dtype, coll->args.reduce);
	return ret;
}

/* Each rank begins with its neighbour, so that not all read the same slot at once. */
static int take_rows(struct pldk__coll *coll, uint64_t piece, uint64_t at)
{
	const struct pldk__coll_args *args = &coll->args;
	uint32_t nranks = coll->domain->nranks;
	uint32_t rank = coll->domain->rank;
	const char *own_row = (const char *)args->output + rank * coll->len;
	int ret = 0;

	for (uint32_t i = 0; i < nranks && !ret; i++) {
		size_t elems = has_counts(coll) ? args->recv_counts[rank] : args->count;

		if (rank != coll->domain->rank || coll->rule->has_in_rows || args->input != own_row)
			ret = copy(coll, rank, piece, (char *)args->output + rank * coll->len + at,
				   chunk_len(coll, at, elems));
		rank = rank + 1 == nranks ? 0 : rank + 1;
	}
	return ret;
}

/**
 * pldk__flat_take() - chunk `taken` of all has arrived: take from it what this rank wants
 */
int pldk__flat_take(struct pldk__coll *coll)
{
	const struct pldk__coll_args *args = &coll->args;
	uint64_t piece = coll->rule->has_in_rows ? coll->domain->rank * coll->chunk : 0;
	uint64_t at;
	uint64_t len;

	if (!coll->len)
		return 0;
	if (has_counts(coll) && !coll->taken)
		return take_counts(coll);
	if (!args->output || !pldk__coll_is(coll->domain, args->root, coll->rule->writes))
		return 0;
	at = chunk_at(coll, coll->taken);
	len = chunk_len(coll, at, args->count);
	switch (coll->rule->kind) {
	case PLDK__COLL_COMBINE:
		return combine(coll, piece, (char *)args->output + at, len);
	case PLDK__COLL_FROM_ROOT:
		return copy(coll, (uint32_t)args->root, piece, (char *)args->output + at, len);
	default:
		return take_rows(coll, piece, at);
	}
}

/* Announce number `given` of the call, with its payload if that travels in the cells. */
static int post(struct pldk__coll *coll)
{
	const struct pldk__coll_args *args = &coll->args;
	struct pldk__payload payload = { args->input, (uint32_t)coll->len, coll->rule->has_in_rows ? coll->len : 0 };
	bool gives = coll->is_inline && coll->len && pldk__coll_is(coll->domain, args->root, coll->rule->reads);

	if (gives)
		memcpy(coll->own, (const char *)args->input + coll->domain->rank * payload.stride, coll->len);
	coll->call.phase = coll->passed + (uint32_t)coll->given;
	pldk__announce(coll->domain, &coll->call, coll->digest, gives && !coll->call.err ? &payload : NULL);
	coll->given++;
	return coll->call.err;
}

/* One rank alone: nobody to wait for. */
static int alone(struct pldk__coll *coll)
{
	const struct pldk__coll_args *args = &coll->args;
	size_t elems = args->count;

	if (has_counts(coll) && !coll->call.err) {
		elems = args->send_counts[0];
		if (elems != args->recv_counts[0])
			coll->call.err = pldk__fail(-EPROTO,
						    "rank 0: all_to_all_v: rank 0 sends %zu elements to rank 0, which expects %zu",
						    elems, args->recv_counts[0]);
	}
	pldk__announce(coll->domain, &coll->call, coll->digest, NULL);
	coll->domain->met = coll->domain->seq;
	if (coll->call.err)
		return coll->call.err;
	if (coll->len && args->output && args->output != args->input && args->op != PLDK_EV_EXSCAN)
		memmove(args->output, args->input, elems * coll->elem_size);
	return 0;
}

/**
 * pldk__flat_step() - go as far as possible without waiting
 *
 * May be called again after PLDK__AGAIN at any time; nothing that it did is done twice. The first number is announced
 * alone: see announce.c.
 *
 * Return: 0: done. PLDK__AGAIN: number first + taken has not arrived. A negative errno: over.
 */
int pldk__flat_step(struct pldk__coll *coll)
{
	int ret;

	if (pldk__unlikely(coll->domain->nranks == 1))
		return alone(coll);
	while (coll->taken < coll->chunks) {
		uint64_t look = coll->taken ? coll->look : 1;

		if (coll->given < coll->chunks && coll->given < coll->taken + look) {
			pldk__wake_all(coll->domain);
			if (pldk__likely(!coll->call.err) && !coll->is_inline)
				pldk__flat_give(coll);
			ret = post(coll);
			if (pldk__unlikely(ret))
				return ret;
			continue;
		}
		coll->call.phase = coll->passed + (uint32_t)coll->taken;
		ret = pldk__arrived(coll->domain, &coll->call, coll->digest, coll->first + coll->taken);
		if (ret)
			return ret;
		ret = pldk__flat_take(coll);
		if (pldk__unlikely(ret))
			return ret;
		coll->taken++;
	}
	return 0;
}
