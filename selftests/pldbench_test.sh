#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# pldbench: one JSON object a line for each measurement, with the promised keys and possible numbers. Not how fast:
# that is for people to judge, on a quiet machine.

# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2317 # what tools.sh reads; functions that "is" calls
. "$(dirname "$0")/tools.sh"
tool=$tools/pldbench
limit=100000
needs "$tool"
collectives=broadcast,allgather,reduce_scatter,all_to_all,all_to_all_v,reduce,gather,scatter,scan,exscan

# measures LINES ARGUMENT...: are there so many lines, each with all keys and 0 < p10 <= median <= p90?
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
is "refuses a place" usage_error --placement shelf
is "refuses a mode" usage_error --mode tree
is "notify and wait, spinning and sleeping" measures 2 --ops notify_wait --seconds 0.05
is "barrier with several numbers of ranks" measures 6 --ops barrier --ranks 1,2,3 --seconds 0.05
is "put and get by size" measures 6 --ops put,get --bytes 1,4K,1M --seconds 0.02
is "put with notify" measures 2 --ops put_notify --bytes 8,64K --seconds 0.02
is "allreduce, with all data touched" measures 2 --ops allreduce --bytes 8,64K --ranks 3 --touch --seconds 0.05
tells() { grep -qE '"median_us":[0-9.e-]+,"probe_ns":([0-9.]+|null),"mode":"auto","placement":"'"$1"'"' "$out"; }
is "every collective" measures 10 --ops "$collectives" --bytes 64 --ranks 3 --seconds 0.01
is "from private memory" tells private
is "with data in windows, all of it touched" measures 10 --ops "$collectives" --bytes 64K --ranks 2 --touch \
	--placement window --seconds 0.01
is "and its place told" tells window
is "every mode of allreduce" measures 1 --ops allreduce --mode ring --bytes 4K --seconds 0.01
is "a size without an element for each block is left out" measures 1 --ops reduce_scatter --bytes 8,12 --ranks 3 --seconds 0.01
is "F1: more ranks than CPUs, with context switches" measures 1 --ops oversubscribed --seconds 0.3
counts_switches() { grep -qE '"voluntary_switches":[0-9]+,"involuntary_switches":[0-9]+,"cpu_seconds":[0-9.e-]+' "$out"; }
is "and their number" counts_switches
probes() { run 0 --probe && grep -qE '^\{"probe_ns":([0-9.]+|null)\}$' "$out"; }
is "the state of the machine alone" probes
compares() { run 2 --compare teleport && says "unknown peer 'teleport'"; }
[ ! -x "$tools/bench-peers" ] || is "--compare hands over to bench-peers, with all options" compares
full() { "$tool" --ops barrier --seconds 0.01 >/dev/full 2>"$err"; [ $? = 1 ] && one_line && says 'cannot write to stdout'; }
is "fails when its results cannot be written" full

tap_done
