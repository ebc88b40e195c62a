// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The outbox: in system window PLDK__SYSTEM_COLL each rank has K slots. Number n of the domain uses slot n mod K: its
 * owner writes it before it announces n, the others read it when n has arrived, near ranks in place, far ones with
 * far_get(). So user data may lie anywhere, and nobody writes into memory that another rank may be using.
 *
 * Flow control is in the numbers. With L numbers under way (coll->look), who announces m has taken everything up to
 * m - L of this call and all of earlier calls. I write slot n mod K when all have announced n - L, thus have taken
 * n - 2 L; what was in the slot is n - K. So K >= 2 L is enough (coll_table.c). Numbers of another kind (barrier,
 * window_create) only make the distance larger. Calls of different look may follow each other: all looks are at most
 * that of the geometry.
 *
 * After a number that ended in an error for all, numbers are skipped (announce.c), and a slot may be written while a
 * slow rank still reads it for a chunk before that number: its call ends in the same error, and no length or address is
 * read from a slot in such a call (all_to_all_v looks at counts only in its first number, which is announced alone).
 */
#include "coll.h"

#include <errno.h>
#include <stdlib.h>

#define FETCH_NS UINT64_C(10000000000) /* at least so long is waited for a chunk of a far rank */

/**
 * pldk__slot_open() - open the outbox: at the first collective of a domain that moves more than fits into cells
 *
 * Local: the first rank makes the window, the others find it. A rank that fails here tells the others.
 *
 * Return: 0, -ENOMEM, or as the provider's open().
 */
int pldk__slot_open(struct pldk_domain *domain, struct pldk__colls *colls)
{
	pldk__coll_geometry(domain, &colls->slots, &colls->slot_bytes);
	if (domain->has_far && !colls->scratch)
		colls->scratch = malloc((size_t)domain->nranks * colls->slot_bytes);
	if (domain->has_far && !colls->scratch)
		return pldk__fail(-ENOMEM, "rank %u: no memory for the staging of collectives", domain->rank);
	return pldk__system_open(domain, PLDK__SYSTEM_COLL, PLD_WINDOW_DATA, 0,
				 (uint64_t)colls->slots * colls->slot_bytes, &colls->map);
}

static uint64_t slot_at(const struct pldk__colls *colls, uint64_t number)
{
	return number % colls->slots * colls->slot_bytes;
}

/** pldk__slot_own() - own slot of a number */
char *pldk__slot_own(const struct pldk__coll *coll, uint64_t number)
{
	return pldk__slab(coll->colls->map, coll->domain->rank) + slot_at(coll->colls, number);
}

/*
 * A chunk could not be fetched although all have announced it. The others know nothing of it yet: they hear it at the
 * next number, whichever operation that belongs to, and fail with the same errno.
 */
static int fetch(struct pldk__coll *coll, uint32_t rank, uint64_t at, void *to, uint64_t len)
{
	struct pldk_domain *domain = coll->domain;
	struct pldk__lanes *lanes = pldk__lanes_of(domain);
	/* More than the call's deadline: what is half fetched could not be continued. */
	const uint64_t patience = pldk__now_ns() + FETCH_NS;
	const uint64_t deadline_ns = coll->deadline_ns > patience ? coll->deadline_ns : patience;
	uint64_t ticket = 0;
	int ret = -ENOMEM;

	if (lanes)
		ret = domain->ops->far_get(domain->pd, coll->colls->map, rank, at, to, len, deadline_ns,
					   &ticket);
	if (!ret) {
		pldk__lane_sent(lanes, rank, ticket);
		ret = pldk__lane_done_or_forget(lanes, rank, ticket, deadline_ns);
	}
	if (ret)
		coll->colls->failed = ret;
	return ret;
}

/**
 * pldk__slot_take() - copy a part of a rank's slot
 * @number: has arrived
 * @offset: in the slot
 *
 * Return: 0, or an error of the provider's far_get().
 */
int pldk__slot_take(struct pldk__coll *coll, uint32_t rank, uint64_t number, uint64_t offset, void *to, uint64_t len)
{
	uint64_t at = slot_at(coll->colls, number) + offset;
	const char *slab = pldk__slab(coll->colls->map, rank);

	if (!len)
		return 0;
	if (pldk__unlikely(!slab))
		return fetch(coll, rank, at, to, len);
	pldk__copy(to, slab + at, len);
	return 0;
}

/* Readable bytes of a slot: in place, or fetched into the scratch of its rank. */
static int readable(struct pldk__coll *coll, uint32_t rank, uint64_t at, uint64_t len, const void **out)
{
	const char *slab = pldk__slab(coll->colls->map, rank);
	char *to;
	int ret;

	if (pldk__likely(slab != NULL)) {
		*out = slab + at;
		return 0;
	}
	to = coll->colls->scratch + (size_t)rank * coll->colls->slot_bytes;
	ret = fetch(coll, rank, at, to, len);
	if (!ret)
		*out = to;
	return ret;
}

/** pldk__slot_peek() - make the first bytes of a rank's slot readable */
int pldk__slot_peek(struct pldk__coll *coll, uint32_t rank, uint64_t number, uint64_t len, const void **out)
{
	return readable(coll, rank, slot_at(coll->colls, number), len, out);
}

/**
 * pldk__slot_view() - make the same part of the first ranks' slots readable
 *
 * The own part too is read as it was announced: after an interruption the user's input may have changed, and all ranks
 * must combine the same bytes.
 *
 * Return: 0 and colls->sources is filled, or an error of the provider's far_get().
 */
int pldk__slot_view(struct pldk__coll *coll, uint32_t nranks, uint64_t number, uint64_t offset, uint64_t len)
{
	struct pldk__colls *colls = coll->colls;
	uint64_t at = slot_at(colls, number) + offset;
	int ret = 0;

	for (uint32_t rank = 0; rank < nranks && !ret; rank++)
		ret = readable(coll, rank, at, len, &colls->sources[rank]);
	return ret;
}
