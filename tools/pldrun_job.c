// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The loop that watches a job's processes, and how they are stopped.
 *
 * One epoll has everything: a signalfd, the guard's pipe, a pidfd a rank, the ranks' pipes, and pldrun's own outputs
 * while they are slow. Its ready list keeps the order in which ranks ended. Every end is told to the world at once
 * (pldk_world_mark_dead()), so that nobody waits for a dead rank. After a failure the others get SETTLE_NS to say what
 * they saw; then the world is poisoned and they get SIGTERM, and SIGKILL after the grace time. Ranks stay in pldrun's
 * process group: Ctrl-C, Ctrl-Z and reading from the terminal work as for one program. What ranks leave behind is
 * killed at the end; see pldrun_guard.c.
 */
#include "pldrun.h"

#include <pldk.h>

#include <linux/pld.h>

#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETTLE_NS 200000000LL
#define LINGER_NS 200000000LL /* for output of processes that outlive even SIGKILL's sweep */
#define ABSENT_TICK_NS 100000000LL
#define SECOND_NS 100000000LL /* timeout(1) sends SIGTERM to its child and to the group: that is one */
#define EVENTS 64

/* What an epoll entry is about: kind << 32 | rank. */
enum event_kind { EVENT_SIGNAL, EVENT_GUARD, EVENT_END, EVENT_OUT, EVENT_ERR, EVENT_SINK };

enum stage { STAGE_RUNS, STAGE_SETTLES, STAGE_STOPPED, STAGE_KILLED };

/**
 * struct loop - state of the loop that nobody else needs
 * @step_ns: when @stage goes on
 * @ended: ranks that have ended
 * @absent_ns: when to look again whether others wait for a rank that ended without joining; 0 if none did
 * @interrupt_ns: when the first POSIX signal came
 * @has_orphans: a child that is no rank may have ended
 * @is_paused: by sink: its streams are not read
 * @is_polled: by sink: waiting to become writable
 */
struct loop {
	struct pldrun_job *job;
	int epoll;
	int signals;
	enum stage stage;
	long long start_ns;
	long long step_ns;
	long long linger_ns;
	long long absent_ns;
	long long interrupt_ns;
	int ended;
	bool has_orphans;
	bool is_paused[2];
	bool is_polled[2];
};

static int watch(struct loop *loop, int op, int fd, uint32_t events, enum event_kind kind, int rank)
{
	struct epoll_event event = { .events = events, .data.u64 = (uint64_t)kind << 32 | (uint32_t)rank };

	return epoll_ctl(loop->epoll, op, fd, &event);
}

/* Stopping */

/* Has it ended, though its end was not taken yet? */
static bool is_ending(const struct pldrun_rank *rank)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)rank->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == rank->pid;
}

static void stop_ranks(struct loop *loop, int signo)
{
	for (int r = 0; r < loop->job->plan.nranks; r++) {
		struct pldrun_rank *rank = &loop->job->ranks[r];

		if (!rank->pid || rank->has_ended || is_ending(rank))
			continue;
		rank->was_stopped = true;
		kill(rank->pid, signo);
		kill(rank->pid, SIGCONT); /* a stopped process would not see the other one */
	}
}

/* The trouble begins: remember what everybody did, and let the others see it for a moment. */
static void begin_end(struct loop *loop, long long settle_ns)
{
	if (loop->stage != STAGE_RUNS)
		return;
	if (!loop->job->last.ndomains)
		pldrun_world_look(loop->job, &loop->job->last);
	loop->stage = STAGE_SETTLES;
	loop->step_ns = launch_now_ns() + settle_ns;
}

static int poison_code(const struct pldrun_job *job)
{
	const struct pldrun_rank *rank = job->failed < 0 ? NULL : &job->ranks[job->failed];

	if (!rank || !rank->has_ended)
		return job->has_timed_out ? PLDRUN_TIMEOUT : PLDRUN_FAILED;
	return WIFSIGNALED(rank->status) ? 128 + WTERMSIG(rank->status) : WEXITSTATUS(rank->status);
}

