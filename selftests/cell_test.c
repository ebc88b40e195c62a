// SPDX-License-Identifier: GPL-2.0
/*
 * Notify, cell values, provenance, reset and history. Sleeping is in wait_test.c.
 */
#include "pld_test.h"

FIXTURE(cell)
{
	int dom;
	int r0;
	int r1;
	struct pld_window_create c;
	struct pld_cell *slab0; /* rank 0's cells, mapped by rank 1 */
};

FIXTURE_SETUP(cell)
{
	PLD_NEED_DEVICE();
	self->dom = pld_domain_new(2);
	self->r0 = pld_join(self->dom, 0);
	self->r1 = pld_join(self->dom, 1);
	ASSERT_LE(0, self->r1);
	ASSERT_EQ(0, pld_signal_window(self->r0, 1, 200, NULL));
	ASSERT_EQ(0, pld_signal_window(self->r1, 1, 200, &self->c));
	self->slab0 = pld_map(self->r1, self->c.out_mmap_offset, 2 * self->c.out_stride, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, self->slab0);
}

FIXTURE_TEARDOWN(cell)
{
	close(self->r1);
	close(self->r0);
	close(self->dom);
}

TEST_F(cell, a_fresh_cell_is_zero)
{
	EXPECT_TRUE(pld_all_zero(self->slab0, 2 * self->c.out_stride));
}

TEST_F(cell, add_wraps_and_set_replaces)
{
	struct pld_notify_cell e[] = {
		{ .window_id = 1, .rank = 0, .cell = 5, .op = PLD_NOTIFY_ADD, .value = -3 },
		{ .window_id = 1, .rank = 0, .cell = 5, .op = PLD_NOTIFY_SET, .value = INT64_MAX },
		{ .window_id = 1, .rank = 0, .cell = 5, .op = PLD_NOTIFY_ADD, .value = 1 },
		{ .window_id = 1, .rank = 0, .cell = 5, .op = PLD_NOTIFY_WAKE },
	};
	struct pld_notify n = { .cells = pld_ptr(e), .ncells = 4, .cell_size = sizeof(e[0]) };

	EXPECT_EQ(0, pld_ioctl(self->r1, PLD_IOC_CELL_NOTIFY, &n));
	EXPECT_EQ(-3, e[0].out_value);
	EXPECT_EQ(INT64_MAX, e[1].out_value);
	EXPECT_EQ(INT64_MIN, e[2].out_value);
	EXPECT_EQ(INT64_MIN, e[3].out_value);
	EXPECT_EQ(INT64_MIN, self->slab0[5].value);
	EXPECT_EQ(0, self->slab0[4].value);
	EXPECT_EQ(0, self->slab0[6].value);
}

TEST_F(cell, provenance_names_the_last_notifier_and_counts)
{
	struct pld_cell_history h = { .window_id = 1, .rank = 0, .cell = 7, .out_value = POISON };

	EXPECT_EQ(0, pld_add(self->r0, 1, 0, 7, 1));
	EXPECT_EQ(0, pld_notify(self->r1, 1, 0, 7, PLD_NOTIFY_SET, 9));
	EXPECT_EQ(0, pld_notify(self->r0, 1, 0, 7, PLD_NOTIFY_WAKE, 0)); /* changes nothing */
	EXPECT_EQ(0, pld_ioctl(self->dom, PLD_IOC_CELL_HISTORY, &h));
	EXPECT_EQ(9, h.out_value);
	EXPECT_EQ(2, PLD_PROVENANCE_SEQ(h.out_provenance));
	EXPECT_EQ(1, PLD_PROVENANCE_RANK(h.out_provenance));
	EXPECT_EQ(PLD_NOTIFY_SET, PLD_PROVENANCE_OP(h.out_provenance));
	EXPECT_EQ(h.out_provenance, self->slab0[7].provenance);
	EXPECT_EQ(0, h.out_sleepers);
	h.cell = 200;
	EXPECT_EQ(-EINVAL, pld_ioctl(self->dom, PLD_IOC_CELL_HISTORY, &h));
	h.window_id = 2;
	EXPECT_EQ(-ENOENT, pld_ioctl(self->dom, PLD_IOC_CELL_HISTORY, &h));
}

