// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Waiting: every wait of the library comes through pldk__wait_for(). Look, spin a bounded time, sleep in the provider;
 * and when it cannot succeed any more, say why.
 *
 * What orders what: a value that makes a predicate hold is loaded with acquire (pldk__wait_holds()), or the provider's
 * sleep() did so. The half that keeps wake-ups from being lost is the provider's (kmod/wait.c, "Sleeping and waking");
 * spinning needs none of it, it only looks.
 *
 * How long to spin: a real wake-up costs 25 to 50 us (futex round trip between two cores, measured), so a rank alone
 * on its CPU spins 50 us. Where two ranks share a CPU the other one needs it: yield at once. (Spinning 2 us first made
 * barriers of 4 and 8 ranks on 2 CPUs take twice as long.) Yielding is bounded in time, not in number, and stops when
 * one yield took more than 200 us: then a stranger has the CPU, and giving it away again and again would cost
 * milliseconds.
 */
#include "announce.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define SPIN_ALONE_NS 50000
#define YIELD_NS 200000		/* all yields of one wait */
#define YIELD_LONG_NS 200000	/* one yield that took this long was the last */
#define TURNS_PER_CLOCK 8	/* turns of the spin loop between two looks at the clock */
#define TURNS_PER_EVENTS 32	/* ... and at the status page, whose line changes with every death */
#define WATCH_NS 20000000	/* who spins for longer looks after the others now and then, as sleepers do */
#define LATE_MAX 8		/* ranks that one sentence names */

enum { GIVE_UP = 1 };

/*
 * How long a wait takes, by the clock readings that it makes anyway. A wait that ends within the first turns of the
 * spin loop reads no clock at all: 20 ns would be a third of a round trip.
 */
struct span {
	uint64_t start;
	uint64_t now;
};

/**
 * pldk__now_ns() - CLOCK_MONOTONIC
 */
uint64_t pldk__now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static int64_t default_timeout = INT64_MIN; /* atomic; INT64_MIN: PLDK_TIMEOUT_MS decides */

/**
 * pldk_set_timeout() - see domain.h
 */
int pldk_set_timeout(int64_t timeout_ns)
{
	pldk__store_relaxed(&default_timeout, timeout_ns);
	return 0;
}

/**
 * pldk__far_deadline() - absolute deadline for what waits for a far peer's carrier; see internal.h
 */
uint64_t pldk__far_deadline(int64_t timeout_ns)
{
	const uint64_t deadline_ns = pldk__deadline(timeout_ns ? timeout_ns : PLDK_TIMEOUT_DEFAULT);

	return deadline_ns == PLD_DEADLINE_POLL ? PLD_DEADLINE_NEVER : deadline_ns;
}

/**
 * pldk__deadline() - absolute deadline of a public timeout
 */
uint64_t pldk__deadline(int64_t timeout_ns)
{
	uint64_t now;

	if (timeout_ns == PLDK_TIMEOUT_DEFAULT) {
		timeout_ns = pldk__load_relaxed(&default_timeout);
		if (timeout_ns == PLDK_TIMEOUT_DEFAULT) {
			int64_t ms = pldk__env()->timeout_ms;

			timeout_ns = ms < 0 ? PLDK_FOREVER : PLDK_MS(ms);
		}
	}
	if (timeout_ns == PLDK_TRY)
		return PLD_DEADLINE_POLL;
	if (timeout_ns < 0)
		return PLD_DEADLINE_NEVER;
	now = pldk__now_ns();
	return (uint64_t)timeout_ns > (uint64_t)INT64_MAX - now ? PLD_DEADLINE_NEVER : now + (uint64_t)timeout_ns;
}

/**
 * pldk__wait_holds() - do the predicates hold?
 * @rank: whose cells
 * @wait: seen and out_index are written
 *
 * All at the same moment: the values are read twice, and only equal values count, because a cell may fall again. Cells
 * of the library (F_EXACT) never fall. (That a value went away and came back between the two looks is not noticed:
 * then it held then, too.)
 *
 * Return: true if they hold; then it is an acquire.
 */
