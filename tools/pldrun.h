/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * pldrun's parts: pldrun.c (command line), pldrun_job.c (processes and the event loop), pldrun_output.c (lines),
 * pldrun_report.c (who failed first, and the table of last states).
 */
#ifndef _PLDRUN_H
#define _PLDRUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

/* pldrun_job.c */

/**
 * struct pldrun_rank - a rank as its launcher sees it
 * @pid: its process; 0 before the start
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

/**
 * struct pldrun_job - a running job
 * @failed: -1, or the rank that failed first, as far as is known
 * @exec_error: errno when the program could not be run
 * @has_timed_out: --timeout passed
 * @has_own_error: pldrun could not do its own part; it has said why
 * @interrupt: first POSIX signal that pldrun got and handed on, or 0
 * @is_killed: a second one came, so everything was killed
 * @oom_kills: how often the kernel had killed for memory before the start
 * @last: what the world looked like when the trouble began
 */
struct pldrun_job {
	const struct pldrun_options *options;
	struct launch_plan plan;
	struct pldrun_rank *ranks;
	struct pldrun_sink *out;
	struct pldrun_sink *err;
	int failed;
	int exec_error;
	bool has_timed_out;
	bool has_own_error;
	int interrupt;
	bool is_killed;
	long long oom_kills;
	struct world_list last;
};

/**
 * pldrun_job_run() - start all ranks, and return when nothing of them is left
 * @job: options, plan and sinks are set
 *
 * Context: main thread. Blocks SIGCHLD and the POSIX signals that it forwards while it runs.
 */
void pldrun_job_run(struct pldrun_job *job);

/* pldrun_report.c */

/** pldrun_world_look() - read the job's world. Return: its root domain in @list, or NULL if it cannot be read */
const struct world_domain *pldrun_world_look(struct pldrun_job *job, struct world_list *list);

/** pldrun_oom_kills() - how often the kernel has killed for memory in this cgroup, else on this machine */
long long pldrun_oom_kills(void);

/** pldrun_report() - say how the job ended, unless it ended well. Return: pldrun's exit code */
int pldrun_report(struct pldrun_job *job);

#endif /* _PLDRUN_H */
