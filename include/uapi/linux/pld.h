/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * pld - windows and signal cells that processes of one machine share.
 *
 * This header is the whole contract between pld.ko and user space. It holds constants and structures
 * only. The library has its own types (include/pldk/) and never shows these to its users.
 */
#ifndef _UAPI_LINUX_PLD_H
#define _UAPI_LINUX_PLD_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: General ioctl format
 *
 * The command number carries the size of the caller's structure (_IOC_SIZE); the kernel dispatches by type
 * and number alone. For every command:
 *
 * - unknown type, number or direction: ENOTTY;
 * - size below the minimum of the command (up to its last indispensable field: see kmod/ioctl.c): EINVAL;
 * - size above what this kernel knows: accepted if the unknown tail is zero, else E2BIG;
 * - size below what this kernel knows: the missing tail reads as zero and is not written back.
 *
 * Zero in a field that a caller does not know means the old behaviour. A reserved field that is not zero is
 * EINVAL, an unknown flag bit is EOPNOTSUPP, a bad user pointer is EFAULT. Commands return 0 or an error;
 * results come back in fields named out_, which are written only on success unless the field says otherwise.
 * New descriptors are O_CLOEXEC. Pointers travel as __u64. Arrays state the size of one entry, because no
 * command number accompanies them: an entry below the size that ABI level 1 has is EINVAL, a larger one follows the
 * rule of a larger structure.
 *
 * Errors that any command may give beside its own: ENOTCONN (on a rank file: not the process that joined, or it left or
 * ended), ECANCELED (it needs a domain that is not poisoned), ENOMEM, EFAULT, EINTR (it may sleep, and a handler
 * without SA_RESTART ran).
 *
 * Deadlines are absolute CLOCK_MONOTONIC nanoseconds of the host (not of a time namespace):
 * PLD_DEADLINE_POLL asks once, PLD_DEADLINE_NEVER waits for ever.
 *
 * Three kinds of file exist. The *device* file (/dev/pld opened) answers GET_INFO, DOMAIN_CREATE and
 * DOMAIN_JOIN_TOKEN. A *domain* file (from DOMAIN_CREATE) names a domain without being a member: it can be
 * inherited or passed, and answers DOMAIN_JOIN, DOMAIN_TOKEN, DOMAIN_MEMBER, DOMAIN_MEMBER_END, DOMAIN_POISON, LEDGER,
 * VERDICT and CELL_HISTORY.
 * A *rank* file (from a join) is one membership: it answers everything else, and only for the process that joined,
 * while it is a member (ENOTCONN for any other, for example a child that inherited it). GET_INFO, DOMAIN_MEMBER,
 * LEDGER, VERDICT and CELL_HISTORY only look: they answer every holder of a rank file (a forked child, a process that
 * got it by SCM_RIGHTS), also after the rank ended.
 */

/**
 * DOC: Mapping
 *
 * mmap() on a rank file, by the process that joined, while it is alive (ENOTCONN). MAP_SHARED only (EINVAL), never
 * PROT_EXEC (EPERM). Offset 0 is the status page: read-only (EACCES), PLD_STATUS_HEADER + nranks * member_size bytes,
 * rounded up to pages. A window is at its out_mmap_offset; any range of whole pages inside one window that this rank
 * has open may be mapped (else EINVAL). Of a window with F_OWNER_WRITES only the own slab may be writable (EACCES, also
 * by a later mprotect): map the window read-only, then the own slab over it. Mappings are complete at once, are not
 * inherited by fork, cannot grow, and keep their pages whatever happens to the window; each is a reference to the rank
 * file. Offsets of windows are above 4 GiB, so 32-bit programs need 64-bit file offsets. Slabs of ranks of other hosts
 * may be holes one day: mapping one will be ENXIO.
 */

/* 0xB9 is listed for nobody in Documentation/userspace-api/ioctl/ioctl-number.rst. */
#define PLD_IOC_MAGIC 0xB9

#define PLD_ABI_LEVEL 1

#define PLD_MAX_RANKS 1024u          /* ranks in one domain */
#define PLD_MAX_CELLS_PER_CALL 4096u /* entries of one notify or wait vector */
#define PLD_MAX_WAITS_PER_RANK 4096u /* threads of one rank that sleep at once */
#define PLD_MAX_WAIT_CELLS_PER_RANK 65536u /* predicates of all of them */
#define PLD_WINDOW_ID_MAX 65534u     /* ids 0..65534 belong to the creator */
#define PLD_WINDOW_ID_SYSTEM 65535u  /* first of PLD_SYSTEM_WINDOWS ids that belong to the library */
#define PLD_SYSTEM_WINDOWS 16u
#define PLD_SYSTEM_BYTES_MAX (16u << 20) /* all system windows of a domain together, a rank */

