// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Conformance: pldk_init(), by environment: a world of one, what other launchers say, variables that are wrong, and the
 * world that a launcher made. Worlds by descriptor are in lib_world_test.c.
 */
#include "pldk_test_hello.h"

static void forget_launchers(void)
{
	static const char *const names[] = { "SLURM_NTASKS", "SLURM_PROCID", "PMI_SIZE",	"PMI_RANK",
					     "PMIX_RANK",    "WORLD_SIZE",   "OMPI_COMM_WORLD_SIZE", "RANK",
					     "PLDK_FD",	     "PLDK_RANK",    "PLDK_NRANKS",	"PLDK_SINGLETON" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
}

/*
 * pldk_init()
 */

CHILD(be_alone)
{
	struct pldk_domain *world = NULL, *again = PT_POISON_PTR;
	struct pldk_member member;
	float sum = 3;

	forget_launchers();
	ASSERT_OK(pldk_init(&world));
	EXPECT_EQ(0, pldk_rank(world));
	EXPECT_EQ(1, pldk_size(world));
	EXPECT_EQ(0, pldk_left(world));
	EXPECT_EQ(0, pldk_right(world));
	EXPECT_STREQ(pt_provider(), pldk_provider(world));
	EXPECT_OK(pldk_member(world, 0, &member));
	EXPECT_EQ(PLDK_MEMBER_ALIVE, member.state);
	EXPECT_EQ(getpid(), member.pid);

	EXPECT_RET(-EEXIST, pldk_init(&again));
	EXPECT_EQ(PT_POISON_PTR, again);

	EXPECT_OK(pldk_barrier(world, PLDK_FOREVER));
	EXPECT_OK(pldk_allreduce(world, PLDK_IN_PLACE, &sum, 1, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PLDK_FOREVER));
	EXPECT_EQ(3, sum);
	EXPECT_OK(pldk_finalize(world));
}

TEST(init_without_a_launcher_is_a_world_of_one)
{
	in_child(be_alone, NULL);
}

struct foreign {
	const char *variable;
	const char *value;
	const char *word;
};

CHILD(be_started_by_another_launcher)
{
	const struct foreign *foreign = arg;
	struct pldk_domain *world = PT_POISON_PTR;

	forget_launchers();
	setenv(foreign->variable, foreign->value, 1);
	EXPECT_RET(-ENOTCONN, pldk_init(&world));
	EXPECT_SAYS(foreign->word, foreign->value);
	EXPECT_EQ(PT_POISON_PTR, world);

	setenv("PLDK_SINGLETON", "1", 1);
	EXPECT_OK(pldk_init(&world));
	EXPECT_EQ(1, pldk_size(world));
	EXPECT_OK(pldk_finalize(world));
}

/* K1: N processes that each say "rank 0 of 1" */
TEST(init_does_not_believe_in_a_world_of_one_when_another_launcher_says_more)
{
	static struct foreign table[] = {
		{ "SLURM_NTASKS", "4", "SLURM" },
		{ "PMI_SIZE", "3", "PMI" },
		{ "OMPI_COMM_WORLD_SIZE", "17", "OMPI" },
		{ "WORLD_SIZE", "2", "WORLD_SIZE" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		in_child(be_started_by_another_launcher, &table[i]);
}

CHILD(be_one_task_of_slurm)
{
	struct pldk_domain *world = NULL;

	forget_launchers();
	setenv("SLURM_NTASKS", "1", 1);
	ASSERT_OK(pldk_init(&world));
	EXPECT_OK(pldk_finalize(world));
}

TEST(init_under_a_launcher_of_one_task_is_a_world_of_one)
{
	in_child(be_one_task_of_slurm, NULL);
}

CHILD(have_a_bad_variable)
{
	const struct foreign *bad = arg;
	struct pldk_domain *world = PT_POISON_PTR;

	forget_launchers();
	setenv(bad->variable, bad->value, 1);
	EXPECT_RET(strcmp(bad->variable, "PLDK_CHECK") ? -EINVAL : -EOPNOTSUPP, pldk_init(&world));
	EXPECT_SAYS(bad->variable, bad->value);
	EXPECT_EQ(PT_POISON_PTR, world);
}

TEST(init_refuses_a_bad_variable_and_names_it)
{
	static struct foreign table[] = {
		{ "PLDK_PROVIDER", "tcp", "" },	    { "PLDK_RING", "100", "" },	     { "PLDK_RING", "4096", "" },
		{ "PLDK_SPIN_US", "fast", "" },	    { "PLDK_TIMEOUT_MS", "5s", "" }, { "PLDK_DEADLOCK", "maybe", "" },
		{ "PLDK_INIT_TIMEOUT_MS", "x", "" }, { "PLDK_SHM_FAR", "some", "" },  { "PLDK_LOG", "loud", "" },
		{ "PLDK_CHECK", "race", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		in_child(have_a_bad_variable, &table[i]);
}

struct by_env {
	int fd;
	int rank;
	int nranks;
	const char *tag;
	int expected;
};

CHILD(init_by_env)
{
	const struct by_env *env = arg;
	struct pldk_domain *world = PT_POISON_PTR;
	char text[16];

	forget_launchers();
	snprintf(text, sizeof(text), "%d", env->fd);
	setenv("PLDK_FD", text, 1);
	snprintf(text, sizeof(text), "%d", env->rank);
	setenv("PLDK_RANK", text, 1);
	snprintf(text, sizeof(text), "%d", env->nranks);
	setenv("PLDK_NRANKS", text, 1);
	if (env->tag)
		setenv("PLDK_TAG", env->tag, 1);
	EXPECT_RET(env->expected, pldk_init(&world));
	if (env->expected == -EPROTO)
		EXPECT_SAYS("PLDK_TAG", "alpha", "beta", "rank 0|rank 1");
	if (env->expected) {
		EXPECT_EQ(PT_POISON_PTR, world);
		return;
	}
	EXPECT_EQ(env->rank, pldk_rank(world));
	EXPECT_EQ(env->nranks, pldk_size(world));
	hello(_metadata, world, env->rank, env->nranks, NULL);
	EXPECT_OK(pldk_finalize(world));
}

/* One process a rank, all by pldk_init(). */
static void init_all(struct __test_metadata *_metadata, struct by_env *envs, int nranks)
{
	pid_t pids[8];
	int fd = -1, status;

	ASSERT_OK(pldk_world_create(nranks, NULL, &fd));
	for (int r = 0; r < nranks; r++) {
		envs[r].fd = fd;
		envs[r].rank = r;
		envs[r].nranks = nranks;
		pids[r] = fork();
		if (!pids[r]) {
			in_child(init_by_env, &envs[r]);
			_exit(!_metadata->passed);
		}
	}
	for (int r = 0; r < nranks; r++) {
		waitpid(pids[r], &status, 0);
		EXPECT_EQ(0, status) TH_LOG("rank %d", r);
	}
	close(fd);
}

TEST(init_joins_the_world_that_a_launcher_made)
{
	init_all(_metadata, (struct by_env[4]){ { .tag = "v1" }, { .tag = "v1" }, { .tag = "v1" }, { .tag = "v1" } },
		 4);
}

/* A16: "only a subset of ranks is submitting": different programs */
TEST(init_of_ranks_with_different_tags_fails_on_all_and_says_both)
{
	init_all(_metadata, (struct by_env[2]){ { .tag = "alpha", .expected = -EPROTO },
						{ .tag = "beta", .expected = -EPROTO } }, 2);
}

TEST_HARNESS_MAIN
