// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What a transfer is asked to do, checked before a byte moves: in every build, at run time, dynamic values included.
 *
 * The result is a struct pldk__transfer whose numbers need no further thought: every byte that it names lies in the
 * slab and in the tensor, no sum in it overflowed, and own memory does not partly overlap the part of the slab. The
 * path of a small dense transfer is short on purpose: a look at each magic word, one loop over the dimensions.
 */
#include "transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char *const side_name[2] = { "destination", "source" };

static inline bool view_is_good(const struct pldk_dtensor *view)
{
	return view && view->magic == PLDK__MAGIC_DTENSOR && view->window &&
	       view->window->magic == PLDK__MAGIC_WINDOW && view->generation == view->window->generation &&
	       view->ndim - 1 < PLDK_MAX_DIMS && view->window->kind == PLD_WINDOW_DATA;
}

/*
 * View, peer and right to write; enters the domain. On success the caller owns a pldk__leave().
 */
static int begin(struct pldk__transfer *t, const char *op, bool is_get, const struct pldk_dtensor *view, int peer)
{
	struct pldk_window *window;
	int ret;

	if (pldk__unlikely(!view_is_good(view))) {
		ret = pldk__check_view(view, op);
		return ret ? ret : pldk__fail(-EDOM, "%s: the view lies over a signal window: cells change by notify only", op);
	}
	window = view->window;
	ret = pldk__enter(window->domain, &t->thread);
	if (pldk__unlikely(ret))
		return ret;
	t->domain = window->domain;
	if (pldk__unlikely((uint32_t)peer >= t->domain->nranks)) {
		ret = pldk__check_peer(t->domain, peer, op);
		goto err_leave;
	}
	if (pldk__unlikely(!is_get && (window->flags & PLD_WINDOW_F_OWNER_WRITES) &&
			   (uint32_t)peer != t->domain->rank)) {
		ret = pldk__fail(-EPERM,
				 "rank %u: %s: window %u was made with PLDK_WINDOW_OWNER_WRITES: only rank %d writes its slab; let it get the data instead",
				 t->domain->rank, op, window->id, peer);
		goto err_leave;
	}
	t->map = pldk__load_relaxed(&window->map);
	if (pldk__unlikely(!t->map)) {
		ret = pldk__check_view(view, op);
		goto err_leave;
	}
	t->slab = pldk__slab(t->map, (uint32_t)peer);
	t->window = window->id;
	t->peer = (uint32_t)peer;
	t->dtype = view->dtype;
	t->elem_size = (uint32_t)pldk_dtype_size((enum pldk_dtype)view->dtype);
	t->is_get = is_get;
	t->is_atomic = false;
	t->is_pipelined = false;
	t->chunk_rows = 0;
	t->chunk_cols = 0;
	t->deadline_ns = PLD_DEADLINE_NEVER;
	if (pldk__unlikely(t->domain->has_far))
		t->deadline_ns = pldk__far_deadline(PLDK_TIMEOUT_DEFAULT);
	if (pldk__unlikely(!t->elem_size)) {
		ret = pldk__check_dtype(view->dtype, op);
		goto err_leave;
	}
	return 0;

err_leave:
	pldk__leave(t->thread);
	return ret;
}

/* The tensor on the other side: of the view's dtype. */
static int check_tensor(const struct pldk__transfer *t, const char *op, const struct pldk_tensor *tensor)
{
	if (pldk__unlikely(!tensor || tensor->magic != PLDK__MAGIC_TENSOR || tensor->ndim - 1 >= PLDK_MAX_DIMS ||
			   !tensor->data)) {
		int ret = pldk__check_tensor(tensor, op);

		if (ret)
			return ret;
	}
	if (pldk__unlikely(tensor->dtype != t->dtype))
		return pldk__fail(-EDOM, "rank %u: %s: the destination is %s but the source is %s: pldk does not convert",
				  t->domain->rank, op,
				  pldk_dtype_name((enum pldk_dtype)(t->is_get ? tensor->dtype : t->dtype)),
				  pldk_dtype_name((enum pldk_dtype)(t->is_get ? t->dtype : tensor->dtype)));
	return 0;
}

