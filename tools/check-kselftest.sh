#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# tools/check-kselftest.sh: selftests/ copied into a kernel tree as tools/testing/selftests/pld, with nothing of
# this tree but an installed libpldk, runs by the kernel's own rules and gives the same counts. TAP on stdout.
# PLDK_KSELFTESTS= are names such as "lib_view_test pldctl_test.sh"; without them it is every test in C, in the VM.

set -uo pipefail
cd "$(dirname "$0")/.." || exit 69
# shellcheck source-path=SCRIPTDIR/..
. selftests/tap.sh
here=$PWD

# The guest's half: both ways, in one boot. guest WORK TEST...
by_kernel() { make -C "$1/tree/tools/testing/selftests" TARGETS=pld run_tests PLD_TESTS="$2" >"$1/kernel.log" 2>&1; }
by_tree() {
	local work=$1 tests=$2 t list=()
	for t in $tests; do
		case $t in
		*.sh) list+=("$here/selftests/$t") && continue ;;
		esac
		list+=("$here/build/selftests/$t")
		[ ! -x "$here/build/selftests/${t}_32" ] || list+=("$here/build/selftests/${t}_32")
	done
	tools/run-tests --dir "$work/tree-counts" --suite all --timeout 300 "${list[@]}" >"$work/tree.log" 2>&1
}

if [ "${1:-}" = --guest ]; then
	by_kernel "$2" "$3"
	by_tree "$2" "$3"
	exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PKG_CONFIG_PATH="$work/usr/lib/pkgconfig"
unset PLDK_BUILD PLDK_TREE PLDK_TOOLS MAKEFLAGS MAKELEVEL

# "passed failed skipped" of nested TAP as the kernel's runner prints it. A program that skips as a whole says nothing
# inside; its own line counts then.
kernel_counts() {
	awk '
		/^# selftests: pld: / { inner = 0 }
		/^# (not )?ok / { inner++; if (/# *SKIP/) s++; else if ($2 == "ok") p++; else f++ }
		/^ok .*# SKIP/ { if (!inner) s++ }
		/^not ok / { if (!inner) f++ }
		END { print p + 0, f + 0, s + 0 }' "$1"
}

prepare() {
	local harness
	harness=$(tools/vm/kselftest) || return 1
	make --no-print-directory install KMOD=0 PREFIX="$work/usr" || return 1
	cp -r "$harness/../../.." "$work/tree" || return 1
	mkdir "$work/tree/tools/testing/selftests/pld"
	# Sources only: what is built must be built from the copy.
	cp -r selftests/*.sh selftests/*_test.c selftests/*_helper.c selftests/*.h selftests/Makefile selftests/config selftests/settings \
		"$work/tree/tools/testing/selftests/pld/" || return 1
	make -C "$work/tree/tools/testing/selftests" TARGETS=pld PLD_TESTS="$tests" || return 1
	[ -x "$work/tree/tools/testing/selftests/pld/${tests%% *}" ] || { echo "nothing was built"; return 1; }
}

same_counts() {
	local kernel tree
	kernel=$(kernel_counts "$work/kernel.log")
	tree=$(cat "$work/tree-counts/all.count")
	echo "kernel's rules: $kernel; this tree: $tree (passed failed skipped)"
	if [ "$kernel" != "$tree" ] || [ "${kernel%% *}" = 0 ]; then
		grep -E '^(# )?not ok' "$work/kernel.log"
		return 1
	fi
}

run_both() {
	if [ $full = 1 ]; then
		tools/vm/run --timeout 1500 --out "$work" -- "$PWD/tools/check-kselftest.sh" --guest "$work" "$tests"
	else
		by_kernel "$work" "$tests"
		by_tree "$work" "$tests"
		:
	fi
}

full=0 tests=${PLDK_KSELFTESTS:-}
if [ -z "$tests" ]; then
	full=1
	tests=$(cd selftests && printf '%s ' *_test.c | sed 's/\.c//g')
fi
tap_try "the copy builds with an installed libpldk only" prepare
tap_try "it runs by make -C tools/testing/selftests TARGETS=pld run_tests" run_both
tap_try "and gives the same counts" same_counts
tap_done
