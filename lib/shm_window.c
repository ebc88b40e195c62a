// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Windows of the embedded provider: open, map, close, reset.
 *
 * A window is one piece of the file: a page that describes it (struct shm_window), then the slabs. The table of the
 * domain has one word a window id: where the window is, and how often it was attached to. The first opener prepares
 * its piece where nobody sees it and swaps it in; who loses the race, or comes later, attaches: sets its bit in the
 * window's page, then moves the attach count. A window whose last bit went is swapped out by a word that still has the
 * count read before: an attach in between makes that fail. So nobody ever waits for another rank here, and a rank
 * killed anywhere leaves at most a bit (cleared when its death is noticed) or a piece that nobody sees
 * (shm_rank.pending).
 *
 * All openers reserve the memory together, piece by piece, until it is complete or fails, and then all see the same.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "range.h"
#include "shm.h"

#define NODES 1024u /* nodes that a mask has room for */
#define RESERVE_PIECE (UINT64_C(64) << 20)
#define FLAGS_SPEC (PLD_WINDOW_F_OWNER_WRITES | PLD_WINDOW_F_INTERLEAVE | PLD_WINDOW_F_SYSTEM)

static struct shm_window *page_map(const struct shm_view *view, uint64_t page)
{
	return pldk__shm_mmap(view->world->fd, page, SHM_PAGE);
}

/* The table's word for a window id, its page reserved. */
static int slot_of(const struct shm_view *view, uint32_t id, uint64_t **out)
{
	const uint32_t page = id / (uint32_t)SHM_SLOTS_PER_PAGE;
	uint64_t *bits = &view->dom->table_bits[page / 64];
	const uint64_t bit = UINT64_C(1) << page % 64;
	int ret;

	if (!(pldk__load_acquire(bits) & bit)) {
		ret = pldk__shm_reserve(view->world->fd, view->offset + view->dom->windows + page * SHM_PAGE, SHM_PAGE);
		if (ret)
			return ret;
		pldk__or_seq(bits, bit);
	}
	*out = &view->windows[id];
	return 0;
}

static bool is_open_by_any(const struct shm_view *view, const struct shm_window *win)
{
	uint32_t i;

	for (i = 0; i < view->nranks; i++)
		if (pldk__load_seq(&win->open[i / 64]) >> i % 64 & 1 && !pldk__shm_is_gone(view, i))
			return true;
	return false;
}

/* Set or clear a rank's bit of a window. Return: was it set before? */
static bool open_bit(struct shm_window *win, uint32_t rank, bool set)
{
	const uint64_t bit = UINT64_C(1) << rank % 64;
	uint64_t *word = &win->open[rank / 64];
	uint64_t old = pldk__load_seq(word);

	while (!pldk__cas_seq(word, &old, set ? old | bit : old & ~bit))
		;
	return old & bit;
}

#define PENDING_BUSY 1u /* no offset of a window */

/*
 * Note a piece of the file that nobody sees, for the case that this rank dies now. One thread of a rank at a time has
 * the note; another one goes without: what it loses when killed in these microseconds comes back with the world.
 *
 * Return: start for pending_clear(), or 0.
 */
static uint64_t pending_set(const struct shm_view *view, uint32_t rank, uint64_t start, uint64_t end)
{
	struct shm_rank *r = &view->ranks[rank];
	uint64_t none = 0;

	if (!pldk__cas_seq(&r->pending, &none, PENDING_BUSY))
		return 0;
	pldk__store_relaxed(&r->pending_end, end);
	pldk__store_seq(&r->pending, start);
	return start;
}

static void pending_clear(const struct shm_view *view, uint32_t rank, uint64_t note)
{
	if (note)
		pldk__cas_seq(&view->ranks[rank].pending, &note, 0);
}

/*
 * Free the window if nobody who lives has it open. Whoever comes too late to free it has touched a page that may have
 * been punched before, and punches it again: file space is never reused, so nobody else can own it by now.
 */
