// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The public collectives that block. Twins without _at take the caller's address as the site.
 */
#include "coll_args.h"

/**
 * pldk_barrier_at() - nobody leaves before all have entered; see coll.h
 */
int pldk_barrier_at(struct pldk_site *site, struct pldk_domain *domain, int64_t timeout_ns)
{
	const struct pldk__coll_args args = pldk__args_barrier();

	return pldk__coll_run(site, domain, &args, timeout_ns);
}

int(pldk_barrier)(struct pldk_domain *domain, int64_t timeout_ns)
{
	return pldk_barrier_at(PLDK__CALLER(), domain, timeout_ns);
}

/**
 * pldk_allreduce_at() - combine element by element over all ranks; see coll.h
 */
int pldk_allreduce_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		      enum pldk_dtype dtype, enum pldk_reduce_op op, enum pldk_mode mode, int64_t timeout_ns)
{
	const struct pldk__coll_args args = pldk__args_allreduce(input, output, count, dtype, op, mode);

	return pldk__coll_run(site, domain, &args, timeout_ns);
}

int(pldk_allreduce)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		    enum pldk_reduce_op op, enum pldk_mode mode, int64_t timeout_ns)
{
	return pldk_allreduce_at(PLDK__CALLER(), domain, input, output, count, dtype, op, mode, timeout_ns);
}

/**
 * pldk_broadcast_at() - the root's elements to all; see coll.h
 */
int pldk_broadcast_at(struct pldk_site *site, struct pldk_domain *domain, void *buffer, size_t count,
		      enum pldk_dtype dtype, int root, int64_t timeout_ns)
{
	const struct pldk__coll_args args = pldk__args_broadcast(buffer, count, dtype, root);

	return pldk__coll_run(site, domain, &args, timeout_ns);
}

int(pldk_broadcast)(struct pldk_domain *domain, void *buffer, size_t count, enum pldk_dtype dtype, int root,
		    int64_t timeout_ns)
{
	return pldk_broadcast_at(PLDK__CALLER(), domain, buffer, count, dtype, root, timeout_ns);
}

/**
 * pldk_allgather_at() - everybody's elements to all, in rank order; see coll.h
 */
int pldk_allgather_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		      enum pldk_dtype dtype, int64_t timeout_ns)
{
	const struct pldk__coll_args args = pldk__args_allgather(input, output, count, dtype);

	return pldk__coll_run(site, domain, &args, timeout_ns);
}

int(pldk_allgather)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		    int64_t timeout_ns)
{
	return pldk_allgather_at(PLDK__CALLER(), domain, input, output, count, dtype, timeout_ns);
}

/**
 * pldk_reduce_scatter_at() - combine everybody's row r and give it to rank r; see coll.h
 */
int pldk_reduce_scatter_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			   size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns)
{
	const struct pldk__coll_args args = pldk__args_reduce_scatter(input, output, count, dtype, op);

	return pldk__coll_run(site, domain, &args, timeout_ns);
}

int(pldk_reduce_scatter)(struct pldk_domain *domain, const void *input, void *output, size_t count,
			 enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns)
{
	return pldk_reduce_scatter_at(PLDK__CALLER(), domain, input, output, count, dtype, op, timeout_ns);
}

/**
 * pldk_all_to_all_at() - row d of the input to rank d; see coll.h
 */
int pldk_all_to_all_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
		       size_t count, enum pldk_dtype dtype, int64_t timeout_ns)
{
	const struct pldk__coll_args args = pldk__args_all_to_all(input, output, count, dtype);

	return pldk__coll_run(site, domain, &args, timeout_ns);
}

int(pldk_all_to_all)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		     int64_t timeout_ns)
{
	return pldk_all_to_all_at(PLDK__CALLER(), domain, input, output, count, dtype, timeout_ns);
}

/**
 * pldk_all_to_all_v_at() - as all_to_all, each row with a count of its own; see coll.h
 */
int pldk_all_to_all_v_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			 size_t row_count, const size_t *send_counts, const size_t *recv_counts, enum pldk_dtype dtype,
			 int64_t timeout_ns)
{
	const struct pldk__coll_args args = pldk__args_all_to_all_v(input, output, row_count, send_counts, recv_counts,
								    dtype);

	return pldk__coll_run(site, domain, &args, timeout_ns);
}

int(pldk_all_to_all_v)(struct pldk_domain *domain, const void *input, void *output, size_t row_count,
		       const size_t *send_counts, const size_t *recv_counts, enum pldk_dtype dtype, int64_t timeout_ns)
{
	return pldk_all_to_all_v_at(PLDK__CALLER(), domain, input, output, row_count, send_counts, recv_counts, dtype,
				    timeout_ns);
}

/**
 * pldk_reduce_at() - combine element by element, result on the root; see coll.h
 */
int pldk_reduce_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		   enum pldk_dtype dtype, enum pldk_reduce_op op, int root, int64_t timeout_ns)
{
	const struct pldk__coll_args args = pldk__args_reduce(input, output, count, dtype, op, root);

	return pldk__coll_run(site, domain, &args, timeout_ns);
}

int(pldk_reduce)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		 enum pldk_reduce_op op, int root, int64_t timeout_ns)
{
	return pldk_reduce_at(PLDK__CALLER(), domain, input, output, count, dtype, op, root, timeout_ns);
}

/**
 * pldk_gather_at() - everybody's elements to the root, in rank order; see coll.h
 */
int pldk_gather_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		   enum pldk_dtype dtype, int root, int64_t timeout_ns)
{
	const struct pldk__coll_args args = pldk__args_gather(input, output, count, dtype, root);

	return pldk__coll_run(site, domain, &args, timeout_ns);
}

int(pldk_gather)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		 int root, int64_t timeout_ns)
{
	return pldk_gather_at(PLDK__CALLER(), domain, input, output, count, dtype, root, timeout_ns);
}

/**
 * pldk_scatter_at() - row r of the root's input to rank r; see coll.h
 */
int pldk_scatter_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		    enum pldk_dtype dtype, int root, int64_t timeout_ns)
{
	const struct pldk__coll_args args = pldk__args_scatter(input, output, count, dtype, root);

	return pldk__coll_run(site, domain, &args, timeout_ns);
}

int(pldk_scatter)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		  int root, int64_t timeout_ns)
{
	return pldk_scatter_at(PLDK__CALLER(), domain, input, output, count, dtype, root, timeout_ns);
}

/**
 * pldk_scan_at() - rank r gets the combination of ranks 0..r; see coll.h
 */
int pldk_scan_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		 enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns)
{
	const struct pldk__coll_args args = pldk__args_scan(input, output, count, dtype, op);

	return pldk__coll_run(site, domain, &args, timeout_ns);
}

int(pldk_scan)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
	       enum pldk_reduce_op op, int64_t timeout_ns)
{
	return pldk_scan_at(PLDK__CALLER(), domain, input, output, count, dtype, op, timeout_ns);
}

/**
 * pldk_exscan_at() - rank r gets the combination of ranks 0..r-1; see coll.h
 */
int pldk_exscan_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output, size_t count,
		   enum pldk_dtype dtype, enum pldk_reduce_op op, int64_t timeout_ns)
{
	const struct pldk__coll_args args = pldk__args_exscan(input, output, count, dtype, op);

	return pldk__coll_run(site, domain, &args, timeout_ns);
}

int(pldk_exscan)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		 enum pldk_reduce_op op, int64_t timeout_ns)
{
	return pldk_exscan_at(PLDK__CALLER(), domain, input, output, count, dtype, op, timeout_ns);
}
