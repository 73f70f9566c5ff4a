#!/usr/bin/env bash
# Puts nginx, with which test/kubernetes compares translated Ingresses, at bin/nginx, from a
# package of Debian 12: downloaded with apt-get, unpacked, and not installed. Does nothing if
# it exists; may run twice at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=1.22.1-9+deb12u11

# pinned prints package, version and sha256, for this machine.
pinned() {
	case "$(uname -s)-$(uname -m)" in
	Linux-x86_64) echo "nginx $version 4e2778e675c07d0f2d8d3b6f5ff84f6483ade1d82c21c910eb9a2787e1cf1b1a" ;;
	*) fail "no nginx is pinned for $(uname -s) on $(uname -m); run make test on Linux on x86_64" ;;
	esac
}

# unpack SCRATCH leaves nginx in SCRATCH/out.
unpack() {
	log "fetching nginx $version"
	pinned >"$1/pins"
	unpack_pinned_debs "$1" <"$1/pins"
	"$1/out/usr/sbin/nginx" -v 2>&1 | grep -q "$(echo "$version" | cut -d- -f1)" || fail "nginx $version does not run on this machine; run make test on Debian 12"
}

need_command dpkg-deb "install dpkg"
need_command apt-get "nginx comes from the packages of Debian 12: run make test on Debian 12, or in a container of it"
dir=$(gatehouse_root)/bin/tools/nginx-$version
install_once "$dir" unpack
ln -sfn "tools/${dir##*/}/usr/sbin/nginx" "$(gatehouse_root)/bin/nginx"
log "bin/nginx is nginx $version"
