// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What completes later: handles, flush, fence.
 *
 * To a near peer this thread moves the bytes before the call returns, so its handle is born complete. To a far peer
 * the handle is a ticket of the lane. There is no thread in the background: a get's bytes are fetched into place by
 * whoever asks for the ticket. The handle of a collective stands for a place in the queue of coll_queue.c.
 */
#include "announce.h"
#include "transfer.h"

#include <errno.h>
#include <stdlib.h>

/*
 * What the user holds is a number in the clothes of a pointer: generation, index of a slot, 1 in the lowest bit, so
 * that it is neither NULL nor an address. Slots are never given back to malloc(), and ending a handle moves its slot's
 * generation on: one that was ended before is told for sure, whatever was started since (with 64 bits; with 32 the
 * generation wraps after 1,024 uses of a slot).
 */
#define INDEX_BITS 20u
#define CHUNK 256u /* slots that are made at a time */
#define NCHUNKS ((1u << INDEX_BITS) / CHUNK)
#define NONE ((1u << INDEX_BITS) - 1) /* no slot has this index */
#define GENERATIONS (UINTPTR_MAX >> (INDEX_BITS + 1))

/**
 * struct slot - a transfer under way, or room for one
 * @generation: odd while it is one; whoever moves it on has ended the handle
 * @next: index of the next free slot, while this one is free
 * @peer: whose lane
 * @ticket: on it; 0 complete
 * @coll: the collective, NULL for a transfer
 *
 * Read by whoever has its handle, at the same time as it is ended and taken again by others: every word is atomic, and
 * counts only if the generation is the same before and after.
 */
struct slot {
	uint64_t generation;
	uint32_t next;
	uint32_t peer;
	uint64_t ticket;
	struct pldk_domain *domain;
	struct pldk__coll *coll;
};

/* All of the process. Chunks are made under the registry lock. free: changes << INDEX_BITS | first free slot's index */
static struct {
	uint64_t free;
	uint32_t nchunks;
	struct slot *chunks[NCHUNKS];
} table = { .free = NONE };

static struct slot *slot_at(uint32_t index)
{
	return &pldk__load_relaxed(&table.chunks[index / CHUNK])[index % CHUNK];
}

static void slot_give(uint32_t index)
{
	uint64_t first = pldk__load_acquire(&table.free);

	do {
		pldk__store_relaxed(&slot_at(index)->next, (uint32_t)(first & NONE));
	} while (!pldk__cas_seq(&table.free, &first, ((first >> INDEX_BITS) + 1) << INDEX_BITS | index));
}

static bool slots_more(void)
{
	struct slot *chunk;
	uint32_t first;

	pldk__registry_lock();
	first = table.nchunks * CHUNK;
	chunk = (pldk__load_acquire(&table.free) & NONE) == NONE && table.nchunks < NCHUNKS ?
			calloc(CHUNK, sizeof(*chunk)) : NULL;
	if (chunk) {
		pldk__store_relaxed(&table.chunks[table.nchunks], chunk);
		pldk__store_release(&table.nchunks, table.nchunks + 1);
		for (uint32_t i = CHUNK; i-- > 0;)
			if (first + i != NONE)
				slot_give(first + i);
	}
	pldk__registry_unlock();
	return (pldk__load_acquire(&table.free) & NONE) != NONE;
}

/* A free slot, the caller's; NONE without memory. */
static uint32_t slot_take(void)
{
	uint64_t first = pldk__load_acquire(&table.free);
	uint64_t rest;

	do {
		if ((first & NONE) == NONE) {
			if (!slots_more())
				return NONE;
			first = pldk__load_acquire(&table.free);
			continue;
		}
		/* The count of changes makes the exchange fail if the slot was taken and given back meanwhile. */
		rest = pldk__load_relaxed(&slot_at((uint32_t)(first & NONE))->next);
		rest |= ((first >> INDEX_BITS) + 1) << INDEX_BITS;
		if (pldk__cas_seq(&table.free, &first, rest))
			return (uint32_t)(first & NONE);
	} while (true);
}

static struct pldk_handle *handle_of(uint32_t index, uint64_t generation)
{
	return (struct pldk_handle *)(((uintptr_t)generation & GENERATIONS) << (INDEX_BITS + 1) |
				      (uintptr_t)index << 1 | 1);
}

/* True: this call ended it. Of several threads that try, one does. */
static bool slot_end(uint32_t index, uint64_t generation)
{
	if (!pldk__cas_seq(&slot_at(index)->generation, &generation, generation + 1))
		return false;
	slot_give(index);
	return true;
}

/* What the slot stands for; from now on the handle is valid. */
static struct pldk_handle *slot_fill(uint32_t index, struct pldk_domain *domain, uint32_t peer, uint64_t ticket,
				     struct pldk__coll *coll)
{
	struct slot *slot = slot_at(index);

