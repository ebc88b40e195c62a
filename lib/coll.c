// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The frame of the collectives: staging memory, the loop over chunks, and what happens when a call is interrupted.
 *
 * Every collective has one shape. Its data is cut into chunks of a slot; for each chunk a rank that has something to
 * give copies it into its own slot, all ranks meet (pldk__rendezvous()), and whoever wants something takes it from the
 * others' slots. So user data may lie anywhere, and nobody writes into memory that another rank may be using.
 *
 * Why two slots that take turns are enough. The slot of a chunk is the parity of the number of its rendezvous, which
 * all ranks count alike. Slot n & 1 is read by others between rendezvous n and the moment they announce rendezvous
 * n + 1. Its owner writes it next for rendezvous n + 2, after its own rendezvous n + 1 was complete, thus after all
 * have announced n + 1 and are done reading. A rendezvous of another kind in between (barrier, window_create) only
 * makes the distance larger. This holds across operations: calls may follow each other on the same buffers at once.
 *
 * Far ranks' slots are not mapped: they are fetched with far_get() between the same two moments. Near and far ranks so
 * take the same bytes and combine them in the same order.
 *
 * Interrupted calls (-ETIMEDOUT, -EINTR, -EAGAIN, any error that leaves a rendezvous open). The chunk was announced and
 * others may be reading it already; the chunks before it are done. The place is kept, and the same call (operation,
 * arguments, buffers) made again goes on there, without looking at the announced part of its input again: so all ranks
 * combine the same bytes. (Who fills the input anew in between gives the later chunks other data than the first ones:
 * coll.h says not to.) Any other collective first completes the open rendezvous (before it touches a slot: a
 * rank that has not announced it may still be reading the other one) and gives the rest up: if the others are not at
 * their last chunk, they and this rank get -EPROTO at the next rendezvous. Wrong data is not among the outcomes.
 */
#include "coll.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FETCH_NS UINT64_C(10000000000) /* at least so long is waited for a chunk of a far rank */

static void staging_free(struct pldk__staging *staging)
{
	free(staging->sources);
	free(staging->scratch);
	free(staging);
}

static struct pldk__staging *staging_of(struct pldk_domain *domain)
{
	struct pldk__data *data = pldk__data_of(domain);
	struct pldk__staging *staging;

	if (!data)
		return NULL;
	/* Guarded by pldk__coll_enter(): one collective at a time. */
	if (pldk__likely(data->staging != NULL))
		return data->staging;
	staging = calloc(1, sizeof(*staging));
	if (!staging) {
		pldk__fail(-ENOMEM, "rank %u: no memory for the state of its collectives", domain->rank);
		return NULL;
	}
	data->staging = staging;
	return staging;
}

/*
 * First collective of the domain that moves data. Opening a system window is local: the first rank makes it, the others
 * find it. A rank that fails here tells the others at the rendezvous.
 */
static int staging_open(struct pldk_domain *domain, struct pldk__staging *staging)
{
	if (!staging->sources)
		staging->sources = calloc(domain->nranks, sizeof(*staging->sources));
	if (domain->has_far && !staging->scratch)
		staging->scratch = malloc((size_t)domain->nranks * PLDK__COLL_SLOT);
	if (!staging->sources || (domain->has_far && !staging->scratch))
		return pldk__fail(-ENOMEM, "rank %u: no memory for the staging of collectives", domain->rank);
	return pldk__system_open(domain, PLDK__SYSTEM_COLL, PLD_WINDOW_DATA, 0, 2 * PLDK__COLL_SLOT, &staging->map);
}

/**
 * pldk__coll_close() - free what the data path hung on a domain
 * @domain: being closed; no thread is inside
 */
void pldk__coll_close(struct pldk_domain *domain)
{
	struct pldk__data *data = domain->coll_data;

	if (!data)
		return;
	pldk__lanes_free(domain);
	if (data->staging) {
		if (data->staging->map)
			domain->ops->close(domain->pd, data->staging->map);
		staging_free(data->staging);
	}
	pthread_mutex_destroy(&data->lock);
	free(data);
	domain->coll_data = NULL;
}

/* Is this the call that was interrupted? */
static bool is_same(const struct pldk__coll *coll, const struct pldk__coll *saved)
{
	return saved->call.op == coll->call.op && saved->input == coll->input && saved->output == coll->output &&
	       !memcmp(saved->call.args, coll->call.args, sizeof(coll->call.args));
}

/*
 * The wait met a rank that has finalised. If another one died, the first may just be a survivor that has given up
 * already: the death is the cause, and all survivors shall hear the same.
 */
