#!/usr/bin/env bash
# Collects the contents of the images in bin/image: the programs, which must exist, the
# C library that Envoy needs and the certificate authorities, both from pinned packages
# of Debian 12, the licenses, and for each image an SBOM of all these. The Dockerfile
# only copies them.
#
# usage: hack/image.sh [ARCH GATEHOUSE OUT]
#   ARCH is amd64 or arm64, GATEHOUSE the program for it, OUT the directory in place of
#   bin/image. A program that this machine cannot run has the version GATEHOUSE_VERSION.
#
# DEBIAN_MIRROR is for a machine without apt-get, or whose apt-get lacks these packages:
# the URL of a mirror with the directories debian and debian-security.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$(gatehouse_root)"

# pinned prints package, version, sha256 and the path in Debian's archives of each.
# "apt-cache show PACKAGE" on an updated Debian 12 shows a new version.
pinned() {
	printf '%s %s %s %s\n' ca-certificates '20250419~deb12u2' b9f76b5271a7ac373fd5e7e1b5b826a71ddd702b42a0d104955ecb1acfffc94b \
		debian-security/pool/updates/main/c/ca-certificates/ca-certificates_20250419~deb12u2_all.deb
	case $machine in
	x86_64) printf '%s %s %s %s\n' libc6 2.36-9+deb12u14 ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf \
		debian/pool/main/g/glibc/libc6_2.36-9+deb12u14_amd64.deb ;;
	aarch64) printf '%s %s %s %s\n' libc6 2.36-9+deb12u14 01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4 \
		debian/pool/main/g/glibc/libc6_2.36-9+deb12u14_arm64.deb ;;
	*) fail "no C library is pinned for $machine; build the images for amd64 or arm64" ;;
	esac
}

# fetch SCRATCH PACKAGE VERSION PLACE leaves the package in SCRATCH/debs, from apt-get
# if that has it, otherwise from DEBIAN_MIRROR. For another machine it takes the mirror of apt-get.
fetch() {
	local from=${DEBIAN_MIRROR:-}
	if [[ $4 == *_all.deb || $machine == $(uname -m) ]] && command -v apt-get >/dev/null && (download_deb "$1" "$2=$3") >/dev/null 2>&1; then
		return 0
	fi
	[ -n "$from" ] || from=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Created-By: Packages' 2>/dev/null | grep '/debian/$' | head -n 1 | sed 's#/debian/$##') || true
	[ -n "$from" ] ||
		fail "apt-get does not have $2 $3 of Debian 12: give a mirror of Debian with DEBIAN_MIRROR=URL, or choose the version of today in hack/image.sh"
	mkdir -p "$1/debs"
	curl -fsSL --max-time 120 -o "$1/debs/${4##*/}" "${from%/}/${4//\~/%7E}" ||
		fail "the mirror $from does not have $2 $3; check the network, give another one with DEBIAN_MIRROR=URL, or choose the version of today in hack/image.sh"
}

# extract DEB DIR unpacks a package; without dpkg it uses ar.
extract() {
	if command -v dpkg-deb >/dev/null; then
		dpkg-deb -x "$1" "$2"
	else
		need_command ar "install binutils, or dpkg"
		ar p "$1" data.tar.xz | tar -xJ -C "$2"
	fi
}

# unpack SCRATCH leaves in out the content of each package in a directory with its name.
unpack() {
	local package version sum place deb
	log "fetching the C library and the certificate authorities of the images"
	while read -r package version sum place; do
		fetch "$1" "$package" "$version" "$place"
		deb=$(echo "$1/debs/${package}_"*.deb)
		verify_sha256 "$deb" "$sum"
		mkdir -p "$1/out/$package"
		extract "$deb" "$1/out/$package"
	done < <(pinned)
}

