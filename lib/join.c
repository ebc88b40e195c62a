// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * How domains begin: worlds are made and joined, ranks find each other, subsets are formed.
 *
 * A join ends with a rendezvous of all ranks, which proves that they run the same library and were given the same
 * PLDK_TAG. A rank that fails before it poisons the domain with a code that means "failed in a join": the others are
 * told who and why instead of waiting for it.
 */
#include "announce.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "placement.h"

static int64_t text_digest(const char *text)
{
	uint64_t hash = 1;

	for (; text && *text; text++)
		hash = pldk__mix(hash, (unsigned char)*text);
	return (int64_t)hash;
}

/*
 * Launchers
 */

static int check_devices(int nranks, const int *ids, uint32_t *out)
{
	int i;
	int j;

	for (i = 0; i < nranks; i++) {
		if (ids && ids[i] < 0)
			return pldk__fail(-EINVAL, "world_create: device id %d of rank %d is negative", ids[i], i);
		for (j = 0; ids && j < i; j++) {
			if (ids[i] == ids[j])
				return pldk__fail(-EINVAL, "world_create: device id %d is given to ranks %d and %d", ids[i], j, i);
		}
		out[i] = ids ? (uint32_t)ids[i] : (uint32_t)i;
	}
	return 0;
}

/* By the rule of placement.h, unless the caller says otherwise. */
static int place_devices(int nranks, const int *cpus, const uint32_t *devices, uint32_t *out)
{
	cpu_set_t set;
	int i;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) || !CPU_COUNT(&set))
		CPU_SET(0, &set);
	for (i = 0; i < nranks; i++) {
		if (cpus && cpus[i] < 0)
			return pldk__fail(-EINVAL, "world_create: CPU %d of rank %d is negative", cpus[i], i);
		out[i] = (uint32_t)(cpus ? cpus[i] : pldk__placement(devices[i], &set));
	}
	return 0;
}

static int create_world(const struct pldk_provider_ops *ops, int nranks, const struct pldk_world_options *options,
			bool far, int *out_fd)
{
	uint32_t *devices = calloc((size_t)nranks, sizeof(*devices));
	uint32_t *cpus = calloc((size_t)nranks, sizeof(*cpus));
	struct pldk__world_spec spec = { (uint32_t)nranks, devices, cpus, far };
	int ret = -ENOMEM;

	if (!devices || !cpus)
		pldk__fail(ret, "world_create: no memory");
	else
		ret = check_devices(nranks, options->device_ids, devices);
	if (!ret)
		ret = place_devices(nranks, options->cpus, devices, cpus);
	if (!ret)
		ret = ops->create(&spec, out_fd);
	free(devices);
	free(cpus);
	return ret;
}

/**
 * pldk_world_create() - see domain.h
 */
int pldk_world_create(int nranks, const struct pldk_world_options *options, int *out_fd)
{
	struct pldk_world_options all = PLDK_WORLD_OPTIONS_INIT;
	const struct pldk_provider_ops *ops;
	int far;
	int ret;
	int fd;

	ret = pldk__env_refresh();
	if (ret)
		return ret;
	if (!out_fd)
		return pldk__fail(-EINVAL, "world_create: out_fd is NULL");
	if (nranks < 1 || nranks > PLDK_MAX_RANKS)
		return pldk__fail(-EINVAL, "world_create: %d ranks: allowed are 1 to %d", nranks, PLDK_MAX_RANKS);
	ret = options ? pldk__options_take(&all, sizeof(all), sizeof(all), options) : 0;
	if (ret)
		return pldk__fail_prefix(ret, "world_create: ");
	far = all.far;
	if (far < -1 || far > 1)
		return pldk__fail(-EINVAL, "world_create: far is %d: allowed are 0, 1 and -1", far);
	ret = pldk__provider_choose(all.provider, &ops);
	if (ret)
		return ret;
	if (far == 1 && !ops->far_put)
		return pldk__fail(-EOPNOTSUPP, "world_create: provider %s has no far ranks; shm has", ops->name);
	if (far == -1)
		far = pldk__env()->shm_far && ops->far_put;
	ret = create_world(ops, nranks, &all, far, &fd);
	if (!ret)
		*out_fd = fd;
	return ret;
}

/**
 * pldk_world_token() - see domain.h
 */
