// SPDX-License-Identifier: GPL-2.0
/*
 * Windows of a domain: create or attach, destroy, inform, reset. Memory itself is in pages.c, mmap in map.c.
 *
 * Invariants: a window is in the domain's tables exactly while at least one member has it open. Offsets for mmap are
 * ranges of page numbers below 2^32 (a 32-bit caller's mmap2 cannot say more), handed out and looked up here.
 */
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "pld.h"
#include "trace.h"

#define PLD_PGOFF_END (1ul << 32)

#if BITS_PER_LONG != 64
#error "pld is for 64-bit kernels (cells and slabs are reached through the direct map); 32-bit programs are fine"
#endif

/**
 * pld_slab_bytes_max() - largest slab that WINDOW_CREATE may grant now and later
 * @nranks: ranks of the domain
 *
 * Return: bytes.
 */
u64 pld_slab_bytes_max(u32 nranks)
{
	u64 bytes = min_t(u64, pld_cap_bytes(), (u64)(PLD_PGOFF_END - PLD_PGOFF_FIRST) << PAGE_SHIFT);

	return (bytes / nranks) & PAGE_MASK;
}

static struct hlist_head *pld_window_bucket(struct pld_domain *domain, u32 id)
{
	return &domain->windows[id % PLD_WINDOW_BUCKETS];
}

/**
 * pld_window_find() - look a window up
 * @domain: domain, held by the caller
 * @id: window id
 *
 * Context: Any but interrupts. Takes no lock.
 * Return: the window with a reference, or NULL.
 */
struct pld_window *pld_window_find(struct pld_domain *domain, u32 id)
{
	struct pld_window *win, *found = NULL;

	rcu_read_lock();
	hlist_for_each_entry_rcu(win, pld_window_bucket(domain, id), hash_node)
		if (win->id == id && kref_get_unless_zero(&win->ref)) {
			found = win;
			break;
		}
	rcu_read_unlock();
	return found;
}

static void pld_window_free(struct kref *ref)
{
	struct pld_window *win = container_of(ref, struct pld_window, ref);

	trace_pld_window_destroy(win->domain->id, win->id, win->generation, win->bytes);
	pld_mem_put(win->mem);
	kvfree(win->nsleepers);
	atomic64_dec(&pld_counters.windows);
	kfree_rcu(win, rcu);
}

/**
 * pld_window_put() - one reference less
 * @win: window
 *
 * Context: Process context, no spinlock held.
 */
void pld_window_put(struct pld_window *win)
{
	kref_put(&win->ref, pld_window_free);
}

/**
 * pld_window_cell() - kernel address of a cell
 * @win: signal window
 * @rank: whose, checked
 * @cell: which, checked
 *
 * Return: the cell, valid as long as the window.
 */
struct pld_cell *pld_window_cell(const struct pld_window *win, u32 rank, u32 cell)
{
	unsigned long page;

	rank = array_index_nospec(rank, win->nranks);
	cell = array_index_nospec(cell, win->ncells);
	page = rank * win->mem->slab_pages + cell / PLD_CELLS_PER_PAGE;
	return (struct pld_cell *)page_address(win->mem->pages[page]) + cell % PLD_CELLS_PER_PAGE;
}

/**
 * pld_window_sleepers() - how many waits of its rank sleep on a cell
 * @win: signal window
 * @rank: whose slab, checked
 * @cell: which, checked
 *
 * Return: the count, valid as long as the window.
 */
u32 *pld_window_sleepers(const struct pld_window *win, u32 rank, u32 cell)
{
	rank = array_index_nospec(rank, win->nranks);
	cell = array_index_nospec(cell, win->ncells);
	return &win->nsleepers[(size_t)rank * win->ncells + cell];
}

