// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Windows: made by all ranks together, let go by each for itself.
 *
 * Creation is three steps that no rank can leave another stuck in: all prove to each other that they ask for the same
 * (a rank with a bad argument says so instead); each opens the window at its provider, the first caller creates; all
 * tell each other how that went. Whoever hears of a failure closes what it has opened, so nothing is left behind.
 *
 * A destroyed window leaves its shell in the domain's graveyard: views point to it, and must be told that it is gone.
 * Shells stand in blocks of arena.c, so that they can be told even when the domain is gone.
 */
#include "announce.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ID_TRIES 16 /* for a free id; more than one is only needed after 65,535 windows */

/* What a window shall be, before it is one. */
struct wish {
	struct pldk_domain *domain;
	const char *op;
	const char *name;
	uint32_t kind;
	uint32_t flags; /* PLD_WINDOW_F_* */
	uint32_t ndim;	/* 0: sized in bytes */
	uint32_t dtype;
	int id;
	uint64_t bytes;
	int64_t shape[PLDK_MAX_DIMS];
	int64_t timeout_ns;
};

/**
 * pldk__window_text() - "window 3 \"grads\"" for sentences
 */
const char *pldk__window_text(const struct pldk_window *window, char *buf, size_t len)
{
	if (*window->name)
		snprintf(buf, len, "window %u \"%s\"", window->id, window->name);
	else
		snprintf(buf, len, "window %u", window->id);
	return buf;
}

/**
 * pldk__window_of() - the open window of a map
 */
const struct pldk_window *pldk__window_of(struct pldk_domain *domain, const struct pldk__map *map)
{
	const struct pldk_window *window;

	pthread_mutex_lock(&domain->lock);
	for (window = domain->windows; window && window->map != map; window = window->next)
		;
	pthread_mutex_unlock(&domain->lock);
	return window;
}

/**
 * pldk__window_by_id() - the open window of an id
 */
const struct pldk_window *pldk__window_by_id(struct pldk_domain *domain, uint32_t id)
{
	const struct pldk_window *window;

	pthread_mutex_lock(&domain->lock);
	for (window = domain->windows; window && window->id != id; window = window->next)
		;
	pthread_mutex_unlock(&domain->lock);
	return window;
}

/**
 * pldk__window_at() - the open data window around an address, held
 */
struct pldk_window *pldk__window_at(struct pldk_domain *domain, const void *address, uint64_t len)
{
	struct pldk_window *window;

	pthread_mutex_lock(&domain->lock);
	for (window = domain->windows; window; window = window->next) {
		const uint64_t offset = (uintptr_t)address - (uintptr_t)pldk__slab(window->map, domain->rank);

		if (window->kind == PLD_WINDOW_DATA && offset < window->bytes && len <= window->bytes - offset)
			break;
	}
	/* Who destroys it has closed it to others before it takes it off the list. */
	if (window && !pldk__window_hold(window))
		window = NULL;
	pthread_mutex_unlock(&domain->lock);
	return window;
}

/*
 * Checks that others use, too
 */

/**
 * pldk__stale() - the failure of a call on a window that was destroyed
 */
int pldk__stale(const struct pldk_window *window, const char *op)
{
	return pldk__fail(-ESTALE, "rank %u: %s: window %u was destroyed", window->domain->rank, op, window->id);
}

/**
 * pldk__check_window() - is it a window, and open?
 */
int pldk__check_window(const struct pldk_window *window, const char *op)
{
	uint32_t magic;

	if (!window)
		return pldk__fail(-EINVAL, "%s: window is NULL", op);
	magic = pldk__load_acquire(&window->magic);
	if (pldk__likely(magic == PLDK__MAGIC_WINDOW))
		return 0;
	if (magic == PLDK__MAGIC_DEAD)
		return pldk__stale(window, op);
	if (!magic && pldk__arena_has(window))
		return pldk__fail(-ESTALE, "%s: the domain of this window was closed", op);
	return pldk__fail(-EINVAL, "%s: not a window (magic %#x)", op, magic);
}