bool pldk__wait_holds(uint32_t rank, struct pldk__wait *wait)
{
	struct pldk__pred *pred;
	bool is_any = wait->flags & PLD_WAIT_F_ANY;
	bool holds = !is_any;
	uint32_t i;

	for (i = 0; i < wait->npreds; i++) {
		pred = &wait->preds[i];
		pred->seen = pldk__load_acquire(&pldk__cell_at(pred->map, rank, pred->cell)->value);
		if (pld_cmp_holds(pred->seen, pred->cmp, pred->expected)) {
			if (is_any && !holds) {
				wait->out_index = i;
				holds = true;
			}
		} else if (!is_any) {
			holds = false;
		}
	}
	if (!holds || is_any || wait->npreds < 2 || wait->flags & PLD_WAIT_F_EXACT)
		return holds;
	for (i = 0; i < wait->npreds; i++) {
		pred = &wait->preds[i];
		if (pldk__load_acquire(&pldk__cell_at(pred->map, rank, pred->cell)->value) != pred->seen)
			return false;
	}
	return true;
}

/* Each thread is a link of /proc/self/task. Asked only when everybody else has finalised. */
static bool has_other_threads(void)
{
	const int saved = errno;
	struct stat st;
	bool has = stat("/proc/self/task", &st) < 0 || st.st_nlink > 3;

	errno = saved;
	return has;
}

/* May this predicate become true? 0, or why not and whose fault it is. */
static int judge_pred(const struct pld_status *status, uint32_t rank, const struct pldk__pred *pred, uint32_t *out_rank)
{
	uint32_t state;
	uint32_t last = PLD_RANK_ANY;
	uint32_t r;

	if (pred->from != PLD_RANK_ANY) {
		state = pldk__load_acquire(&pldk__member_of(status, pred->from)->state);
		if (state < PLD_MEMBER_FINALISED)
			return 0;
		*out_rank = pred->from;
		return state == PLD_MEMBER_FINALISED ? -ESHUTDOWN : -EOWNERDEAD;
	}
	if (pldk__load_acquire(&status->dead)) {
		for (r = 0; r < status->nranks; r++) {
			state = pldk__load_acquire(&pldk__member_of(status, r)->state);
			if (r != rank && state > PLD_MEMBER_FINALISED) {
				*out_rank = r;
				return -EOWNERDEAD;
			}
		}
	}
	for (r = 0; r < status->nranks; r++) {
		if (r == rank)
			continue;
		if (pldk__load_acquire(&pldk__member_of(status, r)->state) < PLD_MEMBER_FINALISED)
			return 0;
		last = r;
	}
	/* All others have finalised: another thread of this very process may notify. */
	if (last == PLD_RANK_ANY || has_other_threads())
		return 0;
	*out_rank = last;
	return -ESHUTDOWN;
}

/**
 * pldk__wait_judge() - may this unsatisfied wait go on? See provider.h
 *
 * The predicates' seen are those of a pldk__wait_holds() just before. A rank may have notified right before it died:
 * the caller looks at the cells once more after a verdict here.
 */
int pldk__wait_judge(const struct pld_status *status, uint32_t rank, struct pldk__wait *wait)
{
	bool is_any = wait->flags & PLD_WAIT_F_ANY;
	uint32_t shut = PLD_RANK_ANY;
	uint32_t gone = PLD_RANK_ANY;
	bool may_come = false;
	uint32_t i;
	int ret;

	if (pldk__unlikely(pldk__load_acquire(&status->poison))) {
		wait->out_rank = pldk__load_relaxed(&status->poison_rank);
		return -ECANCELED;
	}
	if (pldk__likely(!pldk__load_acquire(&status->dead) && !pldk__load_acquire(&status->finalised)))
		return 0;
	for (i = 0; i < wait->npreds; i++) {
		const struct pldk__pred *pred = &wait->preds[i];

		if (pld_cmp_holds(pred->seen, pred->cmp, pred->expected))
			continue;
		ret = judge_pred(status, rank, pred, &gone);
		if (ret == -EOWNERDEAD) {
			wait->out_rank = gone;
			return ret;
		}
		if (!ret)
			may_come = true;
		else if (shut == PLD_RANK_ANY)
			shut = gone;
	}
	if (shut == PLD_RANK_ANY || (is_any && may_come))
		return 0;
	wait->out_rank = shut;
	return -ESHUTDOWN;
}

