// SPDX-License-Identifier: GPL-2.0
/*
 * N2: the layout of every structure and the number of every command, written down once by hand so that a change
 * shows. Built for 64 and for 32 bits: both must agree, and both talk to the device. A size grows only with a new
 * field at the end; an offset never changes.
 */
#include "pld_test.h"

#include <stddef.h>

#define SIZE(type, n) _Static_assert(sizeof(struct type) == (n), "size of " #type)
#define AT(type, field, n) _Static_assert(offsetof(struct type, field) == (n), "offset of " #type "." #field)
#define NUMBER(cmd, n) _Static_assert((cmd) == (n), "number of " #cmd)


SIZE(pld_cell, 64);
AT(pld_cell, value, 0);
AT(pld_cell, provenance, 8);
AT(pld_cell, sleepers, 16);
AT(pld_cell, reserved32, 20);
AT(pld_cell, payload, 24);

SIZE(pld_member, 32);
AT(pld_member, state, 0);
AT(pld_member, pid, 4);
AT(pld_member, status, 8);
AT(pld_member, device_id, 12);
AT(pld_member, cpu, 16);
AT(pld_member, node, 20);
AT(pld_member, host, 24);
AT(pld_member, reserved, 28);

SIZE(pld_status, 256);
AT(pld_status, version, 0);
AT(pld_status, member_size, 4);
AT(pld_status, nranks, 8);
AT(pld_status, events, 12);
AT(pld_status, domain_id, 16);
AT(pld_status, joined, 24);
AT(pld_status, finalised, 28);
AT(pld_status, dead, 32);
AT(pld_status, first_dead, 36);
AT(pld_status, poison, 40);
AT(pld_status, poison_rank, 44);
AT(pld_status, reserved, 48);

SIZE(pld_info, 96);
AT(pld_info, flags, 0);
AT(pld_info, device_id, 4);
AT(pld_info, out_abi_level, 8);
AT(pld_info, out_max_ranks, 12);
AT(pld_info, out_features, 16);
AT(pld_info, out_window_bytes_max, 24);
AT(pld_info, out_total_bytes_max, 32);
AT(pld_info, out_total_bytes_left, 40);
AT(pld_info, out_memlock_bytes_left, 48);
AT(pld_info, out_instance, 56);
AT(pld_info, out_page_bytes_max, 64);
AT(pld_info, out_cpu, 68);
AT(pld_info, out_node, 72);
AT(pld_info, out_max_windows, 76);
AT(pld_info, out_domain_id, 80);
AT(pld_info, out_nranks, 88);
AT(pld_info, out_rank, 92);

SIZE(pld_domain_create, 32);
AT(pld_domain_create, nranks, 0);
AT(pld_domain_create, flags, 4);
AT(pld_domain_create, device_ids, 8);
AT(pld_domain_create, cpus, 16);
AT(pld_domain_create, out_fd, 24);
AT(pld_domain_create, reserved, 28);

SIZE(pld_domain_join, 24);
AT(pld_domain_join, rank, 0);
AT(pld_domain_join, flags, 4);
AT(pld_domain_join, out_fd, 8);
AT(pld_domain_join, reserved, 12);
AT(pld_domain_join, out_poison, 16);
AT(pld_domain_join, out_poison_rank, 20);

SIZE(pld_domain_token, 16);
AT(pld_domain_token, out_token, 0);

SIZE(pld_domain_join_token, 40);
AT(pld_domain_join_token, token, 0);
AT(pld_domain_join_token, rank, 16);
AT(pld_domain_join_token, flags, 20);
AT(pld_domain_join_token, out_fd, 24);
AT(pld_domain_join_token, reserved, 28);
AT(pld_domain_join_token, out_poison, 32);
AT(pld_domain_join_token, out_poison_rank, 36);

