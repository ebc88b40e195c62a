// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The agent of far peers: a process per world that moves bytes for ranks which do not map each other's slabs.
 *
 * It stands where a network will stand. A thread of control, a poll loop, a socket a rank; each rank's messages are
 * carried out in order, a bounded number at a turn, and what they say is checked against the world file before it is
 * believed. It allocates nothing from the heap (it may be the child of a process with threads) and touches only
 * memory that windows have reserved.
 *
 * It belongs to nobody: neither a child that the launcher could wait for by accident nor killed with its terminal. It
 * ends when it is the last that has the world file open. That is asked with a write lease, which the kernel grants
 * only to the sole opener: no pid, no count that a kill -9 could leave wrong.
 */
#include "far.h"
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define TURN_BYTES (2 * (size_t)FAR_PIECE) /* of one rank, then the next */
#define ALONE_MS 200 /* between two questions whether the world has ended */
#define HELLO_NS UINT64_C(5000000000) /* for a rank to say who it is */
#define VIEWS 64u
#define WINDOWS 256u

struct lane {
	int fd;
	uint32_t world_rank; /* PLD_RANK_ANY before the hello */
	uint64_t since; /* when it was accepted */
};

struct window {
	uint64_t domain;
	uint64_t page; /* 0: entry is free */
	uint64_t used; /* for eviction */
	struct shm_window head;
	char *slabs;
};

/* All of it static: the agent is a process of its own. */
static struct {
	struct shm_world world;
	struct shm_view root;
	char *far;
	uint32_t nlanes;
	uint32_t nwelcome; /* of them */
	struct lane lanes[PLD_MAX_RANKS];
	struct pollfd polls[PLD_MAX_RANKS + 1];
	struct shm_view views[VIEWS];
	uint32_t next_view;
	struct window windows[WINDOWS];
	uint64_t clock;
	struct far_msg msg; /* the newest one */
	char payload[FAR_PIECE];
} agent;

static void view_forget(struct shm_view *view)
{
	uint32_t i;

	for (i = 0; i < WINDOWS; i++) {
		if (agent.windows[i].page && agent.windows[i].domain == view->offset) {
			munmap(agent.windows[i].slabs, agent.windows[i].head.end - agent.windows[i].head.slabs);
			agent.windows[i].page = 0;
		}
	}
	pldk__shm_view_unmap(view);
	view->dom = NULL;
}

static struct shm_view *view_of(uint64_t offset)
{
	struct shm_view *view;
	uint32_t i;

	if (offset == agent.root.offset)
		return &agent.root;
	for (i = 0; i < VIEWS; i++) {
		view = &agent.views[i];
		if (view->dom && view->offset == offset) {
			if (pldk__load_acquire(&view->dom->magic) == SHM_DOMAIN_MAGIC)
				return view;
			view_forget(view);
			return NULL;
		}
	}
	view = &agent.views[agent.next_view++ % VIEWS];
	if (view->dom)
		view_forget(view);
	if (offset % SHM_PAGE || pldk__shm_view_map(&agent.world, offset, view)) {
		view->dom = NULL;
		return NULL;
	}
	return view;
}

/* The window of a message, mapped. Checked against the table each time: it may have been closed by all. */
static struct window *window_of(const struct shm_view *view, const struct far_msg *msg)
{
	struct window *win = &agent.windows[0];
	struct shm_window head;
	uint32_t i;

