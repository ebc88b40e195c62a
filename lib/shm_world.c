// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A world file in this process: mapping it, handing out and reserving its space, making and mapping domains.
 *
 * All ranks of a process share one descriptor and one mapping of the control area (the first SHM_FIRST bytes). Nothing
 * is ever touched that was not reserved by pldk__shm_reserve() before: a full machine is an errno there, not a SIGBUS
 * later.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "shm.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define WALK_STEPS 1024u /* more than a chain ever takes, walked again or not */

static pthread_mutex_t worlds_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shm_world *worlds;

/**
 * pldk__shm_is_world() - is fd a world of this provider?
 *
 * Context: any; sets no sentence, keeps errno.
 */
bool pldk__shm_is_world(int fd)
{
	struct shm_header header;
	int keep = errno;
	int seals = fcntl(fd, F_GET_SEALS);
	bool ok = seals >= 0 && (seals & SEALS) == SEALS &&
		  pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) && header.magic == SHM_MAGIC;

	errno = keep;
	return ok;
}

/**
 * pldk__shm_mmap() - map a piece of a world file, writable
 *
 * Not for forked children: they are no members, and the agent of another world would keep this one alive.
 *
 * Return: address, or NULL with errno.
 */
void *pldk__shm_mmap(int fd, uint64_t offset, uint64_t bytes)
{
	void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (addr == MAP_FAILED)
		return NULL;
	madvise(addr, bytes, MADV_DONTFORK);
	return addr;
}

/**
 * pldk__shm_world_ref() - use a world file
 * @fd: stays the caller's
 *
 * Return: 0, -EBADF, -EPROTO (another layout), -EMFILE, -ENOMEM.
 */
int pldk__shm_world_ref(int fd, struct shm_world **out)
{
	struct shm_world *world;
	struct shm_header header;
	struct stat st;

	if (!pldk__shm_is_world(fd) || fstat(fd, &st) || pldk__shm_read(fd, &header, sizeof(header), 0))
		return pldk__fail(-EBADF, "descriptor %d is no world of the embedded provider", fd);
	if (header.version != SHM_VERSION || header.size < sizeof(header))
		return pldk__fail(-EPROTO, "the world was made by a library with layout %u, this one has %u",
				  header.version, SHM_VERSION);
	pthread_mutex_lock(&worlds_lock);
	for (world = worlds; world; world = world->next) {
		if (world->dev == st.st_dev && world->ino == st.st_ino && world->pid == getpid()) {
			world->refs++;
			pthread_mutex_unlock(&worlds_lock);
			*out = world;
			return 0;
		}
	}
	world = calloc(1, sizeof(*world));
	if (!world)
		goto err_nomem;
	world->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (world->fd < 0) {
		int err = errno;

		free(world);
		pthread_mutex_unlock(&worlds_lock);
		return pldk__fail(-err, "no descriptor left for the world: raise RLIMIT_NOFILE (ulimit -n)");
	}
	world->header = pldk__shm_mmap(world->fd, 0, SHM_FIRST);
	if (!world->header)
		goto err_close;
	world->pid = getpid();
	world->nranks = header.nranks;
	world->dev = st.st_dev;
	world->ino = st.st_ino;
	world->refs = 1;
	world->next = worlds;
	worlds = world;
	pthread_mutex_unlock(&worlds_lock);
	*out = world;
	return 0;

err_close:
	close(world->fd);
	free(world);
err_nomem:
	pthread_mutex_unlock(&worlds_lock);
	return pldk__fail(-ENOMEM,
			  "no memory or addresses (RLIMIT_AS, vm.max_map_count) to map the world's control area");
}

/**
 * pldk__shm_world_hold() - one more user of a world that this process has
 */
void pldk__shm_world_hold(struct shm_world *world)
{
	pthread_mutex_lock(&worlds_lock);
	world->refs++;
	pthread_mutex_unlock(&worlds_lock);
}

/**
 * pldk__shm_world_unref() - the last user of this process unmaps it
 */
void pldk__shm_world_unref(struct shm_world *world)
{
	struct shm_world **at = &worlds;

	pthread_mutex_lock(&worlds_lock);
	if (--world->refs) {
		pthread_mutex_unlock(&worlds_lock);
		return;
	}
	while (*at != world)
		at = &(*at)->next;
	*at = world->next;
	pthread_mutex_unlock(&worlds_lock);
	munmap(world->header, SHM_FIRST);
	close(world->fd);
	free(world);
}

