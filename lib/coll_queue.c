// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Collectives that were started and go on later.
 *
 * They stand in a queue, in the order in which they were started. The first one moves, by the same steps as one that
 * blocks, whenever this rank is in a call that completes collectives; it takes its numbers when it becomes the first.
 * So all ranks, which start them in the same order, count alike, and a collective that blocks meets one that was
 * started elsewhere.
 *
 * Whatever else takes a number (a collective that blocks, window_create) completes the queue first:
 * pldk__coll_drain(). A handle completes it up to its own.
 *
 * How one ended is kept with it until its handle asks: it may have been completed in any other call. A death, a verdict
 * or a poisoned domain ends the first one, then the next, which finds the same.
 *
 * Everything here is between pldk__coll_lock() and pldk__coll_unlock(), but pldk__coll_forget(): a handle can be freed
 * at any time. An object is used again when it is over and its handle has ended, whichever comes second.
 */
#include "coll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(PLDK_COLL_STARTED_MAX == 64, "pldk__colls.room has a bit for each");

static bool is_pause(int ret)
{
	return ret == -EAGAIN || ret == -ETIMEDOUT || ret == -EINTR;
}

static void end_one_of_two(struct pldk__coll *coll)
{
	if (pldk__add_seq(&coll->ends, 1) == 2)
		pldk__or_seq(&coll->colls->room, UINT64_C(1) << coll->index);
}

/* The first one is over. */
static void pop(struct pldk__colls *colls, int ret)
{
	struct pldk__coll *coll = colls->first;

	colls->first = coll->next;
	coll->domain->nstarted--;
	if (coll->is_taken)
		pldk__window_release(coll->args.signal);
	coll->ret = ret;
	if (ret && !coll->sentence)
		coll->sentence = strdup(pldk_last_error());
	coll->is_done = true;
	end_one_of_two(coll);
}

static int advance(struct pldk__coll *coll, bool is_polled)
{
	struct pldk_domain *domain = coll->domain;
	int ret;

	if (!coll->is_begun) {
		ret = pldk__coll_settle(domain, coll->thread, coll->args.op, coll->deadline_ns, 0);
		if (!ret)
			ret = pldk__coll_begin(coll);
		if (ret)
			return ret;
		coll->is_begun = true;
		/* The sentence of a call that failed when it was started is told now. */
		if (coll->sentence)
			pldk__fail(coll->call.err, "%s", coll->sentence);
	}
	return pldk__coll_drive(coll, is_polled);
}

/* Move the queue until it is empty, or one is over, or nothing moves: then -EAGAIN, -ETIMEDOUT or -EINTR. */
static int move(struct pldk__colls *colls, struct pldk__thread *thread, uint64_t deadline_ns,
		const struct pldk__coll *until, bool is_polled)
{
	struct pldk__coll *coll;
	int ret;

	while ((coll = colls->first) && !(until && until->is_done)) {
		coll->thread = thread;
		coll->deadline_ns = deadline_ns;
		coll->timeout_ns = PLDK_TRY; /* what PLD_DEADLINE_POLL, which is 0, is computed from again */
		ret = advance(coll, is_polled);
		if (is_pause(ret))
			return ret;
		pop(colls, ret);
	}
	return 0;
}

/**
 * pldk__coll_drain() - complete what was started; see internal.h
 */
int pldk__coll_drain(struct pldk_domain *domain, struct pldk__thread *thread, uint64_t deadline_ns, int err)
{
	struct pldk__text sentence = { 0 };
	int ret;

	if (!domain->nstarted)
		return 0;
	pldk__text_add(&sentence, "%s", pldk_last_error());
	ret = move(pldk__colls_of(domain), thread, deadline_ns, NULL, false);
	if (err)
		pldk__fail(err, "%s", sentence.text);
	return ret && err ? err : ret;
}

/* A free object, emptied. */
static struct pldk__coll *take_object(struct pldk_domain *domain, struct pldk__colls *colls, const char *op)
{
	struct pldk__coll *coll;
	uint64_t room;
	uint32_t index;

	if (!colls->started) {
		colls->started = calloc(PLDK_COLL_STARTED_MAX, sizeof(*colls->started));
		if (!colls->started) {
			pldk__fail(-ENOMEM, "rank %u: %s: no memory to start collectives", domain->rank, op);
			return NULL;
		}
		pldk__store_relaxed(&colls->room, ~UINT64_C(0));
	}
	room = pldk__load_acquire(&colls->room);
	if (!room) {
		pldk__fail(-EBUSY, "rank %u: %s: %d collectives were started and have not ended: wait for some handles",
			   domain->rank, op, PLDK_COLL_STARTED_MAX);
		return NULL;
	}
	index = (uint32_t)__builtin_ctzll(room);
	pldk__sub_seq(&colls->room, UINT64_C(1) << index);
	coll = &colls->started[index];
	free(coll->sentence);
	memset(coll, 0, sizeof(*coll));
	coll->domain = domain;
	coll->colls = colls;
	coll->index = index;
	return coll;
}

static void append(struct pldk__colls *colls, struct pldk__coll *coll)
{
	if (colls->first)
		colls->last->next = coll;
	else
		colls->first = coll;
	colls->last = coll;
	coll->domain->nstarted++;
}

/* One that this rank has refused, with the thread's sentence: nobody holds it, but the others will hear of it. */
static void append_failed(struct pldk__colls *colls, struct pldk__coll *coll, const struct pldk__coll_args *args,
			  uint32_t site, int err)
{
	pldk__coll_prepare(coll, args, site, err, 0, 1);
	coll->sentence = strdup(pldk_last_error());
	coll->ends = 1;
	append(colls, coll);
}

