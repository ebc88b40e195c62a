// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * pldbench - how fast the operations are: one JSON object a line for each measurement, times in nanoseconds.
 *
 * Every measurement has its own processes and its own world, so that none inherits another's caches or settings. The
 * state of the machine is probed before and after each.
 */
#include "pldbench.h"

#include "launch.h"
#include "options.h"

#include <jansson.h>

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIST_MAX 32
#define USAGE_ERROR 2
#define RANKS_PER_CPU 8 /* of the oversubscribed job */

struct bench_options {
	const char *ops;
	const char *provider;
	long ranks[LIST_MAX];
	size_t nranks;
	long bytes[LIST_MAX];
	size_t nbytes;
	double seconds;
	enum pldk_mode mode;
	bool in_window;
	bool has_touch;
	bool has_compare;
};

enum { OPTION_TOUCH = 256, OPTION_VERSION, OPTION_PROBE, OPTION_MODE, OPTION_PLACEMENT };

static const char *const modes[] = {
	[PLDK_MODE_MESH] = "mesh",
	[PLDK_MODE_RING] = "ring",
	[PLDK_MODE_TWO_PHASE] = "two_phase",
	[PLDK_MODE_AUTO] = "auto",
};

#define NMODES (sizeof(modes) / sizeof(modes[0]))

static const struct option_row rows[] = {
	{ 'o', "ops", "OP,...", "what to measure (default: all)" },
	{ 'n', "ranks", "N,...", "numbers of ranks (default: 2)" },
	{ 'b', "bytes", "N,...", "sizes, with K or M (default: 8,4K,64K,1M)" },
	{ 'p', "provider", "NAME", "dev or shm (default: dev where /dev/pld opens, else shm)" },
	{ 's', "seconds", "SECONDS", "time for each measurement (default: 0.2)" },
	{ OPTION_PLACEMENT, "placement", "PLACE", "data of collectives: private (the default) or window" },
	{ OPTION_MODE, "mode", "MODE", "allreduce: mesh, ring, two_phase or auto (the default)" },
	{ OPTION_TOUCH, "touch", NULL, "producers write and consumers read all data in each iteration" },
	{ OPTION_PROBE, "probe", NULL, "measure only the state of the machine" },
	{ 'c', "compare", "PEER,...", "compare with openmpi, mpich: see pldbench(1)" },
	{ 'h', "help", NULL, "this text" },
	{ OPTION_VERSION, "version", NULL, "the version" },
};

#define NROWS (sizeof(rows) / sizeof(rows[0]))

static _Noreturn void help(void)
{
	printf("usage: pldbench [OPTION...]\n"
	       "Measures operations and prints one JSON object a line; times are nanoseconds of one iteration.\n\n");
	options_help(stdout, rows, NROWS);
	printf("\nOperations:");
	for (size_t op = 0; op < bench_nops; op++)
		printf(" %s", bench_ops[op].name);
	printf("\noversubscribed runs barriers with %d ranks a CPU and counts context switches; it ignores --ranks.\n"
	       "notify_wait and put_notify are round trips. The size of a collective is that of a rank's largest buffer.\n"
	       "probe_before and probe_after are the round trip of a cache line between two CPUs: compare only\n"
	       "measurements with equal probes.\n",
	       RANKS_PER_CPU);
	exit(0);
}

static void print_probe(void)
{
	double ns = bench_probe_ns();

	if (ns < 0)
		printf("{\"probe_ns\":null}\n");
	else
		printf("{\"probe_ns\":%.1f}\n", ns);
}

/* The comparison is a script of the source tree, beside this program there; it understands the same options. */
static int exec_compare(char **argv)
{
	char path[PATH_MAX + sizeof("bench-peers")];
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;

	path[len < 0 ? 0 : len] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "bench-peers");
	execv(path, argv);
	fprintf(stderr, "pldbench: --compare cannot run %s: %s; use tools/pldbench of the source tree\n", path,
		strerror(errno));
	return 1;
}

/* "8,4K,1M" into a list. */
static int parse_list(const char *text, long most, long *list, size_t *n)
{
	*n = 0;
	for (;;) {
		char *end;
		long number = strtol(text, &end, 10), unit = 1;

		if (end == text || *n == LIST_MAX)
			return -1;
		if (*end == 'K' || *end == 'M')
			unit = *end++ == 'K' ? 1024 : 1024 * 1024;
		if (number < 1 || number > most / unit || (*end && *end != ','))
			return -1;
		list[(*n)++] = number * unit;
		if (!*end)
			return 0;
		text = end + 1;
	}
}

/* Is name one of the comma-separated words of list? */
static bool has_word(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return true;
	}
	return false;
}