	pldk__store_relaxed(&slot->peer, peer);
	pldk__store_relaxed(&slot->ticket, ticket);
	pldk__store_relaxed(&slot->domain, domain);
	pldk__store_relaxed(&slot->coll, coll);
	pldk__store_release(&slot->generation, slot->generation + 1);
	return handle_of(index, slot->generation);
}

static int fail_full(const struct pldk_domain *domain)
{
	return pldk__fail(-ENOMEM, "rank %u: no memory for a handle, or %u are under way", domain->rank, NONE);
}

/**
 * pldk__handle_new() - of a collective; see transfer.h
 */
int pldk__handle_new(struct pldk_domain *domain, struct pldk__coll *coll, struct pldk_handle **out)
{
	const uint32_t index = slot_take();

	if (index == NONE)
		return fail_full(domain);
	*out = slot_fill(index, domain, PLD_RANK_ANY, 0, coll);
	return 0;
}

/**
 * pldk__handles_end() - a domain closes: its handles are ended
 *
 * Walks every slot that there is: as many as were ever under way at one time.
 */
void pldk__handles_end(const struct pldk_domain *domain)
{
	const uint32_t n = pldk__load_acquire(&table.nchunks) * CHUNK;

	for (uint32_t i = 0; i < n; i++) {
		struct slot *slot = slot_at(i);
		const uint64_t generation = pldk__load_acquire(&slot->generation);

		if ((generation & 1) && pldk__load_relaxed(&slot->domain) == domain)
			slot_end(i, generation);
	}
}

/* The common part of the _nb forms. signal is NULL for all but put_notify_nb. Ends with leaving the domain. */
static int start(struct pldk__transfer *t, struct pldk_site *site, uint32_t event, const struct pldk_signal_to *signal,
		 struct pldk_handle **out)
{
	uint32_t flags = PLDK_EVENT_NB | (t->peer == t->domain->rank ? PLDK_EVENT_SELF : 0);
	const uint32_t index = slot_take();
	struct pldk__rec *rec;
	uint64_t ticket = 0;
	int ret;

