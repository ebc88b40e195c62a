// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Deadlock on the embedded provider: who, of all that sleep in this job, can still be woken?
 *
 * Asked by a sleeper, never by a helper thread; one at a time (a claim that another takes over when its owner is dead
 * or takes too long). The answer is kmod/wfg.c's. What is believed comes from three looks: at the ledger, at /proc (is
 * every thread of these processes in the ledger, is none stopped or traced?), and at the ledger again. If no gen and
 * no relevant cell changed between the first and the last, all of them slept at one moment, so none can act; being
 * hopeless does not end by itself, so the verdict holds.
 *
 * Certain means: may notify = members of the domain that are not gone; narrower only where PLD_WAIT_F_EXACT says so.
 * Live are: a rank that has not joined, a process with a thread that is not in the ledger, in a timed or idle wait or
 * in one with more predicates than a line holds, a stopped or traced process, and one whose messages to a far peer are
 * still under way.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../kmod/wfg.h"
#include "shm.h"

#define JUDGE_STALE_NS UINT64_C(1000000000)

/* A wait as collected. */
struct seen {
	struct shm_line *line;
	uint32_t index; /* of the line */
	uint32_t gen;
	uint32_t proc;
	uint32_t rank;
	uint32_t domain; /* index into job.views */
	uint32_t npreds;
	uint32_t flags;
	bool counts; /* unlimited, not idle, all predicates known */
	struct shm_pred preds[SHM_LINE_PREDS];
	int64_t values[SHM_LINE_PREDS];
	struct pld_wfg_pred wfg[SHM_LINE_PREDS];
};

/* The job as one judge sees it. */
struct job {
	struct shm_world *world;
	struct shm_view root;
	struct shm_view *views; /* domains that somebody waits in */
	uint32_t nviews;
	uint32_t **all; /* of each view: processes that may notify there */
	uint32_t *nall;
	uint32_t nprocs;
	uint64_t *claims; /* of each process; 0 for a rank that has not joined */
	uint32_t *proc_of; /* world rank -> process */
	uint8_t *live;
	struct seen *waits;
	uint32_t nwaits;
	uint32_t room;
};

static void job_free(struct job *job)
{
	uint32_t i;

	for (i = 0; i < job->nviews; i++) {
		pldk__shm_view_unmap(&job->views[i]);
		free(job->all[i]);
	}
	if (job->root.dom)
		pldk__shm_view_unmap(&job->root);
	free(job->views);
	free(job->all);
	free(job->nall);
	free(job->claims);
	free(job->proc_of);
	free(job->live);
	free(job->waits);
}

/* Ranks of one process are one process. Finalised and dead ranks are nobody. */
static bool procs_collect(struct job *job)
{
	const uint32_t nranks = job->world->header->nranks;
	uint32_t i;
	uint32_t p;

	job->claims = calloc(nranks, sizeof(*job->claims));
	job->proc_of = calloc(nranks, sizeof(*job->proc_of));
	job->live = calloc(nranks, 1);
	if (!job->claims || !job->proc_of || !job->live)
		return false;
	for (i = 0; i < nranks; i++) {
		const uint64_t claim = pldk__load_acquire(&job->root.ranks[i].claim);

		for (p = 0; claim && p < job->nprocs && job->claims[p] != claim; p++)
			;
		if (!claim)
			p = job->nprocs;
		job->proc_of[i] = p;
		if (p < job->nprocs)
			continue;
		job->claims[p] = claim;
		job->live[p] = !claim;
		job->nprocs++;
	}
	return true;
}

