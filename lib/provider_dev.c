// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The provider on /dev/pld: the kernel contract (include/uapi/linux/pld.h) in the words of provider.h.
 *
 * Almost nothing is decided here: the kernel makes, maps, wakes and judges. What this file adds is sentences: each
 * errno of the kernel becomes what was asked, what stood in the way, and what to do. pldk__ioctl() is the only place
 * that calls ioctl(2).
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "provider_dev.h"
#include "range.h"

#define DEV "/dev/pld"
#define TOO_MANY_DOMAINS \
	"uid %u has as many domains as the module allows; close some, or raise " \
	"/sys/module/pld/parameters/user_domains"
#define USE_SHM "or use PLDK_PROVIDER=shm"

/**
 * pldk__ioctl() - ioctl(2) on a file of /dev/pld
 *
 * Waits come back with -EINTR when a POSIX signal handler ran; everything else is tried again. Keeps errno.
 *
 * Return: 0 or more, or a negative errno.
 */
int pldk__ioctl(int fd, unsigned long cmd, void *arg)
{
	const bool is_wait = cmd == PLD_IOC_CELL_WAIT || cmd == PLD_IOC_CELL_NOTIFY_WAIT;
	int keep = errno;
	int ret;

	do {
		ret = ioctl(fd, cmd, arg);
		if (ret < 0)
			ret = -errno;
	} while (ret == -EINTR && !is_wait);
	errno = keep;
	return ret;
}

/**
 * pldk__dev_check_abi() - can this library work with a module of that level?
 *
 * A newer module serves older libraries. Return: 0, -EOPNOTSUPP.
 */
int pldk__dev_check_abi(uint32_t level)
{
	if (level >= PLD_ABI_LEVEL)
		return 0;
	return pldk__fail(
		-EOPNOTSUPP,
		"library %s needs module ABI %u or newer, loaded is %u (reload it: rmmod pld && modprobe pld), " USE_SHM,
		pldk_version(), PLD_ABI_LEVEL, level);
}

static int fail_open(int err)
{
	struct group group;
	struct group *found = NULL;
	char buf[1024];
	char name[64];
	struct stat st;

	if (err == ENOENT)
		return pldk__fail(-ENODEV,
				  "no " DEV ": the module is not loaded here (modprobe pld, or make load), " USE_SHM);
	if (err == ENXIO || err == ENODEV)
		return pldk__fail(-ENODEV,
				  "cannot open " DEV ": %s (a device node without its module: modprobe pld), " USE_SHM,
				  strerror(err));
	if (err == EPERM)
		return pldk__fail(-EPERM,
				  "cannot open " DEV
				  ": Operation not permitted, although its mode may allow it: the device cgroup "
				  "of this container forbids it (start it with --device " DEV "), " USE_SHM);
	if (err != EACCES || stat(DEV, &st))
		return pldk__fail(-err, "cannot open " DEV ": %s, " USE_SHM, strerror(err));
	snprintf(name, sizeof(name), "%u", (unsigned int)st.st_gid);
	if (!getgrgid_r(st.st_gid, &group, buf, sizeof(buf), &found) && found)
		snprintf(name, sizeof(name), "%.60s", group.gr_name);
	return pldk__fail(
		-EPERM,
		"cannot open " DEV
		": Permission denied (mode %04o %s:%s; you are uid %u gid %u; add yourself to group %s " USE_SHM ")",
		(unsigned int)st.st_mode & 07777, st.st_uid ? "not root" : "root", name, (unsigned int)getuid(),
		(unsigned int)getgid(), name);
}

