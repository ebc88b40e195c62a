#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# How the work of a rank grows with the number of ranks, counted and not timed: rank 0 runs under callgrind, and what it
# does while it waits is taken off. PLDK_GROWTH="2 4 ... 64" names the numbers of ranks.
#
#   barrier                 instructions and cells notified: not worse than log2 P, from 8 ranks on
#   allreduce of 8 bytes    printed
#   allreduce of 4 MiB      what pldk__copy() moves (two bytes in and out for each): the same for every P

# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2317 # what tools.sh reads; functions that "is" calls
. "$(dirname "$0")/tools.sh"
tool=$tools/pldrun
needs "$tool" "$helper"
ranks=${PLDK_GROWTH:-2 4 8 16 32}
export PLDK_PROVIDER=shm
unset PLDK_SHM_FAR

skip_all() {
	echo "1..0 # SKIP $1"
	exit 4
}
command -v valgrind >/dev/null || skip_all "valgrind is not there"
[ "${PLDK_TEST_SCALE:-100}" -ge 100 ] || skip_all "an emulator in an emulator"

cat >"$work/rank" <<'SCRIPT'
#!/bin/sh
[ "$PLDK_RANK" = 0 ] || exec "$@"
exec valgrind -q --tool=callgrind --callgrind-out-file="$GROWTH_OUT" --collect-atstart=no --toggle-collect="$GROWTH_IN" "$@"
SCRIPT
chmod +x "$work/rank"

# count P FUNCTION STEP TIMES: instructions without those of waiting, cells notified, instructions of copying.
count() {
	GROWTH_OUT=$work/callgrind GROWTH_IN=$2 timed 0 "$tool" -q -n "$1" --timeout 60 "$work/rank" "$helper" init "$3=$4" \
		finalize || return
	awk '
		# "(id) name" at its first place, "(id)" later.
		function name(text, id) {
			id = text
			sub(/\).*/, ")", id)
			if (length(text) > length(id))
				names[id] = substr(text, length(id) + 2)
			return names[id]
		}
		/^fn=/ { self = name(substr($0, 4)) }
		/^cfn=/ { callee = name(substr($0, 5)) }
		/^calls=/ {
			split(substr($0, 7), call, " ")
			if (callee == "pldk__cell_notify")
				notified += call[1]
			getline
			if (callee == "pldk__wait_for" && self != "pldk__wait_for")
				waited += $2
			next
		}
		/^[-+*0-9]/ && self == "pldk__copy" { copied += $2 }
		/^(summary|totals):/ { all = $2 }
		END { print all - waited, notified + 0, copied + 0 }' "$work/callgrind"
}

# per_call P FUNCTION STEP TIMES: the same for one call, without what the first ones do: in $work/P.STEP.
per_call() {
	local few many
	few=$(count "$1" "$2" "$3" 2) && many=$(count "$1" "$2" "$3" $((2 + $4))) || return
	awk -v n="$4" '{ split(few, f); print ($1 - f[1]) / n, ($2 - f[2]) / n, ($3 - f[3]) / n }' few="$few" <<<"$many" \
		>"$work/$1.$3"
}

counted() {
	local p
	for p in $ranks; do
		per_call "$p" "$1" "$2" "$3" || return
	done
	for p in $ranks; do
		awk -v p="$p" -v what="$2" '{ printf "# %-10s %3d ranks: %9.0f instructions, %3.0f cells notified, %11.0f for copying\n",
			what, p, $1, $2, $3 }' "$work/$p.$2"
	done
}

# at_most COLUMN STEP AWK: is the column, for each number of ranks p above 8 (8 alone is `base`), at most AWK?
at_most() {
	local p base
	read -ra base <"$work/8.$2"
	for p in $ranks; do
		[ "$p" -gt 8 ] || continue
		awk -v p="$p" -v base="${base[$1]}" -v column="$(($1 + 1))" '{ limit = '"$3"'; if ($column > limit) {
			printf "# %d ranks: %.0f, at most %.0f\n", p, $column, limit; exit 1 } }' "$work/$p.$2" || return
	done
}

is "barriers are counted" counted pldk_barrier_at barriers 20
is "the instructions of a barrier grow like log2 P" at_most 0 barriers '1.2 * base * log(p) / log(8)'
is "the cells that a barrier notifies are log2 P" at_most 1 barriers 'int(log(p) / log(2) + 0.999) + 0.5'
is "small allreduces are counted" counted pldk_allreduce_at sums 20
is "large allreduces are counted" counted pldk_allreduce_at large-sums 2
is "what a large allreduce copies does not grow with P" at_most 2 large-sums '1.1 * base'
tap_done