#define PLD_DEADLINE_POLL 0ull
#define PLD_DEADLINE_NEVER (~0ull)

#define PLD_RANK_ANY (~0u)

/* Feature bits of struct pld_info. A caller tests bits, never kernel versions. */
#define PLD_FEATURE_WINDOWS (1ull << 0)
#define PLD_FEATURE_CELLS (1ull << 1)
#define PLD_FEATURE_SUBSET (1ull << 2)
#define PLD_FEATURE_TOKEN (1ull << 3)
#define PLD_FEATURE_DEADLOCK (1ull << 4)
#define PLD_FEATURE_DMABUF (1ull << 5) /* reserved */
#define PLD_FEATURE_PROXY (1ull << 6)  /* reserved */

/*
 * Layout that is mapped by user space. It has its own version and sizes, since no command number accompanies it.
 */

#define PLD_CELL_SIZE 64u

/* The last notifier in struct pld_cell.provenance: a hint, written before the value by user space too. */
#define PLD_PROVENANCE(seq, op, rank) (((__u64)(seq) << 32) | ((__u64)((op) & 0xffu) << 24) | ((rank) & 0xffffffu))
#define PLD_PROVENANCE_SEQ(p) ((__u32)((p) >> 32))
#define PLD_PROVENANCE_OP(p) ((__u32)((p) >> 24) & 0xffu)
#define PLD_PROVENANCE_RANK(p) ((__u32)(p) & 0xffffffu)

/**
 * struct pld_cell - one signal cell, 64 bytes and 64-byte aligned in every mapping
 * @value: changed by notify only; signed, 64 bits, so epochs never wrap
 * @provenance: PLD_PROVENANCE() of the notify that is about to change @value; seq counts notifies (a hint when
 *              several ranks notify at once)
 * @sleepers: how many waiters sleep on this cell. A notifier changes @value with a full barrier, then reads
 *            @sleepers and enters the kernel (PLD_NOTIFY_WAKE) when it is not zero; see "Sleeping and waking" in
 *            kmod/wait.c. Written by the kernel on dev, by the waiters on the embedded provider.
 * @reserved32: zero
 * @payload: for the users of the window: what travels with @value in one line. Stored before it. The kernel never
 *           writes it after WINDOW_CREATE, where it is zero
 *
 * A member can scribble on its domain's cells. That can cost its own domain a wake-up or a name, nothing else. The
 * proof behind EDEADLK assumes that cells change by notify of joined ranks: who writes them otherwise (through a
 * mapping kept after leaving, ptrace, DMA) may cause an EDEADLK in the domains of the processes involved.
 */
struct pld_cell {
	__aligned_s64 value;
	__aligned_u64 provenance;
	__u32 sleepers;
	__u32 reserved32;
	__aligned_u64 payload[5];
};

/*
 * Member states, in this order: from FINALISED on a rank never notifies again; above FINALISED, new ones too, it is
 * dead.
 */
#define PLD_MEMBER_ABSENT 0u    /* not joined yet */
#define PLD_MEMBER_ALIVE 1u
#define PLD_MEMBER_FINALISED 2u /* left in order (DOMAIN_LEAVE) */
#define PLD_MEMBER_EXITED 3u    /* dead: exit without leaving; status is the exit code */
#define PLD_MEMBER_KILLED 4u    /* dead: POSIX signal; status is its number */
#define PLD_MEMBER_RELEASED 5u  /* dead: exec, or the last reference to its rank file went (copies too) */

/**
 * struct pld_member - one rank as the status page shows it
 * @state: PLD_MEMBER_*
 * @pid: process id in the pid namespace of the domain's creator, 0 before the join or where it has none there
 * @status: exit code or POSIX signal number
 * @device_id: the label the creator gave
 * @cpu: CPU that hosts the device
 * @node: NUMA node that holds the rank's slabs, or ~0
 * @host: 0; ranks of other machines will have their host's index
 * @reserved: zero
 */
struct pld_member {
	__u32 state;
	__u32 pid;
	__s32 status;
	__u32 device_id;
	__u32 cpu;
	__u32 node;
	__u32 host;
	__u32 reserved;
};

#define PLD_STATUS_VERSION 1u
#define PLD_STATUS_HEADER 256u /* byte offset of the first struct pld_member */

/**
 * struct pld_status - the domain's status page, mapped read-only at PLD_MMAP_STATUS
 * @version: PLD_STATUS_VERSION
 * @member_size: bytes from one struct pld_member to the next
 * @nranks: ranks of the domain
 * @domain_id: number of the domain, unique on this machine since boot (dev) or in the job (embedded)
 * @events: incremented after every death, finalise, join and poison. A spinning waiter watches this word.
 * @joined: ranks that have ever joined
 * @finalised: ranks that left in order
 * @dead: ranks that died
 * @first_dead: rank that died first, or PLD_RANK_ANY
 * @poison: 0, or PLD_POISON_SET plus the reason code that the poisoner gave (0..0xffff)
 * @poison_rank: who poisoned, or PLD_RANK_ANY for a file that is no member
 * @reserved: zero
 */
