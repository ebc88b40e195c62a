/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Layout of the embedded provider's world file: a sealed, sparse memfd named "pldk-world".
 *
 * This is a file format: ranks map parts of it, pldctl reads it through /proc/PID/fd with pread(2) (which allocates
 * nothing). Every structure that may grow says its size. Offsets are bytes from the start of the file. Space is handed
 * out by one atomic addition to shm_header.next and never reused, so an offset names one object for ever and a reader
 * that comes late finds zeros, never somebody else's data. Memory is reserved with fallocate(2) before anything points
 * to it and given back by punching a hole.
 *
 * There is no lock in the file. Whatever several ranks change is one word that moves by compare and swap, and whoever
 * finds a half-done step of a dead rank finishes it (all steps can be done twice).
 *
 *   0                  struct shm_header
 *   SHM_BUCKETS        heads of the chains of subset domains, by hash of (parent, key)
 *   SHM_LINE_BITS      which pages of the ledger are reserved
 *   SHM_LINES          the wait ledger: one struct shm_line a sleeping thread
 *   SHM_FIRST          domains and windows, in order of creation
 */
#ifndef _PLDK_SHM_LAYOUT_H
#define _PLDK_SHM_LAYOUT_H

#include <stdint.h>

#include <linux/pld.h>

#define SHM_NAME "pldk-world"
#define SHM_MAGIC 0x646c726f776b6470ull /* "pdkworld" */
#define SHM_DOMAIN_MAGIC 0x69616d6f646b6470ull /* "pdkdomai" */
#define SHM_WINDOW_MAGIC 0x6f646e69776b6470ull /* "pdkwindo" */
#define SHM_VERSION 4u

#define SHM_PAGE 4096ull
#define SHM_FILE_BYTES (1ull << 56)
#define SHM_BUCKETS SHM_PAGE
#define SHM_NBUCKETS 4096u
#define SHM_LINE_BITS (SHM_BUCKETS + SHM_NBUCKETS * 8ull)
#define SHM_NLINES 16384u
#define SHM_LINES (1ull << 20)
#define SHM_FIRST (128ull << 20) /* also the bytes of the control mapping */

/*
 * A process, safe against reuse of its id: pid in the upper 22 bits, start time (field 22 of /proc/PID/stat) in the
 * lower 42. A start time of 0 means that it could not be read.
 */
#define SHM_CLAIM(pid, start) ((uint64_t)(pid) << 42 | ((start) & ((1ull << 42) - 1)))
#define SHM_CLAIM_PID(c) ((uint32_t)((c) >> 42))
#define SHM_CLAIM_START(c) ((c) & ((1ull << 42) - 1))

#define SHM_F_FAR (1u << 0) /* odd ranks are far, an agent moves the bytes */

/* shm_header.agent_state */
#define SHM_AGENT_NONE 0u
#define SHM_AGENT_RUNS 1u
#define SHM_AGENT_DEAD 2u

/**
 * struct shm_header - start of the file
 * @magic: SHM_MAGIC, written last
 * @version: SHM_VERSION
 * @size: sizeof(struct shm_header) of the creator
 * @file_bytes: size of the file (less than SHM_FILE_BYTES under RLIMIT_FSIZE)
 * @next: where the next domain or window goes
 * @creator: claim of the process that made the world
 * @world: offset of the world's domain
 * @created_ns: CLOCK_MONOTONIC
 * @nranks: ranks of the world
 * @flags: SHM_F_*
 * @judge: claim of the process that looks for deadlocks right now, or 0
 * @judge_ns: since when
 * @next_domain: number for the next domain
 * @next_verdict: number of the newest verdict
 * @agent: claim of the agent of far peers, or 0
 * @agent_state: SHM_AGENT_*
 * @agent_name: abstract socket name of the agent, 128 random bits
 * @far: 0, or offset of a struct shm_far a rank, then (from the next page on) SHM_BOUNCE_BYTES a rank
 * @pid_ns: PID namespace of the rank that joined first, and so of all; 0 before
 */
struct shm_header {
	uint64_t magic;
	uint32_t version;
	uint32_t size;
	uint64_t file_bytes;
	uint64_t next;
	uint64_t creator;
	uint64_t world;
	uint64_t created_ns;
	uint32_t nranks;
	uint32_t flags;
	uint64_t judge;
	uint64_t judge_ns;
	uint64_t next_domain;
	uint32_t next_verdict;
	uint32_t agent_state;
	uint64_t agent;
	uint8_t agent_name[16];
	uint64_t far;
	uint64_t pid_ns;
};

