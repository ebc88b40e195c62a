// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Rendezvous: all ranks of a domain meet, and prove to each other that they make the same call.
 *
 * Every rank has a cell for each rank in each slab of the epoch window, twice: even and odd rendezvous take turns. To
 * announce rendezvous n a rank sets its cell at every peer to n << 16 | digest of its call, then waits until its own
 * cells say n. A rank sets a cell to n + 2 only after it completed n + 1, which every peer announced after it had read
 * n: so no value is overwritten unread, and no second round is needed. A digest of 0 says "I failed".
 *
 * If all digests are equal, that was all: one store a peer and one wait. If not, every rank sees it (each sees all
 * digests), reads the call ledgers of all and comes to the same answer. A ledger is written before the announcement
 * and kept for PLDK__CALLS rendezvous. 16 bits of digest can hide a difference once in 65,535 mistakes; windows, joins
 * and subsets are compared in full.
 *
 * Flat on purpose. A tree needs fewer stores, but then a rank waits for one that waits for one that died, and neither
 * the death nor the disagreement nor who is late can be told by looking at one's own cells. The cost is a cell for each
 * ordered pair of ranks (128 bytes) and P - 1 stores.
 */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST_BITS 16
#define DIGEST_MASK ((INT64_C(1) << DIGEST_BITS) - 1)
#define WAKES 64      /* sleepers that are woken in one call */
#define GROUPS 4      /* different calls that one sentence shows */
#define READ_NS UINT64_C(1000000000) /* longest wait for a far rank's ledger */

/*
 * Names of a call's arguments; those that have none are told, not compared. is_full: compare ledgers even if digests
 * agree.
 */
static const struct call_kind {
	uint32_t nargs;
	bool is_full;
	const char *args[PLDK__CALL_ARGS];
} kinds[] = {
	[PLDK_EV_BARRIER] = { 0, false, { NULL } },
	[PLDK_EV_ALLREDUCE] = { 6, false, { "count", "dtype", "op", "mode", "path", "detail" } },
	[PLDK_EV_BROADCAST] = { 5, false, { "count", "dtype", "root", "path", "detail" } },
	[PLDK_EV_ALLGATHER] = { 4, false, { "count", "dtype", "path", "detail" } },
	[PLDK_EV_WINDOW_CREATE] = { 5, true, { "bytes", "kind", "id", "flags", "shape and dtype" } },
	[PLDK_EV_WINDOW_RESET] = { 2, true, { "window", "generation" } },
	[PLDK_EV_JOIN] = { 2, true, { "library version", "PLDK_TAG" } },
	[PLDK_EV_SUBSET] = { 2, true, { "size", "list" } },
};

static const struct call_kind *kind_of(uint32_t op)
{
	static const struct call_kind none = { PLDK__CALL_ARGS, true, { NULL } };

	return op < PLDK__ARRAY_SIZE(kinds) && (kinds[op].nargs || op == PLDK_EV_BARRIER) ? &kinds[op] : &none;
}

/* 16 bits that differ, most likely, if anything that must be equal differs; never 0. */
static int64_t digest_of(const struct pldk__call *call)
{
	uint32_t nargs = kind_of(call->op)->nargs;
	uint64_t hash = (uint64_t)call->op << 32 | call->phase;
	uint32_t i;

	hash *= UINT64_C(0x9e3779b97f4a7c15);
	for (i = 0; i < nargs; i++) {
		hash ^= hash >> 29;
		hash = (hash ^ (uint64_t)call->args[i]) * UINT64_C(0xbf58476d1ce4e5b9);
	}
	hash ^= hash >> 32;
	hash *= UINT64_C(0x94d049bb133111eb);
	hash >>= 64 - DIGEST_BITS;
	return hash ? (int64_t)hash : 1;
}

static bool same_call(const struct pldk__call *a, const struct pldk__call *b)
{
	return a->op == b->op && a->phase == b->phase && a->err == b->err &&
	       !memcmp(a->args, b->args, kind_of(a->op)->nargs * sizeof(a->args[0]));
}

static struct pldk__control *own_control(const struct pldk_domain *domain)
{
	return (void *)pldk__slab(domain->control, domain->rank);
}

