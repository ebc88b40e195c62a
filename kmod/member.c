// SPDX-License-Identifier: GPL-2.0
/*
 * One rank's life: absent, alive, then finalised or dead. Owns the state of members and the status page.
 *
 * Invariant: a rank ends once; the order is state and status page, then waiters of the whole domain look again, then
 * its windows are closed. A spinner that sees status->events change therefore finds the new states (release).
 */
#include <linux/pid_namespace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/timekeeping.h>

#include "pld.h"
#include "trace.h"

/**
 * pld_now_ns() - the clock of all deadlines
 *
 * Context: Any.
 * Return: CLOCK_MONOTONIC in nanoseconds.
 */
u64 pld_now_ns(void)
{
	return ktime_get_ns();
}

/**
 * pld_member_state_name() - PLD_MEMBER_* as fdinfo spells it
 * @state: state
 *
 * Return: a word.
 */
const char *pld_member_state_name(u32 state)
{
	static const char *const names[] = { "absent", "alive", "finalised", "exited", "killed", "released" };

	return state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

static struct pld_member *pld_status_member(struct pld_rank *rank)
{
	return (struct pld_member *)((char *)rank->domain->status + PLD_STATUS_HEADER) + rank->index;
}

/* Everything on the page is written before the event that announces it. */
static void pld_status_publish_locked(struct pld_domain *domain)
{
	struct pld_status *status = domain->status;

	lockdep_assert_held(&domain->state_lock);
	WRITE_ONCE(status->joined, domain->njoined);
	WRITE_ONCE(status->finalised, domain->nfinalised);
	WRITE_ONCE(status->dead, domain->ndead);
	WRITE_ONCE(status->first_dead, domain->first_dead);
	WRITE_ONCE(status->poison_rank, domain->poison_rank);
	WRITE_ONCE(status->poison, domain->poison);
	smp_store_release(&status->events, ++domain->events);
}

/**
 * pld_rank_init() - make a slot of a new domain usable
 * @domain: new domain
 * @index: rank; its device_id, cpu and node are set already
 *
 * Context: Process context, before the domain is visible.
 */
void pld_rank_init(struct pld_domain *domain, u32 index)
{
	struct pld_rank *rank = &domain->ranks[index];
	struct pld_member *m;

	rank->domain = domain;
	rank->index = index;
	rank->since_ns = pld_now_ns();
	spin_lock_init(&rank->wait_lock);
	INIT_LIST_HEAD(&rank->waiters);
	INIT_LIST_HEAD(&rank->proc_node);
	mutex_init(&rank->reset_lock);
	m = pld_status_member(rank);
	m->device_id = rank->device_id;
	m->cpu = rank->cpu;
	m->node = rank->node;
}

/**
 * pld_rank_fini() - undo pld_rank_init() and the join
 * @rank: slot of a domain that nobody can reach
 *
 * Context: Process context, also of another rank's exit work.
 */
void pld_rank_fini(struct pld_rank *rank)
{
	if (rank->tgid) {
		remove_wait_queue(&rank->tgid->wait_pidfd, &rank->exit_entry);
		put_pid(rank->tgid);
		mmdrop(rank->mm);
	}
	mutex_destroy(&rank->reset_lock);
}

/* What wait(2) would report of the process; only valid when all its threads have begun to exit. */
static void pld_exit_reason(struct task_struct *leader, u32 *state, s32 *status)
{
	struct signal_struct *sig = leader->signal;
	int code = sig->flags & SIGNAL_GROUP_EXIT ? sig->group_exit_code : leader->exit_code;

	if (code & 0x7f) {
		*state = PLD_MEMBER_KILLED;
		*status = code & 0x7f;
	} else {
		*state = PLD_MEMBER_EXITED;
		*status = (code >> 8) & 0xff;
	}
}

static void pld_rank_exit_work(struct work_struct *work)
{
	struct pld_rank *rank = container_of(work, struct pld_rank, exit_work);
	struct pld_domain *domain = rank->domain;

	pld_rank_end(rank, rank->exit_state, rank->exit_status);
	pld_domain_put(domain);
}

/*
 * The process became a zombie. Only matters when it had passed its rank file to somebody else: flush() comes first
 * otherwise. Called with tasklist_lock and interrupts off, so a work does the rest; it holds the domain, because
 * whoever frees a domain may be such a work of another one, and must not wait for any.
 */
static int pld_rank_exit_notice(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	struct pld_rank *rank = container_of(entry, struct pld_rank, exit_entry);
	struct task_struct *leader;

	/* Newer kernels come again when the zombie is reaped, and know nothing any more. */
	if (rank->exit_state)
		return 0;
	rcu_read_lock();
	leader = pid_task(rank->tgid, PIDTYPE_TGID);
	if ((!leader || (leader->exit_state && !atomic_read(&leader->signal->live))) &&
	    kref_get_unless_zero(&rank->domain->ref)) {
		rank->exit_state = PLD_MEMBER_EXITED;
		if (leader)
			pld_exit_reason(leader, &rank->exit_state, &rank->exit_status);
		queue_work(pld_workqueue, &rank->exit_work);
	}
	rcu_read_unlock();
	return 0;
}

/**
 * pld_rank_claim() - reserve a rank for the caller, invisibly
 * @rank: wanted
 *
 * Context: Takes state_lock.
 * Return: 0, then pld_rank_publish() or pld_rank_unclaim() must follow; -ECANCELED, -EEXIST, -ESTALE, -ENOMEM.
 */
int pld_rank_claim(struct pld_rank *rank)
{
	struct pld_domain *domain = rank->domain;
	int ret = 0;

	spin_lock(&domain->state_lock);
	if (domain->poison)
		ret = -ECANCELED;
	else if (rank->claimed || rank->state == PLD_MEMBER_ALIVE)
		ret = -EEXIST;
	else if (rank->state != PLD_MEMBER_ABSENT)
		ret = -ESTALE;
	else
		rank->claimed = true;
	spin_unlock(&domain->state_lock);
	if (ret)
		return ret;
	ret = pld_topology_prepare(rank);
	if (ret)
		pld_rank_unclaim(rank);
	return ret;
}

/**
 * pld_rank_unclaim() - give a claimed rank back
 * @rank: claimed
 *
 * Context: Takes state_lock.
 */
void pld_rank_unclaim(struct pld_rank *rank)
{
	pld_topology_unprepare(rank);
	spin_lock(&rank->domain->state_lock);
	rank->claimed = false;
	spin_unlock(&rank->domain->state_lock);
}

/**
 * pld_rank_publish() - the claimed rank is alive and is the calling process
 * @rank: claimed
 *
 * Context: Process context of the joining process. Cannot fail.
 */
void pld_rank_publish(struct pld_rank *rank)
{
	struct pld_domain *domain = rank->domain;
	struct pld_member *m = pld_status_member(rank);

	rank->tgid = get_pid(task_tgid(current));
	rank->mm = current->mm;
	mmgrab(rank->mm);
	INIT_WORK(&rank->exit_work, pld_rank_exit_work);
	init_waitqueue_func_entry(&rank->exit_entry, pld_rank_exit_notice);
	add_wait_queue(&rank->tgid->wait_pidfd, &rank->exit_entry);
	pld_topology_add(rank);
	atomic64_inc(&pld_counters.members);

	spin_lock(&domain->state_lock);
	rank->claimed = false;
	rank->since_ns = pld_now_ns();
	WRITE_ONCE(rank->state, PLD_MEMBER_ALIVE);
	domain->njoined++;
	WRITE_ONCE(domain->nabsent, domain->nabsent - 1);
	WRITE_ONCE(domain->nalive, domain->nalive + 1);
	WRITE_ONCE(m->pid, pid_nr_ns(rank->tgid, domain->pid_ns));
	WRITE_ONCE(m->state, PLD_MEMBER_ALIVE);
	pld_status_publish_locked(domain);
	spin_unlock(&domain->state_lock);
	trace_pld_domain_join(domain->id, rank->index, PLD_MEMBER_ALIVE, 0);
}

static void pld_rank_set_ended_locked(struct pld_rank *rank, u32 state, s32 status)
{
	struct pld_domain *domain = rank->domain;
	struct pld_member *m = pld_status_member(rank);

	lockdep_assert_held(&domain->state_lock);
	rank->since_ns = pld_now_ns();
	rank->status = status;
	/* Whoever is sent home by this end looks at the page: it says how before anybody is. */
	WRITE_ONCE(m->status, status);
	WRITE_ONCE(m->state, state);
	if (state == PLD_MEMBER_FINALISED) {
		WRITE_ONCE(domain->nfinalised, domain->nfinalised + 1);
	} else {
		if (!domain->ndead)
			WRITE_ONCE(domain->first_dead, rank->index);
		/* Pairs with the acquire in pld_wait_failure(): who sees the count sees who was first. */
		smp_store_release(&domain->ndead, domain->ndead + 1);
	}
	/*
	 * Pairs with pld_rank_state(): who sees the end sees the count and the status. Otherwise the referee could find
	 * a rank gone and its waiters still without a reason to fail: EDEADLK instead of EOWNERDEAD or ESHUTDOWN.
	 * (Waiters that see the count before the state are told once more, after all this.)
	 */
	smp_store_release(&rank->state, state);
	pld_status_publish_locked(domain);
}

/**
 * pld_rank_end() - a membership is over; the first caller says why
 * @rank: rank that joined
 * @state: PLD_MEMBER_FINALISED and above
 * @status: exit code or POSIX signal
 *
 * Context: Process context, also of an exiting process and under its mmap_lock. Takes domain->lock, then
 * pld_domains_lock.
 */
void pld_rank_end(struct pld_rank *rank, u32 state, s32 status)
{
	struct pld_domain *domain = rank->domain;

	spin_lock(&domain->state_lock);
	if (rank->state != PLD_MEMBER_ALIVE) {
		spin_unlock(&domain->state_lock);
		return;
	}
	WRITE_ONCE(domain->nalive, domain->nalive - 1);
	pld_rank_set_ended_locked(rank, state, status);
	spin_unlock(&domain->state_lock);

	pld_topology_remove(rank);
	atomic64_dec(&pld_counters.members);
	if (state == PLD_MEMBER_FINALISED)
		trace_pld_domain_leave(domain->id, rank->index, state, status);
	else
		trace_pld_member_death(domain->id, rank->index, state, status);
	pld_wait_cancel(rank, NULL);
	pld_wait_wake_domain(domain);
	pld_windows_release(rank);
	pld_subsets_rank_ended(domain, rank->index, state, status);
}

/**
 * pld_rank_end_absent() - the process that could join this rank has ended: in the parent, or by its launcher's word
 * @rank: rank
 * @state: as it ended
 * @status: as it ended
 *
 * Context: Process context. Takes state_lock and wait_locks of the domain.
 * Return: true if it ended here; false if it has joined, is joining, or had ended before.
 */
bool pld_rank_end_absent(struct pld_rank *rank, u32 state, s32 status)
{
	struct pld_domain *domain = rank->domain;

	spin_lock(&domain->state_lock);
	if (rank->state != PLD_MEMBER_ABSENT || rank->claimed) {
		spin_unlock(&domain->state_lock);
		return false;
	}
	WRITE_ONCE(domain->nabsent, domain->nabsent - 1);
	pld_rank_set_ended_locked(rank, state, status);
	spin_unlock(&domain->state_lock);
	if (state == PLD_MEMBER_FINALISED)
		trace_pld_domain_leave(domain->id, rank->index, state, status);
	else
		trace_pld_member_death(domain->id, rank->index, state, status);
	pld_wait_wake_domain(domain);
	return true;
}

/**
 * pld_rank_is_process() - does the calling thread belong to the thread group that joined?
 * @rank: rank that joined
 *
 * Return: true also after that process replaced itself by exec.
 */
bool pld_rank_is_process(const struct pld_rank *rank)
{
	return rank->tgid && task_tgid(current) == rank->tgid;
}

/**
 * pld_rank_is_caller() - may the calling thread act as this rank?
 * @rank: rank that joined
 *
 * Return: false for a forked child, a receiver of the descriptor, and after exec.
 */
bool pld_rank_is_caller(const struct pld_rank *rank)
{
	return pld_rank_is_process(rank) && current->mm == rank->mm;
}

/**
 * pld_rank_closing() - the caller closes a descriptor or tears down the mm of a rank; is it the end of the rank?
 * @rank: rank that joined
 *
 * A thread that exits alone (with its own descriptor table) is not the end of the process, so PF_EXITING is not
 * enough. An exec closes descriptors while current->mm is still the old one, and tears the old one down when it has
 * the new: both are the end.
 *
 * Context: Process context, also under mmap_lock of a dying mm.
 */
void pld_rank_closing(struct pld_rank *rank)
{
	struct signal_struct *sig = current->signal;
	s32 status = 0;
	u32 state;

	if (!pld_rank_is_process(rank))
		return;
	if (current->flags & PF_EXITING) {
		if (atomic_read(&sig->live) && !(READ_ONCE(sig->flags) & SIGNAL_GROUP_EXIT))
			return;
		pld_exit_reason(current->group_leader, &state, &status);
		pld_rank_end(rank, state, status);
	} else if (pld_in_exec() || current->mm != rank->mm) {
		pld_rank_end(rank, PLD_MEMBER_RELEASED, 0);
	}
}

/**
 * pld_rank_run_state() - what the rank's first thread does
 * @rank: any rank
 *
 * Return: a letter as in /proc/PID/stat, 0 without a process.
 */
char pld_rank_run_state(const struct pld_rank *rank)
{
	struct task_struct *task;
	char c;

	if (!rank->tgid)
		return 0;
	task = get_pid_task(rank->tgid, PIDTYPE_TGID);
	if (!task)
		return 0;
	c = task_state_to_char(task);
	put_task_struct(task);
	return c;
}

/**
 * pld_ioc_domain_leave() - PLD_IOC_DOMAIN_LEAVE
 * @call: on a living rank
 * @arg: struct pld_domain_leave
 *
 * Return: 0 or -EBUSY.
 */
int pld_ioc_domain_leave(struct pld_call *call, void *arg)
{
	/* A wait that begins after this look ends with ECANCELED, as the contract says. */
	if (READ_ONCE(call->rank->nwaiters))
		return -EBUSY;
	pld_rank_end(call->rank, PLD_MEMBER_FINALISED, 0);
	return 0;
}

/**
 * pld_domain_poison() - poison one domain; its subsets are another step
 * @domain: domain
 * @reason: 0..0xffff
 * @rank: who, or PLD_RANK_ANY
 *
 * Context: Process context. Takes state_lock and all wait_locks of the domain.
 * Return: true if it was not poisoned before.
 */
bool pld_domain_poison(struct pld_domain *domain, u32 reason, u32 rank)
{
	bool first;

	spin_lock(&domain->state_lock);
	first = !domain->poison;
	if (first) {
		domain->poison_rank = rank;
		WRITE_ONCE(domain->poison, PLD_POISON_SET | reason);
		pld_status_publish_locked(domain);
	}
	spin_unlock(&domain->state_lock);
	if (first) {
		trace_pld_domain_poison(domain->id, rank, 0, reason);
		pld_wait_wake_domain(domain);
	}
	return first;
}

/**
 * pld_domain_poison_of() - is the domain poisoned, and by whom?
 * @domain: domain
 * @out_rank: who, or PLD_RANK_ANY
 *
 * Context: Takes state_lock.
 * Return: 0, or PLD_POISON_SET plus the reason.
 */
u32 pld_domain_poison_of(struct pld_domain *domain, u32 *out_rank)
{
	u32 poison;

	spin_lock(&domain->state_lock);
	poison = domain->poison;
	*out_rank = domain->poison_rank;
	spin_unlock(&domain->state_lock);
	return poison;
}

/**
 * pld_ioc_domain_poison() - PLD_IOC_DOMAIN_POISON
 * @call: on a domain or a living rank
 * @arg: struct pld_domain_poison
 *
 * Return: 0 or -EINVAL.
 */
int pld_ioc_domain_poison(struct pld_call *call, void *arg)
{
	u32 rank = call->rank ? call->rank->index : PLD_RANK_ANY;
	struct pld_domain_poison *p = arg;

	if (p->reason > 0xffff)
		return -EINVAL;
	if (pld_domain_poison(call->domain, p->reason, rank))
		pld_subsets_poison(call->domain, p->reason, rank);
	return 0;
}

/**
 * pld_ioc_domain_member() - PLD_IOC_DOMAIN_MEMBER
 * @call: on a domain or rank
 * @arg: struct pld_domain_member
 *
 * Return: 0 or -EINVAL.
 */
int pld_ioc_domain_member(struct pld_call *call, void *arg)
{
	struct pld_domain *domain = call->domain;
	struct pld_domain_member *m = arg;
	struct pld_rank *rank;

	if (m->rank >= domain->nranks)
		return -EINVAL;
	rank = &domain->ranks[m->rank];
	memset(&m->out_member, 0, sizeof(m->out_member));
	spin_lock(&domain->state_lock);
	m->out_member.state = rank->state;
	m->out_member.status = rank->status;
	m->out_since_ns = rank->since_ns;
	if (rank->state != PLD_MEMBER_ABSENT && rank->tgid)
		m->out_member.pid = pid_vnr(rank->tgid);
	spin_unlock(&domain->state_lock);
	m->out_member.device_id = rank->device_id;
	m->out_member.cpu = rank->cpu;
	m->out_member.node = rank->node;
	m->out_run_state = m->out_member.state == PLD_MEMBER_ABSENT ? 0 : pld_rank_run_state(rank);
	m->out_nwaiters = READ_ONCE(rank->nwaiters);
	return 0;
}

/**
 * pld_ioc_domain_member_end() - PLD_IOC_DOMAIN_MEMBER_END
 * @call: on a domain
 * @arg: struct pld_domain_member_end
 *
 * Return: 0, -EINVAL, -EEXIST, -ESTALE.
 */
int pld_ioc_domain_member_end(struct pld_call *call, void *arg)
{
	const struct pld_domain_member_end *e = arg;
	struct pld_rank *rank;

	if (e->rank >= call->domain->nranks)
		return -EINVAL;
	if (e->state == PLD_MEMBER_EXITED ? e->status < 0 || e->status > 0xff :
					    e->state != PLD_MEMBER_KILLED || e->status < 1 || e->status > 0x7f)
		return -EINVAL;
	rank = &call->domain->ranks[e->rank];
	if (!pld_rank_end_absent(rank, e->state, e->status))
		return READ_ONCE(rank->state) >= PLD_MEMBER_FINALISED ? -ESTALE : -EEXIST;
	pld_subsets_rank_ended(call->domain, e->rank, e->state, e->status);
	return 0;
}
