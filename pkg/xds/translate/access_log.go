package translate

import (
	"maps"
	"net/http"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// accessLogs write a JSON line to Envoy's stdout for each request. The line of a request that may be part of a login
// does not have the identity provider's answer.
func accessLogs(l ir.Listener) ([]*accesslogv3.AccessLog, error) {
	formats := requestFormats(l.TLS != nil)
	if l.Lean {
		lean, err := stdoutLog(leanFormats(formats), nil)
		return []*accesslogv3.AccessLog{lean}, err
	}
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

// leanFormats are the fields of a line in the lean profile: without them, nobody finds out what happened. None may have
// the identity provider's answer.
func leanFormats(formats map[string]string) map[string]string {
	lean := map[string]string{}
	for _, name := range []string{
		"start_time", "method", "authority", "path", "response_code", "response_flags", "duration_ms", "request_id",
		"upstream_host", "downstream_remote_address",
	} {
		lean[name] = formats[name]
	}
	return lean
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

// requestFormats are the fields of a line of the access log. What a client chooses, or an ext_proc server (the details),
// is cut, and the path has no query, where tokens and other secrets may be. This uses CEL only where no other operator
// can do it, because it runs for every request.
func requestFormats(tls bool) map[string]string {
	formats := map[string]string{
		"start_time":                       "%START_TIME%",
		"method":                           "%REQ(:METHOD):32%",
		"path":                             "%PATH(NQ):1024%",
		"protocol":                         "%PROTOCOL%",
		"authority":                        "%REQ(:AUTHORITY):256%",
		"user_agent":                       "%REQ(USER-AGENT):256%",
		"request_id":                       "%REQ(X-REQUEST-ID):64%",
		"response_code":                    "%RESPONSE_CODE%",
		"response_code_details":            "%CEL(" + seam.Details + "):256%",
		"response_flags":                   "%RESPONSE_FLAGS%",
		"bytes_received":                   "%BYTES_RECEIVED%",
		"bytes_sent":                       "%BYTES_SENT%",
		"duration_ms":                      "%DURATION%",
		"upstream_duration_ms":             "%COMMON_DURATION(US_TX_BEG:US_RX_BEG:ms)%",
		"service":                          "%CEL(xds.virtual_host_name)%",
		"route":                            "%ROUTE_NAME%",
		"upstream_cluster":                 "%UPSTREAM_CLUSTER_RAW%",
		"upstream_host":                    "%UPSTREAM_HOST%",
		"upstream_transport_failure":       "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
		"downstream_remote_address":        "%DOWNSTREAM_REMOTE_ADDRESS%",
		"downstream_direct_remote_address": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%",
	}
	for _, f := range rows {
		if f.LogFields != nil {
			maps.Copy(formats, f.LogFields())
		}
	}
	if tls {
		formats["tls_version"] = "%DOWNSTREAM_TLS_VERSION%"
		formats["sni"] = "%REQUESTED_SERVER_NAME%"
		formats["downstream_peer_subject"] = "%CEL(connection.subject_peer_certificate):256%"
	}
	return formats
}
