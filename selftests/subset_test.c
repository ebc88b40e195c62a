// SPDX-License-Identifier: GPL-2.0
/*
 * Subsets: domains made of ranks of a domain, and what goes down to them: poison and ends.
 */
#include "pld_test_domain.h"

TEST_F(domain, a_refused_subset_tells_who_poisoned_and_why)
{
	uint32_t ranks[] = { 3, 1, 0 };
	struct pld_domain_subset u = { .key = 1, .nranks = 3, .ranks = pld_ptr(ranks), .out_fd = -2 };
	int r0 = pld_join(self->fd, 0), r1 = pld_join(self->fd, 1), s1 = pld_subset(r1, 1, 3, ranks);

	ASSERT_EQ(0, pld_poison(s1, 7)); /* the subset alone, by its rank 1 */
	EXPECT_EQ(-ECANCELED, pld_ioctl(r0, PLD_IOC_DOMAIN_SUBSET, &u));
	EXPECT_EQ(PLD_POISON_SET | 7, u.out_poison);
	EXPECT_EQ(1, u.out_poison_rank);
	ASSERT_EQ(0, pld_poison(self->fd, 8));
	EXPECT_EQ(-ECANCELED, pld_ioctl(r0, PLD_IOC_DOMAIN_SUBSET, &u));
	EXPECT_EQ(PLD_POISON_SET | 8, u.out_poison);
	EXPECT_EQ(PLD_RANK_ANY, u.out_poison_rank);
	EXPECT_EQ(-2, u.out_fd);
}

TEST_F(domain, subset_is_a_domain_of_its_own)
{
	uint32_t ranks[] = { 3, 1 }, other[] = { 1, 3 }, twice[] = { 1, 1 }, range[] = { 1, 4 }, without[] = { 0, 3 };
	int r1 = pld_join(self->fd, 1), r3 = pld_join(self->fd, 3), s1, s3;

	EXPECT_EQ(-EINVAL, pld_subset(r1, 9, 2, twice));
	EXPECT_EQ(-EINVAL, pld_subset(r1, 9, 2, range));
	EXPECT_EQ(-EINVAL, pld_subset(r1, 9, 2, without));
	EXPECT_EQ(-EINVAL, pld_subset(r1, 9, 0, ranks));
	s1 = pld_subset(r1, 9, 2, ranks);
	ASSERT_LE(0, s1);
	EXPECT_EQ(1, pld_fdinfo(s1, "rank"));
	EXPECT_EQ(2, pld_fdinfo(s1, "nranks"));
	EXPECT_NE(pld_fdinfo(r1, "domain"), pld_fdinfo(s1, "domain"));
	EXPECT_EQ(-EPROTO, pld_subset(r3, 9, 2, other));
	EXPECT_EQ(-EEXIST, pld_subset(r1, 9, 2, ranks));
	s3 = pld_subset(r3, 9, 2, ranks);
	ASSERT_LE(0, s3);
	EXPECT_EQ(0, pld_fdinfo(s3, "rank"));
	EXPECT_EQ(pld_fdinfo(s1, "domain"), pld_fdinfo(s3, "domain"));
	/* Windows are its own; it outlives the parent. */
	ASSERT_EQ(0, pld_signal_window(s1, 1, 1, NULL));
	ASSERT_EQ(0, pld_signal_window(s3, 1, 1, NULL));
	close(r1);
	close(r3);
	close(self->fd);
	EXPECT_EQ(0, pld_add(s3, 1, 1, 0, 4));
	EXPECT_EQ(0, pld_wait_ge(s1, 1, 0, 4, PLD_RANK_ANY, 0, PLD_DEADLINE_POLL));
}

