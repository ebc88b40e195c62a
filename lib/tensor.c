// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Element types, tensors, views, symbolic dimensions: what lies where, and whether it fits.
 *
 * Nothing here touches an element. A view is a plain value that names its window by pointer and generation; the shell
 * of a destroyed window stays (window.c), so a stale view is found out by looking.
 */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	size_t size;
} dtypes[] = {
	[PLDK_FP64] = { "FP64", 8 },   [PLDK_FP32] = { "FP32", 4 },   [PLDK_FP16] = { "FP16", 2 },
	[PLDK_BF16] = { "BF16", 2 },   [PLDK_INT8] = { "INT8", 1 },   [PLDK_INT16] = { "INT16", 2 },
	[PLDK_INT32] = { "INT32", 4 }, [PLDK_INT64] = { "INT64", 8 }, [PLDK_UINT8] = { "UINT8", 1 },
};

/**
 * pldk_dtype_size() - see types.h
 */
size_t pldk_dtype_size(enum pldk_dtype dtype)
{
	return (size_t)dtype < PLDK__ARRAY_SIZE(dtypes) ? dtypes[dtype].size : 0;
}

/**
 * pldk_dtype_name() - see types.h
 */
const char *pldk_dtype_name(enum pldk_dtype dtype)
{
	return pldk_dtype_size(dtype) ? dtypes[dtype].name : "?";
}

/**
 * pldk__check_dtype() - is it one?
 */
int pldk__check_dtype(uint32_t dtype, const char *op)
{
	if (pldk__likely(pldk_dtype_size((enum pldk_dtype)dtype)))
		return 0;
	return pldk__fail(-EINVAL, "%s: dtype %u is none: PLDK_FP64 is 1, ... PLDK_UINT8 is 9", op, dtype);
}

/**
 * pldk__shape_count() - elements of a shape
 * @elem_size: bytes of one; the bytes of all must fit into an int64_t
 *
 * Return: 0, or -EOVERFLOW without a sentence.
 */
int pldk__shape_count(int ndim, const int64_t *shape, size_t elem_size, uint64_t *out_count)
{
	uint64_t count = 1;
	uint64_t bytes;
	bool is_empty = false;
	int i;

	/* An extent of 0 makes everything 0, however large the others are. */
	for (i = 0; i < ndim; i++)
		is_empty |= !shape[i];
	for (i = 0; i < ndim && !is_empty; i++) {
		if (__builtin_mul_overflow(count, (uint64_t)shape[i], &count))
			return -EOVERFLOW;
	}
	if (is_empty)
		count = 0;
	if (__builtin_mul_overflow(count, (uint64_t)elem_size, &bytes) || bytes > INT64_MAX)
		return -EOVERFLOW;
	*out_count = count;
	return 0;
}

/**
 * pldk__shape_text() - "[4,256]" for sentences
 */
const char *pldk__shape_text(int ndim, const int64_t *shape, char *buf, size_t len)
{
	size_t at = 0;
	int i;
	int n;

	for (i = 0; i < ndim && at < len; i++) {
		n = snprintf(buf + at, len - at, "%s%" PRId64, i ? "," : "[", shape[i]);
		at += n > 0 ? (size_t)n : 0;
	}
	if (at < len)
		snprintf(buf + at, len - at, "%s", ndim > 0 ? "]" : "[]");
	return buf;
}

static int check_ndim(int ndim, const int64_t *shape, const char *op)
{
	if (ndim < 1 || ndim > PLDK_MAX_DIMS)
		return pldk__fail(-EINVAL, "%s: %d dimensions: allowed are 1 to %d", op, ndim, PLDK_MAX_DIMS);
	if (!shape)
		return pldk__fail(-EINVAL, "%s: shape is NULL", op);
	return 0;
}

/**
 * pldk_tensor_of() - see types.h
 */
