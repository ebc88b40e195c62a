# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# TAP for shell tests. Sourced, never run. A line starting with # that a check prints explains its failure.

tap_count=0
tap_failed=0

# tap_result STATUS NAME
tap_result() {
	tap_count=$((tap_count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_count - $2"
	else
		echo "not ok $tap_count - $2"
		tap_failed=$((tap_failed + 1))
	fi
}

# tap_try NAME COMMAND...: passes if it succeeds; its output becomes diagnostics.
tap_try() {
	local name=$1 status=0 output
	shift
	output=$("$@" 2>&1) || status=$?
	[ $status = 0 ] || [ -z "$output" ] || awk '{ sub(/^# /, ""); print "# " $0 }' <<<"$output"
	tap_result $status "$name"
}

# tap_skip NAME REASON
tap_skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

# tap_done: the plan, and the exit code of the whole.
tap_done() {
	echo "1..$tap_count"
	[ $tap_failed = 0 ]
}
