// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * One-sided transfers that are complete when they return, and atomics on one element.
 *
 * Arguments are checked by rma_check.c; what is left here is to record the operation, move the bytes and, for
 * put_notify, say so. A near peer's slab is mapped: the bytes are moved by this thread. A far peer's is not: the
 * provider's far_ calls move them, and lane.c keeps the ordering contract.
 */
#include "transfer.h"

#include <errno.h>
#include <inttypes.h>

/*
 * Bytes of the next piece that a pipelined transfer asks for ahead: what the first level takes without pushing out. On
 * the processors tried, their own prefetchers already overlap load and store, and pipelining neither gains nor loses
 * more than the noise; it is there for those that do not.
 */
#define PREFETCH_BYTES 8192u

static int move_row(const struct pldk__transfer *t, uint64_t remote, char *local, uint64_t len, uint64_t *ticket)
{
	char *at;

	if (pldk__unlikely(!t->slab)) {
		if (t->is_get)
			return t->domain->ops->far_get(t->domain->pd, t->map, t->peer, remote, local, len,
						       t->deadline_ns, ticket);
		return t->domain->ops->far_put(t->domain->pd, t->map, t->peer, remote, local, len,
					       t->is_atomic ? t->dtype : 0, t->deadline_ns, ticket);
	}
	at = t->slab + remote;
	if (t->is_atomic)
		pldk__atomic_add(at, local, len / t->elem_size, t->dtype);
	else if (t->is_get)
		pldk__copy(local, at, len);
	else if (at != local)
		pldk__copy(at, local, len);
	return 0;
}

/* Addresses of a row of the box, counted over all dimensions but the last. */
static void row_at(const struct pldk__transfer *t, uint64_t row, uint64_t *remote, char **local)
{
	*remote = t->remote;
	*local = t->local;
	/* Two dimensions, the most there are after merging as a rule, need no division. */
	if (t->ndim == 2) {
		*remote += row * t->remote_stride[0];
		*local += row * t->local_stride[0];
		return;
	}
	for (uint32_t i = t->ndim - 1; i-- > 0;) {
		uint64_t index = row % t->extent[i];

		row /= t->extent[i];
		*remote += index * t->remote_stride[i];
		*local += index * t->local_stride[i];
	}
}

static void prefetch_row(const struct pldk__transfer *t, uint64_t row, uint64_t col, uint64_t len)
{
	uint64_t remote;
	char *local;
	const char *from;

	row_at(t, row, &remote, &local);
	from = (t->is_get ? t->slab + remote : local) + col;
	for (uint64_t at = 0; at < len; at += PLDK__CACHE_LINE)
		__builtin_prefetch(from + at, 0, 3);
}

/* Rows row.. and bytes col.. of a piece; while it moves, the piece that starts at next_row, next_col is asked for. */
static int move_piece(const struct pldk__transfer *t, uint64_t row, uint64_t nrows, uint64_t col, uint64_t len,
		      uint64_t next_row, uint64_t next_col, uint64_t *ticket)
{
	uint64_t rows = t->bytes / (t->extent[t->ndim - 1] * t->elem_size);
	uint64_t ahead = len < PREFETCH_BYTES ? len : PREFETCH_BYTES;
	uint64_t budget = t->is_pipelined && t->slab && next_row < rows ? PREFETCH_BYTES : 0;

	for (uint64_t i = 0; i < nrows; i++) {
		uint64_t remote;
		char *local;
		int ret;

		if (budget >= ahead && next_row + i < rows) {
			uint64_t left = t->extent[t->ndim - 1] * t->elem_size - next_col;

			prefetch_row(t, next_row + i, next_col, ahead < left ? ahead : left);
			budget -= ahead;
		}
		row_at(t, row + i, &remote, &local);
		ret = move_row(t, remote + col, local + col, len, ticket);
		if (ret)
			return ret;
	}
	return 0;
}

