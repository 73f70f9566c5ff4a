package translate

import (
	transcoderv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_transcoder/v3"
	grpcwebv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// GRPCWebFilter is the name of the filter that makes gRPC of what browsers send, GRPCJSONFilter that of
// the one that makes it of JSON.
const (
	GRPCWebFilter  = "envoy.filters.http.grpc_web"
	GRPCJSONFilter = "envoy.filters.http.grpc_json_transcoder"
)

func grpcWebFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: GRPCWebFilter, config: &grpcwebv3.GrpcWeb{}}}
}

// grpcJSONFilter knows no service without the message of a host or route.
func grpcJSONFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: GRPCJSONFilter, config: &transcoderv3.GrpcJsonTranscoder{
		DescriptorSet: &transcoderv3.GrpcJsonTranscoder_ProtoDescriptorBin{},
	}}}
}
