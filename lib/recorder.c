// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The flight recorder: the newest operations of each thread of each rank, in memory that outlives the rank.
 *
 * A slab of system window 0 is written by its rank only. A ring has one writer and no lock: the writer fills a slot and
 * then stores head + 1 (release); a reader takes head, copies, takes head again and keeps what cannot have been
 * overwritten meanwhile. So a slot that was half written when its rank was killed is never shown. The write side is
 * pldk__record() in internal.h.
 *
 * Rings 0..2 and the shared ring 3 lie in window 0. Ring r >= 4 lies in window PLDK__SYSTEM_RINGS + e, where
 * 4 << e <= r < 8 << e: each extension doubles the number of rings, and only ranks with many threads ever make one.
 */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#define LOOK_BACK 16	/* records that are searched for a stamp */
#define EXTENSIONS 6u /* 4 + 4 + 8 + 16 + 32 + 64 + 128 = 256 rings */

/**
 * struct pldk__recorder - the recorder of a world
 * @map: system window 0
 * @more: extensions that were opened, under the world's lock
 * @slab: own slab
 * @shared_lock: for threads that write to the shared ring
 */
struct pldk__recorder {
	struct pldk__map *map;
	struct pldk__map *more[EXTENSIONS];
	struct pldk__recorder_slab *slab;
	pthread_mutex_t shared_lock;
};

__thread struct pldk__thread *pldk__self __attribute__((tls_model("initial-exec")));

/* A ring in the slab of a rank, or NULL. The world's lock is held: an extension may have to be opened. */
static struct pldk__rec *ring_of(struct pldk_domain *world, uint32_t rank, uint32_t ring)
{
	struct pldk__recorder *recorder = world->recorder;
	struct pldk__recorder_slab *slab;
	char *more;
	uint32_t e;

	if (ring < PLDK__RINGS) {
		slab = (void *)pldk__slab(recorder->map, rank);
		return slab ? slab->rings + (size_t)ring * PLDK__RING_MAX : NULL;
	}
	e = 29 - (uint32_t)__builtin_clz(ring);
	if (e >= EXTENSIONS)
		return NULL;
	if (!recorder->more[e]) {
		pldk__fail_quiet(true);
		if (pldk__system_open(world, PLDK__SYSTEM_RINGS + e, PLD_WINDOW_DATA, PLD_WINDOW_F_OWNER_WRITES,
				      (uint64_t)(4u << e) * PLDK__RING_MAX * sizeof(struct pldk__rec),
				      &recorder->more[e]))
			recorder->more[e] = NULL;
		pldk__fail_quiet(false);
	}
	more = recorder->more[e] ? pldk__slab(recorder->more[e], rank) : NULL;
	return more ? (struct pldk__rec *)(void *)more + (size_t)(ring - (4u << e)) * PLDK__RING_MAX : NULL;
}

/**
 * pldk__recorder_open() - make the recorder of a world
 * @world: joined, with its lock
 * @ring_records: records of a ring; 0: no recorder, only lines that nobody sees
 *
 * Context: at join; the registry lock is held, so that no site is missed.
 * Return: 0, or as the provider's open().
 */
int pldk__recorder_open(struct pldk_domain *world, uint32_t ring_records)
{
	struct pldk__recorder *recorder;
	int ret;

	if (!ring_records)
		return 0;
	recorder = calloc(1, sizeof(*recorder));
	if (!recorder)
		return pldk__fail(-ENOMEM, "rank %u: init: no memory for the flight recorder", world->rank);
	ret = pldk__system_open(world, PLDK__SYSTEM_RECORDER, PLD_WINDOW_DATA, PLD_WINDOW_F_OWNER_WRITES,
				sizeof(struct pldk__recorder_slab), &recorder->map);
	if (ret) {
		free(recorder);
		return ret;
	}
	pthread_mutex_init(&recorder->shared_lock, NULL);
	recorder->slab = (void *)pldk__slab(recorder->map, world->rank);
	recorder->slab->version = PLDK__RECORDER_VERSION;
	recorder->slab->pid = (uint32_t)getpid();
	recorder->slab->ring_records = ring_records;
	recorder->slab->ns0 = pldk__now_ns();
	recorder->slab->tsc0 = pldk__tsc();
	recorder->slab->threads[PLDK__THREADS - 1].ring = PLDK__RING_SHARED;
	pldk__site_replay(recorder->slab);
	pldk__store_release(&recorder->slab->magic, PLDK__RECORDER_MAGIC);
	world->recorder = recorder;
	return 0;
}

