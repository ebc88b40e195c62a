/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * pldbench's parts: pldbench.c (command line, one process tree a measurement, JSON), pldbench_ops.c (what the ranks
 * do), pldbench_coll.c (the collectives), pldbench_probe.c (the state of the machine).
 */
#ifndef _PLDBENCH_H
#define _PLDBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pldk.h>

#define BENCH_SAMPLES_MAX 20000
#define PATIENCE PLDK_SEC(60)

/**
 * struct bench_result - what the ranks hand to the parent, in memory that they share with it
 * @provider: which one carried it
 * @samples: nanoseconds of one iteration, mean over a batch, on rank 0
 * @nsamples: how many
 * @iterations: in all batches
 * @voluntary: context switches of all ranks during the batches: went to sleep
 * @involuntary: were preempted
 * @cpu_ns: processor time of all ranks during the batches
 * @wall_ns: rank 0's time for the same
 */
struct bench_result {
	char provider[8];
	double samples[BENCH_SAMPLES_MAX];
	size_t nsamples;
	long long iterations;
	long long voluntary;
	long long involuntary;
	long long cpu_ns;
	long long wall_ns;
};

struct bench_coll;
struct bench_rank;

/**
 * struct bench_op - an operation that can be measured
 * @name: for --ops and the output
 * @is_pair: between ranks 0 and 1; the others only take part in starting each batch
 * @has_bytes: measured once for each size
 * @can_sleep: also measured with waits that sleep at once
 * @is_oversubscribed: with more ranks than CPUs
 * @is_transfer: its bytes make a bandwidth
 * @run: do it @n times; called by every rank; returns 0 or a negative errno
 * @coll: which collective, or NULL
 */
struct bench_op {
	const char *name;
	bool is_pair;
	bool has_bytes;
	bool can_sleep;
	bool is_oversubscribed;
	bool is_transfer;
	int (*run)(struct bench_rank *rank, long n);
	const struct bench_coll *coll;
};

extern const struct bench_op bench_ops[];
extern const size_t bench_nops;

/**
 * struct bench_plan - one measurement
 * @bytes: size; of a collective, that of the largest buffer of a rank
 * @seconds: how long to collect samples
 * @mode: algorithm of an allreduce
 * @in_window: a collective's data lies in windows, else in private memory
 * @has_touch: the producer writes all of its data before each iteration, the consumer reads all of it afterwards
 */
struct bench_plan {
	const struct bench_op *op;
	int nranks;
	size_t bytes;
	double seconds;
	enum pldk_mode mode;
	bool in_window;
	bool has_touch;
};

/**
 * struct bench_rank - a rank at work
 * @window: what put and get reach; of a collective in windows, its input
 * @turn: rounds so far, expected in a cell
 * @input: of a collective, as @output
 * @counts: of the rows of an all_to_all_v
 * @sum: keeps the reading of touched data alive
 */
struct bench_rank {
	struct pldk_domain *world;
	const struct bench_plan *plan;
	int number;
	int peer;
	struct pldk_window *signal;
	struct pldk_window *window;
	struct pldk_dtensor view;
	struct pldk_tensor own;
	char *input;
	char *output;
	size_t *counts;
	int64_t turn;
	unsigned int sum;
};

/**
 * bench_rank_run() - be a rank of a measurement
 * @world_fd: world
 * @number: rank
 * @plan: what to measure
 * @result: shared with the parent
 *
 * Return: exit code of the rank; it has said on stderr what went wrong.
 */
int bench_rank_run(int world_fd, int number, const struct bench_plan *plan, struct bench_result *result);

/* The rows of pldbench_coll.c, one a collective that has data. */
extern const struct bench_coll bench_allreduce, bench_broadcast, bench_allgather, bench_reduce_scatter,
	bench_all_to_all, bench_all_to_all_v, bench_reduce, bench_gather, bench_scatter, bench_scan, bench_exscan;

/**
 * bench_coll_fits() - does a collective have whole elements at this size, and blocks of at least one?
 * @coll: which
 * @bytes: size
 * @nranks: ranks
 *
 * Return: whether it can be measured.
 */
bool bench_coll_fits(const struct bench_coll *coll, size_t bytes, int nranks);

/**
 * bench_coll_set_up() - make the buffers of a collective
 * @rank: rank
 *
 * Return: 0 or a negative errno.
 */
int bench_coll_set_up(struct bench_rank *rank);

/**
 * bench_coll_run() - a collective, @n times; the run of its row
 * @rank: rank
 * @n: how often
 *
 * Return: 0 or a negative errno.
 */
int bench_coll_run(struct bench_rank *rank, long n);

/**
 * bench_probe_ns() - round trip of a cache line between the first two CPUs of the affinity mask
 *
 * The same program on the same machine can be several times slower when the hypervisor has moved a CPU: a measurement
 * without this number says little.
 * Return: nanoseconds, or -1 with a single CPU.
 */
double bench_probe_ns(void);

#endif /* _PLDBENCH_H */
