/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Finding the agent that moves the bytes of a world's far peers: a process named pldk-agent that has the world open.
 */
#ifndef _PLDK_TEST_AGENT_H
#define _PLDK_TEST_AGENT_H

#include <sys/stat.h>

#include "pldk_test.h"

/* Has the process this file open? */
static inline bool pt_holds(pid_t pid, const struct stat *file)
{
	char path[64], link[400];
	const struct dirent *entry;
	bool found = false;
	struct stat st;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	fds = opendir(path);
	while (fds && !found && (entry = readdir(fds))) {
		snprintf(link, sizeof(link), "%s/%s", path, entry->d_name);
		found = !stat(link, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
	}
	if (fds)
		closedir(fds);
	return found;
}

/* The agent of this world; 0 if it is not there. */
static inline pid_t pt_agent_of(const struct stat *world)
{
	const struct dirent *entry;
	DIR *proc = opendir("/proc");
	pid_t found = 0;

	while (proc && !found && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		char path[64], text[64];

		if (pid <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		pt_slurp(path, text, sizeof(text));
		if (!strcmp(text, "pldk-agent\n") && pt_holds(pid, world))
			found = pid;
	}
	if (proc)
		closedir(proc);
	return found;
}

#endif /* _PLDK_TEST_AGENT_H */
