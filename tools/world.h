/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Worlds seen from outside: what pldctl lists and what pldrun's table of last states shows.
 *
 * Two readers fill the same structures: world_dev.c from the fdinfo of the files of /dev/pld, world_shm.c from the
 * world file of the embedded provider. Reading stops nobody and changes nothing; what is read is a moment's picture of
 * each word, not of the whole.
 */
#ifndef _PLDK_TOOLS_WORLD_H
#define _PLDK_TOOLS_WORLD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Numbers are those of the kernel contract: PLD_MEMBER_*, PLD_WINDOW_*, PLD_CMP_*, PLD_RANK_ANY. */

/** struct world_rank - a member of a domain */
struct world_rank {
	uint32_t state;
	uint32_t pid;
	int32_t status;
	uint32_t device;
	uint32_t cpu;
};

/**
 * struct world_window - a window of a domain
 * @bytes: of one rank's slab
 * @page_bytes: page size got
 * @opened: ranks that have it open
 * @creator: rank that made it, or PLD_RANK_ANY where that is not known
 * @created_ns: CLOCK_MONOTONIC, or 0 where that is not known
 * @slabs: on shm, place of the first slab in the world file, and
 * @stride: from one slab to the next
 */
struct world_window {
	uint32_t id;
	uint32_t kind;
	uint32_t flags;
	uint32_t generation;
	uint64_t bytes;
	uint32_t page_bytes;
	uint32_t opened;
	uint32_t creator;
	uint64_t created_ns;
	uint64_t slabs;
	uint64_t stride;
};

/**
 * struct world_waiter - a thread that sleeps in a wait
 * @window: of the first predicate that does not hold
 * @seen: value of its cell now
 * @from: only rank that will notify it, or PLD_RANK_ANY
 * @npreds: predicates of the wait
 * @op: PLDK_EV_* of the collective that it is in, or 0 where that is not known
 */
struct world_waiter {
	uint32_t rank;
	uint32_t tid;
	uint32_t window;
	uint32_t cell;
	uint32_t cmp;
	uint32_t from;
	int64_t expected;
	int64_t seen;
	uint64_t since_ns;
	uint32_t npreds;
	uint32_t op;
};

/** struct world_holder - a process that has a domain open */
struct world_holder {
	uint32_t pid;
	char comm[16];
};

/**
 * struct world_domain - a domain
 * @provider: "dev" or "shm"
 * @key: file that it was read from; equal for the domains of one world file
 * @id: number of the domain
 * @parent: number of its parent, or ~0
 * @uid: owner of the process that made it, or that has it open
 * @pid: that process
 * @joined: ranks that have ever joined
 * @first_dead: rank that died first, or PLD_RANK_ANY
 * @poison: 0, or PLD_POISON_SET | reason
 * @poison_rank: who aborted it, or PLD_RANK_ANY
 * @window_count: windows, also where @windows could not be read (the fdinfo of some files has no more than numbers)
 * @bytes: what they take, slabs of all ranks
 * @has_details: @windows and @waiters are complete
 * @holders: the processes that have a file of it open, as far as they were looked at
 */
struct world_domain {
	const char *provider;
	uint64_t key;
	uint64_t id;
	uint64_t parent;
	uint32_t uid;
	uint32_t pid;
	uint32_t nranks;
	uint32_t joined;
	uint32_t finalised;
	uint32_t dead;
	uint32_t first_dead;
	uint32_t poison;
	uint32_t poison_rank;
	uint32_t window_count;
	uint64_t bytes;
	int has_details;
	struct world_rank *ranks;
	struct world_window *windows;
	size_t nwindows;
	struct world_waiter *waiters;
	size_t nwaiters;
	struct world_holder *holders;
	size_t nholders;
};

/** struct world_list - domains; starts as zeroes */
struct world_list {
	struct world_domain *domains;
	size_t ndomains;
};

/**
 * world_add() - append an empty domain
 * @list: grows
 * @nranks: its ranks; their array is made
 *
 * Return: the domain, valid until the next call, or NULL (no memory).
 */
struct world_domain *world_add(struct world_list *list, uint32_t nranks);

/** world_drop() - take the newest domain back */
void world_drop(struct world_list *list);

/** world_add_window() - append an empty window. Return: NULL without memory */
struct world_window *world_add_window(struct world_domain *domain);

/** world_add_waiter() - append an empty waiter. Return: NULL without memory */
struct world_waiter *world_add_waiter(struct world_domain *domain);

/** world_add_holder() - note that a process has the domain open, once. Return: 0, -ENOMEM */
int world_add_holder(struct world_domain *domain, uint32_t pid);

/** world_is_library() - does a window of this number belong to the library itself? */
int world_is_library(uint32_t window);

/** world_is_in_use() - is a rank alive, or does anybody wait? */
int world_is_in_use(const struct world_domain *domain);

/**
 * world_collective_call() - in which call of its domain does a waiter wait for the other ranks?
 *
 * Return: the number of the call, from 1; 0 if it waits for a cell of the program.
 */
uint64_t world_collective_call(const struct world_waiter *waiter);

/**
 * world_waiter_text() - where a waiter of a collective is, in words
 * @waiter: world_collective_call() is not 0
 * @text: out: "inside allreduce (call 12), waits for rank 3"
 * @room: of @text
 */
void world_waiter_text(const struct world_waiter *waiter, char *text, size_t room);

/** world_free() - give everything back */
void world_free(struct world_list *list);

/**
 * world_read_shm() - read a world file of the embedded provider
 * @list: its domains are appended, the world first
 * @fd: the file
 *
 * Return: 0, -EBADF (no world file), -EPROTO (a version that this tool does not know), -ENOMEM.
 */
int world_read_shm(struct world_list *list, int fd);

/**
 * world_read_dev() - read a domain of /dev/pld
 * @list: the domain is appended, or what is new in this file is added to the domain that is there already
 * @pid: process that has it open
 * @fd: its domain or rank file in that process
 *
 * Return: 0, -EBADF (not such a file, or gone), -EPROTO (fdinfo that this tool does not understand), -ENOMEM.
 */
int world_read_dev(struct world_list *list, pid_t pid, int fd);

/** world_state_name() - "alive"; "?" for no state. Never NULL */
const char *world_state_name(uint32_t state);

/** world_cmp_name() - ">="; "?" for no comparison. Never NULL */
const char *world_cmp_name(uint32_t cmp);

#endif /* _PLDK_TOOLS_WORLD_H */