/* Judge, and believe a bad verdict only if the cells still say no. */
static int judge(struct pldk_domain *domain, struct pldk__wait *wait)
{
	int ret = pldk__wait_judge(domain->pd->status, domain->rank, wait);

	return ret && pldk__wait_holds(domain->rank, wait) ? 0 : ret;
}

/* The predicate to look at while spinning: the first that was not there at the last look. */
static const struct pldk__pred *first_missing(const struct pldk__wait *wait)
{
	uint32_t i;

	for (i = 0; i + 1 < wait->npreds; i++) {
		if (!pld_cmp_holds(wait->preds[i].seen, wait->preds[i].cmp, wait->preds[i].expected))
			break;
	}
	return &wait->preds[i];
}

/*
 * Look at the cells in a loop until they hold (0), a deadline or a verdict ends the wait (errno), or the time for
 * spinning is over (GIVE_UP). Turns cost a load of one cell: the others are looked at when that one is there.
 */
static int spin(struct pldk_domain *domain, struct pldk__wait *wait, uint64_t spin_ns, struct span *span)
{
	const struct pld_status *status = domain->pd->status;
	uint32_t events = pldk__load_acquire(&status->events);
	const struct pldk__pred *pred;
	bool is_any = wait->flags & PLD_WAIT_F_ANY;
	const struct pld_cell *cell;
	uint64_t watched = span->start;
	uint32_t turn;
	uint32_t now_events;
	int ret;

	ret = judge(domain, wait);
	if (ret || pldk__wait_holds(domain->rank, wait))
		return ret;
	pred = first_missing(wait);
	cell = pldk__cell_at(pred->map, domain->rank, pred->cell);
	for (turn = 1;; turn++) {
		if (is_any || pld_cmp_holds(pldk__load_relaxed(&cell->value), pred->cmp, pred->expected)) {
			if (pldk__wait_holds(domain->rank, wait))
				return 0;
			if (!is_any) {
				pred = first_missing(wait);
				cell = pldk__cell_at(pred->map, domain->rank, pred->cell);
			}
		}
		pldk__pause();
		if (turn % TURNS_PER_CLOCK)
			continue;
		if (!(turn % TURNS_PER_EVENTS)) {
			now_events = pldk__load_acquire(&status->events);
			if (pldk__unlikely(now_events != events)) {
				events = now_events;
				ret = pldk__wait_holds(domain->rank, wait) ? 0 : judge(domain, wait);
				if (ret || pldk__wait_holds(domain->rank, wait))
					return ret;
			}
		}
		span->now = pldk__now_ns();
		if (!span->start)
			watched = span->start = span->now;
		if (pldk__unlikely(span->now - watched > WATCH_NS) && domain->ops->watch) {
			domain->ops->watch(domain->pd);
			watched = span->now;
		}
		if (span->now >= wait->deadline_ns)
			return pldk__wait_holds(domain->rank, wait) ? 0 : -ETIMEDOUT;
		if (span->now - span->start >= spin_ns)
			return GIVE_UP;
	}
}

/* Give the CPU to the rank that shares it. Return: as spin(). */
static int yield(struct pldk_domain *domain, struct pldk__wait *wait, struct span *span)
{
	const struct pld_status *status = domain->pd->status;
	uint32_t events = pldk__load_acquire(&status->events);
	uint64_t before;
	int ret;

	ret = judge(domain, wait);
	if (ret || pldk__wait_holds(domain->rank, wait))
		return ret;
	before = pldk__now_ns();
	span->start = before;
	span->now = before;
	do {
		sched_yield();
		if (pldk__wait_holds(domain->rank, wait))
			return 0;
		if (pldk__unlikely(pldk__load_acquire(&status->events) != events)) {
			events = pldk__load_acquire(&status->events);
			ret = judge(domain, wait);
			if (ret || pldk__wait_holds(domain->rank, wait))
				return ret;
		}
		span->now = pldk__now_ns();
		if (span->now >= wait->deadline_ns)
			return -ETIMEDOUT;
		if (span->now - before > YIELD_LONG_NS)
			break;
		before = span->now;
	} while (span->now - span->start < YIELD_NS);
	return GIVE_UP;
}