/**
 * pldk__recorder_close() - let go of a world's recorder; its threads were detached
 */
void pldk__recorder_close(struct pldk_domain *world)
{
	struct pldk__recorder *recorder = world->recorder;
	uint32_t e;

	if (!recorder)
		return;
	world->recorder = NULL;
	for (e = 0; e < EXTENSIONS; e++) {
		if (recorder->more[e])
			world->ops->close(world->pd, recorder->more[e]);
	}
	world->ops->close(world->pd, recorder->map);
	pthread_mutex_destroy(&recorder->shared_lock);
	free(recorder);
}

/**
 * pldk__recorder_put_site() - write a site into one recorder
 */
void pldk__recorder_put_site(struct pldk__recorder_slab *slab, uint32_t id, uint32_t line, const char *file,
			     const char *func)
{
	struct pldk__site_slot *slot = &slab->sites[id - 1];

	slot->line = line;
	snprintf(slot->file, sizeof(slot->file), "%s", file);
	snprintf(slot->func, sizeof(slot->func), "%s", func);
	pldk__store_release(&slot->ready, 1);
}

/**
 * pldk__recorder_new_site() - write a site into every recorder of the process; the registry lock is held
 */
void pldk__recorder_new_site(uint32_t id, uint32_t line, const char *file, const char *func)
{
	struct pldk_domain *domain;

	for (domain = pldk__registry_first(); domain; domain = domain->next_of_process) {
		if (domain->recorder && domain->world == domain &&
		    pldk__load_relaxed(&domain->magic) != PLDK__MAGIC_FORKED)
			pldk__recorder_put_site(domain->recorder->slab, id, line, file, func);
	}
}

/*
 * Threads.
 */

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

/**
 * pldk__recorder_detach() - a thread lets go of its line
 * @thread: of the world whose lock is held
 * @is_forked: this process is a child: the line is the parent's, so leave it as it is
 */
void pldk__recorder_detach(struct pldk__thread *thread, bool is_forked)
{
	struct pldk__thread_line *line = thread->line;

	thread->line = &thread->own_line;
	thread->ring = thread->own_ring;
	thread->mask = 0;
	if (is_forked || line == &thread->own_line || thread->is_shared)
		return;
	pldk__store_relaxed(&line->now, (pldk__load_relaxed(&line->head) - 1) << 8 | PLDK__STATE_FINAL);
	pldk__store_release(&line->tid, 0);
}

static void thread_unlink(struct pldk__thread *thread)
{
	struct pldk__thread **link;

	for (link = &thread->world->threads; *link; link = &(*link)->next_of_world) {
		if (*link == thread) {
			*link = thread->next_of_world;
			return;
		}
	}
}

/* A thread exits: all its faces go. Worlds that closed before have cut theirs loose (world == NULL). */
static void thread_exit(void *faces)
{
	struct pldk__thread *thread = faces;
	struct pldk__thread *next;

	pldk__registry_lock();
	for (; thread; thread = next) {
		next = thread->next_of_thread;
		if (thread->world) {
			pthread_mutex_lock(&thread->world->lock);
			pldk__recorder_detach(thread, pldk__load_relaxed(&thread->world->magic) == PLDK__MAGIC_FORKED);
			thread_unlink(thread);
			pthread_mutex_unlock(&thread->world->lock);
		}
		free(thread);
	}
	pldk__registry_unlock();
	pldk__self = NULL;
}

static void make_exit_key(void)
{
	pthread_key_create(&exit_key, thread_exit);
}