static int fail_ndim(const struct pldk__transfer *t, const char *op, uint32_t view_ndim, uint32_t tensor_ndim)
{
	return pldk__fail(-EDOM, "rank %u: %s: the destination has %u dimensions but the source has %u",
			  t->domain->rank, op, t->is_get ? tensor_ndim : view_ndim,
			  t->is_get ? view_ndim : tensor_ndim);
}

static int fail_overflow(const struct pldk__transfer *t, const char *op)
{
	return pldk__fail(-EOVERFLOW, "rank %u: %s: a shape has more bytes than memory has addresses", t->domain->rank,
			  op);
}

static int check_range(const struct pldk__transfer *t, const char *op, const char *side, uint32_t dim, int64_t offset,
		       int64_t extent, int64_t limit)
{
	if (pldk__likely(offset >= 0 && extent >= 0 && extent <= limit && offset <= limit - extent))
		return 0;
	if (offset < 0)
		return pldk__fail(-EINVAL, "rank %u: %s: dimension %u of the %s: offset %" PRId64 " is negative",
				  t->domain->rank, op, dim, side, offset);
	return pldk__fail(-EINVAL,
			  "rank %u: %s: dimension %u of the %s: offset %" PRId64 " + extent %" PRId64
			  " is beyond its %" PRId64 " elements%s",
			  t->domain->rank, op, dim, side, offset, extent, limit,
			  op[0] == 'r' ? "; at a ragged edge pass a smaller valid_shape or source" : "");
}

/* Strides of a dense row-major shape. False if its bytes overflow. */
static inline bool strides_of(uint32_t ndim, const int64_t *shape, uint64_t elem_size, uint64_t *strides,
			      uint64_t *out_bytes)
{
	uint64_t stride = elem_size;

	for (uint32_t i = ndim; i-- > 0;) {
		strides[i] = stride;
		if (__builtin_mul_overflow(stride, (uint64_t)shape[i], &stride) || stride > INT64_MAX)
			return false;
	}
	*out_bytes = stride;
	return true;
}

/*
 * A view is a plain value and may have been edited after pldk_view(): its end is compared with the window each time.
 */
static inline int check_view_end(const struct pldk__transfer *t, const char *op, const struct pldk_dtensor *view,
				 uint64_t bytes)
{
	uint64_t limit = view->window->bytes;

	if (pldk__likely(bytes <= limit && view->offset <= limit - bytes))
		return 0;
	return pldk__fail(-EINVAL,
			  "rank %u: %s: the view takes %" PRIu64 " bytes from offset %" PRIu64 " on, but window %u has %" PRIu64
			  ": make views with pldk_view()",
			  t->domain->rank, op, bytes, view->offset, t->window, limit);
}

/*
 * Does a piece of len bytes at distance (piece - box) hit any row of the box? Dimensions from dim on. Strides are
 * dense: the inner dimensions span no more than one outer step, so a short piece has few candidates.
 */
static bool box_hit(const struct pldk__transfer *t, const uint64_t *stride, uint32_t dim, int64_t distance, int64_t len)
{
	int64_t step = (int64_t)stride[dim];
	int64_t first;

	if (dim == t->ndim - 1)
		return distance < (int64_t)t->extent[dim] * step && distance + len > 0;
	first = distance / step - 1;
	for (int64_t i = first < 0 ? 0 : first; i < (int64_t)t->extent[dim]; i++) {
		int64_t rest = distance - i * step;

		if (rest + len <= 0)
			break;
		if (box_hit(t, stride, dim + 1, rest, len))
			return true;
	}
	return false;
}

/*
 * Own memory may be the slab itself (put to self), or a part of it that shares no byte with the other side. A part that
 * overlaps would be read half before and half after it was written.
 */
