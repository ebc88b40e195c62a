/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What the files of the collectives share. The frame is described in coll.c.
 *
 *   coll_public.c  the public calls that block: each fills a struct pldk__coll_args (coll_args.h)
 *   coll_start.c   the public calls that start one
 *   coll_check.c   everything that can be refused without the others
 *   coll.c         the driver: begin, step, wait, be interrupted, go on
 *   coll_queue.c   those that were started: one moves at a time, in order
 *   coll_small.c   the short way of those that take one number
 *   coll_flat.c    the algorithm of small and of most data, for all operations
 *   coll_two_phase.c  the algorithm of large allreduce and reduce
 *   coll_direct.c  the algorithm of large blocks in windows
 *   coll_ring.c    the algorithm of an allreduce that asks for it
 *   coll_credit.c  the last step of a call on a signal window of the caller
 *   coll_slot.c    the outbox: memory that one rank writes and all others read
 *   coll_table.c   which algorithm, how large its slots and the chunks are
 */
#ifndef _PLDK_COLL_INTERNAL_H
#define _PLDK_COLL_INTERNAL_H

#include "announce.h"
#include "transfer.h"

#include <pldk/coll_on.h>
#include <pldk/coll_start.h>

#define PLDK__PLANS 16u /* a power of 2: more than the loops of most programs have collectives */
#define PLDK__BLOCK (32u << 10) /* what is combined and brought to another rank at a time: it stays in the cache */

/**
 * struct pldk__coll_args - a collective as the user called it; pldk__coll_check() resolves PLDK_IN_PLACE
 * @op: PLDK_EV_ALLREDUCE, ...
 * @reduce: where it combines, else 0
 * @mode: of an allreduce, else 0
 * @root: where there is one, else 0
 * @count: elements of a block; of all_to_all_v: of a row
 * @send_counts, @recv_counts: of all_to_all_v
 * @signal: of the _on forms, else NULL
 */
struct pldk__coll_args {
	uint32_t op;
	uint32_t dtype;
	uint32_t reduce;
	uint32_t mode;
	int root;
	size_t count;
	const void *input;
	void *output;
	const size_t *send_counts;
	const size_t *recv_counts;
	struct pldk_window *signal;
};

/* How the parts of a block come together. */
enum pldk__coll_kind {
	PLDK__COLL_NOTHING, /* a barrier */
	PLDK__COLL_COMBINE, /* element by element over a range of ranks */
	PLDK__COLL_FROM_ROOT,
	PLDK__COLL_ROWS /* everybody's, each to its row */
};

/* Who uses a buffer. */
enum pldk__coll_who { PLDK__COLL_NOBODY, PLDK__COLL_ALL, PLDK__COLL_ROOT, PLDK__COLL_OTHERS };

/**
 * struct pldk__coll_rule - what an operation is
 * @reads, @writes: who uses input and output
 * @has_in_rows, @has_out_rows: the buffer has a block for each rank
 * @in_place: who may pass PLDK_IN_PLACE as the input
 */
struct pldk__coll_rule {
	uint8_t kind;
	uint8_t reads;
	uint8_t writes;
	uint8_t in_place;
	bool has_in_rows;
	bool has_out_rows;
	bool has_reduce;
	bool has_root;
};

/**
 * struct pldk__coll - a collective of a domain on this rank: one that blocks, or one that was started
 * @call, @digest: what all ranks must say alike; call.phase counts the announcements
 * @rule: of its operation
 * @step: of its algorithm
 * @staged: where that is the direct one: of the algorithm that goes on if it cannot be
 * @len: bytes of a block
 * @chunk: bytes of a block that travel with one number
 * @chunks: numbers that it takes
 * @look: how many of them may be under way
 * @first: the first of them
 * @passed: numbers of the call before the first
 * @given, @taken: how many were announced and arrived
 * @used: of the ring: how many the left neighbour's data was taken of
 * @credited: how many peers have a credit of this call
 * @is_planned: rule, len, elem_size, digest and what the table chose hold for the next call with the same numbers
 * @is_small: and one that is planned may go the short way (coll_small.c)
 * @takes_one: ... if input and output are one buffer, too
 * @gives: this rank has something to put into the cells
 * @is_inline: the data travels in the cells
 * @own: what this rank announced in the cells
 * @is_open: it was interrupted, and goes on when the same call is made again while domain->seq is @seq
 * @timeout_ns, @deadline_ns: the deadline is computed from the timeout at the first wait that is in vain; 0 until then
 * @next, @index: among those that were started
 * @ends: atomic; of two things that must be before it is used again: it is over, its handle has ended
 * @is_begun: it has had its turn
 * @is_taken: it keeps its signal window from being destroyed
 * @is_done: it is over, with @ret and @sentence (malloc'ed, NULL without an error or memory)
 */
