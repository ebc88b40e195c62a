// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctl table and the one function that checks size, direction, flags and reserved fields, copies in and out,
 * and makes the effects visible. Handlers get a kernel structure of the newest size and never see user sizes.
 *
 * Invariant: a new descriptor, and anything else that others could see, appears after the results reached the
 * caller; until then pld_call_abort() takes everything back.
 */
#include <linux/file.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "pld.h"

#define PLD_ON_DEVICE 1u
#define PLD_ON_DOMAIN 2u
#define PLD_ON_RANK   4u
#define PLD_ACTS      8u /* on a rank file only for the process that joined, while it is a member; else any holder */

#define PLD_NOWHERE 0xffu

/**
 * struct pld_ioctl - one command
 * @cmd: its number, direction and newest size
 * @min: smallest size: ABI level 1 up to its last field that a call cannot do without
 * @where: files that answer it, PLD_ACTS
 * @flags_at: offset of its __u32 flags, or PLD_NOWHERE
 * @zero_at: offset of its reserved __u32, or PLD_NOWHERE
 * @flags_valid: known bits
 * @fn: handler
 */
struct pld_ioctl {
	unsigned int cmd;
	u8 min;
	u8 where;
	u8 flags_at;
	u8 zero_at;
	u32 flags_valid;
	int (*fn)(struct pld_call *call, void *arg);
};

#define PLD_MIN(type, last) offsetofend(struct type, last)
#define PLD_AT(type, field) offsetof(struct type, field)

#define PLD_WINDOW_F_VALID                                                                              \
	(PLD_WINDOW_F_OWNER_WRITES | PLD_WINDOW_F_ATTACH | PLD_WINDOW_F_HUGE | PLD_WINDOW_F_HUGE_ONLY | \
	 PLD_WINDOW_F_INTERLEAVE | PLD_WINDOW_F_SYSTEM)
#define PLD_WAIT_F_VALID (PLD_WAIT_F_ANY | PLD_WAIT_F_EXACT | PLD_WAIT_F_IDLE)

#define PLD_ROW(_cmd, _min, _where, _flags_at, _flags_valid, _zero_at, _fn)                                    \
	[_IOC_NR(_cmd)] = { .cmd = _cmd, .min = _min, .where = _where, .flags_at = _flags_at,                 \
			    .flags_valid = _flags_valid, .zero_at = _zero_at, .fn = _fn }

/*
 * The second column is the minimum size, up to the last field that a call cannot do without. In bytes:
 *
 *	GET_INFO 16
 *	DOMAIN_CREATE 28, _JOIN 12, _JOIN_TOKEN 28, _SUBSET 24, _LEAVE 4, _POISON 4, _MEMBER 40, _MEMBER_END 16,
 *	_TOKEN 16
 *	WINDOW_CREATE 60, _DESTROY 4, _INFO 40, _RESET 4
 *	CELL_NOTIFY 16, _WAIT 32, _NOTIFY_WAIT 48, _HISTORY 32
 *	LEDGER 16, VERDICT 16
 *
 * It is part of the contract and never changes, however much the structure grows.
 */
