// SPDX-License-Identifier: GPL-2.0
/*
 * Window memory: reservation against the module cap, the charge to RLIMIT_MEMLOCK, NUMA placement, and the pages.
 *
 * Invariant: pages are order-0 from everybody's point of view (a large block is split at once), zeroed, and each
 * carries its own count, so that a mapping, get_user_pages() and this file may let go in any order. What was
 * charged stays charged until the window and the last mapping are gone: otherwise map-and-destroy would escape the
 * limits. The memory cgroup is charged by the page allocator, to the creator, page by page.
 */
#include <linux/capability.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/overflow.h>
#include <linux/resource.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "pld.h"

static unsigned long max_bytes;
module_param(max_bytes, ulong, 0644);
MODULE_PARM_DESC(max_bytes, "limit for the memory of all windows (0: half of the machine's memory)");

/* Beyond 2 MiB a larger block buys nothing: entries of the page tables are 4 KiB anyhow. */
#define PLD_MAX_ORDER get_order(SZ_2M)

/*
 * RETRY_MAYFAIL: the answer to a full cgroup or machine is ENOMEM, never the OOM killer. For large blocks one quick
 * look is enough.
 */
#define PLD_GFP_PAGE (GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)
#define PLD_GFP_BLOCK (GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NORETRY | __GFP_NOWARN)

/**
 * pld_cap_bytes() - what all windows may take together
 *
 * Return: bytes, a multiple of the page size.
 */
u64 pld_cap_bytes(void)
{
	u64 total = (u64)totalram_pages() << PAGE_SHIFT;
	u64 cap = READ_ONCE(max_bytes);

	if (!cap)
		cap = total / 2;
	return min(cap, total) & PAGE_MASK;
}

/**
 * pld_cap_left() - what is left of pld_cap_bytes()
 *
 * Return: bytes.
 */
u64 pld_cap_left(void)
{
	u64 used = (u64)atomic64_read(&pld_counters.pages) << PAGE_SHIFT;
	u64 cap = pld_cap_bytes();

	return used < cap ? cap - used : 0;
}

static bool pld_cap_reserve(unsigned long npages)
{
	s64 cap = pld_cap_bytes() >> PAGE_SHIFT;
	s64 old = atomic64_read(&pld_counters.pages);

	do {
		if (npages > cap || old > cap - (s64)npages)
			return false;
	} while (!atomic64_try_cmpxchg(&pld_counters.pages, &old, old + npages));
	return true;
}

static void pld_cap_release(unsigned long npages)
{
	atomic64_sub(npages, &pld_counters.pages);
}

/* Pages that RLIMIT_MEMLOCK allows to the caller, ULONG_MAX for no limit. */
static unsigned long pld_memlock_limit(void)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK);

	if (limit == RLIM_INFINITY || capable(CAP_IPC_LOCK))
		return ULONG_MAX;
	return limit >> PAGE_SHIFT;
}

/**
 * pld_memlock_left() - what RLIMIT_MEMLOCK leaves to the caller
 *
 * Return: bytes, ~0 for no limit.
 */
u64 pld_memlock_left(void)
{
	unsigned long used = atomic_long_read(&current_user()->locked_vm);
	unsigned long limit = pld_memlock_limit();

	if (limit == ULONG_MAX)
		return ~0ull;
	return used < limit ? (u64)(limit - used) << PAGE_SHIFT : 0;
}

static bool pld_memlock_charge(struct user_struct *user, unsigned long npages)
{
	unsigned long limit = pld_memlock_limit();
	long old = atomic_long_read(&user->locked_vm);

	do {
		if (npages > limit || old > limit - npages)
			return false;
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &old, old + npages));
	return true;
}

/* One slab, on @node where possible, or page by page round the nodes. */
static int pld_mem_fill_slab(struct page **pages, unsigned long n, int node, bool interleave)
{
	unsigned int order = interleave ? 0 : PLD_MAX_ORDER;
	unsigned long done = 0, i;
	struct page *page;

	if (node != NUMA_NO_NODE && !node_online(node))
		node = NUMA_NO_NODE;
	if (interleave)
		node = first_memory_node;
	while (done < n) {
		if (fatal_signal_pending(current))
			return -EINTR;
		order = min_t(unsigned int, order, ilog2(n - done));
		page = alloc_pages_node(node, order ? PLD_GFP_BLOCK : PLD_GFP_PAGE, order);
		if (!page && order) {
			order--;
			continue;
		}
		if (!page)
			return -ENOMEM;
		if (order)
			split_page(page, order);
		for (i = 0; i < 1ul << order; i++)
			pages[done++] = page + i;
		if (interleave)
			node = next_node_in(node, node_states[N_MEMORY]);
		cond_resched();
	}
	return 0;
}

