# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# What every script of tools/vm shares: error sentences, the cache outside the tree, its locks, and a
# private apt that reads the Debian mirror of this machine's own apt but has its own lists and cache
# folders. Invariant: nothing here changes the host system or the source tree; a folder of the cache
# is either absent or complete (it is filled under another name, then renamed).
#
# Sourced, never run. The caller has set -euo pipefail.

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # for those who source this
vm_repo=$(cd "$vm_dir/../.." && pwd)
vm_cache=${PLDK_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/pldk}

vm_say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# vm_die CODE SENTENCE...
vm_die() {
	local code=$1
	shift
	vm_say "$@"
	exit "$code"
}

# vm_need COMMAND PACKAGE GROUP: fail early, with the command that mends it.
vm_need() {
	command -v "$1" >/dev/null 2>&1 ||
		vm_die 69 "the command '$1' (package $2) is missing; run: tools/setup $3"
}

# vm_lock NAME: hold an exclusive lock of the cache until the process (or subshell) ends.
# Children inherit the descriptor, so vm_unlock comes before starting one that may live long.
vm_lock() {
	mkdir -p "$vm_cache/lock"
	exec {vm_lock_fd}>"$vm_cache/lock/$1"
	if ! flock -w 3 "$vm_lock_fd"; then
		vm_say "waiting for another process that prepares '$1'"
		flock "$vm_lock_fd"
	fi
}

vm_unlock() { exec {vm_lock_fd}>&-; }

# The kernel names that the scripts take, and the Debian suite that serves each.
vm_suite_of() {
	case $1 in
	6.1) echo bookworm ;;
	6.12) echo bookworm-backports ;;
	7) echo trixie-backports ;;
	*) vm_die 64 "kernel '$1' is unknown; expected 6.1, 6.12, 7 or debug" ;;
	esac
}

# vm_mirror KIND: the URI that this machine's apt uses for Debian (KIND=main) or its security
# archive (KIND=security). Read at run time, so that no host name stands in a file.
vm_mirror() {
	# shellcheck disable=SC2016 # apt expands these, not the shell
	apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Identifier: Packages' |
		awk -v kind="$1" '
			$2 !~ /^(bookworm|trixie|forky|duke|sid|oldstable|stable|testing|unstable)/ { next }
			($2 ~ /security/) == (kind == "security") { print $1; exit }'
}

# vm_apt SUITE: prepare a private apt for SUITE; sets the array vm_apt_opts for apt-get and apt-cache.
vm_apt() {
	local suite=$1 base="$vm_cache/apt/$1" key=/usr/share/keyrings/debian-archive-keyring.gpg
	local mirror security fresh
	mirror=$(vm_mirror main)
	[ -n "$mirror" ] ||
		vm_die 69 "this machine's apt names no Debian mirror; expected one in 'apt-get indextargets'; add a Debian source to /etc/apt"
	mkdir -p "$base/lists/partial" "$base/cache/archives/partial" "$base/empty"
	{
		echo "deb [signed-by=$key] $mirror $suite main"
		security=$(vm_mirror security)
		case $suite in
		*-*) ;;
		*) [ -z "$security" ] || echo "deb [signed-by=$key] $security $suite-security main" ;;
		esac
	} >"$base/sources.list"
	vm_apt_opts=(
		-qq
		-o Dir::Etc::sourcelist="$base/sources.list"
		-o Dir::Etc::sourceparts="$base/empty"
		-o Dir::Etc::preferences=/dev/null
		-o Dir::Etc::preferencesparts="$base/empty"
		-o Dir::State::Lists="$base/lists"
		-o Dir::State::status=/dev/null
		-o Dir::Cache="$base/cache"
		-o Dir::Cache::pkgcache=
		-o Dir::Cache::srcpkgcache=
		-o APT::Update::Post-Invoke-Success::=
		-o APT::Sandbox::User="$(id -un)"
	)
	# Lists younger than an hour are good: several packages in a row need one update.
	fresh=$(find "$base/updated" -mmin -60 2>/dev/null || true)
	if [ -z "$fresh" ]; then
		apt-get "${vm_apt_opts[@]}" update >&2 ||
			vm_die 69 "apt could not read the lists of $suite; check the network and this machine's Debian mirror"
		touch "$base/updated"
	fi
}

# vm_apt_closure PATTERN PACKAGE...: the packages and those of their dependencies that match PATTERN.
vm_apt_closure() {
	local pattern=$1
	shift
	apt-cache "${vm_apt_opts[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts \
		--no-breaks --no-replaces --no-enhances "$@" | grep -E "^($pattern)" | sort -u
}

# vm_unpack DIR PACKAGE...: download with the private apt and unpack (never install) into DIR.
vm_unpack() {
	local dir=$1 deb tmp
	shift
	tmp=$(mktemp -d "$vm_cache/debs.XXXXXX")
	if ! (cd "$tmp" && apt-get "${vm_apt_opts[@]}" download "$@" >&2); then
		rm -rf "$tmp"
		vm_die 69 "apt could not download: $*"
	fi
	for deb in "$tmp"/*.deb; do
		dpkg-deb -x "$deb" "$dir"
	done
	rm -rf "$tmp"
}

# vm_kernel NAME: make the kernel present in the cache; sets vm_k (its folder, with the files
# release, image, modules/ and, save for 7, kdir).
# shellcheck disable=SC2034
vm_kernel() { vm_k=$("$vm_dir/kernel" "$1"); }

# vm_source_deb: sets vm_deb to Debian's linux-source-6.1 package in the cache, fetched when missing.
vm_source_deb() {
	vm_deb="$vm_cache/linux-source-6.1.deb"
	[ ! -e "$vm_deb" ] || return 0
	local tmp
	vm_say "fetching the kernel source package (once, 140 MB)"
	vm_apt bookworm
	tmp=$(mktemp -d "$vm_cache/debs.XXXXXX")
	(cd "$tmp" && apt-get "${vm_apt_opts[@]}" download linux-source-6.1 >&2) ||
		vm_die 69 "apt could not download linux-source-6.1; check the network and this machine's Debian mirror"
	mv "$tmp"/*.deb "$vm_deb"
	rm -rf "$tmp"
}

# vm_source_tar ARG...: tar with ARG... on the source tarball inside that package.
vm_source_tar() {
	dpkg-deb --fsys-tarfile "$vm_deb" | tar -xOf - ./usr/src/linux-source-6.1.tar.xz | tar -xJf - "$@"
}