/**
 * pldk__rendezvous_open() - make the cells and ledgers of a domain that was just joined
 *
 * Return: 0, -ENOMEM, or as the provider's open(). What it made is freed by pldk__rendezvous_close() in any case.
 */
int pldk__rendezvous_open(struct pldk_domain *domain)
{
	uint32_t npeers = domain->nranks - 1;
	uint32_t half;
	uint32_t i;
	int ret;

	ret = pldk__system_open(domain, PLDK__SYSTEM_CONTROL, PLD_WINDOW_DATA, PLD_WINDOW_F_OWNER_WRITES,
				sizeof(struct pldk__control), &domain->control);
	if (!ret)
		ret = pldk__system_open(domain, PLDK__SYSTEM_EPOCHS, PLD_WINDOW_SIGNAL, 0,
					2ull * domain->nranks * PLD_CELL_SIZE, &domain->epochs);
	if (ret)
		return ret;
	for (half = 0; half < 2; half++) {
		domain->epoch_preds[half] = calloc(npeers ? npeers : 1, sizeof(struct pldk__pred));
		if (!domain->epoch_preds[half])
			return pldk__fail(-ENOMEM, "rank %u: init: no memory", domain->rank);
		for (i = 0; i < npeers; i++) {
			struct pldk__pred *pred = &domain->epoch_preds[half][i];

			pred->from = (domain->rank + domain->nranks - 1 - i) % domain->nranks;
			pred->map = domain->epochs;
			pred->cell = half * domain->nranks + pred->from;
			pred->cmp = PLD_CMP_GE;
		}
	}
	return 0;
}

/**
 * pldk__rendezvous_close() - undo pldk__rendezvous_open(), also a half-done one
 */
void pldk__rendezvous_close(struct pldk_domain *domain)
{
	if (domain->epochs)
		domain->ops->close(domain->pd, domain->epochs);
	if (domain->control)
		domain->ops->close(domain->pd, domain->control);
	domain->epochs = NULL;
	domain->control = NULL;
	free(domain->epoch_preds[0]);
	free(domain->epoch_preds[1]);
}

/**
 * pldk__control_read() - copy a part of a rank's control slab, near or far
 * @rank: whose
 * @offset: bytes from the start of struct pldk__control
 *
 * What another rank may be writing meanwhile is the caller's to sort out.
 *
 * Return: 0, or as the provider's far_get() and far_done().
 */
int pldk__control_read(struct pldk_domain *domain, uint32_t rank, size_t offset, void *buf, size_t len)
{
	const char *slab = pldk__slab(domain->control, rank);
	const uint64_t deadline_ns = pldk__now_ns() + READ_NS;
	uint64_t ticket = 0;
	int ret;

	if (slab) {
		memcpy(buf, slab + offset, len);
		return 0;
	}
	ret = domain->ops->far_get(domain->pd, domain->control, rank, offset, buf, len, deadline_ns, &ticket);
	if (!ret)
		ret = domain->ops->far_done(domain->pd, rank, ticket, deadline_ns);
	return ret;
}

/**
 * pldk__coll_enter() - begin an operation that is collective over the domain; see internal.h
 */
int pldk__coll_enter(struct pldk_domain *domain, struct pldk__thread *thread, uint32_t op, uint32_t site)
{
	uint32_t busy = 0;
	int ret;

	ret = pldk__check_poison(domain, pldk_event_name(op));
	if (ret)
		return ret;
	if (pldk__unlikely(!pldk__cas_seq(&domain->coll_busy, &busy, op)))
		return pldk__fail(-EBUSY, "rank %u: %s: thread %u is in %s of this domain: one collective at a time", domain->rank,
				  pldk_event_name(op), pldk__load_relaxed(&domain->coll_tid), pldk_event_name(busy));
	pldk__store_relaxed(&domain->coll_tid, thread->tid);
	domain->coll_ret = 0;
	domain->coll_rec = pldk__record(thread, op, 0, site, -1, -1, 0, (int64_t)domain->seq + 1);
	pldk__store_relaxed(&thread->line->coll_site, site);
	pldk__state(thread, PLDK__STATE_COLL);
	return 0;
}

/* The entry's stamp, taken when the others have been told: the counter is not read on their time. */
static void stamp_entry(struct pldk_domain *domain)
{
	if (!domain->coll_rec)
		return;
	pldk__store_relaxed(&domain->coll_rec->tsc, pldk__tsc());
	domain->coll_rec = NULL;
}