/**
 * pldk__shm_alloc() - hand out file space, for ever
 * @bytes: rounded up to a page
 *
 * Return: 0; -ENOMEM when the file has no space left (it is vast, unless RLIMIT_FSIZE cut it).
 */
int pldk__shm_alloc(struct shm_header *header, uint64_t bytes, uint64_t *out)
{
	uint64_t at = pldk__load_relaxed(&header->next);

	bytes = (bytes + SHM_PAGE - 1) & ~(SHM_PAGE - 1);
	do {
		if (bytes > header->file_bytes - at)
			return pldk__fail(
				-ENOMEM,
				"the world file is used up: %llu bytes asked, %llu of %llu left. Space of closed "
				"windows is not used again: raise RLIMIT_FSIZE (ulimit -f) before the world is made",
				(unsigned long long)bytes, (unsigned long long)(header->file_bytes - at),
				(unsigned long long)header->file_bytes);
	} while (!pldk__cas_seq(&header->next, &at, at + bytes));
	*out = at;
	return 0;
}

/**
 * pldk__shm_reserve() - make file space memory
 *
 * Can be done twice, and by several processes at once. Return: 0, or a negative errno without a sentence.
 */
int pldk__shm_reserve(int fd, uint64_t offset, uint64_t bytes)
{
	/* A POSIX signal makes fallocate() give back what it took in this call; small pieces always come through. */
	uint64_t piece = UINT64_C(64) << 20;

	while (bytes) {
		uint64_t n = bytes < piece ? bytes : piece;

		if (!fallocate(fd, 0, (off_t)offset, (off_t)n)) {
			offset += n;
			bytes -= n;
		} else if (errno != EINTR) {
			return errno == ENOSPC ? -ENOMEM : -errno;
		} else if (piece > SHM_PAGE) {
			piece >>= 1;
		}
	}
	return 0;
}

/**
 * pldk__shm_punch() - give memory back; the space reads as zero from now on
 */
void pldk__shm_punch(int fd, uint64_t offset, uint64_t bytes)
{
	while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) && errno == EINTR)
		;
}

/**
 * pldk__shm_read() - read the file without allocating memory for holes
 *
 * Return: 0, -EIO.
 */