static void step(struct loop *loop)
{
	if (launch_now_ns() < loop->step_ns)
		return;
	if (loop->stage == STAGE_SETTLES) {
		pldk_world_poison(loop->job->plan.world_fd, poison_code(loop->job));
		stop_ranks(loop, SIGTERM);
		loop->stage = STAGE_STOPPED;
		loop->step_ns = launch_now_ns() + loop->job->options->grace_ns;
	} else if (loop->stage == STAGE_STOPPED) {
		stop_ranks(loop, SIGKILL);
		loop->stage = STAGE_KILLED;
	}
}

/* At once: there is nobody any more who would wait for an orderly end. */
static void kill_all(struct loop *loop)
{
	loop->job->is_killed = true;
	stop_ranks(loop, SIGKILL);
	loop->stage = STAGE_KILLED;
}

/* Ends */

/* A rank that ended well without joining is fine, unless others joined and wait for it. */
static void check_absent(struct loop *loop)
{
	struct pldrun_job *job = loop->job;
	const struct world_domain *world;
	int r = 0;

	if (!loop->absent_ns || launch_now_ns() < loop->absent_ns || loop->stage != STAGE_RUNS ||
	    loop->ended == job->plan.nranks)
		return;
	loop->absent_ns = launch_now_ns() + ABSENT_TICK_NS;
	world = pldrun_world_look(job, &job->last);
	if (!world || world->joined == 0) {
		world_free(&job->last);
		return;
	}
	while (!job->ranks[r].has_ended || job->ranks[r].end_state != PLD_MEMBER_ABSENT)
		r++;
	job->failed = r;
	begin_end(loop, 0);
}

static void take_end(struct loop *loop, int r, const struct world_domain *world)
{
	struct pldrun_job *job = loop->job;
	struct pldrun_rank *rank = &job->ranks[r];
	char how[128];

	if (waitpid(rank->pid, &rank->status, WNOHANG) != rank->pid)
		return;
	rank->has_ended = true;
	rank->order = ++loop->ended;
	rank->end_state = world ? world->ranks[r].state : PLD_MEMBER_FINALISED;
	if (rank->end_state == PLD_MEMBER_ABSENT && !loop->absent_ns)
		loop->absent_ns = launch_now_ns();
	epoll_ctl(loop->epoll, EPOLL_CTL_DEL, rank->pidfd, NULL);
	close(rank->pidfd);
	rank->pidfd = -1;
	pldk_world_mark_dead(job->plan.world_fd, r, rank->status);
	if (job->options->verbosity > 0) {
		launch_how(rank->status, how, sizeof(how));
		pldrun_sink_say(job->err, "rank %d (pid %d, %s) %s", r, (int)rank->pid,
				world_state_name(rank->end_state), how);
	}
	/* After a timeout, what the poisoned ranks do is no failure of theirs. */
	if (job->failed >= 0 || job->has_timed_out || rank->was_stopped ||
	    (rank->status == 0 && (rank->end_state == PLD_MEMBER_ABSENT || rank->end_state == PLD_MEMBER_FINALISED)))
		return;
	job->failed = r;
	begin_end(loop, SETTLE_NS);
}

/* All ends of one batch, in the order of the ready list. The world is read before it learns of them. */
static void take_ends(struct loop *loop, const struct epoll_event *events, int n)
{
	struct world_list list = { 0 };
	const struct world_domain *world = NULL;
	bool has_looked = false;

	for (int i = 0; i < n; i++) {
		if (events[i].data.u64 >> 32 != EVENT_END)
			continue;
		if (!has_looked)
			world = pldrun_world_look(loop->job, &list);
		has_looked = true;
		take_end(loop, (int)(uint32_t)events[i].data.u64, world);
	}
	world_free(&list);
}

/* Children that are no ranks were left behind by one. Stops at a rank: its pidfd brings it in order. */
static void reap_orphans(struct loop *loop)
{
	siginfo_t info;

	while (loop->has_orphans) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == 0) {
			loop->has_orphans = false;
			return;
		}
		for (int r = 0; r < loop->job->plan.nranks; r++)
			if (loop->job->ranks[r].pid == info.si_pid && !loop->job->ranks[r].has_ended)
				return;
		waitpid(info.si_pid, NULL, WNOHANG);
	}
}

