#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# selftests/litmus/run.sh: checks wait_notify.pml exhaustively, and that each fault put into it is found. TAP on stdout.

set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$here/../tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# explore DEFINES...: sets states and errors; fails if the search was not exhaustive.
explore() {
	local report
	rm -rf "${work:?}"/*
	cd "$work" || return 1
	spin -a "$@" "$here/wait_notify.pml" >spin.log 2>&1 || { cat spin.log; return 1; }
	gcc -O2 -w -DSAFETY -DVECTORSZ=2048 -o pan pan.c || return 1
	report=$(./pan -m1000000 -w24 2>&1)
	cd "$here" || return 1
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' <<<"$report")
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' <<<"$report")
	if [ -z "$errors" ] || grep -qE 'max search depth too small|Search not completed|out of memory' <<<"$report"; then
		# A found error ends the search early, as it should.
		[ "${errors:-0}" != 0 ] || { echo "$report"; return 1; }
	fi
}

# nobody_sleeps NAME DEFINES...
nobody_sleeps() {
	local name=$1
	shift
	explore "$@" || { tap_result 1 "$name: the search did not complete"; return; }
	tap_result "$([ "$errors" = 0 ]; echo $?)" "$name: no waiter sleeps for ever ($states states)"
}

# found NAME DEFINES...
found() {
	local name=$1
	shift
	explore "$@" || { tap_result 1 "$name: the search failed"; return; }
	tap_result "$([ "$errors" != 0 ]; echo $?)" "$name: the lost wake-up is found"
}

command -v spin >/dev/null || { echo "1..0 # SKIP spin is not installed (tools/setup test)"; exit 4; }

nobody_sleeps "bell"
nobody_sleeps "bell, a notifier dies" -DEVENT
nobody_sleeps "wait queue" -DQUEUE
nobody_sleeps "wait queue, a notifier dies" -DQUEUE -DEVENT
for variant in "" -DQUEUE; do
	for fault in NO_BARRIER_A NO_BARRIER_B NO_RECHECK; do
		# shellcheck disable=SC2086 # empty or one word
		found "${variant:+wait queue, }$fault" $variant "-D$fault"
	done
done
found "LATE_BELL" -DLATE_BELL
found "EVENT NO_RING" -DEVENT -DNO_RING
tap_done