struct pld_status {
	__u32 version;
	__u32 member_size;
	__u32 nranks;
	__u32 events;
	__aligned_u64 domain_id;
	__u32 joined;
	__u32 finalised;
	__u32 dead;
	__u32 first_dead;
	__u32 poison;
	__u32 poison_rank;
	__u32 reserved[52];
};

#define PLD_POISON_SET (1u << 31)

#define PLD_MMAP_STATUS 0ull

/**
 * struct pld_info - ioctl(PLD_IOC_GET_INFO) on any file
 * @flags: in: zero
 * @device_id: in: device whose CPU and node are asked for
 * @out_abi_level: PLD_ABI_LEVEL of the module
 * @out_max_ranks: limit of DOMAIN_CREATE
 * @out_features: PLD_FEATURE_*
 * @out_window_bytes_max: largest slab a rank
 * @out_total_bytes_max: module cap for all windows of the machine (parameter max_bytes)
 * @out_total_bytes_left: what is left of it
 * @out_memlock_bytes_left: what RLIMIT_MEMLOCK leaves to the caller, ~0 for no limit
 * @out_instance: random cookie of this loaded module: two processes talk to the same one only if it is equal
 * @out_page_bytes_max: largest page size that windows may get
 * @out_cpu: CPU that hosts @device_id for this caller: (device_id mod n)-th CPU of its affinity mask
 * @out_node: NUMA node of that CPU
 * @out_max_windows: windows in one domain
 * @out_domain_id: on a domain or rank file: number of the domain, as on its status page; else 0
 * @out_nranks: on a domain or rank file: ranks of the domain; else 0
 * @out_rank: on a rank file: its rank; else PLD_RANK_ANY
 */
struct pld_info {
	__u32 flags;
	__u32 device_id;
	__u32 out_abi_level;
	__u32 out_max_ranks;
	__aligned_u64 out_features;
	__aligned_u64 out_window_bytes_max;
	__aligned_u64 out_total_bytes_max;
	__aligned_u64 out_total_bytes_left;
	__aligned_u64 out_memlock_bytes_left;
	__aligned_u64 out_instance;
	__u32 out_page_bytes_max;
	__u32 out_cpu;
	__u32 out_node;
	__u32 out_max_windows;
	__aligned_u64 out_domain_id;
	__u32 out_nranks;
	__u32 out_rank;
};

/**
 * struct pld_domain_create - ioctl(PLD_IOC_DOMAIN_CREATE) on the device file
 * @nranks: in: 1..PLD_MAX_RANKS
 * @flags: in: PLD_DOMAIN_F_*
 * @device_ids: in: pointer to @nranks __u32 labels, distinct; 0 means 0..nranks-1
 * @cpus: in: pointer to @nranks __u32 CPU numbers (a map file), or 0 for the rule of struct pld_info
 * @out_fd: domain file
 * @reserved: in: zero
 *
 * The creator is not a member. Nothing is named: the domain lives as long as a domain or rank file is open.
 *
 * Errors: EINVAL (nranks; duplicate device id; offline CPU), ENOSPC (the user has too many domains: module parameter
 * user_domains), EMFILE, ENOMEM.
 */
struct pld_domain_create {
	__u32 nranks;
	__u32 flags;
	__aligned_u64 device_ids;
	__aligned_u64 cpus;
	__s32 out_fd;
	__u32 reserved;
};

/**
 * struct pld_domain_join - ioctl(PLD_IOC_DOMAIN_JOIN) on a domain file
 * @rank: in: rank to become
 * @flags: in: zero
 * @out_fd: rank file
 * @reserved: in: zero
 * @out_poison: on ECANCELED only: as in struct pld_status
 * @out_poison_rank: on ECANCELED only: as in struct pld_status
 *
 * Binds the rank to the calling process. It is dead when that process exits or the rank file's last reference
 * goes, whichever is first.
 *
 * Errors: EINVAL (rank), EEXIST (rank is alive), ESTALE (rank joined before and is gone: a dead rank's place is
 * not given again), ECANCELED (domain is poisoned), EMFILE, ENOMEM.
 */
struct pld_domain_join {
	__u32 rank;
	__u32 flags;
	__s32 out_fd;
	__u32 reserved;
	__u32 out_poison;
	__u32 out_poison_rank;
};

/**
 * struct pld_domain_token - ioctl(PLD_IOC_DOMAIN_TOKEN) on a domain or rank file
 * @out_token: 128 random bits that open this domain to a process of the same user (or with CAP_SYS_ADMIN)
 */
