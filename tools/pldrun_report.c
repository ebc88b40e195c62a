// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * How a job ended: which rank failed first, the table of last states, and pldrun's exit code.
 *
 * The ranks that a failure drags along end within microseconds, so the order in which a launcher sees the ends is not
 * proof enough. The world knows better: an abort names its rank, and on dev the kernel notes who died first.
 */
#include "pldrun.h"

#include <linux/pld.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void pldrun_own_error(struct pldrun_job *job, const char *what)
{
	pldrun_sink_say(job->err, "cannot %s: %s", what, strerror(errno));
	job->has_own_error = true;
}

const struct world_domain *pldrun_world_look(struct pldrun_job *job, struct world_list *list)
{
	int ret = strcmp(job->plan.provider, "dev") == 0 ? world_read_dev(list, getpid(), job->plan.world_fd) :
							   world_read_shm(list, job->plan.world_fd);

	return ret == 0 && list->ndomains ? &list->domains[0] : NULL;
}

/* The number behind a key in a file of "key number" lines, or -1. */
static long long number_of(const char *path, const char *key)
{
	long long number, found = -1;
	char line[256], name[64];
	FILE *file = fopen(path, "re");

	if (!file)
		return -1;
	while (found < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, "%63s %lld", name, &number) == 2 && strcmp(name, key) == 0)
			found = number;
	fclose(file);
	return found;
}

long long pldrun_oom_kills(void)
{
	char line[4096], path[4352];
	long long kills = -1;
	FILE *file = fopen("/proc/self/cgroup", "re");

	while (file && kills < 0 && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "0::", 3) == 0)
			snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.events", line + 3);
		else if (strstr(line, ":memory:"))
			snprintf(path, sizeof(path), "/sys/fs/cgroup/memory%s/memory.oom_control",
				 strstr(line, ":memory:") + 8);
		else
			continue;
		kills = number_of(path, "oom_kill");
	}
	if (file)
		fclose(file);
	/* The root cgroup has no such file; the machine's counter has every kill. */
	return kills >= 0 ? kills : number_of("/proc/vmstat", "oom_kill");
}

static bool is_failure(const struct pldrun_rank *rank)
{
	return rank->has_ended && !rank->was_stopped &&
	       (rank->status != 0 || (rank->end_state != PLD_MEMBER_ABSENT && rank->end_state != PLD_MEMBER_FINALISED));
}

/* Correct the order of ends by what the world says; see the top of this file. */
static int first_failure(const struct pldrun_job *job)
{
	const struct world_domain *world = job->last.ndomains ? &job->last.domains[0] : NULL;
	const struct pldrun_rank *seen = &job->ranks[job->failed];
	uint32_t other = PLD_RANK_ANY;

	if (!world || job->exec_error || seen->end_state == PLD_MEMBER_ABSENT)
		return job->failed;
	/* Nobody gets through pldk_init() when a rank ended before it. */
	for (int r = 0; r < job->plan.nranks; r++)
		if (job->ranks[r].has_ended && job->ranks[r].end_state == PLD_MEMBER_ABSENT &&
		    job->ranks[r].order < seen->order)
			return r;
	/* Who aborts is the first, even if it was still busy when pldrun stopped it. */
	if (world->poison && world->poison_rank < world->nranks)
		return (int)world->poison_rank;
	if (world->first_dead < world->nranks)
		other = world->first_dead;
	return other < world->nranks && is_failure(&job->ranks[other]) ? (int)other : job->failed;
}

/* What a rank did last, as far as the world tells. */
static void describe_state(const struct pldrun_job *job, int r, char *text, size_t room)
{
	const struct world_domain *world = job->last.ndomains ? &job->last.domains[0] : NULL;

	if (!world) {
		snprintf(text, room, "unknown");
		return;
	}
	for (size_t d = 0; d < job->last.ndomains; d++) {
		const struct world_domain *domain = &job->last.domains[d];

		for (size_t w = 0; w < domain->nwaiters; w++) {
			const struct world_waiter *waiter = &domain->waiters[w];

			/* A rank of a subset is found by its process. */
			if (domain->ranks[waiter->rank % domain->nranks].pid != world->ranks[r].pid)
				continue;
			if (world_collective_call(waiter)) {
				world_waiter_text(waiter, text, room);
				return;
			}
			snprintf(text, room, "waits: window %u cell %u %s %lld, seen %lld", waiter->window,
				 waiter->cell, world_cmp_name(waiter->cmp), (long long)waiter->expected,
				 (long long)waiter->seen);
			return;
		}
	}
	if (world->ranks[r].state == PLD_MEMBER_ALIVE)
		snprintf(text, room, "runs");
	else
		snprintf(text, room, "%s",
			 world->ranks[r].state == PLD_MEMBER_ABSENT ? "not joined" :
								      world_state_name(world->ranks[r].state));
}

