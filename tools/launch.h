/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Starting ranks: which device each one gets, which CPU hosts it, the world, and the fork. What pldrun and pldbench
 * have in common; nothing here knows of command lines or output.
 */
#ifndef _PLDK_TOOLS_LAUNCH_H
#define _PLDK_TOOLS_LAUNCH_H

#include <stddef.h>
#include <sys/types.h>

/**
 * struct launch_plan - a job before it starts
 * @nranks: ranks
 * @devices: device id of each
 * @cpus: CPU of each one's device
 * @provider: name of the provider, once launch_world() made the world
 * @world_fd: the world, close-on-exec
 * @why: why this provider, or what is wrong after a failure: a sentence without a full stop
 */
struct launch_plan {
	int nranks;
	int *devices;
	int *cpus;
	const char *provider;
	int world_fd;
	char why[512];
};

/**
 * launch_plan_make() - decide devices and CPUs
 * @plan: filled; launch_plan_free() gives it back, also after a failure
 * @nranks: ranks, or 0 to take as many as there are devices
 * @devices: "4,5,..." or NULL for 0..nranks-1
 * @map: file of "DEVICE CPU" lines, or NULL. Devices that it does not name follow the rule: device d is hosted by the
 *       (d mod n)-th of the n CPUs in this process' affinity mask
 *
 * Return: 0, or -1 with the reason in @plan->why.
 */
int launch_plan_make(struct launch_plan *plan, int nranks, const char *devices, const char *map);

/** launch_plan_free() - give the plan's memory and world back */
void launch_plan_free(struct launch_plan *plan);

/**
 * launch_world() - make the world
 * @plan: made; its provider, world_fd and why are set
 * @provider: "dev", "shm", or NULL for PLDK_PROVIDER, else dev where it opens, else shm
 *
 * Return: 0, or -1 with the reason in @plan->why.
 */
int launch_world(struct launch_plan *plan, const char *provider);

/**
 * launch_fork() - fork a rank that does not outlive the caller
 *
 * Only for the main thread: the child's death is tied to the thread that forked it.
 * Return: as fork(2).
 */
pid_t launch_fork(void);

/** launch_bind() - put the calling process on a rank's CPU. Return: 0 or a negative errno */
int launch_bind(const struct launch_plan *plan, int rank);

/**
 * launch_how() - how a process ended, in words
 * @status: from waitpid(2)
 * @text: out: "exited with code 3" or "killed by SIGSEGV (core dumped)"
 * @room: of @text
 */
void launch_how(int status, char *text, size_t room);

/** launch_now_ns() - CLOCK_MONOTONIC */
long long launch_now_ns(void);

#endif /* _PLDK_TOOLS_LAUNCH_H */
