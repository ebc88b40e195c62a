/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Collectives: every rank of a domain calls the same ones, in the same order, with the same arguments.
 *
 * Buffers may lie anywhere: in private memory or in a window. Large blocks are fastest when those of all ranks are in
 * windows of the domain (each in one that all ranks use in the call): then nothing is copied on the way. Counts are in
 * elements, 64 bits, and may be 0: the call still synchronises. What a rank does not use (the output of a rank that is
 * not the root of a reduce) may be NULL. Input == output is in place where PLDK_IN_PLACE is; any other overlap is
 * -EINVAL.
 *
 * Results are bit-identical on all ranks, and in rank order: element i is combined over ranks 0, 1, .. P-1 whatever the
 * count and the algorithm. Only PLDK_MODE_RING has an order of its own: segment s of P, which begins at element
 * s count / P, is combined over ranks s+1, s+2, .. s. FP16 and BF16 are combined in FP32 and rounded once (ring: at
 * each of its P-1 hops). A NaN of any rank gives NaN, for max and min too; floats overflow to infinity, integers wrap.
 *
 * One collective of a domain at a time: a second thread gets -EBUSY ("thread 22 is in allreduce"). Different domains are
 * independent, also when their ranks overlap. The same buffers may be used again at once.
 *
 * A call that fails with -ETIMEDOUT, -EAGAIN or -EINTR is not over on the other ranks: this rank may be part of their
 * result. Make the same call again, with the same buffers and unchanged input, to go on where it stopped; its result is
 * then that of the first call. Any other collective instead ends in -EPROTO on all, unless the interrupted one was
 * complete but for this rank. Of large blocks in windows the others read inputs and write results where they are; an
 * interrupted call leaves its buffers to them until it, or another collective of the domain, has returned.
 *
 * Order (entry of X precedes exit of Y): barrier, allreduce, allgather, reduce_scatter, all_to_all(_v): all to all.
 * broadcast, scatter: the root to the others. reduce, gather: the others to the root. scan, exscan: lower to higher
 * ranks. Also with count 0. A failed call orders nothing, and its output is undefined.
 *
 * Errors of all: -EINVAL, -EPROTO (ranks disagree on operation, mode, dtype, op, count or root; names them),
 * -EOWNERDEAD, -ESHUTDOWN (a rank finalised instead), -ETIMEDOUT (names who has not arrived), -EAGAIN (PLDK_TRY),
 * -EINTR, -ECANCELED, -EDEADLK, -EBUSY, -EOVERFLOW, -ENOMEM, -ESTALE (its window is destroyed). Arguments that are
 * wrong on one rank alone still take part: it has its errno at once, the others get that errno and its sentence.
 */
#ifndef _PLDK_COLL_H
#define _PLDK_COLL_H

#include <pldk/diag.h> /* enum pldk_event_op */
#include <pldk/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * enum pldk_mode - algorithm of an allreduce
 * @PLDK_MODE_MESH: every rank combines everything itself
 * @PLDK_MODE_RING: what a rank reads comes from its left neighbour; has its own order of combining
 * @PLDK_MODE_TWO_PHASE: each rank combines its slice for all; for large blocks
 * @PLDK_MODE_AUTO: mesh or two-phase, as the library chooses: the bits are the same
 */
enum pldk_mode { PLDK_MODE_MESH = 0, PLDK_MODE_RING = 1, PLDK_MODE_TWO_PHASE = 2, PLDK_MODE_AUTO = 3 };

/** PLDK_IN_PLACE - as the input: the input stands where the result will be */
#define PLDK_IN_PLACE ((const void *)1)

/** pldk_barrier() - nobody leaves before all have entered */
int pldk_barrier(struct pldk_domain *domain, int64_t timeout_ns);
int pldk_barrier_at(struct pldk_site *site, struct pldk_domain *domain, int64_t timeout_ns);

/**
 * pldk_allreduce() - combine element by element over all ranks, result on all
 * @domain: who
 * @input: @count elements, or PLDK_IN_PLACE
 * @output: @count elements
 * @count: elements
 * @dtype: element type
 * @op: PLDK_SUM, ...
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
 * @root: rank; may change from call to call
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

/**
 * pldk_reduce_scatter() - combine everybody's row r and give it to rank r
 * @input: size x @count elements, or PLDK_IN_PLACE: @output then has size rows, and only row rank of it is written
 * @output: @count elements
 * @count: elements of one row
 */
int pldk_reduce_scatter(struct pldk_domain *domain, const void *input, void *output, size_t count,
			enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns);