/* The view of a domain that somebody waits in; mapped at its first wait. */
static bool view_of(struct job *job, uint64_t offset, uint32_t *out)
{
	struct shm_view view;
	uint32_t *all;
	void *more;
	uint32_t i;

	for (i = 0; i < job->nviews; i++) {
		if (job->views[i].offset == offset) {
			*out = i;
			return true;
		}
	}
	more = realloc(job->views, (job->nviews + 1) * sizeof(*job->views));
	if (!more)
		return false;
	job->views = more;
	more = realloc(job->all, (job->nviews + 1) * sizeof(*job->all));
	if (!more)
		return false;
	job->all = more;
	more = realloc(job->nall, (job->nviews + 1) * sizeof(*job->nall));
	if (!more || pldk__shm_view_map(job->world, offset, &view))
		return false;
	job->nall = more;
	all = malloc(view.nranks * sizeof(*all));
	if (!all) {
		pldk__shm_view_unmap(&view);
		return false;
	}
	job->nall[job->nviews] = 0;
	for (i = 0; i < view.nranks; i++)
		if (!pldk__shm_is_gone(&view, i) && !pldk__shm_is_gone(&job->root, view.ranks[i].world_rank))
			all[job->nall[job->nviews]++] = job->proc_of[view.ranks[i].world_rank];
	job->views[job->nviews] = view;
	job->all[job->nviews] = all;
	*out = job->nviews++;
	return true;
}

/* Read one line; false: not a wait, or it moved. */
static bool wait_read(struct job *job, uint32_t index, struct seen *s)
{
	struct shm_line *line = pldk__shm_line(job->world, index);
	uint32_t n;

	s->gen = pldk__load_acquire(&line->gen);
	if (!(s->gen & 1) || line->world_rank >= job->root.nranks ||
	    SHM_VERDICT_GEN(pldk__load_relaxed(&line->verdict)) == s->gen)
		return false;
	s->line = line;
	s->index = index;
	s->proc = job->proc_of[line->world_rank];
	s->rank = line->rank;
	s->npreds = line->npreds;
	s->flags = line->flags;
	s->counts = line->deadline_ns == PLD_DEADLINE_NEVER && !(line->flags & PLD_WAIT_F_IDLE) &&
		    line->npreds <= SHM_LINE_PREDS;
	n = s->npreds < SHM_LINE_PREDS ? s->npreds : SHM_LINE_PREDS;
	memcpy(s->preds, line->preds, n * sizeof(*s->preds));
	if (pldk__shm_is_gone(&job->root, line->world_rank) || !view_of(job, line->domain, &s->domain) ||
	    s->rank >= job->views[s->domain].nranks || pldk__shm_is_gone(&job->views[s->domain], s->rank))
		return false;
	pldk__fence_acquire();
	return pldk__load_relaxed(&line->gen) == s->gen;
}

/* What becomes of a predicate, as far as deaths and farewells go. */
enum fate { MAY_COME, IS_SHUT, IS_DEAD };

/* How a membership ended. Who left the world has left its subsets, also those that have not been told yet. */
static uint64_t end_of(const struct job *job, const struct shm_view *view, uint32_t rank)
{
	const uint64_t end = pldk__load_acquire(&view->ranks[rank].end);

	return end ? end : pldk__load_acquire(&job->root.ranks[view->ranks[rank].world_rank].end);
}

static enum fate fate_of(const struct job *job, const struct shm_view *view, uint32_t rank, uint32_t from)
{
	enum fate fate = view->nranks == 1 ? MAY_COME : IS_SHUT;
	struct shm_stat st;
	uint64_t end;
	uint32_t i;

	if (from < view->nranks) {
		end = end_of(job, view, from);
		return !end ? MAY_COME : SHM_END_STATE(end) > PLD_MEMBER_FINALISED ? IS_DEAD : IS_SHUT;
	}
	for (i = 0; i < view->nranks; i++) {
		end = end_of(job, view, i);
		if (i != rank && SHM_END_STATE(end) > PLD_MEMBER_FINALISED)
			return IS_DEAD;
		if (i != rank && !end)
			fate = MAY_COME;
	}
	/* All others have finalised, but another thread of the waiter's process may notify. */
	if (fate == IS_SHUT && !pldk__shm_stat(SHM_CLAIM_PID(view->ranks[rank].claim), &st) && st.nthreads > 1)
		fate = MAY_COME;
	return fate;
}