/**
 * pldk__coll_leave() - end it
 *
 * The end is stamped only when there was something to wait for.
 */
void pldk__coll_leave(struct pldk_domain *domain, struct pldk__thread *thread)
{
	int ret = domain->coll_ret;
	struct pldk__rec *rec;

	rec = pldk__record(thread, PLDK_EV_COLL_END, ret ? PLDK_EVENT_FAILED : 0,
			   pldk__load_relaxed(&thread->line->coll_site), -1, -1, 0, ret);
	if (ret || thread->waited_ns > 1)
		pldk__store_relaxed(&rec->tsc, pldk__tsc());
	pldk__state(thread, PLDK__STATE_RUN);
	pldk__store_relaxed(&thread->line->coll_site, 0);
	pldk__store_release(&domain->coll_busy, 0);
}

/*
 * Tell the peers that have not been told of what is pending. -ETIMEDOUT: a far one's carrier did not move in time;
 * whoever goes on with this call, or completes it, goes on telling. How else it failed is found out by waiting.
 */
static int tell(struct pldk_domain *domain, uint64_t deadline_ns, struct pldk__wake *wakes, uint32_t *nwakes)
{
	const struct pldk__call *call = &domain->pending;
	uint32_t cell = (uint32_t)(domain->seq & 1) * domain->nranks + domain->rank;
	int64_t value = (int64_t)(domain->seq << DIGEST_BITS) | (call->err ? 0 : digest_of(call));
	uint32_t i;
	int ret;

	for (i = domain->ntold + 1; i < domain->nranks; i++) {
		if (wakes && *nwakes == WAKES) {
			domain->ops->wake(domain->pd, wakes, WAKES);
			*nwakes = 0;
		}
		ret = pldk__notify_one(domain, domain->epochs, (domain->rank + i) % domain->nranks, cell,
				       PLD_NOTIFY_SET, value, deadline_ns, wakes, nwakes);
		if (pldk__unlikely(ret == -ETIMEDOUT))
			return pldk__fail_prefix(deadline_ns == PLD_DEADLINE_POLL ? -EAGAIN : ret, "rank %u: %s: ", domain->rank, pldk_event_name(call->op));
		domain->ntold = i;
	}
	return 0;
}

/* Write what this rank does into its ledger, then tell all peers. */
static int announce(struct pldk_domain *domain, const struct pldk__call *call, uint64_t deadline_ns,
		    struct pldk__wake *wakes, uint32_t *nwakes)
{
	uint64_t seq = domain->seq + 1;
	struct pldk__call_entry *entry = &own_control(domain)->calls[seq % PLDK__CALLS];

	pldk__store_relaxed(&entry->seq, 0);
	entry->call = *call;
	if (call->err)
		snprintf(entry->text, sizeof(entry->text), "%s", pldk_last_error());
	pldk__store_release(&entry->seq, seq);
	domain->seq = seq;
	domain->pending = *call;
	domain->is_pending = true;
	domain->ntold = 0;
	return tell(domain, deadline_ns, wakes, nwakes);
}

/*
 * Disagreement
 */

/* "ranks 0, 2..4": those whose entry belongs to the same group as rank first. */
static void ranks_text(struct pldk__text *text, const uint32_t *group, uint32_t nranks, uint32_t wanted)
{
	uint32_t n = 0;
	uint32_t i;
	uint32_t last;

	for (i = 0; i < nranks; i++)
		n += group[i] == wanted;
	pldk__text_add(text, n == 1 ? "rank " : "ranks ");
	for (i = 0, n = 0; i < nranks; i++) {
		if (group[i] != wanted)
			continue;
		for (last = i; last + 1 < nranks && group[last + 1] == wanted; last++)
			;
		pldk__text_add(text, last > i + 1 ? "%s%u..%u" : "%s%u", n++ ? ", " : "", i, last);
		if (last > i + 1)
			i = last;
	}
}

