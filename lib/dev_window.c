// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Windows on /dev/pld: create or attach, map, close, and which limit was in the way.
 *
 * The kernel allocates, charges and zeroes everything in WINDOW_CREATE and fills the page tables in mmap(), so nothing
 * faults later. A refusal names what was asked, what is left, the difference, and the knob.
 */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "provider_dev.h"
#include "range.h"

/**
 * struct dev_map - an open window
 * @base: what the library sees; first
 * @span: bytes of addresses
 */
struct dev_map {
	struct pldk__map base;
	uint64_t span;
};

/**
 * pldk__dev_limits() - see struct pldk_provider_ops
 */
int pldk__dev_limits(struct pldk__pdomain *base, struct pldk_limits *out)
{
	const uint64_t piece = (uint64_t)sysconf(_SC_PAGESIZE) * base->nranks;
	struct pld_info info = { 0 };
	int ret = pldk__ioctl(pldk__dev_pd(base)->fd, PLD_IOC_GET_INFO, &info);

	if (ret)
		return pldk__fail(ret, "cannot ask for the limits: %s", strerror(-ret));
	out->max_ranks = (int)info.out_max_ranks;
	out->window_bytes_max = info.out_window_bytes_max;
	out->left_bytes = info.out_total_bytes_left;
	snprintf(out->left_by, sizeof(out->left_by), "max_bytes");
	if (info.out_memlock_bytes_left < out->left_bytes) {
		out->left_bytes = info.out_memlock_bytes_left;
		snprintf(out->left_by, sizeof(out->left_by), "RLIMIT_MEMLOCK");
	}
	pldk__limits_memory(out);
	out->left_bytes -= out->left_bytes % piece;
	return 0;
}

static uint64_t over(uint64_t asked, uint64_t left)
{
	return asked > left ? asked - left : 0;
}

/* Which limit was it, by how much, and which way to turn which knob? */
static int fail_create(struct pldk__pdomain *base, const struct pldk__window_spec *spec,
		       const struct pld_window_create *c, int ret)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t asked = (spec->bytes + page - 1) / page * page * base->nranks;
	struct pld_info info = { 0 };
	struct pldk_limits memory = { .left_bytes = UINT64_MAX };
	const uint32_t poison = pldk__load_acquire(&base->status->poison);

	pldk__ioctl(pldk__dev_pd(base)->fd, PLD_IOC_GET_INFO, &info);
	switch (-ret) {
	case ECANCELED:
		ret = pldk__fail_poisoned(poison & ~PLD_POISON_SET, pldk__load_relaxed(&base->status->poison_rank));
		/* Windows of users get rank and operation from the caller. */
		if (spec->flags & PLD_WINDOW_F_SYSTEM)
			pldk__fail_prefix(ret, "rank %u: opening window %u of the library: ", base->rank, spec->id);
		return ret;
	case EPROTO:
		return pldk__fail(ret,
				  "it exists with %" PRIu64 " bytes a rank and tag 0x%" PRIx64
				  "; asked for were %" PRIu64 " bytes, kind %u, flags 0x%x, tag 0x%" PRIx64
				  ": all ranks must ask for the same",
				  (uint64_t)c->out_other_bytes, (uint64_t)c->out_other_tag, spec->bytes, spec->kind,
				  spec->flags, spec->tag);
	case EEXIST:
		return pldk__fail(ret, "it is open on this rank with %" PRIu64 " bytes a rank; asked for were %" PRIu64,
				  (uint64_t)c->out_other_bytes, spec->bytes);
	case EPERM:
		return pldk__fail(
			ret,
			"%" PRIu64 " bytes asked (all ranks together), RLIMIT_MEMLOCK leaves %" PRIu64 ": %" PRIu64
			" too many; raise it (ulimit -l, or LimitMEMLOCK= of the service) or give CAP_IPC_LOCK",
			asked, (uint64_t)info.out_memlock_bytes_left, over(asked, info.out_memlock_bytes_left));
	case ENOSPC:
		if ((spec->flags & PLD_WINDOW_F_SYSTEM) && info.out_total_bytes_left >= asked)
			return pldk__fail(
				ret,
				"%" PRIu64 " bytes asked (all ranks together) for the library itself, and the domains of uid %u may "
				"have no more; raise user_system_bytes (/sys/module/pld/parameters/user_system_bytes), or end other jobs",
				asked, (unsigned int)geteuid());
		return pldk__fail(
			ret,
			"%" PRIu64 " bytes asked (all ranks together), the module's cap leaves %" PRIu64 ": %" PRIu64
			" too many; raise max_bytes (/sys/module/pld/parameters/max_bytes), close windows, or ask for less",
			asked, (uint64_t)info.out_total_bytes_left, over(asked, info.out_total_bytes_left));
	case ENOMEM:
		pldk__limits_memory(&memory);
		return pldk__fail(ret,
				  "no memory: %" PRIu64 " bytes asked (all ranks together), %s leaves %" PRIu64
				  "; free memory, raise memory.max of the cgroup, or ask for less",
				  asked, memory.left_bytes == UINT64_MAX ? "the machine" : memory.left_by,
				  memory.left_bytes == UINT64_MAX ? 0 : memory.left_bytes);
	case EOVERFLOW:
		return pldk__fail(ret, "%" PRIu64 " bytes a rank for %u ranks are more than can be counted",
				  spec->bytes, base->nranks);
	case EOPNOTSUPP:
		return pldk__fail(
			ret, "2 MiB pages cannot be had (HUGE_ONLY); ask with HUGE, which falls back to small ones");
	default:
		return pldk__fail(ret, "cannot be made: %s", strerror(-ret));
	}
}