int pldk_world_token(int fd, uint8_t out_token[16])
{
	const struct pldk_provider_ops *ops = pldk__provider_of_fd(fd);

	if (!ops)
		return -EBADF;
	if (!out_token)
		return pldk__fail(-EINVAL, "world_token: out_token is NULL");
	if (!ops->token)
		return pldk__fail(-EOPNOTSUPP, "world_token: provider %s has no tokens: nothing there can be found without a descriptor",
				  ops->name);
	return ops->token(fd, out_token);
}

/**
 * pldk_world_mark_dead() - see domain.h
 */
int pldk_world_mark_dead(int fd, int rank, int wait_status)
{
	const struct pldk_provider_ops *ops = pldk__provider_of_fd(fd);

	if (!ops)
		return -EBADF;
	if (rank < 0 || rank >= PLDK_MAX_RANKS)
		return pldk__fail(-EINVAL, "world_mark_dead: rank %d", rank);
	if (!WIFEXITED(wait_status) && !WIFSIGNALED(wait_status))
		return pldk__fail(-EINVAL, "world_mark_dead: %#x is not how a process ends: pass what waitpid(2) gave", wait_status);
	return ops->mark_dead(fd, (uint32_t)rank, wait_status);
}

/**
 * pldk_world_poison() - see domain.h
 */
int pldk_world_poison(int fd, int code)
{
	const struct pldk_provider_ops *ops = pldk__provider_of_fd(fd);

	if (!ops)
		return -EBADF;
	if (code < 0 || code > 0xffff)
		return pldk__fail(-EINVAL, "world_poison: code %d is not in 0..65535", code);
	return ops->poison_fd(fd, (uint32_t)code);
}

/*
 * Joining a world
 */

/* What the others compare: into the control slab, so that a disagreement can be told in words. */
static void introduce(struct pldk_domain *world)
{
	struct pldk__control *control = (void *)pldk__slab(world->control, world->rank);
	const char *tag = pldk__env()->tag;

	control->layout = PLDK__CONTROL_LAYOUT;
	control->pid = (uint32_t)getpid();
	snprintf(control->version, sizeof(control->version), "%s", pldk_version());
	snprintf(control->tag, sizeof(control->tag), "%s", tag ? tag : "");
	pldk__store_release(&control->magic, PLDK__CONTROL_MAGIC);
}

/* Who announced itself and died since is no reason to wait, but none to begin either. */
static int check_dead(struct pldk_domain *domain)
{
	const struct pld_status *status = domain->pd->status;
	const struct pld_member *member;
	char how[80];
	uint32_t r;

	for (r = 0; r < domain->nranks && pldk__load_acquire(&status->dead); r++) {
		member = pldk__member_of(status, r);
		if (pldk__load_acquire(&member->state) > PLD_MEMBER_FINALISED)
			return pldk__fail(-EOWNERDEAD, "rank %u: join: rank %u (pid %u) %s", domain->rank, r, pldk__pid_of(domain, r),
					  pldk__member_how(member, how, sizeof(how)));
	}
	return 0;
}

/* Meet all others for the first time. */
static int meet(struct pldk_domain *domain, const struct pldk__call *call, uint64_t deadline_ns)
{
	struct pldk__thread *thread;
	int ret;

	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	ret = pldk__coll_enter(domain, thread, call->op, call->site);
	if (!ret) {
		ret = pldk__rendezvous(domain, thread, call, deadline_ns);
		/* A death or failure that came before may be the reason why a rank left: that one is told first. */
		if (ret == -EOWNERDEAD && pldk__load_acquire(&domain->pd->status->poison))
			ret = pldk__fail_poison(domain, "init");
		if (!ret)
			ret = check_dead(domain);
		pldk__coll_leave(domain, thread);
	}
	pldk__leave(thread);
	if (!ret) {
		domain->is_joined = true;
		domain->parent = NULL;
	}
	return ret;
}

static int join_world(struct pldk__pdomain *pd, int64_t timeout_ns, struct pldk_domain **out)
{
	struct pldk__call call = { .op = PLDK_EV_JOIN };
	struct pldk_domain *world;
	int ret;

	ret = pldk__domain_new(pd, NULL, NULL, &world);
	if (ret)
		return ret;
	introduce(world);
	call.args[0] = text_digest(pldk_version());
	call.args[1] = text_digest(pldk__env()->tag);
	ret = meet(world, &call, pldk__deadline(timeout_ns));
	if (ret == -EAGAIN && timeout_ns == PLDK_TRY)
		ret = 0;
	if (ret) {
		/* Everybody sees a disagreement by itself; other failures are this rank's own. */
		if (ret != -EPROTO)
			pldk__domain_fail(world, ret);
		pldk__domain_free(world, false);
		return ret;
	}
	*out = world;
	return 0;
}

