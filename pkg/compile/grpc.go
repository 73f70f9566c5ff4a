package compile

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/grpcjson"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addGRPCWeb skips routes that answer themselves: their answers are never gRPC.
func addGRPCWeb(r *ir.Route, _ *model.GRPCWebFilter) { r.GRPCWeb = r.Forward != nil }

// addGRPCJSON checks the descriptor set on every route. It skips routes that answer themselves, and routes that change
// the path, because they would change the path of the call.
func addGRPCJSON(r *ir.Route, f *model.GRPCJSONFilter, _ Place) error {
	calls, err := grpcjson.Read(f.Set(), grpcjson.Options{Services: f.Services, AutoMapping: f.AutoMapping, ConvertStatus: f.Converts()})
	if err != nil || r.Forward == nil || readsPath(r.Forward) {
		return err
	}
	if r.GRPCJSON == nil {
		r.Before = append(r.Before, refuseEscapedNames(r))
	}
	r.GRPCJSON = &ir.GRPCJSON{
		DescriptorSet: calls.Set, Services: f.Services, AutoMapping: f.AutoMapping, ConvertStatus: f.Converts(),
		PassUnknownPaths:        f.UnknownPaths == model.GRPCJSONPass,
		IgnoreUnknownParameters: f.UnknownParameters == model.GRPCJSONIgnore, IgnoredParameters: slices.Concat(f.IgnoredParameters, calls.Ignored),
		Whitespace: f.Print.Whitespace, Zeros: f.Print.Zeros, EnumNumbers: f.Print.EnumNumbers, ProtoNames: f.Print.ProtoNames, Lines: f.Print.Lines,
		MaxRequestBytes: f.MaxRequestBytes, MaxResponseBytes: f.MaxResponseBytes,
	}
	return nil
}

// maxDescriptorSets bounds the descriptor sets of a service-wide filter, in bytes: every route has a copy.
const maxDescriptorSets = 16 << 20

// MaxRoutes returns how many routes a service with these filters may have, and what is wrong with more, in words that
// follow the name of the service; empty means that any number is allowed. Each route has a copy of the descriptor set of
// a http_filter_grpcjson.
func MaxRoutes(filters []*model.ParsedFilter) (most int, wrong string) {
	for _, f := range filters {
		if spec, is := f.Spec.(*model.GRPCJSONFilter); is && f.Fault == nil && len(spec.Set()) > 0 {
			most = maxDescriptorSets / len(spec.Set())
			return most, fmt.Sprintf("has filter %s, whose descriptor set is copied into every route: at most %d routes may have one of this size "+
				"(attach the filter to the routes that take its calls, or make the set smaller),", f.Name, most)
		}
	}
	return 0, ""
}

// escapedName matches paths with an escaped name of a query parameter.
const escapedName = `[^?]*\?(?:.*&)?[^=&]*%[^=&]*=.*`

// refuseEscapedNames returns a route that comes before a route with calls. Envoy compares ignored query parameters with
// the raw text and unescapes them afterwards.
func refuseEscapedNames(r *ir.Route) *ir.Route {
	m := r.Match
	m.Headers = append(slices.Clone(m.Headers), ir.ValueMatch{Name: ":path", Regex: escapedName})
	return &ir.Route{Name: r.Name, Match: m, Respond: &ir.Respond{Status: http.StatusBadRequest, Body: "the name of a query parameter is escaped\n"}}
}

// readsPath reports whether the router changes the path, or derives the Host from it.
func readsPath(f *ir.Forward) bool {
	return f.Rewrite != (ir.Rewrite{Host: f.Rewrite.Host}) || f.HostRewrite != nil && f.HostRewrite.Regex != ""
}

// rewrittenCall returns the conflict if a route is configured both to translate requests into calls and to rewrite
// their paths. The text follows the name of the route. Empty means no conflict.
func rewrittenCall(t *model.RouteTree) string {
	if w := t.Route.Config.Rewrite; w == nil || *w == (model.Rewrite{Host: w.Host}) {
		return ""
	}
	for _, f := range t.Filters {
		if f.Type == model.FilterGRPCJSON {
			return fmt.Sprintf("has filter %s, a http_filter_grpcjson, and rewrites paths in its Route_config, which would change the path of the call "+
				"(write the paths that clients send into the http rules),", f.Name)
		}
	}
	return ""
}