/* A device file whose module this library can work with; or an errno with its sentence. */
static int dev_open(struct pld_info *info)
{
	int fd = open(DEV, O_RDWR | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return fail_open(errno);
	memset(info, 0, sizeof(*info));
	ret = pldk__ioctl(fd, PLD_IOC_GET_INFO, info);
	if (ret)
		ret = pldk__fail(
			-ENODEV,
			DEV
			" does not answer as pld does (%s): another driver's node, or the module is going away, " USE_SHM,
			strerror(-ret));
	else
		ret = pldk__dev_check_abi(info->out_abi_level);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static int dev_probe(void)
{
	struct pld_info info;
	int keep = errno;
	int fd = dev_open(&info);

	if (fd >= 0)
		close(fd);
	errno = keep;
	return fd < 0 ? fd : 0;
}

static int dev_create(const struct pldk__world_spec *spec, int *out_fd)
{
	struct pld_domain_create c = {
		.nranks = spec->nranks,
		.device_ids = (uintptr_t)spec->device_ids,
		.cpus = (uintptr_t)spec->cpus,
	};
	struct pld_info info;
	int fd;
	int ret;

	if (spec->far)
		return pldk__fail(-EOPNOTSUPP, "far peers (PLDK_SHM_FAR) exist on shm only: PLDK_PROVIDER=shm");
	fd = dev_open(&info);
	if (fd < 0)
		return fd;
	ret = pldk__ioctl(fd, PLD_IOC_DOMAIN_CREATE, &c);
	close(fd);
	if (ret == -EINVAL)
		return pldk__fail(
			ret, "the module refuses %u ranks: it takes 1..%u, distinct device ids, CPUs that are on line",
			spec->nranks, info.out_max_ranks);
	if (ret == -ENOSPC)
		return pldk__fail(ret, "cannot make a world: " TOO_MANY_DOMAINS, (unsigned int)geteuid());
	if (ret)
		return pldk__fail(ret, "cannot make a world of %u ranks: %s", spec->nranks, strerror(-ret));
	*out_fd = c.out_fd;
	return 0;
}

static bool dev_owns(int fd)
{
	struct pld_domain_member m = { .rank = 0 };
	struct stat st;
	int keep = errno;
	/* Ask only where nobody else's driver can be meant: the files of pld are anonymous inodes. */
	bool ok = !fstat(fd, &st) && !S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode) && !S_ISSOCK(st.st_mode) &&
		  !S_ISFIFO(st.st_mode);

	ok = ok && !pldk__ioctl(fd, PLD_IOC_DOMAIN_MEMBER, &m);
	errno = keep;
	return ok;
}

static int fail_plain(int ret, const char *what)
{
	return ret < 0 ? pldk__fail(ret, "%s: %s", what, strerror(-ret)) : 0;
}

static int dev_poison_fd(int fd, uint32_t reason)
{
	struct pld_domain_poison p = { .reason = reason };

	return fail_plain(pldk__ioctl(fd, PLD_IOC_DOMAIN_POISON, &p), "cannot abort the world");
}

/* The kernel sees the end of every rank that joined; it has to be told of one that ended before. */
static int dev_mark_dead(int fd, uint32_t rank, int wait_status)
{
	struct pld_domain_member_end e = { .rank = rank };
	int ret;

	if (WIFSIGNALED(wait_status)) {
		e.state = PLD_MEMBER_KILLED;
		e.status = WTERMSIG(wait_status);
	} else {
		e.state = PLD_MEMBER_EXITED;
		e.status = WEXITSTATUS(wait_status);
	}
	ret = pldk__ioctl(fd, PLD_IOC_DOMAIN_MEMBER_END, &e);
	if (ret == -EEXIST || ret == -ESTALE)
		return 0;
	if (ret == -EINVAL)
		return pldk__fail(ret, "rank %u is not in this world", rank);
	return fail_plain(ret, "cannot tell that a rank has ended");
}

static int dev_token(int fd, uint8_t out_token[16])
{
	struct pld_domain_token t;
	int ret = pldk__ioctl(fd, PLD_IOC_DOMAIN_TOKEN, &t);

	if (!ret)
		memcpy(out_token, t.out_token, sizeof(t.out_token));
	return fail_plain(ret, "cannot get the world's token");
}

/* Wrap a rank file; it is closed if that fails. */
static int pd_make(int fd, uint32_t rank, struct pldk__pdomain **out)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const struct pld_status *status;
	struct dev_pd *pd = calloc(1, sizeof(*pd));
	char why[160];
	uint32_t nranks;
	size_t bytes;
	int ret;

	if (!pd) {
		ret = pldk__fail(-ENOMEM, "no memory to join");
		goto err_close;
	}
	status = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, PLD_MMAP_STATUS);
	if (status == MAP_FAILED)
		goto err_map;
	nranks = status->nranks;
	bytes = PLD_STATUS_HEADER + (size_t)nranks * status->member_size;
	bytes = (bytes + page - 1) & ~(page - 1);
	if (bytes > page) {
		munmap((void *)(uintptr_t)status, page);
		status = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, PLD_MMAP_STATUS);
		if (status == MAP_FAILED)
			goto err_map;
	}
	pd->base.ops = &pldk__provider_dev;
	pd->base.status = status;
	pd->base.rank = rank;
	pd->base.nranks = nranks;
	pd->fd = fd;
	pd->status_bytes = bytes;
	*out = &pd->base;
	return 0;