/**
 * pldk__check_cell() - is it a signal window, and the cell in it?
 */
int pldk__check_cell(const struct pldk_window *signal, int64_t cell, const char *op)
{
	char text[80];
	int ret;

	ret = pldk__check_window(signal, op);
	if (ret)
		return ret;
	if (pldk__unlikely(signal->kind != PLD_WINDOW_SIGNAL))
		return pldk__fail(-EDOM, "rank %u: %s: %s is a data window: cells live in signal windows, see pldk_signal_create()",
				  signal->domain->rank, op, pldk__window_text(signal, text, sizeof(text)));
	if (pldk__unlikely(cell < 0 || cell >= (int64_t)signal->ncells))
		return pldk__fail(-EINVAL, "rank %u: %s: cell %" PRId64 " is not in 0..%u of %s", signal->domain->rank, op, cell,
				  signal->ncells - 1, pldk__window_text(signal, text, sizeof(text)));
	return 0;
}

/**
 * pldk__check_peer() - is it a rank of the domain?
 */
int pldk__check_peer(const struct pldk_domain *domain, int peer, const char *op)
{
	if (pldk__likely(peer >= 0 && (uint32_t)peer < domain->nranks))
		return 0;
	return pldk__fail(-EINVAL, "rank %u: %s: peer %d is not in 0..%u%s", domain->rank, op, peer, domain->nranks - 1,
			  peer == -1		      ? ": did you mean (r-1+P)%P? See pldk_left()" :
			  peer == (int)domain->nranks ? ": did you mean (r+1)%P? See pldk_right()" :
							"");
}

/*
 * Creation
 */

static uint32_t kernel_flags(uint32_t flags)
{
	return (flags & PLDK_WINDOW_OWNER_WRITES ? PLD_WINDOW_F_OWNER_WRITES : 0) |
	       (flags & PLDK_WINDOW_HUGE ? PLD_WINDOW_F_HUGE : 0) |
	       (flags & PLDK_WINDOW_INTERLEAVE ? PLD_WINDOW_F_INTERLEAVE : 0) |
	       (flags & PLDK_WINDOW_HUGE_ONLY ? PLD_WINDOW_F_HUGE | PLD_WINDOW_F_HUGE_ONLY : 0);
}

/* Options into the wish; the timeout also when the rest is wrong, because the others must hear of the failure. */
static int take_options(struct wish *wish, const struct pldk_window_options *user)
{
	const uint32_t valid =
		PLDK_WINDOW_OWNER_WRITES | PLDK_WINDOW_HUGE | PLDK_WINDOW_INTERLEAVE | PLDK_WINDOW_HUGE_ONLY;
	struct pldk_window_options all = PLDK_WINDOW_OPTIONS_INIT;
	const struct pldk_window_options *options = &all;
	int ret;

	wish->id = -1;
	wish->timeout_ns = PLDK_TIMEOUT_DEFAULT;
	if (!user)
		return 0;
	ret = pldk__options_take(&all, sizeof(all), sizeof(all), user);
	if (ret)
		return pldk__fail_prefix(ret, "rank %u: %s: ", wish->domain->rank, wish->op);
	wish->id = options->id;
	wish->timeout_ns = options->timeout_ns;
	wish->name = options->name;
	wish->flags = kernel_flags(options->flags);
	if (options->flags & ~valid)
		return pldk__fail(-EOPNOTSUPP, "rank %u: %s: unknown flags %#x", wish->domain->rank, wish->op,
				  options->flags & ~valid);
	if (options->id < -1 || options->id > (int)PLD_WINDOW_ID_MAX)
		return pldk__fail(-EINVAL, "rank %u: %s: id %d is not in 0..%u, nor -1 for the next free one", wish->domain->rank,
				  wish->op, options->id, PLD_WINDOW_ID_MAX);
	if (options->name && strnlen(options->name, PLDK__NAME_MAX) >= PLDK__NAME_MAX)
		return pldk__fail(-EINVAL, "rank %u: %s: the name has more than %u bytes", wish->domain->rank, wish->op,
				  PLDK__NAME_MAX - 1);
	for (const char *at = options->name; at && *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return pldk__fail(-EINVAL, "rank %u: %s: the name has the control character %#04x at byte %td", wish->domain->rank,
					  wish->op, (unsigned int)*at, at - options->name);
	}
	return 0;
}