struct pldk__coll {
	struct pldk_domain *domain;
	struct pldk__thread *thread;
	struct pldk__colls *colls;
	const struct pldk__coll_rule *rule;
	int (*step)(struct pldk__coll *coll);
	int (*staged)(struct pldk__coll *coll);
	struct pldk__coll_args args;
	struct pldk__call call;
	int64_t digest;
	uint64_t len;
	uint64_t chunk;
	uint64_t chunks;
	uint64_t first;
	uint64_t given;
	uint64_t taken;
	uint64_t used;
	uint64_t seq;
	uint32_t elem_size;
	uint32_t look;
	uint32_t credited;
	uint32_t passed;
	bool is_planned;
	bool is_small;
	bool takes_one;
	bool gives;
	bool is_inline;
	bool is_open;
	int64_t timeout_ns;
	uint64_t deadline_ns;
	char own[PLDK__INLINE];
	struct pldk__coll *next;
	uint32_t index;
	uint32_t ends;
	bool is_begun;
	bool is_taken;
	bool is_done;
	int ret;
	char *sentence;
};

/**
 * struct pldk__colls - the collectives of a domain
 * @blocking: those that block: the newest, and what was planned for earlier ones with other numbers
 * @started: room for PLDK_COLL_STARTED_MAX, made by the first that is started
 * @room: atomic; bit i: started[i] is free
 * @first, @last: those that are not over, in order
 * @polls: times that nothing had arrived
 * @polled_number, @polled_events: at the last time that this was looked into
 * @map: the outbox; NULL until the first collective that needs it
 * @slots, @slot_bytes: of each rank in it
 * @sources: room for one pointer a rank
 * @scratch: one slot for each rank where some are far, else NULL
 * @failed: errno of a chunk that could not be fetched after it was announced: told to all at the next number
 * @block: for a piece of a result on its way to its owner
 */
struct pldk__colls {
	struct pldk__coll blocking[PLDK__PLANS];
	struct pldk__coll *started;
	uint64_t room;
	struct pldk__coll *first;
	struct pldk__coll *last;
	uint32_t polls;
	uint32_t polled_events;
	uint64_t polled_number;
	struct pldk__map *map;
	uint32_t slots;
	uint32_t slot_bytes;
	const void **sources;
	char *scratch;
	int failed;
	char block[PLDK__BLOCK];
};

/* coll.c: call and end it. site may be NULL. on: the same for a signal window, from the user. */
int pldk__coll_run_on(struct pldk_site *site, struct pldk_window *signal, struct pldk__coll_args args,
		      int64_t timeout_ns);
int pldk__coll_run(struct pldk_site *site, struct pldk_domain *domain, const struct pldk__coll_args *args,
		   int64_t timeout_ns);

/* The collectives of a domain, made by the first. NULL: no memory, sentence set. */
struct pldk__colls *pldk__colls_of(struct pldk_domain *domain);
/* Fill a collective that is not yet begun. err: 0, or why this rank fails, and it will tell */
void pldk__coll_prepare(struct pldk__coll *coll, const struct pldk__coll_args *args, uint32_t site, int err,
			uint64_t len, uint32_t elem_size);
/* pldk__rendezvous_settle() for operation op, if there is something to settle. */
int pldk__coll_settle(struct pldk_domain *domain, struct pldk__thread *thread, uint32_t op, uint64_t deadline_ns,
		      int err);
/* Its turn has come: nothing earlier is open. -ETIMEDOUT, -EAGAIN: nothing was said to anybody, call again. */
int pldk__coll_begin(struct pldk__coll *coll);
/* Step and wait until it is over, or the wait is: then it stays open. is_polled: without a sentence for -EAGAIN. */
int pldk__coll_drive(struct pldk__coll *coll, bool is_polled);

/* coll_queue.c */
int pldk__coll_start(struct pldk_site *site, struct pldk_domain *domain, const struct pldk__coll_args *args,
		     const struct pldk_coll_options *options, struct pldk_handle **out);
void pldk__coll_owe(struct pldk_domain *domain, const struct pldk__coll_args *args, uint32_t site, int err);
void pldk__colls_free_started(struct pldk__colls *colls);

