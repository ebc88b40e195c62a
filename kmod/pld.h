/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private structures of pld.ko and what its files offer each other. The contract with user space is
 * include/uapi/linux/pld.h.
 */
#ifndef _PLD_H
#define _PLD_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/pld.h>

#include "cmp.h"
#include "compat.h"

struct seq_file;
struct pld_user;
struct user_struct;

/**
 * DOC: Objects and lifetime
 *
 * A *domain* is referenced by its domain files, its rank files, a parent's key while members of this subset are still
 * to come, a running referee, and the work that an unseen exit left. The last reference frees it. Its ranks are slots
 * of the domain: a rank joins once and its place is not given again, so a slot needs no reference of its own. Subsets
 * hang below their parents in a tree that holds no reference: poison and ends go down there. A domain that goes leaves
 * its subsets to its parent.
 *
 * A *window* is referenced by its domain while a member has it open, and by calls that use it. Its memory is an
 * object of its own (struct pld_mem), also referenced by every VMA: the charges last as long as the pages.
 *
 * A rank ends (pld_rank_end(), once) by DOMAIN_LEAVE, by the end of its process, by exec, or by the last
 * reference to its rank file. A mapping is a reference to the file, as everywhere in Linux. The end of the process
 * is seen by flush() when its descriptors are closed, and by a wait queue entry on its struct pid when it had
 * passed the descriptor away. Exec is seen by flush() and by the end of the mappings.
 */

/**
 * DOC: Locking
 *
 * ======================  ========  =======================================================  ==================
 * lock                    type      protects                                                 taken inside it
 * ======================  ========  =======================================================  ==================
 * domain->create_lock     mutex     one creation of a window at a time; held while pages     domain->lock
 *                                   are allocated, always taken interruptibly
 * rank->reset_lock        mutex     one WINDOW_RESET of a rank; taken interruptibly          rank->wait_lock
 * pld_referee_lock        mutex     the referee's scratch fields; only ever tried            all but the two above
 * pld_verdict_lock        mutex     held while a verdict is told to all whom it concerns     wait_lock
 * mmap_lock               rwsem     (the kernel's) held by our mmap and close of a VMA       domain->lock
 * domain->lock            mutex     windows, opened bits, keys of subsets; short, never      state_lock
 *                                   held over allocation or user memory
 * pld_domains_lock        mutex     list of all domains, tree of subsets; short              domain->lock, wait_lock
 * pld_topology_lock       mutex     which process is which ranks                             nothing
 * pld_users_lock          spinlock  what is charged to users                                 nothing
 * domain->state_lock      spinlock  states of members, status page, poison, verdicts         nothing
 * rank->wait_lock         spinlock  the rank's waiters, their woken and verdict marks,       nothing
 *                                   win->nsleepers and cell->sleepers of its slabs
 * ======================  ========  =======================================================  ==================
 *
 * Order: create_lock -> mmap_lock -> pld_domains_lock -> domain->lock -> state_lock. Spinlocks are never nested in each
 * other, and no two wait_locks or domain->locks are held at once. Tasks are woken after the wait_lock is dropped,
 * under it only when struct pld_wakes is full. What is walked under a spinlock is bounded: the members of a domain, or
 * the waiters of a rank (PLD_MAX_WAITS_PER_RANK, PLD_MAX_WAIT_CELLS_PER_RANK). Windows are looked up under RCU. Nothing
 * sleeps uninterruptibly on what another process does: the mutexes that an exit takes are held for a bounded number of
 * steps.
 */

#define PLD_CELLS_PER_PAGE (PAGE_SIZE / PLD_CELL_SIZE)
#define PLD_WINDOW_BUCKETS 256
#define PLD_VERDICTS_KEPT 8

/*
 * Page number of the first window's mmap offset; below it lies the status page. All are above 4 GiB, so that a 32-bit
 * caller without 64-bit file offsets fails with its first window, not with the one that crosses the border years later.
 */
#define PLD_PGOFF_FIRST (1ul << 20)