err_map:
	ret = -errno;
	pldk__fail(ret, "cannot map the status page: %s", pldk__range_why(ret, why, sizeof(why)));
	free(pd);
err_close:
	close(fd);
	return ret;
}

/* @poison and @poisoner are what the call reported with -ECANCELED. */
static int fail_join(int ret, uint32_t rank, uint32_t poison, uint32_t poisoner)
{
	switch (-ret) {
	case EINVAL:
		return pldk__fail(ret, "rank %u is not in this world", rank);
	case EEXIST:
		return pldk__fail(ret, "rank %u is taken by a process that is alive", rank);
	case ESTALE:
		return pldk__fail(ret, "rank %u has been here and is gone: a place is not given twice", rank);
	case ECANCELED:
		return pldk__fail_poisoned(poison & ~PLD_POISON_SET, poisoner);
	case ENOSPC:
		return pldk__fail(ret, TOO_MANY_DOMAINS, (unsigned int)geteuid());
	case EMFILE:
		return pldk__fail(ret, "no descriptor left: raise RLIMIT_NOFILE (ulimit -n)");
	case ENOTTY:
		return pldk__fail(-EBADF, "the descriptor is no world");
	default:
		return pldk__fail(ret, "cannot join as rank %u: %s", rank, strerror(-ret));
	}
}

static int dev_join(int fd, uint32_t rank, struct pldk__pdomain **out)
{
	struct pld_domain_join j = { .rank = rank };
	int ret = pldk__ioctl(fd, PLD_IOC_DOMAIN_JOIN, &j);

	return ret ? fail_join(ret, rank, j.out_poison, j.out_poison_rank) : pd_make(j.out_fd, rank, out);
}

static int dev_join_token(const uint8_t token[16], uint32_t rank, struct pldk__pdomain **out)
{
	struct pld_domain_join_token j = { .rank = rank };
	struct pld_info info;
	int fd = dev_open(&info);
	int ret;

	if (fd < 0)
		return fd;
	memcpy(j.token, token, sizeof(j.token));
	ret = pldk__ioctl(fd, PLD_IOC_DOMAIN_JOIN_TOKEN, &j);
	close(fd);
	if (ret == -ENOENT)
		return pldk__fail(ret,
				  "cannot join: no world here has this token. It has ended, or it is not the same " DEV
				  " instance (this one is %016" PRIx64
				  "): another machine or VM, or the module was loaded anew",
				  (uint64_t)info.out_instance);
	if (ret == -EPERM)
		return pldk__fail(ret, "cannot join: the world belongs to another user than uid %u",
				  (unsigned int)geteuid());
	return ret ? fail_join(ret, rank, j.out_poison, j.out_poison_rank) : pd_make(j.out_fd, rank, out);
}

static int dev_subset(struct pldk__pdomain *base, uint32_t key, const uint32_t *ranks, uint32_t nranks,
		      struct pldk__pdomain **out)
{
	struct pld_domain_subset s = { .key = key, .nranks = nranks, .ranks = (uintptr_t)ranks };
	uint32_t rank;
	int ret;

	for (rank = 0; rank < nranks && ranks[rank] != base->rank; rank++)
		;
	ret = pldk__ioctl(pldk__dev_pd(base)->fd, PLD_IOC_DOMAIN_SUBSET, &s);
	switch (-ret) {
	case 0:
		return pd_make(s.out_fd, rank, out);
	case EPROTO:
		return pldk__fail(ret, "another member gave another list of ranks for this subset (here are %u)",
				  nranks);
	case EEXIST:
		return pldk__fail(ret, "rank %u has joined this subset already", base->rank);
	case EINVAL:
		return pldk__fail(ret, "the list of ranks has one twice, one out of 0..%u, or not the caller, rank %u",
				  base->nranks - 1, base->rank);
	default:
		return fail_join(ret, rank, s.out_poison, s.out_poison_rank);
	}
}

