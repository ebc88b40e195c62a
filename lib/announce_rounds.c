// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Announcements in rounds: how many ranks hear of each other without each telling all (announce.c).
 *
 * A rank goes through a list of rounds. In each it tells one peer and then waits until one has told it; the list is
 * made once, and no ordered pair of ranks is in it twice. What it tells is its own announcement, and it goes on only
 * while everything it hears is word for word the same. So who is told in round k knows that all have announced the same
 * from whom the teller has heard, directly or not; and who is through all rounds knows it of everybody:
 *
 *   dissemination	in round k to rank r + 2^k, from rank r - 2^k: then all from r - 2^(k+1) + 1 to r are known.
 *			ceil(log2 P) rounds, all ranks busy in each
 *   tree		binomial, gathered to rank 0 and back: who hears from a child knows its subtree, who hears from
 *			its parent knows all. 2 (P - 1) messages in all: what counts where each wakes a process and
 *			there are fewer CPUs than ranks
 *
 * All this holds only while everybody is in the call, in agreement and alive. Whoever is not, or sees that somebody is
 * not, tells everybody (tell_all()) and from then on takes the number as flat: it looks for the announcement of each
 * rank. These are:
 *
 *   - a rank that failed (call.err). It returns at once;
 *   - one that hears something else than it says;
 *   - one that leaves the call with the number open: its time is over, a POSIX signal came, it only started a
 *     collective or tests one. It need not come back for the others' sake. (Not with -EDEADLK: the others have the
 *     verdict, too. Who then goes away without having called again tells all when it closes the domain.);
 *   - one whose wait met a death or a farewell: perhaps that rank had announced the number all the same, and who is
 *     really missing is told as exactly as ever.
 *
 * Such a word has the bit PLDK__TOLD_ALL: it vouches for nobody but its sender. Who waits for a rank that has told all
 * finds it in the very cell that it waits for, and tells all as well. Thus whoever cannot get through its rounds hears
 * of it: what it waits for comes, or is a rank that waits itself in an earlier round, or has not announced.
 *
 * Others may have got through their rounds. They tell nobody more, so a rank that takes the number as flat looks into
 * the ledgers of those whose cells are silent (pldk__has_announced()); it waits for the cells of those that have not
 * even written the ledger. For these the second cell is there: tell_all() also marks the peer's own cell in its own
 * slab, the one on the diagonal, before it looks into the ledgers; an announcer writes its ledger before it looks for
 * the mark. Both are sequentially consistent: one of the two sees the other (store buffering), so the late rank tells
 * all, too, or need not.
 *
 * Cells are safe with D = 2 and L = 1 as in announce.c: whichever way a number is completed, all have announced it. A
 * rank tells (or marks) number n until it has completed n, so before anybody can announce n + 2, which the cells of n
 * are for again. Values grow: n, then n with the bit.
 *
 * The payload of a number lies in the own diagonal cell, for all to read; it is written before the ledger, whose entry
 * may be what another rank learns the announcement from.
 *
 * Where some ranks are far from others the rounds are not used: a mark is a plain store, a ledger a plain load.
 */
#include "announce.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLAT_RANKS 8u /* so many tell each other directly: one round, and the cells' lines travel at the same time */
#define NOBODY PLD_RANK_ANY

struct pldk__round {
	uint32_t to;
	uint32_t from;
};

static uint32_t make_dissemination(const struct pldk_domain *domain, struct pldk__round *rounds)
{
	const uint32_t nranks = domain->nranks;
	uint32_t n = 0;

	for (uint32_t step = 1; step < nranks; step *= 2)
		rounds[n++] = (struct pldk__round){
			.to = (domain->rank + step) % nranks,
			.from = (domain->rank + nranks - step) % nranks,
		};
	return n;
}

/**
 * pldk__rounds_open() - make the list of rounds of a domain, if it is one for rounds
 *
 * From what is equal on all ranks.
 *
 * Return: 0, -ENOMEM. What it made is freed by pldk__rendezvous_close().
 */
int pldk__rounds_open(struct pldk_domain *domain)
{
	if (domain->nranks <= FLAT_RANKS || domain->is_spread)
		return 0;
	domain->rounds = calloc(2 * 32, sizeof(*domain->rounds));
	if (!domain->rounds)
		return pldk__fail(-ENOMEM, "rank %u: init: no memory", domain->rank);
	domain->nrounds = make_dissemination(domain, domain->rounds);
	domain->ntold = domain->nranks - 1; /* nothing is announced */
	return 0;
}

/* A rank's own cell in its own slab: the mark, and its payload. */
static struct pld_cell *diagonal(const struct pldk_domain *domain, uint32_t rank, uint64_t number)
{
	return pldk__epoch_cell(domain, rank, number, rank);
}

static void tell(struct pldk_domain *domain, uint32_t rank)
{
	if (domain->nwakes == PLDK__WAKES)
		pldk__wake_all(domain);
	(void)pldk__notify_one(domain, domain->epochs, rank,
			       pldk__epoch_index(domain, domain->announced, domain->rank), PLD_NOTIFY_SET,
			       domain->told, PLD_DEADLINE_NEVER, domain->wakes, &domain->nwakes);
}

