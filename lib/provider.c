// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Choice of provider: the one that was asked for, else dev where /dev/pld opens, else shm. A descriptor of a world
 * tells by itself whose it is.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

static const struct pldk_provider_ops *const providers[] = { &pldk__provider_dev, &pldk__provider_shm };

/**
 * pldk__provider_choose() - for a new world
 * @name: "dev", "shm", or NULL: PLDK_PROVIDER, else the first that can be used
 * @out: the provider
 *
 * What was chosen and why goes to the log at info level.
 *
 * Return: 0; -EINVAL (no such name); what the only or last one's probe said.
 */
int pldk__provider_choose(const char *name, const struct pldk_provider_ops **out)
{
	const char *asked_by = "asked for";
	size_t i;
	int ret = -ENODEV;

	if (!name && pldk__env()->provider) {
		name = pldk__env()->provider;
		asked_by = "PLDK_PROVIDER";
	}
	for (i = 0; i < PLDK__ARRAY_SIZE(providers); i++) {
		if (name && strcmp(name, providers[i]->name))
			continue;
		pldk__fail_quiet(!name);
		ret = providers[i]->probe();
		pldk__fail_quiet(false);
		if (!ret) {
			pldk__log(PLDK_LOG_INFO, "provider %s (%s)", providers[i]->name, name ? asked_by : "best that opens");
			*out = providers[i];
			return 0;
		}
		if (name)
			return ret;
		pldk__log(PLDK_LOG_INFO, "provider %s cannot be used: %s", providers[i]->name, pldk_last_error());
	}
	if (name)
		return pldk__fail(-EINVAL, "no provider \"%s\": allowed are dev and shm", name);
	return ret;
}

/**
 * pldk__provider_of_fd() - whose world is this descriptor?
 *
 * Return: the provider, or NULL and a sentence.
 */
const struct pldk_provider_ops *pldk__provider_of_fd(int fd)
{
	size_t i;

	for (i = 0; i < PLDK__ARRAY_SIZE(providers); i++) {
		if (providers[i]->owns(fd))
			return providers[i];
	}
	pldk__fail(-EBADF, "descriptor %d is no world of pldk", fd);
	return NULL;
}
