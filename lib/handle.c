// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Transfers that complete later: handles, flush, fence.
 *
 * To a near peer this thread moves the bytes before the call returns, so its handle is born complete. To a far peer
 * the handle is a ticket of the lane. There is no thread in the background: a get's bytes are fetched into place by
 * whoever asks for the ticket.
 */
#include "transfer.h"

#include <errno.h>
#include <stdlib.h>

#define MAGIC_HANDLE 0x7068646cu

/**
 * struct pldk_handle - a transfer under way
 * @magic: MAGIC_HANDLE, or PLDK__MAGIC_DEAD once it was ended
 * @peer: whose lane
 * @ticket: on it; 0 complete
 */
struct pldk_handle {
	uint32_t magic;
	uint32_t peer;
	uint64_t ticket;
	struct pldk_domain *domain;
};

static void end(struct pldk_handle *handle)
{
	handle->magic = PLDK__MAGIC_DEAD;
	free(handle);
}

/* The common part of the _nb forms. signal is NULL for all but put_notify_nb. Ends with leaving the domain. */
static int start(struct pldk__transfer *t, struct pldk_site *site, uint32_t event, const struct pldk_signal_to *signal,
		 struct pldk_handle **out)
{
	uint32_t flags = PLDK_EVENT_NB | (t->peer == t->domain->rank ? PLDK_EVENT_SELF : 0);
	struct pldk_handle *handle;
	struct pldk__rec *rec;
	uint64_t ticket = 0;
	int ret;

	handle = malloc(sizeof(*handle));
	if (!handle) {
		ret = pldk__fail(-ENOMEM, "rank %u: no memory for a handle", t->domain->rank);
		goto out_leave;
	}
	rec = pldk__record(t->thread, event, flags, pldk__site_id(site), (int)t->peer, (int)t->window, t->remote,
			   (int64_t)t->bytes);
	ret = pldk__transfer_move(t, &ticket);
	if (!ret && signal)
		ret = pldk__notify_one(t->domain, signal->signal->map, t->peer, (uint32_t)signal->cell,
				       (uint32_t)signal->op, signal->value, NULL, NULL);
	if (ret) {
		pldk__record_flag(rec, PLDK_EVENT_FAILED);
		free(handle);
		goto out_leave;
	}
	handle->magic = MAGIC_HANDLE;
	handle->peer = t->peer;
	handle->ticket = ticket;
	handle->domain = t->domain;
	*out = handle;

out_leave:
	pldk__leave(t->thread);
	return ret;
}

static int check_out(struct pldk__transfer *t, const char *op, struct pldk_handle **out)
{
	if (pldk__likely(out != NULL))
		return 0;
	pldk__leave(t->thread);
	return pldk__fail(-EINVAL, "rank %u: %s: out is NULL: the handle must be ended by somebody", t->domain->rank, op);
}

/**
 * pldk_put_nb_at() - start a put; see rma.h
 */
int pldk_put_nb_at(struct pldk_site *site, const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src,
		   const struct pldk_region *region, const struct pldk_rma_options *options, struct pldk_handle **out)
{
	struct pldk__transfer t;
	int ret = pldk__transfer_region(&t, "put_nb", false, dst, peer, src, region, options);

	if (!ret)
		ret = check_out(&t, "put_nb", out);
	return ret ? ret : start(&t, site, t.is_atomic ? PLDK_EV_ATOMIC : PLDK_EV_PUT, NULL, out);
}

/**
 * pldk_get_nb_at() - start a get; see rma.h
 */
int pldk_get_nb_at(struct pldk_site *site, const struct pldk_tensor *dst, const struct pldk_dtensor *src, int peer,
		   const struct pldk_region *region, const struct pldk_rma_options *options, struct pldk_handle **out)
{
	struct pldk__transfer t;
	int ret = pldk__transfer_region(&t, "get_nb", true, src, peer, dst, region, options);

	if (!ret)
		ret = check_out(&t, "get_nb", out);
	return ret ? ret : start(&t, site, PLDK_EV_GET, NULL, out);
}