/* Is it this process's misfortune, which the others wait in vain for, or a mistake about who may join? */
static bool is_own_failure(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENOSPC || err == -EPERM;
}

static int join_fd(const struct pldk_provider_ops *ops, int fd, int rank, int64_t timeout_ns, struct pldk_domain **out)
{
	struct pldk__pdomain *pd;
	int ret;

	ret = ops->join(fd, (uint32_t)rank, &pd);
	if (ret) {
		if (is_own_failure(ret))
			ops->poison_fd(fd, PLDK__JOIN_FAILED((uint32_t)rank, ret));
		return pldk__fail_prefix(ret, "rank %d: join: ", rank);
	}
	return join_world(pd, timeout_ns, out);
}

static int check_join(int rank, struct pldk_domain **out)
{
	int ret;

	ret = pldk__env_refresh();
	if (ret)
		return ret;
	pldk__log_from_env(pldk__env()->log);
	if (rank < 0 || rank >= PLDK_MAX_RANKS)
		return pldk__fail(-EINVAL, "world_join: rank %d is not in 0..%d", rank, PLDK_MAX_RANKS - 1);
	if (!out)
		return pldk__fail(-EINVAL, "world_join: out is NULL");
	return 0;
}

/**
 * pldk_world_join() - see domain.h
 */
int pldk_world_join(int fd, int rank, int64_t timeout_ns, struct pldk_domain **out)
{
	const struct pldk_provider_ops *ops;
	int ret;

	ret = check_join(rank, out);
	if (ret)
		return ret;
	ops = pldk__provider_of_fd(fd);
	if (!ops)
		return -EBADF;
	return join_fd(ops, fd, rank, timeout_ns, out);
}

/**
 * pldk_world_join_token() - see domain.h
 */
int pldk_world_join_token(const uint8_t token[16], int rank, int64_t timeout_ns, struct pldk_domain **out)
{
	const struct pldk_provider_ops *ops;
	struct pldk__pdomain *pd;
	int ret;

	ret = check_join(rank, out);
	if (ret)
		return ret;
	if (!token)
		return pldk__fail(-EINVAL, "world_join_token: token is NULL");
	ret = pldk__provider_choose(NULL, &ops);
	if (ret)
		return ret;
	if (!ops->join_token)
		return pldk__fail(-ENOENT, "world_join_token: provider %s has no tokens: a token belongs to /dev/pld", ops->name);
	ret = ops->join_token(token, (uint32_t)rank, &pd);
	return ret ? ret : join_world(pd, timeout_ns, out);
}

/*
 * pldk_init()
 */

/* Other launchers' variables that tell how many tasks there are, or which one this is. */
static const struct {
	const char *launcher;
	const char *variable;
	bool is_count;
} launchers[] = {
	{ "SLURM", "SLURM_NTASKS", true },
	{ "Open MPI", "OMPI_COMM_WORLD_SIZE", true },
	{ "PMI", "PMI_SIZE", true },
	{ "MVAPICH", "MV2_COMM_WORLD_SIZE", true },
	{ "torchrun", "WORLD_SIZE", true },
	{ "PMIx", "PMIX_RANK", false },
};

static int check_singleton(void)
{
	const char *text;
	char *end;
	long value;
	size_t i;

	for (i = 0; i < PLDK__ARRAY_SIZE(launchers) && !pldk__env()->singleton; i++) {
		text = getenv(launchers[i].variable);
		if (!text)
			continue;
		value = strtol(text, &end, 10);
		if (end == text || value < (launchers[i].is_count ? 2 : 1))
			continue;
		if (launchers[i].is_count)
			return pldk__fail(-ENOTCONN,
					  "init: %s says %ld tasks (%s=%s) but no world of pldk was found (PLDK_FD is not set): start with pldrun -n %ld, or set PLDK_SINGLETON=1 for a world of one each",
					  launchers[i].launcher, value, launchers[i].variable, text, value);
		return pldk__fail(-ENOTCONN,
				  "init: %s says that this is task %ld (%s=%s) but no world of pldk was found (PLDK_FD is not set): start with pldrun, or set PLDK_SINGLETON=1 for a world of one each",
				  launchers[i].launcher, value, launchers[i].variable, text);
	}
	return 0;
}

