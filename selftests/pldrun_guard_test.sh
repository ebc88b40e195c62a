#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# pldrun: nothing of a job outlives it, whichever process is killed or stopped, and when; agents of far peers included.
# Runs on the provider that PLDK_PROVIDER names.

# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2016,SC2046,SC2086,SC2317 # words for the ranks' shell; lists; functions that "is" calls
. "$(dirname "$0")/tools.sh"
needs "$tools/pldrun" "$helper"

# All that a job starts, and what that starts in turn, can be told by its environment.
mark=PLDK_TEST_MARK=pldrun_guard_test.$$
begin() { PLDK_TEST_MARK=${mark#*=} start "$@"; }
has_nothing_left() {
	left=$(grep -lzsxF "$mark" /proc/[0-9]*/environ)
	[ -z "$left" ]
}
nothing_is_left() {
	local environ
	comes has_nothing_left && return
	for environ in $left; do
		echo "# left: $(cat "${environ%/*}/comm" "${environ%/*}/stat" | tr '\n' ' ')"
		kill -9 "$(tr -dc 0-9 <<<"$environ")"
	done
	return 1
}

# A rank that waits for ever, as the child of a script, with a sibling that has left the group and the session.
script='setsid sleep 600 & "$0" init say=ready signal "0:sleep='$forever'" wait; exit 0'
begin_scripts() {
	begin -q -n 3 sh -c "$script" "$helper"
	await '\[0\] ready' && await '\[1\] ready' && await '\[2\] ready'
	runner=$(children_of $job | tr -d ' ')
}

good() { begin -q -n 3 "$helper" init gather finalize && ends_with 0 && nothing_is_left; }
failing() { begin -q -n 3 "$helper" init 1:exit=3 gather && ends_with 3 && nothing_is_left; }
rank_killed() {
	begin -q -n 3 "$helper" init say=ready signal "0:sleep=$forever" wait
	await '\[0\] ready'
	kill -9 $(children_of $(children_of $job) | cut -d ' ' -f 2)
	ends_with 137 && nothing_is_left
}
rank_stopped() {
	begin -q -n 3 "$helper" 1:raise=19 init gather
	comes has_stopped_rank
	kill_job
	nothing_is_left
}
has_stopped_rank() { grep -q '^State:.T' $(printf '/proc/%s/status ' $(children_of $(children_of $job))); }
pldrun_killed() { begin_scripts && kill_job && nothing_is_left; }
runner_killed() {
	begin_scripts
	kill -9 $runner
	ends_with 125 && nothing_is_left && last_says '^pldrun: the process that ran the job .* killed by SIGKILL; all ranks were ended$'
}
runner_stopped() {
	begin_scripts
	kill -STOP $runner
	kill_job
	nothing_is_left
}
# While it starts, runs, or ends: a job takes about as long as the longest of these.
any_moment() {
	local round
	for round in {0..24}; do
		begin -q -n 3 sh -c '"$0" init gather finalize; exit $?' "$helper"
		sleep "$(printf '0.%03d' $((round * 2)))"
		[ $1 = guard ] || kill -9 $(children_of $job 2>/dev/null) 2>/dev/null || true
		[ $1 = runner ] || kill -9 $job 2>/dev/null || true
		wait $job 2>/dev/null
		job=''
		nothing_is_left || return 1
	done
}

all() {
	is "a good job leaves nothing behind$1" good
	is "nor does one that fails$1" failing
	is "nor one with a rank that was killed$1" rank_killed
	is "nor one with a stopped rank, when pldrun is killed$1" rank_stopped
	is "kill -9 of pldrun ends ranks that are children of scripts, and what they started$1" pldrun_killed
	is "so does kill -9 of the process that runs the job, and pldrun says so$1" runner_killed
	is "kill -9 of pldrun while that one is stopped, too$1" runner_stopped
	is "kill -9 of pldrun at any moment leaves nothing$1" any_moment guard
	is "nor does kill -9 of the process that runs the job$1" any_moment runner
}
all ''
if [ "${PLDK_PROVIDER:-}" != dev ]; then
	export PLDK_PROVIDER=shm PLDK_SHM_FAR=1
	all ", with far peers"
fi

tap_done