int pldk_tensor_of(struct pldk_tensor *out, void *data, enum pldk_dtype dtype, int ndim, const int64_t *shape)
{
	struct pldk_tensor tensor = { .magic = PLDK__MAGIC_TENSOR, .dtype = dtype, .data = data };
	char text[128];
	uint64_t count;
	int ret;
	int i;

	if (!out)
		return pldk__fail(-EINVAL, "tensor_of: out is NULL");
	ret = check_ndim(ndim, shape, "tensor_of");
	if (!ret)
		ret = pldk__check_dtype(dtype, "tensor_of");
	if (ret)
		return ret;
	tensor.ndim = (uint32_t)ndim;
	for (i = 0; i < ndim; i++) {
		if (shape[i] < 0)
			return pldk__fail(-EINVAL, "tensor_of: dimension %d is %" PRId64 ": an extent is at least 0", i,
					  shape[i]);
		tensor.shape[i] = shape[i];
	}
	if (pldk__shape_count(ndim, shape, pldk_dtype_size(dtype), &count) ||
	    count * pldk_dtype_size(dtype) > UINTPTR_MAX - (uintptr_t)data)
		return pldk__fail(-EOVERFLOW, "tensor_of: %s %s has more bytes than memory has addresses",
				  pldk__shape_text(ndim, shape, text, sizeof(text)), pldk_dtype_name(dtype));
	if (!data && count)
		return pldk__fail(-EINVAL, "tensor_of: data is NULL but %s %s has %" PRIu64 " elements",
				  pldk__shape_text(ndim, shape, text, sizeof(text)), pldk_dtype_name(dtype), count);
	*out = tensor;
	return 0;
}

/**
 * pldk__check_tensor() - is it a tensor, whole and possible?
 */
int pldk__check_tensor(const struct pldk_tensor *tensor, const char *op)
{
	uint64_t count;
	uint32_t i;

	if (!tensor)
		return pldk__fail(-EINVAL, "%s: tensor is NULL", op);
	if (tensor->magic == PLDK__MAGIC_DTENSOR)
		return pldk__fail(-EDOM, "%s: a view was passed where a tensor of one's own memory is wanted: use pldk_view_local()",
				  op);
	if (tensor->magic != PLDK__MAGIC_TENSOR)
		return pldk__fail(-EDOM, "%s: not a tensor (magic %#x): make it with pldk_tensor_of()", op,
				  tensor->magic);
	if (tensor->ndim < 1 || tensor->ndim > PLDK_MAX_DIMS)
		return pldk__fail(-EINVAL, "%s: tensor has %u dimensions: allowed are 1 to %d", op, tensor->ndim,
				  PLDK_MAX_DIMS);
	if (pldk__check_dtype(tensor->dtype, op))
		return -EINVAL;
	for (i = 0; i < tensor->ndim; i++) {
		if (tensor->shape[i] < 0)
			return pldk__fail(-EINVAL, "%s: dimension %u of the tensor is %" PRId64, op, i, tensor->shape[i]);
	}
	if (pldk__shape_count((int)tensor->ndim, tensor->shape, pldk_dtype_size((enum pldk_dtype)tensor->dtype),
			      &count))
		return pldk__fail(-EOVERFLOW, "%s: the tensor has more bytes than memory has addresses", op);
	if (!tensor->data && count)
		return pldk__fail(-EINVAL, "%s: the tensor's data is NULL but it has %" PRIu64 " elements", op, count);
	return 0;
}

/*
 * Symbolic dimensions. A token names an entry of the domain's table; tokens are never reused.
 */

static bool is_symbol(int64_t extent)
{
	return extent <= PLDK_DIM_FIRST;
}

static size_t symbol_index(int64_t token)
{
	return (size_t)(PLDK_DIM_FIRST - token);
}

static struct pldk__dim *find_dim_locked(struct pldk_domain *domain, const char *name)
{
	uint32_t i;

	for (i = 0; i < domain->ndims; i++) {
		if (!strcmp(domain->dims[i].name, name))
			return &domain->dims[i];
	}
	return NULL;
}

static struct pldk__dim *make_dim_locked(struct pldk_domain *domain, const char *name)
{
	struct pldk__dim *dim = find_dim_locked(domain, name);

	if (!dim && domain->ndims < PLDK__DIMS) {
		dim = &domain->dims[domain->ndims++];
		snprintf(dim->name, sizeof(dim->name), "%s", name);
	}
	return dim;
}

static int check_dim_name(const struct pldk_domain *domain, const char *name, const char *op)
{
	if (name && *name && strnlen(name, PLDK__NAME_MAX) < PLDK__NAME_MAX)
		return 0;
	return pldk__fail(-EINVAL, "rank %u: %s: a name has 1 to %u bytes", domain->rank, op, PLDK__NAME_MAX - 1);
}

/**
 * pldk_dim() - see window.h
 */
