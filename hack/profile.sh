#!/usr/bin/env bash
# Shows where the program spends CPU time and memory. Runs bin/gatehouse and
# bin/envoy on free ports with a scratch directory, loads routes (PUT /config),
# changes every tenth, then one at a time, while it takes a profile. Prints the
# functions that matter and leaves cpu.pprof and heap.pprof. bin/gatehouse and
# bin/envoy must exist (make build envoy).
#
# usage: hack/profile.sh [--routes N] [--seconds N] [--out DIR]
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$(gatehouse_root)"
routes=5000 seconds=20 out=bin/profile
while [ $# -gt 0 ]; do
	case $1 in
	--routes | --seconds | --out) declare "${1#--}=${2:?"$1 needs a value"}" && shift 2 ;;
	*) fail "$1 is not an option; the options are --routes N, --seconds N and --out DIR" ;;
	esac
done
need_command curl "install it (Debian: apt-get install curl)"
mkdir -p "$out"
dir=$(mktemp -d)
gatehouse=
trap '[ -z "$gatehouse" ] || kill "$gatehouse" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT

# document PREFIX prints services with ten routes each. Every tenth route has the
# prefix.
document() {
	awk -v routes="$routes" -v prefix="$1" 'BEGIN {
		print "version: 1\nproxies:\n- name: gw\nupstreams:"
		for (u = 0; u < 50; u++) printf "- {upstream_name: u%d, upstream_ip: 192.0.2.%d, upstream_port: 80}\n", u, u + 1
		print "services:"
		for (r = 0; r < routes; r++) {
			if (r % 10 == 0) printf "- service_name: s%d\n  fqdn: s%d.example.com\n  proxies: [gw]\n  routes:\n", r / 10, r / 10
			printf "  - {route_name: r%d, route_prefix: /%s/%d, upstreams: [u%d]}\n", r % 10, r % 10 ? "a" : prefix, r % 10, r % 50
		}
	}'
}

# write METHOD PATH CURL-ARG... makes calls of the API that must succeed, one for each
# number of a range such as [0-9] in the path.
write() {
	local method=$1 path=$2
	shift 2
	curl -sS --fail-with-body --fail-early -o "$dir/answer" -X "$method" "$@" "$api$path" || fail "$method $path: $(cat "$dir/answer")"
}

# address NAME prints an address from the log.
address() {
	sed -n "s|.*\"msg\":\"gatehouse is up\".*\"$1\":\"\([^\"]*\)\".*|\1|p" "$dir/log"
}

# top PROFILE TITLE PPROF-OPTION... prints the three functions of the program's own
# packages with the most, each with its library calls.
top() {
	local profile=$1 title=$2
	shift 2
	printf '\n%s, by function of Gatehouse with the libraries that it calls:\n' "$title"
	go tool pprof -top -show '/gatehouse/(pkg|cmd)/' "$@" "$out/$profile" 2>/dev/null |
		awk '/flat%/ { header = NR } header && NR <= header + 3 { sub("github.com/gatehouse-gateway/gatehouse/", ""); print }'
}

read -r http https < <(python3 -c 'import socket
a, b = socket.socket(), socket.socket()
for s in a, b: s.bind(("127.0.0.1", 0))
print(a.getsockname()[1], b.getsockname()[1])')
bin/gatehouse standalone --data-dir "$dir" --api-addr 127.0.0.1:0 --xds-addr 127.0.0.1:0 --admin-addr 127.0.0.1:0 --debug-addr 127.0.0.1:0 \
	--http-port "$http" --https-port "$https" --log-format json --access-log off 2>"$dir/log" &
gatehouse=$!
until grep -q '"msg":"envoy is ready"' "$dir/log"; do
	kill -0 "$gatehouse" 2>/dev/null || fail "bin/gatehouse ended: $(tail -n 1 "$dir/log")"
	sleep 0.1
done
api=$(address api) debug=$(address debug)

log "profiling for $seconds s: $routes routes in one document, each tenth changed, then single changes"
curl -sS --fail -o "$out/cpu.pprof" "${debug}profile?seconds=$seconds" &
profile=$!
for prefix in a b; do
	document "$prefix" | write PUT /config -H 'Content-Type: application/yaml' --data-binary @-
done
rounds=0
while kill -0 "$profile" 2>/dev/null; do
	rounds=$((rounds + 1))
	write PATCH "/service/s[0-$(((routes - 1) / 10))]/route/r0" -d "Route_prefix=/c/$rounds"
done
wait "$profile" || fail "no CPU profile came from $debug"
curl -sS --fail -o "$out/heap.pprof" "${debug}heap?gc=1" || fail "no heap profile came from $debug"

log "$((rounds * ((routes + 9) / 10))) single changes"
top cpu.pprof "CPU time"
top heap.pprof "memory in use" -sample_index=inuse_space
printf '\nOpen them in a browser:\n'
printf '  go tool pprof -http=localhost: %s\n' "$out/cpu.pprof" "$out/heap.pprof"
