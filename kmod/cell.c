// SPDX-License-Identifier: GPL-2.0
/*
 * Notify: check a whole vector, then carry it out in order, then wake. The ordering argument is in wait.c.
 *
 * Invariant: all entries are resolved before the first cell changes. The kernel decides whom to wake by its own
 * count of sleepers (win->nsleepers), not by the one that members can scribble on.
 */
#include <linux/atomic.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "pld.h"
#include "trace.h"

/**
 * pld_cell_window() - the signal window that an entry of a vector names
 * @rank: caller
 * @id: window id
 * @generation: generation, or 0
 * @last: window of the entry before, or NULL: the usual answer
 * @out: the window; a new reference is taken only if it differs from @last
 *
 * Return: 0, -ENOENT, -ESTALE, -EDOM.
 */
int pld_cell_window(struct pld_rank *rank, u32 id, u32 generation, struct pld_window *last, struct pld_window **out)
{
	struct pld_window *win = last;
	int ret;

	if (!win || win->id != id)
		win = pld_window_find(rank->domain, id);
	if (!win)
		return -ENOENT;
	if (!test_bit(rank->index, win->opened))
		ret = -ENOENT;
	else if (generation && generation != win->generation)
		ret = -ESTALE;
	else if (win->kind != PLD_WINDOW_SIGNAL)
		ret = -EDOM;
	else
		ret = 0;
	if (ret && win != last)
		pld_window_put(win);
	else if (!ret)
		*out = win;
	return ret;
}

static int pld_target_resolve(struct pld_rank *rank, const struct pld_notify_cell *e, struct pld_window *last,
			      struct pld_target *t)
{
	int ret;

	if (e->reserved || e->rank >= rank->domain->nranks || e->op > PLD_NOTIFY_WAKE)
		return -EINVAL;
	if (e->op == PLD_NOTIFY_WAKE && e->value)
		return -EINVAL;
	ret = pld_cell_window(rank, e->window_id, e->generation, last, &t->win);
	if (ret)
		return ret;
	t->owns_win = t->win != last;
	if (e->cell >= t->win->ncells) {
		if (t->owns_win)
			pld_window_put(t->win);
		return -EINVAL;
	}
	t->rank = e->rank;
	t->cellno = e->cell;
	t->op = e->op;
	t->value = e->value;
	t->cell = pld_window_cell(t->win, e->rank, e->cell);
	return 0;
}

/**
 * pld_notify_release() - let go of what pld_notify_prepare() took
 * @batch: prepared
 */
void pld_notify_release(struct pld_notify_batch *batch)
{
	u32 i;

	for (i = 0; i < batch->n; i++)
		if (batch->targets[i].owns_win)
			pld_window_put(batch->targets[i].win);
	if (batch->targets != batch->small)
		kvfree(batch->targets);
}

/**
 * pld_notify_prepare() - copy and check a notify vector
 * @rank: caller
 * @uptr: user address of the entries
 * @n: entries, at least 1
 * @entry_size: bytes of one
 * @batch: to fill
 *
 * Context: Process context, may fault.
 * Return: 0, then pld_notify_release() must follow; or a negative errno with nothing to release.
 */
int pld_notify_prepare(struct pld_rank *rank, u64 uptr, u32 n, u32 entry_size, struct pld_notify_batch *batch)
{
	struct pld_window *last = NULL;
	struct pld_notify_cell e;
	int ret;

	if (!n || n > PLD_MAX_CELLS_PER_CALL)
		return -EINVAL;
	batch->n = 0;
	batch->uptr = uptr;
	batch->entry_size = entry_size;
	batch->targets = batch->small;
	if (n > PLD_SMALL_VECTOR) {
		batch->targets = kvmalloc_array(n, sizeof(*batch->targets), GFP_KERNEL_ACCOUNT);
		if (!batch->targets)
			return -ENOMEM;
	}
	for (; batch->n < n; batch->n++) {
		ret = pld_copy_entry(&e, sizeof(e), uptr, batch->n, entry_size);
		if (!ret)
			ret = pld_target_resolve(rank, &e, last, &batch->targets[batch->n]);
		if (ret) {
			pld_notify_release(batch);
			return ret;
		}
		last = batch->targets[batch->n].win;
		cond_resched();
	}
	return 0;
}

