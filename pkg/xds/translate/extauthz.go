package translate

import (
	"net/http"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// ExtAuthzFilter is the name of the filter that asks another service whether a request may pass.
// ExtAuthzAllowFilter lets requests pass where that service is away: Envoy knows this of the
// listener only.
const (
	ExtAuthzFilter      = "envoy.filters.http.ext_authz"
	ExtAuthzAllowFilter = ExtAuthzFilter + "/allow"
)

// noCluster is the name of a cluster that never exists.
const noCluster = "none"

// extAuthzFilters ask nobody, so that the first lets nobody in. Without a service Envoy would end with
// the first request, and without allowed headers those of a route would not count.
func extAuthzFilters(ir.Listener) []filterConfig {
	config := func(onError bool) *extauthzv3.ExtAuthz {
		return &extauthzv3.ExtAuthz{
			Services: &extauthzv3.ExtAuthz_HttpService{HttpService: &extauthzv3.HttpService{ServerUri: &corev3.HttpUri{
				Uri: "http://" + noCluster, HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: noCluster}, Timeout: seconds(time.Second),
			}}},
			AllowedHeaders: &matcherv3.ListStringMatcher{Patterns: []*matcherv3.StringMatcher{{
				MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: ".*"}},
			}}},
			StatusOnError:    &typev3.HttpStatus{Code: typev3.StatusCode(http.StatusServiceUnavailable)},
			FailureModeAllow: onError,
		}
	}
	return []filterConfig{{name: ExtAuthzFilter, config: config(false)}, {name: ExtAuthzAllowFilter, config: config(true)}}
}
