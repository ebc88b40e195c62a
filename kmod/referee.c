// SPDX-License-Identifier: GPL-2.0
/*
 * The referee: proves that a set of processes waits for nobody but itself, and ends those waits with EDEADLK.
 *
 * A process is *blocked* when every thread of it is in an unlimited, not idle wait of some domain, none of them was
 * told to look again, has a signal, or is traced. (A stopped thread is no waiter: the signal ended its wait.) Who may
 * make a predicate true: the rank named by from if the library vouches for it (F_EXACT; with it also from_mask), else
 * all members, whatever a user claims. A rank not joined yet stands for a process that runs.
 * wfg.c computes the largest set of blocked processes that only the set itself could wake.
 *
 * Nobody is stopped while the facts are collected, so they are collected twice. If between the two looks no waiter of
 * the set came, went or was told (wait_gen), nobody joined or ended (pld_topology_gen), each process still had
 * exactly as many threads as waits, and the same predicates failed, then there was one moment at which all of it was
 * true at once; and from that moment nothing in the set can change by itself. A notify done before its author fell
 * asleep shows in the second look, because the author queued itself under the wait_lock that the first look took.
 *
 * One referee at a time. Whoever finds it busy goes to sleep and asks again after a slice of its own (50 ms, doubled
 * up to 5 s): threads that exit, debuggers that detach and domains that differ change the answer without an event.
 */
#include <linux/bitmap.h>
#include <linux/overflow.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "pld.h"
#include "trace.h"
#include "wfg.h"

static DEFINE_MUTEX(pld_referee_lock);
static u64 pld_solve_mark;

/*
 * Held while a verdict is given to all its waits. Who got one passes through before it returns to its caller, which may
 * finalise at once: that would be a fact that takes others out of the set before they are told.
 */
static DEFINE_MUTEX(pld_verdict_lock);

/* All waits and processes together; beyond it no verdict is attempted. */
#define PLD_SOLVE_MAX_BYTES (256u << 20)

/**
 * pld_referee_is_urgent() - does every rank of the domain seem to wait?
 * @domain: domain
 *
 * A cheap hint for a thread that goes to sleep.
 *
 * Return: true when asking at once may give a verdict.
 */
bool pld_referee_is_urgent(const struct pld_domain *domain)
{
	return !READ_ONCE(domain->nabsent) && atomic_read(&domain->nblocked) >= READ_ONCE(domain->nalive);
}

/* One domain of the closure. node_of maps a rank to its process. */
struct pld_solve_domain {
	struct pld_domain *domain;
	u32 *node_of;  /* process of a rank, the absent node, or PLD_RANK_ANY when it has ended */
	u32 *members;  /* all processes that may notify */
	u32 nmembers;
};

struct pld_solve_rank {
	struct pld_rank *rank;
	u32 domain; /* index */
	u32 proc;
	u32 gen;
	u32 first_wait;
	u32 nwaits;
};

/* What one wait depends on, as it was at the first look. */
struct pld_solve_wait {
	unsigned long *failed; /* bit a predicate */
	u32 npreds;
};

struct pld_solve {
	u64 mark;
	u32 topology_gen;
	u32 ndomains, nranks, nprocs, nwaits;
	u32 max_ranks;
	size_t max_waits, max_preds, max_froms, max_longs;
	size_t npreds, nfroms, nlongs;
	struct pld_solve_domain *domains;
	struct pld_solve_rank *ranks;
	struct pld_process **procs; /* valid under pld_topology_lock only */
	struct pid **tgids;         /* by process; not counted: their ranks hold them */
	u32 *nblocked;              /* waits of each process */
	u8 *live;
	struct pld_solve_wait *waits;
	struct pld_wfg_wait *wfg;
	struct pld_wfg_pred *preds;
	u32 *froms;
	unsigned long *longs;
	DECLARE_BITMAP(seen, PLD_MAX_RANKS);
};

static u32 pld_solve_proc_locked(struct pld_solve *s, struct pld_process *process)
{
	if (process->solve_mark != s->mark) {
		process->solve_mark = s->mark;
		process->solve_index = s->nprocs;
		s->tgids[s->nprocs] = process->tgid;
		s->procs[s->nprocs++] = process;
	}
	return process->solve_index;
}