	if (msg->window >= SHM_NWINDOWS ||
	    !(view->dom->table_bits[msg->window / SHM_SLOTS_PER_PAGE / 64] >> msg->window / SHM_SLOTS_PER_PAGE % 64 &
	      1))
		return NULL;
	if (!msg->page || SHM_SLOT_PAGE(pldk__load_acquire(&view->windows[msg->window])) != msg->page / SHM_PAGE)
		return NULL;
	for (i = 0; i < WINDOWS; i++) {
		if (agent.windows[i].page == msg->page) {
			agent.windows[i].used = ++agent.clock;
			return &agent.windows[i];
		}
		if (agent.windows[i].used < win->used || !agent.windows[i].page)
			win = &agent.windows[i];
	}
	if (pldk__shm_read(agent.world.fd, &head, sizeof(head), msg->page) || head.magic != SHM_WINDOW_MAGIC ||
	    !(head.state & SHM_ALLOCATED))
		return NULL;
	if (win->page)
		munmap(win->slabs, win->head.end - win->head.slabs);
	win->page = 0;
	win->slabs = pldk__shm_mmap(agent.world.fd, head.slabs, head.end - head.slabs);
	if (!win->slabs)
		return NULL;
	win->head = head;
	win->page = msg->page;
	win->domain = view->offset;
	win->used = ++agent.clock;
	return win;
}

/* Does the element type fit the place and the length? */
static bool is_aligned(const struct far_msg *msg)
{
	const size_t size = pldk_dtype_size((enum pldk_dtype)msg->what);

	return size && !(msg->offset % size) && !(msg->len % size);
}

static int carry_out(const struct lane *lane, const struct far_msg *msg, const char *payload)
{
	const struct shm_view *view = view_of(msg->domain);
	struct window *win;
	char *bounce = NULL;
	int64_t old;
	char *at;

	if (!view || msg->rank >= view->nranks || msg->from >= view->nranks ||
	    view->ranks[msg->from].world_rank != lane->world_rank)
		return -EINVAL;
	win = window_of(view, msg);
	if (!win)
		return -ESTALE;
	if (msg->offset > win->head.bytes || msg->len > win->head.bytes - msg->offset)
		return -EINVAL;
	at = win->slabs + msg->rank * win->head.stride + msg->offset;
	if (msg->op != FAR_GET && win->head.flags & PLD_WINDOW_F_OWNER_WRITES && msg->rank != msg->from)
		return -EPERM;
	if (msg->op != FAR_NOTIFY && win->head.kind == PLD_WINDOW_SIGNAL)
		return -EDOM;
	if (msg->op == FAR_GET || msg->op == FAR_RMW) {
		const uint64_t len = msg->op == FAR_GET ? msg->len : sizeof(old);

		if (msg->bounce > SHM_BOUNCE_BYTES || len > SHM_BOUNCE_BYTES - msg->bounce)
			return -EINVAL;
		bounce = agent.far + pldk__far_bounce(agent.root.nranks, lane->world_rank) + msg->bounce;
	}
	switch (msg->op) {
	case FAR_PUT:
		pldk__copy(at, payload, msg->len);
		return 0;
	case FAR_ADD:
		if (!is_aligned(msg))
			return -EINVAL;
		pldk__atomic_add(at, payload, msg->len / pldk_dtype_size((enum pldk_dtype)msg->what), msg->what);
		return 0;
	case FAR_GET:
		pldk__copy(bounce, at, msg->len);
		return 0;
	case FAR_NOTIFY:
		if (win->head.kind != PLD_WINDOW_SIGNAL || msg->offset % PLD_CELL_SIZE || msg->len != PLD_CELL_SIZE)
			return -EDOM;
		if (pldk__cell_notify((struct pld_cell *)(void *)at, msg->what, msg->value, msg->from))
			pldk__shm_ring(view, msg->rank);
		return 0;
	case FAR_RMW:
		if (!is_aligned(msg) || msg->len != pldk_dtype_size((enum pldk_dtype)msg->what))
			return -EINVAL;
		if (msg->what == PLDK_INT64)
			old = pldk__rmw64((int64_t *)(void *)at, msg->kind, msg->value, msg->expected);
		else if (msg->what == PLDK_INT32)
			old = pldk__rmw32((int32_t *)(void *)at, msg->kind, (int32_t)msg->value,
					  (int32_t)msg->expected);
		else
			return -EINVAL;
		memcpy(bounce, &old, sizeof(old));
		return 0;
	default:
		return -EINVAL;
	}
}

/* Whoever shares the network namespace can connect: see far_start.c. */
static bool is_own_user(int fd, struct ucred *out_peer)
{
	socklen_t len = sizeof(*out_peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, out_peer, &len) && out_peer->uid == geteuid();
}