/* Window table of a domain: one word a window id. 0 is free; else page number of the window and a count of attaches. */
#define SHM_NWINDOWS (PLD_WINDOW_ID_SYSTEM + PLD_SYSTEM_WINDOWS)
#define SHM_SLOT(page, count) ((uint64_t)(page) << 20 | ((count)&0xfffff))
#define SHM_SLOT_PAGE(w) ((w) >> 20)
#define SHM_SLOT_COUNT(w) ((w)&0xfffff)
#define SHM_SLOTS_PER_PAGE (SHM_PAGE / 8)
#define SHM_TABLE_PAGES ((SHM_NWINDOWS + SHM_SLOTS_PER_PAGE - 1) / SHM_SLOTS_PER_PAGE)

#define SHM_NVERDICTS 8u
#define SHM_VERDICT_BYTES (4 * SHM_PAGE)
#define SHM_VERDICT_ENTRIES ((uint32_t)((SHM_VERDICT_BYTES - 32) / sizeof(struct pld_ledger_entry)))

/**
 * struct shm_verdict - waits that were proved hopeless, as they stood; four pages
 * @number: of the verdict, stored last; 0 while it is being written
 * @nentries: how many there were (only SHM_VERDICT_ENTRIES are kept)
 * @entry_size: sizeof(struct pld_ledger_entry)
 * @time_ns: when
 * @entries: the waits
 */
struct shm_verdict {
	uint32_t number;
	uint32_t nentries;
	uint32_t entry_size;
	uint32_t reserved;
	uint64_t time_ns;
	uint64_t reserved64;
	struct pld_ledger_entry entries[SHM_VERDICT_ENTRIES];
};

/**
 * struct shm_domain - first page of a domain
 * @magic: SHM_DOMAIN_MAGIC
 * @size: sizeof(struct shm_domain)
 * @nranks: ranks
 * @id: number of the domain in this file; the world is 0
 * @parent: number of the parent domain, or ~0
 * @bytes: of the whole domain; it may be mapped as one piece
 * @next: offset of the next domain of the chain, or 0
 * @key: as given to subset()
 * @next_generation: of windows
 * @status: offset from the domain's start: struct pld_status, members behind it
 * @ranks: offset from the domain's start: struct shm_rank a rank
 * @windows: offset from the domain's start: the window table
 * @verdicts: offset from the domain's start: SHM_NVERDICTS x struct shm_verdict; number n stands at n mod 8
 * @table_bits: which pages of the window table are reserved
 */
struct shm_domain {
	uint64_t magic;
	uint32_t size;
	uint32_t nranks;
	uint64_t id;
	uint64_t parent;
	uint64_t bytes;
	uint64_t next;
	uint32_t key;
	uint32_t next_generation;
	uint32_t status;
	uint32_t ranks;
	uint32_t windows;
	uint32_t verdicts;
	uint64_t table_bits[(SHM_TABLE_PAGES + 63) / 64];
};

/**
 * struct shm_rank - what a rank of a domain has beside its struct pld_member
 * @doorbell: futex: every thread of the rank sleeps here; incremented to wake them
 * @sleeping: threads that sleep here or are about to: nobody calls futex(2) for 0
 * @claim: its process; set before it counts as joined
 * @end: 0, or how the membership ended: PLD_MEMBER_* << 32 | status. The one word that decides it; the member's state
 *       is a copy that anybody may complete
 * @since_ns: CLOCK_MONOTONIC of the last change of state
 * @world_rank: its rank in the world
 * @reaper: 0, 1 + rank of the one that closes the windows of this dead rank, or SHM_REAPED
 * @pending: 0, or start of file space that it is about to publish or has just taken away: if it dies, the reaper
 *           gives the space back
 * @pending_end: where that space ends
 */
struct shm_rank {
	uint32_t doorbell;
	uint32_t sleeping;
	uint32_t reserved1[14];
	uint64_t claim;
	uint64_t end;
	uint64_t since_ns;
	uint32_t world_rank;
	uint32_t reaper;
	uint64_t pending;
	uint64_t pending_end;
	uint64_t reserved2[2];
};

#define SHM_REAPED (~0u)
#define SHM_END(state, status) ((uint64_t)(state) << 32 | (uint32_t)(status))
#define SHM_END_STATE(e) ((uint32_t)((e) >> 32))
#define SHM_END_STATUS(e) ((int32_t)(uint32_t)(e))
#define SHM_STATUS_UNKNOWN (-1) /* noticed without a launcher: only a parent learns how a process ended */

#define SHM_ALLOCATED (1u << 0)
#define SHM_FAILED (1u << 1)