/* A wait that ends by itself as soon as its thread looks, with another errno than EDEADLK: by pldk__wait_judge(). */
static bool ends_anyway(const struct job *job, const struct seen *s)
{
	const struct shm_view *view = &job->views[s->domain];
	bool may_come = false;
	bool is_shut = false;
	uint32_t i;

	if (pldk__load_acquire(&view->status->poison))
		return true;
	for (i = 0; i < s->npreds && s->counts; i++) {
		if (pld_cmp_holds(s->values[i], s->preds[i].cmp, s->preds[i].expected))
			continue;
		switch (fate_of(job, view, s->rank, s->preds[i].from)) {
		case IS_DEAD:
			return true;
		case IS_SHUT:
			is_shut = true;
			break;
		case MAY_COME:
			may_come = true;
			break;
		}
	}
	return is_shut && !((s->flags & PLD_WAIT_F_ANY) && may_come);
}

static bool values_read(struct job *job, struct seen *s)
{
	uint32_t i;

	for (i = 0; i < s->npreds && s->counts; i++)
		if (pldk__shm_read(job->world->fd, &s->values[i], sizeof(s->values[i]), s->preds[i].cell))
			return false;
	return true;
}

static bool waits_collect(struct job *job)
{
	struct seen *s;
	void *more;
	uint32_t i;

	for (i = 0; i < SHM_NLINES; i++) {
		if (!pldk__shm_line_reserved(job->world, i))
			continue;
		if (job->nwaits == job->room) {
			job->room = job->room ? 2 * job->room : 16;
			more = realloc(job->waits, job->room * sizeof(*job->waits));
			if (!more)
				return false;
			job->waits = more;
		}
		s = &job->waits[job->nwaits];
		if (!wait_read(job, i, s) || !values_read(job, s))
			continue;
		s->counts = s->counts && !ends_anyway(job, s);
		job->nwaits++;
	}
	return true;
}

/* The second look: did anything move? */
static bool unchanged(struct job *job)
{
	struct seen now;
	uint32_t i;
	uint32_t p;

	for (i = 0; i < job->nwaits; i++) {
		struct seen *s = &job->waits[i];

		if (!s->counts || job->live[s->proc])
			continue;
		now.counts = true;
		now.npreds = s->npreds;
		memcpy(now.preds, s->preds, sizeof(now.preds));
		if (pldk__load_seq(&s->line->gen) != s->gen || !values_read(job, &now))
			return false;
		for (p = 0; p < s->npreds; p++)
			if (now.values[p] != s->values[p])
				return false;
		if (pldk__load_seq(&s->line->gen) != s->gen)
			return false;
	}
	return true;
}

/* Turn what was seen into the solver's words and ask it. live[] says who is live for other reasons. */
static uint32_t solve(struct job *job, bool *ok)
{
	struct pld_wfg_wait *waits = calloc(job->nwaits + 1, sizeof(*waits));
	uint32_t *exact = NULL;
	uint32_t npreds = 0;
	uint32_t n = 0;
	uint32_t left = 0;
	uint32_t i;
	uint32_t p;

	for (i = 0; i < job->nwaits; i++)
		npreds += job->waits[i].counts ? job->waits[i].npreds : 0;
	exact = malloc((npreds + 1) * sizeof(*exact));
	*ok = waits && exact;
	npreds = 0;
	for (i = 0; *ok && i < job->nwaits; i++) {
		struct seen *s = &job->waits[i];

		if (!s->counts || job->live[s->proc])
			continue;
		for (p = 0; p < s->npreds; p++) {
			const struct shm_pred *pred = &s->preds[p];
			const struct shm_view *view = &job->views[s->domain];
			struct pld_wfg_pred *wfg = &s->wfg[p];

			wfg->holds = pld_cmp_holds(s->values[p], pred->cmp, pred->expected);
			wfg->nfrom = job->nall[s->domain];
			wfg->from = job->all[s->domain];
			if (!(s->flags & PLD_WAIT_F_EXACT) || pred->from >= view->nranks)
				continue;
			exact[npreds] = job->proc_of[view->ranks[pred->from].world_rank];
			wfg->nfrom = !pldk__shm_is_gone(view, pred->from);
			wfg->from = &exact[npreds++];
		}
		waits[n++] = (struct pld_wfg_wait){
			.proc = s->proc,
			.all = !(s->flags & PLD_WAIT_F_ANY),
			.npreds = s->npreds,
			.preds = s->wfg,
		};
	}
	if (*ok)
		left = pld_wfg_solve(job->live, job->nprocs, waits, n);
	free(waits);
	free(exact);
	return left;
}