static void free_unused(const struct shm_view *view, uint64_t *slot, uint64_t page, uint64_t end,
			const struct shm_window *win, uint32_t by)
{
	uint64_t word = pldk__load_seq(slot);
	uint64_t note = pending_set(view, by, page, end);

	while (SHM_SLOT_PAGE(word) == page / SHM_PAGE && !is_open_by_any(view, win)) {
		if (pldk__cas_seq(slot, &word, 0)) {
			pldk__shm_punch(view->world->fd, page, end - page);
			break;
		}
	}
	if (SHM_SLOT_PAGE(pldk__load_seq(slot)) != page / SHM_PAGE)
		pldk__shm_punch(view->world->fd, page, SHM_PAGE);
	pending_clear(view, by, note);
}

/**
 * pldk__shm_window_drop() - a rank lets go of a window
 * @page: offset of the window
 * @rank: whose bit goes
 * @by: rank that does it
 */
void pldk__shm_window_drop(const struct shm_view *view, uint64_t page, uint32_t rank, uint32_t by)
{
	struct shm_window *win = page_map(view, page);
	uint64_t end;
	uint32_t id;

	if (!win)
		return; /* No addresses: the memory goes with the next drop, at the latest with the world. */
	/* Before the bit goes: then it may be freed. A dead rank's bit protects nothing, so magic is read last. */
	id = pldk__load_relaxed(&win->id);
	end = pldk__load_relaxed(&win->end);
	pldk__fence_acquire();
	if (pldk__load_relaxed(&win->magic) != SHM_WINDOW_MAGIC) {
		pldk__shm_punch(view->world->fd, page, SHM_PAGE); /* Freed already; looking brought a page back. */
	} else {
		open_bit(win, rank, false);
		free_unused(view, &view->windows[id], page, end, win, by);
	}
	munmap(win, SHM_PAGE);
}

/**
 * pldk__shm_windows_reap() - give back what a dead rank held
 *
 * Can be done twice.
 */
void pldk__shm_windows_reap(const struct shm_view *view, uint32_t rank, uint32_t by)
{
	struct shm_rank *r = &view->ranks[rank];
	uint64_t pending = pldk__load_acquire(&r->pending);
	struct shm_window head;
	uint64_t word;
	uint64_t end;
	uint32_t id;

	/* The end is that of this note only while the note stands: another may reap this rank, and note, meanwhile. */
	end = pldk__load_acquire(&r->pending_end);
	if (pending > PENDING_BUSY && pldk__load_acquire(&r->pending) == pending &&
	    !pldk__shm_read(view->world->fd, &head, sizeof(head), pending)) {
		/* Published: an ordinary window. Else nobody sees it: it was not yet published, or just taken out. */
		bool seen = head.magic == SHM_WINDOW_MAGIC && head.id < SHM_NWINDOWS &&
			    SHM_SLOT_PAGE(pldk__load_seq(&view->windows[head.id])) == pending / SHM_PAGE;

		if (!seen)
			pldk__shm_punch(view->world->fd, pending, end - pending);
		pldk__cas_seq(&r->pending, &pending, 0);
	}
	for (id = 0; id < SHM_NWINDOWS; id++) {
		const uint32_t page = id / (uint32_t)SHM_SLOTS_PER_PAGE;

		if (!(pldk__load_acquire(&view->dom->table_bits[page / 64]) >> page % 64 & 1)) {
			id |= (uint32_t)SHM_SLOTS_PER_PAGE - 1;
			continue;
		}
		word = pldk__load_acquire(&view->windows[id]);
		if (word)
			pldk__shm_window_drop(view, SHM_SLOT_PAGE(word) * SHM_PAGE, rank, by);
	}
}

