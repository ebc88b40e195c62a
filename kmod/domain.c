// SPDX-License-Identifier: GPL-2.0
/*
 * Domains: create, join by file or by token, and what GET_INFO tells. A rank's life is in member.c, subsets in
 * subset.c.
 *
 * Invariant: nothing has a name. A domain is reached through a file or through its token by the same user; the list
 * of domains holds no reference.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/overflow.h>
#include <linux/pid_namespace.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/topology.h>
#include <linux/uaccess.h>

#include "pld.h"
#include "trace.h"

DEFINE_MUTEX(pld_domains_lock);
LIST_HEAD(pld_domains);

static atomic64_t pld_domain_last_id;

/* Device d lives on the (d mod n)-th of the n CPUs that the caller may use. */
static u32 pld_device_cpu(u32 device_id)
{
	u32 n = 0, i = 0;
	int cpu;

	for_each_cpu_and(cpu, current->cpus_ptr, cpu_online_mask)
		n++;
	if (!n)
		return raw_smp_processor_id();
	n = device_id % n;
	for_each_cpu_and(cpu, current->cpus_ptr, cpu_online_mask)
		if (i++ == n)
			return cpu;
	return raw_smp_processor_id();
}

/**
 * pld_domain_get() - one more reference
 * @domain: domain that the caller has a reference to
 */
void pld_domain_get(struct pld_domain *domain)
{
	kref_get(&domain->ref);
}

static void pld_domain_free_status(struct pld_domain *domain)
{
	unsigned long i;

	for (i = 0; i < domain->nstatus_pages; i++)
		put_page(domain->status_pages + i);
}

static void pld_domain_put_to(struct pld_domain *domain, struct list_head *dying);

static void pld_domain_free(struct pld_domain *domain, struct list_head *dying)
{
	struct pld_domain *child, *next;
	u32 i;

	for (i = 0; i < domain->nranks; i++)
		pld_rank_fini(&domain->ranks[i]);
	list_for_each_entry_safe(child, next, &domain->keys, key_node) {
		list_del_init(&child->key_node);
		pld_domain_put_to(child, dying);
	}
	kvfree(domain->parent_ranks);
	for (i = 0; i < PLD_VERDICTS_KEPT; i++)
		pld_verdict_free(domain->verdicts[i]);
	pld_domain_free_status(domain);
	put_pid_ns(domain->pid_ns);
	pld_user_sub_domain(domain->user);
	mutex_destroy(&domain->lock);
	mutex_destroy(&domain->create_lock);
	atomic64_dec(&pld_counters.domains);
	kvfree(domain);
}

static void pld_domain_last_put(struct kref *ref)
{
}

static void pld_domain_put_to(struct pld_domain *domain, struct list_head *dying)
{
	if (!kref_put(&domain->ref, pld_domain_last_put))
		return;
	mutex_lock(&pld_domains_lock);
	list_move_tail(&domain->node, dying);
	pld_subset_unlink_locked(domain);
	mutex_unlock(&pld_domains_lock);
}

/**
 * pld_domain_put() - one reference less
 * @domain: domain
 *
 * Frees a chain of subsets of subsets one after the other: users choose its length, so no recursion.
 *
 * Context: Process context, no lock held but mmap_lock of a dying mm.
 */
void pld_domain_put(struct pld_domain *domain)
{
	LIST_HEAD(dying);

	pld_domain_put_to(domain, &dying);
	while (!list_empty(&dying)) {
		domain = list_first_entry(&dying, struct pld_domain, node);
		list_del(&domain->node);
		pld_domain_free(domain, &dying);
	}
}

static int pld_domain_alloc_status(struct pld_domain *domain)
{
	size_t bytes = PLD_STATUS_HEADER + domain->nranks * sizeof(struct pld_member);
	unsigned int order = get_order(bytes);

	domain->status_pages = alloc_pages(GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL, order);
	if (!domain->status_pages)
		return -ENOMEM;
	if (order)
		split_page(domain->status_pages, order);
	domain->nstatus_pages = 1ul << order;
	domain->status = page_address(domain->status_pages);
	domain->status->version = PLD_STATUS_VERSION;
	domain->status->member_size = sizeof(struct pld_member);
	domain->status->nranks = domain->nranks;
	domain->status->domain_id = domain->id;
	domain->status->first_dead = PLD_RANK_ANY;
	domain->status->poison_rank = PLD_RANK_ANY;
	return 0;
}

