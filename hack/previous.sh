#!/usr/bin/env bash
# Builds the version before this one from the repository's history, for the specs of upgrades:
# bin/previous/gatehouse, and its CRDs in bin/previous/crds. Does nothing if it exists; may
# run twice at the same time. Exit code 3: the clone is too shallow.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$(gatehouse_root)"

# The release before, a commit. While there is none: a version that lacks the migrations since 0017.
previous=4054193761e5f831d6f237095336e7eb06fdc99d

# program SCRATCH leaves the version before in SCRATCH/out.
program() {
	log "building the version before ($previous)"
	mkdir -p "$1/src" "$1/out"
	git archive "$previous" | tar -xC "$1/src"
	cp -r "$1/src/charts/gatehouse/crds" "$1/out/crds"
	CGO_ENABLED=0 go build -C "$1/src" -trimpath -buildvcs=false -ldflags "-s -w -X main.version=previous -X main.commit=$previous" -o ../out/gatehouse ./cmd/gatehouse
}

git cat-file -e "$previous^{commit}" 2>/dev/null || {
	log "this clone has no commit $previous, of which the specs of upgrades build the version before; run git fetch --unshallow"
	exit 3
}
dir=bin/tools/previous-${previous:0:12}
install_once "$dir" program
ln -sfn "tools/${dir##*/}" bin/previous
log "bin/previous is the version before, $previous"
