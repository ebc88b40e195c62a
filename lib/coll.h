/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What the collectives share: the staging memory, the loop over chunks, being interrupted and going on. See coll.c.
 */
#ifndef _PLDK_COLL_INTERNAL_H
#define _PLDK_COLL_INTERNAL_H

#include "internal.h"
#include "transfer.h"

#include <pldk/coll.h>

#define PLDK__COLL_SLOT (64u << 10) /* bytes of one slot; a rank has two */

/**
 * struct pldk__coll - a collective in progress on this rank
 * @call: what all ranks must say alike; phase counts the chunks
 * @input, @output: of the caller
 * @at: bytes of a rank's block that are done
 * @deadline_ns: of the whole call
 * @slot: which of the two slots the current chunk uses
 * @is_announced: the current chunk was announced by an earlier, interrupted call: the slot must not be written again
 */
struct pldk__coll {
	struct pldk_domain *domain;
	struct pldk__thread *thread;
	struct pldk__staging *staging;
	struct pldk__call call;
	const void *input;
	void *output;
	uint64_t at;
	uint64_t deadline_ns;
	uint32_t slot;
	bool is_announced;
};

/**
 * struct pldk__staging - a domain's staging memory as one rank sees it
 * @map: two slots a rank; NULL until the first collective that moves data
 * @sources: room for one pointer a rank
 * @scratch: one slot for each far rank, or NULL
 * @failed: errno of a chunk that could not be fetched after its rendezvous: told to all at the next one
 * @is_interrupted: @saved is a call that goes on when it is made again, if rendezvous @seq is still open
 */
struct pldk__staging {
	struct pldk__map *map;
	const void **sources;
	char *scratch;
	int failed;
	bool is_interrupted;
	uint64_t seq;
	struct pldk__coll saved;
};

/* Enter, exclude other threads, open the staging memory if it moves data. On success end with pldk__coll_end(). */
int pldk__coll_begin(struct pldk__coll *coll, struct pldk_site *site, struct pldk_domain *domain, uint32_t op,
		     bool has_data, int64_t timeout_ns);
void pldk__coll_end(struct pldk__coll *coll, int ret);

/* Bytes of the next chunk of a block of len bytes. Chunks are multiples of every element size. */
static inline uint64_t pldk__coll_chunk(const struct pldk__coll *coll, uint64_t len)
{
	return len - coll->at < PLDK__COLL_SLOT ? len - coll->at : PLDK__COLL_SLOT;
}

/* Give own bytes of the current chunk to the others. */
void pldk__coll_give(struct pldk__coll *coll, const void *from, uint64_t len);
/* Meet: afterwards everybody's chunk may be taken. */
int pldk__coll_meet(struct pldk__coll *coll);
/* Copy another rank's chunk. */
int pldk__coll_take(struct pldk__coll *coll, uint32_t rank, void *to, uint64_t len);
/* Pointers to everybody's chunk in staging->sources; own is the own one's. */
int pldk__coll_view(struct pldk__coll *coll, uint64_t len);
/* The chunk is done: on to the next. */
void pldk__coll_next(struct pldk__coll *coll, uint64_t len);

/* -EINVAL (dtype), -EOVERFLOW; *out_len is count elements in bytes, of which the largest buffer has times. */
int pldk__coll_bytes(const char *op, size_t count, uint32_t dtype, uint64_t times, uint64_t *out_len);
/* Do two buffers share a byte? */
static inline bool pldk__coll_overlap(const void *a, uint64_t a_len, const void *b, uint64_t b_len)
{
	return (uintptr_t)a < (uintptr_t)b + b_len && (uintptr_t)b < (uintptr_t)a + a_len;
}

#endif /* _PLDK_COLL_INTERNAL_H */
