// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The two-phase algorithm, for what is combined by all for all (allreduce) or for one (reduce): each rank combines its
 * slice of a chunk and the others take it from there. A rank reads about twice what it brings, whatever the number of
 * ranks, where the flat algorithm reads P times that.
 *
 * The phases of two chunks share a number: number n carries the input of chunk n and the sender's combined slice of
 * chunk n - 1, so a call of C chunks takes C + 1 numbers. A slot holds both: the input first, the slice after it.
 *
 * Numbers follow each other one at a time. Who announces n has read everything of slot n - 1: the others' inputs for
 * its slice of n, their slices before that. So two slots in turn are enough, as coll_slot.c says for L = 1.
 *
 * The slice is combined from what was announced, the own part too, by the one kernel that all algorithms use and in
 * rank order: the bits are those of the flat algorithm.
 */
#include "coll.h"
#include "reduce.h"

#define LINE UINT64_C(64)

static uint64_t chunk_len(const struct pldk__coll *coll, uint64_t chunk)
{
	uint64_t at = chunk * coll->chunk;

	return coll->len - at < coll->chunk ? coll->len - at : coll->chunk;
}

/* Bytes of a chunk that each of the first ranks combines; whole lines, so that no two ranks write one. */
static uint64_t share(const struct pldk_domain *domain, uint64_t len)
{
	return ((len + domain->nranks - 1) / domain->nranks + LINE - 1) & ~(LINE - 1);
}

/**
 * pldk__coll_slice() - a rank's slice of len bytes: where it begins, *out_at, and its length
 */
uint64_t pldk__coll_slice(const struct pldk_domain *domain, uint32_t rank, uint64_t len, uint64_t *out_at)
{
	uint64_t most = share(domain, len);
	uint64_t at = rank * most;

	*out_at = at < len ? at : len;
	return len - *out_at < most ? len - *out_at : most;
}

/**
 * pldk__two_phase_plan() - chunk and numbers of a call that has bytes
 * @slot_bytes: of the outbox: a chunk and a slice of it
 */
void pldk__two_phase_plan(struct pldk__coll *coll, uint32_t slot_bytes)
{
	uint64_t nranks = coll->domain->nranks;

	coll->chunk = (slot_bytes - LINE) * nranks / (nranks + 1) & ~(LINE - 1);
	if (coll->chunk > coll->len)
		coll->chunk = coll->len;
	coll->chunks = (coll->len + coll->chunk - 1) / coll->chunk + 1;
	coll->look = 1;
}

static int give(struct pldk__coll *coll)
{
	struct pldk_domain *domain = coll->domain;
	char *slot = pldk__slot_own(coll, domain->seq + 1);
	uint64_t len;
	uint64_t at;
	int ret;

	if (coll->given + 1 < coll->chunks)
		pldk__copy(slot, (const char *)coll->args.input + coll->given * coll->chunk,
			   chunk_len(coll, coll->given));
	if (!coll->given)
		return 0;
	len = pldk__coll_slice(domain, domain->rank, chunk_len(coll, coll->given - 1), &at);
	ret = pldk__slot_view(coll, domain->nranks, coll->first + coll->given - 1, at, len);
	if (!ret)
		pldk__reduce(slot + coll->chunk, coll->colls->sources, domain->nranks, len, coll->args.dtype,
			     coll->args.reduce);
	return ret;
}

/* The slices of chunk taken - 1 have arrived. Each rank begins with its neighbour's. */
static int take(struct pldk__coll *coll)
{
	struct pldk_domain *domain = coll->domain;
	uint32_t rank = domain->rank;
	uint64_t chunk = coll->taken - 1;
	uint64_t len;
	uint64_t at;
	int ret = 0;

	if (!coll->taken || !pldk__coll_is(domain, coll->args.root, coll->rule->writes))
		return 0;
	for (uint32_t i = 0; i < domain->nranks && !ret; i++) {
		rank = rank + 1 == domain->nranks ? 0 : rank + 1;
		len = pldk__coll_slice(domain, rank, chunk_len(coll, chunk), &at);
		ret = pldk__slot_take(coll, rank, coll->first + coll->taken, coll->chunk,
				      (char *)coll->args.output + chunk * coll->chunk + at, len);
	}
	return ret;
}

/**
 * pldk__two_phase_step() - go as far as possible without waiting; as pldk__flat_step()
 */
int pldk__two_phase_step(struct pldk__coll *coll)
{
	int ret;

	while (coll->taken < coll->chunks) {
		if (coll->given == coll->taken) {
			if (pldk__likely(!coll->call.err)) {
				ret = give(coll);
				if (pldk__unlikely(ret))
					return ret;
			}
			coll->call.phase = coll->passed + (uint32_t)coll->given;
			pldk__announce(coll->domain, &coll->call, coll->digest, NULL);
			coll->given++;
			if (pldk__unlikely(coll->call.err))
				return coll->call.err;
		}
		coll->call.phase = coll->passed + (uint32_t)coll->taken;
		ret = pldk__arrived(coll->domain, &coll->call, coll->digest, coll->first + coll->taken);
		if (!ret)
			ret = take(coll);
		if (ret)
			return ret;
		coll->taken++;
	}
	return 0;
}