static const struct pld_ioctl pld_ioctls[] = {
	PLD_ROW(PLD_IOC_GET_INFO, PLD_MIN(pld_info, out_max_ranks), PLD_ON_DEVICE | PLD_ON_DOMAIN | PLD_ON_RANK,
		PLD_AT(pld_info, flags), 0, PLD_NOWHERE, pld_ioc_get_info),
	PLD_ROW(PLD_IOC_DOMAIN_CREATE, PLD_MIN(pld_domain_create, out_fd), PLD_ON_DEVICE,
		PLD_AT(pld_domain_create, flags), 0, PLD_AT(pld_domain_create, reserved), pld_ioc_domain_create),
	PLD_ROW(PLD_IOC_DOMAIN_JOIN, PLD_MIN(pld_domain_join, out_fd), PLD_ON_DOMAIN,
		PLD_AT(pld_domain_join, flags), 0, PLD_AT(pld_domain_join, reserved), pld_ioc_domain_join),
	PLD_ROW(PLD_IOC_DOMAIN_JOIN_TOKEN, PLD_MIN(pld_domain_join_token, out_fd), PLD_ON_DEVICE,
		PLD_AT(pld_domain_join_token, flags), 0, PLD_AT(pld_domain_join_token, reserved),
		pld_ioc_domain_join_token),
	PLD_ROW(PLD_IOC_DOMAIN_SUBSET, PLD_MIN(pld_domain_subset, out_fd), PLD_ON_RANK | PLD_ACTS,
		PLD_AT(pld_domain_subset, flags), 0, PLD_NOWHERE, pld_ioc_domain_subset),
	PLD_ROW(PLD_IOC_DOMAIN_LEAVE, PLD_MIN(pld_domain_leave, flags), PLD_ON_RANK | PLD_ACTS,
		PLD_AT(pld_domain_leave, flags), 0, PLD_AT(pld_domain_leave, reserved), pld_ioc_domain_leave),
	PLD_ROW(PLD_IOC_DOMAIN_POISON, PLD_MIN(pld_domain_poison, reason), PLD_ON_DOMAIN | PLD_ON_RANK | PLD_ACTS,
		PLD_AT(pld_domain_poison, flags), 0, PLD_NOWHERE, pld_ioc_domain_poison),
	PLD_ROW(PLD_IOC_DOMAIN_MEMBER, PLD_MIN(pld_domain_member, out_member), PLD_ON_DOMAIN | PLD_ON_RANK,
		PLD_AT(pld_domain_member, flags), 0, PLD_NOWHERE, pld_ioc_domain_member),
	PLD_ROW(PLD_IOC_DOMAIN_MEMBER_END, PLD_MIN(pld_domain_member_end, status), PLD_ON_DOMAIN,
		PLD_AT(pld_domain_member_end, flags), 0, PLD_NOWHERE, pld_ioc_domain_member_end),
	PLD_ROW(PLD_IOC_DOMAIN_TOKEN, PLD_MIN(pld_domain_token, out_token), PLD_ON_DOMAIN | PLD_ON_RANK | PLD_ACTS,
		PLD_NOWHERE, 0, PLD_NOWHERE, pld_ioc_domain_token),
	PLD_ROW(PLD_IOC_WINDOW_CREATE, PLD_MIN(pld_window_create, out_created), PLD_ON_RANK | PLD_ACTS,
		PLD_AT(pld_window_create, flags), PLD_WINDOW_F_VALID, PLD_AT(pld_window_create, reserved),
		pld_ioc_window_create),
	PLD_ROW(PLD_IOC_WINDOW_DESTROY, PLD_MIN(pld_window_destroy, window_id), PLD_ON_RANK | PLD_ACTS,
		PLD_AT(pld_window_destroy, flags), 0, PLD_NOWHERE, pld_ioc_window_destroy),
	PLD_ROW(PLD_IOC_WINDOW_INFO, PLD_MIN(pld_window_info, out_mmap_offset), PLD_ON_RANK | PLD_ACTS,
		PLD_NOWHERE, 0, PLD_NOWHERE, pld_ioc_window_info),
	PLD_ROW(PLD_IOC_WINDOW_RESET, PLD_MIN(pld_window_reset, window_id), PLD_ON_RANK | PLD_ACTS,
		PLD_AT(pld_window_reset, flags), 0, PLD_NOWHERE, pld_ioc_window_reset),
	PLD_ROW(PLD_IOC_CELL_NOTIFY, PLD_MIN(pld_notify, cell_size), PLD_ON_RANK | PLD_ACTS,
		PLD_AT(pld_notify, flags), 0, PLD_NOWHERE, pld_ioc_cell_notify),
	PLD_ROW(PLD_IOC_CELL_WAIT, PLD_MIN(pld_wait, deadline_ns), PLD_ON_RANK | PLD_ACTS,
		PLD_AT(pld_wait, flags), PLD_WAIT_F_VALID, PLD_NOWHERE, pld_ioc_cell_wait),
	PLD_ROW(PLD_IOC_CELL_NOTIFY_WAIT, PLD_MIN(pld_notify_wait, wait.deadline_ns), PLD_ON_RANK | PLD_ACTS,
		PLD_AT(pld_notify_wait, wait.flags), PLD_WAIT_F_VALID, PLD_NOWHERE, pld_ioc_cell_notify_wait),
	PLD_ROW(PLD_IOC_LEDGER, PLD_MIN(pld_ledger, entry_size), PLD_ON_DOMAIN | PLD_ON_RANK,
		PLD_NOWHERE, 0, PLD_NOWHERE, pld_ioc_ledger),
	PLD_ROW(PLD_IOC_VERDICT, PLD_MIN(pld_verdict, entry_size), PLD_ON_DOMAIN | PLD_ON_RANK,
		PLD_NOWHERE, 0, PLD_AT(pld_verdict, reserved), pld_ioc_verdict),
	PLD_ROW(PLD_IOC_CELL_HISTORY, PLD_MIN(pld_cell_history, out_provenance), PLD_ON_DOMAIN | PLD_ON_RANK,
		PLD_NOWHERE, 0, PLD_AT(pld_cell_history, reserved), pld_ioc_cell_history),
};

/* Room for the largest structure; a new command joins this union. */
union pld_ioctl_arg {
	struct pld_info info;
	struct pld_domain_create domain_create;
	struct pld_domain_join domain_join;
	struct pld_domain_join_token domain_join_token;
	struct pld_domain_subset domain_subset;
	struct pld_domain_leave domain_leave;
	struct pld_domain_poison domain_poison;
	struct pld_domain_member domain_member;
	struct pld_domain_member_end domain_member_end;
	struct pld_domain_token domain_token;
	struct pld_window_create window_create;
	struct pld_window_destroy window_destroy;
	struct pld_window_info window_info;
	struct pld_window_reset window_reset;
	struct pld_notify notify;
	struct pld_wait wait;
	struct pld_notify_wait notify_wait;
	struct pld_ledger ledger;
	struct pld_verdict verdict;
	struct pld_cell_history cell_history;
};

