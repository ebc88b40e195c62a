// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * notify, wait, test, read: the public face of cells.
 *
 * Each call checks everything first, writes its record, then acts. What "acts" means is in three places only:
 * pldk__cell_notify() changes a cell, pldk__notify_one() chooses between near and far and wakes, pldk__wait_for()
 * (wait.c) waits.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PREDS_ON_STACK 16
#define WAKES 64 /* sleepers that are collected before they are woken */
#define POLLS_PER_RECORD 64

/**
 * pldk__cell_notify() - change a cell: the notifier's half of the protocol of kmod/wait.c
 * @cell: mapped
 * @op: PLD_NOTIFY_ADD or PLD_NOTIFY_SET
 * @rank: notifier
 *
 * Provenance first: whoever sees the new value sees a name. It is a hint, because two notifiers may cross.
 *
 * (B) The read-modify-write is sequentially consistent, hence a full barrier between the value and the load of
 * sleepers; pairs with (A) in the waiter, who counts itself before it looks at the value. Were it a plain store, the
 * load could overtake it: the waiter would see the old value, the notifier no sleeper, and the wake-up would be lost.
 * It is also the release that carries everything before the notify.
 *
 * Return: true if somebody sleeps on it and must be woken.
 */
bool pldk__cell_notify(struct pld_cell *cell, uint32_t op, int64_t value, uint32_t rank)
{
	uint64_t before = pldk__load_relaxed(&cell->provenance);

	pldk__store_relaxed(&cell->provenance, PLD_PROVENANCE(PLD_PROVENANCE_SEQ(before) + 1, op, rank));
	if (op == PLD_NOTIFY_SET)
		pldk__xchg_seq(&cell->value, value);
	else
		pldk__add_seq(&cell->value, value);
	return pldk__load_seq(&cell->sleepers) != 0;
}

/**
 * pldk__notify_one() - notify a near or far cell; see internal.h
 *
 * Return: 0, or as the provider's far_notify().
 */
int pldk__notify_one(struct pldk_domain *domain, const struct pldk__map *map, uint32_t peer, uint32_t cell, uint32_t op,
		     int64_t value, uint64_t deadline_ns, struct pldk__wake *wakes, uint32_t *nwakes)
{
	struct pld_cell *at = pldk__cell_at(map, peer, cell);
	struct pldk__wake wake = { map, peer, cell };

	if (pldk__unlikely(!at))
		return domain->ops->far_notify(domain->pd, map, peer, cell, op, value, deadline_ns);
	if (pldk__likely(!pldk__cell_notify(at, op, value, domain->rank)))
		return 0;
	if (wakes)
		wakes[(*nwakes)++] = wake;
	else
		domain->ops->wake(domain->pd, &wake, 1);
	return 0;
}

/**
 * pldk_cell() - see signal.h
 */
int64_t pldk_cell(const struct pldk_window *signal, int ndim, const int64_t *coords)
{
	int64_t index = 0;
	char text[80];
	int ret;
	int i;

	ret = pldk__check_cell(signal, 0, "cell");
	if (ret)
		return ret;
	pldk__window_text(signal, text, sizeof(text));
	if (ndim < 0 || (uint32_t)ndim != signal->ndim || !coords)
		return pldk__fail(-EINVAL, "rank %u: cell: %d coordinates for %s, which has %u dimensions", signal->domain->rank,
				  coords ? ndim : 0, text, signal->ndim);
	for (i = 0; i < ndim; i++) {
		if (coords[i] < 0 || coords[i] >= signal->shape[i])
			return pldk__fail(-EINVAL, "rank %u: cell: coordinate %d is %lld, allowed is 0..%lld in %s",
					  signal->domain->rank, i, (long long)coords[i],
					  (long long)signal->shape[i] - 1, text);
		index = index * signal->shape[i] + coords[i];
	}
	return index;
}

/*
 * Notify
 */

static int check_notify(const struct pldk_window *signal, int peer, int64_t cell, int op, const char *name)
{
	int ret;

	ret = pldk__check_cell(signal, cell, name);
	if (!ret)
		ret = pldk__check_peer(signal->domain, peer, name);
	if (!ret && pldk__unlikely(op != PLDK_NOTIFY_ADD && op != PLDK_NOTIFY_SET))
		ret = pldk__fail(-EINVAL, "rank %u: %s: op is %d: PLDK_NOTIFY_ADD is 0, PLDK_NOTIFY_SET is 1",
				 signal->domain->rank, name, op);
	return ret;
}