static void arg_text(struct pldk__text *text, const struct pldk__call *call, uint32_t arg)
{
	static const char *const ops[] = { "SUM", "MAX", "MIN", "PROD" };
	const char *name = kind_of(call->op)->args[arg];
	int64_t value = call->args[arg];

	if (name && !strcmp(name, "dtype"))
		pldk__text_add(text, "%s", pldk_dtype_name((enum pldk_dtype)value));
	else if (name && !strcmp(name, "op") && value >= 0 && value < (int64_t)PLDK__ARRAY_SIZE(ops))
		pldk__text_add(text, "%s", ops[value]);
	else if (name && !strcmp(name, "kind"))
		pldk__text_add(text, "%s", value == PLD_WINDOW_SIGNAL ? "signal" : "data");
	else
		pldk__text_add(text, "%" PRId64, value);
}

/* What text a JOIN argument stands for, on one rank. */
static void join_text(struct pldk__text *text, struct pldk_domain *domain, uint32_t rank, uint32_t arg)
{
	char buf[PLDK__TAG_MAX] = "";

	if (arg == 0 && !pldk__control_read(domain, rank, offsetof(struct pldk__control, version), buf, 16))
		pldk__text_add(text, "%.15s", buf);
	else if (arg == 1 && !pldk__control_read(domain, rank, offsetof(struct pldk__control, tag), buf, sizeof(buf)))
		pldk__text_add(text, "\"%.*s\"", (int)sizeof(buf) - 1, buf);
	else
		pldk__text_add(text, "another text");
}

static const char *site_text(struct pldk_domain *domain, uint32_t rank, uint32_t site, char *buf, size_t len)
{
	const char *text = site ? pldk__recorder_site_text(domain, rank, site, buf, len) : "?";

	return *text == '?' ? NULL : text;
}

/* First argument that is not equal on all ranks; nargs if there is none. */
static uint32_t first_difference(const struct pldk__call_entry *entries, uint32_t nranks, uint32_t nargs)
{
	uint32_t arg;
	uint32_t i;

	for (arg = 0; arg < nargs; arg++) {
		for (i = 1; i < nranks; i++) {
			if (entries[i].call.args[arg] != entries[0].call.args[arg])
				return arg;
		}
	}
	return nargs;
}

/* All ranks entered the same operation: which argument differs, and who gave what? */
static void differing_args(struct pldk__text *text, struct pldk_domain *domain, const struct pldk__call_entry *entries,
			   uint32_t *group)
{
	const struct call_kind *kind = kind_of(entries[0].call.op);
	uint32_t arg = first_difference(entries, domain->nranks, kind->nargs);
	uint32_t ngroups = 0;
	uint32_t g;
	uint32_t i;
	char buf[80];
	const char *site;

	if (arg == kind->nargs) {
		pldk__text_add(text, "in phases of it");
		return;
	}
	for (i = 0; i < domain->nranks; i++) {
		for (g = 0; g < i && entries[g].call.args[arg] != entries[i].call.args[arg]; g++)
			;
		group[i] = g;
	}
	pldk__text_add(text, "%s is ", kind->args[arg] ? kind->args[arg] : "an argument");
	for (i = 0; i < domain->nranks && ngroups < GROUPS; i++) {
		if (group[i] != i)
			continue;
		pldk__text_add(text, "%s", ngroups++ ? ", " : "");
		if (entries[i].call.op == PLDK_EV_JOIN)
			join_text(text, domain, i, arg);
		else
			arg_text(text, &entries[i].call, arg);
		pldk__text_add(text, " on ");
		ranks_text(text, group, domain->nranks, i);
		site = site_text(domain, i, entries[i].call.site, buf, sizeof(buf));
		if (site)
			pldk__text_add(text, " (%s)", site);
	}
}

static void differing_ops(struct pldk__text *text, struct pldk_domain *domain, const struct pldk__call_entry *entries,
			  uint32_t *group)
{
	uint32_t ngroups = 0;
	char buf[80];
	const char *site;
	uint32_t i;
	uint32_t g;

	for (i = 0; i < domain->nranks; i++) {
		for (g = 0; g < i && entries[g].call.op != entries[i].call.op; g++)
			;
		group[i] = g;
	}
	for (i = 0; i < domain->nranks && ngroups < GROUPS; i++) {
		if (group[i] != i)
			continue;
		pldk__text_add(text, "%s%s on ", ngroups++ ? ", " : "",
			       entries[i].call.op ? pldk_event_name(entries[i].call.op) : "something else");
		ranks_text(text, group, domain->nranks, i);
		site = site_text(domain, i, entries[i].call.site, buf, sizeof(buf));
		if (site)
			pldk__text_add(text, " (%s)", site);
	}
}

