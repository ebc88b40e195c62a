#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# bench-peers: its arithmetic on a recorded file, and its turns with a pldbench and an MPI that are made up here. How
# fast anything is belongs to no test.

# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2317 # what tools.sh reads; functions that "is" calls
. "$(dirname "$0")/tools.sh"
tool=$tools/bench-peers
limit=60000
# Nothing here depends on a provider, and a slow VM would take minutes.
[ "${PLDK_PROVIDER:-}" != dev ] || { echo "1..0 # SKIP the same without /dev/pld"; exit 4; }
needs "$tool" "$(command -v python3 || echo python3)"

# record CONFIG PLACEMENT OP RANKS BYTES BEFORE AFTER MEDIAN...: launches, as they are kept.
record() {
	local ns
	for ns in "${@:8}"; do
		printf '{"config":"%s","placement":"%s","op":"%s","ranks":%s,"bytes":%s,"probe_before":%s,"probe_after":%s,' "${@:1:7}"
		printf '"median":%s,"provider":"shm","mode":"auto","build":"x"}\n' "$ns"
	done >>"$work/kept.jsonl"
}

# has KEY VALUE LINE-PATTERN: in the one JSON line that matches.
has() {
	local line
	line=$(grep -E -- "$3" "$out")
	[ "$(wc -l <<<"$line")" != 1 ] || ! grep -qE -- "\"$1\": $2[,}]" <<<"$line" || return 0
	echo "# expected $1 $2 in: $line"
	return 1
}

# The median of pldk is 1 us whatever the two dropped launches say; of the peers b is the best, though c is not far behind
# and d, with one launch, would win.
record pldk window allreduce 2 1048576 400 410 900 1000 1100
record pldk window allreduce 2 1048576 100 410 1 1
record openmpi:a private allreduce 2 1048576 400 400 3000 3000 3000
record openmpi:b private allreduce 2 1048576 400 499 1400 1600 1500
record openmpi:b private allreduce 2 1048576 400 501 10 10
record openmpi:c private allreduce 2 1048576 400 400 1700 1700 1700
record openmpi:d private allreduce 2 1048576 400 400 100
# The same cell in the other state: slower than the peer.
record pldk window allreduce 2 1048576 100 110 2000 2000 2000
record openmpi:a private allreduce 2 1048576 199 160 1000 1000 1000
# Private memory: compared from 4 KiB to 1 MiB, reported elsewhere.
record pldk private allreduce 2 4096 400 400 2000 2000 2000
record openmpi:a private allreduce 2 4096 400 400 1900 1900 1900
record pldk private allreduce 2 256 400 400 2000 2000 2000
record openmpi:a private allreduce 2 256 400 400 1900 1900 1900
# A ratio may be good enough and the time not; a goal is the one of the nearest size; where there is none it is 1.1.
record pldk none barrier 2 0 400 400 260 260 260
record openmpi:a none barrier 2 0 400 400 1000 1000 1000
record pldk window allreduce 2 65536 400 400 1000 1000 1000
record openmpi:a private allreduce 2 65536 400 400 1840 1840 1840
record pldk window scan 4 8 400 400 1000 1000 1000
record openmpi:a private scan 4 8 400 400 1090 1090 1090
record pldk window reduce 4 8 400 400 1000 1000

table() { run 0 --table --state "$work/kept.jsonl" --launches 3; }
is "a recorded comparison makes a table" table
is "the median leaves out launches during which the machine changed" has median_us 1.0 '"bytes": 1048576.*"state": "S"'
is "and the best peer with enough launches counts" has peer '"openmpi:b"' '"bytes": 1048576.*"state": "S"'
is "ratio is peer over pldk" has ratio 1.5 '"bytes": 1048576.*"state": "S"'
is "a goal that is just reached is met" has met true '"bytes": 1048576.*"state": "S"'
is "states are compared for themselves" has ratio 0.5 '"bytes": 1048576.*"state": "F"'
is "each with its goal" has goal 1.95 '"bytes": 1048576.*"state": "F"'
is "private memory from 4 KiB must not be slower" has met false '"bytes": 4096'
is "and is asked nothing below" has met null '"bytes": 256'
is "a time is part of a goal" has met false '"op": "barrier"'
is "the goal of the size itself" has goal 1.84 '"bytes": 65536'
is "the general aim where there is no row" has goal 1.1 '"op": "scan"'
is "verdict on windows" says '^data in windows: .*DOES NOT HOLD, slower in 1 of 5:$'
is "verdict on private memory" says '^data in private memory, 4 KiB to 1 MiB: .*DOES NOT HOLD, slower in 1 of 1:$'
is "what lacks launches is told" says '^unfinished.*reduce of 4 8$'
never_fast() { ! grep -vE '"probe_before":(100|199)' "$work/kept.jsonl" >"$work/slow.jsonl"; run 0 --table --state "$work/slow.jsonl" --launches 3 && says '^state F .*did not occur'; }
is "a state that did not occur is told" never_fast

