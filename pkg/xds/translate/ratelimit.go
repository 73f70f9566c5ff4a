package translate

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	ratelimitconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/ratelimit/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	exprv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/rate_limit_descriptors/expr/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/type/metadata/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

const (
	// RateLimitFilter is the name of the rate-limit filter. For a domain that routes name, a slash and
	// the domain follow.
	RateLimitFilter = "envoy.filters.http.ratelimit"
	// pathExpression is the path without its query, in CEL. The :path header contains both, and a client
	// could evade a limit by changing the query.
	pathExpression = "request.url_path"
	// noDomain is the domain of a filter that asks nobody. A domain of the engine has a slash.
	noDomain = "none"
	// RateLimitCluster is the name of the rate-limit engine's cluster. No upstream can have it.
	RateLimitCluster = "gatehouse/ratelimit"
	// rateLimitTimeout is how long Envoy waits for the engine. With 20 ms, a busy machine allowed
	// requests that were over their limit.
	rateLimitTimeout = 250 * time.Millisecond
)

// rateLimitFilters returns one filter for each domain, since a filter supports only one. The first
// filter that stops a request keeps it from the next. The filter of the proxy's own domain is delivered
// on its own (ECDS), so that no listener changes with it.
func rateLimitFilters(l ir.Listener) (list []seam.Message) {
	if l.RateLimitEngine == nil {
		return nil
	}
	list = append(list, seam.Message{Name: RateLimitFilter, Config: ownRateLimit(nil), Discovered: &ratelimitv3.RateLimit{}})
	for _, domain := range slices.Sorted(maps.Keys(l.DomainLimits)) {
		list = append(list, seam.Message{Name: domainFilter(domain), Config: rateLimit(l.DomainLimits[domain])})
	}
	return list
}

// ownRateLimit is the filter of the proxy's own domain. If the proxy has none, the filter asks nobody.
func ownRateLimit(s *ir.RateLimitService) *ratelimitv3.RateLimit {
	if s != nil {
		return rateLimit(s)
	}
	out := rateLimit(&ir.RateLimitService{Domain: noDomain, Status: http.StatusTooManyRequests})
	out.FilterEnabled = &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{}}
	return out
}

// ClaimLimitFilter is RateLimitFilter for limits by claims and API clients. It comes after all filters
// that identify the client. Its name is not that of a domain.
const ClaimLimitFilter = "envoy.filters.http.ratelimit_claims"

// claimLimitFilters are the filters of rateLimitFilters a second time. They ask the engine only about
// requests that have been allowed so far.
func claimLimitFilters(l ir.Listener) (list []seam.Message) {
	for _, f := range rateLimitFilters(l) {
		f.Name = ClaimLimitFilter + strings.TrimPrefix(f.Name, RateLimitFilter)
		list = append(list, f)
	}
	return list
}

// byIdentity returns the descriptors with a claim, an API client or a consumer, or the others if identity is false.
func byIdentity(limits []ir.RateLimit, identity bool) (list []ir.RateLimit) {
	for _, l := range limits {
		of := []ir.RateLimitKind{ir.RateLimitClaim, ir.RateLimitAPIClient, ir.RateLimitConsumer}
		if slices.ContainsFunc(l, func(e ir.RateLimitEntry) bool { return slices.Contains(of, e.Kind) }) == identity {
			list = append(list, l)
		}
	}
	return list
}

func domainFilter(domain string) string { return RateLimitFilter + "/" + domain }

func rateLimit(s *ir.RateLimitService) *ratelimitv3.RateLimit {
	out := &ratelimitv3.RateLimit{
		Domain: s.Domain, RequestType: "both", Timeout: seconds(rateLimitTimeout), StatPrefix: "gatehouse",
		FailureModeDeny:   s.Deny,
		StatusOnError:     &typev3.HttpStatus{Code: typev3.StatusCode_ServiceUnavailable},
		RateLimitedStatus: &typev3.HttpStatus{Code: typev3.StatusCode(s.Status)}, //nolint:gosec // a status code
		RateLimitService:  rateLimitService(),
	}
	if s.Headers {
		out.EnableXRatelimitHeaders = ratelimitv3.RateLimit_DRAFT_VERSION_03
	}
	return out
}

