/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Collectives that go on while the caller computes: start now, wait for the handle later.
 *
 * Arguments and results are those of the blocking forms in <pldk/coll.h>. Buffers and counts belong to the library
 * until the handle has ended. All ranks start the collectives of a domain in the same order; one that blocks counts in
 * this order too, and meets one that was started elsewhere. They are completed in this order.
 *
 * There is no thread in the background. A start publishes this rank's part as far as it fits into one slot of the
 * staging memory (at least 32 KiB for all of it), so that small ones complete on the others without this rank; the rest
 * moves while this rank is in pldk_handle_test(), pldk_handle_wait(), a start or another collective of the same domain.
 * Who computes for long tests now and then. Waiting for a signal moves nothing: if what you wait for comes after
 * somebody's collective, wait for the handle first (the referee finds those who do not: -EDEADLK).
 *
 * A handle is ended by pldk_handle_wait(), by a pldk_handle_test() that says 1 or fails, or by pldk_handle_free(); see
 * <pldk/rma.h>. Both take the domain as the collectives do: -EBUSY, for a second thread, leaves the handle as it is.
 * pldk_handle_wait() goes on after -ETIMEDOUT, -EAGAIN and -EINTR. When a rank dies the handles end with -EOWNERDEAD.
 * pldk_handle_free() leaves the completion to the library: the buffers are its own until a later collective of the
 * domain has ended. What is not complete when the domain closes is given up: the others get -ESHUTDOWN.
 */
#ifndef _PLDK_COLL_START_H
#define _PLDK_COLL_START_H

#include <pldk/coll.h>
#include <pldk/rma.h> /* pldk_handle_wait() and its kin */

#ifdef __cplusplus
extern "C" {
#endif

#define PLDK_COLL_STARTED_MAX 64 /* of one domain that have not ended; more are -EBUSY */

/**
 * struct pldk_coll_options - how to start one
 * @size: sizeof(struct pldk_coll_options); set by PLDK_COLL_OPTIONS_INIT
 * @signal: signal window of the domain, as for the _on forms, or NULL for the domain's own cells
 * @flags: 0; others are -EOPNOTSUPP
 * @reserved: 0
 */
struct pldk_coll_options {
	size_t size;
	struct pldk_window *signal;
	uint32_t flags;
	uint32_t reserved;
};

#define PLDK_COLL_OPTIONS_INIT { sizeof(struct pldk_coll_options), 0, 0, 0 }

/*
 * Of all:
 * @options: or NULL
 * @out: the handle
 *
 * Never waits. Return: 0; what the blocking form refuses by itself, and then there is no handle, and the others get
 * that errno and its sentence in their turn; -EBUSY, -ENOMEM: nothing was said to anybody, it can be called again. What
 * the ranks find out together (-EPROTO, -EOWNERDEAD, ...) is told by the handle.
 */

/** pldk_barrier_start() - ends when all have entered: a barrier whose two halves stand apart */
int pldk_barrier_start(struct pldk_domain *domain, const struct pldk_coll_options *options, struct pldk_handle **out);
int pldk_barrier_start_at(struct pldk_site *site, struct pldk_domain *domain, const struct pldk_coll_options *options,
			  struct pldk_handle **out);

/** pldk_allreduce_start() - as pldk_allreduce() */
int pldk_allreduce_start(struct pldk_domain *domain, const void *input, void *output, size_t count,
			 enum pldk_dtype dtype, enum pldk_reduce_op op, enum pldk_mode mode,
			 const struct pldk_coll_options *options, struct pldk_handle **out);
int pldk_allreduce_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			    size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op, enum pldk_mode mode,
			    const struct pldk_coll_options *options, struct pldk_handle **out);

/** pldk_broadcast_start() - as pldk_broadcast() */
int pldk_broadcast_start(struct pldk_domain *domain, void *buffer, size_t count, enum pldk_dtype dtype, int root,
			 const struct pldk_coll_options *options, struct pldk_handle **out);
int pldk_broadcast_start_at(struct pldk_site *site, struct pldk_domain *domain, void *buffer, size_t count,
			    enum pldk_dtype dtype, int root, const struct pldk_coll_options *options,
			    struct pldk_handle **out);

/** pldk_allgather_start() - as pldk_allgather() */
int pldk_allgather_start(struct pldk_domain *domain, const void *input, void *output, size_t count,
			 enum pldk_dtype dtype, const struct pldk_coll_options *options, struct pldk_handle **out);
