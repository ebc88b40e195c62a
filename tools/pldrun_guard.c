// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Nothing that a job starts outlives pldrun.
 *
 * pldrun is two processes. The user sees the first one, the guard, which only waits and hands POSIX signals on; its
 * child runs the job. Either may be killed at any moment. When the guard is gone, the child reads the end of a pipe and
 * kills everything. When the child is gone, its ranks die with it (launch_fork()), and what they had started becomes
 * the guard's, because both are subreapers: a rank that is the child of a script has no other bond with pldrun.
 */
#include "pldrun.h"

#include "shm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Kill every process below this one, whoever started it. One pass over /proc finds children and what they started with
 * a higher number; the caller comes again until there is none.
 */
static void kill_descendants(void)
{
	enum { MOST = 4096 };
	pid_t ours[MOST];
	struct dirent *entry;
	struct shm_stat stat;
	int n = 0, i;
	DIR *proc = opendir("/proc");

	ours[n++] = getpid();
	while (proc && (entry = readdir(proc)) && n < MOST) {
		char *end;
		pid_t pid = (pid_t)strtol(entry->d_name, &end, 10);

		if (*end || pid <= 0 || pldk__shm_stat((uint32_t)pid, &stat))
			continue;
		for (i = 0; i < n && ours[i] != (pid_t)stat.parent; i++)
			;
		if (i < n && kill(pid, SIGKILL) == 0)
			ours[n++] = pid;
	}
	if (proc)
		closedir(proc);
}

void pldrun_sweep(void)
{
	for (int round = 0; round < 100; round++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
			return;
		kill_descendants();
		usleep(round < 10 ? 1000 : 10000);
	}
}

/*
 * Block what the job's loop shall read. What is ignored stays so, for pldrun too: nohup and a shell's background mean
 * it. Children must be waited for, and a closed output is an errno here, whatever pldrun was started with.
 */
static int prepare(struct pldrun_job *job)
{
	static const int handed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action, pipe_action = { .sa_handler = SIG_IGN }, child_action = { .sa_handler = SIG_DFL };

	sigemptyset(&job->signals);
	sigaddset(&job->signals, SIGCHLD);
	for (size_t i = 0; i < sizeof(handed_on) / sizeof(handed_on[0]); i++) {
		if (sigaction(handed_on[i], NULL, &action))
			return -1;
		if (action.sa_handler != SIG_IGN)
			sigaddset(&job->signals, handed_on[i]);
	}
	if (getrlimit(RLIMIT_NOFILE, &job->origin.files) || sigaction(SIGPIPE, &pipe_action, &job->origin.pipe) ||
	    sigaction(SIGCHLD, &child_action, &job->origin.child) ||
	    sigprocmask(SIG_BLOCK, &job->signals, &job->origin.mask))
		return -1;
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Wait for the job's process. Returns pldrun's exit code. */
static int stand_guard(const struct pldrun_job *job, pid_t pid)
{
	siginfo_t info;
	int status, signo = 0;
	char how[128];

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (sigwaitinfo(&job->signals, &info) < 0 || info.si_signo == SIGCHLD)
			continue;
		signo = info.si_signo;
		/* The terminal sends its signals to the whole group: the job has it already. */
		if (info.si_code != SI_KERNEL)
			kill(pid, signo);
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	pldrun_sweep();
	if (WTERMSIG(status) == signo)
		return 128 + signo;
	launch_how(status, how, sizeof(how));
	fprintf(stderr, "pldrun: the process that ran the job (pid %d) was %s; all ranks were ended\n", (int)pid, how);
	return PLDRUN_FAILED;
}

bool pldrun_guard(struct pldrun_job *job, int *code)
{
	int alive[2];
	pid_t pid;

	*code = PLDRUN_FAILED;
	if (prepare(job) || pipe2(alive, O_CLOEXEC)) {
		fprintf(stderr, "pldrun: cannot prepare the job: %s\n", strerror(errno));
		return false;
	}
	pid = fork();
	if (pid < 0) {
		fprintf(stderr, "pldrun: cannot fork: %s\n", strerror(errno));
		return false;
	}
	if (pid == 0) {
		close(alive[1]);
		job->guard = alive[0];
		prctl(PR_SET_NAME, "pldrun-job");
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		/* It cannot read the end of the pipe while it is stopped. */
		prctl(PR_SET_PDEATHSIG, SIGCONT);
		return true;
	}
	close(alive[0]);
	*code = stand_guard(job, pid);
	return false;
}
