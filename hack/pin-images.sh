#!/usr/bin/env bash
# Writes the current digest of each image of hack/images/public.txt into that file, as its
# registry reports it: for all platforms, with no image pulled. Run it once a month, and
# after a change of a tag; then make up and make test-images. It needs the registries.
#
# usage: hack/pin-images.sh [--check]     --check changes nothing, and fails if something is old
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$(gatehouse_root)"

docker=${DOCKER:-docker}
file=${IMAGES_FILE:-hack/images/public.txt}
need_command "$docker" "it asks the registries: install Docker with Buildx, or name it with DOCKER"

# digest_of IMAGE prints the digest of what the tag names now.
digest_of() {
	local digest
	digest=$("$docker" buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1") ||
		fail "the registry of $1 gave no digest; what is above says why, and $file is unchanged"
	[[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || fail "the registry of $1 gave \"$digest\", which is not a digest; $file is unchanged"
	printf '%s' "$digest"
}

case ${1:-} in
'' | --check) ;;
*) fail "usage: hack/pin-images.sh [--check]" ;;
esac
next=$(mktemp)
# shellcheck disable=SC2064
trap "rm -f '$next'" EXIT
while IFS= read -r line; do
	case $line in
	'' | '#'*) printf '%s\n' "$line" ;;
	*)
		read -r name image _ <<<"$line"
		digest=$(digest_of "$image")
		printf '%s %s %s\n' "$name" "$image" "$digest"
		;;
	esac
done <"$file" >"$next"
if cmp -s "$next" "$file"; then
	log "$file has the current digests"
elif [ "${1:-}" = --check ]; then
	diff -u "$file" "$next" >&2 || true
	fail "$file has old digests: run hack/pin-images.sh"
else
	cat "$next" >"$file"
	log "wrote $file; now run make up and make test-images"
fi