int64_t pldk_dim(struct pldk_domain *domain, const char *name)
{
	struct pldk__thread *thread;
	struct pldk__dim *dim;
	int64_t token = 0;

	if (pldk__enter(domain, &thread))
		return 0;
	if (!check_dim_name(domain, name, "dim")) {
		pthread_mutex_lock(&domain->lock);
		dim = make_dim_locked(domain, name);
		if (dim)
			token = PLDK_DIM_FIRST - (dim - domain->dims);
		pthread_mutex_unlock(&domain->lock);
		if (!dim)
			pldk__fail(-EINVAL, "rank %u: dim \"%s\": %u names are in use", domain->rank, name, PLDK__DIMS);
	}
	pldk__leave(thread);
	return token;
}

/**
 * pldk_dim_bind() - see window.h
 */
int pldk_dim_bind(struct pldk_domain *domain, const char *name, int64_t value)
{
	struct pldk__thread *thread;
	struct pldk__dim *dim;
	int64_t bound = 0;
	int ret;

	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	ret = check_dim_name(domain, name, "dim_bind");
	if (ret)
		goto out;
	if (value < 1) {
		ret = pldk__fail(-EINVAL, "rank %u: dim_bind \"%s\": %" PRId64 " is not at least 1", domain->rank, name,
				 value);
		goto out;
	}
	pthread_mutex_lock(&domain->lock);
	dim = make_dim_locked(domain, name);
	if (dim && !dim->value)
		dim->value = value;
	if (dim)
		bound = dim->value;
	pthread_mutex_unlock(&domain->lock);
	if (!dim)
		ret = pldk__fail(-EINVAL, "rank %u: dim_bind \"%s\": %u names are in use", domain->rank, name,
				 PLDK__DIMS);
	else if (bound != value)
		ret = pldk__fail(-EEXIST, "rank %u: dim_bind: %s is %" PRId64 " already, it cannot become %" PRId64,
				 domain->rank, name, bound, value);
out:
	pldk__leave(thread);
	return ret;
}

/**
 * pldk_dim_value() - see window.h
 */
int64_t pldk_dim_value(struct pldk_domain *domain, const char *name)
{
	struct pldk__thread *thread;
	struct pldk__dim *dim;
	int64_t value;

	value = pldk__enter(domain, &thread);
	if (value)
		return value;
	value = check_dim_name(domain, name, "dim_value");
	if (!value) {
		pthread_mutex_lock(&domain->lock);
		dim = find_dim_locked(domain, name);
		value = dim ? dim->value : 0;
		pthread_mutex_unlock(&domain->lock);
		if (!value)
			value = pldk__fail(-ENOENT, "rank %u: dim_value: %s is not bound", domain->rank, name);
	}
	pldk__leave(thread);
	return value;
}

/**
 * pldk__shape_resolve() - a shape as the user gave it, with symbols replaced by their values
 * @domain: whose symbols
 * @out: @ndim extents > 0
 *
 * Return: 0, -EINVAL, -ENOENT (a symbol that is not bound).
 */
int pldk__shape_resolve(struct pldk_domain *domain, int ndim, const int64_t *shape, int64_t *out, const char *op)
{
	char name[PLDK__NAME_MAX] = "";
	int ret;
	int i;

	ret = check_ndim(ndim, shape, op);
	if (ret)
		return ret;
	for (i = 0; i < ndim; i++) {
		int64_t extent = shape[i];

		if (is_symbol(extent)) {
			size_t at = symbol_index(extent);
			bool is_known;

			pthread_mutex_lock(&domain->lock);
			is_known = at < domain->ndims;
			if (is_known) {
				extent = domain->dims[at].value;
				memcpy(name, domain->dims[at].name, sizeof(name));
			}
			pthread_mutex_unlock(&domain->lock);
			if (!is_known)
				return pldk__fail(-EINVAL, "rank %u: %s: dimension %d is %" PRId64
						  ", which is no symbol of this domain: pldk_dim() makes them",
						  domain->rank, op, i, shape[i]);
			if (!extent)
				return pldk__fail(-ENOENT, "rank %u: %s: dimension %d is %s, which is not bound: see pldk_dim_bind()",
						  domain->rank, op, i, name);
		}
		if (extent <= 0)
			return pldk__fail(-EINVAL, "rank %u: %s: dimension %d is %" PRId64 ": an extent is at least 1",
					  domain->rank, op, i, extent);
		out[i] = extent;
	}
	return 0;
}

/*
 * Views
 */

/**
 * pldk__check_view() - is it a view, and does its window still exist?
 */
