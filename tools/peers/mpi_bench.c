// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * mpi_bench - the collectives of pldbench over MPI: the same loops, sizes and touching of data, so that the numbers can
 * be held against each other. `make peers` compiles it once for each MPI that is installed; tools/bench-peers runs it.
 *
 * usage: mpirun ... mpi_bench PEER OPERATION BYTES[,BYTES...] SECONDS touch|clean
 *
 * One JSON object a line for each size. BYTES is the largest buffer that a rank has: operations on blocks move
 * BYTES / ranks in each, whole elements. A size of less than one element a block is left out. Rooted operations turn
 * their root from call to call, so that no root can run ahead.
 */
#include "touch.h"

#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_SECONDS 50e-6
#define BATCH_MIN 10L
#define BATCH_MAX 100000L
#define WARM_UP_BATCHES 3
#define SAMPLES_MAX 20000

/* Where the data of the call in hand lie; block is a rank's part of bytes. */
struct job {
	int rank;
	int nranks;
	int root;
	int bytes;
	int block;
	char *input;
	char *output;
	int *counts;
	int *places;
	unsigned int sum; /* of what was read: it keeps the reading */
};

/* How much a rank writes before a call, or reads after it. */
enum amount { NOTHING, BLOCK, WHOLE };

/* What the root and the others hand in and get; in_place: the result is where the data was handed in. */
struct op {
	const char *name;
	bool has_bytes;
	bool is_reduction;
	bool has_blocks;
	bool in_place;
	enum amount root_in, other_in, root_out, other_out;
	int (*run)(const struct job *job);
};

static int run_barrier(const struct job *job)
{
	(void)job;
	return MPI_Barrier(MPI_COMM_WORLD);
}