/**
 * pldk_put_notify_nb_at() - start a put that is followed by a notify of the same peer; see rma.h
 *
 * The lanes to other far ranks are not drained: this notify speaks for its own put only.
 */
int pldk_put_notify_nb_at(struct pldk_site *site, const struct pldk_dtensor *dst, int peer,
			  const struct pldk_tensor *src, const struct pldk_region *region,
			  const struct pldk_rma_options *options, const struct pldk_signal_to *signal,
			  struct pldk_handle **out)
{
	struct pldk__transfer t;
	int ret = pldk__transfer_region(&t, "put_notify_nb", false, dst, peer, src, region, options);

	if (ret)
		return ret;
	ret = check_out(&t, "put_notify_nb", out);
	if (ret)
		return ret;
	ret = pldk__check_signal_to(&t, "put_notify_nb", signal);
	if (ret) {
		pldk__leave(t.thread);
		return ret;
	}
	return start(&t, site, PLDK_EV_PUT_NOTIFY, signal, out);
}

static int check_handle(const struct pldk_handle *handle, const char *op)
{
	if (pldk__likely(handle && handle->magic == MAGIC_HANDLE))
		return 0;
	if (!handle)
		return pldk__fail(-EINVAL, "%s: handle is NULL", op);
	if (handle->magic == PLDK__MAGIC_DEAD)
		return pldk__fail(-ESTALE, "%s: the handle was ended before", op);
	return pldk__fail(-EINVAL, "%s: not a handle", op);
}

static int finish(struct pldk_handle *handle, uint64_t deadline_ns)
{
	struct pldk__lanes *lanes;

	if (!handle->ticket)
		return 0;
	lanes = pldk__lanes_of(handle->domain);
	return lanes ? pldk__lane_done(lanes, handle->peer, handle->ticket, deadline_ns) : -ENOMEM;
}

/* A poll that finds nothing leaves no record: thousands of them would push out what matters. */
static int try_or_wait(struct pldk_site *site, struct pldk_handle *handle, const char *op, uint64_t deadline_ns)
{
	struct pldk__thread *thread;
	struct pldk__rec *rec = NULL;
	int ret = check_handle(handle, op);

	if (ret)
		return ret;
	ret = pldk__enter(handle->domain, &thread);
	if (ret)
		return ret;
	if (deadline_ns != PLD_DEADLINE_POLL)
		rec = pldk__record(thread, PLDK_EV_HANDLE_WAIT, handle->ticket ? 0 : PLDK_EVENT_DONE_AT_ONCE,
				   pldk__site_id(site), (int)handle->peer, -1, 0, (int64_t)handle->ticket);
	ret = finish(handle, deadline_ns);
	if (!rec && ret != -EAGAIN)
		rec = pldk__record(thread, PLDK_EV_HANDLE_WAIT, PLDK_EVENT_DONE_AT_ONCE, pldk__site_id(site),
				   (int)handle->peer, -1, 0, (int64_t)handle->ticket);
	if (rec && ret)
		pldk__record_flag(rec, PLDK_EVENT_FAILED);
	if (ret != -EAGAIN && ret != -ETIMEDOUT && ret != -EINTR)
		end(handle);
	pldk__leave(thread);
	return ret;
}

/**
 * pldk_handle_wait_at() - until the transfer is complete; see rma.h
 */
int pldk_handle_wait_at(struct pldk_site *site, struct pldk_handle *handle, int64_t timeout_ns)
{
	return try_or_wait(site, handle, "handle_wait", pldk__deadline(timeout_ns));
}

/**
 * pldk_handle_test_at() - is the transfer complete? see rma.h
 */
int pldk_handle_test_at(struct pldk_site *site, struct pldk_handle *handle)
{
	int ret = try_or_wait(site, handle, "handle_test", PLD_DEADLINE_POLL);

	if (!ret)
		return 1;
	return ret == -EAGAIN || ret == -ETIMEDOUT || ret == -EINTR ? 0 : ret;
}

