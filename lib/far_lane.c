// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Far peers, seen from a rank: the lane to the agent.
 *
 * A rank has one lane, whatever domains it is in; its threads take turns. Messages are numbered; shm_far.executed says
 * how far the agent is, so a ticket is a message number and tickets complete in order. Bytes of gets land in the
 * rank's bounce area and are copied to where they belong by whoever looks next.
 *
 * When the agent dies, its end of the socket closes: every later call fails with -EOWNERDEAD and names it.
 */
#include "far.h"
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define GETS 64u /* gets under way */
#define SPIN_TURNS 20u /* yields before sleeping */
#define SLICE_NS UINT64_C(50000000) /* a dead agent is noticed within 100 ms */
#define HELLO_NS UINT64_C(10000000000) /* until the agent has answered */
#define HELLO_TURNS 5u /* a rank that was stopped before its hello is thrown out, and comes again */
#define FLUSH_NS UINT64_C(10000000000) /* who leaves or resets waits no longer for an agent that does not move */

struct get {
	uint64_t seq;
	uint64_t first; /* seq of the first piece of the same transfer */
	void *dst; /* NULL: forgotten, its caller has been told of an error */
	uint32_t len;
	uint32_t at; /* in the bounce area */
};

/**
 * struct shm_lane - connection of a rank to the agent
 * @lock: one sender at a time; protects everything but @is_dead
 * @root: the world's domain, whose doorbell this rank sleeps on
 * @area, @area_bytes: mapping of the far area
 * @gets: those under way, @head the oldest of @ngets
 * @fill: where the next get goes in the bounce area
 * @refused, @refused_upto: messages that the agent may have refused: the first was, the last had been sent when that
 *	was read. 0 none
 * @refused_errno: why
 */
struct shm_lane {
	pthread_mutex_t lock;
	int fd;
	uint32_t is_dead;
	struct shm_view root;
	uint32_t world_rank;
	char *area;
	uint64_t area_bytes;
	struct shm_far *far;
	char *bounce;
	struct get gets[GETS];
	uint32_t head;
	uint32_t ngets;
	uint32_t fill;
	uint64_t refused;
	uint64_t refused_upto;
	int refused_errno;
};

static int fail_dead(const struct shm_lane *lane)
{
	return pldk__fail(-EOWNERDEAD,
			  "the agent of far peers (pid %u) died: nothing reaches or comes from a far rank any more",
			  SHM_CLAIM_PID(lane->root.world->header->agent));
}

static void set_dead(struct shm_lane *lane)
{
	pldk__store_release(&lane->is_dead, 1);
	pldk__store_release(&lane->root.world->header->agent_state, SHM_AGENT_DEAD);
}

/**
 * pldk__far_lane_check() - is the agent alive?
 *
 * Return: 0, -EOWNERDEAD with the sentence.
 */
int pldk__far_lane_check(struct shm_lane *lane)
{
	char byte;
	ssize_t n;

	if (!pldk__load_acquire(&lane->is_dead)) {
		/* The agent never says anything: a byte to read is its end. */
		n = recv(lane->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		set_dead(lane);
	}
	return fail_dead(lane);
}

/* -ETIMEDOUT, and who is to blame; what: of message number seq. */
static int fail_late(const struct shm_lane *lane, uint64_t seq, const char *what)
{
	const uint32_t pid = SHM_CLAIM_PID(lane->root.world->header->agent);
	struct shm_stat st;
	const bool is_stopped = !pldk__shm_stat(pid, &st) && (st.state == 'T' || st.state == 't');

	return pldk__fail(-ETIMEDOUT, "the agent of far peers (pid %u) %s: message %llu was not %s in time", pid,
			  is_stopped ? "is stopped (SIGCONT would let it go on)" : "is late", (unsigned long long)seq,
			  what);
}

/* Wait until the agent is at message seq. 0, -ETIMEDOUT, -EOWNERDEAD; the last two with a sentence. No lock is held. */
static int lane_wait(struct shm_lane *lane, uint64_t seq, uint64_t deadline_ns)
{
	struct shm_rank *r = &lane->root.ranks[lane->world_rank];
	uint32_t turn;
	int ret = 0;

	for (turn = 0; turn < SPIN_TURNS; turn++) {
		if (pldk__load_acquire(&lane->far->executed) >= seq)
			return 0;
		sched_yield();
	}
	pldk__add_seq(&r->sleeping, 1);
	while (!ret) {
		const uint32_t bell = pldk__load_seq(&r->doorbell);
		uint64_t now = pldk__now_ns();
		uint64_t until = now + SLICE_NS < deadline_ns ? now + SLICE_NS : deadline_ns;
		struct timespec ts = { .tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000) };

		pldk__fence_seq();
		if (pldk__load_acquire(&lane->far->executed) >= seq)
			break;
		if (now >= deadline_ns)
			ret = fail_late(lane, seq, "carried out");
		else if (!pldk__far_lane_check(lane) || pldk__load_acquire(&lane->far->executed) >= seq)
			syscall(SYS_futex, &r->doorbell, FUTEX_WAIT_BITSET, bell, &ts, NULL, FUTEX_BITSET_MATCH_ANY);
		else
			ret = -EOWNERDEAD;
	}
	pldk__sub_seq(&r->sleeping, 1);
	return ret;
}

