// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The driver of the collectives: begin, step until nothing more can be done, wait, step again; and what happens when a
 * call is interrupted or its arguments are wrong.
 *
 * A collective is an object (struct pldk__coll) and an algorithm (its step()) that goes as far as possible
 * without waiting and keeps its place in the object. A domain has one such object for the calls that block, and some
 * for those that were started (coll_queue.c).
 *
 * Interrupted calls (-ETIMEDOUT, -EINTR, -EAGAIN, any error of a wait). Some chunks were announced and others may be
 * reading them already; those before are done. The object stays, and the same call (operation, arguments, buffers) made
 * again goes on with it, without looking at the announced part of its input again: all ranks combine the same bytes.
 * (Who fills the input anew in between gives the later chunks other data than the first ones: coll.h says not to.) Any
 * other collective first awaits the numbers that are open and gives the rest up: if the others are not at their last
 * chunk, they and this rank get -EPROTO at the next number, because the phase is part of the digest. Wrong data is not
 * among the outcomes.
 *
 * Arguments that are wrong on one rank take part: it announces that it failed, with its sentence, and returns at once.
 * Only who cannot say so does not: no domain, a second thread (-EBUSY), a domain that is poisoned.
 */
#include "coll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/**
 * pldk__colls_of() - the collectives of a domain; see coll.h
 */
struct pldk__colls *pldk__colls_of(struct pldk_domain *domain)
{
	struct pldk__data *data = pldk__data_of(domain);
	struct pldk__colls *colls;

	if (!data)
		return NULL;
	/* Guarded by pldk__coll_lock(). */
	if (pldk__likely(data->colls != NULL))
		return data->colls;
	colls = calloc(1, sizeof(*colls));
	if (colls)
		colls->sources = calloc(domain->nranks, sizeof(*colls->sources));
	if (!colls || !colls->sources) {
		free(colls);
		pldk__fail(-ENOMEM, "rank %u: no memory for the state of its collectives", domain->rank);
		return NULL;
	}
	for (uint32_t i = 0; i < PLDK__PLANS; i++) {
		colls->blocking[i].domain = domain;
		colls->blocking[i].colls = colls;
	}
	data->colls = colls;
	return colls;
}

/**
 * pldk__coll_close() - free what the data path hung on a domain
 * @domain: being closed; no thread is inside
 */
void pldk__coll_close(struct pldk_domain *domain)
{
	struct pldk__data *data = domain->data;

	if (!data)
		return;
	pldk__lanes_free(domain);
	if (data->colls) {
		if (data->colls->map)
			domain->ops->close(domain->pd, data->colls->map);
		pldk__colls_free_started(data->colls);
		free(data->colls->sources);
		free(data->colls->scratch);
		free(data->colls);
	}
	pthread_mutex_destroy(&data->lock);
	free(data);
	domain->data = NULL;
}

/*
 * The wait met a rank that has finalised. If another one died, the first may just be a survivor that has given up
 * already: the death is the cause, and all survivors shall hear the same.
 */
static int blame_death(struct pldk_domain *domain, uint32_t op)
{
	const struct pld_status *status = domain->pd->status;
	struct pldk__text text = { 0 };
	uint32_t dead;

	if (!pldk__load_acquire(&status->dead))
		return -ESHUTDOWN;
	dead = pldk__load_relaxed(&status->first_dead);
	if (dead >= domain->nranks)
		return -ESHUTDOWN;
	pldk__rank_text(&text, domain, dead);
	return pldk__fail(-EOWNERDEAD, "rank %u: %s: %s, and others have given up", domain->rank,
			  pldk_event_name(op), text.text);
}

/**
 * pldk__coll_settle() - complete what earlier calls have left announced; see coll.h
 */
int pldk__coll_settle(struct pldk_domain *domain, struct pldk__thread *thread, uint32_t op, uint64_t deadline_ns,
		      int err)
{
	int ret;

	if (!pldk__is_open(domain))
		return 0;
	ret = pldk__rendezvous_settle(domain, thread, deadline_ns, err);
	return ret == -ESHUTDOWN && !err ? blame_death(domain, op) : ret;
}