/* Record, notify, stamp: the stamp comes after the store, when the peer is already on its way. */
static int notify(struct pldk_domain *domain, struct pldk__thread *thread, uint32_t site, const struct pldk_post *post,
		  uint64_t deadline_ns, struct pldk__wake *wakes, uint32_t *nwakes)
{
	uint32_t event = post->op == PLDK_NOTIFY_SET ? PLDK_EV_NOTIFY_SET : PLDK_EV_NOTIFY_ADD;
	uint32_t flags = (uint32_t)post->peer == domain->rank ? PLDK_EVENT_SELF : 0;
	struct pldk__rec *rec;
	int ret;

	rec = pldk__record(thread, event, flags, site, post->peer, (int)post->signal->id, (uint64_t)post->cell,
			   post->value);
	ret = pldk__notify_one(domain, post->signal->map, (uint32_t)post->peer, (uint32_t)post->cell,
			       (uint32_t)post->op, post->value, deadline_ns, wakes, nwakes);
	pldk__store_relaxed(&rec->tsc, pldk__tsc());
	if (pldk__unlikely(ret))
		pldk__record_flag(rec, PLDK_EVENT_FAILED);
	return ret;
}

/**
 * pldk_notify_at() - see signal.h
 */
int pldk_notify_at(struct pldk_site *site, struct pldk_window *signal, int peer, int64_t cell, enum pldk_notify_op op,
		   int64_t value)
{
	struct pldk_post post = { .signal = signal, .peer = peer, .op = (int)op, .cell = cell, .value = value };
	uint64_t deadline_ns = PLD_DEADLINE_NEVER;
	struct pldk__thread *thread;
	struct pldk_domain *domain;
	int ret;

	ret = check_notify(signal, peer, cell, (int)op, "notify");
	if (pldk__unlikely(ret))
		return ret;
	domain = signal->domain;
	ret = pldk__enter(domain, &thread);
	if (pldk__unlikely(ret))
		return ret;
	ret = pldk__check_poison(domain, "notify");
	if (!ret && pldk__unlikely(domain->has_far)) {
		deadline_ns = pldk__far_deadline(PLDK_TIMEOUT_DEFAULT);
		ret = pldk__far_settle(domain, peer, deadline_ns);
	}
	if (!ret)
		ret = notify(domain, thread, pldk__site_id(site), &post, deadline_ns, NULL, NULL);
	pldk__leave(thread);
	return ret;
}

int(pldk_notify)(struct pldk_window *signal, int peer, int64_t cell, enum pldk_notify_op op, int64_t value)
{
	return pldk_notify_at(PLDK__CALLER(), signal, peer, cell, op, value);
}

static int check_posts(const struct pldk_post *posts, size_t n, const char *name)
{
	size_t i;
	int ret;

	if (!posts && n)
		return pldk__fail(-EINVAL, "%s: posts is NULL but there are %zu", name, n);
	if (n > PLD_MAX_CELLS_PER_CALL)
		return pldk__fail(-EINVAL, "%s: %zu entries: allowed are %u in one call", name, n, PLD_MAX_CELLS_PER_CALL);
	for (i = 0; i < n; i++) {
		ret = check_notify(posts[i].signal, posts[i].peer, posts[i].cell, posts[i].op, name);
		if (!ret && (posts[i].reserved[0] | posts[i].reserved[1]))
			ret = pldk__fail(-EINVAL, "%s: reserved is not 0: initialise the whole struct", name);
		if (ret)
			return pldk__fail_prefix(ret, "entry %zu: ", i);
		if (posts[i].signal->domain != posts[0].signal->domain)
			return pldk__fail(-EINVAL, "rank %u: %s: entry %zu is of another domain than entry 0",
					  posts[0].signal->domain->rank, name, i);
	}
	return 0;
}

/*
 * Notify in order. Sleepers are left in wakes[], at most WAKES of them, for the caller to wake. Far lanes to everybody
 * are settled first: one of the entries goes to somebody else.
 */
