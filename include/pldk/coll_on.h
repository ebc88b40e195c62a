/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Collectives on a signal window of the caller.
 *
 * pldk_X_on(signal, ...) is pldk_X() over the window's domain, with the same arguments and results; its ranks leave
 * through the window's cells, which are all 0 again when the call returns. One window serves any number of calls of one
 * layout, back to back. The layout fixes the shape:
 *
 *   mesh       [NR] or [NR, 1]     all collectives, an allreduce of mode mesh or auto
 *   two-phase  [2, NR]             an allreduce of mode two-phase
 *   ring       [2 (NR - 1), NR]    an allreduce of mode ring; at least one row
 *
 * Errors, on top of those of pldk_X(): -EINVAL (not the shape: both are told; NULL), -EDOM (a data window), -ESTALE
 * (destroyed), -EBUSY (the window was used with another layout: both call sites; or a cell is not 0, because a call on
 * it was given up or somebody has notified it: which cell). After -EBUSY, pldk_window_reset() makes it new. A call in
 * progress keeps its window from being destroyed and reset (-EBUSY).
 */
#ifndef _PLDK_COLL_ON_H
#define _PLDK_COLL_ON_H

#include <pldk/coll.h>
#include <pldk/diag.h> /* enum pldk_event_op */

#ifdef __cplusplus
extern "C" {
#endif

/**
 * pldk_coll_signal_shape() - shape in cells that a signal window must have
 * @op: PLDK_EV_BARRIER, PLDK_EV_ALLREDUCE, ...
 * @mode: of an allreduce; of others any
 * @nranks: 1..PLDK_MAX_RANKS
 * @out_shape: two extents
 *
 * Return: 0 or -EINVAL.
 */
int pldk_coll_signal_shape(enum pldk_event_op op, enum pldk_mode mode, int nranks, int64_t out_shape[2]);

/** pldk_barrier_on() - as pldk_barrier() */
int pldk_barrier_on(struct pldk_window *signal, int64_t timeout_ns);
int pldk_barrier_on_at(struct pldk_site *site, struct pldk_window *signal, int64_t timeout_ns);

/** pldk_allreduce_on() - as pldk_allreduce() */
int pldk_allreduce_on(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		      enum pldk_reduce_op op, enum pldk_mode mode, int64_t timeout_ns);
int pldk_allreduce_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output,
			 size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op, enum pldk_mode mode,
			 int64_t timeout_ns);

/** pldk_broadcast_on() - as pldk_broadcast() */
int pldk_broadcast_on(struct pldk_window *signal, void *buffer, size_t count, enum pldk_dtype dtype, int root,
		      int64_t timeout_ns);
int pldk_broadcast_on_at(struct pldk_site *site, struct pldk_window *signal, void *buffer, size_t count,
			 enum pldk_dtype dtype, int root, int64_t timeout_ns);

/** pldk_allgather_on() - as pldk_allgather() */
int pldk_allgather_on(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		      int64_t timeout_ns);
int pldk_allgather_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output,
			 size_t count, enum pldk_dtype dtype, int64_t timeout_ns);

/** pldk_reduce_scatter_on() - as pldk_reduce_scatter() */
int pldk_reduce_scatter_on(struct pldk_window *signal, const void *input, void *output, size_t count,
			   enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns);
int pldk_reduce_scatter_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output,
			      size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns);

/** pldk_all_to_all_on() - as pldk_all_to_all() */
int pldk_all_to_all_on(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		       int64_t timeout_ns);
int pldk_all_to_all_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output,
			  size_t count, enum pldk_dtype dtype, int64_t timeout_ns);

/** pldk_all_to_all_v_on() - as pldk_all_to_all_v() */
int pldk_all_to_all_v_on(struct pldk_window *signal, const void *input, void *output, size_t row_count,
			 const size_t *send_counts, const size_t *recv_counts, enum pldk_dtype dtype,
			 int64_t timeout_ns);
int pldk_all_to_all_v_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output,
			    size_t row_count, const size_t *send_counts, const size_t *recv_counts,
			    enum pldk_dtype dtype, int64_t timeout_ns);

/** pldk_reduce_on() - as pldk_reduce() */
int pldk_reduce_on(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		   enum pldk_reduce_op op, int root, int64_t timeout_ns);
int pldk_reduce_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output, size_t count,
		      enum pldk_dtype dtype, enum pldk_reduce_op op, int root, int64_t timeout_ns);

/** pldk_gather_on() - as pldk_gather() */
int pldk_gather_on(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		   int root, int64_t timeout_ns);
int pldk_gather_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output, size_t count,
		      enum pldk_dtype dtype, int root, int64_t timeout_ns);

/** pldk_scatter_on() - as pldk_scatter() */
int pldk_scatter_on(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		    int root, int64_t timeout_ns);
int pldk_scatter_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output,
		       size_t count, enum pldk_dtype dtype, int root, int64_t timeout_ns);

/** pldk_scan_on() - as pldk_scan() */
int pldk_scan_on(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		 enum pldk_reduce_op op, int64_t timeout_ns);
int pldk_scan_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output, size_t count,
		    enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns);

/** pldk_exscan_on() - as pldk_exscan() */
int pldk_exscan_on(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		   enum pldk_reduce_op op, int64_t timeout_ns);
int pldk_exscan_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output, size_t count,
		      enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns);

#ifndef PLDK_NO_SITES
#define pldk_barrier_on(...) pldk_barrier_on_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_allreduce_on(...) pldk_allreduce_on_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_broadcast_on(...) pldk_broadcast_on_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_allgather_on(...) pldk_allgather_on_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_reduce_scatter_on(...) pldk_reduce_scatter_on_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_all_to_all_on(...) pldk_all_to_all_on_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_all_to_all_v_on(...) pldk_all_to_all_v_on_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_reduce_on(...) pldk_reduce_on_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_gather_on(...) pldk_gather_on_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_scatter_on(...) pldk_scatter_on_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_scan_on(...) pldk_scan_on_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_exscan_on(...) pldk_exscan_on_at(PLDK_SITE(), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif /* _PLDK_COLL_ON_H */