static void explain_deadlock(struct pldk_domain *domain, const struct pldk__wait *wait, const char *op,
			     struct pldk__text *text);

static int sleep_until(struct pldk_domain *domain, struct pldk__wait *wait, const struct pldk__wake *wakes,
		       uint32_t nwakes, const char *op)
{
	struct pldk__text text = { 0 };
	int ret;

	ret = domain->ops->sleep(domain->pd, wait, wakes, nwakes);
	if (ret != -EDEADLK)
		return ret;
	if (!domain->is_deadlock_logged_only)
		return -EDEADLK;
	/* PLDK_DEADLOCK=report: tell, and wait on as one who is never part of a deadlock. */
	explain_deadlock(domain, wait, op, &text);
	pldk__log(PLDK_LOG_ERROR, "%s", text.text);
	wait->flags |= PLD_WAIT_F_IDLE;
	return domain->ops->sleep(domain->pd, wait, NULL, 0);
}

/*
 * Sentences
 */

static const char *const cmp_text[] = { "==", ">=", "!=", ">", "<=", "<" };

/* "cell 3 of window 2 \"grads\"" */
static void cell_text(struct pldk__text *text, struct pldk_domain *domain, uint32_t id, uint32_t cell)
{
	const struct pldk_window *window = pldk__window_by_id(domain, id);
	char buf[80];

	if (window)
		pldk__text_add(text, "cell %u of %s", cell, pldk__window_text(window, buf, sizeof(buf)));
	else
		pldk__text_add(text, "cell %u of window %u", cell, id);
}

static const char *run_text(int state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "blocked in the kernel";
	case 'T':
		return "stopped";
	case 't':
		return "traced";
	case 'Z':
		return "zombie";
	default:
		return NULL;
	}
}

/**
 * pldk__rank_text() - "rank 3 (pid 4123, stopped, last: put #16, 9.2 s ago)"
 */
void pldk__rank_text(struct pldk__text *text, struct pldk_domain *domain, uint32_t rank)
{
	const struct pld_member *member = pldk__member_of(domain->pd->status, rank);
	uint32_t state = pldk__load_acquire(&member->state);
	const char *run;
	char buf[80];

	pldk__text_add(text, "rank %u (", rank);
	if (domain->world_ranks)
		pldk__text_add(text, "rank %u of the world, ", domain->world_ranks[rank]);
	if (state == PLD_MEMBER_ABSENT) {
		pldk__text_add(text, "not joined)");
		return;
	}
	pldk__text_add(text, "pid %u", pldk__pid_of(domain, rank));
	if (state != PLD_MEMBER_ALIVE) {
		pldk__text_add(text, ", %s)", pldk__member_how(member, buf, sizeof(buf)));
		return;
	}
	run = run_text(domain->ops->run_state(domain->pd, rank));
	if (run)
		pldk__text_add(text, ", %s", run);
	if (*pldk__recorder_last(domain, rank, buf, sizeof(buf)))
		pldk__text_add(text, ", last: %s", buf);
	pldk__text_add(text, ")");
}

/* Who would notify this cell: named by the caller, or its row in a window whose first dimension is the world. */
static uint32_t awaited_rank(struct pldk_domain *domain, const struct pldk__pred *pred)
{
	const struct pldk_window *window;
	uint32_t row;

	if (pred->from != PLD_RANK_ANY)
		return pred->from;
	window = pldk__window_of(domain, pred->map);
	if (!window || !window->ndim || window->shape[0] != domain->nranks)
		return PLD_RANK_ANY;
	row = pred->cell / (window->ncells / domain->nranks);
	return row == domain->rank ? PLD_RANK_ANY : row;
}