/* A rank says who it is; the socket says which process that is, the world file which process may. */
static bool welcome(struct lane *lane, const struct far_msg *msg)
{
	struct ucred peer;

	if (msg->op != FAR_HELLO || msg->rank >= agent.root.nranks || !is_own_user(lane->fd, &peer) ||
	    SHM_CLAIM_PID(pldk__load_acquire(&agent.root.ranks[msg->rank].claim)) != (uint32_t)peer.pid)
		return false;
	lane->world_rank = msg->rank;
	agent.nwelcome++;
	pldk__store_release(&pldk__far_of(agent.far, msg->rank)->is_welcome, 1);
	return true;
}

static bool has_payload(const struct far_msg *msg)
{
	return msg->op == FAR_PUT || msg->op == FAR_ADD;
}

/* Carry a message out and say so. False: the lane speaks another language. */
static bool lane_work(struct lane *lane, size_t len)
{
	const struct far_msg *msg = &agent.msg;
	struct shm_far *far;
	int ret;

	if (len < sizeof(*msg) || msg->magic != FAR_MAGIC || len - sizeof(*msg) != (has_payload(msg) ? msg->len : 0))
		return false;
	if (lane->world_rank == PLD_RANK_ANY)
		return welcome(lane, msg);
	far = pldk__far_of(agent.far, lane->world_rank);
	ret = carry_out(lane, msg, agent.payload);
	/* The first one stays until the rank has read it: far_lane.c doubts what came after it too. */
	if (ret && !pldk__load_acquire(&far->refused)) {
		far->refused_errno = ret;
		pldk__store_release(&far->refused, msg->seq);
	}
	/* What it did comes before the word that says so. */
	pldk__store_release(&far->executed, msg->seq);
	return true;
}

/* A turn of one rank. False: it is gone. */
static bool lane_turn(struct lane *lane)
{
	struct iovec iov[2] = { { &agent.msg, sizeof(agent.msg) }, { agent.payload, sizeof(agent.payload) } };
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 2 };
	bool is_alive = true;
	size_t turn = 0;
	ssize_t n = 0;

	while (turn < TURN_BYTES && is_alive) {
		n = recvmsg(lane->fd, &mh, MSG_DONTWAIT);
		if (n < 0)
			is_alive = errno == EAGAIN || errno == EINTR;
		else
			is_alive = n && !(mh.msg_flags & MSG_TRUNC) && lane_work(lane, (size_t)n);
		if (n <= 0)
			break;
		turn += (size_t)n;
	}
	if (turn && lane->world_rank != PLD_RANK_ANY)
		pldk__shm_ring(&agent.root, lane->world_rank);
	return is_alive;
}

static void lane_end(uint32_t i)
{
	struct lane *lane = &agent.lanes[i];

	close(lane->fd);
	agent.nwelcome -= lane->world_rank != PLD_RANK_ANY;
	*lane = agent.lanes[--agent.nlanes];
}

/* End the lanes that were accepted before a time and have not said hello. */
static void strangers_end(uint64_t before)
{
	uint32_t i;

	for (i = agent.nlanes; i-- > 0;)
		if (agent.lanes[i].world_rank == PLD_RANK_ANY && agent.lanes[i].since < before)
			lane_end(i);
}

static void oldest_stranger_end(void)
{
	uint64_t oldest = UINT64_MAX - 1;
	uint32_t i;

	for (i = 0; i < agent.nlanes; i++)
		if (agent.lanes[i].world_rank == PLD_RANK_ANY && agent.lanes[i].since < oldest)
			oldest = agent.lanes[i].since;
	strangers_end(oldest + 1);
}

static void lane_accept(int listener)
{
	struct ucred peer;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (!is_own_user(fd, &peer)) {
		close(fd);
		return;
	}
	/* As many places as ranks, each has one: if none is left, somebody is in here who is no rank. */
	if (agent.nlanes == PLD_MAX_RANKS)
		oldest_stranger_end();
	if (agent.nlanes == PLD_MAX_RANKS) {
		close(fd);
		return;
	}
	agent.lanes[agent.nlanes++] = (struct lane){ .fd = fd, .world_rank = PLD_RANK_ANY, .since = pldk__now_ns() };
}

