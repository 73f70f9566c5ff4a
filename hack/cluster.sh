#!/usr/bin/env bash
# Runs a Kubernetes of one node for the specs: the real kubelet, containerd, kube-proxy
# and cluster DNS, and the control plane of Kubernetes. Its programs are those of
# hack/kubernetes.sh, and Debian 12 packages that are unpacked, not installed.
# It needs root, no registry and no network. All of it is in namespaces of its own
# (network, mounts, processes): nothing of the machine changes, nodes do not disturb
# each other, and everything goes with their first process. Outside are only its
# directory and its cgroups.
#
# usage: hack/cluster.sh run COMMAND [ARG...]     run COMMAND next to a new node, which stops with it
#        hack/cluster.sh up                       start a node, print its directory
#        hack/cluster.sh exec DIR COMMAND...      run COMMAND next to that node
#        hack/cluster.sh node DIR COMMAND...      run COMMAND in all its namespaces (ctr, nft, ip)
#        hack/cluster.sh load DIR IMAGE.tar...    load images into it
#        hack/cluster.sh down DIR                 stop it, remove its directory
#        hack/cluster.sh check                    only check whether this machine can run one
#
# Next to a node means in its network, with its kubectl and helm in PATH, KUBECONFIG, and
# its directory in GATEHOUSE_TEST_CLUSTER. The node is 10.99.0.2. The exit code is that of
# COMMAND, or 3 if this machine cannot run a node.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=node1
address=10.99.0.2
pods=10.244.0.0/24
services=10.96.0.0/16
dns=10.96.0.10
root=$(gatehouse_root)
bin=$root/bin/kubernetes
parts=$root/hack/cluster

# pinned prints package, version and sha256 of each, for this machine.
pinned() {
	case "$(uname -s)-$(uname -m)" in
	Linux-x86_64) cat <<-END
		containerd 1.6.20~ds1-1+deb12u3 8669d264eeb0fcdb4a0b1ba436ab88ec5dafde4a66e1278ec279d830db4c2216
		runc 1.1.5+ds1-1+deb12u1 a00351f8c0318de0b424ecf5cd0fdb69880a89f3511cae4f6fff7de3e57881c5
		containernetworking-plugins 1.1.1+ds1-3+b5 4cac8143474d1249b19f7b0e80b8d0daaa6dfdaa8bd514bc468d38d4a108099f
		iptables 1.8.9-2 2928d3ca6ca8a3dc3f423f6752822b1f3614a5ba609ff7806bcba4449ffe90e1
		nftables 1.0.6-2+deb12u2 966ff20ce58c17163a771c02ddbca264291408f94c512bd85dd18da0ebdbe88c
		iproute2 6.1.0-3 1204b29e916e836267096d0b9d778106752f821ebde0d281539008b4386d9070
	END
	;;
	Linux-aarch64) cat <<-END
		containerd 1.6.20~ds1-1+deb12u3 b946c7da94211c925fe8ed26fc0df4db045a976d7c8266c2ac107475a4ebee0f
		runc 1.1.5+ds1-1+deb12u1 9cd43580a5e01bbcb57b662aa94df63914ffde088e9f739324cf0d6fb87c38c0
		containernetworking-plugins 1.1.1+ds1-3+b5 dc9a948009450ff64b37dd45afe65b135ddc44df19c3ac8a40337eb9d5071ddb
		iptables 1.8.9-2 5cb1974950a07f89c2d61a20e62d2dbcd882acb6d522d36ad3c690f6f5d3c643
		nftables 1.0.6-2+deb12u2 f5906f44fffdb190f84e3fdd6c07cba399205de5173f67e8742876a7865e2fc9
		iproute2 6.1.0-3 58fad55c5a29be6c1e6301d0c572f2ac5e5962ff244e7da3784c1b29ffc6c6bf
	END
	;;
	*) cannot "nothing is pinned for $(uname -s) on $(uname -m)" ;;
	esac
}

# cannot exits because of the machine rather than the project.
cannot() {
	log "no node of Kubernetes can be started here: $*"
	exit 3
}

unpack() {
	log "fetching containerd and the network tools of the node"
	unpack_pinned_debs "$1" < <(pinned)
	# Of iproute2 only ip: the others need many libraries.
	find "$1/out/bin" "$1/out/sbin" -type f ! -name ip -delete
	complete_programs "$1"
}

