// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Domains: what a rank holds of one, who is inside a call on it, how it ends. How it begins is in join.c.
 *
 * The registry is the list of all domains of this process. Its lock is taken before a domain's; fork(2) takes it, too,
 * so that a child finds the list whole. A child of a rank is no rank: it inherits handles that must not work (two
 * processes would answer for one rank), so fork changes the magic word of every domain in the child, which
 * every call looks at anyway, and lets go of what the parent's threads hold in shared memory without touching it.
 */
#include "announce.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	struct pldk_domain *first;
	struct pldk_domain *init_world; /* of pldk_init() */
	bool is_initialising;
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

/** pldk__registry_lock() - lock the process-wide lists */
void pldk__registry_lock(void)
{
	pthread_mutex_lock(&registry.lock);
}

/** pldk__registry_unlock() - unlock them */
void pldk__registry_unlock(void)
{
	pthread_mutex_unlock(&registry.lock);
}

/** pldk__registry_first() - all domains of this process; the lock is held */
struct pldk_domain *pldk__registry_first(void)
{
	return registry.first;
}

/* In the child: every handle goes out of order, without a word to the memory that it shares with the parent. */
static void fork_child(void)
{
	struct pldk_domain *domain;
	struct pldk__thread *thread;

	for (domain = registry.first; domain; domain = domain->next_of_process) {
		domain->magic = PLDK__MAGIC_FORKED;
		for (thread = domain->threads; thread; thread = thread->next_of_world) {
			pldk__recorder_detach(thread, true);
			thread->world = NULL;
		}
		domain->threads = NULL;
	}
	registry.init_world = NULL;
	registry.is_initialising = false;
	pldk__registry_unlock();
}

