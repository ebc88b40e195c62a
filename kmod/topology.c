// SPDX-License-Identifier: GPL-2.0
/*
 * Which process is which ranks. A process may be a rank of many domains; the referee walks from domain to domain along
 * its processes, so each is an object here, found in one step from any of its ranks.
 *
 * Invariant: a process is in the hash exactly while one of its ranks is alive, and pld_topology_gen changes with every
 * rank that comes or goes.
 */
#include <linux/hashtable.h>
#include <linux/slab.h>

#include "pld.h"

DEFINE_MUTEX(pld_topology_lock);
u32 pld_topology_gen;

static DEFINE_HASHTABLE(pld_processes, 8);

/**
 * pld_topology_prepare() - what pld_topology_add() may need
 * @rank: claimed
 *
 * Context: Process context.
 * Return: 0, then pld_topology_add() or pld_topology_unprepare() must follow; -ENOMEM.
 */
int pld_topology_prepare(struct pld_rank *rank)
{
	rank->process = kzalloc(sizeof(*rank->process), GFP_KERNEL_ACCOUNT);
	return rank->process ? 0 : -ENOMEM;
}

/**
 * pld_topology_unprepare() - the rank does not join after all
 * @rank: prepared
 */
void pld_topology_unprepare(struct pld_rank *rank)
{
	kfree(rank->process);
	rank->process = NULL;
}

static struct pld_process *pld_process_find_locked(const struct pid *tgid)
{
	struct pld_process *process;

	lockdep_assert_held(&pld_topology_lock);
	hash_for_each_possible(pld_processes, process, node, (unsigned long)tgid)
		if (process->tgid == tgid)
			return process;
	return NULL;
}

/**
 * pld_topology_add() - a process is about to become a rank
 * @rank: prepared; its tgid is set
 *
 * Context: Process context. Takes pld_topology_lock. Cannot fail.
 */
void pld_topology_add(struct pld_rank *rank)
{
	struct pld_process *process, *spare = rank->process;

	mutex_lock(&pld_topology_lock);
	process = pld_process_find_locked(rank->tgid);
	if (!process) {
		swap(process, spare);
		process->tgid = rank->tgid;
		INIT_LIST_HEAD(&process->ranks);
		hash_add(pld_processes, &process->node, (unsigned long)process->tgid);
	}
	rank->process = process;
	list_add_tail(&rank->proc_node, &process->ranks);
	pld_topology_gen++;
	mutex_unlock(&pld_topology_lock);
	kfree(spare);
}

/**
 * pld_topology_remove() - a rank has ended
 * @rank: not alive any more
 *
 * Context: Process context. Takes pld_topology_lock.
 */
void pld_topology_remove(struct pld_rank *rank)
{
	struct pld_process *process;

	mutex_lock(&pld_topology_lock);
	process = rank->process;
	rank->process = NULL;
	list_del_init(&rank->proc_node);
	if (list_empty(&process->ranks))
		hash_del(&process->node);
	else
		process = NULL;
	pld_topology_gen++;
	mutex_unlock(&pld_topology_lock);
	kfree(process);
}