static int notify_vector(struct pldk_domain *domain, struct pldk__thread *thread, uint32_t site,
			 const struct pldk_post *posts, size_t n, struct pldk__wake *wakes, uint32_t *nwakes)
{
	uint64_t deadline_ns = PLD_DEADLINE_NEVER;
	size_t i;
	int ret = 0;

	if (domain->has_far && n) {
		deadline_ns = pldk__far_deadline(PLDK_TIMEOUT_DEFAULT);
		ret = pldk__far_settle(domain, -1, deadline_ns);
	}
	for (i = 0; i < n && !ret; i++) {
		if (*nwakes == WAKES) {
			domain->ops->wake(domain->pd, wakes, *nwakes);
			*nwakes = 0;
		}
		ret = notify(domain, thread, site, &posts[i], deadline_ns, wakes, nwakes);
		if (pldk__unlikely(ret == -ETIMEDOUT))
			pldk__fail_prefix(ret, "entry %zu, those before it are notified: ", i);
	}
	return ret;
}

/**
 * pldk_notify_all_at() - see signal.h
 */
int pldk_notify_all_at(struct pldk_site *site, const struct pldk_post *posts, size_t n)
{
	struct pldk__wake wakes[WAKES];
	struct pldk__thread *thread;
	struct pldk_domain *domain;
	uint32_t nwakes = 0;
	int ret;

	ret = check_posts(posts, n, "notify_all");
	if (ret || !n)
		return ret;
	domain = posts[0].signal->domain;
	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	ret = pldk__check_poison(domain, "notify_all");
	if (!ret)
		ret = notify_vector(domain, thread, pldk__site_id(site), posts, n, wakes, &nwakes);
	if (nwakes)
		domain->ops->wake(domain->pd, wakes, nwakes);
	pldk__leave(thread);
	return ret;
}

int(pldk_notify_all)(const struct pldk_post *posts, size_t n)
{
	return pldk_notify_all_at(PLDK__CALLER(), posts, n);
}

/*
 * Wait
 */

static int check_cmp(const struct pldk_window *signal, int cmp, const char *name)
{
	if (pldk__likely(cmp >= PLDK_EQ && cmp <= PLDK_LT))
		return 0;
	return pldk__fail(-EINVAL, "rank %u: %s: cmp is %d: PLDK_EQ is 0, ... PLDK_LT is 5", signal->domain->rank, name, cmp);
}

static int check_awaits(const struct pldk_await *awaits, size_t n, const char *name)
{
	size_t i;
	int ret;

	if (!awaits && n)
		return pldk__fail(-EINVAL, "%s: awaits is NULL but there are %zu", name, n);
	if (n > PLD_MAX_CELLS_PER_CALL)
		return pldk__fail(-EINVAL, "%s: %zu predicates: allowed are %u in one call", name, n, PLD_MAX_CELLS_PER_CALL);
	for (i = 0; i < n; i++) {
		ret = pldk__check_cell(awaits[i].signal, awaits[i].cell, name);
		if (!ret)
			ret = check_cmp(awaits[i].signal, awaits[i].cmp, name);
		if (!ret && awaits[i].flags & ~PLDK_AWAIT_FROM)
			ret = pldk__fail(-EOPNOTSUPP, "rank %u: %s: unknown flags 0x%x", awaits[i].signal->domain->rank, name,
					 awaits[i].flags & ~PLDK_AWAIT_FROM);
		if (!ret && awaits[i].flags & PLDK_AWAIT_FROM)
			ret = pldk__check_peer(awaits[i].signal->domain, awaits[i].from, name);
		if (!ret && (awaits[i].reserved | awaits[i].reserved32))
			ret = pldk__fail(-EINVAL, "%s: reserved is not 0: initialise the whole struct", name);
		if (ret)
			return pldk__fail_prefix(ret, "entry %zu: ", i);
		if (awaits[i].signal->domain != awaits[0].signal->domain)
			return pldk__fail(-EINVAL, "rank %u: %s: entry %zu is of another domain than entry 0",
					  awaits[0].signal->domain->rank, name, i);
	}
	return 0;
}

static void release_windows(const struct pldk_await *awaits, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		pldk__window_release(awaits[i].signal);
}