static const struct pld_ioctl *pld_ioctl_row(unsigned int cmd, u32 where)
{
	const struct pld_ioctl *row;
	unsigned int nr = _IOC_NR(cmd);

	if (nr >= ARRAY_SIZE(pld_ioctls))
		return NULL;
	row = &pld_ioctls[array_index_nospec(nr, ARRAY_SIZE(pld_ioctls))];
	if (!row->fn || !(row->where & where))
		return NULL;
	if ((cmd ^ row->cmd) & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT))
		return NULL;
	return row;
}

static void pld_call_abort(struct pld_call *call)
{
	if (call->abort)
		call->abort(call);
	if (call->new_file) {
		put_unused_fd(call->new_fd);
		fput(call->new_file);
	}
}

static void pld_call_commit(struct pld_call *call)
{
	if (call->commit)
		call->commit(call);
	if (call->new_file)
		fd_install(call->new_fd, call->new_file);
}

static long pld_ioctl_call(struct pld_call *call, u32 where, unsigned int cmd, unsigned long uarg)
{
	const struct pld_ioctl *row = pld_ioctl_row(cmd, where);
	size_t usize = _IOC_SIZE(cmd);
	union pld_ioctl_arg arg;
	size_t ksize;
	int ret;

	if (!row)
		return -ENOTTY;
	if (usize < row->min)
		return -EINVAL;
	if (call->rank && (row->where & PLD_ACTS) &&
	    (!pld_rank_is_caller(call->rank) || READ_ONCE(call->rank->state) != PLD_MEMBER_ALIVE))
		return -ENOTCONN;

	ksize = _IOC_SIZE(row->cmd);
	call->uarg = (void __user *)uarg;
	memset(&arg, 0, sizeof(arg));
	if (_IOC_DIR(cmd) & _IOC_WRITE) {
		ret = copy_struct_from_user(&arg, ksize, call->uarg, usize);
		if (ret)
			return ret;
	}
	if (row->zero_at != PLD_NOWHERE && *(u32 *)((char *)&arg + row->zero_at))
		return -EINVAL;
	if (row->flags_at != PLD_NOWHERE && (*(u32 *)((char *)&arg + row->flags_at) & ~row->flags_valid))
		return -EOPNOTSUPP;

	ret = row->fn(call, &arg);
	if (ret && !call->write_back)
		return ret; /* a handler that fails has undone everything itself */
	if ((_IOC_DIR(cmd) & _IOC_READ) && copy_to_user(call->uarg, &arg, min(usize, ksize))) {
		if (!ret)
			pld_call_abort(call);
		return -EFAULT;
	}
	if (!ret)
		pld_call_commit(call);
	return ret;
}

/**
 * pld_ioctl_device() - ioctl() on /dev/pld
 * @file: the file
 * @cmd: command
 * @arg: user pointer
 *
 * Context: Process context.
 * Return: 0 or a negative errno.
 */
long pld_ioctl_device(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct pld_call call = { .file = file };

	return pld_ioctl_call(&call, PLD_ON_DEVICE, cmd, arg);
}

/**
 * pld_ioctl_domain() - ioctl() on a domain file
 * @file: the file
 * @cmd: command
 * @arg: user pointer
 *
 * Context: Process context.
 * Return: 0 or a negative errno.
 */
long pld_ioctl_domain(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct pld_call call = { .file = file, .domain = file->private_data };

	return pld_ioctl_call(&call, PLD_ON_DOMAIN, cmd, arg);
}

/**
 * pld_ioctl_rank() - ioctl() on a rank file
 * @file: the file
 * @cmd: command
 * @arg: user pointer
 *
 * Context: Process context.
 * Return: 0 or a negative errno.
 */
long pld_ioctl_rank(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct pld_rank *rank = file->private_data;
	struct pld_call call = { .file = file, .domain = rank->domain, .rank = rank };

	return pld_ioctl_call(&call, PLD_ON_RANK, cmd, arg);
}

/**
 * pld_copy_entry() - copy one entry of a user's array, whose entries may be larger than ours
 * @dst: where to
 * @ksize: size of our entry
 * @uptr: user address of the array
 * @i: index
 * @usize: size of the user's entry
 *
 * All entries are of ABI level 1 now, so a smaller one is wrong.
 *
 * Context: Process context, may fault.
 * Return: 0, -EINVAL (too small), -E2BIG (a field that this kernel does not know is set), -EFAULT.
 */
int pld_copy_entry(void *dst, size_t ksize, u64 uptr, u32 i, u32 usize)
{
	if (usize < ksize)
		return -EINVAL;
	if (usize > PAGE_SIZE)
		return -E2BIG;
	return copy_struct_from_user(dst, ksize, u64_to_user_ptr(uptr + (u64)i * usize), usize);
}
