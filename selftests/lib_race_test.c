// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Ends that meet: two threads close one domain, or a world and its subset; a handler of POSIX signals aborts a domain
 * that is just being made, used or closed.
 */
#include <sys/time.h>

#include "pldk_test.h"

/*
 * Two at a time
 */

/* A thread that ends something as soon as all are there. */
struct ender {
	pthread_t thread;
	int (*end)(struct pldk_domain *);
	struct pldk_domain *domain;
	_Atomic int *arrived;
	int ret;
};

static void *ender_main(void *arg)
{
	struct ender *self = arg;

	atomic_fetch_add(self->arrived, 1);
	while (atomic_load(self->arrived) < 2)
		;
	self->ret = self->end(self->domain);
	if (self->ret)
		self->ret = *pldk_last_error() ? self->ret : 1;
	return NULL;
}

/* Two threads at once; what each got. */
static void end_both(struct __test_metadata *_metadata, struct ender *enders)
{
	_Atomic int arrived = 0;

	for (int i = 0; i < 2; i++) {
		enders[i].arrived = &arrived;
		ASSERT_EQ(0, pthread_create(&enders[i].thread, NULL, ender_main, &enders[i]));
	}
	for (int i = 0; i < 2; i++)
		pthread_join(enders[i].thread, NULL);
}

static bool is_told(int ret)
{
	return ret == -EBUSY || ret == -EINVAL;
}

static struct pldk_domain *world_of_one(struct __test_metadata *_metadata)
{
	struct pldk_domain *world = NULL;
	int fd;

	ASSERT_OK(pldk_world_create(1, NULL, &fd));
	ASSERT_OK(pldk_world_join(fd, 0, PT_LONG, &world));
	close(fd);
	return world;
}

CHILD(closers)
{
	struct pldk_domain *world = world_of_one(_metadata), *subset;
	int self = 0;

	for (long i = 0; i < pt_rounds(300); i++) {
		struct ender enders[2] = { { .end = pldk_domain_close }, { .end = pldk_domain_close } };

		ASSERT_OK(pldk_subset(world, &self, 1, PT_LONG, &subset));
		enders[0].domain = enders[1].domain = subset;
		end_both(_metadata, enders);
		ASSERT_TRUE((!enders[0].ret && is_told(enders[1].ret)) || (!enders[1].ret && is_told(enders[0].ret)))
		TH_LOG("round %ld: %d and %d", i, enders[0].ret, enders[1].ret);
	}
	ASSERT_OK(pldk_finalize(world));
	for (long i = 0; i < pt_rounds(300); i++) {
		struct ender enders[2] = { { .end = pldk_finalize }, { .end = pldk_finalize } };

		world = world_of_one(_metadata);
		enders[0].domain = enders[1].domain = world;
		end_both(_metadata, enders);
		ASSERT_TRUE((!enders[0].ret && is_told(enders[1].ret)) || (!enders[1].ret && is_told(enders[0].ret)))
		TH_LOG("round %ld: %d and %d", i, enders[0].ret, enders[1].ret);
	}
	/* A world closes with its subsets. */
	for (long i = 0; i < pt_rounds(300); i++) {
		struct ender enders[2] = { { .end = pldk_finalize }, { .end = pldk_domain_close } };

		world = world_of_one(_metadata);
		ASSERT_OK(pldk_subset(world, &self, 1, PT_LONG, &subset));
		enders[0].domain = world;
		enders[1].domain = subset;
		end_both(_metadata, enders);
		ASSERT_TRUE((!enders[0].ret || !enders[1].ret) && (!enders[0].ret || is_told(enders[0].ret)) &&
			    (!enders[1].ret || is_told(enders[1].ret)))
		TH_LOG("round %ld: %d and %d", i, enders[0].ret, enders[1].ret);
		if (enders[0].ret)
			ASSERT_OK(pldk_finalize(world));
	}
}

TEST(of_two_that_close_a_domain_one_does)
{
	in_child(closers, NULL);
}

/*
 * pldk_abort() in a handler, at any moment of any call, in joining and in closing: it fails or it aborts.
 */
static struct pldk_domain *_Atomic target;
static _Atomic long aborted, refused;

static void abort_it(int signo)
{
	int saved = errno;

	(void)signo;
	if (pldk_abort(NULL, 0) == -EINVAL && pldk_abort(target, -1) == -EINVAL)
		atomic_fetch_add(pldk_abort(target, 7) ? &refused : &aborted, 1);
	errno = saved;
}

static void ignore_line(enum pldk_log_level level, const char *line, void *arg)
{
	*(size_t *)arg += strlen(line);
}

CHILD(aborter)
{
	struct itimerval often = { { 0, 150 }, { 0, 150 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = abort_it, .sa_flags = SA_RESTART };
	size_t logged = 0;
	int64_t end = pt_now() + PLDK_SEC(2);
	long rounds = 0;

	pldk_set_log(ignore_line, &logged, PLDK_LOG_DEBUG);
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	for (; pt_now() < end; rounds++) {
		struct pldk_domain *world = NULL;
		struct pldk_window *window = NULL;
		int32_t sum = 1;
		int fd, ret;

		ASSERT_OK(pldk_world_create(1, NULL, &fd));
		ret = pldk_world_join(fd, 0, PT_LONG, &world);
		close(fd);
		ASSERT_TRUE(!ret || ret == -ECANCELED) TH_LOG("join: %d %s", ret, pldk_last_error());
		if (ret)
			continue;
		target = world;
		for (int i = 0; i < 20; i++) {
			ret = pldk_signal_create(world, 1, SHAPE(4), NULL, &window);
			ASSERT_TRUE(!ret || ret == -ECANCELED) TH_LOG("create: %d %s", ret, pldk_last_error());
			free(malloc(100000));
			if (!ret) {
				pldk_notify(window, 0, 0, PLDK_NOTIFY_ADD, 1);
				pldk_test(window, 0, PLDK_GE, 100);
			}
			ret = pldk_allreduce(world, PLDK_IN_PLACE, &sum, 1, PLDK_INT32, PLDK_SUM, PLDK_MODE_AUTO,
					     PT_LONG);
			ASSERT_TRUE(!ret || ret == -ECANCELED) TH_LOG("allreduce: %d %s", ret, pldk_last_error());
		}
		ASSERT_OK(pldk_finalize(world));
	}
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
	pldk_set_log(NULL, NULL, PLDK_LOG_ERROR);
	EXPECT_GT(atomic_load(&aborted), 0);
	EXPECT_GT(atomic_load(&refused), 0);
	EXPECT_GT(rounds, 10);
}

TEST(abort_may_be_called_from_a_handler_at_any_moment)
{
	in_child(aborter, NULL);
}

TEST_HARNESS_MAIN