static int init_singleton(int64_t timeout_ns, struct pldk_domain **out)
{
	const struct pldk_provider_ops *ops;
	int ret;
	int fd;

	ret = check_singleton();
	if (!ret)
		ret = pldk_world_create(1, NULL, &fd);
	if (ret)
		return ret;
	ops = pldk__provider_of_fd(fd);
	ret = ops ? join_fd(ops, fd, 0, timeout_ns, out) : -EBADF;
	close(fd);
	return ret;
}

static int check_launched(const struct pldk__env *env)
{
	const char *missing = env->fd < 0 ? "PLDK_FD" : env->rank < 0 ? "PLDK_RANK" : env->nranks < 0 ? "PLDK_NRANKS" : NULL;

	if (missing)
		return pldk__fail(-EINVAL, "init: PLDK_FD, PLDK_RANK and PLDK_NRANKS belong together, but %s is not set", missing);
	if (env->nranks < 1 || env->nranks > PLDK_MAX_RANKS)
		return pldk__fail(-EINVAL, "init: PLDK_NRANKS=%d: allowed is 1 to %d", env->nranks, PLDK_MAX_RANKS);
	if (env->rank >= env->nranks)
		return pldk__fail(-EINVAL, "init: PLDK_RANK=%d: allowed is 0 to %d (PLDK_NRANKS is %d)", env->rank, env->nranks - 1,
				  env->nranks);
	return 0;
}

/*
 * The environment is wrong, so this rank will not come: tell the others, if it can be said to whom. Keeps the sentence.
 */
static void tell_failure(const struct pldk__env *env, int err)
{
	const struct pldk_provider_ops *ops;
	struct pldk__text text = { 0 };

	pldk__text_add(&text, "%s", pldk_last_error());
	pldk__fail_quiet(true);
	ops = env->fd < 0 || env->rank < 0 ? NULL : pldk__provider_of_fd(env->fd);
	if (ops)
		ops->poison_fd(env->fd, PLDK__JOIN_FAILED((uint32_t)env->rank, err));
	pldk__fail(err, "%s", text.text);
	pldk__fail_quiet(false);
}

/* Join what pldrun made. bad: what the environment said; the others must not wait for a rank that cannot come. */
static int init_launched(int64_t timeout_ns, int bad, struct pldk_domain **out)
{
	const struct pldk__env *env = pldk__env();
	const struct pldk_provider_ops *ops;
	struct pldk_domain *world;
	int fd = env->fd;
	int ret = bad;

	if (!ret)
		ret = check_launched(env);
	if (ret) {
		tell_failure(env, ret);
		return ret;
	}
	ops = pldk__provider_of_fd(fd);
	if (!ops)
		return pldk__fail(-ENOTCONN, "init: PLDK_FD=%d is no world of pldk: this process left it already, or a program between pldrun and this one closed it",
				  fd);
	/* Programs that this one starts are no ranks. */
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	ret = join_fd(ops, fd, env->rank, timeout_ns, &world);
	if (ret)
		return ret;
	close(fd);
	if ((uint32_t)env->nranks != world->nranks) {
		ret = pldk__fail(-EINVAL, "init: PLDK_NRANKS=%d but the world has %u ranks", env->nranks, world->nranks);
		pldk__domain_free(world, false);
		return ret;
	}
	*out = world;
	return 0;
}

/**
 * pldk_init() - see domain.h
 */
int pldk_init(struct pldk_domain **out)
{
	struct pldk_domain *world = NULL;
	const struct pldk__env *env;
	int64_t timeout_ns;
	int ret;

	if (!out)
		return pldk__fail(-EINVAL, "init: out is NULL");
	ret = pldk__init_begin();
	if (ret)
		return ret;
	ret = pldk__env_refresh();
	env = pldk__env();
	pldk__log_from_env(env->log);
	timeout_ns = env->init_timeout_ms < 0 ? PLDK_FOREVER : PLDK_MS(env->init_timeout_ms);
	if (env->fd >= 0 || env->rank >= 0 || env->nranks >= 0)
		ret = init_launched(timeout_ns, ret, &world);
	else if (!ret)
		ret = init_singleton(timeout_ns, &world);
	if (ret == -ETIMEDOUT)
		pldk__fail(ret, "%s (PLDK_INIT_TIMEOUT_MS is %lld)", pldk_last_error(), (long long)env->init_timeout_ms);
	pldk__init_end(world);
	if (!ret)
		*out = world;
	return ret;
}

