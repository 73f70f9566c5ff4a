package translate

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

func applyHostRewrite(out *routev3.RouteAction, h *ir.HostRewrite) {
	switch {
	case h == nil:
		return
	case h.Header != "":
		out.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteHeader{HostRewriteHeader: h.Header}
	case h.Regex != "":
		out.HostRewriteSpecifier = &routev3.RouteAction_HostRewritePathRegex{HostRewritePathRegex: &matcherv3.RegexMatchAndSubstitute{
			Pattern: regex("^(?:" + h.Regex + ")$"), Substitution: h.Substitution,
		}}
	default:
		out.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: h.Host}
	}
	out.AppendXForwardedHost = true
}

// wholePath limits a route to requests whose path makes a host. For any other request, Envoy
// would use the path itself as the host.
func wholePath(out *routev3.RouteMatch, f *ir.Forward) {
	if f == nil || f.HostRewrite == nil || f.HostRewrite.Regex == "" {
		return
	}
	out.Headers = append(out.Headers, headerMatcher(ir.ValueMatch{Name: ":path", Regex: "(?:" + f.HostRewrite.Regex + `)(?:\?.*)?`}))
}
