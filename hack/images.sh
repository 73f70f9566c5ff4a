#!/usr/bin/env bash
# Builds what the local stack would pull from a registry, from Debian's packages
# and one Go module, with the tags of docker-compose.yaml: make up IMAGES=local.
# An image that is there is left alone.
#
# usage: hack/images.sh [NAME...]     postgres redis nginx prometheus dex; all without
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$(gatehouse_root)"

docker=${DOCKER:-docker}

# tag NAME prints the image that docker-compose.yaml gives to it.
tag() {
	awk -v name="$1" '$1 == "image:" { n = $2; sub(/:[^:]*$/, "", n); sub(/.*\//, "", n); if (n == name) { print $2; exit } }' docker-compose.yaml
}

# build NAME builds its image.
build() {
	local name=$1 image context=hack/images/$1
	image=$(tag "$name")
	[ -n "$image" ] || fail "docker-compose.yaml has no image $name"
	! "$docker" image inspect "$image" >/dev/null 2>&1 || return 0
	log "building $image"
	if [ "$name" = dex ]; then
		make --no-print-directory dex >&2
		context=$(mktemp -d)
		# shellcheck disable=SC2064
		trap "rm -rf '$context'" EXIT
		cp hack/images/dex/Dockerfile bin/dex "$context"
	fi
	# The packages come over the network of this machine, by its settings.
	"$docker" build --network host --quiet --build-arg BASE="${BASE:-debian:12-slim}" -t "$image" "$context" >&2 ||
		fail "$image could not be built; what is above says why"
}

[ $# -gt 0 ] || set -- postgres redis nginx prometheus dex
for name in "$@"; do
	build "$name"
done
