// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Reading a world file of the embedded provider (lib/shm_layout.h) from outside, by pread(2): mapping it could allocate
 * pages, reading does not. Ranks go on changing it meanwhile, and a rank may have scribbled on it: every number that
 * becomes a size or an index is checked.
 */
#include "world.h"

#include "announce.h"
#include "shm_layout.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DOMAINS_MAX 4096

static bool read_at(int fd, uint64_t offset, void *to, size_t len)
{
	return offset < SHM_FILE_BYTES && pread(fd, to, len, (off_t)offset) == (ssize_t)len;
}

/* Status page and members. */
static int read_members(struct world_list *list, int fd, uint64_t offset, const struct shm_domain *head)
{
	struct world_domain *domain = world_add(list, head->nranks);
	struct pld_status status;
	char *members;
	size_t len;

	if (!domain)
		return -ENOMEM;
	if (!read_at(fd, offset + head->status, &status, sizeof(status)) ||
	    status.member_size < sizeof(struct pld_member) || status.member_size > SHM_PAGE)
		return -EBADF;
	len = (size_t)head->nranks * status.member_size;
	members = malloc(len);
	if (!members)
		return -ENOMEM;
	if (!read_at(fd, offset + head->status + PLD_STATUS_HEADER, members, len)) {
		free(members);
		return -EBADF;
	}
	domain->provider = "shm";
	domain->id = head->id;
	domain->parent = head->parent;
	domain->joined = status.joined;
	domain->finalised = status.finalised;
	domain->dead = status.dead;
	domain->first_dead = status.first_dead;
	domain->poison = status.poison;
	domain->poison_rank = status.poison_rank;
	for (uint32_t r = 0; r < head->nranks; r++) {
		struct pld_member member;

		memcpy(&member, members + (size_t)r * status.member_size, sizeof(member));
		domain->ranks[r].state = member.state;
		domain->ranks[r].pid = member.pid;
		domain->ranks[r].status = member.status;
		domain->ranks[r].device = member.device_id;
		domain->ranks[r].cpu = member.cpu;
	}
	free(members);
	return 0;
}

/* The window that a slot of the table names. One that is still being made or is gone again is left out. */
static int read_window(struct world_domain *domain, int fd, uint64_t slot)
{
	struct world_window *window;
	struct shm_window head;

	if (!read_at(fd, SHM_SLOT_PAGE(slot) * SHM_PAGE, &head, sizeof(head)) || head.magic != SHM_WINDOW_MAGIC ||
	    !(head.state & SHM_ALLOCATED))
		return 0;
	window = world_add_window(domain);
	if (!window)
		return -ENOMEM;
	window->id = head.id;
	window->kind = head.kind;
	window->flags = head.flags;
	window->generation = head.generation;
	window->bytes = head.bytes;
	window->page_bytes = head.page_bytes;
	window->creator = head.creator;
	window->created_ns = head.created_ns;
	window->slabs = head.slabs;
	window->stride = head.stride;
	domain->window_count++;
	domain->bytes += head.stride * domain->nranks;
	for (size_t w = 0; w < sizeof(head.open) / sizeof(head.open[0]); w++)
		window->opened += (uint32_t)__builtin_popcountll(head.open[w]);
	return 0;
}

static int read_windows(struct world_domain *domain, int fd, uint64_t offset, const struct shm_domain *head)
{
	uint64_t slots[SHM_SLOTS_PER_PAGE];
	int ret = 0;

	for (unsigned page = 0; page < SHM_TABLE_PAGES; page++) {
		if (!(head->table_bits[page / 64] >> page % 64 & 1))
			continue;
		if (!read_at(fd, offset + head->windows + page * SHM_PAGE, slots, sizeof(slots)))
			return -EBADF;
		for (unsigned i = 0; i < SHM_SLOTS_PER_PAGE && !ret; i++)
			if (slots[i])
				ret = read_window(domain, fd, slots[i]);
		if (ret)
			return ret;
	}
	return 0;
}

/* What a rank does in a call of its domain, from its own call ledger. 0 if that says nothing. */
static uint32_t op_of(const struct world_domain *domain, int fd, uint32_t rank, uint64_t call)
{
	struct pldk__call_entry entry;

	for (size_t w = 0; w < domain->nwindows; w++) {
		const struct world_window *window = &domain->windows[w];
		uint64_t offset = window->slabs + rank * window->stride + offsetof(struct pldk__control, calls) +
				  call % PLDK__CALLS * sizeof(entry);

		if (window->id == PLD_WINDOW_ID_SYSTEM + PLDK__SYSTEM_CONTROL && rank < domain->nranks &&
		    read_at(fd, offset, &entry, sizeof(entry)) && entry.seq == call)
			return entry.call.op;
	}
	return 0;
}