/* coll_check.c: the rule of an operation; may this call be? Fills *out_len and *out_elem_size on success. */
const struct pldk__coll_rule *pldk__coll_rule(uint32_t op);
int pldk__coll_check(const struct pldk_domain *domain, struct pldk__coll_args *args, uint64_t *out_len,
		     uint32_t *out_elem_size);
/* The same for arguments whose numbers are known to be good. len: of a block */
int pldk__coll_check_buffers(const struct pldk_domain *domain, struct pldk__coll_args *args, uint64_t len);
static inline bool pldk__overlap(const void *a, uint64_t a_len, const void *b, uint64_t b_len)
{
	return (uintptr_t)a < (uintptr_t)b + b_len && (uintptr_t)b < (uintptr_t)a + a_len;
}

/* Two buffers that have nothing to do with each other are right for every operation. */
static inline bool pldk__coll_is_plain(const struct pldk__coll_args *args, uint64_t in_len, uint64_t out_len)
{
	const uintptr_t in_place = (uintptr_t)PLDK_IN_PLACE;

	return (uintptr_t)args->input > in_place && (uintptr_t)args->output > in_place &&
	       !pldk__overlap(args->input, in_len, args->output, out_len);
}
/* Is this rank among them? */
static inline bool pldk__coll_is(const struct pldk_domain *domain, int root, uint8_t who)
{
	return who == PLDK__COLL_ALL || (who == PLDK__COLL_ROOT && domain->rank == (uint32_t)root) ||
	       (who == PLDK__COLL_OTHERS && domain->rank != (uint32_t)root);
}

/* coll_flat.c: go as far as possible without waiting. 0: done; PLDK__AGAIN: wait for what it lacks; errno */
int pldk__flat_step(struct pldk__coll *coll);
void pldk__flat_give(struct pldk__coll *coll);
int pldk__flat_take(struct pldk__coll *coll);
/* Numbers that it takes, as far as this is known before the counts of all_to_all_v are. */
uint64_t pldk__flat_chunks(const struct pldk__coll *coll);

/* coll_small.c */
void pldk__small_plan(struct pldk__coll *coll);
int pldk__small_run(struct pldk__coll *coll, const struct pldk__coll_args *args, uint32_t site, bool *out_at_once);

/* coll_two_phase.c: the same for an allreduce or reduce of at least one byte and two ranks */
int pldk__two_phase_step(struct pldk__coll *coll);
void pldk__two_phase_plan(struct pldk__coll *coll, uint32_t slot_bytes);

/* Of an allreduce or reduce of len bytes: the part that a rank combines. Whole elements and lines. */
uint64_t pldk__coll_slice(const struct pldk_domain *domain, uint32_t rank, uint64_t len, uint64_t *out_at);

/* coll_direct.c: the same for calls of at least one byte for which pldk__direct_can(). */
int pldk__direct_step(struct pldk__coll *coll);
bool pldk__direct_can(const struct pldk__coll *coll);

/* coll_ring.c: the same for an allreduce of at least one byte and two ranks */
int pldk__ring_step(struct pldk__coll *coll);
void pldk__ring_plan(struct pldk__coll *coll, uint32_t slot_bytes, uint32_t look);

/* coll_credit.c: 0, -EINVAL, -EDOM */
int pldk__credit_check(const struct pldk_domain *domain, const struct pldk__coll_args *args);
int pldk__credit_begin(const struct pldk__coll *coll);
int pldk__credit_step(struct pldk__coll *coll);
int pldk__credit_wait(struct pldk__coll *coll);

/* coll_slot.c */
int pldk__slot_open(struct pldk_domain *domain, struct pldk__colls *colls);
/* Own slot of a number. It may be written until the number is announced. */
char *pldk__slot_own(const struct pldk__coll *coll, uint64_t number);
/* Copy a part of a rank's slot of a number that has arrived. */
int pldk__slot_take(struct pldk__coll *coll, uint32_t rank, uint64_t number, uint64_t offset, void *to, uint64_t len);
/* A pointer to the first bytes of one. */
int pldk__slot_peek(struct pldk__coll *coll, uint32_t rank, uint64_t number, uint64_t len, const void **out);
/* Pointers to the same part of the slots of ranks 0..nranks-1 in colls->sources. */
int pldk__slot_view(struct pldk__coll *coll, uint32_t nranks, uint64_t number, uint64_t offset, uint64_t len);

/* coll_table.c */
void pldk__coll_geometry(const struct pldk_domain *domain, uint32_t *out_slots, uint32_t *out_slot_bytes);
void pldk__coll_choose(struct pldk__coll *coll);

#endif /* _PLDK_COLL_INTERNAL_H */
