#!/usr/bin/env bash
# Puts the identity provider of the tests, npm's oidc-provider, at bin/oidc-provider,
# with the Node that runs it: that of the PATH if it is version 20 or later and has npm,
# otherwise a pinned one. Packages are checked against
# hack/oidc-provider/package-lock.json. Does nothing if it exists; may run twice at the
# same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/node.sh"

root=$(gatehouse_root)
sources=$root/hack/oidc-provider

# install SCRATCH leaves the provider in SCRATCH/out.
install() {
	log "fetching oidc-provider"
	mkdir "$1/out"
	cp "$sources"/{package.json,package-lock.json,.npmrc,server.js} "$1/out"
	(cd "$1/out" && PATH=$(dirname "$node"):$PATH "${npm[@]}" ci --silent --ignore-scripts) >&2 ||
		fail "npm could not install what hack/oidc-provider/package-lock.json lists; check the network and npm's registry setting, then try again"
}

find_node
# The directory's name contains a hash of the sources: other sources go into another
# directory.
dir=$root/bin/tools/oidc-provider-$(cat "$sources"/{package-lock.json,server.js} | sha256sum | cut -c 1-12)
install_once "$dir" install
ln -sfn "$node" "$dir/node.$$" && mv -fT "$dir/node.$$" "$dir/node"
ln -sfn "tools/${dir##*/}" "$root/bin/oidc-provider"
log "bin/oidc-provider is oidc-provider with Node $("$node" --version)"
