#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# tools/check-docs.sh: what is written twice says the same: manual pages and headers, tables of README, pldk(7) and the
# .def files, README's file map and the tree, options of the tools and their pages. Examples are compiled.
# TAP on stdout. PLDK_BUILD= is the build directory.
# shellcheck disable=SC2016,SC1003 # patterns with backticks and backslashes

set -uo pipefail
cd "$(dirname "$0")/.." || exit 69
# shellcheck source-path=SCRIPTDIR/..
. selftests/tap.sh
build=${PLDK_BUILD:-build}
export LC_ALL=C
pages3=(lib/man/*.3)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Which header each page of section 3 is written from; the errnos of a header appear on one of its pages.
pages_of() {
	case $1 in
	domain) echo pldk_domain ;;
	window) echo pldk_window pldk_view ;;
	signal) echo pldk_signal ;;
	rma) echo pldk_rma pldk_handle ;;
	coll) echo pldk_collective ;;
	coll_on) echo pldk_coll_on ;;
	coll_start) echo pldk_coll_start ;;
	diag) echo pldk_diag ;;
	types) echo pldk_view pldk_window pldk_signal ;;
	esac
}

# section PAGE NAME: the text of a section, as source.
section() { awk -v want="$2" '/^\.SH / { gsub(/"/, ""); on = (substr($0, 5) == want); next } on' "$1"; }

# Succeeds if nothing comes in; else shows it.
nothing() { awk '{ print } END { exit NR > 0 }'; }

# differ A-NAME B-NAME FILE-A FILE-B: lines that only one has.
differ() {
	comm -3 "$3" "$4" | awk -v a="$1" -v b="$2" '
		/^\t/ { print "only " b " has: " substr($0, 2); next } { print "only " a " has: " $0 }' | nothing
}

every_function_has_a_page() {
	comm -23 <(tools/check-map.sh --mapped) <(tools/packaging/man-aliases --list | awk '{ print $1 }' | sort -u) |
		sed 's/$/: on no page/' | nothing
}

pages_name_functions_only() {
	comm -13 <(tools/check-map.sh --mapped) <(tools/packaging/man-aliases --list | awk '{ print $1 }' | sort -u) |
		sed 's/$/: on a page but not exported/' | nothing
}

no_function_on_two_pages() { tools/packaging/man-aliases --list | awk '{ print $1 }' | sort | uniq -d | nothing; }

headings() {
	local page
	for page in "${pages3[@]}"; do
		sed -n 's/^\.SH //p' "$page" | tr -d '"' | awk -v page="$page" '
			BEGIN {
				n = split("NAME,SYNOPSIS,DESCRIPTION,RETURN VALUE,ERRORS,MEMORY ORDERING,NOTES,VERSIONS," \
					"EXAMPLES,SEE ALSO", want, ",")
				for (i = 1; i <= n; i++) place[want[i]] = i
			}
			!($0 in place) { print page ": heading " $0 " is not one of the fixed ones"; next }
			place[$0] <= last { print page ": heading " $0 " is out of order" }
			{ last = place[$0]; seen[$0] = 1 }
			END {
				for (i = 1; i <= n; i++)
					if (!(want[i] in seen) && !(want[i] == "MEMORY ORDERING" && page ~ /diag|view/))
						print page ": no heading " want[i]
			}'
	done | nothing
}

# The prototypes of a SYNOPSIS are those of the headers, word for word.
prototypes() {
	local name page header
	header=$("${CC:-gcc}" -E -P -DPLDK_NO_SITES -I"$build/include" -Iinclude include/pldk.h | tr -d ' \t\n')
	tools/packaging/man-aliases --list | grep -v '_at ' | while read -r name page; do
		section "lib/man/$page" SYNOPSIS | grep -v '^\.' | tr -d ' \t\n' | tr ';' '\n' |
			grep -E "[a-z_0-9*]$name\(" >"$work/proto" || { echo "$page: no prototype of $name"; continue; }
		grep -qF -- "$(cat "$work/proto");" <<<"$header" || echo "$page: the prototype of $name is not the header's"
	done | nothing
}

# code FILE: source without comments, macros unexpanded.
code() { "${CC:-gcc}" -fpreprocessed -dD -E -P -x c "$1" 2>/dev/null; }

# definitions: of structs and enums, each on a line, without white space.
definitions() {
	tr '\n' ' ' | grep -oE '(struct|enum) pldk_[a-z_]+ \{[^}]*\};' | sed 's/, *}/}/; s/[[:space:]]//g' | sort -u
}

# Structs and enums stand on a page with the fields, types and values of the headers.
structures() {
	local file
	for file in include/pldk/*.h; do code "$file"; done | definitions >"$work/header"
	[ -s "$work/header" ] || { echo "no definition was read from the headers"; return 1; }
	for file in lib/man/*.[37]; do
		awk '/^\.EX/ { on = 1; next } /^\.EE/ { on = 0 } on' "$file" >"$work/page.c"
		code "$work/page.c"
	done | definitions >"$work/page"
	differ "include/pldk" "lib/man" "$work/header" "$work/page"
}

# Every errno that a header's comments name stands in ERRORS of one of its pages.
errors() {
	local header page name
	for header in include/pldk/*.h; do
		header=$(basename "$header" .h)
		for page in $(pages_of "$header"); do
			section "lib/man/$page.3" ERRORS
		done | grep -oE '\\-E[A-Z0-9]+' | tr -d '\\' | sort -u >"$work/page"
		grep -oE '\-E[A-Z][A-Z0-9]+\b' "include/pldk/$header.h" | sort -u | comm -23 - "$work/page" |
			sed "s/\$/: include\/pldk\/$header.h names it, $(pages_of "$header") does not/"
	done | nothing
}

# And every errno on any page is in the table.
known_errors() {
	errno_def | cut -f 1 | sort >"$work/table"
	grep -ohE '\\-E[A-Z][A-Z0-9]+' lib/man/* | tr -d '\\-' | sort -u | comm -23 - "$work/table" |
		sed 's/$/: on a page, not in lib\/errno.def/' | nothing
}

# NAME<TAB>MEANING lines of the three places.
errno_def() { sed -n 's/^PLDK_ERRNO(\([A-Z0-9]*\), "\(.*\)")$/\1\t\2/p' lib/errno.def; }
env_def() { sed -n 's/^PLDK_ENV([a-z_]*, "\([A-Z_]*\)", [A-Z]*, [^,]*, "\(.*\)")$/\1\t\2/p' lib/env.def; }
man_table() {
	section lib/man/pldk.7 "$1" | awk '
		/^\.TP/ { getline; name = $2; getline; print name "\t" $0 }' | sed 's/\\-/-/g; s/\\e/\\/g'
}
readme_section() { awk -v want="## $1" '/^## / { on = ($0 == want); next } on' README.md; }
readme_table() {
	readme_section "$1" | sed -n 's/^| *`\([^`]*\)` *| *\(.*[^ ]\) *| *$/\1\t\2/p' | tr -d '`'
}

same_tables() {
	local what=$1 def=$2 heading=$3 title=$4 status=0
	"$def" | sort >"$work/def"
	[ -s "$work/def" ] || { echo "lib/$what.def: no row was read"; return 1; }
	# A row that the pattern missed would be compared with nothing.
	[ "$(grep -c '^PLDK_E' "lib/$what.def")" = "$(wc -l <"$work/def")" ] || { echo "lib/$what.def: odd rows"; return 1; }
	man_table "$heading" | sort >"$work/man"
	readme_table "$title" | sort >"$work/readme"
	differ "lib/$what.def" "pldk(7)" "$work/def" "$work/man" || status=1
	differ "lib/$what.def" README "$work/def" "$work/readme" || status=1
	return $status
}

# Every path of the map exists; every file is on it, by name, by a pattern, or in a folder that ends with /.
map_paths() { readme_section "File map" | sed -n 's/^| *\(.*\)/\1/p' | cut -d '|' -f 1 | grep -oE '`[^`]+`' | tr -d '`'; }

file_map_exists() {
	local path
	[ -n "$(map_paths)" ] || { echo "README: there is no table under '## File map'"; return 1; }
	map_paths | while read -r path; do
		# shellcheck disable=SC2086 # it may be a pattern
		ls -d $path >/dev/null 2>&1 || echo "README: the file map lists $path, which does not exist"
	done | nothing
}

file_map_complete() {
	local file path hit
	mapfile -t paths < <(map_paths)
	{
		if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
			git ls-files -co --exclude-standard
		else
			find kmod lib include selftests tools -type f -name '*.[ch]'
		fi
	} | sort | while read -r file; do
		[ -f "$file" ] || continue
		hit=0
		for path in "${paths[@]}"; do
			case $path in */) path="$path*" ;; esac
			# shellcheck disable=SC2053,SC2254 # patterns
			case $file in $path) hit=1; break ;; esac
		done
		[ $hit = 1 ] || echo "$file: not on README's file map"
	done | nothing
}