static void pld_mem_free_pages(struct pld_mem *mem)
{
	unsigned long i;

	for (i = 0; i < mem->npages && mem->pages[i]; i++) {
		put_page(mem->pages[i]);
		if (!(i & 1023))
			cond_resched();
	}
}

static void pld_mem_release_charges(struct pld_mem *mem)
{
	if (mem->system_user)
		pld_user_sub_system(mem->system_user, mem->npages);
	if (mem->user) {
		atomic_long_sub(mem->npages, &mem->user->locked_vm);
		free_uid(mem->user);
	}
	pld_cap_release(mem->npages);
}

static void pld_mem_free(struct kref *ref)
{
	struct pld_mem *mem = container_of(ref, struct pld_mem, ref);

	pld_mem_free_pages(mem);
	pld_mem_release_charges(mem);
	kvfree(mem->pages);
	kfree(mem);
}

/**
 * pld_mem_get() - one more reference
 * @mem: memory that the caller has a reference to
 */
void pld_mem_get(struct pld_mem *mem)
{
	kref_get(&mem->ref);
}

/**
 * pld_mem_put() - one reference less
 * @mem: memory
 *
 * Context: Process context, also under mmap_lock.
 */
void pld_mem_put(struct pld_mem *mem)
{
	kref_put(&mem->ref, pld_mem_free);
}

/* Limits first: a wish that cannot be granted allocates nothing. */
static int pld_mem_charge(struct pld_mem *mem, struct pld_domain *domain, u32 flags)
{
	int ret;

	if (!pld_cap_reserve(mem->npages))
		return -ENOSPC;
	if (flags & PLD_WINDOW_F_SYSTEM) {
		ret = pld_user_add_system(domain->user, mem->npages);
		if (ret)
			pld_cap_release(mem->npages);
		else
			mem->system_user = domain->user;
		return ret;
	}
	if (!pld_memlock_charge(current_user(), mem->npages)) {
		pld_cap_release(mem->npages);
		return -EPERM;
	}
	mem->user = get_uid(current_user());
	return 0;
}

/**
 * pld_mem_alloc() - zeroed, charged pages for all slabs of a window
 * @domain: whose ranks' nodes are used
 * @slab_pages: pages of one slab
 * @flags: PLD_WINDOW_F_*
 *
 * Context: Process context. Sleeps for memory, gives up on a fatal signal.
 * Return: the memory, or ERR_PTR: -EOVERFLOW, -ENOSPC, -EPERM, -ENOMEM, -EINTR.
 */
struct pld_mem *pld_mem_alloc(struct pld_domain *domain, unsigned long slab_pages, u32 flags)
{
	struct pld_mem *mem;
	u32 r;
	int ret;

	mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	kref_init(&mem->ref);
	mem->slab_pages = slab_pages;
	if (check_mul_overflow(slab_pages, (unsigned long)domain->nranks, &mem->npages)) {
		ret = -EOVERFLOW;
		goto err_free;
	}
	ret = pld_mem_charge(mem, domain, flags);
	if (ret)
		goto err_free;
	mem->pages = kvcalloc(mem->npages, sizeof(*mem->pages),
			      GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!mem->pages) {
		ret = -ENOMEM;
		goto err_release_charges;
	}
	for (r = 0; r < domain->nranks; r++) {
		ret = pld_mem_fill_slab(mem->pages + r * slab_pages, slab_pages, (int)domain->ranks[r].node,
					flags & PLD_WINDOW_F_INTERLEAVE);
		if (ret)
			goto err_free_pages;
	}
	return mem;

err_free_pages:
	pld_mem_free_pages(mem);
	kvfree(mem->pages);
err_release_charges:
	pld_mem_release_charges(mem);
err_free:
	kfree(mem);
	return ERR_PTR(ret);
}
