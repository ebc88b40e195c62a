// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Numbered announcements: how all ranks of a domain meet, and prove to each other that they make the same call.
 *
 * All ranks count alike: number n is the n-th thing that the domain does together. To announce n a rank writes its call
 * into its ledger (ledger.c) and sets its cell at every peer to n << 16 | digest of the call; a digest of 0 says "I
 * failed". A number has arrived when the own cells of all peers say it. A rendezvous is one announcement and the wait
 * for its arrival; collectives (coll_flat.c) may announce up to PLDK__LOOK numbers before the first has arrived.
 *
 * Cells are used again. Each ordered pair of ranks has D = depth of them, number n uses n mod D. With at most L numbers
 * under way, L <= D / 2, no value is overwritten unread: rank s announces n + D only when n + D - L has arrived from
 * everybody, and rank d announced that one only when n + D - 2 L >= n had arrived at d, so d had read n. The same holds
 * for what travels in the cell's line (struct pldk__payload), because it is read before the next announcement. D is 8
 * and L at most 4 up to 8 ranks, else 2 and 1: a function of the number of ranks alone, equal on all.
 *
 * Errors that are found in a number n (disagreement, a rank that failed), unlike errors of a wait, must leave all ranks
 * at the same number although some may be ahead by L - 1. Two rules do that. The first number of a call is announced
 * alone, so that a disagreement always meets ranks that have announced just this one or chunks of one and the same
 * call. And who finds an error in n takes seq = n + PLDK__LOOK. Everybody finds it in the same n (all have announced n,
 * and all see all digests); nobody had announced more than n - 1 + L; values of a cell only grow, so skipped numbers
 * need nothing.
 *
 * This file is flat: every rank tells all others. P - 1 stores and loads a number, all under way at once, and one look
 * at the own cells says who is late, who died and who disagrees. More than 8 ranks, none of them far, announce in
 * rounds instead (announce_rounds.c), a store and a load for each doubling of the ranks, and come back to this whenever
 * something is unusual: what is said here of errors, deaths and interruptions is true of them, too. Either way there
 * are D cells for each ordered pair of ranks.
 */
#include "announce.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEEP_RANKS 8u		/* up to so many ranks a pair has 2 PLDK__LOOK cells */

/**
 * pldk__rendezvous_open() - make the cells and ledgers of a domain that was just joined
 *
 * Return: 0, -ENOMEM, or as the provider's open(). What it made is freed by pldk__rendezvous_close() in any case.
 */
int pldk__rendezvous_open(struct pldk_domain *domain)
{
	int ret;

	domain->depth = domain->nranks <= DEEP_RANKS ? 2 * PLDK__LOOK : 2;
	ret = pldk__system_open(domain, PLDK__SYSTEM_CONTROL, PLD_WINDOW_DATA, PLD_WINDOW_F_OWNER_WRITES,
				sizeof(struct pldk__control), &domain->control);
	if (!ret)
		ret = pldk__system_open(domain, PLDK__SYSTEM_EPOCHS, PLD_WINDOW_SIGNAL, 0,
					(uint64_t)domain->depth * domain->nranks * PLD_CELL_SIZE, &domain->epochs);
	if (ret)
		return ret;
	domain->epoch_preds = calloc(domain->nranks, sizeof(struct pldk__pred));
	if (!domain->epoch_preds)
		return pldk__fail(-ENOMEM, "rank %u: init: no memory", domain->rank);
	return pldk__rounds_open(domain);
}

/**
 * pldk__rendezvous_close() - undo pldk__rendezvous_open(), also a half-done one
 */
void pldk__rendezvous_close(struct pldk_domain *domain)
{
	if (domain->nrounds && pldk__is_open(domain))
		pldk__rounds_leave(domain);
	if (domain->epochs)
		domain->ops->close(domain->pd, domain->epochs);
	if (domain->control)
		domain->ops->close(domain->pd, domain->control);
	domain->epochs = NULL;
	domain->control = NULL;
	free(domain->epoch_preds);
	free(domain->rounds);
}

/**
 * pldk__coll_is_busy() - another thread has the collectives of the domain
 */