int pldk__shm_read(int fd, void *buf, size_t len, uint64_t offset)
{
	ssize_t n;

	do {
		n = pread(fd, buf, len, (off_t)offset);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : -EIO;
}

static uint64_t up(uint64_t bytes)
{
	return (bytes + SHM_PAGE - 1) & ~(SHM_PAGE - 1);
}

/**
 * pldk__shm_domain_make() - a new domain that nobody sees yet
 * @parent: number of the parent domain, or ~0 for the world
 * @world_ranks: of the members, or NULL for 0..nranks-1
 * @members: device, CPU, node of the members; state ABSENT
 *
 * Return: 0; -ENOMEM with a sentence.
 */
int pldk__shm_domain_make(int fd, struct shm_header *header, uint64_t parent, uint32_t key, const uint32_t *world_ranks,
			  const struct pld_member *members, uint32_t nranks, uint64_t *out_offset)
{
	const uint64_t status = SHM_PAGE;
	const uint64_t ranks = status + up(PLD_STATUS_HEADER + (uint64_t)nranks * sizeof(struct pld_member));
	const uint64_t windows = ranks + up((uint64_t)nranks * sizeof(struct shm_rank));
	const uint64_t verdicts = windows + SHM_TABLE_PAGES * SHM_PAGE;
	const uint64_t bytes = verdicts + SHM_NVERDICTS * SHM_VERDICT_BYTES;
	struct shm_domain *dom;
	struct pld_status *st;
	struct shm_rank *rank;
	uint64_t offset = 0;
	uint32_t i;
	int ret;

	ret = pldk__shm_alloc(header, bytes, &offset);
	if (ret)
		return ret;
	ret = pldk__shm_reserve(fd, offset, windows);
	if (ret)
		return pldk__fail(ret, "no memory for a domain of %u ranks: %s", nranks, strerror(-ret));
	dom = pldk__shm_mmap(fd, offset, windows);
	if (!dom) {
		pldk__shm_punch(fd, offset, windows);
		return pldk__fail(-ENOMEM, "no addresses for a domain (RLIMIT_AS, vm.max_map_count)");
	}
	dom->size = sizeof(*dom);
	dom->nranks = nranks;
	dom->id = pldk__add_seq(&header->next_domain, 1) - 1;
	dom->parent = parent;
	dom->key = key;
	dom->bytes = bytes;
	dom->status = (uint32_t)status;
	dom->ranks = (uint32_t)ranks;
	dom->windows = (uint32_t)windows;
	dom->verdicts = (uint32_t)verdicts;
	st = (struct pld_status *)(void *)((char *)dom + status);
	st->version = PLD_STATUS_VERSION;
	st->member_size = sizeof(struct pld_member);
	st->nranks = nranks;
	st->domain_id = dom->id;
	st->first_dead = PLD_RANK_ANY;
	st->poison_rank = PLD_RANK_ANY;
	memcpy((char *)st + PLD_STATUS_HEADER, members, nranks * sizeof(*members));
	rank = (struct shm_rank *)(void *)((char *)dom + ranks);
	for (i = 0; i < nranks; i++)
		rank[i].world_rank = world_ranks ? world_ranks[i] : i;
	pldk__store_release(&dom->magic, SHM_DOMAIN_MAGIC);
	munmap(dom, windows);
	*out_offset = offset;
	return 0;
}

/**
 * pldk__shm_domain_unmake() - give back a domain that nobody sees
 */
void pldk__shm_domain_unmake(int fd, uint64_t offset)
{
	struct shm_domain head;

	if (!pldk__shm_read(fd, &head, sizeof(head), offset) && head.magic == SHM_DOMAIN_MAGIC)
		pldk__shm_punch(fd, offset, head.bytes);
}

/**
 * pldk__shm_view_map() - map a domain
 *
 * Return: 0, -ENOMEM, -ESTALE (freed in the meantime) without a sentence.
 */
int pldk__shm_view_map(struct shm_world *world, uint64_t offset, struct shm_view *out)
{
	struct shm_domain head;
	char *base;

	if (pldk__shm_read(world->fd, &head, sizeof(head), offset) || head.magic != SHM_DOMAIN_MAGIC ||
	    head.nranks > PLD_MAX_RANKS)
		return -ESTALE;
	base = pldk__shm_mmap(world->fd, offset, head.bytes);
	if (!base)
		return -ENOMEM;
	out->world = world;
	out->offset = offset;
	out->bytes = head.bytes;
	out->dom = (struct shm_domain *)(void *)base;
	out->status = (struct pld_status *)(void *)(base + head.status);
	out->ranks = (struct shm_rank *)(void *)(base + head.ranks);
	out->windows = (uint64_t *)(void *)(base + head.windows);
	out->nranks = head.nranks;
	return 0;
}

/**
 * pldk__shm_view_unmap() - undo pldk__shm_view_map()
 */
void pldk__shm_view_unmap(struct shm_view *view)
{
	munmap(view->dom, view->bytes);
}

/**
 * pldk__shm_bucket() - head of the chain that a subset belongs to
 */
uint64_t *pldk__shm_bucket(struct shm_world *world, uint64_t parent, uint32_t key)
{
	uint64_t hash = (parent << 32 ^ key) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint64_t *)(void *)((char *)world->header + SHM_BUCKETS) + (hash >> 32) % SHM_NBUCKETS;
}

/**
 * pldk__shm_walk() - the next subset domain, mapped
 *
 * A domain may be freed meanwhile, and its place in the chain with it: then the chain is walked again from its head, so
 * none is missed, but some come twice.
 *
 * Return: false after the last one.
 */
bool pldk__shm_walk(struct shm_world *world, struct shm_walk *walk, struct shm_view *out)
{
	uint64_t *buckets = (uint64_t *)(void *)((char *)world->header + SHM_BUCKETS);
	int ret;

	for (;;) {
		while (!walk->at) {
			if (walk->bucket == SHM_NBUCKETS)
				return false;
			walk->at = pldk__load_acquire(&buckets[walk->bucket++]);
			walk->steps = 0;
		}
		/* Counted, because a rank may have scribbled on the file. */
		ret = walk->steps++ < WALK_STEPS ? pldk__shm_view_map(world, walk->at, out) : -EIO;
		if (!ret) {
			walk->at = pldk__load_acquire(&out->dom->next);
			if (pldk__load_acquire(&out->dom->magic) == SHM_DOMAIN_MAGIC)
				return true;
			pldk__shm_punch(world->fd, out->offset, SHM_PAGE); /* looking brought it back */
			pldk__shm_view_unmap(out);
			ret = -ESTALE;
		}
		walk->at = ret == -ESTALE ? pldk__load_acquire(&buckets[walk->bucket - 1]) : 0;
	}
}
