/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The provider border: the only thing between the library and what is under it.
 *
 * Above it everything exists once (views, RMA, collectives, checks, recorder, spinning, judging deaths); below it a
 * provider only makes memory, puts waiters to sleep and knows who is alive. A provider never sees a user's arguments:
 * all were checked. Peers are addressed by (rank, window, offset); that a peer's slab is mapped is asked, never assumed
 * (pldk__slab() is NULL for a far peer, and then the far_ calls move the bytes).
 *
 * Ordering that a provider must give: sleep() returning 0 is an acquire of the cells in its predicates; far_notify() is
 * a release that comes after every far_put() of the same thread to the same rank.
 */
#ifndef _PLDK_PROVIDER_H
#define _PLDK_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/pld.h> /* layout of cells and status page, and the numbers of operations */
#include <pldk/domain.h>

#include "../kmod/cmp.h"

struct pldk_provider_ops;

/**
 * struct pldk__pdomain - a joined domain as the provider sees it; first member of the provider's own struct
 * @ops: its provider
 * @status: status page (mapped read-only on dev)
 * @far: NULL, or far[peer] != 0 where the peer's slabs are not mapped here. NULL on all ranks or on none
 * @rank: own rank
 * @nranks: ranks
 */
struct pldk__pdomain {
	const struct pldk_provider_ops *ops;
	const struct pld_status *status;
	const uint8_t *far;
	uint32_t rank;
	uint32_t nranks;
};

/**
 * struct pldk__map - an open window; first member of the provider's own struct
 * @base: slab of rank r is at base + r * stride, if near. One mapping for all near neighbours in a row
 * @stride: bytes from slab to slab
 * @far: as in struct pldk__pdomain
 * @bytes: of one slab, as asked for
 * @tag: as asked for
 * @id: window id
 * @generation: differs from that of any earlier window of this id; never 0
 * @kind: PLD_WINDOW_DATA or PLD_WINDOW_SIGNAL
 * @flags: PLD_WINDOW_F_*
 * @page_bytes: page size got
 */
struct pldk__map {
	char *base;
	uint64_t stride;
	const uint8_t *far;
	uint64_t bytes;
	uint64_t tag;
	uint32_t id;
	uint32_t generation;
	uint32_t kind;
	uint32_t flags;
	uint32_t page_bytes;
};

/* A rank's slab in this process, or NULL if it is far. The rank is in range. */
static inline char *pldk__slab(const struct pldk__map *map, uint32_t rank)
{
	if (map->far && map->far[rank])
		return NULL;
	return map->base + rank * map->stride;
}

/* A rank's cell in this process, or NULL if it is far. Both indices are in range. */
static inline struct pld_cell *pldk__cell_at(const struct pldk__map *map, uint32_t rank, uint32_t cell)
{
	char *slab = pldk__slab(map, rank);

	return slab ? (struct pld_cell *)(void *)slab + cell : NULL;
}

/**
 * struct pldk__window_spec - what a window shall be; equal on all ranks
 */
struct pldk__window_spec {
	uint32_t id;
	uint32_t kind;
	uint32_t flags; /* PLD_WINDOW_F_* */
	uint64_t bytes;
	uint64_t tag;
};

/**
 * struct pldk__world_spec - what a launcher decided; checked
 * @device_ids: nranks entries
 * @cpus: nranks entries
 * @far: shm: odd ranks are far
 */
struct pldk__world_spec {
	uint32_t nranks;
	const uint32_t *device_ids;
	const uint32_t *cpus;
	bool far;
};

/**
 * struct pldk__pred - one predicate of a wait: own cell CMP expected
 * @from: rank that will notify it, or PLD_RANK_ANY
 * @seen: out: value last seen
 */
struct pldk__pred {
	const struct pldk__map *map;
	uint32_t cell;
	uint32_t cmp; /* PLD_CMP_* */
	uint32_t from;
	int64_t expected;
	int64_t seen;
};

/**
 * struct pldk__wait - a wait; the same object travels through spinning, judging and sleeping
 * @flags: PLD_WAIT_F_*
 * @deadline_ns: absolute CLOCK_MONOTONIC, or PLD_DEADLINE_NEVER; never PLD_DEADLINE_POLL below the border
 * @site: number of the call site
 * @out_index: predicate that holds (F_ANY)
 * @out_rank: rank that is gone (-EOWNERDEAD, -ESHUTDOWN) or that poisoned (-ECANCELED)
 * @out_verdict: number for verdict() (-EDEADLK)
 */