/*
 * The agent tells the first message that it refused, and the next one only after that was read: of those in between
 * nothing is known, so they count as refused as well. The lock is held. True: there is a new one.
 */
static bool refused_read(struct shm_lane *lane)
{
	const uint64_t refused = pldk__load_acquire(&lane->far->refused);

	if (pldk__likely(!refused))
		return false;
	if (!lane->refused)
		lane->refused = refused;
	lane->refused_errno = lane->far->refused_errno;
	lane->refused_upto = pldk__load_relaxed(&lane->far->sent);
	pldk__store_release(&lane->far->refused, 0);
	return true;
}

static bool is_refused(const struct shm_lane *lane, uint64_t seq)
{
	return pldk__unlikely(lane->refused && seq >= lane->refused && seq <= lane->refused_upto);
}

static int fail_refused(const struct shm_lane *lane)
{
	return pldk__fail(lane->refused_errno, "the agent of far peers refused it, or something shortly before it: %s",
			  pldk_strerror(lane->refused_errno));
}

/* Has a message that was carried out been refused? The lock is held. */
static int check_refused(struct shm_lane *lane, uint64_t seq)
{
	refused_read(lane);
	return is_refused(lane, seq) ? fail_refused(lane) : 0;
}

/* The bytes of a get go nowhere: from now on its caller may do with the destination as it likes. The lock is held. */
static void gets_forget(struct shm_lane *lane, uint64_t first)
{
	uint32_t i;

	for (i = 0; i < lane->ngets; i++)
		if (lane->gets[(lane->head + i) % GETS].first == first)
			lane->gets[(lane->head + i) % GETS].dst = NULL;
}

/* First message of the get that a ticket belongs to; 0 if it has landed, and all before it with it. Lock held. */
static uint64_t gets_first(const struct shm_lane *lane, uint64_t ticket)
{
	uint32_t i;

	for (i = 0; i < lane->ngets; i++)
		if (lane->gets[(lane->head + i) % GETS].seq == ticket)
			return lane->gets[(lane->head + i) % GETS].first;
	return 0;
}

/* Bring home what has arrived. The lock is held. */
static void gets_land(struct shm_lane *lane)
{
	const uint64_t executed = pldk__load_acquire(&lane->far->executed);

	refused_read(lane);
	while (lane->ngets && lane->gets[lane->head].seq <= executed) {
		const struct get *g = &lane->gets[lane->head];

		if (g->dst && !is_refused(lane, g->seq))
			pldk__copy(g->dst, lane->bounce + g->at, g->len);
		lane->head = (lane->head + 1) % GETS;
		lane->ngets--;
	}
	if (!lane->ngets)
		lane->fill = 0;
}

/* Room for len bytes in the bounce area, if there is. The lock is held. */
static bool gets_room(struct shm_lane *lane, uint32_t len, uint64_t *out_at)
{
	uint32_t oldest;
	bool wrapped;

	gets_land(lane);
	if (lane->ngets == GETS)
		return false;
	oldest = lane->ngets ? lane->gets[lane->head].at : 0;
	wrapped = lane->ngets && lane->fill <= oldest;
	*out_at = lane->fill;
	if (wrapped)
		return oldest - lane->fill > len;
	if (SHM_BOUNCE_BYTES - lane->fill >= len)
		return true;
	*out_at = 0;
	return oldest > len;
}

