// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Reading domains of /dev/pld from outside: from /proc/PID/fdinfo/FD of whoever has a domain or rank file open. The
 * format is described in kmod/fdinfo.c; keys and words that are not known here are skipped.
 */
#include "world.h"

#include <linux/pld.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The number behind "word=" in a line, or fallback. */
static long long field(const char *line, const char *word, long long fallback)
{
	size_t len = strlen(word);

	for (const char *at = line; (at = strstr(at, word)); at += len)
		if (at > line && (at[-1] == ' ' || at[-1] == '\t') && at[len] == '=')
			return strtoll(at + len + 1, NULL, 10);
	return fallback;
}

static uint32_t state_of(const char *name)
{
	for (uint32_t state = PLD_MEMBER_ABSENT; state <= PLD_MEMBER_RELEASED; state++)
		if (strcmp(name, world_state_name(state)) == 0)
			return state;
	return PLD_MEMBER_ABSENT;
}

static void take_member(struct world_domain *domain, uint32_t r, const char *line)
{
	char state[16];

	if (r >= domain->nranks || sscanf(line, " %15s", state) != 1)
		return;
	domain->ranks[r].state = state_of(state);
	domain->ranks[r].pid = (uint32_t)field(line, "pid", 0);
	domain->ranks[r].device = (uint32_t)field(line, "device", 0);
	domain->ranks[r].cpu = (uint32_t)field(line, "cpu", 0);
	domain->ranks[r].status = (int32_t)field(line, "status", 0);
}

static int take_wait(struct world_domain *domain, const char *line)
{
	struct world_waiter *waiter = world_add_waiter(domain);

	if (!waiter)
		return -ENOMEM;
	waiter->rank = (uint32_t)field(line, "rank", 0);
	waiter->tid = (uint32_t)field(line, "tid", 0);
	waiter->window = (uint32_t)field(line, "window", 0);
	waiter->cell = (uint32_t)field(line, "cell", 0);
	waiter->cmp = (uint32_t)field(line, "cmp", 0);
	waiter->from = (uint32_t)field(line, "from", -1);
	waiter->expected = field(line, "expected", 0);
	waiter->seen = field(line, "value", 0);
	waiter->since_ns = (uint64_t)field(line, "since_ns", 0);
	waiter->npreds = (uint32_t)field(line, "npreds", 1);
	return 0;
}

static int take_window(struct world_domain *domain, uint32_t id, const char *line)
{
	struct world_window *window = world_add_window(domain);
	const char *flags = strstr(line, "flags=");

	if (!window)
		return -ENOMEM;
	window->id = id;
	window->kind = (uint32_t)field(line, "kind", 0);
	window->flags = flags ? (uint32_t)strtoul(flags + 6, NULL, 16) : 0;
	window->bytes = (uint64_t)field(line, "bytes", 0);
	window->opened = (uint32_t)field(line, "opened", 0);
	window->generation = (uint32_t)field(line, "generation", 0);
	window->page_bytes = (uint32_t)field(line, "page_bytes", 0);
	window->creator = (uint32_t)field(line, "creator", -1);
	return 0;
}

/**
 * struct fdinfo - what a file says, while it is read
 * @own: rank of a rank file; its state comes in lines of their own
 * @has_members: it has a line for each member, and then for each wait and window as well
 */
struct fdinfo {
	struct world_domain *domain;
	struct world_rank own;
	long long own_rank;
	int has_members;
	uint64_t id;
	uint32_t numbers[8];
};

static const char *const number_keys[] = { "joined", "finalised",   "dead",   "first_dead",
					   "poison", "poison_rank", "windows" };

