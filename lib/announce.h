/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Numbered announcements, and the rendezvous that is one of them (announce.c); what they say, and who said what when
 * they differ (ledger.c).
 */
#ifndef _PLDK_ANNOUNCE_H
#define _PLDK_ANNOUNCE_H

#include "internal.h"

#define PLDK__DIGEST_BITS 16
/* The top one: who says so has told everybody, and speaks of nobody but itself (announce_rounds.c). */
#define PLDK__TOLD_ALL (INT64_C(1) << (PLDK__DIGEST_BITS - 1))
#define PLDK__DIGEST_MASK (PLDK__TOLD_ALL - 1)
#define PLDK__AGAIN 1	  /* not yet: wait and ask again */
#define PLDK__LOOK 4u	  /* most announcements of one call that are under way */
#define PLDK__LOOKS 256u  /* at a cell that is not there yet, before the machinery of a wait: about a microsecond */
#define PLDK__LOOKS_PER_PAUSE 8u
#define PLDK__INLINE 40u  /* payload bytes in the line of a cell */
#define PLDK__CALL_ARGS 6
#define PLDK__CALLS 32u	  /* entries of a call ledger */
#define PLDK__CALL_TEXT 184u
#define PLDK__CONTROL_MAGIC 0x7063746cu
#define PLDK__CONTROL_LAYOUT 1u

/**
 * struct pldk__call - what a rank says it is doing
 * @op: enum pldk_event_op
 * @phase: 0 for the first number of an operation, 1.. for later ones of the same operation
 * @err: 0, or the negative errno of this rank's own failure: then all ranks fail with it, and with this thread's
 *       sentence
 * @site: call site id
 * @args: equal on all ranks, in the order of the table in ledger.c, which has their names. Of collectives: count,
 *        dtype, op, mode or root; 0 where there is none
 */
struct pldk__call {
	uint32_t op;
	uint32_t phase;
	int err;
	uint32_t site;
	int64_t args[PLDK__CALL_ARGS];
};

/** struct pldk__call_entry - a call as others read it; seq is stored last */
struct pldk__call_entry {
	uint64_t seq;
	struct pldk__call call;
	char text[PLDK__CALL_TEXT]; /* the sentence that goes with call.err */
};

/**
 * struct pldk__control - a rank's slab of system window 1, written by it only
 * @magic: stored last
 * @layout: PLDK__CONTROL_LAYOUT
 * @pid: of the rank
 * @join_err: errno with which it failed in its join, and
 * @join_text: why
 * @version, @tag: pldk_version() and PLDK_TAG
 * @subset_nranks: it is in pldk_subset() with a list of so many ranks; 0 when it is in none
 * @subset_count: for the so-manieth time with this list
 * @subset_ranks: the list
 * @bad_keys: keys of two subsets that cannot be, because this rank found their lists to disagree: see @join_text
 * @calls: its newest calls, number seq at seq mod PLDK__CALLS
 */
struct pldk__control {
	uint32_t magic;
	uint32_t layout;
	uint32_t pid;
	int32_t join_err;
	char version[16];
	char tag[PLDK__TAG_MAX];
	char join_text[PLDK__CALL_TEXT];
	uint32_t subset_nranks;
	uint32_t subset_count;
	uint32_t bad_keys[2];
	uint32_t reserved[10];
	uint16_t subset_ranks[PLDK_MAX_RANKS];
	struct pldk__call_entry calls[PLDK__CALLS];
};

int pldk__coll_is_busy(const struct pldk_domain *domain, uint32_t op, uint32_t busy);

/**
 * pldk__coll_lock() - take what one thread at a time has: the collectives of a domain
 *
 * Return: 0; -EBUSY: another thread is in one ("thread 22 is in allreduce of this domain"); -ECANCELED: poisoned.
 */
static inline int pldk__coll_lock(struct pldk_domain *domain, struct pldk__thread *thread, uint32_t op, uint32_t site)
{
	uint32_t busy = 0;

	if (pldk__unlikely(pldk__load_relaxed(&domain->pd->status->poison)))
		return pldk__fail_poison(domain, pldk_event_name(op));
	if (pldk__unlikely(!pldk__cas_seq(&domain->coll_busy, &busy, op)))
		return pldk__coll_is_busy(domain, op, busy);
	pldk__store_relaxed(&domain->coll_tid, thread->tid);
	domain->coll_rec = NULL;
	pldk__store_relaxed(&thread->line->coll_site, site);
	pldk__state(thread, PLDK__STATE_COLL);
	return 0;
}