/* Global counters; all but the last return to their start value when everybody has gone. */
struct pld_counters {
	atomic64_t domains;
	atomic64_t members;
	atomic64_t windows;
	atomic64_t pages; /* also the reservation against max_bytes */
	atomic64_t waiters;
	atomic64_t verdicts; /* ever */
};

extern struct pld_counters pld_counters;
extern u64 pld_instance;

/**
 * struct pld_mem - the pages of one window and what was charged for them
 * @ref: the window and every VMA
 * @slab_pages: pages of one rank's slab
 * @npages: pages in all
 * @pgoff: of its first page in mmap offsets; a mapping that outlives the window still knows its pages
 * @system_user: who is charged for an F_SYSTEM window, or NULL
 * @user: whose RLIMIT_MEMLOCK is charged, or NULL (F_SYSTEM). Not the creator's mm: the last reference may go in
 *        another process, which must not wait for a foreign mmap_lock
 * @pages: slab of rank 0, slab of rank 1, ...
 */
struct pld_mem {
	struct kref ref;
	unsigned long slab_pages;
	unsigned long npages;
	unsigned long pgoff;
	struct pld_user *system_user;
	struct user_struct *user;
	struct page **pages;
};

struct pld_window {
	struct kref ref;
	struct rcu_head rcu;
	struct pld_domain *domain; /* not counted: who finds a window holds its domain */
	struct pld_mem *mem;
	u64 tag;
	u64 bytes;
	u32 id;
	u32 kind;
	u32 flags;
	u32 generation;
	u32 ncells;      /* in one slab; 0 for data */
	u32 nranks;
	u32 *nsleepers; /* waiters of each cell of each slab: the truth behind cell->sleepers; owner's wait_lock */
	struct pld_window *next_free; /* of whoever took it out of the table */

	/* domain->lock */
	struct hlist_node hash_node; /* read under RCU */
	struct rb_node offset_node;
	unsigned long pgoff;
	u32 nopened;
	unsigned long opened[]; /* bit a rank; tested without lock */
};

/* One predicate of a wait, checked and resolved. */
struct pld_pred {
	struct pld_window *win;
	struct pld_cell *cell;
	s64 expected;
	s64 seen;
	u32 cellno;
	u32 from;
	u8 cmp;
	bool owns_win; /* this predicate holds the reference to win */
};

/**
 * struct pld_waiter - one waiting thread, on its stack
 * @node: in rank->waiters
 * @rank: who waits
 * @task: the thread
 * @preds: its predicates
 * @npreds: entries of @preds
 * @flags: PLD_WAIT_F_*
 * @site: for the ledger
 * @has_mask: @mask is valid
 * @deadline_ns: absolute
 * @since_ns: when the wait was queued
 * @hint: wait_lock: a predicate that did not hold when a notifier looked
 * @woken: wait_lock: it was told to look again and has not done so: it counts as running
 * @counted: wait_lock: it is in rank->nunlimited
 * @cancelled: wait_lock: window destroyed or domain left
 * @verdict: wait_lock: number of the verdict that says it is hopeless
 * @mask: ranks that may notify predicates without from
 */
struct pld_waiter {
	struct list_head node;
	struct pld_rank *rank;
	struct task_struct *task;
	struct pld_pred *preds;
	u32 npreds;
	u32 flags;
	u32 site;
	bool has_mask;
	u64 deadline_ns;
	u64 since_ns;
	u32 hint;
	bool woken;
	bool counted;
	bool cancelled;
	u32 verdict;
	DECLARE_BITMAP(mask, PLD_MAX_RANKS);
};

/* A process that is at least one rank. All under pld_topology_lock. */
struct pld_process {
	struct hlist_node node;
	struct pid *tgid; /* counted by its ranks */
	struct list_head ranks;
	u64 solve_mark;
	u32 solve_index;
};

struct pld_rank {
	struct pld_domain *domain;
	u32 index;
	u32 device_id;
	u32 cpu;
	u32 node;

