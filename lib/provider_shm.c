// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The embedded provider: ranks share a sealed memfd and sleep in futex(2). No privilege, no name in any file system,
 * nothing that outlives the processes.
 *
 * This file makes worlds and memberships; shm.h lists the other files. The world file is sealed against growing and
 * shrinking, so no holder of the descriptor can make another one's mapping fault.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "range.h"
#include "shm.h"

static int shm_probe(void)
{
	int fd = memfd_create(SHM_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return pldk__fail(
			errno == ENOSYS ? -EOPNOTSUPP : -errno,
			"the embedded provider cannot make a memfd: %s (kernel without CONFIG_MEMFD_CREATE, a seccomp "
			"filter, or no descriptor left)",
			strerror(errno));
	close(fd);
	return 0;
}

static uint32_t node_of(uint32_t cpu)
{
	char path[96];
	uint32_t node;

	for (node = 0; node < 64; node++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/node%u", cpu, node);
		if (!access(path, F_OK))
			return node;
	}
	return ~0u;
}

static int fill_world(int fd, const struct pldk__world_spec *spec, uint64_t file_bytes)
{
	struct shm_header *header;
	struct pld_member *members;
	uint64_t offset = 0;
	uint32_t i;
	int ret;

	ret = pldk__shm_reserve(fd, 0, SHM_LINE_BITS + SHM_NLINES / 8);
	if (ret)
		return pldk__fail(ret, "no memory for a world: %s", strerror(-ret));
	members = calloc(spec->nranks, sizeof(*members));
	header = pldk__shm_mmap(fd, 0, SHM_PAGE);
	if (!members || !header) {
		ret = pldk__fail(-ENOMEM, "no memory or addresses for a world");
		goto out;
	}
	header->version = SHM_VERSION;
	header->size = sizeof(*header);
	header->file_bytes = file_bytes;
	header->next = SHM_FIRST;
	header->creator = pldk__shm_claim_self();
	header->created_ns = pldk__now_ns();
	header->nranks = spec->nranks;
	header->flags = spec->far ? SHM_F_FAR : 0;
	for (i = 0; i < spec->nranks; i++) {
		members[i].device_id = spec->device_ids[i];
		members[i].cpu = spec->cpus[i];
		members[i].node = node_of(spec->cpus[i]);
	}
	ret = pldk__shm_domain_make(fd, header, UINT64_MAX, 0, NULL, members, spec->nranks, &offset);
	if (ret)
		goto out;
	header->world = offset;
	pldk__store_release(&header->magic, SHM_MAGIC);
out:
	if (header)
		munmap(header, SHM_PAGE);
	free(members);
	return ret;
}

/*
 * Opened a second time through /proc, because the kernel counts the writers of a file by open(2), not by
 * memfd_create(2): the agent of far peers can then see that it is the last one.
 */
static int world_memfd(void)
{
	int fd = memfd_create(SHM_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char path[32];
	int again;

	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	if (again < 0)
		return fd;
	close(fd);
	return again;
}

static int shm_create(const struct pldk__world_spec *spec, int *out_fd)
{
	uint64_t bytes = SHM_FILE_BYTES;
	struct rlimit limit;
	int fd;
	int ret;

	/* Growing a file beyond RLIMIT_FSIZE is a POSIX signal, not only an errno: stay below. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes)
		bytes = limit.rlim_cur & ~(SHM_PAGE - 1);
	if (bytes < 2 * SHM_FIRST)
		return pldk__fail(
			-EPERM,
			"a world needs a file of at least %llu MiB, RLIMIT_FSIZE allows %llu: raise it (ulimit -f)",
			2 * SHM_FIRST >> 20, (unsigned long long)bytes >> 20);
	fd = world_memfd();
	if (fd < 0)
		return pldk__fail(fd, "cannot make a memfd: %s", strerror(-fd));
	if (ftruncate(fd, (off_t)bytes)) {
		ret = pldk__fail(-errno, "cannot size a memfd to %llu bytes: %s", (unsigned long long)bytes,
				 strerror(errno));
		goto err;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		ret = pldk__fail(-errno, "cannot seal a memfd: %s", strerror(errno));
		goto err;
	}
	ret = fill_world(fd, spec, bytes);
	if (ret)
		goto err;
	if (spec->far) {
		ret = pldk__far_agent_start(fd);
		if (ret)
			goto err;
	}
	*out_fd = fd;
	return 0;

err:
	close(fd);
	return ret;
}

static int with_world(int fd, struct shm_view *view)
{
	struct shm_world *world;
	int ret = pldk__shm_world_ref(fd, &world);

	if (ret)
		return ret;
	ret = pldk__shm_view_map(world, world->header->world, view);
	if (ret) {
		pldk__shm_world_unref(world);
		return pldk__fail(-ENOMEM, "no addresses (RLIMIT_AS, vm.max_map_count) to map the world");
	}
	return 0;
}

static void without_world(struct shm_view *view)
{
	struct shm_world *world = view->world;

	pldk__shm_view_unmap(view);
	pldk__shm_world_unref(world);
}

static int shm_mark_dead(int fd, uint32_t rank, int wait_status)
{
	struct shm_view view;
	int ret = with_world(fd, &view);

	if (ret)
		return ret;
	if (rank >= view.nranks)
		ret = pldk__fail(-EINVAL, "rank %u is not in 0..%u", rank, view.nranks - 1);
	else if (WIFSIGNALED(wait_status))
		pldk__shm_process_end(view.world, rank, PLD_MEMBER_KILLED, WTERMSIG(wait_status));
	else
		pldk__shm_process_end(view.world, rank, PLD_MEMBER_EXITED, WEXITSTATUS(wait_status));
	without_world(&view);
	return ret;
}

/* Reason and culprit move together: they are one aligned word of the status page. */
static void poison_one(const struct shm_view *view, uint32_t reason, uint32_t rank)
{
	union {
		struct {
			uint32_t poison;
			uint32_t rank;
		} s;
		uint64_t word;
	} none = { .s = { 0, PLD_RANK_ANY } }, want = { .s = { PLD_POISON_SET | (reason & 0xffff), rank } };
	uint32_t i;

	_Static_assert(offsetof(struct pld_status, poison) % 8 == 0 &&
			       offsetof(struct pld_status, poison_rank) == offsetof(struct pld_status, poison) + 4,
		       "one word");
	pldk__cas_seq((uint64_t __attribute__((may_alias)) *)(void *)&view->status->poison, &none.word, want.word);
	pldk__add_seq(&view->status->events, 1);
	for (i = 0; i < view->nranks; i++)
		pldk__shm_ring(view, i);
}

/* The subsets of a poisoned domain, and theirs. Who poisoned is known there only as one of its members. */
static void poison_below(struct shm_world *world, uint64_t parent, uint32_t reason, uint32_t world_rank)
{
	struct shm_walk walk = { 0 };
	struct shm_view view;
	int rank;

	while (pldk__shm_walk(world, &walk, &view)) {
		if (view.dom->parent == parent) {
			rank = pldk__shm_rank_of(&view, world_rank);
			poison_one(&view, reason, rank < 0 ? PLD_RANK_ANY : (uint32_t)rank);
			poison_below(world, view.dom->id, reason, world_rank);
		}
		pldk__shm_view_unmap(&view);
	}
}

/*
 * A subset that is being made meanwhile: its maker publishes it, then looks at the parent's poison (shm_subset()); here
 * the parent is poisoned first, then the published subsets are found. One of the two sees the other.
 */
static void poison(const struct shm_view *view, uint32_t reason, uint32_t rank)
{
	poison_one(view, reason, rank);
	poison_below(view->world, view->dom->id, reason, rank == PLD_RANK_ANY ? rank : view->ranks[rank].world_rank);
}

static int shm_poison_fd(int fd, uint32_t reason)
{
	struct shm_view view;
	int ret = with_world(fd, &view);

	if (ret)
		return ret;
	poison(&view, reason, PLD_RANK_ANY);
	without_world(&view);
	return 0;
}

static int shm_poison(struct pldk__pdomain *base, uint32_t reason)
{
	int keep = errno;

	poison(&pldk__shm_pd(base)->view, reason, base->rank);
	errno = keep;
	return 0;
}

/* Take a place in a mapped domain. On failure the view is still the caller's. */
static int join_view(const struct shm_view *view, uint32_t rank, struct shm_pd **out)
{
	const uint32_t poisoned = pldk__load_acquire(&view->status->poison);
	struct shm_pd *pd;
	uint32_t i;
	int ret;

	if (poisoned)
		return pldk__fail_poisoned(poisoned & 0xffff, view->status->poison_rank);
	pd = calloc(1, sizeof(*pd) + view->nranks);
	if (!pd)
		return pldk__fail(-ENOMEM, "no memory to join");
	pd->base.ops = &pldk__provider_shm;
	pd->base.status = view->status;
	pd->base.rank = rank;
	pd->base.nranks = view->nranks;
	pd->view = *view;
	pd->root = &pd->view;
	pd->claim = pldk__shm_claim_self();
	pd->world_rank = view->ranks[rank].world_rank;
	pd->line_hint = pd->world_rank;
	if (view->world->header->flags & SHM_F_FAR) {
		for (i = 0; i < view->nranks; i++)
			pd->far[i] = view->ranks[i].world_rank % 2 && i != rank;
		pd->base.far = pd->far;
	}
	ret = pldk__shm_member_join(view, rank, pd->claim);
	if (ret) {
		free(pd);
		return ret == -EEXIST ?
			       pldk__fail(ret, "rank %u is taken by process %u, which is alive", rank,
					  SHM_CLAIM_PID(view->ranks[rank].claim)) :
			       pldk__fail(ret, "rank %u has been here and is gone: a place is not given twice", rank);
	}
	*out = pd;
	return 0;
}

/* Ranks look after each other by process ids, which mean the same process in one PID namespace only. */
static int same_pid_namespace(struct shm_header *header)
{
	uint64_t first = 0;
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) || pldk__cas_seq(&header->pid_ns, &first, st.st_ino) || first == st.st_ino)
		return 0;
	return pldk__fail(-EPERM,
			  "this process is in another PID namespace than the rank that joined first, so neither can see "
			  "whether the other lives: start their containers with one PID namespace (--pid), or use "
			  "PLDK_PROVIDER=dev");
}

static int shm_join(int fd, uint32_t rank, struct pldk__pdomain **out)
{
	struct shm_view view;
	struct shm_pd *pd = NULL;
	int ret = with_world(fd, &view);

	if (ret)
		return ret;
	if (rank >= view.nranks)
		ret = pldk__fail(-EINVAL, "rank %u is not in 0..%u", rank, view.nranks - 1);
	else
		ret = same_pid_namespace(view.world->header);
	if (!ret)
		ret = join_view(&view, rank, &pd);
	if (!ret && pd->base.far) {
		ret = pldk__far_lane_open(pd);
		if (ret) {
			pldk__shm_process_end(view.world, rank, PLD_MEMBER_RELEASED, 0);
			free(pd);
		}
	}
	if (ret) {
		without_world(&view);
		return ret;
	}
	*out = &pd->base;
	return 0;
}

/* Is this the same list of ranks? */
static bool same_members(const struct shm_view *view, const struct shm_view *parent, const uint32_t *ranks, uint32_t n)
{
	uint32_t i;

	if (view->nranks != n)
		return false;
	for (i = 0; i < n; i++)
		if (view->ranks[i].world_rank != parent->ranks[ranks[i]].world_rank)
			return false;
	return true;
}

/* Map the domain of a key: the one that exists, else a new one that becomes the head of its chain. */
static int subset_find(struct shm_pd *parent, uint32_t key, const uint32_t *ranks, uint32_t nranks,
		       struct shm_view *out)
{
	struct shm_world *world = parent->view.world;
	uint64_t *bucket = pldk__shm_bucket(world, parent->view.dom->id, key);
	struct pld_member *members = NULL;
	uint32_t *world_ranks = NULL;
	uint64_t made = 0;
	uint64_t head;
	uint64_t at;
	uint32_t i;
	bool found;
	int ret;

again:
	head = pldk__load_acquire(bucket);
	for (at = head; at;) {
		ret = pldk__shm_view_map(world, at, out);
		if (ret == -ESTALE)
			goto again; /* freed under our hands: then the head has changed */
		if (ret) {
			pldk__fail(ret, "no addresses (RLIMIT_AS, vm.max_map_count) to map a subset");
			goto out;
		}
		found = out->dom->parent == parent->view.dom->id && out->dom->key == key;
		at = pldk__load_relaxed(&out->dom->next);
		pldk__fence_acquire();
		if (pldk__load_relaxed(&out->dom->magic) != SHM_DOMAIN_MAGIC) {
			pldk__shm_punch(world->fd, out->offset, SHM_PAGE); /* looking brought it back */
			pldk__shm_view_unmap(out);
			goto again;
		}
		if (found)
			goto out;
		pldk__shm_view_unmap(out);
	}
	if (!made) {
		members = calloc(nranks, sizeof(*members));
		world_ranks = calloc(nranks, sizeof(*world_ranks));
		if (!members || !world_ranks) {
			ret = pldk__fail(-ENOMEM, "no memory for a subset of %u ranks", nranks);
			goto out;
		}
		for (i = 0; i < nranks; i++) {
			const struct pld_member *m = pldk__shm_member(&parent->view, ranks[i]);

			world_ranks[i] = parent->view.ranks[ranks[i]].world_rank;
			members[i].pid = m->pid; /* it may die before it joins here */
			members[i].device_id = m->device_id;
			members[i].cpu = m->cpu;
			members[i].node = m->node;
		}
		ret = pldk__shm_domain_make(world->fd, world->header, parent->view.dom->id, key, world_ranks, members,
					    nranks, &made);
		if (ret)
			goto out;
	}
	ret = pldk__shm_view_map(world, made, out);
	if (ret) {
		pldk__fail(-ENOMEM, "no addresses (RLIMIT_AS, vm.max_map_count) to map a subset");
		goto out;
	}
	out->dom->next = head;
	if (!pldk__cas_seq(bucket, &head, made)) {
		pldk__shm_view_unmap(out);
		goto again;
	}
	made = 0;
out:
	if (made)
		pldk__shm_domain_unmake(world->fd, made);
	free(members);
	free(world_ranks);
	return ret;
}

static int shm_subset(struct pldk__pdomain *base, uint32_t key, const uint32_t *ranks, uint32_t nranks,
		      struct pldk__pdomain **out)
{
	struct shm_pd *parent = pldk__shm_pd(base);
	struct shm_pd *pd = NULL;
	struct shm_view view;
	uint32_t poisoned;
	uint32_t rank;
	int ret;

	for (rank = 0; rank < nranks && ranks[rank] != base->rank; rank++)
		;
	if (rank == nranks)
		return pldk__fail(-EINVAL, "rank %u is not in its own list of ranks", base->rank);
	ret = subset_find(parent, key, ranks, nranks, &view);
	if (ret)
		return ret;
	if (!same_members(&view, &parent->view, ranks, nranks))
		ret = pldk__fail(-EPROTO,
				 "another member gave another list of ranks for this subset (it has %u, here are %u)",
				 view.nranks, nranks);
	else if (pldk__load_acquire(&view.ranks[rank].claim) && !pldk__shm_is_gone(&view, rank))
		ret = pldk__fail(-EEXIST, "rank %u has joined this subset already", base->rank);
	else
		ret = join_view(&view, rank, &pd);
	if (ret) {
		pldk__shm_view_unmap(&view);
		return ret;
	}
	pldk__shm_world_hold(view.world);
	pd->root = parent->root;
	pd->lane = parent->lane;
	pldk__shm_ends_inherit(pd);
	poisoned = pldk__load_seq(&parent->view.status->poison);
	if (poisoned) {
		rank = pldk__load_relaxed(&parent->view.status->poison_rank);
		if (rank != PLD_RANK_ANY) /* -1, who is no member here, is PLD_RANK_ANY */
			rank = (uint32_t)pldk__shm_rank_of(&pd->view, parent->view.ranks[rank].world_rank);
		poison(&pd->view, poisoned & 0xffff, rank);
	}
	*out = &pd->base;
	return 0;
}

static void shm_leave(struct pldk__pdomain *base, bool finalised)
{
	struct shm_pd *pd = pldk__shm_pd(base);
	int keep = errno;

	/* A forked child is no member: it only gives its memory back. */
	if (SHM_CLAIM_PID(pd->claim) == (uint32_t)getpid()) {
		/* What was sent comes before the word that nothing will be sent any more. */
		if (pd->lane)
			pldk__far_lane_flush(pd->lane);
		pldk__shm_member_end(&pd->view, base->rank, finalised ? PLD_MEMBER_FINALISED : PLD_MEMBER_RELEASED, 0);
		pldk__shm_domain_free(pd->view.world, &pd->view);
	}
	if (pd->owns_lane)
		pldk__far_lane_close(pd);
	without_world(&pd->view);
	free(pd);
	errno = keep;
}

static int shm_run_state(struct pldk__pdomain *base, uint32_t rank)
{
	const uint64_t claim = pldk__load_acquire(&pldk__shm_pd(base)->view.ranks[rank].claim);
	int keep = errno;
	struct shm_stat st;
	int state = 0;

	if (claim && !pldk__shm_stat(SHM_CLAIM_PID(claim), &st) &&
	    (!SHM_CLAIM_START(claim) || SHM_CLAIM(SHM_CLAIM_PID(claim), st.start) == claim))
		state = st.state;
	errno = keep;
	return state;
}

/*
 * The table. Every call keeps errno.
 */

static int op_probe(void)
{
	return pldk__keep_errno(shm_probe());
}

static int op_create(const struct pldk__world_spec *spec, int *out_fd)
{
	return pldk__keep_errno(shm_create(spec, out_fd));
}

static int op_mark_dead(int fd, uint32_t rank, int wait_status)
{
	return pldk__keep_errno(shm_mark_dead(fd, rank, wait_status));
}

static int op_poison_fd(int fd, uint32_t reason)
{
	return pldk__keep_errno(shm_poison_fd(fd, reason));
}

static int op_join(int fd, uint32_t rank, struct pldk__pdomain **out)
{
	return pldk__keep_errno(shm_join(fd, rank, out));
}

static int op_subset(struct pldk__pdomain *pd, uint32_t key, const uint32_t *ranks, uint32_t n,
		     struct pldk__pdomain **out)
{
	return pldk__keep_errno(shm_subset(pd, key, ranks, n, out));
}

static int op_limits(struct pldk__pdomain *pd, struct pldk_limits *out)
{
	return pldk__keep_errno(pldk__shm_limits(pd, out));
}

static int op_open(struct pldk__pdomain *pd, const struct pldk__window_spec *spec, struct pldk__map **out)
{
	return pldk__keep_errno(pldk__shm_open(pd, spec, out));
}

static int op_reset(struct pldk__pdomain *pd, struct pldk__map *map)
{
	return pldk__keep_errno(pldk__shm_reset(pd, map));
}

static int op_ledger(struct pldk__pdomain *pd, struct pld_ledger_entry *entries, uint32_t *n)
{
	return pldk__keep_errno(pldk__shm_ledger(pd, entries, n));
}

static int op_verdict(struct pldk__pdomain *pd, uint32_t verdict, struct pld_ledger_entry *entries, uint32_t *n)
{
	return pldk__keep_errno(pldk__shm_verdict(pd, verdict, entries, n));
}

static int op_far_put(struct pldk__pdomain *pd, const struct pldk__map *map, uint32_t rank, uint64_t offset,
		      const void *src, size_t len, uint32_t atomic_dtype, uint64_t deadline_ns, uint64_t *ticket)
{
	return pldk__keep_errno(pldk__far_put(pd, map, rank, offset, src, len, atomic_dtype, deadline_ns, ticket));
}

static int op_far_get(struct pldk__pdomain *pd, const struct pldk__map *map, uint32_t rank, uint64_t offset, void *dst,
		      size_t len, uint64_t deadline_ns, uint64_t *ticket)
{
	return pldk__keep_errno(pldk__far_get(pd, map, rank, offset, dst, len, deadline_ns, ticket));
}

static int op_far_notify(struct pldk__pdomain *pd, const struct pldk__map *map, uint32_t rank, uint32_t cell,
			 uint32_t op, int64_t value, uint64_t deadline_ns)
{
	return pldk__keep_errno(pldk__far_notify(pd, map, rank, cell, op, value, deadline_ns));
}

static int op_far_rmw(struct pldk__pdomain *pd, const struct pldk__map *map, uint32_t rank, uint64_t offset,
		      uint32_t dtype, enum pldk__rmw kind, int64_t operand, int64_t expected, uint64_t deadline_ns,
		      int64_t *old)
{
	return pldk__keep_errno(
		pldk__far_rmw(pd, map, rank, offset, dtype, kind, operand, expected, deadline_ns, old));
}

static int op_far_done(struct pldk__pdomain *pd, uint32_t rank, uint64_t ticket, uint64_t deadline_ns)
{
	return pldk__keep_errno(pldk__far_done(pd, rank, ticket, deadline_ns));
}

static void op_watch(struct pldk__pdomain *base)
{
	struct shm_watch watch;
	int keep = errno;

	watch.n = 0;
	watch.next = 0;
	pldk__shm_watch(pldk__shm_pd(base), &watch);
	pldk__shm_watch_end(&watch);
	errno = keep;
}

const struct pldk_provider_ops pldk__provider_shm = {
	.name = "shm",
	.probe = op_probe,
	.create = op_create,
	.owns = pldk__shm_is_world,
	.mark_dead = op_mark_dead,
	.poison_fd = op_poison_fd,
	.join = op_join,
	.subset = op_subset,
	.leave = shm_leave,
	.poison = shm_poison,
	.run_state = shm_run_state,
	.limits = op_limits,
	.open = op_open,
	.close = pldk__shm_close,
	.reset = op_reset,
	.sleep = pldk__shm_sleep,
	.wake = pldk__shm_wake,
	.watch = op_watch,
	.ledger = op_ledger,
	.verdict = op_verdict,
	.far_put = op_far_put,
	.far_get = op_far_get,
	.far_notify = op_far_notify,
	.far_rmw = op_far_rmw,
	.far_done = op_far_done,
};
