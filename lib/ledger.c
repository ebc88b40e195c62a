// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The call ledgers: what every rank says it is doing, its 15 bit digest, and the sentence when the ranks disagree.
 *
 * An announcement (announce.c) carries a digest. If all digests of a number are equal, that was all. If not, every rank
 * sees it (each sees all digests), reads the call ledgers of all and comes to the same answer. A ledger is written
 * before the announcement and kept for PLDK__CALLS numbers, far more than ranks can be apart. 15 bits of digest can
 * hide a difference once in 32,767 mistakes; windows, joins and subsets are compared in full.
 */
#include "announce.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS 4      /* different calls that one sentence shows */
#define READ_NS UINT64_C(1000000000) /* longest wait for a far rank's ledger */

/*
 * Names of a call's arguments; those that have none are told, not compared. is_full: compare ledgers even if digests
 * agree.
 */
#define SIGNAL "signal window"

static const struct call_kind {
	uint32_t nargs;
	bool is_full;
	const char *args[PLDK__CALL_ARGS];
} kinds[] = {
	[PLDK_EV_BARRIER] = { 5, false, { NULL, NULL, NULL, NULL, SIGNAL } },
	[PLDK_EV_ALLREDUCE] = { 5, false, { "count", "dtype", "op", "mode", SIGNAL } },
	[PLDK_EV_BROADCAST] = { 5, false, { "count", "dtype", NULL, "root", SIGNAL } },
	[PLDK_EV_ALLGATHER] = { 5, false, { "count", "dtype", NULL, NULL, SIGNAL } },
	[PLDK_EV_REDUCE_SCATTER] = { 5, false, { "count", "dtype", "op", NULL, SIGNAL } },
	[PLDK_EV_ALL_TO_ALL] = { 5, false, { "count", "dtype", NULL, NULL, SIGNAL } },
	[PLDK_EV_ALL_TO_ALL_V] = { 5, false, { "row count", "dtype", NULL, NULL, SIGNAL } },
	[PLDK_EV_REDUCE] = { 5, false, { "count", "dtype", "op", "root", SIGNAL } },
	[PLDK_EV_GATHER] = { 5, false, { "count", "dtype", NULL, "root", SIGNAL } },
	[PLDK_EV_SCATTER] = { 5, false, { "count", "dtype", NULL, "root", SIGNAL } },
	[PLDK_EV_SCAN] = { 5, false, { "count", "dtype", "op", NULL, SIGNAL } },
	[PLDK_EV_EXSCAN] = { 5, false, { "count", "dtype", "op", NULL, SIGNAL } },
	[PLDK_EV_WINDOW_CREATE] = { 5, true, { "bytes", "kind", "id", "flags", "shape and dtype" } },
	[PLDK_EV_WINDOW_RESET] = { 2, true, { "window", "generation" } },
	[PLDK_EV_JOIN] = { 2, true, { "library version", "PLDK_TAG" } },
	[PLDK_EV_SUBSET] = { 2, true, { "size", "list" } },
};

static const struct call_kind *kind_of(uint32_t op)
{
	static const struct call_kind none = { PLDK__CALL_ARGS, true, { NULL } };

	return op < PLDK__ARRAY_SIZE(kinds) && kinds[op].nargs ? &kinds[op] : &none;
}

/**
 * pldk__call_digest() - bits that differ, most likely, if anything that must be equal differs
 *
 * Of the call without its phase: pldk__digest_at() adds that, and keeps 15 of them. The multiplications do not wait for
 * each other.
 */
int64_t pldk__call_digest(const struct pldk__call *call)
{
	static const uint64_t odd[PLDK__CALL_ARGS] = {
		UINT64_C(0xbf58476d1ce4e5b9), UINT64_C(0x94d049bb133111eb), UINT64_C(0xd6e8feb86659fd93),
		UINT64_C(0xa0761d6478bd642f), UINT64_C(0xe7037ed1a0b428db), UINT64_C(0x8ebc6af09c88c6e3),
	};
	uint32_t nargs = kind_of(call->op)->nargs;
	uint64_t hash = (call->op + 1) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t i;

	for (i = 0; i < nargs; i++) {
		uint64_t x = (uint64_t)call->args[i] * odd[i];

		/* The high half of each product holds what the low bits of all arguments did. */
		hash += x ^ x >> 32;
	}
	hash ^= hash >> 32;
	hash *= UINT64_C(0x94d049bb133111eb);
	return (int64_t)(hash >> (64 - PLDK__DIGEST_BITS));
}

/**
 * pldk__call_is_full() - must ledgers be compared even where digests agree?
 */
bool pldk__call_is_full(const struct pldk__call *call)
{
	return kind_of(call->op)->is_full;
}

/** pldk__call_same() - are these one call? */
bool pldk__call_same(const struct pldk__call *a, const struct pldk__call *b)
{
	return a->op == b->op && a->phase == b->phase && a->err == b->err &&
	       !memcmp(a->args, b->args, kind_of(a->op)->nargs * sizeof(a->args[0]));
}

static struct pldk__call_entry *own_entry(const struct pldk_domain *domain, uint64_t number)
{
	struct pldk__control *control = (void *)pldk__slab(domain->control, domain->rank);