static void explain_pred(struct pldk__text *text, struct pldk_domain *domain, const struct pldk__pred *pred)
{
	const struct pld_cell *cell = pldk__cell_at(pred->map, domain->rank, pred->cell);
	uint64_t provenance = pldk__load_relaxed(&cell->provenance);
	bool is_set;

	cell_text(text, domain, pred->map->id, pred->cell);
	pldk__text_add(text, " %s %" PRId64 ", seen %" PRId64, cmp_text[pred->cmp], pred->expected, pred->seen);
	if (!PLD_PROVENANCE_SEQ(provenance)) {
		pldk__text_add(text, " (never notified)");
		return;
	}
	is_set = PLD_PROVENANCE_OP(provenance) == PLD_NOTIFY_SET;
	pldk__text_add(text, " (last of %u notifies: %s by rank %u)", PLD_PROVENANCE_SEQ(provenance),
		       is_set ? "SET" : "ADD", PLD_PROVENANCE_RANK(provenance));
	if (is_set && PLD_PROVENANCE_SEQ(provenance) > 1 && pred->seen < pred->expected)
		pldk__text_add(text, "; each SET replaces the one before: use PLDK_NOTIFY_ADD where several notifies count");
}

/* Where announcements go in rounds, a cell tells of many ranks: who is late is in the ledgers. */
static uint32_t late_in_rounds(const struct pldk_domain *domain, uint64_t number, uint8_t *named)
{
	uint32_t nlate = 0;

	for (uint32_t rank = 0; rank < domain->nranks; rank++) {
		named[rank] = rank != domain->rank && !pldk__has_announced(domain, rank, number);
		nlate += named[rank];
	}
	return nlate;
}

/* Name the ranks that the missing predicates wait for, as far as they are known. */
static void explain_late(struct pldk__text *text, struct pldk_domain *domain, const struct pldk__wait *wait)
{
	bool is_rendezvous = wait->preds[0].map == domain->epochs;
	uint8_t named[PLDK_MAX_RANKS] = { 0 };
	uint32_t nlate = 0;
	uint32_t shown = 0;
	uint32_t rank;
	uint32_t i;

	if (is_rendezvous && domain->nrounds)
		nlate = late_in_rounds(domain, (uint64_t)wait->preds[0].expected >> PLDK__DIGEST_BITS, named);
	for (i = nlate ? wait->npreds : 0; i < wait->npreds; i++) {
		rank = pld_cmp_holds(wait->preds[i].seen, wait->preds[i].cmp, wait->preds[i].expected) ?
			       PLD_RANK_ANY :
			       awaited_rank(domain, &wait->preds[i]);
		if (rank == PLD_RANK_ANY || named[rank])
			continue;
		named[rank] = 1;
		nlate++;
	}
	if (!nlate) {
		/* Nothing says who it should be: then all that may notify. */
		for (rank = 0; rank < domain->nranks; rank++) {
			named[rank] = rank != domain->rank &&
				      pldk__load_acquire(&pldk__member_of(domain->pd->status, rank)->state) <
					      PLD_MEMBER_FINALISED;
			nlate += named[rank];
		}
		if (!nlate)
			return;
		pldk__text_add(text, "; may still notify: ");
	} else if (is_rendezvous)
		pldk__text_add(text, ": %u of %u ranks have not arrived: ", nlate, domain->nranks);
	else
		pldk__text_add(text, "; late: ");
	for (rank = 0; rank < domain->nranks; rank++) {
		if (!named[rank])
			continue;
		if (shown == LATE_MAX) {
			pldk__text_add(text, " and %u more", nlate - shown);
			break;
		}
		pldk__text_add(text, "%s", shown++ ? ", " : "");
		pldk__rank_text(text, domain, rank);
	}
}

static void explain_deadlock(struct pldk_domain *domain, const struct pldk__wait *wait, const char *op,
			     struct pldk__text *text)
{
	struct pld_ledger_entry entries[LATE_MAX];
	uint32_t in_collective = 0;
	uint32_t n = LATE_MAX;
	char buf[80];
	uint32_t i;