SIZE(pld_domain_subset, 32);
AT(pld_domain_subset, key, 0);
AT(pld_domain_subset, nranks, 4);
AT(pld_domain_subset, ranks, 8);
AT(pld_domain_subset, flags, 16);
AT(pld_domain_subset, out_fd, 20);
AT(pld_domain_subset, out_poison, 24);
AT(pld_domain_subset, out_poison_rank, 28);

SIZE(pld_domain_member_end, 16);
AT(pld_domain_member_end, rank, 0);
AT(pld_domain_member_end, flags, 4);
AT(pld_domain_member_end, state, 8);
AT(pld_domain_member_end, status, 12);

SIZE(pld_domain_leave, 8);
AT(pld_domain_leave, flags, 0);
AT(pld_domain_leave, reserved, 4);

SIZE(pld_domain_poison, 8);
AT(pld_domain_poison, reason, 0);
AT(pld_domain_poison, flags, 4);

SIZE(pld_domain_member, 56);
AT(pld_domain_member, rank, 0);
AT(pld_domain_member, flags, 4);
AT(pld_domain_member, out_member, 8);
AT(pld_domain_member, out_run_state, 40);
AT(pld_domain_member, out_nwaiters, 44);
AT(pld_domain_member, out_since_ns, 48);

SIZE(pld_window_create, 80);
AT(pld_window_create, window_id, 0);
AT(pld_window_create, kind, 4);
AT(pld_window_create, flags, 8);
AT(pld_window_create, reserved, 12);
AT(pld_window_create, tag, 16);
AT(pld_window_create, bytes, 24);
AT(pld_window_create, out_mmap_offset, 32);
AT(pld_window_create, out_stride, 40);
AT(pld_window_create, out_page_bytes, 48);
AT(pld_window_create, out_generation, 52);
AT(pld_window_create, out_created, 56);
AT(pld_window_create, out_reserved, 60);
AT(pld_window_create, out_other_bytes, 64);
AT(pld_window_create, out_other_tag, 72);

SIZE(pld_window_destroy, 8);
AT(pld_window_destroy, window_id, 0);
AT(pld_window_destroy, flags, 4);

SIZE(pld_window_info, 72);
AT(pld_window_info, window_id, 0);
AT(pld_window_info, rank, 4);
AT(pld_window_info, out_kind, 8);
AT(pld_window_info, out_flags, 12);
AT(pld_window_info, out_bytes, 16);
AT(pld_window_info, out_stride, 24);
AT(pld_window_info, out_mmap_offset, 32);
AT(pld_window_info, out_generation, 40);
AT(pld_window_info, out_page_bytes, 44);
AT(pld_window_info, out_node, 48);
AT(pld_window_info, out_opened, 52);
AT(pld_window_info, out_node_pages, 56);
AT(pld_window_info, out_tag, 64);

SIZE(pld_window_reset, 8);
AT(pld_window_reset, window_id, 0);
AT(pld_window_reset, flags, 4);

SIZE(pld_notify_cell, 40);
AT(pld_notify_cell, window_id, 0);
AT(pld_notify_cell, generation, 4);
AT(pld_notify_cell, rank, 8);
AT(pld_notify_cell, cell, 12);
AT(pld_notify_cell, op, 16);
AT(pld_notify_cell, reserved, 20);
AT(pld_notify_cell, value, 24);
AT(pld_notify_cell, out_value, 32);

SIZE(pld_notify, 24);
AT(pld_notify, cells, 0);
AT(pld_notify, ncells, 8);
AT(pld_notify, cell_size, 12);
AT(pld_notify, flags, 16);
AT(pld_notify, site, 20);

SIZE(pld_wait_cell, 40);
AT(pld_wait_cell, window_id, 0);
AT(pld_wait_cell, generation, 4);
AT(pld_wait_cell, cell, 8);
AT(pld_wait_cell, cmp, 12);
AT(pld_wait_cell, from, 16);
AT(pld_wait_cell, reserved, 20);
AT(pld_wait_cell, expected, 24);
AT(pld_wait_cell, out_value, 32);