static int check_alias(struct pldk__transfer *t, const char *op)
{
	uint64_t local_span = t->elem_size;
	uint64_t remote_span = t->elem_size;
	const char *remote = t->slab + t->remote;
	uint64_t index[PLDK_MAX_DIMS] = { 0 };
	uint32_t last = t->ndim - 1;
	bool is_same = t->local == remote;
	uint32_t i;

	for (i = 0; i < t->ndim; i++) {
		local_span += (t->extent[i] - 1) * t->local_stride[i];
		remote_span += (t->extent[i] - 1) * t->remote_stride[i];
		is_same = is_same && (t->extent[i] == 1 || t->local_stride[i] == t->remote_stride[i]);
	}
	if (pldk__likely(t->local + local_span <= remote || remote + remote_span <= t->local))
		return 0;
	if (is_same)
		return 0;
	/* The ranges overlap, but rows may still lie between each other (columns of one matrix). */
	for (;;) {
		int64_t distance = t->local - remote;

		for (i = 0; i < last; i++)
			distance += (int64_t)(index[i] * t->local_stride[i]);
		if (box_hit(t, t->remote_stride, 0, distance, (int64_t)(t->extent[last] * t->elem_size)))
			return pldk__fail(-EINVAL,
					  "rank %u: %s: source and destination overlap: the own memory given lies partly in the part of rank %u's slab of window %u that is meant",
					  t->domain->rank, op, t->peer, t->window);
		for (i = last; i-- > 0;) {
			if (++index[i] < t->extent[i])
				break;
			index[i] = 0;
		}
		if (i == UINT32_MAX)
			return 0;
	}
}

/* Dimensions that follow each other without a gap on both sides become one. */
static void merge(struct pldk__transfer *t)
{
	uint32_t to = t->ndim - 1; /* the merged dimensions stand at to.. */

	for (uint32_t i = t->ndim - 1; i-- > 0;) {
		if (t->extent[i] == 1)
			continue;
		if (t->local_stride[i] == t->extent[to] * t->local_stride[to] &&
		    t->remote_stride[i] == t->extent[to] * t->remote_stride[to]) {
			t->extent[to] *= t->extent[i];
		} else {
			to--;
			t->extent[to] = t->extent[i];
			t->local_stride[to] = t->local_stride[i];
			t->remote_stride[to] = t->remote_stride[i];
		}
	}
	if (!to)
		return;
	t->ndim -= to;
	memmove(t->extent, t->extent + to, t->ndim * sizeof(t->extent[0]));
	memmove(t->local_stride, t->local_stride + to, t->ndim * sizeof(t->local_stride[0]));
	memmove(t->remote_stride, t->remote_stride + to, t->ndim * sizeof(t->remote_stride[0]));
}

/* Last steps of every check: atomics, aliases, shape of the loops. */
static int finish(struct pldk__transfer *t, const char *op)
{
	if (pldk__unlikely(t->is_atomic && t->remote % t->elem_size))
		return pldk__fail(-EINVAL, "rank %u: %s: atomic: byte offset %" PRIu64 " is not a multiple of %u",
				  t->domain->rank, op, t->remote, t->elem_size);
	if (t->slab) {
		int ret = check_alias(t, op);

		if (pldk__unlikely(ret))
			return ret;
	}
	if (t->ndim > 1 && !t->chunk_rows && !t->chunk_cols)
		merge(t);
	return 0;
}

