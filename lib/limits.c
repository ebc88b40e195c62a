// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * How much memory may still be allocated: what the machine and the cgroup leave.
 *
 * A forecast: others allocate too. It exists so that a window that cannot fit is refused with numbers instead of waking
 * the OOM killer.
 */
#include "range.h"

#include <stdio.h>
#include <string.h>

static uint64_t meminfo_available(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	if (!f)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	fclose(f);
	return kib ? (uint64_t)kib << 10 : UINT64_MAX;
}

/* First number of a file; UINT64_MAX for "max" or no file. */
static uint64_t number_in(const char *dir, const char *name)
{
	unsigned long long value;
	char path[512];
	FILE *f;
	int n;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return UINT64_MAX;
	f = fopen(path, "re");
	if (!f)
		return UINT64_MAX;
	n = fscanf(f, "%llu", &value);
	fclose(f);
	return n == 1 ? value : UINT64_MAX;
}

/* What the tightest memory.max (cgroup v2) between this process and the root leaves. */
static uint64_t cgroup_left(void)
{
	uint64_t left = UINT64_MAX;
	char line[400];
	char dir[440] = "";
	char *slash;
	FILE *f = fopen("/proc/self/cgroup", "re");

	if (!f)
		return left;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "0::/", 4))
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(dir, sizeof(dir), "/sys/fs/cgroup%s", line + 3);
		break;
	}
	fclose(f);
	while (strlen(dir) > strlen("/sys/fs")) {
		uint64_t max = number_in(dir, "memory.max");
		uint64_t now = number_in(dir, "memory.current");

		if (max != UINT64_MAX && now != UINT64_MAX) {
			uint64_t here = max > now ? max - now : 0;

			left = here < left ? here : left;
		}
		slash = strrchr(dir, '/');
		*slash = 0;
	}
	return left;
}

/**
 * pldk__limits_memory() - lower left_bytes to what memory allows
 * @limits: left_bytes and left_by are changed if memory is what decides
 */
void pldk__limits_memory(struct pldk_limits *limits)
{
	const uint64_t mem = meminfo_available();
	const uint64_t cgroup = cgroup_left();

	/* A tenth stays for page tables and for everybody else. */
	if (mem != UINT64_MAX && mem / 10 * 9 < limits->left_bytes) {
		limits->left_bytes = mem / 10 * 9;
		snprintf(limits->left_by, sizeof(limits->left_by), "MemAvailable");
	}
	if (cgroup < limits->left_bytes) {
		limits->left_bytes = cgroup;
		snprintf(limits->left_by, sizeof(limits->left_by), "cgroup");
	}
}
