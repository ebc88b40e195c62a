/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later OR MIT */
/*
 * The wait-for graph: who, of a set of blocked processes, can still be woken?
 *
 * One C file (wfg.c) is compiled into pld.ko, the embedded provider and pldctl, so that all three give the same
 * answer. It allocates nothing, takes no lock and knows neither domains nor windows: the caller collects the waits,
 * asks, collects again, and believes the answer only if nothing changed in between.
 */
#ifndef _PLD_WFG_H
#define _PLD_WFG_H

#ifdef __KERNEL__
#include <linux/sched.h>
#include <linux/types.h>
#define pld_wfg_pause() cond_resched() /* the answer may take a while */
#else
#include <stdint.h>
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
#define pld_wfg_pause() ((void)0)
#endif

/**
 * struct pld_wfg_pred - one predicate of a wait
 * @holds: it is true now
 * @nfrom: processes that may still make it true
 * @from: their indices. The waiter's own process may be among them (another thread of it)
 */
struct pld_wfg_pred {
	u8 holds;
	u32 nfrom;
	const u32 *from;
};

/**
 * struct pld_wfg_wait - one waiting thread
 * @proc: index of its process
 * @all: every predicate must hold, else one is enough
 * @npreds: entries of @preds
 * @preds: its predicates
 */
struct pld_wfg_wait {
	u32 proc;
	u8 all;
	u32 npreds;
	const struct pld_wfg_pred *preds;
};

/**
 * pld_wfg_solve() - find the processes that nobody can wake any more
 * @live: in/out, one byte a process: in, 1 for a process that is not fully blocked; out, also 1 for each blocked
 *        process with a wait that a live process may satisfy
 * @nprocs: processes
 * @waits: every wait of every process whose @live is 0
 * @nwaits: their number
 *
 * Return: number of processes whose @live is still 0. They are all hopeless: the set is the least fixed point, so it
 * holds a deadlock and everybody who depends on nothing else.
 */
u32 pld_wfg_solve(u8 *live, u32 nprocs, const struct pld_wfg_wait *waits, u32 nwaits);

#endif /* _PLD_WFG_H */