static int check_options(struct pldk__transfer *t, const char *op, const struct pldk_rma_options *user)
{
	struct pldk_rma_options options = PLDK_RMA_OPTIONS_INIT;
	int ret = pldk__options_take(&options, sizeof(options), sizeof(options), user);

	if (ret)
		return pldk__fail_prefix(ret, "rank %u: %s: ", t->domain->rank, op);
	if (options.atomic != PLDK_ATOMIC_NONE && options.atomic != PLDK_ATOMIC_ADD)
		return pldk__fail(-EINVAL, "rank %u: %s: options: atomic is %d: PLDK_ATOMIC_NONE or PLDK_ATOMIC_ADD",
				  t->domain->rank, op, options.atomic);
	if (options.atomic && t->is_get)
		return pldk__fail(-EINVAL, "rank %u: %s: options: atomic has no meaning here: own memory is written",
				  t->domain->rank, op);
	if (options.chunk_rows < 0 || options.chunk_cols < 0)
		return pldk__fail(-EINVAL,
				  "rank %u: %s: options: chunk_rows is %" PRId64 " and chunk_cols %" PRId64 ": both must be >= 0",
				  t->domain->rank, op, options.chunk_rows, options.chunk_cols);
	if (options.pipeline != 0 && options.pipeline != 1)
		return pldk__fail(-EINVAL, "rank %u: %s: options: pipeline is %d: 0 or 1", t->domain->rank, op,
				  options.pipeline);
	if (options.pipeline && (!options.chunk_rows || !options.chunk_cols))
		return pldk__fail(-EINVAL,
				  "rank %u: %s: options: pipeline needs chunk_rows (%" PRId64 ") and chunk_cols (%" PRId64 ") > 0",
				  t->domain->rank, op, options.chunk_rows, options.chunk_cols);
	t->is_atomic = options.atomic == PLDK_ATOMIC_ADD;
	t->is_pipelined = options.pipeline;
	t->chunk_rows = (uint64_t)options.chunk_rows;
	t->chunk_cols = (uint64_t)options.chunk_cols;
	if (pldk__unlikely(t->domain->has_far))
		t->deadline_ns = pldk__far_deadline(options.timeout_ns);
	return 0;
}

/* Everything of both sides: shapes must be equal. */
static int check_whole(struct pldk__transfer *t, const char *op, const struct pldk_dtensor *view,
		       const struct pldk_tensor *tensor)
{
	uint64_t count = 1;

	for (uint32_t i = 0; i < view->ndim; i++) {
		if (pldk__unlikely(view->shape[i] != tensor->shape[i])) {
			char dst[128];
			char src[128];
			const int64_t *shapes[2] = { t->is_get ? tensor->shape : view->shape,
						     t->is_get ? view->shape : tensor->shape };

			return pldk__fail(-EINVAL,
					  "rank %u: %s: dimension %u differs: the destination is %s, the source %s; pass a region to move a part",
					  t->domain->rank, op, i,
					  pldk__shape_text((int)view->ndim, shapes[0], dst, sizeof(dst)),
					  pldk__shape_text((int)view->ndim, shapes[1], src, sizeof(src)));
		}
		if (pldk__unlikely(__builtin_mul_overflow(count, (uint64_t)view->shape[i], &count)))
			return fail_overflow(t, op);
	}
	if (pldk__unlikely(__builtin_mul_overflow(count, t->elem_size, &t->bytes)))
		return fail_overflow(t, op);
	if (pldk__unlikely(!t->bytes))
		return pldk__fail(-EINVAL, "rank %u: %s: an extent is 0", t->domain->rank, op);
	t->local = tensor->data;
	t->remote = view->offset;
	if (pldk__unlikely(t->chunk_rows || t->chunk_cols)) {
		uint64_t bytes;

		t->ndim = view->ndim;
		for (uint32_t i = 0; i < t->ndim; i++)
			t->extent[i] = (uint64_t)view->shape[i];
		strides_of(t->ndim, view->shape, t->elem_size, t->remote_stride, &bytes);
		memcpy(t->local_stride, t->remote_stride, t->ndim * sizeof(t->local_stride[0]));
	} else {
		t->ndim = 1;
		t->extent[0] = count;
		t->local_stride[0] = t->elem_size;
		t->remote_stride[0] = t->elem_size;
	}
	return check_view_end(t, op, view, t->bytes);
}

/*
 * A box: at view_at in the view, at tensor_at in the tensor, extents > 0. All three have view->ndim entries; the
 * tensor's shape does too.
 */
