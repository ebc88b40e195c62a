// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * How much memory may still be allocated: what the machine and the cgroup leave.
 *
 * A forecast: others allocate too. It exists so that a window that cannot fit is refused with numbers instead of waking
 * the OOM killer.
 */
#include "range.h"

#include <stdbool.h>
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

/* Number that follows the key at the start of a line; without a key the first of the file. UINT64_MAX: none ("max"). */
static uint64_t number_in(const char *dir, const char *name, const char *key)
{
	const size_t len = strlen(key);
	unsigned long long value = 0;
	bool found = false;
	char line[512];
	FILE *f;

	if (snprintf(line, sizeof(line), "%s/%s", dir, name) >= (int)sizeof(line))
		return UINT64_MAX;
	f = fopen(line, "re");
	if (!f)
		return UINT64_MAX;
	while (!found && fgets(line, sizeof(line), f))
		found = !strncmp(line, key, len) && sscanf(line + len, "%llu", &value) == 1;
	fclose(f);
	return found ? value : UINT64_MAX;
}

/* The two versions of memory cgroups. Keys of memory.stat: the group and what is below it. */
static const struct memcg {
	const char *mark; /* in front of the path in /proc/self/cgroup */
	const char *root;
	const char *max;
	const char *now;
	const char *reclaimable[2];
} memcgs[] = {
	{ "0::/", "/sys/fs/cgroup", "memory.max", "memory.current", { "inactive_file ", "active_file " } },
	{ ":memory:/", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
	  { "total_inactive_file ", "total_active_file " } },
};

/*
 * What one group leaves. Files that it has in memory make room; a tenth of its limit stays for page tables and the
 * rest of the program, because a group that is full kills.
 */
static uint64_t group_left(const struct memcg *memcg, const char *dir)
{
	const uint64_t max = number_in(dir, memcg->max, "");
	uint64_t now = number_in(dir, memcg->now, "");
	int i;

	if (max == UINT64_MAX || now == UINT64_MAX)
		return UINT64_MAX;
	for (i = 0; i < 2; i++) {
		uint64_t file = number_in(dir, "memory.stat", memcg->reclaimable[i]);

		if (file != UINT64_MAX)
			now -= file < now ? file : now;
	}
	now += max / 10;
	return max > now ? max - now : 0;
}

/* What the tightest group between this process and the root leaves. */
static uint64_t memcg_left(const struct memcg *memcg)
{
	uint64_t left = UINT64_MAX;
	char line[400];
	char dir[440] = "";
	const char *path;
	FILE *f = fopen("/proc/self/cgroup", "re");

	if (!f)
		return left;
	while (!*dir && fgets(line, sizeof(line), f)) {
		path = strstr(line, memcg->mark);
		if (!path || (memcg->mark[0] != ':' && path != line))
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(dir, sizeof(dir), "%s%s", memcg->root, path + strlen(memcg->mark) - 1);
	}
	fclose(f);
	while (strlen(dir) >= strlen(memcg->root)) {
		uint64_t here = group_left(memcg, dir);

		left = here < left ? here : left;
		*strrchr(dir, '/') = 0;
	}
	return left;
}

static void lower(struct pldk_limits *limits, uint64_t left, const char *by)
{
	if (left >= limits->left_bytes)
		return;
	limits->left_bytes = left;
	snprintf(limits->left_by, sizeof(limits->left_by), "%s", by);
}

/**
 * pldk__limits_memory() - lower left_bytes to what memory allows
 * @limits: left_bytes and left_by are changed if memory is what decides
 */
void pldk__limits_memory(struct pldk_limits *limits)
{
	const uint64_t mem = meminfo_available();
	size_t i;

	/* A tenth stays for page tables and for everybody else. */
	lower(limits, mem == UINT64_MAX ? mem : mem / 10 * 9, "MemAvailable");
	for (i = 0; i < sizeof(memcgs) / sizeof(memcgs[0]); i++)
		lower(limits, memcg_left(&memcgs[i]), "cgroup");
}