/* One "key:\tvalue" line. nranks is the line that makes the domain; before it stands only the domain's number. */
static int take_line(struct world_list *list, struct fdinfo *info, const char *key, const char *value)
{
	struct world_domain *domain = info->domain;
	uint32_t index;

	if (strcmp(key, "domain") == 0) {
		info->id = strtoull(value, NULL, 10);
		return 0;
	}
	if (strcmp(key, "nranks") == 0) {
		unsigned long nranks = strtoul(value, NULL, 10);

		if (nranks == 0 || nranks > PLD_MAX_RANKS)
			return -EPROTO;
		for (size_t d = 0; d < list->ndomains; d++)
			if (strcmp(list->domains[d].provider, "dev") == 0 && list->domains[d].id == info->id)
				info->domain = &list->domains[d];
		if (!info->domain) {
			info->domain = world_add(list, (uint32_t)nranks);
			if (!info->domain)
				return -ENOMEM;
			info->domain->provider = "dev";
			info->domain->id = info->id;
			info->domain->key = info->id;
		}
		return info->domain->nranks == nranks ? 0 : -EPROTO;
	}
	if (!domain)
		return 0;
	if (strcmp(key, "bytes") == 0)
		domain->bytes = strtoull(value, NULL, 10);
	else if (strcmp(key, "rank") == 0)
		info->own_rank = strtoll(value, NULL, 10);
	else if (strcmp(key, "device") == 0)
		info->own.device = (uint32_t)strtoul(value, NULL, 10);
	else if (strcmp(key, "state") == 0)
		info->own.state = state_of(value);
	else if (strcmp(key, "pid") == 0)
		info->own.pid = (uint32_t)strtoul(value, NULL, 10);
	else if (sscanf(key, "member.%u", &index) == 1 && !domain->has_details) {
		info->has_members = 1;
		take_member(domain, index, value - 1);
	} else if (sscanf(key, "window.%u", &index) == 1 && !domain->has_details)
		return take_window(domain, index, value - 1);
	else if (strcmp(key, "wait") == 0 && !domain->has_details)
		return take_wait(domain, value - 1);
	else
		for (size_t k = 0; k < sizeof(number_keys) / sizeof(number_keys[0]); k++)
			if (strcmp(key, number_keys[k]) == 0)
				info->numbers[k] = (uint32_t)strtoll(value, NULL, 10);
	return 0;
}

static void finish(struct fdinfo *info)
{
	struct world_domain *domain = info->domain;

	domain->joined = info->numbers[0];
	domain->finalised = info->numbers[1];
	domain->dead = info->numbers[2];
	domain->first_dead = info->numbers[3];
	domain->poison = info->numbers[4];
	domain->poison_rank = info->numbers[5];
	domain->window_count = info->numbers[6];
	if (info->has_members)
		domain->has_details = 1;
	else if (info->own_rank >= 0 && info->own_rank < domain->nranks && !domain->has_details)
		domain->ranks[info->own_rank] = info->own;
}

int world_read_dev(struct world_list *list, pid_t pid, int fd)
{
	struct fdinfo info = { .own_rank = -1, .numbers = { [3] = PLD_RANK_ANY, [5] = PLD_RANK_ANY } };
	size_t before = list->ndomains;
	char path[64], line[512];
	struct stat stat;
	int ret = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)pid, fd);
	file = fopen(path, "re");
	if (!file)
		return -EBADF;
	while (!ret && fgets(line, sizeof(line), file)) {
		char *value = strstr(line, ":\t");

		if (!value)
			continue;
		*value = '\0';
		value += 2;
		value[strcspn(value, "\n")] = '\0';
		ret = take_line(list, &info, line, value);
	}
	if (!ret && !info.domain)
		ret = -EBADF;
	if (!ret)
		ret = world_add_holder(info.domain, (uint32_t)pid);
	if (!ret) {
		finish(&info);
		if (list->ndomains > before && fstat(fileno(file), &stat) == 0) {
			info.domain->uid = stat.st_uid;
			info.domain->pid = (uint32_t)pid;
		}
	} else if (list->ndomains > before) {
		world_drop(list);
	}
	fclose(file);
	return ret;
}