static void take_signals(struct loop *loop)
{
	struct pldrun_job *job = loop->job;
	struct signalfd_siginfo info;

	while (read(loop->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			loop->has_orphans = true;
		} else if (job->interrupt) {
			if (launch_now_ns() - loop->interrupt_ns < SECOND_NS)
				continue;
			if (!job->last.ndomains)
				pldrun_world_look(job, &job->last);
			kill_all(loop);
		} else {
			job->interrupt = (int)info.ssi_signo;
			loop->interrupt_ns = launch_now_ns();
			/* The terminal sends its signals to the whole group: the ranks have it already. */
			for (int r = 0; info.ssi_code != SI_KERNEL && r < job->plan.nranks; r++)
				if (job->ranks[r].pid && !job->ranks[r].has_ended)
					kill(job->ranks[r].pid, job->interrupt);
		}
	}
}

/* Output */

static void pause_streams(struct loop *loop, int which, bool is_paused)
{
	struct pldrun_sink *sink = which ? loop->job->err : loop->job->out;

	if (loop->is_paused[which] == is_paused)
		return;
	loop->is_paused[which] = is_paused;
	for (int r = 0; r < loop->job->plan.nranks; r++) {
		struct pldrun_stream *streams[] = { &loop->job->ranks[r].out, &loop->job->ranks[r].err };

		for (int s = 0; s < 2; s++) {
			if (streams[s]->fd < 0 || streams[s]->sink != sink)
				continue;
			watch(loop, is_paused ? EPOLL_CTL_DEL : EPOLL_CTL_ADD, streams[s]->fd, EPOLLIN,
			      s ? EVENT_ERR : EVENT_OUT, r);
		}
	}
}

/* Write what goes, and read no more than can be written. Returns true if a sink has nothing left. */
static bool write_sink(struct loop *loop, int which)
{
	struct pldrun_sink *sink = which ? loop->job->err : loop->job->out;
	bool is_empty = pldrun_sink_write(sink);

	if (loop->is_polled[which] == is_empty) {
		watch(loop, is_empty ? EPOLL_CTL_DEL : EPOLL_CTL_ADD, sink->fd, EPOLLOUT, EVENT_SINK, which);
		loop->is_polled[which] = !is_empty;
	}
	pause_streams(loop, which, pldrun_sink_is_full(sink));
	return is_empty;
}

static bool write_sinks(struct loop *loop)
{
	bool is_empty = write_sink(loop, 0);

	return loop->job->out == loop->job->err ? is_empty : write_sink(loop, 1) && is_empty;
}

static void read_stream(struct pldrun_stream *stream)
{
	/* Closing the pipe of a sink that nobody reads hands the SIGPIPE on to the rank, as in a pipeline. */
	if (stream->fd >= 0 && (!pldrun_stream_read(stream) || stream->sink->is_broken))
		pldrun_stream_close(stream);
}

static bool has_streams(const struct pldrun_job *job)
{
	for (int r = 0; r < job->plan.nranks; r++)
		if (job->ranks[r].out.fd >= 0 || job->ranks[r].err.fd >= 0)
			return true;
	return false;
}

/* The loop */

static int timeout_ms(const struct loop *loop, long long now)
{
	const struct pldrun_job *job = loop->job;
	long long next = -1, wait;

	if (loop->ended == job->plan.nranks)
		next = loop->linger_ns;
	else if (loop->stage == STAGE_SETTLES || loop->stage == STAGE_STOPPED)
		next = loop->step_ns;
	else if (loop->absent_ns)
		next = loop->absent_ns;
	if (loop->stage == STAGE_RUNS && job->options->timeout_ns &&
	    (next < 0 || next > loop->start_ns + job->options->timeout_ns))
		next = loop->start_ns + job->options->timeout_ns;
	if (next < 0)
		return -1;
	wait = (next - now + 999999) / 1000000;
	return wait < 0 ? 0 : wait > 1000000 ? 1000000 : (int)wait;
}

