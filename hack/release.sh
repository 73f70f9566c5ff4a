#!/usr/bin/env bash
# Builds a release in bin/release/VERSION: archives, Debian packages and images for each
# architecture, the Helm chart, the API's document, the schema of documents, SBOMs, and
# the checksums of all these. The same commit gives the same bytes.
#
# usage: hack/release.sh VERSION [DIRECTORY]
#   ARCHES="amd64 arm64" are the architectures
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$(gatehouse_root)"

version=${1:-}
[[ $version =~ ^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$ ]] ||
	fail "\"$version\" is no version such as v0.2.0 or v0.2.0-rc.1; run: make release VERSION=v0.2.0"
out=${2:-bin/release/$version}
arches=${ARCHES:-amd64 arm64}
commit=$(git rev-parse HEAD)
# The time of the commit, so that it does not matter when the release is built.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export COMMIT=$commit SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
[ -z "$(git status --porcelain --untracked-files=no)" ] || log "the release has changes that are not committed"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
umask 022
host=$(go env GOHOSTARCH)

# program ARCH FILE builds the program.
program() {
	GOARCH=$1 go build -ldflags "-s -w -X main.version=$version -X main.commit=$commit" -o "$2" ./cmd/gatehouse
}

hack/mkdocs.sh
go run ./hack/docs
program "$host" "$scratch/gatehouse"
mkdir -p "$scratch"/common/{completions,man,doc,systemd}
"$scratch/gatehouse" completion bash >"$scratch/common/completions/gatehouse.bash"
"$scratch/gatehouse" completion zsh >"$scratch/common/completions/_gatehouse"
"$scratch/gatehouse" completion fish >"$scratch/common/completions/gatehouse.fish"
"$scratch/gatehouse" manual "$scratch/common/man"
gzip -9n "$scratch"/common/man/*
cp README.md CHANGELOG.md LICENSE docs/operations.md "$scratch/common/doc/"
cp hack/notices/envoy.txt "$scratch/common/doc/envoy-notices.txt"
hack/notices.sh "$scratch/gatehouse" "$scratch/common/doc/notices.txt" . hack/notices/swagger-ui.txt hack/notices/site.txt hack/notices/console.txt
# The package has its programs where packages have them.
for unit in hack/systemd/*; do
	sed -e 's#/usr/local/bin/#/usr/bin/#' -e 's#^Environment=#&GATEHOUSE_ENVOY=/usr/lib/gatehouse/envoy #' "$unit" >"$scratch/common/systemd/${unit##*/}"
done

rm -rf "$out"
mkdir -p "$out"
out=$(realpath "$out")
for arch in $arches; do
	log "building gatehouse $version for $arch"
	mkdir -p "$scratch/built/$arch" "$scratch/images" "$scratch/sbom/$arch/usr/local/bin"
	cp -r "$scratch"/common/. "$scratch/built/$arch/"
	if [ "$arch" = "$host" ]; then
		cp "$scratch/gatehouse" "$scratch/built/$arch/gatehouse"
	else
		program "$arch" "$scratch/built/$arch/gatehouse"
	fi
	cp "$(hack/envoy.sh "$arch")" "$scratch/built/$arch/envoy"
	cp "$scratch/built/$arch/gatehouse" "$scratch/sbom/$arch/usr/local/bin/gatehouse"
	GATEHOUSE_VERSION=$version ENVOY_VERSION=$(hack/envoy.sh version) hack/image.sh "$arch" "$scratch/built/$arch/gatehouse" "$scratch/images/$arch"
	GATEHOUSE_VERSION=$version go run ./hack/sbom "gatehouse-$arch" "$scratch/sbom/$arch" >"$out/gatehouse-${version#v}-linux-$arch.cdx.json"
done
go build -C hack/release -o "$scratch/release" .
(cd hack/release && "$scratch/release" packages "$version" "$scratch/built" "$out")
(cd hack/release && "$scratch/release" images "$version" "$scratch/images" "$out") >"$out/images.txt"
cp api/openapi.yaml "$out/openapi.yaml"
"$scratch/gatehouse" schema >"$out/gateway.schema.json"
(cd "$out" && sha256sum -- * >"$scratch/SHA256SUMS")
mv "$scratch/SHA256SUMS" "$out/SHA256SUMS"
chmod 644 "$out"/*
log "$out:"
(cd "$out" && ls -l -- * >&2)
