// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Who is alive: claims of processes, the end of a membership, doorbells, and what a dead rank leaves behind.
 *
 * How a membership ended is one word, shm_rank.end, that moves once from 0. Everything else that shows it (the member's
 * state, the counts, the event word) is a copy that anybody may complete, so a process may be killed between any two
 * instructions here: the next one that looks goes on from there. The launcher's word arrives through mark_dead(); when
 * nobody says it, the sleepers find out: each looks after its peers' pidfds whenever a slice of its sleep ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm.h"

#define WORD_NS UINT64_C(25000000) /* what a launcher gets to say how a rank ended that it has reaped */

/**
 * pldk__shm_stat() - state, parent, threads and start time of a process
 *
 * Return: 0, or -ESRCH (gone, or /proc does not show it).
 */
int pldk__shm_stat(uint32_t pid, struct shm_stat *out)
{
	unsigned long long start;
	long nthreads;
	int parent;
	char path[32];
	char buf[1024];
	const char *s;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ESRCH;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return -ESRCH;
	buf[n] = 0;
	/*
	 * The name in parentheses may hold anything. Behind it: state is field 3, ppid 4, num_threads 20, starttime 22,
	 * exit_code the last.
	 */
	s = strrchr(buf, ')');
	if (!s || sscanf(s + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
			 &out->state, &parent, &nthreads, &start) != 4)
		return -ESRCH;
	out->parent = (uint32_t)parent;
	out->nthreads = (uint32_t)nthreads;
	out->start = start;
	s = strrchr(buf, ' ');
	out->wait_status = s ? atoi(s + 1) : 0;
	return 0;
}

/**
 * pldk__shm_claim_self() - claim of the calling process
 */
uint64_t pldk__shm_claim_self(void)
{
	struct shm_stat st;
	uint32_t pid = (uint32_t)getpid();

	return SHM_CLAIM(pid, pldk__shm_stat(pid, &st) ? 0 : st.start);
}

static bool poll_ended(int pidfd)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

/* A pidfd of exactly that process; -ESRCH: it is gone; another errno: cannot tell. */
static int claim_open(uint64_t claim)
{
	uint32_t pid = SHM_CLAIM_PID(claim);
	struct shm_stat st;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return -errno;
	/* The pidfd holds on to a process; the start time tells whether it is the one that made the claim. */
	if (SHM_CLAIM_START(claim) && !pldk__shm_stat(pid, &st) &&
	    SHM_CLAIM_START(SHM_CLAIM(pid, st.start)) != SHM_CLAIM_START(claim)) {
		close(fd);
		return -ESRCH;
	}
	return fd;
}

/**
 * pldk__shm_claim_alive() - does the process of a claim still run?
 *
 * A zombie does not. When nothing can be found out (no descriptor left), it is taken to be alive.
 */
bool pldk__shm_claim_alive(uint64_t claim)
{
	struct shm_stat st;
	bool alive;
	int fd;

	fd = claim_open(claim);
	if (fd == -ESRCH)
		return false;
	if (fd >= 0) {
		alive = !poll_ended(fd);
		close(fd);
		return alive;
	}
	if (pldk__shm_stat(SHM_CLAIM_PID(claim), &st))
		return !kill((pid_t)SHM_CLAIM_PID(claim), 0) || errno != ESRCH;
	return st.state != 'Z' && st.state != 'X' &&
	       (!SHM_CLAIM_START(claim) ||
		SHM_CLAIM_START(SHM_CLAIM(SHM_CLAIM_PID(claim), st.start)) == SHM_CLAIM_START(claim));
}

/**
 * pldk__shm_ring() - make the sleeping threads of a rank look again
 *
 * After what they shall see was stored. (C) pairs with (A) in pldk__shm_sleep(): a thread counts itself in
 * shm_rank.sleeping before it reads the doorbell, so either it reads the new doorbell and sees what was stored before
 * it, or it is counted here and the futex call finds it (asleep, or about to fail because the doorbell has changed).
 */