static int check_bytes(const struct wish *wish)
{
	const struct pldk_domain *domain = wish->domain;

	if (!wish->bytes)
		return pldk__fail(-EINVAL, "rank %u: %s: 0 bytes: a window has at least 1", domain->rank, wish->op);
	/* One FP16 a rank is 2 bytes on 2 ranks, so this is no error; a view that does not fit will be one. */
	if (wish->bytes == domain->nranks && domain->nranks > 1)
		pldk__log(PLDK_LOG_WARN, "rank %u: %s: %" PRIu64 " bytes is the number of ranks: the size is in bytes of one rank's slab",
			  domain->rank, wish->op, wish->bytes);
	return 0;
}

static uint64_t tag_of(const struct wish *wish)
{
	uint64_t tag = pldk__mix(wish->dtype, wish->ndim);
	uint32_t i;

	for (i = 0; i < wish->ndim; i++)
		tag = pldk__mix(tag, (uint64_t)wish->shape[i]);
	return tag;
}

/*
 * First number from domain->next_id on whose id this rank has not open itself; INT64_MAX if there is none. Numbers
 * count on for ever, an id is a number modulo all ids: so ranks that have come apart (one timed out in a creation that
 * the others completed) still agree on the largest.
 */
static int64_t propose_id(struct pldk_domain *domain)
{
	uint64_t number;

	for (number = domain->next_id; number <= domain->next_id + PLD_WINDOW_ID_MAX; number++) {
		if (!pldk__window_by_id(domain, (uint32_t)(number % (PLD_WINDOW_ID_MAX + 1))))
			return (int64_t)number;
	}
	return INT64_MAX;
}

/*
 * Agree on what is wanted, and on the id if it is to be found. Which ids are in use differs from rank to rank (release
 * is local), so each proposes and the farthest proposal counts. Return: 0, own error, or as pldk__rendezvous().
 */
static int agree(const struct wish *wish, struct pldk__thread *thread, struct pldk__call *call, uint64_t deadline_ns,
		 uint32_t *out_id)
{
	struct pldk_domain *domain = wish->domain;
	int64_t number;
	int ret;

	call->args[0] = (int64_t)wish->bytes;
	call->args[1] = wish->kind;
	call->args[2] = wish->id;
	call->args[3] = wish->flags;
	call->args[4] = (int64_t)tag_of(wish);
	call->args[5] = call->err ? 0 : propose_id(domain);
	ret = pldk__rendezvous(domain, thread, call, deadline_ns);
	if (ret || wish->id >= 0) {
		*out_id = (uint32_t)wish->id;
		return ret;
	}
	ret = pldk__rendezvous_max(domain, 5, &number);
	if (ret)
		return ret;
	if (number < 0 || number == INT64_MAX)
		return pldk__fail(-EEXIST, "rank %u: %s: all %u window ids are taken", domain->rank, wish->op,
				  PLD_WINDOW_ID_MAX + 1);
	*out_id = (uint32_t)((uint64_t)number % (PLD_WINDOW_ID_MAX + 1));
	domain->next_id = (uint64_t)number + 1;
	return 0;
}

#define SHELLS_BYTES (16u << 10)

/** struct pldk__shells - a block of them; the domain has a list */
struct pldk__shells {
	struct pldk__shells *next;
	size_t used;
	struct pldk_window shells[];
};