static int check_box(struct pldk__transfer *t, const char *op, const struct pldk_dtensor *view,
		     const int64_t *view_at, const int64_t *tensor_shape, void *data, const int64_t *tensor_at,
		     const int64_t *extent)
{
	uint64_t view_bytes;
	uint64_t tensor_bytes;
	int ret;

	t->ndim = view->ndim;
	if (pldk__unlikely(!strides_of(t->ndim, view->shape, t->elem_size, t->remote_stride, &view_bytes) ||
			   !strides_of(t->ndim, tensor_shape, t->elem_size, t->local_stride, &tensor_bytes)))
		return fail_overflow(t, op);
	ret = check_view_end(t, op, view, view_bytes);
	if (pldk__unlikely(ret))
		return ret;
	t->local = data;
	t->remote = view->offset;
	t->bytes = t->elem_size;
	for (uint32_t i = 0; i < t->ndim; i++) {
		ret = check_range(t, op, side_name[t->is_get], i, view_at[i], extent[i], view->shape[i]);
		if (pldk__unlikely(ret))
			return ret;
		ret = check_range(t, op, side_name[!t->is_get], i, tensor_at[i], extent[i], tensor_shape[i]);
		if (pldk__unlikely(ret))
			return ret;
		t->extent[i] = (uint64_t)extent[i];
		t->bytes *= t->extent[i]; /* no more than the view's bytes */
		t->remote += (uint64_t)view_at[i] * t->remote_stride[i];
		t->local += (uint64_t)tensor_at[i] * t->local_stride[i];
	}
	return 0;
}

static int check_region(struct pldk__transfer *t, const char *op, const struct pldk_dtensor *view,
			const struct pldk_tensor *tensor, const struct pldk_region *region)
{
	if (!region->dst_offsets || !region->src_offsets || !region->shape)
		return pldk__fail(-EINVAL, "rank %u: %s: region: %s is NULL; the three come together", t->domain->rank, op,
				  !region->dst_offsets ? "dst_offsets" :
				  !region->src_offsets ? "src_offsets" :
							 "shape");
	for (uint32_t i = 0; i < view->ndim; i++)
		if (region->shape[i] <= 0)
			return pldk__fail(-EINVAL, "rank %u: %s: region: extent %" PRId64 " of dimension %u is not > 0",
					  t->domain->rank, op, region->shape[i], i);
	return check_box(t, op, view, t->is_get ? region->src_offsets : region->dst_offsets, tensor->shape,
			 tensor->data, t->is_get ? region->dst_offsets : region->src_offsets, region->shape);
}

/**
 * pldk__transfer_region() - arguments of put and get
 * @t: result
 * @op: public name
 * @is_get: direction
 * @view: the shared side
 * @peer: whose
 * @tensor: the own side
 * @region: or NULL
 * @options: or NULL
 *
 * Return: 0, and the domain is entered; or the error.
 */
int pldk__transfer_region(struct pldk__transfer *t, const char *op, bool is_get, const struct pldk_dtensor *view,
			  int peer, const struct pldk_tensor *tensor, const struct pldk_region *region,
			  const struct pldk_rma_options *options)
{
	int ret = begin(t, op, is_get, view, peer);

	if (pldk__unlikely(ret))
		return ret;
	ret = check_tensor(t, op, tensor);
	if (pldk__unlikely(ret))
		goto err_leave;
	if (pldk__unlikely(view->ndim != tensor->ndim)) {
		ret = fail_ndim(t, op, view->ndim, tensor->ndim);
		goto err_leave;
	}
	if (options) {
		ret = check_options(t, op, options);
		if (ret)
			goto err_leave;
	}
	ret = region ? check_region(t, op, view, tensor, region) : check_whole(t, op, view, tensor);
	if (pldk__unlikely(ret))
		goto err_leave;
	ret = finish(t, op);
	if (pldk__unlikely(ret))
		goto err_leave;
	return 0;

err_leave:
	pldk__leave(t->thread);
	return ret;
}

/**
 * pldk__transfer_load() - arguments of remote_load
 *
 * The arguments are those of pldk_remote_load(). bytes is 0 when the valid shape is empty.
 *
 * Return: as pldk__transfer_region().
 */