	pldk__text_add(text, "rank %u: %s: deadlock, nobody is left who could notify", domain->rank, op);
	if (domain->ops->verdict(domain->pd, wait->out_verdict, entries, &n))
		n = 0;
	for (i = 0; i < n && i < LATE_MAX; i++) {
		const struct pld_ledger_entry *e = &entries[i];
		bool is_ours = e->rank < domain->nranks;

		pldk__text_add(text, "%s rank %u", i ? ";" : ":", e->rank);
		if (is_ours)
			pldk__text_add(text, " (pid %u)", pldk__pid_of(domain, e->rank));
		if (e->window_id == PLD_WINDOW_ID_SYSTEM + PLDK__SYSTEM_EPOCHS) {
			in_collective++;
			pldk__text_add(text, " waits in call %" PRId64 " of its domain for rank %u", (int64_t)e->expected >> 16,
				       e->from);
		} else {
			pldk__text_add(text, " waits for ");
			cell_text(text, domain, e->window_id, e->cell);
			pldk__text_add(text, " %s %" PRId64 " and sees %" PRId64,
				       e->cmp < PLDK__ARRAY_SIZE(cmp_text) ? cmp_text[e->cmp] : "?", (int64_t)e->expected,
				       (int64_t)e->value);
			if (e->from != PLD_RANK_ANY)
				pldk__text_add(text, ", needs rank %u", e->from);
		}
		if (is_ours && e->site)
			pldk__text_add(text, " (%s)", pldk__recorder_site_text(domain, e->rank, e->site, buf, sizeof(buf)));
	}
	if (n > LATE_MAX)
		pldk__text_add(text, "; and %u more", n - LATE_MAX);
	if (domain->nstarted)
		pldk__text_add(text, ". This rank has %u collectives started: they move in handle_wait and handle_test only, and the others may need them",
			       domain->nstarted);
	else if (!in_collective)
		pldk__text_add(text, ". A notify is missing, went to another rank or cell, or comes after a wait");
	else if (in_collective < n)
		pldk__text_add(text, ". A call of the collective is missing on the rank that waits for a cell, or its notify");
}

/* Whom a wait has met may have given up itself, because of another one's death: that is the cause. */
static void explain_first_death(struct pldk__text *text, struct pldk_domain *domain, int err, uint32_t met)
{
	const uint32_t first = pldk__load_relaxed(&domain->pd->status->first_dead);

	if (err != -EOWNERDEAD || first >= domain->nranks || first == met)
		return;
	pldk__text_add(text, ". The first to die was ");
	pldk__rank_text(text, domain, first);
}

static int explain(struct pldk_domain *domain, struct pldk__wait *wait, int err, uint64_t took_ns, const char *op)
{
	const struct pldk__pred *pred = wait->preds;
	struct pldk__text text = { 0 };
	const struct pld_member *member;
	uint32_t missing = 0;
	char how[80];
	uint32_t i;

	if (err == -EAGAIN)
		return pldk__fail_text(err, "the condition does not hold now (PLDK_TRY)");
	if (err == -ECANCELED && pldk__load_acquire(&domain->pd->status->poison))
		return pldk__fail_poison(domain, op);
	if (err == -EDEADLK) {
		explain_deadlock(domain, wait, op, &text);
		return pldk__fail(err, "%s", text.text);
	}
	for (i = wait->npreds; i-- > 0;) {
		if (pld_cmp_holds(wait->preds[i].seen, wait->preds[i].cmp, wait->preds[i].expected))
			continue;
		missing++;
		pred = &wait->preds[i];
	}
	if (pred->map == domain->epochs) {
		pldk__text_add(&text, "rank %u: %s (call %" PRId64 " of this domain)", domain->rank, op, pred->expected >> 16);
	} else {
		pldk__text_add(&text, "rank %u: %s for ", domain->rank, op);
		explain_pred(&text, domain, pred);
		if (missing > 1)
			pldk__text_add(&text, " and %u more", missing - 1);
	}
	switch (err) {
	case -ETIMEDOUT:
		if (took_ns < 1000000)
			pldk__text_add(&text, ": timed out after %" PRIu64 " ns (timeouts are nanoseconds: PLDK_MS(n), PLDK_SEC(n))",
				       took_ns);
		else
			pldk__text_add(&text, ": timed out after %.3f s", (double)took_ns / 1e9);
		explain_late(&text, domain, wait);
		break;
	case -EOWNERDEAD:
	case -ESHUTDOWN:
		if (wait->out_rank >= domain->nranks) {
			/* No rank but what carries far ranks' bytes: the provider has named it. */
			pldk__text_add(&text, ": %s", pldk_last_error());
			break;
		}
		member = pldk__member_of(domain->pd->status, wait->out_rank);
		if (err == -ESHUTDOWN && pred->from == PLD_RANK_ANY)
			pldk__text_add(&text, ": all who could notify have finalised, rank %u (pid %u) too", wait->out_rank,
				       pldk__pid_of(domain, wait->out_rank));
		else if (!pldk__pid_of(domain, wait->out_rank))
			pldk__text_add(&text, ": rank %u %s, before it joined", wait->out_rank,
				       pldk__member_how(member, how, sizeof(how)));
		else
			pldk__text_add(&text, ": rank %u (pid %u) %s", wait->out_rank, pldk__pid_of(domain, wait->out_rank),
				       pldk__member_how(member, how, sizeof(how)));
		explain_first_death(&text, domain, err, wait->out_rank);
		break;
	case -EINTR:
		pldk__text_add(&text, ": a POSIX signal handler ran; call again to go on waiting");
		break;
	case -ECANCELED:
		pldk__text_add(&text, ": the window was destroyed or the domain left by another thread");
		break;
	default:
		pldk__text_add(&text, ": %s", pldk_strerror(err));
	}
	return pldk__fail(err, "%s", text.text);
}

