// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Worlds seen from outside: the lists and the names; see world.h. */
#include "world.h"

#include "internal.h"

#include <linux/pld.h>
#include <pldk.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more element, zeroed. Grows at every power of two. */
static void *append(void **array, size_t *n, size_t size)
{
	char *slot;

	if ((*n & (*n - 1)) == 0) {
		void *larger = realloc(*array, (*n ? 2 * *n : 1) * size);

		if (!larger)
			return NULL;
		*array = larger;
	}
	slot = (char *)*array + *n * size;
	memset(slot, 0, size);
	(*n)++;
	return slot;
}

struct world_domain *world_add(struct world_list *list, uint32_t nranks)
{
	struct world_rank *ranks = calloc(nranks ? nranks : 1, sizeof(*ranks));
	void *array = list->domains;
	struct world_domain *domain;

	if (!ranks)
		return NULL;
	domain = append(&array, &list->ndomains, sizeof(*domain));
	list->domains = array;
	if (!domain) {
		free(ranks);
		return NULL;
	}
	domain->nranks = nranks;
	domain->ranks = ranks;
	domain->parent = ~0ull;
	domain->first_dead = PLD_RANK_ANY;
	domain->poison_rank = PLD_RANK_ANY;
	return domain;
}

void world_drop(struct world_list *list)
{
	struct world_domain *domain = &list->domains[--list->ndomains];

	free(domain->ranks);
	free(domain->windows);
	free(domain->waiters);
	free(domain->holders);
}

struct world_window *world_add_window(struct world_domain *domain)
{
	void *array = domain->windows;
	struct world_window *window = append(&array, &domain->nwindows, sizeof(*window));

	domain->windows = array;
	return window;
}

struct world_waiter *world_add_waiter(struct world_domain *domain)
{
	void *array = domain->waiters;
	struct world_waiter *waiter = append(&array, &domain->nwaiters, sizeof(*waiter));

	domain->waiters = array;
	return waiter;
}

int world_add_holder(struct world_domain *domain, uint32_t pid)
{
	struct world_holder *holder;
	void *array = domain->holders;
	char path[64];
	FILE *file;

	for (size_t h = 0; h < domain->nholders; h++)
		if (domain->holders[h].pid == pid)
			return 0;
	holder = append(&array, &domain->nholders, sizeof(*holder));
	domain->holders = array;
	if (!holder)
		return -ENOMEM;
	holder->pid = pid;
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file = fopen(path, "re");
	if (file && fgets(holder->comm, sizeof(holder->comm), file))
		holder->comm[strcspn(holder->comm, "\n")] = '\0';
	if (file)
		fclose(file);
	return 0;
}

int world_is_library(uint32_t window)
{
	return window >= PLD_WINDOW_ID_SYSTEM;
}

int world_is_in_use(const struct world_domain *domain)
{
	for (uint32_t r = 0; r < domain->nranks; r++)
		if (domain->ranks[r].state == PLD_MEMBER_ALIVE)
			return 1;
	return domain->nwaiters > 0;
}

uint64_t world_collective_call(const struct world_waiter *waiter)
{
	if (waiter->window != PLD_WINDOW_ID_SYSTEM + PLDK__SYSTEM_EPOCHS)
		return 0;
	return (uint64_t)waiter->expected >> 16; /* see lib/announce.c */
}

void world_waiter_text(const struct world_waiter *waiter, char *text, size_t room)
{
	snprintf(text, room, "inside %s (call %llu), waits for rank %u",
		 waiter->op ? pldk_event_name(waiter->op) : "a collective",
		 (unsigned long long)world_collective_call(waiter), waiter->from);
}

void world_free(struct world_list *list)
{
	while (list->ndomains)
		world_drop(list);
	free(list->domains);
	list->domains = NULL;
}

const char *world_state_name(uint32_t state)
{
	static const char *const names[] = {
		[PLD_MEMBER_ABSENT] = "absent", [PLD_MEMBER_ALIVE] = "alive",	[PLD_MEMBER_FINALISED] = "finalised",
		[PLD_MEMBER_EXITED] = "exited", [PLD_MEMBER_KILLED] = "killed", [PLD_MEMBER_RELEASED] = "released",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

const char *world_cmp_name(uint32_t cmp)
{
	static const char *const names[] = {
		[PLD_CMP_EQ] = "==", [PLD_CMP_GE] = ">=", [PLD_CMP_NE] = "!=",
		[PLD_CMP_GT] = ">",  [PLD_CMP_LE] = "<=", [PLD_CMP_LT] = "<",
	};

	return cmp < sizeof(names) / sizeof(names[0]) ? names[cmp] : "?";
}