	/* domain->state_lock; state is also read without it */
	u32 state; /* PLD_MEMBER_* */
	s32 status;
	bool claimed; /* a join is between its last check and its last step */
	u64 since_ns;

	/* Set by the join, constant until the domain is freed */
	struct pid *tgid;
	struct mm_struct *mm; /* mmgrab only: tells an exec */
	struct wait_queue_entry exit_entry;
	struct work_struct exit_work;
	u32 exit_state; /* lock of that wait queue; then, once it is set, the work's */
	s32 exit_status;

	/* pld_topology_lock; before the join is published, the joiner's */
	struct list_head proc_node; /* in process->ranks while it is alive */
	struct pld_process *process;

	/* wait_lock */
	spinlock_t wait_lock;
	struct list_head waiters;
	u32 nwaiters;
	u32 npreds;     /* of all waiters */
	u32 nunlimited; /* waiters that only another rank can end, and that are not woken */
	u32 wait_gen;   /* incremented when a waiter comes, goes, is woken or looks again */
	struct pld_window *reset_win;

	struct mutex reset_lock;

	/* pld_referee_lock */
	u64 solve_mark;
	u32 solve_proc;
};

/* A proved deadlock as one domain sees it. */
struct pld_verdict_record {
	u32 number;
	u32 nentries;
	struct {
		struct pld_ledger_entry entry;
		struct pid *tid;
	} waits[];
};

struct pld_domain {
	struct kref ref;
	u64 id;
	u32 nranks;
	kuid_t uid;
	struct pld_user *user; /* of uid; charged for this domain */
	u8 token[16];
	struct pid_namespace *pid_ns; /* of the creator */
	struct page *status_pages; /* split: each is mapped and counted on its own */
	unsigned long nstatus_pages;
	struct pld_status *status; /* the same; members read it, the kernel never does */

	/* pld_domains_lock */
	struct list_head node;
	struct pld_domain *parent; /* not counted */
	struct list_head children;
	struct list_head sibling;
	u32 *parent_ranks; /* of a subset: each rank's rank in the parent; constant while it has a key */
	u32 walk_rank;     /* of whoever walks down the tree: the rank that it is about */

	/* parent->lock */
	struct list_head key_node; /* in parent->keys while has_key */
	bool has_key;              /* members are still to come; a counted reference */
	u32 key;

	/* state_lock */
	spinlock_t state_lock;
	u32 njoined;
	u32 nabsent; /* the two are also read without the lock, as a hint */
	u32 nalive;
	u32 nfinalised;
	u32 ndead;
	u32 first_dead;
	u32 poison; /* also read without the lock */
	u32 poison_rank;
	u32 events;
	struct pld_verdict_record *verdicts[PLD_VERDICTS_KEPT];
	u32 verdict_next;

	u64 solve_mark; /* pld_referee_lock */

	atomic_t nblocked; /* ranks with nunlimited > 0; a hint when to ask the referee at once */

	struct mutex create_lock;

	/* lock */
	struct mutex lock;
	struct list_head keys;
	u32 nwindows;
	u32 generation;
	unsigned long system_pages; /* of a slab, in all F_SYSTEM windows */
	unsigned long pgoff_next;
	struct rb_root offsets;
	struct hlist_head windows[PLD_WINDOW_BUCKETS]; /* read under RCU */

	struct pld_rank ranks[];
};

/* One ioctl under way. Files and other effects become visible in commit, after the results reached the caller. */
struct pld_call {
	struct file *file;
	struct pld_domain *domain; /* of a domain or rank file */
	struct pld_rank *rank;     /* of a rank file */
	void __user *uarg;
	bool write_back; /* results are written although the call fails */
	int new_fd;
	struct file *new_file;
	void (*commit)(struct pld_call *call);
	void (*abort)(struct pld_call *call);
	void *object; /* for commit and abort */
};

/* One entry of a notify vector, checked and resolved. */
struct pld_target {
	struct pld_window *win;
	struct pld_cell *cell;
	s64 value;
	u32 rank;
	u32 cellno;
	u32 op;
	bool owns_win;
};

