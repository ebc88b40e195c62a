/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What the files of the embedded provider share. The world file itself is described in shm_layout.h.
 *
 *   provider_shm.c   the table of operations; create, join, subset, leave, poison
 *   shm_world.c      a world file in this process: mapping, reserving memory, finding domains
 *   shm_member.c     who is alive: claims, the end of a membership, doorbells, giving back a dead rank's windows
 *   shm_window.c     windows: open, map, close, reset; what may still be allocated
 *   shm_sleep.c      sleeping, waking, the wait ledger
 *   shm_deadlock.c   who can still be woken?
 *   far_lane.c       far peers, seen from a rank; far_start.c, far_agent.c: the process that moves the bytes
 */
#ifndef _PLDK_SHM_H
#define _PLDK_SHM_H

#include <sys/types.h>

#include "atomic.h"
#include "internal.h"
#include "provider.h"
#include "shm_layout.h"

/**
 * struct shm_world - a world file as this process has it; shared by its ranks
 * @dev, @ino: which file
 * @fd: own descriptor
 * @pid: whose; what a forked child inherits is not its own
 * @refs: under the lock of shm_world.c
 * @nranks: of the world
 * @header: start of the control mapping (SHM_FIRST bytes)
 */
struct shm_world {
	dev_t dev;
	ino_t ino;
	int fd;
	pid_t pid;
	uint32_t refs;
	uint32_t nranks;
	struct shm_header *header;
	struct shm_world *next;
};

/**
 * struct shm_view - a mapped domain
 * @offset: in the file
 * @bytes: mapped
 */
struct shm_view {
	struct shm_world *world;
	uint64_t offset;
	uint64_t bytes;
	struct shm_domain *dom;
	struct pld_status *status;
	struct shm_rank *ranks;
	uint64_t *windows;
	uint32_t nranks;
};

struct shm_lane;

/**
 * struct shm_pd - a joined domain
 * @base: what the library sees; first
 * @view: the domain
 * @root: the world's domain; its pd outlives this one
 * @claim: this process
 * @world_rank: own rank in the world
 * @line_hint: line of the ledger that was free last time
 * @lane: connection to the agent of far peers, or NULL; owned by the world's pd
 */
struct shm_pd {
	struct pldk__pdomain base;
	struct shm_view view;
	const struct shm_view *root;
	uint64_t claim;
	uint32_t world_rank;
	uint32_t line_hint;
	struct shm_lane *lane;
	uint64_t reaped_ns; /* atomic: since when a reaped member is seen that the launcher has said nothing of, or 0 */
	bool owns_lane;
	uint8_t far[];
};

/**
 * struct shm_map - an open window
 * @base: what the library sees; first
 * @page: offset of its struct shm_window
 * @slabs: offset of rank 0's slab
 * @span: bytes of addresses
 */
struct shm_map {
	struct pldk__map base;
	uint64_t page;
	uint64_t slabs;
	uint64_t span;
};

static inline struct shm_pd *pldk__shm_pd(struct pldk__pdomain *pd)
{
	return (struct shm_pd *)pd;
}

static inline const struct shm_map *pldk__shm_map(const struct pldk__map *map)
{
	return (const struct shm_map *)map;
}

static inline struct pld_member *pldk__shm_member(const struct shm_view *view, uint32_t rank)
{
	return (struct pld_member *)(void *)((char *)view->status + PLD_STATUS_HEADER) + rank;
}

static inline bool pldk__shm_is_gone(const struct shm_view *view, uint32_t rank)
{
	return pldk__load_acquire(&view->ranks[rank].end) != 0;
}

/**
 * struct shm_walk - a walk over the subset domains; zero at the begin
 * @at: the next one of the chain
 * @bucket: the next chain
 * @steps: done in this chain
 */
struct shm_walk {
	uint64_t at;
	uint32_t bucket;
	uint32_t steps;
};

/* shm_world.c */
void *pldk__shm_mmap(int fd, uint64_t offset, uint64_t bytes);
bool pldk__shm_is_world(int fd);
int pldk__shm_world_ref(int fd, struct shm_world **out);
void pldk__shm_world_hold(struct shm_world *world);
void pldk__shm_world_unref(struct shm_world *world);
int pldk__shm_alloc(struct shm_header *header, uint64_t bytes, uint64_t *out);
int pldk__shm_reserve(int fd, uint64_t offset, uint64_t bytes);
void pldk__shm_punch(int fd, uint64_t offset, uint64_t bytes);
int pldk__shm_read(int fd, void *buf, size_t len, uint64_t offset);
int pldk__shm_domain_make(int fd, struct shm_header *header, uint64_t parent, uint32_t key, const uint32_t *world_ranks,
			  const struct pld_member *members, uint32_t nranks, uint64_t *out_offset);