struct pld_domain_token {
	__u8 out_token[16];
};

/**
 * struct pld_domain_join_token - ioctl(PLD_IOC_DOMAIN_JOIN_TOKEN) on the device file
 * @token: in: from DOMAIN_TOKEN
 * @rank: in: as in struct pld_domain_join
 * @flags: in: zero
 * @out_fd: rank file
 * @reserved: in: zero
 * @out_poison: as in struct pld_domain_join
 * @out_poison_rank: as in struct pld_domain_join
 *
 * Errors: ENOENT (no such domain in this instance), EPERM (another user's), and those of DOMAIN_JOIN.
 */
struct pld_domain_join_token {
	__u8 token[16];
	__u32 rank;
	__u32 flags;
	__s32 out_fd;
	__u32 reserved;
	__u32 out_poison;
	__u32 out_poison_rank;
};

/**
 * struct pld_domain_subset - ioctl(PLD_IOC_DOMAIN_SUBSET) on a rank file
 * @key: in: chosen by the callers; all members give the same
 * @nranks: in: members of the subset
 * @ranks: in: pointer to @nranks __u32 ranks of this domain; position = rank in the subset
 * @flags: in: zero
 * @out_fd: rank file in the subset
 * @out_poison: as in struct pld_domain_join; of this domain, else of the subset
 * @out_poison_rank: as in struct pld_domain_join, as a rank of this domain
 *
 * The first caller of a key creates, the others join what it created. The call is local and never waits. When all
 * members have joined or ended, the key is free again.
 * A subset is a domain of its own: it outlives its parent's files and may overlap others. Two things go down from a
 * domain to its subsets, and to theirs: poison, and the end of a member that had not joined there.
 *
 * Errors: EINVAL (a rank out of range, twice, or the caller not among them), EPROTO (key exists with another
 * list), EEXIST (the caller joined this key already, and others are still to come), ENOSPC (as DOMAIN_CREATE; it is the
 * creator of the first domain who is charged), and those of DOMAIN_JOIN.
 */
struct pld_domain_subset {
	__u32 key;
	__u32 nranks;
	__aligned_u64 ranks;
	__u32 flags;
	__s32 out_fd;
	__u32 out_poison;
	__u32 out_poison_rank;
};

/**
 * struct pld_domain_leave - ioctl(PLD_IOC_DOMAIN_LEAVE) on a rank file
 * @flags: in: zero
 * @reserved: in: zero
 *
 * Ends the membership in order: state FINALISED. Waits that name this rank fail with ESHUTDOWN from now on.
 *
 * Errors: ENOTCONN (left before), EBUSY (another thread of this rank is waiting in the domain).
 */
struct pld_domain_leave {
	__u32 flags;
	__u32 reserved;
};

/**
 * struct pld_domain_poison - ioctl(PLD_IOC_DOMAIN_POISON) on a rank or domain file
 * @reason: in: 0..0xffff, handed to every waiter through the status page
 * @flags: in: zero
 *
 * Every present and later wait in the domain fails with ECANCELED. The first poisoner wins; later calls succeed
 * and change nothing. All its subsets, and theirs, are poisoned with it: same reason, and the poisoner's rank there or
 * PLD_RANK_ANY. What happens to a subset does not touch its parent. Safe in a signal handler.
 */
struct pld_domain_poison {
	__u32 reason;
	__u32 flags;
};

/**
 * struct pld_domain_member - ioctl(PLD_IOC_DOMAIN_MEMBER) on a rank or domain file
 * @rank: in: whose state
 * @flags: in: zero
 * @out_member: as on the status page, with pid in the caller's pid namespace
 * @out_run_state: 'R', 'S', 'D', 'T' (stopped), 't' (traced), 'Z', or 0 when it has no process
 * @out_nwaiters: threads of this rank that sleep in the kernel
 * @out_since_ns: CLOCK_MONOTONIC time of the last change of state
 */
struct pld_domain_member {
	__u32 rank;
	__u32 flags;
	struct pld_member out_member;
	__u32 out_run_state;
	__u32 out_nwaiters;
	__aligned_u64 out_since_ns;
};

/**
 * struct pld_domain_member_end - ioctl(PLD_IOC_DOMAIN_MEMBER_END) on a domain file
 * @rank: in: rank that has not joined
 * @flags: in: zero
 * @state: in: PLD_MEMBER_EXITED or PLD_MEMBER_KILLED
 * @status: in: exit code 0..255, or POSIX signal 1..127
 *
 * A launcher's word: the process that was to become this rank has ended. The kernel sees the end of every rank that
 * joined; of one that came to nothing only who started it knows. The rank is dead from now on, here and in the subsets.
 *
 * Errors: EINVAL, EEXIST (it has joined, or is about to: the kernel will see its end), ESTALE (it has ended).
 */