TEST_F(domain, a_rank_that_ended_before_it_joined_a_subset_is_dead_there)
{
	uint32_t ranks[] = { 0, 1, 2 };
	int r0 = pld_join(self->fd, 0), r1 = pld_join(self->fd, 1), r2 = pld_join(self->fd, 2), s0;

	close(r2);
	s0 = pld_subset(r0, 1, 3, ranks);
	ASSERT_LE(0, s0);
	EXPECT_EQ(PLD_MEMBER_RELEASED, pld_member_state(s0, 2));
	EXPECT_EQ(PLD_MEMBER_ABSENT, pld_member_state(s0, 1));
	EXPECT_EQ(0, pld_leave(r1));
	EXPECT_EQ(PLD_MEMBER_FINALISED, pld_member_state(s0, 1));
}

TEST_F(domain, a_long_chain_of_nested_subsets_is_freed)
{
	uint32_t ranks[] = { 0, 1 };
	struct pld_counts before;
	int dom, r, next, i;

	PLD_NEED_COUNTERS();
	before = pld_counts_now();
	dom = pld_domain_new(2);
	r = pld_join(dom, 0);
	close(dom);
	for (i = 0; i < 2000; i++) {
		next = pld_subset(r, 1, 2, ranks);
		ASSERT_LE(0, next);
		close(r);
		r = next;
	}
	close(r);
	EXPECT_TRUE(PLD_WAIT_FOR(pld_counts_are(&before), 5000));
}

/* Make rank files of subset {0,1,2} and of its subset {2,1} for ranks 1 and 2 of a domain. */
static void nest(int dom, int r[3], int s[3], int t[3])
{
	uint32_t ranks[] = { 1, 2, 3 }, below[] = { 1, 0 };
	int i;

	for (i = 0; i < 2; i++) {
		r[i] = pld_join(dom, 1 + i);
		s[i] = pld_subset(r[i], 7, 3, ranks);
		t[i] = pld_subset(s[i], 7, 2, below);
	}
}

TEST_F(domain, poison_goes_down_to_all_subsets_with_the_poisoners_rank_there)
{
	int r[3], s[3], t[3], r0 = pld_join(self->fd, 0);
	uint32_t ranks[] = { 1, 2 };

	nest(self->fd, r, s, t);
	ASSERT_LE(0, t[1]);
	EXPECT_EQ(0, pld_poison(r[1], 77));
	EXPECT_EQ(PLD_POISON_SET | 77, pld_fdinfo(s[0], "poison"));
	EXPECT_EQ(1, pld_fdinfo(s[0], "poison_rank")); /* rank 2 of the domain */
	EXPECT_EQ(PLD_POISON_SET | 77, pld_fdinfo(t[0], "poison"));
	EXPECT_EQ(0, pld_fdinfo(t[0], "poison_rank"));
	EXPECT_EQ(-ECANCELED, pld_subset(r[0], 8, 2, ranks));
	EXPECT_EQ(0, pld_poison(r0, 78));
	EXPECT_EQ(PLD_POISON_SET | 77, pld_fdinfo(t[0], "poison"));
}

TEST_F(domain, poison_of_a_subset_stays_below_it_and_stays_first)
{
	int r[3], s[3], t[3], r0 = pld_join(self->fd, 0);
	struct pld_status *page;

	nest(self->fd, r, s, t);
	EXPECT_EQ(0, pld_poison(t[1], 5));
	EXPECT_EQ(0, pld_fdinfo(s[0], "poison"));
	EXPECT_EQ(0, pld_fdinfo(r0, "poison"));
	EXPECT_EQ(0, pld_poison(r0, 6)); /* rank 0 is no member below */
	EXPECT_EQ(PLD_POISON_SET | 6, pld_fdinfo(s[0], "poison"));
	page = pld_map(s[0], PLD_MMAP_STATUS, PLD_PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, page);
	EXPECT_EQ(PLD_POISON_SET | 6, page->poison);
	EXPECT_EQ(PLD_RANK_ANY, page->poison_rank);
	EXPECT_EQ(PLD_POISON_SET | 5, pld_fdinfo(t[0], "poison"));
	EXPECT_EQ(0, pld_fdinfo(t[0], "poison_rank"));
}

