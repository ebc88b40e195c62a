#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# tools/check-map.sh: the functions that the public headers declare, the names in lib/libpldk.map and the symbols that
# the built library exports are the same set, each once. TAP on stdout.
# --declared and --mapped print one of the sets, for other scripts. PLDK_BUILD= is the build directory.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR/..
cd "$(dirname "$0")/.."
build=${PLDK_BUILD:-build}
. selftests/tap.sh

# Everything that looks like a call in the headers' own lines once the preprocessor has taken comments and macros.
declared() {
	"${CC:-gcc}" -E -DPLDK_NO_SITES -I"$build/include" -Iinclude include/pldk.h |
		awk '/^# [0-9]+ "/ { own = ($3 ~ /include\/pldk/) ; next } own' |
		grep -oE '\bpldk_[a-z0-9_]+ *\(' | tr -d ' (' | LC_ALL=C sort
}

mapped() {
	awk '/global:/ { on = 1; sub(/.*global:/, "") } /local:/ { on = 0 } on' lib/libpldk.map |
		grep -oE '\bpldk_[A-Za-z0-9_]+' | LC_ALL=C sort
}

exported() {
	nm -D --defined-only "$build/libpldk.so" | awk '$2 != "A" { print $3 }' | sed 's/@.*//; /^$/d' | LC_ALL=C sort
}

# The two sets are equal; says which names are missing where.
same() {
	local only
	only=$(LC_ALL=C comm -3 <(sort -u <<<"$2") <(sort -u <<<"$4") | awk -v a="$1" -v b="$3" '
		/^\t/ { print "# " $1 ": in " b ", not in " a; next } { print "# " $1 ": in " a ", not in " b }')
	[ -z "$only" ] || echo "$only"
	[ -z "$only" ]
}

case ${1:-} in
--declared) declared | uniq; exit ;;
--mapped) mapped | uniq; exit ;;
esac

headers=$(declared) map=$(mapped) library=$(exported)
twice=$(uniq -d <<<"$map")
[ -z "$twice" ] || printf "# twice in the map: %s\n" "$twice"
tap_result "$([ -z "$twice" ]; echo $?)" "the map names nothing twice"
twice=$(uniq -d <<<"$headers")
[ -z "$twice" ] || printf "# declared twice: %s\n" "$twice"
tap_result "$([ -z "$twice" ]; echo $?)" "the headers declare nothing twice"
tap_try "what the headers declare is in the map" same headers "$headers" map "$map"
tap_try "what the map names is exported" same map "$map" library "$library"
# BOTH(errno, op, ...) calls op_at() as well, FORMS(errno, timeout, op, ...) the started ones, too.
abused=$({
	grep -ohE '\bpldk_[a-z0-9_]+\(' selftests/lib_abuse*_test.c | tr -d '('
	grep -ohE 'BOTH\([^,]*, pldk_[a-z0-9_]+,' selftests/lib_abuse*_test.c | sed 's/.*, \(.*\),/\1\n\1_at/'
	grep -ohE 'FORMS\([^,]*, [^,]*, pldk_[a-z0-9_]+,' selftests/lib_abuse*_test.c |
		sed 's/.*, \(.*\),/\1\n\1_at\n\1_start\n\1_start_at/'
} | LC_ALL=C sort -u)
tap_try "every function of the map is abused by lib_abuse*_test" same map "$map" "lib_abuse*_test" "$abused"
# A static program sees every global of the archive: nothing there may lack the prefix.
foreign=$(nm -g --defined-only "$build/libpldk.a" 2>/dev/null |
	awk 'NF == 3 && $3 !~ /^(pldk_|pld_wfg_)/ { print "# " $3 }')
# And a shared library that needs a name of its own from somewhere else cannot be loaded.
undefined=$(nm -D --undefined-only "$build/libpldk.so" | awk '$2 ~ /^pld/ { print "# " $2 }')
[ -z "$foreign" ] || echo "$foreign"
[ -z "$undefined" ] || echo "$undefined"
tap_result "$([ -z "$undefined" ]; echo $?)" "the library needs no name of its own from outside"
tap_result "$([ -z "$foreign" ]; echo $?)" "the archive's globals all carry the prefix"
tap_done
