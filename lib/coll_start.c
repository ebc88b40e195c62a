// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The public collectives that are started and go on later. Twins without _at take the caller's address as the site.
 */
#include "coll_args.h"

/**
 * pldk_barrier_start_at() - nobody leaves before all have entered; see coll_start.h
 */
int pldk_barrier_start_at(struct pldk_site *site, struct pldk_domain *domain, const struct pldk_coll_options *options,
			  struct pldk_handle **out)
{
	const struct pldk__coll_args args = pldk__args_barrier();

	return pldk__coll_start(site, domain, &args, options, out);
}

int(pldk_barrier_start)(struct pldk_domain *domain, const struct pldk_coll_options *options, struct pldk_handle **out)
{
	return pldk_barrier_start_at(PLDK__CALLER(), domain, options, out);
}

/**
 * pldk_allreduce_start_at() - combine element by element over all ranks; see coll_start.h
 */
int pldk_allreduce_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			    size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op, enum pldk_mode mode,
			    const struct pldk_coll_options *options, struct pldk_handle **out)
{
	const struct pldk__coll_args args = pldk__args_allreduce(input, output, count, dtype, op, mode);

	return pldk__coll_start(site, domain, &args, options, out);
}

int(pldk_allreduce_start)(struct pldk_domain *domain, const void *input, void *output, size_t count,
			  enum pldk_dtype dtype, enum pldk_reduce_op op, enum pldk_mode mode,
			  const struct pldk_coll_options *options, struct pldk_handle **out)
{
	return pldk_allreduce_start_at(PLDK__CALLER(), domain, input, output, count, dtype, op, mode, options, out);
}

/**
 * pldk_broadcast_start_at() - the root's elements to all; see coll_start.h
 */
int pldk_broadcast_start_at(struct pldk_site *site, struct pldk_domain *domain, void *buffer, size_t count,
			    enum pldk_dtype dtype, int root, const struct pldk_coll_options *options,
			    struct pldk_handle **out)
{
	const struct pldk__coll_args args = pldk__args_broadcast(buffer, count, dtype, root);

	return pldk__coll_start(site, domain, &args, options, out);
}

int(pldk_broadcast_start)(struct pldk_domain *domain, void *buffer, size_t count, enum pldk_dtype dtype, int root,
			  const struct pldk_coll_options *options, struct pldk_handle **out)
{
	return pldk_broadcast_start_at(PLDK__CALLER(), domain, buffer, count, dtype, root, options, out);
}

/**
 * pldk_allgather_start_at() - everybody's elements to all, in rank order; see coll_start.h
 */
int pldk_allgather_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			    size_t count, enum pldk_dtype dtype, const struct pldk_coll_options *options,
			    struct pldk_handle **out)
{
	const struct pldk__coll_args args = pldk__args_allgather(input, output, count, dtype);

	return pldk__coll_start(site, domain, &args, options, out);
}

int(pldk_allgather_start)(struct pldk_domain *domain, const void *input, void *output, size_t count,
			  enum pldk_dtype dtype, const struct pldk_coll_options *options, struct pldk_handle **out)
{
	return pldk_allgather_start_at(PLDK__CALLER(), domain, input, output, count, dtype, options, out);
}

/**
 * pldk_reduce_scatter_start_at() - combine everybody's row r and give it to rank r; see coll_start.h
 */
int pldk_reduce_scatter_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
				 size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op,
				 const struct pldk_coll_options *options, struct pldk_handle **out)
{
	const struct pldk__coll_args args = pldk__args_reduce_scatter(input, output, count, dtype, op);

	return pldk__coll_start(site, domain, &args, options, out);
}

int(pldk_reduce_scatter_start)(struct pldk_domain *domain, const void *input, void *output, size_t count,
			       enum pldk_dtype dtype, enum pldk_reduce_op op, const struct pldk_coll_options *options,
			       struct pldk_handle **out)
{
	return pldk_reduce_scatter_start_at(PLDK__CALLER(), domain, input, output, count, dtype, op, options, out);
}

/**
 * pldk_all_to_all_start_at() - row d of the input to rank d; see coll_start.h
 */
int pldk_all_to_all_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			     size_t count, enum pldk_dtype dtype, const struct pldk_coll_options *options,
			     struct pldk_handle **out)
{
	const struct pldk__coll_args args = pldk__args_all_to_all(input, output, count, dtype);

	return pldk__coll_start(site, domain, &args, options, out);
}