static int blame_death(const struct pldk__coll *coll)
{
	const struct pld_status *status = coll->domain->pd->status;
	struct pldk__text text = { 0 };
	uint32_t dead;

	if (!pldk__load_acquire(&status->dead))
		return -ESHUTDOWN;
	dead = pldk__load_relaxed(&status->first_dead);
	if (dead >= coll->domain->nranks)
		return -ESHUTDOWN;
	pldk__rank_text(&text, coll->domain, dead);
	return pldk__fail(-EOWNERDEAD, "rank %u: %s: %s, and others have given up", coll->domain->rank,
			  pldk_event_name(coll->call.op), text.text);
}

/*
 * A rendezvous of an earlier call is still open: go on with that call, or complete the rendezvous and forget the call.
 */
static int resume(struct pldk__coll *coll)
{
	struct pldk__staging *staging = coll->staging;
	int ret;

	if (staging->is_interrupted && staging->seq == coll->domain->seq && is_same(coll, &staging->saved)) {
		coll->call.phase = staging->saved.call.phase;
		coll->at = staging->saved.at;
		coll->slot = staging->saved.slot;
		coll->is_announced = true;
		return 0;
	}
	ret = pldk__rendezvous_settle(coll->domain, coll->thread, coll->deadline_ns);
	return ret == -ESHUTDOWN ? blame_death(coll) : ret;
}

/**
 * pldk__coll_begin() - begin a collective
 * @coll: its call.args, input and output are set
 * @site: where it was called
 * @domain: from the user
 * @op: PLDK_EV_BARRIER, ...
 * @has_data: more than a barrier
 * @timeout_ns: for the whole call
 *
 * Return: 0; errors of pldk__enter(), -EBUSY, -ENOMEM; or of the wait for an earlier call's rendezvous.
 */
int pldk__coll_begin(struct pldk__coll *coll, struct pldk_site *site, struct pldk_domain *domain, uint32_t op,
		     bool has_data, int64_t timeout_ns)
{
	int ret = pldk__enter(domain, &coll->thread);

	if (pldk__unlikely(ret))
		return ret;
	coll->domain = domain;
	coll->call.op = op;
	coll->call.phase = 0;
	coll->call.err = 0;
	coll->call.site = pldk__site_id(site);
	coll->at = 0;
	coll->is_announced = false;
	coll->deadline_ns = pldk__deadline(timeout_ns);
	ret = pldk__coll_enter(domain, coll->thread, op, coll->call.site);
	if (pldk__unlikely(ret))
		goto err_leave;
	coll->staging = staging_of(domain);
	if (pldk__unlikely(!coll->staging)) {
		ret = -ENOMEM;
		goto err_end;
	}
	if (pldk__unlikely(domain->is_pending)) {
		ret = resume(coll);
		if (ret)
			goto err_end;
	}
	if (pldk__unlikely(coll->staging->failed))
		coll->call.err = pldk__fail(coll->staging->failed,
					    "rank %u: %s: a chunk of an earlier collective could not be fetched from a far rank",
					    domain->rank, pldk_event_name(op));
	else if (pldk__unlikely(has_data && !coll->staging->map && domain->nranks > 1))
		coll->call.err = staging_open(domain, coll->staging);
	if (pldk__likely(!coll->call.err && !coll->is_announced)) {
		ret = pldk__far_settle(domain, -1, coll->deadline_ns);
		/* Nothing was said to anybody: it can be called again. */
		if (pldk__unlikely(ret == -EAGAIN || ret == -ETIMEDOUT))
			goto err_end;
		coll->call.err = ret;
	}
	return 0;

err_end:
	domain->coll_ret = ret;
	pldk__coll_leave(domain, coll->thread);
err_leave:
	pldk__leave(coll->thread);
	return ret;
}

/**
 * pldk__coll_end() - end a collective
 * @coll: from pldk__coll_begin()
 * @ret: its result. When it can be continued, the place is kept
 */
void pldk__coll_end(struct pldk__coll *coll, int ret)
{
	struct pldk__staging *staging = coll->staging;

	staging->is_interrupted = ret && coll->domain->is_pending && !coll->call.err;
	if (pldk__unlikely(staging->is_interrupted)) {
		staging->saved = *coll;
		staging->seq = coll->domain->seq;
	}
	coll->domain->coll_ret = ret;
	pldk__coll_leave(coll->domain, coll->thread);
	pldk__leave(coll->thread);
}

static char *slot_at(const struct pldk__coll *coll, uint32_t rank)
{
	char *slab = pldk__slab(coll->staging->map, rank);

	return slab ? slab + coll->slot * PLDK__COLL_SLOT : NULL;
}

