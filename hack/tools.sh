#!/usr/bin/env bash
# Builds the pinned development tools into bin/tools. Does nothing for existing tools;
# may run twice at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# build PACKAGE VERSION SCRATCH leaves the program in SCRATCH/out.
build() {
	log "building $1@$2 (once; it takes some minutes)"
	mkdir "$3/out"
	GOBIN=$3/out CGO_ENABLED=0 go install -trimpath "$1@$2"
}

root=$(gatehouse_root)
lint=v2.15.0
install_once "$root/bin/tools/golangci-lint-$lint" build github.com/golangci/golangci-lint/v2/cmd/golangci-lint "$lint"
ln -f "$root/bin/tools/golangci-lint-$lint/golangci-lint" "$root/bin/tools/golangci-lint"