static void dev_leave(struct pldk__pdomain *base, bool finalised)
{
	struct pld_domain_leave l = { 0 };
	struct dev_pd *pd = pldk__dev_pd(base);
	int keep = errno;

	if (finalised)
		pldk__ioctl(pd->fd, PLD_IOC_DOMAIN_LEAVE, &l);
	munmap((void *)(uintptr_t)base->status, pd->status_bytes);
	close(pd->fd);
	free(pd);
	errno = keep;
}

static int dev_poison(struct pldk__pdomain *base, uint32_t reason)
{
	struct pld_domain_poison p = { .reason = reason };

	return pldk__ioctl(pldk__dev_pd(base)->fd, PLD_IOC_DOMAIN_POISON, &p);
}

static int dev_run_state(struct pldk__pdomain *base, uint32_t rank)
{
	struct pld_domain_member m = { .rank = rank };

	return pldk__ioctl(pldk__dev_pd(base)->fd, PLD_IOC_DOMAIN_MEMBER, &m) ? 0 : (int)m.out_run_state;
}

#define CELLS 32u /* entries on the stack: most waits, and a piece of a long list of wakes */

static void wake_fill(struct pld_notify_cell *cells, const struct pldk__wake *wakes, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		cells[i] = (struct pld_notify_cell){
			.window_id = wakes[i].map->id,
			.generation = wakes[i].map->generation,
			.rank = wakes[i].rank,
			.cell = wakes[i].cell,
			.op = PLD_NOTIFY_WAKE,
		};
}

/* Async-signal-safe. */
static void dev_wake(struct pldk__pdomain *base, const struct pldk__wake *wakes, uint32_t nwakes)
{
	struct pld_notify_cell cells[CELLS];

	while (nwakes) {
		const uint32_t n = nwakes < CELLS ? nwakes : CELLS;
		struct pld_notify notify = { .cells = (uintptr_t)cells, .ncells = n, .cell_size = sizeof(*cells) };

		wake_fill(cells, wakes, n);
		pldk__ioctl(pldk__dev_pd(base)->fd, PLD_IOC_CELL_NOTIFY, &notify);
		wakes += n;
		nwakes -= n;
	}
}

static int dev_sleep(struct pldk__pdomain *base, struct pldk__wait *wait, const struct pldk__wake *wakes,
		     uint32_t nwakes)
{
	struct pld_wait_cell few[CELLS];
	struct pld_wait_cell *cells = wait->npreds <= CELLS ? few : malloc(wait->npreds * sizeof(*cells));
	struct pld_notify_cell rung[CELLS];
	struct pld_notify_wait call;
	uint32_t i;
	int ret;

	if (nwakes > CELLS || !cells) {
		dev_wake(base, wakes, nwakes);
		nwakes = 0;
	}
	if (!cells)
		return -ENOMEM;
	for (i = 0; i < wait->npreds; i++)
		cells[i] = (struct pld_wait_cell){
			.window_id = wait->preds[i].map->id,
			.generation = wait->preds[i].map->generation,
			.cell = wait->preds[i].cell,
			.cmp = wait->preds[i].cmp,
			.from = wait->preds[i].from,
			.expected = wait->preds[i].expected,
			.out_value = wait->preds[i].seen,
		};
	wake_fill(rung, wakes, nwakes);
	call = (struct pld_notify_wait){
		.notify_cells = (uintptr_t)rung,
		.notify_ncells = nwakes,
		.notify_cell_size = sizeof(*rung),
		.wait = {
			.cells = (uintptr_t)cells,
			.ncells = wait->npreds,
			.cell_size = sizeof(*cells),
			.flags = wait->flags,
			.site = wait->site,
			.deadline_ns = wait->deadline_ns,
		},
	};
	if (nwakes)
		ret = pldk__ioctl(pldk__dev_pd(base)->fd, PLD_IOC_CELL_NOTIFY_WAIT, &call);
	else
		ret = pldk__ioctl(pldk__dev_pd(base)->fd, PLD_IOC_CELL_WAIT, &call.wait);
	/* Refused before anything was done: then nobody has been woken yet. */
	if (nwakes && call.notify_ncells)
		dev_wake(base, wakes, nwakes);
	for (i = 0; i < wait->npreds; i++)
		wait->preds[i].seen = cells[i].out_value;
	wait->out_index = call.wait.out_index;
	wait->out_rank = call.wait.out_rank;
	wait->out_verdict = call.wait.out_verdict;
	if (ret == -ECANCELED)
		wait->out_rank = pldk__load_acquire(&base->status->poison_rank);
	if (cells != few)
		free(cells);
	return ret;
}

