/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Windows, views and symbolic dimensions: the memory that ranks share.
 *
 * A window is one zeroed, page-aligned slab per rank. Peers are addressed by (rank, window, offset): addresses differ
 * from process to process, and a far peer's slab has none (pldk_window_peer() is NULL).
 */
#ifndef _PLDK_WINDOW_H
#define _PLDK_WINDOW_H

#include <pldk/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLDK_WINDOW_OWNER_WRITES (1u << 0) /* only its owner may write a slab; put to it is -EPERM */
#define PLDK_WINDOW_HUGE (1u << 1)         /* wish for 2 MiB pages; pldk_window_page_bytes() tells what it got */
#define PLDK_WINDOW_INTERLEAVE (1u << 2)   /* pages go round the NUMA nodes instead of the owner's */
#define PLDK_WINDOW_HUGE_ONLY (1u << 3)    /* no fallback: -EOPNOTSUPP */

/**
 * struct pldk_window_options - rarely needed
 * @size: sizeof(struct pldk_window_options); set by PLDK_WINDOW_OPTIONS_INIT
 * @id: 0..65534, or -1 for the next free one; equal on all ranks
 * @flags: PLDK_WINDOW_*
 * @name: for reports, at most 31 bytes, no control characters; copied
 * @timeout_ns: for the others to arrive
 */
struct pldk_window_options {
	size_t size;
	int id;
	uint32_t flags;
	const char *name;
	int64_t timeout_ns;
};

#define PLDK_WINDOW_OPTIONS_INIT { sizeof(struct pldk_window_options), -1, 0, 0, PLDK_TIMEOUT_DEFAULT }

/**
 * pldk_window_create() - a data window, sized in bytes; collective over the domain
 * @domain: whose ranks share it
 * @bytes: of one rank's slab, > 0. Bytes, not elements: a value that equals the number of ranks is logged as a probable
 *         mistake
 * @options: or NULL
 * @out: the window
 *
 * All bytes of all slabs are allocated, charged and zero before anybody has the handle. All-to-all order. If it fails
 * on one rank it fails on all with that rank's errno, and nothing is left.
 *
 * Return: 0; -EINVAL, -EEXIST (id taken: both sizes in the text), -EPROTO (ranks disagree; names them and both
 * values), -ENOMEM, -EPERM (RLIMIT_MEMLOCK: asked, left, what to raise), -ENOSPC (module cap), -EOWNERDEAD, -ETIMEDOUT,
 * -ECANCELED, -EBUSY.
 */
int pldk_window_create(struct pldk_domain *domain, size_t bytes, const struct pldk_window_options *options,
		       struct pldk_window **out);
int pldk_window_create_at(struct pldk_site *site, struct pldk_domain *domain, size_t bytes,
			  const struct pldk_window_options *options, struct pldk_window **out);

/**
 * pldk_window_create_typed() - a data window sized by shape and dtype; else as pldk_window_create()
 * @ndim: 1..PLDK_MAX_DIMS
 * @shape: extents > 0 or symbols (pldk_dim()); product x element size = bytes of one rank's slab
 * @dtype: element type
 *
 * Return: also -EOVERFLOW.
 */
int pldk_window_create_typed(struct pldk_domain *domain, int ndim, const int64_t *shape, enum pldk_dtype dtype,
			     const struct pldk_window_options *options, struct pldk_window **out);
int pldk_window_create_typed_at(struct pldk_site *site, struct pldk_domain *domain, int ndim, const int64_t *shape,
				enum pldk_dtype dtype, const struct pldk_window_options *options,
				struct pldk_window **out);

/**
 * pldk_signal_create() - a signal window; else as pldk_window_create()
 * @ndim: 1..PLDK_MAX_DIMS
 * @shape: in cells, extents > 0 or symbols. One cell is 64 bytes; all cells are 0
 *
 * The convention that reports understand: a leading dimension of world size means row = source rank.
 */
int pldk_signal_create(struct pldk_domain *domain, int ndim, const int64_t *shape,
		       const struct pldk_window_options *options, struct pldk_window **out);
int pldk_signal_create_at(struct pldk_site *site, struct pldk_domain *domain, int ndim, const int64_t *shape,
			  const struct pldk_window_options *options, struct pldk_window **out);

/**
 * pldk_window_destroy() - close this rank's handle; local, never waits for others
 * @window: NULL is nothing. Views of it become -ESTALE
 *
 * Return: 0, or -EBUSY while a thread of this rank waits in it.
 */
