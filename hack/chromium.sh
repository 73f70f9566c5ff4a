#!/usr/bin/env bash
# Installs what the specs with Chromium need from the packages of Debian, if it is
# missing: Chromium, and the tools for its certificate store. Unlike the other scripts
# it changes the machine: install these packages before `make test` where it must not run as root.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_command openssl "install OpenSSL (Debian: apt-get install openssl)"
need_command unshare "install util-linux"
missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v certutil >/dev/null && command -v pk12util >/dev/null || missing+=(libnss3-tools)
if [ "${#missing[@]}" -gt 0 ]; then
	need_command apt-get "install ${missing[*]}, then try again"
	[ "$(id -u)" = 0 ] || fail "${missing[*]} must be installed; run: sudo apt-get install ${missing[*]}"
	log "installing ${missing[*]}"
	apt-get install --yes --no-install-recommends "${missing[@]}" >&2 ||
		{ apt-get update >&2 && apt-get install --yes --no-install-recommends "${missing[@]}" >&2; } ||
		fail "apt-get could not install ${missing[*]}; run apt-get update, then try again"
fi
log "$(chromium --version 2>/dev/null) is installed"