/* Rows and columns that are not next to each other, or pieces of a size that the caller asked for. */
static int move_box(const struct pldk__transfer *t, uint64_t *ticket)
{
	uint64_t row_len = t->extent[t->ndim - 1] * t->elem_size;
	uint64_t rows = t->bytes / row_len;
	uint64_t step = t->chunk_rows && t->chunk_rows < rows ? t->chunk_rows : rows;
	uint64_t len = row_len;
	uint64_t row;
	uint64_t col;

	if (t->chunk_cols && t->chunk_cols < t->extent[t->ndim - 1])
		len = t->chunk_cols * t->elem_size;
	for (row = 0; row < rows; row += step)
		for (col = 0; col < row_len; col += len) {
			uint64_t nrows = rows - row < step ? rows - row : step;
			uint64_t ncols = row_len - col < len ? row_len - col : len;
			bool is_last_col = row_len - col <= len;
			int ret = move_piece(t, row, nrows, col, ncols, is_last_col ? row + step : row,
					     is_last_col ? 0 : col + len, ticket);

			if (ret)
				return ret;
		}
	return 0;
}

/**
 * pldk__transfer_move() - carry a checked transfer out
 * @t: it
 * @ticket: far: ticket of the last piece, noted on the lane; untouched for a near peer
 *
 * Near: the bytes are there when it returns. Far: a put's source is free, a get's destination is filled when the
 * ticket is done.
 *
 * Return: 0, or an error of the provider's far_ calls; then some pieces may have moved, and none of a get is under way
 * that would still be written: the caller may free the destination.
 */
int pldk__transfer_move(const struct pldk__transfer *t, uint64_t *ticket)
{
	struct pldk__lanes *lanes = NULL;
	uint64_t last = 0;
	int ret;

	if (pldk__unlikely(!t->slab)) {
		lanes = pldk__lanes_of(t->domain);
		if (!lanes)
			return -ENOMEM;
	}
	if (pldk__likely(t->ndim == 1 && !t->chunk_rows && !t->chunk_cols))
		ret = move_row(t, t->remote, t->local, t->bytes, &last);
	else
		ret = move_box(t, &last);
	if (pldk__unlikely(lanes != NULL)) {
		pldk__lane_sent(lanes, t->peer, last);
		*ticket = last;
	}
	return ret;
}

/* A get waits for its bytes; a put to a far rank is drained before the next notify to somebody else. */
static int move_now(const struct pldk__transfer *t)
{
	uint64_t ticket = 0;
	int ret = pldk__transfer_move(t, &ticket);

	if (pldk__unlikely(!t->slab && t->is_get && !ret))
		ret = pldk__lane_done_or_forget(pldk__lanes_of(t->domain), t->peer, ticket, t->deadline_ns);
	return ret;
}

static inline uint32_t event_flags(const struct pldk__transfer *t)
{
	return t->peer == t->domain->rank ? PLDK_EVENT_SELF : 0;
}

static inline int record_and_move(const struct pldk__transfer *t, struct pldk_site *site, uint32_t op)
{
	struct pldk__rec *rec = pldk__record(t->thread, op, event_flags(t), pldk__site_id(site), (int)t->peer,
					     (int)t->window, t->remote, (int64_t)t->bytes);
	int ret = move_now(t);

	if (pldk__unlikely(ret))
		pldk__record_flag(rec, PLDK_EVENT_FAILED);
	pldk__leave(t->thread);
	return ret;
}

/**
 * pldk_put_at() - write own elements into a peer's slab; see rma.h
 */
int pldk_put_at(struct pldk_site *site, const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src,
		const struct pldk_region *region, const struct pldk_rma_options *options)
{
	struct pldk__transfer t;
	int ret = pldk__transfer_region(&t, "put", false, dst, peer, src, region, options);

	if (pldk__unlikely(ret))
		return ret;
	return record_and_move(&t, site, t.is_atomic ? PLDK_EV_ATOMIC : PLDK_EV_PUT);
}

/**
 * pldk_get_at() - read a peer's elements into own memory; see rma.h
 */
int pldk_get_at(struct pldk_site *site, const struct pldk_tensor *dst, const struct pldk_dtensor *src, int peer,
		const struct pldk_region *region, const struct pldk_rma_options *options)
{
	struct pldk__transfer t;
	int ret = pldk__transfer_region(&t, "get", true, src, peer, dst, region, options);

	if (pldk__unlikely(ret))
		return ret;
	return record_and_move(&t, site, PLDK_EV_GET);
}

