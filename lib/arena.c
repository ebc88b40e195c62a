// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Addresses that are never given twice: where the objects stand that the user holds pointers to.
 *
 * A program may call with a domain that it has closed, or with a window of one. Were the object back at malloc(), that
 * call would read freed memory, or take what was put there since for the old object. So the address of such an object
 * stays its own for the life of the process: when it ends, its pages go back to the kernel and read as zero, and zero
 * is no magic word. What is left behind is address space: a page or two for each domain that ever was.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK_BYTES (1u << 20)

/* Chunks are memory of malloc(), so that leak checkers look into them. The registry lock guards all of it. */
struct chunk {
	struct chunk *next;
	char *start;
	size_t bytes;
	size_t used;
};

static struct chunk *newest;

/**
 * pldk__arena_round() - bytes that an object of a size really gets: whole pages
 */
size_t pldk__arena_round(size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

static bool chunk_more(size_t bytes)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk));
	void *start;

	if (!chunk)
		return false;
	chunk->bytes = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
	if (posix_memalign(&start, (size_t)sysconf(_SC_PAGESIZE), chunk->bytes)) {
		free(chunk);
		return false;
	}
	chunk->start = start;
	chunk->next = newest;
	newest = chunk;
	return true;
}

/**
 * pldk__arena_alloc() - zeroed memory at an address that nothing had before
 * @bytes: rounded up to whole pages
 *
 * Context: takes the registry lock.
 * Return: the memory, or NULL.
 */
void *pldk__arena_alloc(size_t bytes)
{
	void *memory = NULL;

	bytes = pldk__arena_round(bytes);
	pldk__registry_lock();
	if ((newest && newest->bytes - newest->used >= bytes) || chunk_more(bytes)) {
		memory = newest->start + newest->used;
		newest->used += bytes;
	}
	pldk__registry_unlock();
	if (memory)
		memset(memory, 0, bytes);
	return memory;
}

/**
 * pldk__arena_end() - give the memory back and keep the address
 * @memory: from pldk__arena_alloc(); its magic words are not those of living objects any more. NULL is nothing
 * @bytes: as asked for
 *
 * Locked memory (mlockall(2)) cannot be given back; then it stays as it is.
 */
void pldk__arena_end(void *memory, size_t bytes)
{
	int saved = errno;

	if (memory)
		madvise(memory, pldk__arena_round(bytes), MADV_DONTNEED);
	errno = saved;
}

/**
 * pldk__arena_has() - was there ever an object at this address?
 *
 * Context: takes the registry lock.
 */
bool pldk__arena_has(const void *address)
{
	const struct chunk *chunk;

	pldk__registry_lock();
	for (chunk = newest; chunk; chunk = chunk->next) {
		if ((uintptr_t)address - (uintptr_t)chunk->start < chunk->used)
			break;
	}
	pldk__registry_unlock();
	return chunk != NULL;
}
