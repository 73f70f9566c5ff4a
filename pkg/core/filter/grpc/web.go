// Package grpc is http_filter_grpcweb and http_filter_grpcjson: they make gRPC of gRPC-Web and of JSON.
package grpc

import (
	"maps"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	grpcwebv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	web                     = "envoy.filters.http.grpc_web"
	webKey   seam.Key[bool] = "grpcWeb"
	mimeType                = "content-type"
)

// Web returns the filter that translates gRPC-Web. Routes that answer themselves do without: their answers are never
// gRPC.
func Web() seam.Filter {
	return seam.Filter{
		Type: model.FilterGRPCWeb, Config: seam.Hooks(nil, addWeb),
		Name: web, Listener: translator, Disabled: true, Route: turnOn,
		Describe: describeWeb, Change: changeWeb,
	}
}

func addWeb(r *ir.Route, _ *model.GRPCWebFilter, _ seam.Place) error {
	webKey.Forward(r, true)
	return nil
}

func translator(ir.Listener) []seam.Message {
	return []seam.Message{{Name: web, Config: &grpcwebv3.GrpcWeb{}}}
}

func turnOn(r *ir.Route) ([]seam.Message, error) {
	if !webKey.OfForward(r) {
		return nil, nil
	}
	return []seam.Message{{Name: web, Config: &routev3.FilterConfig{Config: &anypb.Any{}}}}, nil
}

// isWeb reports whether Envoy treats a request as gRPC-Web (GrpcWebFilter::isGrpcWebRequest).
func isWeb(r seam.Request) bool {
	return slices.Contains([]string{
		"application/grpc-web", "application/grpc-web+proto",
		"application/grpc-web-text", "application/grpc-web-text+proto",
	}, r.Header(mimeType))
}

func describeWeb(r seam.Request) (string, error) {
	if isWeb(r) {
		return "converts the request to gRPC, and the answer to gRPC-Web", nil
	}
	return "leaves the request as it is: its Content-Type is not one of gRPC-Web", nil
}

func changeWeb(r seam.Request) (seam.Request, error) {
	if isWeb(r) {
		r.Headers = maps.Clone(r.Headers)
		r.Headers[mimeType] = []string{"application/grpc"}
	}
	return r, nil
}