/* Add the domain with its living ranks. -ENOSPC when joins outran the estimate. */
static int pld_solve_add_domain_locked(struct pld_solve *s, struct pld_domain *domain)
{
	u32 i;

	lockdep_assert_held(&pld_topology_lock);
	if (domain->solve_mark == s->mark)
		return 0;
	if (s->ndomains == s->max_ranks)
		return -ENOSPC;
	for (i = 0; i < domain->nranks; i++) {
		struct pld_rank *rank = &domain->ranks[i];

		if (list_empty(&rank->proc_node))
			continue;
		if (s->nranks == s->max_ranks)
			return -ENOSPC;
		rank->solve_mark = s->mark;
		rank->solve_proc = pld_solve_proc_locked(s, rank->process);
		s->ranks[s->nranks++] = (struct pld_solve_rank){
			.rank = rank,
			.domain = s->ndomains,
			.proc = rank->solve_proc,
		};
	}
	/* A living rank's file holds its domain, and ends the rank before it lets go. */
	pld_domain_get(domain);
	domain->solve_mark = s->mark;
	s->domains[s->ndomains++].domain = domain;
	cond_resched();
	return 0;
}

/* All domains of all processes that are in one of them. */
static int pld_solve_close_over(struct pld_solve *s, struct pld_domain *start)
{
	struct pld_rank *rank;
	int ret;
	u32 i;

	mutex_lock(&pld_topology_lock);
	s->topology_gen = pld_topology_gen;
	ret = pld_solve_add_domain_locked(s, start);
	for (i = 0; i < s->nprocs; i++)
		list_for_each_entry(rank, &s->procs[i]->ranks, proc_node) {
			if (ret)
				break;
			ret = pld_solve_add_domain_locked(s, rank->domain);
		}
	mutex_unlock(&pld_topology_lock);
	return ret;
}

/* node_of and members of each domain; one more process stands for the ranks not yet joined. */
static int pld_solve_map_domains(struct pld_solve *s)
{
	const u32 absent = s->nprocs;
	u32 d, r;

	for (d = 0; d < s->ndomains; d++) {
		struct pld_solve_domain *sd = &s->domains[d];
		u32 nranks = sd->domain->nranks;

		sd->node_of = kvmalloc_array(nranks, 2 * sizeof(u32), GFP_KERNEL_ACCOUNT);
		if (!sd->node_of)
			return -ENOMEM;
		sd->members = sd->node_of + nranks;
		for (r = 0; r < nranks; r++) {
			struct pld_rank *rank = &sd->domain->ranks[r];
			u32 state = pld_rank_state(rank);

			if (state == PLD_MEMBER_ABSENT)
				sd->node_of[r] = absent;
			else if (state == PLD_MEMBER_ALIVE && rank->solve_mark == s->mark)
				sd->node_of[r] = rank->solve_proc;
			else if (state == PLD_MEMBER_ALIVE)
				return -EAGAIN; /* joined after the topology was read */
			else
				sd->node_of[r] = PLD_RANK_ANY;
			if (sd->node_of[r] != PLD_RANK_ANY)
				sd->members[sd->nmembers++] = sd->node_of[r];
		}
	}
	return 0;
}

/* Count waits and predicates, so that everything can be allocated before the first look. */
static void pld_solve_measure(struct pld_solve *s)
{
	const struct pld_waiter *w;
	u32 i;

	for (i = 0; i < s->nranks; i++) {
		struct pld_rank *rank = s->ranks[i].rank;
		u32 nranks = rank->domain->nranks;

		spin_lock(&rank->wait_lock);
		list_for_each_entry(w, &rank->waiters, node) {
			s->max_waits++;
			s->max_preds += min(w->npreds, nranks) + 1;
			s->max_froms += nranks;
			s->max_longs += BITS_TO_LONGS(w->npreds);
		}
		spin_unlock(&rank->wait_lock);
		cond_resched();
	}
}