/* Give a message to the agent if it takes one now, else -EAGAIN (without a sentence). The lock is held. */
static int lane_try(struct shm_lane *lane, struct far_msg *msg, const void *payload, size_t len)
{
	struct iovec iov[2] = { { msg, sizeof(*msg) }, { (void *)(uintptr_t)payload, len } };
	const struct msghdr mh = { .msg_iov = iov, .msg_iovlen = len ? 2 : 1 };
	ssize_t n;

	if (pldk__load_acquire(&lane->is_dead))
		return fail_dead(lane);
	msg->magic = FAR_MAGIC;
	msg->seq = pldk__load_relaxed(&lane->far->sent) + 1;
	/* From now on this rank counts as one that may still wake others: see shm_deadlock.c. */
	pldk__store_seq(&lane->far->sent, msg->seq);
	do
		n = sendmsg(lane->fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	pldk__store_seq(&lane->far->sent, msg->seq - 1);
	if (errno == EAGAIN)
		return -EAGAIN;
	if (errno == ENOBUFS || errno == ENOMEM || errno == EMSGSIZE)
		return pldk__fail(-ENOMEM, "no memory for a message to the agent of far peers (net.core.wmem_default)");
	set_dead(lane);
	return fail_dead(lane);
}

/* Wait until the agent might take a message. 0, -ETIMEDOUT without a sentence. No lock is held. */
static int lane_writable(const struct shm_lane *lane, uint64_t deadline_ns)
{
	struct pollfd pfd = { .fd = lane->fd, .events = POLLOUT };
	const uint64_t now = pldk__now_ns();
	uint64_t ns = SLICE_NS;

	if (now >= deadline_ns)
		return -ETIMEDOUT;
	if (deadline_ns - now < ns)
		ns = deadline_ns - now;
	poll(&pfd, 1, (int)(ns / 1000000) + 1);
	return 0;
}

/*
 * Give a message to the agent, waiting for it to take one and, if an answer is to come, for a place for that.
 *
 * The lock is held only for looking and for what does not wait.
 *
 * get: NULL, or what to do with the answer: dst, len, and first unless it is its own
 */
static int lane_send(struct shm_lane *lane, struct far_msg *msg, const void *payload, size_t len, const struct get *get,
		     uint64_t deadline_ns)
{
	uint64_t oldest;
	int ret = 0;

	while (!ret) {
		oldest = 0;
		pthread_mutex_lock(&lane->lock);
		if (get && !gets_room(lane, get->len, &msg->bounce))
			oldest = lane->gets[lane->head].seq;
		else if (get && get->first && lane->refused && lane->refused_upto >= get->first)
			ret = fail_refused(lane); /* an earlier piece: what comes now would not be doubted any more */
		else
			ret = lane_try(lane, msg, payload, len);
		if (!ret && !oldest && get) {
			struct get *to = &lane->gets[(lane->head + lane->ngets++) % GETS];

			*to = *get;
			to->seq = msg->seq;
			to->first = get->first ? get->first : msg->seq;
			to->at = (uint32_t)msg->bounce;
			lane->fill = to->at + get->len;
		}
		pthread_mutex_unlock(&lane->lock);
		if (oldest)
			ret = lane_wait(lane, oldest, deadline_ns);
		else if (ret == -EAGAIN)
			ret = lane_writable(lane, deadline_ns);
		else
			return ret;
	}
	if (ret == -ETIMEDOUT)
		ret = fail_late(lane, pldk__load_relaxed(&lane->far->sent) + 1, "taken");
	return ret;
}

/*
 * The message's target, and whether there is still somebody to send it to. What a rank that only let go of its
 * membership has left in its slab can still be read: it may say why it left.
 */
static int msg_to(struct shm_pd *pd, const struct pldk__map *map, uint32_t rank, uint64_t offset, enum far_op op,
		  struct far_msg *msg)
{
	const struct pld_member *m = pldk__member_of(pd->base.status, rank);
	const uint32_t state = pldk__load_acquire(&m->state);

	if (state > PLD_MEMBER_FINALISED && (op != FAR_GET || state != PLD_MEMBER_RELEASED))
		return pldk__fail(-EOWNERDEAD, "far rank %u (pid %u) is dead", rank, m->pid);
	*msg = (struct far_msg){
		.op = op,
		.domain = pd->view.offset,
		.page = pldk__shm_map(map)->page,
		.window = map->id,
		.rank = rank,
		.from = pd->base.rank,
		.offset = offset,
	};
	return 0;
}

/**
 * pldk__far_put() - see struct pldk_provider_ops
 */
int pldk__far_put(struct pldk__pdomain *base, const struct pldk__map *map, uint32_t rank, uint64_t offset,
		  const void *src, size_t len, uint32_t atomic_dtype, uint64_t deadline_ns, uint64_t *ticket)
{
	struct shm_pd *pd = pldk__shm_pd(base);
	struct shm_lane *lane = pd->lane;
	struct far_msg msg;
	size_t done = 0;
	int ret;

	ret = msg_to(pd, map, rank, offset, atomic_dtype ? FAR_ADD : FAR_PUT, &msg);
	while (!ret) {
		const size_t n = len - done < FAR_PIECE ? len - done : FAR_PIECE;

		msg.what = atomic_dtype;
		msg.len = (uint32_t)n;
		msg.offset = offset + done;
		ret = lane_send(lane, &msg, (const char *)src + done, n, NULL, deadline_ns);
		done += n;
		if (done == len)
			break;
	}
	if (!ret)
		*ticket = msg.seq;
	return ret;
}

/**
 * pldk__far_get() - see struct pldk_provider_ops
 */
int pldk__far_get(struct pldk__pdomain *base, const struct pldk__map *map, uint32_t rank, uint64_t offset, void *dst,
		  size_t len, uint64_t deadline_ns, uint64_t *ticket)
{
	struct shm_pd *pd = pldk__shm_pd(base);
	struct shm_lane *lane = pd->lane;
	struct get get = { 0 };
	struct far_msg msg;
	size_t done;
	int ret;

	ret = msg_to(pd, map, rank, offset, FAR_GET, &msg);
	if (*ticket) {
		pthread_mutex_lock(&lane->lock);
		get.first = gets_first(lane, *ticket);
		if (!ret)
			ret = check_refused(lane, *ticket);
		pthread_mutex_unlock(&lane->lock);
	}
	for (done = 0; !ret && done < len; done += get.len) {
		get.dst = (char *)dst + done;
		get.len = len - done < FAR_PIECE ? (uint32_t)(len - done) : FAR_PIECE;
		msg.len = get.len;
		msg.offset = offset + done;
		ret = lane_send(lane, &msg, NULL, 0, &get, deadline_ns);
		if (!ret && !get.first)
			get.first = msg.seq;
	}
	if (!ret) {
		*ticket = msg.seq;
	} else if (get.first) {
		pthread_mutex_lock(&lane->lock);
		gets_forget(lane, get.first);
		pthread_mutex_unlock(&lane->lock);
	}
	return ret;
}

/**
 * pldk__far_notify() - see struct pldk_provider_ops
 */
int pldk__far_notify(struct pldk__pdomain *base, const struct pldk__map *map, uint32_t rank, uint32_t cell, uint32_t op,
		     int64_t value, uint64_t deadline_ns)
{
	struct shm_pd *pd = pldk__shm_pd(base);
	struct shm_lane *lane = pd->lane;
	struct far_msg msg;
	bool is_new;
	int ret;

	ret = msg_to(pd, map, rank, cell * (uint64_t)PLD_CELL_SIZE, FAR_NOTIFY, &msg);
	if (ret)
		return ret;
	msg.len = PLD_CELL_SIZE;
	msg.what = op;
	msg.value = value;
	/* Nobody waits for a notify: that an earlier one was refused is told here. */
	pthread_mutex_lock(&lane->lock);
	is_new = refused_read(lane);
	ret = is_new ? lane->refused_errno : 0;
	pthread_mutex_unlock(&lane->lock);
	if (is_new)
		return pldk__fail(ret, "the agent of far peers refused something that was sent before: %s",
				  pldk_strerror(ret));
	return lane_send(lane, &msg, NULL, 0, NULL, deadline_ns);
}

/**
 * pldk__far_rmw() - see struct pldk_provider_ops
 */
int pldk__far_rmw(struct pldk__pdomain *base, const struct pldk__map *map, uint32_t rank, uint64_t offset,
		  uint32_t dtype, enum pldk__rmw kind, int64_t operand, int64_t expected, uint64_t deadline_ns,
		  int64_t *old)
{
	struct shm_pd *pd = pldk__shm_pd(base);
	int64_t seen = 0;
	const struct get get = { .dst = &seen, .len = sizeof(seen) };
	struct far_msg msg;
	int ret;

	ret = msg_to(pd, map, rank, offset, FAR_RMW, &msg);
	if (ret)
		return ret;
	msg.len = (uint32_t)pldk_dtype_size((enum pldk_dtype)dtype);
	msg.what = dtype;
	msg.kind = kind;
	msg.value = operand;
	msg.expected = expected;
	ret = lane_send(pd->lane, &msg, NULL, 0, &get, deadline_ns);
	if (!ret)
		ret = pldk__far_done(base, rank, msg.seq, deadline_ns);
	if (!ret)
		*old = seen;
	return ret;
}

/**
 * pldk__far_done() - see struct pldk_provider_ops
 * @ticket: with PLDK__FAR_KEEP or without
 */
int pldk__far_done(struct pldk__pdomain *base, uint32_t rank, uint64_t ticket, uint64_t deadline_ns)
{
	struct shm_lane *lane = pldk__shm_pd(base)->lane;
	const bool is_kept = ticket & PLDK__FAR_KEEP;
	int ret = 0;

	(void)rank; /* one lane for all */
	ticket &= ~PLDK__FAR_KEEP;
	if (pldk__load_acquire(&lane->far->executed) < ticket) {
		if (deadline_ns != PLD_DEADLINE_POLL)
			ret = lane_wait(lane, ticket, deadline_ns);
		else if (pldk__far_lane_check(lane))
			ret = -EOWNERDEAD;
		else
			return pldk__fail(-EAGAIN, "still under way to a far rank");
	}
	if (ret == -ETIMEDOUT && is_kept)
		return ret;
	pthread_mutex_lock(&lane->lock);
	gets_land(lane);
	if (!ret)
		ret = check_refused(lane, ticket);
	else if (ret == -ETIMEDOUT)
		gets_forget(lane, gets_first(lane, ticket));
	else
		lane->ngets = 0; /* nothing comes from a dead agent any more */
	pthread_mutex_unlock(&lane->lock);
	return ret;
}

/**
 * pldk__far_lane_flush() - wait until everything sent has been carried out, and bring home what that was
 *
 * Before a window is closed or a membership ends. Returns when the agent is dead, and after ten seconds in which it did
 * not come so far: then what was to come home goes nowhere.
 */
void pldk__far_lane_flush(struct shm_lane *lane)
{
	const uint64_t limit = pldk__now_ns() + FLUSH_NS;
	const uint64_t deadline = pldk__far_deadline(PLDK_TIMEOUT_DEFAULT);
	uint32_t i;
	int ret;

	ret = lane_wait(lane, pldk__load_acquire(&lane->far->sent), deadline < limit ? deadline : limit);
	pthread_mutex_lock(&lane->lock);
	gets_land(lane);
	for (i = 0; ret && i < lane->ngets; i++)
		lane->gets[(lane->head + i) % GETS].dst = NULL;
	pthread_mutex_unlock(&lane->lock);
}

/**
 * pldk__far_quiesce() - wait until everything that any rank has sent so far has been carried out
 *
 * A rank whose slab is about to be reset has met the others; what they sent before may still be under way to it.
 *
 * Return: 0, also when the agent died; -ETIMEDOUT.
 */
int pldk__far_quiesce(struct shm_pd *pd)
{
	struct shm_lane *lane = pd->lane;
	const struct timespec pause = { .tv_nsec = 50000 };
	const uint64_t limit = pldk__now_ns() + FLUSH_NS;
	uint32_t i;

	for (i = 0; lane && i < lane->root.nranks; i++) {
		const struct shm_far *far = pldk__far_of(lane->area, i);
		const uint64_t sent = pldk__load_seq(&far->sent);

		/* sent falls by one when the message was not taken after all. */
		while (pldk__load_acquire(&far->executed) < sent && pldk__load_seq(&far->sent) >= sent &&
		       !pldk__shm_is_gone(&lane->root, i) && !pldk__far_lane_check(lane)) {
			if (pldk__now_ns() >= limit)
				return fail_late(lane, sent, "carried out");
			nanosleep(&pause, NULL);
		}
	}
	return 0;
}

/**
 * pldk__far_lane_is_busy() - has a rank messages under way?
 */
bool pldk__far_lane_is_busy(const struct shm_world *world, uint32_t world_rank)
{
	struct shm_far far;

	if (!world->header->far)
		return false;
	if (pldk__shm_read(world->fd, &far, sizeof(far), world->header->far + world_rank * sizeof(far)))
		return true;
	return far.sent != far.executed && world->header->agent_state != SHM_AGENT_DEAD;
}

/*
 * Connect and say hello, and wait until that was heard. -EAGAIN without a sentence: the agent, which is there, threw
 * this rank out before it had its hello. It does that after some seconds, and a rank may have been stopped so long.
 */
static int greet(struct shm_lane *lane)
{
	const struct shm_header *header = lane->root.world->header;
	const struct far_msg hello = { .magic = FAR_MAGIC, .op = FAR_HELLO, .rank = lane->world_rank };
	const struct timespec pause = { .tv_nsec = 200000 };
	const uint64_t until = pldk__now_ns() + HELLO_NS;
	struct sockaddr_un addr;
	socklen_t len;
	char byte;

	lane->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (lane->fd < 0)
		return pldk__fail(-errno, "no socket for the lane to far peers: %s", strerror(errno));
	addr = pldk__far_address(header, &len);
	if (connect(lane->fd, (struct sockaddr *)&addr, len)) {
		if (errno != ECONNREFUSED)
			return pldk__fail(-errno, "cannot reach the agent of far peers: %s", strerror(errno));
		set_dead(lane);
		return fail_dead(lane);
	}
	if (send(lane->fd, &hello, sizeof(hello), MSG_NOSIGNAL) < 0)
		return -EAGAIN;
	while (!pldk__load_acquire(&lane->far->is_welcome)) {
		nanosleep(&pause, NULL);
		if (!recv(lane->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT))
			return pldk__load_acquire(&lane->far->is_welcome) ? 0 : -EAGAIN;
		if (pldk__now_ns() >= until)
			return pldk__fail(-ETIMEDOUT, "the agent of far peers (pid %u) does not answer",
					  SHM_CLAIM_PID(header->agent));
	}
	return 0;
}

/**
 * pldk__far_lane_open() - connect a rank that has just joined the world to the agent
 *
 * Return: 0, -EOWNERDEAD, -ENOMEM and the like, with a sentence.
 */
int pldk__far_lane_open(struct shm_pd *pd)
{
	struct shm_header *header = pd->view.world->header;
	struct shm_lane *lane = calloc(1, sizeof(*lane));
	uint32_t turn;
	int ret;

	if (!lane)
		return pldk__fail(-ENOMEM, "no memory for the lane to far peers");
	pthread_mutex_init(&lane->lock, NULL);
	lane->root = pd->view;
	lane->world_rank = pd->base.rank;
	lane->fd = -1;
	lane->area_bytes = pldk__far_bounce(pd->base.nranks, pd->base.nranks);
	ret = pldk__shm_reserve(pd->view.world->fd, header->far + pldk__far_bounce(pd->base.nranks, pd->base.rank),
				SHM_BOUNCE_BYTES);
	lane->area = ret ? NULL : pldk__shm_mmap(pd->view.world->fd, header->far, lane->area_bytes);
	if (!lane->area) {
		ret = pldk__fail(-ENOMEM, "no memory or addresses for the lane to far peers");
		goto err_free;
	}
	lane->far = pldk__far_of(lane->area, pd->base.rank);
	pldk__store_release(&lane->far->refused, 0);
	lane->bounce = lane->area + pldk__far_bounce(pd->base.nranks, pd->base.rank);
	for (turn = 0; turn < HELLO_TURNS; turn++) {
		ret = greet(lane);
		if (!ret) {
			pd->lane = lane;
			pd->owns_lane = true;
			return 0;
		}
		if (lane->fd >= 0)
			close(lane->fd);
		if (ret != -EAGAIN)
			break;
	}
	if (ret == -EAGAIN)
		ret = pldk__fail(-EPERM, "the agent of far peers (pid %u) does not take this process for rank %u",
				 SHM_CLAIM_PID(header->agent), lane->world_rank);
	munmap(lane->area, lane->area_bytes);
err_free:
	pthread_mutex_destroy(&lane->lock);
	free(lane);
	return ret;
}

/**
 * pldk__far_lane_close() - the rank leaves
 */
void pldk__far_lane_close(struct shm_pd *pd)
{
	struct shm_lane *lane = pd->lane;

	close(lane->fd);
	munmap(lane->area, lane->area_bytes);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}
