package translate

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	transcoderv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_transcoder/v3"
	grpcwebv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// GRPCWebFilter is the name of the filter that translates gRPC-Web into gRPC. GRPCJSONFilter is the name of the filter
// that translates JSON into gRPC.
const (
	GRPCWebFilter  = "envoy.filters.http.grpc_web"
	GRPCJSONFilter = "envoy.filters.http.grpc_json_transcoder"
)

func grpcWebFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: GRPCWebFilter, config: &grpcwebv3.GrpcWeb{}}}
}

func grpcWebOfRoute(r *ir.Route) ([]filterConfig, error) {
	if !r.GRPCWeb {
		return nil, nil
	}
	return []filterConfig{{name: GRPCWebFilter, config: &routev3.FilterConfig{Config: &anypb.Any{}}}}, nil
}

// grpcJSONFilter knows no service without a route's message.
func grpcJSONFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: GRPCJSONFilter, config: &transcoderv3.GrpcJsonTranscoder{
		DescriptorSet: &transcoderv3.GrpcJsonTranscoder_ProtoDescriptorBin{},
	}}}
}

// grpcJSONOfRoute keeps the route of the request's own path. If Envoy chose a route again by the path of the call, a
// client could reach a route with stricter access.
func grpcJSONOfRoute(r *ir.Route) ([]filterConfig, error) {
	g := r.GRPCJSON
	if g == nil {
		return nil, nil
	}
	return []filterConfig{{name: GRPCJSONFilter, config: &transcoderv3.GrpcJsonTranscoder{
		DescriptorSet:                &transcoderv3.GrpcJsonTranscoder_ProtoDescriptorBin{ProtoDescriptorBin: g.DescriptorSet},
		Services:                     g.Services,
		MatchIncomingRequestRoute:    true,
		AutoMapping:                  g.AutoMapping,
		ConvertGrpcStatus:            g.ConvertStatus,
		IgnoredQueryParameters:       g.IgnoredParameters,
		IgnoreUnknownQueryParameters: g.IgnoreUnknownParameters,
		RequestValidationOptions: &transcoderv3.GrpcJsonTranscoder_RequestValidationOptions{
			RejectUnknownMethod: !g.PassUnknownPaths, RejectUnknownQueryParameters: !g.IgnoreUnknownParameters,
			// Otherwise the body could contradict the path, which other filters have already checked.
			RejectBindingBodyFieldCollisions: true,
		},
		PrintOptions: &transcoderv3.GrpcJsonTranscoder_PrintOptions{
			AddWhitespace: g.Whitespace, AlwaysPrintPrimitiveFields: g.Zeros, AlwaysPrintEnumsAsInts: g.EnumNumbers,
			PreserveProtoFieldNames: g.ProtoNames, StreamNewlineDelimited: g.Lines,
		},
		MaxRequestBodySize: u32(g.MaxRequestBytes), MaxResponseBodySize: u32(g.MaxResponseBytes),
	}}}, nil
}
