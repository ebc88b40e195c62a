/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * pldrun's parts: pldrun.c (command line), pldrun_guard.c (nothing outlives pldrun), pldrun_start.c (processes become
 * ranks), pldrun_job.c (the event loop), pldrun_output.c (lines), pldrun_report.c (who failed first, and the table of
 * last states).
 */
#ifndef _PLDRUN_H
#define _PLDRUN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "launch.h"
#include "world.h"

/* Exit codes of pldrun's own; a rank's code is passed on as it is, a POSIX signal N as 128 + N. */
#define PLDRUN_TIMEOUT 124
#define PLDRUN_FAILED 125
#define PLDRUN_NOT_EXECUTABLE 126
#define PLDRUN_NOT_FOUND 127

/** struct pldrun_options - what the command line said; pointers into argv */
struct pldrun_options {
	long nranks;
	const char *devices;
	const char *map;
	const char *provider;
	long long timeout_ns;
	long long grace_ns;
	bool has_bind;
	bool has_prefix;
	int verbosity; /* -1 quiet, 0, 1 verbose */
	char **command;
};

/* pldrun_output.c */

struct pldrun_sink;

/**
 * struct pldrun_stream - one rank's stdout or stderr on its way to a sink
 * @fd: read end of the pipe, or -1 at its end
 * @rank: for the prefix
 * @sink: where its lines go
 * @line: what came of a line so far
 */
struct pldrun_stream {
	int fd;
	int rank;
	struct pldrun_sink *sink;
	char *line;
	size_t len;
	size_t room;
};

/**
 * struct pldrun_sink - pldrun's own stdout or stderr
 * @fd: where to write
 * @queue: whole lines that could not be written yet, from @head to @tail
 * @is_broken: nobody reads it any more
 */
struct pldrun_sink {
	int fd;
	char *queue;
	size_t head;
	size_t tail;
	size_t room;
	bool is_broken;
};

/** pldrun_stream_read() - take what came; whole lines go to the sink. Return: false at the end of the stream */
bool pldrun_stream_read(struct pldrun_stream *stream);

/** pldrun_stream_close() - write a last line without newline, and free it */
void pldrun_stream_close(struct pldrun_stream *stream);

/** pldrun_sink_put() - queue bytes */
void pldrun_sink_put(struct pldrun_sink *sink, const char *bytes, size_t len);

/** pldrun_sink_say() - queue "pldrun: ..." and a newline */
void pldrun_sink_say(struct pldrun_sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** pldrun_sink_write() - write as much as goes without blocking. Return: true if all is written */
bool pldrun_sink_write(struct pldrun_sink *sink);

/** pldrun_sink_is_full() - should its streams wait? */
bool pldrun_sink_is_full(const struct pldrun_sink *sink);

/* What these have in common */

/**
 * struct pldrun_rank - a rank as its launcher sees it
 * @pid: its process; 0 before the start, and if it could not be started
 * @pidfd: readable when it has ended, or -1
 * @has_ended: @status is valid
 * @was_stopped: pldrun stopped it: what it did then is no failure of its own
 * @status: from waitpid(2)
 * @order: its place in the order of ends, from 1
 * @end_state: membership when it ended: PLD_MEMBER_*
 */
struct pldrun_rank {
	pid_t pid;
	int pidfd;
	bool has_ended;
	bool was_stopped;
	int status;
	int order;
	uint32_t end_state;
	struct pldrun_stream out;
	struct pldrun_stream err;
};

/** struct pldrun_origin - what pldrun found and changed, and gives back to the ranks */
struct pldrun_origin {
	sigset_t mask;
	struct sigaction child;
	struct sigaction pipe;
	struct rlimit files;
};

/**
 * struct pldrun_job - a running job
 * @signals: what is blocked and waited for: SIGCHLD, and those that are handed on
 * @guard: readable when the process that the user sees is gone
 * @failed: -1, or the rank that failed first, as far as is known
 * @exec_error: errno when the program could not be run
 * @has_timed_out: --timeout passed
 * @has_own_error: pldrun could not do its own part; it has said why
 * @interrupt: first POSIX signal that pldrun got and handed on, or 0
 * @is_killed: a second one came, or nobody is left to wait for the end: everything was killed
 * @is_orphan: the process that the user sees is gone
 * @oom_kills: how often the kernel had killed for memory before the start
 * @last: what the world looked like when the trouble began
 */
struct pldrun_job {
	const struct pldrun_options *options;
	struct launch_plan plan;
	struct pldrun_rank *ranks;
	struct pldrun_sink *out;
	struct pldrun_sink *err;
	struct pldrun_origin origin;
	sigset_t signals;
	int guard;
	int failed;
	int exec_error;
	bool has_timed_out;
	bool has_own_error;
	int interrupt;
	bool is_killed;
	bool is_orphan;
	long long oom_kills;
	struct world_list last;
};

/* pldrun_guard.c */

/**
 * pldrun_guard() - split pldrun into the process that the user sees and the one that runs the job
 * @job: its origin, signals and guard are set
 * @code: out, in the process that the user sees: the exit code
 *
 * Context: main thread. Blocks SIGCHLD and the POSIX signals that are handed on, and makes both processes subreapers.
 * Return: true in the job's process; false in the other one when the job is over or could not begin: it has said why.
 */
bool pldrun_guard(struct pldrun_job *job, int *code);

/**
 * pldrun_sweep() - kill and reap all that is below this process, whoever started it
 *
 * Gives up after a second on what even SIGKILL does not end (state D).
 */
void pldrun_sweep(void);

/* pldrun_start.c */

/**
 * pldrun_rank_start() - start a rank
 * @job: its ranks[@r] is filled: pid, pidfd, and the streams unless it writes to pldrun's own output
 * @r: which
 *
 * Context: main thread; see launch_fork().
 * Return: 0 once the program runs; else -1, nothing is left of it, and has_own_error or exec_error is set.
 */
int pldrun_rank_start(struct pldrun_job *job, int r);

/** pldrun_rank_undo() - kill and reap a rank that was just started, as if it had not been */
void pldrun_rank_undo(struct pldrun_rank *rank);

/* pldrun_job.c */

/**
 * pldrun_job_run() - start all ranks, and return when nothing of them is left
 * @job: options, plan, sinks and what pldrun_guard() sets
 *
 * Context: main thread. Ends with the POSIX signals unblocked.
 */
void pldrun_job_run(struct pldrun_job *job);

/* pldrun_report.c */

/** pldrun_own_error() - note that pldrun itself failed, and say so: "cannot @what: " and what errno means */
void pldrun_own_error(struct pldrun_job *job, const char *what);

/** pldrun_world_look() - read the job's world. Return: its root domain in @list, or NULL if it cannot be read */
const struct world_domain *pldrun_world_look(struct pldrun_job *job, struct world_list *list);

/** pldrun_oom_kills() - how often the kernel has killed for memory in this cgroup, else on this machine */
long long pldrun_oom_kills(void);

/** pldrun_report() - say how the job ended, unless it ended well. Return: pldrun's exit code */
int pldrun_report(struct pldrun_job *job);

#endif /* _PLDRUN_H */
