// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * pldrun - start the ranks of a job, watch them, and say which one failed first.
 *
 * Command line and exit code; see pldrun.h for the parts that do the work. Its output is the ranks' lines with
 * "[rank] " in front; its own lines start with "pldrun: " and go to stderr.
 */
#include "pldrun.h"

#include "options.h"

#include <pldk.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRACE_NS 2000000000LL

enum { OPTION_CHECK = 256, OPTION_NO_BIND, OPTION_NO_PREFIX, OPTION_GRACE, OPTION_HELP_ENV, OPTION_VERSION };

static const struct option_row rows[] = {
	{ 'n', "ranks", "N", "how many ranks; required unless --device says it" },
	{ 'd', "device", "D,D,...", "device id of each rank (default: 0,1,...)" },
	{ 'p', "provider", "NAME", "dev or shm (default: dev where /dev/pld opens, else shm)" },
	{ 't', "timeout", "SECONDS", "end the job after this time with exit code 124" },
	{ OPTION_GRACE, "grace", "SECONDS", "time between SIGTERM and SIGKILL when a job is stopped (default: 2)" },
	{ 'm', "map", "FILE", "lines of 'DEVICE CPU' for devices that the rule shall not place" },
	{ OPTION_NO_BIND, "no-bind", NULL, "do not bind ranks to the CPUs of their devices" },
	{ OPTION_NO_PREFIX, "no-prefix", NULL, "ranks write straight to pldrun's own stdout and stderr" },
	{ OPTION_CHECK, "check", NULL, "checked mode; not in this version" },
	{ 'v', "verbose", NULL, "also say when each rank starts and ends" },
	{ 'q', "quiet", NULL, "say nothing but which rank failed first" },
	{ 'h', "help", NULL, "this text" },
	{ OPTION_HELP_ENV, "help-env", NULL, "the environment variables that ranks read" },
	{ OPTION_VERSION, "version", NULL, "the version" },
};

#define NROWS (sizeof(rows) / sizeof(rows[0]))

static _Noreturn void help(void)
{
	printf("usage: pldrun -n N [OPTION...] PROGRAM [ARGUMENT...]\n"
	       "Starts PROGRAM as ranks 0..N-1 of a pldk world, each on the CPU of its device.\n\n");
	options_help(stdout, rows, NROWS);
	printf("\nExit code: that of the rank that failed first, 128 + N if POSIX signal N killed it, 0 if none\n"
	       "failed; %d timeout, %d pldrun's own failure, %d PROGRAM cannot be run, %d PROGRAM not found,\n"
	       "66 is kept for errors that checked mode finds.\n"
	       "A rank that ends without pldk_finalize() after it has joined has failed, whatever its exit code.\n"
	       "SIGINT, SIGTERM, SIGHUP and SIGQUIT are handed on to all ranks; a second one kills them.\n",
	       PLDRUN_TIMEOUT, PLDRUN_FAILED, PLDRUN_NOT_EXECUTABLE, PLDRUN_NOT_FOUND);
	exit(0);
}

static _Noreturn void help_env(void)
{
#define PLDK_ENV(field, name, type, fallback, text) printf("%-22s %-4s %s\n", name, #type, text);
#include "env.def"
#undef PLDK_ENV
	exit(0);
}

static int take_option(int key, const char *value, void *context)
{
	struct pldrun_options *options = context;

	switch (key) {
	case 'n':
		if (options_number(value, 1, PLDK_MAX_RANKS, &options->nranks))
			return options_usage("pldrun", "-n wants 1 to 1024 ranks, not '%s'", value);
		return 0;
	case 'd':
		options->devices = value;
		return 0;
	case 'p':
		return options_provider("pldrun", value, &options->provider);
	case 't':
		if (options_seconds(value, &options->timeout_ns))
			return options_usage("pldrun", "--timeout wants seconds above 0, not '%s'", value);
		return 0;
	case OPTION_GRACE:
		if (options_seconds(value, &options->grace_ns))
			return options_usage("pldrun", "--grace wants seconds above 0, not '%s'", value);
		return 0;
	case 'm':
		options->map = value;
		return 0;
	case OPTION_NO_BIND:
		options->has_bind = false;
		return 0;
	case OPTION_NO_PREFIX:
		options->has_prefix = false;
		return 0;
	case OPTION_CHECK:
		return options_usage("pldrun", "--check is not in this version");
	case 'v':
		options->verbosity = 1;
		return 0;
	case 'q':
		options->verbosity = -1;
		return 0;
	case 'h':
		help();
	case OPTION_VERSION:
		printf("pldrun %s\n", pldk_version());
		exit(0);
	default:
		help_env();
	}
}

/* Are they one file? Then lines of both must go through one queue, or they would mix. */
static bool is_same_file(int a, int b)
{
	struct stat one, other;

	return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* Whoever asked twice for the end does not wait for a slow reader. */
static void write_all(struct pldrun_sink *sink, bool has_patience)
{
	struct pollfd writable = { .fd = sink->fd, .events = POLLOUT };

	while (!pldrun_sink_write(sink) && has_patience)
		poll(&writable, 1, -1);
}

static int run(struct pldrun_job *job)
{
	int code;

	pldrun_job_run(job);
	if (job->is_orphan)
		return PLDRUN_FAILED;
	code = pldrun_report(job);
	write_all(job->out, !job->is_killed);
	write_all(job->err, !job->is_killed);
	return code;
}

int main(int argc, char **argv)
{
	struct pldrun_options options = { .grace_ns = GRACE_NS, .has_bind = true, .has_prefix = true };
	struct pldrun_sink out = { .fd = STDOUT_FILENO }, err = { .fd = STDERR_FILENO };
	struct pldrun_job job = { .options = &options, .out = &out, .err = &err, .failed = -1 };
	int first = options_parse("pldrun", rows, NROWS, argc, argv, take_option, &options), code = PLDRUN_FAILED;

	if (first < 0)
		return PLDRUN_FAILED;
	if (!options.nranks && !options.devices) {
		options_usage("pldrun", "how many ranks? -n is required");
		return PLDRUN_FAILED;
	}
	if (first == argc) {
		options_usage("pldrun", "which program? it comes after the options");
		return PLDRUN_FAILED;
	}
	options.command = argv + first;
	if (launch_plan_make(&job.plan, (int)options.nranks, options.devices, options.map) ||
	    launch_world(&job.plan, options.provider)) {
		fprintf(stderr, "pldrun: %s\n", job.plan.why);
		goto out_plan;
	}
	/* One rank at a terminal is as good as no launcher at all. */
	if (job.plan.nranks == 1 && isatty(STDOUT_FILENO))
		options.has_prefix = false;
	if (is_same_file(STDOUT_FILENO, STDERR_FILENO))
		job.out = &err;
	job.ranks = calloc((size_t)job.plan.nranks, sizeof(*job.ranks));
	if (!job.ranks) {
		fprintf(stderr, "pldrun: no memory for %d ranks\n", job.plan.nranks);
		goto out_plan;
	}
	if (options.verbosity >= 0)
		pldrun_sink_say(&err, "%d rank%s on provider %s (%s)", job.plan.nranks, job.plan.nranks == 1 ? "" : "s",
				job.plan.provider, job.plan.why);
	pldrun_sink_write(&err);
	if (pldrun_guard(&job, &code))
		code = run(&job);
	free(out.queue);
	free(err.queue);
	world_free(&job.last);
	free(job.ranks);
out_plan:
	launch_plan_free(&job.plan);
	return code;
}
