// SPDX-License-Identifier: GPL-2.0
/*
 * Subsets: domains that some members of a domain make under a key, without waiting for each other.
 *
 * Invariant: the parent remembers each key for as long as it lives, and holds the child until all its members have
 * joined. A member that ended in the parent before it joined the child has ended there too: nobody waits for it.
 */
#include <linux/overflow.h>
#include <linux/slab.h>

#include "pld.h"

static struct pld_subset *pld_subset_find_locked(struct pld_domain *domain, u32 key)
{
	struct pld_subset *s;

	lockdep_assert_held(&domain->lock);
	list_for_each_entry(s, &domain->subsets, node)
		if (s->key == key)
			return s;
	return NULL;
}

/* A new subset entry with its domain, not in the parent's list yet. */
static struct pld_subset *pld_subset_alloc(struct pld_domain *parent, u32 key, u32 nranks, const u32 *ranks)
{
	struct pld_subset *s;
	u32 *ids, *cpus;
	u32 i;

	s = kvzalloc(struct_size(s, ranks, nranks) + sizeof(long) * (BITS_TO_LONGS(nranks) + 1), GFP_KERNEL_ACCOUNT);
	ids = kvmalloc_array(nranks, 2 * sizeof(*ids), GFP_KERNEL_ACCOUNT);
	if (!s || !ids)
		goto err_free;
	s->joined = PTR_ALIGN((unsigned long *)&s->ranks[nranks], sizeof(long));
	s->key = key;
	s->nranks = nranks;
	memcpy(s->ranks, ranks, nranks * sizeof(*ranks));
	cpus = ids + nranks;
	for (i = 0; i < nranks; i++) {
		ids[i] = parent->ranks[ranks[i]].device_id;
		cpus[i] = parent->ranks[ranks[i]].cpu;
	}
	s->child = pld_domain_alloc(nranks, ids, cpus);
	if (IS_ERR(s->child))
		goto err_free;
	s->child->uid = parent->uid;
	kvfree(ids);
	return s;

err_free:
	kvfree(ids);
	kvfree(s);
	return NULL;
}

/* Members that ended in the parent before the subset was made, or before they joined it, never come. */
static void pld_subset_end_absent(struct pld_domain *parent, const u32 *ranks, struct pld_domain *child)
{
	u32 i, state;

	for (i = 0; i < child->nranks; i++) {
		state = READ_ONCE(parent->ranks[ranks[i]].state);
		if (state >= PLD_MEMBER_FINALISED)
			pld_rank_end_absent(&child->ranks[i], state, parent->ranks[ranks[i]].status);
	}
}

/**
 * pld_subsets_rank_ended() - a member has ended: so it has in the subsets that it never joined
 * @domain: parent
 * @rank: the member
 * @state: how
 * @status: how
 *
 * Context: Process context. Takes domain->lock for short moments.
 */
void pld_subsets_rank_ended(struct pld_domain *domain, u32 rank, u32 state, s32 status)
{
	struct pld_subset *s;
	u32 i;

	mutex_lock(&domain->lock);
	list_for_each_entry(s, &domain->subsets, node)
		for (i = 0; s->child && i < s->nranks; i++)
			if (s->ranks[i] == rank && !test_bit(i, s->joined))
				pld_rank_end_absent(&s->child->ranks[i], state, status);
	mutex_unlock(&domain->lock);
}

/* The caller's place in the list is taken; the parent lets go of the child when all are in. */
static void pld_subset_commit(struct pld_call *call)
{
	struct pld_rank *rank = call->object;
	struct pld_domain *parent = call->domain, *drop = NULL;
	struct pld_subset *s;

	pld_join_commit(call);
	mutex_lock(&parent->lock);
	list_for_each_entry(s, &parent->subsets, node) {
		if (s->child != rank->domain)
			continue;
		__set_bit(rank->index, s->joined);
		if (++s->njoined == s->nranks)
			swap(drop, s->child);
		break;
	}
	mutex_unlock(&parent->lock);
	if (drop)
		pld_domain_put(drop);
}

static int pld_subset_join(struct pld_call *call, struct pld_domain_subset *u, const u32 *ranks, u32 pos)
{
	struct pld_domain *parent = call->domain, *child = NULL;
	struct pld_subset *s, *fresh = NULL;
	int ret = 0;

again:
	mutex_lock(&parent->lock);
	s = pld_subset_find_locked(parent, u->key);
	if (!s && fresh) {
		list_add_tail(&fresh->node, &parent->subsets);
		s = fresh;
		fresh = NULL;
	}
	if (!s)
		ret = -EAGAIN;
	else if (s->nranks != u->nranks || memcmp(s->ranks, ranks, u->nranks * sizeof(*ranks)))
		ret = -EPROTO;
	else if (test_bit(pos, s->joined))
		ret = -EEXIST;
	else
		pld_domain_get(child = s->child);
	mutex_unlock(&parent->lock);

	if (ret == -EAGAIN) {
		fresh = pld_subset_alloc(parent, u->key, u->nranks, ranks);
		if (!fresh)
			return -ENOMEM;
		ret = 0;
		goto again;
	}
	if (fresh) {
		pld_domain_put(fresh->child);
		kvfree(fresh);
	}
	if (ret)
		return ret;
	pld_subset_end_absent(parent, ranks, child);
	ret = pld_join(call, child, pos, &u->out_fd);
	pld_domain_put(child);
	if (!ret)
		call->commit = pld_subset_commit;
	return ret;
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
	if (!ret && READ_ONCE(call->domain->poison))
		ret = -ECANCELED;
	if (!ret)
		ret = pld_subset_join(call, u, ranks, pos);
	kvfree(ranks);
	return ret;
}
