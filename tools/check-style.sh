#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# tools/check-style.sh: what can be checked of the house style without compiling. TAP on stdout.

set -uo pipefail
cd "$(dirname "$0")/.." || exit 69
# shellcheck source-path=SCRIPTDIR/..
. selftests/tap.sh

# The files that belong to the project: git knows; without it everything that is neither built nor hidden.
project_files() {
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files -co --exclude-standard | while read -r f; do [ ! -f "$f" ] || echo "$f"; done
	else
		find . -path ./build -prune -o -path ./.git -prune -o -type f -not -name '*.o' -not -name '*.ko' \
			-not -name '.*.cmd' -not -name '*.mod*' -print | sed 's|^\./||' | while read -r f; do
			[ "$(head -c 4 "$f" | tr -d '\0')" = $'\x7fELF' ] || echo "$f"
		done
	fi | LC_ALL=C sort
}
mapfile -t files < <(project_files)
pick() { printf '%s\n' "${files[@]}" | grep -E "$1"; }
mapfile -t c_files < <(pick '\.[ch]$')
mapfile -t scripts < <(for f in "${files[@]}"; do if head -n 1 "$f" | grep -qE '^#!.*(ba)?sh$'; then echo "$f"; fi; done)
# The rules below are written in this file, so it cannot be searched for what they forbid.
mapfile -t text < <(printf '%s\n' "${files[@]}" | grep -vE '^(tools/check-style\.sh|LICENSE)$')

spdx() {
	local f bad=0 line
	for f in "${files[@]}"; do
		case $f in LICENSE | README.md | *.patch) continue ;; esac
		# Scripts have it on line 2, after #! or what shellcheck wants to know of a sourced file.
		line=1
		! head -n 1 "$f" | grep -qE "^#!|^# shellcheck |^'\\\\\"" || line=2
		sed -n "${line}p" "$f" | grep -q 'SPDX-License-Identifier: ' || { echo "$f:$line: no SPDX line"; bad=1; }
	done
	return $bad
}