SIZE(pld_wait, 56);
AT(pld_wait, cells, 0);
AT(pld_wait, ncells, 8);
AT(pld_wait, cell_size, 12);
AT(pld_wait, flags, 16);
AT(pld_wait, site, 20);
AT(pld_wait, deadline_ns, 24);
AT(pld_wait, from_mask, 32);
AT(pld_wait, from_words, 40);
AT(pld_wait, out_index, 44);
AT(pld_wait, out_rank, 48);
AT(pld_wait, out_verdict, 52);

SIZE(pld_notify_wait, 72);
AT(pld_notify_wait, notify_cells, 0);
AT(pld_notify_wait, notify_ncells, 8);
AT(pld_notify_wait, notify_cell_size, 12);
AT(pld_notify_wait, wait, 16);

SIZE(pld_ledger_entry, 88);
AT(pld_ledger_entry, rank, 0);
AT(pld_ledger_entry, tid, 4);
AT(pld_ledger_entry, window_id, 8);
AT(pld_ledger_entry, cell, 12);
AT(pld_ledger_entry, cmp, 16);
AT(pld_ledger_entry, from, 20);
AT(pld_ledger_entry, expected, 24);
AT(pld_ledger_entry, value, 32);
AT(pld_ledger_entry, since_ns, 40);
AT(pld_ledger_entry, deadline_ns, 48);
AT(pld_ledger_entry, site, 56);
AT(pld_ledger_entry, npreds, 60);
AT(pld_ledger_entry, flags, 64);
AT(pld_ledger_entry, last_notifier, 68);
AT(pld_ledger_entry, domain_id, 72);
AT(pld_ledger_entry, pid, 80);
AT(pld_ledger_entry, generation, 84);

SIZE(pld_ledger, 16);
AT(pld_ledger, entries, 0);
AT(pld_ledger, nentries, 8);
AT(pld_ledger, entry_size, 12);

SIZE(pld_verdict, 24);
AT(pld_verdict, entries, 0);
AT(pld_verdict, nentries, 8);
AT(pld_verdict, entry_size, 12);
AT(pld_verdict, verdict, 16);
AT(pld_verdict, reserved, 20);

SIZE(pld_cell_history, 40);
AT(pld_cell_history, window_id, 0);
AT(pld_cell_history, rank, 4);
AT(pld_cell_history, cell, 8);
AT(pld_cell_history, reserved, 12);
AT(pld_cell_history, out_value, 16);
AT(pld_cell_history, out_provenance, 24);
AT(pld_cell_history, out_sleepers, 32);
AT(pld_cell_history, out_reserved, 36);

NUMBER(PLD_IOC_GET_INFO, 0xc060b900);
NUMBER(PLD_IOC_DOMAIN_CREATE, 0xc020b910);
NUMBER(PLD_IOC_DOMAIN_JOIN, 0xc018b911);
NUMBER(PLD_IOC_DOMAIN_JOIN_TOKEN, 0xc028b912);
NUMBER(PLD_IOC_DOMAIN_SUBSET, 0xc020b913);
NUMBER(PLD_IOC_DOMAIN_LEAVE, 0x4008b914);
NUMBER(PLD_IOC_DOMAIN_POISON, 0x4008b915);
NUMBER(PLD_IOC_DOMAIN_MEMBER, 0xc038b916);
NUMBER(PLD_IOC_DOMAIN_TOKEN, 0x8010b917);
NUMBER(PLD_IOC_DOMAIN_MEMBER_END, 0x4010b918);
NUMBER(PLD_IOC_WINDOW_CREATE, 0xc050b920);
NUMBER(PLD_IOC_WINDOW_DESTROY, 0x4008b921);
NUMBER(PLD_IOC_WINDOW_INFO, 0xc048b922);
NUMBER(PLD_IOC_WINDOW_RESET, 0x4008b923);
NUMBER(PLD_IOC_CELL_NOTIFY, 0xc018b930);
NUMBER(PLD_IOC_CELL_WAIT, 0xc038b931);
NUMBER(PLD_IOC_CELL_NOTIFY_WAIT, 0xc048b932);
NUMBER(PLD_IOC_LEDGER, 0xc010b950);
NUMBER(PLD_IOC_VERDICT, 0xc018b951);
NUMBER(PLD_IOC_CELL_HISTORY, 0xc028b952);