/**
 * pldk__shell_new() - memory for a window; see internal.h
 */
struct pldk_window *pldk__shell_new(struct pldk_domain *domain)
{
	struct pldk__shells *block = domain->shells;
	struct pldk_window *shell = domain->spare;

	if (shell) {
		domain->spare = NULL;
		memset(shell, 0, sizeof(*shell));
		return shell;
	}
	if (!block || sizeof(*block) + (block->used + 1) * sizeof(*shell) > SHELLS_BYTES) {
		block = pldk__arena_alloc(SHELLS_BYTES);
		if (!block)
			return NULL;
		block->next = domain->shells;
		domain->shells = block;
	}
	return &block->shells[block->used++];
}

/**
 * pldk__shells_end() - the domain closes: all its windows are no windows from now on
 */
void pldk__shells_end(struct pldk_domain *domain)
{
	struct pldk__shells *block;

	while ((block = domain->shells)) {
		domain->shells = block->next;
		pldk__arena_end(block, SHELLS_BYTES);
	}
}

/* Nobody outside has heard of it yet. */
static void window_drop(struct pldk_domain *domain, struct pldk_window *window)
{
	window->magic = PLDK__MAGIC_DEAD;
	domain->spare = window;
}

static struct pldk_window *window_new(const struct wish *wish, uint32_t id)
{
	struct pldk_window *window = pldk__shell_new(wish->domain);

	if (!window) {
		pldk__fail(-ENOMEM, "rank %u: %s: no memory", wish->domain->rank, wish->op);
		return NULL;
	}
	window->magic = PLDK__MAGIC_WINDOW;
	window->kind = wish->kind;
	window->domain = wish->domain;
	window->bytes = wish->bytes;
	window->id = id;
	window->flags = wish->flags;
	window->ncells = wish->kind == PLD_WINDOW_SIGNAL ? (uint32_t)(wish->bytes / PLD_CELL_SIZE) : 0;
	window->ndim = wish->ndim;
	window->dtype = wish->dtype;
	memcpy(window->shape, wish->shape, sizeof(window->shape));
	if (wish->name)
		snprintf(window->name, sizeof(window->name), "%s", wish->name);
	return window;
}

/* This rank's part of the creation: its handle and its attachment. */
static int open_local(const struct wish *wish, uint32_t id, struct pldk_window **out)
{
	struct pldk__window_spec spec = {
		.id = id,
		.kind = wish->kind,
		.flags = wish->flags | PLD_WINDOW_F_ATTACH,
		.bytes = wish->bytes,
		.tag = tag_of(wish),
	};
	const struct pldk_window *other = pldk__window_by_id(wish->domain, id);
	struct pldk_window *window;
	char text[80];
	int ret;

	if (other)
		return pldk__fail(-EEXIST,
				  "rank %u: %s: %s is open and has %" PRIu64 " bytes; asked for are %" PRIu64
				  " bytes: destroy it first or choose another id",
				  wish->domain->rank, wish->op, pldk__window_text(other, text, sizeof(text)),
				  other->bytes, wish->bytes);
	window = window_new(wish, id);
	if (!window)
		return -ENOMEM;
	ret = wish->domain->ops->open(wish->domain->pd, &spec, &window->map);
	if (ret) {
		window_drop(wish->domain, window);
		/*
		 * The ranks agreed just before; so this is an earlier window that another rank has not destroyed yet.
		 */
		if (ret == -EPROTO)
			ret = -EEXIST;
		return pldk__fail_prefix(ret, "rank %u: %s: window %u: ", wish->domain->rank, wish->op, id);
	}
	window->generation = window->map->generation;
	*out = window;
	return 0;
}

static void publish(struct pldk_window *window)
{
	struct pldk_domain *domain = window->domain;

	pthread_mutex_lock(&domain->lock);
	window->next = domain->windows;
	domain->windows = window;
	pthread_mutex_unlock(&domain->lock);
}