TEST_F(cell, a_wrong_entry_anywhere_means_that_nothing_is_done)
{
	struct pld_notify_cell good = { .window_id = 1, .rank = 0, .cell = 0, .value = 1 }, e[3];
	struct pld_notify n = { .cells = pld_ptr(e), .ncells = 3, .cell_size = sizeof(e[0]) };
	struct pld_window_create d;
	static const struct {
		size_t at;
		uint32_t value;
		int error;
	} bad[] = {
		{ offsetof(struct pld_notify_cell, window_id), 99, -ENOENT },
		{ offsetof(struct pld_notify_cell, window_id), 2, -EDOM },
		{ offsetof(struct pld_notify_cell, window_id), 3, -ENOENT },
		{ offsetof(struct pld_notify_cell, generation), 0x7777, -ESTALE },
		{ offsetof(struct pld_notify_cell, rank), 2, -EINVAL },
		{ offsetof(struct pld_notify_cell, cell), 200, -EINVAL },
		{ offsetof(struct pld_notify_cell, op), 3, -EINVAL },
		{ offsetof(struct pld_notify_cell, op), PLD_NOTIFY_WAKE, -EINVAL },
		{ offsetof(struct pld_notify_cell, reserved), 1, -EINVAL },
	};
	unsigned int i;

	ASSERT_EQ(0, pld_window(self->r1, 2, PLD_WINDOW_DATA, 0, PLD_PAGE, &d));
	ASSERT_EQ(0, pld_signal_window(self->r0, 3, 1, NULL)); /* not opened by rank 1 */
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		e[0] = e[1] = e[2] = good;
		memcpy((char *)&e[2] + bad[i].at, &bad[i].value, 4);
		EXPECT_EQ(bad[i].error, pld_ioctl(self->r1, PLD_IOC_CELL_NOTIFY, &n)) TH_LOG("case %u", i);
		EXPECT_EQ(0, self->slab0[0].value);
		EXPECT_EQ(0, self->slab0[0].provenance);
	}
}

TEST_F(cell, vector_bounds_are_checked)
{
	struct pld_notify_cell *e = calloc(PLD_MAX_CELLS_PER_CALL + 1, sizeof(*e));
	struct pld_notify n = { .cells = pld_ptr(e), .cell_size = sizeof(*e) };
	uint32_t i;

	for (i = 0; i <= PLD_MAX_CELLS_PER_CALL; i++)
		e[i] = (struct pld_notify_cell){ .window_id = 1, .rank = i & 1, .cell = i % 200, .value = 1 };
	EXPECT_EQ(-EINVAL, pld_ioctl(self->r1, PLD_IOC_CELL_NOTIFY, &n));
	n.ncells = PLD_MAX_CELLS_PER_CALL + 1;
	EXPECT_EQ(-EINVAL, pld_ioctl(self->r1, PLD_IOC_CELL_NOTIFY, &n));
	n.ncells--;
	EXPECT_EQ(0, pld_ioctl(self->r1, PLD_IOC_CELL_NOTIFY, &n));
	EXPECT_EQ(21, self->slab0[0].value);
	EXPECT_EQ(0, self->slab0[1].value);
	n.cells = 8;
	EXPECT_EQ(-EFAULT, pld_ioctl(self->r1, PLD_IOC_CELL_NOTIFY, &n));
	EXPECT_EQ(21, self->slab0[0].value);
}

TEST_F(cell, a_result_that_cannot_be_stored_is_no_error)
{
	struct pld_notify_cell *e = mmap(NULL, PLD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pld_notify n = { .cells = pld_ptr(e), .ncells = 1, .cell_size = sizeof(*e) };

	*e = (struct pld_notify_cell){ .window_id = 1, .rank = 0, .cell = 4, .value = 1, .out_value = POISON };
	mprotect(e, PLD_PAGE, PROT_READ);
	EXPECT_EQ(0, pld_ioctl(self->r1, PLD_IOC_CELL_NOTIFY, &n));
	EXPECT_EQ(POISON, e->out_value);
	EXPECT_EQ(1, self->slab0[4].value);
}

TEST_F(cell, a_dead_ranks_cell_can_be_notified)
{
	close(self->r0);
	EXPECT_EQ(PLD_MEMBER_RELEASED, pld_member_state(self->dom, 0));
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 3, 2));
	EXPECT_EQ(2, self->slab0[3].value);
}

