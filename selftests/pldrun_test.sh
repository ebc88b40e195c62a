#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# pldrun: every rule of its exit code, what it says last, what it does with output, and that nothing stays behind.
# Runs on the provider that PLDK_PROVIDER names.

# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2016,SC2034,SC2046,SC2086,SC2317 # words for the ranks' shell; for tools.sh; lists; what "is" calls
. "$(dirname "$0")/tools.sh"
tool=$tools/pldrun
usage_code=125
longest=$limit
needs "$tool" "$helper"

# Usage errors: 125, one line, nothing started.
# K8: a launcher that takes all there is when it is not told how many.
is "needs -n" usage_error true
is "and says so" says "-n is required"
is "refuses 0 ranks" usage_error -n 0 true
is "refuses a word for -n" usage_error -n four true
is "refuses more ranks than there may be" usage_error -n 1025 true
is "needs a program" usage_error -n 2
is "refuses an unknown option" usage_error -n 2 --bogus true
is "and an unknown letter" usage_error -n 2 -z true
is "refuses an option without its argument" usage_error -n
is "refuses -n and --device that disagree" usage_error -n 2 --device 4,5,6 true
is "and says both numbers" says '2 ranks, but the list names 3 devices$'
is "in good grammar" usage_error -n 2 --device 4 true
is "for one, too" says 'the list names 1 device$'
is "refuses a device twice" usage_error --device 4,4 true
is "refuses a device that is no number" usage_error --device 4,x true
is "and shows the whole list" last_says "'4,x' is no list"
is "refuses a provider that does not exist" usage_error -n 1 --provider tcp true
is "refuses a timeout of nothing" usage_error -n 1 --timeout 0 true
is "says that checked mode is not there" usage_error -n 1 --check true
is "refuses a map file that is not there" usage_error -n 1 --map "$work/none" true
is "and one that cannot be read" usage_error -n 1 --map "$work" true
echo "0 zero" >"$work/map"
is "refuses a map file with a wrong line" usage_error -n 1 --map "$work/map" true
is "and names the line" says "map:1:"
help_is_whole() {
	run 0 --help && for option in ranks device provider timeout grace map no-bind no-prefix check verbose quiet help-env version; do
		grep -q -- "--$option" "$out" || return 1
	done
}
is "--help names every option" help_is_whole
version() { run 0 --version && grep -qxE 'pldrun [0-9]+\.[0-9]+\.[0-9]+' "$out"; }
is "--version says it" version
env_is_whole() { run 0 --help-env && grep -q PLDK_TIMEOUT_MS "$out" && grep -q PLDK_RANK "$out"; }
is "--help-env names the variables" env_is_whole

# Exit codes.
is "0 when all ranks end well" run 0 -n 3 "$helper" init gather finalize
is "0 for programs that know nothing of pldk" run 0 -n 3 true
is "the code of the rank that failed" run 7 -n 3 "$helper" init gather finalize 1:exit=7
is "and its name in the last line" last_says '^pldrun: first failure: rank 1 \(pid [0-9]+\) exited with code 7'
is "and a table of last states" says '^pldrun:     2 .* (finalised|runs|waits)'
is "128 + N for a POSIX signal" run 139 -n 2 "$helper" init 1:raise=11 gather
is "and the signal's name" last_says '^pldrun: first failure: rank 1 .* killed by SIGSEGV'
is "137 for SIGKILL" run 137 -n 2 "$helper" init 0:raise=9 gather
is "127 for a program that is not there" run 127 -n 2 "$work/none"
is "and names a rank" last_says '^pldrun: first failure: rank 0: cannot run .*No such file'
touch "$work/plain"
is "126 for a file that may not be executed" run 126 -n 2 "$work/plain"
is "66 passes through" run 66 -n 2 "$helper" 0:exit=66
is "124 for a timeout" run 124 -n 2 --timeout 0.3 sleep $((forever / 1000))
is "and says so" last_says '^pldrun: timeout after 0.3 s'
# What starting ranks takes differs: how long does a good job take here, now?
run 0 -n 4 "$helper" init gather finalize
good=$took
export PLDK_INIT_TIMEOUT_MS=$forever
is "a timeout names who never joined" run 124 -n 3 --timeout $((3 + good / 300)) "$helper" "2:sleep=$forever" init
is "by number" last_says 'never joined: rank 2$'
is "and the table says who waits for it" says '^pldrun:     [01] .* inside (join|a collective) \(call 1\), waits for rank 2 '
unset PLDK_INIT_TIMEOUT_MS