static int differs(const struct shm_window *win, const struct pldk__window_spec *spec)
{
	if (win->kind == spec->kind && win->bytes == spec->bytes && win->tag == spec->tag &&
	    win->flags == (spec->flags & FLAGS_SPEC))
		return 0;
	return pldk__fail(
		-EPROTO,
		"it exists with %llu bytes a rank, kind %u, flags 0x%x, tag 0x%llx (made by rank %u); asked for were "
		"%llu bytes, kind %u, flags 0x%x, tag 0x%llx: all ranks must ask for the same",
		(unsigned long long)win->bytes, win->kind, win->flags, (unsigned long long)win->tag, win->creator,
		(unsigned long long)spec->bytes, spec->kind, spec->flags & FLAGS_SPEC, (unsigned long long)spec->tag);
}

/**
 * pldk__shm_limits() - see struct pldk_provider_ops
 */
int pldk__shm_limits(struct pldk__pdomain *base, struct pldk_limits *out)
{
	const struct shm_header *header = pldk__shm_pd(base)->view.world->header;
	const uint64_t file = header->file_bytes - pldk__load_relaxed(&header->next);

	out->left_bytes = file < SHM_PAGE ? 0 : file - SHM_PAGE;
	snprintf(out->left_by, sizeof(out->left_by), "RLIMIT_FSIZE");
	pldk__limits_memory(out);
	out->left_bytes -= out->left_bytes % (SHM_PAGE * base->nranks);
	out->max_ranks = (int)PLD_MAX_RANKS;
	out->window_bytes_max = (header->file_bytes - SHM_FIRST) / base->nranks / SHM_PAGE * SHM_PAGE;
	return 0;
}

/* May a window of this size be tried? bytes: of all slabs */
static int limit_check(struct shm_pd *pd, uint64_t bytes)
{
	static uint64_t unchecked; /* atomic: bytes that this process took since it last looked */
	struct pldk_limits limits;
	const char *knob;

	/* One small window is not worth reading the files for. Many are: a full cgroup does not refuse, it kills. */
	if (pldk__add_relaxed(&unchecked, bytes) <= UINT64_C(1) << 20)
		return 0;
	pldk__store_relaxed(&unchecked, 0);
	pldk__shm_limits(&pd->base, &limits);
	if (bytes <= limits.left_bytes)
		return 0;
	if (!strcmp(limits.left_by, "cgroup"))
		knob = "raise the memory limit of the cgroup (a tenth of it stays free)";
	else if (!strcmp(limits.left_by, "RLIMIT_FSIZE"))
		knob = "raise RLIMIT_FSIZE (ulimit -f) before the world is made";
	else
		knob = "free memory (nine tenths of MemAvailable may be taken)";
	return pldk__fail(-ENOMEM,
			  "%llu bytes asked (all ranks together), %s leaves %llu: %llu too many; %s or ask for less",
			  (unsigned long long)bytes, limits.left_by, (unsigned long long)limits.left_bytes,
			  (unsigned long long)(bytes - limits.left_bytes), knob);
}

/*
 * Where the slabs shall lie: each on its owner's node, or in turns. Said before there is memory; the file remembers it
 * for whoever reserves. Best effort: a machine with one node has nothing to say.
 */
static void place(const struct shm_view *view, const struct shm_window *win)
{
	unsigned long nodes[NODES / (8 * sizeof(unsigned long))] = { 0 };
	const uint64_t bytes = win->end - win->slabs;
	char *slabs;
	uint32_t node;
	uint32_t i;

	if (access("/sys/devices/system/node/node1", F_OK))
		return;
	slabs = pldk__shm_mmap(view->world->fd, win->slabs, bytes);
	if (!slabs)
		return;
	for (i = 0; i < view->nranks; i++) {
		node = pldk__shm_member(view, i)->node;
		if (node >= NODES)
			continue;
		if (!(win->flags & PLD_WINDOW_F_INTERLEAVE))
			memset(nodes, 0, sizeof(nodes));
		nodes[node / (8 * sizeof(nodes[0]))] |= 1ul << node % (8 * sizeof(nodes[0]));
		if (!(win->flags & PLD_WINDOW_F_INTERLEAVE))
			syscall(SYS_mbind, slabs + i * win->stride, win->stride, MPOL_PREFERRED, nodes, NODES + 1, 0);
	}
	if (win->flags & PLD_WINDOW_F_INTERLEAVE)
		syscall(SYS_mbind, slabs, bytes, MPOL_INTERLEAVE, nodes, NODES + 1, 0);
	munmap(slabs, bytes);
}

