/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernels that pld supports, 6.1 to 7.x. The only file with version tests: every other one
 * is written for the newest kernel. An entry can be deleted when its kernel is no longer supported.
 *
 * Not needed here, on purpose (they changed often): get_user_pages, class_create, fdget, page-table walks,
 * mmu notifiers, hrtimer_setup, strings in tracepoints.
 */
#ifndef _PLD_COMPAT_H
#define _PLD_COMPAT_H

#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/version.h>

/* Until 6.2 (Debian 12 has 6.1) vm_flags is a plain field. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/*
 * Is the caller in execve()? Descriptors are closed there before the new mm is set, so the mm does not tell. The flag
 * is there in all kernels seen (6.1 to 7.3); the day it goes, its replacement goes here.
 */
static inline bool pld_in_exec(void)
{
	return current->in_execve;
}

#endif /* _PLD_COMPAT_H */
