#!/usr/bin/env bash
# Builds Pebble, the certificate authority of the tests, and its DNS server into
# bin/pebble, from the Go modules that are pinned in hack/pebble/go.mod. Does nothing if
# they exist; may run twice at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(gatehouse_root)
module=$root/hack/pebble
version=$(awk '$2 ~ /pebble\/v2$/ && $1 == "require" { print $3 } $1 ~ /pebble\/v2$/ { print $2 }' "$module/go.mod" | head -n 1)

# build SCRATCH leaves the programs in SCRATCH/out.
build() {
	log "building Pebble $version for bin/pebble (once; it takes a minute)"
	mkdir "$1/out"
	CGO_ENABLED=0 GOWORK=off go build -C "$module" -mod=readonly -trimpath -buildvcs=false -ldflags "-s -w" -o "$1/out/" \
		github.com/letsencrypt/pebble/v2/cmd/pebble github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv
}

# The directory's name contains the version: another version goes into another directory.
dir=$root/bin/tools/pebble-$version
install_once "$dir" build
ln -sfn "tools/pebble-$version" "$root/bin/pebble"
log "bin/pebble has Pebble $version"
