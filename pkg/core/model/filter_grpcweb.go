package model

// GRPCWebFilter lets web pages call gRPC services: it converts requests from gRPC-Web to gRPC, and their answers back.
// Other requests are forwarded unchanged. It has no settings.
// +page=grpcweb.md
// +example={}
type GRPCWebFilter struct{}

func readGRPCWeb(v *validator, at, _ string, config JSON) Spec {
	var f GRPCWebFilter
	v.decode(at, config, &f)
	return &f
}

func (f *GRPCWebFilter) uses() []Key { return nil }
