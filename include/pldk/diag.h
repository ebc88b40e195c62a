/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Diagnostics: error sentences, the log callback, and the flight recorder.
 */
#ifndef _PLDK_DIAG_H
#define _PLDK_DIAG_H

#include <pldk/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * pldk_last_error() - sentence of the calling thread's last failed call: who, what, expected, seen, what to do. Never
 * NULL; valid until the thread's next failure
 */
const char *pldk_last_error(void);

/** pldk_strerror() - the one meaning that an errno (either sign) has in pldk. Never NULL */
const char *pldk_strerror(int err);

/** enum pldk_log_level - of a message to the log callback */
enum pldk_log_level { PLDK_LOG_ERROR = 0, PLDK_LOG_WARN = 1, PLDK_LOG_INFO = 2, PLDK_LOG_DEBUG = 3 };

/** pldk_log_fn - a line without newline; may be called from any thread, must not call pldk */
typedef void (*pldk_log_fn)(enum pldk_log_level level, const char *line, void *arg);

/**
 * pldk_set_log() - the library itself prints nothing; NULL turns it off. PLDK_LOG=error|warn|info|debug sets a stderr
 * callback at init
 */
void pldk_set_log(pldk_log_fn fn, void *arg, enum pldk_log_level most);

/** enum pldk_event_op - what a record of the flight recorder is */
enum pldk_event_op {
	PLDK_EV_NONE = 0,
	PLDK_EV_PUT = 1,
	PLDK_EV_GET = 2,
	PLDK_EV_PUT_NOTIFY = 3,
	PLDK_EV_REMOTE_LOAD = 4,
	PLDK_EV_REMOTE_STORE = 5,
	PLDK_EV_ATOMIC = 6,
	PLDK_EV_NOTIFY_ADD = 7,
	PLDK_EV_NOTIFY_SET = 8,
	PLDK_EV_WAIT = 9,
	PLDK_EV_WAIT_END = 10,
	PLDK_EV_TEST = 11,
	PLDK_EV_READ = 12,
	PLDK_EV_BARRIER = 13,
	PLDK_EV_ALLREDUCE = 14,
	PLDK_EV_BROADCAST = 15,
	PLDK_EV_ALLGATHER = 16,
	PLDK_EV_COLL_END = 17,
	PLDK_EV_WINDOW_CREATE = 18,
	PLDK_EV_WINDOW_DESTROY = 19,
	PLDK_EV_WINDOW_RESET = 20,
	PLDK_EV_JOIN = 21,
	PLDK_EV_LEAVE = 22,
	PLDK_EV_ABORT = 23,
	PLDK_EV_SUBSET = 24,
	PLDK_EV_FLUSH = 25,
	PLDK_EV_HANDLE_WAIT = 26,
	PLDK_EV_REDUCE_SCATTER = 27,
	PLDK_EV_ALL_TO_ALL = 28,
	PLDK_EV_ALL_TO_ALL_V = 29,
	PLDK_EV_REDUCE = 30,
	PLDK_EV_GATHER = 31,
	PLDK_EV_SCATTER = 32,
	PLDK_EV_SCAN = 33,
	PLDK_EV_EXSCAN = 34
};

#define PLDK_EVENT_DONE_AT_ONCE (1u << 0)
#define PLDK_EVENT_FAILED (1u << 1)
#define PLDK_EVENT_NB (1u << 3)
#define PLDK_EVENT_SELF (1u << 4)

/**
 * struct pldk_event - one record, decoded
 * @time_ns: CLOCK_MONOTONIC, 0 when the operation was not stamped (transfers are not: their neighbours bracket them)
 * @value: bytes, value or expected value, as the operation has it
 * @offset: byte offset or cell index
 * @op: enum pldk_event_op
 * @flags: PLDK_EVENT_*
 * @rank: whose record
 * @thread: which thread of it, 0..
 * @peer: or -1
 * @window: window id or -1
 * @line: of the call, 0 if not known
 * @file: of the call, "" if not known
 * @reserved: zero
 */
struct pldk_event {
	int64_t time_ns;
	int64_t value;
	int64_t offset;
	uint32_t op;
	uint32_t flags;
	int rank;
	int thread;
	int peer;
	int window;
	uint32_t line;
	char file[44];
	uint64_t reserved[4];
};

/**
 * pldk_recorder_read() - newest records of a rank, oldest first, also of a dead one
 * @domain: the world
 * @rank: whose
 * @events: room
 * @max: entries of it
 *
 * Return: number written, -EINVAL, -EOPNOTSUPP (a far rank).
 */
int pldk_recorder_read(struct pldk_domain *domain, int rank, struct pldk_event *events, size_t max);

/** pldk_event_name() - "put", "wait"; "?" for no event. Never NULL */
const char *pldk_event_name(uint32_t op);

/** pldk_version() - "0.1.0" */
const char *pldk_version(void);

#ifdef __cplusplus
}
#endif

#endif /* _PLDK_DIAG_H */
