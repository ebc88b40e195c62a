// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: windows. Creation is all or nothing on all ranks, memory is zero, whole and aligned, identities are
 * never reused silently, and a far slab is nowhere in this process.
 */
#include "pldk_test.h"

#include <sys/resource.h>

/* A program built with a newer library's headers: a longer struct. */
RANK(pass_options_of_any_size)
{
	struct {
		struct pldk_window_options options;
		char more[64];
	} newer = { .options = PLDK_WINDOW_OPTIONS_INIT };
	struct pldk_window_options options = PLDK_WINDOW_OPTIONS_INIT;
	static const size_t sizes[] = { 0, sizeof(options) - 1, SIZE_MAX };
	struct pldk_window *window = PT_POISON_PTR;

	newer.options.size = sizeof(newer);
	newer.more[63] = 1;
	EXPECT_RET(-E2BIG, pldk_window_create(world, 64, &newer.options, &window));
	EXPECT_SAYS("options", "rank", "older than the program");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		options.size = sizes[i];
		EXPECT_RET(-EINVAL, pldk_window_create(world, 64, &options, &window));
		EXPECT_SAYS("options", "OPTIONS_INIT");
	}
	options.size = sizeof(options);
	options.name = "two\nlines";
	EXPECT_RET(-EINVAL, pldk_window_create(world, 64, &options, &window));
	EXPECT_SAYS("name", "0x0a", "byte 3");
	EXPECT_EQ(PT_POISON_PTR, window);
	newer.more[63] = 0;
	ASSERT_OK(pldk_window_create(world, 64, &newer.options, &window));
	ASSERT_OK(pldk_window_destroy(window));
	(void)rank;
	(void)size;
}

TEST(options_of_a_newer_program_are_taken_if_they_ask_for_nothing_new)
{
	run_ranks(2, pass_options_of_any_size, NULL);
}

static struct pldk_window_options with_id(int id)
{
	struct pldk_window_options options = PLDK_WINDOW_OPTIONS_INIT;

	options.id = id;
	options.timeout_ns = PT_LONG;
	return options;
}

/*
 * Making them
 */

RANK(make_each_form)
{
	struct pldk_window_options options = with_id(65534);
	struct pldk_window *bytes = NULL, *typed = NULL, *signal = NULL;

	ASSERT_OK(pldk_window_create(world, 5000, &options, &bytes));
	EXPECT_RET(65534, pldk_window_id(bytes));
	EXPECT_EQ(5000, pldk_window_bytes(bytes));
	EXPECT_EQ(world, pldk_window_domain(bytes));
	EXPECT_GE(pldk_window_page_bytes(bytes), 4096);
	ASSERT_OK(pldk_window_create_typed(world, 3, SHAPE(2, 3, pldk_dim(world, "NR")), PLDK_FP64, NULL, &typed));
	EXPECT_EQ(2 * 3 * size * 8, pldk_window_bytes(typed));
	options = with_id(7);
	options.name = "doorbells";
	ASSERT_OK(pldk_signal_create(world, 2, SHAPE(pldk_dim(world, "NR"), 2), &options, &signal));
	EXPECT_RET(7, pldk_window_id(signal));
	EXPECT_EQ(NULL, pldk_window_base(signal));
	EXPECT_EQ(NULL, pldk_window_peer(signal, rank));
	EXPECT_EQ(pldk_window_base(bytes), pldk_window_peer(bytes, rank));
	EXPECT_EQ(NULL, pldk_window_peer(bytes, size));
	EXPECT_EQ(NULL, pldk_window_peer(bytes, -1));
	EXPECT_NE(pldk_window_id(typed), 65534);
	EXPECT_NE(pldk_window_id(typed), 7);
	EXPECT_OK(pldk_window_destroy(signal));
	EXPECT_OK(pldk_window_destroy(typed));
	EXPECT_OK(pldk_window_destroy(bytes));
}

TEST(bytes_typed_and_signal_forms)
{
	run_ranks(1, make_each_form, NULL);
	run_ranks(3, make_each_form, NULL);
}