/*
 * The creation itself. ret is what checking the arguments said: the others are told, so that they do not wait for a
 * rank that has given up.
 */
static int create(struct wish *wish, struct pldk__thread *thread, uint32_t site, int ret, struct pldk_window **out)
{
	struct pldk__call call = { .op = PLDK_EV_WINDOW_CREATE, .site = site };
	uint64_t deadline_ns = pldk__deadline(wish->timeout_ns);
	struct pldk_window *window;
	uint32_t id = 0;
	int try;

	for (try = 0; try < ID_TRIES; try++) {
		call.phase = 0;
		call.err = ret;
		ret = agree(wish, thread, &call, deadline_ns, &id);
		if (ret)
			return ret;
		window = NULL;
		call.phase = 1;
		call.err = open_local(wish, id, &window);
		call.args[2] = id;
		ret = pldk__rendezvous(wish->domain, thread, &call, deadline_ns);
		if (!ret) {
			publish(window);
			*out = window;
			return 0;
		}
		if (window) {
			wish->domain->ops->close(wish->domain->pd, window->map);
			window_drop(wish->domain, window);
		}
		/* The next free id was not free everywhere: all ranks hear that alike, and all try the next. */
		if (ret != -EEXIST || wish->id >= 0)
			return ret;
		ret = 0;
	}
	return pldk__fail(-EEXIST, "rank %u: %s: found no free window id", wish->domain->rank, wish->op);
}

static int create_common(struct pldk_site *site, struct wish *wish, int ret, struct pldk__thread *thread,
			 struct pldk_window **out)
{
	struct pldk_domain *domain = wish->domain;
	uint32_t site_id = pldk__site_id(site);
	struct pldk_window *window = NULL;
	int busy;

	if (!out && !ret)
		ret = pldk__fail(-EINVAL, "rank %u: %s: out is NULL", domain->rank, wish->op);
	busy = pldk__coll_enter(domain, thread, PLDK_EV_WINDOW_CREATE, site_id);
	if (busy)
		return busy;
	ret = create(wish, thread, site_id, ret, &window);
	pldk__coll_leave(domain, thread);
	if (!ret)
		*out = window;
	return ret;
}

/**
 * pldk_window_create_at() - see window.h
 */
int pldk_window_create_at(struct pldk_site *site, struct pldk_domain *domain, size_t bytes,
			  const struct pldk_window_options *options, struct pldk_window **out)
{
	struct wish wish = { .domain = domain, .op = "window_create", .kind = PLD_WINDOW_DATA, .bytes = bytes };
	struct pldk__thread *thread;
	int ret;

	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	ret = take_options(&wish, options);
	if (!ret)
		ret = check_bytes(&wish);
	ret = create_common(site, &wish, ret, thread, out);
	pldk__leave(thread);
	return ret;
}

/* Shape into the wish. size: bytes of an element or a cell. */
static int take_shape(struct wish *wish, int ndim, const int64_t *shape, size_t size)
{
	char text[128];
	uint64_t count;
	int ret;

	ret = pldk__shape_resolve(wish->domain, ndim, shape, wish->shape, wish->op);
	if (ret)
		return ret;
	wish->ndim = (uint32_t)ndim;
	if (pldk__shape_count(ndim, wish->shape, size, &count) ||
	    (wish->kind == PLD_WINDOW_SIGNAL && count > UINT32_MAX / PLD_CELL_SIZE))
		return pldk__fail(-EOVERFLOW, "rank %u: %s: %s is more than a window can hold", wish->domain->rank, wish->op,
				  pldk__shape_text(ndim, wish->shape, text, sizeof(text)));
	wish->bytes = count * size;
	return 0;
}

/**
 * pldk_window_create_typed_at() - see window.h
 */
