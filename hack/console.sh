#!/usr/bin/env bash
# Builds the console from console/ into pkg/input/rest/console/console.zip, which the program embeds (ADR 0130). The
# same sources give the same files. Packages are checked against console/package-lock.json; Node is that of
# hack/node.sh.
#
# usage: hack/console.sh [--check | --packages]
#   --check     fails if the committed zip has other files; what was checked before is not built again
#   --packages  only installs the packages, and prints where: bin/console/node_modules has them
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/node.sh"

root=$(gatehouse_root)
sources=$root/console
packed=$root/pkg/input/rest/console/console.zip

# install SCRATCH leaves the packages in SCRATCH/out.
install() {
	log "fetching the packages of the console"
	mkdir "$1/out"
	cp "$sources"/{package.json,package-lock.json,.npmrc} "$1/out"
	(cd "$1/out" && PATH=$(dirname "$node"):$PATH "${npm[@]}" ci --silent --ignore-scripts) >&2 ||
		fail "npm could not install what console/package-lock.json lists; check the network and npm's registry setting, then try again"
}

# hash prints a hash of all that the bundle depends on.
hash() {
	(
		cd "$root"
		git ls-files -z --cached --others --exclude-standard -- console hack/console hack/console.sh hack/pack api/openapi.yaml pkg/input/rest/console |
			sort -z | while IFS= read -r -d '' f; do [ ! -f "$f" ] || sha256sum "$f"; done
	) | sha256sum | cut -d ' ' -f 1
}

# build DIR leaves the bundle in DIR/dist.
build() {
	cp -r "$sources"/{index.html,public,src,package.json,tsconfig.json,vite.config.ts} "$1"
	ln -s "$packages/node_modules" "$1/node_modules"
	(
		cd "$1"
		"$node" node_modules/openapi-typescript/bin/cli.js "$root/api/openapi.yaml" -o src/api/schema.d.ts >/dev/null
		"$node" node_modules/typescript/bin/tsc --noEmit >&2
		"$node" node_modules/vite/bin/vite.js build --logLevel warn --outDir dist >&2
	) || fail "the console cannot be built, see above"
}

find_node
# notices prints the licenses of the packages whose code may be in the bundle.
notices() {
	local dir name text rule
	rule=$(printf -- '-%.0s' {1..80})
	echo 'The console is made of these packages of npm:'
	for dir in $(cd "$packages" && PATH=$(dirname "$node"):$PATH "${npm[@]}" ls --omit=dev --all --parseable | tail -n +2 | LC_ALL=C sort -u); do
		name=${dir#"$packages/node_modules/"}
		text=$(find "$dir" -maxdepth 1 -iname 'licen[cs]e*' | LC_ALL=C sort | head -n 1)
		printf '\n%s\n%s: %s\n\n' "$rule" "$name" "$(sed -n 's/^[[:space:]]*"license": *"\(.*\)",*$/\1/p' "$dir/package.json" | head -n 1)"
		[ -z "$text" ] || tr -d "\r" <"$text"
	done
}

packages=$root/bin/tools/console-$(sha256sum <"$sources/package-lock.json" | cut -c 1-12)
install_once "$packages" install
mkdir -p "$root/bin/console"
ln -sfn "$packages/node_modules" "$root/bin/console/node_modules"
ln -sfn "$node" "$root/bin/console/node"
[ "${1:-}" != --packages ] || exit 0

checked=$root/bin/console/checked
sum=$(hash)
if [ "${1:-}" = --check ] && [ "$(cat "$checked" 2>/dev/null)" = "$sum" ]; then
	exit 0
fi
scratch=$(mktemp -d "$root/bin/console/build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
build "$scratch"
if [ "${1:-}" = --check ]; then
	go run "$root/hack/console" --check "$scratch/dist" "$packed"
else
	go run "$root/hack/console" "$scratch/dist" "$packed"
	notices >"$root/hack/notices/console.txt"
fi
hash >"$checked"
