/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * notify and wait: the only way to order two ranks outside collectives.
 *
 * notify is release, a satisfied wait, test or read is acquire. Whatever a rank wrote or put (blocking) before it
 * notified anybody is visible to whoever that chain of notifies reaches. A plain load of a cell orders nothing.
 * A cell is a signed 64-bit value in a line of its own; it wraps.
 */
#ifndef _PLDK_SIGNAL_H
#define _PLDK_SIGNAL_H

#include <pldk/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * pldk_cell() - index of a cell by its coordinates
 * @signal: signal window
 * @ndim: must be that of its shape
 * @coords: 0 <= coords[i] < shape[i]
 *
 * Return: index >= 0, -EINVAL (both ranks or the dimension and its limit in the text), -EDOM (a data window).
 */
int64_t pldk_cell(const struct pldk_window *signal, int ndim, const int64_t *coords);

/**
 * pldk_notify() - change a cell of a peer and wake who waits for it
 * @signal: signal window
 * @peer: 0..P-1; the caller itself is legal
 * @cell: index
 * @op: PLDK_NOTIFY_ADD or PLDK_NOTIFY_SET
 * @value: amount or new value
 *
 * Does not wait for the peer. Return: 0, -EINVAL (peer: "did you mean (r-1+P)%P?", cell, op), -EDOM (data window),
 * -ECANCELED (domain aborted), -ENOTCONN.
 */
int pldk_notify(struct pldk_window *signal, int peer, int64_t cell, enum pldk_notify_op op, int64_t value);
int pldk_notify_at(struct pldk_site *site, struct pldk_window *signal, int peer, int64_t cell, enum pldk_notify_op op,
		   int64_t value);

/**
 * pldk_wait() - until a cell of one's own satisfies a comparison
 * @signal: signal window
 * @cell: index in the own slab
 * @cmp: PLDK_EQ, ...
 * @expected: right-hand side
 * @timeout_ns: PLDK_TRY, PLDK_FOREVER, ...
 *
 * A satisfied wait succeeds whatever else is true. Return: 0; -EAGAIN (PLDK_TRY), -ETIMEDOUT (text: cell, seen,
 * expected, who is late), -EOWNERDEAD (rank, pid, how), -ESHUTDOWN (all who could notify have finalised), -EDEADLK
 * (nobody is left who could; text names the ranks, their cells, expected and seen values), -ECANCELED (aborted, by
 * whom), -EINTR (a handler installed without SA_RESTART ran while it slept; a spinning wait goes on: end a wait from
 * a handler with pldk_abort()), -EINVAL, -EDOM.
 */
int pldk_wait(struct pldk_window *signal, int64_t cell, enum pldk_cmp cmp, int64_t expected, int64_t timeout_ns);
int pldk_wait_at(struct pldk_site *site, struct pldk_window *signal, int64_t cell, enum pldk_cmp cmp, int64_t expected,
		 int64_t timeout_ns);

#define PLDK_MAX_VECTOR 4096 /* entries of one vector call; more are -EINVAL */

/**
 * struct pldk_await - one predicate of a vector wait
 * @signal: signal window; all of one call in the same domain
 * @cell: index in the own slab
 * @cmp: enum pldk_cmp
 * @from: with PLDK_AWAIT_FROM: rank that will notify it. A claim: it narrows who can fail the wait by dying
 * @expected: right-hand side
 * @seen: out: last value seen, written on every return but -EINVAL and -EDOM
 * @flags: PLDK_AWAIT_*; others are -EOPNOTSUPP
 * @reserved32: zero
 * @reserved: zero
 */
struct pldk_await {
	struct pldk_window *signal;
	int64_t cell;
	int cmp;
	int from;
	int64_t expected;
	int64_t seen;
	uint32_t flags;
	uint32_t reserved32;
	uint64_t reserved;
};

#define PLDK_AWAIT_FROM (1u << 0) /* from is meant; else any rank may notify */

/** pldk_wait_all() - until all predicates hold at the same moment. @n may be 0. Return: as pldk_wait() */
int pldk_wait_all(struct pldk_await *awaits, size_t n, int64_t timeout_ns);
int pldk_wait_all_at(struct pldk_site *site, struct pldk_await *awaits, size_t n, int64_t timeout_ns);

/** pldk_wait_any() - until one holds; @out_index is the first that does. @n >= 1. Return: as pldk_wait() */
int pldk_wait_any(struct pldk_await *awaits, size_t n, int64_t timeout_ns, size_t *out_index);
int pldk_wait_any_at(struct pldk_site *site, struct pldk_await *awaits, size_t n, int64_t timeout_ns,
		     size_t *out_index);

/**
 * struct pldk_post - one entry of a vector notify
 * @signal: signal window; all of one call in the same domain
 * @peer: whose cell
 * @op: enum pldk_notify_op
 * @cell: index
 * @value: amount or new value
 * @reserved: zero
 */
struct pldk_post {
	struct pldk_window *signal;
	int peer;
	int op;
	int64_t cell;
	int64_t value;
	uint64_t reserved[2];
};

/** pldk_notify_all() - notify in order; all entries are checked before the first. Return: as pldk_notify() */
int pldk_notify_all(const struct pldk_post *posts, size_t n);
int pldk_notify_all_at(struct pldk_site *site, const struct pldk_post *posts, size_t n);

/**
 * pldk_notify_wait() - notify all, then wait for all: at most one system call where ranks share a CPU
 *
 * Both vectors are checked before anything is done. After -EINTR and -ETIMEDOUT the notifies are done.
 * Return: as pldk_notify_all() and pldk_wait_all().
 */
int pldk_notify_wait(const struct pldk_post *posts, size_t nposts, struct pldk_await *awaits, size_t nawaits,
		     int64_t timeout_ns);
int pldk_notify_wait_at(struct pldk_site *site, const struct pldk_post *posts, size_t nposts, struct pldk_await *awaits,
			size_t nawaits, int64_t timeout_ns);

/** pldk_test() - does it hold? Return: 1 yes (acquire), 0 no, or an error of pldk_wait() other than -EAGAIN */
int pldk_test(struct pldk_window *signal, int64_t cell, enum pldk_cmp cmp, int64_t expected);
int pldk_test_at(struct pldk_site *site, struct pldk_window *signal, int64_t cell, enum pldk_cmp cmp, int64_t expected);

/** pldk_read() - value of an own cell (acquire). Return: 0, -EINVAL, -EDOM */
int pldk_read(struct pldk_window *signal, int64_t cell, int64_t *out_value);
int pldk_read_at(struct pldk_site *site, struct pldk_window *signal, int64_t cell, int64_t *out_value);

#ifndef PLDK_NO_SITES
#define pldk_notify(...) pldk_notify_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_wait(...) pldk_wait_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_wait_all(...) pldk_wait_all_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_wait_any(...) pldk_wait_any_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_notify_all(...) pldk_notify_all_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_notify_wait(...) pldk_notify_wait_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_test(...) pldk_test_at(PLDK_SITE(), __VA_ARGS__)
#define pldk_read(...) pldk_read_at(PLDK_SITE(), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif /* _PLDK_SIGNAL_H */
