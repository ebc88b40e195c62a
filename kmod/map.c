// SPDX-License-Identifier: GPL-2.0
/*
 * mmap() of a rank file: windows and the status page.
 *
 * Invariants: every page is inserted at once; a fault happens only after the user dropped entries (MADV_DONTNEED). The
 * VMA holds the memory, not the window, so it outlives DESTROY and its owner. Pages stay ordinary ones for the rest of
 * the kernel: no VM_IO, no VM_PFNMAP.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "pld.h"

static void pld_vma_open(struct vm_area_struct *vma)
{
	struct pld_mem *mem = vma->vm_private_data;

	if (mem)
		pld_mem_get(mem);
}

static void pld_vma_close(struct vm_area_struct *vma)
{
	struct pld_rank *rank = vma->vm_file->private_data;
	struct pld_mem *mem = vma->vm_private_data;

	/* The whole mm goes: exit, or an exec that kept the descriptor open. */
	if (vma->vm_mm == rank->mm && !atomic_read(&vma->vm_mm->mm_users))
		pld_rank_closing(rank);
	if (mem)
		pld_mem_put(mem);
}

static vm_fault_t pld_vma_fault(struct vm_fault *vmf)
{
	struct pld_rank *rank = vmf->vma->vm_file->private_data;
	struct pld_mem *mem = vmf->vma->vm_private_data;
	struct page *page;

	if (mem) {
		unsigned long i = vmf->pgoff - mem->pgoff;

		if (i >= mem->npages)
			return VM_FAULT_SIGBUS;
		page = mem->pages[i];
	} else {
		if (vmf->pgoff >= rank->domain->nstatus_pages)
			return VM_FAULT_SIGBUS;
		page = rank->domain->status_pages + vmf->pgoff;
	}
	get_page(page);
	vmf->page = page;
	return 0;
}

static const struct vm_operations_struct pld_vm_ops = {
	.open	= pld_vma_open,
	.close	= pld_vma_close,
	.fault	= pld_vma_fault,
};

static int pld_mmap_status(struct pld_rank *rank, struct vm_area_struct *vma)
{
	unsigned long i;
	int ret;

	if (vma->vm_pgoff + vma_pages(vma) > rank->domain->nstatus_pages)
		return -EINVAL;
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	vm_flags_clear(vma, VM_MAYWRITE);
	for (i = 0; i < vma_pages(vma); i++) {
		ret = vm_insert_page(vma, vma->vm_start + i * PAGE_SIZE,
				     rank->domain->status_pages + vma->vm_pgoff + i);
		if (ret)
			return ret;
	}
	return 0;
}

/* The memory behind the VMA, with a reference; checks who may write. */
static struct pld_mem *pld_mmap_find(struct pld_rank *rank, struct vm_area_struct *vma, unsigned long *out_first)
{
	struct pld_domain *domain = rank->domain;
	unsigned long slab, first, own;
	struct pld_window *win;
	struct pld_mem *mem = ERR_PTR(-EINVAL);

	mutex_lock(&domain->lock);
	win = pld_window_at_locked(domain, vma->vm_pgoff);
	if (!win || !test_bit(rank->index, win->opened) ||
	    vma_pages(vma) > win->mem->npages - (vma->vm_pgoff - win->pgoff))
		goto out_unlock;
	slab = win->mem->slab_pages;
	first = vma->vm_pgoff - win->pgoff;
	own = rank->index * slab;
	if ((win->flags & PLD_WINDOW_F_OWNER_WRITES) && (first < own || first + vma_pages(vma) > own + slab)) {
		if (vma->vm_flags & VM_WRITE) {
			mem = ERR_PTR(-EACCES);
			goto out_unlock;
		}
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	mem = win->mem;
	pld_mem_get(mem);
	*out_first = first;

out_unlock:
	mutex_unlock(&domain->lock);
	return mem;
}

/* In pieces: the kernel's loop does not let others run, and a window may be most of the machine's memory. */
static int pld_mmap_pages(struct vm_area_struct *vma, struct page **pages)
{
	unsigned long at, n, left;
	int ret = 0;

	for (at = 0; !ret && at < vma_pages(vma); at += n) {
		n = min(vma_pages(vma) - at, 4096ul);
		left = n;
		ret = vm_insert_pages(vma, vma->vm_start + (at << PAGE_SHIFT), pages + at, &left);
		if (!ret && fatal_signal_pending(current))
			ret = -EINTR;
		cond_resched();
	}
	return ret;
}

/**
 * pld_mmap_rank() - mmap() of a rank file
 * @file: the file
 * @vma: new VMA
 *
 * Context: mmap_lock held for writing.
 * Return: 0, -ENOTCONN, -EINVAL (private mapping, no such range), -EPERM (executable), -EACCES (not writable by this
 * rank), -ENOMEM.
 */
int pld_mmap_rank(struct file *file, struct vm_area_struct *vma)
{
	struct pld_rank *rank = file->private_data;
	unsigned long first;
	struct pld_mem *mem = NULL;
	int ret;

	if (!rank || !pld_rank_is_caller(rank) || READ_ONCE(rank->state) != PLD_MEMBER_ALIVE)
		return -ENOTCONN;
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	/* Dumpable, no VM_IO, no VM_PFNMAP: gdb, O_DIRECT and RDMA may use the pages. */
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND);
	vm_flags_clear(vma, VM_MAYEXEC);

	if (vma->vm_pgoff < PLD_PGOFF_FIRST) {
		ret = pld_mmap_status(rank, vma);
	} else {
		mem = pld_mmap_find(rank, vma, &first);
		if (IS_ERR(mem))
			return PTR_ERR(mem);
		ret = pld_mmap_pages(vma, mem->pages + first);
	}
	if (ret) {
		if (mem)
			pld_mem_put(mem);
		return ret;
	}
	vma->vm_private_data = mem;
	vma->vm_ops = &pld_vm_ops;
	return 0;
}