int pldk__check_view(const struct pldk_dtensor *view, const char *op)
{
	int ret;

	if (!view)
		return pldk__fail(-EINVAL, "%s: view is NULL", op);
	if (view->magic == PLDK__MAGIC_TENSOR)
		return pldk__fail(-EDOM, "%s: a tensor of one's own memory was passed where a view of a window is wanted: see pldk_view()",
				  op);
	if (view->magic != PLDK__MAGIC_DTENSOR || !view->window || view->ndim < 1 || view->ndim > PLDK_MAX_DIMS)
		return pldk__fail(-EDOM, "%s: not a view (magic %#x): make it with pldk_view()", op, view->magic);
	ret = pldk__check_window(view->window, op);
	if (!ret && view->generation != view->window->generation)
		ret = pldk__fail(-ESTALE, "%s: window %u of this view (generation %u) was destroyed", op, view->window->id,
				 view->generation);
	return ret;
}

static int check_fits(const struct pldk_window *window, uint64_t offset, int ndim, const int64_t *shape,
		      enum pldk_dtype dtype)
{
	size_t size = pldk_dtype_size(dtype);
	char shape_text[128];
	char window_text[80];
	uint64_t count;

	pldk__shape_text(ndim, shape, shape_text, sizeof(shape_text));
	pldk__window_text(window, window_text, sizeof(window_text));
	if (offset % size)
		return pldk__fail(-EINVAL, "rank %u: view: offset %" PRIu64 " is not a multiple of %zu, the size of %s",
				  window->domain->rank, offset, size, pldk_dtype_name(dtype));
	if (pldk__shape_count(ndim, shape, size, &count))
		return pldk__fail(-EOVERFLOW, "rank %u: view: %s %s has more bytes than memory has addresses",
				  window->domain->rank, shape_text, pldk_dtype_name(dtype));
	if (offset > window->bytes || count * size > window->bytes - offset)
		return pldk__fail(-EINVAL,
				  "rank %u: view: %" PRIu64 " bytes cannot hold %s %s: the size is in bytes (%s has %" PRIu64
				  " bytes a rank; %" PRIu64 " are wanted from offset %" PRIu64 " on)",
				  window->domain->rank, offset > window->bytes ? 0 : window->bytes - offset, shape_text,
				  pldk_dtype_name(dtype), window_text, window->bytes, count * size, offset);
	return 0;
}

/**
 * pldk_view() - see window.h
 */
int pldk_view(struct pldk_window *window, size_t offset, int ndim, const int64_t *shape, enum pldk_dtype dtype,
	      struct pldk_dtensor *out)
{
	struct pldk_dtensor view = { .magic = PLDK__MAGIC_DTENSOR, .dtype = dtype, .offset = offset, .window = window };
	struct pldk__thread *thread;
	char text[80];
	int ret;

	ret = pldk__check_window(window, "view");
	if (ret)
		return ret;
	ret = pldk__enter(window->domain, &thread);
	if (ret)
		return ret;
	if (!out)
		ret = pldk__fail(-EINVAL, "rank %u: view: out is NULL", window->domain->rank);
	else if (window->kind != PLD_WINDOW_DATA)
		ret = pldk__fail(-EDOM, "rank %u: view: %s is a signal window: cells are the library's; a view lies over a data window",
				 window->domain->rank, pldk__window_text(window, text, sizeof(text)));
	if (!ret)
		ret = pldk__check_dtype(dtype, "view");
	if (!ret)
		ret = pldk__shape_resolve(window->domain, ndim, shape, view.shape, "view");
	if (!ret)
		ret = check_fits(window, offset, ndim, view.shape, dtype);
	if (!ret) {
		view.ndim = (uint32_t)ndim;
		view.generation = window->generation;
		*out = view;
	}
	pldk__leave(thread);
	return ret;
}

/*
 * Compare with the expected shape and note what free symbols would become; nothing is bound yet. The domain's lock is
 * held. Return: 0 or the dimension + 1 that differs, with what was expected there.
 */
static int match_shape_locked(const struct pldk_domain *domain, const struct pldk_dtensor *view, const int64_t *shape,
			      int64_t *bind, int64_t *out_wanted)
{
	uint32_t i;

	for (i = 0; i < view->ndim; i++) {
		int64_t wanted = shape[i];

		if (is_symbol(wanted)) {
			size_t at = symbol_index(wanted);

			wanted = at < domain->ndims ? domain->dims[at].value : -1;
			if (!wanted)
				wanted = bind[at];
			if (!wanted)
				wanted = bind[at] = view->shape[i];
		}
		if (wanted != view->shape[i]) {
			*out_wanted = wanted;
			return (int)i + 1;
		}
	}
	return 0;
}

