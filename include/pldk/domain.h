/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Worlds, domains and membership: who takes part.
 *
 * A program started by pldrun calls pldk_init() and pldk_finalize(). Launchers and tests use pldk_world_create() and
 * pldk_world_join(). A handle belongs to one rank; several threads may use it at the same time, except that one
 * collective at a time runs on a domain (-EBUSY). After fork() the child is no rank: every call is -ENOTCONN and the
 * windows are not mapped in it.
 */
#ifndef _PLDK_DOMAIN_H
#define _PLDK_DOMAIN_H

#include <pldk/types.h>

#ifdef __cplusplus
extern "C" {
/* In C a struct and a function may have one name, as stat(2) has. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/**
 * pldk_init() - join the world that pldrun made
 * @out: the world
 *
 * Waits until every rank has joined, at most PLDK_INIT_TIMEOUT_MS (60 s): all-to-all order. Without a launcher it
 * makes a world of one rank, unless another launcher's variables say that there are more tasks
 * (-ENOTCONN: "SLURM says 4 tasks ..."; PLDK_SINGLETON=1 insists on a world of one).
 *
 * Return: 0; -ENODEV, -EPERM (provider cannot be opened), -ENOTCONN, -ETIMEDOUT (names the ranks that are missing),
 * -EOWNERDEAD (a rank died first), -ECANCELED (a rank failed in init; names it and its errno), -EPROTO (the ranks run
 * different library versions or say different PLDK_TAG), -EEXIST (called twice), -ENOMEM.
 */
int pldk_init(struct pldk_domain **out);

/**
 * pldk_finalize() - leave in order
 * @world: from pldk_init() or pldk_world_join(); NULL is nothing
 *
 * Local and bounded: it waits for nobody. A rank that ends without it is dead to the others. Windows and subset
 * domains that are still open are closed.
 *
 * Return: 0, or -EBUSY while another thread is inside a call on the domain or its windows.
 */
int pldk_finalize(struct pldk_domain *world);

/**
 * struct pldk_world_options - what a launcher decides
 * @size: sizeof(struct pldk_world_options); set by PLDK_WORLD_OPTIONS_INIT
 * @provider: "dev", "shm" or NULL for PLDK_PROVIDER, else the best that opens
 * @device_ids: nranks labels >= 0, distinct; NULL is 0..nranks-1
 * @cpus: CPU of each rank's device; NULL is the rule: (device mod n)-th of the n CPUs of the affinity mask
 * @far: shm: treat odd ranks as far (a test of what may not be mapped); -1 takes PLDK_SHM_FAR
 */
struct pldk_world_options {
	size_t size;
	const char *provider;
	const int *device_ids;
	const int *cpus;
	int far;
};

#define PLDK_WORLD_OPTIONS_INIT { sizeof(struct pldk_world_options), 0, 0, 0, -1 }

/**
 * pldk_world_create() - make a world without joining it
 * @nranks: 1..PLDK_MAX_RANKS
 * @options: or NULL
 * @out_fd: descriptor (close-on-exec) to inherit or pass; the world lives as long as somebody has it open
 *
 * Return: 0, -EINVAL (nranks, duplicate or negative device id, provider name), -ENODEV, -EPERM, -ENOMEM.
 */
int pldk_world_create(int nranks, const struct pldk_world_options *options, int *out_fd);

/**
 * pldk_world_join() - become a rank
 * @fd: from pldk_world_create(); may be closed afterwards
 * @rank: 0..nranks-1
 * @timeout_ns: how long to wait until all ranks have joined; PLDK_TRY does not wait at all
 * @out: the world, seen by @rank
 *
 * On shm, several threads of one process may join as different ranks.
 * Return: as pldk_init(), and -EBADF (no world), -EINVAL (rank), -EEXIST (rank is alive), -ESTALE (rank is gone),
 * -EPERM (shm: in another PID namespace than the other ranks).
 * With PLDK_TRY success does not mean that all have joined.
 */
int pldk_world_join(int fd, int rank, int64_t timeout_ns, struct pldk_domain **out);

/**
 * pldk_world_token() - 128 random bits that open the world to another process of the same user, without a descriptor
 * @fd: from pldk_world_create()
 *
 * Return: 0, -EBADF, -EOPNOTSUPP (shm: nothing there can be found without a descriptor).
 */
int pldk_world_token(int fd, uint8_t out_token[16]);

/**
 * pldk_world_join_token() - as pldk_world_join(), by token
 *
 * Return: also -ENOENT (no such world: dead, or not the same /dev/pld instance; the text tells), -EPERM (another
 * user's).
 */
int pldk_world_join_token(const uint8_t token[16], int rank, int64_t timeout_ns, struct pldk_domain **out);

/**
 * pldk_world_mark_dead() - a launcher's word that a rank's process ended: status as from waitpid(2). Return: 0, -EBADF,
 * -EINVAL
 */
int pldk_world_mark_dead(int fd, int rank, int wait_status);

/** pldk_world_poison() - as pldk_abort(), for a launcher that is no member. Return: 0, -EBADF */
int pldk_world_poison(int fd, int code);

/**
 * pldk_subset() - a domain of some ranks of another; collective over its members only
 * @parent: seen by the caller
 * @ranks: distinct ranks of @parent, the caller among them; position = rank in the new domain
 * @nranks: their number
 * @timeout_ns: for the others to arrive
 * @out: the domain. Close it with pldk_domain_close()
 *
 * Subsets may overlap. Members create their subsets in the same order.
 * Return: 0, -EINVAL, -EPROTO (members give different lists; names them), -EOWNERDEAD, -ETIMEDOUT, -ENOMEM.
 */
int pldk_subset(struct pldk_domain *parent, const int *ranks, int nranks, int64_t timeout_ns, struct pldk_domain **out);
int pldk_subset_at(struct pldk_site *site, struct pldk_domain *parent, const int *ranks, int nranks, int64_t timeout_ns,
		   struct pldk_domain **out);

/**
 * pldk_domain_close() - leave a subset, closing the windows that are still open in it; local. Return: 0, -EBUSY,
 * -EINVAL (the world: use pldk_finalize())
 */
int pldk_domain_close(struct pldk_domain *domain);

/** pldk_rank() - the caller's rank in it, or -EINVAL for NULL */
int pldk_rank(const struct pldk_domain *domain);

/** pldk_size() - number of ranks, or -EINVAL for NULL */
int pldk_size(const struct pldk_domain *domain);

/** pldk_left() - the neighbour (rank - 1 + size) mod size, or -EINVAL */
int pldk_left(const struct pldk_domain *domain);

/** pldk_right() - the neighbour (rank + 1) mod size, or -EINVAL */
int pldk_right(const struct pldk_domain *domain);

/** pldk_device() - device id that hosts a rank, -EINVAL for a rank out of range */
int pldk_device(const struct pldk_domain *domain, int rank);

/** pldk_provider() - "dev" or "shm"; "?" for what is no domain. Never NULL */
const char *pldk_provider(const struct pldk_domain *domain);

/** enum pldk_member_state - see PLD_MEMBER_* of the kernel contract, same numbers */
enum pldk_member_state {
	PLDK_MEMBER_ABSENT = 0,
	PLDK_MEMBER_ALIVE = 1,
	PLDK_MEMBER_FINALISED = 2,
	PLDK_MEMBER_EXITED = 3,
	PLDK_MEMBER_KILLED = 4,
	PLDK_MEMBER_RELEASED = 5
};

/**
 * struct pldk_member - what is known of a rank
 * @state: enum pldk_member_state
 * @pid: its process, 0 before it joined
 * @status: exit code (EXITED) or POSIX signal number (KILLED)
 * @device_id: its device
 * @cpu: CPU of the device
 * @node: NUMA node of its slabs, -1 if not known
 * @is_far: its slabs are not mapped here
 * @reserved: zero
 */
struct pldk_member {
	int state;
	int pid;
	int status;
	int device_id;
	int cpu;
	int node;
	int is_far;
	int reserved[9];
};

/** pldk_member() - state of a rank, without asking it. Return: 0, -EINVAL */
int pldk_member(struct pldk_domain *domain, int rank, struct pldk_member *out);

/**
 * pldk_abort() - end the domain's work for everybody
 * @domain: whose present and later waits fail with -ECANCELED on all ranks ("aborted by rank 0, code 7")
 * @code: 0..65535
 *
 * Local, does not wait, async-signal-safe. The caller goes on and should exit. The first abort wins.
 * Return: 0, -EINVAL, -ECANCELED (the domain is being closed).
 */
int pldk_abort(struct pldk_domain *domain, int code);

/**
 * struct pldk_limits - what could still be allocated
 * @max_ranks: ranks in a domain
 * @window_bytes_max: largest slab a rank that a window may have, all other limits aside
 * @left_bytes: largest sum over all ranks that the next window may take now (memlock, module cap, memory)
 * @left_by: name of the limit that decides @left_bytes ("RLIMIT_MEMLOCK", "max_bytes", "MemAvailable", "cgroup")
 * @reserved: zero
 */
struct pldk_limits {
	int max_ranks;
	uint64_t window_bytes_max;
	uint64_t left_bytes;
	char left_by[32];
	uint64_t reserved[4];
};

/** pldk_limits() - ask before allocating. Return: 0, -EINVAL */
int pldk_limits(struct pldk_domain *domain, struct pldk_limits *out);

/** pldk_set_timeout() - what PLDK_TIMEOUT_DEFAULT means in this process from now on. Return: 0 */
int pldk_set_timeout(int64_t timeout_ns);

#ifndef PLDK_NO_SITES
#define pldk_subset(...) pldk_subset_at(PLDK_SITE(), __VA_ARGS__)
#endif

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif /* _PLDK_DOMAIN_H */