struct pld_domain_member_end {
	__u32 rank;
	__u32 flags;
	__u32 state;
	__s32 status;
};

/* Window kinds */
#define PLD_WINDOW_DATA 0u
#define PLD_WINDOW_SIGNAL 1u /* bytes is a multiple of PLD_CELL_SIZE; one cell a line */

#define PLD_WINDOW_F_OWNER_WRITES (1u << 0) /* a slab is writable by its owner only */
#define PLD_WINDOW_F_ATTACH (1u << 1)       /* if the id exists with equal arguments, open that one */
#define PLD_WINDOW_F_HUGE (1u << 2)         /* wish for 2 MiB pages; falls back */
#define PLD_WINDOW_F_HUGE_ONLY (1u << 3)    /* no fallback: EOPNOTSUPP */
#define PLD_WINDOW_F_INTERLEAVE (1u << 4)   /* pages go round the nodes instead of the owner's */
#define PLD_WINDOW_F_SYSTEM (1u << 5)       /* system ids: outside RLIMIT_MEMLOCK, inside the module cap */

/**
 * struct pld_window_create - ioctl(PLD_IOC_WINDOW_CREATE) on a rank file
 * @window_id: in: 0..PLD_WINDOW_ID_MAX, chosen by the creator; system ids with F_SYSTEM
 * @kind: in: PLD_WINDOW_*
 * @flags: in: PLD_WINDOW_F_*
 * @tag: in: anything; compared by F_ATTACH (the library puts a digest of dtype and shape here)
 * @bytes: in: size of one rank's slab; rounded up to a page
 * @out_mmap_offset: for mmap() on this rank file: the slabs of ranks 0..P-1, @out_stride apart
 * @out_stride: bytes from one rank's slab to the next
 * @out_page_bytes: page size got (smallest piece)
 * @out_generation: differs from that of any earlier window of this id
 * @out_created: 1 if this call created it, 0 if it attached
 * @out_other_bytes: also on EPROTO and EEXIST: the size that the existing window has
 * @out_other_tag: also on EPROTO and EEXIST: its tag
 * @reserved: in: zero
 * @out_reserved: zero
 *
 * All slabs are allocated, zeroed and charged here, before the id exists: a later access never faults for memory.
 * All nranks * stride bytes are charged to the creator's memory cgroup and, without F_SYSTEM, to the creating user's
 * locked memory (all its processes together, against the creator's RLIMIT_MEMLOCK; CAP_IPC_LOCK lifts it), until the
 * last reference or mapping goes, also after the creator ended. The window lives until every member that opened it
 * destroyed it or died; mappings keep its pages.
 *
 * Errors: EINVAL (bytes 0, id, kind, cell multiple), EEXIST (id taken and no F_ATTACH, or this rank has it open),
 * EPROTO (F_ATTACH and arguments differ), EPERM (RLIMIT_MEMLOCK), ENOSPC (module cap; with F_SYSTEM also
 * PLD_SYSTEM_BYTES_MAX and what the domain's user may have: module parameter user_system_bytes), ENOMEM,
 * EOVERFLOW, EOPNOTSUPP (F_HUGE_ONLY), ECANCELED (poisoned).
 */
struct pld_window_create {
	__u32 window_id;
	__u32 kind;
	__u32 flags;
	__u32 reserved;
	__aligned_u64 tag;
	__aligned_u64 bytes;
	__aligned_u64 out_mmap_offset;
	__aligned_u64 out_stride;
	__u32 out_page_bytes;
	__u32 out_generation;
	__u32 out_created;
	__u32 out_reserved;
	__aligned_u64 out_other_bytes;
	__aligned_u64 out_other_tag;
};

/**
 * struct pld_window_destroy - ioctl(PLD_IOC_WINDOW_DESTROY) on a rank file
 * @window_id: in: window that this rank has open
 * @flags: in: zero
 *
 * Local: this rank's waits in it end with ECANCELED, its mappings stay until munmap. The last one frees the id.
 *
 * Errors: ENOENT.
 */
struct pld_window_destroy {
	__u32 window_id;
	__u32 flags;
};

/**
 * struct pld_window_info - ioctl(PLD_IOC_WINDOW_INFO) on a rank file
 * @window_id: in
 * @rank: in: whose slab @out_node and @out_page_bytes describe
 * @out_kind: PLD_WINDOW_*
 * @out_flags: as created
 * @out_bytes: slab size asked for
 * @out_stride: as in struct pld_window_create
 * @out_mmap_offset: as in struct pld_window_create
 * @out_generation: as in struct pld_window_create
 * @out_page_bytes: page size got
 * @out_node: node of the slab's first page
 * @out_node_pages: pages of the slab that lie on the owner's node
 * @out_opened: members that have it open
 * @out_tag: as created
 */