int pldk_reduce_scatter_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			   size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns);

/**
 * pldk_all_to_all() - row d of the input to rank d; row s of the output is from rank s
 * @input: size x @count elements; may not share a byte with @output (PLDK_IN_PLACE is -EINVAL)
 * @output: size x @count elements
 * @count: elements of one row
 */
int pldk_all_to_all(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		    int64_t timeout_ns);
int pldk_all_to_all_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
		       size_t count, enum pldk_dtype dtype, int64_t timeout_ns);

/**
 * pldk_all_to_all_v() - as pldk_all_to_all(), each row with a count of its own; only counted elements move
 * @input: rows of @row_count elements, row d begins at d x @row_count
 * @output: rows of @row_count elements; of row s only the first @recv_counts[s] are written
 * @row_count: distance of rows in elements; equal on all ranks
 * @send_counts: size counts, each <= @row_count (-EINVAL: index and value)
 * @recv_counts: size counts; must be what the peers send (-EPROTO on all ranks: from, to, both counts)
 */
int pldk_all_to_all_v(struct pldk_domain *domain, const void *input, void *output, size_t row_count,
		      const size_t *send_counts, const size_t *recv_counts, enum pldk_dtype dtype, int64_t timeout_ns);
int pldk_all_to_all_v_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			 size_t row_count, const size_t *send_counts, const size_t *recv_counts, enum pldk_dtype dtype,
			 int64_t timeout_ns);

/**
 * pldk_reduce() - combine element by element, result on the root
 * @input: @count elements; PLDK_IN_PLACE on the root only
 * @output: @count elements on the root; elsewhere not used, may be NULL
 */
int pldk_reduce(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		enum pldk_reduce_op op, int root, int64_t timeout_ns);
int pldk_reduce_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		   enum pldk_dtype dtype, enum pldk_reduce_op op, int root, int64_t timeout_ns);

/**
 * pldk_gather() - everybody's elements to the root, in rank order
 * @input: @count elements; PLDK_IN_PLACE on the root only (they stand at row root of @output)
 * @output: size x @count elements on the root; elsewhere not used, may be NULL
 */
int pldk_gather(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		int root, int64_t timeout_ns);
int pldk_gather_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		   enum pldk_dtype dtype, int root, int64_t timeout_ns);

/**
 * pldk_scatter() - row r of the root's input to rank r
 * @input: size x @count elements on the root; elsewhere not used, may be NULL
 * @output: @count elements. On the root NULL leaves its row where it stands in @input
 */
int pldk_scatter(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		 int root, int64_t timeout_ns);
int pldk_scatter_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		    enum pldk_dtype dtype, int root, int64_t timeout_ns);

/**
 * pldk_scan() - rank r gets the combination of ranks 0..r
 * @input: @count elements, or PLDK_IN_PLACE
 */
int pldk_scan(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
	      enum pldk_reduce_op op, int64_t timeout_ns);
int pldk_scan_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		 enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns);

/** pldk_exscan() - rank r gets the combination of ranks 0..r-1; the output of rank 0 is not written, may be NULL */
int pldk_exscan(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		enum pldk_reduce_op op, int64_t timeout_ns);
int pldk_exscan_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		   enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns);

/**
 * pldk_coll_supported() - is there such a collective? Decided by the code that checks the calls
 * @op: PLDK_EV_BARRIER, PLDK_EV_ALLREDUCE, ...
 * @mode: of an allreduce; not looked at for others
 * @dtype: not looked at for a barrier
 * @reduce: of what combines; not looked at for others
 *
 * Needs no domain. Return: 0, or the errno that the call would have: -EINVAL.
 */
int pldk_coll_supported(enum pldk_event_op op, enum pldk_mode mode, enum pldk_dtype dtype, enum pldk_reduce_op reduce);

#ifndef PLDK_NO_SITES
#define pldk_barrier(...) pldk_barrier_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_allreduce(...) pldk_allreduce_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_broadcast(...) pldk_broadcast_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_allgather(...) pldk_allgather_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_reduce_scatter(...) pldk_reduce_scatter_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_all_to_all(...) pldk_all_to_all_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_all_to_all_v(...) pldk_all_to_all_v_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_reduce(...) pldk_reduce_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_gather(...) pldk_gather_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_scatter(...) pldk_scatter_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_scan(...) pldk_scan_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_exscan(...) pldk_exscan_at(PLDK_SITE(), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif /* _PLDK_COLL_H */
