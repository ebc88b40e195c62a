// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The ring, an algorithm of the allreduce that is used only when it is asked for.
 *
 * The data is cut into P segments, the bounds of segment i are elements i n / P. In P - 1 steps each segment goes once
 * around: a rank adds its own part to what its left neighbour has, and the rank whose number the segment has is the
 * last. In P - 1 more steps the results go around. Segment s is thus combined over ranks s + 1, s + 2, .. s, and 16 bit
 * floats are rounded at each of these hops. What a rank reads is 2 (P - 1) / P of the data, all of it from its left
 * neighbour: it fits machines on which only neighbours are close.
 *
 * A step is a number. In its slot a rank gives what its right neighbour takes from it in this step:
 *
 *   step 0                  the own part of segment r - 1
 *   step s = 1 .. P - 1     segment r - 1 - s, combined so far: what the left one gave in step s - 1 and the own part;
 *                           step P - 1 gives segment r, complete
 *   step s = P .. 2 P - 3   the complete segment that the left one gave in step s - 1
 *
 * Segments that are larger than a slot go around in pieces, one piece of all segments after the other.
 *
 * A step needs the left neighbour's number only. All others' are looked at as well, but up to coll->look steps later:
 * so everything that announce.c and coll_slot.c say of cells, slots and errors holds here as it does elsewhere, and
 * ranks are never further apart than that. (An error is found in the same number by all: a neighbour's number that says
 * something else is not acted upon before all have announced it.)
 */
#include "coll.h"
#include "reduce.h"

static uint32_t steps_of(const struct pldk__coll *coll)
{
	return 2 * (coll->domain->nranks - 1);
}

/* Byte where a segment begins; segment P is the end. */
static uint64_t segment_at(const struct pldk__coll *coll, uint64_t segment)
{
	const uint64_t nranks = coll->domain->nranks;
	const uint64_t count = coll->args.count;

	/* segment * count / nranks, which may not fit while it is being computed */
	return (count / nranks * segment + count % nranks * segment / nranks) * coll->elem_size;
}

/* The piece of the segment that lies `back` ranks to the left of this one: *out_at in the data, and its bytes. */
static uint64_t piece(const struct pldk__coll *coll, uint64_t number, uint32_t back, uint64_t *out_at)
{
	const uint32_t nranks = coll->domain->nranks;
	const uint32_t segment = (coll->domain->rank + 2 * nranks - back) % nranks;
	const uint64_t skip = number / steps_of(coll) * coll->chunk;
	const uint64_t at = segment_at(coll, segment) + skip;
	const uint64_t end = segment_at(coll, segment + 1);

	*out_at = at < end ? at : end;
	return end - *out_at < coll->chunk ? end - *out_at : coll->chunk;
}

/**
 * pldk__ring_plan() - piece and numbers of a call that has bytes
 * @slot_bytes: of the outbox
 * @look: steps that ranks may be apart
 */
void pldk__ring_plan(struct pldk__coll *coll, uint32_t slot_bytes, uint32_t look)
{
	const uint64_t nranks = coll->domain->nranks;
	const uint64_t most = (coll->args.count / nranks + 1) * coll->elem_size; /* at least that of any segment */

	coll->chunk = most < slot_bytes ? most : slot_bytes;
	coll->chunks = (most + coll->chunk - 1) / coll->chunk * steps_of(coll);
	coll->look = look;
}

static uint32_t left_of(const struct pldk_domain *domain)
{
	return domain->rank ? domain->rank - 1 : domain->nranks - 1;
}

/* Put step `given` into the own slot. The left neighbour's step before it has been taken. */
static int give(struct pldk__coll *coll)
{
	const uint32_t nranks = coll->domain->nranks;
	const uint32_t step = (uint32_t)(coll->given % steps_of(coll));
	char *slot = pldk__slot_own(coll, coll->domain->seq + 1);
	const void *sources[2];
	uint64_t len;
	uint64_t at;
	int ret;

	len = piece(coll, coll->given, step < nranks ? 1 + step : step - nranks + 1, &at);
	if (!step) {
		pldk__copy(slot, (const char *)coll->args.input + at, len);
		return 0;
	}
	if (step >= nranks)
		return pldk__slot_take(coll, left_of(coll->domain), coll->domain->seq, 0, slot, len);
	ret = pldk__slot_peek(coll, left_of(coll->domain), coll->domain->seq, len, &sources[0]);
	if (ret)
		return ret;
	sources[1] = (const char *)coll->args.input + at;
	pldk__reduce(slot, sources, 2, len, coll->args.dtype, coll->args.reduce);
	if (step == nranks - 1)
		pldk__copy((char *)coll->args.output + at, slot, len);
	return 0;
}

/* The left neighbour has given step `used`. */
static int use(struct pldk__coll *coll)
{
	const uint32_t nranks = coll->domain->nranks;
	const uint32_t step = (uint32_t)(coll->used % steps_of(coll));
	uint64_t len;
	uint64_t at;

	if (step < nranks - 1)
		return 0; /* give() takes it */
	len = piece(coll, coll->used, step - nranks + 2, &at);
	return pldk__slot_take(coll, left_of(coll->domain), coll->first + coll->used, 0,
			       (char *)coll->args.output + at, len);
}

/* Look at what has arrived from all. 0; PLDK__AGAIN: number first + taken has not; an errno: over */
static int catch_up(struct pldk__coll *coll)
{
	int ret = 0;

	while (!ret && coll->taken < coll->given) {
		coll->call.phase = coll->passed + (uint32_t)coll->taken;
		ret = pldk__arrived(coll->domain, &coll->call, coll->digest, coll->first + coll->taken);
		if (!ret)
			coll->taken++;
	}
	return ret;
}

static bool left_has_given(const struct pldk__coll *coll)
{
	const struct pldk_domain *domain = coll->domain;
	const uint64_t number = coll->first + coll->used;
	const int64_t said = pldk__digest_at(coll->digest, (uint32_t)coll->used) |
			     (int64_t)(number << PLDK__DIGEST_BITS);

	return pldk__load_acquire(&pldk__epoch_cell(domain, domain->rank, number, left_of(domain))->value) == said;
}

/**
 * pldk__ring_step() - go as far as possible without waiting; as pldk__flat_step()
 */
int pldk__ring_step(struct pldk__coll *coll)
{
	int ret;

	while (coll->used < coll->chunks) {
		if (coll->given == coll->used) {
			ret = catch_up(coll);
			if (ret && (ret != PLDK__AGAIN || coll->given >= coll->taken + (coll->taken ? coll->look : 1)))
				return ret;
			ret = pldk__likely(!coll->call.err) ? give(coll) : 0;
			if (pldk__unlikely(ret))
				return ret;
			coll->call.phase = coll->passed + (uint32_t)coll->given;
			pldk__announce(coll->domain, &coll->call, coll->digest, NULL);
			coll->given++;
			if (pldk__unlikely(coll->call.err))
				return coll->call.err;
		}
		if (!left_has_given(coll)) {
			ret = catch_up(coll);
			if (ret)
				return ret;
		}
		ret = use(coll);
		if (pldk__unlikely(ret))
			return ret;
		coll->used++;
	}
	return catch_up(coll);
}
