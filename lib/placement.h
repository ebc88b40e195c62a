/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Which CPU hosts a device: the rule of the README's "device id", for the library and for the tools that bind ranks. */
#ifndef _PLDK_PLACEMENT_H
#define _PLDK_PLACEMENT_H

#include <sched.h>
#include <stdint.h>

/**
 * pldk__placement() - the (device mod n)-th of the n CPUs of a mask
 * @mask: has at least one
 */
static inline int pldk__placement(uint32_t device, const cpu_set_t *mask)
{
	uint32_t skip = device % (uint32_t)CPU_COUNT(mask);
	int cpu;

	for (cpu = 0; !CPU_ISSET(cpu, mask) || skip-- > 0; cpu++)
		;
	return cpu;
}

#endif /* _PLDK_PLACEMENT_H */
