#!/usr/bin/env bash
# Builds the benchmark, the floor it measures against and the streams of many
# Envoys into bin/bench, and runs it. bin/gatehouse, bin/envoy,
# bin/redis-server, bin/ratelimit, bin/haproxy and a browser must exist (make build
# envoy redis ratelimit haproxy browser).
#
# usage: hack/bench.sh [--only latency,document,bulk,start,streams,rps,tcp,http3,accesslog,filters,ratelimit,idle,scale,domains,console] [--json FILE] ...
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$(gatehouse_root)"
for program in bench bench/floor bench/envoys; do
	CGO_ENABLED=0 go build -trimpath -o "bin/bench/$(basename "$program")" "./test/$program"
done
exec bin/bench/bench "$@"