/* A wait that has to wait: keep its windows from being destroyed meanwhile, see pldk_window_destroy(). */
static int hold_windows(const struct pldk_await *awaits, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (pldk__window_hold(awaits[i].signal))
			continue;
		release_windows(awaits, i);
		return pldk__stale(awaits[i].signal, name);
	}
	return 0;
}

static void fill_pred(struct pldk__pred *pred, const struct pldk_await *await)
{
	pred->map = await->signal->map;
	pred->cell = (uint32_t)await->cell;
	pred->cmp = (uint32_t)await->cmp;
	pred->from = await->flags & PLDK_AWAIT_FROM ? (uint32_t)await->from : PLD_RANK_ANY;
	pred->expected = await->expected;
	pred->seen = 0;
}

/*
 * One wait over checked awaits, with its record before and its end after. The record of a vector names its first
 * predicate; while it waits, the ledger has the others.
 */
static int wait_for_awaits(struct pldk_domain *domain, struct pldk__thread *thread, uint32_t site,
			   struct pldk_await *awaits, size_t n, uint32_t flags, int64_t timeout_ns,
			   const struct pldk__wake *wakes, uint32_t nwakes, size_t *out_index, const char *name)
{
	struct pldk__pred on_stack[PREDS_ON_STACK];
	struct pldk__pred *preds = n <= PREDS_ON_STACK ? on_stack : malloc(n * sizeof(*preds));
	struct pldk__wait wait = { .preds = preds, .npreds = (uint32_t)n, .flags = flags, .site = site };
	struct pldk__rec *rec;
	size_t i;
	int ret;

	if (!preds) {
		if (nwakes)
			domain->ops->wake(domain->pd, wakes, nwakes);
		return pldk__fail(-ENOMEM, "rank %u: %s: no memory for %zu predicates", domain->rank, name, n);
	}
	for (i = 0; i < n; i++)
		fill_pred(&preds[i], &awaits[i]);
	rec = pldk__record(thread, PLDK_EV_WAIT, 0, site, n && awaits[0].flags & PLDK_AWAIT_FROM ? awaits[0].from : -1,
			   n ? (int)awaits[0].signal->id : -1, n ? (uint64_t)awaits[0].cell : 0,
			   n ? awaits[0].expected : 0);
	if (pldk__likely(pldk__wait_holds(domain->rank, &wait))) {
		if (nwakes)
			domain->ops->wake(domain->pd, wakes, nwakes);
		pldk__record_flag(rec, PLDK_EVENT_DONE_AT_ONCE);
		ret = 0;
	} else {
		pldk__store_relaxed(&rec->tsc, pldk__tsc());
		ret = hold_windows(awaits, n, name);
		if (!ret) {
			wait.deadline_ns = pldk__deadline(timeout_ns);
			ret = pldk__wait_for(domain, thread, &wait, wakes, nwakes, name);
			release_windows(awaits, n);
		}
		if (thread->waited_ns > 1000 || (ret && ret != -EAGAIN)) {
			rec = pldk__record(thread, PLDK_EV_WAIT_END, ret ? PLDK_EVENT_FAILED : 0, site, -1,
					   (int)awaits[0].signal->id, (uint64_t)awaits[0].cell, preds[0].seen);
			pldk__store_relaxed(&rec->tsc, pldk__tsc());
		}
	}
	for (i = 0; i < n; i++)
		awaits[i].seen = preds[i].seen;
	if (!ret && out_index)
		*out_index = wait.out_index;
	if (preds != on_stack)
		free(preds);
	return ret;
}

/**
 * pldk_wait_at() - see signal.h
 */
int pldk_wait_at(struct pldk_site *site, struct pldk_window *signal, int64_t cell, enum pldk_cmp cmp, int64_t expected,
		 int64_t timeout_ns)
{
	struct pldk_await await = {
		.signal = signal, .cell = cell, .cmp = (int)cmp, .expected = expected
	};
	struct pldk__thread *thread;
	int ret;

	ret = pldk__check_cell(signal, cell, "wait");
	if (!ret)
		ret = check_cmp(signal, (int)cmp, "wait");
	if (pldk__unlikely(ret))
		return ret;
	ret = pldk__enter(signal->domain, &thread);
	if (pldk__unlikely(ret))
		return ret;
	ret = wait_for_awaits(signal->domain, thread, pldk__site_id(site), &await, 1, 0, timeout_ns, NULL, 0, NULL, "wait");
	pldk__leave(thread);
	return ret;
}