# Who was first? The end comes within a second, beside what starting ranks takes.
limit=$((1000 + 3 * good))
# B18: the rank that raised the error cannot exit, because leaving synchronises, and the whole job is stuck.
is "a rank that returns 1 during the others' allgather ends the job within a second" \
	run 1 -n 4 "$helper" init 1:return=1 gather finalize
is "and is named, not its victims" last_says '^pldrun: first failure: rank 1 .* exited with code 1$'
is "a rank that exits with 0 without finalising has failed" run 1 -n 3 "$helper" init 2:exit=0 gather finalize
is "and is named" last_says '^pldrun: first failure: rank 2 .* exited with code 0 without pldk_finalize'
is "a rank that ends well without joining, while others wait, has failed" run 1 -n 3 "$helper" 1:exit=0 init gather finalize
is "and is named too" last_says '^pldrun: first failure: rank 1 .* before it joined'
is "a rank that aborts is first even if it ends last" \
	run 5 -n 3 "$helper" init 0:abort=5 0:sleep=100 0:exit=5 gather finalize
# On a busy machine it may be so late that pldrun stops it.
is "and is named as well" last_says '^pldrun: first failure: rank 0 .* (exited with code 5|after it had aborted the job)'
many_rounds() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		run 3 -n 6 "$helper" init gather 4:exit=3 gather finalize && last_says 'first failure: rank 4 ' || return 1
	done
}
limit=$longest
is "ten times out of ten" many_rounds
is "even if pldrun has to stop it" run 6 -n 3 "$helper" init 0:abort=6 "0:sleep=$forever" gather finalize
is "and then the reason is said" last_says '^pldrun: first failure: rank 0 .* stopped by pldrun after it had aborted the job'
is "SIGTERM for ranks that do not notice" run 9 -n 3 "$helper" 0:exit=9 "sleep=$forever"
is "the table says who was stopped" says 'killed by SIGTERM, stopped by pldrun'
is "SIGKILL for ranks that ignore it" \
	run 9 -n 2 --grace 0.2 "$helper" 1:ignore-term init 0:exit=9 "1:sleep=$forever"
is "and the table says that" says 'killed by SIGKILL, stopped by pldrun'
is "a stopped rank is ended as well" run 9 -n 2 "$helper" 1:raise=19 0:sleep=200 0:exit=9
is "-q says only who was first" run 7 -q -n 2 "$helper" 1:exit=7
is "in one line" one_line

# Output.
lines_are_whole() {
	run 0 -q -n 4 sh -c 'i=0; while [ $i -lt 2000 ]; do echo 0123456789abcdef0123456789abcdef; i=$((i + 1)); done' &&
		[ "$(sort "$out" | uniq -c | awk '$1 != 2000 || $3 != "0123456789abcdef0123456789abcdef"' | wc -l)" = 0 ] &&
		[ "$(wc -l <"$out")" = 8000 ]
}
is "lines of several ranks never mix" lines_are_whole
prefixes() { run 0 -q -n 2 sh -c 'echo out; echo err >&2' && grep -qx '\[1\] out' "$out" && grep -qx '\[1\] err' "$err"; }
is "stdout goes to stdout and stderr to stderr" prefixes
partial() { run 0 -q -n 2 printf half && [ "$(sort "$out")" = $'[0] half\n[1] half' ]; }
is "a last line without newline is not lost" partial
binary() {
	printf 'a\0b\377\n' >"$work/bytes"
	run 0 -q -n 1 cat "$work/bytes" && printf '[0] a\0b\377\n' | cmp -s - "$out"
}
is "any byte passes" binary
big_line() {
	run 0 -q -n 2 sh -c 'head -c 300000 /dev/zero | tr "\0" x; echo' && [ "$(awk '{ print length($0) }' "$out" | sort -u)" = 300004 ]
}
is "long lines stay whole" big_line
flood() {
	{ "$tool" -q --timeout $((10 * slow)) -n 2 sh -c '[ $PLDK_RANK = 0 ] && exec yes; sleep 0.3; echo here; exit 3' 2>"$err" || true; } |
		grep -q '^\[1\] here'
}
is "a rank that floods does not block another" flood
is "--no-prefix leaves lines alone" run 0 -q --no-prefix -n 2 echo plain
plain() { [ "$(cat "$out")" = $'plain\nplain' ]; }
is "both of them" plain
stdin_is_for_rank_0() {
	printf 'word\n' | "$tool" -q -n 3 sh -c 'cat' >"$out" 2>"$err" && [ "$(cat "$out")" = "[0] word" ]
}
is "stdin is for rank 0 only" stdin_is_for_rank_0
broken_pipe() { { timeout $((10 * slow)) "$tool" -q -n 2 yes 2>"$err"; echo $? >"$work/code"; } | head -n 1 >"$out"; [ "$(cat "$work/code")" = 141 ]; }
is "ranks see a closed stdout as in a pipeline" broken_pipe