/* The same but for the buffers? */
static bool is_alike(const struct pldk__coll_args *a, const struct pldk__coll_args *b)
{
	return a->op == b->op && a->count == b->count && a->dtype == b->dtype && a->reduce == b->reduce &&
	       a->mode == b->mode && a->root == b->root && a->signal == b->signal;
}

/*
 * The object of a call that blocks: always the same for the same numbers, so that it finds what was planned for them,
 * or that it was interrupted.
 */
static inline struct pldk__coll *object_of(struct pldk__colls *colls, const struct pldk__coll_args *args)
{
	const uint64_t hash = (args->op + 64 * (uint64_t)(uint32_t)args->root + ((uint64_t)args->count << 16)) *
			      UINT64_C(0x9e3779b97f4a7c15);

	return &colls->blocking[hash >> 60 & (PLDK__PLANS - 1)];
}

/* Is this the call that was interrupted? */
static bool goes_on(const struct pldk__coll *coll, const struct pldk__coll_args *args)
{
	const struct pldk__coll_args *old = &coll->args;

	return coll->is_open && coll->seq == coll->domain->seq && is_alike(old, args) && old->input == args->input &&
	       old->output == args->output && old->send_counts == args->send_counts &&
	       old->recv_counts == args->recv_counts;
}

/**
 * pldk__coll_prepare() - fill a collective; see coll.h
 */
void pldk__coll_prepare(struct pldk__coll *coll, const struct pldk__coll_args *args, uint32_t site, int err,
			uint64_t len, uint32_t elem_size)
{
	/* Programs call the same again and again: what follows from the numbers alone stays. */
	coll->is_planned = coll->is_planned && !err && is_alike(&coll->args, args);
	coll->args = *args;
	coll->call.err = err;
	coll->call.site = site;
	coll->given = 0;
	coll->taken = 0;
	coll->used = 0;
	coll->credited = 0;
	coll->passed = 0;
	coll->is_open = false;
	if (pldk__likely(coll->is_planned))
		return;
	coll->rule = pldk__coll_rule(args->op);
	coll->len = len;
	coll->elem_size = elem_size;
	coll->call.op = args->op;
	coll->call.args[0] = (int64_t)args->count;
	coll->call.args[1] = args->dtype;
	coll->call.args[2] = args->reduce;
	coll->call.args[3] = coll->rule->has_root ? args->root : (int64_t)args->mode;
	coll->call.args[4] = args->signal ? (int64_t)args->signal->id + 1 : 0;
	coll->digest = pldk__call_digest(&coll->call);
	coll->chunks = 1;
	coll->step = pldk__flat_step;
	coll->is_inline = false;
	coll->is_small = false;
}

/**
 * pldk__coll_begin() - its turn has come; see coll.h
 */
int pldk__coll_begin(struct pldk__coll *coll)
{
	struct pldk_domain *domain = coll->domain;
	struct pldk__colls *colls = coll->colls;

	coll->first = domain->seq + 1;
	if (pldk__unlikely(coll->call.err))
		return 0;
	if (pldk__unlikely(!coll->is_planned)) {
		pldk__coll_choose(coll);
		pldk__small_plan(coll);
		coll->is_planned = !coll->args.send_counts; /* whose number of chunks is found out on the way */
	}
	if (pldk__unlikely(colls->failed))
		coll->call.err = pldk__fail(colls->failed,
					    "rank %u: %s: a chunk of an earlier collective could not be fetched from a far rank",
					    domain->rank, pldk_event_name(coll->call.op));
	else if (!coll->is_inline && coll->len && domain->nranks > 1 && pldk__unlikely(!colls->map) &&
		 coll->step != pldk__direct_step)
		coll->call.err = pldk__slot_open(domain, colls);
	if (!coll->call.err && pldk__unlikely(coll->args.signal != NULL))
		coll->call.err = pldk__credit_begin(coll);
	if (!coll->call.err && pldk__unlikely(domain->has_far)) {
		int ret;

		if (!coll->deadline_ns)
			coll->deadline_ns = pldk__deadline(coll->timeout_ns);
		ret = pldk__far_settle(domain, -1, coll->deadline_ns);
		if (ret == -EAGAIN || ret == -ETIMEDOUT)
			return ret;
		coll->call.err = ret;
	}
	return 0;
}