/**
 * pld_domain_alloc() - a new domain, reachable by its token only
 * @uid: whose it is
 * @nranks: ranks
 * @device_ids: labels, or NULL for 0, 1, ...
 * @cpus: CPU of each rank, or NULL for those of the labels
 *
 * Context: Process context.
 * Return: the domain with one reference, or ERR_PTR: -ENOMEM, -ENOSPC.
 */
struct pld_domain *pld_domain_alloc(kuid_t uid, u32 nranks, const u32 *device_ids, const u32 *cpus)
{
	struct pld_domain *domain;
	u32 i;
	int ret;

	domain = kvzalloc(struct_size(domain, ranks, nranks), GFP_KERNEL_ACCOUNT);
	if (!domain)
		return ERR_PTR(-ENOMEM);
	kref_init(&domain->ref);
	domain->id = atomic64_inc_return(&pld_domain_last_id);
	domain->nranks = nranks;
	domain->nabsent = nranks;
	domain->first_dead = PLD_RANK_ANY;
	domain->poison_rank = PLD_RANK_ANY;
	domain->uid = uid;
	domain->offsets = RB_ROOT;
	INIT_LIST_HEAD(&domain->children);
	INIT_LIST_HEAD(&domain->sibling);
	INIT_LIST_HEAD(&domain->keys);
	INIT_LIST_HEAD(&domain->key_node);
	spin_lock_init(&domain->state_lock);
	mutex_init(&domain->create_lock);
	mutex_init(&domain->lock);
	get_random_bytes(domain->token, sizeof(domain->token));

	domain->user = pld_user_add_domain(uid);
	if (IS_ERR(domain->user)) {
		ret = PTR_ERR(domain->user);
		goto err_free;
	}
	ret = pld_domain_alloc_status(domain);
	if (ret)
		goto err_sub_user;
	domain->pid_ns = get_pid_ns(task_active_pid_ns(current));
	for (i = 0; i < nranks; i++) {
		struct pld_rank *rank = &domain->ranks[i];

		rank->device_id = device_ids ? device_ids[i] : i;
		rank->cpu = cpus ? cpus[i] : pld_device_cpu(rank->device_id);
		rank->node = cpu_to_node(rank->cpu);
		pld_rank_init(domain, i);
	}
	atomic64_inc(&pld_counters.domains);
	mutex_lock(&pld_domains_lock);
	list_add_tail(&domain->node, &pld_domains);
	mutex_unlock(&pld_domains_lock);
	return domain;

err_sub_user:
	pld_user_sub_domain(domain->user);
err_free:
	mutex_destroy(&domain->lock);
	mutex_destroy(&domain->create_lock);
	kvfree(domain);
	return ERR_PTR(ret);
}

/**
 * pld_copy_numbers() - an array of numbers from the user
 * @uptr: user address
 * @n: how many, at least 1
 *
 * Context: Process context, may fault.
 * Return: the array, for kvfree(); NULL when @uptr is 0; or ERR_PTR: -ENOMEM, -EFAULT.
 */
u32 *pld_copy_numbers(u64 uptr, u32 n)
{
	u32 *v;

	if (!uptr)
		return NULL;
	v = kvmalloc_array(n, sizeof(*v), GFP_KERNEL_ACCOUNT);
	if (!v)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(v, u64_to_user_ptr(uptr), n * sizeof(*v))) {
		kvfree(v);
		return ERR_PTR(-EFAULT);
	}
	return v;
}

static int pld_cmp_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/**
 * pld_numbers_are_distinct() - refuse a list that names something twice
 * @v: numbers
 * @n: how many
 *
 * Context: Process context.
 * Return: 0, -EINVAL, -ENOMEM.
 */
int pld_numbers_are_distinct(const u32 *v, u32 n)
{
	u32 *sorted = kvmalloc_array(n, sizeof(*v), GFP_KERNEL_ACCOUNT);
	int ret = 0;
	u32 i;

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, v, n * sizeof(*v));
	sort(sorted, n, sizeof(*v), pld_cmp_u32, NULL);
	for (i = 1; i < n; i++)
		if (sorted[i] == sorted[i - 1])
			ret = -EINVAL;
	kvfree(sorted);
	return ret;
}

