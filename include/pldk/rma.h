/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * One-sided transfers between a rank's own memory and a peer's slab.
 *
 * Every call checks peer, dtype, shapes, offsets and bounds before a byte moves. A blocking transfer is complete when
 * it returns; the *receiver* knows nothing of it until a later notify. Atomic adds from several ranks all land.
 */
#ifndef _PLDK_RMA_H
#define _PLDK_RMA_H

#include <pldk/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct pldk_region - which part of destination and source
 * @dst_offsets: in elements, one a dimension of the destination
 * @src_offsets: in elements, one a dimension of the source
 * @shape: extents > 0, one a dimension
 *
 * A NULL region stands for everything: then both shapes must be equal.
 */
struct pldk_region {
	const int64_t *dst_offsets;
	const int64_t *src_offsets;
	const int64_t *shape;
};

/**
 * struct pldk_rma_options - rarely needed
 * @size: sizeof(struct pldk_rma_options); set by PLDK_RMA_OPTIONS_INIT
 * @atomic: enum pldk_atomic
 * @chunk_rows: rows moved at a time (all dimensions but the last are rows); 0 is all, too large is all
 * @chunk_cols: elements of the last dimension moved at a time; 0 is all
 * @pipeline: overlap the next load with the store before; needs both chunk sizes
 * @timeout_ns: how long the call may wait for a far peer, or PLDK_FOREVER. 0 is PLDK_TIMEOUT_DEFAULT: there is no
 *              trying a transfer. A near peer is never waited for
 */
struct pldk_rma_options {
	size_t size;
	int atomic;
	int pipeline;
	int64_t chunk_rows;
	int64_t chunk_cols;
	int64_t timeout_ns;
};

#define PLDK_RMA_OPTIONS_INIT { sizeof(struct pldk_rma_options), PLDK_ATOMIC_NONE, 0, 0, 0, PLDK_TIMEOUT_DEFAULT }

/**
 * pldk_put() - write own elements into a peer's slab
 * @dst: view; the peer's part of it is written
 * @peer: 0..P-1; the caller itself is legal
 * @src: own elements; same dtype and number of dimensions
 * @region: or NULL
 * @options: or NULL
 *
 * Return: 0; -EINVAL (peer, shape, offsets: which dimension, offset, extent, limit; chunk sizes), -EDOM (dtypes
 * or numbers of dimensions differ, or not a tensor), -EOPNOTSUPP (atomic on a dtype or with a far peer that cannot),
 * -ESTALE, -EPERM (owner-writes window), -EOWNERDEAD (a far peer's carrier died), -ETIMEDOUT (what carries to far peers
 * did not move in time: a part of the bytes may have landed, and own memory is free), -ECANCELED, -EOVERFLOW.
 */
int pldk_put(const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src, const struct pldk_region *region,
	     const struct pldk_rma_options *options);
int pldk_put_at(struct pldk_site *site, const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src,
		const struct pldk_region *region, const struct pldk_rma_options *options);

/** pldk_get() - read a peer's elements into own memory; no atomic. Else as pldk_put(), with the roles exchanged */
int pldk_get(const struct pldk_tensor *dst, const struct pldk_dtensor *src, int peer, const struct pldk_region *region,
	     const struct pldk_rma_options *options);
int pldk_get_at(struct pldk_site *site, const struct pldk_tensor *dst, const struct pldk_dtensor *src, int peer,
		const struct pldk_region *region, const struct pldk_rma_options *options);

/**
 * struct pldk_signal_to - the notify that follows a put
 * @signal: signal window of the same domain
 * @cell: index in the peer's slab
 * @value: amount or new value
 * @op: enum pldk_notify_op
 *
 * Four values and never more, so that it can be written in place: what may come is a field of struct pldk_rma_options.
 */
struct pldk_signal_to {
	struct pldk_window *signal;
	int64_t cell;
	int64_t value;
	int op;
};

/**
 * pldk_put_notify() - put, then notify the same peer, as one call
 * @signal: what to notify. When its wait returns, this put and everything this thread put to that peer before is there
 *
 * Return: as pldk_put() and pldk_notify(); both are checked before a byte moves.
 */