/*
 * Subsets
 */

/* A list that this rank has given to pldk_subset(), and how often. */
struct pldk__subset_list {
	uint64_t digest;
	uint32_t count;
};

static uint64_t list_digest(const uint32_t *ranks, uint32_t nranks)
{
	uint64_t hash = nranks;
	uint32_t i;

	for (i = 0; i < nranks; i++)
		hash = pldk__mix(hash, ranks[i]);
	return hash;
}

/* How often this rank has made a subset of this list; with count_it, once more from now on. 0 after an error. */
static uint32_t list_count(struct pldk_domain *parent, uint64_t digest, bool count_it)
{
	struct pldk__subset_list *lists = parent->lists;
	uint32_t i;

	for (i = 0; i < parent->nlists && lists[i].digest != digest; i++)
		;
	if (i < parent->nlists)
		return lists[i].count += count_it;
	if (!count_it)
		return 0;
	lists = realloc(lists, (i + 1) * sizeof(*lists));
	if (!lists)
		return 0;
	parent->lists = lists;
	lists[i].digest = digest;
	lists[i].count = 1;
	parent->nlists = i + 1;
	return 1;
}

/* Members that give the same list for the same time meet under the same key. */
static uint32_t subset_key(uint64_t digest, uint32_t count)
{
	return (uint32_t)(pldk__mix(digest, count) >> 32);
}

static int take_list(const struct pldk_domain *parent, const int *ranks, int nranks, uint32_t *out, uint32_t *out_self)
{
	int i;
	int j;

	*out_self = PLD_RANK_ANY;
	for (i = 0; i < nranks; i++) {
		if (ranks[i] < 0 || (uint32_t)ranks[i] >= parent->nranks)
			return pldk__fail(-EINVAL, "rank %u: subset: entry %d is rank %d, allowed is 0..%u", parent->rank, i, ranks[i],
					  parent->nranks - 1);
		for (j = 0; j < i; j++) {
			if (ranks[i] == ranks[j])
				return pldk__fail(-EINVAL, "rank %u: subset: rank %d is entry %d and entry %d", parent->rank, ranks[i], j,
						  i);
		}
		if ((uint32_t)ranks[i] == parent->rank)
			*out_self = (uint32_t)i;
		out[i] = (uint32_t)ranks[i];
	}
	if (*out_self == PLD_RANK_ANY)
		return pldk__fail(-EINVAL, "rank %u: subset: the list does not have the caller: only members call", parent->rank);
	return 0;
}

static void list_text(struct pldk__text *text, const uint32_t *ranks, uint32_t nranks)
{
	uint32_t i;

	for (i = 0; i < nranks && i < 16; i++)
		pldk__text_add(text, "%s%u", i ? "," : "[", ranks[i]);
	pldk__text_add(text, nranks > 16 ? ",...]" : "]");
}

/* Say, in the parent's control slab, which list this rank is about to meet with. 0 ranks: none. */
static void publish_list(struct pldk_domain *parent, const uint32_t *ranks, uint32_t nranks, uint32_t count)
{
	struct pldk__control *control = (void *)pldk__slab(parent->control, parent->rank);
	uint32_t i;

	pldk__store_seq(&control->subset_nranks, 0);
	for (i = 0; i < nranks; i++)
		pldk__store_relaxed(&control->subset_ranks[i], (uint16_t)ranks[i]);
	pldk__store_relaxed(&control->subset_count, count);
	pldk__store_seq(&control->subset_nranks, nranks);
}

