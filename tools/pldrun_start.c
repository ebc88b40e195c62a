// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A process becomes a rank: pipes for its output, its place and its environment, then exec.
 *
 * A child that cannot become its rank says why through a pipe, which closes by itself when exec succeeds: so a rank
 * either runs its program when pldrun_rank_start() returns, or nothing is left of it.
 */
#include "pldrun.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a child says when it cannot become its rank. */
struct excuse {
	int is_exec;
	int error;
};

struct pipes {
	int out[2];
	int err[2];
	int excuse[2];
};

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void set_number(const char *name, long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", value);
	setenv(name, text, 1);
}

static _Noreturn void become_rank(const struct pldrun_job *job, int r, const struct pipes *pipes)
{
	const struct pldrun_options *options = job->options;
	struct excuse excuse = { 0, 0 };
	ssize_t ignored;
	int null;

	if (options->has_bind && launch_bind(&job->plan, r))
		goto err;
	if (options->has_prefix && (dup2(pipes->out[1], STDOUT_FILENO) < 0 || dup2(pipes->err[1], STDERR_FILENO) < 0))
		goto err;
	if (r > 0) {
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (null < 0 || dup2(null, STDIN_FILENO) < 0)
			goto err;
	}
	if (fcntl(job->plan.world_fd, F_SETFD, 0))
		goto err;
	set_number("PLDK_FD", job->plan.world_fd);
	set_number("PLDK_RANK", r);
	set_number("PLDK_NRANKS", job->plan.nranks);
	setenv("PLDK_PROVIDER", job->plan.provider, 1);

	setrlimit(RLIMIT_NOFILE, &job->origin.files);
	sigaction(SIGPIPE, &job->origin.pipe, NULL);
	sigaction(SIGCHLD, &job->origin.child, NULL);
	sigprocmask(SIG_SETMASK, &job->origin.mask, NULL);
	execvp(options->command[0], options->command);
	excuse.is_exec = 1;
err:
	excuse.error = errno;
	ignored = write(pipes->excuse[1], &excuse, sizeof(excuse));
	(void)ignored;
	_exit(PLDRUN_FAILED);
}

/* Returns 0 once the program runs. */
static int hear_excuse(struct pldrun_job *job, int r, int fd)
{
	struct excuse excuse;
	ssize_t got;

	do
		got = read(fd, &excuse, sizeof(excuse));
	while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof(excuse))
		return 0;
	errno = excuse.error;
	if (excuse.is_exec) {
		job->exec_error = excuse.error;
		job->failed = r;
	} else {
		pldrun_own_error(job, "prepare a rank");
	}
	return -1;
}

void pldrun_rank_undo(struct pldrun_rank *rank)
{
	kill(rank->pid, SIGKILL);
	waitpid(rank->pid, NULL, 0);
	rank->pid = 0;
	close_one(&rank->pidfd);
	pldrun_stream_close(&rank->out);
	pldrun_stream_close(&rank->err);
}

int pldrun_rank_start(struct pldrun_job *job, int r)
{
	struct pipes pipes = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
	struct pldrun_rank *rank = &job->ranks[r];
	const bool has_prefix = job->options->has_prefix;
	pid_t pid;
	int ret = -1;

	if (pipe2(pipes.excuse, O_CLOEXEC) ||
	    (has_prefix && (pipe2(pipes.out, O_CLOEXEC) || pipe2(pipes.err, O_CLOEXEC) ||
			    fcntl(pipes.out[0], F_SETFL, O_NONBLOCK) || fcntl(pipes.err[0], F_SETFL, O_NONBLOCK)))) {
		pldrun_own_error(job, "make pipes");
		goto out;
	}
	pid = launch_fork();
	if (pid < 0) {
		pldrun_own_error(job, "fork");
		goto out;
	}
	if (pid == 0)
		become_rank(job, r, &pipes);

	close_one(&pipes.excuse[1]);
	rank->pid = pid;
	rank->pidfd = pidfd_open(pid, 0);
	if (rank->pidfd < 0)
		pldrun_own_error(job, "watch a rank");
	else
		ret = hear_excuse(job, r, pipes.excuse[0]);
	if (ret) {
		pldrun_rank_undo(rank);
		goto out;
	}
	if (has_prefix) {
		rank->out = (struct pldrun_stream){ .fd = pipes.out[0], .rank = r, .sink = job->out };
		rank->err = (struct pldrun_stream){ .fd = pipes.err[0], .rank = r, .sink = job->err };
		pipes.out[0] = pipes.err[0] = -1;
	}
	if (job->options->verbosity > 0)
		pldrun_sink_say(job->err, "rank %d is pid %d on device %d, CPU %d%s", r, (int)pid, job->plan.devices[r],
				job->plan.cpus[r], job->options->has_bind ? "" : " (not bound)");
out:
	for (int i = 0; i < 2; i++) {
		close_one(&pipes.excuse[i]);
		close_one(&pipes.out[i]);
		close_one(&pipes.err[i]);
	}
	return ret;
}
