// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The state of the machine: how long a cache line takes from one CPU to another and back; see pldbench.h. */
#include "pldbench.h"

#include "atomic.h"
#include "launch.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 4000
#define TRIES 5

/* Two words in lines of their own, and far enough for adjacent-line prefetch. */
struct court {
	_Alignas(128) uint64_t ball;
	_Alignas(128) uint64_t answer;
};

static void bind_to(int cpu)
{
	cpu_set_t mask;

	CPU_ZERO(&mask);
	CPU_SET(cpu, &mask);
	sched_setaffinity(0, sizeof(mask), &mask);
}

static _Noreturn void answer(struct court *court, int cpu)
{
	bind_to(cpu);
	for (uint64_t i = 1; i <= (uint64_t)TRIES * ROUNDS; i++) {
		while (pldk__load_acquire(&court->ball) != i)
			pldk__pause();
		pldk__store_release(&court->answer, i);
	}
	_exit(0);
}

static double fastest_try(struct court *court)
{
	double best = -1;
	uint64_t i = 0;

	for (int t = 0; t < TRIES; t++) {
		long long start = launch_now_ns();
		double rtt;

		for (int round = 0; round < ROUNDS; round++) {
			pldk__store_release(&court->ball, ++i);
			while (pldk__load_acquire(&court->answer) != i)
				pldk__pause();
		}
		rtt = (double)(launch_now_ns() - start) / ROUNDS;
		if (best < 0 || rtt < best)
			best = rtt;
	}
	return best;
}

double bench_probe_ns(void)
{
	int cpus[2], n = 0;
	struct court *court;
	cpu_set_t mask;
	double rtt;
	pid_t pid;

	if (sched_getaffinity(0, sizeof(mask), &mask))
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &mask))
			cpus[n++] = cpu;
	if (n < 2)
		return -1;
	court = mmap(NULL, sizeof(*court), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (court == MAP_FAILED)
		return -1;
	pid = launch_fork();
	if (pid == 0)
		answer(court, cpus[1]);
	bind_to(cpus[0]);
	rtt = pid < 0 ? -1 : fastest_try(court);
	sched_setaffinity(0, sizeof(mask), &mask);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	munmap(court, sizeof(*court));
	return rtt;
}
