package translate

import (
	"errors"
	"net/http"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matchingv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/matching/v3"
	actionv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/matcher/action/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// HostFilter is the name of the filter that refuses a request without one clear host, or with an ambiguous path.
const HostFilter = "envoy.filters.http.rbac/host"

// oneHost matches a host name or an address, with or without a port. At this point, Envoy has removed a trailing
// dot and joined several Host headers with commas, and nothing else. Any other text could match a service for more
// hosts than it names, and a backend might read the name of another service in it.
const oneHost = `([0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?`

// invalidHostMatcher matches what hostFilter refuses.
func invalidHostMatcher() *routev3.HeaderMatcher {
	return headerMatcher(ir.ValueMatch{Name: ":authority", Regex: oneHost, Invert: true})
}

// hostFilter refuses a request that does not have exactly one host or, over TLS, not the host that its connection
// was made for. It is on the listener, so that it costs nothing per service.
func hostFilter(l ir.Listener) []seam.Message {
	rules := hostRules(l)
	if l.TLS == nil {
		if quick, err := unlessPlain(rules); err == nil {
			return []seam.Message{{Name: HostFilter, Config: quick}}
		}
	}
	return []seam.Message{{Name: HostFilter, Config: rules}}
}

// unlessPlain skips the rules for a request with one clear host and without a semicolon, which they let pass. That
// costs half as much as the rules (ADR 0105).
func unlessPlain(rules *rbacv3.RBAC) (*matchingv3.ExtensionWithMatcher, error) {
	var m matchers
	header := func(name string) *xdscorev3.TypedExtensionConfig {
		return m.extension("envoy.matching.inputs.request_headers", &matcherv3.HttpRequestHeaderMatchInput{HeaderName: name})
	}
	plain := []*xdsmatcherv3.Matcher_MatcherList_Predicate{
		matches(header(":authority"), &xdsmatcherv3.StringMatcher{MatchPattern: expression(oneHost)}),
		{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_NotMatcher{
			NotMatcher: matches(header(":path"), &xdsmatcherv3.StringMatcher{
				MatchPattern: &xdsmatcherv3.StringMatcher_Contains{Contains: ";"},
			}),
		}},
	}
	skip := &xdsmatcherv3.Matcher_OnMatch_Action{Action: m.extension("skip", &actionv3.SkipFilter{})}
	both := &xdsmatcherv3.Matcher_MatcherList_Predicate_AndMatcher{
		AndMatcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_PredicateList{Predicate: plain},
	}
	packed, err := pack(rules)
	return &matchingv3.ExtensionWithMatcher{
		ExtensionConfig: &corev3.TypedExtensionConfig{Name: "envoy.filters.http.rbac", TypedConfig: packed},
		XdsMatcher: first(nil, when(
			&xdsmatcherv3.Matcher_MatcherList_Predicate{MatchType: both}, &xdsmatcherv3.Matcher_OnMatch{OnMatch: skip},
		)),
	}, errors.Join(err, m.err)
}

// invalidHost names the policy that refuses a request without one clear host.
const invalidHost = "host"

func hostRules(l ir.Listener) *rbacv3.RBAC {
	policies := map[string]*rbacconfigv3.Policy{invalidHost: {
		Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
		Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_Header{Header: invalidHostMatcher()}}},
	}}
	policies[dotSegment] = dotSegmentPolicy()
	if l.TLS != nil {
		policies[misdirected] = misdirectedPolicy()
	}
	return &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{Action: rbacconfigv3.RBAC_DENY, Policies: policies}}
}

// dotSegment names the policy that refuses dot segments with parameters. Envoy resolves /..;x/ before it decodes
// escapes, so /..;x/ remains of /%2e%2e;x/. Backends that drop parameters (Tomcat, Jetty) would resolve it.
const dotSegment = "dot_segment"

func dotSegmentPolicy() *rbacconfigv3.Policy {
	policy := &rbacconfigv3.Policy{Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}}}
	for _, segment := range []string{"/.;", "/..;"} {
		policy.Principals = append(policy.Principals, &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_UrlPath{UrlPath: &matcherv3.PathMatcher{
			Rule: &matcherv3.PathMatcher_Path{Path: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Contains{Contains: segment}}},
		}}})
	}
	return policy
}

// pathReplies turn the refusals into a 400, since the request is wrong.
func pathReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	m, err := refusalReply(dotSegment, http.StatusBadRequest, "the path has an escaped dot segment with parameters, such as %2e%2e;\n")
	return []*hcmv3.ResponseMapper{m}, err
}

