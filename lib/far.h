/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What a rank and the agent of far peers say to each other.
 *
 * One socket a rank, which keeps the borders of messages (SOCK_SEQPACKET): one is taken whole or not at all, so a rank
 * that gave up waiting for room has left nothing half said. Messages go one way, from the rank to the agent, which
 * carries them out in order and then raises shm_far.executed: that is the only answer. Bytes of a get and the old value
 * of a read-modify-write come back through the rank's bounce area, which is no slab; so a rank maps no far slab, and no
 * message ever waits for its reader.
 */
#ifndef _PLDK_FAR_H
#define _PLDK_FAR_H

#include <sys/socket.h>
#include <sys/un.h>

#include "shm.h"

#define FAR_MAGIC 0x72616670u
#define FAR_PIECE (64u << 10) /* most payload bytes of a message: ranks take turns at this grain */

enum far_op { FAR_HELLO = 1, FAR_PUT, FAR_ADD, FAR_GET, FAR_NOTIFY, FAR_RMW };

/**
 * struct far_msg - a message; payload of @len bytes follows for FAR_PUT and FAR_ADD
 * @op: enum far_op
 * @len: bytes of the target
 * @seq: number, counts from 1
 * @domain: offset of the domain in the world file
 * @page: offset of the window
 * @window: its id
 * @rank: whose slab, in that domain. FAR_HELLO: own rank of the world
 * @from: own rank in that domain
 * @what: FAR_ADD, FAR_RMW: dtype; FAR_NOTIFY: PLD_NOTIFY_*
 * @offset: in the slab
 * @value: FAR_NOTIFY, FAR_RMW: operand
 * @expected: FAR_RMW, compare and swap
 * @bounce: FAR_GET, FAR_RMW: where in the bounce area the answer goes
 * @kind: FAR_RMW: enum pldk__rmw
 */
struct far_msg {
	uint32_t magic;
	uint32_t op;
	uint32_t len;
	uint32_t window;
	uint64_t seq;
	uint64_t domain;
	uint64_t page;
	uint32_t rank;
	uint32_t from;
	uint32_t what;
	uint32_t kind;
	uint64_t offset;
	int64_t value;
	int64_t expected;
	uint64_t bounce;
};

static inline struct shm_far *pldk__far_of(void *area, uint32_t world_rank)
{
	return (struct shm_far *)area + world_rank;
}

/* Bytes from the start of the far area to the bounce area of a rank. */
static inline uint64_t pldk__far_bounce(uint32_t nranks, uint32_t world_rank)
{
	const uint64_t counters = (nranks * sizeof(struct shm_far) + SHM_PAGE - 1) & ~(SHM_PAGE - 1);

	return counters + world_rank * (uint64_t)SHM_BOUNCE_BYTES;
}

/* Where the agent listens. far_start.c */
struct sockaddr_un pldk__far_address(const struct shm_header *header, socklen_t *len);

/* The agent's process: never returns. far_agent.c */
void pldk__far_agent(int listener, int world_fd) __attribute__((noreturn));

#endif /* _PLDK_FAR_H */