static int map_slabs(struct dev_pd *pd, struct dev_map *map, uint64_t offset)
{
	const bool owner = map->base.flags & PLD_WINDOW_F_OWNER_WRITES;
	const uint64_t own = pd->base.rank * map->base.stride;

	if (mmap(map->base.base, map->span, PROT_READ | (owner ? 0 : PROT_WRITE), MAP_SHARED | MAP_FIXED, pd->fd,
		 (off_t)offset) == MAP_FAILED)
		return -errno;
	if (owner && mmap(map->base.base + own, map->base.stride, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			  pd->fd, (off_t)(offset + own)) == MAP_FAILED)
		return -errno;
	return 0;
}

/**
 * pldk__dev_window_open() - see struct pldk_provider_ops
 */
int pldk__dev_window_open(struct pldk__pdomain *base, const struct pldk__window_spec *spec, struct pldk__map **out)
{
	struct pld_window_create c = {
		.window_id = spec->id,
		.kind = spec->kind,
		.flags = spec->flags | PLD_WINDOW_F_ATTACH,
		.tag = spec->tag,
		.bytes = spec->bytes,
	};
	struct pld_window_destroy d = { .window_id = spec->id };
	struct dev_pd *pd = pldk__dev_pd(base);
	struct dev_map *map = calloc(1, sizeof(*map));
	char why[160];
	int ret;

	if (!map)
		return pldk__fail(-ENOMEM, "no memory");
	ret = pldk__ioctl(pd->fd, PLD_IOC_WINDOW_CREATE, &c);
	if (ret) {
		fail_create(base, spec, &c, ret);
		goto err_free;
	}
	map->span = c.out_stride * base->nranks;
	map->base.base = pldk__range_take(map->span);
	ret = map->base.base ? 0 : -ENOMEM;
	if (ret)
		goto err_destroy;
	map->base.stride = c.out_stride;
	map->base.bytes = spec->bytes;
	map->base.tag = spec->tag;
	map->base.id = spec->id;
	map->base.generation = c.out_generation;
	map->base.kind = spec->kind;
	map->base.flags = spec->flags;
	map->base.page_bytes = c.out_page_bytes;
	ret = map_slabs(pd, map, c.out_mmap_offset);
	if (ret)
		goto err_range;
	*out = &map->base;
	return 0;

err_range:
	pldk__range_give(map->base.base, map->span);
err_destroy:
	ret = pldk__fail(ret == -EAGAIN ? ret : -ENOMEM, "cannot be mapped: %s",
			 pldk__range_why(ret, why, sizeof(why)));
	pldk__ioctl(pd->fd, PLD_IOC_WINDOW_DESTROY, &d);
err_free:
	free(map);
	return ret;
}

/**
 * pldk__dev_window_close() - see struct pldk_provider_ops
 */
void pldk__dev_window_close(struct pldk__pdomain *base, struct pldk__map *m)
{
	struct pld_window_destroy d = { .window_id = m->id };
	struct dev_map *map = (struct dev_map *)m;
	int keep = errno;

	pldk__range_give(map->base.base, map->span);
	pldk__ioctl(pldk__dev_pd(base)->fd, PLD_IOC_WINDOW_DESTROY, &d);
	free(map);
	errno = keep;
}

/**
 * pldk__dev_reset() - see struct pldk_provider_ops
 */
int pldk__dev_reset(struct pldk__pdomain *base, struct pldk__map *map)
{
	struct pld_window_reset r = { .window_id = map->id };
	int ret = pldk__ioctl(pldk__dev_pd(base)->fd, PLD_IOC_WINDOW_RESET, &r);

	if (ret == -EBUSY)
		return pldk__fail(ret, "a thread of rank %u waits in it; nothing was changed", base->rank);
	return ret ? pldk__fail(ret, "cannot be reset: %s", strerror(-ret)) : 0;
}