closed() {
	timed 0 sh -c 'exec "$@" <&- >&- 2>&-' sh "$tool" --no-prefix -n 2 "$helper" init gather finalize &&
		timed 0 sh -c 'exec "$@" >&-' sh "$tool" -n 2 "$helper" say=hello init gather finalize
}
is "closed standard descriptors do no harm to the world" closed
# One TERM ends the ranks; what they wrote still has a reader, who might come back.
stalled() {
	local code=0
	mkfifo "$work/fifo"
	exec 8<>"$work/fifo"
	"$tool" -q -n 2 yes >"$work/fifo" 2>"$err" 8>&- &
	job=$!
	sleep 0.3
	comes ends_by_term || code=1
	exec 8>&-
	ends_with 143 && [ $code = 0 ]
}
ends_by_term() { kill -TERM $job 2>/dev/null; sleep 0.2; has_ended $job; }
is "whoever asks twice for the end does not wait for a reader that does not read" stalled

# What ranks get.
environment() {
	run 0 -q -n 2 sh -c 'echo $PLDK_RANK $PLDK_NRANKS; test -e /proc/self/fd/$PLDK_FD; echo $PLDK_PROVIDER' &&
		grep -qx '\[1\] 1 2' "$out" && grep -qxE '\[0\] (dev|shm)' "$out"
}
is "ranks find their world in the environment" environment
bound() { run 0 -q -n 2 sh -c 'sed -n "s/Cpus_allowed_list:\t//p" /proc/self/status' && ! grep -q '[-,]' "$out"; }
is "each rank is bound to one CPU" bound
first_cpu=$(sed -n 's/Cpus_allowed_list:\t\([0-9]*\).*/\1/p' /proc/self/status)
mapped() {
	printf '# devices\n7 %s # here\n8 %s\n' "$first_cpu" "$first_cpu" >"$work/map"
	run 0 -q --device 7,8 --map "$work/map" sh -c 'sed -n "s/Cpus_allowed_list:\t//p" /proc/self/status' &&
		[ "$(sort -u "$out" | wc -l)" = 2 ] && [ "$(sed 's/.* //' "$out" | sort -u)" = "$first_cpu" ]
}
is "a map file places devices" mapped
unbound() {
	run 0 -q --no-bind -n 2 sh -c 'sed -n "s/Cpus_allowed_list:\t//p" /proc/self/status' &&
		[ "$(sed 's/.* //' "$out" | sort -u)" = "$(sed -n 's/Cpus_allowed_list:\t//p' /proc/self/status)" ]
}
is "--no-bind leaves the affinity alone" unbound
is "one line says which provider and why" run 0 -n 1 true
provider_line() { says '^pldrun: 1 rank on provider (dev|shm) \(.+\)$' && one_line; }
is "on stderr" provider_line
no_alarm() {
	[ ! -e /dev/pld ] || return 0
	(unset PLDK_PROVIDER && run 0 -n 2 true) &&
		says '^pldrun: 2 ranks on provider shm \(no /dev/pld: the module is not loaded; none is needed\)$' && one_line
}
is "and it does not sound like an error where there is no device" no_alarm
advice() { [ -e /dev/pld ] || { run 125 --provider dev -n 1 true && says 'modprobe pld' && one_line; }; }
is "but who asks for the device gets advice" advice
# 32 and 33 are the C library's own: no program can change them by its functions, so they are inherited as they are.
masks() {
	run 0 -q -n 1 sh -c 'grep -E "^Sig(Blk|Ign)" /proc/self/status' &&
		[ "$(grep -cE '0000000[01][08]0000000$' "$out")" = 2 ]
}
is "ranks start with no POSIX signal blocked or ignored" masks

