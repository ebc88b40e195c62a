// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Collectives on a signal window of the caller: the _on forms.
 *
 * What moves data and proves that all ranks make the same call are the numbers of the domain, here as elsewhere. The
 * caller's cells carry the last step: a barrier of credits, which each rank enters when it is through. It adds 1 to its
 * cell at every peer, waits until its own cells have a credit of each, and takes them away again. So the cells are 0
 * when the call returns, and the same window serves the next call at once.
 *
 * The check that they are 0 at entry is exact. A peer credits in a call only after all numbers of it have arrived, mine
 * too, and those I announce after I have taken the credits of my last call. A call that was given up in this step
 * leaves credits behind, and nobody can know whether more will come: the next call on the window is refused on all
 * ranks until they reset it.
 *
 * Cell s of a row is rank s's. The layouts differ in their number of rows, as upstream's algorithms need them; the
 * first row is what is used here. A window remembers the layout of its first call: another one on it is a mistake that
 * must not depend on timing.
 */
#include "coll.h"

#include <errno.h>

enum { NO_LAYOUT, MESH, TWO_PHASE, RING };

static const char *const layout_names[] = { "", "mesh", "two-phase", "ring" };

static uint32_t layout_of(uint32_t op, uint32_t mode)
{
	if (op != PLDK_EV_ALLREDUCE || mode == PLDK_MODE_MESH || mode == PLDK_MODE_AUTO)
		return MESH;
	return mode == PLDK_MODE_TWO_PHASE ? TWO_PHASE : RING;
}

static void shape_of(uint32_t layout, int64_t nranks, int64_t out_shape[2])
{
	out_shape[0] = layout == MESH ? nranks : layout == TWO_PHASE ? 2 : nranks > 1 ? 2 * (nranks - 1) : 1;
	out_shape[1] = layout == MESH ? 1 : nranks;
}

/**
 * pldk_coll_signal_shape() - see coll.h
 */
int pldk_coll_signal_shape(enum pldk_event_op op, enum pldk_mode mode, int nranks, int64_t out_shape[2])
{
	if (!pldk__coll_rule((uint32_t)op))
		return pldk__fail(-EINVAL, "coll_signal_shape: op %d is no collective", (int)op);
	if ((uint32_t)mode > PLDK_MODE_AUTO)
		return pldk__fail(-EINVAL, "coll_signal_shape: mode is %d: one of enum pldk_mode", (int)mode);
	if (nranks < 1 || nranks > PLDK_MAX_RANKS)
		return pldk__fail(-EINVAL, "coll_signal_shape: nranks %d is not in 1..%d", nranks, PLDK_MAX_RANKS);
	if (!out_shape)
		return pldk__fail(-EINVAL, "coll_signal_shape: out_shape is NULL");
	shape_of(layout_of((uint32_t)op, (uint32_t)mode), nranks, out_shape);
	return 0;
}

static void shape_text(struct pldk__text *text, const int64_t *shape, uint32_t ndim)
{
	for (uint32_t i = 0; i < ndim; i++)
		pldk__text_add(text, "%s%lld", i ? ", " : "[", (long long)shape[i]);
	pldk__text_add(text, "]");
}

static int check_shape(const struct pldk_window *signal, uint32_t layout, const char *op)
{
	struct pldk__text text = { 0 };
	int64_t shape[2];
	char buf[80];

	shape_of(layout, signal->domain->nranks, shape);
	if (signal->shape[0] == shape[0] &&
	    (signal->ndim == 1 ? layout == MESH : signal->ndim == 2 && signal->shape[1] == shape[1]))
		return 0;
	pldk__text_add(&text, "%s: %s has shape ", op, pldk__window_text(signal, buf, sizeof(buf)));
	shape_text(&text, signal->shape, signal->ndim);
	pldk__text_add(&text, ", but the layout of this call (%s) wants ", layout_names[layout]);
	shape_text(&text, shape, 2);
	return pldk__fail(-EINVAL, "%s", text.text);
}

/* Credits that a call left behind. */
static int check_empty(const struct pldk_window *signal, const char *op)
{
	const struct pldk_domain *domain = signal->domain;
	char buf[80];

	for (uint32_t i = 0; i < signal->ncells; i++) {
		int64_t value = pldk__load_acquire(&pldk__cell_at(signal->map, domain->rank, i)->value);

		if (value && i % domain->nranks != domain->rank)
			return pldk__fail(-EBUSY, "%s: cell %u of %s is %lld: rank %u's credits of a call that was given up, or a notify; pldk_window_reset() it",
					  op, i, pldk__window_text(signal, buf, sizeof(buf)), (long long)value,
					  i % domain->nranks);
	}
	return 0;
}

/**
 * pldk__credit_check() - may such a call use this window? See coll.h
 */