static int fail_map(int ret)
{
	char why[160];

	return pldk__fail(ret == -EAGAIN ? ret : -ENOMEM, "cannot be mapped: %s",
			  pldk__range_why(ret, why, sizeof(why)));
}

/* Prepare a window and swap it in. 1: somebody else was faster. */
static int create(struct shm_pd *pd, uint64_t *slot, const struct pldk__window_spec *spec, uint64_t *out_page,
		  struct shm_window **out_win)
{
	const struct shm_view *view = &pd->view;
	const uint32_t rank = pd->base.rank;
	const uint64_t stride = (spec->bytes + SHM_PAGE - 1) & ~(SHM_PAGE - 1);
	const uint64_t total = SHM_PAGE + stride * view->nranks;
	struct shm_window *win;
	uint64_t page = 0;
	uint64_t none = 0;
	uint64_t note;
	int ret;

	ret = limit_check(pd, stride * view->nranks);
	if (!ret)
		ret = pldk__shm_alloc(view->world->header, total, &page);
	if (ret)
		return ret;
	note = pending_set(view, rank, page, page + total);
	ret = pldk__shm_reserve(view->world->fd, page, SHM_PAGE);
	win = ret ? NULL : page_map(view, page);
	if (!win) {
		pldk__shm_punch(view->world->fd, page, SHM_PAGE);
		pending_clear(view, rank, note);
		return ret ? pldk__fail(-ENOMEM, "no memory for one page more") : fail_map(-ENOMEM);
	}
	win->size = sizeof(*win);
	win->id = spec->id;
	win->kind = spec->kind;
	win->flags = spec->flags & FLAGS_SPEC;
	win->bytes = spec->bytes;
	win->tag = spec->tag;
	win->stride = stride;
	win->slabs = page + SHM_PAGE;
	win->end = page + total;
	win->done = win->slabs;
	win->domain = view->dom->id;
	do {
		win->generation = pldk__add_seq(&view->dom->next_generation, 1);
	} while (!win->generation);
	win->creator = rank;
	win->page_bytes = (uint32_t)SHM_PAGE;
	win->created_ns = pldk__now_ns();
	win->open[rank / 64] = UINT64_C(1) << rank % 64;
	place(view, win);
	pldk__store_release(&win->magic, SHM_WINDOW_MAGIC);
	if (!pldk__cas_seq(slot, &none, SHM_SLOT(page / SHM_PAGE, 1))) {
		munmap(win, SHM_PAGE);
		pldk__shm_punch(view->world->fd, page, SHM_PAGE);
		pending_clear(view, rank, note);
		return 1;
	}
	pending_clear(view, rank, note);
	*out_page = page;
	*out_win = win;
	return 0;
}

/* Attach to the window that the table's word names. 1: it went away. */
static int attach(struct shm_pd *pd, uint64_t *slot, uint64_t word, const struct pldk__window_spec *spec,
		  uint64_t *out_page, struct shm_window **out_win)
{
	const struct shm_view *view = &pd->view;
	const uint64_t page = SHM_SLOT_PAGE(word) * SHM_PAGE;
	struct shm_window head;
	struct shm_window *win;
	int ret;

	/* Looked at without mapping first: touching the hole that a freed window left would allocate it again. */
	if (pldk__shm_read(view->world->fd, &head, sizeof(head), page) || head.magic != SHM_WINDOW_MAGIC)
		return 1;
	ret = differs(&head, spec);
	if (ret)
		return ret;
	win = page_map(view, page);
	if (!win)
		return fail_map(-ENOMEM);
	if (open_bit(win, pd->base.rank, true)) {
		munmap(win, SHM_PAGE);
		return pldk__fail(-EEXIST, "it is open on this rank with %llu bytes a rank; asked for were %llu",
				  (unsigned long long)head.bytes, (unsigned long long)spec->bytes);
	}
	while (!pldk__cas_seq(slot, &word, SHM_SLOT(page / SHM_PAGE, SHM_SLOT_COUNT(word) + 1))) {
		if (SHM_SLOT_PAGE(word) == page / SHM_PAGE)
			continue;
		/* Freed under our hands: our bit has perhaps brought its first page back. */
		munmap(win, SHM_PAGE);
		pldk__shm_punch(view->world->fd, page, SHM_PAGE);
		return 1;
	}
	*out_page = page;
	*out_win = win;
	return 0;
}