/**
 * pldk_view_expect() - see window.h
 */
int pldk_view_expect(const struct pldk_dtensor *view, int ndim, const int64_t *shape, enum pldk_dtype dtype)
{
	int64_t bind[PLDK__DIMS] = { 0 };
	char name[PLDK__NAME_MAX] = "";
	struct pldk__thread *thread;
	struct pldk_domain *domain;
	int64_t wanted = 0;
	char text[128];
	uint32_t i;
	int differs;
	int ret;

	ret = pldk__check_view(view, "view_expect");
	if (ret)
		return ret;
	domain = view->window->domain;
	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	ret = check_ndim(ndim, shape, "view_expect");
	if (!ret && dtype)
		ret = pldk__check_dtype(dtype, "view_expect");
	if (ret)
		goto out;
	if (dtype && dtype != view->dtype) {
		ret = pldk__fail(-EDOM, "rank %u: view_expect: the view is %s, expected is %s", domain->rank,
				 pldk_dtype_name((enum pldk_dtype)view->dtype), pldk_dtype_name(dtype));
		goto out;
	}
	if ((uint32_t)ndim != view->ndim) {
		ret = pldk__fail(-EDOM, "rank %u: view_expect: the view %s has %u dimensions, expected are %d", domain->rank,
				 pldk__shape_text((int)view->ndim, view->shape, text, sizeof(text)), view->ndim, ndim);
		goto out;
	}
	pthread_mutex_lock(&domain->lock);
	differs = match_shape_locked(domain, view, shape, bind, &wanted);
	if (differs && is_symbol(shape[differs - 1]) && symbol_index(shape[differs - 1]) < domain->ndims)
		memcpy(name, domain->dims[symbol_index(shape[differs - 1])].name, sizeof(name));
	for (i = 0; i < domain->ndims && !differs; i++) {
		if (bind[i])
			domain->dims[i].value = bind[i];
	}
	pthread_mutex_unlock(&domain->lock);
	if (!differs)
		goto out;
	differs--;
	if (wanted == -1)
		ret = pldk__fail(-EINVAL, "rank %u: view_expect: dimension %d is %" PRId64 ", which is no symbol of this domain",
				 domain->rank, differs, shape[differs]);
	else if (*name)
		ret = pldk__fail(-EINVAL, "rank %u: view_expect: %s is %" PRId64 " here but dimension %d of the view is %" PRId64,
				 domain->rank, name, wanted, differs, view->shape[differs]);
	else
		ret = pldk__fail(-EINVAL, "rank %u: view_expect: dimension %d of the view is %" PRId64 ", expected is %" PRId64,
				 domain->rank, differs, view->shape[differs], wanted);
out:
	pldk__leave(thread);
	return ret;
}

/* A view is a plain value and may have been edited after pldk_view(): is it still one of its window? */
static int check_edited(const struct pldk_dtensor *view, const char *op)
{
	uint32_t i;
	int ret;

	if (view->window->kind != PLD_WINDOW_DATA)
		return pldk__fail(-EDOM, "%s: the view lies over a signal window: cells are the library's", op);
	ret = pldk__check_dtype(view->dtype, op);
	for (i = 0; i < view->ndim && !ret; i++) {
		if (view->shape[i] <= 0)
			ret = pldk__fail(-EINVAL, "%s: dimension %u of the view is %" PRId64 ": an extent is at least 1", op, i,
					 view->shape[i]);
	}
	return ret ? ret : check_fits(view->window, view->offset, (int)view->ndim, view->shape,
				      (enum pldk_dtype)view->dtype);
}

/**
 * pldk_view_local() - see window.h
 */
int pldk_view_local(const struct pldk_dtensor *view, struct pldk_tensor *out)
{
	struct pldk_tensor tensor = { .magic = PLDK__MAGIC_TENSOR };
	struct pldk__thread *thread;
	struct pldk_domain *domain;
	int ret;

	ret = pldk__check_view(view, "view_local");
	if (ret)
		return ret;
	domain = view->window->domain;
	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	ret = out ? check_edited(view, "view_local") : pldk__fail(-EINVAL, "view_local: out is NULL");
	if (!ret) {
		tensor.dtype = view->dtype;
		tensor.ndim = view->ndim;
		memcpy(tensor.shape, view->shape, sizeof(tensor.shape));
		tensor.data = pldk__slab(view->window->map, domain->rank) + view->offset;
		*out = tensor;
	}
	pldk__leave(thread);
	return ret;
}