/* The first word of list that is no operation, or NULL. */
static const char *unknown_op(const char *list)
{
	static char word[64];

	while (*list) {
		size_t len = strcspn(list, ","), op;

		snprintf(word, sizeof(word), "%.*s", (int)len, list);
		for (op = 0; op < bench_nops && strcmp(bench_ops[op].name, word) != 0; op++)
			;
		if (op == bench_nops)
			return word;
		list += len + (list[len] == ',');
	}
	return NULL;
}

static int take_option(int key, const char *value, void *context)
{
	struct bench_options *options = context;
	long long ns;

	switch (key) {
	case 'o':
		options->ops = value;
		value = unknown_op(value);
		return value ? options_usage("pldbench", "unknown operation '%s'", value) : 0;
	case 'n':
		if (parse_list(value, PLDK_MAX_RANKS, options->ranks, &options->nranks))
			return options_usage("pldbench", "--ranks wants numbers of ranks such as 2,4, not '%s'", value);
		return 0;
	case 'b':
		if (parse_list(value, 1L << 40, options->bytes, &options->nbytes))
			return options_usage("pldbench", "--bytes wants sizes such as 8,4K,1M, not '%s'", value);
		return 0;
	case 'p':
		return options_provider("pldbench", value, &options->provider);
	case 's':
		if (options_seconds(value, &ns))
			return options_usage("pldbench", "--seconds wants seconds above 0, not '%s'", value);
		options->seconds = (double)ns / 1e9;
		return 0;
	case OPTION_PLACEMENT:
		options->in_window = strcmp(value, "window") == 0;
		if (!options->in_window && strcmp(value, "private") != 0)
			return options_usage("pldbench", "--placement wants private or window, not '%s'", value);
		return 0;
	case OPTION_MODE:
		for (options->mode = 0; options->mode < NMODES; options->mode++)
			if (strcmp(modes[options->mode], value) == 0)
				return 0;
		return options_usage("pldbench", "--mode wants mesh, ring, two_phase or auto, not '%s'", value);
	case OPTION_TOUCH:
		options->has_touch = true;
		return 0;
	case OPTION_PROBE:
		print_probe();
		exit(options_flush("pldbench"));
	case 'c':
		options->has_compare = true;
		return 0;
	case OPTION_VERSION:
		printf("pldbench %s\n", pldk_version());
		exit(0);
	default:
		help();
	}
}