int pldk_put_notify(const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src,
		    const struct pldk_region *region, const struct pldk_rma_options *options,
		    const struct pldk_signal_to *signal);
int pldk_put_notify_at(struct pldk_site *site, const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src,
		       const struct pldk_region *region, const struct pldk_rma_options *options,
		       const struct pldk_signal_to *signal);

/**
 * pldk_remote_load() - read a block of a peer's slab, with a ragged edge
 * @dst: own elements, dense, of exactly @shape
 * @src: view
 * @peer: whose part
 * @offsets: in elements, one a dimension of @src
 * @shape: extents > 0
 * @valid_shape: 0 <= valid <= shape: what is really read, or NULL for all that lies in @src from @offsets on (a block
 *               that sticks out is an error then; the text says to pass a smaller valid_shape)
 *
 * Elements of @dst outside the valid part keep their values. Return: as pldk_get().
 */
int pldk_remote_load(const struct pldk_tensor *dst, const struct pldk_dtensor *src, int peer, const int64_t *offsets,
		     const int64_t *shape, const int64_t *valid_shape);
int pldk_remote_load_at(struct pldk_site *site, const struct pldk_tensor *dst, const struct pldk_dtensor *src, int peer,
			const int64_t *offsets, const int64_t *shape, const int64_t *valid_shape);

/**
 * pldk_remote_store() - write a block into a peer's slab at an offset
 * @src: own elements; its extents land in the innermost dimensions of @dst (leading ones count as 1)
 * @dst: view with at least as many dimensions as @src
 * @peer: whose part
 * @offsets: in elements, one a dimension of @dst
 * @atomic: enum pldk_atomic
 *
 * A ragged edge is a pldk_put() with a region. Return: as pldk_put().
 */
int pldk_remote_store(const struct pldk_tensor *src, const struct pldk_dtensor *dst, int peer, const int64_t *offsets,
		      enum pldk_atomic atomic);
int pldk_remote_store_at(struct pldk_site *site, const struct pldk_tensor *src, const struct pldk_dtensor *dst,
			 int peer, const int64_t *offsets, enum pldk_atomic atomic);

/**
 * pldk_put_nb(), pldk_get_nb(), pldk_put_notify_nb() - start a transfer
 * @out: handle; must be ended by pldk_handle_wait(), a pldk_handle_test() that says 1, or pldk_handle_free()
 *
 * Own memory belongs to the transfer until then. pldk_put_notify_nb()'s notify follows its own put only. A handle that
 * was ended is told: -ESTALE from every call that gets it again. A domain that closes ends its handles.
 * Return: as the blocking forms; -ENOMEM (a million handles are under way).
 */
int pldk_put_nb(const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src,
		const struct pldk_region *region, const struct pldk_rma_options *options, struct pldk_handle **out);
int pldk_put_nb_at(struct pldk_site *site, const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src,
		   const struct pldk_region *region, const struct pldk_rma_options *options, struct pldk_handle **out);
int pldk_get_nb(const struct pldk_tensor *dst, const struct pldk_dtensor *src, int peer,
		const struct pldk_region *region, const struct pldk_rma_options *options, struct pldk_handle **out);
int pldk_get_nb_at(struct pldk_site *site, const struct pldk_tensor *dst, const struct pldk_dtensor *src, int peer,
		   const struct pldk_region *region, const struct pldk_rma_options *options, struct pldk_handle **out);
int pldk_put_notify_nb(const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src,
		       const struct pldk_region *region, const struct pldk_rma_options *options,
		       const struct pldk_signal_to *signal, struct pldk_handle **out);
int pldk_put_notify_nb_at(struct pldk_site *site, const struct pldk_dtensor *dst, int peer,
			  const struct pldk_tensor *src, const struct pldk_region *region,
			  const struct pldk_rma_options *options, const struct pldk_signal_to *signal,
			  struct pldk_handle **out);