TEST_F(cell, reset_zeroes_the_own_slab_only)
{
	struct pld_window_reset r = { .window_id = 1 };

	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 199, 2));
	EXPECT_EQ(0, pld_add(self->r1, 1, 1, 199, 3));
	EXPECT_EQ(0, pld_ioctl(self->r0, PLD_IOC_WINDOW_RESET, &r));
	EXPECT_TRUE(pld_all_zero(self->slab0, self->c.out_stride));
	EXPECT_EQ(3, pld_value(self->dom, 1, 1, 199));
	r.window_id = 9;
	EXPECT_EQ(-ENOENT, pld_ioctl(self->r0, PLD_IOC_WINDOW_RESET, &r));
}

static void *wait_thread(void *arg)
{
	return (void *)(long)pld_wait_ge(*(int *)arg, 1, 3, 5, PLD_RANK_ANY, 0, pld_now() + 20 * SEC);
}

TEST_F(cell, reset_with_a_waiter_inside_is_busy_and_changes_nothing)
{
	struct pld_window_reset r = { .window_id = 1 };
	pthread_t t;
	void *ret;

	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 3, 2));
	pthread_create(&t, NULL, wait_thread, &self->r0);
	ASSERT_TRUE(PLD_WAIT_FOR(pld_fdinfo(self->r0, "waiters") == 1, 5000));
	EXPECT_EQ(-EBUSY, pld_ioctl(self->r0, PLD_IOC_WINDOW_RESET, &r));
	EXPECT_EQ(2, self->slab0[3].value);
	EXPECT_EQ(1, self->slab0[3].sleepers);
	EXPECT_EQ(0, pld_ioctl(self->r1, PLD_IOC_WINDOW_RESET, &r)); /* another slab */
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 3, 3));
	pthread_join(t, &ret);
	EXPECT_EQ(0, (long)ret);
	EXPECT_EQ(0, self->slab0[3].sleepers);
	EXPECT_EQ(0, pld_ioctl(self->r0, PLD_IOC_WINDOW_RESET, &r));
	EXPECT_EQ(0, self->slab0[3].value);
}

TEST_F(cell, generation_tells_a_new_window_from_an_old_one)
{
	struct pld_notify_cell e = { .window_id = 1, .rank = 0, .value = 1, .generation = self->c.out_generation };
	struct pld_notify n = { .cells = pld_ptr(&e), .ncells = 1, .cell_size = sizeof(e) };

	EXPECT_EQ(0, pld_ioctl(self->r1, PLD_IOC_CELL_NOTIFY, &n));
	EXPECT_EQ(0, pld_window_destroy(self->r0, 1));
	EXPECT_EQ(0, pld_window_destroy(self->r1, 1));
	EXPECT_EQ(-ENOENT, pld_ioctl(self->r1, PLD_IOC_CELL_NOTIFY, &n));
	ASSERT_EQ(0, pld_signal_window(self->r1, 1, 200, NULL));
	EXPECT_EQ(-ESTALE, pld_ioctl(self->r1, PLD_IOC_CELL_NOTIFY, &n));
	EXPECT_EQ(0, pld_value(self->dom, 1, 0, 0));
}

/* Scribbling on a cell hurts no one but the domain: counts stay right, the kernel's own notify still wakes. */
TEST_F(cell, scribbled_sleepers_do_not_stop_a_kernel_notify)
{
	pthread_t t;
	void *ret;

	pthread_create(&t, NULL, wait_thread, &self->r0);
	ASSERT_TRUE(PLD_WAIT_FOR(self->slab0[3].sleepers == 1, 5000));
	memset(&self->slab0[3].sleepers, 0, sizeof(self->slab0[3]) - offsetof(struct pld_cell, sleepers));
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 3, 5));
	pthread_join(t, &ret);
	EXPECT_EQ(0, (long)ret);
	memset(self->slab0, 0xff, self->c.out_stride);
	EXPECT_EQ(0, pld_add(self->r1, 1, 0, 3, 1));
	EXPECT_EQ(0, self->slab0[3].value);
}

TEST_HARNESS_MAIN