struct pld_window_info {
	__u32 window_id;
	__u32 rank;
	__u32 out_kind;
	__u32 out_flags;
	__aligned_u64 out_bytes;
	__aligned_u64 out_stride;
	__aligned_u64 out_mmap_offset;
	__u32 out_generation;
	__u32 out_page_bytes;
	__u32 out_node;
	__u32 out_opened;
	__aligned_u64 out_node_pages;
	__aligned_u64 out_tag;
};

/**
 * struct pld_window_reset - ioctl(PLD_IOC_WINDOW_RESET) on a rank file
 * @window_id: in
 * @flags: in: zero
 *
 * Zeroes the caller's own slab (values and provenance of a signal window's cells). Bring all ranks to the same
 * point first: it is local.
 *
 * Errors: ENOENT, EBUSY (somebody waits in the slab; nothing was changed).
 */
struct pld_window_reset {
	__u32 window_id;
	__u32 flags;
};

/* Notify operations; the numbers are shared with the library's enum. */
#define PLD_NOTIFY_ADD 0u
#define PLD_NOTIFY_SET 1u
#define PLD_NOTIFY_WAKE 2u /* changes nothing, only wakes: after a notify in user space that saw sleepers */

/* Wait predicates: value CMP expected, signed. */
#define PLD_CMP_EQ 0u
#define PLD_CMP_GE 1u
#define PLD_CMP_NE 2u
#define PLD_CMP_GT 3u
#define PLD_CMP_LE 4u
#define PLD_CMP_LT 5u

/**
 * struct pld_notify_cell - one entry of a notify vector
 * @window_id: in: a signal window that the caller has open
 * @generation: in: that of the window, or 0 for whatever is there
 * @rank: in: whose cell
 * @cell: in: index
 * @op: in: PLD_NOTIFY_*
 * @reserved: in: zero
 * @value: in: amount (ADD, wraps) or new value (SET); zero for WAKE
 * @out_value: value after the operation; that it cannot be stored is no error
 */
struct pld_notify_cell {
	__u32 window_id;
	__u32 generation;
	__u32 rank;
	__u32 cell;
	__u32 op;
	__u32 reserved;
	__aligned_s64 value;
	__aligned_s64 out_value;
};

/**
 * struct pld_notify - ioctl(PLD_IOC_CELL_NOTIFY) on a rank file
 * @cells: in: pointer to struct pld_notify_cell
 * @ncells: in: 1..PLD_MAX_CELLS_PER_CALL
 * @cell_size: in: sizeof(struct pld_notify_cell) of the caller
 * @flags: in: zero
 * @site: in: call-site tag for the ledger
 *
 * All entries are checked before the first is carried out. They are carried out in order, each with release
 * semantics. Self is a legal target. A dead or finalised rank's cell can be notified; nobody will see it.
 *
 * Errors: EINVAL, ENOENT (window), EDOM (not a signal window), ESTALE (generation), ECANCELED (poisoned).
 */
struct pld_notify {
	__aligned_u64 cells;
	__u32 ncells;
	__u32 cell_size;
	__u32 flags;
	__u32 site;
};

/**
 * struct pld_wait_cell - one predicate of a wait
 * @window_id: in: a signal window that the caller has open; the cell is the caller's own
 * @generation: in: that of the window, or 0
 * @cell: in: index
 * @cmp: in: PLD_CMP_*
 * @from: in: the only rank that will make it true, or PLD_RANK_ANY
 * @reserved: in: zero
 * @expected: in
 * @out_value: value seen; also written on ETIMEDOUT, EAGAIN, EOWNERDEAD, EDEADLK, ESHUTDOWN and ECANCELED
 */
struct pld_wait_cell {
	__u32 window_id;
	__u32 generation;
	__u32 cell;
	__u32 cmp;
	__u32 from;
	__u32 reserved;
	__aligned_s64 expected;
	__aligned_s64 out_value;
};

#define PLD_WAIT_F_ANY (1u << 0)   /* one predicate is enough; default: all at the same moment */
#define PLD_WAIT_F_EXACT (1u << 1) /* from and from_mask are certain (the library's own cells), not a user's claim */
#define PLD_WAIT_F_IDLE (1u << 2)  /* an idle worker: never part of a deadlock */