/* Reserve the window's memory together with whoever else opens it. */
static int reserve_all(struct shm_pd *pd, struct shm_window *win)
{
	const int fd = pd->view.world->fd;
	int ret;

	for (;;) {
		uint64_t done = pldk__load_acquire(&win->done);
		const uint32_t state = pldk__load_acquire(&win->state);
		uint64_t n = win->end - done;

		if (state & SHM_FAILED)
			return pldk__fail(
				pldk__load_relaxed(&win->error),
				"no memory: %llu bytes asked (all ranks together), refused %llu bytes before the end. "
				"Free memory, raise the cgroup's memory.max, or ask for less",
				(unsigned long long)(win->end - win->slabs), (unsigned long long)n);
		if (!n) {
			pldk__or_seq(&win->state, SHM_ALLOCATED);
			return 0;
		}
		n = n < RESERVE_PIECE ? n : RESERVE_PIECE;
		ret = pldk__shm_reserve(fd, done, n);
		if (ret) {
			pldk__store_relaxed(&win->error, ret);
			pldk__or_seq(&win->state, SHM_FAILED);
		} else {
			pldk__cas_seq(&win->done, &done, done + n);
		}
	}
}

/* Slabs that need addresses: up to the last near one. */
static uint32_t last_near(const struct shm_pd *pd)
{
	uint32_t n = pd->view.nranks;

	while (pd->base.far && pd->base.far[n - 1])
		n--;
	return n;
}

/* Near slabs in a row are one mapping. The populated page tables make that no access ever faults. */
static int map_slabs(struct shm_pd *pd, struct shm_map *map)
{
	const int fd = pd->view.world->fd;
	const uint64_t stride = map->base.stride;
	const bool owner = map->base.flags & PLD_WINDOW_F_OWNER_WRITES;
	const uint32_t nranks = pd->view.nranks;
	uint32_t first = 0;
	uint32_t end;

	while (first < nranks) {
		if (pd->base.far && pd->base.far[first]) {
			first++;
			continue;
		}
		for (end = first + 1; end < nranks && !(pd->base.far && pd->base.far[end]); end++)
			;
		if (mmap(map->base.base + first * stride, (end - first) * stride, PROT_READ | (owner ? 0 : PROT_WRITE),
			 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, (off_t)(map->slabs + first * stride)) == MAP_FAILED)
			return -errno;
		first = end;
	}
	if (owner &&
	    mmap(map->base.base + pd->base.rank * stride, stride, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, (off_t)(map->slabs + pd->base.rank * stride)) == MAP_FAILED)
		return -errno;
	/* A forked child is no rank: it must not find the windows. */
	return madvise(map->base.base, map->span, MADV_DONTFORK) ? -errno : 0;
}

/**
 * pldk__shm_open() - see struct pldk_provider_ops
 */
