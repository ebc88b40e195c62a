/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What the files of the library share. Public words are in include/pldk/, the border downwards in provider.h.
 *
 * Locks: pldk__registry (fork, sites, list of domains) before domain->lock; inside domain->lock only the provider's,
 * when a thread's ring is opened. No lock is held across a wait but that of the lanes (lane.c). What other threads may
 * read without a lock is an atomic word of atomic.h.
 *
 * Every public operation has the shape
 *
 *	ret = pldk__enter(domain, &thread);	NULL, closed, forked, another's pointer
 *	if (ret)
 *		return ret;
 *	... check everything, record, act ...
 *	pldk__leave(thread);
 *
 * A thread that is inside (between enter and leave) keeps the domain from being closed (-EBUSY). Entering costs no
 * atomic read-modify-write: see pldk__enter().
 */
#ifndef _PLDK_INTERNAL_H
#define _PLDK_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/pld.h>
#include <pldk/diag.h>
#include <pldk/domain.h>
#include <pldk/signal.h>
#include <pldk/types.h>
#include <pldk/window.h>

#include "atomic.h"
#include "provider.h"

#define pldk__likely(x) __builtin_expect(!!(x), 1)
#define pldk__unlikely(x) __builtin_expect(!!(x), 0)
#define PLDK__ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define PLDK__CACHE_LINE 64

/* One step of a digest that ranks compare. */
static inline uint64_t pldk__mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0xff51afd7ed558ccd);
	return hash ^ hash >> 33;
}

/* Magic words. Each differs from every other and from small integers, so that a handle of the wrong kind is told. */
#define PLDK__MAGIC_TENSOR 0x70747372u
#define PLDK__MAGIC_DTENSOR 0x70647672u
#define PLDK__MAGIC_WINDOW 0x7077696eu
#define PLDK__MAGIC_DOMAIN 0x70646f6du
#define PLDK__MAGIC_DEAD 0x70646561u
/* A domain that a thread is closing; one in a forked child of the rank. */
#define PLDK__MAGIC_CLOSING 0x70636c6fu
#define PLDK__MAGIC_FORKED 0x70666f72u

/*
 * Environment: one struct from env.def, read at each join. env.c.
 */
typedef const char *pldk__env_STR;
typedef int pldk__env_INT;
typedef int64_t pldk__env_MS;
typedef int pldk__env_BOOL;

struct pldk__env {
#define PLDK_ENV(field, name, type, def, help) pldk__env_##type field;
#include "env.def"
#undef PLDK_ENV
};

#define PLDK__TAG_MAX 64u

/* Read and check the environment, into what pldk__env() gives: at each join. */
int pldk__env_refresh(void);
/* The environment as the newest join found it. Never NULL */
const struct pldk__env *pldk__env(void);

/*
 * Errors and log: error.c.
 */