	return &control->calls[number % PLDK__CALLS];
}

/**
 * pldk__ledger_write() - write what this rank does under a number; before it announces the number
 */
void pldk__ledger_write(struct pldk_domain *domain, uint64_t number, const struct pldk__call *call)
{
	struct pldk__call_entry *entry = own_entry(domain, number);

	pldk__store_relaxed(&entry->seq, 0);
	entry->call = *call;
	if (pldk__unlikely(call->err))
		snprintf(entry->text, sizeof(entry->text), "%s", pldk_last_error());
	pldk__store_release(&entry->seq, number);
}

/**
 * pldk__has_announced() - has a near rank written a number into its ledger? See announce.h
 */
bool pldk__has_announced(const struct pldk_domain *domain, uint32_t rank, uint64_t number)
{
	const struct pldk__control *control = (const void *)pldk__slab(domain->control, rank);

	return pldk__load_seq(&control->calls[number % PLDK__CALLS].seq) >= number;
}

/**
 * pldk__ledger_call() - what this rank announced under one of its newest PLDK__CALLS numbers
 */
const struct pldk__call *pldk__ledger_call(const struct pldk_domain *domain, uint64_t number)
{
	return &own_entry(domain, number)->call;
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
	else if (name && !strcmp(name, SIGNAL) && !value)
		pldk__text_add(text, "none");
	else if (name && !strcmp(name, SIGNAL))
		pldk__text_add(text, "%" PRId64, value - 1);
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

static int judge_entries(struct pldk_domain *domain, const struct pldk__call *call, uint64_t number,
			 const struct pldk__call_entry *entries, uint32_t *group)
{
	const char *op = pldk_event_name(call->op);
	struct pldk__text text = { 0 };
	bool same_op = true;
	uint32_t i;

	for (i = 0; i < domain->nranks; i++) {
		if (entries[i].seq != number)
			return pldk__fail(-EPROTO, "rank %u: %s: rank %u gave up call %" PRIu64 " of this domain and is at call %" PRIu64,
					  domain->rank, op, i, number, entries[i].seq);
		if (entries[i].call.err && i != domain->rank)
			return pldk__fail(entries[i].call.err, "rank %u: %s: rank %u failed in %s: %s", domain->rank, op, i,
					  pldk_event_name(entries[i].call.op), entries[i].text);
		same_op = same_op && entries[i].call.op == call->op;
	}
	for (i = 0; i < domain->nranks && pldk__call_same(&entries[i].call, call); i++)
		;
	if (i == domain->nranks)
		return 0;
	pldk__text_add(&text, "rank %u: %s: the ranks disagree: ", domain->rank, op);
	if (same_op)
		differing_args(&text, domain, entries, group);
	else
		differing_ops(&text, domain, entries, group);
	pldk__text_add(&text, " (call %" PRIu64 " of this domain)", number);
	return pldk__fail(-EPROTO, "%s", text.text);
}

/*
 * The ledger of a far rank cannot be read any more: it heard the outcome first and has gone. Its digest in the own cell
 * still tells enough: equal, failed (with what is lost), or different.
 */
static int guess_entry(struct pldk_domain *domain, const struct pldk__call *call, uint64_t number, uint32_t rank,
		       int err, struct pldk__call_entry *entry)
{
	int64_t value = pldk__load_relaxed(&pldk__epoch_cell(domain, domain->rank, number, rank)->value);
	int64_t digest = value & PLDK__DIGEST_MASK;

	if (!digest)
		return err;
	memset(entry, 0, sizeof(*entry));
	entry->seq = number;
	if (digest == pldk__digest_at(pldk__call_digest(call), call->phase))
		entry->call = *call;
	return 0;
}

/**
 * pldk__ledger_compare() - read what everybody said under a number, and decide
 * @call: what this rank said
 * @number: all have announced it
 *
 * All ranks decide alike: they read the same.
 *
 * Return: 0 (the same), -EPROTO, a failed rank's errno, -ENOMEM.
 */
int pldk__ledger_compare(struct pldk_domain *domain, const struct pldk__call *call, uint64_t number)
{
	struct pldk__call_entry *entries = calloc(domain->nranks, sizeof(*entries));
	uint32_t *group = calloc(domain->nranks, sizeof(*group));
	size_t offset = offsetof(struct pldk__control, calls) + number % PLDK__CALLS * sizeof(*entries);
	int ret = 0;
	uint32_t i;

	if (!entries || !group)
		ret = pldk__fail(-ENOMEM, "rank %u: %s: no memory to compare what the ranks said", domain->rank,
				 pldk_event_name(call->op));
	for (i = 0; i < domain->nranks && !ret; i++) {
		ret = pldk__control_read(domain, i, offset, &entries[i], sizeof(*entries));
		if (ret)
			ret = guess_entry(domain, call, number, i, ret, &entries[i]);
		entries[i].text[PLDK__CALL_TEXT - 1] = '\0';
	}
	if (!ret)
		ret = judge_entries(domain, call, number, entries, group);
	free(entries);
	free(group);
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