static bool is_traced(uint32_t pid)
{
	char path[40];
	char line[128];
	int tracer = 1; /* if it cannot be read */
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	if (!f)
		return true;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			break;
	fclose(f);
	return tracer != 0;
}

/* May this process do something that the ledger does not show? waits: lines of it that count */
static bool is_otherwise_live(struct job *job, uint32_t proc, uint32_t waits)
{
	const uint64_t claim = job->claims[proc];
	struct shm_stat st;
	uint32_t i;

	if (pldk__shm_stat(SHM_CLAIM_PID(claim), &st))
		return true;
	if (SHM_CLAIM_START(claim) && SHM_CLAIM(SHM_CLAIM_PID(claim), st.start) != claim)
		return true;
	/* A dead one whose death nobody has noticed yet: that will be the reason to tell. */
	if (st.state == 'Z' || st.state == 'X')
		return true;
	if (st.nthreads != waits || st.state == 'T' || st.state == 't' || is_traced(SHM_CLAIM_PID(claim)))
		return true;
	for (i = 0; i < job->root.nranks; i++)
		if (job->proc_of[i] == proc && pldk__far_lane_is_busy(job->world, i))
			return true;
	return false;
}

/* Processes without a counted wait are live; of the others only those that would be hopeless are looked up in /proc. */
static bool find(struct job *job)
{
	uint32_t *counted = calloc(job->nprocs + 1, sizeof(*counted));
	bool ok = counted;
	uint32_t left = 0;
	uint32_t i;

	for (i = 0; ok && i < job->nwaits; i++)
		counted[job->waits[i].proc] += job->waits[i].counts;
	for (i = 0; ok && i < job->nprocs; i++)
		job->live[i] |= !counted[i];
	if (ok)
		left = solve(job, &ok);
	for (i = 0; ok && left && i < job->nprocs; i++)
		if (!job->live[i])
			job->live[i] = is_otherwise_live(job, i, counted[i]);
	if (ok && left)
		left = solve(job, &ok);
	free(counted);
	return ok && left && unchanged(job);
}

/* Store a domain's verdict: its hopeless waits as they stand. Without memory for it the waits end all the same. */
static void verdict_store(struct job *job, uint32_t domain, uint32_t number)
{
	const struct shm_view *view = &job->views[domain];
	const uint64_t at = view->dom->verdicts + number % SHM_NVERDICTS * SHM_VERDICT_BYTES;
	struct shm_verdict *v = (struct shm_verdict *)(void *)((char *)view->dom + at);
	uint32_t n = 0;
	uint32_t i;

	for (i = 0; i < job->nwaits; i++)
		n += job->waits[i].domain == domain && !job->live[job->waits[i].proc] && job->waits[i].counts;
	if (!n || pldk__shm_reserve(job->world->fd, view->offset + at, SHM_VERDICT_BYTES))
		return;
	pldk__store_seq(&v->number, 0);
	n = 0;
	for (i = 0; i < job->nwaits; i++) {
		const struct seen *s = &job->waits[i];

		if (s->domain != domain || job->live[s->proc] || !s->counts)
			continue;
		if (n < SHM_VERDICT_ENTRIES)
			pldk__shm_line_entry(job->world, s->line, &v->entries[n]);
		n++;
	}
	v->nentries = n;
	v->entry_size = sizeof(v->entries[0]);
	v->time_ns = pldk__now_ns();
	pldk__store_release(&v->number, number);
}

