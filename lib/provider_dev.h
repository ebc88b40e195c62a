/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What the files of the provider on /dev/pld share. pldk__ioctl() is for pldctl as well, which asks without being a
 * member.
 */
#ifndef _PLDK_PROVIDER_DEV_H
#define _PLDK_PROVIDER_DEV_H

#include <stdint.h>

#include "provider.h"

/**
 * struct dev_pd - a joined domain
 * @base: what the library sees; first
 * @fd: rank file
 * @status_bytes: mapped at base.status
 */
struct dev_pd {
	struct pldk__pdomain base;
	int fd;
	size_t status_bytes;
};

static inline struct dev_pd *pldk__dev_pd(struct pldk__pdomain *pd)
{
	return (struct dev_pd *)pd;
}

/* provider_dev.c */
int pldk__ioctl(int fd, unsigned long cmd, void *arg);
int pldk__dev_check_abi(uint32_t level);

/* dev_window.c */
int pldk__dev_limits(struct pldk__pdomain *pd, struct pldk_limits *out);
int pldk__dev_window_open(struct pldk__pdomain *pd, const struct pldk__window_spec *spec, struct pldk__map **out);
void pldk__dev_window_close(struct pldk__pdomain *pd, struct pldk__map *map);
int pldk__dev_reset(struct pldk__pdomain *pd, struct pldk__map *map);

#endif /* _PLDK_PROVIDER_DEV_H */
