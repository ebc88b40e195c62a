// SPDX-License-Identifier: GPL-2.0
/*
 * CELL_WAIT and CELL_NOTIFY_WAIT: copy and check what a caller waits for, let wait.c wait, and tell how it ended.
 *
 * Invariant: everything is checked before anything is done, and the notifies of a combined call are never done twice.
 */
#include <linux/bitmap.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "pld.h"

static int pld_pred_resolve(struct pld_rank *rank, const struct pld_wait_cell *e, struct pld_window *last,
			    struct pld_pred *p)
{
	int ret;

	if (e->reserved || e->cmp > PLD_CMP_LT || (e->from != PLD_RANK_ANY && e->from >= rank->domain->nranks))
		return -EINVAL;
	ret = pld_cell_window(rank, e->window_id, e->generation, last, &p->win);
	if (ret)
		return ret;
	p->owns_win = p->win != last;
	if (e->cell >= p->win->ncells) {
		if (p->owns_win)
			pld_window_put(p->win);
		return -EINVAL;
	}
	p->cell = pld_window_cell(p->win, rank->index, e->cell);
	p->cellno = e->cell;
	p->cmp = e->cmp;
	p->from = e->from;
	p->expected = e->expected;
	return 0;
}

static void pld_waiter_release(struct pld_waiter *w, struct pld_pred *small)
{
	u32 i;

	for (i = 0; i < w->npreds; i++)
		if (w->preds[i].owns_win)
			pld_window_put(w->preds[i].win);
	if (w->preds != small)
		kvfree(w->preds);
}

static int pld_waiter_copy_mask(struct pld_waiter *w, const struct pld_wait *u)
{
	u64 words[PLD_MAX_RANKS / 64] = {};
	u32 nranks = w->rank->domain->nranks;

	if (!u->from_mask)
		return u->from_words ? -EINVAL : 0;
	if (!u->from_words || u->from_words > ARRAY_SIZE(words))
		return -EINVAL;
	if (copy_from_user(words, u64_to_user_ptr(u->from_mask), u->from_words * sizeof(u64)))
		return -EFAULT;
	bitmap_from_arr64(w->mask, words, PLD_MAX_RANKS);
	if (bitmap_empty(w->mask, nranks) || find_next_bit(w->mask, PLD_MAX_RANKS, nranks) < PLD_MAX_RANKS)
		return -EINVAL;
	w->has_mask = true;
	return 0;
}

/* Copy and check everything. 0, then pld_waiter_release() must follow. */
static int pld_waiter_prepare(struct pld_waiter *w, struct pld_rank *rank, const struct pld_wait *u,
			      struct pld_pred *small)
{
	struct pld_window *last = NULL;
	struct pld_wait_cell e;
	int ret;

	if (!u->ncells || u->ncells > PLD_MAX_CELLS_PER_CALL)
		return -EINVAL;
	w->rank = rank;
	w->task = current;
	w->flags = u->flags;
	w->site = u->site;
	w->deadline_ns = u->deadline_ns;
	w->preds = small;
	ret = pld_waiter_copy_mask(w, u);
	if (ret)
		return ret;
	if (u->ncells > PLD_SMALL_VECTOR) {
		w->preds = kvmalloc_array(u->ncells, sizeof(*w->preds), GFP_KERNEL_ACCOUNT);
		if (!w->preds)
			return -ENOMEM;
	}
	for (; w->npreds < u->ncells; w->npreds++) {
		ret = pld_copy_entry(&e, sizeof(e), u->cells, w->npreds, u->cell_size);
		if (!ret)
			ret = pld_pred_resolve(rank, &e, last, &w->preds[w->npreds]);
		if (ret) {
			pld_waiter_release(w, small);
			return ret;
		}
		last = w->preds[w->npreds].win;
		cond_resched();
	}
	return 0;
}

/* Results to the caller: values whenever the wait is over, the rest as the contract says. */
static int pld_waiter_report(struct pld_call *call, struct pld_waiter *w, struct pld_wait *u, int ret, u32 index,
			     u32 rank)
{
	u32 i;

	if (ret == -ERESTARTSYS || ret == -ENOSPC)
		return ret;
	for (i = 0; i < w->npreds; i++) {
		__s64 __user *out = u64_to_user_ptr(u->cells + (u64)i * u->cell_size +
						    offsetof(struct pld_wait_cell, out_value));

		if (put_user(w->preds[i].seen, out))
			return -EFAULT;
	}
	if (!ret)
		u->out_index = index;
	if (ret == -EOWNERDEAD || ret == -ESHUTDOWN) {
		u->out_rank = rank;
		call->write_back = true;
	}
	if (ret == -EDEADLK) {
		u->out_verdict = w->verdict;
		call->write_back = true;
	}
	return ret;
}

/**
 * pld_ioc_cell_wait() - PLD_IOC_CELL_WAIT
 * @call: on a living rank
 * @arg: struct pld_wait
 *
 * Return: 0 or a negative errno of the contract.
 */
int pld_ioc_cell_wait(struct pld_call *call, void *arg)
{
	struct pld_pred small[PLD_SMALL_VECTOR];
	struct pld_wait *u = arg;
	struct pld_waiter w = {};
	u32 index = 0, rank = PLD_RANK_ANY;
	int ret;

	ret = pld_waiter_prepare(&w, call->rank, u, small);
	if (ret)
		return ret;
	ret = pld_wait_run(&w, &index, &rank);
	ret = pld_waiter_report(call, &w, u, ret, index, rank);
	pld_waiter_release(&w, small);
	return ret;
}

/**
 * pld_ioc_cell_notify_wait() - PLD_IOC_CELL_NOTIFY_WAIT
 * @call: on a living rank
 * @arg: struct pld_notify_wait
 *
 * The count in the caller's copy becomes 0 before the wait can sleep, so a restart only waits.
 *
 * Return: 0 or a negative errno of the contract.
 */
int pld_ioc_cell_notify_wait(struct pld_call *call, void *arg)
{
	struct pld_notify_wait __user *user = call->uarg;
	struct pld_pred small[PLD_SMALL_VECTOR];
	struct pld_notify_wait *u = arg;
	struct pld_notify_batch batch;
	struct pld_waiter w = {};
	u32 index = 0, rank = PLD_RANK_ANY;
	int ret;

	ret = pld_waiter_prepare(&w, call->rank, &u->wait, small);
	if (ret)
		return ret;
	if (u->notify_ncells) {
		ret = pld_notify_prepare(call->rank, u->notify_cells, u->notify_ncells, u->notify_cell_size, &batch);
		if (ret)
			goto out_release;
		if (READ_ONCE(call->domain->poison))
			ret = -ECANCELED;
		else if (put_user(0u, &user->notify_ncells))
			ret = -EFAULT; /* before the notifies: they are never done twice */
		else
			pld_notify_run(call->rank, &batch, u->wait.site);
		pld_notify_release(&batch);
		if (ret)
			goto out_release;
		u->notify_ncells = 0;
	}
	ret = pld_wait_run(&w, &index, &rank);
	ret = pld_waiter_report(call, &w, &u->wait, ret, index, rank);

out_release:
	pld_waiter_release(&w, small);
	return ret;
}
