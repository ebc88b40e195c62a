// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting: queue, sleep, be told, look again. What callers ask for is checked in wait_call.c, who is hopeless is
 * decided in referee.c.
 */

/**
 * DOC: Sleeping and waking
 *
 * A cell's value is changed by its notifiers with an atomic read-modify-write, in user space or in
 * pld_notify_run(). A rank waits for predicates over its own cells. A waiter first makes itself known, then looks at
 * the values; a notifier first changes the value, then looks whether somebody is known. At least one of them sees
 * the other.
 *
 * What goes wrong if either order is lost::
 *
 *	waiter                                  notifier
 *	------                                  --------
 *	value is old: decide to sleep
 *	                                        value = new
 *	                                        nobody is known: no wake-up
 *	make itself known
 *	sleep for ever
 *
 * What is done::
 *
 *	waiter (pld_wait_sleep)                 notifier (user space, or pld_notify_run)
 *	-----------------------                 ----------------------------------------
 *	lock wait_lock
 *	  queue; nsleepers++, cell->sleepers
 *	unlock
 *	smp_mb()                        (A)     RMW value, full barrier         (B)
 *	read value                              read sleepers
 *	  holds: leave                            not zero: enter the kernel, lock wait_lock,
 *	  else: schedule() until told                 if the wait now holds: tell the waiter
 *
 * As a litmus test (store buffering): X = value, Y = sleepers, both 0 at first::
 *
 *	P0: Y = 1; smp_mb(); r0 = X;            P1: X = 1; smp_mb(); r1 = Y;
 *	forbidden: r0 == 0 && r1 == 0
 *
 * (A) and (B) are both needed: on x86 a store may pass a later load, and on arm64 anything may.
 *
 * Telling happens under wait_lock, and the waiter withdraws its mark (woken) under wait_lock before it looks again.
 * So a notifier that finds the mark set may rely on a later look, and one that finds it clear sets it. A wait for
 * *all* predicates is told only when all hold: notifiers of one rank take turns on its wait_lock after they changed
 * their cells, so the last of them sees every change. The mark also tells the referee that this thread runs.
 *
 * The same wait_lock orders deaths, poison, destroy and verdicts: they set their fact, then walk the waiters; a waiter
 * queues itself, then checks the facts.
 *
 * What a library must do. Before a wait: nothing, the kernel looks at the value itself; it may spin on the value with
 * acquire loads first. To notify in user space: write provenance, change value by a sequentially consistent (x86:
 * lock-prefixed; arm64: with dmb ish after it) read-modify-write, load sleepers; when it is not zero, CELL_NOTIFY with
 * PLD_NOTIFY_WAKE. A plain store to value, or a load of sleepers before the change, loses wake-ups. A member that
 * scribbles on sleepers can lose a wake-up of its own domain until the next waiter of the cell comes: the kernel
 * writes its own count again then, and its own notifies never read that word.
 */

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "pld.h"
#include "trace.h"

/* The sleeper's own slices, after which it asks the referee: 50 ms, doubled up to 5 s. */
#define PLD_SLICE_FIRST_NS (50 * NSEC_PER_MSEC)
#define PLD_SLICE_LAST_NS (5 * NSEC_PER_SEC)
#define PLD_TIMER_SLACK_NS (20 * NSEC_PER_USEC)

/**
 * pld_wakes_flush() - wake whom pld_waiter_tell() collected
 * @wakes: collected tasks; empty afterwards
 *
 * Context: No wait_lock held, except when the collection ran full.
 */
void pld_wakes_flush(struct pld_wakes *wakes)
{
	u32 i;

	for (i = 0; i < wakes->n; i++) {
		wake_up_process(wakes->tasks[i]);
		put_task_struct(wakes->tasks[i]);
	}
	wakes->n = 0;
}

/**
 * pld_waiter_is_unlimited() - can only another rank end this wait?
 * @w: waiter
 *
 * Return: false for timed waits and idle workers: they never belong to a deadlock.
 */
bool pld_waiter_is_unlimited(const struct pld_waiter *w)
{
	return w->deadline_ns == PLD_DEADLINE_NEVER && !(w->flags & PLD_WAIT_F_IDLE);
}