# check exits if this machine cannot run a node.
check() {
	local group=gatehouse-check-$$ at
	[ "$(id -u)" = 0 ] || cannot "it needs root"
	pinned >/dev/null
	command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
		cannot "containerd comes from the packages of Debian 12, and apt-get or dpkg-deb is missing"
	unshare --net --mount --pid --uts --ipc --fork --propagation private sh -c 'mount -t proc proc /proc && mount -t tmpfs tmpfs /run' ||
		cannot "namespaces and mounts are not allowed"
	make_cgroups
	for at in $(cgroups); do
		[ ! -d "$at" ] || rmdir "$at"
	done
}

# fetch sets programs, the directory of the packages, and builds the others.
fetch() {
	# The directory's name depends on the versions: other versions go into another directory.
	programs=$root/bin/tools/node-$(pinned | sha256sum | cut -c 1-12)
	install_once "$programs" unpack
	"$root/hack/kubernetes.sh" all
}

# started PID prints when the process started, which distinguishes it from a later one with the same
# number.
started() {
	sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20
}

# first sets init, the first process of the node in dir, and fails if it has exited.
first() {
	local start
	[ -s "$dir/init" ] && read -r init start <"$dir/init" && [ "$(started "$init")" = "$start" ]
}

# inside COMMAND... runs a command in all namespaces of the node.
inside() {
	nsenter -t "$init" --net --mount --pid --uts --ipc -- env -u KUBECONFIG \
		PATH="$programs/usr/sbin:$programs/usr/bin:$programs/sbin:$programs/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
		LD_LIBRARY_PATH="$(libraries_of "$programs")" XTABLES_LIBDIR="$(echo "$programs"/usr/lib/*-linux-gnu/xtables)" "$@"
}

# beside COMMAND... runs a command in the network of the node.
beside() {
	GATEHOUSE_TEST_CLUSTER=$dir KUBECONFIG=$dir/admin.kubeconfig PATH=$bin:$PATH \
		nsenter -t "$init" --net -- env -u HTTP_PROXY -u HTTPS_PROXY -u http_proxy -u https_proxy "$@"
}

