#!/usr/bin/env bash
# Puts Valgrind, which counts the instructions of Envoy in test/cost, at bin/valgrind, from a
# package of Debian 12: downloaded with apt-get, unpacked, and not installed, so that the
# machine does not change and root is not required. Does nothing if it exists; may run twice
# at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=3.19.0

# pinned prints package, version and sha256, for this machine.
pinned() {
	case "$(uname -s)-$(uname -m)" in
	Linux-x86_64) echo "valgrind 1:$version-1 324842f2308a1e42abf2d81ff5eb19a9475fc9db95647f4d9da71444eda4087f" ;;
	Linux-aarch64) echo "valgrind 1:$version-1 a0c6bada2ffaa76cb3eae2480cb851fe31b25703f5879e31a44902ea707fc020" ;;
	*) fail "no Valgrind is pinned for $(uname -s) on $(uname -m); run the tests on Linux on x86_64 or aarch64" ;;
	esac
}

# unpack SCRATCH leaves Valgrind in SCRATCH/out.
unpack() {
	log "fetching Valgrind $version"
	pinned >"$1/pins"
	unpack_pinned_debs "$1" <"$1/pins"
	VALGRIND_LIB=$1/out/usr/libexec/valgrind "$1/out/usr/bin/valgrind.bin" -q --tool=callgrind --callgrind-out-file=/dev/null true ||
		fail "Valgrind $version does not run on this machine; see what it says above, and run the tests on Debian 12"
}

need_command apt-get "Valgrind comes from the packages of Debian 12: run the tests on Debian 12, or in a container of it"
need_command dpkg-deb "install dpkg"
# The directory's name contains the version: another version goes into another
# directory.
dir=$(gatehouse_root)/bin/tools/valgrind-$version
install_once "$dir" unpack
ln -sfn "tools/${dir##*/}" "$(gatehouse_root)/bin/valgrind"
log "bin/valgrind is Valgrind $version"