// invalidHostReply turns the filter's 403 into a 400: the request is wrong, not its sender (RFC 9112 section 3.2).
func invalidHostReply(ir.Listener) []*hcmv3.ResponseMapper {
	return []*hcmv3.ResponseMapper{{
		Filter: &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_AndFilter{
			AndFilter: &accesslogv3.AndFilter{Filters: []*accesslogv3.AccessLogFilter{
				{FilterSpecifier: &accesslogv3.AccessLogFilter_StatusCodeFilter{
					StatusCodeFilter: &accesslogv3.StatusCodeFilter{Comparison: &accesslogv3.ComparisonFilter{
						Op: accesslogv3.ComparisonFilter_EQ,
						Value: &corev3.RuntimeUInt32{
							DefaultValue: http.StatusForbidden, RuntimeKey: "gatehouse.refused_host_status",
						},
					}},
				}},
				{FilterSpecifier: &accesslogv3.AccessLogFilter_HeaderFilter{
					HeaderFilter: &accesslogv3.HeaderFilter{Header: invalidHostMatcher()},
				}},
			}},
		}},
		StatusCode: u32(http.StatusBadRequest),
		Body:       seam.Inline("the Host must be one host name or address, optionally with a port\n"),
	}}
}

// hostReplies turn the refusals of hostFilter into responses.
func hostReplies(l ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	mappers := invalidHostReply(l)
	if l.TLS == nil {
		return mappers, nil
	}
	m, err := refusalReply(misdirected, http.StatusMisdirectedRequest, "this connection was made for another host; open one for this host\n")
	return append(mappers, m), err
}

// cleanRequests removes headers that a client must not set, before Envoy adds its own values. They are all of
// Envoy's own headers, and those about how the request came here, which only a trusted proxy in front knows. Envoy
// handles X-Forwarded-For and X-Forwarded-Proto itself.
func cleanRequests(l ir.Listener, m *hcmv3.HttpConnectionManager) error {
	names := []*matcherv3.StringMatcher{{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "x-envoy-"}}}
	if l.TrustedHops == 0 {
		// Each matcher costs a scan of all headers. One expression costs less than names, and less with ^x-, without
		// which Envoy runs it for each header.
		names = []*matcherv3.StringMatcher{
			{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "forwarded"}},
			{MatchPattern: &matcherv3.StringMatcher_SafeRegex{
				SafeRegex: regex(`^x-(envoy-.*|forwarded-(host|port|prefix|scheme|server|ssl)|real-ip)`),
			}},
		}
	}
	var mutations []*mutationv3.HeaderMutation
	for _, name := range names {
		// RemoveOnMatch and not Remove: to look a name up, Envoy builds a hash map of all headers, which costs more
		// than a scan of them.
		mutations = append(mutations, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_RemoveOnMatch_{
			RemoveOnMatch: &mutationv3.HeaderMutation_RemoveOnMatch{KeyMatcher: name},
		}})
	}
	mutations = append(mutations, traceHeaders(l.Tracing)...)
	config, err := pack(&earlyv3.HeaderMutation{Mutations: mutations})
	m.EarlyHeaderMutationExtensions = []*corev3.TypedExtensionConfig{
		{Name: "envoy.http.early_header_mutation.header_mutation", TypedConfig: config},
	}
	return err
}

// unhealthy is the header with which an upstream reports that it is unhealthy. An Envoy in front would take it for
// a report about the gateway.
const unhealthy = "x-envoy-immediate-health-check-fail"

func escapedSlashes(action string) hcmv3.HttpConnectionManager_PathWithEscapedSlashesAction {
	switch action {
	case "keep":
		return hcmv3.HttpConnectionManager_KEEP_UNCHANGED
	case "reject":
		return hcmv3.HttpConnectionManager_REJECT_REQUEST
	}
	return hcmv3.HttpConnectionManager_UNESCAPE_AND_REDIRECT
}

func underscoreHeaders(action string) corev3.HttpProtocolOptions_HeadersWithUnderscoresAction {
	switch action {
	case "allow":
		return corev3.HttpProtocolOptions_ALLOW
	case "drop":
		return corev3.HttpProtocolOptions_DROP_HEADER
	}
	return corev3.HttpProtocolOptions_REJECT_REQUEST
}