static int judge_entries(struct pldk_domain *domain, const struct pldk__call *call,
			 const struct pldk__call_entry *entries, uint32_t *group)
{
	const char *op = pldk_event_name(call->op);
	struct pldk__text text = { 0 };
	bool same_op = true;
	uint32_t i;

	for (i = 0; i < domain->nranks; i++) {
		if (entries[i].seq != domain->seq)
			return pldk__fail(-EPROTO, "rank %u: %s: rank %u gave up call %" PRIu64 " of this domain and is at call %" PRIu64,
					  domain->rank, op, i, domain->seq, entries[i].seq);
		if (entries[i].call.err && i != domain->rank)
			return pldk__fail(entries[i].call.err, "rank %u: %s: rank %u failed in %s: %s", domain->rank, op, i,
					  pldk_event_name(entries[i].call.op), entries[i].text);
		same_op = same_op && entries[i].call.op == call->op;
	}
	for (i = 0; i < domain->nranks && same_call(&entries[i].call, call); i++)
		;
	if (i == domain->nranks)
		return 0;
	pldk__text_add(&text, "rank %u: %s: the ranks disagree: ", domain->rank, op);
	if (same_op)
		differing_args(&text, domain, entries, group);
	else
		differing_ops(&text, domain, entries, group);
	pldk__text_add(&text, " (call %" PRIu64 " of this domain)", domain->seq);
	return pldk__fail(-EPROTO, "%s", text.text);
}

/*
 * The ledger of a far rank cannot be read any more: it heard the outcome first and has gone. Its digest in the own cell
 * still tells enough: equal, failed (with what is lost), or different.
 */
static int guess_entry(struct pldk_domain *domain, const struct pldk__call *call, uint32_t rank, int err,
		       struct pldk__call_entry *entry)
{
	const struct pldk__pred *pred = domain->epoch_preds[domain->seq & 1];
	int64_t digest;

	while (pred->from != rank)
		pred++;
	digest = pred->seen & DIGEST_MASK;
	if (!digest)
		return err;
	memset(entry, 0, sizeof(*entry));
	entry->seq = domain->seq;
	if (digest == digest_of(call))
		entry->call = *call;
	return 0;
}

/* Read what everybody said in rendezvous domain->seq, and decide. All ranks decide alike: they read the same. */
static int compare_ledgers(struct pldk_domain *domain, const struct pldk__call *call)
{
	struct pldk__call_entry *entries = calloc(domain->nranks, sizeof(*entries));
	uint32_t *group = calloc(domain->nranks, sizeof(*group));
	size_t offset = offsetof(struct pldk__control, calls) + domain->seq % PLDK__CALLS * sizeof(*entries);
	int ret = 0;
	uint32_t i;

	if (!entries || !group)
		ret = pldk__fail(-ENOMEM, "rank %u: %s: no memory to compare what the ranks said", domain->rank,
				 pldk_event_name(call->op));
	for (i = 0; i < domain->nranks && !ret; i++) {
		ret = pldk__control_read(domain, i, offset, &entries[i], sizeof(*entries));
		if (ret)
			ret = guess_entry(domain, call, i, ret, &entries[i]);
		entries[i].text[PLDK__CALL_TEXT - 1] = '\0';
	}
	if (!ret)
		ret = judge_entries(domain, call, entries, group);
	free(entries);
	free(group);
	return ret;
}