static int pld_solve_alloc_waits(struct pld_solve *s)
{
	size_t bytes = s->max_waits * (sizeof(*s->waits) + sizeof(*s->wfg)) + s->max_preds * sizeof(*s->preds) +
		       s->max_froms * sizeof(*s->froms) + s->max_longs * sizeof(long);

	if (bytes > PLD_SOLVE_MAX_BYTES)
		return -ENOSPC;
	s->waits = kvcalloc(s->max_waits + 1, sizeof(*s->waits), GFP_KERNEL_ACCOUNT);
	s->wfg = kvcalloc(s->max_waits + 1, sizeof(*s->wfg), GFP_KERNEL_ACCOUNT);
	s->preds = kvcalloc(s->max_preds + 1, sizeof(*s->preds), GFP_KERNEL_ACCOUNT);
	s->froms = kvcalloc(s->max_froms + 1, sizeof(*s->froms), GFP_KERNEL_ACCOUNT);
	s->longs = kvcalloc(s->max_longs + 1, sizeof(*s->longs), GFP_KERNEL_ACCOUNT);
	s->nblocked = kvcalloc(s->nprocs + 1, sizeof(*s->nblocked), GFP_KERNEL_ACCOUNT);
	s->live = kvzalloc(s->nprocs + 1, GFP_KERNEL_ACCOUNT);
	if (!s->waits || !s->wfg || !s->preds || !s->froms || !s->longs || !s->nblocked || !s->live)
		return -ENOMEM;
	return 0;
}

static void pld_solve_free(struct pld_solve *s)
{
	u32 i;

	for (i = 0; i < s->ndomains; i++) {
		kvfree(s->domains[i].node_of);
		pld_domain_put(s->domains[i].domain);
	}
	kvfree(s->live);
	kvfree(s->nblocked);
	kvfree(s->longs);
	kvfree(s->froms);
	kvfree(s->preds);
	kvfree(s->wfg);
	kvfree(s->waits);
	kvfree(s->tgids);
	kvfree(s->procs);
	kvfree(s->ranks);
	kvfree(s->domains);
	kvfree(s);
}

static struct pld_solve *pld_solve_alloc(void)
{
	struct pld_solve *s = kvzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);

	if (!s)
		return NULL;
	s->mark = ++pld_solve_mark;
	s->max_ranks = atomic64_read(&pld_counters.members) + 16;
	s->domains = kvcalloc(s->max_ranks, sizeof(*s->domains), GFP_KERNEL_ACCOUNT);
	s->ranks = kvcalloc(s->max_ranks, sizeof(*s->ranks), GFP_KERNEL_ACCOUNT);
	s->procs = kvcalloc(s->max_ranks, sizeof(*s->procs), GFP_KERNEL_ACCOUNT);
	s->tgids = kvcalloc(s->max_ranks, sizeof(*s->tgids), GFP_KERNEL_ACCOUNT);
	if (s->domains && s->ranks && s->procs && s->tgids)
		return s;
	pld_solve_free(s);
	return NULL;
}

/* Does this thread sleep for good, as far as it alone can tell? */
static bool pld_waiter_is_blocked(const struct pld_waiter *w)
{
	u32 rank;

	lockdep_assert_held(&w->rank->wait_lock);
	return pld_waiter_is_unlimited(w) && !w->woken && !w->verdict && !task_sigpending(w->task) &&
	       !READ_ONCE(w->task->ptrace) && !pld_wait_failure(w, &rank);
}

static bool pld_pred_fails(const struct pld_pred *p)
{
	return !pld_cmp_holds(READ_ONCE(p->cell->value), p->cmp, p->expected);
}

static void pld_solve_add_pred(struct pld_solve *s, struct pld_wfg_wait *wfg, bool holds, u32 nfrom, const u32 *from)
{
	struct pld_wfg_pred *p = &s->preds[s->npreds++];

	p->holds = holds;
	p->nfrom = nfrom;
	p->from = from;
	wfg->npreds++;
}

/*
 * What the wait depends on, with equal predicates folded into one: one a vouched-for rank, and one for all predicates
 * that any member (or any of the mask) may satisfy. For a wait for any of them, folding is an OR as well.
 */
static void pld_solve_fold_locked(struct pld_solve *s, const struct pld_solve_domain *sd, const struct pld_waiter *w,
				  struct pld_solve_wait *sw, struct pld_wfg_wait *wfg)
{
	bool exact = w->flags & PLD_WAIT_F_EXACT, others = false, holds = false, fails = false;
	u32 *from = &s->froms[s->nfroms];
	u32 i, r, n = 0;

