#!/usr/bin/env bash
# Writes what controller-gen makes of api/gateway: the CustomResourceDefinitions in
# charts/gatehouse/crds and zz_generated.deepcopy.go beside the types.
#
# usage: hack/crds.sh          writes them
#        hack/crds.sh --check  prints how they differ from what would be written
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
root=$(gatehouse_root)
cd "$root"
hack/kubernetes.sh controller-gen

# generate writes into the module in the current directory.
generate() {
	"$root/bin/kubernetes/controller-gen" object crd paths=./api/gateway/... output:crd:dir=charts/gatehouse/crds
}

if [ "${1:-}" != --check ]; then
	generate
	exit
fi
# A module of the same name with nothing but the types.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/api"
cp go.mod go.sum "$scratch"
cp -R api/gateway "$scratch/api"
(cd "$scratch" && generate)
for made in api/gateway charts/gatehouse/crds; do
	diff -ru "$made" "$scratch/$made" || echo "run make crds"
done