RANK(make_wrong)
{
	static const struct {
		size_t bytes;
		int id;
		uint32_t flags;
		int expected;
		const char *word;
	} table[] = {
		{ 0, -1, 0, -EINVAL, "0" },	 { 4096, 65535, 0, -EINVAL, "65535" }, { 4096, -2, 0, -EINVAL, "-2" },
		{ 4096, -1, 1u << 30, -EOPNOTSUPP, "flag" }, { SIZE_MAX, -1, 0, -ENOMEM, "" },
	};
	struct pldk_window *window = PT_POISON_PTR;
	int64_t huge = INT64_MAX / 4;

	(void)rank;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct pldk_window_options options = with_id(table[i].id);
		int64_t ret;

		options.flags = table[i].flags;
		errno = PT_ERRNO;
		ret = pldk_window_create(world, table[i].bytes, &options, &window);
		EXPECT_EQ(PT_ERRNO, errno);
		if (table[i].expected != -ENOMEM) {
			EXPECT_EQ(table[i].expected, ret) TH_LOG("row %zu: %s", i, pldk_last_error());
		} else {
			EXPECT_LT(ret, 0);
		}
		EXPECT_SAYS(table[i].word);
	}
	EXPECT_RET(-EINVAL, pldk_window_create(NULL, 4096, NULL, &window));
	EXPECT_RET(-EINVAL, pldk_window_create(world, 4096, NULL, NULL));
	EXPECT_RET(-EINVAL, pldk_window_create_typed(world, 0, SHAPE(1), PLDK_FP32, NULL, &window));
	EXPECT_RET(-EINVAL,
		   pldk_window_create_typed(world, 9, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), PLDK_FP32, NULL, &window));
	EXPECT_RET(-EINVAL, pldk_window_create_typed(world, 2, SHAPE(4, 0), PLDK_FP32, NULL, &window));
	EXPECT_SAYS("1", "0");
	EXPECT_RET(-EINVAL, pldk_window_create_typed(world, 2, SHAPE(4, -3), PLDK_FP32, NULL, &window));
	EXPECT_RET(-EINVAL, pldk_window_create_typed(world, 1, SHAPE(4), 0, NULL, &window));
	EXPECT_RET(-EINVAL, pldk_window_create_typed(world, 1, SHAPE(4), 99, NULL, &window));
	EXPECT_RET(-EINVAL, pldk_window_create_typed(world, 1, NULL, PLDK_FP32, NULL, &window));
	EXPECT_RET(-EOVERFLOW, pldk_window_create_typed(world, 2, SHAPE(huge, 64), PLDK_FP32, NULL, &window));
	EXPECT_RET(-EINVAL, pldk_signal_create(world, 1, SHAPE(0), NULL, &window));
	EXPECT_RET(-EOVERFLOW, pldk_signal_create(world, 2, SHAPE(huge, 64), NULL, &window));
	EXPECT_RET(-ENOENT,
		   pldk_window_create_typed(world, 1, SHAPE(pldk_dim(world, "free")), PLDK_FP32, NULL, &window));
	EXPECT_SAYS("free");
	EXPECT_EQ(PT_POISON_PTR, window);
	EXPECT_RET(-EINVAL, pldk_window_id(NULL));
	EXPECT_EQ(0, pldk_window_bytes(NULL));
	EXPECT_EQ(0, pldk_window_page_bytes(NULL));
	EXPECT_EQ(NULL, pldk_window_base(NULL));
	EXPECT_EQ(NULL, pldk_window_domain(NULL));
	EXPECT_OK(pldk_window_destroy(NULL));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(wrong_arguments_are_refused_before_anybody_waits)
{
	run_ranks(2, make_wrong, NULL);
}

static char logged[256];

static void keep_line(enum pldk_log_level level, const char *line, void *arg)
{
	(void)arg;
	if (level == PLDK_LOG_WARN)
		snprintf(logged, sizeof(logged), "%s", line);
}

RANK(pass_a_count)
{
	struct pldk_window *window = NULL;
	struct pldk_dtensor view;

	(void)rank;
	pldk_set_log(keep_line, NULL, PLDK_LOG_WARN);
	ASSERT_OK(pldk_window_create(world, (size_t)size, NULL, &window));
	EXPECT_NE(NULL, strstr(logged, "3 bytes is the number of ranks"));
	EXPECT_RET(-EINVAL, pldk_view(window, 0, 2, SHAPE(size, 4), PLDK_FP32, &view));
	EXPECT_SAYS("3 bytes", "[3,4]", "FP32");
	logged[0] = 0;
	ASSERT_OK(pldk_window_create(world, 8, NULL, &window));
	EXPECT_EQ('\0', logged[0]);
	pldk_set_log(NULL, NULL, PLDK_LOG_ERROR);
}

