package translate

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	transcoderv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_transcoder/v3"
	grpcwebv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	"google.golang.org/protobuf/types/known/anypb"

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

func grpcWebOfRoute(r *ir.Route) ([]filterConfig, error) {
	if !r.GRPCWeb {
		return nil, nil
	}
	return []filterConfig{{name: GRPCWebFilter, config: &routev3.FilterConfig{Config: &anypb.Any{}}}}, nil
}

// grpcJSONFilter knows no service without the message of a route.
func grpcJSONFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: GRPCJSONFilter, config: &transcoderv3.GrpcJsonTranscoder{
		DescriptorSet: &transcoderv3.GrpcJsonTranscoder_ProtoDescriptorBin{},
	}}}
}

// grpcJSONOfRoute keeps the route that was found for the path of the request: by that of the call, a client could come
// to a route that lets in fewer.
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
			// Else a body would say another thing than the path, by which others have let the request pass.
			RejectBindingBodyFieldCollisions: true,
		},
		PrintOptions: &transcoderv3.GrpcJsonTranscoder_PrintOptions{
			AddWhitespace: g.Whitespace, AlwaysPrintPrimitiveFields: g.Zeros, AlwaysPrintEnumsAsInts: g.EnumNumbers,
			PreserveProtoFieldNames: g.ProtoNames, StreamNewlineDelimited: g.Lines,
		},
		MaxRequestBodySize: u32(g.MaxRequestBytes), MaxResponseBodySize: u32(g.MaxResponseBytes),
	}}}, nil
}