/* Reserve descriptor and file, which stays mute until the commit sets its private_data. */
static int pld_call_new_file(struct pld_call *call, const char *name, const struct file_operations *fops)
{
	struct file *file;
	int fd;

	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	file = anon_inode_getfile(name, fops, NULL, O_RDWR | O_CLOEXEC);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	call->new_fd = fd;
	call->new_file = file;
	return 0;
}

static void pld_domain_create_commit(struct pld_call *call)
{
	struct pld_domain *domain = call->object;

	call->new_file->private_data = domain;
	trace_pld_domain_create(domain->id, domain->nranks, 0, 0);
}

static void pld_domain_create_abort(struct pld_call *call)
{
	pld_domain_put(call->object);
}

/**
 * pld_ioc_domain_create() - PLD_IOC_DOMAIN_CREATE
 * @call: on the device
 * @arg: struct pld_domain_create
 *
 * Return: 0 or a negative errno of the contract.
 */
int pld_ioc_domain_create(struct pld_call *call, void *arg)
{
	struct pld_domain_create *c = arg;
	struct pld_domain *domain;
	u32 *ids, *cpus;
	u32 i;
	int ret;

	if (!c->nranks || c->nranks > PLD_MAX_RANKS)
		return -EINVAL;
	ids = pld_copy_numbers(c->device_ids, c->nranks);
	if (IS_ERR(ids))
		return PTR_ERR(ids);
	cpus = pld_copy_numbers(c->cpus, c->nranks);
	if (IS_ERR(cpus)) {
		ret = PTR_ERR(cpus);
		goto err_free_ids;
	}
	ret = ids ? pld_numbers_are_distinct(ids, c->nranks) : 0;
	for (i = 0; cpus && !ret && i < c->nranks; i++)
		if (cpus[i] >= nr_cpu_ids || !cpu_online(cpus[i]))
			ret = -EINVAL;
	if (ret)
		goto err_free_cpus;

	domain = pld_domain_alloc(current_euid(), c->nranks, ids, cpus);
	if (IS_ERR(domain)) {
		ret = PTR_ERR(domain);
		goto err_free_cpus;
	}
	ret = pld_call_new_file(call, "[pld-domain]", &pld_domain_fops);
	if (ret) {
		pld_domain_put(domain);
		goto err_free_cpus;
	}
	call->object = domain;
	call->commit = pld_domain_create_commit;
	call->abort = pld_domain_create_abort;
	c->out_fd = call->new_fd;

err_free_cpus:
	kvfree(cpus);
err_free_ids:
	kvfree(ids);
	return ret;
}

/**
 * pld_join_commit() - the commit of pld_join()
 * @call: call whose results have reached the caller
 */
void pld_join_commit(struct pld_call *call)
{
	struct pld_rank *rank = call->object;

	pld_rank_publish(rank);
	call->new_file->private_data = rank; /* the file takes over the reference of pld_join() */
}

/**
 * pld_join_abort() - the abort of pld_join()
 * @call: call whose results could not be stored
 */
void pld_join_abort(struct pld_call *call)
{
	struct pld_rank *rank = call->object;

	pld_rank_unclaim(rank);
	pld_domain_put(rank->domain);
}

/**
 * pld_join() - everything of a join that can fail
 * @call: call that will commit or abort it
 * @domain: domain; a reference is taken on success
 * @index: rank
 * @out_fd: descriptor, not installed yet
 *
 * After -ECANCELED the caller reports the poison: who cannot join has no status page to look at.
 *
 * Context: Process context.
 * Return: 0, -EINVAL, -EEXIST, -ESTALE, -ECANCELED, -EMFILE, -ENOMEM.
 */
int pld_join(struct pld_call *call, struct pld_domain *domain, u32 index, s32 *out_fd)
{
	struct pld_rank *rank;
	int ret;

	if (index >= domain->nranks)
		return -EINVAL;
	rank = &domain->ranks[index];
	ret = pld_rank_claim(rank);
	if (ret) {
		call->write_back = ret == -ECANCELED;
		return ret;
	}
	ret = pld_call_new_file(call, "[pld-rank]", &pld_rank_fops);
	if (ret) {
		pld_rank_unclaim(rank);
		return ret;
	}
	pld_domain_get(domain);
	call->object = rank;
	call->commit = pld_join_commit;
	call->abort = pld_join_abort;
	*out_fd = call->new_fd;
	return 0;
}