int pldk__coll_is_busy(const struct pldk_domain *domain, uint32_t op, uint32_t busy)
{
	return pldk__fail(-EBUSY, "rank %u: %s: thread %u is in %s of this domain: one collective at a time", domain->rank,
			  pldk_event_name(op), pldk__load_relaxed(&domain->coll_tid), pldk_event_name(busy));
}

/**
 * pldk__wake_all() - wake the sleepers that announcements have met
 */
void pldk__wake_all(struct pldk_domain *domain)
{
	if (pldk__likely(!domain->nwakes))
		return;
	domain->ops->wake(domain->pd, domain->wakes, domain->nwakes);
	domain->nwakes = 0;
}

/*
 * Tell the peers that have not been told of what was announced. -ETIMEDOUT, -EAGAIN: what carries to a far one did not
 * move in time; whoever waits for the number, or completes it, goes on telling. How else it failed is found out by
 * waiting.
 */
static int tell(struct pldk_domain *domain, const struct pldk__payload *payload, uint64_t deadline_ns)
{
	uint32_t cell = pldk__epoch_index(domain, domain->announced, domain->rank);
	uint32_t rank = (domain->rank + domain->ntold) % domain->nranks;
	int ret;

	for (; domain->ntold + 1 < domain->nranks; domain->ntold++) {
		rank = rank + 1 == domain->nranks ? 0 : rank + 1;
		if (domain->nwakes == PLDK__WAKES)
			pldk__wake_all(domain);
		if (payload)
			memcpy(pldk__cell_at(domain->epochs, rank, cell)->payload,
			       (const char *)payload->data + rank * payload->stride, payload->len);
		ret = pldk__notify_one(domain, domain->epochs, rank, cell, PLD_NOTIFY_SET, domain->told, deadline_ns,
				       domain->wakes, &domain->nwakes);
		if (pldk__unlikely(ret == -ETIMEDOUT))
			return deadline_ns == PLD_DEADLINE_POLL ? -EAGAIN : ret;
	}
	return 0;
}

static bool is_telling(const struct pldk_domain *domain)
{
	return domain->ntold + 1 < domain->nranks;
}

/**
 * pldk__announce() - say the next number to all; see announce.h
 *
 * The payload is stored before the value, and the value with release (pldk__cell_notify()): who has seen the value
 * reads the payload.
 */
void pldk__announce(struct pldk_domain *domain, const struct pldk__call *call, int64_t digest,
		    const struct pldk__payload *payload)
{
	uint64_t number = domain->seq + 1;

	domain->told = (int64_t)(number << PLDK__DIGEST_BITS);
	if (pldk__likely(!call->err))
		domain->told |= pldk__digest_at(digest, call->phase);
	if (pldk__unlikely(domain->nrounds)) {
		pldk__rounds_announce(domain, call, payload);
		pldk__coll_stamp(domain);
		return;
	}
	pldk__ledger_write(domain, number, call);
	domain->announced = number;
	domain->ntold = 0;
	/* Second rule for errors: see above. */
	domain->seq = pldk__unlikely(call->err) ? number + PLDK__LOOK : number;
	/* Whom a far carrier keeps from being told now is told by pldk__arrive_wait(). */
	(void)tell(domain, payload, domain->has_far ? pldk__now_ns() : PLD_DEADLINE_NEVER);
	pldk__coll_stamp(domain);
}

/* Peers are looked at from the left neighbour on; i counts them. */
static uint32_t peer_at(const struct pldk_domain *domain, uint32_t i)
{
	return domain->rank > i ? domain->rank - 1 - i : domain->rank + domain->nranks - 1 - i;
}

/* Everybody has announced the number, and somebody may have said something else. */
static int judge(struct pldk_domain *domain, const struct pldk__call *call, uint64_t number)
{
	int ret = pldk__ledger_compare(domain, call, number);

	/* Without memory nothing was found out: if the digests agree, the others may well go on from this number. */
	if (ret && (domain->heard_differs || ret != -ENOMEM)) {
		domain->seq = number + PLDK__LOOK;
		domain->met = domain->seq;
	}
	return ret;
}

/**
 * pldk__arrived() - has everybody announced a number, and the same? See announce.h
 *
 * It remembers how far it got, so that P cells that trickle in are looked at P times in all.
 */