_Static_assert(sizeof(struct pld_cell) == PLD_CELL_SIZE, "a cell is a line");
_Static_assert(sizeof(struct pld_status) == PLD_STATUS_HEADER, "members follow the header");

TEST(sizes_are_multiples_of_eight)
{
	/* The numbers above were checked by the compiler; padding at the end would differ between 32 and 64 bits. */
#define EIGHT(type) EXPECT_EQ(0, sizeof(struct type) % 8)
	EIGHT(pld_cell);
	EIGHT(pld_member);
	EIGHT(pld_status);
	EIGHT(pld_info);
	EIGHT(pld_domain_create);
	EIGHT(pld_domain_join);
	EIGHT(pld_domain_token);
	EIGHT(pld_domain_join_token);
	EIGHT(pld_domain_subset);
	EIGHT(pld_domain_leave);
	EIGHT(pld_domain_poison);
	EIGHT(pld_domain_member);
	EIGHT(pld_domain_member_end);
	EIGHT(pld_window_create);
	EIGHT(pld_window_destroy);
	EIGHT(pld_window_info);
	EIGHT(pld_window_reset);
	EIGHT(pld_notify_cell);
	EIGHT(pld_notify);
	EIGHT(pld_wait_cell);
	EIGHT(pld_wait);
	EIGHT(pld_notify_wait);
	EIGHT(pld_ledger_entry);
	EIGHT(pld_ledger);
	EIGHT(pld_verdict);
	EIGHT(pld_cell_history);
}

TEST(provenance_macros_are_inverse)
{
	__u64 p = PLD_PROVENANCE(0xfffffffeu, PLD_NOTIFY_SET, 1023);

	EXPECT_EQ(0xfffffffeu, PLD_PROVENANCE_SEQ(p));
	EXPECT_EQ(PLD_NOTIFY_SET, PLD_PROVENANCE_OP(p));
	EXPECT_EQ(1023, PLD_PROVENANCE_RANK(p));
}

/* The whole way of a rank, as a program of this word size. */
TEST(the_device_serves_programs_of_this_word_size)
{
	struct pld_wait_cell e = PLD_WAIT_CELL(1, 0, PLD_CMP_EQ, -5, 0);
	struct pld_wait w = pld_wait_of(&e, 1, 0, 1);
	struct pld_window_create c;
	struct pld_status *s;
	struct pld_cell *m;
	int dom, r;

	PLD_NEED_DEVICE();
	dom = pld_domain_new(3);
	ASSERT_LE(0, dom);
	r = pld_join(dom, 0);
	ASSERT_LE(0, r);
	ASSERT_EQ(0, pld_signal_window(r, 1, 1, &c));
	EXPECT_LT(UINT32_MAX, c.out_mmap_offset); /* where a 32-bit program needs mmap2 */
	m = pld_map(r, c.out_mmap_offset, 3 * c.out_stride, PROT_READ | PROT_WRITE);
	ASSERT_TRUE(m != MAP_FAILED);
	s = pld_map(r, PLD_MMAP_STATUS, PLD_PAGE, PROT_READ);
	ASSERT_TRUE(s != MAP_FAILED);
	EXPECT_EQ(1, s->joined);
	EXPECT_EQ(-ETIMEDOUT, pld_ioctl(r, PLD_IOC_CELL_WAIT, &w));
	EXPECT_EQ(0, e.out_value);
	EXPECT_EQ(0, pld_add(r, 1, 0, 0, -5));
	EXPECT_EQ(-5, m->value);
	EXPECT_EQ(0, pld_ioctl(r, PLD_IOC_CELL_WAIT, &w));
	EXPECT_EQ(-5, e.out_value);
}

TEST_HARNESS_MAIN
