// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The address range that windows are mapped into.
 *
 * One PROT_NONE reservation a process, so that "is this address in a window?" is one comparison and windows stand side
 * by side: opening one adds one mapping and no hole. Pieces are taken first fit and become PROT_NONE again when given
 * back. Under RLIMIT_AS the reservation is smaller or absent; then a piece is a reservation of its own.
 */
#include "range.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RANGE_BYTES (UINT64_C(1) << 40)
#define RANGE_BYTES_MIN (UINT64_C(1) << 32)

struct piece {
	uint64_t start; /* from the start of the range */
	uint64_t bytes;
	struct piece *next;
};

static pthread_mutex_t range_lock = PTHREAD_MUTEX_INITIALIZER;
static char *range_base; /* MAP_FAILED: could not be reserved */
static uint64_t range_bytes;
static struct piece *pieces; /* taken ones, by address */

static void *reserve(void *addr, uint64_t bytes)
{
	return mmap(addr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (addr ? MAP_FIXED : 0), -1,
		    0);
}

static bool in_range(const void *addr)
{
	return range_base && range_base != MAP_FAILED && (const char *)addr >= range_base &&
	       (const char *)addr < range_base + range_bytes;
}

/**
 * pldk__range_take() - addresses for a window
 * @bytes: multiple of the page size
 *
 * Return: PROT_NONE addresses to map over, or NULL (no memory for page tables or addresses).
 */
void *pldk__range_take(uint64_t bytes)
{
	struct piece *piece = malloc(sizeof(*piece));
	struct piece **at = &pieces;
	uint64_t end = 0;
	void *addr = NULL;

	if (!piece)
		return NULL;
	pthread_mutex_lock(&range_lock);
	if (!range_base) {
		for (range_bytes = RANGE_BYTES; range_bytes >= RANGE_BYTES_MIN; range_bytes >>= 2) {
			range_base = reserve(NULL, range_bytes);
			if (range_base != MAP_FAILED)
				break;
		}
	}
	while (*at && (*at)->start - end < bytes) {
		end = (*at)->start + (*at)->bytes;
		at = &(*at)->next;
	}
	if (range_base != MAP_FAILED && (*at || range_bytes - end >= bytes)) {
		*piece = (struct piece){ end, bytes, *at };
		*at = piece;
		piece = NULL;
		addr = range_base + end;
	}
	pthread_mutex_unlock(&range_lock);
	if (addr)
		return addr;
	free(piece);
	addr = reserve(NULL, bytes);
	return addr == MAP_FAILED ? NULL : addr;
}

/**
 * pldk__range_give() - give back what pldk__range_take() gave, whatever is mapped there
 */
void pldk__range_give(void *addr, uint64_t bytes)
{
	struct piece **at = &pieces;
	struct piece *piece;

	if (!in_range(addr)) {
		munmap(addr, bytes);
		return;
	}
	/* Before the piece is free for others. If it fails for want of a mapping, the piece stays taken. */
	if (reserve(addr, bytes) == MAP_FAILED)
		return;
	pthread_mutex_lock(&range_lock);
	while (*at && range_base + (*at)->start != (char *)addr)
		at = &(*at)->next;
	piece = *at;
	if (piece)
		*at = piece->next;
	pthread_mutex_unlock(&range_lock);
	free(piece);
}

/**
 * pldk__range_why() - why could something not be mapped?
 * @err: negative errno of mmap(2)
 *
 * ENOMEM has three causes that the kernel does not tell apart; counting the mappings tells one.
 *
 * Return: buf, with the cause and what to do.
 */
const char *pldk__range_why(int err, char *buf, size_t len)
{
	unsigned long most = 0;
	unsigned long have = 0;
	FILE *f;
	int c;

	f = fopen("/proc/sys/vm/max_map_count", "re");
	if (f) {
		if (fscanf(f, "%lu", &most) != 1)
			most = 0;
		fclose(f);
	}
	f = err == -ENOMEM && most ? fopen("/proc/self/maps", "re") : NULL;
	if (f) {
		while ((c = getc(f)) != EOF)
			have += c == '\n';
		fclose(f);
	}
	/* The last few are refused to some calls already: a mapping in the middle of another needs two more. */
	if (most && have + 8 >= most)
		snprintf(buf, len, "%lu of vm.max_map_count = %lu mappings are in use: raise it with sysctl", have,
			 most);
	else if (err == -ENOMEM)
		snprintf(buf, len,
			 "no memory for page tables or no addresses left: free memory, or raise RLIMIT_AS (ulimit -v)");
	else
		snprintf(buf, len, "%s", strerror(-err));
	return buf;
}