/**
 * struct shm_window - page before the slabs of a window
 * @magic: SHM_WINDOW_MAGIC
 * @size: sizeof(struct shm_window)
 * @id: window id
 * @kind: PLD_WINDOW_*
 * @flags: PLD_WINDOW_F_*
 * @bytes: of a slab as asked for
 * @tag: as asked for
 * @stride: bytes from slab to slab
 * @slabs: offset of rank 0's slab
 * @end: offset behind the last slab
 * @domain: number of the domain
 * @generation: of the window
 * @state: SHM_ALLOCATED when all memory is there, SHM_FAILED when it could not be had
 * @error: errno then
 * @creator: rank that made it
 * @page_bytes: page size got
 * @done: memory up to this offset is reserved; whoever opens the window helps
 * @created_ns: CLOCK_MONOTONIC
 * @open: bit r: rank r has it open
 */
struct shm_window {
	uint64_t magic;
	uint32_t size;
	uint32_t id;
	uint32_t kind;
	uint32_t flags;
	uint64_t bytes;
	uint64_t tag;
	uint64_t stride;
	uint64_t slabs;
	uint64_t end;
	uint64_t domain;
	uint32_t generation;
	uint32_t state;
	int32_t error;
	uint32_t creator;
	uint32_t page_bytes;
	uint32_t reserved;
	uint64_t done;
	uint64_t created_ns;
	uint64_t open[PLD_MAX_RANKS / 64];
};

#define SHM_LINE_PREDS 120u
#define SHM_VERDICT(gen, number) ((uint64_t)(gen) << 32 | (number))
#define SHM_VERDICT_GEN(v) ((uint32_t)((v) >> 32))
#define SHM_VERDICT_NUMBER(v) ((uint32_t)(v))

/**
 * struct shm_pred - a predicate in the ledger
 * @cell: offset of the cell
 * @expected: value
 * @from: rank that will notify it, or PLD_RANK_ANY
 * @cmp: PLD_CMP_*
 * @window_id: whose cell
 * @index: of the cell
 */
struct shm_pred {
	uint64_t cell;
	int64_t expected;
	uint32_t from;
	uint32_t cmp;
	uint32_t window_id;
	uint32_t index;
};

/**
 * struct shm_line - a thread that sleeps; one page
 * @owner: claim of its process, 0 if the line is free. Lines of rank r of the world are r, r + P, r + 2P, ...
 * @gen: odd while it waits
 * @tid: thread id
 * @domain: offset of the domain it waits in
 * @rank: in that domain
 * @world_rank: in the world
 * @npreds: predicates of the wait; only SHM_LINE_PREDS are written
 * @flags: PLD_WAIT_F_*
 * @site: call site
 * @since_ns: CLOCK_MONOTONIC when it began to sleep
 * @deadline_ns: or PLD_DEADLINE_NEVER
 * @verdict: 0, or SHM_VERDICT: the wait of that @gen is hopeless, by the verdict of that number. Of another @gen: void
 * @preds: the predicates
 */
struct shm_line {
	uint64_t owner;
	uint32_t gen;
	uint32_t tid;
	uint64_t domain;
	uint32_t rank;
	uint32_t world_rank;
	uint32_t npreds;
	uint32_t flags;
	uint32_t site;
	uint32_t reserved32;
	uint64_t since_ns;
	uint64_t deadline_ns;
	uint64_t verdict;
	uint64_t reserved[23];
	struct shm_pred preds[SHM_LINE_PREDS];
};

/**
 * struct shm_far - a rank in a world with far peers; its bounce area stands behind all of these
 * @sent: number of the last message that this rank gave to the agent. A rank with messages under way is not blocked
 * @executed: number of the last message that the agent carried out; they are carried out in order
 * @refused: first message that the agent refused since the rank last read it (and set it to 0); 0 is none, and
 * @refused_errno: why (negative)
 * @is_welcome: the agent knows this rank
 */
struct shm_far {
	uint64_t sent;
	uint64_t reserved1[7];
	uint64_t executed;
	uint64_t refused;
	int32_t refused_errno;
	uint32_t is_welcome;
	uint64_t reserved2[5];
};

/* Bytes of the area that a rank's gets come back through. */
#define SHM_BOUNCE_BYTES (1ull << 20)

_Static_assert(sizeof(struct shm_header) <= SHM_PAGE, "header page");
_Static_assert(sizeof(struct shm_domain) <= SHM_PAGE, "domain page");
_Static_assert(sizeof(struct shm_window) <= SHM_PAGE, "window page");
_Static_assert(sizeof(struct shm_far) == 128, "far lines");
_Static_assert(sizeof(struct shm_rank) == 128, "rank lines");
_Static_assert(sizeof(struct shm_line) == SHM_PAGE, "ledger line");
_Static_assert(sizeof(struct shm_verdict) <= SHM_VERDICT_BYTES, "verdict slot");
_Static_assert(SHM_LINE_BITS + SHM_NLINES / 8 <= SHM_LINES, "control area");
_Static_assert(SHM_LINES + SHM_NLINES * SHM_PAGE <= SHM_FIRST, "control area");

#endif /* _PLDK_SHM_LAYOUT_H */