/* Find a line and a ring for a new thread; else it uses the shared ones. The world's lock is held. */
static void thread_find_line(struct pldk_domain *world, struct pldk__thread *thread)
{
	struct pldk__recorder_slab *slab;
	uint32_t i;
	uint32_t ring;

	thread->line = &thread->own_line;
	thread->ring = thread->own_ring;
	thread->mask = 0;
	if (!world->recorder)
		return;
	slab = world->recorder->slab;
	for (i = 0; i < PLDK__THREADS - 1 && slab->threads[i].tid; i++)
		;
	ring = i < PLDK__RING_SHARED ? i : i + 1;
	thread->ring = i < PLDK__THREADS - 1 ? ring_of(world, world->rank, ring) : NULL;
	if (!thread->ring) {
		i = PLDK__THREADS - 1;
		ring = PLDK__RING_SHARED;
		thread->ring = ring_of(world, world->rank, ring);
		thread->is_shared = true;
	} else if (i >= slab->nthreads) {
		pldk__store_release(&slab->nthreads, i + 1);
	}
	thread->index = i;
	thread->mask = slab->ring_records - 1;
	thread->line = &slab->threads[i];
	thread->line->ring = ring;
	pldk__store_release(&thread->line->tid, thread->tid);
}

/**
 * pldk__thread_attach() - make pldk__self this thread's face in a world, a new one if it has none
 * @world: open
 *
 * Return: 0, -ENOMEM, or as pldk__enter_refused(): it was closed meanwhile.
 */
int pldk__thread_attach(struct pldk_domain *world)
{
	struct pldk__thread *faces;
	struct pldk__thread *thread;

	pthread_once(&exit_once, make_exit_key);
	faces = pthread_getspecific(exit_key);
	for (thread = faces; thread; thread = thread->next_of_thread) {
		if (thread->world == world) {
			pldk__self = thread;
			return 0;
		}
	}
	/* A face that its world has cut loose is used again: a thread that sees many worlds does not collect them. */
	for (thread = faces; thread; thread = thread->next_of_thread) {
		if (!pldk__load_acquire(&thread->world))
			break;
	}
	if (!thread) {
		if (posix_memalign((void **)&thread, PLDK__CACHE_LINE, sizeof(*thread)))
			return pldk__fail(-ENOMEM, "rank %u: no memory for a thread's state", world->rank);
		memset(thread, 0, sizeof(*thread));
		thread->next_of_thread = faces;
		if (pthread_setspecific(exit_key, thread)) {
			free(thread);
			return pldk__fail(-ENOMEM, "rank %u: no memory for a thread's state", world->rank);
		}
	}
	thread->inside = 0;
	thread->is_shared = false;
	thread->tid = (uint32_t)syscall(SYS_gettid);
	pthread_mutex_lock(&world->lock);
	if (pldk__load_acquire(&world->magic) != PLDK__MAGIC_DOMAIN) {
		pthread_mutex_unlock(&world->lock);
		return pldk__enter_refused(world);
	}
	thread_find_line(world, thread);
	thread->next_of_world = world->threads;
	world->threads = thread;
	pldk__store_release(&thread->world, world);
	pthread_mutex_unlock(&world->lock);
	pldk__self = thread;
	return 0;
}

/**
 * pldk__record_shared() - record for a thread that has no ring of its own
 */
struct pldk__rec *pldk__record_shared(struct pldk__thread *thread, const struct pldk__rec *rec)
{
	struct pldk__recorder *recorder = thread->world->recorder;
	struct pldk__thread_line *line = thread->line;
	struct pldk__rec *slot;

	pthread_mutex_lock(&recorder->shared_lock);
	slot = &thread->ring[line->head & thread->mask];
	pldk__store_relaxed(&slot->tsc, rec->tsc);
	pldk__store_relaxed(&slot->what, rec->what);
	pldk__store_relaxed(&slot->where, rec->where);
	pldk__store_relaxed(&slot->value, rec->value);
	pldk__store_release(&line->head, line->head + 1);
	pthread_mutex_unlock(&recorder->shared_lock);
	return slot;
}

/*
 * Reading. A slab is another process's memory: every number out of it is checked before it is used.
 */