# Options as words: -n, --ranks
help_options() {
	local command
	{
		tools/"$1" --help
		# A tool with commands tells the options of each separately.
		for command in $(tools/"$1" --help | awk '/^  [a-z]+ / { print $1 }'); do
			tools/"$1" "$command" --help
		done
	} 2>&1 | grep -E '^ +-' | sed 's/  [^ -].*//' | grep -oE -- '(^|[ ,])--?[a-z][a-z-]*' |
		tr -d ' ,' | sort -u
}
page_options() {
	section "lib/man/$1.1" OPTIONS | awk '/^\.TP/ { getline; print }' | sed 's/\\-/-/g; s/\\f.//g' |
		grep -oE -- '(^|[ ,"])--?[a-z][a-z-]*' | tr -d ' ,"' | sort -u
}

options() {
	help_options "$1" >"$work/help"
	page_options "$1" >"$work/options"
	[ -s "$work/help" ] || { echo "$1 --help lists no option"; return 1; }
	differ "$1 --help" "$1(1)" "$work/help" "$work/options"
}

ioctls() {
	grep -oE 'define PLD_IOC_[A-Z_]+' include/uapi/linux/pld.h | awk '$2 != "PLD_IOC_MAGIC" { print $2 }' | sort >"$work/header"
	grep -oE '^\.B PLD_IOC_[A-Z_]+$' lib/man/pld.4 | awk '{ print $2 }' | sort >"$work/page"
	differ pld.h "pld(4)" "$work/header" "$work/page"
}