/** pldk_handle_wait() - until it is complete; frees it unless -EAGAIN, -ETIMEDOUT, -EINTR. Return: 0 or its error */
int pldk_handle_wait(struct pldk_handle *handle, int64_t timeout_ns);
int pldk_handle_wait_at(struct pldk_site *site, struct pldk_handle *handle, int64_t timeout_ns);

/** pldk_handle_test() - Return: 1 complete (and freed), 0 not yet, or its error (and freed) */
int pldk_handle_test(struct pldk_handle *handle);
int pldk_handle_test_at(struct pldk_site *site, struct pldk_handle *handle);

/**
 * pldk_handle_free() - forget it: the library completes it and then frees it. NULL is nothing
 *
 * Own memory stays with the transfer until pldk_flush() to that peer. pldk_finalize() completes what is left.
 */
void pldk_handle_free(struct pldk_handle *handle);

/**
 * pldk_flush() - complete everything this thread started to a peer
 * @domain: where
 * @peer: rank, or PLDK_RANK_ANY for all
 * @timeout_ns: for the transfers
 *
 * Return: 0, -ETIMEDOUT, -EOWNERDEAD, -EINVAL.
 */
int pldk_flush(struct pldk_domain *domain, int peer, int64_t timeout_ns);
int pldk_flush_at(struct pldk_site *site, struct pldk_domain *domain, int peer, int64_t timeout_ns);

/**
 * pldk_fence() - this thread's earlier puts to a peer land before its later ones; gets are not ordered. Return: 0,
 * -EINVAL
 */
int pldk_fence(struct pldk_domain *domain, int peer);
int pldk_fence_at(struct pldk_site *site, struct pldk_domain *domain, int peer);

/**
 * pldk_fetch_add(), pldk_swap(), pldk_compare_swap() - one element of a peer's slab, atomically
 * @view: INT32 or INT64
 * @peer: whose part
 * @index: coordinates, one a dimension
 * @out_old: value before
 *
 * Atomic against each other and against atomic adds of the same dtype. They order nothing. With a far peer they wait as
 * long as PLDK_TIMEOUT_DEFAULT; after -ETIMEDOUT it may still be carried out, unless the sentence says that it was not
 * sent. Return: 0, -EINVAL, -EDOM (dtype), -ESTALE, -EPERM, -ETIMEDOUT, -EOWNERDEAD (both far).
 */
int pldk_fetch_add(const struct pldk_dtensor *view, int peer, const int64_t *index, int64_t value, int64_t *out_old);
int pldk_fetch_add_at(struct pldk_site *site, const struct pldk_dtensor *view, int peer, const int64_t *index,
		      int64_t value, int64_t *out_old);
int pldk_swap(const struct pldk_dtensor *view, int peer, const int64_t *index, int64_t value, int64_t *out_old);
int pldk_swap_at(struct pldk_site *site, const struct pldk_dtensor *view, int peer, const int64_t *index, int64_t value,
		 int64_t *out_old);
int pldk_compare_swap(const struct pldk_dtensor *view, int peer, const int64_t *index, int64_t expected, int64_t value,
		      int64_t *out_old);
int pldk_compare_swap_at(struct pldk_site *site, const struct pldk_dtensor *view, int peer, const int64_t *index,
			 int64_t expected, int64_t value, int64_t *out_old);

#ifndef PLDK_NO_SITES
#define pldk_put(...) pldk_put_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_get(...) pldk_get_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_put_notify(...) pldk_put_notify_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_remote_load(...) pldk_remote_load_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_remote_store(...) pldk_remote_store_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_put_nb(...) pldk_put_nb_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_get_nb(...) pldk_get_nb_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_put_notify_nb(...) pldk_put_notify_nb_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_handle_wait(...) pldk_handle_wait_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_handle_test(...) pldk_handle_test_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_flush(...) pldk_flush_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_fence(...) pldk_fence_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_fetch_add(...) pldk_fetch_add_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_swap(...) pldk_swap_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_compare_swap(...) pldk_compare_swap_at(PLDK_SITE(), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif /* _PLDK_RMA_H */
