// SPDX-License-Identifier: GPL-2.0
/*
 * What one user may have at once of things that no resource limit counts: domains (the kernel walks lists of them) and
 * the library's own windows (F_SYSTEM, outside RLIMIT_MEMLOCK).
 *
 * Invariant: a user exists here exactly while something is charged to it; each charge keeps it.
 */
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "pld.h"

static unsigned long user_system_bytes;
module_param(user_system_bytes, ulong, 0644);
MODULE_PARM_DESC(user_system_bytes,
		 "limit for the library's own windows in the domains of one user (0: half of max_bytes)");

static unsigned int user_domains = 65536;
module_param(user_domains, uint, 0644);
MODULE_PARM_DESC(user_domains, "limit for the domains of one user, subsets too (65536)");

struct pld_user {
	struct hlist_node node;
	kuid_t uid;
	u32 domains;
	u64 system_pages;
};

static DEFINE_SPINLOCK(pld_users_lock);
static DEFINE_HASHTABLE(pld_users, 6);

static struct pld_user *pld_user_find_locked(kuid_t uid)
{
	struct pld_user *user;

	lockdep_assert_held(&pld_users_lock);
	hash_for_each_possible(pld_users, user, node, __kuid_val(uid))
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

/* True when nothing is charged any more: the caller frees it after the unlock. */
static bool pld_user_is_done_locked(struct pld_user *user)
{
	lockdep_assert_held(&pld_users_lock);
	if (user->domains || user->system_pages)
		return false;
	hash_del(&user->node);
	return true;
}

/**
 * pld_user_add_domain() - charge a domain to its creator
 * @uid: of the creator
 *
 * Context: Process context.
 * Return: the user, for pld_user_sub_domain(); ERR_PTR: -ENOSPC, -ENOMEM.
 */
struct pld_user *pld_user_add_domain(kuid_t uid)
{
	struct pld_user *user, *fresh;
	bool room = READ_ONCE(user_domains) > 0;

	if (!room)
		return ERR_PTR(-ENOSPC);
	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	spin_lock(&pld_users_lock);
	user = pld_user_find_locked(uid);
	if (user) {
		room = user->domains < READ_ONCE(user_domains);
	} else {
		swap(user, fresh);
		user->uid = uid;
		hash_add(pld_users, &user->node, __kuid_val(uid));
	}
	if (room)
		user->domains++;
	spin_unlock(&pld_users_lock);
	kfree(fresh);
	return room ? user : ERR_PTR(-ENOSPC);
}

/**
 * pld_user_sub_domain() - undo pld_user_add_domain()
 * @user: its result
 */
void pld_user_sub_domain(struct pld_user *user)
{
	bool done;

	spin_lock(&pld_users_lock);
	user->domains--;
	done = pld_user_is_done_locked(user);
	spin_unlock(&pld_users_lock);
	if (done)
		kfree(user);
}

/**
 * pld_user_add_system() - charge memory of an F_SYSTEM window
 * @user: of the domain
 * @npages: how much
 *
 * Context: Process context of who creates the window; its CAP_IPC_LOCK lifts the limit, as it does RLIMIT_MEMLOCK.
 * Return: 0, -ENOSPC.
 */
int pld_user_add_system(struct pld_user *user, unsigned long npages)
{
	u64 bytes = READ_ONCE(user_system_bytes);
	u64 limit = (bytes ? bytes : pld_cap_bytes() / 2) >> PAGE_SHIFT;
	int ret = 0;

	if (capable(CAP_IPC_LOCK))
		limit = U64_MAX;
	spin_lock(&pld_users_lock);
	if (npages > limit || user->system_pages > limit - npages)
		ret = -ENOSPC;
	else
		user->system_pages += npages;
	spin_unlock(&pld_users_lock);
	return ret;
}

/**
 * pld_user_sub_system() - undo pld_user_add_system()
 * @user: user
 * @npages: as charged
 *
 * Context: Process context. The domain may have gone before.
 */
void pld_user_sub_system(struct pld_user *user, unsigned long npages)
{
	bool done;

	spin_lock(&pld_users_lock);
	user->system_pages -= npages;
	done = pld_user_is_done_locked(user);
	spin_unlock(&pld_users_lock);
	if (done)
		kfree(user);
}
