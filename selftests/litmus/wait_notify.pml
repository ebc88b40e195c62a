/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Model of sleeping and waking: can a waiter sleep for ever although what it waits for has happened?
 *
 * The protocol is the one that kmod/wait.c ("Sleeping and waking") and the embedded provider share:
 *
 *   waiter                                   notifier
 *     sleepers++                               value += 1
 *     (A) full barrier                         (B) full barrier
 *     seen = bell                              if sleepers != 0:
 *     if value holds: sleepers--, done             bell++
 *     sleep while bell == seen                     wake all who sleep
 *     sleepers--, again
 *
 * Memory is weaker than any machine we run on: what a process adds goes to its own buffer and reaches memory later,
 * in any order, while its loads read memory at once. A full barrier waits until its buffer is empty. So an atomic
 * add is atomic but orders nothing, and leaving out a barrier is a real fault.
 *
 * Spin looks at every interleaving. "Sleeps for ever" is an invalid end state: the waiter stands in its sleep and
 * nobody is left to move.
 *
 * Variants (selftests/litmus/run.sh runs them all):
 *   QUEUE         the module: a wait queue instead of a bell; who wakes sets the waiters' flag under its lock
 *   EVENT         one notifier dies instead; the death notice is a word of the status page and rings every bell
 * Faults that must be found:
 *   NO_BARRIER_A, NO_BARRIER_B, NO_RECHECK (sleeps without looking at the value again),
 *   LATE_BELL (bell is read after the value), NO_RING (an event that counts, but rings nobody)
 */

#define WAITERS 2
#define NOTIFIERS 2
#define PROCS (WAITERS + NOTIFIERS)

/* Words of shared memory */
#define VALUE 0
#define SLEEPERS 1
#define BELL 2
#define GONE 3 /* a notifier died (EVENT) */
#define WORDS 4

byte mem[WORDS];

/* What process p has added and memory has not yet seen: one count for each word. */
typedef row { byte word[WORDS] };
row pending[PROCS];

bool asleep[WAITERS];
bool queued[WAITERS];
byte left = PROCS;

#define ADD(p, w) pending[p].word[w]++
#define FULL_BARRIER(p)                                                                                                \
	(pending[p].word[VALUE] == 0 && pending[p].word[SLEEPERS] == 0 && pending[p].word[BELL] == 0 &&                \
	 pending[p].word[GONE] == 0)

#ifdef NO_BARRIER_A
#define BARRIER_A(p) skip
#else
#define BARRIER_A(p) FULL_BARRIER(p)
#endif
#ifdef NO_BARRIER_B
#define BARRIER_B(p) skip
#else
#define BARRIER_B(p) FULL_BARRIER(p)
#endif

/* What a waiter waits for: both notifiers notified, or one is known to be dead. */
#ifdef EVENT
#define HOLDS (mem[VALUE] == NOTIFIERS || mem[GONE] != 0)
#else
#define HOLDS (mem[VALUE] == NOTIFIERS)
#endif

/* The system call that wakes is a full barrier for its caller, and takes the lock that going to sleep takes. */
inline wake_all(me)
{
	FULL_BARRIER(me);
	d_step {
		i = 0;
		do
		:: i < WAITERS ->
			asleep[i] = false;
			queued[i] = false;
			i++
		:: else -> break
		od;
		i = 0
	}
}

proctype waiter(byte me)
{
	byte seen;
	bool holds;

	do
	:: true ->
		/* Spinning ends in a last look that finds nothing. */
		holds = HOLDS;
		if
		:: holds -> break
		:: else
		fi;
#ifdef QUEUE
		queued[me] = true;
#endif
		ADD(me, SLEEPERS);
		BARRIER_A(me);
#ifdef LATE_BELL
		holds = HOLDS;
		seen = mem[BELL];
#else
		seen = mem[BELL];
#ifndef NO_RECHECK
		holds = HOLDS;
#endif
#endif
		if
		:: holds
		:: else ->
#ifdef QUEUE
			/* schedule(): the state was set before the check, so a wake in between has taken us off the queue. */
			!queued[me]
#else
			/* futex(FUTEX_WAIT) compares and goes to sleep under the lock that a wake takes. */
			FULL_BARRIER(me);
			atomic {
				if
				:: mem[BELL] == seen -> asleep[me] = true
				:: else
				fi
			}
			!asleep[me]
#endif
		fi;
		FULL_BARRIER(me);
		mem[SLEEPERS]--
	od;
	left--
}

proctype notifier(byte me)
{
	byte i;

#ifdef EVENT
	if
	:: me == PROCS - 1 ->
		/* It dies before it notifies; its launcher, or a peer that watches it, says so. */
		ADD(me, GONE);
		BARRIER_B(me);
#ifndef NO_RING
		ADD(me, BELL);
		wake_all(me);
#endif
		goto done
	:: else
	fi;
#endif
	ADD(me, VALUE);
	BARRIER_B(me);
	if
	:: mem[SLEEPERS] != 0 ->
		ADD(me, BELL);
		wake_all(me)
	:: else
	fi;
done:
	left--
}

#define LAND(p, w) atomic { pending[p].word[w] != 0 -> pending[p].word[w]--; mem[w]++ }

/* Moves what is pending to memory, whenever and in whichever order it likes; each add is atomic. */
proctype memory()
{
end:
	do
	:: LAND(0, SLEEPERS)
	:: LAND(1, SLEEPERS)
	:: LAND(2, VALUE)
	:: LAND(2, BELL)
	:: LAND(3, VALUE)
	:: LAND(3, BELL)
	:: LAND(3, GONE)
	:: left == 0 -> break
	od
}

init
{
	atomic {
		run memory();
		run waiter(0);
		run waiter(1);
		run notifier(2);
		run notifier(3)
	}
}