void pldk__shm_ring(const struct shm_view *view, uint32_t rank)
{
	struct shm_rank *r = &view->ranks[rank];

	pldk__add_seq(&r->doorbell, 1); /* (C) */
	if (pldk__load_seq(&r->sleeping))
		syscall(SYS_futex, &r->doorbell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void raise_to(uint32_t *word, uint32_t value)
{
	uint32_t old = pldk__load_relaxed(word);

	while (old < value && !pldk__cas_seq(word, &old, value))
		;
}

/* Counts only grow, so counting again and raising is right whoever does it, and however often. Then tell everybody. */
static void announce(const struct shm_view *view)
{
	uint32_t joined = 0;
	uint32_t finalised = 0;
	uint32_t dead = 0;
	uint32_t state;
	uint32_t i;

	for (i = 0; i < view->nranks; i++) {
		state = pldk__load_acquire(&pldk__shm_member(view, i)->state);
		joined += state != PLD_MEMBER_ABSENT && pldk__load_relaxed(&view->ranks[i].claim);
		finalised += state == PLD_MEMBER_FINALISED;
		dead += state > PLD_MEMBER_FINALISED;
	}
	raise_to(&view->status->joined, joined);
	raise_to(&view->status->finalised, finalised);
	raise_to(&view->status->dead, dead);
	pldk__add_seq(&view->status->events, 1);
	for (i = 0; i < view->nranks; i++)
		pldk__shm_ring(view, i);
}

/* Copy the end of a membership to where waiters look. Again if a launcher corrected it meanwhile. */
static void end_show(const struct shm_view *view, uint32_t rank)
{
	struct pld_member *m = pldk__shm_member(view, rank);
	uint32_t any = PLD_RANK_ANY;
	uint64_t end;

	do {
		end = pldk__load_seq(&view->ranks[rank].end);
		pldk__store_relaxed(&m->status, SHM_END_STATUS(end));
		if (SHM_END_STATE(end) > PLD_MEMBER_FINALISED)
			pldk__cas_seq(&view->status->first_dead, &any, rank);
		pldk__store_seq(&m->state, SHM_END_STATE(end));
	} while (pldk__load_seq(&view->ranks[rank].end) != end);
	announce(view);
}

/**
 * pldk__shm_member_end() - a membership ends
 * @state: PLD_MEMBER_FINALISED or a death
 * @status: exit code, POSIX signal, or SHM_STATUS_UNKNOWN
 *
 * The first word counts, but a launcher that knows how a rank ended corrects one who could only see that it did.
 */
void pldk__shm_member_end(const struct shm_view *view, uint32_t rank, uint32_t state, int status)
{
	struct shm_rank *r = &view->ranks[rank];
	uint64_t end = 0;
	const uint64_t guess = SHM_END(PLD_MEMBER_EXITED, SHM_STATUS_UNKNOWN);
	const uint64_t want = SHM_END(state, status);

	if (!pldk__cas_seq(&r->end, &end, want)) {
		if (end != guess || want == guess || !pldk__cas_seq(&r->end, &end, want))
			return;
	}
	pldk__store_relaxed(&r->since_ns, pldk__now_ns());
	end_show(view, rank);
}

/**
 * pldk__shm_member_join() - take a place
 *
 * Return: 0, -EEXIST (alive), -ESTALE (gone) without a sentence.
 */
int pldk__shm_member_join(const struct shm_view *view, uint32_t rank, uint64_t claim)
{
	struct pld_member *m = pldk__shm_member(view, rank);
	struct shm_rank *r = &view->ranks[rank];
	uint32_t absent = PLD_MEMBER_ABSENT;
	uint64_t old = 0;

	if (pldk__shm_is_gone(view, rank))
		return -ESTALE;
	if (!pldk__cas_seq(&r->claim, &old, claim)) {
		if (pldk__shm_claim_alive(old))
			return -EEXIST;
		pldk__shm_member_end(view, rank, PLD_MEMBER_EXITED, SHM_STATUS_UNKNOWN);
		return -ESTALE;
	}
	pldk__store_relaxed(&r->since_ns, pldk__now_ns());
	pldk__store_relaxed(&m->pid, SHM_CLAIM_PID(claim));
	/* The launcher may have declared this place dead: then it stays dead. */
	if (!pldk__cas_seq(&m->state, &absent, PLD_MEMBER_ALIVE) || pldk__shm_is_gone(view, rank)) {
		end_show(view, rank);
		return -ESTALE;
	}
	announce(view);
	return 0;
}

/**
 * pldk__shm_rank_of() - a rank of the world as a member of a domain
 *
 * Return: its rank there, or -1.
 */
int pldk__shm_rank_of(const struct shm_view *view, uint32_t world_rank)
{
	uint32_t i;

	for (i = 0; i < view->nranks; i++)
		if (view->ranks[i].world_rank == world_rank)
			return (int)i;
	return -1;
}

/**
 * pldk__shm_process_end() - a rank of the world died: tell all its domains
 */
void pldk__shm_process_end(struct shm_world *world, uint32_t world_rank, uint32_t state, int status)
{
	struct shm_walk walk = { 0 };
	struct shm_view view;
	int rank;

	/* The world first: who hears of it in a subset finds it true there. */
	if (!pldk__shm_view_map(world, world->header->world, &view)) {
		pldk__shm_member_end(&view, world_rank, state, status);
		pldk__shm_view_unmap(&view);
	}
	while (pldk__shm_walk(world, &walk, &view)) {
		rank = pldk__shm_rank_of(&view, world_rank);
		if (rank >= 0) {
			pldk__shm_member_end(&view, (uint32_t)rank, state, status);
			pldk__shm_domain_free(world, &view);
		}
		pldk__shm_view_unmap(&view);
	}
}

/**
 * pldk__shm_domain_free() - free a subset domain that nobody can use any more
 *
 * That is when every member is gone, or never came and is gone from the world. The world itself goes with its file.
 *
 * Return: true if it was freed.
 */
bool pldk__shm_domain_free(struct shm_world *world, struct shm_view *view)
{
	uint64_t head = view->offset;
	uint64_t next;
	struct shm_view root;
	uint64_t *bucket;
	bool used = false;
	uint32_t i;

	if (view->dom->parent == UINT64_MAX || pldk__shm_view_map(world, world->header->world, &root))
		return false;
	for (i = 0; i < view->nranks && !used; i++)
		used = !pldk__shm_is_gone(view, i) && !pldk__shm_is_gone(&root, view->ranks[i].world_rank);
	pldk__shm_view_unmap(&root);
	if (used)
		return false;
	/* Nobody is left to look after the windows of those who died here. */
	for (i = 0; i < view->nranks; i++)
		if (pldk__load_acquire(&view->ranks[i].reaper) != SHM_REAPED)
			pldk__shm_windows_reap(view, i, i);
	/*
	 * Only the head of a chain can be taken out by one compare and swap; one behind it waits until it is the head.
	 * Nobody can be about to join: a member that may come is in use above.
	 */
	bucket = pldk__shm_bucket(world, view->dom->parent, view->dom->key);
	next = view->dom->next;
	if (!pldk__cas_seq(bucket, &head, next))
		return false;
	pldk__shm_punch(world->fd, view->offset, view->bytes);
	if (next && !pldk__shm_view_map(world, next, &root)) {
		pldk__shm_domain_free(world, &root);
		pldk__shm_view_unmap(&root);
	}
	return true;
}

/* The windows of the dead: given back once, by whoever comes first and lives to finish. */
static void reap(const struct shm_view *view, uint32_t rank, uint32_t by)
{
	struct shm_rank *r = &view->ranks[rank];
	uint32_t old = pldk__load_acquire(&r->reaper);

	if (old == SHM_REAPED || (old && old - 1 != by && !pldk__shm_is_gone(view, old - 1)))
		return;
	if (!pldk__cas_seq(&r->reaper, &old, 1 + by))
		return;
	pldk__shm_windows_reap(view, rank, by);
	pldk__store_release(&r->reaper, SHM_REAPED);
}

/* Let go of the processes that were looked after. */
static void watch_clear(struct shm_watch *watch)
{
	uint32_t i;

	for (i = 0; i < watch->n; i++)
		if (watch->pidfds[i] >= 0)
			close(watch->pidfds[i]);
	watch->n = 0;
}

/**
 * pldk__shm_watch_end() - the sleep is over
 */
void pldk__shm_watch_end(struct shm_watch *watch)
{
	watch_clear(watch);
}

static bool watch_has(const struct shm_watch *watch, uint32_t rank)
{
	uint32_t i;

	for (i = 0; i < watch->n; i++)
		if (watch->ranks[i] == rank)
			return true;
	return false;
}

/**
 * pldk__shm_ends_inherit() - who left the world before joining this subset will not come
 */
void pldk__shm_ends_inherit(const struct shm_pd *pd)
{
	const struct shm_view *view = &pd->view;
	uint32_t i;

	for (i = 0; i < view->nranks; i++) {
		const uint64_t end = pldk__load_acquire(&pd->root->ranks[view->ranks[i].world_rank].end);

		if (end && !pldk__shm_is_gone(view, i))
			pldk__shm_member_end(view, i, SHM_END_STATE(end), SHM_END_STATUS(end));
	}
}

/* Choose whom to look at, and finish what the dead left half done. */
static void watch_fill(struct shm_pd *pd, struct shm_watch *watch)
{
	struct shm_view *view = &pd->view;
	uint32_t i;

	pldk__shm_ends_inherit(pd);
	/* More members than descriptors: other ones each time. Every sleeper begins with its neighbour. */
	if (view->nranks > SHM_WATCH_MAX)
		watch_clear(watch);
	for (i = 0; i < view->nranks && watch->n < SHM_WATCH_MAX; i++) {
		const uint32_t rank = (pd->base.rank + 1 + watch->next + i) % view->nranks;
		struct shm_rank *r = &view->ranks[rank];
		const uint64_t end = pldk__load_acquire(&r->end);
		uint64_t claim = pldk__load_acquire(&r->claim);

		if (!claim) /* has not joined this subset: is it still in the world? */
			claim = pldk__load_acquire(&pd->root->ranks[r->world_rank].claim);
		if (end) {
			if (pldk__load_acquire(&pldk__shm_member(view, rank)->state) != SHM_END_STATE(end))
				end_show(view, rank);
			if (SHM_END_STATE(end) > PLD_MEMBER_FINALISED && rank != pd->base.rank)
				reap(view, rank, pd->base.rank);
			continue;
		}
		if (!claim || SHM_CLAIM_PID(claim) == SHM_CLAIM_PID(pd->claim) || watch_has(watch, rank))
			continue;
		watch->pidfds[watch->n] = claim_open(claim);
		watch->ranks[watch->n++] = rank;
	}
	if (view->nranks > SHM_WATCH_MAX)
		watch->next = (watch->next + i) % view->nranks;
}

/*
 * A zombie tells how it ended. One that is reaped already is being told by its parent, if that is the launcher: it gets
 * a moment for it. False: wait for its word.
 */
static bool how_it_ended(struct shm_pd *pd, uint64_t claim, uint32_t *state, int *status)
{
	uint64_t since = pldk__load_relaxed(&pd->reaped_ns);
	struct shm_stat st;

	if (!pldk__shm_stat(SHM_CLAIM_PID(claim), &st) && (st.state == 'Z' || st.state == 'X') &&
	    SHM_CLAIM(SHM_CLAIM_PID(claim), st.start) == claim) {
		*state = WIFSIGNALED(st.wait_status) ? PLD_MEMBER_KILLED : PLD_MEMBER_EXITED;
		*status = WIFSIGNALED(st.wait_status) ? WTERMSIG(st.wait_status) : WEXITSTATUS(st.wait_status);
		return true;
	}
	*state = PLD_MEMBER_EXITED;
	*status = SHM_STATUS_UNKNOWN;
	if (!since) {
		pldk__store_relaxed(&pd->reaped_ns, pldk__now_ns());
		return false;
	}
	return pldk__now_ns() - since > WORD_NS;
}

/**
 * pldk__shm_watch() - look after the other members: has one died, did one that died leave something half done?
 * @watch: zero at the begin of a sleep; pidfds are kept in it until pldk__shm_watch_end()
 *
 * Return: true to be called again soon: an end is seen but not yet explained.
 *
 * Called by sleepers at the end of a slice. At most 64 members a call, the next ones at the next call: many sleepers
 * share the work.
 */
bool pldk__shm_watch(struct shm_pd *pd, struct shm_watch *watch)
{
	struct pollfd pfds[SHM_WATCH_MAX];
	struct shm_view *view = &pd->view;
	bool waits_for_word = false;
	uint64_t claim;
	uint32_t state;
	uint32_t i;
	int status;

	watch_fill(pd, watch);
	for (i = 0; i < watch->n; i++)
		pfds[i] = (struct pollfd){ .fd = watch->pidfds[i], .events = POLLIN };
	if (watch->n)
		poll(pfds, watch->n, 0);
	for (i = 0; i < watch->n; i++) {
		const uint32_t rank = watch->ranks[i];
		bool ended = pfds[i].fd >= 0 ? pfds[i].revents : pfds[i].fd == -ESRCH;

		if (pldk__shm_is_gone(view, rank))
			continue;
		if (pfds[i].fd < 0 && !ended) /* no descriptor left for it */
			ended = !pldk__shm_claim_alive(
				pldk__load_acquire(&pd->root->ranks[view->ranks[rank].world_rank].claim));
		if (!ended)
			continue;
		claim = pldk__load_acquire(&pd->root->ranks[view->ranks[rank].world_rank].claim);
		if (!how_it_ended(pd, claim, &state, &status)) {
			waits_for_word = true;
			continue;
		}
		pldk__shm_process_end(view->world, view->ranks[rank].world_rank, state, status);
		reap(view, rank, pd->base.rank);
	}
	if (!waits_for_word)
		pldk__store_relaxed(&pd->reaped_ns, 0);
	return waits_for_word;
}