static void pld_waiter_count(struct pld_waiter *w)
{
	struct pld_rank *rank = w->rank;

	lockdep_assert_held(&rank->wait_lock);
	if (w->counted || !pld_waiter_is_unlimited(w))
		return;
	w->counted = true;
	if (!rank->nunlimited++)
		atomic_inc(&rank->domain->nblocked);
}

static void pld_waiter_uncount(struct pld_waiter *w)
{
	struct pld_rank *rank = w->rank;

	lockdep_assert_held(&rank->wait_lock);
	if (!w->counted)
		return;
	w->counted = false;
	if (!--rank->nunlimited)
		atomic_dec(&rank->domain->nblocked);
}

/**
 * pld_waiter_tell() - make a waiter look again
 * @w: queued waiter
 * @wakes: where its task is collected
 *
 * Context: w->rank->wait_lock held; the caller flushes @wakes after dropping it. Flushes it when it is full.
 */
void pld_waiter_tell(struct pld_waiter *w, struct pld_wakes *wakes)
{
	lockdep_assert_held(&w->rank->wait_lock);
	if (w->woken)
		return;
	WRITE_ONCE(w->woken, true);
	w->rank->wait_gen++;
	pld_waiter_uncount(w);
	if (wakes->n == ARRAY_SIZE(wakes->tasks))
		pld_wakes_flush(wakes); /* full: waking under the lock is only slower */
	get_task_struct(w->task);
	wakes->tasks[wakes->n++] = w->task;
	trace_pld_wait_wake(w->rank, task_pid_nr(w->task));
}

static bool pld_pred_holds(const struct pld_pred *p)
{
	/* Acquire: pairs with the notifier's read-modify-write, so its earlier stores are visible to the waiter. */
	return pld_cmp_holds(atomic64_read_acquire((atomic64_t *)&p->cell->value), p->cmp, p->expected);
}

/* Did the change of this cell complete the wait? */
static bool pld_waiter_completed(struct pld_waiter *w, const struct pld_window *win, u32 cell)
{
	u32 i, at;

	lockdep_assert_held(&w->rank->wait_lock);
	if (w->flags & PLD_WAIT_F_ANY) {
		for (i = 0; i < w->npreds; i++)
			if (w->preds[i].cellno == cell && w->preds[i].win == win && pld_pred_holds(&w->preds[i]))
				return true;
		return false;
	}
	/* Start where the last notifier stopped: most notifies look at one predicate. */
	for (i = 0, at = w->hint; i < w->npreds; i++) {
		if (!pld_pred_holds(&w->preds[at])) {
			w->hint = at;
			return false;
		}
		if (++at == w->npreds)
			at = 0;
	}
	return true;
}

/**
 * pld_wait_wake_cell() - a cell changed: tell the waiters whose wait is now satisfied
 * @win: its window
 * @rank: its owner, checked
 * @cell: its index
 * @wakes: where tasks are collected
 *
 * Context: Takes wait_lock of @rank.
 */
void pld_wait_wake_cell(struct pld_window *win, u32 rank, u32 cell, struct pld_wakes *wakes)
{
	struct pld_rank *owner = &win->domain->ranks[rank];
	struct pld_waiter *w;

	spin_lock(&owner->wait_lock);
	list_for_each_entry(w, &owner->waiters, node)
		if (!w->woken && pld_waiter_completed(w, win, cell))
			pld_waiter_tell(w, wakes);
	spin_unlock(&owner->wait_lock);
}

/**
 * pld_wait_wake_domain() - a fact about members or poison changed: everybody looks again
 * @domain: domain
 *
 * Context: Process context. Takes all wait_locks of the domain, one after the other.
 */
void pld_wait_wake_domain(struct pld_domain *domain)
{
	struct pld_wakes wakes = { .n = 0 };
	struct pld_waiter *w;
	u32 i;

	for (i = 0; i < domain->nranks; i++) {
		struct pld_rank *rank = &domain->ranks[i];

		spin_lock(&rank->wait_lock);
		list_for_each_entry(w, &rank->waiters, node)
			pld_waiter_tell(w, &wakes);
		spin_unlock(&rank->wait_lock);
		pld_wakes_flush(&wakes);
		cond_resched();
	}
}

