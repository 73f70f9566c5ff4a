package model

// GRPCWebFilter lets web pages call gRPC services: it makes gRPC of what they send in gRPC-Web, and gRPC-Web of the
// answers. Other requests pass as they are. It has no settings.
// +page=grpcweb.md
// +example={}
type GRPCWebFilter struct{}

func readGRPCWeb(v *validator, at, _ string, config JSON) Spec {
	var f GRPCWebFilter
	v.decode(at, config, &f)
	return &f
}

func (f *GRPCWebFilter) uses() []Key { return nil }