/* The name comes first: who sees the value can see who wrote it. */
static s64 pld_cell_notify(struct pld_rank *rank, struct pld_target *t)
{
	atomic64_t *value = (atomic64_t *)&t->cell->value;
	u32 seq = PLD_PROVENANCE_SEQ(READ_ONCE(t->cell->provenance)) + 1;

	if (t->op == PLD_NOTIFY_WAKE)
		return atomic64_read(value);
	WRITE_ONCE(t->cell->provenance, PLD_PROVENANCE(seq, t->op, rank->index));
	if (t->op == PLD_NOTIFY_ADD)
		return atomic64_add_return(t->value, value);
	atomic64_xchg(value, t->value);
	return t->value;
}

/**
 * pld_notify_run() - carry a prepared vector out
 * @rank: caller
 * @batch: prepared
 * @site: call-site tag
 *
 * Context: Process context. Takes wait_locks of the targets.
 * The notifies are done, so that a result cannot be stored is no error: nobody may do them again.
 */
void pld_notify_run(struct pld_rank *rank, struct pld_notify_batch *batch, u32 site)
{
	struct pld_wakes wakes = { .n = 0 };
	u32 i;

	for (i = 0; i < batch->n; i++) {
		struct pld_target *t = &batch->targets[i];

		t->value = pld_cell_notify(rank, t);
		/*
		 * (B) pairs with (A) in pld_wait_sleep(): the value changes before the look at the sleepers.
		 * Without it a rank that still saw the old value could queue itself unseen and sleep for ever.
		 */
		smp_mb();
		if (READ_ONCE(*pld_window_sleepers(t->win, t->rank, t->cellno)))
			pld_wait_wake_cell(t->win, t->rank, t->cellno, &wakes);
		/* Thousands of entries, each with many waiters to look at, must not keep a CPU to themselves. */
		cond_resched();
		trace_pld_cell_notify(rank, t, site);
	}
	pld_wakes_flush(&wakes);
	for (i = 0; i < batch->n; i++) {
		__s64 __user *out = u64_to_user_ptr(batch->uptr + (u64)i * batch->entry_size +
						    offsetof(struct pld_notify_cell, out_value));

		if (put_user(batch->targets[i].value, out))
			break;
	}
}

/**
 * pld_ioc_cell_notify() - PLD_IOC_CELL_NOTIFY
 * @call: on a living rank
 * @arg: struct pld_notify
 *
 * Return: 0 or a negative errno of the contract.
 */
int pld_ioc_cell_notify(struct pld_call *call, void *arg)
{
	struct pld_notify *n = arg;
	struct pld_notify_batch batch;
	int ret;

	ret = pld_notify_prepare(call->rank, n->cells, n->ncells, n->cell_size, &batch);
	if (ret)
		return ret;
	if (READ_ONCE(call->domain->poison))
		ret = -ECANCELED;
	else
		pld_notify_run(call->rank, &batch, n->site);
	pld_notify_release(&batch);
	return ret;
}

/**
 * pld_ioc_cell_history() - PLD_IOC_CELL_HISTORY
 * @call: on a domain or rank
 * @arg: struct pld_cell_history
 *
 * Return: 0, -ENOENT, -EDOM, -EINVAL.
 */
int pld_ioc_cell_history(struct pld_call *call, void *arg)
{
	struct pld_cell_history *h = arg;
	struct pld_window *win = pld_window_find(call->domain, h->window_id);
	struct pld_cell *cell;
	int ret = 0;

	if (!win)
		return -ENOENT;
	if (win->kind != PLD_WINDOW_SIGNAL) {
		ret = -EDOM;
	} else if (h->rank >= win->nranks || h->cell >= win->ncells) {
		ret = -EINVAL;
	} else {
		cell = pld_window_cell(win, h->rank, h->cell);
		h->out_value = READ_ONCE(cell->value);
		h->out_provenance = READ_ONCE(cell->provenance);
		h->out_sleepers = READ_ONCE(*pld_window_sleepers(win, h->rank, h->cell));
		h->out_reserved = 0;
	}
	pld_window_put(win);
	return ret;
}