/**
 * pldk__coll_owe() - a call was refused here while something earlier is open: the others hear of it in its turn
 *
 * Keeps the thread's sentence. Without room the others will miss a call here, and be told so (-EPROTO).
 */
void pldk__coll_owe(struct pldk_domain *domain, const struct pldk__coll_args *args, uint32_t site, int err)
{
	struct pldk__colls *colls = pldk__colls_of(domain);
	struct pldk__text sentence = { 0 };
	struct pldk__coll *coll;

	pldk__text_add(&sentence, "%s", pldk_last_error());
	coll = colls ? take_object(domain, colls, pldk_event_name(args->op)) : NULL;
	pldk__fail(err, "%s", sentence.text);
	if (coll)
		append_failed(colls, coll, args, site, err);
}

static int check_options(const struct pldk_coll_options *user, const char *op, struct pldk_window **out_signal)
{
	struct pldk_coll_options options = PLDK_COLL_OPTIONS_INIT;
	int ret;

	if (!user)
		return 0;
	ret = pldk__options_take(&options, sizeof(options), sizeof(options), user);
	if (ret)
		return pldk__fail_prefix(ret, "%s: ", op);
	if (options.signal) {
		ret = pldk__check_window(options.signal, op);
		if (ret)
			return ret;
		*out_signal = options.signal;
	}
	if (options.flags || options.reserved)
		return pldk__fail(-EOPNOTSUPP, "%s: options: flags %#x, reserved %#x: both must be 0", op, options.flags,
				  options.reserved);
	return 0;
}

static int start(struct pldk_domain *domain, struct pldk__thread *thread, struct pldk__coll_args *args, uint32_t site,
		 const struct pldk_coll_options *options, struct pldk_handle **out)
{
	struct pldk__colls *colls = pldk__colls_of(domain);
	const char *op = pldk_event_name(args->op);
	struct pldk_handle *handle = NULL;
	struct pldk__text sentence = { 0 };
	struct pldk__coll *coll;
	uint32_t elem_size = 1;
	uint64_t len = 0;
	int err;

	if (!colls)
		return -ENOMEM;
	coll = take_object(domain, colls, op);
	if (!coll)
		return colls->started ? -EBUSY : -ENOMEM;
	err = pldk__coll_check(domain, args, &len, &elem_size);
	if (!err)
		err = check_options(options, op, &args->signal);
	if (!err && args->signal)
		err = pldk__credit_check(domain, args);
	if (!err && !out)
		err = pldk__fail(-EINVAL, "%s: out is NULL: the handle must be ended by somebody", op);
	if (!err && args->signal) {
		coll->is_taken = pldk__window_hold(args->signal);
		err = coll->is_taken ? 0 : pldk__stale(args->signal, op);
	}
	if (!err && pldk__handle_new(domain, coll, &handle)) {
		if (coll->is_taken)
			pldk__window_release(args->signal);
		pldk__or_seq(&colls->room, UINT64_C(1) << coll->index);
		return -ENOMEM; /* the others were told nothing: it can be called again */
	}
	if (err) {
		pldk__text_add(&sentence, "%s", pldk_last_error());
		append_failed(colls, coll, args, site, err);
	} else {
		pldk__coll_prepare(coll, args, site, 0, len, elem_size);
		append(colls, coll);
	}
	(void)move(colls, thread, PLD_DEADLINE_POLL, NULL, true);
	if (err)
		return pldk__fail(err, "%s", sentence.text);
	*out = handle;
	return 0;
}

/**
 * pldk__coll_start() - a collective that goes on later, from the public call
 * @user: what the user said
 *
 * Return: as the public functions of coll_start.h.
 */
int pldk__coll_start(struct pldk_site *site, struct pldk_domain *domain, const struct pldk__coll_args *user,
		     const struct pldk_coll_options *options, struct pldk_handle **out)
{
	struct pldk__coll_args args = *user;
	struct pldk__thread *thread;
	struct pldk__rec *rec;
	uint32_t site_id;
	int ret;

	ret = pldk__enter(domain, &thread);
	if (pldk__unlikely(ret))
		return ret;
	site_id = pldk__site_id(site);
	ret = pldk__coll_lock(domain, thread, args.op, site_id);
	if (pldk__likely(!ret)) {
		rec = pldk__record(thread, args.op, PLDK_EVENT_NB, site_id, -1, -1, 0, (int64_t)args.count);
		ret = start(domain, thread, &args, site_id, options, out);
		if (ret)
			pldk__record_flag(rec, PLDK_EVENT_FAILED);
		pldk__store_relaxed(&rec->tsc, pldk__tsc());
		pldk__coll_unlock(domain, thread);
	}
	pldk__leave(thread);
	return ret;
}

/**
 * pldk__coll_finish() - complete it and those before it; see transfer.h
 */
int pldk__coll_finish(struct pldk__coll *coll, struct pldk__thread *thread, uint64_t deadline_ns)
{
	int ret = move(coll->colls, thread, deadline_ns, coll, deadline_ns == PLD_DEADLINE_POLL);

	if (ret || !coll->ret)
		return ret;
	return pldk__fail(coll->ret, "%s", coll->sentence ? coll->sentence : pldk_strerror(coll->ret));
}

/**
 * pldk__coll_forget() - its handle has ended; see transfer.h
 */
void pldk__coll_forget(struct pldk__coll *coll)
{
	end_one_of_two(coll);
}

/**
 * pldk__colls_free_started() - the domain closes
 */
void pldk__colls_free_started(struct pldk__colls *colls)
{
	for (uint32_t i = 0; colls->started && i < PLDK_COLL_STARTED_MAX; i++)
		free(colls->started[i].sentence);
	free(colls->started);
}