#define POLLS_PER_WATCH 1024u

/*
 * Nothing had arrived, and the caller will ask again: true if there is nothing to judge either. Deaths and verdicts
 * change the events; whether they concern a number is judged once for each.
 */
static bool is_quiet(struct pldk__coll *coll)
{
	struct pldk_domain *domain = coll->domain;
	struct pldk__colls *colls = coll->colls;
	const uint32_t events = pldk__load_acquire(&domain->pd->status->events);
	const uint64_t number = coll->first + coll->taken;

	if (!(++colls->polls % POLLS_PER_WATCH) && domain->ops->watch)
		domain->ops->watch(domain->pd);
	if (!pldk__arrive_rests(domain) || events != colls->polled_events || number != colls->polled_number) {
		colls->polled_events = events;
		colls->polled_number = number;
		return false;
	}
	return true;
}

/**
 * pldk__coll_drive() - step and wait; see coll.h
 */
int pldk__coll_drive(struct pldk__coll *coll, bool is_polled)
{
	struct pldk_domain *domain = coll->domain;
	int ret;

	for (;;) {
		bool is_last = false; /* all numbers have arrived: what is left is the caller's signal window */

		ret = coll->step(coll);
		if (!ret && pldk__unlikely(coll->args.signal != NULL) && domain->nranks > 1) {
			is_last = true;
			ret = pldk__credit_step(coll);
		}
		coll->is_open = ret == PLDK__AGAIN || (is_last && (ret == -ETIMEDOUT || ret == -EAGAIN));
		coll->seq = domain->seq;
		if (ret != PLDK__AGAIN)
			break;
		if (is_polled) {
			if (is_quiet(coll))
				return -EAGAIN;
		} else if (!is_last && pldk__arrive_look(domain)) {
			continue;
		}
		/* The clock is read only when there is something to wait for: most calls end without. */
		if (!coll->deadline_ns)
			coll->deadline_ns = pldk__deadline(coll->timeout_ns);
		ret = is_last ? pldk__credit_wait(coll) :
				pldk__arrive_wait(domain, coll->thread, &coll->call, coll->deadline_ns);
		if (pldk__unlikely(ret))
			return ret == -ESHUTDOWN ? blame_death(domain, coll->call.op) : ret;
	}
	pldk__wake_all(domain);
	return ret;
}

/* One that was checked: err says how. */
static int run_checked(struct pldk__coll *coll, const struct pldk__coll_args *args, uint32_t site, int err,
		       uint64_t len, uint32_t elem_size)
{
	struct pldk_domain *domain = coll->domain;
	int ret;

	if (!err && goes_on(coll, args))
		return pldk__coll_drive(coll, false);
	if (pldk__unlikely(domain->nstarted || pldk__is_open(domain))) {
		coll->deadline_ns = pldk__deadline(coll->timeout_ns);
		ret = pldk__coll_drain(domain, coll->thread, coll->deadline_ns, err);
		if (!ret)
			ret = pldk__coll_settle(domain, coll->thread, args->op, coll->deadline_ns, err);
		if (ret && err)
			pldk__coll_owe(domain, args, site, err);
		if (ret)
			return ret;
	}
	pldk__coll_prepare(coll, args, site, err, len, elem_size);
	ret = pldk__coll_begin(coll);
	return pldk__unlikely(ret) ? ret : pldk__coll_drive(coll, false);
}

