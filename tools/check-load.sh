#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# tools/check-load.sh: `make load`, the udev rule (group pld, mode 0660), `make unload`, and loading and unloading around
# jobs, in a VM without the module. TAP on stdout. udev itself is unpacked into the cache and started in the VM only;
# this machine may lack it.

set -uo pipefail
cd "$(dirname "$0")/.." || exit 69
# shellcheck source-path=SCRIPTDIR/..
. selftests/tap.sh

# The guest's half; the host's files are writable here and changes are thrown away.
guest() {
	local udev=$1 ko=$2
	export LD_LIBRARY_PATH="$udev/lib/x86_64-linux-gnu:$udev/usr/lib/x86_64-linux-gnu"
	getent group pld >/dev/null || groupadd --system pld
	# shellcheck disable=SC2317 # tap_try calls these
	device() { stat -c '%F %G %a' /dev/pld 2>&1; }
	# shellcheck disable=SC2317
	absent() { [ ! -e /dev/pld ] && ! grep -q '^pld ' /proc/modules; }
	# shellcheck disable=SC2317
	is() { [ "$(device)" = "$1" ] || { device; return 1; }; }
	# shellcheck disable=SC2317
	in_use() { ! rmmod pld && grep -q '^pld .* Live ' /proc/modules; }
	# shellcheck disable=SC2317
	job() { tools/pldrun --provider dev -n 2 selftests/tutorial/hello; }
	# shellcheck disable=SC2317
	soon() {
		local i
		for ((i = 0; i < 200; i++)); do
			! "$@" || return 0
			sleep 0.05
		done
		return 1
	}

	tap_try "nothing is loaded at the start" absent
	cp "$ko" pld.ko
	tap_try "make load" make --no-print-directory load
	tap_try "without udev, make load sets group and mode" is 'character special file pld 660'
	tap_try "make unload" make --no-print-directory unload
	tap_try "nothing is left" absent

	mkdir -p /etc/udev/rules.d /run/udev
	cp kmod/60-pld.rules /etc/udev/rules.d/
	# The daemon is udevadm by another name.
	(exec -a systemd-udevd "$udev/bin/udevadm" --daemon)
	tap_try "the module alone" insmod pld.ko
	tap_try "udev handles the event" "$udev/bin/udevadm" settle --timeout=30
	tap_try "the udev rule sets group and mode" is 'character special file pld 660'
	tap_try "a job" job
	tools/pldrun --provider dev -n 2 sleep 1000 2>/dev/null &
	tap_try "the job has its domain" soon grep -q '^domains:.[1-9]' /sys/kernel/debug/pld/counters
	tap_try "rmmod is refused while a job runs" in_use
	kill $!
	wait $!
	tap_try "rmmod" soon rmmod pld
	tap_try "nothing is left again" absent
	tap_try "the module once more" insmod pld.ko
	tap_try "a job of the new module" job
	tap_try "rmmod again" rmmod pld
	tap_try "nothing is left at the end" absent
	tap_done
}

if [ "${1:-}" = --guest ]; then
	guest "$2" "$3"
	exit
fi

# In a subshell: lib.sh changes the shell's options.
udev=$(
	. tools/vm/lib.sh
	dir="$vm_cache/udev"
	if [ ! -e "$dir/bin/udevadm" ]; then
		vm_lock udev
		vm_apt bookworm >&2
		rm -rf "$dir" "$dir.new"
		vm_unpack "$dir.new" udev libudev1 >&2
		mv "$dir.new" "$dir"
	fi
	echo "$dir"
) || { echo "Bail out! udev could not be fetched"; exit 1; }
ko=$(tools/vm/build-module --cached 6.1) || { echo "Bail out! the module did not build"; exit 1; }
exec tools/vm/run --no-module --kernel 6.1 -- "$PWD/tools/check-load.sh" --guest "$udev" "$ko"