static bool pld_waiter_uses(const struct pld_waiter *w, const struct pld_window *win)
{
	u32 i;

	for (i = 0; i < w->npreds; i++)
		if (w->preds[i].win == win)
			return true;
	return false;
}

/**
 * pld_wait_uses_locked() - does a waiter of the rank sleep in this window?
 * @rank: rank
 * @win: window
 *
 * Context: rank->wait_lock held.
 * Return: true if so.
 */
bool pld_wait_uses_locked(const struct pld_rank *rank, const struct pld_window *win)
{
	const struct pld_waiter *w;

	lockdep_assert_held(&rank->wait_lock);
	list_for_each_entry(w, &rank->waiters, node)
		if (pld_waiter_uses(w, win))
			return true;
	return false;
}

/**
 * pld_wait_cancel() - end waits with ECANCELED
 * @rank: whose
 * @win: those in this window, or NULL for all
 *
 * Context: Process context. Takes rank->wait_lock.
 */
void pld_wait_cancel(struct pld_rank *rank, const struct pld_window *win)
{
	struct pld_wakes wakes = { .n = 0 };
	struct pld_waiter *w;

	spin_lock(&rank->wait_lock);
	list_for_each_entry(w, &rank->waiters, node) {
		if (win && !pld_waiter_uses(w, win))
			continue;
		w->cancelled = true;
		pld_waiter_tell(w, &wakes);
	}
	spin_unlock(&rank->wait_lock);
	pld_wakes_flush(&wakes);
}

/* Values and verdict of the predicates now. @out_index: with F_ANY the first that holds, else the first that fails. */
static bool pld_wait_look(struct pld_waiter *w, u32 *out_index)
{
	bool any = w->flags & PLD_WAIT_F_ANY, found = !any;
	u32 i;

	for (i = 0; i < w->npreds; i++) {
		struct pld_pred *p = &w->preds[i];

		p->seen = atomic64_read_acquire((atomic64_t *)&p->cell->value); /* as in pld_pred_holds() */
		if (pld_cmp_holds(p->seen, p->cmp, p->expected) == any && found != any) {
			found = any;
			*out_index = i;
		}
	}
	return found;
}

/* Of the ranks that may notify predicates which name nobody: a dead one, or PLD_RANK_ANY. */
static u32 pld_wait_dead(const struct pld_waiter *w)
{
	const struct pld_domain *domain = w->rank->domain;
	u32 r;

	if (!w->has_mask)
		return READ_ONCE(domain->first_dead);
	for_each_set_bit(r, w->mask, domain->nranks)
		if (pld_rank_state(&domain->ranks[r]) > PLD_MEMBER_FINALISED)
			return r;
	return PLD_RANK_ANY;
}

/* One of the ranks that may notify predicates which name nobody if all have finalised, else PLD_RANK_ANY. */
static u32 pld_wait_shut(const struct pld_waiter *w)
{
	const struct pld_domain *domain = w->rank->domain;
	u32 r, shut = PLD_RANK_ANY;

	for (r = 0; r < domain->nranks; r++) {
		if (w->has_mask && !test_bit(r, w->mask))
			continue;
		/* The waiter itself counts only if it has another thread to notify it. */
		if (r == w->rank->index && !w->has_mask && get_nr_threads(w->task) == 1)
			continue;
		if (pld_rank_state(&domain->ranks[r]) != PLD_MEMBER_FINALISED)
			return PLD_RANK_ANY;
		if (shut == PLD_RANK_ANY)
			shut = r;
	}
	return shut;
}

/**
 * pld_wait_failure() - why an unsatisfied wait must not go on
 * @w: waiter
 * @out_rank: rank that is gone, for EOWNERDEAD and ESHUTDOWN
 *
 * Also asked by the referee: a waiter that is about to leave is no part of a deadlock.
 *
 * Context: The waiter itself, or rank->wait_lock held.
 * Return: 0 to go on, -ECANCELED, -EOWNERDEAD, -ESHUTDOWN.
 */
