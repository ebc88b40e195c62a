// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What the ranks of a measurement do.
 *
 * Rank 0 decides how many iterations the next batch has and tells the others by a broadcast, outside the measured time;
 * 0 ends the measurement. A batch is long enough for the clock, a sample is its mean.
 */
#include "pldbench.h"

#include "atomic.h"
#include "launch.h"
#include "peers/touch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define BATCH_NS 50000.0
#define BATCH_MIN 10L /* of less, rank 0 may see no more than its own arrival as the last */
#define BATCH_MAX 100000L
#define WARM_UP_BATCHES 3

static void write_all(struct bench_rank *rank, void *data)
{
	if (rank->plan->has_touch)
		touch_write(data, rank->plan->bytes, (long)rank->turn);
}

static void read_all(struct bench_rank *rank, const void *data)
{
	if (rank->plan->has_touch)
		rank->sum += touch_read(data, rank->plan->bytes);
}

static int run_notify_wait(struct bench_rank *rank, long n)
{
	int ret = 0;

	for (long i = 0; i < n && ret >= 0; i++) {
		rank->turn++;
		if (rank->number == 0)
			ret = pldk_notify(rank->signal, rank->peer, 0, PLDK_NOTIFY_SET, rank->turn);
		if (ret >= 0)
			ret = pldk_wait(rank->signal, 0, PLDK_GE, rank->turn, PATIENCE);
		if (ret >= 0 && rank->number == 1)
			ret = pldk_notify(rank->signal, rank->peer, 0, PLDK_NOTIFY_SET, rank->turn);
	}
	return ret;
}

static int run_barrier(struct bench_rank *rank, long n)
{
	int ret = 0;

	for (long i = 0; i < n && ret >= 0; i++)
		ret = pldk_barrier(rank->world, PATIENCE);
	return ret;
}

static int run_put(struct bench_rank *rank, long n)
{
	int ret = 0;

	for (long i = 0; i < n && ret >= 0 && rank->number == 0; i++) {
		rank->turn++;
		write_all(rank, rank->own.data);
		ret = pldk_put(&rank->view, rank->peer, &rank->own, NULL, NULL);
	}
	return ret;
}

static int run_get(struct bench_rank *rank, long n)
{
	int ret = 0;

	for (long i = 0; i < n && ret >= 0 && rank->number == 0; i++) {
		ret = pldk_get(&rank->own, &rank->view, rank->peer, NULL, NULL);
		read_all(rank, rank->own.data);
	}
	return ret;
}

static int send_data(struct bench_rank *rank)
{
	struct pldk_signal_to to = { rank->signal, 0, rank->turn, PLDK_NOTIFY_SET };

	write_all(rank, rank->own.data);
	return pldk_put_notify(&rank->view, rank->peer, &rank->own, NULL, NULL, &to);
}

static int run_put_notify(struct bench_rank *rank, long n)
{
	int ret = 0;

	for (long i = 0; i < n && ret >= 0; i++) {
		rank->turn++;
		if (rank->number == 0)
			ret = send_data(rank);
		if (ret >= 0)
			ret = pldk_wait(rank->signal, 0, PLDK_GE, rank->turn, PATIENCE);
		read_all(rank, pldk_window_base(rank->window));
		if (ret >= 0 && rank->number == 1)
			ret = send_data(rank);
	}
	return ret;
}

const struct bench_op bench_ops[] = {
	/*  name            pair   bytes  sleep  over   transfer */
	{ "notify_wait",    true,  false, true,  false, false, run_notify_wait, NULL },
	{ "barrier",        false, false, true,  false, false, run_barrier,     NULL },
	{ "put",            true,  true,  false, false, true,  run_put,         NULL },
	{ "get",            true,  true,  false, false, true,  run_get,         NULL },
	{ "put_notify",     true,  true,  false, false, false, run_put_notify,  NULL },
	{ "allreduce",      false, true,  false, false, true,  bench_coll_run,  &bench_allreduce },
	{ "broadcast",      false, true,  false, false, true,  bench_coll_run,  &bench_broadcast },
	{ "allgather",      false, true,  false, false, true,  bench_coll_run,  &bench_allgather },
	{ "reduce_scatter", false, true,  false, false, true,  bench_coll_run,  &bench_reduce_scatter },
	{ "all_to_all",     false, true,  false, false, true,  bench_coll_run,  &bench_all_to_all },
	{ "all_to_all_v",   false, true,  false, false, true,  bench_coll_run,  &bench_all_to_all_v },
	{ "reduce",         false, true,  false, false, true,  bench_coll_run,  &bench_reduce },
	{ "gather",         false, true,  false, false, true,  bench_coll_run,  &bench_gather },
	{ "scatter",        false, true,  false, false, true,  bench_coll_run,  &bench_scatter },
	{ "scan",           false, true,  false, false, true,  bench_coll_run,  &bench_scan },
	{ "exscan",         false, true,  false, false, true,  bench_coll_run,  &bench_exscan },
	{ "oversubscribed", false, false, false, true,  false, run_barrier,     NULL },
};

const size_t bench_nops = sizeof(bench_ops) / sizeof(bench_ops[0]);