int pldk__arrived(struct pldk_domain *domain, const struct pldk__call *call, int64_t digest, uint64_t number)
{
	int64_t expected = (int64_t)(number << PLDK__DIGEST_BITS);
	int64_t mine = expected | (call->err ? 0 : pldk__digest_at(digest, call->phase));
	uint32_t npeers = domain->nranks - 1;
	uint32_t peer;
	int64_t value;

	if (domain->heard_of != number) {
		domain->heard_of = number;
		domain->heard = 0;
		domain->heard_differs = call->err != 0;
	}
	if (pldk__unlikely(is_telling(domain)) && !(domain->nrounds && pldk__rounds_pass(domain, number, mine)))
		return PLDK__AGAIN;
	for (; domain->heard < npeers; domain->heard++) {
		peer = peer_at(domain, domain->heard);
		value = pldk__load_acquire(&pldk__epoch_cell(domain, domain->rank, number, peer)->value);
		if (pldk__likely(value == mine))
			continue;
		if (value < expected && !(domain->nrounds && pldk__has_announced(domain, peer, number)))
			return PLDK__AGAIN;
		if (value != (mine | PLDK__TOLD_ALL))
			domain->heard_differs = true;
	}
	pldk__wake_all(domain);
	if (domain->met < number)
		domain->met = number;
	return pldk__unlikely(domain->heard_differs || pldk__call_is_full(call)) ? judge(domain, call, number) : 0;
}

/**
 * pldk__arrive_look() - look at the first missing cell for a moment, before the machinery of a wait
 *
 * Most numbers of ranks that have a CPU each arrive while the line is still on its way, a few hundred ns. The wait
 * proper (judging deaths, the clock, states for those who look from outside) begins after that.
 *
 * Return: true if it came: ask pldk__arrived() again.
 */
bool pldk__arrive_look(struct pldk_domain *domain)
{
	const struct pld_cell *cell =
		pldk__epoch_cell(domain, domain->rank, domain->heard_of, peer_at(domain, domain->heard));
	int64_t expected = (int64_t)(domain->heard_of << PLDK__DIGEST_BITS);
	uint32_t turn;

	if (pldk__unlikely(domain->nwakes || domain->shares_cpu || !domain->spin_ns))
		return false;
	if (pldk__unlikely(is_telling(domain))) {
		if (!domain->nrounds)
			return false;
		cell = pldk__rounds_cell(domain);
	}
	for (turn = 1; turn <= PLDK__LOOKS; turn++) {
		if (pldk__load_relaxed(&cell->value) >= expected)
			return true;
		if (turn % PLDK__LOOKS_PER_PAUSE == 0)
			pldk__pause();
	}
	return false;
}

/**
 * pldk__arrive_rests() - it was not yet, and the caller will not wait: wake whom it has met
 *
 * Return: true if there is nothing left to do here; false: some peers are not told, which pldk__arrive_wait() does.
 */
bool pldk__arrive_rests(struct pldk_domain *domain)
{
	if (pldk__unlikely(domain->nrounds))
		pldk__rounds_leave(domain);
	pldk__wake_all(domain);
	return !is_telling(domain);
}

/**
 * pldk__arrive_wait() - wait for what pldk__arrived() lacked; see announce.h
 */
int pldk__arrive_wait(struct pldk_domain *domain, struct pldk__thread *thread, const struct pldk__call *call,
		      uint64_t deadline_ns)
{
	uint64_t number = domain->heard_of;
	uint32_t nwakes;
	struct pldk__wait wait = {
		.preds = domain->epoch_preds,
		.flags = PLD_WAIT_F_EXACT,
		.deadline_ns = deadline_ns,
		.site = call->site,
	};
	uint32_t i;
	int ret = 0;

	if (pldk__unlikely(is_telling(domain))) {
		if (domain->nrounds)
			return pldk__rounds_wait(domain, thread, call, deadline_ns);
		ret = tell(domain, NULL, deadline_ns);
	}
	if (ret) {
		pldk__wake_all(domain); /* near ones, who were told */
		return pldk__fail_prefix(ret, "rank %u: %s: ", domain->rank, pldk_event_name(call->op));
	}
	nwakes = domain->nwakes;
	for (i = domain->heard; i < domain->nranks - 1; i++) {
		const uint32_t peer = peer_at(domain, i);
		struct pldk__pred *pred;

		if (domain->nrounds && pldk__has_announced(domain, peer, number))
			continue;
		pred = &wait.preds[wait.npreds++];
		pred->from = peer;
		pred->map = domain->epochs;
		pred->cell = pldk__epoch_index(domain, number, pred->from);
		pred->cmp = PLD_CMP_GE;
		pred->expected = (int64_t)(number << PLDK__DIGEST_BITS);
	}
	domain->nwakes = 0;
	return pldk__wait_for(domain, thread, &wait, domain->wakes, nwakes, pldk_event_name(call->op));
}