int pld_wait_failure(const struct pld_waiter *w, u32 *out_rank)
{
	const struct pld_domain *domain = w->rank->domain;
	bool any = w->flags & PLD_WAIT_F_ANY, all_shut = true;
	u32 ndead, nfinalised, dead, shut, state, i;
	u32 some_dead = PLD_RANK_ANY, some_shut = PLD_RANK_ANY, lost = PLD_RANK_ANY;

	if (READ_ONCE(domain->poison) || READ_ONCE(w->cancelled) || READ_ONCE(w->rank->state) != PLD_MEMBER_ALIVE)
		return -ECANCELED;
	/* Acquire pairs with the release in pld_rank_set_ended_locked(). */
	ndead = smp_load_acquire(&domain->ndead);
	nfinalised = READ_ONCE(domain->nfinalised);
	/* Once for all predicates: both lists may be long, and the referee asks under the wait_lock. */
	if (ndead)
		some_dead = pld_wait_dead(w);
	if (nfinalised)
		some_shut = pld_wait_shut(w);
	for (i = 0; i < w->npreds; i++) {
		const struct pld_pred *p = &w->preds[i];

		if (!test_bit(w->rank->index, p->win->opened))
			return -ECANCELED;
		if ((!ndead && !nfinalised) || pld_pred_holds(p))
			continue;
		dead = some_dead;
		shut = some_shut;
		if (p->from != PLD_RANK_ANY) {
			state = pld_rank_state(&domain->ranks[array_index_nospec(p->from, domain->nranks)]);
			dead = state > PLD_MEMBER_FINALISED ? p->from : PLD_RANK_ANY;
			shut = state == PLD_MEMBER_FINALISED ? p->from : PLD_RANK_ANY;
		}
		if (dead != PLD_RANK_ANY) {
			*out_rank = dead;
			return -EOWNERDEAD;
		}
		if (shut == PLD_RANK_ANY)
			all_shut = false;
		else
			lost = shut;
	}
	/* One lost predicate loses a wait for all; a wait for any is lost with its last. */
	if (lost != PLD_RANK_ANY && (!any || all_shut)) {
		*out_rank = lost;
		return -ESHUTDOWN;
	}
	return 0;
}

static void pld_waiter_publish_sleepers(struct pld_waiter *w, int delta)
{
	u32 i;

	lockdep_assert_held(&w->rank->wait_lock);
	for (i = 0; i < w->npreds; i++) {
		struct pld_pred *p = &w->preds[i];
		u32 *n = pld_window_sleepers(p->win, w->rank->index, p->cellno);

		WRITE_ONCE(*n, *n + delta);
		WRITE_ONCE(p->cell->sleepers, *n);
	}
}

static int pld_waiter_enqueue(struct pld_waiter *w)
{
	struct pld_rank *rank = w->rank;

	for (;;) {
		spin_lock(&rank->wait_lock);
		if (!rank->reset_win || !pld_waiter_uses(w, rank->reset_win))
			break;
		spin_unlock(&rank->wait_lock);
		/* Another thread of this rank zeroes the slab; let it finish. */
		if (mutex_lock_interruptible(&rank->reset_lock))
			return -ERESTARTSYS;
		mutex_unlock(&rank->reset_lock);
	}
	/* Everybody who walks the waiters holds a spinlock for that long. */
	if (rank->nwaiters >= PLD_MAX_WAITS_PER_RANK || rank->npreds + w->npreds > PLD_MAX_WAIT_CELLS_PER_RANK) {
		spin_unlock(&rank->wait_lock);
		return -ENOSPC;
	}
	list_add_tail(&w->node, &rank->waiters);
	WRITE_ONCE(rank->nwaiters, rank->nwaiters + 1);
	rank->npreds += w->npreds;
	rank->wait_gen++;
	pld_waiter_count(w);
	pld_waiter_publish_sleepers(w, 1);
	spin_unlock(&rank->wait_lock);
	atomic64_inc(&pld_counters.waiters);
	return 0;
}