# A machine with an MPI of which one setting does not start. The made-up programs write a line for each launch.
mkdir -p "$work/bin" "$work/peers"
touch "$work/peers/mpi_bench.openmpi"
cat >"$work/bin/mpirun.openmpi" <<'MPI'
#!/bin/sh
case $* in *"pml ucx"*) echo "no transport" >&2; exit 1 ;; *coll_sm*) ns=1500 ;; *none*) ns=4000 ;; *) ns=3000 ;; esac
while [ $# -gt 5 ]; do shift; done
echo "$1" >>"$LAUNCHES"
echo "a warning on stdout"
for n in $(echo "$3" | tr , ' '); do echo "{\"op\":\"$2\",\"ranks\":2,\"bytes\":$n,\"provider\":\"mpi\",\"median\":$ns}"; done
MPI
cat >"$work/bin/pldbench" <<'PLDK'
#!/bin/sh
[ "$1" != --probe ] || { echo '{"probe_ns":150}'; exit; }
echo pldk >>"$LAUNCHES"
after=150
[ "$(grep -c pldk "$LAUNCHES")" != 2 ] || after=450
while [ $# -gt 1 ]; do case $1 in --ops) op=$2 ;; --bytes) bytes=$2 ;; esac; shift; done
for n in $(echo "$bytes" | tr , ' '); do
	echo "{\"op\":\"$op\",\"ranks\":2,\"bytes\":$n,\"provider\":\"shm\",\"median\":1000,\"probe_before\":150,\"probe_after\":$after}"
done
PLDK
chmod +x "$work/bin/"*
export LAUNCHES="$work/launches"
compare() {
	: >"$LAUNCHES"
	PATH="$work/bin:$PATH" run 0 --compare openmpi --ops allreduce --ranks 2 --bytes 8,4K --placement window --launches 3 \
		--build "$work" --pldbench "$work/bin/pldbench"
}
launches() { [ "$(grep -cx -- "$1" "$LAUNCHES")" = "$2" ] || { echo "# $1: $(grep -cx -- "$1" "$LAUNCHES") launches"; return 1; }; }

is "launches take turns" compare
is "a setting that does not start is told" says 'openmpi:ucx is left out: it ended with 1: no transport'
is "a dropped launch is made up for" launches pldk 4
# One launch more shows that the setting starts.
is "so have the best two settings" launches openmpi:coll_sm 5
is "one is enough of those that are far behind" launches openmpi:no_cma 2
is "result" has peer '"openmpi:coll_sm"' '"bytes": 8,'
is "both sizes of one launch" has ratio 1.5 '"bytes": 4096'
is "the same again" compare
is "measures nothing twice" launches pldk 0
is "and prints the same" has ratio 1.5 '"bytes": 4096'

# A machine without MPI: what this test needs itself, and nothing else on PATH.
mkdir "$work/poor"
ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$work/poor/python3"
for program in env date timeout; do ln -s "$(command -v $program)" "$work/poor/"; done
nobody() { PATH="$work/poor" run 0 --build "$work" --pldbench "$work/bin/pldbench" && [ ! -s "$out" ]; }
is "without peers there is nothing to compare, and that is no failure" nobody
is "both are named" says 'mpich is left out: mpirun.mpich is not on PATH; tools/setup bench installs it'
is "with what to do" last_says 'no peer is here to compare with'

tap_done
