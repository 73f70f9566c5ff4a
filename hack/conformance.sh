#!/usr/bin/env bash
# Runs the conformance tests of the Gateway API (test/conformance) next to a node of
# Kubernetes: hack/cluster.sh run hack/conformance.sh [ARG...]. The report is
# bin/conformance/report.yaml, the control plane's log is beside it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(gatehouse_root)
to=$root/bin/conformance
[ -n "${GATEHOUSE_TEST_CLUSTER:-}" ] || fail "there is no node: run make conformance"
"$root/hack/cluster.sh" load "$GATEHOUSE_TEST_CLUSTER" "$to"/{gatehouse,gateway-api,gateway-api-dns}.tar
kubectl apply --server-side -f "$root/charts/gatehouse/crds" >"$to/crds.log"
for crd in "$(go list -C "$root/test/conformance" -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)"/config/crd/standard/gateway.networking.k8s.io_*.yaml; do
	kubectl apply --server-side -f "$crd" >>"$to/crds.log"
done
kubectl wait --for=condition=Established crd --all --timeout=60s >>"$to/crds.log"
export GATEHOUSE=$root/bin/gatehouse GATEHOUSE_LOG=$to/gatehouse.log VERSION
VERSION=$("$root/bin/gatehouse" version | head -n 1 | awk '{ print $NF }')
"$to/conformance.test" -test.v -test.timeout 40m -report-output "$to/report.yaml" "$@"
