#!/usr/bin/env bash
# Builds the benchmark and the floor it measures against into bin/bench, and
# runs it. bin/gatehouse, bin/envoy, bin/redis-server and bin/ratelimit must be
# there (make build envoy redis ratelimit).
#
# usage: hack/bench.sh [--only latency,bulk,start,rps,ratelimit,idle,scale,domains] [--json FILE] ...
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$(gatehouse_root)"
for program in bench bench/floor; do
	CGO_ENABLED=0 go build -trimpath -o "bin/bench/$(basename "$program")" "./test/$program"
done
exec bin/bench/bench "$@"