int(pldk_wait)(struct pldk_window *signal, int64_t cell, enum pldk_cmp cmp, int64_t expected, int64_t timeout_ns)
{
	return pldk_wait_at(PLDK__CALLER(), signal, cell, cmp, expected, timeout_ns);
}

/**
 * pldk_wait_all_at() - see signal.h
 */
int pldk_wait_all_at(struct pldk_site *site, struct pldk_await *awaits, size_t n, int64_t timeout_ns)
{
	struct pldk__thread *thread;
	int ret;

	ret = check_awaits(awaits, n, "wait_all");
	if (ret || !n)
		return ret;
	ret = pldk__enter(awaits[0].signal->domain, &thread);
	if (ret)
		return ret;
	ret = wait_for_awaits(awaits[0].signal->domain, thread, pldk__site_id(site), awaits, n, 0, timeout_ns, NULL, 0,
			      NULL, "wait_all");
	pldk__leave(thread);
	return ret;
}

int(pldk_wait_all)(struct pldk_await *awaits, size_t n, int64_t timeout_ns)
{
	return pldk_wait_all_at(PLDK__CALLER(), awaits, n, timeout_ns);
}

/**
 * pldk_wait_any_at() - see signal.h
 */
int pldk_wait_any_at(struct pldk_site *site, struct pldk_await *awaits, size_t n, int64_t timeout_ns, size_t *out_index)
{
	struct pldk__thread *thread;
	int ret;

	ret = check_awaits(awaits, n, "wait_any");
	if (ret)
		return ret;
	if (!n || !out_index)
		return pldk__fail(-EINVAL, "wait_any: %s", n ? "out_index is NULL" : "no predicates: it would wait for ever");
	ret = pldk__enter(awaits[0].signal->domain, &thread);
	if (ret)
		return ret;
	ret = wait_for_awaits(awaits[0].signal->domain, thread, pldk__site_id(site), awaits, n, PLD_WAIT_F_ANY,
			      timeout_ns, NULL, 0, out_index, "wait_any");
	pldk__leave(thread);
	return ret;
}

int(pldk_wait_any)(struct pldk_await *awaits, size_t n, int64_t timeout_ns, size_t *out_index)
{
	return pldk_wait_any_at(PLDK__CALLER(), awaits, n, timeout_ns, out_index);
}

/**
 * pldk_notify_wait_at() - see signal.h
 *
 * The sleepers that the notifies saw are handed to the wait, which wakes them in the same system call in which it goes
 * to sleep, or before it spins.
 */
int pldk_notify_wait_at(struct pldk_site *site, const struct pldk_post *posts, size_t nposts, struct pldk_await *awaits,
			size_t nawaits, int64_t timeout_ns)
{
	struct pldk__wake wakes[WAKES];
	struct pldk__thread *thread;
	struct pldk_domain *domain;
	uint32_t nwakes = 0;
	uint32_t site_id;
	int ret;

	ret = check_posts(posts, nposts, "notify_wait");
	if (!ret)
		ret = check_awaits(awaits, nawaits, "notify_wait");
	if (ret || (!nposts && !nawaits))
		return ret;
	domain = nposts ? posts[0].signal->domain : awaits[0].signal->domain;
	if (nawaits && awaits[0].signal->domain != domain)
		return pldk__fail(-EINVAL, "rank %u: notify_wait: posts and awaits are of different domains", domain->rank);
	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	site_id = pldk__site_id(site);
	ret = pldk__check_poison(domain, "notify_wait");
	if (!ret)
		ret = notify_vector(domain, thread, site_id, posts, nposts, wakes, &nwakes);
	if (!ret && nawaits)
		ret = wait_for_awaits(domain, thread, site_id, awaits, nawaits, 0, timeout_ns, wakes, nwakes, NULL,
				      "notify_wait");
	else if (nwakes)
		domain->ops->wake(domain->pd, wakes, nwakes);
	pldk__leave(thread);
	return ret;
}