/* One line of the ledger, if it is a wait in this domain. */
static int read_waiter(struct world_domain *domain, int fd, uint64_t offset, const struct shm_line *line)
{
	uint32_t npreds = line->npreds < SHM_LINE_PREDS ? line->npreds : SHM_LINE_PREDS, p;
	struct world_waiter *waiter;
	int64_t seen = 0;

	if (!(line->gen & 1) || !line->owner || line->domain != offset || npreds == 0)
		return 0;
	for (p = 0; p < npreds; p++)
		if (read_at(fd, line->preds[p].cell, &seen, sizeof(seen)) &&
		    !pld_cmp_holds(seen, line->preds[p].cmp, line->preds[p].expected))
			break;
	if (p == npreds)
		p = 0; /* it is about to wake up */
	waiter = world_add_waiter(domain);
	if (!waiter)
		return -ENOMEM;
	waiter->rank = line->rank;
	waiter->tid = line->tid;
	waiter->window = line->preds[p].window_id;
	waiter->cell = line->preds[p].index;
	waiter->cmp = line->preds[p].cmp;
	waiter->from = line->preds[p].from;
	waiter->expected = line->preds[p].expected;
	waiter->seen = seen;
	waiter->since_ns = line->since_ns;
	waiter->npreds = line->npreds;
	if (world_collective_call(waiter))
		waiter->op = op_of(domain, fd, waiter->rank, world_collective_call(waiter));
	return 0;
}

static int read_waiters(struct world_domain *domain, int fd, uint64_t offset)
{
	uint8_t bits[SHM_NLINES / 8];
	struct shm_line line;
	int ret = 0;

	if (!read_at(fd, SHM_LINE_BITS, bits, sizeof(bits)))
		return -EBADF;
	for (unsigned i = 0; i < SHM_NLINES && !ret; i++) {
		if (!(bits[i / 8] >> i % 8 & 1))
			continue;
		if (!read_at(fd, SHM_LINES + i * SHM_PAGE, &line, sizeof(line)))
			return -EBADF;
		ret = read_waiter(domain, fd, offset, &line);
	}
	return ret;
}

/* Append the domain that begins at offset. *next is the one behind it in its chain. */
static int read_domain(struct world_list *list, int fd, uint64_t offset, uint64_t *next)
{
	struct shm_domain head;
	int ret;

	*next = 0;
	if (!read_at(fd, offset, &head, sizeof(head)) || head.magic != SHM_DOMAIN_MAGIC || head.nranks == 0 ||
	    head.nranks > PLD_MAX_RANKS)
		return -EBADF;
	*next = head.next;
	ret = read_members(list, fd, offset, &head);
	if (ret == -ENOMEM)
		return ret;
	if (!ret)
		ret = read_windows(&list->domains[list->ndomains - 1], fd, offset, &head);
	if (!ret)
		ret = read_waiters(&list->domains[list->ndomains - 1], fd, offset);
	if (ret)
		world_drop(list);
	else
		list->domains[list->ndomains - 1].has_details = 1;
	return ret;
}

int world_read_shm(struct world_list *list, int fd)
{
	uint64_t heads[SHM_NBUCKETS], next;
	size_t first = list->ndomains;
	struct shm_header header;
	unsigned steps = 0; /* counted, because a chain may have been made a circle */
	struct stat stat;
	int ret;

	if (!read_at(fd, 0, &header, sizeof(header)) || header.magic != SHM_MAGIC || fstat(fd, &stat))
		return -EBADF;
	if (header.version != SHM_VERSION)
		return -EPROTO;
	ret = read_domain(list, fd, header.world, &next);
	if (ret)
		return ret;
	if (read_at(fd, SHM_BUCKETS, heads, sizeof(heads)))
		for (unsigned b = 0; b < SHM_NBUCKETS; b++)
			for (next = heads[b]; next && steps++ < DOMAINS_MAX;)
				if (read_domain(list, fd, next, &next) == -ENOMEM)
					return -ENOMEM;
	for (size_t d = first; d < list->ndomains; d++) {
		list->domains[d].key = (uint64_t)stat.st_ino;
		list->domains[d].uid = stat.st_uid;
		list->domains[d].pid = SHM_CLAIM_PID(header.creator);
	}
	return 0;
}
