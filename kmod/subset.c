// SPDX-License-Identifier: GPL-2.0
/*
 * Subsets: domains that some members of a domain make under a key, without waiting for each other; and what goes down
 * the tree of subsets, poison and ends.
 *
 * Invariants: a key is taken, and holds its subset, exactly while members of it are still to come. A member that ended
 * in the parent before it joined the subset has ended there too, and in the subsets of that: nobody waits for it.
 * A fact goes down in two steps: it is set in the domain, then the tree is walked under pld_domains_lock. A subset is
 * linked under the same lock, and its maker looks at the parent's facts after that: one of the two sees the other.
 */
#include <linux/slab.h>

#include "pld.h"

/* Next of the subsets below @top, parents first; without those below @domain if @skip. NULL after the last. */
static struct pld_domain *pld_tree_next_locked(struct pld_domain *top, struct pld_domain *domain, bool skip)
{
	lockdep_assert_held(&pld_domains_lock);
	if (!skip && !list_empty(&domain->children))
		return list_first_entry(&domain->children, struct pld_domain, sibling);
	for (; domain != top; domain = domain->parent)
		if (!list_is_last(&domain->sibling, &domain->parent->children))
			return list_next_entry(domain, sibling);
	return NULL;
}

/* Rank in the subset of a member of its parent, or PLD_RANK_ANY. */
static u32 pld_subset_rank(const struct pld_domain *subset, u32 parent_rank)
{
	u32 i;

	for (i = 0; parent_rank != PLD_RANK_ANY && i < subset->nranks; i++)
		if (subset->parent_ranks[i] == parent_rank)
			return i;
	return PLD_RANK_ANY;
}

/**
 * pld_subset_unlink_locked() - take a domain out of the tree; its subsets go to its parent
 * @domain: without references
 *
 * Context: pld_domains_lock held.
 */
void pld_subset_unlink_locked(struct pld_domain *domain)
{
	struct pld_domain *child, *next;
	u32 i;

	lockdep_assert_held(&pld_domains_lock);
	list_for_each_entry_safe(child, next, &domain->children, sibling) {
		child->parent = domain->parent;
		child->has_key = false; /* pld_domain_free() is about to put the keys' references */
		if (!domain->parent) {
			list_del_init(&child->sibling);
			continue;
		}
		for (i = 0; i < child->nranks; i++)
			child->parent_ranks[i] = domain->parent_ranks[child->parent_ranks[i]];
		list_move_tail(&child->sibling, &domain->parent->children);
		cond_resched();
	}
	list_del_init(&domain->sibling);
}

/**
 * pld_subsets_poison() - a domain was poisoned: so are its subsets and theirs
 * @top: the domain
 * @reason: 0..0xffff
 * @rank: who poisoned it, or PLD_RANK_ANY
 *
 * Context: Process context. Takes pld_domains_lock, and state_lock and wait_locks of the subsets.
 */
void pld_subsets_poison(struct pld_domain *top, u32 reason, u32 rank)
{
	struct pld_domain *subset;
	bool first;

	mutex_lock(&pld_domains_lock);
	top->walk_rank = rank;
	for (subset = pld_tree_next_locked(top, top, false); subset;
	     subset = pld_tree_next_locked(top, subset, !first)) {
		subset->walk_rank = pld_subset_rank(subset, subset->parent->walk_rank);
		/* Whoever was first here tells the subsets below. */
		first = pld_domain_poison(subset, reason, subset->walk_rank);
		cond_resched();
	}
	mutex_unlock(&pld_domains_lock);
}

/* All members have joined or ended: the key is free. True when the caller must put the key's reference. */
static bool pld_subset_drop_key(struct pld_domain *parent, struct pld_domain *subset)
{
	bool drop;

	mutex_lock(&parent->lock);
	drop = subset->has_key && !READ_ONCE(subset->nabsent);
	if (drop) {
		subset->has_key = false;
		list_del_init(&subset->key_node);
	}
	mutex_unlock(&parent->lock);
	return drop;
}

/**
 * pld_subsets_rank_ended() - a member has ended: so it has in the subsets that it never joined, and in theirs
 * @top: domain
 * @rank: the member
 * @state: how
 * @status: how
 *
 * Context: Process context. Takes pld_domains_lock, and under it domain->lock, state_lock and wait_locks.
 */
