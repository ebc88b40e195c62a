// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Finding worlds: whoever takes part has a descriptor, so the descriptors of all processes are the list of all worlds.
 * There is no registry that could be stale or that somebody would have to clean up.
 */
#include "pldctl.h"

#include "shm_layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHM_LINK "/memfd:" SHM_NAME

/* A world file, unless another process showed it before; and that this one has it, too. */
static int read_shm(struct world_list *list, pid_t pid, const char *path)
{
	bool is_known = false;
	struct stat stat;
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return 0; /* closed meanwhile */
	if (fstat(fd, &stat))
		goto out;
	for (size_t d = 0; d < list->ndomains; d++)
		is_known |= strcmp(list->domains[d].provider, "shm") == 0 && list->domains[d].key == stat.st_ino;
	if (!is_known)
		ret = world_read_shm(list, fd);
	for (size_t d = 0; d < list->ndomains && !ret; d++)
		if (strcmp(list->domains[d].provider, "shm") == 0 && list->domains[d].key == stat.st_ino)
			ret = world_add_holder(&list->domains[d], (uint32_t)pid);
out:
	close(fd);
	return ret;
}

/* All descriptors of a process. Returns -EACCES if they may not be listed. */
static int scan_process(struct world_list *list, pid_t pid)
{
	char path[64], link[128];
	struct dirent *entry;
	int ret = 0;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	fds = opendir(path);
	if (!fds)
		return errno == EACCES || errno == EPERM ? -EACCES : 0;
	while (ret != -ENOMEM && (entry = readdir(fds))) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", (int)pid, entry->d_name);
		len = readlink(path, link, sizeof(link) - 1);
		if (len <= 0)
			continue;
		link[len] = '\0';
		if (strncmp(link, SHM_LINK, strlen(SHM_LINK)) == 0)
			ret = read_shm(list, pid, path);
		else if (strcmp(link, "anon_inode:[pld-domain]") == 0 || strcmp(link, "anon_inode:[pld-rank]") == 0)
			ret = world_read_dev(list, pid, atoi(entry->d_name));
	}
	closedir(fds);
	return ret == -ENOMEM ? ret : 0;
}

static int compare_windows(const void *a, const void *b)
{
	uint32_t x = ((const struct world_window *)a)->id, y = ((const struct world_window *)b)->id;

	return x < y ? -1 : x > y;
}

int pldctl_scan(struct world_list *list, unsigned int *hidden)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	int ret = 0;

	*hidden = 0;
	if (!proc)
		return -errno;
	while (ret != -ENOMEM && (entry = readdir(proc))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (*end || pid <= 0)
			continue;
		ret = scan_process(list, (pid_t)pid);
		*hidden += ret == -EACCES;
	}
	closedir(proc);
	for (size_t d = 0; d < list->ndomains; d++)
		if (list->domains[d].nwindows)
			qsort(list->domains[d].windows, list->domains[d].nwindows, sizeof(struct world_window),
			      compare_windows);
	return ret == -ENOMEM ? ret : 0;
}