# cgroups prints the directories of the node's cgroups, one for each hierarchy.
cgroups() {
	local hierarchy
	if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
		echo "/sys/fs/cgroup/$group"
		return 0
	fi
	for hierarchy in /sys/fs/cgroup/*/; do
		echo "$hierarchy$group"
	done
}

# make_cgroups creates them, with every controller and processor.
make_cgroups() {
	local at file
	for at in $(cgroups); do
		[ "${at%/*}" != /sys/fs/cgroup/unified ] || continue # version 2 next to version 1: runc creates its own
		mkdir -p "$at" || cannot "the cgroup $at cannot be made"
		for file in cpuset.cpus cpuset.mems; do
			if [ -f "$at/$file" ] && [ -f "${at%/*}/$file" ]; then cat "${at%/*}/$file" >"$at/$file"; fi
		done
		[ -f "$at/cgroup.controllers" ] || continue
		for file in $(cat /sys/fs/cgroup/cgroup.controllers); do
			echo "+$file" >/sys/fs/cgroup/cgroup.subtree_control && echo "+$file" >"$at/cgroup.subtree_control" ||
				cannot "the cgroup controller $file cannot be used"
		done
	done
}

# make_namespaces starts the first process of the node. Except in mode up, it is killed when the
# script ends, however that happens.
make_namespaces() {
	local with=() outer end=$((SECONDS + 10))
	[ "$1" = up ] || with=(setpriv --pdeathsig KILL)
	"${with[@]}" setsid unshare --net --mount --pid --uts --ipc --fork --kill-child --propagation private "$bin/pause" \
		</dev/null >"$dir/logs/init.log" 2>&1 9>&- &
	outer=$!
	until init=$(cat "/proc/$outer/task/$outer/children" 2>/dev/null) && init=${init// /} && [ -n "$init" ]; do
		[ -d "/proc/$outer" ] && [ $SECONDS -lt $end ] || cannot "namespaces cannot be made: $(cat "$dir/logs/init.log")"
		sleep 0.05
	done
	echo "$init $(started "$init")" >"$dir/init"
	inside bash "$parts/namespaces.sh" "$name" "$address" "$root" "$dir" >"$dir/logs/namespaces.log" 2>&1 ||
		cannot "the namespaces cannot be set up: $(tail -n 1 "$dir/logs/namespaces.log")"
}

# launch NAME COMMAND... starts a program in the node. Its process here exits with it.
launch() {
	local program=$1
	shift
	inside setsid "$@" </dev/null >"$dir/logs/$program.log" 2>&1 9>&- &
	running[$program]=$!
}

# await WHAT COMMAND... waits until COMMAND succeeds, for at most 3 minutes and only while all
# programs run.
await() {
	local what=$1 end=$((SECONDS + 180)) program
	shift
	until "$@" >/dev/null 2>&1; do
		for program in "${!running[@]}"; do
			kill -0 "${running[$program]}" 2>/dev/null || fail "$program has ended: $(tail -n 3 "$dir/logs/$program.log")"
		done
		[ $SECONDS -lt $end ] || fail "$what: not within 3 minutes; it says: $(tail -qn 2 "$dir"/logs/*.log)"
		sleep 0.1
	done
}

# load IMAGE... loads images into the node. The tool reads standard input, because the node does not
# see later mounts.
load() {
	local image
	for image; do
		inside ctr --namespace k8s.io images import --snapshotter "$(cat "$dir/snapshotter")" - <"$image" >>"$dir/logs/images.log" 2>&1 ||
			fail "$image cannot be loaded: $(tail -n 1 "$dir/logs/images.log")"
	done
}

# start MODE starts a node in a new directory dir.
start() {
	local -A running=()
	check
	fetch
	dir=$(mktemp -d "${TMPDIR:-/tmp}/gatehouse-cluster.XXXXXX")
	group=$(basename "$dir")
	mkdir "$dir"/{etc,logs,images}
	# Snapshots of containers are overlays, which cannot be on an overlay.
	if [ "$(stat -f -c %T "$dir")" = overlayfs ]; then echo native; else echo overlayfs; fi >"$dir/snapshotter"
	make_cgroups
	make_namespaces "$1"
	"$parts/keys.sh" "$dir" "$name" "$address"
	for file in containerd.toml kubelet.yaml proxy.yaml; do
		fill "$parts/$file" >"$dir/etc/$file"
	done
	mkdir "$dir/etc/cni"
	fill "$parts/cni.conflist" >"$dir/etc/cni/cni.conflist"
	: >"$dir/etc/resolv.conf"
	start_control_plane
	await "containerd answers" inside ctr version
	"$root/hack/cluster-image.sh" "$dir/images" pause coredns
	load "$dir"/images/{pause,coredns}.tar
	await "the API is ready" beside kubectl get --raw /readyz
	start_node
	await "the node is ready" beside kubectl wait --for=condition=Ready "node/$name" --timeout=2s
	fill "$parts/coredns.yaml" | beside kubectl apply -f - >"$dir/logs/coredns.log" 2>&1 || fail "cluster DNS is refused: $(cat "$dir/logs/coredns.log")"
	await "cluster DNS is ready" beside kubectl --namespace kube-system rollout status deployment/coredns --timeout=2s
	await "cluster DNS answers at its address" beside bash -c ": </dev/tcp/$dns/53"
	log "a node of Kubernetes runs in $dir"
}

# fill FILE prints a template with its @names@ filled in.
fill() {
	local mode=nftables
	inside nft add table ip probe >/dev/null 2>&1 || mode=iptables
	sed -e "s#@dir@#$dir#g; s#@name@#$name#g; s#@group@#$group#g; s#@pods@#$pods#g; s#@dns@#$dns#g; s#@programs@#$programs#g; s#@mode@#$mode#g; s#@snapshotter@#$(cat "$dir/snapshotter")#g" "$1"
}

start_control_plane() {
	launch etcd "$bin/etcd" --name=e --data-dir="$dir/etcd" --unsafe-no-fsync --log-level=warn \
		--listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
		--listen-peer-urls=http://127.0.0.1:2380 --initial-advertise-peer-urls=http://127.0.0.1:2380 --initial-cluster=e=http://127.0.0.1:2380
	launch containerd containerd --config "$dir/etc/containerd.toml" --log-level warn
	launch kube-apiserver "$bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
		--advertise-address="$address" --bind-address=0.0.0.0 --secure-port=6443 --service-cluster-ip-range="$services" \
		--allow-privileged=true --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
		--client-ca-file="$dir/pki/ca.crt" --tls-cert-file="$dir/pki/apiserver.crt" --tls-private-key-file="$dir/pki/apiserver.key" \
		--kubelet-client-certificate="$dir/pki/apiserver-kubelet.crt" --kubelet-client-key="$dir/pki/apiserver-kubelet.key" \
		--kubelet-certificate-authority="$dir/pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
		--service-account-issuer=https://kubernetes.default.svc.cluster.local --service-account-key-file="$dir/pki/accounts.pub" \
		--service-account-signing-key-file="$dir/pki/accounts.key" --endpoint-reconciler-type=lease
}

start_node() {
	local own=(--bind-address=127.0.0.1 --leader-elect=false)
	launch kube-controller-manager "$bin/kube-controller-manager" "${own[@]}" --kubeconfig="$dir/etc/controller-manager.kubeconfig" \
		--use-service-account-credentials=true --service-account-private-key-file="$dir/pki/accounts.key" --root-ca-file="$dir/pki/ca.crt" \
		--authentication-kubeconfig="$dir/etc/controller-manager.kubeconfig" --authorization-kubeconfig="$dir/etc/controller-manager.kubeconfig" \
		--allocate-node-cidrs=true --cluster-cidr="${pods%.*.*}.0.0/16" --service-cluster-ip-range="$services"
	launch kube-scheduler "$bin/kube-scheduler" "${own[@]}" --kubeconfig="$dir/etc/scheduler.kubeconfig" \
		--authentication-kubeconfig="$dir/etc/scheduler.kubeconfig" --authorization-kubeconfig="$dir/etc/scheduler.kubeconfig"
	launch kubelet "$bin/kubelet" --config="$dir/etc/kubelet.yaml" --kubeconfig="$dir/etc/kubelet.kubeconfig" \
		--root-dir="$dir/kubelet" --hostname-override="$name" --node-ip="$address"
	launch kube-proxy "$bin/kube-proxy" --config="$dir/etc/proxy.yaml"
}

# stop stops the node in dir with all its processes, and removes what it has left.
stop() {
	local at end=$((SECONDS + 20)) failed=
	group=$(basename "$dir")
	if first; then
		kill -KILL "$init" || true
		while first && ! grep -qs '^State:[[:space:]]*Z' "/proc/$init/status" && [ $SECONDS -lt $end ]; do sleep 0.1; done
	fi
	for at in $(cgroups); do
		while [ -d "$at" ] && ! { find "$at" -depth -type d -exec rmdir {} + 2>/dev/null; [ ! -d "$at" ]; }; do
			[ $SECONDS -lt $end ] || { log "the cgroup $at is not empty"; failed=yes; break; }
			sleep 0.1
		done
	done
	rm -rf --one-file-system "$dir" || failed=yes
	[ -z "$failed" ] || fail "not everything of the node in $dir could be removed; what is above says why"
}

# given DIR sets dir to the directory of a running node.
given() {
	dir=$1
	programs=$root/bin/tools/node-$(pinned | sha256sum | cut -c 1-12)
	[ -f "$dir/init" ] || fail "$dir is not the directory of a node; hack/cluster.sh up prints one"
	first || fail "the node in $dir has ended; hack/cluster.sh down $dir removes what is left"
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
run)
	[ $# -gt 0 ] || fail "usage: hack/cluster.sh run COMMAND [ARG...]"
	trap '[ -z "${dir:-}" ] || stop' EXIT
	trap 'exit 130' INT TERM HUP
	start run
	code=0
	beside "$@" || code=$?
	exit "$code"
	;;
up)
	trap '[ -z "${dir:-}" ] || stop' EXIT
	trap 'exit 130' INT TERM HUP
	start up
	trap - EXIT
	echo "$dir"
	;;
exec) [ $# -gt 1 ] || fail "usage: hack/cluster.sh exec DIR COMMAND..."; given "$1"; shift; beside "$@" ;;
node) [ $# -gt 1 ] || fail "usage: hack/cluster.sh node DIR COMMAND..."; given "$1"; shift; inside "$@" ;;
load) [ $# -gt 1 ] || fail "usage: hack/cluster.sh load DIR IMAGE.tar..."; given "$1"; shift; load "$@" ;;
down)
	dir=${1:-}
	[ -f "$dir/snapshotter" ] || fail "usage: hack/cluster.sh down DIR, as hack/cluster.sh up has printed it"
	stop
	;;
check) check ;;
*) fail "usage: hack/cluster.sh run COMMAND [ARG...] | up | exec DIR COMMAND... | node DIR COMMAND... | load DIR IMAGE.tar... | down DIR | check" ;;
esac