static int wait_slow(struct pldk_domain *domain, struct pldk__thread *thread, struct pldk__wait *wait,
		     const struct pldk__wake *wakes, uint32_t nwakes, const char *op)
{
	uint64_t before = pldk__load_relaxed(&thread->line->now);
	uint64_t spin_ns = (uint64_t)domain->spin_ns;
	struct span span = { 0, 0 };
	bool adapts = domain->spin_ns < 0;
	int ret = GIVE_UP;

	if (adapts)
		spin_ns = SPIN_ALONE_NS;
	/*
	 * Who sleeps needs a CPU to wake up on. Where that may be this one, spinning first would be vain: wake them and
	 * sleep in one system call. Else wake them now and spin.
	 */
	if (nwakes && !(domain->shares_cpu && adapts) && spin_ns) {
		domain->ops->wake(domain->pd, wakes, nwakes);
		nwakes = 0;
	}
	if (!nwakes && spin_ns) {
		pldk__state(thread, PLDK__STATE_WAIT_SPIN);
		if (adapts && domain->shares_cpu)
			ret = yield(domain, wait, &span);
		else
			ret = spin(domain, wait, spin_ns, &span);
		if (ret != GIVE_UP)
			pldk__store_relaxed(&thread->line->spins, pldk__load_relaxed(&thread->line->spins) + 1);
	}
	if (ret == GIVE_UP) {
		pldk__state(thread, PLDK__STATE_WAIT_SLEEP);
		if (!span.start)
			span.start = pldk__now_ns();
		ret = sleep_until(domain, wait, wakes, nwakes, op);
		pldk__store_relaxed(&thread->line->sleeps, pldk__load_relaxed(&thread->line->sleeps) + 1);
		span.now = pldk__now_ns();
	}
	pldk__store_relaxed(&thread->line->now, before);
	thread->waited_ns = span.now - span.start + 1;
	return ret ? explain(domain, wait, ret, thread->waited_ns, op) : 0;
}

/**
 * pldk__wait_for() - every wait of the library; see internal.h
 */
int pldk__wait_for(struct pldk_domain *domain, struct pldk__thread *thread, struct pldk__wait *wait,
		   const struct pldk__wake *wakes, uint32_t nwakes, const char *op)
{
	int ret;

	thread->waited_ns = 0;
	if (pldk__likely(pldk__wait_holds(domain->rank, wait))) {
		if (nwakes)
			domain->ops->wake(domain->pd, wakes, nwakes);
		return 0;
	}
	wait->flags |= domain->wait_flags;
	wait->out_rank = PLD_RANK_ANY;
	if (wait->deadline_ns != PLD_DEADLINE_POLL)
		return wait_slow(domain, thread, wait, wakes, nwakes, op);
	if (nwakes)
		domain->ops->wake(domain->pd, wakes, nwakes);
	ret = judge(domain, wait);
	if (!ret && pldk__wait_holds(domain->rank, wait))
		return 0;
	return explain(domain, wait, ret ? ret : -EAGAIN, 0, op);
}