/**
 * struct pld_wait - ioctl(PLD_IOC_CELL_WAIT) on a rank file
 * @cells: in: pointer to struct pld_wait_cell
 * @ncells: in: 1..PLD_MAX_CELLS_PER_CALL
 * @cell_size: in: sizeof(struct pld_wait_cell) of the caller
 * @flags: in: PLD_WAIT_F_*
 * @site: in: call-site tag for the ledger
 * @deadline_ns: in: absolute CLOCK_MONOTONIC
 * @from_mask: in: pointer to @from_words __u64 of ranks that may notify, for predicates with PLD_RANK_ANY; 0: all
 * @from_words: in: words of @from_mask, 1..PLD_MAX_RANKS/64; missing words are 0. A bit from nranks on, or no bit:
 * EINVAL
 * @out_index: F_ANY: first predicate that holds
 * @out_rank: on EOWNERDEAD and ESHUTDOWN: the rank that is gone
 * @out_verdict: on EDEADLK: number for PLD_IOC_VERDICT
 *
 * A satisfied wait succeeds whatever else is true, and is an acquire. Unsatisfied, it fails at once or later with:
 *
 * - EAGAIN: deadline 0; ETIMEDOUT: deadline passed;
 * - EOWNERDEAD: of some predicate that does not hold, a rank that may notify it (from, from_mask, else any member) is
 *   dead, also with F_ANY: drop that predicate to go on. It outranks ESHUTDOWN;
 * - ESHUTDOWN: all who may notify a predicate that does not hold have finalised; with F_ANY, all such predicates. Where
 *   nobody is named, the waiter itself counts only if its process has another thread;
 * - EDEADLK: nobody is left who could notify, by proof (see kmod/referee.c). A false F_EXACT proves falsely;
 * - ECANCELED: domain poisoned, window destroyed, or domain left by another thread;
 * - ENOSPC: PLD_MAX_WAITS_PER_RANK, PLD_MAX_WAIT_CELLS_PER_RANK;
 * - ESTALE (generation), ENOENT, EDOM, EINVAL; ENOTCONN; a POSIX signal restarts it (ERESTARTSYS).
 */
struct pld_wait {
	__aligned_u64 cells;
	__u32 ncells;
	__u32 cell_size;
	__u32 flags;
	__u32 site;
	__aligned_u64 deadline_ns;
	__aligned_u64 from_mask;
	__u32 from_words;
	__u32 out_index;
	__u32 out_rank;
	__u32 out_verdict;
};

/**
 * struct pld_notify_wait - ioctl(PLD_IOC_CELL_NOTIFY_WAIT) on a rank file
 * @notify_cells: in: as @cells of struct pld_notify; done first, and not done again if the wait is restarted
 * @notify_ncells: in: 0..PLD_MAX_CELLS_PER_CALL; out: 0, stored after all checks and before the first notify, also when
 *                 the wait fails. If that store faults, EFAULT and nothing is done
 * @notify_cell_size: in: sizeof(struct pld_notify_cell) of the caller
 * @wait: as in struct pld_wait; its growth is this structure's growth
 *
 * Both halves are checked before anything is done. Calling again with the same structure after EINTR only waits.
 */
struct pld_notify_wait {
	__aligned_u64 notify_cells;
	__u32 notify_ncells;
	__u32 notify_cell_size;
	struct pld_wait wait;
};

/**
 * struct pld_ledger_entry - one waiting thread
 * @rank: who waits
 * @tid: thread id in the caller's pid namespace
 * @window_id: first predicate that does not hold
 * @cell: its cell
 * @cmp: its comparison
 * @from: its only notifier or PLD_RANK_ANY
 * @expected: its expected value
 * @value: value now
 * @since_ns: CLOCK_MONOTONIC when the wait began to sleep
 * @deadline_ns: as given
 * @site: as given
 * @npreds: predicates of this wait
 * @flags: PLD_WAIT_F_*
 * @last_notifier: rank of the cell's provenance, or PLD_RANK_ANY
 * @domain_id: domain of all these ranks and windows
 * @pid: process that waits, in the caller's pid namespace; 0 if it is not visible there
 * @generation: of @window_id
 */
struct pld_ledger_entry {
	__u32 rank;
	__u32 tid;
	__u32 window_id;
	__u32 cell;
	__u32 cmp;
	__u32 from;
	__aligned_s64 expected;
	__aligned_s64 value;
	__aligned_u64 since_ns;
	__aligned_u64 deadline_ns;
	__u32 site;
	__u32 npreds;
	__u32 flags;
	__u32 last_notifier;
	__aligned_u64 domain_id;
	__u32 pid;
	__u32 generation;
};

/**
 * struct pld_ledger - ioctl(PLD_IOC_LEDGER) on a rank or domain file
 * @entries: in: pointer to struct pld_ledger_entry, or 0 with @nentries 0 to ask for the count
 * @nentries: in: room; out: waits in the ledger (may exceed the room: only that many were written)
 * @entry_size: in: sizeof(struct pld_ledger_entry) of the caller
 *
 * Stops nobody; entries are read one after the other.
 */
struct pld_ledger {
	__aligned_u64 entries;
	__u32 nentries;
	__u32 entry_size;
};