int pldk__shm_open(struct pldk__pdomain *base, const struct pldk__window_spec *spec, struct pldk__map **out)
{
	struct shm_pd *pd = pldk__shm_pd(base);
	const struct shm_view *view = &pd->view;
	struct shm_window *win = NULL;
	struct shm_map *map;
	uint64_t page = 0;
	uint64_t *slot;
	uint64_t word;
	int ret;

	if (spec->flags & PLD_WINDOW_F_HUGE_ONLY)
		return pldk__fail(-EOPNOTSUPP,
				  "the embedded provider gives no guaranteed 2 MiB pages; ask with HUGE, or use "
				  "PLDK_PROVIDER=dev");
	if (spec->bytes > SHM_FILE_BYTES / view->nranks)
		return pldk__fail(-ENOMEM, "%llu bytes a rank is more than a machine has addresses",
				  (unsigned long long)spec->bytes);
	map = calloc(1, sizeof(*map));
	if (!map)
		return pldk__fail(-ENOMEM, "no memory");
	ret = slot_of(view, spec->id, &slot);
	if (ret) {
		pldk__fail(ret, "no memory for the window table: %s", strerror(-ret));
		goto err_free;
	}
	do {
		word = pldk__load_acquire(slot);
		ret = word ? attach(pd, slot, word, spec, &page, &win) : create(pd, slot, spec, &page, &win);
	} while (ret > 0);
	if (ret)
		goto err_free;
	ret = reserve_all(pd, win);
	if (ret)
		goto err_drop;
	map->page = page;
	map->slabs = win->slabs;
	map->span = win->stride * last_near(pd);
	map->base.stride = win->stride;
	map->base.far = base->far;
	map->base.bytes = win->bytes;
	map->base.tag = win->tag;
	map->base.id = win->id;
	map->base.generation = win->generation;
	map->base.kind = win->kind;
	map->base.flags = spec->flags;
	map->base.page_bytes = win->page_bytes;
	map->base.base = pldk__range_take(map->span);
	if (!map->base.base) {
		ret = fail_map(-ENOMEM);
		goto err_drop;
	}
	ret = map_slabs(pd, map);
	if (ret) {
		ret = fail_map(ret);
		goto err_unmap;
	}
	munmap(win, SHM_PAGE);
	*out = &map->base;
	return 0;

err_unmap:
	pldk__range_give(map->base.base, map->span);
err_drop:
	munmap(win, SHM_PAGE);
	pldk__shm_window_drop(view, page, base->rank, base->rank);
err_free:
	free(map);
	return ret;
}

/**
 * pldk__shm_close() - see struct pldk_provider_ops
 */
void pldk__shm_close(struct pldk__pdomain *base, struct pldk__map *m)
{
	struct shm_pd *pd = pldk__shm_pd(base);
	struct shm_map *map = (struct shm_map *)m;
	int keep = errno;

	if (pd->lane)
		pldk__far_lane_flush(pd->lane); /* the agent may still be writing into it for this rank */
	pldk__range_give(map->base.base, map->span);
	if (SHM_CLAIM_PID(pd->claim) == (uint32_t)getpid())
		pldk__shm_window_drop(&pd->view, map->page, base->rank, base->rank);
	free(map);
	errno = keep;
}

/**
 * pldk__shm_reset() - see struct pldk_provider_ops
 */
int pldk__shm_reset(struct pldk__pdomain *pd, struct pldk__map *map)
{
	char *slab = pldk__slab(map, pd->rank);
	struct pld_cell *cells = (struct pld_cell *)(void *)slab;
	const uint64_t n = map->bytes / PLD_CELL_SIZE;
	uint64_t i;
	int ret;

	ret = pldk__far_quiesce(pldk__shm_pd(pd));
	if (ret)
		return ret;
	if (map->kind != PLD_WINDOW_SIGNAL) {
		memset(slab, 0, map->bytes);
		return 0;
	}
	for (i = 0; i < n; i++)
		if (pldk__load_seq(&cells[i].sleepers))
			return pldk__fail(-EBUSY, "a thread of rank %u waits on cell %llu; nothing was changed",
					  pd->rank, (unsigned long long)i);
	for (i = 0; i < n; i++) {
		pldk__store_relaxed(&cells[i].provenance, 0);
		pldk__store_seq(&cells[i].value, 0);
	}
	return 0;
}