/**
 * pld_ioc_domain_join() - PLD_IOC_DOMAIN_JOIN
 * @call: on a domain file
 * @arg: struct pld_domain_join
 *
 * Return: 0 or a negative errno of the contract.
 */
int pld_ioc_domain_join(struct pld_call *call, void *arg)
{
	struct pld_domain_join *j = arg;
	int ret = pld_join(call, call->domain, j->rank, &j->out_fd);

	if (ret == -ECANCELED)
		j->out_poison = pld_domain_poison_of(call->domain, &j->out_poison_rank);
	return ret;
}

/**
 * pld_ioc_domain_token() - PLD_IOC_DOMAIN_TOKEN
 * @call: on a domain or living rank
 * @arg: struct pld_domain_token
 *
 * Return: 0.
 */
int pld_ioc_domain_token(struct pld_call *call, void *arg)
{
	struct pld_domain_token *t = arg;

	memcpy(t->out_token, call->domain->token, sizeof(t->out_token));
	return 0;
}

/* Compares in constant time: a token is a secret. */
static bool pld_token_is(const struct pld_domain *domain, const u8 *token)
{
	u8 diff = 0;
	u32 i;

	for (i = 0; i < sizeof(domain->token); i++)
		diff |= domain->token[i] ^ token[i];
	return !diff;
}

static struct pld_domain *pld_domain_find(const u8 *token)
{
	struct pld_domain *domain, *found = NULL;

	mutex_lock(&pld_domains_lock);
	list_for_each_entry(domain, &pld_domains, node)
		if (pld_token_is(domain, token) && kref_get_unless_zero(&domain->ref)) {
			found = domain;
			break;
		}
	mutex_unlock(&pld_domains_lock);
	return found;
}

/**
 * pld_ioc_domain_join_token() - PLD_IOC_DOMAIN_JOIN_TOKEN
 * @call: on the device
 * @arg: struct pld_domain_join_token
 *
 * Return: 0 or a negative errno of the contract.
 */
int pld_ioc_domain_join_token(struct pld_call *call, void *arg)
{
	struct pld_domain_join_token *j = arg;
	struct pld_domain *domain;
	int ret;

	domain = pld_domain_find(j->token);
	if (!domain)
		return -ENOENT;
	if (uid_eq(domain->uid, current_euid()) || capable(CAP_SYS_ADMIN))
		ret = pld_join(call, domain, j->rank, &j->out_fd);
	else
		ret = -EPERM;
	if (ret == -ECANCELED)
		j->out_poison = pld_domain_poison_of(domain, &j->out_poison_rank);
	pld_domain_put(domain);
	return ret;
}

/**
 * pld_ioc_get_info() - PLD_IOC_GET_INFO
 * @call: on any file
 * @arg: struct pld_info
 *
 * Return: 0.
 */
int pld_ioc_get_info(struct pld_call *call, void *arg)
{
	struct pld_info *info = arg;

	info->out_abi_level = PLD_ABI_LEVEL;
	info->out_max_ranks = PLD_MAX_RANKS;
	info->out_features = PLD_FEATURE_WINDOWS | PLD_FEATURE_CELLS | PLD_FEATURE_SUBSET | PLD_FEATURE_TOKEN |
			     PLD_FEATURE_DEADLOCK;
	info->out_window_bytes_max = pld_slab_bytes_max(call->domain ? call->domain->nranks : 1);
	info->out_total_bytes_max = pld_cap_bytes();
	info->out_total_bytes_left = pld_cap_left();
	info->out_memlock_bytes_left = pld_memlock_left();
	info->out_instance = pld_instance;
	info->out_page_bytes_max = PAGE_SIZE;
	info->out_cpu = pld_device_cpu(info->device_id);
	info->out_node = cpu_to_node(info->out_cpu);
	info->out_max_windows = PLD_WINDOW_ID_MAX + 1 + PLD_SYSTEM_WINDOWS;
	info->out_domain_id = call->domain ? call->domain->id : 0;
	info->out_nranks = call->domain ? call->domain->nranks : 0;
	info->out_rank = call->rank ? call->rank->index : PLD_RANK_ANY;
	return 0;
}
