/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Collectives: every rank of a domain calls the same one, in the same order, with the same arguments.
 *
 * Buffers may lie anywhere: in private memory or in a window. Counts are in elements and may be 0 (the call still
 * synchronises as its row of the order table says). Results are bit-identical on all ranks. Safe to call back to back
 * on the same buffers. One collective at a time on a domain: a second thread gets -EBUSY.
 *
 * A call that fails with -ETIMEDOUT, -EAGAIN or -EINTR is not over on the other ranks: this rank may be part of their
 * result. Make the same call again, with the same buffers and unchanged input, to go on where it stopped; its result is
 * then that of the first call. Any other collective instead ends in -EPROTO on all, unless the interrupted one was
 * complete but for this rank.
 *
 * Order: barrier, allreduce, allgather: everything before the entry of any member precedes the exit of each. Broadcast:
 * the root's entry precedes the others' exit.
 *
 * Errors of all: -EINVAL, -EPROTO (ranks disagree on operation, count, dtype, op or root; names them), -EOWNERDEAD,
 * -ESHUTDOWN (a rank finalised instead), -ETIMEDOUT (names who has not arrived), -ECANCELED, -EDEADLK, -EBUSY,
 * -EOPNOTSUPP (a mode or dtype that this build lacks: at once, before anything moves), -EOVERFLOW.
 */
#ifndef _PLDK_COLL_H
#define _PLDK_COLL_H

#include <pldk/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** enum pldk_mode - algorithm of an allreduce */
enum pldk_mode { PLDK_MODE_MESH = 0, PLDK_MODE_RING = 1, PLDK_MODE_TWO_PHASE = 2, PLDK_MODE_AUTO = 3 };

/** PLDK_IN_PLACE - as the input: the input stands where the result will be */
#define PLDK_IN_PLACE ((const void *)1)

/** pldk_barrier() - nobody leaves before all have entered */
int pldk_barrier(struct pldk_domain *domain, int64_t timeout_ns);
int pldk_barrier_at(struct pldk_site *site, struct pldk_domain *domain, int64_t timeout_ns);

/**
 * pldk_allreduce() - combine element by element over all ranks, result on all
 * @domain: who
 * @input: @count elements, or PLDK_IN_PLACE. Equal to @output is in place; partial overlap is -EINVAL
 * @output: @count elements
 * @count: elements
 * @dtype: element type
 * @op: PLDK_SUM, ...; elements are combined in rank order 0..P-1
 * @mode: PLDK_MODE_AUTO unless you mean one
 * @timeout_ns: for the whole call
 */
int pldk_allreduce(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		   enum pldk_reduce_op op, enum pldk_mode mode, int64_t timeout_ns);
int pldk_allreduce_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		      enum pldk_dtype dtype, enum pldk_reduce_op op, enum pldk_mode mode, int64_t timeout_ns);

/**
 * pldk_broadcast() - the root's elements to all
 * @buffer: @count elements: read on the root, written elsewhere
 * @root: rank
 */
int pldk_broadcast(struct pldk_domain *domain, void *buffer, size_t count, enum pldk_dtype dtype, int root,
		   int64_t timeout_ns);
int pldk_broadcast_at(struct pldk_site *site, struct pldk_domain *domain, void *buffer, size_t count,
		      enum pldk_dtype dtype, int root, int64_t timeout_ns);

/**
 * pldk_allgather() - everybody's elements to all, in rank order
 * @input: @count elements, or PLDK_IN_PLACE (they stand at row rank of @output)
 * @output: size x @count elements; row r is rank r's
 * @count: elements of one rank
 */
int pldk_allgather(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		   int64_t timeout_ns);
int pldk_allgather_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		      enum pldk_dtype dtype, int64_t timeout_ns);

#ifndef PLDK_NO_SITES
#define pldk_barrier(...) pldk_barrier_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_allreduce(...) pldk_allreduce_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_broadcast(...) pldk_broadcast_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_allgather(...) pldk_allgather_at(PLDK_SITE(), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif /* _PLDK_COLL_H */
