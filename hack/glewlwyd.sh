#!/usr/bin/env bash
# Puts Glewlwyd, the second identity provider of the tests, at bin/glewlwyd, from the
# packages of Debian 12: downloaded with apt-get, unpacked, and not installed, so that
# the machine does not change and root is not required. Glewlwyd and its own libraries
# are checked against the sums below; other libraries that the machine lacks come from
# Debian, checked by apt's signatures. Does nothing if it exists; may run twice at the
# same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=2.7.5-3+deb12u1

# pinned prints package, version and sha256 of each, for this machine.
pinned() {
	case "$(uname -s)-$(uname -m)" in
	Linux-x86_64) cat <<-END
		glewlwyd $version b74504fbd408453ba629ee5bb99975b4361ca161ead068304e5d5a66ceec3f6a
		libconfig9 1.5-0.4 3e41fa915bacbedfc3ac1550a2ccd2f1675b37e76d727faefa2b083e7ae53f54
		libhoel1.4 1.4.27-1 b54ee180a59f9cefd1a3eb94b3e05e765d3327a3ca033d0ac94c052bc497f530
		libiddawc1.1 1.1.8-1 7586ed1d645f89015dc27fb074959916d38a21ca5a7b8d7d5e247e3d97e21278
		libmicrohttpd12 0.9.75-6 bc48c3d32cfb9b188e3bdd080554143ec6253ea68dc2d7f239aa32d27a6aa792
		liboath0 2.6.7-3.1+deb12u1 6d60d503483c19304fa14e15376e67a79d0b433d4d8b454042d3241f574325da
		liborcania2.3 2.3.2-1 c0da3e5a88a80740665ac9a35bd4c4e66813ed22cab7a88622701ed11004bef8
		librhonabwy1.1 1.1.11-1 4ba0f340e224536ebfcdc088e7461b9c5d162132ab5698a5eaaca110011fe7d7
		libulfius2.7 2.7.13-1 fb15f5dfccc702bb8049360e25b926bcd117fe022f47680d5a7541c13e7550ea
		libyder2.0 1.4.19-1 ee37dae5297e54c6093d6abdc1260ef4e381a013918657d9bbe913b8238833c2
	END
	;;
	Linux-aarch64) cat <<-END
		glewlwyd $version 35d7de6a1299aa27d709c3ad7043e7c69150b0a98ecc869cea619389d3272d1b
		libconfig9 1.5-0.4 81ca6efcfe714a0e5a1da7b8695807b0e5cea704990cc728aa8de878830c0544
		libhoel1.4 1.4.27-1 1cf406f6663ca09ed0e3712acbfc89302a06423c41dec02562a47896400a62ac
		libiddawc1.1 1.1.8-1 89ac9e330caca99f8b8f647a90157d30069eaf51c9acf1bfa0ed5d3e74d1becb
		libmicrohttpd12 0.9.75-6 473e8d09950acee28b2b1699ba7a0e2eae55c2dbd179b70de5fc8b4ed58b0a52
		liboath0 2.6.7-3.1+deb12u1 91bfdd74411890b6d4c610cb99c0eb2de49e817305ead25296643ade0170bc2d
		liborcania2.3 2.3.2-1 8d0dd594c95d0bedfc18fe7955e2468a7cd137d293686dc1cc0c10fd421f52b5
		librhonabwy1.1 1.1.11-1 6e8bb928736e1f603e4d8b092f18f942a58f1fdd5d4e40f7b643f0dba62f7bba
		libulfius2.7 2.7.13-1 c74cb17f49409cd21fba844541a9e96db80b0d857983b5993bb4ff1c3a1da35a
		libyder2.0 1.4.19-1 e0988c760f745230a971126616f5e90d6e9db462e9efc33097687f0f79de44cb
	END
	;;
	*) fail "no Glewlwyd is pinned for $(uname -s) on $(uname -m); run the tests on Linux on x86_64 or aarch64" ;;
	esac
}

# package_of LIBRARY prints the package of a library that the machine lacks.
package_of() {
	case $1 in
	libcbor.so.0.8) echo libcbor0.8 ;;
	libcurl-gnutls.so.4) echo libcurl3-gnutls ;;
	libjansson.so.4) echo libjansson4 ;;
	libldap-2.5.so.0 | liblber-2.5.so.0) echo libldap-2.5-0 ;;
	libmariadb.so.3) echo libmariadb3 ;;
	libpq.so.5) echo libpq5 ;;
	libsasl2.so.2) echo libsasl2-2 ;;
	libsqlite3.so.0) echo libsqlite3-0 ;;
	*) fail "Glewlwyd needs $1, which this machine lacks; install it (Debian: apt-file search $1), then try again" ;;
	esac
}

# lacking DIR lists the libraries that the programs in DIR need and the machine lacks.
lacking() {
	find "$1/usr/bin" "$1/usr/lib" -type f \( -name glewlwyd -o -name '*.so*' \) -exec env LD_LIBRARY_PATH="$(echo "$1"/usr/lib/*-linux-gnu)" ldd {} + 2>/dev/null |
		awk '/=> not found/ { print $1 }' | sort -u
}

# unpack SCRATCH leaves Glewlwyd in SCRATCH/out.
unpack() {
	local scratch=$1 package library
	local -A got=()
	log "fetching Glewlwyd $version"
	pinned >"$scratch/pins"
	unpack_pinned_debs "$scratch" <"$scratch/pins"
	while library=$(lacking "$scratch/out" | head -n 1) && [ -n "$library" ]; do
		package=$(package_of "$library")
		[ -z "${got[$package]:-}" ] || fail "$package does not have $library, which Glewlwyd needs"
		got[$package]=yes
		download_deb "$scratch" "$package"
		dpkg-deb -x "$(echo "$scratch/debs/${package}_"*.deb)" "$scratch/out"
	done
	python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(open(sys.argv[2]).read())' \
		"$scratch/out/empty.db" "$scratch/out/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3"
}

need_command apt-get "Glewlwyd comes from the packages of Debian 12: run the tests on Debian 12, or in a container of it"
need_command dpkg-deb "install dpkg"
# The directory's name contains the version: another version goes into another
# directory.
dir=$(gatehouse_root)/bin/tools/glewlwyd-$version
install_once "$dir" unpack
ln -sfn "tools/${dir##*/}" "$(gatehouse_root)/bin/glewlwyd"
log "bin/glewlwyd is Glewlwyd ${version%%-*}"
