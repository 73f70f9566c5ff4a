#!/usr/bin/env bash
# Puts HAProxy, beside which make bench measures services of mode tcp, at bin/haproxy, from
# packages of Debian 12: downloaded with apt-get, unpacked, and not installed. Does nothing
# if it exists; may run twice at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=2.6.12-1+deb12u4

# pinned prints package, version and sha256, for this machine.
pinned() {
	case "$(uname -s)-$(uname -m)" in
	Linux-x86_64) cat <<END ;;
haproxy $version 97ca097d12b43fc5cb1b17aa5e84957735ef312a2e02cf8a99512fa1abe8a955
liblua5.3-0 5.3.6-2 576ad8ef2e9f6ad21f29f0c90dac17448deefee8f3912877c2a0911b77e5d3ca
libopentracing-c-wrapper0 1.1.3-3+b1 68013bf6296a776923622c871bed26bc7b6bfe5f84b0fa2707a06382d1db2692
libopentracing1 1.6.0-4 af62b62a99979253a79e3443f7dabe13f1f33bc2fc024f99039e3868a67f26f4
END
	*) fail "no HAProxy is pinned for $(uname -s) on $(uname -m); run make bench on Linux on x86_64" ;;
	esac
}

# unpack SCRATCH leaves HAProxy in SCRATCH/out, with a script that finds its libraries.
unpack() {
	log "fetching HAProxy $version"
	pinned >"$1/pins"
	unpack_pinned_debs "$1" <"$1/pins"
	cat >"$1/out/haproxy" <<'END'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=$(echo "$here"/usr/lib/*-linux-gnu) exec "$here/usr/sbin/haproxy" "$@"
END
	chmod 755 "$1/out/haproxy"
	"$1/out/haproxy" -v >&2 || fail "HAProxy $version does not run on this machine; see what it says above, and run make bench on Debian 12"
}

need_command dpkg-deb "install dpkg"
need_command apt-get "HAProxy comes from the packages of Debian 12: run make bench on Debian 12, or in a container of it"
dir=$(gatehouse_root)/bin/tools/haproxy-$version
install_once "$dir" unpack
ln -sfn "tools/${dir##*/}/haproxy" "$(gatehouse_root)/bin/haproxy"
log "bin/haproxy is HAProxy $version"