/* K5, PAGE: alloc given ranks instead of bytes */
TEST(a_size_that_equals_the_number_of_ranks_is_logged_as_a_probable_mistake)
{
	run_ranks(3, pass_a_count, NULL);
}

RANK(take_a_taken_id)
{
	struct pldk_window_options options = with_id(12);
	struct pldk_window *window = NULL, *again = PT_POISON_PTR;

	(void)rank;
	ASSERT_OK(pldk_window_create(world, 4096, &options, &window));
	EXPECT_RET(-EEXIST, pldk_window_create(world, 8192, &options, &again));
	EXPECT_SAYS("12", "4096", "8192");
	EXPECT_RET(-EEXIST, pldk_signal_create(world, 1, SHAPE(5), &options, &again));
	EXPECT_EQ(PT_POISON_PTR, again);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_OK(pldk_window_destroy(window));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_OK(pldk_window_create(world, 8192, &options, &again));
	EXPECT_EQ(8192, pldk_window_bytes(again));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

/* B20: creating an id in use returns success and ignores the new arguments */
TEST(a_taken_id_is_eexist_with_both_sizes_and_free_after_destroy)
{
	run_ranks(2, take_a_taken_id, NULL);
}

RANK(disagree)
{
	struct pldk_window *window = PT_POISON_PTR, *after = NULL;
	struct pldk_window_options options = with_id(rank == 1 ? 4 : 3);

	EXPECT_RET(-EPROTO, pldk_window_create(world, rank == 1 ? 8192 : 4096, NULL, &window));
	EXPECT_SAYS("rank 1|rank 0", "4096", "8192");
	EXPECT_RET(-EPROTO, pldk_window_create(world, 4096, &options, &window));
	EXPECT_SAYS("3", "4");
	if (rank == size - 1)
		EXPECT_RET(-EPROTO, pldk_signal_create(world, 1, SHAPE(64), NULL, &window));
	else
		EXPECT_RET(-EPROTO, pldk_window_create(world, 4096, NULL, &window));
	EXPECT_EQ(PT_POISON_PTR, window);
	/* Nothing is left, and the domain goes on. */
	ASSERT_OK(pldk_window_create(world, 4096, NULL, &after));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(ranks_that_disagree_all_get_eproto_with_both_values)
{
	run_ranks(2, disagree, NULL);
	run_ranks(4, disagree, NULL);
}

RANK(fail_alone)
{
	struct pldk_window_options options = with_id(9);
	struct pldk_window *mine = NULL, *window = PT_POISON_PTR;

	/* Only rank 1 still has id 9 open. */
	ASSERT_OK(pldk_window_create(world, 4096, &options, &mine));
	if (rank != 1)
		EXPECT_OK(pldk_window_destroy(mine));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_RET(-EEXIST, pldk_window_create(world, 4096, &options, &window));
	EXPECT_SAYS("9");
	if (rank != 1)
		EXPECT_SAYS("rank 1");
	EXPECT_EQ(PT_POISON_PTR, window);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

/* A8: one rank's failure, swallowed there, hangs the others */
TEST(what_fails_on_one_rank_fails_on_all_with_its_errno)
{
	run_ranks(3, fail_alone, NULL);
}

/*
 * Memory
 */

static bool is_all(const void *data, unsigned char value, size_t n)
{
	const unsigned char *p = data;

	return !n || (p[0] == value && !memcmp(p, p + 1, n - 1));
}

RANK(recycle)
{
	for (int round = 0; round < 20; round++) {
		struct pldk_window *window = pt_window(_metadata, world, 300000);
		struct pldk_window *signal = NULL;
		int64_t value = PT_POISON;

		ASSERT_TRUE(is_all(pldk_window_base(window), 0, 300000)) TH_LOG("round %d", round);
		memset(pldk_window_base(window), 0xff, 300000);
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		ASSERT_OK(pldk_window_destroy(window));
		signal = pt_signal(_metadata, world, 300000 / 64);
		for (int64_t cell = 0; cell < 300000 / 64; cell++) {
			ASSERT_OK(pldk_read(signal, cell, &value));
			ASSERT_EQ(0, value);
		}
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		for (int64_t cell = 0; cell < 300000 / 64; cell += 61)
			ASSERT_OK(pldk_notify(signal, pldk_right(world), cell, PLDK_NOTIFY_SET, -1));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		ASSERT_OK(pldk_window_destroy(signal));
	}
	(void)rank;
	(void)size;
}

/* E4: cells were assumed to be 0 at the start, and that was not guaranteed */
TEST(recycled_memory_is_zero)
{
	run_ranks(2, recycle, NULL);
}

/* G3: one fault for 4 KiB each, in the own slab and in those of others */
RANK(touch_without_faults)
{
	const size_t bytes = 32 << 20;
	struct pldk_window *window = pt_window(_metadata, world, bytes);
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	for (int r = 0; r < size; r++) {
		char *slab = pldk_window_peer(window, r);

		for (size_t i = 0; slab && i < bytes; i += 4096)
			slab[i] = 1;
	}
	getrusage(RUSAGE_SELF, &after);
	EXPECT_LE(after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt, 16);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)rank;
	(void)size;
}

TEST(a_window_is_mapped_whole_and_does_not_fault)
{
	run_ranks(2, touch_without_faults, NULL);
}

/* G4: memory was handed out with an alignment that differed from process to process, or with none */
RANK(align)
{
	static const size_t large[] = { 4095, 4096, 4097, 12289 };
	size_t step = pt_scale() < 100 || pt_is_far() ? 29 : 1;

	for (size_t i = 1; i <= 200 + ARRAY_SIZE(large); i += i <= 200 ? step : 1) {
		size_t bytes = i <= 200 ? i : large[i - 201];
		struct pldk_window *window = pt_window(_metadata, world, bytes);

		for (int r = 0; r < size; r++) {
			char *base = pldk_window_peer(window, r);

			if (base) {
				EXPECT_EQ(0, (uintptr_t)base % 4096) TH_LOG("%zu bytes, rank %d", bytes, r);
				EXPECT_TRUE(is_all(base, 0, r == rank ? bytes : 0));
			} else {
				EXPECT_TRUE(pt_is_far() && r != rank);
			}
		}
		EXPECT_EQ(bytes, pldk_window_bytes(window));
		ASSERT_OK(pldk_barrier(world, PT_LONG));
		ASSERT_OK(pldk_window_destroy(window));
	}
}

TEST(slabs_of_every_size_are_page_aligned_on_every_rank)
{
	for (int size = 1; size <= 9; size++)
		run_ranks(size, align, NULL);
}

RANK(address_by_offset)
{
	struct pldk_window *window = pt_window(_metadata, world, 1 << 16), *signal = pt_signal(_metadata, world, size);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT64, 8192);
	int64_t *base = pldk_window_base(window), mine[8], got[8], old = PT_POISON;
	struct pldk_tensor from = pt_tensor(_metadata, mine, PLDK_INT64, 8);
	struct pldk_tensor to = pt_tensor(_metadata, got, PLDK_INT64, 8);

	(void)arg;
	atomic_store(pt_word(rank), (int64_t)(uintptr_t)base);
	for (int peer = 0; peer < size; peer++) {
		for (int i = 0; i < 8; i++)
			mine[i] = rank << 24 | peer << 8 | i;
		ASSERT_OK(pldk_put_notify(&view, peer, &from,
					  &(struct pldk_region){ SHAPE(rank * 8), SHAPE(0), SHAPE(8) }, NULL,
					  &(struct pldk_signal_to){ signal, rank, 1, PLDK_NOTIFY_ADD }));
	}
	for (int peer = 0; peer < size; peer++)
		ASSERT_OK(pldk_wait(signal, peer, PLDK_GE, 1, PT_LONG));
	for (int i = 0; i < 8 * size; i++) {
		ASSERT_EQ((i / 8) << 24 | rank << 8 | i % 8, base[i]);
	}
	for (int peer = 0; peer < size; peer++) {
		ASSERT_OK(pldk_fetch_add(&view, peer, SHAPE(4000), rank + 1, &old));
		ASSERT_OK(pldk_get(&to, &view, peer, &(struct pldk_region){ SHAPE(0), SHAPE(rank * 8), SHAPE(8) },
				   NULL));
		for (int i = 0; i < 8; i++) {
			ASSERT_EQ(rank << 24 | peer << 8 | i, got[i]);
		}
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_EQ(size * (size + 1) / 2, base[4000]);
	/* Collectives on window memory itself. */
	base[5000] = rank;
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	ASSERT_OK(pldk_allreduce(world, PLDK_IN_PLACE, base + 4000, 1, PLDK_INT64, PLDK_SUM, PLDK_MODE_AUTO, PT_LONG));
	EXPECT_EQ(size * size * (size + 1) / 2, base[4000]);
	ASSERT_OK(pldk_allgather(world, base + 5000, base + 6000, 1, PLDK_INT64, PT_LONG));
	ASSERT_OK(pldk_broadcast(world, base + 5000, 1, PLDK_INT64, size - 1, PT_LONG));
	EXPECT_EQ(size - 1, base[5000]);
	for (int r = 0; r < size; r++) {
		EXPECT_EQ(r, base[6000 + r]);
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

/* G8: the same address everywhere needs luck, or many tries; here each rank maps it somewhere else, and all is right */
TEST(peers_are_found_by_offset_wherever_they_mapped_it)
{
	struct pt_run run = { .nranks = 8, .body = address_by_offset };
	int differ = 0;

	pt_create(_metadata, &run);
	for (int r = 0; r < 8; r++) {
		size_t bytes = (size_t)(r + 1) << 21;
		void *shift = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		ASSERT_NE(MAP_FAILED, shift);
		pt_start_rank(_metadata, &run, r);
		munmap(shift, bytes);
	}
	pt_finish(_metadata, &run);
	for (int r = 1; r < 8; r++)
		differ += atomic_load(pt_word(r)) != atomic_load(pt_word(0));
	EXPECT_EQ(7, differ) TH_LOG("%d of 7 ranks mapped it elsewhere than rank 0", differ);
}

/* The node of the page at an address; < 0 if that cannot be asked here. */
static int node_of(const void *address)
{
	int node = -1;

	return syscall(SYS_get_mempolicy, &node, NULL, 0, address, 3 /* MPOL_F_NODE | MPOL_F_ADDR */) ? -1 : node;
}

RANK(look_where_slabs_lie)
{
	const size_t bytes = 1 << 20;
	struct pldk_window_options options = PLDK_WINDOW_OPTIONS_INIT;
	struct pldk_window *window = NULL;
	int pages[2] = { 0 };

	(void)arg;
	/* Rank 1 may not have everything on its node only because rank 0 came first. */
	ASSERT_OK(pldk_window_create(world, bytes, NULL, &window));
	for (int r = 0; r < size; r++) {
		const char *slab = pldk_window_peer(window, r);
		struct pldk_member member;

		ASSERT_OK(pldk_member(world, r, &member));
		EXPECT_EQ(r, member.node);
		for (size_t at = 0; slab && at < bytes; at += 4096) {
			ASSERT_EQ(member.node, node_of(slab + at)) TH_LOG("rank %d, byte %zu", r, at);
		}
	}
	options.flags = PLDK_WINDOW_INTERLEAVE;
	ASSERT_OK(pldk_window_create(world, bytes, &options, &window));
	for (size_t at = 0; at < bytes; at += 4096)
		pages[node_of((char *)pldk_window_base(window) + at) & 1]++;
	EXPECT_EQ(128, pages[0]);
	EXPECT_EQ(128, pages[1]);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)rank;
}

/* The first CPU of a node, or -1. */
static int cpu_of_node(int node)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	pt_slurp(path, text, sizeof(text));
	return *text >= '0' && *text <= '9' ? atoi(text) : -1;
}

static void look_on(struct __test_metadata *_metadata, const char *provider)
{
	int cpus[2] = { cpu_of_node(0), cpu_of_node(1) };
	struct pldk_world_options options = PLDK_WORLD_OPTIONS_INIT;
	struct pt_run run = { .nranks = 2, .body = look_where_slabs_lie, .options = &options };

	if (cpus[0] < 0 || cpus[1] < 0)
		SKIP(return, "needs two NUMA nodes with CPUs");
	options.cpus = cpus;
	options.provider = provider;
	pt_start(_metadata, &run);
	pt_finish(_metadata, &run);
}

/* G1: whoever came first zeroed everything, so that all of it lay on his node and the others were slow */
TEST(slabs_lie_on_the_node_of_their_rank)
{
	look_on(_metadata, pt_provider());
}

TEST(slabs_lie_on_the_node_of_their_rank_on_shm_too)
{
	if (!pt_is_dev())
		SKIP(return, "that was the test before");
	look_on(_metadata, "shm");
}

/* Far: odd slabs are not mapped here. */
RANK(look_for_far_slabs)
{
	const size_t bytes = 24 << 20;
	size_t before, after, slabs;
	struct pldk_window *window;
	int near = 0;

	pt_maps(NULL, &before);
	window = pt_window(_metadata, world, bytes);
	pt_maps(NULL, &after);
	for (int r = 0; r < size; r++) {
		bool far = r != rank && r % 2;

		near += !far;
		if (far) {
			EXPECT_EQ(NULL, pldk_window_peer(window, r));
		} else {
			EXPECT_NE(NULL, pldk_window_peer(window, r));
		}
	}
	slabs = (after - before + bytes / 2) / bytes;
	EXPECT_LE(slabs, (size_t)near) TH_LOG("rank %d maps %zu slabs, %d are near", rank, slabs, near);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
}

TEST(far_slabs_are_nowhere_in_this_process)
{
	if (!pt_is_far())
		SKIP(return, "needs PLDK_SHM_FAR=1 on shm");
	run_ranks(4, look_for_far_slabs, NULL);
}

/*
 * Ends
 */

RANK(use_after_destroy)
{
	struct pldk_window *window = pt_window(_metadata, world, 4096), *other = pt_window(_metadata, world, 4096);
	struct pldk_dtensor view = pt_view(_metadata, window, PLDK_INT32, 4);
	int32_t mine[4] = { 1, 2, 3, 4 };
	struct pldk_tensor tensor = pt_tensor(_metadata, mine, PLDK_INT32, 4), local;
	struct pldk_window_options options = with_id(pldk_window_id(window));

	ASSERT_OK(pldk_put(&view, pldk_right(world), &tensor, NULL, NULL));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	ASSERT_OK(pldk_window_destroy(window));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	/* The same id again: a view of the old one is still stale. */
	ASSERT_OK(pldk_window_create(world, 4096, &options, &window));
	EXPECT_RET(-ESTALE, pldk_put(&view, rank, &tensor, NULL, NULL));
	EXPECT_RET(-ESTALE, pldk_get(&tensor, &view, rank, NULL, NULL));
	EXPECT_RET(-ESTALE, pldk_view_local(&view, &local));
	EXPECT_RET(-ESTALE, pldk_view_expect(&view, 1, SHAPE(4), 0));
	EXPECT_EQ(1, mine[0]);
	EXPECT_TRUE(is_all(pldk_window_base(window), 0, 4096));
	EXPECT_TRUE(is_all(pldk_window_base(other), 0, 4096));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)size;
}

TEST(a_view_of_a_destroyed_window_is_stale_even_if_the_id_lives_again)
{
	run_ranks(2, use_after_destroy, NULL);
}

/* B20: all orders of closing; each must return, none crash */
RANK(close_in_every_order)
{
	static const char *const orders[] = { "wsd", "wds", "swd", "sdw", "dws", "dsw" };
	const char *order = orders[*(int *)arg];
	struct pldk_domain *subset = NULL;
	struct pldk_window *window, *signal;

	ASSERT_OK(pldk_subset(world, (const int[]){ 1, 0 }, 2, PT_LONG, &subset));
	window = pt_window(_metadata, subset, 4096);
	signal = pt_signal(_metadata, subset, 2);
	ASSERT_OK(pldk_notify(signal, 0, 0, PLDK_NOTIFY_ADD, 1));
	ASSERT_OK(pldk_barrier(subset, PT_LONG));
	for (; *order; order++) {
		if (*order == 'w')
			EXPECT_OK(pldk_window_destroy(window));
		else if (*order == 's')
			EXPECT_OK(pldk_window_destroy(signal));
		else {
			EXPECT_OK(pldk_domain_close(subset));
			break; /* closed what is left of it */
		}
	}
	(void)rank;
	(void)size;
}

TEST(windows_and_domains_close_in_any_order)
{
	for (int order = 0; order < 6; order++)
		run_ranks(2, close_in_every_order, &order);
}

RANK(reset)
{
	struct pldk_window *data = pt_window(_metadata, world, 10000), *signal = pt_signal(_metadata, world, 3);
	int64_t value = PT_POISON;

	memset(pldk_window_base(data), 0x5a, 10000);
	for (int cell = 0; cell < 3; cell++)
		ASSERT_OK(pldk_notify(signal, pldk_right(world), cell, PLDK_NOTIFY_SET, 99 + cell));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_OK(pldk_window_reset(data, PT_LONG));
	EXPECT_OK(pldk_window_reset(signal, PT_LONG));
	EXPECT_TRUE(is_all(pldk_window_base(data), 0, 10000));
	for (int cell = 0; cell < 3; cell++) {
		ASSERT_OK(pldk_read(signal, cell, &value));
		EXPECT_EQ(0, value);
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	ASSERT_OK(pldk_notify(signal, pldk_right(world), 1, PLDK_NOTIFY_ADD, 4));
	ASSERT_OK(pldk_wait(signal, 1, PLDK_EQ, 4, PT_LONG));
	EXPECT_RET(-EINVAL, pldk_window_reset(NULL, PT_LONG));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 0) {
		EXPECT_RET(-ETIMEDOUT, pldk_window_reset(data, PLDK_MS(40)));
		EXPECT_SAYS("rank 1");
		atomic_store(pt_word(0), 1);
	} else {
		ASSERT_TRUE(pt_until(atomic_load(pt_word(0)) == 1, 10000));
	}
	(void)size;
}

TEST(reset_zeroes_all_slabs_and_needs_everybody)
{
	run_ranks(2, reset, NULL);
}

struct sleeper {
	struct pldk_window *signal;
	_Atomic int tid;
	int ret;
};

static void *sleep_in_window(void *arg)
{
	struct sleeper *sleeper = arg;

	atomic_store(&sleeper->tid, (int)gettid());
	sleeper->ret = pldk_wait(sleeper->signal, 0, PLDK_GE, 1, PT_LONG);
	return NULL;
}

/* Uses of an open window, until cell 0 is set. The first that fails ends it. */
static void *use_window(void *arg)
{
	struct sleeper *user = arg;
	int self = pldk_rank(pldk_window_domain(user->signal));
	int64_t value = 0;

	atomic_store(&user->tid, (int)gettid());
	do {
		user->ret = pldk_wait(user->signal, 1, PLDK_GE, 7, PLDK_TRY);
		if (user->ret == -EAGAIN)
			user->ret = pldk_notify(user->signal, self, 1, PLDK_NOTIFY_SET, 6);
		if (!user->ret)
			user->ret = pldk_read(user->signal, 0, &value);
	} while (!user->ret && !value);
	return NULL;
}

RANK(reset_under_a_sleeper)
{
	struct sleeper sleeper = { .signal = pt_signal(_metadata, world, 2) }, user = { .signal = sleeper.signal };
	pthread_t thread, other;
	int64_t value = 0;

	ASSERT_OK(pldk_notify(sleeper.signal, rank, 1, PLDK_NOTIFY_SET, 6));
	if (rank == 1) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, sleep_in_window, &sleeper));
		ASSERT_TRUE(pt_until(sleeper.tid && pt_is_asleep(getpid(), sleeper.tid), 5000));
		/* Nobody sees the window closed, not even for a moment. */
		ASSERT_EQ(0, pthread_create(&other, NULL, use_window, &user));
		ASSERT_TRUE(pt_until(user.tid, 5000));
		for (int i = 0; i < 100000; i++)
			ASSERT_RET(-EBUSY, pldk_window_destroy(sleeper.signal));
	}
	EXPECT_RET(-EBUSY, pldk_window_reset(sleeper.signal, PT_LONG));
	EXPECT_SAYS("rank 1");
	ASSERT_OK(pldk_read(sleeper.signal, 1, &value));
	EXPECT_EQ(6, value);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	if (rank == 0)
		ASSERT_OK(pldk_notify(sleeper.signal, 1, 0, PLDK_NOTIFY_SET, 1));
	if (rank == 1) {
		pthread_join(thread, NULL);
		EXPECT_EQ(0, sleeper.ret);
		pthread_join(other, NULL);
		EXPECT_EQ(0, user.ret);
	}
	EXPECT_OK(pldk_window_reset(sleeper.signal, PT_LONG));
	(void)size;
}