licences() {
	local f bad=0 want has
	for f in "${files[@]}"; do
		case $f in
		LICENSE | README.md) continue ;;
		kmod/wfg.[ch] | kmod/cmp.h) want='GPL-2.0 OR LGPL-2.1-or-later OR MIT' ;;
		kmod/* | Kbuild) want='GPL-2.0' ;;
		include/uapi/*) want='GPL-2.0 WITH Linux-syscall-note' ;;
		*) want='LGPL-2.1-or-later OR MIT' ;;
		esac
		has=$(sed -n '1,2s/.*SPDX-License-Identifier: //p' "$f" | sed 's| *\*/$||')
		# Tests of the module may go where the module goes.
		case "$f $has" in selftests/*" GPL-2.0") continue ;; esac
		[ "$has" = "$want" ] || { echo "$f: its licence is not '$want'"; bad=1; }
	done
	return $bad
}

sizes() {
	wc -l "${files[@]}" | awk '
		$2 != "total" && $2 != "LICENSE" && $1 > 1000 { print $2 ": " $1 " lines"; bad = 1 }
		END { exit bad }'
}

# A sentence in quotes stays on one line, so that it can be searched for.
long_lines() {
	local f
	for f in "${c_files[@]}" Makefile; do
		expand "$f" | awk -v f="$f" 'length($0) > 120 && !/"/ { print f ":" NR ": " length($0) " columns" }'
	done | awk '{ print } END { exit NR > 0 }'
}

whitespace() { ! grep -nE '[[:blank:]]+$' "${c_files[@]}" "${scripts[@]}" Makefile README.md; }

# FILE:LINE:TEXT of C code without comments and strings.
code() {
	awk '
		FNR == 1 { comment = 0 }
		{
			out = ""
			line = $0
			while (line != "") {
				if (comment) {
					if ((i = index(line, "*/")) == 0) break
					line = substr(line, i + 2)
					comment = 0
				} else if (match(line, /\/\*|\/\/|"/)) {
					what = substr(line, RSTART, RLENGTH)
					out = out substr(line, 1, RSTART - 1)
					line = substr(line, RSTART + RLENGTH)
					if (what == "//") break
					if (what == "/*") { comment = 1; continue }
					out = out "\"\""
					while (match(line, /^[^"\\]*\\./)) line = substr(line, RLENGTH + 1)
					if ((i = index(line, "\"")) == 0) break
					line = substr(line, i + 1)
				} else { out = out line; break }
			}
			if (out ~ /[^ \t]/) print FILENAME ":" FNR ":" out
		}' "$@"
}

# No barrier and no atomic of one's own outside one header. An instruction that C cannot say is no
# barrier and may stand in assembly.
atomics() {
	local list
	mapfile -t list < <(pick '^(lib|tools|include)/.*\.[ch]$' | grep -v '^lib/atomic\.h$')
	! code "${list[@]}" | grep -E '\bvolatile\b|__sync_|\b__atomic_|_mm_.?fence|atomic_(thread|signal)_fence' ||
		return 1
	! grep -nE '__asm__[^(]*\( *""|__asm__.*"(mfence|lfence|sfence|dmb|dsb|fence)' "${list[@]}"
}

kernel_apis() {
	local list
	mapfile -t list < <(pick '^kmod/.*\.[ch]$')
	[ ${#list[@]} -gt 0 ] && ! code "${list[@]}" |
		grep -E '\bvolatile\b|get_user_pages|pin_user_pages|class_create|kallsyms_lookup|\bBUG(_ON)?\(|__sync_'
}

version_tests() {
	! code "${c_files[@]}" | grep -E 'LINUX_VERSION_CODE|KERNEL_VERSION' | grep -v '^kmod/compat\.h:'
}

# The VERSION line of the Makefile feeds all others.
one_version() {
	local version list
	version=$(sed -n 's/^VERSION := //p' Makefile)
	mapfile -t list < <(printf '%s\n' "${text[@]}" | grep -vE '^(Makefile|README\.md|lib/man/.*)$')
	! grep -nF "\"$version\"" "${list[@]}" | grep -v 'include/pldk/diag.h:.*pldk_version() - '
}

broad_kills() { ! grep -nwE 'pkill|killall|kill -9 -1|kill\(-1,' "${text[@]}"; }
leftovers() { ! grep -nE '\b(TODO|FIXME|XXX|HACK)\b|\bfor now\b|not (yet )?implemented' "${text[@]}"; }
machine_paths() { ! grep -nE '(^|[^A-Za-z0-9_.$}"*])/(root|home|mnt|srv|workspace|work)/' "${text[@]}"; }

# The library is a guest in somebody's process.
guest() {
	local list
	mapfile -t list < <(pick '^lib/.*\.c$')
	! code "${list[@]}" | grep -E '\b(printf|puts|perror|abort|exit|pthread_create|signal|sigaction|assert)\(' |
		grep -vE '\b_exit\('
}

scripts_clean() { shellcheck -x "${scripts[@]}"; }

find_kernel_doc() {
	local k
	for k in "${KERNEL_DOC:-}" /usr/lib/linux-kbuild-*/scripts/kernel-doc /lib/modules/*/build/scripts/kernel-doc; do
		[ ! -f "$k" ] || { echo "$k"; return; }
	done
}

kernel_doc() {
	local list out
	mapfile -t list < <(pick '^(kmod/.*\.[ch]|include/uapi/.*\.h)$')
	out=$("$1" -none "${list[@]}" 2>&1 | grep -E 'warning|error')
	[ -z "$out" ] || { echo "$out"; return 1; }
}

tap_try "every file names its licence at its top" spdx
tap_try "each part has its licence" licences
tap_try "no file is over 1,000 lines" sizes
tap_try "no line without a string is over 120 columns" long_lines
tap_try "no line ends in blanks" whitespace
tap_try "no volatile, no builtin atomics, no assembly outside lib/atomic.h" atomics
tap_try "no get_user_pages, no class_create, no BUG in the module" kernel_apis
tap_try "kernel versions are tested in kmod/compat.h only" version_tests
tap_try "the version is written once" one_version
tap_try "nothing ends processes by name" broad_kills
tap_try "nothing is left to do" leftovers
tap_try "no path of one machine" machine_paths
tap_try "the library does not print, exit, start threads or catch POSIX signals" guest
if command -v shellcheck >/dev/null; then
	tap_try "scripts pass shellcheck" scripts_clean
else
	tap_skip "scripts pass shellcheck" "shellcheck is not installed"
fi
kernel_doc=$(find_kernel_doc)
if [ -n "$kernel_doc" ]; then
	tap_try "kernel-doc accepts the comments of the module and its contract" kernel_doc "$kernel_doc"
else
	tap_skip "kernel-doc accepts the comments of the module and its contract" "no kernel-doc here (linux-kbuild)"
fi
tap_done