	bitmap_zero(s->seen, PLD_MAX_RANKS);
	for (i = 0; i < w->npreds; i++) {
		const struct pld_pred *p = &w->preds[i];

		if (!pld_pred_fails(p)) {
			holds = true;
			continue;
		}
		fails = true;
		__set_bit(i, sw->failed);
		if (!exact || p->from == PLD_RANK_ANY) {
			others = true;
		} else if (!test_and_set_bit(p->from, s->seen)) {
			r = sd->node_of[p->from];
			pld_solve_add_pred(s, wfg, false, r != PLD_RANK_ANY, &sd->node_of[p->from]);
		}
	}
	if (others && exact && w->has_mask) {
		for_each_set_bit(r, w->mask, sd->domain->nranks)
			if (sd->node_of[r] != PLD_RANK_ANY)
				from[n++] = sd->node_of[r];
		s->nfroms += n;
		pld_solve_add_pred(s, wfg, false, n, from);
	} else if (others) {
		pld_solve_add_pred(s, wfg, false, sd->nmembers, sd->members);
	}
	/* It is satisfied and about to find out. */
	if (wfg->all ? !fails : holds)
		pld_solve_add_pred(s, wfg, true, 0, NULL), wfg->all = 0;
}

/* First look. -EAGAIN when waits came that were not measured. */
static int pld_solve_collect(struct pld_solve *s)
{
	const struct pld_waiter *w;
	int ret = 0;
	u32 i;

	for (i = 0; i < s->nranks && !ret; i++) {
		struct pld_solve_rank *sr = &s->ranks[i];
		struct pld_rank *rank = sr->rank;

		spin_lock(&rank->wait_lock);
		sr->gen = rank->wait_gen;
		sr->first_wait = s->nwaits;
		list_for_each_entry(w, &rank->waiters, node) {
			struct pld_solve_wait *sw = &s->waits[s->nwaits];
			struct pld_wfg_wait *wfg = &s->wfg[s->nwaits];

			if (!pld_waiter_is_blocked(w))
				continue;
			if (s->nwaits == s->max_waits || s->nlongs + BITS_TO_LONGS(w->npreds) > s->max_longs ||
			    s->npreds + min(w->npreds, rank->domain->nranks) + 1 > s->max_preds ||
			    s->nfroms + rank->domain->nranks > s->max_froms) {
				ret = -EAGAIN;
				break;
			}
			sw->npreds = w->npreds;
			sw->failed = s->longs + s->nlongs;
			s->nlongs += BITS_TO_LONGS(w->npreds);
			wfg->proc = sr->proc;
			wfg->all = !(w->flags & PLD_WAIT_F_ANY);
			wfg->preds = &s->preds[s->npreds];
			pld_solve_fold_locked(s, &s->domains[sr->domain], w, sw, wfg);
			s->nblocked[sr->proc]++;
			s->nwaits++;
			sr->nwaits++;
		}
		spin_unlock(&rank->wait_lock);
		cond_resched();
	}
	return ret;
}

static bool pld_solve_all_threads_wait(struct pld_solve *s, u32 proc)
{
	struct task_struct *task = get_pid_task(s->tgids[proc], PIDTYPE_TGID);
	bool all;

	if (!task)
		return false;
	all = get_nr_threads(task) == s->nblocked[proc];
	put_task_struct(task);
	return all;
}

/* Second look: is what the first one saw of the hopeless still so? */
static bool pld_solve_confirm(struct pld_solve *s)
{
	const struct pld_waiter *w;
	bool same = true;
	u32 i, k;

	for (i = 0; i < s->nprocs && same; i++)
		same = s->live[i] || pld_solve_all_threads_wait(s, i);
	for (i = 0; i < s->nranks && same; i++) {
		struct pld_solve_rank *sr = &s->ranks[i];
		u32 at = sr->first_wait;

		if (s->live[sr->proc])
			continue;
		spin_lock(&sr->rank->wait_lock);
		same = sr->rank->wait_gen == sr->gen;
		if (same)
			list_for_each_entry(w, &sr->rank->waiters, node) {
				same = pld_waiter_is_blocked(w) && at < sr->first_wait + sr->nwaits;
				for (k = 0; same && k < w->npreds; k++)
					same = pld_pred_fails(&w->preds[k]) == test_bit(k, s->waits[at].failed);
				if (!same)
					break;
				at++;
			}
		spin_unlock(&sr->rank->wait_lock);
		cond_resched();
	}
	mutex_lock(&pld_topology_lock);
	same = same && s->topology_gen == pld_topology_gen;
	mutex_unlock(&pld_topology_lock);
	return same;
}