/* E5: error if a peer still waits in it */
TEST(reset_and_destroy_under_a_waiter_are_ebusy_and_change_nothing)
{
	run_ranks(2, reset_under_a_sleeper, NULL);
}

RANK(be_only_writer)
{
	struct pldk_window_options options = PLDK_WINDOW_OPTIONS_INIT;
	struct pldk_window *window = NULL;
	struct pldk_dtensor view;
	int32_t mine[4] = { rank, rank, rank, rank }, got[4];
	struct pldk_tensor tensor = pt_tensor(_metadata, mine, PLDK_INT32, 4);
	struct pldk_tensor to = pt_tensor(_metadata, got, PLDK_INT32, 4);
	int64_t old = PT_POISON;
	int peer = pldk_right(world);

	options.flags = PLDK_WINDOW_OWNER_WRITES;
	ASSERT_OK(pldk_window_create(world, 4096, &options, &window));
	view = pt_view(_metadata, window, PLDK_INT32, 4);
	memcpy(pldk_window_base(window), mine, sizeof(mine));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_RET(-EPERM, pldk_put(&view, peer, &tensor, NULL, NULL));
	EXPECT_RET(-EPERM, pldk_remote_store(&tensor, &view, peer, SHAPE(0), PLDK_ATOMIC_NONE));
	EXPECT_RET(-EPERM, pldk_fetch_add(&view, peer, SHAPE(0), 1, &old));
	EXPECT_EQ(PT_POISON, old);
	EXPECT_OK(pldk_put(&view, rank, &tensor, NULL, NULL));
	EXPECT_OK(pldk_get(&to, &view, peer, NULL, NULL));
	EXPECT_EQ(peer, got[0]);
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	EXPECT_EQ(rank, *(int32_t *)pldk_window_base(window));
	(void)size;
}