# Each .EX block of C is compiled alone; one with main() is linked too.
examples() {
	local page n=0
	for page in lib/man/*.[34]; do
		section "$page" EXAMPLES | awk '/^\.EX/ { on = 1; next } /^\.EE/ { on = 0 } on' | sed 's/\\e/\\/g; s/\\-/-/g' >"$work/example.c"
		[ -s "$work/example.c" ] || { echo "$page: no example"; continue; }
		mkdir -p "$work/pldk"
		ln -sfn "$PWD/include/uapi/linux" "$work/pldk/uapi"
		"${CC:-gcc}" -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -I"$build/include" -Iinclude -I"$work" "$work/example.c" 2>&1 |
			sed "s|^$work/example.c|$page example|"
		n=$((n + 1))
	done | nothing
}

# The first program of README is the one in the tree.
first_program() {
	awk '/^```c/ { on = 1; next } /^```/ && on { exit } on' README.md >"$work/readme.c"
	[ -s "$work/readme.c" ] || { echo "README has no C program"; return 1; }
	sed -n '/^#include/,$p' selftests/tutorial/hello.c | diff - "$work/readme.c"
}

readme_links() {
	local link
	{ grep -oE '\]\([^)#]+\)' README.md || true; } | tr -d '])(' | while read -r link; do
		case $link in *://*) continue ;; esac
		[ -e "$link" ] || echo "README: link to $link"
	done | nothing
}

groff_clean() { for page in lib/man/*; do groff -t -man -ww -z -Tutf8 "$page" 2>&1; done | nothing; }
mandoc_clean() { mandoc -T lint -W warning lib/man/* 2>&1 | nothing; }

tap_try "every exported function has a manual page" every_function_has_a_page
tap_try "no page names a function that is not exported" pages_name_functions_only
tap_try "no function is on two pages" no_function_on_two_pages
tap_try "pages of section 3 have the fixed headings" headings
tap_try "prototypes in pages are those of the headers" prototypes
tap_try "structs and enums in pages are those of the headers" structures
tap_try "errnos that headers name are in ERRORS of the pages" errors
tap_try "errnos on pages have a meaning in lib/errno.def" known_errors
tap_try "error tables of lib/errno.def, pldk(7) and README are equal" same_tables errno errno_def ERRORS Errors
tap_try "environment tables of lib/env.def, pldk(7) and README are equal" same_tables env env_def ENVIRONMENT Environment
tap_try "pld(4) has every ioctl" ioctls
tap_try "README's file map lists only what exists" file_map_exists
tap_try "README's file map lists every file" file_map_complete
tap_try "README's links lead somewhere" readme_links
tap_try "README's first program is selftests/tutorial/hello.c" first_program
for tool in pldrun pldctl pldbench; do
	tap_try "$tool --help and $tool(1) have the same options" options $tool
done
tap_try "examples of the pages compile" examples
if command -v groff >/dev/null; then
	tap_try "groff has no complaint" groff_clean
else
	tap_skip "groff has no complaint" "groff is not installed"
fi
if command -v mandoc >/dev/null; then
	tap_try "mandoc has no complaint" mandoc_clean
else
	tap_skip "mandoc has no complaint" "mandoc is not installed"
fi
tap_done