static int run(struct pldk_domain *domain, struct pldk__thread *thread, struct pldk__coll_args *args, uint32_t site,
	       int64_t timeout_ns)
{
	struct pldk__colls *colls = pldk__colls_of(domain);
	struct pldk__coll *coll;
	uint32_t elem_size = 1;
	bool is_taken = false;
	uint64_t len = 0;
	int err;
	int ret;

	if (pldk__unlikely(!colls))
		return -ENOMEM;
	coll = object_of(colls, args);
	coll->thread = thread;
	coll->timeout_ns = timeout_ns;
	coll->deadline_ns = 0;
	if (pldk__likely(coll->is_planned && is_alike(&coll->args, args))) {
		len = coll->len;
		elem_size = coll->elem_size;
		err = pldk__coll_check_buffers(domain, args, len);
	} else {
		err = pldk__coll_check(domain, args, &len, &elem_size);
	}
	if (!err && pldk__unlikely(args->signal != NULL)) {
		err = goes_on(coll, args) ? 0 : pldk__credit_check(domain, args);
		is_taken = !err && pldk__window_hold(args->signal);
		if (!err && !is_taken)
			err = pldk__stale(args->signal, pldk_event_name(args->op));
	}
	ret = run_checked(coll, args, site, err, len, elem_size);
	if (is_taken)
		pldk__window_release(args->signal);
	return ret;
}

/* Like the last call, with nothing between: coll_small.c. True if it went that way, with its outcome. */
static inline bool run_small(struct pldk_domain *domain, struct pldk__thread *thread,
			     const struct pldk__coll_args *user, uint32_t site, int64_t timeout_ns, int *ret)
{
	struct pldk__data *data = pldk__load_acquire(&domain->data);
	struct pldk__colls *colls = data ? data->colls : NULL;
	struct pldk__coll_args args;
	struct pldk__coll *coll;
	bool at_once = false;
	uint64_t rows_len;

	if (pldk__unlikely(!colls))
		return false;
	coll = object_of(colls, user);
	if (!coll->is_planned || !coll->is_small || !is_alike(&coll->args, user) ||
	    pldk__unlikely(domain->nstarted || pldk__is_open(domain) || domain->nwakes || colls->failed))
		return false;
	rows_len = coll->len * domain->nranks;
	if (rows_len && !pldk__coll_is_plain(user, rows_len, rows_len) &&
	    !(coll->takes_one && user->input == user->output && (uintptr_t)user->input > (uintptr_t)PLDK_IN_PLACE)) {
		args = *user;
		user = &args;
		if (pldk__coll_check_buffers(domain, &args, coll->len))
			return false;
	}
	coll->thread = thread;
	coll->timeout_ns = timeout_ns;
	coll->deadline_ns = 0;
	*ret = pldk__small_run(coll, user, site, &at_once);
	domain->coll_ret = *ret;
	if (at_once)
		pldk__coll_leave_at_once(domain, thread);
	else
		pldk__coll_leave(domain, thread);
	return true;
}

/**
 * pldk__coll_run() - a blocking collective, from the public call to its end
 * @site: where it was called, or NULL
 * @domain: from the user
 * @user: what the user said
 * @timeout_ns: for the whole call
 *
 * Return: as the public functions of coll.h.
 */
int pldk__coll_run(struct pldk_site *site, struct pldk_domain *domain, const struct pldk__coll_args *user,
		   int64_t timeout_ns)
{
	struct pldk__coll_args args;
	struct pldk__thread *thread;
	uint32_t site_id;
	int ret;

	ret = pldk__enter(domain, &thread);
	if (pldk__unlikely(ret))
		return ret;
	site_id = pldk__site_id(site);
	ret = pldk__coll_enter(domain, thread, user->op, site_id);
	if (pldk__unlikely(ret) || pldk__likely(run_small(domain, thread, user, site_id, timeout_ns, &ret)))
		goto out;
	args = *user;
	ret = run(domain, thread, &args, site_id, timeout_ns);
	domain->coll_ret = ret;
	pldk__coll_leave(domain, thread);
out:
	pldk__leave(thread);
	return ret;
}

/**
 * pldk__coll_run_on() - the same for a signal window; see coll.h
 */
int pldk__coll_run_on(struct pldk_site *site, struct pldk_window *signal, struct pldk__coll_args args,
		      int64_t timeout_ns)
{
	int ret = pldk__check_window(signal, pldk_event_name(args.op));

	if (pldk__unlikely(ret))
		return ret;
	args.signal = signal;
	return pldk__coll_run(site, signal->domain, &args, timeout_ns);
}
