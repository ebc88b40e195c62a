// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Starting ranks; see launch.h. */
#include "launch.h"

#include <pldk.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "placement.h"

#define DEVICE_MAX 0x7fffffffL

static int fail(struct launch_plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(struct launch_plan *plan, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(plan->why, sizeof(plan->why), format, args);
	va_end(args);
	return -1;
}

/* "4,5,6" into plan->devices, which has room for every rank. Returns how many, or -1. */
static int parse_devices(struct launch_plan *plan, const char *text)
{
	const char *at = text;
	int n = 0;
	char *end;

	for (;;) {
		long device = strtol(at, &end, 10);

		if (end == at || device < 0 || device > DEVICE_MAX || (*end && *end != ','))
			return fail(plan, "'%s' is no list of device ids such as 4,5,6", text);
		if (n == PLDK_MAX_RANKS)
			return fail(plan, "more than %d devices", PLDK_MAX_RANKS);
		for (int i = 0; i < n; i++)
			if (plan->devices[i] == device)
				return fail(plan, "device %ld is named twice", device);
		plan->devices[n++] = (int)device;
		if (!*end)
			return n;
		at = end + 1;
	}
}

/* What the map file says about the devices of this plan. */
static int cpus_by_map(struct launch_plan *plan, const char *path, const cpu_set_t *mask)
{
	char line[256], rest;
	long device, cpu;
	int number = 0, ret = 0;
	FILE *file = fopen(path, "re");

	if (!file)
		return fail(plan, "cannot read the map file %s: %s", path, strerror(errno));
	while (!ret && fgets(line, sizeof(line), file)) {
		number++;
		line[strcspn(line, "#\n")] = '\0';
		if (line[strspn(line, " \t\r")] == '\0')
			continue;
		if (sscanf(line, "%ld %ld %c", &device, &cpu, &rest) != 2 || device < 0)
			ret = fail(plan, "%s:%d: expected 'DEVICE CPU'", path, number);
		else if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((int)cpu, mask))
			ret = fail(plan, "%s:%d: CPU %ld is not among those that this process may use", path, number,
				   cpu);
		for (int r = 0; !ret && r < plan->nranks; r++)
			if (plan->devices[r] == device)
				plan->cpus[r] = (int)cpu;
	}
	if (!ret && ferror(file))
		ret = fail(plan, "cannot read the map file %s: %s", path, strerror(errno));
	fclose(file);
	return ret;
}

int launch_plan_make(struct launch_plan *plan, int nranks, const char *devices, const char *map)
{
	cpu_set_t mask;
	int listed;

	memset(plan, 0, sizeof(*plan));
	plan->world_fd = -1;
	plan->devices = calloc(PLDK_MAX_RANKS, sizeof(*plan->devices));
	plan->cpus = calloc(PLDK_MAX_RANKS, sizeof(*plan->cpus));
	if (!plan->devices || !plan->cpus)
		return fail(plan, "no memory");
	if (devices) {
		listed = parse_devices(plan, devices);
		if (listed < 0)
			return -1;
		if (nranks && nranks != listed)
			return fail(plan, "%d rank%s, but the list names %d device%s", nranks, nranks == 1 ? "" : "s",
				    listed, listed == 1 ? "" : "s");
		nranks = listed;
	} else {
		for (int r = 0; r < nranks; r++)
			plan->devices[r] = r;
	}
	plan->nranks = nranks;
	if (sched_getaffinity(0, sizeof(mask), &mask))
		return fail(plan, "cannot read the affinity mask: %s", strerror(errno));
	for (int r = 0; r < nranks; r++)
		plan->cpus[r] = pldk__placement((uint32_t)plan->devices[r], &mask);
	return map ? cpus_by_map(plan, map, &mask) : 0;
}

void launch_plan_free(struct launch_plan *plan)
{
	if (plan->world_fd >= 0)
		close(plan->world_fd);
	free(plan->devices);
	free(plan->cpus);
	memset(plan, 0, sizeof(*plan));
	plan->world_fd = -1;
}

static int create(struct launch_plan *plan, const char *provider)
{
	struct pldk_world_options options = PLDK_WORLD_OPTIONS_INIT;
	int fd;

	/* A world with the number of a closed standard output would be written over by what is printed. */
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
	options.provider = provider;
	options.device_ids = plan->devices;
	options.cpus = plan->cpus;
	return pldk_world_create(plan->nranks, &options, &plan->world_fd);
}

/* Why the library took shm without being told to. The device is advice for those who ask for it only. */
static const char *why_not_dev(void)
{
	if (access("/dev/pld", F_OK))
		return "no /dev/pld: the module is not loaded; none is needed";
	if (access("/dev/pld", R_OK | W_OK))
		return "/dev/pld may not be opened here; it is not needed";
	return "/dev/pld has no module behind it; none is needed";
}

int launch_world(struct launch_plan *plan, const char *provider)
{
	const char *why = "the command line says so";
	int ret = create(plan, provider);

	if (ret < 0)
		return fail(plan, "%s", pldk_last_error());
	plan->provider = pldk__provider_of_fd(plan->world_fd)->name;
	if (!provider && pldk__env()->provider)
		why = "PLDK_PROVIDER says so";
	else if (!provider)
		why = strcmp(plan->provider, "dev") == 0 ? "/dev/pld opens" : why_not_dev();
	snprintf(plan->why, sizeof(plan->why), "%s", why);
	return 0;
}

pid_t launch_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The parent may have died before the line above: then nobody would send it. */
	if (getppid() != parent)
		_exit(125);
	return 0;
}

int launch_bind(const struct launch_plan *plan, int rank)
{
	cpu_set_t mask;

	CPU_ZERO(&mask);
	CPU_SET(plan->cpus[rank], &mask);
	return sched_setaffinity(0, sizeof(mask), &mask) ? -errno : 0;
}

void launch_how(int status, char *text, size_t room)
{
	const char *name;

	if (WIFEXITED(status)) {
		snprintf(text, room, "exited with code %d", WEXITSTATUS(status));
		return;
	}
	name = sigabbrev_np(WTERMSIG(status));
	if (name)
		snprintf(text, room, "killed by SIG%s%s", name, WCOREDUMP(status) ? " (core dumped)" : "");
	else
		snprintf(text, room, "killed by POSIX signal %d%s", WTERMSIG(status),
			 WCOREDUMP(status) ? " (core dumped)" : "");
}

long long launch_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000000000LL + now.tv_nsec;
}
