// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later OR MIT
/*
 * The wait-for graph solver; see wfg.h for who calls it and what it promises.
 */
#include "wfg.h"

static int pld_wfg_pred_can(const struct pld_wfg_pred *p, const u8 *live)
{
	u32 i;

	if (p->holds)
		return 1;
	for (i = 0; i < p->nfrom; i++)
		if (live[p->from[i]])
			return 1;
	return 0;
}

static int pld_wfg_wait_can(const struct pld_wfg_wait *w, const u8 *live)
{
	u32 i;

	for (i = 0; i < w->npreds; i++)
		if (pld_wfg_pred_can(&w->preds[i], live) != !!w->all)
			return !w->all;
	return w->all;
}

u32 pld_wfg_solve(u8 *live, u32 nprocs, const struct pld_wfg_wait *waits, u32 nwaits)
{
	u32 hopeless = 0;
	u32 i;
	int changed;

	/* Each pass wakes at least one process or is the last: at most nprocs + 1 passes. */
	do {
		changed = 0;
		for (i = 0; i < nwaits; i++) {
			pld_wfg_pause();
			if (live[waits[i].proc] || !pld_wfg_wait_can(&waits[i], live))
				continue;
			live[waits[i].proc] = 1;
			changed = 1;
		}
	} while (changed);

	for (i = 0; i < nprocs; i++)
		hopeless += !live[i];
	return hopeless;
}
