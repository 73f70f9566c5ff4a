package translate

import (
	"errors"
	"regexp"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

const websocket = "websocket"

// VirtualHost returns a host without its routes. They are added one by one from cached bytes
// (see snapshot.NewHost).
func VirtualHost(h *ir.Host) (*routev3.VirtualHost, error) {
	filters, err := hostFilters(h)
	if err != nil {
		return nil, err
	}
	out := &routev3.VirtualHost{
		Name:                 h.Name,
		Domains:              []string{h.Domain},
		TypedPerFilterConfig: filters,
	}
	err = changeBy(h, out, func(f *seam.Filter) func(*ir.Host, *routev3.VirtualHost) error { return f.ChangeHost })
	if h.Counted {
		proto.Merge(out, CountedHost(h.Name))
	}
	return out, err
}

// RouteConfiguration has no hosts. They are added from cached bytes.
func RouteConfiguration() *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name:                           RouteConfigName,
		IgnorePortInHostMatching:       true,
		MaxDirectResponseBodySizeBytes: u32(maxDirectResponse),
		ResponseHeadersToRemove:        []string{unhealthy},
		// Envoy does not look clusters up when it reads the message: the planner sends a route
		// only after its clusters.
		ValidateClusters: wrapperspb.Bool(false),
	}
}

// Route translates one route of a virtual host. Filters also apply to routes that answer without
// an upstream.
func Route(r *ir.Route) (*routev3.Route, error) {
	filters, err := routeFilters(r)
	if err != nil {
		return nil, err
	}
	match, err := routeMatch(r.Match)
	if err != nil {
		return nil, err
	}
	out := &routev3.Route{Name: r.Name, Match: match, TypedPerFilterConfig: filters}
	switch {
	case r.Respond != nil:
		applyDirectResponse(out, r.Respond)
	case r.Redirect != nil:
		out.Action = &routev3.Route_Redirect{Redirect: redirectAction(r.Redirect, r.Match)}
	case r.Preflight:
		out.Action = nowhere()
	default:
		wholePath(out.Match, r.Forward)
		action := routeAction(r.Forward, r.Match)
		out.Action = &routev3.Route_Route{Route: action}
		err = errors.Join(rewriteTemplate(action, r.Forward.Rewrite.Template), applyRetries(action, r))
	}
	if err != nil {
		return nil, err
	}
	return out, changeBy(r, out, func(f *seam.Filter) func(*ir.Route, *routev3.Route) error { return f.ChangeRoute })
}

// BareRoute is Route without the filters of a host: the route turns off each of them.
func BareRoute(r *ir.Route, host *routev3.VirtualHost) (*routev3.Route, error) {
	out, err := Route(r)
	if err != nil {
		return nil, err
	}
	off, err := pack(&routev3.FilterConfig{Disabled: true})
	if err != nil {
		return nil, err
	}
	out.TypedPerFilterConfig = make(map[string]*anypb.Any, len(host.GetTypedPerFilterConfig()))
	for name := range host.GetTypedPerFilterConfig() {
		out.TypedPerFilterConfig[name] = off
	}
	return out, nil
}

// nowhere leads to no cluster: a filter answers first, but only on routes that forward. No cluster has a path as its
// name.
func nowhere() *routev3.Route_Route {
	return &routev3.Route_Route{Route: &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_ClusterHeader{ClusterHeader: ":path"},
	}}
}

func routeMatch(m ir.Match) (*routev3.RouteMatch, error) {
	out := &routev3.RouteMatch{}
	var err error
	switch m.PathKind {
	case ir.PathExact:
		out.PathSpecifier = &routev3.RouteMatch_Path{Path: m.Path}
	case ir.PathRegex:
		out.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: regex(m.Path)}
	case ir.PathTemplate:
		err = matchTemplate(out, m.Path)
	case ir.PathSegment:
		if prefix := strings.TrimRight(m.Path, "/"); prefix != "" {
			out.PathSpecifier = &routev3.RouteMatch_PathSeparatedPrefix{PathSeparatedPrefix: prefix}
			break
		}
		fallthrough
	case ir.PathPrefix:
		out.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: m.Path}
	}
	if len(m.Methods) > 0 {
		out.Headers = append(out.Headers, methodMatcher(m.Methods))
	}
	for _, h := range m.Headers {
		out.Headers = append(out.Headers, headerMatcher(h))
	}
	for _, q := range m.Query {
		out.QueryParameters = append(out.QueryParameters, queryMatcher(q))
	}
	if len(m.Ports) > 0 {
		out.FilterState = []*matcherv3.FilterStateMatcher{{Key: portKey, Matcher: &matcherv3.FilterStateMatcher_StringMatch{
			StringMatch: anyPort(m.Ports),
		}}}
	}
	for _, c := range m.Cookies {
		out.Cookies = append(out.Cookies, &routev3.CookieMatcher{Name: c.Name, StringMatch: stringMatcher(c)})
	}
	return out, err
}

func methodMatcher(methods []string) *routev3.HeaderMatcher {
	if len(methods) == 1 {
		return headerMatcher(ir.ValueMatch{Name: ":method", Exact: methods[0]})
	}
	quoted := make([]string, len(methods))
	for i, m := range methods {
		quoted[i] = regexp.QuoteMeta(m)
	}
	return headerMatcher(ir.ValueMatch{Name: ":method", Regex: strings.Join(quoted, "|")})
}