/* B17: ranks that sleep in a subset of a subset, whose parent nobody holds any more. */
TEST_F(domain, poison_wakes_sleepers_in_subsets_and_reaches_orphans)
{
	int *ready = pld_shared(PLD_PAGE), i, waiting = 0;
	pid_t pid[2];

	for (i = 0; i < 2; i++) {
		pid[i] = pld_fork();
		if (!pid[i]) {
			uint32_t ranks[] = { 2, 1 }, below[] = { 1, 0 };
			int r = pld_join(self->fd, 1 + i), s = pld_subset(r, 1, 2, ranks);
			int t = pld_subset(s, 1, 2, below);
			struct pld_status *page = pld_map(t, PLD_MMAP_STATUS, PLD_PAGE, PROT_READ);

			PLD_CHILD_CHECK(t >= 0 && page != MAP_FAILED);
			__atomic_fetch_add(ready, 1, __ATOMIC_ACQ_REL);
			PLD_CHILD_CHECK(PLD_WAIT_FOR(__atomic_load_n(ready, __ATOMIC_ACQUIRE) == 2, 5000));
			close(s);
			PLD_CHILD_CHECK(!pld_signal_window(t, 1, 4, NULL));
			__atomic_store_n(&ready[1 + i], t, __ATOMIC_RELEASE);
			/* F_IDLE: they wait for each other, and that is not the point here. */
			PLD_CHILD_CHECK(pld_wait_ge(t, 1, 0, 1, PLD_RANK_ANY, PLD_WAIT_F_IDLE, PLD_DEADLINE_NEVER) ==
					-ECANCELED);
			PLD_CHILD_CHECK(page->poison == (PLD_POISON_SET | 9) && page->poison_rank == PLD_RANK_ANY);
			_exit(0);
		}
	}
	for (i = 0; i < 2; i++) {
		char path[64];

		ASSERT_TRUE(PLD_WAIT_FOR(__atomic_load_n(&ready[1 + i], __ATOMIC_ACQUIRE), 5000));
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid[i], ready[1 + i]);
		waiting += PLD_WAIT_FOR(pld_key_of(path, "waiters") == 1, 5000);
	}
	EXPECT_EQ(2, waiting);
	EXPECT_EQ(0, pld_poison(self->fd, 9));
	for (i = 0; i < 2; i++)
		EXPECT_CHILD_OK(pid[i]);
}

TEST_F(domain, an_end_goes_down_to_subsets_of_subsets)
{
	uint32_t all[] = { 3, 2, 1, 0 }, some[] = { 0, 1, 3 };
	int r0 = pld_join(self->fd, 0), r2 = pld_join(self->fd, 2), r3 = pld_join(self->fd, 3), s0, t0, s2;

	s0 = pld_subset(r0, 1, 4, all);
	s2 = pld_subset(r2, 1, 4, all);
	t0 = pld_subset(s0, 1, 3, some); /* ranks 3, 2 and 0 of the domain */
	ASSERT_LE(0, t0);
	ASSERT_EQ(0, pld_signal_window(t0, 1, 1, NULL));
	EXPECT_EQ(PLD_MEMBER_ABSENT, pld_member_state(t0, 0));
	close(r3); /* had joined neither */
	EXPECT_EQ(PLD_MEMBER_RELEASED, pld_member_state(s0, 0));
	EXPECT_EQ(PLD_MEMBER_RELEASED, pld_member_state(t0, 0));
	EXPECT_EQ(-EOWNERDEAD, pld_wait_ge(t0, 1, 0, 1, 0, 0, pld_now() + 10 * SEC));
	EXPECT_EQ(0, pld_leave(r2)); /* lives on in the subset, and may yet come to the one below */
	EXPECT_EQ(PLD_MEMBER_ALIVE, pld_member_state(s0, 1));
	EXPECT_EQ(PLD_MEMBER_ABSENT, pld_member_state(t0, 1));
	EXPECT_EQ(0, pld_leave(s2));
	EXPECT_EQ(PLD_MEMBER_FINALISED, pld_member_state(t0, 1));
}