int pldk__transfer_load(struct pldk__transfer *t, const struct pldk_tensor *dst, const struct pldk_dtensor *src,
			int peer, const int64_t *offsets, const int64_t *shape, const int64_t *valid_shape)
{
	static const int64_t origin[PLDK_MAX_DIMS];
	static const char op[] = "remote_load";
	bool is_empty = false;
	int ret = begin(t, op, true, src, peer);

	if (ret)
		return ret;
	ret = check_tensor(t, op, dst);
	if (ret)
		goto err_leave;
	if (!offsets || !shape) {
		ret = pldk__fail(-EINVAL, "rank %u: %s: %s is NULL", t->domain->rank, op, offsets ? "shape" : "offsets");
		goto err_leave;
	}
	if (dst->ndim != src->ndim) {
		ret = fail_ndim(t, op, src->ndim, dst->ndim);
		goto err_leave;
	}
	for (uint32_t i = 0; i < src->ndim; i++) {
		if (shape[i] <= 0 || shape[i] != dst->shape[i]) {
			ret = pldk__fail(-EINVAL,
					 "rank %u: %s: dimension %u: the shape says %" PRId64 " but the destination has %" PRId64
					 " elements: they must be equal and > 0",
					 t->domain->rank, op, i, shape[i], dst->shape[i]);
			goto err_leave;
		}
		if (valid_shape && (valid_shape[i] < 0 || valid_shape[i] > shape[i])) {
			ret = pldk__fail(-EINVAL,
					 "rank %u: %s: dimension %u: valid_shape is %" PRId64 ", not in 0..%" PRId64,
					 t->domain->rank, op, i, valid_shape[i], shape[i]);
			goto err_leave;
		}
		is_empty = is_empty || (valid_shape && !valid_shape[i]);
	}
	ret = check_box(t, op, src, offsets, dst->shape, dst->data, origin, valid_shape ? valid_shape : shape);
	if (ret)
		goto err_leave;
	if (is_empty) {
		t->bytes = 0;
		return 0;
	}
	ret = finish(t, op);
	if (ret)
		goto err_leave;
	return 0;

err_leave:
	pldk__leave(t->thread);
	return ret;
}

/**
 * pldk__transfer_store() - arguments of remote_store
 *
 * The arguments are those of pldk_remote_store(). bytes is 0 when the source has no element.
 *
 * Return: as pldk__transfer_region().
 */
int pldk__transfer_store(struct pldk__transfer *t, const struct pldk_tensor *src, const struct pldk_dtensor *dst,
			 int peer, const int64_t *offsets, enum pldk_atomic atomic)
{
	static const int64_t origin[PLDK_MAX_DIMS];
	static const char op[] = "remote_store";
	int64_t extent[PLDK_MAX_DIMS] = { 0 };
	bool is_empty = false;
	uint32_t lead;
	int ret = begin(t, op, false, dst, peer);

	if (ret)
		return ret;
	ret = check_tensor(t, op, src);
	if (ret)
		goto err_leave;
	if (!offsets) {
		ret = pldk__fail(-EINVAL, "rank %u: %s: offsets is NULL", t->domain->rank, op);
		goto err_leave;
	}
	if (atomic != PLDK_ATOMIC_NONE && atomic != PLDK_ATOMIC_ADD) {
		ret = pldk__fail(-EINVAL, "rank %u: %s: atomic is %d: PLDK_ATOMIC_NONE or PLDK_ATOMIC_ADD", t->domain->rank,
				 op, (int)atomic);
		goto err_leave;
	}
	if (src->ndim > dst->ndim) {
		ret = fail_ndim(t, op, dst->ndim, src->ndim);
		goto err_leave;
	}
	lead = dst->ndim - src->ndim;
	for (uint32_t i = 0; i < dst->ndim; i++) {
		extent[i] = i < lead ? 1 : src->shape[i - lead];
		is_empty = is_empty || !extent[i];
	}
	ret = check_box(t, op, dst, offsets, extent, src->data, origin, extent);
	if (ret)
		goto err_leave;
	t->is_atomic = atomic == PLDK_ATOMIC_ADD;
	if (is_empty) {
		t->bytes = 0;
		return 0;
	}
	ret = finish(t, op);
	if (ret)
		goto err_leave;
	return 0;

err_leave:
	pldk__leave(t->thread);
	return ret;
}

