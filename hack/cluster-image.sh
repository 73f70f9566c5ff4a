#!/usr/bin/env bash
# Makes images of containers from files that were already built or fetched: one layer,
# without an engine, a registry or a base image. hack/cluster.sh loads them.
#
# usage: hack/cluster-image.sh DIR NAME...     writes DIR/NAME.tar
#
# gatehouse, control-plane: what the Dockerfile builds, from bin/image (make image-files),
#   as gatehouse:local and gatehouse-control-plane:local, and each as :next, for upgrades
# ratelimit: what ratelimit/Dockerfile builds (make ratelimit), gatehouse-ratelimit:local
# redis, postgres: the servers of the tests (make redis postgres), localhost/redis:local,
#   localhost/postgres:local; users 10003 and 10004; PostgreSQL's directory is /data, its
#   user gatehouse, which needs no password
# echo: the backend of test/cluster, localhost/echo:local; user 10005
# gateway-api: the backend of the conformance tests of the Gateway API (test/conformance),
#   under the names that these tests have for it
# gateway-api-dns: the DNS server of these tests
# pause, coredns: for the node (hack/kubernetes.sh all), localhost/pause:1, localhost/coredns:1
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(gatehouse_root)
cd "$root"

# put ROOT DESTINATION FILE... copies files to a directory of an image.
put() {
	local to=$1$2
	shift 2
	mkdir -p "$to"
	cp -a "$@" "$to"
}

# with_libraries ROOT PROGRAM... copies programs with the libraries that this machine's loader
# would load.
with_libraries() {
	local to=$1 library
	shift
	ldd "$@" | awk '$2 == "=>" && $3 ~ "^/(usr/)?lib" { print $3 } $1 ~ "^/lib" { print $1 }' | sort -u | while IFS= read -r library; do
		mkdir -p "$to$(dirname "$library")"
		cp -L "$library" "$to$library"
	done
}

# image NAME UID ENTRYPOINT CMD TAGS ENV adds config and manifest to the layer in
# $work/layer.tar, and writes the image. TAGS and ENV are lists of words.
image() {
	local arch sum
	case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) arch=$(uname -m) ;; esac
	sum=$(sha256sum <"$work/layer.tar" | cut -d ' ' -f 1)
	# shellcheck disable=SC2086
	cat >"$work/config.json" <<-END
		{"architecture": "$arch", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:$sum"]},
		 "config": {"User": "$2:$2", "Entrypoint": ["$3"], "Cmd": $(words $4), "Env": $(words PATH=/usr/local/bin:/bin $6)}}
	END
	# shellcheck disable=SC2086
	printf '[{"Config": "config.json", "RepoTags": %s, "Layers": ["layer.tar"]}]' "$(words $5)" >"$work/manifest.json"
	tar -C "$work" -cf "$work/image.tar" manifest.json config.json layer.tar
	mv "$work/image.tar" "$to/$1.tar"
}

# words WORD... prints the words as a JSON list.
words() {
	local list
	list=$(printf '"%s", ' "$@")
	[ $# -gt 0 ] && echo "[${list%, }]" || echo "[]"
}

# layer DIR... makes the layer from the contents of the directories.
layer() {
	local dir
	rm -f "$work/layer.tar"
	for dir; do
		[ -d "$dir" ] || fail "$dir is not there; run make image-files"
		tar -C "$dir" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -rf "$work/layer.tar" .
	done
}

# of_gatehouse NAME CMD DIR... writes an image of the gateway.
of_gatehouse() {
	local name=$1 command=$2 repository=gatehouse data=/var/lib/gatehouse
	shift 2
	[ "$name" = gatehouse ] || repository=gatehouse-$name
	layer "$@"
	tar -C bin/image/data --sort=name --mtime=@0 --owner=10001 --group=10001 --numeric-owner --transform 's#^\./#./var/lib/#' -rf "$work/layer.tar" ./gatehouse
	image "$name" 10001 /usr/local/bin/gatehouse "$command" "$repository:local $repository:next" \
		"TMPDIR=$data GATEHOUSE_DATA_DIR=$data GATEHOUSE_LOG_FORMAT=json"
}

make_image() {
	local files=$work/$1
	mkdir "$files"
	case $1 in
	gatehouse) of_gatehouse gatehouse standalone bin/image/{envoy,gatehouse,standalone} ;;
	control-plane) of_gatehouse control-plane serve bin/image/{gatehouse,control-plane} ;;
	ratelimit)
		put "$files" /usr/local/bin bin/ratelimit bin/ratelimit-health
		layer "$files"
		image ratelimit 10002 /usr/local/bin/ratelimit "" gatehouse-ratelimit:local ""
		;;
	redis)
		put "$files" /usr/local/bin bin/redis-server
		with_libraries "$files" bin/redis-server
		layer "$files"
		image redis 10003 /usr/local/bin/redis-server "" localhost/redis:local ""
		;;
	postgres)
		put "$files" /usr/local bin/postgres/*/.
		put "$files" /bin /bin/sh
		rm "$files/bin/sh"
		cp -L /bin/sh "$files/bin/sh" # initdb calls it
		put "$files" /etc hack/cluster/postgres/passwd
		put "$files" /usr/local/sbin hack/cluster/postgres/start
		with_libraries "$files" /bin/sh "$files"/usr/local/bin/{initdb,postgres}
		layer "$files"
		image postgres 10004 /usr/local/sbin/start "" localhost/postgres:local ""
		;;
	echo)
		mkdir -p "$files/usr/local/bin"
		CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$files/usr/local/bin/echo" ./test/cluster/echo
		layer "$files"
		image echo 10005 /usr/local/bin/echo "" localhost/echo:local ""
		;;
	gateway-api)
		mkdir -p "$files/usr/local/bin"
		CGO_ENABLED=0 go build -C test/conformance -trimpath -buildvcs=false -ldflags '-s -w' -o "$files/usr/local/bin/echo-basic" \
			sigs.k8s.io/gateway-api/conformance/echo-basic
		layer "$files"
		tags=$(cat "$(go list -C test/conformance -m -f '{{.Dir}}' sigs.k8s.io/gateway-api/conformance)"/{base,tests}/*.yaml |
			sed -n 's/^ *image: //p' | grep /echo-basic: | sort -u | tr '\n' ' ')
		image gateway-api 65532 /usr/local/bin/echo-basic "" "$tags" ""
		;;
	gateway-api-dns)
		put "$files" /usr/local/bin bin/kubernetes/coredns
		layer "$files"
		image gateway-api-dns 0 /usr/local/bin/coredns "" registry.k8s.io/coredns/coredns:v1.12.2 ""
		;;
	pause | coredns)
		put "$files" /usr/local/bin "bin/kubernetes/$1"
		layer "$files"
		# CoreDNS uses port 53.
		image "$1" "$([ "$1" = pause ] && echo 65535 || echo 0)" "/usr/local/bin/$1" "" "localhost/$1:1" ""
		;;
	*) fail "hack/cluster-image.sh does not know $1; see its first lines" ;;
	esac
	rm -rf "$files"
}

[ $# -gt 1 ] || fail "usage: hack/cluster-image.sh DIR NAME..."
mkdir -p "$1"
to=$(cd "$1" && pwd)
shift
umask 022
work=$(mktemp -d)
# shellcheck disable=SC2064
trap "rm -rf '$work'" EXIT
for name; do
	make_image "$name"
done