/* Names of enum pldk_event_op; a hole is not a name. */
static const char *const event_names[] = {
	[PLDK_EV_PUT] = "put",
	[PLDK_EV_GET] = "get",
	[PLDK_EV_PUT_NOTIFY] = "put_notify",
	[PLDK_EV_REMOTE_LOAD] = "remote_load",
	[PLDK_EV_REMOTE_STORE] = "remote_store",
	[PLDK_EV_ATOMIC] = "atomic",
	[PLDK_EV_NOTIFY_ADD] = "notify_add",
	[PLDK_EV_NOTIFY_SET] = "notify_set",
	[PLDK_EV_WAIT] = "wait",
	[PLDK_EV_WAIT_END] = "wait_end",
	[PLDK_EV_TEST] = "test",
	[PLDK_EV_READ] = "read",
	[PLDK_EV_BARRIER] = "barrier",
	[PLDK_EV_ALLREDUCE] = "allreduce",
	[PLDK_EV_BROADCAST] = "broadcast",
	[PLDK_EV_ALLGATHER] = "allgather",
	[PLDK_EV_COLL_END] = "coll_end",
	[PLDK_EV_WINDOW_CREATE] = "window_create",
	[PLDK_EV_WINDOW_DESTROY] = "window_destroy",
	[PLDK_EV_WINDOW_RESET] = "window_reset",
	[PLDK_EV_JOIN] = "join",
	[PLDK_EV_LEAVE] = "leave",
	[PLDK_EV_ABORT] = "abort",
	[PLDK_EV_SUBSET] = "subset",
	[PLDK_EV_FLUSH] = "flush",
	[PLDK_EV_HANDLE_WAIT] = "handle_wait",
	[PLDK_EV_REDUCE_SCATTER] = "reduce_scatter",
	[PLDK_EV_ALL_TO_ALL] = "all_to_all",
	[PLDK_EV_ALL_TO_ALL_V] = "all_to_all_v",
	[PLDK_EV_REDUCE] = "reduce",
	[PLDK_EV_GATHER] = "gather",
	[PLDK_EV_SCATTER] = "scatter",
	[PLDK_EV_SCAN] = "scan",
	[PLDK_EV_EXSCAN] = "exscan",
};

/**
 * pldk_event_name() - see diag.h
 */
const char *pldk_event_name(uint32_t op)
{
	return op < PLDK__ARRAY_SIZE(event_names) && event_names[op] ? event_names[op] : "?";
}

/* A record on its way to the user: where it came from and the stamp that orders it. */
struct item {
	struct pldk__rec rec;
	uint64_t order; /* its stamp, or that of the newest stamped one before it in its ring */
	uint64_t index;
	uint32_t thread;
};

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a;
	const struct item *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static size_t read_ring(const struct pldk__thread_line *line, const struct pldk__rec *ring, uint32_t records,
			uint32_t thread, struct item *items)
{
	uint64_t head = pldk__load_acquire(&line->head);
	uint64_t first = head > records - 1 ? head - (records - 1) : 0;
	uint64_t stamp = 0;
	uint64_t keep;
	uint64_t i;
	size_t n = 0;
	size_t from;

	for (i = first; i < head; i++, n++) {
		const struct pldk__rec *rec = &ring[i & (records - 1)];

		items[n].rec.tsc = pldk__load_relaxed(&rec->tsc);
		items[n].rec.what = pldk__load_relaxed(&rec->what);
		items[n].rec.where = pldk__load_relaxed(&rec->where);
		items[n].rec.value = pldk__load_relaxed(&rec->value);
		items[n].index = i;
		items[n].thread = thread;
		if (items[n].rec.tsc)
			stamp = items[n].rec.tsc;
		items[n].order = stamp;
	}
	pldk__fence_acquire();
	head = pldk__load_relaxed(&line->head);
	/* The writer may be inside slot head: index i is whole only if i > head - records. */
	keep = head >= records ? head - records + 1 : 0;
	for (from = 0; from < n && items[from].index < keep; from++)
		;
	memmove(items, items + from, (n - from) * sizeof(*items));
	return n - from;
}

static void decode(const struct pldk__recorder_slab *slab, const struct item *item, uint32_t rank, double ns_per_tick,
		   struct pldk_event *event)
{
	const struct pldk__rec *rec = &item->rec;
	uint32_t site = (uint32_t)(rec->what >> 32);
	uint16_t peer = (uint16_t)rec->what;
	uint16_t window = (uint16_t)(rec->where >> 48);