is "whoever ignores SIGCHLD can start it" timed 0 env --ignore-signal=CHLD "$tool" -q -n 2 true
nested() { run 0 -q -n 2 "$tool" -q -n 2 sh -c 'echo $PLDK_RANK/$PLDK_NRANKS' && [ "$(sort "$out" | tr '\n' ,)" = '[0] [0] 0/2,[0] [1] 1/2,[1] [0] 0/2,[1] [1] 1/2,' ]; }
is "a rank may be a pldrun" nested
twins() {
	local first code=0
	start -q -n 3 "$helper" init gather gather finalize
	first=$job
	start -q -n 3 "$helper" init gather gather finalize
	wait $first || code=$?
	ends_with 0 && [ $code = 0 ]
}
is "two jobs at once do not know of each other" twins

# Whatever runs short while it starts, it ends, and says what.
few_descriptors() {
	local n bad=0
	for n in {5..26}; do
		timed 125 sh -c 'ulimit -n $0; exec "$@"' $n "$tool" -q -n 3 true >"$work/why"
		# What the last one needed is what a good job needs.
		last_says ': Too many open files$' || [ ! -s "$err" ] || bad=1
	done
	[ $bad = 0 ] && [ ! -s "$err" ]
}
is "too few descriptors are an error at any point of the start" few_descriptors
no_pidfd() {
	timed 125 "$helper" no-pidfd exec "$tool" -n 3 sleep 600 && last_says '^pldrun: cannot watch a rank: Operation not permitted$'
}
is "ranks that cannot be watched do not stay" no_pidfd

# POSIX signals, and what is left behind.
start -q -n 2 sh -c 'trap "echo got; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
await '\[1\] ready' && await '\[0\] ready' && kill -TERM "$job"
is "SIGTERM is handed on once, and ranks may end well" ends_with 0
got_it() { [ "$(grep -c got "$out")" = 2 ]; }
is "each rank got it" got_it
# A shell lets its background ignore SIGINT, and what is ignored stays so.
fresh
env --default-signal=INT "$tool" -q --timeout $((30 * slow)) -n 2 sh -c 'echo ready; exec sleep 600' >"$out" 2>"$err" </dev/null &
job=$!
await '\[1\] ready' && await '\[0\] ready' && kill -INT "$job"
is "130 when SIGINT ended the ranks" ends_with 130
is "and the reason" last_says '^pldrun: first failure: rank [01] .* killed by SIGINT; pldrun got SIGINT'
start -q -n 2 sh -c 'trap "echo got; sleep 0.3; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
await '\[1\] ready' && await '\[0\] ready' && kill -TERM "$job" $(children_of "$job")
is "one that comes twice at once, as from timeout(1), is one" ends_with 0
start -q -n 2 sh -c 'trap "echo got" TERM; echo ready; while :; do sleep 0.05; done'
await '\[1\] ready' && await '\[0\] ready' && kill -TERM "$job" && await '\[1\] got' && await '\[0\] got'
is "a second SIGTERM kills" comes ends_by_term
is "and the code says so" ends_with 143
fresh
env --ignore-signal=HUP "$tool" -q --timeout $((30 * slow)) -n 1 sh -c 'echo ready; until [ -e "$1" ]; do sleep 0.02; done' \
	sh "$work/hup" >"$out" 2>"$err" </dev/null &
job=$!
await ready && kill -HUP "$job" && sleep 0.2 && kill -HUP "$job"
: >"$work/hup"
is "what was ignored at the start stays ignored, as nohup wants it" ends_with 0