static int set_up(struct bench_rank *rank, int world_fd)
{
	int64_t one = 1, bytes = (int64_t)rank->plan->bytes;
	int ret = pldk_world_join(world_fd, rank->number, PATIENCE, &rank->world);

	if (ret >= 0)
		ret = pldk_signal_create(rank->world, 1, &one, NULL, &rank->signal);
	if (ret < 0 || bytes == 0)
		return ret;
	if (rank->plan->op->coll)
		return bench_coll_set_up(rank);
	/* The size is meant in bytes, however small it is. */
	ret = pldk_window_create_typed(rank->world, 1, &bytes, PLDK_UINT8, NULL, &rank->window);
	if (ret >= 0)
		ret = pldk_view(rank->window, 0, 1, &bytes, PLDK_UINT8, &rank->view);
	if (ret < 0)
		return ret;
	rank->input = aligned_alloc(64, (rank->plan->bytes + 63) / 64 * 64);
	if (!rank->input)
		return -ENOMEM;
	memset(rank->input, 0, rank->plan->bytes);
	return pldk_tensor_of(&rank->own, rank->input, PLDK_UINT8, 1, &bytes);
}

/* One batch: n from rank 0 to all, then the work. Returns 1 when the measurement is over. */
static int run_batch(struct bench_rank *rank, int64_t *n, double *ns)
{
	int ret = pldk_broadcast(rank->world, n, 1, PLDK_INT64, 0, PATIENCE);
	long long start;

	if (ret < 0 || *n == 0)
		return ret < 0 ? ret : 1;
	/* Else the first iteration would also measure how late the others leave the broadcast. */
	ret = pldk_barrier(rank->world, PATIENCE);
	if (ret < 0)
		return ret;
	start = launch_now_ns();
	if (!rank->plan->op->is_pair || rank->number < 2)
		ret = rank->plan->op->run(rank, (long)*n);
	*ns = (double)(launch_now_ns() - start);
	/* A collective is over when it is over for the slowest. */
	if (ret >= 0 && rank->plan->op->coll)
		ret = pldk_allreduce(rank->world, PLDK_IN_PLACE, ns, 1, PLDK_FP64, PLDK_MAX, PLDK_MODE_AUTO, PATIENCE);
	return ret < 0 ? ret : 0;
}

/* Rank 0: batches grow until the clock can see them, then samples are taken until the time is over. */
static int lead(struct bench_rank *rank, struct bench_result *result)
{
	long long end = launch_now_ns() + (long long)(rank->plan->seconds * 1e9);
	int64_t n = 1, wish;
	double ns;
	int ret;

	for (int batch = 0;; batch++) {
		if (result->nsamples && (launch_now_ns() >= end || result->nsamples == BENCH_SAMPLES_MAX))
			n = 0;
		ret = run_batch(rank, &n, &ns);
		if (ret)
			return ret < 0 ? ret : 0;
		if (batch >= WARM_UP_BATCHES) {
			result->samples[result->nsamples++] = ns / (double)n;
			result->iterations += n;
			result->wall_ns += (long long)ns;
		} else {
			wish = (int64_t)(BATCH_NS / (ns / (double)n));
			n = wish < BATCH_MIN ? BATCH_MIN : wish > BATCH_MAX ? BATCH_MAX : wish;
		}
	}
}

static int follow(struct bench_rank *rank)
{
	int64_t n = 0;
	double ns;
	int ret;

	do
		ret = run_batch(rank, &n, &ns);
	while (ret == 0);
	return ret < 0 ? ret : 0;
}

static long long microseconds(struct timeval time)
{
	return (long long)time.tv_sec * 1000000 + time.tv_usec;
}

static void add_usage(struct bench_result *result, const struct rusage *before, const struct rusage *after)
{
	long long cpu_us = microseconds(after->ru_utime) + microseconds(after->ru_stime) -
			   microseconds(before->ru_utime) - microseconds(before->ru_stime);

	pldk__add_relaxed(&result->voluntary, after->ru_nvcsw - before->ru_nvcsw);
	pldk__add_relaxed(&result->involuntary, after->ru_nivcsw - before->ru_nivcsw);
	pldk__add_relaxed(&result->cpu_ns, cpu_us * 1000);
}

int bench_rank_run(int world_fd, int number, const struct bench_plan *plan, struct bench_result *result)
{
	struct bench_rank rank = { .plan = plan, .number = number, .peer = number ^ 1 };
	struct rusage before, after;
	int ret = set_up(&rank, world_fd);

	if (ret >= 0) {
		getrusage(RUSAGE_SELF, &before);
		ret = number == 0 ? lead(&rank, result) : follow(&rank);
		getrusage(RUSAGE_SELF, &after);
		add_usage(result, &before, &after);
	}
	if (!plan->in_window || !plan->op->coll) {
		free(rank.input);
		free(rank.output);
	}
	free(rank.counts);
	if (ret < 0) {
		fprintf(stderr, "pldbench: %s: %s\n", plan->op->name, pldk_last_error());
		return 1;
	}
	return pldk_finalize(rank.world) < 0;
}