/**
 * pldk_put_notify_at() - put, then notify the same peer; see rma.h
 *
 * To a far peer both ride one lane, so that nothing waits; the lanes to others are drained first. To a near peer the
 * bytes are stored before the cell is, by release.
 */
int pldk_put_notify_at(struct pldk_site *site, const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src,
		       const struct pldk_region *region, const struct pldk_rma_options *options,
		       const struct pldk_signal_to *signal)
{
	struct pldk__transfer t;
	struct pldk__rec *rec;
	uint64_t ticket = 0;
	int ret = pldk__transfer_region(&t, "put_notify", false, dst, peer, src, region, options);

	if (pldk__unlikely(ret))
		return ret;
	ret = pldk__check_signal_to(&t, "put_notify", signal);
	if (pldk__unlikely(ret))
		goto out_leave;
	rec = pldk__record(t.thread, PLDK_EV_PUT_NOTIFY, event_flags(&t), pldk__site_id(site), peer, (int)t.window,
			   t.remote, (int64_t)t.bytes);
	ret = pldk__far_settle(t.domain, t.slab ? -1 : peer, t.deadline_ns);
	if (pldk__likely(!ret))
		ret = pldk__transfer_move(&t, &ticket);
	if (pldk__likely(!ret))
		ret = pldk__notify_one(t.domain, signal->signal->map, t.peer, (uint32_t)signal->cell,
				       (uint32_t)signal->op, signal->value, t.deadline_ns, NULL, NULL);
	if (pldk__likely(!ret))
		pldk__store_relaxed(&rec->tsc, pldk__tsc());
	else
		pldk__record_flag(rec, PLDK_EVENT_FAILED);

out_leave:
	pldk__leave(t.thread);
	return ret;
}

/**
 * pldk_remote_load_at() - read a block with a ragged edge; see rma.h
 */
int pldk_remote_load_at(struct pldk_site *site, const struct pldk_tensor *dst, const struct pldk_dtensor *src, int peer,
			const int64_t *offsets, const int64_t *shape, const int64_t *valid_shape)
{
	struct pldk__transfer t;
	int ret = pldk__transfer_load(&t, dst, src, peer, offsets, shape, valid_shape);

	if (ret)
		return ret;
	if (!t.bytes) {
		pldk__leave(t.thread);
		return 0;
	}
	return record_and_move(&t, site, PLDK_EV_REMOTE_LOAD);
}

/**
 * pldk_remote_store_at() - write a block at an offset; see rma.h
 */
int pldk_remote_store_at(struct pldk_site *site, const struct pldk_tensor *src, const struct pldk_dtensor *dst,
			 int peer, const int64_t *offsets, enum pldk_atomic atomic)
{
	struct pldk__transfer t;
	int ret = pldk__transfer_store(&t, src, dst, peer, offsets, atomic);

	if (ret)
		return ret;
	if (!t.bytes) {
		pldk__leave(t.thread);
		return 0;
	}
	return record_and_move(&t, site, t.is_atomic ? PLDK_EV_ATOMIC : PLDK_EV_REMOTE_STORE);
}

static int rmw(struct pldk_site *site, const char *op, enum pldk__rmw kind, const struct pldk_dtensor *view, int peer,
	       const int64_t *index, int64_t operand, int64_t expected, int64_t *out_old)
{
	struct pldk__transfer t;
	struct pldk__rec *rec;
	int64_t old = 0;
	int ret = pldk__transfer_element(&t, op, view, peer, index);

	if (pldk__unlikely(ret))
		return ret;
	if (pldk__unlikely(!out_old)) {
		ret = pldk__fail(-EINVAL, "rank %u: %s: out_old is NULL", t.domain->rank, op);
		goto out_leave;
	}
	if (pldk__unlikely(t.dtype == PLDK_INT32 && (operand != (int32_t)operand || expected != (int32_t)expected))) {
		ret = pldk__fail(-EINVAL, "rank %u: %s: %" PRId64 " does not fit into INT32", t.domain->rank, op,
				 operand != (int32_t)operand ? operand : expected);
		goto out_leave;
	}
	rec = pldk__record(t.thread, PLDK_EV_ATOMIC, event_flags(&t), pldk__site_id(site), peer, (int)t.window,
			   t.remote, operand);
	if (pldk__unlikely(!t.slab))
		ret = t.domain->ops->far_rmw(t.domain->pd, t.map, t.peer, t.remote, t.dtype, kind, operand, expected,
					     t.deadline_ns, &old);
	else if (t.dtype == PLDK_INT32)
		old = pldk__rmw32((int32_t *)(void *)(t.slab + t.remote), kind, (int32_t)operand, (int32_t)expected);
	else
		old = pldk__rmw64((int64_t *)(void *)(t.slab + t.remote), kind, operand, expected);
	if (pldk__unlikely(ret))
		pldk__record_flag(rec, PLDK_EVENT_FAILED);
	else
		*out_old = old;

out_leave:
	pldk__leave(t.thread);
	return ret;
}

