package translate

import (
	"maps"
	"net/http"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// accessLogs write a JSON line to Envoy's stdout for each request. The line of a request that may be part of a login
// does not have the identity provider's answer.
func accessLogs(formats map[string]string) ([]*accesslogv3.AccessLog, error) {
	ofLogin := maps.Clone(formats)
	ofLogin["response_code_details"] = seam.DetailWords
	// This uses no CEL, because it runs for every request.
	is401 := seam.AllOf(seam.StatusAtLeast(http.StatusUnauthorized), seam.StatusAtMost(http.StatusUnauthorized))
	no401 := anyOf(seam.StatusAtMost(http.StatusBadRequest), seam.StatusAtLeast(http.StatusPaymentRequired))
	all, err := stdoutLog(formats, seam.AllOf(no401, mentionsState(true)))
	if err != nil {
		return nil, err
	}
	some, err := stdoutLog(ofLogin, anyOf(is401, mentionsState(false)))
	return []*accesslogv3.AccessLog{all, some}, err
}

func stdoutLog(formats map[string]string, filter *accesslogv3.AccessLogFilter) (*accesslogv3.AccessLog, error) {
	config, err := pack(&streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{
		LogFormat: seam.JSONFormat(formats),
	}})
	return &accesslogv3.AccessLog{
		Name: "envoy.access_loggers.stdout", Filter: filter,
		ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: config},
	}, err
}

// mentionsState matches requests with which an identity provider sends browsers back (RFC 6749 section 4.1.2). If
// not is true, it matches all others.
func mentionsState(not bool) *accesslogv3.AccessLogFilter {
	state := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Contains{Contains: "state="}}
	return seam.MatchesHeader(&routev3.HeaderMatcher{
		Name: ":path", InvertMatch: not, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: state},
	})
}

func anyOf(filters ...*accesslogv3.AccessLogFilter) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_OrFilter{
		OrFilter: &accesslogv3.OrFilter{Filters: filters},
	}}
}