struct pldk__wait {
	struct pldk__pred *preds;
	uint32_t npreds;
	uint32_t flags;
	uint64_t deadline_ns;
	uint32_t site;
	uint32_t out_index;
	uint32_t out_rank;
	uint32_t out_verdict;
};

/** struct pldk__wake - a cell whose value was just changed in user space while somebody slept on it */
struct pldk__wake {
	const struct pldk__map *map;
	uint32_t rank;
	uint32_t cell;
};

/* Read-modify-write kinds of far_rmw() */
enum pldk__rmw { PLDK__RMW_ADD, PLDK__RMW_SWAP, PLDK__RMW_CAS };

/**
 * struct pldk_provider_ops - a provider
 *
 * Calls return 0 or a negative errno with pldk__fail()'s sentence set, unless they say otherwise. A call that fails
 * has changed nothing.
 *
 * @probe: can it be used here? Instant, without side effects. The sentence says what is missing and what to do
 * @create: make a world; *out_fd is close-on-exec
 * @owns: is fd one of this provider's worlds? No sentence
 * @mark_dead: a launcher's word, wait_status as from waitpid(2). A rank whose end is known is left as it is
 * @poison_fd: as @poison, by a launcher
 * @token, @join_token: NULL where a provider has none
 * @join: become rank of the world fd, which stays the caller's
 * @subset: as the ioctl: first caller of key creates, others join; local, never waits
 * @leave: end the membership and free pd. finalised: in order, else only the memory is given back and the rank counts
 *         as dead (RELEASED). Never fails, never waits
 * @poison: async-signal-safe
 * @run_state: 'R', 'S', 'D', 'T', 't', 'Z' or 0 of a rank's process, for reports
 * @limits: left_bytes and left_by
 * @open: create the window, or attach to it if it exists with equal spec. Memory is zero, allocated, charged and mapped
 *        when it returns. -EPROTO if the spec differs (sentence has both), -EEXIST if this pd has it open
 * @close: unmap and let go; the last one frees. Local. Waits of this rank in it were excluded above
 * @reset: zero the own slab. -EBUSY if somebody sleeps in it
 * @sleep: block until the predicates hold (0), the deadline passes (-ETIMEDOUT), a POSIX signal handler ran (-EINTR),
 *         or the wait became hopeless: -EOWNERDEAD, -ESHUTDOWN, -ECANCELED (by the rule of pldk__wait_judge()),
 *         -EDEADLK. First wakes everybody in wakes[]. Sets no sentence: the caller knows the names. Only when
 *         what carries far ranks' bytes died, out_rank is PLD_RANK_ANY (-EOWNERDEAD) and the sentence names it
 * @wake: after user-space notifies that saw sleepers != 0. Never fails
 * @watch: notice deaths that nobody has told; called now and then by who spins for long. NULL where all deaths are told
 * @ledger, @verdict: *n is room in, count out; entries as PLD_IOC_LEDGER and PLD_IOC_VERDICT give them
 *
 * @far_put: start moving len bytes to a far rank's slab; the source is free on return. atomic_dtype 0 is plain, else
 *           element-wise add of that dtype. *ticket completes in order per rank. Deadlines of far_ calls are as in
 *           struct pldk__wait, never PLD_DEADLINE_POLL: -ETIMEDOUT when not all of it was taken
 * @far_get: start moving; dst is filled when the ticket is done. *ticket: in, 0 or that of the same transfer's last
 *           far_get(). A failure has forgotten the whole transfer: its destination is not written any more
 * @far_notify: notify a far rank's cell, after all earlier puts of this thread to it; waits only to be taken
 * @far_rmw: one INT32 or INT64 element; waits
 * @far_done: wait for a ticket; deadline as in struct pldk__wait, or PLD_DEADLINE_POLL (-EAGAIN)
 *            A failure other than -EAGAIN has forgotten the get: its destination is not written any more. With
 *            PLDK__FAR_KEEP or'ed to the ticket, -ETIMEDOUT leaves it under way too
 *
 * The far_ calls are NULL where no peer can be far. They fail with -EOWNERDEAD when the carrier or the peer died.
 */
struct pldk_provider_ops {
	const char *name;

	int (*probe)(void);
	int (*create)(const struct pldk__world_spec *spec, int *out_fd);
	bool (*owns)(int fd);
	int (*mark_dead)(int fd, uint32_t rank, int wait_status);
	int (*poison_fd)(int fd, uint32_t reason);
	int (*token)(int fd, uint8_t out_token[16]);
	int (*join_token)(const uint8_t token[16], uint32_t rank, struct pldk__pdomain **out);

