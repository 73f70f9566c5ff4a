#!/usr/bin/env bash
# Puts Prometheus and promtool at bin/prometheus and bin/promtool, which run the alerts and the
# queries of the dashboards in test/observe, from a package of Debian 12: downloaded with
# apt-get, unpacked, and not installed, so that the machine does not change and root is not
# required. Does nothing if it exists; may run twice at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=2.42.0

# pinned prints package, version and sha256, for this machine.
pinned() {
	case "$(uname -s)-$(uname -m)" in
	Linux-x86_64) echo "prometheus $version+ds-5+deb12u1 81d59a24fce84f7fbe97a45a4f2914b6a5881b5cd1db2a6a0e129e515e1a5f55" ;;
	Linux-aarch64) echo "prometheus $version+ds-5+deb12u1 ca131aa102390083398afbc80be9c8dd1dda78f9f92154fc00df8f7f1f4556e9" ;;
	*) fail "no Prometheus is pinned for $(uname -s) on $(uname -m); run the tests on Linux on x86_64 or aarch64" ;;
	esac
}

# unpack SCRATCH leaves Prometheus in SCRATCH/out.
unpack() {
	log "fetching Prometheus $version"
	pinned >"$1/pins"
	unpack_pinned_debs "$1" <"$1/pins"
	"$1/out/usr/bin/promtool" --version >/dev/null 2>&1 ||
		fail "Prometheus $version does not run on this machine; run the tests on Debian 12"
}

need_command apt-get "Prometheus comes from the packages of Debian 12: run the tests on Debian 12, or in a container of it"
need_command dpkg-deb "install dpkg"
# The directory's name contains the version: another version goes into another
# directory.
dir=$(gatehouse_root)/bin/tools/prometheus-$version
install_once "$dir" unpack
for name in prometheus promtool; do
	ln -sfn "tools/${dir##*/}/usr/bin/$name" "$(gatehouse_root)/bin/$name"
done
log "bin/prometheus is Prometheus $version"
