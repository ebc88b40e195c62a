// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Sleeping and waking on the embedded provider, and the ledger of who waits for what.
 *
 * The protocol is the one of kmod/wait.c, "Sleeping and waking" (its spin model is in selftests/litmus), with a
 * doorbell in place of the kernel's queue: all threads of a rank sleep on one futex, shm_rank.doorbell, whatever they
 * wait for. So a vector wait costs one sleep, and a death, a poison or a verdict rings the same bell as a notify.
 *
 *	waiter						notifier
 *	(A)  cell.sleepers++, full barrier		(B)  cell.value changed, full barrier
 *	     bell = doorbell				     cell.sleepers == 0: done
 *	     predicate holds, or may not be waited		(C)  doorbell++, futex wake
 *	     for any more: leave
 *	     futex wait while doorbell == bell
 *
 * If the waiter read the old value, its read came before (B), hence (A) before the notifier's read of sleepers, which
 * is not 0; and bell was read before (C). The kernel compares doorbell and bell under the lock that the wake takes:
 * it finds them different, or the waiter is queued and the wake finds it. Without either full barrier both sides may
 * read the old word of the other. A waiter that was killed leaves sleepers too high: that costs wakes, nothing else.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shm.h"

/*
 * How often a sleeper looks at its peers. In the first half second after the last ring of its bell a death is noticed
 * within 100 ms, and then explained soon, if its launcher can. Later, within half a second: many ranks that wait long
 * must not wake all the time (8 of them, 10 s: under 20 ms of CPU together). Who may be idle (F_IDLE) wakes less than
 * once a second after two.
 */
#define SLICE_NS UINT64_C(50000000)
#define SLICE_SOON_NS UINT64_C(10000000)
#define LONG_AFTER_NS UINT64_C(500000000)
#define SLICE_LONG_NS UINT64_C(450000000)
#define IDLE_AFTER_NS UINT64_C(2000000000)
#define SLICE_IDLE_NS UINT64_C(1100000000)

static uint64_t slice_ns(uint64_t rested_ns, bool may_idle)
{
	if (may_idle && rested_ns > IDLE_AFTER_NS)
		return SLICE_IDLE_NS;
	return rested_ns > LONG_AFTER_NS ? SLICE_LONG_NS : SLICE_NS;
}

/**
 * pldk__shm_line() - a line of the ledger. Touch it only if pldk__shm_line_reserved()
 */
struct shm_line *pldk__shm_line(struct shm_world *world, uint32_t index)
{
	return (struct shm_line *)(void *)((char *)world->header + SHM_LINES) + index;
}

/**
 * pldk__shm_line_reserved() - is there memory behind a line? Else it was never used
 */
bool pldk__shm_line_reserved(struct shm_world *world, uint32_t index)
{
	uint64_t *bits = (uint64_t *)(void *)((char *)world->header + SHM_LINE_BITS);

	return pldk__load_acquire(&bits[index / 64]) >> index % 64 & 1;
}

static bool line_reserve(struct shm_world *world, uint32_t index)
{
	uint64_t *bits = (uint64_t *)(void *)((char *)world->header + SHM_LINE_BITS);

	if (pldk__shm_line_reserved(world, index))
		return true;
	if (pldk__shm_reserve(world->fd, SHM_LINES + index * SHM_PAGE, SHM_PAGE))
		return false;
	pldk__or_seq(&bits[index / 64], UINT64_C(1) << index % 64);
	return true;
}

/*
 * A free line, owned from now on. The lines of a rank are its number in the world plus multiples of the world's size:
 * nobody else's ever, and a dead rank's place is not given again. NULL when there is none: then the wait is not in the
 * ledger, and its process counts as live.
 */
static struct shm_line *line_take(struct shm_pd *pd)
{
	struct shm_world *world = pd->view.world;
	const uint32_t step = world->header->nranks;
	const uint32_t hint = pldk__load_relaxed(&pd->line_hint);
	uint32_t index = hint;

	do {
		struct shm_line *line;
		uint64_t owner;

		if (!line_reserve(world, index))
			return NULL;
		line = pldk__shm_line(world, index);
		owner = 0;
		if (!pldk__load_relaxed(&line->owner) && pldk__cas_seq(&line->owner, &owner, pd->claim)) {
			pldk__store_relaxed(&pd->line_hint, index);
			return line;
		}
		index = index + step < SHM_NLINES ? index + step : pd->world_rank;
	} while (index != hint);
	return NULL;
}

/* Write the wait into the ledger. gen becomes odd last: whoever reads the same odd gen twice has read one wait. */
static struct shm_line *line_publish(struct shm_pd *pd, const struct pldk__wait *wait)
{
	struct shm_line *line = line_take(pd);
	uint32_t i;