int pldk_window_destroy(struct pldk_window *window);

/**
 * pldk_window_reset() - zero it on all ranks; collective over the domain
 * @window: cells to 0 and data to 0, layout tag forgotten, on every rank
 * @timeout_ns: for the others to arrive
 *
 * Return: 0, -EBUSY (a rank waits in it; nothing changed), -EOWNERDEAD, -ETIMEDOUT.
 */
int pldk_window_reset(struct pldk_window *window, int64_t timeout_ns);
int pldk_window_reset_at(struct pldk_site *site, struct pldk_window *window, int64_t timeout_ns);

/** pldk_window_base() - own slab; NULL for NULL and for signal windows */
void *pldk_window_base(const struct pldk_window *window);

/** pldk_window_peer() - a rank's data slab in this process; NULL if far, out of range, or a signal window */
void *pldk_window_peer(const struct pldk_window *window, int rank);

/** pldk_window_bytes() - bytes of one slab as asked for; 0 for NULL */
size_t pldk_window_bytes(const struct pldk_window *window);

/** pldk_window_page_bytes() - page size that it got; 0 for NULL */
size_t pldk_window_page_bytes(const struct pldk_window *window);

/** pldk_window_id() - its id, or -EINVAL, -ESTALE (destroyed, or its domain was closed) */
int pldk_window_id(const struct pldk_window *window);

/** pldk_window_domain() - whose it is; NULL for NULL */
struct pldk_domain *pldk_window_domain(const struct pldk_window *window);

/**
 * pldk_dim() - a named dimension, usable as an extent in any shape
 * @domain: symbols belong to a domain's handle
 * @name: 1..31 bytes. "NR" is bound to the number of ranks from the start
 *
 * Return: a negative token <= PLDK_DIM_FIRST, or 0 if the name is bad or 64 names are in use (pldk_last_error()).
 */
int64_t pldk_dim(struct pldk_domain *domain, const char *name);
#define PLDK_DIM_FIRST (-4096)

/** pldk_dim_bind() - give it a value >= 1. Return: 0, -EINVAL, -EEXIST (bound to another value: both in the text) */
int pldk_dim_bind(struct pldk_domain *domain, const char *name, int64_t value);

/** pldk_dim_value() - its value, or -ENOENT (not bound), -EINVAL */
int64_t pldk_dim_value(struct pldk_domain *domain, const char *name);

/**
 * pldk_view() - lay shape and dtype over a data window
 * @window: data window
 * @offset: bytes from the start of the slab, a multiple of the element size
 * @ndim: 1..PLDK_MAX_DIMS
 * @shape: extents > 0, or symbols: bound ones are resolved, -ENOENT for others
 * @dtype: element type
 * @out: the view
 *
 * Return: 0, -EINVAL ("4 bytes cannot hold [4,256] FP32: the size is in bytes" when it does not fit), -EDOM (signal
 * window), -EOVERFLOW, -ENOENT.
 */
int pldk_view(struct pldk_window *window, size_t offset, int ndim, const int64_t *shape, enum pldk_dtype dtype,
	      struct pldk_dtensor *out);

/**
 * pldk_view_expect() - check a view against a shape, binding the symbols that are still free
 * @view: what came
 * @ndim: expected number of dimensions
 * @shape: expected extents or symbols
 * @dtype: expected, or 0 for any
 *
 * Return: 0, -EINVAL ("NR is 4 here but dimension 0 of the view is 2"; nothing is bound), -EDOM (dtype or number
 * of dimensions), -ESTALE.
 */
int pldk_view_expect(const struct pldk_dtensor *view, int ndim, const int64_t *shape, enum pldk_dtype dtype);

/**
 * pldk_view_local() - the own slab's part of a view as a tensor (plain loads and stores). Return: 0, -EDOM, -ESTALE,
 * -EINVAL and -EOVERFLOW (the view was edited and is not one of its window any more)
 */
int pldk_view_local(const struct pldk_dtensor *view, struct pldk_tensor *out);

#ifndef PLDK_NO_SITES
#define pldk_window_create(...) pldk_window_create_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_window_create_typed(...) pldk_window_create_typed_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_signal_create(...) pldk_signal_create_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_window_reset(...) pldk_window_reset_at(PLDK_SITE(), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif /* _PLDK_WINDOW_H */
