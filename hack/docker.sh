#!/usr/bin/env bash
# Runs a Docker engine of its own for the specs of the images: Debian 12's packages,
# unpacked, not installed, with data, sockets and networks that no other engine
# shares. It needs root, and leaves nothing behind. If DOCKER_HOST is set, that
# engine is used and none is started.
#
# usage: hack/docker.sh run COMMAND [ARG...]   run COMMAND with a new engine
#        hack/docker.sh start                  start an engine, print its DOCKER_HOST
#        hack/docker.sh stop DOCKER_HOST       stop that engine
#        hack/docker.sh fetch                  only fetch the programs, print their directory
#
# COMMAND finds the engine by DOCKER_HOST and its client by PATH. The exit code is
# that of COMMAND, or 3 if no engine can be started on this machine.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=20.10.24

# pinned prints package, version and sha256 of each, for this machine.
pinned() {
	case "$(uname -s)-$(uname -m)" in
	Linux-x86_64) cat <<-END
		docker.io $version+dfsg1-1+deb12u1+b6 daf8ff8f7aa53e8533d38e386fcc2a11e8f3891210776fb78a84b98feb4eea0e
		containerd 1.6.20~ds1-1+deb12u3 8669d264eeb0fcdb4a0b1ba436ab88ec5dafde4a66e1278ec279d830db4c2216
		runc 1.1.5+ds1-1+deb12u1 a00351f8c0318de0b424ecf5cd0fdb69880a89f3511cae4f6fff7de3e57881c5
		iptables 1.8.9-2 2928d3ca6ca8a3dc3f423f6752822b1f3614a5ba609ff7806bcba4449ffe90e1
		debootstrap 1.0.128+nmu2+deb12u2 63f354316e9bbe747b143b7b0d83e5f237c90314a17734fba9ff202c2ef02760
	END
	;;
	Linux-aarch64) cat <<-END
		docker.io $version+dfsg1-1+deb12u1+b6 6db2efc4b346ad726c90bdecb630f02a4df884840c4a7e8fd44d92df313ae26c
		containerd 1.6.20~ds1-1+deb12u3 b946c7da94211c925fe8ed26fc0df4db045a976d7c8266c2ac107475a4ebee0f
		runc 1.1.5+ds1-1+deb12u1 9cd43580a5e01bbcb57b662aa94df63914ffde088e9f739324cf0d6fb87c38c0
		iptables 1.8.9-2 5cb1974950a07f89c2d61a20e62d2dbcd882acb6d522d36ad3c690f6f5d3c643
		debootstrap 1.0.128+nmu2+deb12u2 63f354316e9bbe747b143b7b0d83e5f237c90314a17734fba9ff202c2ef02760
	END
	;;
	*) cannot "no engine is pinned for $(uname -s) on $(uname -m)" ;;
	esac
}

# cannot exits because of the machine rather than the project.
cannot() {
	log "no Docker engine can be started here: $*; set DOCKER_HOST to use one that runs"
	exit 3
}

# unpack SCRATCH leaves the programs in SCRATCH/out.
unpack() {
	log "fetching the Docker engine $version"
	unpack_pinned_debs "$1" < <(pinned)
	complete_programs "$1"
}

# fetch prints the directory of the programs.
fetch() {
	command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
		cannot "it comes from the packages of Debian 12, and apt-get or dpkg-deb is missing"
	# The directory's name contains the version: another version goes into another directory.
	install_once "$(gatehouse_root)/bin/tools/docker-$version" unpack
	echo "$(gatehouse_root)/bin/tools/docker-$version"
}

# alive PID succeeds if the process runs.
alive() {
	[ -r "/proc/$1/stat" ] && ! grep -qF ') Z ' "/proc/$1/stat"
}

# belongs PID DIR succeeds if the process runs and belongs to the engine in DIR.
belongs() {
	alive "$1" && tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -qF "$2/"
}

# launch DIR NAME COMMAND... starts a daemon of the engine in DIR.
launch() {
	local dir=$1 name=$2
	shift 2
	setsid "$@" </dev/null >"$dir/$name.log" 2>&1 &
	echo $! >"$dir/$name.started"
}

# await DIR NAME COMMAND... waits until COMMAND succeeds, for at most 60 s and only while the
# daemon runs.
await() {
	local dir=$1 name=$2 end=$((SECONDS + 60)) reason
	shift 2
	until "$@" >/dev/null 2>&1; do
		if ! alive "$(cat "$dir/$name.started")" || [ $SECONDS -ge $end ]; then
			reason=$(tail -n 1 "$dir/$name.log")
			stop "$dir"
			cannot "$name says: ${reason:-nothing}"
		fi
		sleep 0.1
	done
}

