// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: the whole matrix of collectives (operation, mode, type, reduction, ranks 1..9, counts 0..4P+3 and
 * primes, in place or not, offset, placement), every case against the oracle.
 *
 * A sample of it, another one each day, unless PLDK_COLL_MATRIX=all (make check-collectives). A failure prints the
 * seed: PLDK_COLL_MATRIX=SEED runs that case alone, with the number of ranks that it had.
 */
#include "pldk_test_case.h"

#define SAMPLE 3000 /* cases for each number of ranks */
#define STRETCH 20000 /* cases that one set of ranks runs */

static const size_t primes[] = { 31, 97, 257, 1009 };

/* The next digit of a number in mixed radix. */
static uint64_t digit(uint64_t *rest, uint64_t radix)
{
	uint64_t value = *rest % radix;

	*rest /= radix;
	return value;
}

static uint64_t counts_of(int size)
{
	return 4 * (uint64_t)size + 4 + ARRAY_SIZE(primes);
}

/* Cases of an operation. */
static uint64_t cases_of(enum op op, int size)
{
	uint64_t n = 2 * 3 * 3 * PT_DTYPES * counts_of(size);

	if (op == BARRIER)
		return 1;
	if (combines(op))
		n *= 4;
	return op == ALLREDUCE ? 4 * n : n;
}

/* Case number `at` of the matrix for so many ranks. The root, which is no dimension of it, varies with the case. */
static bool plan_of(struct plan *plan, uint64_t at, int size)
{
	static const enum pldk_mode modes[] = { PLDK_MODE_AUTO, PLDK_MODE_MESH, PLDK_MODE_TWO_PHASE, PLDK_MODE_RING };
	static const size_t shifts[] = { 0, 1, 3 };
	uint64_t count;
	int op = 0;

	memset(plan, 0, sizeof(*plan));
	plan->seed = at;
	while (op < OPS && at >= cases_of((enum op)op, size))
		at -= cases_of((enum op)op++, size);
	if (op == OPS)
		return false;
	plan->op = (enum op)op;
	plan->root = (int)(plan->seed % (uint64_t)size);
	plan->in_place = (int)digit(&at, 2);
	plan->shift = shifts[digit(&at, 3)];
	plan->placement = (int)digit(&at, 3);
	plan->dtype = (enum pldk_dtype)(1 + digit(&at, PT_DTYPES));
	count = digit(&at, counts_of(size));
	plan->count = count < 4 * (uint64_t)size + 4 ? count : primes[count - 4 * (uint64_t)size - 4];
	if (combines(plan->op))
		plan->reduce = (enum pldk_reduce_op)digit(&at, 4);
	if (plan->op == ALLREDUCE)
		plan->mode = modes[digit(&at, 4)];
	return true;
}

/* every: each so-manieth case on average, chosen by salt; 0: the one at from */
struct stretch {
	uint64_t from;
	uint64_t to;
	uint64_t every;
	uint64_t salt;
};

RANK(run_stretch)
{
	const struct stretch *stretch = arg;
	struct pldk_window *window = pt_window(_metadata, world, 2 * ROOM);
	char *shared = pldk_window_base(window), *places[4] = { malloc(ROOM), malloc(ROOM), shared, shared + ROOM };
	int64_t ran = 0;

	for (uint64_t at = stretch->from; at < stretch->to; at++) {
		struct plan plan;

		if (stretch->every > 1 && pt_mix(at, stretch->salt, 5) % stretch->every)
			continue;
		if (!plan_of(&plan, at, size))
			break;
		run_case(_metadata, world, &plan, places);
		ran++;
	}
	if (!rank)
		atomic_fetch_add(pt_word(0), ran);
	free(places[0]);
	free(places[1]);
}

static void run_matrix(struct __test_metadata *_metadata, int size)
{
	const char *text = getenv("PLDK_COLL_MATRIX");
	const bool is_all = text && !strcmp(text, "all");
	struct stretch stretch = { .every = 1, .salt = (uint64_t)(time(NULL) / 86400) };
	uint64_t cases = 0;

	for (int op = 0; op < OPS; op++)
		cases += cases_of((enum op)op, size);
	if (text && !is_all)
		stretch.from = strtoull(text, NULL, 0);
	else if (!is_all)
		stretch.every = cases / (uint64_t)pt_rounds(SAMPLE) + 1;
	pt_clear_words();
	do {
		struct pt_run run = { .nranks = size, .body = run_stretch, .arg = &stretch, .limit_ms = 90000 };

		stretch.to = text && !is_all ? stretch.from + 1 : stretch.from + STRETCH * stretch.every;
		pt_start(_metadata, &run);
		pt_finish(_metadata, &run);
		if (!_metadata->passed)
			return;
		stretch.from = stretch.to;
	} while (stretch.from < cases && !(text && !is_all));
	TH_LOG("%d ranks: %" PRId64 " of %" PRIu64 " cases", size, (int64_t)atomic_load(pt_word(0)), cases);
}

#define MATRIX(size)                                                                                                   \
	TEST_F_TIMEOUT(matrix, of_##size##_ranks, 1800)                                                                \
	{                                                                                                              \
		run_matrix(_metadata, size);                                                                           \
	}

FIXTURE(matrix)
{
};

FIXTURE_SETUP(matrix)
{
}

FIXTURE_TEARDOWN(matrix)
{
}

/* E9: every number of ranks, type and count */
MATRIX(1)
MATRIX(2)
MATRIX(3)
MATRIX(4)
MATRIX(5)
MATRIX(6)
MATRIX(7)
MATRIX(8)
MATRIX(9)

TEST_HARNESS_MAIN