	if (!line)
		return NULL;
	line->tid = (uint32_t)syscall(SYS_gettid);
	line->domain = pd->view.offset;
	line->rank = pd->base.rank;
	line->world_rank = pd->world_rank;
	line->npreds = wait->npreds;
	line->flags = wait->flags;
	line->site = wait->site;
	line->deadline_ns = wait->deadline_ns;
	line->since_ns = pldk__now_ns();
	for (i = 0; i < wait->npreds && i < SHM_LINE_PREDS; i++) {
		const struct pldk__pred *p = &wait->preds[i];
		const struct shm_map *map = pldk__shm_map(p->map);

		line->preds[i] = (struct shm_pred){
			.cell = map->slabs + pd->base.rank * p->map->stride + p->cell * (uint64_t)PLD_CELL_SIZE,
			.expected = p->expected,
			.from = p->from,
			.cmp = p->cmp,
			.window_id = p->map->id,
			.index = p->cell,
		};
	}
	pldk__store_relaxed(&line->verdict, 0);
	pldk__add_seq(&line->gen, 1);
	return line;
}

static void line_retract(struct shm_line *line)
{
	if (!line)
		return;
	pldk__add_seq(&line->gen, 1);
	pldk__store_release(&line->owner, 0);
}

/**
 * pldk__shm_wake() - see struct pldk_provider_ops
 *
 * Context: async-signal-safe.
 */
void pldk__shm_wake(struct pldk__pdomain *base, const struct pldk__wake *wakes, uint32_t nwakes)
{
	const struct shm_view *view = &pldk__shm_pd(base)->view;
	uint64_t rung[PLD_MAX_RANKS / 64] = { 0 };
	int keep = errno;
	uint32_t i;

	/* Every value was changed before this call: one ring a rank shows them all. */
	for (i = 0; i < nwakes; i++) {
		const uint32_t rank = wakes[i].rank;

		if (rung[rank / 64] >> rank % 64 & 1)
			continue;
		rung[rank / 64] |= UINT64_C(1) << rank % 64;
		pldk__shm_ring(view, rank);
	}
	errno = keep;
}

static void sleepers_add(struct shm_pd *pd, const struct pldk__wait *wait, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < wait->npreds; i++)
		pldk__add_seq(&pldk__cell_at(wait->preds[i].map, pd->base.rank, wait->preds[i].cell)->sleepers, n);
	pldk__add_seq(&pd->view.ranks[pd->base.rank].sleeping, n);
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
}

/* Does this wait need the agent: is a far rank among those that may notify, or is this rank far for them? */
static bool needs_agent(const struct shm_pd *pd, const struct pldk__wait *wait)
{
	uint32_t i;

	for (i = 0; pd->lane && i < wait->npreds; i++) {
		const uint32_t from = wait->preds[i].from;

		if (pd->world_rank % 2 ? from != pd->base.rank : from == PLD_RANK_ANY || pd->far[from])
			return true;
	}
	return false;
}

/* The sleep proper, from (A) on. */
static int sleep_until(struct shm_pd *pd, struct pldk__wait *wait, struct shm_line *line, struct shm_watch *watch)
{
	uint32_t *doorbell = &pd->view.ranks[pd->base.rank].doorbell;
	uint32_t last_bell = pldk__load_relaxed(doorbell);
	uint64_t now = pldk__now_ns();
	uint64_t rung = now; /* when the bell was last seen to change */
	uint64_t look = now + SLICE_NS; /* at the peers */
	uint64_t judge = now + SLICE_NS; /* for a deadlock */
	uint64_t pause = SLICE_NS;
	bool interrupted = false;
	int ret;

	for (;;) {
		const uint32_t bell = pldk__load_seq(doorbell);
		struct timespec until;
		uint64_t verdict;
		uint64_t end;

		pldk__fence_seq(); /* (A) before the values are read */
		if (pldk__wait_holds(pd->base.rank, wait))
			return 0;
		/* Before deaths are judged: others who got the same verdict may have left by now. */
		verdict = line ? pldk__load_acquire(&line->verdict) : 0;
		if (verdict && SHM_VERDICT_GEN(verdict) == line->gen) {
			wait->out_verdict = SHM_VERDICT_NUMBER(verdict);
			return -EDEADLK;
		}
		ret = pldk__wait_judge(pd->base.status, pd->base.rank, wait);
		if (ret) /* it may have notified just before it died */
			return pldk__wait_holds(pd->base.rank, wait) ? 0 : ret;
		if (interrupted)
			return -EINTR;
		now = pldk__now_ns();
		if (now >= wait->deadline_ns)
			return -ETIMEDOUT;
		if (bell != last_bell) {
			last_bell = bell;
			rung = now;
		}
		if (now >= look) {
			const bool soon = pldk__shm_watch(pd, watch);

			if (needs_agent(pd, wait) && pldk__far_lane_check(pd->lane)) {
				wait->out_rank = PLD_RANK_ANY; /* no rank: the sentence is the agent's */
				return pldk__wait_holds(pd->base.rank, wait) ? 0 : -EOWNERDEAD;
			}
			look = now + (soon ? SLICE_SOON_NS : slice_ns(now - rung, wait->flags & PLD_WAIT_F_IDLE));
		}
		if (now >= judge) {
			pldk__shm_deadlock(pd);
			judge = now + pause;
			/* At 50, 100, 200, 400, then each 800 ms: a verdict within a second of the last fact. */
			if (pause < 16 * SLICE_NS)
				pause *= 2;
		}
		end = wait->deadline_ns < look ? wait->deadline_ns : look;
		until = timespec_of(end);
		ret = (int)syscall(SYS_futex, doorbell, FUTEX_WAIT_BITSET, bell, &until, NULL, FUTEX_BITSET_MATCH_ANY);
		interrupted = ret < 0 && errno == EINTR;
	}
}