/* The list that a member is waiting with, as it stands now. Return: its length, 0 for none or unreadable. */
static uint32_t read_list(struct pldk_domain *parent, uint32_t rank, uint32_t *out, uint32_t *out_count)
{
	const size_t start = offsetof(struct pldk__control, subset_nranks);
	struct {
		uint32_t nranks;
		uint32_t count;
		uint32_t bad_keys[2];
		uint32_t reserved[10];
		uint16_t ranks[PLDK_MAX_RANKS];
	} now, again;
	uint32_t i;

	_Static_assert(sizeof(now) ==
			       offsetof(struct pldk__control, calls) - offsetof(struct pldk__control, subset_nranks),
		       "a copy of the end of struct pldk__control's head");
	if (pldk__control_read(parent, rank, start, &now, sizeof(now)) ||
	    pldk__control_read(parent, rank, start, &again, sizeof(again)))
		return 0;
	/* It was being changed: then this rank is just coming or going, and will look itself. */
	if (memcmp(&now, &again, sizeof(now)) || now.nranks > parent->nranks)
		return 0;
	for (i = 0; i < now.nranks; i++)
		out[i] = now.ranks[i];
	*out_count = now.count;
	return now.nranks;
}

/* Poison the subset that members of this list meet in, so that those who are there hear of the disagreement. */
static void poison_list(struct pldk_domain *parent, const uint32_t *ranks, uint32_t nranks, uint32_t key)
{
	struct pldk__pdomain *pd;

	pldk__fail_quiet(true);
	if (!parent->ops->subset(parent->pd, key, ranks, nranks, &pd)) {
		parent->ops->poison(pd, PLDK__JOIN_FAILED(pd->rank, -EPROTO));
		parent->ops->leave(pd, false);
	}
	pldk__fail_quiet(false);
}

/*
 * Does a member of this list wait with another list that has this rank in it? Then neither can ever succeed. All
 * members publish before they look, so of two that disagree at least one sees the other; it tells both groups.
 */
static int check_lists(struct pldk_domain *parent, const uint32_t *ranks, uint32_t nranks, uint32_t key)
{
	struct pldk__control *control = (void *)pldk__slab(parent->control, parent->rank);
	uint32_t *theirs = calloc(parent->nranks, sizeof(*theirs));
	struct pldk__text text = { 0 };
	bool has_me;
	uint64_t digest;
	uint32_t count;
	uint32_t i;
	uint32_t j;
	uint32_t n;

	if (!theirs)
		return pldk__fail(-ENOMEM, "rank %u: subset: no memory", parent->rank);
	for (i = 0; i < nranks; i++) {
		n = ranks[i] == parent->rank ? 0 : read_list(parent, ranks[i], theirs, &count);
		for (j = 0, has_me = false; j < n; j++)
			has_me |= theirs[j] == parent->rank;
		if (!has_me || (n == nranks && !memcmp(theirs, ranks, n * sizeof(*ranks))))
			continue;
		/* A subset that this rank has made with it before: the other one has not left the call yet. */
		digest = list_digest(theirs, n);
		if (list_count(parent, digest, false) >= count)
			continue;
		pldk__text_add(&text, "the members give different lists: rank %u gives ", ranks[i]);
		list_text(&text, theirs, n);
		pldk__text_add(&text, ", rank %u gives ", parent->rank);
		list_text(&text, ranks, nranks);
		snprintf(control->join_text, sizeof(control->join_text), "%.*s", (int)sizeof(control->join_text) - 1, text.text);
		control->bad_keys[0] = subset_key(digest, count);
		pldk__store_release(&control->bad_keys[1], key);
		poison_list(parent, theirs, n, control->bad_keys[0]);
		poison_list(parent, ranks, nranks, key);
		free(theirs);
		return pldk__fail(-EPROTO, "rank %u: subset: %s", parent->rank, text.text);
	}
	free(theirs);
	return 0;
}

/* The subset was poisoned before this rank came: did a member find that the lists disagree? */
static int came_late(struct pldk_domain *parent, const uint32_t *ranks, uint32_t nranks, uint32_t key)
{
	char text[PLDK__CALL_TEXT];
	uint32_t keys[2];
	uint32_t i;

	for (i = 0; i < nranks; i++) {
		if (pldk__control_read(parent, ranks[i], offsetof(struct pldk__control, bad_keys), keys,
				       sizeof(keys)) ||
		    (keys[0] != key && keys[1] != key) ||
		    pldk__control_read(parent, ranks[i], offsetof(struct pldk__control, join_text), text, sizeof(text)))
			continue;
		text[sizeof(text) - 1] = '\0';
		return pldk__fail(-EPROTO, "%s", text);
	}
	return -ECANCELED;
}