static void describe_end(const struct pldrun_rank *rank, char *text, size_t room)
{
	size_t used;

	if (!rank->pid) {
		snprintf(text, room, "not started");
		return;
	}
	launch_how(rank->status, text, room);
	used = strlen(text);
	if (rank->was_stopped)
		snprintf(text + used, room - used, ", stopped by pldrun");
	else if (rank->status == 0 && is_failure(rank))
		snprintf(text + used, room - used, " without pldk_finalize()");
}

static void print_table(struct pldrun_job *job)
{
	char state[128], how[128];

	pldrun_sink_say(job->err, "last states:");
	pldrun_sink_say(job->err, "%5s %8s  %-44s %s", "rank", "pid", "state when the trouble began", "end");
	for (int r = 0; r < job->plan.nranks; r++) {
		describe_state(job, r, state, sizeof(state));
		describe_end(&job->ranks[r], how, sizeof(how));
		pldrun_sink_say(job->err, "%5d %8d  %-44s %s", r, (int)job->ranks[r].pid, state, how);
	}
}

static int exit_code(const struct pldrun_job *job, const struct pldrun_rank *rank)
{
	const struct world_domain *world = job->last.ndomains ? &job->last.domains[0] : NULL;
	uint32_t reason = world ? world->poison & ~PLD_POISON_SET : 0;

	/* It aborted and was stopped before it could exit with a code of its own. */
	if (rank->was_stopped)
		return reason > 0 && reason < PLDRUN_TIMEOUT ? (int)reason : 1;
	if (WIFSIGNALED(rank->status))
		return 128 + WTERMSIG(rank->status);
	/* It exited with 0 without finalising: its peers failed, so the job did. */
	return WEXITSTATUS(rank->status) ? WEXITSTATUS(rank->status) : 1;
}

static int report_exec(struct pldrun_job *job)
{
	pldrun_sink_say(job->err, "first failure: rank %d: cannot run '%s': %s", job->failed, job->options->command[0],
			strerror(job->exec_error));
	return job->exec_error == ENOENT ? PLDRUN_NOT_FOUND : PLDRUN_NOT_EXECUTABLE;
}

static int report_timeout(struct pldrun_job *job)
{
	const struct world_domain *world = job->last.ndomains ? &job->last.domains[0] : NULL;
	char absent[128] = "";
	size_t used = 0;

	for (int r = 0; world && world->joined && r < job->plan.nranks && used < sizeof(absent) - 16; r++)
		if (world->ranks[r].state == PLD_MEMBER_ABSENT)
			used += (size_t)snprintf(absent + used, sizeof(absent) - used, "%s %d", used ? "," : "", r);
	pldrun_sink_say(job->err, "timeout after %.3g s%s%s", (double)job->options->timeout_ns / 1e9,
			used ? "; never joined: rank" : "; the table tells where each rank was", absent);
	return PLDRUN_TIMEOUT;
}

int pldrun_report(struct pldrun_job *job)
{
	struct pldrun_rank *rank;
	char how[128], more[256] = "";
	long long kills;

	if (job->has_own_error)
		return PLDRUN_FAILED;
	if (job->failed < 0 && !job->has_timed_out && !job->is_killed)
		return 0;
	if (job->options->verbosity >= 0 && !job->exec_error)
		print_table(job);
	if (job->failed < 0 && job->is_killed) {
		pldrun_sink_say(job->err, "killed all ranks after a second POSIX signal");
		return 128 + job->interrupt;
	}
	if (job->failed < 0)
		return report_timeout(job);
	if (job->exec_error)
		return report_exec(job);

	job->failed = first_failure(job);
	rank = &job->ranks[job->failed];
	describe_end(rank, how, sizeof(how));
	kills = pldrun_oom_kills();
	if (WIFSIGNALED(rank->status) && WTERMSIG(rank->status) == SIGKILL && kills > job->oom_kills)
		snprintf(more, sizeof(more), "; out of memory: the kernel's oom_kill counter rose from %lld to %lld",
			 job->oom_kills, kills);
	else if (rank->was_stopped || (rank->status == 0 && rank->end_state == PLD_MEMBER_FINALISED))
		snprintf(more, sizeof(more), " after it had aborted the job");
	else if (job->interrupt)
		snprintf(more, sizeof(more), "; pldrun got SIG%s", sigabbrev_np(job->interrupt));
	else if (rank->status == 0 && rank->end_state == PLD_MEMBER_ABSENT)
		snprintf(more, sizeof(more), " before it joined, and the other ranks waited for it");
	pldrun_sink_say(job->err, "first failure: rank %d (pid %d) %s%s", job->failed, (int)rank->pid, how, more);
	return exit_code(job, rank);
}