TEST(an_owner_writes_window_is_read_only_to_peers)
{
	run_ranks(2, be_only_writer, NULL);
}

RANK(ask_for_huge_pages)
{
	struct pldk_window_options options = PLDK_WINDOW_OPTIONS_INIT;
	struct pldk_window *window = NULL;
	int64_t ret;

	options.flags = PLDK_WINDOW_HUGE;
	options.timeout_ns = PT_LONG;
	ASSERT_OK(pldk_window_create(world, 4 << 20, &options, &window));
	EXPECT_TRUE(pldk_window_page_bytes(window) == 4096 || pldk_window_page_bytes(window) == 2 << 20);
	memset(pldk_window_base(window), rank, 4 << 20);
	ASSERT_OK(pldk_window_destroy(window));
	window = PT_POISON_PTR;
	options.flags = PLDK_WINDOW_HUGE_ONLY;
	ret = pldk_window_create(world, 4 << 20, &options, &window);
	if (ret) {
		EXPECT_EQ(-EOPNOTSUPP, ret);
		EXPECT_SAYS("2 MiB|huge|2097152|2048");
		EXPECT_EQ(PT_POISON_PTR, window);
	} else {
		EXPECT_EQ(2 << 20, pldk_window_page_bytes(window));
	}
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)size;
}

