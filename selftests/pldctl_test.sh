#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# pldctl ps: jobs are seen from outside while they run, with the right numbers, and are gone when they are gone.
# Runs on the provider that PLDK_PROVIDER names. PLDK_TOOLS and PLDK_BUILD say where the programs are. On a slow machine
# PLDK_TEST_SCALE below 100 stretches the time limits, as in the other tests.

# shellcheck disable=SC2317 # functions that "is" calls
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tools=${PLDK_TOOLS:-$here/../tools}
work=$(mktemp -d)
out=$work/out list=$work/list
job='' count=0 failed=0
slow=$((100 / ${PLDK_TEST_SCALE:-100}))
[ $slow -ge 1 ] || slow=1
trap '[ -z "$job" ] || kill -9 "$job" 2>/dev/null; rm -rf "$work"' EXIT

echo "TAP version 13"
for helper in "$here/pldrun_helper" "${PLDK_BUILD:-$here/../build}/selftests/pldrun_helper" missing; do
	[ ! -x "$helper" ] || break
done
if [ ! -x "$tools/pldctl" ] || [ "$helper" = missing ]; then
	echo "1..0 # SKIP $tools/pldctl or pldrun_helper is not built"
	exit 4
fi

is() {
	local name=$1
	shift
	count=$((count + 1))
	if "$@"; then
		echo "ok $count - $name"
	else
		sed 's/^/# /' "$list.job" 2>/dev/null | head -n 40 | cut -c 1-200
		sed 's/^/# job: /' "$out" 2>/dev/null | head -n 20 | cut -c 1-200
		echo "not ok $count - $name"
		failed=1
	fi
}

# start ARGUMENT...: pldrun in the background.
start() {
	"$tools/pldrun" -q --timeout 280 "$@" >"$out" 2>&1 </dev/null &
	job=$!
}

stop() {
	kill -9 "$job"
	wait "$job" 2>/dev/null
	job=''
}

# What else pldctl ps is to be asked.
ps_options=()

# shows TEXT...: does the part of the list that is about our job have a line for each extended regular expression?
shows() {
	local text
	"$tools/pldctl" ps "${ps_options[@]}" >"$list" || return 1
	sed -n "/pid $job /,/^domain/p" "$list" >"$list.job"
	for text; do
		grep -qE -- "$text" "$list.job" || return 1
	done
}

# Until shows succeeds; ten seconds and what looking takes at most.
comes_to_show() {
	local tries=0
	until shows "$@"; do
		tries=$((tries + 1))
		[ $tries -lt $((200 * slow)) ] || return 1
		sleep 0.05
	done
}

usage_error() {
	local code=0
	"$tools/pldctl" "$@" >"$list" 2>&1 || code=$?
	[ "$code" = 2 ] && [ "$(wc -l <"$list")" = 1 ]
}

is "needs a command" usage_error
is "refuses an unknown command" usage_error explode
is "refuses an unknown option" usage_error ps --bogus
is "refuses an argument" usage_error ps everything
version() { [ "$("$tools/pldctl" --version)" = "pldctl $("$tools/pldrun" --version | sed 's/^pldrun //')" ]; }
is "--version is that of pldrun" version
helps() { "$tools/pldctl" --help >"$list" && grep -q '^  ps ' "$list" && "$tools/pldctl" ps --help >"$list" && grep -q -- --json "$list"; }
is "--help names the commands and their options" helps

start -n 4 "$helper" 2:sleep=270000 init
is "shows who has not joined" comes_to_show 'joined 3/4, missing rank 2' '^ +2 absent' '^ +0 alive'
stop

start -n 3 --device 5,6,9 "$helper" init window=12288 signal 2:sleep=270000 wait
is "shows ranks with their devices" comes_to_show 'joined 3/3' '^ +0 alive +[0-9]+ +5 ' '^ +2 alive +[0-9]+ +9 '
is "shows windows with their sizes and who has them open" comes_to_show '^ +[0-9]+ data +12288 +3 ' '^ +[0-9]+ signal +[0-9]+ +3 '
is "shows which process holds it" comes_to_show "^  held by pid $job \(pldrun\)"
hides_library() { shows '^ +0 data ' && ! grep -qE '^ +655[0-9]+ ' "$list.job"; }
is "does not show the library's own windows" hides_library
ps_options=(--all)
sorted() { shows '^ +65535 library ' && grep -E '^ +[0-9]+ (data|signal|library) ' "$list.job" | awk '{ print $1 }' | sort -nc; }
is "unless asked for all, sorted by number" sorted
ps_options=()
is "shows waiters: cell, expected and seen" comes_to_show '^ +1 +[0-9]+ +[0-9]+ +0 >= 42 +0 +any +[0-9.]+s'