#define PLD_SMALL_VECTOR 4 /* entries that need no allocation */

struct pld_notify_batch {
	u32 n;
	u32 entry_size;
	u64 uptr;
	struct pld_target *targets;
	struct pld_target small[PLD_SMALL_VECTOR];
};

/* Threads to wake when the lock is dropped. */
struct pld_wakes {
	u32 n;
	struct task_struct *tasks[8];
};

/* Without state_lock; who sees that it ended sees how, and that the domain counts it: pld_rank_set_ended_locked(). */
static inline u32 pld_rank_state(const struct pld_rank *rank)
{
	return smp_load_acquire(&rank->state);
}

/* main.c */
extern struct workqueue_struct *pld_workqueue;
extern const struct file_operations pld_domain_fops;
extern const struct file_operations pld_rank_fops;

/* ioctl.c */
long pld_ioctl_device(struct file *file, unsigned int cmd, unsigned long arg);
long pld_ioctl_domain(struct file *file, unsigned int cmd, unsigned long arg);
long pld_ioctl_rank(struct file *file, unsigned int cmd, unsigned long arg);
int pld_copy_entry(void *dst, size_t ksize, u64 uptr, u32 i, u32 usize);

/* domain.c */
extern struct mutex pld_domains_lock;
extern struct list_head pld_domains;
void pld_domain_get(struct pld_domain *domain);
void pld_domain_put(struct pld_domain *domain);
struct pld_domain *pld_domain_alloc(kuid_t uid, u32 nranks, const u32 *device_ids, const u32 *cpus);
u32 *pld_copy_numbers(u64 uptr, u32 n);
int pld_numbers_are_distinct(const u32 *v, u32 n);
void pld_join_commit(struct pld_call *call);
void pld_join_abort(struct pld_call *call);
int pld_join(struct pld_call *call, struct pld_domain *domain, u32 index, s32 *out_fd);
int pld_ioc_get_info(struct pld_call *call, void *arg);
int pld_ioc_domain_create(struct pld_call *call, void *arg);
int pld_ioc_domain_join(struct pld_call *call, void *arg);
int pld_ioc_domain_join_token(struct pld_call *call, void *arg);
int pld_ioc_domain_token(struct pld_call *call, void *arg);

/* subset.c */
void pld_subset_unlink_locked(struct pld_domain *domain);
void pld_subsets_poison(struct pld_domain *domain, u32 reason, u32 rank);
void pld_subsets_rank_ended(struct pld_domain *domain, u32 rank, u32 state, s32 status);
int pld_ioc_domain_subset(struct pld_call *call, void *arg);

/* member.c */
u64 pld_now_ns(void);
const char *pld_member_state_name(u32 state);
void pld_rank_init(struct pld_domain *domain, u32 index);
void pld_rank_fini(struct pld_rank *rank);
int pld_rank_claim(struct pld_rank *rank);
void pld_rank_unclaim(struct pld_rank *rank);
void pld_rank_publish(struct pld_rank *rank);
void pld_rank_end(struct pld_rank *rank, u32 state, s32 status);
bool pld_rank_end_absent(struct pld_rank *rank, u32 state, s32 status);
bool pld_rank_is_process(const struct pld_rank *rank);
bool pld_rank_is_caller(const struct pld_rank *rank);
void pld_rank_closing(struct pld_rank *rank);
char pld_rank_run_state(const struct pld_rank *rank);
bool pld_domain_poison(struct pld_domain *domain, u32 reason, u32 rank);
u32 pld_domain_poison_of(struct pld_domain *domain, u32 *out_rank);
int pld_ioc_domain_leave(struct pld_call *call, void *arg);
int pld_ioc_domain_poison(struct pld_call *call, void *arg);
int pld_ioc_domain_member(struct pld_call *call, void *arg);
int pld_ioc_domain_member_end(struct pld_call *call, void *arg);

/* pages.c */
u64 pld_cap_bytes(void);
u64 pld_cap_left(void);
u64 pld_memlock_left(void);
struct pld_mem *pld_mem_alloc(struct pld_domain *domain, unsigned long slab_pages, u32 flags);
void pld_mem_get(struct pld_mem *mem);
void pld_mem_put(struct pld_mem *mem);