func queryMatcher(v ir.ValueMatch) *routev3.QueryParameterMatcher {
	out := &routev3.QueryParameterMatcher{Name: v.Name}
	if m := stringMatcher(v); m != nil {
		out.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_StringMatch{StringMatch: m}
	} else {
		out.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_PresentMatch{PresentMatch: true}
	}
	return out
}

func regex(expr string) *matcherv3.RegexMatcher { return &matcherv3.RegexMatcher{Regex: expr} }

func routeAction(f *ir.Forward, m ir.Match) *routev3.RouteAction {
	out := &routev3.RouteAction{Timeout: seconds(f.Timeout)}
	applyClusters(out, f.Clusters)
	applyRewrite(out, f.Rewrite, m)
	applyHostRewrite(out, f.HostRewrite)
	if f.IdleTimeout > 0 {
		out.IdleTimeout = seconds(f.IdleTimeout)
	}
	out.MaxStreamDuration = streamDuration(f.StreamTimeout, f.GRPCTimeout)
	if f.NoUpgrade {
		out.UpgradeConfigs = []*routev3.RouteAction_UpgradeConfig{
			{UpgradeType: websocket, Enabled: wrapperspb.Bool(false)},
		}
	}
	return out
}

// streamDuration limits grpc-timeout to the stream's limit too: Envoy applies only one of them.
func streamDuration(stream, grpc time.Duration) *routev3.RouteAction_MaxStreamDuration {
	if stream == 0 && grpc == 0 {
		return nil
	}
	out := &routev3.RouteAction_MaxStreamDuration{}
	if stream > 0 {
		out.MaxStreamDuration = seconds(stream)
		grpc = min(grpc, stream)
	}
	if grpc > 0 {
		out.GrpcTimeoutHeaderMax = seconds(grpc)
	}
	return out
}

func applyClusters(out *routev3.RouteAction, clusters []ir.WeightedCluster) {
	for _, c := range clusters {
		if hashes(c.Strategy) && out.HashPolicy == nil {
			out.HashPolicy = []*routev3.RouteAction_HashPolicy{seam.AddressHash()}
		}
	}
	if len(clusters) == 1 && len(clusters[0].Request)+len(clusters[0].Response) == 0 {
		out.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: clusters[0].Name}
		return
	}
	weighted := &routev3.WeightedCluster{}
	for _, c := range clusters {
		one := &routev3.WeightedCluster_ClusterWeight{Name: c.Name, Weight: u32(c.Share)}
		one.RequestHeadersToAdd, one.RequestHeadersToRemove = headerOptions(c.Request)
		one.ResponseHeadersToAdd, one.ResponseHeadersToRemove = headerOptions(c.Response)
		if c.SetCookie != "" {
			one.ResponseHeadersToAdd = append(one.ResponseHeadersToAdd, &corev3.HeaderValueOption{
				Header: &corev3.HeaderValue{Key: "set-cookie", Value: c.SetCookie}, AppendAction: corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD,
			})
		}
		weighted.Clusters = append(weighted.Clusters, one)
	}
	out.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted}
}

// headerOptions translates changes of headers. Envoy removes before it adds.
func headerOptions(changes []ir.HeaderChange) (add []*corev3.HeaderValueOption, remove []string) {
	for _, c := range changes {
		if c.Action == ir.HeaderRemove {
			remove = append(remove, c.Name)
		} else {
			add = append(add, seam.HeaderOption(c))
		}
	}
	return add, remove
}

func applyRewrite(out *routev3.RouteAction, r ir.Rewrite, m ir.Match) {
	if r.Host != "" {
		out.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: r.Host}
	}
	out.PrefixRewrite, out.RegexRewrite = rewritePath(r, m)
}

// rewritePath returns the change of a path: at most one of a prefix, which replaces what the
// route matches, and a regular expression.
func rewritePath(r ir.Rewrite, m ir.Match) (to string, re *matcherv3.RegexMatchAndSubstitute) {
	prefix := strings.TrimRight(m.Path, "/")
	isPrefix := m.PathKind == ir.PathPrefix || m.PathKind == ir.PathSegment
	switch {
	case r.Regex != "":
		return "", &matcherv3.RegexMatchAndSubstitute{Pattern: regex(r.Regex), Substitution: r.Substitution}
	case isPrefix && strings.HasSuffix(r.Prefix, "/") && prefix != "":
		// For /shop to /, Envoy would turn /shop/a into //a.
		return "", &matcherv3.RegexMatchAndSubstitute{
			Pattern:      regex("^" + regexp.QuoteMeta(prefix) + "/*"),
			Substitution: strings.ReplaceAll(r.Prefix, `\`, `\\`),
		}
	case r.Prefix != "" && (m.PathKind == ir.PathPrefix && strings.HasSuffix(m.Path, "/") || isPrefix && prefix == ""):
		// For / to /v2, Envoy would turn /a into /v2a.
		return strings.TrimSuffix(r.Prefix, "/") + "/", nil
	}
	return r.Prefix, nil
}