	memset(event, 0, sizeof(*event));
	if (rec->tsc)
		event->time_ns = (int64_t)slab->ns0 + (int64_t)((double)(int64_t)(rec->tsc - slab->tsc0) * ns_per_tick);
	event->value = rec->value;
	event->offset = (int64_t)(rec->where & ((UINT64_C(1) << 48) - 1));
	event->op = (uint32_t)(rec->what >> 24) & 0xff;
	event->flags = (uint32_t)(rec->what >> 16) & 0xff;
	event->rank = (int)rank;
	event->thread = (int)item->thread;
	event->peer = peer == UINT16_MAX ? -1 : peer;
	event->window = window == UINT16_MAX ? -1 : window;
	if (site && site <= PLDK__SITES && pldk__load_acquire(&slab->sites[site - 1].ready)) {
		event->line = slab->sites[site - 1].line;
		memcpy(event->file, slab->sites[site - 1].file, sizeof(event->file) - 1);
	}
}

static double tick_ns(const struct pldk__recorder_slab *slab)
{
	uint64_t ns = pldk__now_ns() - slab->ns0;
	uint64_t ticks = pldk__tsc() - slab->tsc0;

	return ticks ? (double)ns / (double)ticks : 0;
}

/* Records of a rank's rings: its own choice, so not to be believed. 0: nonsense. */
static uint32_t records_of(const struct pldk__recorder_slab *slab)
{
	uint32_t records = pldk__load_relaxed(&slab->ring_records);

	return records && records <= PLDK__RING_MAX && !(records & (records - 1)) ? records : 0;
}

/* A rank's slab if it can be read here: mapped, and begun by a rank that runs this version. */
static const struct pldk__recorder_slab *slab_of(const struct pldk_domain *world, uint32_t rank)
{
	const struct pldk__recorder_slab *slab;

	if (!world->recorder)
		return NULL;
	slab = (const void *)pldk__slab(world->recorder->map, rank);
	if (!slab || pldk__load_acquire(&slab->magic) != PLDK__RECORDER_MAGIC ||
	    slab->version != PLDK__RECORDER_VERSION)
		return NULL;
	return slab;
}

static int read_slab(struct pldk_domain *world, uint32_t rank, struct pldk_event *events, size_t max)
{
	const struct pldk__recorder_slab *slab = slab_of(world, rank);
	uint32_t records;
	uint32_t nthreads;
	struct item *items;
	double ns_per_tick;
	size_t n = 0;
	size_t i;
	uint32_t t;

	records = slab ? records_of(slab) : 0;
	if (!records)
		return 0;
	nthreads = pldk__load_acquire(&slab->nthreads);
	if (nthreads > PLDK__THREADS - 1)
		nthreads = PLDK__THREADS - 1;
	items = malloc((nthreads + 1) * records * sizeof(*items));
	if (!items)
		return pldk__fail(-ENOMEM, "rank %u: recorder_read: no memory for %u records", world->rank,
				  (nthreads + 1) * records);
	for (t = 0; t <= nthreads; t++) {
		uint32_t number = t < nthreads ? t : PLDK__THREADS - 1;
		const struct pldk__thread_line *line = &slab->threads[number];
		const struct pldk__rec *ring;

		pthread_mutex_lock(&world->lock);
		ring = pldk__load_acquire(&line->head) ? ring_of(world, rank, pldk__load_relaxed(&line->ring)) : NULL;
		pthread_mutex_unlock(&world->lock);
		if (ring)
			n += read_ring(line, ring, records, number, items + n);
	}
	qsort(items, n, sizeof(*items), compare_items);
	ns_per_tick = tick_ns(slab);
	i = n > max ? n - max : 0;
	for (max = 0; i < n; i++, max++)
		decode(slab, &items[i], rank, ns_per_tick, &events[max]);
	free(items);
	return (int)max;
}

/**
 * pldk_recorder_read() - see diag.h
 */