json_is_true() {
	command -v python3 >/dev/null || return 0
	"$tools/pldctl" ps --json "$@" >"$list" && python3 - "$job" "$list" "$@" <<'PYTHON'
import json, sys
job, path = int(sys.argv[1]), sys.argv[2]
domains = [d for d in json.load(open(path))["domains"] if d["pid"] == job and d["parent"] is None]
assert len(domains) == 1, domains
d = domains[0]
assert (d["nranks"], d["joined"], d["missing"], d["dead"], d["first_dead"]) == (3, 3, [], 0, None), d
assert [r["device"] for r in d["ranks"]] == [5, 6, 9], d["ranks"]
assert all(r["state"] == "alive" and r["pid"] > 0 for r in d["ranks"]), d["ranks"]
data = [w for w in d["windows"] if w["kind"] == "data" and w["bytes"] == 12288]
assert len(data) == 1 and data[0]["opened"] == 3, d["windows"]
library = [w for w in d["windows"] if w["kind"] == "library"]
assert len(d["windows"]) - len(library) == 2 and (len(library) >= 3) == ("--all" in sys.argv), d["windows"]
assert not library or d["window_count"] == len(d["windows"]), d
assert d["bytes"] >= 3 * 12288, d
assert {"pid": job, "comm": "pldrun"} in d["holders"], d["holders"]
waits = [w for w in d["waiters"] if w["expected"] == 42]
assert sorted(w["rank"] for w in waits) == [0, 1], d["waiters"]
assert all(w["cmp"] == ">=" and w["seen"] == 0 and w["from"] is None and w["seconds"] >= 0 for w in waits), waits
PYTHON
}
is "--json has the same facts" json_is_true
is "and with --all as well" json_is_true --all
stop

start -n 3 "$helper" init 1:sleep=270000 signal
is "shows waiters inside a collective: which call, for whom" \
	comes_to_show '^ +0 +[0-9]+ inside (window_create|a collective) \(call [1-9]\), waits for rank 1 +[0-9.]+s'
# The ledgers of /dev/pld's ranks are not readable from outside.
names_it() { grep -q '^domain dev:' "$list.job" || grep -q ' inside window_create ' "$list.job"; }
is "by its name where that can be read" names_it
stop

start -n 2 "$helper" init finalize sleep=270000
ps_options=(--all)
is "shows a world that nobody uses any more" comes_to_show 'joined 2/2, finalised 2' '^ +1 finalised'
ps_options=()
hides_unused() { ! shows . && grep -q 'without a living rank' "$list"; }
is "only if asked for all" hides_unused
stop

is_gone() { "$tools/pldctl" ps >"$list" && ! grep -q "pid $pid " "$list"; }
start -n 2 "$helper" init sleep=270000
pid=$job
comes_to_show 'joined 2/2'
stop
comes_to_be_gone() {
	for _ in $(seq $((200 * slow))); do
		! is_gone || return 0
		sleep 0.05
	done
	return 1
}
is "a killed job is gone from the list" comes_to_be_gone

start -n 2 "$helper" init 1:abort=77 sleep=270000
is "shows an abort" comes_to_show 'aborted( by rank 1)? with code 77'
stop

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$work"
	start -n 1 "$helper" init sleep=270000
	comes_to_show 'joined 1/1'
	hides() { setpriv --reuid 65534 --regid 65534 --clear-groups "$tools/pldctl" ps >"$list" && ! grep -q "pid $job " "$list" && grep -q 'were not looked at' "$list"; }
	is "does not show other users' jobs, and says so" hides
	stop
fi

echo "1..$count"
exit $failed