# start prints the directory of a new engine.
start() {
	local programs dir
	[ "$(id -u)" = 0 ] || cannot "it needs root"
	programs=$(fetch)
	dir=$(mktemp -d "${TMPDIR:-/tmp}/gatehouse-docker.XXXXXX")
	export PATH=$programs/usr/bin:$programs/usr/sbin:$PATH
	export LD_LIBRARY_PATH XTABLES_LIBDIR
	LD_LIBRARY_PATH=$(libraries_of "$programs")
	XTABLES_LIBDIR=$(echo "$programs"/usr/lib/*-linux-gnu/xtables)
	# Its own containerd: dockerd would otherwise use that of the machine, if one runs.
	cat >"$dir/containerd.toml" <<-END
		version = 2
		root = "$dir/containerd/root"
		state = "$dir/containerd/state"
		disabled_plugins = ["io.containerd.grpc.v1.cri"]
		[grpc]
		  address = "$dir/containerd.sock"
	END
	launch "$dir" containerd containerd --config "$dir/containerd.toml"
	await "$dir" containerd test -S "$dir/containerd.sock"
	# No bridge and no firewall rules: containers use the host's network, or networks that
	# are created for them. docker-proxy publishes their ports.
	echo "{}" >"$dir/daemon.json" # not that of /etc
	launch "$dir" dockerd dockerd --host "unix://$dir/docker.sock" --containerd "$dir/containerd.sock" \
		--data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/docker.pid" --config-file "$dir/daemon.json" \
		--default-address-pool "base=10.$((RANDOM % 56 + 200)).0.0/16,size=24" \
		--bridge none --iptables=false --ip6tables=false --ip-masq=false --ip-forward=false
	await "$dir" dockerd docker --host "unix://$dir/docker.sock" version
	echo "$dir"
}

# stop DIR stops the engine in DIR with its containers, and removes DIR.
stop() {
	local dir=$1 name pid mount end
	if [ -S "$dir/docker.sock" ]; then
		docker --host "unix://$dir/docker.sock" ps --all --quiet 2>/dev/null |
			xargs --no-run-if-empty docker --host "unix://$dir/docker.sock" rm --force --volumes >/dev/null 2>&1 || true
		docker --host "unix://$dir/docker.sock" network prune --force >/dev/null 2>&1 || true
	fi
	for name in dockerd containerd; do
		[ -f "$dir/$name.started" ] || continue
		pid=$(cat "$dir/$name.started")
		end=$((SECONDS + 20))
		while belongs "$pid" "$dir"; do
			if [ $SECONDS -lt $end ]; then kill -TERM "$pid" 2>/dev/null || true; else kill -KILL "$pid" 2>/dev/null || true; fi
			sleep 0.2
		done
	done
	awk -v dir="$dir/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r | while IFS= read -r mount; do
		umount "$mount" || true
	done
	rm -rf --one-file-system "$dir"
}

# run COMMAND... runs a command with an engine, which stops with it.
run() {
	local dir programs code=0
	if [ -n "${DOCKER_HOST:-}" ]; then
		exec "$@"
	fi
	programs=$(fetch)
	dir=$(start)
	# shellcheck disable=SC2064
	trap "PATH=$programs/usr/bin:\$PATH; stop '$dir'" EXIT
	trap 'exit 130' INT TERM HUP
	DOCKER_HOST=unix://$dir/docker.sock PATH=$programs/usr/bin:$programs/usr/sbin:$PATH "$@" || code=$?
	exit "$code"
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
run) [ $# -gt 0 ] || fail "usage: hack/docker.sh run COMMAND [ARG...]"; run "$@" ;;
start) echo "unix://$(start)/docker.sock" ;;
stop)
	dir=${1:-}
	dir=${dir#unix://}
	dir=${dir%/docker.sock}
	[ -f "$dir/dockerd.started" ] || fail "usage: hack/docker.sh stop DOCKER_HOST, as hack/docker.sh start has printed it"
	PATH=$(fetch)/usr/bin:$PATH
	stop "$dir"
	;;
fetch) fetch ;;
*) fail "usage: hack/docker.sh run COMMAND [ARG...] | start | stop DOCKER_HOST | fetch" ;;
esac