/** pldk__coll_give() - copy own bytes of the current chunk into the own slot */
void pldk__coll_give(struct pldk__coll *coll, const void *from, uint64_t len)
{
	if (pldk__unlikely(coll->is_announced || coll->call.err || coll->domain->nranks == 1))
		return;
	coll->slot = coll->domain->seq & 1;
	pldk__copy(slot_at(coll, coll->domain->rank), from, len);
}

/**
 * pldk__coll_meet() - meet the others, once for each chunk
 *
 * Return: 0: everybody's chunk may be taken until pldk__coll_next(); or an error of pldk__rendezvous().
 */
int pldk__coll_meet(struct pldk__coll *coll)
{
	int ret;

	if (pldk__likely(!coll->is_announced))
		coll->slot = coll->domain->seq & 1;
	ret = pldk__rendezvous(coll->domain, coll->thread, &coll->call, coll->deadline_ns);
	if (pldk__likely(!ret))
		coll->is_announced = false;
	return pldk__unlikely(ret == -ESHUTDOWN) ? blame_death(coll) : ret;
}

/*
 * A chunk could not be fetched although all have met. The others know nothing of it yet: they hear it at the next
 * rendezvous, whichever operation that belongs to, and fail with the same errno.
 */
static int fetch_failed(struct pldk__coll *coll, int err)
{
	coll->staging->failed = err;
	return err;
}

static int fetch(struct pldk__coll *coll, uint32_t rank, void *to, uint64_t len)
{
	struct pldk_domain *domain = coll->domain;
	struct pldk__lanes *lanes = pldk__lanes_of(domain);
	/* More than the call's deadline: what is half fetched could not be continued. */
	const uint64_t patience = pldk__now_ns() + FETCH_NS;
	const uint64_t deadline_ns = coll->deadline_ns > patience ? coll->deadline_ns : patience;
	uint64_t ticket = 0;
	int ret = -ENOMEM;

	if (lanes)
		ret = domain->ops->far_get(domain->pd, coll->staging->map, rank, coll->slot * PLDK__COLL_SLOT, to, len,
					   deadline_ns, &ticket);
	if (!ret) {
		pldk__lane_sent(lanes, rank, ticket);
		ret = pldk__lane_done_or_forget(lanes, rank, ticket, deadline_ns);
	}
	return ret ? fetch_failed(coll, ret) : 0;
}

/**
 * pldk__coll_take() - copy the current chunk of a rank
 * @rank: not the caller's
 *
 * Return: 0, or an error of the provider's far_get().
 */
int pldk__coll_take(struct pldk__coll *coll, uint32_t rank, void *to, uint64_t len)
{
	const char *slot = slot_at(coll, rank);

	if (pldk__unlikely(!slot))
		return fetch(coll, rank, to, len);
	pldk__copy(to, slot, len);
	return 0;
}

/**
 * pldk__coll_view() - make everybody's current chunk readable, the own one as it was announced
 *
 * The own chunk too is taken from its slot: after an interruption the user's input may have changed, and all ranks must
 * combine the same bytes.
 *
 * Return: 0 and staging->sources is filled, or an error of the provider's far_get().
 */
int pldk__coll_view(struct pldk__coll *coll, uint64_t len)
{
	struct pldk__staging *staging = coll->staging;

	for (uint32_t rank = 0; rank < coll->domain->nranks; rank++) {
		staging->sources[rank] = slot_at(coll, rank);
		if (pldk__unlikely(!staging->sources[rank])) {
			char *to = staging->scratch + (size_t)rank * PLDK__COLL_SLOT;
			int ret = fetch(coll, rank, to, len);

			if (ret)
				return ret;
			staging->sources[rank] = to;
		}
	}
	return 0;
}

/** pldk__coll_next() - this rank is done with the current chunk */
void pldk__coll_next(struct pldk__coll *coll, uint64_t len)
{
	coll->at += len;
	coll->call.phase++;
}

/**
 * pldk__coll_bytes() - check dtype and count of a collective
 * @times: blocks of count elements in the largest buffer
 * @out_len: bytes of one block
 *
 * Return: 0, -EINVAL (dtype), -EOVERFLOW.
 */
int pldk__coll_bytes(const char *op, size_t count, uint32_t dtype, uint64_t times, uint64_t *out_len)
{
	uint64_t all;
	int ret = pldk__check_dtype(dtype, op);

	if (ret)
		return ret;
	if (__builtin_mul_overflow((uint64_t)count, pldk_dtype_size((enum pldk_dtype)dtype), out_len) ||
	    __builtin_mul_overflow(*out_len, times, &all) || all > INT64_MAX)
		return pldk__fail(-EOVERFLOW, "%s: %zu elements of %s are more bytes than memory has addresses", op, count,
				  pldk_dtype_name((enum pldk_dtype)dtype));
	return 0;
}
