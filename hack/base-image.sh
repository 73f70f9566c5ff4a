#!/usr/bin/env bash
# Makes the image debian:12-slim from Debian's packages, if no registry can be
# reached: images that are built on it are then built as elsewhere, from the same
# Dockerfile. Does nothing if the engine has the image. It needs root, and an engine
# (see hack/docker.sh).
#
# usage: hack/base-image.sh [IMAGE]
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

suite=bookworm
image=${1:-debian:12-slim}
docker=${DOCKER:-docker}

# mirror prints the URL from which apt gets this release; nothing if apt does not know
# it.
mirror() {
	apt-get indextargets --format '$(REPO_URI)' "Created-By: Packages" "Release: $suite" 2>/dev/null | head -n 1
}

# unpack SCRATCH leaves the smallest Debian, without documentation, in
# SCRATCH/out/rootfs.tar.
unpack() {
	local programs from root=$1/rootfs
	programs=$("$(gatehouse_root)/hack/docker.sh" fetch)
	log "building $image from Debian's packages"
	from=$(mirror || true) # if empty, debootstrap uses its default
	# Its standard output is long.
	DEBOOTSTRAP_DIR=$programs/usr/share/debootstrap "$programs/usr/sbin/debootstrap" \
		--variant=minbase --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
		"$suite" "$root" ${from:+"$from"} >"$1/log" 2>&1 || {
		tail -n 5 "$1/log" >&2
		fail "debootstrap could not read ${from:-its mirror}; check the network and /etc/apt, then try again"
	}
	rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/debootstrap
	rm -rf "$root"/usr/share/{doc/*/changelog*,info,locale,man}
	mkdir "$1/out"
	tar -C "$root" --numeric-owner --one-file-system -cf "$1/out/rootfs.tar" .
}

if "$docker" image inspect "$image" >/dev/null 2>&1; then
	log "the engine has $image"
	exit 0
fi
[ "$(id -u)" = 0 ] || fail "$image is built by debootstrap, which needs root"
need_command wget "install wget, which debootstrap uses"
dir=$(gatehouse_root)/bin/tools/debian-12-slim
install_once "$dir" unpack
"$docker" import --change 'CMD ["bash"]' "$dir/rootfs.tar" "$image" >/dev/null
log "$image exists"