static void pld_waiter_dequeue(struct pld_waiter *w)
{
	struct pld_rank *rank = w->rank;

	spin_lock(&rank->wait_lock);
	pld_waiter_publish_sleepers(w, -1);
	pld_waiter_uncount(w);
	rank->wait_gen++;
	WRITE_ONCE(rank->nwaiters, rank->nwaiters - 1);
	rank->npreds -= w->npreds;
	list_del(&w->node);
	spin_unlock(&rank->wait_lock);
	atomic64_dec(&pld_counters.waiters);
}

/* It will look again: notifiers must tell it anew. */
static void pld_waiter_rearm(struct pld_waiter *w)
{
	spin_lock(&w->rank->wait_lock);
	if (w->woken) {
		WRITE_ONCE(w->woken, false);
		w->rank->wait_gen++;
		pld_waiter_count(w);
	}
	spin_unlock(&w->rank->wait_lock);
}

static void pld_waiter_schedule(struct pld_waiter *w, u64 until_ns)
{
	ktime_t until = ns_to_ktime(min_t(u64, until_ns, KTIME_MAX));

	set_current_state(TASK_INTERRUPTIBLE);
	if (!READ_ONCE(w->woken))
		schedule_hrtimeout_range(&until, PLD_TIMER_SLACK_NS, HRTIMER_MODE_ABS);
	__set_current_state(TASK_RUNNING);
}

/* Sleep until the wait ends. 0 when it is satisfied. */
static int pld_wait_sleep(struct pld_waiter *w, u32 *out_index, u32 *out_rank)
{
	u64 slice = PLD_SLICE_FIRST_NS, ask_at, now;
	bool ask = pld_waiter_is_unlimited(w), urgent = true;
	int ret;

	w->since_ns = pld_now_ns();
	ask_at = w->since_ns + slice;
	ret = pld_waiter_enqueue(w);
	if (ret)
		return ret;
	/*
	 * (A) pairs with (B) in pld_notify_run() and in user space: we are known before we read the values.
	 * Without it a notifier may find nobody while we read the old value, and nobody wakes us.
	 */
	smp_mb();
	for (;;) {
		if (pld_wait_look(w, out_index)) {
			ret = 0;
			break;
		}
		ret = READ_ONCE(w->verdict) ? -EDEADLK : pld_wait_failure(w, out_rank);
		if (ret)
			break;
		now = pld_now_ns();
		if (now >= w->deadline_ns) {
			ret = -ETIMEDOUT;
			break;
		}
		if (signal_pending(current)) {
			ret = -ERESTARTSYS;
			break;
		}
		if (ask && (now >= ask_at || (urgent && pld_referee_is_urgent(w->rank->domain)))) {
			pld_referee_ask(w->rank);
			if (now >= ask_at) {
				slice = min_t(u64, 2 * slice, PLD_SLICE_LAST_NS);
				ask_at = now + slice;
			}
		}
		urgent = false;
		pld_waiter_schedule(w, ask ? ask_at : w->deadline_ns);
		if (READ_ONCE(w->woken)) {
			pld_waiter_rearm(w);
			urgent = true;
		}
	}
	pld_waiter_dequeue(w);
	/* A verdict that came after the look at the POSIX signals counts: the others of its set act on it. */
	if (ret == -ERESTARTSYS && w->verdict)
		ret = -EDEADLK;
	if (w->verdict)
		pld_verdict_settle();
	return ret;
}

/**
 * pld_wait_run() - wait
 * @w: prepared
 * @out_index: with F_ANY, the predicate that holds
 * @out_rank: rank that is gone, for -EOWNERDEAD and -ESHUTDOWN
 *
 * Context: Process context, the thread of @w.
 * Return: 0 when it is satisfied, or a negative errno of the contract; -ERESTARTSYS.
 */
int pld_wait_run(struct pld_waiter *w, u32 *out_index, u32 *out_rank)
{
	u64 start;
	int ret;

	if (pld_wait_look(w, out_index))
		return 0;
	if (w->deadline_ns == PLD_DEADLINE_POLL)
		return pld_wait_failure(w, out_rank) ?: -EAGAIN;
	trace_pld_wait_enter(w);
	start = pld_now_ns();
	ret = pld_wait_sleep(w, out_index, out_rank);
	trace_pld_wait_exit(w, ret, pld_now_ns() - start);
	return ret;
}