static int dev_ledger(struct pldk__pdomain *base, struct pld_ledger_entry *entries, uint32_t *n)
{
	struct pld_ledger l = { .entries = (uintptr_t)entries, .nentries = *n, .entry_size = sizeof(*entries) };
	int ret = pldk__ioctl(pldk__dev_pd(base)->fd, PLD_IOC_LEDGER, &l);

	if (ret)
		return fail_plain(ret, "cannot read the ledger");
	*n = l.nentries;
	return 0;
}

static int dev_verdict(struct pldk__pdomain *base, uint32_t verdict, struct pld_ledger_entry *entries, uint32_t *n)
{
	struct pld_verdict v = {
		.entries = (uintptr_t)entries,
		.nentries = *n,
		.entry_size = sizeof(*entries),
		.verdict = verdict,
	};
	int ret = pldk__ioctl(pldk__dev_pd(base)->fd, PLD_IOC_VERDICT, &v);

	if (ret == -ENOENT)
		return pldk__fail(ret, "no verdict %u in this domain: the newest 8 are kept", verdict);
	if (ret)
		return fail_plain(ret, "cannot read the verdict");
	*n = v.nentries;
	return 0;
}

/*
 * The table. Every call keeps errno; pldk__ioctl() does so itself.
 */

static int op_create(const struct pldk__world_spec *spec, int *out_fd)
{
	return pldk__keep_errno(dev_create(spec, out_fd));
}

static int op_join(int fd, uint32_t rank, struct pldk__pdomain **out)
{
	return pldk__keep_errno(dev_join(fd, rank, out));
}

static int op_join_token(const uint8_t token[16], uint32_t rank, struct pldk__pdomain **out)
{
	return pldk__keep_errno(dev_join_token(token, rank, out));
}

static int op_subset(struct pldk__pdomain *pd, uint32_t key, const uint32_t *ranks, uint32_t n,
		     struct pldk__pdomain **out)
{
	return pldk__keep_errno(dev_subset(pd, key, ranks, n, out));
}

static int op_limits(struct pldk__pdomain *pd, struct pldk_limits *out)
{
	return pldk__keep_errno(pldk__dev_limits(pd, out));
}

static int op_open(struct pldk__pdomain *pd, const struct pldk__window_spec *spec, struct pldk__map **out)
{
	return pldk__keep_errno(pldk__dev_window_open(pd, spec, out));
}

static int op_sleep(struct pldk__pdomain *pd, struct pldk__wait *wait, const struct pldk__wake *wakes, uint32_t n)
{
	return pldk__keep_errno(dev_sleep(pd, wait, wakes, n));
}

const struct pldk_provider_ops pldk__provider_dev = {
	.name = "dev",
	.probe = dev_probe,
	.create = op_create,
	.owns = dev_owns,
	.mark_dead = dev_mark_dead,
	.poison_fd = dev_poison_fd,
	.token = dev_token,
	.join_token = op_join_token,
	.join = op_join,
	.subset = op_subset,
	.leave = dev_leave,
	.poison = dev_poison,
	.run_state = dev_run_state,
	.limits = op_limits,
	.open = op_open,
	.close = pldk__dev_window_close,
	.reset = pldk__dev_reset,
	.sleep = op_sleep,
	.wake = dev_wake,
	.ledger = dev_ledger,
	.verdict = dev_verdict,
};
