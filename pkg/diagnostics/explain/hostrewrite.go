package explain

import (
	"cmp"
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// rewrittenHost returns the Host that the upstream receives
// (RouteEntryImplBase::finalizeHostHeader).
func rewrittenHost(s subject, r *routev3.Route) (string, error) {
	host := s.headers.get(authority)
	action := r.GetRoute()
	switch by := action.GetHostRewriteSpecifier().(type) {
	case nil:
		return host, nil
	case *routev3.RouteAction_HostRewriteLiteral:
		return cmp.Or(by.HostRewriteLiteral, host), nil
	case *routev3.RouteAction_HostRewriteHeader:
		return cmp.Or(cmp.Or(s.headers[seam.LowerASCII(by.HostRewriteHeader)]...), host), nil
	case *routev3.RouteAction_HostRewritePathRegex:
		return replaceAll(s.path, r.GetName(), by.HostRewritePathRegex)
	default:
		return "", fmt.Errorf("explaining route %q: rewrite of the host %T is not known", r.GetName(), by)
	}
}
