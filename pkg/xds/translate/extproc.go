package translate

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// ExtProcFilter is the name of the filter that gives requests and answers to another service.
const ExtProcFilter = "envoy.filters.http.ext_proc"

// extProcFilter asks nobody, so that nothing passes.
func extProcFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: ExtProcFilter, config: &extprocv3.ExternalProcessor{GrpcService: &corev3.GrpcService{
		TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: noCluster}},
	}}}}
}
