#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# tools/check-runner.sh: the runner counts what test programs say and does not believe those that die. TAP on stdout.

set -uo pipefail
cd "$(dirname "$0")/.." || exit 69
# shellcheck source-path=SCRIPTDIR/..
. selftests/tap.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# gives EXPECTED-COUNTS EXPECTED-EXIT SCRIPT [RUNNER-OPTION...]
gives() {
	local want=$1 want_code=$2 script=$3 code=0 got
	shift 3
	rm -rf "$work/out"
	printf '#!/bin/sh\n%s\n' "$script" >"$work/program"
	chmod +x "$work/program"
	tools/run-tests --dir "$work/out" --suite s --timeout 1 "$@" "$work/program" >"$work/text" 2>&1 || code=$?
	got=$(cat "$work/out/s.count")
	if [ "$got" != "$want" ] || [ $code != "$want_code" ]; then
		echo "counted '$got', exit $code; expected '$want', exit $want_code"
		cat "$work/text"
		return 1
	fi
}

sums() {
	local code=0
	rm -rf "$work/sum" && mkdir "$work/sum"
	echo 1 0 2 >"$work/sum/a.count"
	[ "$(tools/run-tests --sum "$work/sum")" = "1 passed, 0 failed, 2 skipped" ] || return 1
	echo 3 1 0 >"$work/sum/b.count"
	[ "$(tools/run-tests --sum "$work/sum")" = "4 passed, 1 failed, 2 skipped" ] || return 1
	tools/run-tests --sum "$work/sum" >/dev/null || code=$?
	[ $code = 1 ] || return 1
	rm "$work/sum"/*
	! tools/run-tests --sum "$work/sum" >/dev/null
}

# A runner that is killed between two programs leaves one failure behind.
killed() {
	local code=0
	printf '#!/bin/sh\n' >"$work/program"
	(tools/run-tests --dir "$work/k" --suite k --timeout 5 --plain --with "$work/parent" "$work/program") >/dev/null 2>&1 &
	wait $! || code=$?
	[ "$(cat "$work/k/k.count")" = "0 1 0" ] || { cat "$work/k/k.count"; return 1; }
}
# timeout(1) stands between runner and program, so the runner is the parent of the parent.
cat >"$work/parent" <<'SH'
#!/bin/sh
kill -9 "$(awk '/^PPid/ { print $2 }' "/proc/$PPID/status")"
SH
chmod +x "$work/parent"

tap_try "ok, not ok and SKIP are counted" gives "2 1 1" 1 \
	'echo 1..4; echo ok 1 a; echo "ok 2 b # SKIP no"; echo not ok 3 c; echo ok 4 d; exit 1'
tap_try "indented and quoted results are not" gives "1 0 0" 0 'echo 1..1; echo "# ok 1"; echo "   not ok 2"; echo ok 1 a'
tap_try "a program that says nothing failed" gives "0 1 0" 1 'exit 0'
tap_try "a program that is killed failed" gives "1 1 0" 1 'echo 1..2; echo ok 1 a; kill -9 $$'
tap_try "less than planned is a failure" gives "1 1 0" 1 'echo 1..2; echo ok 1 a'
tap_try "an exit code without a failed test is a failure" gives "1 1 0" 1 'echo ok 1 a; echo 1..1; exit 3'
tap_try "exit 4 is a skip" gives "0 0 1" 0 'echo "1..0 # SKIP no device"; exit 4'
tap_try "exit 4 does not hide a failure" gives "0 1 0" 1 'echo 1..1; echo not ok 1 a; exit 4'
tap_try "a program that does not end is a failure" gives "1 1 0" 1 'echo 1..2; echo ok 1 a; exec sleep 60'
tap_try "plain: the exit code is the result" gives "1 0 0" 0 'echo not ok 1' --plain
tap_try "plain: and the failure" gives "0 1 0" 1 'echo ok 1; exit 7' --plain
tap_try "a suite in which nothing passed is a failure" gives "0 1 1" 1 'echo "1..0 # SKIP no"; exit 4' --need-pass
tap_try "sums, and their exit codes" sums
tap_try "a runner that is killed leaves a failure" killed
tap_done