	int (*join)(int fd, uint32_t rank, struct pldk__pdomain **out);
	int (*subset)(struct pldk__pdomain *parent, uint32_t key, const uint32_t *ranks, uint32_t nranks,
		      struct pldk__pdomain **out);
	void (*leave)(struct pldk__pdomain *pd, bool finalised);
	int (*poison)(struct pldk__pdomain *pd, uint32_t reason);
	int (*run_state)(struct pldk__pdomain *pd, uint32_t rank);
	int (*limits)(struct pldk__pdomain *pd, struct pldk_limits *out);

	int (*open)(struct pldk__pdomain *pd, const struct pldk__window_spec *spec, struct pldk__map **out);
	void (*close)(struct pldk__pdomain *pd, struct pldk__map *map);
	int (*reset)(struct pldk__pdomain *pd, struct pldk__map *map);

	int (*sleep)(struct pldk__pdomain *pd, struct pldk__wait *wait, const struct pldk__wake *wakes,
		     uint32_t nwakes);
	void (*wake)(struct pldk__pdomain *pd, const struct pldk__wake *wakes, uint32_t nwakes);
	void (*watch)(struct pldk__pdomain *pd);
	int (*ledger)(struct pldk__pdomain *pd, struct pld_ledger_entry *entries, uint32_t *n);
	int (*verdict)(struct pldk__pdomain *pd, uint32_t verdict, struct pld_ledger_entry *entries, uint32_t *n);

	int (*far_put)(struct pldk__pdomain *pd, const struct pldk__map *map, uint32_t rank, uint64_t offset,
		       const void *src, size_t len, uint32_t atomic_dtype, uint64_t deadline_ns, uint64_t *ticket);
	int (*far_get)(struct pldk__pdomain *pd, const struct pldk__map *map, uint32_t rank, uint64_t offset, void *dst,
		       size_t len, uint64_t deadline_ns, uint64_t *ticket);
	int (*far_notify)(struct pldk__pdomain *pd, const struct pldk__map *map, uint32_t rank, uint32_t cell,
			  uint32_t op, int64_t value, uint64_t deadline_ns);
	int (*far_rmw)(struct pldk__pdomain *pd, const struct pldk__map *map, uint32_t rank, uint64_t offset,
		       uint32_t dtype, enum pldk__rmw kind, int64_t operand, int64_t expected, uint64_t deadline_ns,
		       int64_t *old);
	int (*far_done)(struct pldk__pdomain *pd, uint32_t rank, uint64_t ticket, uint64_t deadline_ns);
};

extern const struct pldk_provider_ops pldk__provider_dev;
extern const struct pldk_provider_ops pldk__provider_shm;

/*
 * Services of the library to providers.
 */

/* Store the sentence of pldk_last_error() and return err (negative). Keeps errno. */
int pldk__fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/**
 * pldk__wait_judge() - may this unsatisfied wait go on?
 * @status: of its domain
 * @rank: who waits
 * @wait: out_rank is set when it may not
 *
 * The one rule for deaths, finalised ranks and poison, in user space; the kernel has its twin, pld_wait_failure() in
 * kmod/wait.c. The rule stands at struct pld_wait in include/uapi/linux/pld.h.
 *
 * Return: 0, or the errno.
 */
int pldk__wait_judge(const struct pld_status *status, uint32_t rank, struct pldk__wait *wait);

/* Do the predicates hold? Acquire. Fills seen and out_index. */
bool pldk__wait_holds(uint32_t rank, struct pldk__wait *wait);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t pldk__now_ns(void);

static inline const struct pld_member *pldk__member_of(const struct pld_status *status, uint32_t rank)
{
	return (const struct pld_member *)(const void *)((const char *)status + PLD_STATUS_HEADER +
							 (size_t)rank * status->member_size);
}

/* Copy into memory that another rank will read or has read: see lib/copy.c for why it is not memcpy. */
void pldk__copy(void *dst, const void *src, size_t len);

/* Element-wise atomic add of a public dtype; see lib/reduce.c. The agent of far peers uses it too. */
void pldk__atomic_add(void *dst, const void *src, size_t count, uint32_t dtype);

/* The local notify that every path ends in: provenance, value, then was somebody asleep? See lib/signal.c. */
bool pldk__cell_notify(struct pld_cell *cell, uint32_t op, int64_t value, uint32_t rank);

#endif /* _PLDK_PROVIDER_H */