/* The process that makes the world and starts the ranks of one measurement. Its exit code says whether all was well. */
static int conduct(const struct bench_plan *plan, const char *provider, struct bench_result *result)
{
	struct launch_plan launch;
	pid_t pids[PLDK_MAX_RANKS];
	int failed = 0, status;
	pid_t pid;

	if (launch_plan_make(&launch, plan->nranks, NULL, NULL) || launch_world(&launch, provider)) {
		fprintf(stderr, "pldbench: %s\n", launch.why);
		return 1;
	}
	for (int r = 0; r < plan->nranks; r++) {
		pids[r] = launch_fork();
		if (pids[r] < 0) {
			fprintf(stderr, "pldbench: cannot fork rank %d: %s\n", r, strerror(errno));
			return 1; /* the others die with this process */
		}
		if (pids[r] == 0) {
			if (launch_bind(&launch, r))
				fprintf(stderr, "pldbench: rank %d is not bound to CPU %d\n", r, launch.cpus[r]);
			_exit(bench_rank_run(launch.world_fd, r, plan, result));
		}
	}
	/* Ends are told to the world in the order in which they happen; see pldrun_job.c for the careful form. */
	for (int ended = 0; ended < plan->nranks;) {
		pid = waitpid(-1, &status, 0);
		for (int r = 0; r < plan->nranks; r++) {
			if (pids[r] != pid)
				continue;
			pldk_world_mark_dead(launch.world_fd, r, status);
			failed |= status != 0;
			ended++;
		}
	}
	snprintf(result->provider, sizeof(result->provider), "%s", launch.provider);
	launch_plan_free(&launch);
	return failed;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static json_t *probe_or_null(double ns)
{
	return ns < 0 ? json_null() : json_real(ns);
}

static void print_result(const struct bench_plan *plan, bool has_sleep, struct bench_result *result,
			 const double probes[2])
{
	double *samples = result->samples, median;
	size_t n = result->nsamples;
	json_t *line;

	qsort(samples, n, sizeof(*samples), compare);
	median = samples[n / 2];
	line = json_pack("{ss si ss sI sf sf sf ss sI sI ss sb so so}", "op", plan->op->name, "ranks", plan->nranks,
			 "provider", result->provider, "bytes", (json_int_t)plan->bytes, "median", median, "p10",
			 samples[n / 10], "p90", samples[n * 9 / 10], "unit", "ns", "samples", (json_int_t)n,
			 "iterations", (json_int_t)result->iterations, "wait", has_sleep ? "sleep" : "adaptive",
			 "touch", plan->has_touch, "probe_before", probe_or_null(probes[0]), "probe_after",
			 probe_or_null(probes[1]));
	json_object_set_new(line, "median_us", json_real(median / 1e3));
	json_object_set_new(line, "probe_ns", probe_or_null(probes[0] > probes[1] ? probes[0] : probes[1]));
	if (plan->op->coll) {
		json_object_set_new(line, "mode", json_string(modes[plan->mode]));
		json_object_set_new(line, "placement", json_string(plan->in_window ? "window" : "private"));
	}
	if (plan->op->is_transfer)
		json_object_set_new(line, "gb_per_s", json_real((double)plan->bytes / median));
	json_object_set_new(line, "voluntary_switches", json_integer(result->voluntary));
	json_object_set_new(line, "involuntary_switches", json_integer(result->involuntary));
	json_object_set_new(line, "cpu_seconds", json_real((double)result->cpu_ns / 1e9));
	json_object_set_new(line, "wall_seconds", json_real((double)result->wall_ns / 1e9));
	json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
	printf("\n");
	fflush(stdout);
	json_decref(line);
}

/* One measurement in processes of its own. Returns 0, or -1 after a message. */
static int measure(const struct bench_plan *plan, const char *provider, bool has_sleep)
{
	struct bench_result *result =
		mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double probes[2];
	int status = -1;
	pid_t pid;

	if (result == MAP_FAILED) {
		fprintf(stderr, "pldbench: no memory for samples: %s\n", strerror(errno));
		return -1;
	}
	probes[0] = bench_probe_ns();
	pid = launch_fork();
	if (pid == 0) {
		if (has_sleep)
			setenv("PLDK_SPIN_US", "0", 1);
		_exit(conduct(plan, provider, result));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		fprintf(stderr, "pldbench: cannot start a measurement: %s\n", strerror(errno));
	probes[1] = bench_probe_ns();
	if (status == 0 && result->nsamples)
		print_result(plan, has_sleep, result, probes);
	munmap(result, sizeof(*result));
	return status == 0 ? 0 : -1;
}

/* All sizes, and both ways of waiting, of one operation with one number of ranks. */
static int measure_op(const struct bench_options *options, const struct bench_op *op, int nranks)
{
	struct bench_plan plan = {
		.op = op,
		.nranks = nranks,
		.seconds = options->seconds,
		.mode = options->mode,
		.in_window = options->in_window,
	};
	int ret = 0;

	if (op->is_pair && nranks < 2)
		return options_usage("pldbench", "%s needs 2 ranks", op->name);
	if (!op->has_bytes) {
		ret = measure(&plan, options->provider, false);
		if (op->can_sleep)
			ret |= measure(&plan, options->provider, true);
		return ret;
	}
	plan.has_touch = options->has_touch;
	for (size_t b = 0; b < options->nbytes; b++) {
		plan.bytes = (size_t)options->bytes[b];
		if (op->coll && !bench_coll_fits(op->coll, plan.bytes, nranks))
			continue;
		ret |= measure(&plan, options->provider, false);
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct bench_options options = {
		.ranks = { 2 },
		.nranks = 1,
		.bytes = { 8, 4096, 65536, 1048576 },
		.nbytes = 4,
		.seconds = 0.2,
		.mode = PLDK_MODE_AUTO,
	};
	int first = options_parse("pldbench", rows, NROWS, argc, argv, take_option, &options), ret = 0;
	cpu_set_t mask;

	if (first < 0)
		return USAGE_ERROR;
	if (first < argc) {
		options_usage("pldbench", "unknown argument '%s'", argv[first]);
		return USAGE_ERROR;
	}
	if (options.has_compare)
		return exec_compare(argv);
	if (sched_getaffinity(0, sizeof(mask), &mask)) {
		fprintf(stderr, "pldbench: cannot read the affinity mask: %s\n", strerror(errno));
		return 1;
	}
	for (size_t op = 0; op < bench_nops; op++) {
		if (options.ops && !has_word(options.ops, bench_ops[op].name))
			continue;
		if (bench_ops[op].is_oversubscribed)
			ret |= measure_op(&options, &bench_ops[op], RANKS_PER_CPU * CPU_COUNT(&mask));
		for (size_t r = 0; r < options.nranks && !bench_ops[op].is_oversubscribed; r++)
			ret |= measure_op(&options, &bench_ops[op], (int)options.ranks[r]);
	}
	return options_flush("pldbench") || ret != 0;
}