/* Wait until everybody has announced the number, then look what they said. *is_verdict: the error is theirs. */
static int collect(struct pldk_domain *domain, struct pldk__thread *thread, const struct pldk__call *call,
		   uint64_t number, uint64_t deadline_ns, bool *is_verdict)
{
	int64_t digest = pldk__call_digest(call);
	int ret;

	*is_verdict = false;
	while ((ret = pldk__arrived(domain, call, digest, number)) == PLDK__AGAIN) {
		ret = pldk__arrive_wait(domain, thread, call, deadline_ns);
		if (ret)
			return ret;
	}
	*is_verdict = true;
	return ret;
}

/**
 * pldk__rendezvous_settle() - complete what earlier calls have left announced
 *
 * How those ended is nobody's business any more; only a join that found a disagreement stays one. See announce.h
 */
int pldk__rendezvous_settle(struct pldk_domain *domain, struct pldk__thread *thread, uint64_t deadline_ns, int err)
{
	struct pldk__text sentence = { 0 };
	bool is_verdict;
	int ret;

	pldk__text_add(&sentence, "%s", pldk_last_error());
	while (pldk__is_open(domain)) {
		uint64_t number = domain->met + 1;
		struct pldk__call old = *pldk__ledger_call(domain, number);

		ret = collect(domain, thread, &old, number, deadline_ns, &is_verdict);
		if (ret && (!is_verdict || old.op == PLDK_EV_JOIN))
			return err ? pldk__fail(err, "%s", sentence.text) : ret;
		if (ret)
			pldk__fail(ret, "%s", sentence.text);
	}
	return 0;
}

/* Is this the rendezvous that was left open? */
static bool goes_on(const struct pldk_domain *domain, const struct pldk__call *call)
{
	return !call->err && domain->met + 1 == domain->announced && domain->announced == domain->seq &&
	       pldk__call_same(pldk__ledger_call(domain, domain->announced), call);
}

/**
 * pldk__rendezvous() - meet all other ranks of the domain; see announce.h
 *
 * A call that ended without completing (deadline, POSIX signal, own failure) stays announced. The next one first
 * completes it; the same one goes on with it.
 */
int pldk__rendezvous(struct pldk_domain *domain, struct pldk__thread *thread, const struct pldk__call *call,
		     uint64_t deadline_ns)
{
	bool is_verdict;
	int ret = 0;

	if (pldk__unlikely(domain->nstarted)) {
		ret = pldk__coll_drain(domain, thread, deadline_ns, call->err);
		if (ret)
			goto out;
	}
	if (pldk__unlikely(pldk__is_open(domain))) {
		if (goes_on(domain, call)) {
			ret = collect(domain, thread, call, domain->announced, deadline_ns, &is_verdict);
			goto out;
		}
		ret = pldk__rendezvous_settle(domain, thread, deadline_ns, call->err);
	}
	if (!ret && domain->has_far)
		ret = pldk__far_settle(domain, -1, deadline_ns);
	if (pldk__unlikely(ret))
		goto out;
	pldk__announce(domain, call, pldk__call_digest(call), NULL);
	if (pldk__unlikely(call->err)) {
		pldk__wake_all(domain);
		ret = call->err;
		goto out;
	}
	ret = collect(domain, thread, call, domain->announced, deadline_ns, &is_verdict);
out:
	domain->coll_ret = ret;
	return ret;
}