void pldk__shm_domain_unmake(int fd, uint64_t offset);
int pldk__shm_view_map(struct shm_world *world, uint64_t offset, struct shm_view *out);
void pldk__shm_view_unmap(struct shm_view *view);
uint64_t *pldk__shm_bucket(struct shm_world *world, uint64_t parent, uint32_t key);
bool pldk__shm_walk(struct shm_world *world, struct shm_walk *walk, struct shm_view *out);

/* shm_member.c */
struct shm_stat {
	uint64_t start;
	uint32_t parent;
	uint32_t nthreads;
	int wait_status; /* as from waitpid(2), of a zombie */
	char state;
};
int pldk__shm_stat(uint32_t pid, struct shm_stat *out);
#define SHM_WATCH_MAX 64u

/* Peers that a sleeping thread looks after. */
struct shm_watch {
	uint32_t n;
	uint32_t next;
	uint32_t ranks[SHM_WATCH_MAX];
	int pidfds[SHM_WATCH_MAX]; /* or a negative errno */
};
uint64_t pldk__shm_claim_self(void);
bool pldk__shm_claim_alive(uint64_t claim);
void pldk__shm_ring(const struct shm_view *view, uint32_t rank);
int pldk__shm_member_join(const struct shm_view *view, uint32_t rank, uint64_t claim);
void pldk__shm_member_end(const struct shm_view *view, uint32_t rank, uint32_t state, int status);
void pldk__shm_process_end(struct shm_world *world, uint32_t world_rank, uint32_t state, int status);
void pldk__shm_ends_inherit(const struct shm_pd *pd);
int pldk__shm_rank_of(const struct shm_view *view, uint32_t world_rank);
bool pldk__shm_watch(struct shm_pd *pd, struct shm_watch *watch);
void pldk__shm_watch_end(struct shm_watch *watch);
bool pldk__shm_domain_free(struct shm_world *world, struct shm_view *view);

/* shm_window.c */
int pldk__shm_open(struct pldk__pdomain *pd, const struct pldk__window_spec *spec, struct pldk__map **out);
void pldk__shm_close(struct pldk__pdomain *pd, struct pldk__map *map);
int pldk__shm_reset(struct pldk__pdomain *pd, struct pldk__map *map);
int pldk__shm_limits(struct pldk__pdomain *pd, struct pldk_limits *out);
void pldk__shm_window_drop(const struct shm_view *view, uint64_t page, uint32_t rank, uint32_t by);
void pldk__shm_windows_reap(const struct shm_view *view, uint32_t rank, uint32_t by);

/* shm_sleep.c */
int pldk__shm_sleep(struct pldk__pdomain *pd, struct pldk__wait *wait, const struct pldk__wake *wakes, uint32_t nwakes);
void pldk__shm_wake(struct pldk__pdomain *pd, const struct pldk__wake *wakes, uint32_t nwakes);
int pldk__shm_ledger(struct pldk__pdomain *pd, struct pld_ledger_entry *entries, uint32_t *n);
struct shm_line *pldk__shm_line(struct shm_world *world, uint32_t index);
bool pldk__shm_line_reserved(struct shm_world *world, uint32_t index);
void pldk__shm_line_entry(struct shm_world *world, const struct shm_line *line, struct pld_ledger_entry *out);

/* shm_deadlock.c */
void pldk__shm_deadlock(struct shm_pd *pd);
int pldk__shm_verdict(struct pldk__pdomain *pd, uint32_t verdict, struct pld_ledger_entry *entries, uint32_t *n);

/* far_lane.c */
int pldk__far_lane_open(struct shm_pd *pd);
void pldk__far_lane_close(struct shm_pd *pd);
int pldk__far_lane_check(struct shm_lane *lane);
int pldk__far_quiesce(struct shm_pd *pd);
void pldk__far_lane_flush(struct shm_lane *lane);
bool pldk__far_lane_is_busy(const struct shm_world *world, uint32_t world_rank);
int pldk__far_put(struct pldk__pdomain *pd, const struct pldk__map *map, uint32_t rank, uint64_t offset,
		  const void *src, size_t len, uint32_t atomic_dtype, uint64_t deadline_ns, uint64_t *ticket);
int pldk__far_get(struct pldk__pdomain *pd, const struct pldk__map *map, uint32_t rank, uint64_t offset, void *dst,
		  size_t len, uint64_t deadline_ns, uint64_t *ticket);
int pldk__far_notify(struct pldk__pdomain *pd, const struct pldk__map *map, uint32_t rank, uint32_t cell, uint32_t op,
		     int64_t value, uint64_t deadline_ns);
int pldk__far_rmw(struct pldk__pdomain *pd, const struct pldk__map *map, uint32_t rank, uint64_t offset, uint32_t dtype,
		  enum pldk__rmw kind, int64_t operand, int64_t expected, uint64_t deadline_ns, int64_t *old);
int pldk__far_done(struct pldk__pdomain *pd, uint32_t rank, uint64_t ticket, uint64_t deadline_ns);

/* far_start.c */
int pldk__far_agent_start(int fd);

#endif /* _PLDK_SHM_H */
