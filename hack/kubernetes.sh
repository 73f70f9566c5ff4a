#!/usr/bin/env bash
# Builds the Kubernetes of the tests into bin/kubernetes from the Go modules that are
# pinned in hack/kubernetes/go.mod. Does nothing for existing programs; may
# run twice at the same time. The first time takes minutes.
#
# usage: hack/kubernetes.sh            the API server, etcd, kubectl, helm and controller-gen
#        hack/kubernetes.sh all        also the programs of a complete node (hack/cluster.sh)
#        hack/kubernetes.sh NAME...    these programs
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(gatehouse_root)
bin=$root/bin/kubernetes
module=$root/hack/kubernetes

# package_path NAME prints the package of a program.
package_path() {
	case $1 in
	kube-apiserver | kube-controller-manager | kube-proxy | kube-scheduler | kubectl | kubelet) echo "k8s.io/kubernetes/cmd/$1" ;;
	etcd) echo go.etcd.io/etcd/server/v3 ;;
	helm) echo helm.sh/helm/v3/cmd/helm ;;
	controller-gen) echo sigs.k8s.io/controller-tools/cmd/controller-gen ;;
	coredns | pause) echo "./$1" ;;
	*) fail "hack/kubernetes.sh does not know $1; see its first lines" ;;
	esac
}

# version_of MODULE prints the version in go.mod.
version_of() {
	awk -v module="$1" '$1 == module { print $2; exit }' "$module/go.mod"
}

# compile DIR NAME... leaves programs in DIR. One call of the compiler builds all of them:
# shared packages are compiled once, and one program is linked while another is compiled.
compile() {
	local dir=$1 version name packages=() versions=k8s.io/component-base/version
	shift
	for name; do
		packages+=("$(package_path "$name")")
	done
	version=$(version_of k8s.io/kubernetes)
	log "building $* for bin/kubernetes (once; the first of them take minutes)"
	# Programs report the version of their module.
	CGO_ENABLED=0 GOWORK=off go build -C "$module" -mod=readonly -trimpath -buildvcs=false -o "$dir/" -ldflags "-s -w \
		-X $versions.gitVersion=$version -X $versions.gitMajor=1 -X $versions.gitMinor=$(cut -d . -f 2 <<<"$version") \
		-X $versions.gitTreeState=archive -X $versions.buildDate=1970-01-01T00:00:00Z \
		-X helm.sh/helm/v3/internal/version.version=$(version_of helm.sh/helm/v3)" "${packages[@]}"
	[ ! -e "$dir/server" ] || mv "$dir/server" "$dir/etcd" # Go names a program by its package
}

# missing NAME... sets missing to the programs that do not exist.
missing() {
	local name
	missing=()
	for name; do
		[ -x "$have/$name" ] || missing+=("$name")
	done
}

case ${1:-} in
'') set -- kube-apiserver etcd kubectl helm controller-gen ;;
all) set -- kube-apiserver etcd kubectl helm controller-gen kubelet kube-controller-manager kube-scheduler kube-proxy pause coredns ;;
esac
for name; do
	package_path "$name" >/dev/null
done
# The directory's name contains a hash of the modules: programs of other modules go into
# another directory.
stamp=$(cat "$module"/go.{mod,sum} "$module"/*/*.go | sha256sum | cut -c 1-12)
have=$bin/cache/$stamp
mkdir -p "$have"
missing "$@"
if [ ${#missing[@]} -gt 0 ]; then
	(
		flock 9
		missing "$@" # another script may have built them meanwhile
		[ ${#missing[@]} -gt 0 ] || exit 0
		scratch=$(mktemp -d "$bin/cache/new.XXXXXX")
		# shellcheck disable=SC2064
		trap "rm -rf '$scratch'" EXIT
		compile "$scratch" "${missing[@]}"
		mv "$scratch"/* "$have"
		find "$bin/cache" -mindepth 1 -maxdepth 1 -type d ! -name "$stamp" ! -path "$scratch" -exec rm -rf {} +
	) 9>"$bin/lock"
fi
for name; do
	[ "$have/$name" -ef "$bin/$name" ] || ln -f "$have/$name" "$bin/$name"
done