int(pldk_notify_wait)(const struct pldk_post *posts, size_t nposts, struct pldk_await *awaits, size_t nawaits,
		      int64_t timeout_ns)
{
	return pldk_notify_wait_at(PLDK__CALLER(), posts, nposts, awaits, nawaits, timeout_ns);
}

/*
 * Test and read
 */

/*
 * A loop of failed tests of one cell would push everything else out of the ring: its first and each 64th are recorded,
 * and who looks from outside sees that the thread polls.
 */
static void record_failed_test(struct pldk__thread *thread, uint32_t site, const struct pldk_window *signal,
			       int64_t cell, int64_t expected)
{
	uint64_t what = (uint64_t)signal->id << 40 ^ (uint64_t)cell;

	if (thread->polled != what || !thread->polls) {
		thread->polled = what;
		thread->polls = 0;
	}
	if (!(thread->polls++ % POLLS_PER_RECORD)) {
		pldk__record(thread, PLDK_EV_TEST, PLDK_EVENT_FAILED, site, -1, (int)signal->id, (uint64_t)cell,
			     expected);
		if (thread->polls > POLLS_PER_RECORD)
			pldk__state(thread, PLDK__STATE_POLLING);
	}
}

/**
 * pldk_test_at() - see signal.h
 */
int pldk_test_at(struct pldk_site *site, struct pldk_window *signal, int64_t cell, enum pldk_cmp cmp, int64_t expected)
{
	struct pldk_await await = {
		.signal = signal, .cell = cell, .cmp = (int)cmp, .expected = expected
	};
	struct pldk__pred pred;
	struct pldk__wait wait = { .preds = &pred, .npreds = 1, .deadline_ns = PLD_DEADLINE_POLL };
	struct pldk__thread *thread;
	struct pldk__rec *rec;
	uint32_t site_id;
	int ret;

	ret = pldk__check_cell(signal, cell, "test");
	if (!ret)
		ret = check_cmp(signal, (int)cmp, "test");
	if (pldk__unlikely(ret))
		return ret;
	ret = pldk__enter(signal->domain, &thread);
	if (pldk__unlikely(ret))
		return ret;
	site_id = pldk__site_id(site);
	fill_pred(&pred, &await);
	wait.site = site_id;
	ret = pldk__wait_for(signal->domain, thread, &wait, NULL, 0, "test");
	if (!ret) {
		if (thread->polls)
			pldk__state(thread, PLDK__STATE_RUN);
		thread->polls = 0;
		rec = pldk__record(thread, PLDK_EV_TEST, PLDK_EVENT_DONE_AT_ONCE, site_id, -1, (int)signal->id,
				   (uint64_t)cell, expected);
		pldk__store_relaxed(&rec->tsc, pldk__tsc());
		ret = 1;
	} else {
		record_failed_test(thread, site_id, signal, cell, expected);
		if (ret == -EAGAIN)
			ret = 0;
	}
	pldk__leave(thread);
	return ret;
}

int(pldk_test)(struct pldk_window *signal, int64_t cell, enum pldk_cmp cmp, int64_t expected)
{
	return pldk_test_at(PLDK__CALLER(), signal, cell, cmp, expected);
}

/**
 * pldk_read_at() - see signal.h
 */
int pldk_read_at(struct pldk_site *site, struct pldk_window *signal, int64_t cell, int64_t *out_value)
{
	struct pldk__thread *thread;
	int64_t value;
	int ret;

	ret = pldk__check_cell(signal, cell, "read");
	if (!ret && !out_value)
		ret = pldk__fail(-EINVAL, "rank %u: read: out_value is NULL", signal->domain->rank);
	if (pldk__unlikely(ret))
		return ret;
	ret = pldk__enter(signal->domain, &thread);
	if (pldk__unlikely(ret))
		return ret;
	value = pldk__load_acquire(&pldk__cell_at(signal->map, signal->domain->rank, (uint32_t)cell)->value);
	pldk__record(thread, PLDK_EV_READ, PLDK_EVENT_DONE_AT_ONCE, pldk__site_id(site), -1, (int)signal->id,
		     (uint64_t)cell, value);
	*out_value = value;
	pldk__leave(thread);
	return 0;
}

int(pldk_read)(struct pldk_window *signal, int64_t cell, int64_t *out_value)
{
	return pldk_read_at(PLDK__CALLER(), signal, cell, out_value);
}
