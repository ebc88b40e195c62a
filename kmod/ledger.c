// SPDX-License-Identifier: GPL-2.0
/*
 * The ledger: who waits for what, readable without stopping anybody, and the verdicts kept for later. What makes a
 * verdict is in referee.c.
 */
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "pld.h"

/**
 * pld_ledger_fill() - describe a wait
 * @entry: to fill; all of it but @entry->tid and @entry->pid, which depend on the reader
 * @w: queued waiter
 *
 * Context: w->rank->wait_lock held.
 */
void pld_ledger_fill(struct pld_ledger_entry *entry, const struct pld_waiter *w)
{
	const struct pld_pred *p = w->preds;
	u64 provenance;
	u32 i;

	lockdep_assert_held(&w->rank->wait_lock);
	for (i = 0; i < w->npreds; i++)
		if (!pld_cmp_holds(READ_ONCE(w->preds[i].cell->value), w->preds[i].cmp, w->preds[i].expected)) {
			p = &w->preds[i];
			break;
		}
	provenance = READ_ONCE(p->cell->provenance);
	memset(entry, 0, sizeof(*entry));
	entry->rank = w->rank->index;
	entry->window_id = p->win->id;
	entry->cell = p->cellno;
	entry->cmp = p->cmp;
	entry->from = p->from;
	entry->expected = p->expected;
	entry->value = READ_ONCE(p->cell->value);
	entry->since_ns = w->since_ns;
	entry->deadline_ns = w->deadline_ns;
	entry->site = w->site;
	entry->npreds = w->npreds;
	entry->flags = w->flags;
	entry->last_notifier = provenance ? PLD_PROVENANCE_RANK(provenance) : PLD_RANK_ANY;
	entry->domain_id = w->rank->domain->id;
	entry->generation = p->win->generation;
}

/* Give @n entries to the user, whose entries may be larger than ours: the rest of each reads as zero. */
static int pld_ledger_copy_out(u64 uptr, u32 usize, const struct pld_ledger_entry *entries, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		void __user *to = u64_to_user_ptr(uptr + (u64)i * usize);

		if (copy_to_user(to, &entries[i], sizeof(*entries)) ||
		    clear_user(to + sizeof(*entries), usize - sizeof(*entries)))
			return -EFAULT;
	}
	return 0;
}

static int pld_ledger_check(u64 entries, u32 nentries, u32 entry_size)
{
	if (!nentries)
		return entries ? -EINVAL : 0;
	if (!entries || entry_size < sizeof(struct pld_ledger_entry))
		return -EINVAL;
	return entry_size > PAGE_SIZE ? -E2BIG : 0;
}

/**
 * pld_ioc_ledger() - PLD_IOC_LEDGER
 * @call: on a domain or rank
 * @arg: struct pld_ledger
 *
 * Return: 0, -EINVAL, -E2BIG, -ENOMEM, -EFAULT.
 */
int pld_ioc_ledger(struct pld_call *call, void *arg)
{
	struct pld_domain *domain = call->domain;
	struct pld_ledger_entry *entries = NULL;
	struct pld_ledger *l = arg;
	u32 room, n = 0, i;
	int ret;

	ret = pld_ledger_check(l->entries, l->nentries, l->entry_size);
	if (ret)
		return ret;
	for (room = 0, i = 0; i < domain->nranks; i++)
		room += READ_ONCE(domain->ranks[i].nwaiters);
	room = min(l->nentries, room);
	if (room) {
		entries = kvmalloc_array(room, sizeof(*entries), GFP_KERNEL_ACCOUNT);
		if (!entries)
			return -ENOMEM;
	}
	for (i = 0; i < domain->nranks; i++) {
		struct pld_rank *rank = &domain->ranks[i];
		const struct pld_waiter *w;

		spin_lock(&rank->wait_lock);
		list_for_each_entry(w, &rank->waiters, node) {
			if (n < room) {
				pld_ledger_fill(&entries[n], w);
				entries[n].tid = task_pid_vnr(w->task);
				entries[n].pid = pid_vnr(rank->tgid);
			}
			n++;
		}
		spin_unlock(&rank->wait_lock);
		cond_resched();
	}
	ret = pld_ledger_copy_out(l->entries, l->entry_size, entries, min(n, room));
	kvfree(entries);
	l->nentries = n;
	return ret;
}

/**
 * pld_verdict_free() - free a verdict
 * @v: verdict that no domain keeps, or NULL
 */
void pld_verdict_free(struct pld_verdict_record *v)
{
	u32 i;

	for (i = 0; v && i < v->nentries; i++)
		put_pid(v->waits[i].tid);
	kvfree(v);
}

/* A copy of the entries, as many as @room, for copying out without the lock. */
static int pld_verdict_read(struct pld_domain *domain, struct pld_verdict *u, struct pld_ledger_entry *entries,
			    u32 room, u32 *out_n)
{
	struct pld_verdict_record *v = NULL;
	int ret = -ENOENT;
	u32 i, n;

	spin_lock(&domain->state_lock);
	for (i = 0; i < PLD_VERDICTS_KEPT; i++) {
		struct pld_verdict_record *k =
			domain->verdicts[(domain->verdict_next + PLD_VERDICTS_KEPT - 1 - i) % PLD_VERDICTS_KEPT];

		if (k && (!u->verdict || k->number == u->verdict)) {
			v = k;
			break;
		}
	}
	if (v) {
		n = min(room, v->nentries);
		for (i = 0; i < n; i++) {
			entries[i] = v->waits[i].entry;
			entries[i].tid = pid_vnr(v->waits[i].tid);
			entries[i].pid = pid_vnr(domain->ranks[entries[i].rank].tgid);
		}
		*out_n = n;
		u->verdict = v->number;
		u->nentries = v->nentries;
		ret = 0;
	}
	spin_unlock(&domain->state_lock);
	return ret;
}

/**
 * pld_ioc_verdict() - PLD_IOC_VERDICT
 * @call: on a domain or rank
 * @arg: struct pld_verdict
 *
 * Return: 0, -ENOENT, -EINVAL, -E2BIG, -ENOMEM, -EFAULT.
 */
int pld_ioc_verdict(struct pld_call *call, void *arg)
{
	struct pld_ledger_entry *entries = NULL;
	struct pld_verdict *u = arg;
	u32 room, n = 0;
	int ret;

	ret = pld_ledger_check(u->entries, u->nentries, u->entry_size);
	if (ret)
		return ret;
	room = min(u->nentries, 65536u);
	if (room) {
		entries = kvmalloc_array(room, sizeof(*entries), GFP_KERNEL_ACCOUNT);
		if (!entries)
			return -ENOMEM;
	}
	ret = pld_verdict_read(call->domain, u, entries, room, &n);
	if (!ret)
		ret = pld_ledger_copy_out(u->entries, u->entry_size, entries, n);
	kvfree(entries);
	return ret;
}