/* user.c */
struct pld_user *pld_user_add_domain(kuid_t uid);
void pld_user_sub_domain(struct pld_user *user);
int pld_user_add_system(struct pld_user *user, unsigned long npages);
void pld_user_sub_system(struct pld_user *user, unsigned long npages);

/* window.c */
u64 pld_slab_bytes_max(u32 nranks);
struct pld_window *pld_window_find(struct pld_domain *domain, u32 id);
void pld_window_put(struct pld_window *win);
struct pld_cell *pld_window_cell(const struct pld_window *win, u32 rank, u32 cell);
u32 *pld_window_sleepers(const struct pld_window *win, u32 rank, u32 cell);
void pld_windows_release(struct pld_rank *rank);
struct pld_window *pld_window_at_locked(struct pld_domain *domain, unsigned long pgoff);
int pld_ioc_window_create(struct pld_call *call, void *arg);
int pld_ioc_window_destroy(struct pld_call *call, void *arg);
int pld_ioc_window_info(struct pld_call *call, void *arg);
int pld_ioc_window_reset(struct pld_call *call, void *arg);

/* map.c */
int pld_mmap_rank(struct file *file, struct vm_area_struct *vma);

/* cell.c */
int pld_cell_window(struct pld_rank *rank, u32 id, u32 generation, struct pld_window *last, struct pld_window **out);
int pld_notify_prepare(struct pld_rank *rank, u64 uptr, u32 n, u32 entry_size, struct pld_notify_batch *batch);
void pld_notify_run(struct pld_rank *rank, struct pld_notify_batch *batch, u32 site);
void pld_notify_release(struct pld_notify_batch *batch);
int pld_ioc_cell_notify(struct pld_call *call, void *arg);
int pld_ioc_cell_history(struct pld_call *call, void *arg);

/* wait.c */
void pld_wakes_flush(struct pld_wakes *wakes);
void pld_waiter_tell(struct pld_waiter *w, struct pld_wakes *wakes);
bool pld_waiter_is_unlimited(const struct pld_waiter *w);
int pld_wait_failure(const struct pld_waiter *w, u32 *out_rank);
void pld_wait_wake_cell(struct pld_window *win, u32 rank, u32 cell, struct pld_wakes *wakes);
void pld_wait_wake_domain(struct pld_domain *domain);
int pld_wait_run(struct pld_waiter *w, u32 *out_index, u32 *out_rank);
void pld_wait_cancel(struct pld_rank *rank, const struct pld_window *win);
bool pld_wait_uses_locked(const struct pld_rank *rank, const struct pld_window *win);

/* wait_call.c */
int pld_ioc_cell_wait(struct pld_call *call, void *arg);
int pld_ioc_cell_notify_wait(struct pld_call *call, void *arg);

/* ledger.c */
void pld_ledger_fill(struct pld_ledger_entry *entry, const struct pld_waiter *w);
void pld_verdict_free(struct pld_verdict_record *v);
int pld_ioc_ledger(struct pld_call *call, void *arg);
int pld_ioc_verdict(struct pld_call *call, void *arg);

/* topology.c */
extern struct mutex pld_topology_lock;
extern u32 pld_topology_gen;
int pld_topology_prepare(struct pld_rank *rank);
void pld_topology_unprepare(struct pld_rank *rank);
void pld_topology_add(struct pld_rank *rank);
void pld_topology_remove(struct pld_rank *rank);

/* referee.c */
bool pld_referee_is_urgent(const struct pld_domain *domain);
void pld_referee_ask(struct pld_rank *rank);
void pld_verdict_settle(void);

/* fdinfo.c */
void pld_fdinfo_domain(struct seq_file *m, struct file *file);
void pld_fdinfo_rank(struct seq_file *m, struct file *file);
void pld_debugfs_init(void);
void pld_debugfs_exit(void);

#endif /* _PLD_H */
