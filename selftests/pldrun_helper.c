// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A rank that does what it is told, for pldrun_test.sh, pldctl_test.sh and growth_test.sh: pldrun_helper STEP...
 *
 * Steps are carried out in turn; "2:STEP" is for rank 2 only. At the end the process exits with 0 and without
 * pldk_finalize(), unless that was a step.
 *
 *	init finalize           join and leave
 *	gather                  allgather with everybody; an error ends the process with code 1 and its sentence
 *	barriers=N sums=N large-sums=N  so many barriers, allreduces of 8 bytes, of 4 MiB
 *	window=BYTES            create a data window
 *	signal                  create a signal window of one cell
 *	wait                    wait for ever until that cell is 42; an error as in gather. If all do, it is a deadlock
 *	abort=CODE              pldk_abort()
 *	exit=CODE raise=NUMBER  end so, at once, or by a POSIX signal
 *	return=CODE             end as by a return from main(), with all that is done at exit
 *	sleep=MS say=WORD       as they say
 *	eat                     take memory until the kernel objects
 *	ignore-term             go on after SIGTERM
 *	no-pidfd                pidfd_open(2) fails from here on, as in some containers
 *	exec                    become the program that the rest of the line names
 */
#include <pldk.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct pldk_domain *world;
static struct pldk_window *cell;

static void must(int ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s\n", pldk_last_error());
	exit(1);
}

static void gather(void)
{
	int32_t mine = pldk_rank(world), *all = calloc((size_t)pldk_size(world), sizeof(*all));

	if (!all)
		exit(1);
	must(pldk_allgather(world, &mine, all, 1, PLDK_INT32, PLDK_SEC(20)));
	free(all);
}

static void sums(long times, size_t count)
{
	float *in = calloc(count, sizeof(*in)), *out = calloc(count, sizeof(*out));

	if (!in || !out)
		exit(1);
	while (times-- > 0)
		must(pldk_allreduce(world, in, out, count, PLDK_FP32, PLDK_SUM, PLDK_MODE_AUTO, PLDK_SEC(60)));
	free(in);
	free(out);
}

static void barriers(long times)
{
	while (times-- > 0)
		must(pldk_barrier(world, PLDK_SEC(60)));
}

static void eat(void)
{
	for (;;) {
		char *piece = malloc(1 << 20);

		if (piece)
			memset(piece, 1, 1 << 20);
	}
}

/* One architecture's numbers only: it is a test's own program that is kept out here, not an attacker. */
static void refuse_pidfds(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		perror("pldrun_helper: seccomp");
		exit(4);
	}
}

static int act(const char *step)
{
	const char *value = strchr(step, '=');
	size_t len = value ? (size_t)(value - step) : strlen(step);
	struct pldk_window *window;
	int64_t one = 1;
	long number = value ? strtol(value + 1, NULL, 10) : 0;

#define IS(name) (len == strlen(name) && strncmp(step, name, len) == 0)
	if (IS("init"))
		must(pldk_init(&world));
	else if (IS("finalize"))
		must(pldk_finalize(world));
	else if (IS("gather"))
		gather();
	else if (IS("barriers"))
		barriers(number);
	else if (IS("sums"))
		sums(number, 2);
	else if (IS("large-sums"))
		sums(number, (4u << 20) / sizeof(float));
	else if (IS("window"))
		must(pldk_window_create(world, (size_t)number, NULL, &window));
	else if (IS("signal"))
		must(pldk_signal_create(world, 1, &one, NULL, &cell));
	else if (IS("wait"))
		must(pldk_wait(cell, 0, PLDK_GE, 42, PLDK_FOREVER));
	else if (IS("abort"))
		must(pldk_abort(world, (int)number));
	else if (IS("exit"))
		_exit((int)number);
	else if (IS("return"))
		exit((int)number);
	else if (IS("raise"))
		raise((int)number);
	else if (IS("sleep"))
		usleep((useconds_t)number * 1000);
	else if (IS("say") && value)
		puts(value + 1);
	else if (IS("eat"))
		eat();
	else if (IS("ignore-term"))
		signal(SIGTERM, SIG_IGN);
	else if (IS("no-pidfd"))
		refuse_pidfds();
	else
		return -1;
	return 0;
}

int main(int argc, char **argv)
{
	const char *text = getenv("PLDK_RANK");
	long rank = text ? strtol(text, NULL, 10) : 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		char *step = argv[i], *end;
		long only = strtol(step, &end, 10);

		if (end != step && *end == ':') {
			if (only != rank)
				continue;
			step = end + 1;
		}
		if (strcmp(step, "exec") == 0) {
			execvp(argv[i + 1], argv + i + 1);
			perror(argv[i + 1]);
			return 127;
		}
		if (act(step)) {
			fprintf(stderr, "pldrun_helper: unknown step '%s'\n", step);
			return 64;
		}
	}
	return 0;
}