/* One verdict a wait. The word says which wait: a signal handler may end it now, and the line show the next one. */
static bool condemn(const struct seen *s, uint32_t number)
{
	uint64_t old = pldk__load_acquire(&s->line->verdict);

	while (SHM_VERDICT_GEN(old) != s->gen && pldk__load_seq(&s->line->gen) == s->gen)
		if (pldk__cas_seq(&s->line->verdict, &old, SHM_VERDICT(s->gen, number)))
			return true;
	return false;
}

static void pronounce(struct job *job)
{
	uint32_t number;
	uint32_t i;

	do {
		number = pldk__add_seq(&job->world->header->next_verdict, 1);
	} while (!number);
	for (i = 0; i < job->nviews; i++)
		verdict_store(job, i, number);
	/* All verdicts before the first bell: who hears it may finalise at once, and the others must not blame that. */
	for (i = 0; i < job->nwaits; i++) {
		struct seen *s = &job->waits[i];

		s->counts = s->counts && !job->live[s->proc] && condemn(s, number);
	}
	for (i = 0; i < job->nwaits; i++)
		if (job->waits[i].counts)
			pldk__shm_ring(&job->views[job->waits[i].domain], job->waits[i].rank);
}

static bool judge_take(struct shm_header *header, uint64_t claim)
{
	uint64_t owner = pldk__load_acquire(&header->judge);

	if (owner && pldk__now_ns() - pldk__load_relaxed(&header->judge_ns) < JUDGE_STALE_NS &&
	    pldk__shm_claim_alive(owner))
		return false;
	if (!pldk__cas_seq(&header->judge, &owner, claim))
		return false;
	pldk__store_seq(&header->judge_ns, pldk__now_ns());
	return true;
}

/**
 * pldk__shm_deadlock() - look for waits that nobody can end, and end them
 *
 * Two judges at once (one that was taken for stuck) do no harm: a wait takes one verdict.
 */
void pldk__shm_deadlock(struct shm_pd *pd)
{
	struct shm_header *header = pd->view.world->header;
	struct job job = { .world = pd->view.world };
	uint64_t claim = pd->claim;

	if (!judge_take(header, claim))
		return;
	if (!pldk__shm_view_map(job.world, header->world, &job.root)) {
		if (procs_collect(&job) && waits_collect(&job) && find(&job))
			pronounce(&job);
	} else {
		job.root.dom = NULL;
	}
	job_free(&job);
	pldk__cas_seq(&header->judge, &claim, 0);
}

/**
 * pldk__shm_verdict() - see struct pldk_provider_ops
 */
int pldk__shm_verdict(struct pldk__pdomain *base, uint32_t verdict, struct pld_ledger_entry *entries, uint32_t *n)
{
	const struct shm_view *view = &pldk__shm_pd(base)->view;
	uint32_t room = *n < SHM_VERDICT_ENTRIES ? *n : SHM_VERDICT_ENTRIES;
	struct shm_verdict *copy = malloc(sizeof(*copy));
	uint32_t best = 0;
	uint32_t i;
	int ret = -ENOENT;

	if (!copy)
		return pldk__fail(-ENOMEM, "no memory");
	for (i = 0; i < SHM_NVERDICTS; i++) {
		const uint64_t at = view->offset + view->dom->verdicts + i * SHM_VERDICT_BYTES;

		if (pldk__shm_read(view->world->fd, copy, sizeof(*copy), at) || !copy->number)
			continue;
		if (verdict ? copy->number != verdict : copy->number <= best)
			continue;
		best = copy->number;
		*n = copy->nentries;
		if (room)
			memcpy(entries, copy->entries, (room < *n ? room : *n) * sizeof(*entries));
		ret = 0;
	}
	free(copy);
	return ret ? pldk__fail(ret, "no verdict %u in this domain: the newest %u are kept", verdict, SHM_NVERDICTS) :
		     0;
}