/**
 * pldk__transfer_element() - arguments of fetch_add, swap and compare_swap
 * @t: result; remote is the element
 * @op: public name
 * @view: INT32 or INT64
 * @peer: whose
 * @index: coordinates
 *
 * Return: as pldk__transfer_region().
 */
int pldk__transfer_element(struct pldk__transfer *t, const char *op, const struct pldk_dtensor *view, int peer,
			   const int64_t *index)
{
	uint64_t bytes;
	int ret = begin(t, op, false, view, peer);

	if (pldk__unlikely(ret))
		return ret;
	if (pldk__unlikely(t->dtype != PLDK_INT32 && t->dtype != PLDK_INT64)) {
		ret = pldk__fail(-EDOM, "rank %u: %s: the view is %s; INT32 or INT64 is wanted", t->domain->rank, op,
				 pldk_dtype_name((enum pldk_dtype)t->dtype));
		goto err_leave;
	}
	if (pldk__unlikely(!index)) {
		ret = pldk__fail(-EINVAL, "rank %u: %s: index is NULL", t->domain->rank, op);
		goto err_leave;
	}
	if (pldk__unlikely(!strides_of(view->ndim, view->shape, t->elem_size, t->remote_stride, &bytes))) {
		ret = fail_overflow(t, op);
		goto err_leave;
	}
	ret = check_view_end(t, op, view, bytes);
	if (pldk__unlikely(ret))
		goto err_leave;
	t->remote = view->offset;
	for (uint32_t i = 0; i < view->ndim; i++) {
		if (pldk__unlikely(index[i] < 0 || index[i] >= view->shape[i])) {
			ret = pldk__fail(-EINVAL, "rank %u: %s: dimension %u: index %" PRId64 " is not in 0..%" PRId64,
					 t->domain->rank, op, i, index[i], view->shape[i] - 1);
			goto err_leave;
		}
		t->remote += (uint64_t)index[i] * t->remote_stride[i];
	}
	t->bytes = t->elem_size;
	if (pldk__unlikely(t->remote % t->elem_size)) {
		ret = pldk__fail(-EINVAL, "rank %u: %s: byte offset %" PRIu64 " is not a multiple of %u", t->domain->rank, op,
				 t->remote, t->elem_size);
		goto err_leave;
	}
	return 0;

err_leave:
	pldk__leave(t->thread);
	return ret;
}

/**
 * pldk__check_signal_to() - the notify half of put_notify
 * @t: the put, checked
 * @op: public name
 * @signal: from the user
 *
 * Return: 0, -EINVAL, -EDOM, -ESTALE, -ECANCELED.
 */
int pldk__check_signal_to(const struct pldk__transfer *t, const char *op, const struct pldk_signal_to *signal)
{
	int ret;

	if (pldk__unlikely(!signal))
		return pldk__fail(-EINVAL, "rank %u: %s: signal is NULL", t->domain->rank, op);
	ret = pldk__check_cell(signal->signal, signal->cell, op);
	if (pldk__unlikely(ret))
		return ret;
	if (pldk__unlikely(signal->signal->domain != t->domain))
		return pldk__fail(-EINVAL,
				  "rank %u: %s: the view is of domain \"%s\" but the signal window of \"%s\": they must be of one",
				  t->domain->rank, op, t->domain->name, signal->signal->domain->name);
	if (pldk__unlikely(signal->op != PLDK_NOTIFY_ADD && signal->op != PLDK_NOTIFY_SET))
		return pldk__fail(-EINVAL, "rank %u: %s: op is %d: PLDK_NOTIFY_ADD or PLDK_NOTIFY_SET", t->domain->rank, op,
				  signal->op);
	return pldk__check_poison(t->domain, op);
}