func rateLimitService() *ratelimitconfigv3.RateLimitServiceConfig {
	return &ratelimitconfigv3.RateLimitServiceConfig{
		TransportApiVersion: corev3.ApiVersion_V3,
		GrpcService: &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: RateLimitCluster},
		}},
	}
}

// rateLimitedReplies answer a request over its limit with a text and, where a header of
// the filter that stopped it has the time, with Retry-After (RFC 9110 section 10.2.3).
func rateLimitedReplies(l ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	if l.RateLimitEngine == nil {
		return nil, nil
	}
	return []*hcmv3.ResponseMapper{{
		Filter: &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ResponseFlagFilter{
			ResponseFlagFilter: &accesslogv3.ResponseFlagFilter{Flags: []string{"RL"}},
		}},
		BodyFormatOverride: seam.PlainText("the limit for this route is reached"),
		HeadersToAdd: []*corev3.HeaderValueOption{{
			Header: &corev3.HeaderValue{Key: "retry-after", Value: "%RESP(X-RATELIMIT-RESET)%"},
		}},
	}}, nil
}

// rateLimitsOfRoute returns the limits by their filter. Only routes have limits, so they override
// nothing.
func rateLimitsOfRoute(r *ir.Route) ([]seam.Message, error) {
	return limitsOfRoute(r, RateLimitFilter, false)
}

// claimLimitsOfRoute returns the limits by claims and API clients.
func claimLimitsOfRoute(r *ir.Route) ([]seam.Message, error) {
	return limitsOfRoute(r, ClaimLimitFilter, true)
}

func limitsOfRoute(r *ir.Route, filter string, identity bool) (list []seam.Message, err error) {
	add := func(name string, limits []ir.RateLimit) {
		if limits = byIdentity(limits, identity); len(limits) == 0 {
			return
		}
		config, failed := rateLimitPerRoute(limits)
		list, err = append(list, seam.Message{Name: name, Config: config}), cmp.Or(err, failed)
	}
	add(filter, r.RateLimits)
	for _, domain := range slices.Sorted(maps.Keys(r.DomainLimits)) {
		add(filter+"/"+domain, r.DomainLimits[domain])
	}
	return list, err
}

func rateLimitPerRoute(limits []ir.RateLimit) (*ratelimitv3.RateLimitPerRoute, error) {
	out := &ratelimitv3.RateLimitPerRoute{}
	for _, l := range limits {
		limit := &routev3.RateLimit{}
		for _, e := range l {
			action, err := rateLimitAction(e)
			if err != nil {
				return nil, err
			}
			limit.Actions = append(limit.Actions, action)
		}
		out.RateLimits = append(out.RateLimits, limit)
	}
	return out, nil
}

func rateLimitAction(e ir.RateLimitEntry) (*routev3.RateLimit_Action, error) {
	switch e.Kind {
	case ir.RateLimitMaskedAddress:
		return &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_MaskedRemoteAddress_{
			MaskedRemoteAddress: &routev3.RateLimit_Action_MaskedRemoteAddress{V4PrefixMaskLen: u32(e.V4Mask), V6PrefixMaskLen: u32(e.V6Mask)},
		}}, nil
	case ir.RateLimitGeneric:
		return &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_GenericKey_{
			GenericKey: &routev3.RateLimit_Action_GenericKey{DescriptorKey: e.Key, DescriptorValue: e.Value},
		}}, nil
	case ir.RateLimitHeader:
		return &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_RequestHeaders_{
			RequestHeaders: &routev3.RateLimit_Action_RequestHeaders{HeaderName: e.Name, DescriptorKey: e.Key, SkipIfAbsent: e.SkipIfAbsent},
		}}, nil
	case ir.RateLimitClaim:
		return metadataAction(e.Key, seam.TokenFilter, append([]string{seam.Claims}, strings.Split(e.Name, ".")...)...), nil
	case ir.RateLimitAPIClient:
		return metadataAction(e.Key, seam.KeyFilter, seam.User), nil
	case ir.RateLimitConsumer:
		return metadataAction(e.Key, seam.Consumer, seam.ConsumerName), nil
	case ir.RateLimitQuery:
		return &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_QueryParameters_{
			QueryParameters: &routev3.RateLimit_Action_QueryParameters{QueryParameterName: e.Name, DescriptorKey: e.Key, SkipIfAbsent: e.SkipIfAbsent},
		}}, nil
	case ir.RateLimitHeaderMatch:
		match := &routev3.RateLimit_Action_HeaderValueMatch{DescriptorKey: e.Key, DescriptorValue: e.Value}
		if e.NoMatch {
			match.ExpectMatch = wrapperspb.Bool(false)
		}
		for _, h := range e.Headers {
			match.Headers = append(match.Headers, headerMatcher(h))
		}
		return &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_HeaderValueMatch_{HeaderValueMatch: match}}, nil
	case ir.RateLimitPath:
		config, err := pack(&exprv3.Descriptor{DescriptorKey: e.Key, ExprSpecifier: &exprv3.Descriptor_Text{Text: pathExpression}})
		return &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_Extension{Extension: &corev3.TypedExtensionConfig{
			Name: "envoy.rate_limit_descriptors.expr", TypedConfig: config,
		}}}, err
	case ir.RateLimitAddress:
	}
	return &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_RemoteAddress_{
		RemoteAddress: &routev3.RateLimit_Action_RemoteAddress{},
	}}, nil
}

