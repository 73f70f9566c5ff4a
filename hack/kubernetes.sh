#!/usr/bin/env bash
# Builds the Kubernetes of the tests into bin/kubernetes from pinned Go modules:
# hack/kubernetes/go.mod has Kubernetes and its etcd, hack/kubernetes/tools/go.mod
# what is used with them. Does nothing for programs that are there; safe when run
# twice at once. The first time takes minutes.
#
# usage: hack/kubernetes.sh            the API server, etcd, kubectl, helm and controller-gen
#        hack/kubernetes.sh all        the programs of a whole node, too
#        hack/kubernetes.sh NAME...    these programs
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(gatehouse_root)
bin=$root/bin/kubernetes

# source_of NAME prints the module, below hack/kubernetes, and the package of a program.
source_of() {
	case $1 in
	kube-apiserver | kube-controller-manager | kube-proxy | kube-scheduler | kubectl | kubelet) echo . "k8s.io/kubernetes/cmd/$1" ;;
	etcd) echo . go.etcd.io/etcd/server/v3 ;;
	pause) echo . ./pause ;;
	helm) echo tools helm.sh/helm/v3/cmd/helm ;;
	controller-gen) echo tools sigs.k8s.io/controller-tools/cmd/controller-gen ;;
	coredns) echo tools ./coredns ;;
	*) fail "hack/kubernetes.sh does not know $1; see its first lines" ;;
	esac
}

# version_of MODULE DIR prints the version that the go.mod in DIR has.
version_of() {
	awk -v module="$1" '$1 == "require" { sub(/^require /, "") } $1 == module { print $2; exit }' "$2/go.mod"
}

# flags NAME DIR prints what the linker adds: programs report the version of their module.
flags() {
	local version package=k8s.io/component-base/version
	case $1 in
	kube*)
		version=$(version_of k8s.io/kubernetes "$2")
		printf ' -X %s' "$package.gitVersion=$version" "$package.gitMajor=1" \
			"$package.gitMinor=$(cut -d . -f 2 <<<"$version")" "$package.gitTreeState=archive" "$package.buildDate=1970-01-01T00:00:00Z"
		;;
	helm) printf ' -X %s' "helm.sh/helm/v3/internal/version.version=$(version_of helm.sh/helm/v3 "$2")" ;;
	esac
}

# compile NAME DIR PACKAGE SCRATCH leaves the program in SCRATCH/out.
compile() {
	log "building $1 for bin/kubernetes (once)"
	mkdir "$4/out"
	CGO_ENABLED=0 GOWORK=off go build -C "$2" -mod=readonly -trimpath -buildvcs=false -ldflags "-s -w$(flags "$1" "$2")" -o "$4/out/$1" "$3"
}

# program NAME puts one into bin/kubernetes. A change of its module or of our own
# sources there gives another stamp, and another directory.
program() {
	local name=$1 module package dir stamp
	read -r module package < <(source_of "$name")
	[ -n "$module" ] || exit 1
	dir=$root/hack/kubernetes/$module
	stamp=$(cat "$dir"/go.{mod,sum} "$dir"/*/*.go | sha256sum | cut -c 1-12)
	install_once "$bin/cache/$name-$stamp" compile "$name" "$dir" "$package"
	ln -f "$bin/cache/$name-$stamp/$name" "$bin/$name"
}

case ${1:-} in
'') set -- kube-apiserver etcd kubectl helm controller-gen ;;
all) set -- kube-apiserver kubelet kube-controller-manager kube-scheduler kube-proxy etcd kubectl pause helm controller-gen coredns ;;
esac
for name; do
	program "$name"
done