static int run_allreduce(const struct job *job)
{
	return MPI_Allreduce(job->input, job->output, job->bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int run_broadcast(const struct job *job)
{
	return MPI_Bcast(job->input, job->bytes, MPI_BYTE, job->root, MPI_COMM_WORLD);
}

static int run_allgather(const struct job *job)
{
	return MPI_Allgather(job->input, job->block, MPI_BYTE, job->output, job->block, MPI_BYTE, MPI_COMM_WORLD);
}

static int run_reduce_scatter(const struct job *job)
{
	return MPI_Reduce_scatter_block(job->input, job->output, job->block / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int run_all_to_all(const struct job *job)
{
	return MPI_Alltoall(job->input, job->block, MPI_BYTE, job->output, job->block, MPI_BYTE, MPI_COMM_WORLD);
}

static int run_all_to_all_v(const struct job *job)
{
	return MPI_Alltoallv(job->input, job->counts, job->places, MPI_BYTE, job->output, job->counts, job->places,
			     MPI_BYTE, MPI_COMM_WORLD);
}

static int run_reduce(const struct job *job)
{
	return MPI_Reduce(job->input, job->output, job->bytes / 4, MPI_FLOAT, MPI_SUM, job->root, MPI_COMM_WORLD);
}

static int run_gather(const struct job *job)
{
	return MPI_Gather(job->input, job->block, MPI_BYTE, job->output, job->block, MPI_BYTE, job->root,
			  MPI_COMM_WORLD);
}

static int run_scatter(const struct job *job)
{
	return MPI_Scatter(job->input, job->block, MPI_BYTE, job->output, job->block, MPI_BYTE, job->root,
			   MPI_COMM_WORLD);
}

static int run_scan(const struct job *job)
{
	return MPI_Scan(job->input, job->output, job->bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int run_exscan(const struct job *job)
{
	return MPI_Exscan(job->input, job->output, job->bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static const struct op ops[] = {
	/* name             bytes  reduct. blocks in place root in, others in, root out, others out */
	{ "barrier",        false, false, false, false, NOTHING, NOTHING, NOTHING, NOTHING, run_barrier },
	{ "allreduce",      true,  true,  false, false, WHOLE,   WHOLE,   WHOLE,   WHOLE,   run_allreduce },
	{ "broadcast",      true,  false, false, true,  WHOLE,   NOTHING, NOTHING, WHOLE,   run_broadcast },
	{ "allgather",      true,  false, true,  false, BLOCK,   BLOCK,   WHOLE,   WHOLE,   run_allgather },
	{ "reduce_scatter", true,  true,  true,  false, WHOLE,   WHOLE,   BLOCK,   BLOCK,   run_reduce_scatter },
	{ "all_to_all",     true,  false, true,  false, WHOLE,   WHOLE,   WHOLE,   WHOLE,   run_all_to_all },
	{ "all_to_all_v",   true,  false, true,  false, WHOLE,   WHOLE,   WHOLE,   WHOLE,   run_all_to_all_v },
	{ "reduce",         true,  true,  false, false, WHOLE,   WHOLE,   WHOLE,   NOTHING, run_reduce },
	{ "gather",         true,  false, true,  false, BLOCK,   BLOCK,   WHOLE,   NOTHING, run_gather },
	{ "scatter",        true,  false, true,  false, WHOLE,   NOTHING, BLOCK,   BLOCK,   run_scatter },
	{ "scan",           true,  true,  false, false, WHOLE,   WHOLE,   WHOLE,   WHOLE,   run_scan },
	{ "exscan",         true,  true,  false, false, WHOLE,   WHOLE,   WHOLE,   WHOLE,   run_exscan },
};

#define NOPS (sizeof(ops) / sizeof(ops[0]))

/* An error is not returned: MPI ends the job by its default handler. */
static const struct op *find_op(const char *name)
{
	for (size_t i = 0; i < NOPS; i++)
		if (strcmp(ops[i].name, name) == 0)
			return &ops[i];
	return NULL;
}

static size_t amount(const struct job *job, enum amount what)
{
	return what == NOTHING ? 0 : (size_t)(what == BLOCK ? job->block : job->bytes);
}

/* A batch of n calls; returns the seconds of the slowest rank, on rank 0. */
static double run_batch(const struct op *op, struct job *job, long n, bool has_touch)
{
	double start, mine, slowest = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (long i = 0; i < n; i++) {
		job->root = (int)(i % job->nranks);
		if (has_touch)
			touch_write(job->input, amount(job, job->rank == job->root ? op->root_in : op->other_in), i);
		op->run(job);
		if (has_touch)
			job->sum += touch_read(op->in_place ? job->input : job->output,
					       amount(job, job->rank == job->root ? op->root_out : op->other_out));
	}
	mine = MPI_Wtime() - start;
	MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	return slowest;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Batches grow until the clock can see them, then samples are taken until the time is over; rank 0 decides. */
static void measure(const struct op *op, struct job *job, double seconds, const char *peer, bool has_touch)
{
	static double samples[SAMPLES_MAX];
	double end = MPI_Wtime() + seconds, took, wish;
	long n = 1, iterations = 0;
	size_t nsamples = 0;

	for (int batch = 0;; batch++) {
		if (nsamples && (MPI_Wtime() >= end || nsamples == SAMPLES_MAX))
			n = 0;
		MPI_Bcast(&n, 1, MPI_LONG, 0, MPI_COMM_WORLD);
		if (n == 0)
			break;
		took = run_batch(op, job, n, has_touch);
		if (batch >= WARM_UP_BATCHES) {
			samples[nsamples++] = took / (double)n * 1e9;
			iterations += n;
		} else {
			wish = BATCH_SECONDS / (took / (double)n);
			n = wish < (double)BATCH_MIN ? BATCH_MIN : wish > (double)BATCH_MAX ? BATCH_MAX : (long)wish;
		}
	}
	if (job->rank != 0)
		return;
	qsort(samples, nsamples, sizeof(*samples), compare);
	printf("{\"op\":\"%s\",\"ranks\":%d,\"bytes\":%d,\"mode\":\"auto\",\"placement\":\"private\",\"provider\":\"mpi\","
	       "\"peer\":\"%s\",\"median\":%.6g,\"p10\":%.6g,\"p90\":%.6g,\"unit\":\"ns\",\"median_us\":%.6g,"
	       "\"samples\":%zu,\"iterations\":%ld,\"touch\":%s}\n",
	       op->name, job->nranks, op->has_bytes ? job->bytes : 0, peer, samples[nsamples / 2],
	       samples[nsamples / 10], samples[nsamples * 9 / 10], samples[nsamples / 2] / 1e3, nsamples, iterations,
	       has_touch ? "true" : "false");
	fflush(stdout);
}

/* Buffers for the largest size, touched once, and the equal parts of all_to_all_v. Returns whether there was memory. */
static bool set_up(struct job *job, size_t largest)
{
	size_t len = (largest + 4095) / 4096 * 4096 + 4096;

	job->input = aligned_alloc(4096, len);
	job->output = aligned_alloc(4096, len);
	job->counts = calloc((size_t)job->nranks, sizeof(int));
	job->places = calloc((size_t)job->nranks, sizeof(int));
	if (!job->input || !job->output || !job->counts || !job->places)
		return false;
	memset(job->input, 0, len);
	memset(job->output, 0, len);
	return true;
}

/* Sets the size. Does it make whole elements, and blocks of at least one? */
static bool take_size(struct job *job, const struct op *op, size_t bytes)
{
	size_t element = op->is_reduction ? 4 : 1;

	job->bytes = (int)bytes;
	job->block = (int)(bytes / (size_t)job->nranks / element * element);
	for (int r = 0; r < job->nranks; r++) {
		job->counts[r] = job->block;
		job->places[r] = job->block * r;
	}
	return (job->block > 0 || !op->has_blocks) && bytes % element == 0;
}

int main(int argc, char **argv)
{
	struct job job = { 0 };
	const struct op *op;
	size_t largest = 0;
	char *end;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &job.nranks);
	op = argc == 6 ? find_op(argv[2]) : NULL;
	if (!op) {
		if (job.rank == 0)
			fprintf(stderr, "usage: mpi_bench PEER OPERATION BYTES[,BYTES...] SECONDS touch|clean\n");
		MPI_Finalize();
		return 2;
	}
	for (const char *at = argv[3]; *at; at = *end ? end + 1 : end) {
		size_t bytes = strtoull(at, &end, 10);

		largest = bytes > largest ? bytes : largest;
	}
	if (largest > INT_MAX || !set_up(&job, largest)) {
		fprintf(stderr, "mpi_bench: no memory for two buffers of %zu bytes; give smaller sizes\n", largest);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (const char *at = argv[3]; *at; at = *end ? end + 1 : end)
		if (take_size(&job, op, strtoull(at, &end, 10)) || !op->has_bytes)
			measure(op, &job, strtod(argv[4], NULL), argv[1], strcmp(argv[5], "touch") == 0);
	MPI_Finalize();
	return 0;
}