int(pldk_all_to_all_start)(struct pldk_domain *domain, const void *input, void *output, size_t count,
			   enum pldk_dtype dtype, const struct pldk_coll_options *options, struct pldk_handle **out)
{
	return pldk_all_to_all_start_at(PLDK__CALLER(), domain, input, output, count, dtype, options, out);
}

/**
 * pldk_all_to_all_v_start_at() - as all_to_all, each row with a count of its own; see coll_start.h
 */
int pldk_all_to_all_v_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			       size_t row_count, const size_t *send_counts, const size_t *recv_counts,
			       enum pldk_dtype dtype, const struct pldk_coll_options *options, struct pldk_handle **out)
{
	const struct pldk__coll_args args = pldk__args_all_to_all_v(input, output, row_count, send_counts, recv_counts,
								    dtype);

	return pldk__coll_start(site, domain, &args, options, out);
}

int(pldk_all_to_all_v_start)(struct pldk_domain *domain, const void *input, void *output, size_t row_count,
			     const size_t *send_counts, const size_t *recv_counts, enum pldk_dtype dtype,
			     const struct pldk_coll_options *options, struct pldk_handle **out)
{
	return pldk_all_to_all_v_start_at(PLDK__CALLER(), domain, input, output, row_count, send_counts, recv_counts,
					  dtype, options, out);
}

/**
 * pldk_reduce_start_at() - combine element by element, result on the root; see coll_start.h
 */
int pldk_reduce_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			 size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op, int root,
			 const struct pldk_coll_options *options, struct pldk_handle **out)
{
	const struct pldk__coll_args args = pldk__args_reduce(input, output, count, dtype, op, root);

	return pldk__coll_start(site, domain, &args, options, out);
}

int(pldk_reduce_start)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		       enum pldk_reduce_op op, int root, const struct pldk_coll_options *options,
		       struct pldk_handle **out)
{
	return pldk_reduce_start_at(PLDK__CALLER(), domain, input, output, count, dtype, op, root, options, out);
}

/**
 * pldk_gather_start_at() - everybody's elements to the root, in rank order; see coll_start.h
 */
int pldk_gather_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			 size_t count, enum pldk_dtype dtype, int root, const struct pldk_coll_options *options,
			 struct pldk_handle **out)
{
	const struct pldk__coll_args args = pldk__args_gather(input, output, count, dtype, root);

	return pldk__coll_start(site, domain, &args, options, out);
}

int(pldk_gather_start)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		       int root, const struct pldk_coll_options *options, struct pldk_handle **out)
{
	return pldk_gather_start_at(PLDK__CALLER(), domain, input, output, count, dtype, root, options, out);
}

/**
 * pldk_scatter_start_at() - row r of the root's input to rank r; see coll_start.h
 */
int pldk_scatter_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			  size_t count, enum pldk_dtype dtype, int root, const struct pldk_coll_options *options,
			  struct pldk_handle **out)
{
	const struct pldk__coll_args args = pldk__args_scatter(input, output, count, dtype, root);

	return pldk__coll_start(site, domain, &args, options, out);
}

int(pldk_scatter_start)(struct pldk_domain *domain, const void *input, void *output, size_t count,
			enum pldk_dtype dtype, int root, const struct pldk_coll_options *options,
			struct pldk_handle **out)
{
	return pldk_scatter_start_at(PLDK__CALLER(), domain, input, output, count, dtype, root, options, out);
}

/**
 * pldk_scan_start_at() - rank r gets the combination of ranks 0..r; see coll_start.h
 */
int pldk_scan_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
		       size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op,
		       const struct pldk_coll_options *options, struct pldk_handle **out)
{
	const struct pldk__coll_args args = pldk__args_scan(input, output, count, dtype, op);

	return pldk__coll_start(site, domain, &args, options, out);
}

int(pldk_scan_start)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		     enum pldk_reduce_op op, const struct pldk_coll_options *options, struct pldk_handle **out)
{
	return pldk_scan_start_at(PLDK__CALLER(), domain, input, output, count, dtype, op, options, out);
}

/**
 * pldk_exscan_start_at() - rank r gets the combination of ranks 0..r-1; see coll_start.h
 */
int pldk_exscan_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			 size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op,
			 const struct pldk_coll_options *options, struct pldk_handle **out)
{
	const struct pldk__coll_args args = pldk__args_exscan(input, output, count, dtype, op);

	return pldk__coll_start(site, domain, &args, options, out);
}

int(pldk_exscan_start)(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		       enum pldk_reduce_op op, const struct pldk_coll_options *options, struct pldk_handle **out)
{
	return pldk_exscan_start_at(PLDK__CALLER(), domain, input, output, count, dtype, op, options, out);
}
