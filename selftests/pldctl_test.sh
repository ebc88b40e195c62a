#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# pldctl caps; pldctl ps: jobs are seen from outside while they run, with the right numbers, and are gone when they are gone.
# Runs on the provider that PLDK_PROVIDER names.

# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2317 # what tools.sh reads; functions that "is" calls
. "$(dirname "$0")/tools.sh"
tool=$tools/pldctl
list=$work/list
needs "$tool" "$helper"

# What else pldctl ps is to be asked.
ps_options=()

# shows TEXT...: does the part of the list that is about our job have a line for each extended regular expression?
shows() {
	local text
	"$tool" ps "${ps_options[@]}" >"$list" || return 1
	sed -n "/pid $job /,/^domain/p" "$list" >"$list.job"
	for text; do
		grep -qE -- "$text" "$list.job" || return 1
	done
}

comes_to_show() { comes shows "$@" || { show list "$list.job"; return 1; }; }

is "needs a command" usage_error
is "refuses an unknown command" usage_error explode
is "refuses an unknown option" usage_error ps --bogus
is "refuses an argument" usage_error ps everything
version() { [ "$("$tool" --version)" = "pldctl $("$tools/pldrun" --version | sed 's/^pldrun //')" ]; }
is "--version is that of pldrun" version
helps() { run 0 --help && has_printed '^  ps ' && run 0 ps --help && has_printed --json; }
is "--help names the commands and their options" helps
full() { "$tool" ps >/dev/full 2>"$err"; [ $? = 1 ] && one_line && says 'cannot write to stdout'; }
is "fails when its list cannot be written" full

# H18: what the calls accept is in lib_coll_field_test.c; this is that list, printed.
caps() {
	run 0 caps && has_printed '^allreduce +ring +BF16 sum max min prod$' && has_printed '^broadcast +- +INT8$' &&
		has_printed '^barrier +- +-$' && [ "$(wc -l <"$out")" = 127 ]
}
is "lists the collectives that there are" caps

start -q -n 4 "$helper" "2:sleep=$forever" init
# K7: one rank does not reach init: which one?
is "shows who has not joined" comes_to_show 'joined 3/4, missing rank 2' '^ +2 absent' '^ +0 alive'
kill_job

start -q -n 3 --device 5,6,9 "$helper" init window=12288 signal "2:sleep=$forever" wait
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
	"$tool" ps --json "$@" >"$list" && python3 - "$job" "$list" "$@" <<'PYTHON'
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
kill_job

start -q -n 3 "$helper" init "1:sleep=$forever" signal
is "shows waiters inside a collective: which call, for whom" \
	comes_to_show '^ +0 +[0-9]+ inside (window_create|a collective) \(call [1-9]\), waits for rank 1 +[0-9.]+s'
# The ledgers of /dev/pld's ranks are not readable from outside.
names_it() { grep -q '^domain dev:' "$list.job" || grep -q ' inside window_create ' "$list.job"; }
is "by its name where that can be read" names_it
kill_job

start -q -n 2 "$helper" init finalize "sleep=$forever"
ps_options=(--all)
is "shows a world that nobody uses any more" comes_to_show 'joined 2/2, finalised 2' '^ +1 finalised'
ps_options=()
hides_unused() { ! shows . && grep -q 'without a living rank' "$list"; }
is "only if asked for all" hides_unused
kill_job

is_unlisted() { "$tool" ps >"$list" && ! grep -q "pid $pid " "$list"; }
start -q -n 2 "$helper" init "sleep=$forever"
pid=$job
comes_to_show 'joined 2/2'
kill_job
is "a killed job is gone from the list" comes is_unlisted

start -q -n 2 "$helper" init 1:abort=77 "sleep=$forever"
is "shows an abort" comes_to_show 'aborted( by rank 1)? with code 77'
kill_job

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$work"
	start -q -n 1 "$helper" init "sleep=$forever"
	comes_to_show 'joined 1/1'
	hides() { setpriv --reuid 65534 --regid 65534 --clear-groups "$tool" ps >"$list" && ! grep -q "pid $job " "$list" && grep -q 'were not looked at' "$list"; }
	is "does not show other users' jobs, and says so" hides
	kill_job
fi

tap_done