int pldk__credit_check(const struct pldk_domain *domain, const struct pldk__coll_args *args)
{
	const struct pldk_window *signal = args->signal;
	const char *op = pldk_event_name(args->op);
	char buf[80];

	if (signal->domain != domain)
		return pldk__fail(-EINVAL, "%s: %s is of another domain", op, pldk__window_text(signal, buf, sizeof(buf)));
	if (signal->kind != PLD_WINDOW_SIGNAL)
		return pldk__fail(-EDOM, "%s: %s is a data window: a signal window is wanted", op,
				  pldk__window_text(signal, buf, sizeof(buf)));
	return check_shape(signal, layout_of(args->op, args->mode), op);
}

/**
 * pldk__credit_begin() - the call's turn has come: is the window as earlier calls should have left it?
 *
 * Return: 0 or -EBUSY.
 */
int pldk__credit_begin(const struct pldk__coll *coll)
{
	const uint32_t layout = layout_of(coll->args.op, coll->args.mode);
	struct pldk_window *signal = coll->args.signal;
	const char *op = pldk_event_name(coll->args.op);
	char buf[80];
	int ret;

	if (signal->coll_layout && signal->coll_layout != layout)
		return pldk__fail(-EBUSY, "%s: %s was used with layout %s (%s), this call's is %s: use another window, or pldk_window_reset() it",
				  op, pldk__window_text(signal, buf, sizeof(buf)), layout_names[signal->coll_layout],
				  pldk__site_text(signal->coll_site), layout_names[layout]);
	ret = check_empty(signal, op);
	if (ret)
		return ret;
	signal->coll_layout = layout;
	signal->coll_site = coll->call.site;
	return 0;
}

static uint32_t peer_at(const struct pldk_domain *domain, uint32_t i)
{
	return (domain->rank + 1 + i) % domain->nranks;
}

static void room_for_a_wake(struct pldk_domain *domain)
{
	if (domain->nwakes == PLDK__WAKES)
		pldk__wake_all(domain);
}

/* Give a credit to those who have none yet. */
static int give(struct pldk__coll *coll)
{
	struct pldk_domain *domain = coll->domain;
	int ret;

	if (domain->has_far && !coll->deadline_ns)
		coll->deadline_ns = pldk__deadline(coll->timeout_ns);
	for (; coll->credited + 1 < domain->nranks; coll->credited++) {
		room_for_a_wake(domain);
		ret = pldk__notify_one(domain, coll->args.signal->map, peer_at(domain, coll->credited), domain->rank,
				       PLD_NOTIFY_ADD, 1, coll->deadline_ns, domain->wakes, &domain->nwakes);
		if (pldk__unlikely(ret))
			return ret == -ETIMEDOUT && coll->deadline_ns == PLD_DEADLINE_POLL ? -EAGAIN : ret;
	}
	return 0;
}

/**
 * pldk__credit_step() - the barrier of credits, as far as it goes without waiting
 *
 * Return: 0: done, the own cells are 0. PLDK__AGAIN: a credit is missing. An errno of the provider's far_notify().
 */
int pldk__credit_step(struct pldk__coll *coll)
{
	struct pldk_domain *domain = coll->domain;
	struct pldk_window *signal = coll->args.signal;
	int ret;

	ret = give(coll);
	if (ret)
		return ret;
	for (uint32_t i = 0; i + 1 < domain->nranks; i++)
		if (pldk__load_acquire(&pldk__cell_at(signal->map, domain->rank, peer_at(domain, i))->value) < 1)
			return PLDK__AGAIN;
	for (uint32_t i = 0; i + 1 < domain->nranks; i++) {
		room_for_a_wake(domain);
		(void)pldk__notify_one(domain, signal->map, domain->rank, peer_at(domain, i), PLD_NOTIFY_ADD, -1,
				       PLD_DEADLINE_NEVER, domain->wakes, &domain->nwakes);
	}
	return 0;
}

/**
 * pldk__credit_wait() - for the credits that are missing
 *
 * Return: as pldk__wait_for().
 */
int pldk__credit_wait(struct pldk__coll *coll)
{
	struct pldk_domain *domain = coll->domain;
	const uint32_t nwakes = domain->nwakes;
	struct pldk__wait wait = {
		.preds = domain->epoch_preds,
		.deadline_ns = coll->deadline_ns,
		.site = coll->call.site,
	};

	for (uint32_t i = 0; i + 1 < domain->nranks; i++) {
		struct pldk__pred *pred = &wait.preds[wait.npreds++];

		pred->from = peer_at(domain, i);
		pred->map = coll->args.signal->map;
		pred->cell = pred->from;
		pred->cmp = PLD_CMP_GE;
		pred->expected = 1;
	}
	domain->nwakes = 0;
	return pldk__wait_for(domain, coll->thread, &wait, domain->wakes, nwakes, pldk_event_name(coll->call.op));
}