# described PACKAGE ROOT records, for scanners of images, which Debian package is in
# ROOT.
described() {
	local version place
	read -r _ version _ place < <(pinned | grep "^$1 ")
	mkdir -p "$2/var/lib/dpkg/status.d"
	printf 'Package: %s\nVersion: %s\nArchitecture: %s\n' "$1" "$version" "$(sed 's/.*_//; s/\.deb$//' <<<"$place")" >"$2/var/lib/dpkg/status.d/$1"
	install -D -m 644 "$packages/$1/usr/share/doc/$1/copyright" "$2/usr/share/doc/$1/copyright"
}

# with_envoy ROOT adds Envoy, and the parts of the C library that Envoy needs.
with_envoy() {
	local name path
	install -D -m 755 "$envoy" "$1/usr/local/bin/envoy"
	while read -r name; do
		case $name in
		/*) path=$name ;; # the loader, whose path is in Envoy
		*) path=/lib/$machine-linux-gnu/$name ;;
		esac
		[ -f "$packages/libc6/lib/$machine-linux-gnu/${path##*/}" ] || fail "libc6 has no ${path##*/}, which Envoy needs"
		install -D -m 644 "$packages/libc6/lib/$machine-linux-gnu/${path##*/}" "$1$path"
		[ "$path" != "$name" ] || chmod 755 "$1$path"
	done < <(go run ./hack/needs "$envoy")
	described libc6 "$1"
	install -D -m 644 hack/notices/envoy.txt "$1/usr/share/doc/envoy/NOTICE"
	install -D -m 644 LICENSE "$1/usr/share/doc/envoy/LICENSE"
}

# with_gatehouse ROOT adds the gateway's program and the system files that it reads.
with_gatehouse() {
	install -D -m 755 "$gatehouse" "$1/usr/local/bin/gatehouse"
	install -D -m 644 -t "$1/usr/share/doc/gatehouse" LICENSE bin/notices/gatehouse.txt
	mkdir -p "$1/etc/ssl/certs"
	cat "$packages"/ca-certificates/usr/share/ca-certificates/mozilla/*.crt >"$1/etc/ssl/certs/ca-certificates.crt"
	described ca-certificates "$1"
	printf 'gatehouse:x:10001:10001:Gatehouse:/var/lib/gatehouse:/nonexistent\n' >"$1/etc/passwd"
	printf 'gatehouse:x:10001:\n' >"$1/etc/group"
	printf 'hosts: files dns\n' >"$1/etc/nsswitch.conf"
}

umask 022 # another user reads the files
gatehouse=${2:-bin/gatehouse}
out=${3:-bin/image}
envoy=bin/envoy
case ${1:-} in
'') machine=$(uname -m) ;;
amd64) machine=x86_64 envoy=$(hack/envoy.sh amd64) ;;
arm64) machine=aarch64 envoy=$(hack/envoy.sh arm64) ;;
*) fail "there is no image for $1; give amd64 or arm64" ;;
esac
for program in "$gatehouse" "$envoy"; do
	[ -x "$program" ] || fail "$program is not there; run make build envoy"
done
# The directory's name depends on the versions: other versions go into another directory.
packages=bin/tools/image-$(pinned | sha256sum | cut -c 1-12)
install_once "$packages" unpack
hack/notices.sh "$gatehouse" bin/notices/gatehouse.txt . hack/notices/swagger-ui.txt hack/notices/site.txt hack/notices/console.txt
rm -rf "$out"
with_envoy "$out/envoy"
with_gatehouse "$out/gatehouse"
# A new volume gets the owner and the mode of this directory.
install -d -m 750 "$out/data/gatehouse"
for image in standalone control-plane; do
	parts=("$out/gatehouse")
	[ "$image" = control-plane ] || parts+=("$out/envoy")
	mkdir -p "$out/$image/usr/share/doc/gatehouse"
	go run ./hack/sbom "$image" "${parts[@]}" >"$out/$image/usr/share/doc/gatehouse/sbom.cdx.json"
done
log "$out: what the images hold"