static int make_subset(struct pldk_domain *parent, const uint32_t *ranks, uint32_t nranks, uint32_t site,
		       uint64_t deadline_ns, struct pldk_domain **out)
{
	struct pldk__call call = { .op = PLDK_EV_SUBSET, .site = site };
	uint64_t digest = list_digest(ranks, nranks);
	uint32_t count = list_count(parent, digest, true);
	uint32_t key = subset_key(digest, count);
	struct pldk__text name = { 0 };
	struct pldk_domain *subset;
	struct pldk__pdomain *pd;
	uint32_t *world_ranks;
	uint32_t i;
	int ret;

	world_ranks = calloc(nranks, sizeof(*world_ranks));
	if (!count || !world_ranks) {
		free(world_ranks);
		return pldk__fail(-ENOMEM, "rank %u: subset: no memory", parent->rank);
	}
	for (i = 0; i < nranks; i++)
		world_ranks[i] = pldk__world_rank(parent, ranks[i]);
	publish_list(parent, ranks, nranks, count);
	ret = check_lists(parent, ranks, nranks, key);
	if (!ret) {
		ret = parent->ops->subset(parent->pd, key, ranks, nranks, &pd);
		if (ret == -ECANCELED)
			ret = came_late(parent, ranks, nranks, key);
		if (ret)
			ret = pldk__fail_prefix(ret, "rank %u: subset: ", parent->rank);
	}
	if (ret) {
		free(world_ranks);
		return ret;
	}
	ret = pldk__domain_new(pd, parent, world_ranks, &subset);
	if (ret == -ECANCELED && came_late(parent, ranks, nranks, key) == -EPROTO)
		ret = pldk__fail_prefix(-EPROTO, "rank %u: subset: ", parent->rank);
	if (ret)
		return ret;
	pldk__text_add(&name, "subset ");
	list_text(&name, ranks, nranks);
	snprintf(subset->name, sizeof(subset->name), "%.*s", (int)sizeof(subset->name) - 1, name.text);
	call.args[0] = nranks;
	call.args[1] = (int64_t)digest;
	ret = meet(subset, &call, deadline_ns);
	if (ret) {
		pldk__domain_fail(subset, ret);
		/* Left in order: the others must not take this rank for the one that died. */
		pldk__domain_free(subset, true);
		return ret;
	}
	pthread_mutex_lock(&parent->world->lock);
	subset->next_subset = parent->world->subsets;
	parent->world->subsets = subset;
	pthread_mutex_unlock(&parent->world->lock);
	*out = subset;
	return 0;
}

/**
 * pldk_subset_at() - see domain.h
 */
int pldk_subset_at(struct pldk_site *site, struct pldk_domain *parent, const int *ranks, int nranks, int64_t timeout_ns,
		   struct pldk_domain **out)
{
	struct pldk__thread *thread;
	struct pldk_domain *subset;
	uint32_t *list = NULL;
	uint32_t site_id;
	uint32_t self;
	int ret;

	ret = pldk__enter(parent, &thread);
	if (ret)
		return ret;
	if (!ranks || !out || nranks < 1 || (uint32_t)nranks > parent->nranks) {
		ret = pldk__fail(-EINVAL, "rank %u: subset: %s", parent->rank,
				 !ranks ? "ranks is NULL" : !out ? "out is NULL" : "nranks is not in 1..size of the parent");
		goto out;
	}
	list = calloc((size_t)nranks, sizeof(*list));
	if (!list) {
		ret = pldk__fail(-ENOMEM, "rank %u: subset: no memory", parent->rank);
		goto out;
	}
	ret = take_list(parent, ranks, nranks, list, &self);
	if (ret)
		goto out;
	site_id = pldk__site_id(site);
	ret = pldk__coll_enter(parent, thread, PLDK_EV_SUBSET, site_id);
	if (ret)
		goto out;
	ret = make_subset(parent, list, (uint32_t)nranks, site_id, pldk__deadline(timeout_ns), &subset);
	publish_list(parent, NULL, 0, 0);
	parent->coll_ret = ret;
	pldk__coll_leave(parent, thread);
	if (!ret)
		*out = subset;
out:
	free(list);
	pldk__leave(thread);
	return ret;
}

int(pldk_subset)(struct pldk_domain *parent, const int *ranks, int nranks, int64_t timeout_ns, struct pldk_domain **out)
{
	return pldk_subset_at(PLDK__CALLER(), parent, ranks, nranks, timeout_ns, out);
}
