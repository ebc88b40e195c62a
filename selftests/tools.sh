# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# What the tests of the tools share: sourced by *_test.sh, never run. A test sets $tool, the program that "run" runs.
#
# PLDK_TOOLS and PLDK_BUILD say where the programs are. On a slow machine PLDK_TEST_SCALE below 100 stretches the time
# limits, as in the other tests.

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$here/tap.sh"
tools=${PLDK_TOOLS:-$here/../tools}
work=$(mktemp -d)
out=$work/out err=$work/err
job=''
slow=$((100 / ${PLDK_TEST_SCALE:-100}))
[ $slow -ge 1 ] || slow=1
# shellcheck disable=SC2034 # for the tests: milliseconds of a sleep whose end no test sees
forever=1000000
limit=$((20000 * slow))
trap '[ -z "$job" ] || kill -9 "$job" 2>/dev/null; rm -rf "$work"' EXIT

for helper in "$here/pldrun_helper" "${PLDK_BUILD:-$here/../build}/selftests/pldrun_helper" missing; do
	[ ! -x "$helper" ] || break
done

# needs PROGRAM...: skip the whole test if one is not there.
needs() {
	local program
	echo "TAP version 13"
	for program; do
		[ ! -x "$program" ] || continue
		echo "1..0 # SKIP $program is not built"
		exit 4
	done
}

# show WORD FILE: its first lines explain a failure.
show() { sed "s/^/# $1: /" "$2" 2>/dev/null | head -n 40 | cut -c 1-200; }

# is NAME COMMAND...: a test that passes if the command succeeds.
is() {
	local name=$1 status=0
	shift
	"$@" || status=$?
	[ $status = 0 ] || { show stdout "$out"; show stderr "$err"; }
	tap_result $status "$name"
}

# timed CODE COMMAND...: does it end with this code, in less than $limit milliseconds? Its time is in $took.
timed() {
	local want=$1 code=0 start
	shift
	start=$(date +%s%N)
	timeout -k 1 $((limit / 1000 + 10 * slow)) "$@" >"$out" 2>"$err" </dev/null || code=$?
	took=$((($(date +%s%N) - start) / 1000000))
	[ "$code" = "$want" ] && [ $took -lt $limit ] && return
	echo "# $*: exit code $code after $took ms, expected $want in less than $limit ms"
	return 1
}

# run CODE ARGUMENT...: the same for $tool.
# shellcheck disable=SC2154 # the test sets it
run() { timed "$1" "$tool" "${@:2}"; }

# What the last run wrote to stderr.
last_says() { tail -n 1 "$err" | grep -qE -- "$1"; }
says() { grep -qE -- "$1" "$err"; }
one_line() { [ "$(wc -l <"$err")" = 1 ]; }

# usage_error ARGUMENT...: one line, exit code $usage_code, nothing done.
usage_code=2
usage_error() { run $usage_code "$@" && one_line && [ ! -s "$out" ]; }

# comes COMMAND...: does it succeed within ten seconds, asked again and again?
comes() {
	local tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt $((500 * slow)) ] || return 1
		sleep 0.02
	done
}

# fresh: before a job is put into the background, whose own redirection may come later than a look at what it prints.
fresh() { : >"$out" && : >"$err"; }

# start ARGUMENT...: pldrun in the background; its pid is in $job.
start() {
	fresh
	"$tools/pldrun" --timeout $((30 * slow)) "$@" >"$out" 2>"$err" </dev/null &
	job=$!
}

has_printed() { grep -qE -- "$1" "$out"; }
# await TEXT: wait until the job has printed it.
await() { comes has_printed "$1"; }

# ends_with CODE: wait for the job; did it end so?
ends_with() {
	local code=0
	wait "$job" || code=$?
	job=''
	[ $code = "$1" ] && return
	echo "# exit code $code, expected $1"
	return 1
}

# kill_job: kill -9 of pldrun, in the middle.
kill_job() {
	kill -9 "$job"
	wait "$job" 2>/dev/null
	job=''
}

# A zombie has ended: its new parent reaps it when it likes.
has_ended() {
	local state
	state=$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)
	[ -z "$state" ] || [ "$state" = Z ]
}

# is_gone PID...: is no process of these left, after a while?
is_gone() {
	local pid
	for pid; do
		comes has_ended "$pid" || { echo "# process $pid is still there: $(tr '\0' ' ' <"/proc/$pid/cmdline")"; return 1; }
	done
}

children_of() { cat "/proc/$1/task/$1/children"; }
