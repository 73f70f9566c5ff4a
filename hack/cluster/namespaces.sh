#!/usr/bin/env bash
# Sets up the namespaces of a node; hack/cluster.sh runs it in them. The node alone sees
# these mounts and settings.
#
# usage: hack/cluster/namespaces.sh NAME ADDRESS DIR...   DIR: what the node must see below /var/lib
set -euo pipefail

name=$1
address=$2
shift 2

hostname "$name"
mount --make-rshared / # mounts of the kubelet reach containers
mount -t proc proc /proc

# The programs of a node have fixed places: these are new and empty.
mount -t tmpfs tmpfs /run
mkdir -p /run/lock /run/netns /run/host /run/sysctl
[ "$(readlink -f /var/run)" = /run ] || mount --rbind /run /var/run
mount --rbind /var/lib /run/host
mount -t tmpfs tmpfs /var/lib
for path; do
	case $path in
	/var/lib/*)
		path=${path#/var/lib/}
		path=${path%%/*}
		mkdir -p "/var/lib/$path"
		mount --rbind "/run/host/$path" "/var/lib/$path"
		;;
	esac
done
mount -t tmpfs tmpfs /var/log
mkdir -p /var/log/containers /var/log/pods /var/lib/cni /var/lib/kubelet

# kubelet sets these for the whole machine: it finds them already set.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
	kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	file=/proc/sys/${setting%=*}
	if [ "$(cat "$file" 2>/dev/null)" != "${setting#*=}" ]; then
		own=/run/sysctl/${setting%%=*}
		mkdir -p "${own%/*}"
		echo "${setting#*=}" >"$own"
		mount --bind "$own" "$file"
	fi
done

# A bridge without ports has the address of the node, for kernels without dummy devices. The default
# route leads nowhere; without one, no source address can be chosen.
ip link set lo up
ip link add node0 type bridge
ip address add "$address/24" dev node0
ip link set node0 up
ip route add default via "${address%.*}.1" dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet
if [ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]; then
	echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
fi