static void registry_once(void)
{
	pthread_atfork(pldk__registry_lock, pldk__registry_unlock, fork_child);
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

/*
 * Every thread of the process passes a full barrier: the heavy half of pldk__enter(). Kernels and sandboxes without
 * membarrier(2) are left with a window of some nanoseconds in which a call that begins just when another thread closes
 * the domain is not noticed; such a program is wrong anyway, only its -EBUSY is lost.
 */
static void barrier_everywhere(void)
{
	int saved = errno;

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		pldk__fence_seq();
	errno = saved;
}

/** pldk__init_begin() - only one world of pldk_init() at a time */
int pldk__init_begin(void)
{
	int ret = 0;

	pldk__registry_lock();
	if (registry.init_world || registry.is_initialising)
		ret = -EEXIST;
	else
		registry.is_initialising = true;
	pldk__registry_unlock();
	return ret ? pldk__fail(ret, "init: called twice; the world is there until pldk_finalize()") : 0;
}

/** pldk__init_end() - it is there, or (NULL) it failed */
void pldk__init_end(struct pldk_domain *world)
{
	pldk__registry_lock();
	registry.is_initialising = false;
	registry.init_world = world;
	pldk__registry_unlock();
}

/*
 * Being inside
 */

/**
 * pldk__enter_refused() - why not
 */
int pldk__enter_refused(const struct pldk_domain *domain)
{
	uint32_t magic = domain ? pldk__load_acquire(&domain->magic) : 0;

	if (!domain)
		return pldk__fail(-EINVAL, "domain is NULL: pldk_init() gives one; did it fail?");
	if (magic == PLDK__MAGIC_FORKED)
		return pldk__fail_text(-ENOTCONN, "this process is a forked child of a rank: a forked child is no rank and cannot use its parent's domains");
	if (magic == PLDK__MAGIC_CLOSING || magic == PLDK__MAGIC_DOMAIN)
		return pldk__fail_text(-ECANCELED, "another thread is closing this domain");
	return pldk__fail(-EINVAL, "not a domain (magic %#x): closed, or never one", magic);
}

/**
 * pldk__threads_inside() - is anybody inside a call on the domain? It lets nobody in any more
 * @out_tid: who
 *
 * Context: takes the world's lock.
 */
bool pldk__threads_inside(struct pldk_domain *domain, uint32_t *out_tid)
{
	struct pldk_domain *world = domain->world;
	struct pldk__thread *thread;
	bool is_inside = false;

	barrier_everywhere();
	pthread_mutex_lock(&world->lock);
	for (thread = world->threads; thread && !is_inside; thread = thread->next_of_world) {
		is_inside = pldk__load_acquire(&thread->inside) &&
			    (domain == world || pldk__load_relaxed(&thread->domain) == domain);
		*out_tid = thread->tid;
	}
	pthread_mutex_unlock(&world->lock);
	return is_inside;
}

/* A domain, and for a world all that are made of it: is one of them that way? */
static bool family_is_locked(const struct pldk_domain *domain, uint32_t magic)
{
	const struct pldk_domain *d;

	for (d = registry.first; d; d = d->next_of_process) {
		if ((d == domain || d->world == domain) && pldk__load_relaxed(&d->magic) == magic)
			return true;
	}
	return false;
}

static void family_set_locked(const struct pldk_domain *domain, uint32_t magic)
{
	struct pldk_domain *d;

	for (d = registry.first; d; d = d->next_of_process) {
		if (d == domain || d->world == domain)
			pldk__store_seq(&d->magic, magic);
	}
}

static bool family_aborts(const struct pldk_domain *domain)
{
	const struct pldk_domain *d;
	bool is_aborting = false;

	pldk__registry_lock();
	for (d = registry.first; d; d = d->next_of_process)
		is_aborting |= (d == domain || d->world == domain) && pldk__load_seq(&d->aborting);
	pldk__registry_unlock();
	return is_aborting;
}

/*
 * Let nobody in any more, unless a call is going on. A world closes with its subsets, so of two threads that close a
 * domain, or a world and its subset, one does and the other is told.
 */
static int close_begin(struct pldk_domain *domain, const char *op)
{
	uint32_t magic;
	uint32_t tid = 0;
	bool is_busy;

	pldk__registry_lock();
	magic = pldk__load_relaxed(&domain->magic);
	is_busy = magic == PLDK__MAGIC_DOMAIN && family_is_locked(domain, PLDK__MAGIC_CLOSING);
	if (magic == PLDK__MAGIC_DOMAIN && !is_busy)
		family_set_locked(domain, PLDK__MAGIC_CLOSING);
	pldk__registry_unlock();
	if (is_busy || magic == PLDK__MAGIC_CLOSING)
		return pldk__fail(-EBUSY, "%s: another thread closes this domain or a subset of it", op);
	if (magic != PLDK__MAGIC_DOMAIN)
		return pldk__enter_refused(domain);
	is_busy = pldk__threads_inside(domain, &tid);
	if (!is_busy && !family_aborts(domain))
		return 0;
	pldk__registry_lock();
	family_set_locked(domain, PLDK__MAGIC_DOMAIN);
	pldk__registry_unlock();
	return pldk__fail(-EBUSY, "rank %u: %s: thread %u is inside a call on this domain or its windows", domain->rank, op,
			  tid);
}

/*
 * Beginning and end
 */

static bool shares_cpu(const struct pld_status *status, uint32_t rank)
{
	uint32_t cpu = pldk__member_of(status, rank)->cpu;
	uint32_t r;

	for (r = 0; r < status->nranks; r++) {
		if (r != rank && pldk__member_of(status, r)->cpu == cpu)
			return true;
	}
	return false;
}

static int compare_cpu(const void *a, const void *b)
{
	const uint32_t left = *(const uint32_t *)a;
	const uint32_t right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

/* Sorted: with a CPU for each of many ranks, every rank would look at every pair in its join. */
static bool has_shared_cpu(const struct pldk__pdomain *pd)
{
	uint32_t cpus[PLDK_MAX_RANKS];
	uint32_t r;

	for (r = 0; r < pd->nranks; r++)
		cpus[r] = pldk__member_of(pd->status, r)->cpu;
	qsort(cpus, pd->nranks, sizeof(cpus[0]), compare_cpu);
	for (r = 1; r < pd->nranks; r++) {
		if (cpus[r] == cpus[r - 1])
			return true;
	}
	return false;
}

static void fill_domain(struct pldk_domain *domain, struct pldk__pdomain *pd, struct pldk_domain *parent)
{
	const struct pldk__env *env = pldk__env();
	uint32_t r;

	domain->magic = PLDK__MAGIC_DOMAIN;
	domain->pd = pd;
	domain->ops = pd->ops;
	domain->rank = pd->rank;
	domain->nranks = pd->nranks;
	domain->parent = parent;
	domain->world = parent ? parent->world : domain;
	domain->recorder = parent ? parent->recorder : NULL;
	/* Who shares a CPU is decided by the world: a rank outside a subset needs its CPU, too. */
	domain->shares_cpu = parent ? parent->shares_cpu : shares_cpu(pd->status, pd->rank);
	domain->is_shared = parent ? parent->is_shared : has_shared_cpu(pd);
	domain->is_spread = pd->far != NULL;
	domain->spin_ns = env->spin_us < 0 ? -1 : (int64_t)env->spin_us * 1000;
	domain->wait_flags = !strcmp(env->deadlock, "off") ? PLD_WAIT_F_IDLE : 0;
	domain->is_deadlock_logged_only = !strcmp(env->deadlock, "report");
	for (r = 0; r < pd->nranks && pd->far; r++)
		domain->has_far |= pd->far[r] != 0;
	snprintf(domain->dims[0].name, sizeof(domain->dims[0].name), "NR");
	domain->dims[0].value = pd->nranks;
	domain->ndims = 1;
	pthread_mutex_init(&domain->lock, NULL);
}

static void registry_add(struct pldk_domain *domain)
{
	domain->next_of_process = registry.first;
	registry.first = domain;
}

static void registry_remove(struct pldk_domain *domain)
{
	struct pldk_domain **link;

	for (link = &registry.first; *link && *link != domain; link = &(*link)->next_of_process)
		;
	if (*link)
		*link = domain->next_of_process;
	if (registry.init_world == domain)
		registry.init_world = NULL;
}

/**
 * pldk__system_open() - open a system window of a domain
 *
 * Return: 0, or as the provider's open().
 */
int pldk__system_open(struct pldk_domain *domain, uint32_t which, uint32_t kind, uint32_t flags, uint64_t bytes,
		      struct pldk__map **out)
{
	struct pldk__window_spec spec = {
		.id = PLD_WINDOW_ID_SYSTEM + which,
		.kind = kind,
		.flags = flags | PLD_WINDOW_F_SYSTEM | PLD_WINDOW_F_ATTACH,
		.bytes = bytes,
	};

	return domain->ops->open(domain->pd, &spec, out);
}

/**
 * pldk__domain_new() - a domain around a membership; see internal.h
 */
int pldk__domain_new(struct pldk__pdomain *pd, struct pldk_domain *parent, uint32_t *world_ranks,
		     struct pldk_domain **out)
{
	struct pldk_domain *domain;
	int ret;

	pthread_once(&registry.once, registry_once);
	domain = pldk__arena_alloc(sizeof(*domain));
	if (!domain) {
		pd->ops->poison(pd, PLDK__JOIN_FAILED(pd->rank, -ENOMEM));
		pd->ops->leave(pd, false);
		free(world_ranks);
		return pldk__fail(-ENOMEM, "no memory for a domain");
	}
	fill_domain(domain, pd, parent);
	domain->world_ranks = world_ranks;
	ret = pldk__rendezvous_open(domain);
	pldk__registry_lock();
	if (!ret && !parent)
		ret = pldk__recorder_open(domain, (uint32_t)pldk__env()->ring);
	registry_add(domain);
	pldk__registry_unlock();
	if (ret) {
		ret = pldk__domain_fail(domain, ret);
		pldk__domain_free(domain, parent != NULL); /* who gives a subset up has not died */
		return ret;
	}
	*out = domain;
	return 0;
}

/**
 * pldk__domain_fail() - tell all who are joining that this rank fails
 * @err: with what; the sentence of this thread goes with it
 *
 * Who only suffers from another's failure tells nobody.
 *
 * Return: @err.
 */
int pldk__domain_fail(struct pldk_domain *domain, int err)
{
	struct pldk__control *control;

	if (err == -ECANCELED || err == -EOWNERDEAD || err == -ETIMEDOUT)
		return err;
	if (domain->control) {
		control = (void *)pldk__slab(domain->control, domain->rank);
		snprintf(control->join_text, sizeof(control->join_text), "%s", pldk_last_error());
		pldk__store_release(&control->join_err, err);
	}
	domain->ops->poison(domain->pd, PLDK__JOIN_FAILED(domain->rank, err));
	return err;
}

/* Threads keep their faces; those of a world that ends are cut loose, so that none is mistaken for another world's. */
static void cut_threads(struct pldk_domain *world)
{
	struct pldk__thread *thread;

	pthread_mutex_lock(&world->lock);
	for (thread = world->threads; thread; thread = thread->next_of_world) {
		pldk__recorder_detach(thread, false);
		pldk__store_release(&thread->world, NULL);
	}
	world->threads = NULL;
	pthread_mutex_unlock(&world->lock);
}

static void free_windows(struct pldk_domain *domain)
{
	struct pldk_window *window;

	while ((window = domain->windows)) {
		domain->windows = window->next;
		domain->ops->close(domain->pd, window->map);
		pldk__store_release(&window->magic, PLDK__MAGIC_DEAD);
	}
	domain->graveyard = NULL;
	pldk__shells_end(domain);
}

static void unlink_subset(struct pldk_domain *subset)
{
	struct pldk_domain *world = subset->world;
	struct pldk_domain **link;

	pthread_mutex_lock(&world->lock);
	for (link = &world->subsets; *link && *link != subset; link = &(*link)->next_subset)
		;
	if (*link)
		*link = subset->next_subset;
	pthread_mutex_unlock(&world->lock);
}

/**
 * pldk__domain_free() - give everything back; see internal.h
 */
void pldk__domain_free(struct pldk_domain *domain, bool finalised)
{
	bool is_world = domain->world == domain;
	struct pldk_domain *subset;

	while (is_world && (subset = domain->subsets)) {
		unlink_subset(subset);
		pldk__domain_free(subset, finalised);
	}
	pldk__handles_end(domain);
	pldk__coll_close(domain);
	free_windows(domain);
	pldk__rendezvous_close(domain);
	pldk__registry_lock();
	if (is_world) {
		cut_threads(domain);
		pldk__recorder_close(domain);
	}
	registry_remove(domain);
	pldk__registry_unlock();
	domain->ops->leave(domain->pd, finalised);
	pthread_mutex_destroy(&domain->lock);
	free(domain->world_ranks);
	free(domain->lists);
	pldk__store_release(&domain->magic, PLDK__MAGIC_DEAD);
	pldk__arena_end(domain, sizeof(*domain));
}

static int check_domain(const struct pldk_domain *domain, const char *op)
{
	uint32_t magic = domain ? pldk__load_acquire(&domain->magic) : 0;

	if (pldk__likely(magic == PLDK__MAGIC_DOMAIN || magic == PLDK__MAGIC_CLOSING))
		return 0;
	/* A forked child has the handle but not the mappings behind it. */
	if (magic == PLDK__MAGIC_FORKED)
		return pldk__enter_refused(domain);
	return pldk__fail(-EINVAL, "%s: %s", op, domain ? "not a domain: closed, or never one" : "domain is NULL: pldk_init() gives one; did it fail?");
}

static void record_leave(struct pldk_domain *domain)
{
	struct pldk__rec *rec;

	if (!pldk__self || pldk__self->world != domain->world)
		return;
	rec = pldk__record(pldk__self, PLDK_EV_LEAVE, 0, 0, -1, -1, 0, getpid());
	pldk__store_relaxed(&rec->tsc, pldk__tsc());
}

/**
 * pldk_finalize() - see domain.h
 */
int pldk_finalize(struct pldk_domain *world)
{
	int ret;

	if (!world)
		return 0;
	ret = check_domain(world, "finalize");
	if (ret)
		return ret;
	if (world->world != world)
		return pldk__fail(-EINVAL, "rank %u: finalize: this is a subset: close it with pldk_domain_close()", world->rank);
	ret = close_begin(world, "finalize");
	if (ret)
		return ret;
	record_leave(world);
	pldk__domain_free(world, true);
	return 0;
}

/**
 * pldk_domain_close() - see domain.h
 */
int pldk_domain_close(struct pldk_domain *domain)
{
	int ret;

	ret = check_domain(domain, "domain_close");
	if (ret)
		return ret;
	if (domain->world == domain)
		return pldk__fail(-EINVAL, "rank %u: domain_close: this is the world: leave it with pldk_finalize()", domain->rank);
	ret = close_begin(domain, "domain_close");
	if (ret)
		return ret;
	record_leave(domain);
	unlink_subset(domain);
	pldk__domain_free(domain, true);
	return 0;
}

/*
 * Questions
 */

/** pldk_rank() - see domain.h */
int pldk_rank(const struct pldk_domain *domain)
{
	int ret = check_domain(domain, "rank");

	return ret ? ret : (int)domain->rank;
}

/** pldk_size() - see domain.h */
int pldk_size(const struct pldk_domain *domain)
{
	int ret = check_domain(domain, "size");

	return ret ? ret : (int)domain->nranks;
}

/** pldk_left() - see domain.h */
int pldk_left(const struct pldk_domain *domain)
{
	int ret = check_domain(domain, "left");

	return ret ? ret : (int)((domain->rank + domain->nranks - 1) % domain->nranks);
}

/** pldk_right() - see domain.h */
int pldk_right(const struct pldk_domain *domain)
{
	int ret = check_domain(domain, "right");

	return ret ? ret : (int)((domain->rank + 1) % domain->nranks);
}

/** pldk_device() - see domain.h */
int pldk_device(const struct pldk_domain *domain, int rank)
{
	int ret = check_domain(domain, "device");

	if (!ret)
		ret = pldk__check_peer(domain, rank, "device");
	return ret ? ret : (int)pldk__member_of(domain->pd->status, (uint32_t)rank)->device_id;
}

/** pldk_provider() - see domain.h */
const char *pldk_provider(const struct pldk_domain *domain)
{
	return check_domain(domain, "provider") ? "?" : domain->ops->name;
}

/** pldk_member() - see domain.h */
int pldk_member(struct pldk_domain *domain, int rank, struct pldk_member *out)
{
	const struct pld_member *member;
	struct pldk__thread *thread;
	int ret;

	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	ret = pldk__check_peer(domain, rank, "member");
	if (!ret && !out)
		ret = pldk__fail(-EINVAL, "rank %u: member: out is NULL", domain->rank);
	if (!ret) {
		member = pldk__member_of(domain->pd->status, (uint32_t)rank);
		memset(out, 0, sizeof(*out));
		out->state = (int)pldk__load_acquire(&member->state);
		out->pid = (int)pldk__load_relaxed(&member->pid);
		out->status = pldk__load_relaxed(&member->status);
		out->device_id = (int)member->device_id;
		out->cpu = (int)member->cpu;
		out->node = (int)member->node;
		out->is_far = domain->pd->far && domain->pd->far[rank];
	}
	pldk__leave(thread);
	return ret;
}

/** pldk_limits() - see domain.h */
int pldk_limits(struct pldk_domain *domain, struct pldk_limits *out)
{
	struct pldk_limits limits = { 0 };
	struct pldk__thread *thread;
	int ret;

	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	ret = out ? domain->ops->limits(domain->pd, &limits) : pldk__fail(-EINVAL, "rank %u: limits: out is NULL", domain->rank);
	if (!ret)
		*out = limits;
	pldk__leave(thread);
	return ret;
}

/*
 * Ending everybody's work
 */

/**
 * pldk_abort() - see domain.h
 *
 * Async-signal-safe: it neither enters (a thread's first call allocates) nor formats. The record is written only if
 * this thread has a ring; if the handler interrupted a record, the newer one of the two is lost.
 */
int pldk_abort(struct pldk_domain *domain, int code)
{
	struct pldk__rec *rec;
	uint32_t magic;
	int ret;

	if (!domain)
		return pldk__fail_text(-EINVAL, "abort: domain is NULL");
	magic = pldk__load_acquire(&domain->magic);
	if (magic == PLDK__MAGIC_FORKED)
		return pldk__fail_text(-ENOTCONN, "abort: a forked child is no rank");
	if (magic != PLDK__MAGIC_DOMAIN && magic != PLDK__MAGIC_CLOSING)
		return pldk__fail_text(-EINVAL, "abort: not a domain: closed, or never one");
	if (code < 0 || code > 0xffff)
		return pldk__fail_text(-EINVAL, "abort: the code is not in 0..65535");
	/* Who closes the domain looks at the count after it has changed the word; here it is the other way round. */
	pldk__add_seq(&domain->aborting, 1);
	if (pldk__load_seq(&domain->magic) == PLDK__MAGIC_DOMAIN) {
		if (pldk__self && pldk__self->world == domain->world && !pldk__self->is_shared) {
			rec = pldk__record(pldk__self, PLDK_EV_ABORT, 0, 0, -1, -1, 0, code);
			pldk__store_relaxed(&rec->tsc, pldk__tsc());
		}
		ret = domain->ops->poison(domain->pd, (uint32_t)code);
		if (ret)
			pldk__fail_text(ret, "abort: the kernel refused: the domain is not aborted");
	} else {
		ret = pldk__fail_text(-ECANCELED, "abort: the domain is being closed");
	}
	pldk__sub_seq(&domain->aborting, 1);
	return ret;
}

/* A rank that failed in its join told so by poison: which, with what, and why? */
static int fail_join(struct pldk_domain *domain, uint32_t code, uint32_t rank)
{
	const struct pld_status *status = domain->pd->status;
	char text[PLDK__CALL_TEXT] = "";
	int err = -(int)(code & 0xff);
	uint32_t r;

	if (domain->parent && err == -EPROTO && rank < domain->nranks) {
		/* Who found the disagreement left the sentence in the parent: see poison_list() in join.c. */
		for (r = 0; pldk__world_rank(domain->parent, r) != domain->world_ranks[rank]; r++)
			;
		if (pldk__control_read(domain->parent, r, offsetof(struct pldk__control, join_text), text,
				       sizeof(text)))
			text[0] = '\0';
		text[sizeof(text) - 1] = '\0';
	} else if (rank < domain->nranks) {
		if (pldk__control_read(domain, rank, offsetof(struct pldk__control, join_text), text, sizeof(text)))
			text[0] = '\0';
		text[sizeof(text) - 1] = '\0';
	} else {
		/* It could not even join, so it told from outside; it is one that has not joined. */
		for (r = 0; r < domain->nranks; r++) {
			if ((r & 63) == (code >> 8 & 63) &&
			    pldk__load_acquire(&pldk__member_of(status, r)->state) == PLD_MEMBER_ABSENT)
				rank = r;
		}
	}
	if (domain->parent && err == -EPROTO)
		return pldk__fail(-EPROTO, "rank %u: subset: %s", domain->parent->rank,
				  *text ? text : "the members gave different lists, or created their subsets in different orders");
	if (rank >= domain->nranks)
		return pldk__fail(-ECANCELED, "rank %u: init: a rank failed in init: %s (%s)", domain->rank, pldk_strerror(err),
				  pldk__errno_name(err));
	return pldk__fail(-ECANCELED, "rank %u: init: rank %u failed in init: %s (%s)%s%s", domain->rank, rank,
			  pldk_strerror(err), pldk__errno_name(err), *text ? ": " : "", text);
}

/**
 * pldk__fail_poisoned() - the sentence of a rank that came to a world which was poisoned before
 * @code: of the poison
 * @rank: who poisoned, or PLD_RANK_ANY
 *
 * For providers: there is no domain yet that could be asked. In worlds of more than 64 ranks the number of a rank that
 * failed before it joined is known modulo 64 only.
 *
 * Return: -ECANCELED.
 */
int pldk__fail_poisoned(uint32_t code, uint32_t rank)
{
	if (PLDK__IS_JOIN_FAILED(code))
		return pldk__fail(-ECANCELED, "rank %u failed in init: %s (%s)", rank != PLD_RANK_ANY ? rank : code >> 8 & 63,
				  pldk_strerror((int)(code & 0xff)), pldk__errno_name((int)(code & 0xff)));
	if (rank != PLD_RANK_ANY)
		return pldk__fail(-ECANCELED, "aborted by rank %u, code %u", rank, code);
	return pldk__fail(-ECANCELED, "aborted from outside (the launcher), code %u", code);
}

/**
 * pldk__fail_poison() - the sentence of a poisoned domain
 */
int pldk__fail_poison(struct pldk_domain *domain, const char *op)
{
	const struct pld_status *status = domain->pd->status;
	uint32_t code = pldk__load_acquire(&status->poison) & ~PLD_POISON_SET;
	uint32_t rank = pldk__load_relaxed(&status->poison_rank);

	if (!domain->is_joined && PLDK__IS_JOIN_FAILED(code))
		return fail_join(domain, code, rank);
	if (rank < domain->nranks)
		return pldk__fail(-ECANCELED, "rank %u: %s: aborted by rank %u (pid %u), code %u", domain->rank, op, rank,
				  pldk__pid_of(domain, rank), code);
	/* A subset inherits its parents' poison; who gave it may be no member here. */
	status = domain->world->pd->status;
	rank = pldk__load_acquire(&status->poison) ? pldk__load_relaxed(&status->poison_rank) : PLD_RANK_ANY;
	if (rank < domain->world->nranks)
		return pldk__fail(-ECANCELED, "rank %u: %s: aborted by rank %u of the world (pid %u), code %u", domain->rank, op,
				  rank, pldk__pid_of(domain->world, rank), code);
	return pldk__fail(-ECANCELED, "rank %u: %s: aborted from outside (the launcher), code %u", domain->rank, op, code);
}

/**
 * pldk__member_how() - how a rank ended
 */
const char *pldk__member_how(const struct pld_member *member, char *buf, size_t len)
{
	uint32_t state = pldk__load_acquire(&member->state);
	const char *name;

	switch (state) {
	case PLD_MEMBER_ABSENT:
		snprintf(buf, len, "has not joined");
		break;
	case PLD_MEMBER_ALIVE:
		snprintf(buf, len, "is alive");
		break;
	case PLD_MEMBER_FINALISED:
		snprintf(buf, len, "has finalised");
		break;
	case PLD_MEMBER_EXITED:
		if (member->status < 0) {
			snprintf(buf, len, "exited without pldk_finalize()");
			break;
		}
		snprintf(buf, len, "exited with code %d without pldk_finalize()", member->status);
		break;
	case PLD_MEMBER_KILLED:
		name = sigabbrev_np(member->status);
		if (name)
			snprintf(buf, len, "was killed by SIG%s (%d)", name, member->status);
		else
			snprintf(buf, len, "was killed by POSIX signal %d", member->status);
		break;
	default:
		snprintf(buf, len, "let go of the domain without pldk_finalize()");
	}
	return buf;
}