/**
 * pldk_handle_free() - forget a transfer; see rma.h
 *
 * Nothing to wait for: a put's source is free, a get's bytes are brought home by whoever looks at the lane next, the
 * flush at the latest. The lane knows the ticket.
 */
void pldk_handle_free(struct pldk_handle *handle)
{
	if (!check_handle(handle, "handle_free"))
		end(handle);
}

/**
 * pldk_flush_at() - complete everything this thread started to a peer; see rma.h
 */
int pldk_flush_at(struct pldk_site *site, struct pldk_domain *domain, int peer, int64_t timeout_ns)
{
	struct pldk__data *data;
	struct pldk__lanes *lanes;
	struct pldk__thread *thread;
	struct pldk__rec *rec;
	uint64_t deadline_ns;
	int ret = pldk__enter(domain, &thread);

	if (ret)
		return ret;
	if (peer != PLDK_RANK_ANY) {
		ret = pldk__check_peer(domain, peer, "flush");
		if (ret)
			goto out_leave;
	}
	rec = pldk__record(thread, PLDK_EV_FLUSH, 0, pldk__site_id(site), peer, -1, 0, 0);
	data = pldk__load_acquire(&domain->coll_data);
	lanes = data ? pldk__load_acquire(&data->lanes) : NULL;
	if (pldk__likely(!lanes))
		goto out_leave;
	deadline_ns = pldk__deadline(timeout_ns);
	for (uint32_t rank = 0; rank < domain->nranks && !ret; rank++)
		if (peer == PLDK_RANK_ANY || rank == (uint32_t)peer)
			ret = pldk__lane_drain(lanes, rank, deadline_ns);
	if (ret)
		pldk__record_flag(rec, PLDK_EVENT_FAILED);

out_leave:
	pldk__leave(thread);
	return ret;
}

/**
 * pldk_fence_at() - earlier puts to a peer land before later ones; see rma.h
 *
 * A lane keeps its order by itself. Near, the stores of this thread need a release between them.
 */
int pldk_fence_at(struct pldk_site *site, struct pldk_domain *domain, int peer)
{
	struct pldk__thread *thread;
	int ret = pldk__enter(domain, &thread);

	(void)site;
	if (ret)
		return ret;
	if (peer != PLDK_RANK_ANY)
		ret = pldk__check_peer(domain, peer, "fence");
	if (!ret)
		pldk__fence_release();
	pldk__leave(thread);
	return ret;
}

/*
 * The same without a call site: the site is the return address.
 */

int(pldk_put_nb)(const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src,
		 const struct pldk_region *region, const struct pldk_rma_options *options, struct pldk_handle **out)
{
	return pldk_put_nb_at(PLDK__CALLER(), dst, peer, src, region, options, out);
}

int(pldk_get_nb)(const struct pldk_tensor *dst, const struct pldk_dtensor *src, int peer,
		 const struct pldk_region *region, const struct pldk_rma_options *options, struct pldk_handle **out)
{
	return pldk_get_nb_at(PLDK__CALLER(), dst, src, peer, region, options, out);
}

int(pldk_put_notify_nb)(const struct pldk_dtensor *dst, int peer, const struct pldk_tensor *src,
			const struct pldk_region *region, const struct pldk_rma_options *options,
			const struct pldk_signal_to *signal, struct pldk_handle **out)
{
	return pldk_put_notify_nb_at(PLDK__CALLER(), dst, peer, src, region, options, signal, out);
}

int(pldk_handle_wait)(struct pldk_handle *handle, int64_t timeout_ns)
{
	return pldk_handle_wait_at(PLDK__CALLER(), handle, timeout_ns);
}

int(pldk_handle_test)(struct pldk_handle *handle)
{
	return pldk_handle_test_at(PLDK__CALLER(), handle);
}

int(pldk_flush)(struct pldk_domain *domain, int peer, int64_t timeout_ns)
{
	return pldk_flush_at(PLDK__CALLER(), domain, peer, timeout_ns);
}

int(pldk_fence)(struct pldk_domain *domain, int peer)
{
	return pldk_fence_at(PLDK__CALLER(), domain, peer);
}