static inline void pldk__coll_unlock(struct pldk_domain *domain, struct pldk__thread *thread)
{
	pldk__state(thread, PLDK__STATE_RUN);
	pldk__store_relaxed(&thread->line->coll_site, 0);
	pldk__store_release(&domain->coll_busy, 0);
}

/**
 * pldk__coll_enter() - begin an operation that is collective over the domain
 *
 * Records the entry, and pldk__coll_leave() its end: the caller records nothing. Return: as pldk__coll_lock().
 */
static inline int pldk__coll_enter(struct pldk_domain *domain, struct pldk__thread *thread, uint32_t op, uint32_t site)
{
	int ret = pldk__coll_lock(domain, thread, op, site);

	if (pldk__unlikely(ret))
		return ret;
	domain->coll_ret = 0;
	domain->coll_rec = pldk__record(thread, op, 0, site, -1, -1, 0, (int64_t)domain->seq + 1);
	thread->waited_ns = 0;
	return 0;
}

/* The entry's stamp, taken when the others have been told: the counter is not read on their time. */
static inline void pldk__coll_stamp(struct pldk_domain *domain)
{
	if (domain->coll_rec && !pldk__load_relaxed(&domain->coll_rec->tsc))
		pldk__store_relaxed(&domain->coll_rec->tsc, pldk__tsc());
}

/* The end, stamped only when there was something to wait for. */
static inline void pldk__coll_leave(struct pldk_domain *domain, struct pldk__thread *thread)
{
	int ret = domain->coll_ret;
	struct pldk__rec *rec;

	rec = pldk__record(thread, PLDK_EV_COLL_END, ret ? PLDK_EVENT_FAILED : 0,
			   pldk__load_relaxed(&thread->line->coll_site), -1, -1, 0, ret);
	if (ret || thread->waited_ns > 1)
		pldk__store_relaxed(&rec->tsc, pldk__tsc());
	pldk__coll_unlock(domain, thread);
}

/* The same for one that had no time to be seen: the entry's record says that it is the end, too. */
static inline void pldk__coll_leave_at_once(struct pldk_domain *domain, struct pldk__thread *thread)
{
	if (pldk__unlikely(thread->is_shared)) {
		pldk__coll_leave(domain, thread);
		return;
	}
	pldk__record_flag(domain->coll_rec, PLDK_EVENT_DONE_AT_ONCE);
	pldk__coll_unlock(domain, thread);
}

/**
 * pldk__rendezvous() - meet all other ranks of the domain, who must say the same
 * @domain: between pldk__coll_enter() and pldk__coll_leave()
 * @call: what this rank does
 * @deadline_ns: absolute
 *
 * Release of everything before it on each rank, acquire on all. What was written by one rank before it may be read by
 * all after it; memory that is read after rendezvous n may be written again after rendezvous n + 1 (so two buffers
 * that take turns need no more than one rendezvous an operation).
 *
 * With call->err nothing is waited for: the others are told, and call->err comes back at once.
 *
 * All ranks return alike: 0; -EPROTO, and the sentence names the ranks and both values; the errno of a rank that
 * failed (call->err). Or, each for itself, an errno of the wait: then the rendezvous stays open, and calling again
 * with the same call goes on waiting.
 */
int pldk__rendezvous(struct pldk_domain *domain, struct pldk__thread *thread, const struct pldk__call *call,
		     uint64_t deadline_ns);
/*
 * Complete what earlier calls have left announced, whatever the outcome. A call that is not the continuation of the
 * open one must do so before it writes into memory that takes turns: others may still read. err: 0, or the call has
 * failed already, with the thread's sentence.
 *
 * Return: 0, the sentence is as it was; what it could not be completed for is err, if there is one, else the errno.
 */
int pldk__rendezvous_settle(struct pldk_domain *domain, struct pldk__thread *thread, uint64_t deadline_ns, int err);
static inline bool pldk__is_open(const struct pldk_domain *domain)
{
	return domain->met < domain->announced;
}

/**
 * struct pldk__payload - bytes that travel in the cells of an announcement
 * @len: at most PLDK__INLINE
 * @stride: rank r gets those at data + r * stride; 0 where there are rounds
 */
struct pldk__payload {
	const void *data;
	uint32_t len;
	size_t stride;
};

/**
 * pldk__announce() - say number domain->seq + 1 to all
 * @digest: of the call, pldk__call_digest()
 * @payload: or NULL; not where is_spread
 *
 * Never waits. Sleepers that it met are woken by the wait that follows, or by pldk__wake_all(). With call->err it says
 * that this rank has failed, and the thread's sentence.
 */