/**
 * pldk_fetch_add_at() - add to one element and tell what was there; see rma.h
 */
int pldk_fetch_add_at(struct pldk_site *site, const struct pldk_dtensor *view, int peer, const int64_t *index,
		      int64_t value, int64_t *out_old)
{
	return rmw(site, "fetch_add", PLDK__RMW_ADD, view, peer, index, value, 0, out_old);
}

/**
 * pldk_swap_at() - store one element and tell what was there; see rma.h
 */
int pldk_swap_at(struct pldk_site *site, const struct pldk_dtensor *view, int peer, const int64_t *index, int64_t value,
		 int64_t *out_old)
{
	return rmw(site, "swap", PLDK__RMW_SWAP, view, peer, index, value, 0, out_old);
}

/**
 * pldk_compare_swap_at() - store one element if it is what is expected, and tell what was there; see rma.h
 */
int pldk_compare_swap_at(struct pldk_site *site, const struct pldk_dtensor *view, int peer, const int64_t *index,
			 int64_t expected, int64_t value, int64_t *out_old)
{
	return rmw(site, "compare_swap", PLDK__RMW_CAS, view, peer, index, value, expected, out_old);
}

/*
 * The same without a call site, for function pointers and other languages: the site is the return address.
 */

int(pldk_put)(const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src, const struct pldk_region *region,
	      const struct pldk_rma_options *options)
{
	return pldk_put_at(PLDK__CALLER(), dst, peer, src, region, options);
}

int(pldk_get)(const struct pldk_tensor *dst, const struct pldk_dtensor *src, int peer, const struct pldk_region *region,
	      const struct pldk_rma_options *options)
{
	return pldk_get_at(PLDK__CALLER(), dst, src, peer, region, options);
}

int(pldk_put_notify)(const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src,
		     const struct pldk_region *region, const struct pldk_rma_options *options,
		     const struct pldk_signal_to *signal)
{
	return pldk_put_notify_at(PLDK__CALLER(), dst, peer, src, region, options, signal);
}

int(pldk_remote_load)(const struct pldk_tensor *dst, const struct pldk_dtensor *src, int peer, const int64_t *offsets,
		      const int64_t *shape, const int64_t *valid_shape)
{
	return pldk_remote_load_at(PLDK__CALLER(), dst, src, peer, offsets, shape, valid_shape);
}

int(pldk_remote_store)(const struct pldk_tensor *src, const struct pldk_dtensor *dst, int peer, const int64_t *offsets,
		       enum pldk_atomic atomic)
{
	return pldk_remote_store_at(PLDK__CALLER(), src, dst, peer, offsets, atomic);
}

int(pldk_fetch_add)(const struct pldk_dtensor *view, int peer, const int64_t *index, int64_t value, int64_t *out_old)
{
	return pldk_fetch_add_at(PLDK__CALLER(), view, peer, index, value, out_old);
}

int(pldk_swap)(const struct pldk_dtensor *view, int peer, const int64_t *index, int64_t value, int64_t *out_old)
{
	return pldk_swap_at(PLDK__CALLER(), view, peer, index, value, out_old);
}

int(pldk_compare_swap)(const struct pldk_dtensor *view, int peer, const int64_t *index, int64_t expected, int64_t value,
		       int64_t *out_old)
{
	return pldk_compare_swap_at(PLDK__CALLER(), view, peer, index, expected, value, out_old);
}
