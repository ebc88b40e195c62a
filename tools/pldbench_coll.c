// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The collectives of pldbench. tools/peers/mpi_bench.c has the same rows and the same loop over MPI: whoever changes
 * one changes the other.
 *
 * bytes is the largest buffer of a rank; operations on blocks move bytes / ranks in each. Rooted operations turn their
 * root from call to call, so that no root can run ahead; a broadcast is in place by nature.
 */
#include "pldbench.h"

#include "peers/touch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One call: count and block in elements. */
struct call {
	struct pldk_domain *world;
	const struct bench_rank *rank;
	int root;
	size_t count;
	size_t block;
	char *input;
	char *output;
};

/* How much a rank writes before a call, or reads after it. */
enum amount { NOTHING, BLOCK, WHOLE };

/* What the root and the others hand in and get; in_place: the result is where the data was handed in. */
struct bench_coll {
	bool is_reduction;
	bool has_blocks;
	bool in_place;
	enum amount root_in, other_in, root_out, other_out;
	int (*run)(const struct call *call);
};

static int run_allreduce(const struct call *call)
{
	return pldk_allreduce(call->world, call->input, call->output, call->count, PLDK_FP32, PLDK_SUM,
			      call->rank->plan->mode, PATIENCE);
}

static int run_broadcast(const struct call *call)
{
	return pldk_broadcast(call->world, call->input, call->count, PLDK_UINT8, call->root, PATIENCE);
}

static int run_allgather(const struct call *call)
{
	return pldk_allgather(call->world, call->input, call->output, call->block, PLDK_UINT8, PATIENCE);
}

static int run_reduce_scatter(const struct call *call)
{
	return pldk_reduce_scatter(call->world, call->input, call->output, call->block, PLDK_FP32, PLDK_SUM, PATIENCE);
}

static int run_all_to_all(const struct call *call)
{
	return pldk_all_to_all(call->world, call->input, call->output, call->block, PLDK_UINT8, PATIENCE);
}

static int run_all_to_all_v(const struct call *call)
{
	return pldk_all_to_all_v(call->world, call->input, call->output, call->block, call->rank->counts,
				 call->rank->counts, PLDK_UINT8, PATIENCE);
}

static int run_reduce(const struct call *call)
{
	return pldk_reduce(call->world, call->input, call->output, call->count, PLDK_FP32, PLDK_SUM, call->root,
			   PATIENCE);
}

static int run_gather(const struct call *call)
{
	return pldk_gather(call->world, call->input, call->output, call->block, PLDK_UINT8, call->root, PATIENCE);
}

static int run_scatter(const struct call *call)
{
	return pldk_scatter(call->world, call->input, call->output, call->block, PLDK_UINT8, call->root, PATIENCE);
}

static int run_scan(const struct call *call)
{
	return pldk_scan(call->world, call->input, call->output, call->count, PLDK_FP32, PLDK_SUM, PATIENCE);
}

static int run_exscan(const struct call *call)
{
	return pldk_exscan(call->world, call->input, call->output, call->count, PLDK_FP32, PLDK_SUM, PATIENCE);
}

/* reduction, blocks, in place, root in, others in, root out, others out */
const struct bench_coll
	bench_allreduce = { true, false, false, WHOLE, WHOLE, WHOLE, WHOLE, run_allreduce },
	bench_broadcast = { false, false, true, WHOLE, NOTHING, NOTHING, WHOLE, run_broadcast },
	bench_allgather = { false, true, false, BLOCK, BLOCK, WHOLE, WHOLE, run_allgather },
	bench_reduce_scatter = { true, true, false, WHOLE, WHOLE, BLOCK, BLOCK, run_reduce_scatter },
	bench_all_to_all = { false, true, false, WHOLE, WHOLE, WHOLE, WHOLE, run_all_to_all },
	bench_all_to_all_v = { false, true, false, WHOLE, WHOLE, WHOLE, WHOLE, run_all_to_all_v },
	bench_reduce = { true, false, false, WHOLE, WHOLE, WHOLE, NOTHING, run_reduce },
	bench_gather = { false, true, false, BLOCK, BLOCK, WHOLE, NOTHING, run_gather },
	bench_scatter = { false, true, false, WHOLE, NOTHING, BLOCK, BLOCK, run_scatter },
	bench_scan = { true, false, false, WHOLE, WHOLE, WHOLE, WHOLE, run_scan },
	bench_exscan = { true, false, false, WHOLE, WHOLE, WHOLE, WHOLE, run_exscan };

static size_t element(const struct bench_coll *coll)
{
	return coll->is_reduction ? sizeof(float) : 1;
}

bool bench_coll_fits(const struct bench_coll *coll, size_t bytes, int nranks)
{
	return bytes % element(coll) == 0 && (!coll->has_blocks || bytes / (size_t)nranks / element(coll) > 0);
}

int bench_coll_set_up(struct bench_rank *rank)
{
	const struct bench_plan *plan = rank->plan;
	int64_t bytes = (int64_t)plan->bytes;
	struct pldk_window *output;
	int ret = 0;

	rank->counts = calloc((size_t)plan->nranks, sizeof(*rank->counts));
	if (!rank->counts)
		return -ENOMEM;
	for (int r = 0; r < plan->nranks; r++)
		rank->counts[r] = plan->bytes / (size_t)plan->nranks;
	if (!plan->in_window) {
		rank->input = aligned_alloc(4096, (plan->bytes + 4095) / 4096 * 4096);
		rank->output = aligned_alloc(4096, (plan->bytes + 4095) / 4096 * 4096);
		if (!rank->input || !rank->output)
			return -ENOMEM;
	} else {
		ret = pldk_window_create_typed(rank->world, 1, &bytes, PLDK_UINT8, NULL, &rank->window);
		if (ret >= 0)
			ret = pldk_window_create_typed(rank->world, 1, &bytes, PLDK_UINT8, NULL, &output);
		if (ret < 0)
			return ret;
		rank->input = pldk_window_base(rank->window);
		rank->output = pldk_window_base(output);
	}
	memset(rank->input, 0, plan->bytes);
	memset(rank->output, 0, plan->bytes);
	return 0;
}

int bench_coll_run(struct bench_rank *rank, long n)
{
	const struct bench_plan *plan = rank->plan;
	const struct bench_coll *coll = plan->op->coll;
	size_t block = plan->bytes / (size_t)plan->nranks / element(coll);
	const size_t amounts[] = { [NOTHING] = 0, [BLOCK] = block * element(coll), [WHOLE] = plan->bytes };
	struct call call = {
		.world = rank->world,
		.rank = rank,
		.count = plan->bytes / element(coll),
		.block = block,
		.input = rank->input,
		.output = rank->output,
	};
	int ret = 0;

	for (long i = 0; i < n && ret >= 0; i++) {
		bool is_root = rank->number == (call.root = (int)(i % plan->nranks));

		if (plan->has_touch)
			touch_write(call.input, amounts[is_root ? coll->root_in : coll->other_in], i);
		ret = coll->run(&call);
		if (plan->has_touch)
			rank->sum += touch_read(coll->in_place ? call.input : call.output,
						amounts[is_root ? coll->root_out : coll->other_out]);
	}
	return ret;
}