void pldk__announce(struct pldk_domain *domain, const struct pldk__call *call, int64_t digest,
		    const struct pldk__payload *payload);
void pldk__wake_all(struct pldk_domain *domain);
/**
 * pldk__arrived() - has everybody announced a number, and the same?
 * @call, @digest: what this rank said
 * @number: one of the open ones, in order
 *
 * Return: 0, an acquire of what all did before; PLDK__AGAIN; -EPROTO, a failed rank's errno, -ENOMEM.
 */
int pldk__arrived(struct pldk_domain *domain, const struct pldk__call *call, int64_t digest, uint64_t number);
/* It was not yet: spin a moment for the first peer that it lacked. True: ask again. */
bool pldk__arrive_look(struct pldk_domain *domain);
/* It was not yet, and the caller will not wait now. False: there are peers to be told, by pldk__arrive_wait(). */
bool pldk__arrive_rests(struct pldk_domain *domain);
/* It was not yet: wait for all that it lacked. Return: as pldk__wait_for() */
int pldk__arrive_wait(struct pldk_domain *domain, struct pldk__thread *thread, const struct pldk__call *call,
		      uint64_t deadline_ns);

/* In every slab, the cell in which rank `from` announces a number. */
static inline uint32_t pldk__epoch_index(const struct pldk_domain *domain, uint64_t number, uint32_t from)
{
	return (uint32_t)(number % domain->depth) * domain->nranks + from;
}

/* The one at rank `at`. NULL if that is far. */
static inline struct pld_cell *pldk__epoch_cell(const struct pldk_domain *domain, uint32_t at, uint64_t number,
						uint32_t from)
{
	return pldk__cell_at(domain->epochs, at, pldk__epoch_index(domain, number, from));
}

/* What a rank brought with a number that has arrived, if its payload was the same for all. Not where is_spread. */
static inline const void *pldk__payload_of(const struct pldk_domain *domain, uint32_t rank, uint64_t number)
{
	return pldk__epoch_cell(domain, domain->nrounds ? rank : domain->rank, number, rank)->payload;
}

/* announce_rounds.c: for domains that have rounds, from announce.c */
int pldk__rounds_open(struct pldk_domain *domain);
void pldk__rounds_announce(struct pldk_domain *domain, const struct pldk__call *call,
			   const struct pldk__payload *payload);
bool pldk__rounds_pass(struct pldk_domain *domain, uint64_t number, int64_t mine);
const struct pld_cell *pldk__rounds_cell(const struct pldk_domain *domain);
void pldk__rounds_leave(struct pldk_domain *domain);
int pldk__rounds_wait(struct pldk_domain *domain, struct pldk__thread *thread, const struct pldk__call *call,
		      uint64_t deadline_ns);

int64_t pldk__call_digest(const struct pldk__call *call);
/* Of a phase of the call; never 0, which says "I failed". */
static inline int64_t pldk__digest_at(int64_t digest, uint32_t phase)
{
	int64_t at = (digest + (int64_t)phase * 0x9e37) & PLDK__DIGEST_MASK;

	return at ? at : 1;
}
bool pldk__call_is_full(const struct pldk__call *call);
bool pldk__call_same(const struct pldk__call *a, const struct pldk__call *b);
void pldk__ledger_write(struct pldk_domain *domain, uint64_t number, const struct pldk__call *call);
/* Is it in its ledger? Only of near ranks. True is an acquire of what it did before. */
bool pldk__has_announced(const struct pldk_domain *domain, uint32_t rank, uint64_t number);
const struct pldk__call *pldk__ledger_call(const struct pldk_domain *domain, uint64_t number);
int pldk__ledger_compare(struct pldk_domain *domain, const struct pldk__call *call, uint64_t number);
/* Make the cells and ledgers of a domain that was just joined; free what pldk__rendezvous_open() allocated. */
int pldk__rendezvous_open(struct pldk_domain *domain);
void pldk__rendezvous_close(struct pldk_domain *domain);
/*
 * The largest args[index] that a rank gave in the rendezvous that just succeeded: for arguments that are no part of the
 * proof.
 */
int pldk__rendezvous_max(struct pldk_domain *domain, uint32_t index, int64_t *out);
/* Copy a part of a rank's control slab, near or far. Return: 0, or as the provider's far_done() */
int pldk__control_read(struct pldk_domain *domain, uint32_t rank, size_t offset, void *buf, size_t len);

#endif /* _PLDK_ANNOUNCE_H */
