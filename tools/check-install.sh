#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# tools/check-install.sh: installs into an empty folder and uses what is there as a stranger would: a C and a C++ program
# outside the tree, by pkg-config, shared and static, on two ranks; then uninstalls. TAP on stdout.

set -uo pipefail
cd "$(dirname "$0")/.." || exit 69
# shellcheck source-path=SCRIPTDIR/..
. selftests/tap.sh

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
prefix="$root/usr"
make=(make --no-print-directory KMOD=0 "PREFIX=$prefix" "DKMSDIR=$prefix/src")
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
unset PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR

cat >"$root/two.c" <<'C'
#include <pldk.h>
#include <stdio.h>

/* Compiles as C and as C++: every rank adds its number plus one. */
int main(void)
{
	struct pldk_domain *world;
	int32_t sum;

	if (pldk_init(&world) < 0) {
		fprintf(stderr, "%s\n", pldk_last_error());
		return 1;
	}
	sum = pldk_rank(world) + 1;
	if (pldk_allreduce(world, PLDK_IN_PLACE, &sum, 1, PLDK_INT32, PLDK_SUM, PLDK_MODE_AUTO, PLDK_SEC(30)) < 0) {
		fprintf(stderr, "%s\n", pldk_last_error());
		return 1;
	}
	printf("sum %d of %d, %s\n", (int)sum, pldk_size(world), pldk_version());
	return pldk_finalize(world) < 0;
}
C
cp "$root/two.c" "$root/two.cc"

files() { (cd "$1" && find . -mindepth 1 -not -type d | LC_ALL=C sort); }

# uses NAME COMPILER SOURCE LIBS...: build outside the tree and run on two ranks.
uses() {
	local name=$1 compiler=$2 source=$3 flags
	shift 3
	flags=$(pkg-config --cflags libpldk) || return 1
	# shellcheck disable=SC2086 # flags are words
	(cd "$root" && $compiler -Wall -Wextra -pedantic -Werror $flags "$source" -o "$name" "$@") || return 1
	(cd "$root" && env -i PATH=/usr/bin:/bin PLDK_PROVIDER=shm LD_LIBRARY_PATH="$prefix/lib" \
		"$prefix/bin/pldrun" -n 2 "./$name") >"$root/out" 2>&1 || { cat "$root/out"; return 1; }
	[ "$(grep -c "sum 3 of 2, $(pkg-config --modversion libpldk)" "$root/out")" = 2 ] || { cat "$root/out"; return 1; }
}

# I3: "could not find kernel sources" although they are there. Every path that was looked at, and what to install.
names_headers() {
	local out
	out=$(make --no-print-directory modules KDIR="$root/none" 2>&1) && return 1
	grep -q "looked at KDIR=$root/none; install linux-headers-.* or kernel-devel-.*, or give KDIR=" <<<"$out" || { echo "$out"; return 1; }
	out=$(env -u KDIR make --no-print-directory modules KVER=0.0-none 2>&1) && return 1
	for path in /lib/modules/ /usr/src/linux-headers- /usr/src/kernels/; do
		grep -q "looked at .*${path}0.0-none" <<<"$out" || { echo "$path: $out"; return 1; }
	done
}

shared() {
	local name=$1 libs
	libs=$(pkg-config --libs libpldk) || return 1
	# shellcheck disable=SC2086
	uses "$@" $libs || return 1
	readelf -d "$root/$name" | grep -q 'NEEDED.*libpldk\.so\.0' || { echo "$name does not need libpldk.so.0"; return 1; }
}

static() {
	local name=$1 libs
	libs=$(pkg-config --static --libs libpldk | sed 's/-lpldk/-l:libpldk.a/') || return 1
	# shellcheck disable=SC2086
	uses "$@" $libs || return 1
	! readelf -d "$root/$name" | grep 'NEEDED.*libpldk' || { echo "$name needs the shared library"; return 1; }
}

manual() {
	local name missing=0
	while read -r name; do
		[ -f "$prefix/share/man/man3/$name.3" ] || { echo "no page for $name"; missing=1; }
	done < <(tools/check-map.sh --mapped)
	# An alias leads to a page.
	MANPATH="$prefix/share/man" man -w pldk_put_at >/dev/null 2>&1 || ! command -v man >/dev/null ||
		{ echo "man does not find pldk_put_at"; missing=1; }
	return $missing
}

# The module builds from what was installed for DKMS, where headers are.
dkms_source() {
	local kdir=$1 src
	src=$(echo "$prefix"/src/pld-*)
	make -C "$kdir" M="$src" CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$root/kbuild.log" 2>&1 ||
		{ tail -n 20 "$root/kbuild.log"; return 1; }
	modinfo -F version "$src/pld.ko" | grep -qx "$(pkg-config --modversion libpldk)" ||
		{ echo "pld.ko has version '$(modinfo -F version "$src/pld.ko")'"; return 1; }
	make -C "$kdir" M="$src" clean >/dev/null 2>&1
}

# As a packager installs: DESTDIR in front of everything, the module's sources where dkms looks.
destdir() {
	local make=(make --no-print-directory KMOD=0 "PREFIX=$prefix") version
	version=$(pkg-config --modversion libpldk)
	"${make[@]}" install DESTDIR="$root/dest" >/dev/null || return 1
	diff <(files "$prefix" | grep -v '^\./src/') <(files "$root/dest$prefix") || return 1
	diff <(files "$prefix/src/pld-$version") <(files "$root/dest/usr/src/pld-$version") || return 1
	# The text knows the final place, not DESTDIR.
	! grep -rI "$root/dest" "$root/dest" || return 1
	"${make[@]}" uninstall DESTDIR="$root/dest" >/dev/null || return 1
	[ -z "$(files "$root/dest")" ] || { echo "left: $(files "$root/dest")"; return 1; }
}

tap_try "make modules without headers says where it looked and what to install" names_headers
tap_try "make install fills an empty prefix" "${make[@]}" install
tap_try "a C program, shared" shared c-shared "gcc -std=c11" two.c
tap_try "a C program, static" static c-static "gcc -std=c11" two.c
tap_try "a C++ program, shared" shared cc-shared "g++ -std=c++17" two.cc
tap_try "a C++ program, static" static cc-static "g++ -std=c++17" two.cc
tap_try "every exported function has an installed page" manual
kdir=''
for place in /lib/modules/*/build; do
	[ ! -e "$place/Makefile" ] || kdir=$place
done
if [ -n "$kdir" ]; then
	tap_try "the module builds from the installed source, with the library's version" dkms_source "$kdir"
else
	tap_skip "the module builds from the installed source, with the library's version" "no kernel headers here"
fi
tap_try "DESTDIR holds the same files" destdir
tap_try "make uninstall" "${make[@]}" uninstall
left=$(files "$prefix" 2>/dev/null)
[ -z "$left" ] || awk '{ print "# left: " $0 }' <<<"$left"
tap_result "$([ -z "$left" ]; echo $?)" "nothing is left"
tap_done
