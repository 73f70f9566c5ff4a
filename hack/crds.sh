#!/usr/bin/env bash
# Generates from api/gateway the CustomResourceDefinitions in
# charts/gatehouse/crds, zz_generated.deepcopy.go next to the types, and
# docs/kubernetes-fields.md.
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
	go -C "$root" run ./hack/crddocs "$PWD"/charts/gatehouse/crds/*.yaml >docs/kubernetes-fields.md
}

if [ "${1:-}" != --check ]; then
	generate
	exit
fi
# A module of the same name with only the types.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch"/{api,docs}
cp go.mod go.sum "$scratch"
cp -R api/gateway "$scratch/api"
(cd "$scratch" && generate)
for made in api/gateway charts/gatehouse/crds docs/kubernetes-fields.md; do
	diff -ru "$made" "$scratch/$made" || echo "run make crds"
done