/**
 * struct pld_verdict - ioctl(PLD_IOC_VERDICT) on a rank or domain file
 * @entries: in: as in struct pld_ledger: the waits that were proved hopeless, as they stood at that moment
 * @nentries: in/out: as in struct pld_ledger
 * @entry_size: in: as in struct pld_ledger
 * @verdict: in: number from struct pld_wait, or 0 for the newest of the domain
 * @reserved: in: zero
 *
 * Numbers of verdicts are machine-wide. A deadlock may span domains: each domain keeps its own members' waits of it,
 * under the same number.
 *
 * Errors: ENOENT (no such verdict; the domain keeps the newest 8).
 */
struct pld_verdict {
	__aligned_u64 entries;
	__u32 nentries;
	__u32 entry_size;
	__u32 verdict;
	__u32 reserved;
};

/**
 * struct pld_cell_history - ioctl(PLD_IOC_CELL_HISTORY) on a rank or domain file
 * @window_id: in
 * @rank: in: whose cell
 * @cell: in
 * @reserved: in: zero
 * @out_value: value now
 * @out_provenance: PLD_PROVENANCE() of the last notify
 * @out_sleepers: waiters that sleep on it
 * @out_reserved: zero
 */
struct pld_cell_history {
	__u32 window_id;
	__u32 rank;
	__u32 cell;
	__u32 reserved;
	__aligned_s64 out_value;
	__aligned_u64 out_provenance;
	__u32 out_sleepers;
	__u32 out_reserved;
};

/* 0x00: any file */
#define PLD_IOC_GET_INFO _IOWR(PLD_IOC_MAGIC, 0x00, struct pld_info)
/* 0x10: domain */
#define PLD_IOC_DOMAIN_CREATE _IOWR(PLD_IOC_MAGIC, 0x10, struct pld_domain_create)
#define PLD_IOC_DOMAIN_JOIN _IOWR(PLD_IOC_MAGIC, 0x11, struct pld_domain_join)
#define PLD_IOC_DOMAIN_JOIN_TOKEN _IOWR(PLD_IOC_MAGIC, 0x12, struct pld_domain_join_token)
#define PLD_IOC_DOMAIN_SUBSET _IOWR(PLD_IOC_MAGIC, 0x13, struct pld_domain_subset)
#define PLD_IOC_DOMAIN_LEAVE _IOW(PLD_IOC_MAGIC, 0x14, struct pld_domain_leave)
#define PLD_IOC_DOMAIN_POISON _IOW(PLD_IOC_MAGIC, 0x15, struct pld_domain_poison)
#define PLD_IOC_DOMAIN_MEMBER _IOWR(PLD_IOC_MAGIC, 0x16, struct pld_domain_member)
#define PLD_IOC_DOMAIN_TOKEN _IOR(PLD_IOC_MAGIC, 0x17, struct pld_domain_token)
#define PLD_IOC_DOMAIN_MEMBER_END _IOW(PLD_IOC_MAGIC, 0x18, struct pld_domain_member_end)
/* 0x20: window */
#define PLD_IOC_WINDOW_CREATE _IOWR(PLD_IOC_MAGIC, 0x20, struct pld_window_create)
#define PLD_IOC_WINDOW_DESTROY _IOW(PLD_IOC_MAGIC, 0x21, struct pld_window_destroy)
#define PLD_IOC_WINDOW_INFO _IOWR(PLD_IOC_MAGIC, 0x22, struct pld_window_info)
#define PLD_IOC_WINDOW_RESET _IOW(PLD_IOC_MAGIC, 0x23, struct pld_window_reset)
/* 0x30: cell */
#define PLD_IOC_CELL_NOTIFY _IOWR(PLD_IOC_MAGIC, 0x30, struct pld_notify)
#define PLD_IOC_CELL_WAIT _IOWR(PLD_IOC_MAGIC, 0x31, struct pld_wait)
#define PLD_IOC_CELL_NOTIFY_WAIT _IOWR(PLD_IOC_MAGIC, 0x32, struct pld_notify_wait)
/* 0x40..0x4f: reserved for dma-buf (EXPORT, IMPORT, FENCE_FROM_CELL, CELL_FROM_FENCE) */
/* 0x50: referee */
#define PLD_IOC_LEDGER _IOWR(PLD_IOC_MAGIC, 0x50, struct pld_ledger)
#define PLD_IOC_VERDICT _IOWR(PLD_IOC_MAGIC, 0x51, struct pld_verdict)
#define PLD_IOC_CELL_HISTORY _IOWR(PLD_IOC_MAGIC, 0x52, struct pld_cell_history)
/* 0x60..0x6f: reserved for proxies of other machines' ranks (NOTIFY_AS, MARK_DEAD, IMPORT_WAITS) */

#endif /* _UAPI_LINUX_PLD_H */