TEST_F(domain, a_key_is_free_again_when_nobody_is_to_come)
{
	uint32_t ranks[] = { 1, 2 }, other[] = { 2, 1 };
	int r1 = pld_join(self->fd, 1), r2 = pld_join(self->fd, 2), s1, s2, t1;

	s1 = pld_subset(r1, 5, 2, ranks);
	close(s1);
	EXPECT_EQ(-EEXIST, pld_subset(r1, 5, 2, ranks)); /* rank 2 is still to come */
	EXPECT_EQ(-EPROTO, pld_subset(r2, 5, 2, other));
	s2 = pld_subset(r2, 5, 2, ranks);
	ASSERT_LE(0, s2);
	EXPECT_EQ(PLD_MEMBER_RELEASED, pld_member_state(s2, 0));
	t1 = pld_subset(r1, 5, 2, other); /* another subset under the same key */
	ASSERT_LE(0, t1);
	EXPECT_NE(pld_fdinfo(s2, "domain"), pld_fdinfo(t1, "domain"));
	close(r2); /* will not come: the key is free */
	EXPECT_EQ(PLD_MEMBER_RELEASED, pld_member_state(t1, 0));
	s1 = pld_subset(r1, 5, 2, ranks);
	ASSERT_LE(0, s1);
	EXPECT_NE(pld_fdinfo(t1, "domain"), pld_fdinfo(s1, "domain"));
	EXPECT_EQ(PLD_MEMBER_RELEASED, pld_member_state(s1, 1));
}

TEST_F(domain, many_subsets_in_turn_leave_nothing_behind)
{
	struct pld_counts before;
	uint32_t ranks[] = { 0, 1 };
	/* A debug kernel takes 10 ms a subset. */
	int scale = getenv("PLDK_TEST_SCALE") ? atoi(getenv("PLDK_TEST_SCALE")) : 100;
	int dom, r0, r1, i, rounds = scale < 10 ? 200 : 2000;

	PLD_NEED_COUNTERS();
	dom = pld_domain_new(2);
	r0 = pld_join(dom, 0);
	r1 = pld_join(dom, 1);
	before = pld_counts_now();
	for (i = 0; i < rounds; i++) {
		int a = pld_subset(r0, 3, 2, ranks), b = pld_subset(r1, 3, 2, ranks);

		ASSERT_LE(0, a);
		ASSERT_LE(0, b);
		close(a);
		close(b);
	}
	EXPECT_TRUE(pld_counts_are(&before));
	close(r1);
	for (i = 0; i < rounds; i++) { /* the other one has ended */
		int a = pld_subset(r0, 3, 2, ranks);

		ASSERT_LE(0, a);
		close(a);
	}
	before.v[1]--;
	EXPECT_TRUE(pld_counts_are(&before));
}

TEST_F(domain, rank_files_of_subsets_show_members_windows_and_waits)
{
	uint32_t ranks[] = { 1, 2 };
	int r = pld_join(self->fd, 1), s = pld_subset(r, 1, 2, ranks);
	char path[64], line[512];
	int members = 0, windows = 0, waits = 0;
	pthread_t t;
	FILE *f;

	ASSERT_EQ(0, pld_signal_window(s, 1, 1, NULL));
	pthread_create(&t, NULL, wait_thread, &s);
	ASSERT_TRUE(PLD_WAIT_FOR(pld_fdinfo(s, "waiters") == 1, 5000));
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", s);
	f = fopen(path, "re");
	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f)) {
		members += !strncmp(line, "member.", 7);
		windows += !strncmp(line, "window.1:", 9);
		waits += !strncmp(line, "wait:", 5);
	}
	fclose(f);
	EXPECT_EQ(2, members);
	EXPECT_EQ(1, windows);
	EXPECT_EQ(1, waits);
	EXPECT_EQ(0, pld_add(s, 1, 0, 0, 1));
	pthread_join(t, NULL);
}

TEST_HARNESS_MAIN