void pld_subsets_rank_ended(struct pld_domain *top, u32 rank, u32 state, s32 status)
{
	struct pld_domain *subset, *next;
	LIST_HEAD(dropped);
	bool ended;

	mutex_lock(&pld_domains_lock);
	top->walk_rank = rank;
	for (subset = pld_tree_next_locked(top, top, false); subset;
	     subset = pld_tree_next_locked(top, subset, !ended)) {
		subset->walk_rank = pld_subset_rank(subset, subset->parent->walk_rank);
		/* Where it has joined it lives on, and may yet come to the subsets below. */
		ended = subset->walk_rank != PLD_RANK_ANY &&
			pld_rank_end_absent(&subset->ranks[subset->walk_rank], state, status);
		if (ended && pld_subset_drop_key(subset->parent, subset))
			list_add(&subset->key_node, &dropped);
		cond_resched();
	}
	mutex_unlock(&pld_domains_lock);
	list_for_each_entry_safe(subset, next, &dropped, key_node) {
		list_del_init(&subset->key_node);
		pld_domain_put(subset);
	}
}

static struct pld_domain *pld_subset_find_locked(struct pld_domain *parent, u32 key)
{
	struct pld_domain *subset;

	lockdep_assert_held(&parent->lock);
	list_for_each_entry(subset, &parent->keys, key_node)
		if (subset->key == key)
			return subset;
	return NULL;
}

/* A new subset, not linked yet. */
static struct pld_domain *pld_subset_alloc(struct pld_domain *parent, u32 key, u32 nranks, const u32 *ranks)
{
	struct pld_domain *subset = ERR_PTR(-ENOMEM);
	u32 *ids, *cpus, *parent_ranks;
	u32 i;

	parent_ranks = kvmalloc_array(nranks, sizeof(*parent_ranks), GFP_KERNEL_ACCOUNT);
	ids = kvmalloc_array(nranks, 2 * sizeof(*ids), GFP_KERNEL_ACCOUNT);
	if (!parent_ranks || !ids)
		goto out_free;
	memcpy(parent_ranks, ranks, nranks * sizeof(*ranks));
	cpus = ids + nranks;
	for (i = 0; i < nranks; i++) {
		ids[i] = parent->ranks[ranks[i]].device_id;
		cpus[i] = parent->ranks[ranks[i]].cpu;
	}
	subset = pld_domain_alloc(parent->uid, nranks, ids, cpus);
	if (IS_ERR(subset))
		goto out_free;
	subset->parent = parent;
	subset->key = key;
	swap(subset->parent_ranks, parent_ranks);

out_free:
	kvfree(ids);
	kvfree(parent_ranks);
	return subset;
}

/* The key's subset as the caller asks for it, with a reference; ERR_PTR(-ENOENT) when the key is free. */
static struct pld_domain *pld_subset_get_locked(struct pld_domain *parent, const struct pld_domain_subset *u,
						const u32 *ranks, u32 pos)
{
	struct pld_domain *subset = pld_subset_find_locked(parent, u->key);

	if (!subset)
		return ERR_PTR(-ENOENT);
	if (subset->nranks != u->nranks || memcmp(subset->parent_ranks, ranks, u->nranks * sizeof(*ranks)))
		return ERR_PTR(-EPROTO);
	/* The caller lives in the parent, so it cannot have ended here without having joined. */
	if (READ_ONCE(subset->ranks[pos].state) != PLD_MEMBER_ABSENT)
		return ERR_PTR(-EEXIST);
	pld_domain_get(subset);
	return subset;
}

/* What the parent was told before the link; what it is told after it comes down the tree. */
static void pld_subset_catch_up_locked(struct pld_domain *fresh)
{
	struct pld_domain *parent = fresh->parent;
	u32 i, state, rank, poison = pld_domain_poison_of(parent, &rank);

	lockdep_assert_held(&pld_domains_lock);
	if (poison)
		pld_domain_poison(fresh, poison & ~PLD_POISON_SET, pld_subset_rank(fresh, rank));
	for (i = 0; i < fresh->nranks; i++) {
		const struct pld_rank *member = &parent->ranks[fresh->parent_ranks[i]];

		state = pld_rank_state(member);
		if (state >= PLD_MEMBER_FINALISED)
			pld_rank_end_absent(&fresh->ranks[i], state, member->status);
	}
}