// metadataAction sends a text that a filter derived from the request.
func metadataAction(key, filter string, path ...string) *routev3.RateLimit_Action {
	metadata := &metadatav3.MetadataKey{Key: filter}
	for _, step := range path {
		metadata.Path = append(metadata.Path, &metadatav3.MetadataKey_PathSegment{Segment: &metadatav3.MetadataKey_PathSegment_Key{Key: step}})
	}
	return &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_Metadata{
		Metadata: &routev3.RateLimit_Action_MetaData{DescriptorKey: key, MetadataKey: metadata},
	}}
}

// rateLimitResources returns the cluster of the engine, and the filters of the proxy's own domain.
func rateLimitResources(l ir.Listener) (seam.Resources, error) {
	if l.RateLimitEngine == nil {
		return seam.Resources{}, nil
	}
	all, err := rateLimitEngine(l.RateLimitEngine)
	if err != nil {
		return seam.Resources{}, err
	}
	packed, err := pack(ownRateLimit(l.RateLimit))
	for _, name := range []string{RateLimitFilter, ClaimLimitFilter} {
		all.Extensions = append(all.Extensions, &corev3.TypedExtensionConfig{Name: name, TypedConfig: packed})
	}
	return all, err
}

// rateLimitEngine is the cluster of the engine, or of several engines behind one name. Envoy uses all
// addresses of the name.
func rateLimitEngine(e *ir.RateLimitEngine) (seam.Resources, error) {
	if e.Address == "" {
		return rateLimitCluster(&corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: e.Socket}}}, false)
	}
	host, text, err := net.SplitHostPort(e.Address)
	if err != nil {
		return seam.Resources{}, fmt.Errorf("reading the address of the rate-limit engine: %w", err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return seam.Resources{}, fmt.Errorf("reading the port of the rate-limit engine: %w", err)
	}
	return rateLimitCluster(socketAddress(host, int(port)), net.ParseIP(host) == nil)
}

func rateLimitCluster(address *corev3.Address, dns bool) (seam.Resources, error) {
	options, err := httpOptions(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: &corev3.Http2ProtocolOptions{ConnectionKeepalive: &corev3.KeepaliveSettings{
						Interval: seconds(5 * time.Second), Timeout: seconds(2 * time.Second),
					}},
				},
			},
		},
	})
	if err != nil {
		return seam.Resources{}, err
	}
	c := &clusterv3.Cluster{
		Name:                          RateLimitCluster,
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:                seconds(rateLimitTimeout),
		TypedExtensionProtocolOptions: options,
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: RateLimitCluster,
			Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address}},
			}}}},
		},
	}
	if dns {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
		c.DnsLookupFamily = clusterv3.Cluster_V4_PREFERRED
	}
	return seam.Resources{Clusters: []*clusterv3.Cluster{c}}, nil
}