start -q -n 4 "$helper" init signal say=ready "0:sleep=$forever" wait
await '\[3\] ready'
runner=$(children_of "$job")
ranks=$(children_of $runner)
kill_job
killed() { [ "$(wc -w <<<"$ranks")" = 4 ] && is_gone $runner $ranks; }
is "kill -9 of pldrun leaves no rank behind" killed

start -q -n 2 sh -c 'sleep 600 & echo child $!; : >"$1.$PLDK_RANK"
	if [ $PLDK_RANK = 1 ]; then until [ -e "$1.0" ]; do sleep 0.02; done; exit 3; fi; wait' sh "$work/up"
is "a failing job ends" ends_with 3
# shellcheck disable=SC2046 # a list
children_gone() { is_gone $(sed -n 's/.*child //p' "$out") && [ "$(grep -c child "$out")" = 2 ]; }
is "with what its ranks started" children_gone
start -q -n 2 sh -c 'setsid sleep 600 & echo child $!'
is "a good job ends" ends_with 0
is "and leaves nothing in the background either" children_gone
no_zombie() {
	local status=0
	start -q -n 3 sh -c '[ $PLDK_RANK = 0 ] || exit 0; echo ready; until [ -e "$1" ]; do sleep 0.02; done' sh "$work/go"
	await ready
	comes has_one_rank || status=1
	: >"$work/go"
	ends_with 0 && [ $status = 0 ]
}
# Zombies are children, too: one is left when the other two have been waited for.
has_one_rank() { [ "$(children_of $(children_of "$job") | wc -w)" = 1 ]; }
is "ranks that have ended are reaped at once" no_zombie

# B5: a hundred thousand files in /dev/shm after jobs that had succeeded. Counted in places where nobody else writes.
no_files() {
	$1 sh -c 'mount -t tmpfs none /dev/shm && mkdir /dev/shm/bin && cp "$0" "$1" /dev/shm/bin || exit 2
		mount -t tmpfs none /run && mount -t tmpfs none /tmp || exit 2
		rm -rf /run/mount # mount(8) writes there
		cd /dev/shm/bin
		for i in 1 2 3 4 5; do
			./pldrun -q -n 4 ./pldrun_helper init gather finalize || exit 1
			./pldrun -q -n 4 ./pldrun_helper init 1:raise=9 gather && exit 1
		done
		find /dev/shm /run /tmp -mindepth 1 ! -path "/dev/shm/bin*"
		tail -n +2 -q /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg' \
		"$tool" "$helper" >"$out" 2>"$err" && ! [ -s "$out" ]
}
own_places='unshare -im'
[ "$(id -u)" = 0 ] || own_places='unshare -rim'
if $own_places mount -t tmpfs none /tmp 2>/dev/null; then
	is "jobs leave no file and no object of System V IPC" no_files "$own_places"
else
	tap_skip "jobs leave no file and no object of System V IPC" "no mount namespace is to be had"
fi

# Out of memory: needs a memory cgroup of one's own, of either version.
group=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/pldk_test_$$
limit_file=memory.max swap_file=memory.swap.max
if grep -q ':memory:' /proc/self/cgroup; then
	group=/sys/fs/cgroup/memory$(sed -n 's/.*:memory://p' /proc/self/cgroup)/pldk_test_$$
	[ -d "${group%/*}" ] || group=/sys/fs/cgroup/memory/pldk_test_$$
	limit_file=memory.limit_in_bytes swap_file=memory.memsw.limit_in_bytes
fi
oom() {
	local code=0
	(echo 0 >"$group/cgroup.procs" && exec "$tool" -n 2 "$helper" init 1:eat gather) >"$out" 2>"$err" </dev/null || code=$?
	[ $code = 137 ] && last_says '^pldrun: first failure: rank 1 .* killed by SIGKILL; out of memory'
}
if mkdir "$group" 2>/dev/null && echo 64M >"$group/$limit_file" 2>/dev/null; then
	{ echo 64M >"$group/$swap_file"; } 2>/dev/null
	is "a rank that is killed for memory is named, with the reason" oom
else
	tap_skip "a rank that is killed for memory is named, with the reason" "no memory cgroup can be made here"
fi
rmdir "$group" 2>/dev/null

tap_done