static bool is_alone(void)
{
	if (fcntl(agent.world.fd, F_SETLEASE, F_WRLCK))
		return false;
	fcntl(agent.world.fd, F_SETLEASE, F_UNLCK);
	return true;
}

static void serve(int listener)
{
	uint64_t asked = 0;
	uint64_t now;
	uint32_t i;
	int n;

	for (;;) {
		agent.polls[0] = (struct pollfd){ .fd = listener, .events = POLLIN };
		for (i = 0; i < agent.nlanes; i++)
			agent.polls[i + 1] = (struct pollfd){ .fd = agent.lanes[i].fd, .events = POLLIN };
		n = poll(agent.polls, agent.nlanes + 1, agent.nlanes && agent.nlanes == agent.nwelcome ? -1 : ALONE_MS);
		/* From the end: the one that takes an ended lane's place has had its turn. */
		for (i = agent.nlanes; n > 0 && i-- > 0;)
			if (agent.polls[i + 1].revents && !lane_turn(&agent.lanes[i]))
				lane_end(i);
		if (n > 0 && agent.polls[0].revents)
			lane_accept(listener);
		if (agent.nlanes && agent.nlanes == agent.nwelcome)
			continue;
		now = pldk__now_ns();
		strangers_end(now - HELLO_NS);
		/* A stranger does not keep it alive; a rank before its hello does: it has the world open. */
		if (!agent.nwelcome && now - asked >= ALONE_MS * UINT64_C(1000000)) {
			asked = now;
			if (is_alone())
				return;
		}
	}
}

static void close_from_to(int first, int last)
{
	int fd;

	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
	for (fd = first; fd <= last && fd < (int)sysconf(_SC_OPEN_MAX); fd++)
		close(fd);
}

/* Keep two descriptors and the three standard ones, which lead nowhere: nobody's pipe may wait for this process. */
static void descriptors_settle(int *listener, int *world_fd)
{
	char path[32];
	int null;
	int high;
	int low;
	int own;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", *world_fd);
	own = open(path, O_RDWR | O_CLOEXEC); /* an open file of one's own: see is_alone() */
	if (own < 0)
		_exit(1);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) != fd)
			close(fd);
	*listener = fcntl(*listener, F_DUPFD_CLOEXEC, 3);
	*world_fd = fcntl(own, F_DUPFD_CLOEXEC, 3);
	if (*listener < 0 || *world_fd < 0)
		_exit(1);
	low = *listener < *world_fd ? *listener : *world_fd;
	high = *listener < *world_fd ? *world_fd : *listener;
	close_from_to(3, low - 1);
	close_from_to(low + 1, high - 1);
	close_from_to(high + 1, INT_MAX);
}

/**
 * pldk__far_agent() - be the agent
 * @listener: listening socket, its name is in the world's header
 * @world_fd: the world
 *
 * Context: a forked process that does nothing else; never returns.
 */
void pldk__far_agent(int listener, int world_fd)
{
	struct rlimit limit;
	sigset_t all;

	/* The handlers that it inherits are not its own: no POSIX signal reaches it but SIGKILL and SIGSTOP. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	if (chdir("/"))
		_exit(1);
	prctl(PR_SET_NAME, "pldk-agent");
	descriptors_settle(&listener, &world_fd);
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	agent.world.fd = world_fd;
	agent.world.header = pldk__shm_mmap(world_fd, 0, SHM_PAGE);
	if (!agent.world.header || pldk__shm_view_map(&agent.world, agent.world.header->world, &agent.root))
		_exit(1);
	agent.far = pldk__shm_mmap(world_fd, agent.world.header->far,
				   pldk__far_bounce(agent.root.nranks, agent.root.nranks));
	if (!agent.far)
		_exit(1);
	serve(listener);
	_exit(0);
}