int pldk_allgather_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			    size_t count, enum pldk_dtype dtype, const struct pldk_coll_options *options,
			    struct pldk_handle **out);

/** pldk_reduce_scatter_start() - as pldk_reduce_scatter() */
int pldk_reduce_scatter_start(struct pldk_domain *domain, const void *input, void *output, size_t count,
			      enum pldk_dtype dtype, enum pldk_reduce_op op, const struct pldk_coll_options *options,
			      struct pldk_handle **out);
int pldk_reduce_scatter_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
				 size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op,
				 const struct pldk_coll_options *options, struct pldk_handle **out);

/** pldk_all_to_all_start() - as pldk_all_to_all() */
int pldk_all_to_all_start(struct pldk_domain *domain, const void *input, void *output, size_t count,
			  enum pldk_dtype dtype, const struct pldk_coll_options *options, struct pldk_handle **out);
int pldk_all_to_all_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			     size_t count, enum pldk_dtype dtype, const struct pldk_coll_options *options,
			     struct pldk_handle **out);

/** pldk_all_to_all_v_start() - as pldk_all_to_all_v(); the counts too belong to the library */
int pldk_all_to_all_v_start(struct pldk_domain *domain, const void *input, void *output, size_t row_count,
			    const size_t *send_counts, const size_t *recv_counts, enum pldk_dtype dtype,
			    const struct pldk_coll_options *options, struct pldk_handle **out);
int pldk_all_to_all_v_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			       size_t row_count, const size_t *send_counts, const size_t *recv_counts,
			       enum pldk_dtype dtype, const struct pldk_coll_options *options,
			       struct pldk_handle **out);

/** pldk_reduce_start() - as pldk_reduce() */
int pldk_reduce_start(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		      enum pldk_reduce_op op, int root, const struct pldk_coll_options *options,
		      struct pldk_handle **out);
int pldk_reduce_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			 size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op, int root,
			 const struct pldk_coll_options *options, struct pldk_handle **out);

/** pldk_gather_start() - as pldk_gather() */
int pldk_gather_start(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		      int root, const struct pldk_coll_options *options, struct pldk_handle **out);
int pldk_gather_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			 size_t count, enum pldk_dtype dtype, int root, const struct pldk_coll_options *options,
			 struct pldk_handle **out);

/** pldk_scatter_start() - as pldk_scatter() */
int pldk_scatter_start(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		       int root, const struct pldk_coll_options *options, struct pldk_handle **out);
int pldk_scatter_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			  size_t count, enum pldk_dtype dtype, int root, const struct pldk_coll_options *options,
			  struct pldk_handle **out);

/** pldk_scan_start() - as pldk_scan() */
int pldk_scan_start(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		    enum pldk_reduce_op op, const struct pldk_coll_options *options, struct pldk_handle **out);
int pldk_scan_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
		       size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op,
		       const struct pldk_coll_options *options, struct pldk_handle **out);

/** pldk_exscan_start() - as pldk_exscan() */
int pldk_exscan_start(struct pldk_domain *domain, const void *input, void *output, size_t count, enum pldk_dtype dtype,
		      enum pldk_reduce_op op, const struct pldk_coll_options *options, struct pldk_handle **out);
int pldk_exscan_start_at(struct pldk_site *site, struct pldk_domain *domain, const void *input, void *output,
			 size_t count, enum pldk_dtype dtype, enum pldk_reduce_op op,
			 const struct pldk_coll_options *options, struct pldk_handle **out);

#ifndef PLDK_NO_SITES
#define pldk_barrier_start(...) pldk_barrier_start_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_allreduce_start(...) pldk_allreduce_start_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_broadcast_start(...) pldk_broadcast_start_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_allgather_start(...) pldk_allgather_start_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_reduce_scatter_start(...) pldk_reduce_scatter_start_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_all_to_all_start(...) pldk_all_to_all_start_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_all_to_all_v_start(...) pldk_all_to_all_v_start_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_reduce_start(...) pldk_reduce_start_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_gather_start(...) pldk_gather_start_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_scatter_start(...) pldk_scatter_start_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_scan_start(...) pldk_scan_start_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_exscan_start(...) pldk_exscan_start_at(PLDK_SITE(), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif /* _PLDK_COLL_START_H */
