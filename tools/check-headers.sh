#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# tools/check-headers.sh: each public header alone, as C11 and as C++17, pedantic, with and without call sites; the
# kernel contract also for 32 bits. TAP on stdout. PLDK_BUILD= is the build directory.

set -uo pipefail
cd "$(dirname "$0")/.." || exit 69
# shellcheck source-path=SCRIPTDIR/..
. selftests/tap.sh
build=${PLDK_BUILD:-build}
# For compilers of other machines: theirs say the same of what the contract takes from them.
kernel_headers="-isystem /usr/include -isystem /usr/include/$(gcc -print-multiarch)"

# alone LANGUAGE-OPTIONS HEADER [COMPILER]
alone() {
	local options=$1 header=$2 compiler=${3:-gcc}
	# shellcheck disable=SC2086 # words
	printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$header" "$header" |
		$compiler $options -pedantic -Wall -Wextra -Wshadow -Werror -fsyntax-only \
			-I"$build/include" -Iinclude -Iinclude/uapi -
}

# N2, J5: padding that a compiler puts in differs between 32 and 64 bits, and carries the kernel's stack to user space.
# Here none may need any, on machines that align 64-bit numbers to 8, 4 and 2 bytes; sizes then follow from the fields.
packed() {
	printf '%s\n' '#include <linux/pld.h>' | "$@" -std=gnu11 -Wpadded -Werror -fsyntax-only -Iinclude/uapi -x c -
}

# The macros that carry call sites, used the way programs use them.
use() {
	printf '%s\n' '#include <pldk.h>' 'int f(struct pldk_domain *d, struct pldk_window *w);' \
		'int f(struct pldk_domain *d, struct pldk_window *w)' \
		'{ int (*by_pointer)(struct pldk_domain *, int64_t) = pldk_barrier;' \
		'  if (pldk_wait(w, 0, PLDK_GE, 1, PLDK_SEC(1)) < 0) return by_pointer(d, PLDK_FOREVER);' \
		'  return pldk_barrier(d, PLDK_TIMEOUT_DEFAULT); }' |
		$1 -Wall -Wextra -Wshadow -Werror -fsyntax-only -I"$build/include" -Iinclude -
}

# A header must not shout names that are not ours into a program.
prefixed() { ! grep -nE '^ *# *define' "$@" | grep -vE 'define (_?PLDK?_|pldk_|_UAPI_LINUX_PLD_H)'; }

no_contract() { ! grep -nE 'linux/pld|pldk/uapi' include/pldk.h include/pldk/*.h; }

for header in pldk.h $(cd include && ls pldk/*.h) pldk/version.h; do
	for sites in "" -DPLDK_NO_SITES; do
		tap_try "$header alone as C11 $sites" alone "-std=c11 -x c $sites" "$header"
		tap_try "$header alone as C++17 $sites" alone "-std=c++17 -x c++ $sites" "$header" g++
	done
done
tap_try "linux/pld.h alone as C11" alone "-std=c11 -x c" linux/pld.h
tap_try "linux/pld.h alone as C++17" alone "-std=c++17 -x c++" linux/pld.h g++
if echo 'int main(void){return 0;}' | gcc -m32 -x c - -o /dev/null 2>/dev/null; then
	tap_try "linux/pld.h alone, 32 bits" alone "-std=c11 -x c -m32" linux/pld.h
else
	tap_skip "linux/pld.h alone, 32 bits" "gcc -m32 does not work here (gcc-multilib)"
fi
tap_try "linux/pld.h has no hole, 64 bits" packed gcc
for target in i386-linux-gnu arm-linux-gnueabihf aarch64-linux-gnu m68k-linux-gnu powerpc-linux-gnu; do
	if clang --target=$target -fsyntax-only -x c - </dev/null 2>/dev/null; then
		# shellcheck disable=SC2086 # words
		tap_try "linux/pld.h has no hole, $target" packed clang --target=$target $kernel_headers
	else
		tap_skip "linux/pld.h has no hole, $target" "no clang for it here"
	fi
done
if command -v clang >/dev/null; then
	tap_try "pldk.h alone by clang" alone "-std=c11 -x c -Wno-gnu-statement-expression" pldk.h clang
else
	tap_skip "pldk.h alone by clang" "clang is not installed"
fi
tap_try "call-site macros in C11" use "gcc -std=c11 -x c"
tap_try "call-site macros in C++17" use "g++ -std=c++17 -x c++"
tap_try "every macro carries the prefix" prefixed include/pldk.h include/pldk/*.h include/uapi/linux/pld.h
tap_try "public headers do not include the kernel contract" no_contract
tap_done
