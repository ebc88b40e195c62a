// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The public collectives on a signal window of the caller. Twins without _at take the caller's address as the site.
 */
#include "coll_args.h"

/**
 * pldk_barrier_on_at() - nobody leaves before all have entered; see coll_on.h
 */
int pldk_barrier_on_at(struct pldk_site *site, struct pldk_window *signal, int64_t timeout_ns)
{
	return pldk__coll_run_on(site, signal, pldk__args_barrier(), timeout_ns);
}

int(pldk_barrier_on)(struct pldk_window *signal, int64_t timeout_ns)
{
	return pldk_barrier_on_at(PLDK__CALLER(), signal, timeout_ns);
}

/**
 * pldk_allreduce_on_at() - combine element by element over all ranks; see coll_on.h
 */
int pldk_allreduce_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output,
			 size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op, enum pldk_mode mode,
			 int64_t timeout_ns)
{
	return pldk__coll_run_on(site, signal, pldk__args_allreduce(input, output, count, dtype, op, mode), timeout_ns);
}

int(pldk_allreduce_on)(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		       enum pldk_reduce_op op, enum pldk_mode mode, int64_t timeout_ns)
{
	return pldk_allreduce_on_at(PLDK__CALLER(), signal, input, output, count, dtype, op, mode, timeout_ns);
}

/**
 * pldk_broadcast_on_at() - the root's elements to all; see coll_on.h
 */
int pldk_broadcast_on_at(struct pldk_site *site, struct pldk_window *signal, void *buffer, size_t count,
			 enum pldk_dtype dtype, int root, int64_t timeout_ns)
{
	return pldk__coll_run_on(site, signal, pldk__args_broadcast(buffer, count, dtype, root), timeout_ns);
}

int(pldk_broadcast_on)(struct pldk_window *signal, void *buffer, size_t count, enum pldk_dtype dtype, int root,
		       int64_t timeout_ns)
{
	return pldk_broadcast_on_at(PLDK__CALLER(), signal, buffer, count, dtype, root, timeout_ns);
}

/**
 * pldk_allgather_on_at() - everybody's elements to all, in rank order; see coll_on.h
 */
int pldk_allgather_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output,
			 size_t count, enum pldk_dtype dtype, int64_t timeout_ns)
{
	return pldk__coll_run_on(site, signal, pldk__args_allgather(input, output, count, dtype), timeout_ns);
}

int(pldk_allgather_on)(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		       int64_t timeout_ns)
{
	return pldk_allgather_on_at(PLDK__CALLER(), signal, input, output, count, dtype, timeout_ns);
}

/**
 * pldk_reduce_scatter_on_at() - combine everybody's row r and give it to rank r; see coll_on.h
 */
int pldk_reduce_scatter_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output,
			      size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns)
{
	return pldk__coll_run_on(site, signal, pldk__args_reduce_scatter(input, output, count, dtype, op), timeout_ns);
}

int(pldk_reduce_scatter_on)(struct pldk_window *signal, const void *input, void *output, size_t count,
			    enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns)
{
	return pldk_reduce_scatter_on_at(PLDK__CALLER(), signal, input, output, count, dtype, op, timeout_ns);
}

/**
 * pldk_all_to_all_on_at() - row d of the input to rank d; see coll_on.h
 */
int pldk_all_to_all_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output,
			  size_t count, enum pldk_dtype dtype, int64_t timeout_ns)
{
	return pldk__coll_run_on(site, signal, pldk__args_all_to_all(input, output, count, dtype), timeout_ns);
}

int(pldk_all_to_all_on)(struct pldk_window *signal, const void *input, void *output, size_t count,
			enum pldk_dtype dtype, int64_t timeout_ns)
{
	return pldk_all_to_all_on_at(PLDK__CALLER(), signal, input, output, count, dtype, timeout_ns);
}

/**
 * pldk_all_to_all_v_on_at() - as all_to_all, each row with a count of its own; see coll_on.h
 */
int pldk_all_to_all_v_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output,
			    size_t row_count, const size_t *send_counts, const size_t *recv_counts,
			    enum pldk_dtype dtype, int64_t timeout_ns)
{
	return pldk__coll_run_on(site, signal,
				 pldk__args_all_to_all_v(input, output, row_count, send_counts, recv_counts, dtype),
				 timeout_ns);
}

int(pldk_all_to_all_v_on)(struct pldk_window *signal, const void *input, void *output, size_t row_count,
			  const size_t *send_counts, const size_t *recv_counts, enum pldk_dtype dtype,
			  int64_t timeout_ns)
{
	return pldk_all_to_all_v_on_at(PLDK__CALLER(), signal, input, output, row_count, send_counts, recv_counts,
				       dtype, timeout_ns);
}

/**
 * pldk_reduce_on_at() - combine element by element, result on the root; see coll_on.h
 */
int pldk_reduce_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output, size_t count,
		      enum pldk_dtype dtype, enum pldk_reduce_op op, int root, int64_t timeout_ns)
{
	return pldk__coll_run_on(site, signal, pldk__args_reduce(input, output, count, dtype, op, root), timeout_ns);
}

int(pldk_reduce_on)(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		    enum pldk_reduce_op op, int root, int64_t timeout_ns)
{
	return pldk_reduce_on_at(PLDK__CALLER(), signal, input, output, count, dtype, op, root, timeout_ns);
}

/**
 * pldk_gather_on_at() - everybody's elements to the root, in rank order; see coll_on.h
 */
int pldk_gather_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output, size_t count,
		      enum pldk_dtype dtype, int root, int64_t timeout_ns)
{
	return pldk__coll_run_on(site, signal, pldk__args_gather(input, output, count, dtype, root), timeout_ns);
}

int(pldk_gather_on)(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		    int root, int64_t timeout_ns)
{
	return pldk_gather_on_at(PLDK__CALLER(), signal, input, output, count, dtype, root, timeout_ns);
}

/**
 * pldk_scatter_on_at() - row r of the root's input to rank r; see coll_on.h
 */
int pldk_scatter_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output,
		       size_t count, enum pldk_dtype dtype, int root, int64_t timeout_ns)
{
	return pldk__coll_run_on(site, signal, pldk__args_scatter(input, output, count, dtype, root), timeout_ns);
}

int(pldk_scatter_on)(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		     int root, int64_t timeout_ns)
{
	return pldk_scatter_on_at(PLDK__CALLER(), signal, input, output, count, dtype, root, timeout_ns);
}

/**
 * pldk_scan_on_at() - rank r gets the combination of ranks 0..r; see coll_on.h
 */
int pldk_scan_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output, size_t count,
		    enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns)
{
	return pldk__coll_run_on(site, signal, pldk__args_scan(input, output, count, dtype, op), timeout_ns);
}

int(pldk_scan_on)(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		  enum pldk_reduce_op op, int64_t timeout_ns)
{
	return pldk_scan_on_at(PLDK__CALLER(), signal, input, output, count, dtype, op, timeout_ns);
}

/**
 * pldk_exscan_on_at() - rank r gets the combination of ranks 0..r-1; see coll_on.h
 */
int pldk_exscan_on_at(struct pldk_site *site, struct pldk_window *signal, const void *input, void *output, size_t count,
		      enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns)
{
	return pldk__coll_run_on(site, signal, pldk__args_exscan(input, output, count, dtype, op), timeout_ns);
}

int(pldk_exscan_on)(struct pldk_window *signal, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		    enum pldk_reduce_op op, int64_t timeout_ns)
{
	return pldk_exscan_on_at(PLDK__CALLER(), signal, input, output, count, dtype, op, timeout_ns);
}
