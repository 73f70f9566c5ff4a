#!/usr/bin/env bash
# Builds stand-ins for the images that the local stack would pull from a registry, from
# Debian's packages and one Go module, under names of their own: make up IMAGES=local.
# And Docker Compose, if Docker has none. Existing images are left alone: remove one
# (docker rmi) to build it again.
#
# usage: hack/images.sh [NAME...]       postgres redis nginx prometheus dex; default: all
#        hack/images.sh --name NAME     prints the name of the image
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$(gatehouse_root)"

docker=${DOCKER:-docker}
umask 022 # other users run the files

# name_of NAME prints the name of the stand-in, which no registry has.
name_of() {
	[ -d "hack/images/$1" ] || fail "there is no image $1; the images are dex, postgres, redis, nginx and prometheus"
	echo "gatehouse-stack-$1:local"
}

if [ "${1:-}" = --name ]; then
	name_of "${2:-}"
	exit
fi

# build NAME builds an image.
build() {
	local name=$1 image=$2 context=hack/images/$1
	log "building $image"
	if [ "$name" = dex ]; then
		make --no-print-directory dex >&2
		context=$scratch/dex
		mkdir "$context"
		cp hack/images/dex/Dockerfile bin/dex "$context"
	fi
	# The packages come over the network of this machine, with its settings.
	"$docker" build --network host --quiet --build-arg BASE="$base" -t "$image" "$context" >"$scratch/$name.log" 2>&1 || {
		cat "$scratch/$name.log" >&2
		fail "$image could not be built; what is above says why"
	}
}

[ $# -gt 0 ] || set -- dex postgres redis nginx prometheus
base=${BASE:-debian:12-slim}
scratch=$(mktemp -d)
# shellcheck disable=SC2064
trap "rm -rf '$scratch'" EXIT

# Compilers use the processors, and packages the network: all run at the same time.
waiting=()
if ! "$docker" compose version >/dev/null 2>&1 && [ ! -x bin/docker-compose ]; then
	log "Docker has no Compose here: building bin/docker-compose, which takes some minutes"
	make --no-print-directory compose >&2 &
	waiting+=($!)
fi
hack/base-image.sh "$base"
for name in "$@"; do
	image=$(name_of "$name")
	if ! "$docker" image inspect "$image" >/dev/null 2>&1; then
		build "$name" "$image" &
		waiting+=($!)
	fi
done
for pid in "${waiting[@]}"; do
	wait "$pid" || fail "not everything could be built; what is above says why"
done
