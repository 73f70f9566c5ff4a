package translate

import (
	"maps"
	"net/http"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// This file sets what Envoy logs about logins. The response details contain the query of the request and the answer
// of the identity provider, which may include tokens. Only what is certainly neither is logged.

// LoginFailed is the value of the field "gatehouse" in the line of a login that failed.
const LoginFailed = "login_failed"

// detailWords are the first words of the details: Envoy's own text, which ends in a colon before any other.
const detailWords = `%CEL(re.extract(` + details + `, r"^([A-Za-z_ ,.'{}\[\]]+)", r"\1"))%`

// metadata is the namespace of the metadata of virtual hosts and routes.
const metadata = "gatehouse"

// hostMetadata contains a host's login, or that it requires tokens, and its answer during maintenance.
func hostMetadata(h *ir.Host) *corev3.Metadata {
	said := tokenMetadata(h.AllTokens())
	if h.Login != nil {
		said = saying(map[string]string{"login": h.Login.Name})
	}
	if h.Maintenance == nil {
		return said
	}
	if said == nil {
		said = saying(nil)
	}
	said.FilterMetadata[metadata].Fields[maintenance] = maintenanceAnswer(h.Maintenance)
	return said
}

// tokenMetadata states that a host or route requires tokens, and where they are. The filter that knows this is
// delivered separately.
func tokenMetadata(t *ir.Tokens) *corev3.Metadata {
	if t == nil {
		return nil
	}
	said := map[string]string{"tokens": t.Check.Name}
	for key, value := range map[string]string{"header": t.Check.Header, "prefix": t.Check.Prefix, "cookie": t.Check.Cookie, "query": t.Check.Query} {
		if value != "" {
			said[key] = value
		}
	}
	if t.Check.Optional {
		said["optional"] = "true"
	}
	return saying(said)
}

func saying(texts map[string]string) *corev3.Metadata {
	fields := map[string]*structpb.Value{}
	for key, text := range texts {
		fields[key] = structpb.NewStringValue(text)
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{metadata: {Fields: fields}}}
}

// asksForTokens is the condition that the route of a request, or its host, requires tokens.
func asksForTokens() string {
	says := func(where string) string {
		return "'" + metadata + "' in " + where + " && 'tokens' in " + where + "['" + metadata + "']"
	}
	return "(" + says("xds.route_metadata.filter_metadata") + " || " + says("xds.virtual_host_metadata.filter_metadata") + ")"
}

// loginFailures writes a JSON line to Envoy's stderr for each login that fails and for each invalid id_token, with
// the reason and the service. Requests that only lack a session are not logged there.
func loginFailures() (*accesslogv3.AccessLog, error) {
	failed, err := celFilter(`response.code == 401 ? !` + asksForTokens() + ` && !(` + ofOthers() + ` || ` + notLoggedIn() + `) : ` +
		unverified() + ` && !` + asksForTokens() + ` || ` + notAllowed)
	if err != nil {
		return nil, err
	}
	config, err := pack(&streamv3.StderrAccessLog{
		AccessLogFormat: &streamv3.StderrAccessLog_LogFormat{LogFormat: jsonFormat(map[string]string{
			"gatehouse":  LoginFailed,
			"service":    "%CEL(xds.virtual_host_name)%",
			"login":      "%CEL(xds.virtual_host_metadata.filter_metadata['" + metadata + "']['login'])%",
			"what":       detailWords,
			"status":     `%CEL(re.extract(` + details + `, r"response code: ([0-9]+)", r"\1"))%`,
			"error":      `%CEL(re.extract(` + details + `, r'[?&"]error(?:=|" *: *")([a-z_]+)', r'\1'))%`,
			"request_id": requestID,
		})},
	})
	return &accesslogv3.AccessLog{
		Name: "envoy.access_loggers.stderr", ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: config},
		Filter: allOf(statusAtLeast(http.StatusUnauthorized), statusAtMost(http.StatusForbidden), failed),
	}, err
}

// KeyUnknown is the value of the field "gatehouse" in the line of a token whose key is not known.
const KeyUnknown = "key_unknown"

// unknownKeys writes a JSON line to Envoy's stderr for each token with a key or an algorithm that its issuer's last
// key set does not have. The control plane then fetches the key set again.
func unknownKeys() (*accesslogv3.AccessLog, error) {
	unknown, err := celFilter(details + ".startsWith('jwt_authn_access_denied{Jwks_doesn') && " + asksForTokens())
	if err != nil {
		return nil, err
	}
	config, err := pack(&streamv3.StderrAccessLog{
		AccessLogFormat: &streamv3.StderrAccessLog_LogFormat{LogFormat: jsonFormat(map[string]string{
			"gatehouse": KeyUnknown,
			"route":     "%CEL(xds.route_metadata.filter_metadata['" + metadata + "']['tokens'])%",
			"host":      "%CEL(xds.virtual_host_metadata.filter_metadata['" + metadata + "']['tokens'])%",
		})},
	})
	return &accesslogv3.AccessLog{
		Name: "envoy.access_loggers.stderr", ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: config},
		Filter: allOf(statusAtLeast(http.StatusUnauthorized), statusFilter(accesslogv3.ComparisonFilter_LE, http.StatusUnauthorized), unknown),
	}, err
}

// accessLogs write a JSON line to Envoy's stdout for each request. The line of a request that may be part of a login
// does not have the identity provider's answer.
func accessLogs(formats map[string]string) ([]*accesslogv3.AccessLog, error) {
	ofLogin := maps.Clone(formats)
	ofLogin["response_code_details"] = detailWords
	// This uses no CEL, because it runs for every request.
	is401 := allOf(statusAtLeast(http.StatusUnauthorized), statusFilter(accesslogv3.ComparisonFilter_LE, http.StatusUnauthorized))
	no401 := anyOf(statusFilter(accesslogv3.ComparisonFilter_LE, http.StatusBadRequest), statusAtLeast(http.StatusPaymentRequired))
	all, err := stdoutLog(formats, allOf(no401, mentionsState(true)))
	if err != nil {
		return nil, err
	}
	some, err := stdoutLog(ofLogin, anyOf(is401, mentionsState(false)))
	return []*accesslogv3.AccessLog{all, some}, err
}

func stdoutLog(formats map[string]string, filter *accesslogv3.AccessLogFilter) (*accesslogv3.AccessLog, error) {
	config, err := pack(&streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: jsonFormat(formats)}})
	return &accesslogv3.AccessLog{
		Name: "envoy.access_loggers.stdout", Filter: filter, ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: config},
	}, err
}

func jsonFormat(formats map[string]string) *corev3.SubstitutionFormatString {
	fields := map[string]*structpb.Value{}
	for name, format := range formats {
		fields[name] = structpb.NewStringValue(format)
	}
	// A field of several parts leaves out those that are missing.
	return &corev3.SubstitutionFormatString{OmitEmptyValues: true, Format: &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: &structpb.Struct{Fields: fields}}}
}

// mentionsState matches requests with which an identity provider sends browsers back (RFC 6749 section 4.1.2). If
// not is true, it matches all others.
func mentionsState(not bool) *accesslogv3.AccessLogFilter {
	return matchesHeader(&routev3.HeaderMatcher{Name: ":path", InvertMatch: not, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
		StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Contains{Contains: "state="}},
	}})
}

func statusAtLeast(status uint32) *accesslogv3.AccessLogFilter {
	return statusFilter(accesslogv3.ComparisonFilter_GE, status)
}

func anyOf(filters ...*accesslogv3.AccessLogFilter) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_OrFilter{OrFilter: &accesslogv3.OrFilter{Filters: filters}}}
}
