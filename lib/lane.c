// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Lanes: what was started to far ranks and may still be on its way.
 *
 * A blocking put to a far rank returns when its source is free, not when the bytes have landed: waiting for each would
 * make every put a round trip. The ordering contract is kept at the other end: before anything is said to *another*
 * rank (a notify, a collective), the lanes are drained, in every domain of the world, because a chain of notifies may
 * come back to the far rank through any of them. What is said to the same rank through the same domain needs no wait:
 * it rides the same lane.
 *
 * Tickets are kept for the rank, not for each of its threads. Draining may so wait for another thread's put: more than
 * the contract asks, never less, and no state that a thread could leave behind.
 */
#include "transfer.h"

#include <errno.h>
#include <stdlib.h>

/**
 * pldk__data_of() - the data path's part of a domain
 * @domain: entered
 *
 * Context: any thread that is inside the domain.
 * Return: it, or NULL with the sentence set (-ENOMEM).
 */
struct pldk__data *pldk__data_of(struct pldk_domain *domain)
{
	struct pldk__data *data = pldk__load_acquire(&domain->data);
	struct pldk__data *fresh;

	if (pldk__likely(data))
		return data;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh) {
		pldk__fail(-ENOMEM, "rank %u: no memory for the state of its transfers", domain->rank);
		return NULL;
	}
	pthread_mutex_init(&fresh->lock, NULL);
	if (pldk__cas_seq(&domain->data, &data, fresh))
		return fresh;
	pthread_mutex_destroy(&fresh->lock);
	free(fresh);
	return data;
}

/**
 * pldk__lanes_of() - the lanes of a domain
 * @domain: entered; has far ranks
 *
 * Return: them, or NULL with the sentence set (-ENOMEM).
 */
struct pldk__lanes *pldk__lanes_of(struct pldk_domain *domain)
{
	struct pldk__data *data = pldk__data_of(domain);
	struct pldk__data *of_world = pldk__data_of(domain->world);
	struct pldk__lanes *lanes;

	if (!data || !of_world)
		return NULL;
	lanes = pldk__load_acquire(&data->lanes);
	if (pldk__likely(lanes))
		return lanes;
	pthread_mutex_lock(&of_world->lock);
	lanes = data->lanes;
	if (!lanes) {
		lanes = calloc(1, sizeof(*lanes) + domain->nranks * sizeof(lanes->lane[0]));
		if (lanes) {
			lanes->domain = domain;
			lanes->next = of_world->all_lanes;
			pldk__store_release(&data->lanes, lanes);
			pldk__store_release(&of_world->all_lanes, lanes);
		}
	}
	pthread_mutex_unlock(&of_world->lock);
	if (!lanes)
		pldk__fail(-ENOMEM, "rank %u: no memory for the lanes to far ranks", domain->rank);
	return lanes;
}

/**
 * pldk__lanes_free() - forget a domain's lanes
 * @domain: being closed: no thread is inside it, but one inside another domain of the world may be draining it
 */
void pldk__lanes_free(struct pldk_domain *domain)
{
	struct pldk__data *data = domain->data;
	struct pldk__data *of_world = domain->world->data;
	struct pldk__lanes **at;

	if (!data || !data->lanes)
		return;
	pthread_mutex_lock(&of_world->lock);
	for (at = &of_world->all_lanes; *at; at = &(*at)->next)
		if (*at == data->lanes) {
			*at = data->lanes->next;
			break;
		}
	pthread_mutex_unlock(&of_world->lock);
	free(data->lanes);
	data->lanes = NULL;
}

static void raise_to(uint64_t *word, uint64_t value)
{
	uint64_t seen = pldk__load_relaxed(word);

	while (seen < value && !pldk__cas_seq(word, &seen, value))
		;
}

/** pldk__lane_sent() - note that a transfer with this ticket is on its way */
void pldk__lane_sent(struct pldk__lanes *lanes, uint32_t rank, uint64_t ticket)
{
	raise_to(&lanes->lane[rank].sent, ticket);
}

static int ask(struct pldk__lanes *lanes, uint32_t rank, uint64_t ticket, uint64_t keep, uint64_t deadline_ns)
{
	struct pldk_domain *domain = lanes->domain;
	int ret;

	if (pldk__load_acquire(&lanes->lane[rank].done) >= ticket)
		return 0;
	ret = domain->ops->far_done(domain->pd, rank, ticket | keep, deadline_ns);
	/* What died with its peer or carrier is told once, to whoever asks first; asking again would change nothing. */
	if (!ret || ret == -EOWNERDEAD)
		raise_to(&lanes->lane[rank].done, ticket);
	return ret;
}

/**
 * pldk__lane_done() - wait for a ticket
 * @deadline_ns: absolute, or PLD_DEADLINE_POLL
 *
 * Return: 0, or an error of the provider's far_done().
 */
int pldk__lane_done(struct pldk__lanes *lanes, uint32_t rank, uint64_t ticket, uint64_t deadline_ns)
{
	return ask(lanes, rank, ticket, PLDK__FAR_KEEP, deadline_ns);
}

/** pldk__lane_done_or_forget() - the same, but a get that fails, also with -ETIMEDOUT, writes nothing afterwards */
int pldk__lane_done_or_forget(struct pldk__lanes *lanes, uint32_t rank, uint64_t ticket, uint64_t deadline_ns)
{
	return ask(lanes, rank, ticket, 0, deadline_ns);
}

/**
 * pldk__lane_drain() - wait for everything sent to a rank so far
 *
 * Return: 0, or an error of the provider's far_done().
 */
int pldk__lane_drain(struct pldk__lanes *lanes, uint32_t rank, uint64_t deadline_ns)
{
	const uint64_t sent = pldk__load_acquire(&lanes->lane[rank].sent);
	int ret;

	if (pldk__load_acquire(&lanes->lane[rank].told) >= sent)
		return 0;
	ret = pldk__lane_done(lanes, rank, sent, deadline_ns);
	/* A failure is told to one drain, or nobody could be notified any more; handles ask for themselves. */
	if (ret && ret != -EAGAIN && ret != -ETIMEDOUT && ret != -EINTR)
		raise_to(&lanes->lane[rank].told, sent);
	return ret;
}

/**
 * pldk__far_settle() - complete what was started to far ranks, before somebody else is notified
 * @domain: where the notify goes; entered
 * @except: rank of @domain whose lane the notify itself will ride, or -1
 *
 * The list stays locked while lanes are drained, so that none of its domains is closed meanwhile: this is the one lock
 * that is held across a wait, and only programs with far peers ever take it. Whoever comes to it meanwhile waits at
 * most for the others' deadlines before its own.
 *
 * Return: 0, -ETIMEDOUT, or -EOWNERDEAD and the like from a lane whose carrier or peer died.
 */
int pldk__far_settle(struct pldk_domain *domain, int except, uint64_t deadline_ns)
{
	struct pldk__data *of_world = pldk__load_acquire(&domain->world->data);
	struct pldk__lanes *lanes;
	int ret = 0;

	if (pldk__likely(!of_world || !pldk__load_acquire(&of_world->all_lanes)))
		return 0;
	pthread_mutex_lock(&of_world->lock);
	for (lanes = of_world->all_lanes; lanes && !ret; lanes = lanes->next)
		for (uint32_t rank = 0; rank < lanes->domain->nranks && !ret; rank++)
			if (lanes->domain != domain || except < 0 || rank != (uint32_t)except)
				ret = pldk__lane_drain(lanes, rank, deadline_ns);
	pthread_mutex_unlock(&of_world->lock);
	return ret;
}