	if (index == NONE) {
		ret = fail_full(t->domain);
		goto out_leave;
	}
	rec = pldk__record(t->thread, event, flags, pldk__site_id(site), (int)t->peer, (int)t->window, t->remote,
			   (int64_t)t->bytes);
	ret = pldk__transfer_move(t, &ticket);
	if (!ret && signal)
		ret = pldk__notify_one(t->domain, signal->signal->map, t->peer, (uint32_t)signal->cell,
				       (uint32_t)signal->op, signal->value, t->deadline_ns, NULL, NULL);
	if (ret) {
		pldk__record_flag(rec, PLDK_EVENT_FAILED);
		slot_give(index);
		goto out_leave;
	}
	*out = slot_fill(index, t->domain, t->peer, ticket, NULL);

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

/** struct subject - what a handle stands for, read in one piece */
struct subject {
	uint32_t index;
	uint32_t peer;
	uint64_t generation;
	uint64_t ticket;
	struct pldk_domain *domain;
	struct pldk__coll *coll;
};

static int fail_ended(const char *op)
{
	return pldk__fail(-ESTALE,
			  "%s: the handle was ended before: by handle_wait, by a handle_test that said 1 or failed, by handle_free, or with its domain",
			  op);
}

static int look_up(const struct pldk_handle *handle, const char *op, struct subject *out)
{
	const uintptr_t bits = (uintptr_t)handle;
	const struct slot *slot;

	if (!handle)
		return pldk__fail(-EINVAL, "%s: handle is NULL", op);
	out->index = (uint32_t)(bits >> 1) & NONE;
	if (!(bits & 1) || out->index / CHUNK >= pldk__load_acquire(&table.nchunks) || out->index == NONE)
		return pldk__fail(-EINVAL, "%s: not a handle", op);
	slot = slot_at(out->index);
	out->generation = pldk__load_acquire(&slot->generation);
	out->peer = pldk__load_relaxed(&slot->peer);
	out->ticket = pldk__load_relaxed(&slot->ticket);
	out->domain = pldk__load_relaxed(&slot->domain);
	out->coll = pldk__load_relaxed(&slot->coll);
	pldk__fence_acquire();
	if (pldk__likely(handle == handle_of(out->index, out->generation) && (out->generation & 1) &&
			 pldk__load_relaxed(&slot->generation) == out->generation))
		return 0;
	return fail_ended(op);
}

/* End the handle, and say so if another thread has, meanwhile. */
static int end(const struct subject *subject, const char *op)
{
	if (!slot_end(subject->index, subject->generation))
		return fail_ended(op);
	if (subject->coll)
		pldk__coll_forget(subject->coll);
	return 0;
}

static int finish_transfer(const struct subject *subject, uint64_t deadline_ns)
{
	struct pldk__lanes *lanes;

	if (!subject->ticket)
		return 0;
	lanes = pldk__lanes_of(subject->domain);
	return lanes ? pldk__lane_done(lanes, subject->peer, subject->ticket, deadline_ns) : -ENOMEM;
}

/* Does ret leave the handle as it is? */
static bool goes_on(int ret)
{
	return ret == -EAGAIN || ret == -ETIMEDOUT || ret == -EINTR;
}

/* Complete a collective, and end its handle while nobody else can start another one in its place. */
static int finish_coll(const struct subject *subject, struct pldk__thread *thread, uint32_t site, const char *op,
		       uint64_t deadline_ns)
{
	struct pldk_domain *domain = subject->domain;
	int ret = pldk__coll_lock(domain, thread, PLDK_EV_HANDLE_WAIT, site);

	if (ret == -EBUSY)
		return ret;
	if (ret) { /* poisoned: it will not be completed */
		(void)end(subject, op);
		return ret;
	}
	if (pldk__load_acquire(&slot_at(subject->index)->generation) != subject->generation) {
		ret = fail_ended(op);
	} else {
		ret = pldk__coll_finish(subject->coll, thread, deadline_ns);
		if (!goes_on(ret))
			(void)end(subject, op);
	}
	pldk__coll_unlock(domain, thread);
	return ret;
}

static int finish(const struct subject *subject, struct pldk__thread *thread, uint32_t site, const char *op,
		  uint64_t deadline_ns)
{
	int ret;

	if (subject->coll)
		return finish_coll(subject, thread, site, op, deadline_ns);
	ret = finish_transfer(subject, deadline_ns);
	if (!goes_on(ret) && end(subject, op))
		return -ESTALE;
	return ret;
}

/* A poll that finds nothing leaves no record: thousands of them would push out what matters. */
static int try_or_wait(struct pldk_site *site, struct pldk_handle *handle, const char *op, uint64_t deadline_ns)
{
	struct pldk__thread *thread;
	struct pldk__rec *rec = NULL;
	struct subject subject;
	uint32_t site_id;
	int ret = look_up(handle, op, &subject);

	if (ret)
		return ret;
	ret = pldk__enter(subject.domain, &thread);
	if (ret)
		return ret;
	site_id = pldk__site_id(site);
	if (deadline_ns != PLD_DEADLINE_POLL)
		rec = pldk__record(thread, PLDK_EV_HANDLE_WAIT,
				   subject.ticket || subject.coll ? 0 : PLDK_EVENT_DONE_AT_ONCE, site_id,
				   (int)subject.peer, -1, 0, (int64_t)subject.ticket);
	ret = finish(&subject, thread, site_id, op, deadline_ns);
	if (!rec && ret != -EAGAIN)
		rec = pldk__record(thread, PLDK_EV_HANDLE_WAIT, PLDK_EVENT_DONE_AT_ONCE, site_id, (int)subject.peer, -1,
				   0, (int64_t)subject.ticket);
	if (rec && ret)
		pldk__record_flag(rec, PLDK_EVENT_FAILED);
	pldk__leave(thread);
	return ret;
}

/**
 * pldk_handle_wait_at() - until it is complete; see rma.h
 */
int pldk_handle_wait_at(struct pldk_site *site, struct pldk_handle *handle, int64_t timeout_ns)
{
	int ret = try_or_wait(site, handle, "handle_wait", pldk__deadline(timeout_ns));

	return ret == -EAGAIN ? pldk__fail(ret, "handle_wait: it is not complete yet") : ret;
}

/**
 * pldk_handle_test_at() - is it complete? see rma.h
 */
int pldk_handle_test_at(struct pldk_site *site, struct pldk_handle *handle)
{
	int ret = try_or_wait(site, handle, "handle_test", PLD_DEADLINE_POLL);

	return goes_on(ret) ? 0 : ret ? ret : 1;
}

/**
 * pldk_handle_free() - forget it; see rma.h
 *
 * A transfer has nothing to wait for: a put's source is free, a get's bytes are brought home by whoever looks at the
 * lane next, the flush at the latest. The lane knows the ticket. A collective stays in its queue.
 */
void pldk_handle_free(struct pldk_handle *handle)
{
	struct pldk__thread *thread;
	struct subject subject;

	if (!handle || look_up(handle, "handle_free", &subject) || pldk__enter(subject.domain, &thread))
		return;
	(void)end(&subject, "handle_free");
	pldk__leave(thread);
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
	data = pldk__load_acquire(&domain->data);
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