static struct pld_window *pld_window_alloc(struct pld_domain *domain, const struct pld_window_create *c,
					   unsigned long slab_pages)
{
	struct pld_window *win;
	int ret = -ENOMEM;

	win = kzalloc(struct_size(win, opened, BITS_TO_LONGS(domain->nranks)), GFP_KERNEL_ACCOUNT);
	if (!win)
		return ERR_PTR(-ENOMEM);
	kref_init(&win->ref);
	win->domain = domain;
	win->id = c->window_id;
	win->kind = c->kind;
	win->flags = c->flags & ~PLD_WINDOW_F_ATTACH;
	win->tag = c->tag;
	win->bytes = c->bytes;
	win->nranks = domain->nranks;
	win->mem = pld_mem_alloc(domain, slab_pages, c->flags);
	if (IS_ERR(win->mem)) {
		ret = PTR_ERR(win->mem);
		goto err_free;
	}
	if (c->kind == PLD_WINDOW_SIGNAL) {
		if (c->bytes / PLD_CELL_SIZE > U32_MAX) {
			ret = -EOVERFLOW;
			goto err_put_mem;
		}
		win->ncells = c->bytes / PLD_CELL_SIZE;
		win->nsleepers = kvcalloc((size_t)win->ncells * win->nranks, sizeof(*win->nsleepers),
					  GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
		if (!win->nsleepers)
			goto err_put_mem;
	}
	atomic64_inc(&pld_counters.windows);
	return win;

err_put_mem:
	pld_mem_put(win->mem);
err_free:
	kfree(win);
	return ERR_PTR(ret);
}

static unsigned long pld_window_pgoff_end(const struct pld_window *win)
{
	return win->pgoff + win->mem->npages;
}

static struct pld_window *pld_window_of_node(struct rb_node *node)
{
	return node ? rb_entry(node, struct pld_window, offset_node) : NULL;
}

/**
 * pld_window_at_locked() - the window whose range of offsets holds a page
 * @domain: domain
 * @pgoff: page number of an offset
 *
 * Context: domain->lock held.
 * Return: the window, valid while the lock is held, or NULL.
 */
struct pld_window *pld_window_at_locked(struct pld_domain *domain, unsigned long pgoff)
{
	struct rb_node *node = domain->offsets.rb_node;

	lockdep_assert_held(&domain->lock);
	while (node) {
		struct pld_window *win = pld_window_of_node(node);

		if (pgoff < win->pgoff)
			node = node->rb_left;
		else if (pgoff >= pld_window_pgoff_end(win))
			node = node->rb_right;
		else
			return win;
	}
	return NULL;
}

/*
 * A range that was not used lately, so that a stale offset is more likely refused than wrong; when the space has been
 * used up once, the first gap that fits.
 */
static int pld_window_place_locked(struct pld_domain *domain, struct pld_window *win)
{
	unsigned long n = win->mem->npages, at = max(domain->pgoff_next, PLD_PGOFF_FIRST);
	struct rb_node **link = &domain->offsets.rb_node, *parent = NULL;
	struct pld_window *other;

	lockdep_assert_held(&domain->lock);
	other = pld_window_of_node(rb_last(&domain->offsets));
	if (other)
		at = max(at, pld_window_pgoff_end(other));
	if (n > PLD_PGOFF_END - PLD_PGOFF_FIRST)
		return -EOVERFLOW;
	if (at > PLD_PGOFF_END - n) {
		at = PLD_PGOFF_FIRST;
		for (other = pld_window_of_node(rb_first(&domain->offsets)); other && other->pgoff < at + n;
		     other = pld_window_of_node(rb_next(&other->offset_node)))
			at = pld_window_pgoff_end(other);
		if (at > PLD_PGOFF_END - n)
			return -EOVERFLOW;
	}
	win->pgoff = at;
	win->mem->pgoff = at;
	domain->pgoff_next = at + n;
	while (*link) {
		parent = *link;
		link = win->pgoff < pld_window_of_node(parent)->pgoff ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&win->offset_node, parent, link);
	rb_insert_color(&win->offset_node, &domain->offsets);
	return 0;
}

static int pld_window_publish(struct pld_rank *rank, struct pld_window *win)
{
	struct pld_domain *domain = rank->domain;
	int ret;

	mutex_lock(&domain->lock);
	/* A rank that ends sets its state first and closes its windows under this lock: see pld_windows_release(). */
	ret = READ_ONCE(rank->state) == PLD_MEMBER_ALIVE ? 0 : -ENOTCONN;
	if (!ret)
		ret = pld_window_place_locked(domain, win);
	if (!ret) {
		if (!++domain->generation)
			domain->generation++;
		win->generation = domain->generation;
		__set_bit(rank->index, win->opened);
		win->nopened = 1;
		domain->nwindows++;
		if (win->flags & PLD_WINDOW_F_SYSTEM)
			WRITE_ONCE(domain->system_pages, domain->system_pages + win->mem->slab_pages);
		hlist_add_head_rcu(&win->hash_node, pld_window_bucket(domain, win->id));
	}
	mutex_unlock(&domain->lock);
	return ret;
}

/* One member less has it open. Returns the window when the caller must put the tables' reference. */
static struct pld_window *pld_window_close_locked(struct pld_window *win, u32 rank)
{
	struct pld_domain *domain = win->domain;

	lockdep_assert_held(&domain->lock);
	clear_bit(rank, win->opened);
	if (--win->nopened)
		return NULL;
	hlist_del_rcu(&win->hash_node);
	rb_erase(&win->offset_node, &domain->offsets);
	domain->nwindows--;
	if (win->flags & PLD_WINDOW_F_SYSTEM)
		WRITE_ONCE(domain->system_pages, domain->system_pages - win->mem->slab_pages);
	return win;
}

/**
 * pld_windows_release() - a rank has ended: close what it had open
 * @rank: not alive any more
 *
 * Context: Process context. Takes domain->lock.
 */
void pld_windows_release(struct pld_rank *rank)
{
	struct pld_domain *domain = rank->domain;
	struct pld_window *win, *gone = NULL;
	struct rb_node *node, *next;

	mutex_lock(&domain->lock);
	for (node = rb_first(&domain->offsets); node; node = next) {
		next = rb_next(node);
		win = pld_window_of_node(node);
		if (test_bit(rank->index, win->opened) && pld_window_close_locked(win, rank->index)) {
			win->next_free = gone;
			gone = win;
		}
	}
	mutex_unlock(&domain->lock);
	while (gone) {
		win = gone;
		gone = win->next_free;
		pld_window_put(win);
	}
}

static int pld_window_close(struct pld_rank *rank, u32 id)
{
	struct pld_window *win = pld_window_find(rank->domain, id), *last = NULL;
	int ret = -ENOENT;

	if (!win)
		return -ENOENT;
	mutex_lock(&rank->domain->lock);
	if (test_bit(rank->index, win->opened)) {
		last = pld_window_close_locked(win, rank->index);
		ret = 0;
	}
	mutex_unlock(&rank->domain->lock);
	if (!ret)
		pld_wait_cancel(rank, win);
	if (last)
		pld_window_put(last);
	pld_window_put(win);
	return ret;
}

static void pld_window_describe(const struct pld_window *win, struct pld_window_create *c)
{
	c->out_mmap_offset = (u64)win->pgoff << PAGE_SHIFT;
	c->out_stride = (u64)win->mem->slab_pages << PAGE_SHIFT;
	c->out_page_bytes = PAGE_SIZE;
	c->out_generation = win->generation;
	c->out_reserved = 0;
	c->out_other_bytes = win->bytes;
	c->out_other_tag = win->tag;
}

/* The id exists: open it if that is what the caller wants. 1 when it does not exist. */
static int pld_window_attach(struct pld_call *call, struct pld_window_create *c)
{
	struct pld_rank *rank = call->rank;
	struct pld_window *win = pld_window_find(rank->domain, c->window_id);
	int ret;

	if (!win)
		return 1;
	mutex_lock(&rank->domain->lock);
	if (!win->nopened)
		ret = 1; /* closed by the last member meanwhile */
	else if (READ_ONCE(rank->state) != PLD_MEMBER_ALIVE)
		ret = -ENOTCONN;
	else if (!(c->flags & PLD_WINDOW_F_ATTACH) || test_bit(rank->index, win->opened))
		ret = -EEXIST;
	else if (win->kind != c->kind || win->flags != (c->flags & ~PLD_WINDOW_F_ATTACH) || win->tag != c->tag ||
		 win->bytes != c->bytes)
		ret = -EPROTO;
	else
		ret = 0;
	if (!ret) {
		set_bit(rank->index, win->opened);
		win->nopened++;
		pld_window_describe(win, c);
		c->out_created = 0;
	} else if (ret == -EEXIST || ret == -EPROTO) {
		c->out_other_bytes = win->bytes;
		c->out_other_tag = win->tag;
		call->write_back = true;
	}
	mutex_unlock(&rank->domain->lock);
	pld_window_put(win);
	return ret;
}

static int pld_window_check(const struct pld_window_create *c, unsigned long *out_pages)
{
	bool is_system = c->window_id > PLD_WINDOW_ID_MAX;
	u64 bytes;

	if (c->window_id > PLD_WINDOW_ID_MAX + PLD_SYSTEM_WINDOWS || is_system != !!(c->flags & PLD_WINDOW_F_SYSTEM))
		return -EINVAL;
	if (c->kind > PLD_WINDOW_SIGNAL || !c->bytes)
		return -EINVAL;
	if (c->kind == PLD_WINDOW_SIGNAL && c->bytes % PLD_CELL_SIZE)
		return -EINVAL;
	if (c->flags & PLD_WINDOW_F_HUGE_ONLY)
		return -EOPNOTSUPP; /* vm_insert_pages() makes base pages only */
	if (check_add_overflow(c->bytes, (u64)PAGE_SIZE - 1, &bytes))
		return -EOVERFLOW;
	bytes >>= PAGE_SHIFT;
	if (bytes > ULONG_MAX)
		return -EOVERFLOW;
	*out_pages = bytes;
	return 0;
}

static int pld_window_create_locked(struct pld_call *call, struct pld_window_create *c, unsigned long slab_pages)
{
	struct pld_domain *domain = call->domain;
	const unsigned long system_max = PLD_SYSTEM_BYTES_MAX >> PAGE_SHIFT;
	bool is_system = c->flags & PLD_WINDOW_F_SYSTEM;
	struct pld_window *win;
	int ret;

	lockdep_assert_held(&domain->create_lock);
	ret = pld_window_attach(call, c);
	if (ret != 1)
		return ret;
	if (is_system && (slab_pages > system_max || READ_ONCE(domain->system_pages) > system_max - slab_pages))
		return -ENOSPC;
	win = pld_window_alloc(domain, c, slab_pages);
	if (IS_ERR(win))
		return PTR_ERR(win);
	ret = pld_window_publish(call->rank, win);
	if (ret) {
		pld_window_put(win);
		return ret;
	}
	trace_pld_window_create(domain->id, win->id, win->generation, win->bytes);
	pld_window_describe(win, c);
	c->out_other_bytes = 0;
	c->out_other_tag = 0;
	c->out_created = 1;
	return 0;
}

static void pld_window_create_abort(struct pld_call *call)
{
	pld_window_close(call->rank, (u32)(unsigned long)call->object);
}

/**
 * pld_ioc_window_create() - PLD_IOC_WINDOW_CREATE
 * @call: on a living rank
 * @arg: struct pld_window_create
 *
 * Return: 0 or a negative errno of the contract; -ERESTARTSYS while another creation runs.
 */
int pld_ioc_window_create(struct pld_call *call, void *arg)
{
	struct pld_window_create *c = arg;
	unsigned long slab_pages;
	int ret;

	ret = pld_window_check(c, &slab_pages);
	if (ret)
		return ret;
	if (READ_ONCE(call->domain->poison))
		return -ECANCELED;
	if (mutex_lock_interruptible(&call->domain->create_lock))
		return -ERESTARTSYS;
	ret = pld_window_create_locked(call, c, slab_pages);
	mutex_unlock(&call->domain->create_lock);
	if (!ret) {
		call->object = (void *)(unsigned long)c->window_id;
		call->abort = pld_window_create_abort;
	}
	return ret;
}

/**
 * pld_ioc_window_destroy() - PLD_IOC_WINDOW_DESTROY
 * @call: on a living rank
 * @arg: struct pld_window_destroy
 *
 * Return: 0 or -ENOENT.
 */
int pld_ioc_window_destroy(struct pld_call *call, void *arg)
{
	struct pld_window_destroy *d = arg;

	return pld_window_close(call->rank, d->window_id);
}

static struct pld_window *pld_window_find_opened(struct pld_rank *rank, u32 id)
{
	struct pld_window *win = pld_window_find(rank->domain, id);

	if (win && !test_bit(rank->index, win->opened)) {
		pld_window_put(win);
		win = NULL;
	}
	return win;
}

/**
 * pld_ioc_window_info() - PLD_IOC_WINDOW_INFO
 * @call: on a living rank
 * @arg: struct pld_window_info
 *
 * Return: 0, -EINVAL, -ENOENT.
 */
int pld_ioc_window_info(struct pld_call *call, void *arg)
{
	struct pld_window_info *w = arg;
	struct pld_window *win;
	struct page **slab;
	unsigned long i;

	if (w->rank >= call->domain->nranks)
		return -EINVAL;
	win = pld_window_find_opened(call->rank, w->window_id);
	if (!win)
		return -ENOENT;
	slab = win->mem->pages + array_index_nospec(w->rank, win->nranks) * win->mem->slab_pages;
	w->out_kind = win->kind;
	w->out_flags = win->flags;
	w->out_bytes = win->bytes;
	w->out_stride = (u64)win->mem->slab_pages << PAGE_SHIFT;
	w->out_mmap_offset = (u64)win->pgoff << PAGE_SHIFT;
	w->out_generation = win->generation;
	w->out_page_bytes = PAGE_SIZE;
	w->out_node = page_to_nid(slab[0]);
	w->out_opened = READ_ONCE(win->nopened);
	w->out_node_pages = 0;
	for (i = 0; i < win->mem->slab_pages; i++) {
		w->out_node_pages += page_to_nid(slab[i]) == (int)call->domain->ranks[w->rank].node;
		if (!(i & 4095))
			cond_resched();
	}
	w->out_tag = win->tag;
	pld_window_put(win);
	return 0;
}

static void pld_window_zero_slab(struct pld_window *win, u32 rank)
{
	struct page **slab = win->mem->pages + (unsigned long)rank * win->mem->slab_pages;
	unsigned long i;
	u32 c;

	for (i = 0; i < win->mem->slab_pages; i++) {
		struct pld_cell *cell = page_address(slab[i]);

		if (win->kind == PLD_WINDOW_DATA) {
			clear_page(cell);
		} else {
			for (c = 0; c < PLD_CELLS_PER_PAGE; c++) {
				WRITE_ONCE(cell[c].value, 0);
				WRITE_ONCE(cell[c].provenance, 0);
			}
		}
		cond_resched();
	}
}

/**
 * pld_ioc_window_reset() - PLD_IOC_WINDOW_RESET
 * @call: on a living rank
 * @arg: struct pld_window_reset
 *
 * A wait that begins while the slab is being zeroed waits for that first (see pld_waiter_enqueue()).
 *
 * Return: 0, -ENOENT, -EBUSY, -ERESTARTSYS.
 */
int pld_ioc_window_reset(struct pld_call *call, void *arg)
{
	struct pld_window_reset *r = arg;
	struct pld_rank *rank = call->rank;
	struct pld_window *win;
	bool busy;

	win = pld_window_find_opened(rank, r->window_id);
	if (!win)
		return -ENOENT;
	if (mutex_lock_interruptible(&rank->reset_lock)) {
		pld_window_put(win);
		return -ERESTARTSYS;
	}
	spin_lock(&rank->wait_lock);
	busy = pld_wait_uses_locked(rank, win);
	if (!busy)
		rank->reset_win = win;
	spin_unlock(&rank->wait_lock);
	if (!busy) {
		pld_window_zero_slab(win, rank->index);
		trace_pld_window_reset(win->domain->id, win->id, win->generation, win->bytes);
		spin_lock(&rank->wait_lock);
		rank->reset_win = NULL;
		spin_unlock(&rank->wait_lock);
	}
	mutex_unlock(&rank->reset_lock);
	pld_window_put(win);
	return busy ? -EBUSY : 0;
}
