/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints, /sys/kernel/tracing/events/pld/. Fields are ids, values and results, never pointers or strings.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM pld

#if !defined(_PLD_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _PLD_TRACE_H

#include <linux/tracepoint.h>

/* Who came, went or ended a domain, and how? number: nranks, state, state, reason. */
DECLARE_EVENT_CLASS(pld_domain_class,
	TP_PROTO(u64 domain, u32 rank, u32 state, s32 status),
	TP_ARGS(domain, rank, state, status),
	TP_STRUCT__entry(
		__field(u64, domain)
		__field(u32, rank)
		__field(u32, state)
		__field(s32, status)
	),
	TP_fast_assign(
		__entry->domain = domain;
		__entry->rank = rank;
		__entry->state = state;
		__entry->status = status;
	),
	TP_printk("domain=%llu rank=%d state=%u status=%d", __entry->domain, (int)__entry->rank, __entry->state,
		  __entry->status)
);

/* rank is the number of ranks */
DEFINE_EVENT(pld_domain_class, pld_domain_create,
	TP_PROTO(u64 domain, u32 rank, u32 state, s32 status), TP_ARGS(domain, rank, state, status));
DEFINE_EVENT(pld_domain_class, pld_domain_join,
	TP_PROTO(u64 domain, u32 rank, u32 state, s32 status), TP_ARGS(domain, rank, state, status));
DEFINE_EVENT(pld_domain_class, pld_domain_leave,
	TP_PROTO(u64 domain, u32 rank, u32 state, s32 status), TP_ARGS(domain, rank, state, status));
DEFINE_EVENT(pld_domain_class, pld_member_death,
	TP_PROTO(u64 domain, u32 rank, u32 state, s32 status), TP_ARGS(domain, rank, state, status));
/* status is the reason */
DEFINE_EVENT(pld_domain_class, pld_domain_poison,
	TP_PROTO(u64 domain, u32 rank, u32 state, s32 status), TP_ARGS(domain, rank, state, status));

/* Which windows live, how long, how large? */
DECLARE_EVENT_CLASS(pld_window_class,
	TP_PROTO(u64 domain, u32 window, u32 generation, u64 bytes),
	TP_ARGS(domain, window, generation, bytes),
	TP_STRUCT__entry(
		__field(u64, domain)
		__field(u32, window)
		__field(u32, generation)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->domain = domain;
		__entry->window = window;
		__entry->generation = generation;
		__entry->bytes = bytes;
	),
	TP_printk("domain=%llu window=%u generation=%u bytes=%llu", __entry->domain, __entry->window,
		  __entry->generation, __entry->bytes)
);

DEFINE_EVENT(pld_window_class, pld_window_create,
	TP_PROTO(u64 domain, u32 window, u32 generation, u64 bytes), TP_ARGS(domain, window, generation, bytes));
DEFINE_EVENT(pld_window_class, pld_window_destroy,
	TP_PROTO(u64 domain, u32 window, u32 generation, u64 bytes), TP_ARGS(domain, window, generation, bytes));
DEFINE_EVENT(pld_window_class, pld_window_reset,
	TP_PROTO(u64 domain, u32 window, u32 generation, u64 bytes), TP_ARGS(domain, window, generation, bytes));

/* Who changed which cell through the kernel? */
TRACE_EVENT(pld_cell_notify,
	TP_PROTO(const struct pld_rank *rank, const struct pld_target *t, u32 site),
	TP_ARGS(rank, t, site),
	TP_STRUCT__entry(
		__field(u64, domain)
		__field(u32, rank)
		__field(u32, window)
		__field(u32, peer)
		__field(u32, cell)
		__field(u32, op)
		__field(u32, site)
		__field(s64, value)
	),
	TP_fast_assign(
		__entry->domain = rank->domain->id;
		__entry->rank = rank->index;
		__entry->window = t->win->id;
		__entry->peer = t->rank;
		__entry->cell = t->cellno;
		__entry->op = t->op;
		__entry->site = site;
		__entry->value = t->value;
	),
	TP_printk("domain=%llu rank=%u window=%u peer=%u cell=%u op=%u value=%lld site=%u", __entry->domain,
		  __entry->rank, __entry->window, __entry->peer, __entry->cell, __entry->op, __entry->value,
		  __entry->site)
);

/* What does a thread wait for? (its first predicate) */
TRACE_EVENT(pld_wait_enter,
	TP_PROTO(const struct pld_waiter *w),
	TP_ARGS(w),
	TP_STRUCT__entry(
		__field(u64, domain)
		__field(u32, rank)
		__field(u32, window)
		__field(u32, cell)
		__field(u32, npreds)
		__field(u32, flags)
		__field(u32, site)
		__field(s64, expected)
		__field(u64, deadline)
	),
	TP_fast_assign(
		__entry->domain = w->rank->domain->id;
		__entry->rank = w->rank->index;
		__entry->window = w->preds[0].win->id;
		__entry->cell = w->preds[0].cellno;
		__entry->npreds = w->npreds;
		__entry->flags = w->flags;
		__entry->site = w->site;
		__entry->expected = w->preds[0].expected;
		__entry->deadline = w->deadline_ns;
	),
	TP_printk("domain=%llu rank=%u window=%u cell=%u npreds=%u flags=%x expected=%lld deadline=%llu site=%u",
		  __entry->domain, __entry->rank, __entry->window, __entry->cell, __entry->npreds, __entry->flags,
		  __entry->expected, __entry->deadline, __entry->site)
);

/* How did the wait end, and how long was it? */
TRACE_EVENT(pld_wait_exit,
	TP_PROTO(const struct pld_waiter *w, int result, u64 slept_ns),
	TP_ARGS(w, result, slept_ns),
	TP_STRUCT__entry(
		__field(u64, domain)
		__field(u32, rank)
		__field(u32, site)
		__field(int, result)
		__field(u64, slept_ns)
	),
	TP_fast_assign(
		__entry->domain = w->rank->domain->id;
		__entry->rank = w->rank->index;
		__entry->site = w->site;
		__entry->result = result;
		__entry->slept_ns = slept_ns;
	),
	TP_printk("domain=%llu rank=%u result=%d slept_ns=%llu site=%u", __entry->domain, __entry->rank,
		  __entry->result, __entry->slept_ns, __entry->site)
);

/* Which thread was told to look again? */
TRACE_EVENT(pld_wait_wake,
	TP_PROTO(const struct pld_rank *rank, int tid),
	TP_ARGS(rank, tid),
	TP_STRUCT__entry(
		__field(u64, domain)
		__field(u32, rank)
		__field(int, tid)
	),
	TP_fast_assign(
		__entry->domain = rank->domain->id;
		__entry->rank = rank->index;
		__entry->tid = tid;
	),
	TP_printk("domain=%llu rank=%u tid=%d", __entry->domain, __entry->rank, __entry->tid)
);

/* When was a deadlock proved, and how many processes and waits were looked at? */
TRACE_EVENT(pld_verdict,
	TP_PROTO(u64 domain, u32 number, u32 hopeless, u32 waits),
	TP_ARGS(domain, number, hopeless, waits),
	TP_STRUCT__entry(
		__field(u64, domain)
		__field(u32, number)
		__field(u32, hopeless)
		__field(u32, waits)
	),
	TP_fast_assign(
		__entry->domain = domain;
		__entry->number = number;
		__entry->hopeless = hopeless;
		__entry->waits = waits;
	),
	TP_printk("domain=%llu verdict=%u hopeless=%u waits=%u", __entry->domain, __entry->number, __entry->hopeless,
		  __entry->waits)
);

#endif /* _PLD_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
