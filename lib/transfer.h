/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A checked transfer between own memory and a rank's slab: what rma_check.c makes of the arguments and rma.c and
 * handle.c carry out. And the lanes: what was started to far ranks (lane.c).
 */
#ifndef _PLDK_TRANSFER_H
#define _PLDK_TRANSFER_H

#include "internal.h"

#include <pldk/rma.h>

/**
 * struct pldk__transfer - bytes to move; every number in it was checked
 * @domain: of the window
 * @thread: from pldk__enter()
 * @map: the window below
 * @slab: the peer's slab, NULL if it is far
 * @local: first own byte
 * @remote: first byte in the slab
 * @bytes: to move in all
 * @chunk_rows, @chunk_cols: piece size in rows and elements, 0 for no limit
 * @deadline_ns: for what waits for a far peer's carrier
 * @window: its id
 * @peer: whose slab
 * @dtype, @elem_size: of both sides
 * @ndim: of @extent; 1 with strides of one element when all is contiguous
 * @is_get: from the slab to own memory
 * @is_atomic: add instead of overwrite
 * @is_pipelined: fetch the next piece while this one is stored
 * @extent: in elements
 * @local_stride, @remote_stride: bytes from one index to the next
 */
struct pldk__transfer {
	struct pldk_domain *domain;
	struct pldk__thread *thread;
	const struct pldk__map *map;
	char *slab;
	char *local;
	uint64_t remote;
	uint64_t bytes;
	uint64_t chunk_rows;
	uint64_t chunk_cols;
	uint64_t deadline_ns;
	uint32_t window;
	uint32_t peer;
	uint32_t dtype;
	uint32_t elem_size;
	uint32_t ndim;
	bool is_get;
	bool is_atomic;
	bool is_pipelined;
	uint64_t extent[PLDK_MAX_DIMS];
	uint64_t local_stride[PLDK_MAX_DIMS];
	uint64_t remote_stride[PLDK_MAX_DIMS];
};

/*
 * Checks: rma_check.c. Each enters the domain on success: the caller leaves with pldk__leave(t->thread).
 */

int pldk__transfer_region(struct pldk__transfer *t, const char *op, bool is_get, const struct pldk_dtensor *view,
			  int peer, const struct pldk_tensor *tensor, const struct pldk_region *region,
			  const struct pldk_rma_options *options);
int pldk__transfer_load(struct pldk__transfer *t, const struct pldk_tensor *dst, const struct pldk_dtensor *src,
			int peer, const int64_t *offsets, const int64_t *shape, const int64_t *valid_shape);
int pldk__transfer_store(struct pldk__transfer *t, const struct pldk_tensor *src, const struct pldk_dtensor *dst,
			 int peer, const int64_t *offsets, enum pldk_atomic atomic);
int pldk__transfer_element(struct pldk__transfer *t, const char *op, const struct pldk_dtensor *view, int peer,
			   const int64_t *index);
/* The notify half of put_notify. Inside the domain already. */
int pldk__check_signal_to(const struct pldk__transfer *t, const char *op, const struct pldk_signal_to *signal);

/*
 * Carry it out: near at once; far, start it and note it on the lane, *ticket is that of the last piece. When a get
 * fails, nothing of it is under way any more. rma.c
 */
int pldk__transfer_move(const struct pldk__transfer *t, uint64_t *ticket);

/* One element, by whoever can reach it: this thread, or the agent for a far rank. The value that was there. */
static inline int32_t pldk__rmw32(int32_t *at, enum pldk__rmw kind, int32_t operand, int32_t expected)
{
	switch (kind) {
	case PLDK__RMW_ADD:
		return (int32_t)((uint32_t)pldk__add_seq(at, operand) - (uint32_t)operand);
	case PLDK__RMW_SWAP:
		return pldk__xchg_seq(at, operand);
	default:
		(void)pldk__cas_seq(at, &expected, operand);
		return expected;
	}
}

static inline int64_t pldk__rmw64(int64_t *at, enum pldk__rmw kind, int64_t operand, int64_t expected)
{
	switch (kind) {
	case PLDK__RMW_ADD:
		return (int64_t)((uint64_t)pldk__add_seq(at, operand) - (uint64_t)operand);
	case PLDK__RMW_SWAP:
		return pldk__xchg_seq(at, operand);
	default:
		(void)pldk__cas_seq(at, &expected, operand);
		return expected;
	}
}

/*
 * With a ticket that is given to far_done(): should the wait time out, the transfer stays under way and is asked for
 * again. Without it, far_done() that fails has forgotten the get: its destination is not written any more.
 */
#define PLDK__FAR_KEEP (UINT64_C(1) << 63)

/*
 * Lanes: lane.c. A lane is the way to one far rank of one domain; tickets on it complete in order.
 */

struct pldk__lane {
	uint64_t sent; /* atomic: highest ticket handed out */
	uint64_t done; /* atomic: highest ticket known complete */
	uint64_t told; /* atomic: highest ticket whose failure a drain has returned */
};

/**
 * struct pldk__lanes - the lanes of a domain
 * @next: in the world's list
 */
struct pldk__lanes {
	struct pldk_domain *domain;
	struct pldk__lanes *next;
	struct pldk__lane lane[];
};

/* The domain's lanes, made at the first use. NULL: no memory, sentence set. */
struct pldk__lanes *pldk__lanes_of(struct pldk_domain *domain);
void pldk__lane_sent(struct pldk__lanes *lanes, uint32_t rank, uint64_t ticket);
/* Wait until what was sent to the rank so far is complete. 0 or an error of far_done(). */
int pldk__lane_drain(struct pldk__lanes *lanes, uint32_t rank, uint64_t deadline_ns);
/* Wait for one ticket. */
int pldk__lane_done(struct pldk__lanes *lanes, uint32_t rank, uint64_t ticket, uint64_t deadline_ns);
int pldk__lane_done_or_forget(struct pldk__lanes *lanes, uint32_t rank, uint64_t ticket, uint64_t deadline_ns);
/* The domain closes. */
void pldk__lanes_free(struct pldk_domain *domain);

/**
 * struct pldk__data - what the data path hangs on a domain (domain->data)
 * @lanes: this domain's, or NULL; atomic
 * @lock, @all_lanes: in the world's: the lanes of all its domains; changed, walked and drained under the lock
 * @colls: of the collectives (coll.h); NULL until the first
 */
struct pldk__data {
	struct pldk__lanes *lanes;
	pthread_mutex_t lock;
	struct pldk__lanes *all_lanes;
	struct pldk__colls *colls;
};

/* Made at the first use. NULL: no memory, sentence set. */
struct pldk__data *pldk__data_of(struct pldk_domain *domain);

/*
 * Handles of collectives: handle.c makes and ends them, coll_queue.c completes them.
 */

struct pldk__coll;

/* 0 or -ENOMEM. */
int pldk__handle_new(struct pldk_domain *domain, struct pldk__coll *coll, struct pldk_handle **out);
/*
 * Complete it and those before it. Between pldk__coll_lock() and pldk__coll_unlock(). Return: its outcome; not yet:
 * -EAGAIN (with PLD_DEADLINE_POLL, without a sentence), -ETIMEDOUT, -EINTR.
 */
int pldk__coll_finish(struct pldk__coll *coll, struct pldk__thread *thread, uint64_t deadline_ns);
/* Its handle has ended. It need not be over. */
void pldk__coll_forget(struct pldk__coll *coll);

#endif /* _PLDK_TRANSFER_H */