/**
 * pldk__shm_sleep() - see struct pldk_provider_ops
 */
int pldk__shm_sleep(struct pldk__pdomain *base, struct pldk__wait *wait, const struct pldk__wake *wakes,
		    uint32_t nwakes)
{
	struct shm_pd *pd = pldk__shm_pd(base);
	struct shm_watch watch;
	struct shm_line *line;
	int keep = errno;
	int ret;

	if (nwakes)
		pldk__shm_wake(base, wakes, nwakes);
	line = line_publish(pd, wait);
	sleepers_add(pd, wait, 1); /* (A) */
	watch.n = 0;
	watch.next = 0;
	ret = sleep_until(pd, wait, line, &watch);
	pldk__shm_watch_end(&watch);
	sleepers_add(pd, wait, (uint32_t)-1);
	line_retract(line);
	errno = keep;
	return ret;
}

/* Generation of a window, 0 if it is gone. Only read: nothing is mapped, nothing allocated. */
static uint32_t generation_of(struct shm_world *world, uint64_t domain, const struct shm_domain *dom, uint32_t id)
{
	struct shm_window win;
	uint64_t word;

	if (id >= SHM_NWINDOWS || pldk__shm_read(world->fd, &word, sizeof(word), domain + dom->windows + id * 8ull) ||
	    !word || pldk__shm_read(world->fd, &win, sizeof(win), SHM_SLOT_PAGE(word) * SHM_PAGE) ||
	    win.magic != SHM_WINDOW_MAGIC)
		return 0;
	return win.generation;
}

/**
 * pldk__shm_line_entry() - a line as tools and sentences show it: the first predicate that does not hold
 */
void pldk__shm_line_entry(struct shm_world *world, const struct shm_line *line, struct pld_ledger_entry *out)
{
	struct pld_cell cell = { 0 };
	const struct shm_pred *p = line->preds;
	const uint64_t domain = line->domain;
	struct shm_domain dom = { 0 };
	uint32_t i;

	for (i = 0; i < line->npreds && i < SHM_LINE_PREDS; i++) {
		p = &line->preds[i];
		if (pldk__shm_read(world->fd, &cell, sizeof(cell), p->cell) ||
		    !pld_cmp_holds(cell.value, p->cmp, p->expected))
			break;
	}
	if (pldk__shm_read(world->fd, &dom, sizeof(dom), domain) || dom.magic != SHM_DOMAIN_MAGIC)
		memset(&dom, 0, sizeof(dom));
	*out = (struct pld_ledger_entry){
		.domain_id = dom.id,
		.pid = SHM_CLAIM_PID(pldk__load_relaxed(&line->owner)),
		.generation = dom.magic ? generation_of(world, domain, &dom, p->window_id) : 0,
		.rank = line->rank,
		.tid = line->tid,
		.window_id = p->window_id,
		.cell = p->index,
		.cmp = p->cmp,
		.from = p->from,
		.expected = p->expected,
		.value = cell.value,
		.since_ns = line->since_ns,
		.deadline_ns = line->deadline_ns,
		.site = line->site,
		.npreds = line->npreds,
		.flags = line->flags,
		.last_notifier =
			PLD_PROVENANCE_SEQ(cell.provenance) ? PLD_PROVENANCE_RANK(cell.provenance) : PLD_RANK_ANY,
	};
}

/**
 * pldk__shm_ledger() - see struct pldk_provider_ops
 */
int pldk__shm_ledger(struct pldk__pdomain *base, struct pld_ledger_entry *entries, uint32_t *n)
{
	struct shm_pd *pd = pldk__shm_pd(base);
	struct shm_world *world = pd->view.world;
	const uint32_t room = *n;
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < SHM_NLINES; i++) {
		struct pld_ledger_entry entry;
		struct shm_line *line;
		uint32_t gen;

		if (!pldk__shm_line_reserved(world, i))
			continue;
		line = pldk__shm_line(world, i);
		gen = pldk__load_acquire(&line->gen);
		if (!(gen & 1) || line->domain != pd->view.offset || line->rank >= base->nranks ||
		    pldk__shm_is_gone(&pd->view, line->rank))
			continue;
		pldk__shm_line_entry(world, line, &entry);
		pldk__fence_acquire();
		if (pldk__load_relaxed(&line->gen) != gen)
			continue;
		if (count < room)
			entries[count] = entry;
		count++;
	}
	*n = count;
	return 0;
}