/* Tell whom this round tells. */
static void begin_round(struct pldk_domain *domain)
{
	if (domain->rounds[domain->round].to != NOBODY)
		tell(domain, domain->rounds[domain->round].to);
}

/* From now on the number is flat here: see above. */
static void tell_all(struct pldk_domain *domain)
{
	const int64_t mark = (int64_t)(domain->announced << PLDK__DIGEST_BITS);
	uint32_t rank = domain->rank;

	if (domain->told != mark) /* which says that this rank has failed */
		domain->told |= PLDK__TOLD_ALL;
	for (uint32_t i = 1; i < domain->nranks; i++) {
		rank = rank + 1 == domain->nranks ? 0 : rank + 1;
		pldk__store_seq(&diagonal(domain, rank, domain->announced)->value, mark);
		tell(domain, rank);
	}
	pldk__fence_seq(); /* the ledgers are read after this */
	domain->ntold = domain->nranks - 1;
}

static bool is_in_rounds(const struct pldk_domain *domain)
{
	return domain->ntold + 1 < domain->nranks;
}

/**
 * pldk__rounds_announce() - pldk__announce() where there are rounds
 */
void pldk__rounds_announce(struct pldk_domain *domain, const struct pldk__call *call,
			   const struct pldk__payload *payload)
{
	const uint64_t number = domain->seq + 1;
	struct pld_cell *own = diagonal(domain, domain->rank, number);

	if (payload)
		memcpy(own->payload, payload->data, payload->len);
	pldk__ledger_write(domain, number, call);
	domain->announced = number;
	domain->ntold = 0;
	domain->round = 0;
	if (pldk__unlikely(call->err)) {
		domain->seq = number + PLDK__LOOK;
		tell_all(domain);
		return;
	}
	domain->seq = number;
	begin_round(domain);
	if (pldk__unlikely(pldk__load_seq(&own->value) >= (int64_t)(number << PLDK__DIGEST_BITS)))
		tell_all(domain);
}

/**
 * pldk__rounds_pass() - go through the rounds as far as possible without waiting
 * @number: the one that is announced
 * @mine: what this rank says
 *
 * Return: false: the peer of this round has not told. true: see domain->heard: all are, or the number is flat now.
 */
bool pldk__rounds_pass(struct pldk_domain *domain, uint64_t number, int64_t mine)
{
	const int64_t expected = (int64_t)(number << PLDK__DIGEST_BITS);
	uint32_t from;
	int64_t value;

	for (;;) {
		from = domain->rounds[domain->round].from;
		if (from != NOBODY) {
			value = pldk__load_acquire(&pldk__epoch_cell(domain, domain->rank, number, from)->value);
			if (value < expected)
				return false;
			if (pldk__unlikely(value != mine)) {
				tell_all(domain);
				return true;
			}
		}
		if (++domain->round == domain->nrounds)
			break;
		begin_round(domain);
	}
	domain->ntold = domain->nranks - 1;
	domain->heard = domain->nranks - 1;
	return true;
}

/**
 * pldk__rounds_cell() - the cell that this round waits for
 */
const struct pld_cell *pldk__rounds_cell(const struct pldk_domain *domain)
{
	return pldk__epoch_cell(domain, domain->rank, domain->announced, domain->rounds[domain->round].from);
}

/**
 * pldk__rounds_leave() - the caller will not wait for the number now
 */
void pldk__rounds_leave(struct pldk_domain *domain)
{
	if (is_in_rounds(domain))
		tell_all(domain);
	pldk__wake_all(domain);
}

/**
 * pldk__rounds_wait() - pldk__arrive_wait() for the peer of this round
 *
 * Twice the same cell: only that peer will change it, but the death of anybody may be why it does not.
 */
int pldk__rounds_wait(struct pldk_domain *domain, struct pldk__thread *thread, const struct pldk__call *call,
		      uint64_t deadline_ns)
{
	struct pldk__wait wait = {
		.preds = domain->epoch_preds,
		.npreds = 2,
		.flags = PLD_WAIT_F_EXACT,
		.deadline_ns = deadline_ns,
		.site = call->site,
	};
	const uint32_t nwakes = domain->nwakes;
	int ret;

	wait.preds[0] = (struct pldk__pred){
		.from = domain->rounds[domain->round].from,
		.map = domain->epochs,
		.cell = pldk__epoch_index(domain, domain->announced, domain->rounds[domain->round].from),
		.cmp = PLD_CMP_GE,
		.expected = (int64_t)(domain->announced << PLDK__DIGEST_BITS),
	};
	wait.preds[1] = wait.preds[0];
	wait.preds[1].from = PLD_RANK_ANY;
	domain->nwakes = 0;
	ret = pldk__wait_for(domain, thread, &wait, domain->wakes, nwakes, pldk_event_name(call->op));
	/* All who wait in a deadlock are told so now. A cell that changes would end their waits before they hear it. */
	if (pldk__likely(!ret) || ret == -EDEADLK)
		return ret;
	pldk__rounds_leave(domain);
	return ret == -EOWNERDEAD || ret == -ESHUTDOWN ? 0 : ret; /* the next look is at everybody */
}