/* G7: mmap succeeds, first touch SIGBUS because the pool is empty */
TEST(huge_pages_are_a_wish_and_the_answer_is_told)
{
	run_ranks(2, ask_for_huge_pages, NULL);
}

/*
 * fork
 */

RANK(fork_in_a_rank)
{
	struct pldk_window *window = pt_window(_metadata, world, 1 << 20), *signal = pt_signal(_metadata, world, 1);
	char *base = pldk_window_base(window);
	int64_t value = PT_POISON;
	int status = -1;
	pid_t pid;

	base[0] = 42;
	pid = fork();
	if (!pid) {
		struct pldk_window *other = PT_POISON_PTR;
		char vec;

		/* The mapping is not here. */
		EXPECT_EQ(-1, mincore(base, 4096, (void *)&vec));
		EXPECT_EQ(ENOMEM, errno);
		EXPECT_RET(-ENOTCONN, pldk_notify(signal, 0, 0, PLDK_NOTIFY_ADD, 1));
		EXPECT_RET(-ENOTCONN, pldk_wait(signal, 0, PLDK_EQ, 0, PLDK_TRY));
		EXPECT_RET(-ENOTCONN, pldk_read(signal, 0, &value));
		EXPECT_RET(-ENOTCONN, pldk_barrier(world, PLDK_TRY));
		EXPECT_RET(-ENOTCONN, pldk_window_create(world, 4096, NULL, &other));
		EXPECT_EQ(PT_POISON, value);
		_exit(!_metadata->passed);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	/* The child's end is not this rank's. */
	EXPECT_EQ(42, base[0]);
	ASSERT_OK(pldk_notify(signal, pldk_right(world), 0, PLDK_NOTIFY_ADD, 1));
	ASSERT_OK(pldk_wait(signal, 0, PLDK_EQ, 1, PT_LONG));
	ASSERT_OK(pldk_barrier(world, PT_LONG));
	(void)rank;
	(void)size;
}

/* M7: no copy-on-write of shared memory; a child is no rank */
TEST(a_forked_child_has_no_window_and_is_no_rank)
{
	run_ranks(2, fork_in_a_rank, NULL);
}

TEST_HARNESS_MAIN