int pldk_recorder_read(struct pldk_domain *domain, int rank, struct pldk_event *events, size_t max)
{
	struct pldk__thread *thread;
	int ret;

	ret = pldk__enter(domain, &thread);
	if (ret)
		return ret;
	ret = pldk__check_peer(domain, rank, "recorder_read");
	if (ret)
		goto out;
	if (domain != domain->world || (!events && max) || max > INT32_MAX) {
		ret = pldk__fail(-EINVAL, "rank %u: recorder_read: %s", domain->rank,
				 domain != domain->world ? "a world is wanted, not a subset" :
				 max > INT32_MAX ? "max is above 2147483647" : "events is NULL");
		goto out;
	}
	if (!domain->recorder || !pldk__slab(domain->recorder->map, (uint32_t)rank)) {
		ret = pldk__fail(-EOPNOTSUPP, "rank %u: recorder_read: %s", domain->rank,
				 domain->recorder ? "a far rank's recorder is not mapped here" : "PLDK_RING=0 turned it off");
		goto out;
	}
	ret = max ? read_slab(domain, (uint32_t)rank, events, max) : 0;
out:
	pldk__leave(thread);
	return ret;
}

/**
 * pldk__recorder_last() - what a rank did last, for sentences
 * @domain: of @rank's number
 * @buf: room for the text
 *
 * Return: @buf: "put #16, 9.2 s ago", or "" when it cannot be known here.
 */
const char *pldk__recorder_last(struct pldk_domain *domain, uint32_t rank, char *buf, size_t len)
{
	const struct pldk__recorder_slab *slab = slab_of(domain->world, pldk__world_rank(domain, rank));
	uint32_t records = slab ? records_of(slab) : 0;
	uint64_t newest = 0;
	uint64_t head;
	uint64_t number = 0;
	uint32_t last_op = 0;
	double ns_per_tick;
	uint32_t t;

	*buf = '\0';
	if (!records)
		return buf;
	ns_per_tick = tick_ns(slab);
	for (t = 0; t < PLDK__RING_SHARED; t++) {
		const struct pldk__rec *ring = slab->rings + (size_t)t * PLDK__RING_MAX;
		uint64_t begun = 0; /* number of the newest record that is not the end of something */
		uint64_t i;

		head = pldk__load_acquire(&slab->threads[t].head);
		/* Transfers have no stamp: the newest stamp before them tells the age, well enough. */
		for (i = head; i > 0 && head - i < LOOK_BACK; i--) {
			const struct pldk__rec *rec = &ring[(i - 1) & (records - 1)];
			uint32_t op = (uint32_t)(pldk__load_relaxed(&rec->what) >> 24) & 0xff;
			uint64_t tsc = pldk__load_relaxed(&rec->tsc);

			if (!begun && op != PLDK_EV_COLL_END && op != PLDK_EV_WAIT_END)
				begun = i;
			if (begun && tsc > newest) {
				newest = tsc;
				number = begun;
				last_op =
					(uint32_t)(pldk__load_relaxed(&ring[(begun - 1) & (records - 1)].what) >> 24) &
					0xff;
			}
			if (begun && tsc)
				break;
		}
	}
	if (newest)
		snprintf(buf, len, "%s #%llu, %.1f s ago", pldk_event_name(last_op), (unsigned long long)number, (double)(pldk__tsc() - newest) * ns_per_tick / 1e9);
	return buf;
}

/**
 * pldk__recorder_site_text() - a site number of another rank
 */
const char *pldk__recorder_site_text(struct pldk_domain *domain, uint32_t rank, uint32_t site, char *buf, size_t len)
{
	const struct pldk__recorder_slab *slab;
	const char *slash;

	if (rank == domain->rank)
		return pldk__site_text(site);
	slab = slab_of(domain->world, pldk__world_rank(domain, rank));
	if (!slab || !site || site > PLDK__SITES || !pldk__load_acquire(&slab->sites[site - 1].ready))
		return "?";
	snprintf(buf, len, "%.43s", slab->sites[site - 1].file);
	slash = strrchr(buf, '/');
	if (slash)
		memmove(buf, slash + 1, strlen(slash));
	if (slab->sites[site - 1].line)
		snprintf(buf + strlen(buf), len - strlen(buf), ":%u", slab->sites[site - 1].line);
	return buf;
}