int pldk_window_create_typed_at(struct pldk_site *site, struct pldk_domain *domain, int ndim, const int64_t *shape,
				enum pldk_dtype dtype, const struct pldk_window_options *options,
				struct pldk_window **out)
{
	struct wish wish = { .domain = domain, .op = "window_create_typed", .kind = PLD_WINDOW_DATA, .dtype = dtype };
	struct pldk__thread *thread;
	int ret;

	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	ret = take_options(&wish, options);
	if (!ret)
		ret = pldk__check_dtype(dtype, wish.op);
	if (!ret)
		ret = take_shape(&wish, ndim, shape, pldk_dtype_size(dtype));
	ret = create_common(site, &wish, ret, thread, out);
	pldk__leave(thread);
	return ret;
}

/**
 * pldk_signal_create_at() - see window.h
 */
int pldk_signal_create_at(struct pldk_site *site, struct pldk_domain *domain, int ndim, const int64_t *shape,
			  const struct pldk_window_options *options, struct pldk_window **out)
{
	struct wish wish = { .domain = domain, .op = "signal_create", .kind = PLD_WINDOW_SIGNAL };
	struct pldk__thread *thread;
	int ret;

	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	ret = take_options(&wish, options);
	/* Cells are changed by notify, and every rank notifies. */
	if (!ret && wish.flags & PLD_WINDOW_F_OWNER_WRITES)
		ret = pldk__fail(-EINVAL, "rank %u: signal_create: PLDK_WINDOW_OWNER_WRITES is for data: nobody could notify",
				 domain->rank);
	if (!ret)
		ret = take_shape(&wish, ndim, shape, PLD_CELL_SIZE);
	ret = create_common(site, &wish, ret, thread, out);
	pldk__leave(thread);
	return ret;
}

int(pldk_window_create)(struct pldk_domain *domain, size_t bytes, const struct pldk_window_options *options,
			struct pldk_window **out)
{
	return pldk_window_create_at(PLDK__CALLER(), domain, bytes, options, out);
}

int(pldk_window_create_typed)(struct pldk_domain *domain, int ndim, const int64_t *shape, enum pldk_dtype dtype,
			      const struct pldk_window_options *options, struct pldk_window **out)
{
	return pldk_window_create_typed_at(PLDK__CALLER(), domain, ndim, shape, dtype, options, out);
}

int(pldk_signal_create)(struct pldk_domain *domain, int ndim, const int64_t *shape,
			const struct pldk_window_options *options, struct pldk_window **out)
{
	return pldk_signal_create_at(PLDK__CALLER(), domain, ndim, shape, options, out);
}

/*
 * End and reset
 */

static void unlink_window(struct pldk_window *window)
{
	struct pldk_domain *domain = window->domain;
	struct pldk_window **link;

	pthread_mutex_lock(&domain->lock);
	for (link = &domain->windows; *link && *link != window; link = &(*link)->next)
		;
	if (*link)
		*link = window->next;
	window->next = domain->graveyard;
	domain->graveyard = window;
	pthread_mutex_unlock(&domain->lock);
}

/**
 * pldk_window_destroy() - see window.h
 */
int pldk_window_destroy(struct pldk_window *window)
{
	struct pldk__thread *thread;
	struct pldk_domain *domain;
	uint32_t waiters = 0;
	char text[80];
	int ret;

	if (!window)
		return 0;
	ret = pldk__check_window(window, "window_destroy");
	if (ret)
		return ret;
	domain = window->domain;
	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	if (!pldk__cas_seq(&window->waiters, &waiters, PLDK__WAITERS_CLOSED)) {
		ret = waiters & PLDK__WAITERS_CLOSED ?
			      pldk__stale(window, "window_destroy") :
			      pldk__fail(-EBUSY, "rank %u: window_destroy: a thread of this rank waits in %s", domain->rank,
					 pldk__window_text(window, text, sizeof(text)));
		goto out;
	}
	pldk__store_release(&window->magic, PLDK__MAGIC_DEAD);
	pldk__record(thread, PLDK_EV_WINDOW_DESTROY, 0, 0, -1, (int)window->id, 0, (int64_t)window->bytes);
	unlink_window(window);
	domain->ops->close(domain->pd, window->map);
	window->map = NULL;
out:
	pldk__leave(thread);
	return ret;
}