static void run_loop(struct loop *loop)
{
	struct pldrun_job *job = loop->job;
	struct epoll_event events[EVENTS];
	bool is_written;
	int n;

	for (;;) {
		long long now = launch_now_ns();

		if (loop->stage == STAGE_RUNS && job->options->timeout_ns && loop->ended < job->plan.nranks &&
		    now - loop->start_ns >= job->options->timeout_ns) {
			job->has_timed_out = true;
			begin_end(loop, 0);
		}
		step(loop);
		check_absent(loop);
		is_written = write_sinks(loop);
		if (loop->ended == job->plan.nranks) {
			if (!loop->linger_ns) {
				pldrun_sweep();
				loop->linger_ns = launch_now_ns() + LINGER_NS;
			}
			/* A slow reader gets everything, unless the user has lost patience. */
			if (!has_streams(job) || ((is_written || job->is_killed) && now > loop->linger_ns))
				return;
		}
		n = epoll_wait(loop->epoll, events, EVENTS, timeout_ms(loop, now));
		for (int i = 0; i < n; i++) {
			if (events[i].data.u64 >> 32 == EVENT_SIGNAL) {
				take_signals(loop);
			} else if (events[i].data.u64 >> 32 == EVENT_GUARD) {
				watch(loop, EPOLL_CTL_DEL, job->guard, 0, EVENT_GUARD, 0);
				job->is_orphan = true;
				kill_all(loop);
			}
		}
		take_ends(loop, events, n);
		reap_orphans(loop);
		for (int i = 0; i < n; i++) {
			struct pldrun_rank *rank = &job->ranks[(uint32_t)events[i].data.u64];

			if (events[i].data.u64 >> 32 == EVENT_OUT)
				read_stream(&rank->out);
			else if (events[i].data.u64 >> 32 == EVENT_ERR)
				read_stream(&rank->err);
		}
	}
}

/* Descriptors for all pipes; POSIX signals and the guard's end to the loop. */
static int prepare(struct loop *loop)
{
	struct pldrun_job *job = loop->job;
	struct rlimit files = job->origin.files;

	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	loop->signals = signalfd(-1, &job->signals, SFD_CLOEXEC | SFD_NONBLOCK);
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->signals < 0 || loop->epoll < 0 || watch(loop, EPOLL_CTL_ADD, loop->signals, EPOLLIN, EVENT_SIGNAL, 0))
		return -1;
	return watch(loop, EPOLL_CTL_ADD, job->guard, EPOLLIN, EVENT_GUARD, 0);
}

static int start(struct loop *loop, int r)
{
	struct pldrun_rank *rank = &loop->job->ranks[r];

	if (pldrun_rank_start(loop->job, r))
		return -1;
	if (watch(loop, EPOLL_CTL_ADD, rank->pidfd, EPOLLIN, EVENT_END, r) ||
	    (rank->out.fd >= 0 && watch(loop, EPOLL_CTL_ADD, rank->out.fd, EPOLLIN, EVENT_OUT, r)) ||
	    (rank->err.fd >= 0 && watch(loop, EPOLL_CTL_ADD, rank->err.fd, EPOLLIN, EVENT_ERR, r))) {
		pldrun_own_error(loop->job, "watch a rank");
		/* Unseen, its end would be waited for for ever. */
		pldrun_rank_undo(rank);
		return -1;
	}
	return 0;
}

void pldrun_job_run(struct pldrun_job *job)
{
	struct loop loop = { .job = job, .epoll = -1, .signals = -1, .start_ns = launch_now_ns() };

	job->oom_kills = pldrun_oom_kills();
	for (int r = 0; r < job->plan.nranks; r++) {
		job->ranks[r].pidfd = -1;
		job->ranks[r].out.fd = -1;
		job->ranks[r].err.fd = -1;
	}
	if (prepare(&loop)) {
		pldrun_own_error(job, "prepare the job");
		return;
	}
	for (int r = 0; r < job->plan.nranks; r++) {
		if (start(&loop, r) == 0)
			continue;
		/* Those that were not started have nothing to end. */
		loop.ended += job->plan.nranks - r;
		begin_end(&loop, 0);
		break;
	}
	run_loop(&loop);
	for (int r = 0; r < job->plan.nranks; r++) {
		pldrun_stream_close(&job->ranks[r].out);
		pldrun_stream_close(&job->ranks[r].err);
	}
	close(loop.signals);
	close(loop.epoll);
	/* From here on a POSIX signal ends pldrun itself, should its output be stuck. */
	sigprocmask(SIG_SETMASK, &job->origin.mask, NULL);
}