/* Keep the record of the hopeless waits in one domain. */
static int pld_solve_record(struct pld_solve *s, u32 d, u32 number)
{
	struct pld_domain *domain = s->domains[d].domain;
	struct pld_verdict_record *v, *old;
	const struct pld_waiter *w;
	u32 i, n = 0;

	for (i = 0; i < s->nranks; i++)
		if (s->ranks[i].domain == d && !s->live[s->ranks[i].proc])
			n += s->ranks[i].nwaits;
	if (!n)
		return 0;
	v = kvzalloc(struct_size(v, waits, n), GFP_KERNEL_ACCOUNT);
	if (!v)
		return -ENOMEM;
	v->number = number;
	for (i = 0; i < s->nranks; i++) {
		struct pld_solve_rank *sr = &s->ranks[i];

		if (sr->domain != d || s->live[sr->proc])
			continue;
		spin_lock(&sr->rank->wait_lock);
		if (sr->rank->wait_gen == sr->gen)
			list_for_each_entry(w, &sr->rank->waiters, node) {
				if (v->nentries == n)
					break;
				pld_ledger_fill(&v->waits[v->nentries].entry, w);
				v->waits[v->nentries++].tid = get_task_pid(w->task, PIDTYPE_PID);
			}
		spin_unlock(&sr->rank->wait_lock);
	}
	spin_lock(&domain->state_lock);
	old = domain->verdicts[domain->verdict_next];
	domain->verdicts[domain->verdict_next] = v;
	domain->verdict_next = (domain->verdict_next + 1) % PLD_VERDICTS_KEPT;
	spin_unlock(&domain->state_lock);
	pld_verdict_free(old);
	return 0;
}

static void pld_solve_tell(struct pld_solve *s, u32 number)
{
	struct pld_wakes wakes = { .n = 0 };
	struct pld_waiter *w;
	u32 i;

	mutex_lock(&pld_verdict_lock);
	for (i = 0; i < s->nranks; i++) {
		struct pld_solve_rank *sr = &s->ranks[i];

		if (s->live[sr->proc])
			continue;
		spin_lock(&sr->rank->wait_lock);
		/* A signal from outside may have taken one out meanwhile; its next wait is another case. */
		if (sr->rank->wait_gen == sr->gen)
			list_for_each_entry(w, &sr->rank->waiters, node) {
				WRITE_ONCE(w->verdict, number);
				pld_waiter_tell(w, &wakes);
			}
		spin_unlock(&sr->rank->wait_lock);
		pld_wakes_flush(&wakes);
		cond_resched();
	}
	mutex_unlock(&pld_verdict_lock);
}

/**
 * pld_verdict_settle() - a verdict may be acted on only when all whom it concerns have it
 *
 * Context: Process context, of a waiter that has one.
 */
void pld_verdict_settle(void)
{
	mutex_lock(&pld_verdict_lock);
	mutex_unlock(&pld_verdict_lock);
}

static u32 pld_solve_run(struct pld_solve *s, struct pld_domain *start)
{
	u32 i, hopeless;

	if (pld_solve_close_over(s, start) || pld_solve_map_domains(s))
		return 0;
	pld_solve_measure(s);
	if (pld_solve_alloc_waits(s) || pld_solve_collect(s))
		return 0;
	s->live[s->nprocs] = 1; /* the ranks not yet joined */
	for (i = 0; i < s->nprocs; i++)
		s->live[i] = !pld_solve_all_threads_wait(s, i);
	hopeless = pld_wfg_solve(s->live, s->nprocs + 1, s->wfg, s->nwaits);
	return hopeless && pld_solve_confirm(s) ? hopeless : 0;
}

/**
 * pld_referee_ask() - look for a deadlock around a rank that waits, and end it
 * @rank: of the caller, which is queued and runs
 *
 * Context: Process context, may sleep for memory. Does nothing when another thread asks already.
 */
void pld_referee_ask(struct pld_rank *rank)
{
	struct pld_solve *s;
	u32 d, hopeless, number;

	if (!mutex_trylock(&pld_referee_lock))
		return;
	s = pld_solve_alloc();
	if (!s)
		goto out_unlock;
	hopeless = pld_solve_run(s, rank->domain);
	if (hopeless) {
		number = atomic64_inc_return(&pld_counters.verdicts);
		trace_pld_verdict(rank->domain->id, number, hopeless, s->nwaits);
		for (d = 0; d < s->ndomains; d++)
			if (pld_solve_record(s, d, number))
				break; /* without a record the verdict still holds */
		pld_solve_tell(s, number);
	}
	pld_solve_free(s);

out_unlock:
	mutex_unlock(&pld_referee_lock);
}