/* As pldk__fail() with a literal: for errors that are polled for, and in handlers of POSIX signals. */
int pldk__fail_text(int err, const char *text);
/* Put "rank 2: window_create: " style context in front of the thread's sentence. Keeps err. */
int pldk__fail_prefix(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Failures of this thread are expected for a while (a probe): do not log them. */
void pldk__fail_quiet(bool quiet);
/* "EPROTO" for -EPROTO; "E?" for what pldk does not use. */
const char *pldk__errno_name(int err);
/* Is anybody listening at this level? Then pldk__log() is worth its arguments. */
bool pldk__log_on(enum pldk_log_level level);
void pldk__log(enum pldk_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Set the stderr callback that PLDK_LOG asks for. */
void pldk__log_from_env(const char *level);

/*
 * Memory of what the user holds pointers to, at addresses that are never given twice: arena.c.
 */
size_t pldk__arena_round(size_t bytes);
void *pldk__arena_alloc(size_t bytes);
void pldk__arena_end(void *memory, size_t bytes);
bool pldk__arena_has(const void *address);

/* options.c */
int pldk__options_take(void *out, size_t known, size_t shortest, const void *user);

/**
 * struct pldk__text - a sentence under construction; what does not fit is cut at the end
 */
struct pldk__text {
	size_t len;
	char text[1024];
};
void pldk__text_add(struct pldk__text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Call sites: site.c. A site's id is its number in the process; each recorder of the process holds its strings.
 */
#define PLDK__SITES 512u

struct pldk__recorder_slab;

uint32_t pldk__site_intern(struct pldk_site *site);
/* The site of a caller that came without the macro; a return address. Never NULL */
struct pldk_site *pldk__site_of(void *return_address);
/* Tell a new recorder all sites that there are. The registry lock is held. */
void pldk__site_replay(struct pldk__recorder_slab *slab);
#define PLDK__CALLER() pldk__site_of(__builtin_return_address(0))
/* "train.c:42" for sentences; "?" for 0. The text lives for ever. */
const char *pldk__site_text(uint32_t id);

static inline uint32_t pldk__site_id(struct pldk_site *site)
{
	uint32_t id;

	if (!site)
		return 0;
	id = pldk__load_relaxed(&site->id);
	return pldk__likely(id) ? id : pldk__site_intern(site);
}

/*
 * Flight recorder: recorder.c. System window 0 of the world, one slab a rank; layout below. Nothing in it is a pointer.
 * Readers: pldk_recorder_read() and tools, also after the rank's death.
 */
#define PLDK__RECORDER_MAGIC 0x70726563u
#define PLDK__RECORDER_VERSION 1u
#define PLDK__THREADS 256u /* thread lines; the last one is shared by all threads that found none */
#define PLDK__RINGS 4u	   /* rings in system window 0; more on demand in windows of their own, see ring_of() */
#define PLDK__RING_SHARED 3u /* the ring of the shared line */
#define PLDK__RING_MAX 1024u

/* State of a thread: low byte of struct pldk__thread_line.now. */
enum pldk__state {
	PLDK__STATE_RUN = 0,
	PLDK__STATE_WAIT_SPIN = 1,
	PLDK__STATE_WAIT_SLEEP = 2,
	PLDK__STATE_POLLING = 3,
	PLDK__STATE_COLL = 4,
	PLDK__STATE_FINAL = 7
};

/**
 * struct pldk__rec - one record, 32 bytes
 * @tsc: time stamp counter, 0 = not stamped
 * @what: site 32, op 8, flags 8, peer 16 (0xffff none)
 * @where: window 16 (0xffff none), byte offset or cell 48
 * @value: bytes, value or expected
 */
struct pldk__rec {
	uint64_t tsc;
	uint64_t what;
	uint64_t where;
	int64_t value;
};

/**
 * struct pldk__thread_line - one thread of a rank, as others see it
 * @head: records ever written to its ring
 * @now: (index of the record that is going on) << 8 | enum pldk__state
 * @tid: thread id, 0 for a free line
 * @ring: number of its ring
 * @coll_site: site of the collective it is in
 * @spins, @sleeps: waits that ended while spinning, while asleep
 */
struct pldk__thread_line {
	uint64_t head;
	uint64_t now;
	uint32_t tid;
	uint32_t ring;
	uint32_t coll_site;
	uint32_t spins;
	uint32_t sleeps;
	uint32_t reserved[5];
	uint64_t reserved64;
} __attribute__((aligned(PLDK__CACHE_LINE)));

/** struct pldk__site_slot - a site as others see it; ready is stored last */
struct pldk__site_slot {
	uint32_t ready;
	uint32_t line;
	char file[44];
	char func[44];
};

/**
 * struct pldk__recorder_slab - a rank's slab of system window 0
 * @magic, @version: what it is; magic is stored last
 * @pid: of the rank
 * @ring_records: records of a ring
 * @nthreads: thread lines ever in use, without the shared one
 * @tsc0, @ns0: two clocks at one moment. With the same pair of now, a reader computes the rate and then
 *              time_ns = ns0 + (tsc - tsc0) * rate: the longer the run the better, and no calibration at start
 */
struct pldk__recorder_slab {
	uint32_t magic;
	uint32_t version;
	uint32_t pid;
	uint32_t ring_records;
	uint32_t nthreads;
	uint32_t reserved32;
	uint64_t tsc0;
	uint64_t ns0;
	uint64_t reserved[11];
	struct pldk__thread_line threads[PLDK__THREADS];
	struct pldk__site_slot sites[PLDK__SITES];
	/* a ring's place is always the largest: ranks may differ */
	struct pldk__rec rings[PLDK__RINGS * PLDK__RING_MAX];
};

struct pldk__recorder; /* private to recorder.c */

/**
 * struct pldk__thread - the calling thread, as one world knows it
 * @world: which world; a thread that serves two worlds has two of these and changes over when it changes sides
 * @inside: calls that the thread is in (more than one when a POSIX signal handler calls, too)
 * @domain: domain of the newest of them
 * @line: its line; a private one when there is no recorder, so that nobody asks
 * @ring: its records; a private one likewise
 * @mask: records of @ring - 1
 * @index: number of its line
 * @tid: thread id
 * @waited_ns: how long its newest wait took, about; 0 if it did not have to wait
 * @polled, @polls: which cell it tests in vain, and how often in a row
 * @is_shared: the ring has several writers: recording takes a lock
 */
struct pldk__thread {
	struct pldk_domain *world;
	struct pldk_domain *domain;
	uint32_t inside;
	uint32_t mask;
	struct pldk__thread_line *line;
	struct pldk__rec *ring;
	uint32_t index;
	uint32_t tid;
	uint64_t waited_ns;
	uint64_t polled;
	uint32_t polls;
	bool is_shared;
	struct pldk__thread *next_of_world;
	struct pldk__thread *next_of_thread;
	struct pldk__thread_line own_line;
	struct pldk__rec own_ring[1];
};

extern __thread struct pldk__thread *pldk__self __attribute__((tls_model("initial-exec")));

/* Make pldk__self this thread's face in the world. Return: 0, -ENOMEM */
int pldk__thread_attach(struct pldk_domain *world);
/* The slow half of pldk__record(), for threads of the shared line. */
struct pldk__rec *pldk__record_shared(struct pldk__thread *thread, const struct pldk__rec *rec);

static inline uint64_t pldk__tsc(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t t;

	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(t));
	return t;
#else
	return pldk__now_ns();
#endif
}

/**
 * pldk__record() - write a record; before the effect that it tells of
 * @peer: rank or -1
 * @window: id or -1
 *
 * Return: the record, valid until the thread's next one. Reading the counter costs more than the record, so it is never
 * read on the way of data: transfers are not stamped, a notify is after it has notified, a wait only when its first
 * look was in vain, a collective after it has announced itself. What has no stamp lies between its neighbours.
 */
static inline struct pldk__rec *pldk__record(struct pldk__thread *thread, uint32_t op, uint32_t flags, uint32_t site,
					     int peer, int window, uint64_t offset, int64_t value)
{
	struct pldk__thread_line *line = thread->line;
	uint64_t head = pldk__load_relaxed(&line->head);
	struct pldk__rec *rec = &thread->ring[head & thread->mask];
	uint64_t what = (uint64_t)site << 32 | (uint64_t)(op & 0xff) << 24 | (uint64_t)(flags & 0xff) << 16 |
			(uint16_t)peer;
	uint64_t where = (uint64_t)(uint16_t)window << 48 | (offset & ((UINT64_C(1) << 48) - 1));

	if (pldk__unlikely(thread->is_shared)) {
		struct pldk__rec copy = { 0, what, where, value };

		return pldk__record_shared(thread, &copy);
	}
	pldk__store_relaxed(&rec->tsc, 0);
	pldk__store_relaxed(&rec->what, what);
	pldk__store_relaxed(&rec->where, where);
	pldk__store_relaxed(&rec->value, value);
	pldk__store_release(&line->head, head + 1);
	return rec;
}

/* Add flags (PLDK_EVENT_FAILED, ...) to a record that is still the thread's newest. */
static inline void pldk__record_flag(struct pldk__rec *rec, uint32_t flags)
{
	pldk__store_relaxed(&rec->what, pldk__load_relaxed(&rec->what) | (uint64_t)(flags & 0xff) << 16);
}

/* What the thread does now, for those who look from outside. */
static inline void pldk__state(struct pldk__thread *thread, enum pldk__state state)
{
	pldk__store_relaxed(&thread->line->now, (pldk__load_relaxed(&thread->line->head) - 1) << 8 | (uint64_t)state);
}

/* Make, and end, a world's recorder. -ENOMEM etc. from the provider. recorder.c */
int pldk__recorder_open(struct pldk_domain *world, uint32_t ring_records);
void pldk__recorder_close(struct pldk_domain *world);
/* Write site number id into one recorder, or into every recorder of the process. The registry lock is held. */
void pldk__recorder_put_site(struct pldk__recorder_slab *slab, uint32_t id, uint32_t line, const char *file,
			     const char *func);
void pldk__recorder_new_site(uint32_t id, uint32_t line, const char *file, const char *func);
/* "put #16, 9.2 s ago" of a rank's newest record; "" if its recorder cannot be seen from here. */
const char *pldk__recorder_last(struct pldk_domain *domain, uint32_t rank, char *buf, size_t len);
/* "train.c:42" of a number that a rank gave to a site, as far as it can be seen from here; else "?". */
const char *pldk__recorder_site_text(struct pldk_domain *domain, uint32_t rank, uint32_t site, char *buf, size_t len);
/* Let go of a thread's line (it exits), or of all threads' lines (the world closes, or was forked). World lock held. */
void pldk__recorder_detach(struct pldk__thread *thread, bool is_forked);

/*
 * Choice of provider: provider.c
 */
int pldk__provider_choose(const char *name, const struct pldk_provider_ops **out);
const struct pldk_provider_ops *pldk__provider_of_fd(int fd);

/*
 * Domains: domain.c
 */

/* System windows of a domain; ids are PLD_WINDOW_ID_SYSTEM + these. */
enum pldk__system {
	PLDK__SYSTEM_RECORDER = 0, /* world only */
	PLDK__SYSTEM_CONTROL = 1,  /* rank header and call ledger, owner writes */
	PLDK__SYSTEM_EPOCHS = 2,   /* cells of the rendezvous */
	PLDK__SYSTEM_COLL = 3,	   /* staging memory of the collectives (coll.c) */
	PLDK__SYSTEM_RINGS = 8 /* .. 15: more rings, on demand */
};

#define PLDK__WAKES 64u

#define PLDK__DIMS 64u
#define PLDK__NAME_MAX 32u

struct pldk__dim {
	char name[PLDK__NAME_MAX];
	int64_t value; /* 0: not bound */
};

/**
 * struct pldk_domain - a domain as one rank of it sees it
 *
 * Fixed from join to close, readable without a lock: everything up to @name.
 */
struct pldk_domain {
	uint32_t magic; /* atomic: PLDK__MAGIC_DOMAIN while calls are let in. Changes under the registry lock */
	uint32_t aborting; /* atomic: calls of pldk_abort() that are going on */
	struct pldk__pdomain *pd;
	const struct pldk_provider_ops *ops;
	uint32_t rank;
	uint32_t nranks;
	bool has_far;	 /* some peer's slabs are not mapped */
	bool is_spread;	 /* some rank's slabs may be unmapped for another: unlike has_far, the same on all ranks */
	bool shares_cpu; /* another rank's device is on this rank's CPU */
	bool is_shared;	 /* two ranks of the world share a CPU: unlike shares_cpu, the same on all ranks */
	int64_t spin_ns; /* from PLDK_SPIN_US; negative adapts */
	uint32_t wait_flags;  /* PLD_WAIT_F_IDLE with PLDK_DEADLOCK=off */
	bool is_deadlock_logged_only; /* PLDK_DEADLOCK=report */
	struct pldk_domain *world; /* itself for the world */
	struct pldk_domain *parent; /* of a subset, while it is being made */
	uint32_t *world_ranks;	    /* of a subset's ranks; NULL for the world */
	bool is_joined;		    /* all ranks have met once */
	struct pldk__recorder *recorder; /* the world's; NULL when turned off */
	struct pldk__map *control;
	struct pldk__map *epochs;
	char name[PLDK__NAME_MAX]; /* "world", "subset [0,2]" */

	struct pldk__data *data; /* lanes and collectives; atomic, made at the first use: pldk__data_of() */

	/* One collective at a time: taken by pldk__coll_enter(). */
	uint32_t coll_busy; /* atomic: op in progress, 0 none */
	uint32_t coll_tid;
	int coll_ret;		    /* of its newest rendezvous */
	uint32_t nstarted;	    /* collectives that were started and are not over: coll_queue.c */
	struct pldk__rec *coll_rec; /* record of its entry, to be stamped after it has announced itself */
	uint64_t seq;	    /* newest number that is taken, see announce.c */
	uint64_t announced; /* newest number that this rank has announced */
	int64_t told;	    /* value that says so */
	uint32_t ntold;	    /* peers that were told; fewer than all: a far one's carrier is late */
	uint64_t met;	    /* numbers up to this one are settled: below announced, some are open */
	uint64_t heard_of;  /* pldk__arrived() looks at this number */
	uint32_t heard;	    /* ... and has seen so many peers */
	bool heard_differs; /* ... of which one said something else */
	uint32_t round;	    /* where the announced number stands in the list of rounds */
	uint32_t nrounds;   /* its length; 0: every rank tells all. The same on all ranks */
	struct pldk__round *rounds;
	uint32_t depth;	    /* cells for each ordered pair of ranks */
	uint32_t nwakes;
	struct pldk__wake wakes[PLDK__WAKES]; /* sleepers that announcements have seen and nobody woke yet */
	struct pldk__pred *epoch_preds;	      /* room for nranks - 1 */
	uint64_t next_id; /* where the search for a free window id begins, see propose_id() */

	/* Under lock */
	pthread_mutex_t lock;
	struct pldk_window *windows;   /* open ones */
	struct pldk_window *graveyard; /* destroyed: views of them must be told so */
	struct pldk__shells *shells;   /* memory of all of them */
	struct pldk_window *spare;     /* a shell whose window never was one */
	struct pldk_domain *subsets;
	struct pldk_domain *next_subset;
	struct pldk__thread *threads; /* world only */
	uint32_t nthreads;
	struct pldk__subset_list *lists; /* lists that subsets were made of, see join.c */
	uint32_t nlists;
	struct pldk__dim dims[PLDK__DIMS];
	uint32_t ndims;

	/* Under the registry lock */
	struct pldk_domain *next_of_process;
};

/* A rank's number in the world. */
static inline uint32_t pldk__world_rank(const struct pldk_domain *domain, uint32_t rank)
{
	return domain->world_ranks ? domain->world_ranks[rank] : rank;
}

/*
 * Poison codes with which a rank tells that it failed in a join. They mean that only to those who are still joining.
 */
#define PLDK__JOIN_FAILED(rank, err) (0xc000u | ((rank) & 63u) << 8 | ((uint32_t)((err) < 0 ? -(err) : (err)) & 0xffu))
#define PLDK__IS_JOIN_FAILED(code) (((code) & 0xc000u) == 0xc000u)

/**
 * pldk__domain_new() - a domain around a membership, known to the process
 * @pd: from join() or subset(); it belongs to the domain from now on
 * @parent: NULL for a world
 * @world_ranks: of a subset: the domain's from now on
 * @out: the domain, with recorder and rendezvous
 *
 * Return: 0; -ENOMEM or as the provider's open(): then pd is left as one who failed, and the others are told.
 */
int pldk__domain_new(struct pldk__pdomain *pd, struct pldk_domain *parent, uint32_t *world_ranks,
		     struct pldk_domain **out);
/* Give everything back. No thread is inside. finalised as in the provider's leave(). */
void pldk__domain_free(struct pldk_domain *domain, bool finalised);
/* Tell all who are joining that this rank fails with the sentence of this thread. Returns err. */
int pldk__domain_fail(struct pldk_domain *domain, int err);
/* The world of pldk_init(): begin (-EEXIST if there is one), set it, or NULL: none. */
int pldk__init_begin(void);
void pldk__init_end(struct pldk_domain *world);

/* Lock around the process-wide lists: worlds, sites. domain.c */
void pldk__registry_lock(void);
void pldk__registry_unlock(void);
/* All domains of this process. The registry lock is held. */
struct pldk_domain *pldk__registry_first(void);

/*
 * Is a thread other than the caller inside a call on the domain (of all domains of its world, for a world)? It lets
 * nobody in any more.
 */
bool pldk__threads_inside(struct pldk_domain *domain, uint32_t *out_tid);
/* Why an enter was refused, as an errno with its sentence; the domain may be anything. */
int pldk__enter_refused(const struct pldk_domain *domain);

/**
 * pldk__enter() - a thread begins a call on a domain
 * @domain: from the user; NULL is -EINVAL
 * @out: this thread; give it to pldk__leave()
 *
 * The count is the thread's own word, so a plain store does: pldk_finalize() changes the magic word, makes every
 * thread of the process pass a barrier (membarrier(2)) and then looks at the counts. Either it sees the count or the
 * thread sees the word. A domain that was closed may be looked at for ever (arena.c): its word is another.
 */
static inline int pldk__enter(struct pldk_domain *domain, struct pldk__thread **out)
{
	struct pldk__thread *thread = pldk__self;
	struct pldk_domain *world;

	*out = NULL;
	if (pldk__unlikely(!domain || pldk__load_acquire(&domain->magic) != PLDK__MAGIC_DOMAIN))
		return pldk__enter_refused(domain);
	world = domain->world;
	if (pldk__unlikely(!thread || thread->world != world)) {
		int ret = world ? pldk__thread_attach(world) : pldk__enter_refused(domain);

		if (ret)
			return ret;
		thread = pldk__self;
	}
	pldk__store_relaxed(&thread->domain, domain);
	pldk__store_relaxed(&thread->inside, thread->inside + 1);
	pldk__fence_signal();
	if (pldk__unlikely(pldk__load_acquire(&domain->magic) != PLDK__MAGIC_DOMAIN)) {
		pldk__store_relaxed(&thread->inside, thread->inside - 1);
		return pldk__enter_refused(domain);
	}
	*out = thread;
	return 0;
}

static inline void pldk__leave(struct pldk__thread *thread)
{
	pldk__store_release(&thread->inside, thread->inside - 1);
}

/* "rank 3 (pid 4123, stopped, last: put #16, 9.2 s ago)": for sentences about who is late. */
void pldk__rank_text(struct pldk__text *text, struct pldk_domain *domain, uint32_t rank);
/* The sentence of a poisoned domain, and its errno: -ECANCELED, or -EPROTO for a subset whose lists differ. */
int pldk__fail_poison(struct pldk_domain *domain, const char *op);
/* Process id of a rank, for sentences. A member that never came to its subset has one in the world. */
static inline uint32_t pldk__pid_of(const struct pldk_domain *domain, uint32_t rank)
{
	uint32_t pid = pldk__member_of(domain->pd->status, rank)->pid;

	return pid ? pid : pldk__member_of(domain->world->pd->status, pldk__world_rank(domain, rank))->pid;
}

/* The sentence of a rank that comes to a world which was poisoned before; for providers' join(). -ECANCELED */
int pldk__fail_poisoned(uint32_t code, uint32_t rank);
/* "exited with code 3", "was killed by SIGKILL (9)", "closed its handle", "finalised": for sentences. */
const char *pldk__member_how(const struct pld_member *member, char *buf, size_t len);

/* Open a system window of a domain; all ranks ask for the same. bytes are of one slab. */
int pldk__system_open(struct pldk_domain *domain, uint32_t which, uint32_t kind, uint32_t flags, uint64_t bytes,
		      struct pldk__map **out);

/*
 * Windows, views, checks of arguments: window.c, tensor.c. Each check sets the sentence; op is the public name ("put").
 */

/**
 * struct pldk_window - an open window
 *
 * Fixed while it is open. The shell outlives pldk_window_destroy() until the domain closes (magic PLDK__MAGIC_DEAD);
 * then its memory reads as zero (arena.c). So a stale view is told instead of crashing.
 */
struct pldk_window {
	uint32_t magic;
	uint32_t kind; /* PLD_WINDOW_* */
	struct pldk_domain *domain;
	struct pldk__map *map; /* NULL once destroyed */
	uint64_t bytes;
	uint32_t id;
	uint32_t generation;
	uint32_t flags; /* PLD_WINDOW_F_* */
	uint32_t ncells;
	uint32_t ndim; /* 0: sized in bytes */
	uint32_t dtype;
	uint32_t waiters; /* atomic: waits and collectives of this rank that use it; only at 0 it can become CLOSED */
	int64_t shape[PLDK_MAX_DIMS];
	char name[PLDK__NAME_MAX]; /* "" or what the user said */
	uint32_t coll_layout; /* of the collectives on it, see coll_credit.c; 0 before the first */
	uint32_t coll_site;   /* of the newest of them */
	struct pldk_window *next;
};

/* Memory for a window of the domain, zeroed. One thread at a time: pldk__coll_enter(). NULL without memory. */
struct pldk_window *pldk__shell_new(struct pldk_domain *domain);
void pldk__shells_end(struct pldk_domain *domain);
/* "window 3 \"grads\"" for sentences. */
const char *pldk__window_text(const struct pldk_window *window, char *buf, size_t len);
/* The open window of a map, or NULL: for sentences. */
const struct pldk_window *pldk__window_of(struct pldk_domain *domain, const struct pldk__map *map);
const struct pldk_window *pldk__window_by_id(struct pldk_domain *domain, uint32_t id);
/* The open data window of which this rank's slab has all these bytes, held; or NULL. */
struct pldk_window *pldk__window_at(struct pldk_domain *domain, const void *address, uint64_t len);

/* Bit of waiters: the window is destroyed, or is about to be, and nobody may begin to wait. */
#define PLDK__WAITERS_CLOSED 0x80000000u

/* Begin to use it: until pldk__window_release() it is neither destroyed nor reset. False: it is being destroyed. */
static inline bool pldk__window_hold(struct pldk_window *window)
{
	if (pldk__likely(!(pldk__add_seq(&window->waiters, 1) & PLDK__WAITERS_CLOSED)))
		return true;
	pldk__sub_seq(&window->waiters, 1);
	return false;
}

static inline void pldk__window_release(struct pldk_window *window)
{
	pldk__sub_seq(&window->waiters, 1);
}

/* Fail with -ESTALE: it was destroyed. */
int pldk__stale(const struct pldk_window *window, const char *op);
/* -EINVAL NULL or no window, -ESTALE destroyed */
int pldk__check_window(const struct pldk_window *window, const char *op);
/* and -EDOM: a data window where cells are wanted; -EINVAL the cell */
int pldk__check_cell(const struct pldk_window *signal, int64_t cell, const char *op);
/* -EINVAL "peer 4 is not in 0..3: did you mean (r-1+P)%P?" */
int pldk__check_peer(const struct pldk_domain *domain, int peer, const char *op);
/* -EINVAL, -EDOM (a tensor), -ESTALE (window destroyed or made anew) */
int pldk__check_view(const struct pldk_dtensor *view, const char *op);
/* -EINVAL, -EDOM (a view). NULL data is legal only if an extent is 0 */
int pldk__check_tensor(const struct pldk_tensor *tensor, const char *op);
int pldk__check_dtype(uint32_t dtype, const char *op);
/* Elements of a shape, or -EOVERFLOW (also if elements * size overflows). Extents are >= 0. */
int pldk__shape_count(int ndim, const int64_t *shape, size_t elem_size, uint64_t *out_count);
/* "[4,256]" */
const char *pldk__shape_text(int ndim, const int64_t *shape, char *buf, size_t len);
/* Resolve symbols into out[]; every extent > 0. -EINVAL, -ENOENT (symbol not bound) */
int pldk__shape_resolve(struct pldk_domain *domain, int ndim, const int64_t *shape, int64_t *out, const char *op);

/*
 * Waiting: wait.c
 */

/* Relative public timeout to an absolute deadline (PLD_DEADLINE_POLL, PLD_DEADLINE_NEVER, CLOCK_MONOTONIC ns). */
uint64_t pldk__deadline(int64_t timeout_ns);
/* The same for transfers, which cannot be tried: 0 is PLDK_TIMEOUT_DEFAULT, and if that is 0, for ever. */
uint64_t pldk__far_deadline(int64_t timeout_ns);

/**
 * pldk__wait_for() - every wait of the library: look, spin, judge, sleep; and say why it failed
 * @domain: of all cells
 * @thread: from pldk__enter()
 * @wait: deadline_ns may be PLD_DEADLINE_POLL
 * @wakes: sleepers that notifies just before have seen: woken here, at the latest before this thread sleeps
 * @op: for the sentence: "wait", "barrier"
 *
 * Return: 0, or as pldk_wait(), sentence set. preds[].seen are always written.
 */
int pldk__wait_for(struct pldk_domain *domain, struct pldk__thread *thread, struct pldk__wait *wait,
		   const struct pldk__wake *wakes, uint32_t nwakes, const char *op);

/* -ECANCELED with its sentence if the domain is poisoned, else 0. */
static inline int pldk__check_poison(struct pldk_domain *domain, const char *op)
{
	return pldk__unlikely(pldk__load_relaxed(&domain->pd->status->poison)) ? pldk__fail_poison(domain, op) : 0;
}

/**
 * pldk__notify_one() - the notify that every path ends in; arguments are checked
 * @wakes: room for one more entry at *nwakes, or NULL to wake at once
 *
 * Near: user-space atomic. Far: through the provider, and only then the deadline counts. The caller settled its far
 * lanes (pldk__far_settle()).
 */
int pldk__notify_one(struct pldk_domain *domain, const struct pldk__map *map, uint32_t peer, uint32_t cell, uint32_t op,
		     int64_t value, uint64_t deadline_ns, struct pldk__wake *wakes, uint32_t *nwakes);

/*
 * What the other files of the library give.
 */

/* lane.c: complete what this thread has started to far ranks other than except (-1: none), before notifying. */
int pldk__far_settle(struct pldk_domain *domain, int except, uint64_t deadline_ns);
/* handle.c: the domain closes, its handles are ended. */
void pldk__handles_end(const struct pldk_domain *domain);
/*
 * coll_queue.c: complete the collectives that were started; before anything else that takes a number. err: 0, or the
 * caller has failed already, with the thread's sentence. Between pldk__coll_lock() and pldk__coll_unlock().
 *
 * Return: 0, also if they failed: that is their handles' affair. What they could not be completed for is err, if there
 * is one, else -ETIMEDOUT, -EAGAIN or -EINTR.
 */
int pldk__coll_drain(struct pldk_domain *domain, struct pldk__thread *thread, uint64_t deadline_ns, int err);
/* coll.c: free domain->data and close its system windows. */
void pldk__coll_close(struct pldk_domain *domain);

#endif /* _PLDK_INTERNAL_H */