/**
 * pldk_window_reset_at() - see window.h
 */
int pldk_window_reset_at(struct pldk_site *site, struct pldk_window *window, int64_t timeout_ns)
{
	struct pldk__call call = { .op = PLDK_EV_WINDOW_RESET };
	struct pldk__thread *thread;
	struct pldk_domain *domain;
	uint64_t deadline_ns;
	char text[80];
	int ret;

	ret = pldk__check_window(window, "window_reset");
	if (ret)
		return ret;
	domain = window->domain;
	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	call.site = pldk__site_id(site);
	ret = pldk__coll_enter(domain, thread, PLDK_EV_WINDOW_RESET, call.site);
	if (ret)
		goto out;
	deadline_ns = pldk__deadline(timeout_ns);
	call.args[0] = window->id;
	call.args[1] = window->generation;
	/*
	 * All or none: a rank with a waiter says so before anybody zeroes. Then nobody is inside, and each zeroes its
	 * own.
	 */
	if (pldk__load_seq(&window->waiters))
		call.err = pldk__fail(-EBUSY, "rank %u: window_reset: a thread waits in %s", domain->rank,
				      pldk__window_text(window, text, sizeof(text)));
	ret = pldk__rendezvous(domain, thread, &call, deadline_ns);
	if (!ret) {
		call.phase = 1;
		call.err = domain->ops->reset(domain->pd, window->map);
		ret = pldk__rendezvous(domain, thread, &call, deadline_ns);
		window->coll_layout = 0;
	}
	pldk__coll_leave(domain, thread);
out:
	pldk__leave(thread);
	return ret;
}

int(pldk_window_reset)(struct pldk_window *window, int64_t timeout_ns)
{
	return pldk_window_reset_at(PLDK__CALLER(), window, timeout_ns);
}

/*
 * Questions. Of a window that is not one they say nothing: NULL, 0 or an errno.
 */

static bool is_open(const struct pldk_window *window)
{
	return window && pldk__load_acquire(&window->magic) == PLDK__MAGIC_WINDOW;
}

/**
 * pldk_window_base() - see window.h
 */
void *pldk_window_base(const struct pldk_window *window)
{
	if (!is_open(window) || window->kind != PLD_WINDOW_DATA)
		return NULL;
	return pldk__slab(window->map, window->domain->rank);
}

/**
 * pldk_window_peer() - see window.h
 */
void *pldk_window_peer(const struct pldk_window *window, int rank)
{
	if (!is_open(window) || window->kind != PLD_WINDOW_DATA || rank < 0 || (uint32_t)rank >= window->domain->nranks)
		return NULL;
	return pldk__slab(window->map, (uint32_t)rank);
}

/**
 * pldk_window_bytes() - see window.h
 */
size_t pldk_window_bytes(const struct pldk_window *window)
{
	return is_open(window) ? window->bytes : 0;
}

/**
 * pldk_window_page_bytes() - see window.h
 */
size_t pldk_window_page_bytes(const struct pldk_window *window)
{
	return is_open(window) ? window->map->page_bytes : 0;
}

/**
 * pldk_window_id() - see window.h
 */
int pldk_window_id(const struct pldk_window *window)
{
	int ret = pldk__check_window(window, "window_id");

	return ret ? ret : (int)window->id;
}

/**
 * pldk_window_domain() - see window.h
 */
struct pldk_domain *pldk_window_domain(const struct pldk_window *window)
{
	return is_open(window) ? window->domain : NULL;
}
