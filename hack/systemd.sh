#!/usr/bin/env bash
# Runs the units of hack/systemd under systemd, in containers of Debian with a network of
# their own: as docs/operations.md installs them, and as the Debian package does. It needs root, debootstrap and systemd-nspawn,
# which it installs from Debian if they are missing, so only `make test-systemd` calls it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(gatehouse_root)
[ "$(id -u)" = 0 ] || fail "containers of systemd-nspawn need root; run: sudo make test-systemd"
missing=()
command -v debootstrap >/dev/null || missing+=(debootstrap)
command -v systemd-nspawn >/dev/null || missing+=(systemd-container)
if [ "${#missing[@]}" -gt 0 ]; then
	log "installing ${missing[*]}"
	apt-get install --yes --no-install-recommends "${missing[@]}" >&2 || fail "apt-get could not install ${missing[*]}; run apt-get update, then try again"
fi

# debian makes a small Debian with systemd in SCRATCH/out.
debian() {
	local from
	# The source that apt uses here, the first of those of Debian itself.
	from=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Created-By: Packages' | grep -v security | head -n 1)
	log "fetching a Debian with systemd (250 MB)"
	debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,curl,zlib1g bookworm "$1/out" "$from" >"$1/log" 2>&1 || {
		tail -n 5 "$1/log" >&2
		fail "debootstrap could not make a Debian"
	}
}

tree=$root/bin/systemd
install_once "$tree" debian
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
{
	echo 'useradd() { getent passwd gatehouse >/dev/null || command useradd "$@"; }'
	# The commands of the first block with systemctl, as a reader types them.
	awk '/^```/ {inside = !inside; next} inside && /systemctl enable --now gatehouse / {found = 1} inside {block = block $0 "\n"} !inside {if (found) {printf "%s", block; exit} block = ""}' \
		"$root/docs/operations.md"
} >"$scratch/install.sh"
grep -q 'systemctl enable --now gatehouse ' "$scratch/install.sh" || fail "docs/operations.md has no commands that install the units"
cat >"$scratch/checks.service" <<'E2'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/bash /src/hack/systemd-checks.sh
ExecStopPost=/bin/systemctl --no-block poweroff
StandardOutput=append:/out/log
StandardError=append:/out/log
E2
# checks WHAT runs them after /out/install.sh. A copy of the tree is used, and removed at the end.
checks() {
	log "$1:"
	rm -f "$scratch/passed" "$scratch/log"
	timeout 300 systemd-nspawn --quiet --directory="$tree" --ephemeral --boot --register=no --keep-unit --private-network \
		--bind-ro="$root:/src" --bind="$scratch:/out" --bind-ro="$scratch/checks.service:/etc/systemd/system/checks.service" \
		systemd.wants=checks.service >"$scratch/console" 2>&1 </dev/null || {
		tail -n 20 "$scratch/console" >&2
		fail "the container did not end by itself"
	}
	cat "$scratch/log"
	[ -e "$scratch/passed" ] || fail "the units do not work as docs/operations.md says; see above"
}

checks "the commands of docs/operations.md"
ARCHES=$(dpkg --print-architecture) hack/release.sh v0.0.1 "$scratch/release"
cp "$scratch"/release/*.deb "$scratch/gatehouse.deb"
echo "apt-get install --yes --no-install-recommends /out/gatehouse.deb" >"$scratch/install.sh"
checks "the Debian package"
log "make test-systemd: everything passed"