/* Take the key for a new subset and link it, unless somebody was faster. */
static struct pld_domain *pld_subset_make(struct pld_domain *parent, const struct pld_domain_subset *u,
					  const u32 *ranks, u32 pos)
{
	struct pld_domain *fresh, *subset;

	fresh = pld_subset_alloc(parent, u->key, u->nranks, ranks);
	if (IS_ERR(fresh))
		return fresh;
	mutex_lock(&pld_domains_lock);
	pld_subset_catch_up_locked(fresh);
	mutex_lock(&parent->lock);
	subset = pld_subset_get_locked(parent, u, ranks, pos);
	if (subset == ERR_PTR(-ENOENT) && READ_ONCE(fresh->ranks[pos].state) != PLD_MEMBER_ABSENT) {
		subset = ERR_PTR(-ENOTCONN); /* another thread of the caller has just left the parent */
	} else if (subset == ERR_PTR(-ENOENT)) {
		list_add_tail(&fresh->sibling, &parent->children);
		list_add_tail(&fresh->key_node, &parent->keys);
		fresh->has_key = true;
		pld_domain_get(fresh); /* the key's */
		subset = fresh;
	}
	mutex_unlock(&parent->lock);
	mutex_unlock(&pld_domains_lock);
	if (subset != fresh)
		pld_domain_put(fresh);
	return subset;
}

static void pld_subset_commit(struct pld_call *call)
{
	struct pld_rank *rank = call->object;

	pld_join_commit(call);
	if (pld_subset_drop_key(call->domain, rank->domain))
		pld_domain_put(rank->domain);
}

/* A claim kept the caller's end in the parent from being passed on. */
static void pld_subset_claim_failed(struct pld_rank *parent_rank)
{
	u32 state = pld_rank_state(parent_rank);

	if (state >= PLD_MEMBER_FINALISED)
		pld_subsets_rank_ended(parent_rank->domain, parent_rank->index, state, parent_rank->status);
}

static void pld_subset_abort(struct pld_call *call)
{
	pld_join_abort(call);
	pld_subset_claim_failed(call->rank);
}

/* Of the parent if that is poisoned, as ranks of the parent in any case. */
static void pld_subset_report_poison(struct pld_domain_subset *u, struct pld_domain *parent, struct pld_domain *subset)
{
	u32 rank;

	u->out_poison = pld_domain_poison_of(parent, &u->out_poison_rank);
	if (u->out_poison || !subset)
		return;
	u->out_poison = pld_domain_poison_of(subset, &rank);
	u->out_poison_rank = rank == PLD_RANK_ANY ? rank : subset->parent_ranks[rank];
}

static int pld_subset_join(struct pld_call *call, struct pld_domain_subset *u, const u32 *ranks, u32 pos)
{
	struct pld_domain *parent = call->domain, *subset;
	int ret;

	mutex_lock(&parent->lock);
	subset = pld_subset_get_locked(parent, u, ranks, pos);
	mutex_unlock(&parent->lock);
	if (subset == ERR_PTR(-ENOENT))
		subset = pld_subset_make(parent, u, ranks, pos);
	if (IS_ERR(subset))
		return PTR_ERR(subset);
	ret = pld_join(call, subset, pos, &u->out_fd);
	if (ret == -ECANCELED)
		pld_subset_report_poison(u, parent, subset);
	pld_domain_put(subset);
	if (ret) {
		pld_subset_claim_failed(call->rank);
		return ret;
	}
	call->commit = pld_subset_commit;
	call->abort = pld_subset_abort;
	return 0;
}

/**
 * pld_ioc_domain_subset() - PLD_IOC_DOMAIN_SUBSET
 * @call: on a living rank
 * @arg: struct pld_domain_subset
 *
 * Return: 0 or a negative errno of the contract.
 */
int pld_ioc_domain_subset(struct pld_call *call, void *arg)
{
	struct pld_domain_subset *u = arg;
	u32 pos = PLD_RANK_ANY;
	u32 *ranks;
	u32 i;
	int ret;

	if (!u->nranks || u->nranks > call->domain->nranks || !u->ranks)
		return -EINVAL;
	ranks = pld_copy_numbers(u->ranks, u->nranks);
	if (IS_ERR(ranks))
		return PTR_ERR(ranks);
	ret = pld_numbers_are_distinct(ranks, u->nranks);
	for (i = 0; i < u->nranks; i++) {
		if (ranks[i] >= call->domain->nranks)
			ret = ret ?: -EINVAL;
		if (ranks[i] == call->rank->index)
			pos = i;
	}
	if (!ret && pos == PLD_RANK_ANY)
		ret = -EINVAL;
	if (!ret && READ_ONCE(call->domain->poison)) {
		ret = -ECANCELED;
		pld_subset_report_poison(u, call->domain, NULL);
		call->write_back = true;
	}
	if (!ret)
		ret = pld_subset_join(call, u, ranks, pos);
	kvfree(ranks);
	return ret;
}