/* Wait until everybody has announced number domain->seq, then look what they said. */
static int collect(struct pldk_domain *domain, struct pldk__thread *thread, const struct pldk__call *call,
		   uint64_t deadline_ns, const struct pldk__wake *wakes, uint32_t nwakes)
{
	struct pldk__wait wait = {
		.preds = domain->epoch_preds[domain->seq & 1],
		.npreds = domain->nranks - 1,
		.flags = PLD_WAIT_F_EXACT,
		.deadline_ns = deadline_ns,
		.site = call->site,
	};
	int64_t expected = (int64_t)(domain->seq << DIGEST_BITS);
	bool differs = kind_of(call->op)->is_full;
	uint32_t i;
	int ret;

	if (pldk__unlikely(domain->ntold + 1 < domain->nranks)) {
		ret = tell(domain, deadline_ns, NULL, NULL);
		if (ret)
			return ret;
	}
	for (i = 0; i < wait.npreds; i++)
		wait.preds[i].expected = expected;
	ret = pldk__wait_for(domain, thread, &wait, wakes, nwakes, pldk_event_name(call->op));
	if (ret)
		return ret;
	domain->is_pending = false;
	if (thread->waited_ns)
		pldk__wait_holds(domain->rank, &wait);
	expected |= call->err ? 0 : digest_of(call);
	for (i = 0; i < wait.npreds; i++)
		differs |= wait.preds[i].seen != expected;
	return pldk__unlikely(differs) ? compare_ledgers(domain, call) : 0;
}

/**
 * pldk__rendezvous_settle() - complete what an earlier call has left announced
 *
 * How that one ended is nobody's business any more; only a join that found a disagreement stays one.
 *
 * Return: 0, or an errno of the wait.
 */
int pldk__rendezvous_settle(struct pldk_domain *domain, struct pldk__thread *thread, uint64_t deadline_ns)
{
	struct pldk__call old = domain->pending;
	struct pldk__text sentence = { 0 };
	int ret;

	if (pldk__likely(!domain->is_pending))
		return 0;
	/* The new call may have failed already, and then has its own sentence. */
	pldk__text_add(&sentence, "%s", pldk_last_error());
	ret = collect(domain, thread, &old, deadline_ns, NULL, 0);
	if (domain->is_pending || (ret && old.op == PLDK_EV_JOIN))
		return ret;
	if (ret)
		pldk__fail_text(ret, sentence.text);
	return 0;
}

/**
 * pldk__rendezvous() - meet all other ranks of the domain; see internal.h
 *
 * A call that ended without completing (deadline, POSIX signal, own failure) stays announced. The next one first
 * completes it; the same one goes on with it.
 */
int pldk__rendezvous(struct pldk_domain *domain, struct pldk__thread *thread, const struct pldk__call *call,
		     uint64_t deadline_ns)
{
	struct pldk__wake wakes[WAKES];
	uint32_t nwakes = 0;
	int ret = 0;

	if (pldk__unlikely(domain->is_pending)) {
		struct pldk__text sentence = { 0 };

		if (!call->err && same_call(&domain->pending, call)) {
			ret = collect(domain, thread, call, deadline_ns, NULL, 0);
			goto out;
		}
		pldk__text_add(&sentence, "%s", pldk_last_error());
		ret = pldk__rendezvous_settle(domain, thread, deadline_ns);
		if (ret && call->err)
			ret = pldk__fail_text(call->err, sentence.text);
	}
	if (!ret && domain->has_far)
		ret = pldk__far_settle(domain, -1, deadline_ns);
	if (pldk__unlikely(ret))
		goto out;
	ret = announce(domain, call, deadline_ns, wakes, &nwakes);
	stamp_entry(domain);
	if (pldk__unlikely(call->err || ret)) {
		if (nwakes)
			domain->ops->wake(domain->pd, wakes, nwakes);
		ret = call->err ? call->err : ret;
		goto out;
	}
	ret = collect(domain, thread, call, deadline_ns, wakes, nwakes);
out:
	domain->coll_ret = ret;
	return ret;
}

/**
 * pldk__rendezvous_max() - the largest value that a rank gave for an argument in the rendezvous that just succeeded
 */
int pldk__rendezvous_max(struct pldk_domain *domain, uint32_t index, int64_t *out)
{
	size_t offset = offsetof(struct pldk__control, calls) +
			domain->seq % PLDK__CALLS * sizeof(struct pldk__call_entry) +
			offsetof(struct pldk__call_entry, call.args) + index * sizeof(int64_t);
	int64_t largest = INT64_MIN;
	int64_t value;
	uint32_t rank;
	int ret;

	for (rank = 0; rank < domain->nranks; rank++) {
		ret = pldk__control_read(domain, rank, offset, &value, sizeof(value));
		if (ret)
			return ret;
		if (value > largest)
			largest = value;
	}
	*out = largest;
	return 0;
}
