#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# pldbench: one JSON object a line for each measurement, with the promised keys and possible numbers. Not how fast:
# that is for people to judge, on a quiet machine.

set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pldbench=${PLDK_TOOLS:-$here/../tools}/pldbench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out err=$work/err
count=0 failed=0

echo "TAP version 13"
if [ ! -x "$pldbench" ]; then
	echo "1..0 # SKIP $pldbench is not built"
	exit 4
fi

is() {
	local name=$1
	shift
	count=$((count + 1))
	if "$@"; then
		echo "ok $count - $name"
	else
		sed 's/^/# /' "$out" "$err" | head -n 20
		echo "not ok $count - $name"
		failed=1
	fi
}

# run CODE ARGUMENT...: does it end with this code?
# shellcheck disable=SC2317
run() {
	local want=$1 code=0
	shift
	timeout -k 1 100 "$pldbench" "$@" >"$out" 2>"$err" </dev/null || code=$?
	[ "$code" = "$want" ]
}

# shellcheck disable=SC2317 # called through "is"
usage_error() { run 2 "$@" && [ "$(wc -l <"$err")" = 1 ] && [ ! -s "$out" ]; }

# measures LINES ARGUMENT...: are there so many lines, each with all keys and 0 < p10 <= median <= p90?
# shellcheck disable=SC2317
measures() {
	local lines=$1
	shift
	run 0 "$@" && [ "$(wc -l <"$out")" = "$lines" ] && awk '
		function value(key) {
			if (!match($0, "\"" key "\":[^,}]*")) { print "# no " key ": " $0; bad = 1; return 0 }
			return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
		}
		{
			if (value("op") == "" || value("provider") !~ /^"(dev|shm)"$/ || value("ranks") < 1 || value("bytes") < 0) bad = 1
			p10 = value("p10") + 0; median = value("median") + 0; p90 = value("p90") + 0
			if (!(0 < p10 && p10 <= median && median <= p90) || value("iterations") < 1) bad = 1
			value("probe_before"); value("probe_after")
		}
		END { exit bad }' "$out"
}

is "refuses an unknown option" usage_error --bogus
is "refuses an unknown operation" usage_error --ops barrier,teleport
is "refuses a size that is none" usage_error --bytes 4Q
is "refuses 0 ranks" usage_error --ranks 0
is "refuses an argument" usage_error barrier
is "notify and wait, spinning and sleeping" measures 2 --ops notify_wait --seconds 0.05
is "barrier with several numbers of ranks" measures 6 --ops barrier --ranks 1,2,3 --seconds 0.05
is "put and get by size" measures 6 --ops put,get --bytes 1,4K,1M --seconds 0.02
is "put with notify" measures 2 --ops put_notify --bytes 8,64K --seconds 0.02
is "allreduce, with all data touched" measures 2 --ops allreduce --bytes 8,64K --ranks 3 --touch --seconds 0.05
is "F1: more ranks than CPUs, with context switches" measures 1 --ops oversubscribed --seconds 0.3
# shellcheck disable=SC2317
counts_switches() { grep -qE '"voluntary_switches":[0-9]+,"involuntary_switches":[0-9]+,"cpu_seconds":[0-9.e-]+' "$out"; }
is "and their number" counts_switches

echo "1..$count"
exit $failed
