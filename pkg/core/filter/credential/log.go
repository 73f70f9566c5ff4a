package credential

import (
	"net/http"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// This file sets what Envoy logs about logins. The response details contain the query of the request and the answer
// of the identity provider, which may include tokens. Only what is certainly neither is logged.

// LoginFailed is the value of the field "gatehouse" in the line of a login that failed.
const LoginFailed = "login_failed"

// sayOfHost puts a host's login, or that it requires tokens, into its metadata.
func sayOfHost(h *ir.Host, out *routev3.VirtualHost) error {
	d := ofHost(h)
	said := saidOfTokens(d.allTokens())
	if d.login != nil {
		said = map[string]string{"login": d.login.Name}
	}
	out.Metadata = sayForScript(saying(out.GetMetadata(), said), d.allBasicAuth(), h.ClientCA != "")
	return nil
}

func sayOfRoute(r *ir.Route, out *routev3.Route) error {
	d := ofRoute(r)
	out.Metadata = sayForScript(saying(out.GetMetadata(), saidOfTokens(d.allTokens())), d.allBasicAuth(), false)
	return nil
}

// saidOfTokens states that a host or route requires tokens, and where they are. The filter that knows this is
// delivered separately.
func saidOfTokens(t *Tokens) map[string]string {
	if t == nil {
		return nil
	}
	said := map[string]string{"tokens": t.Check.Name}
	for key, value := range map[string]string{
		"header": t.Check.Header, "prefix": t.Check.Prefix, "cookie": t.Check.Cookie, "query": t.Check.Query,
	} {
		if value != "" {
			said[key] = value
		}
	}
	if t.Check.Optional {
		said["optional"] = "true"
	}
	return said
}

func saying(m *corev3.Metadata, texts map[string]string) *corev3.Metadata {
	for name, text := range texts {
		m = seam.Saying(m, name, structpb.NewStringValue(text))
	}
	return m
}

// asksForTokens is the condition that the route of a request, or its host, requires tokens.
func asksForTokens() string {
	says := func(where string) string {
		return "'" + seam.Metadata + "' in " + where + " && 'tokens' in " + where + "['" + seam.Metadata + "']"
	}
	const ofRoute, ofHost = "xds.route_metadata.filter_metadata", "xds.virtual_host_metadata.filter_metadata"
	return "(" + says(ofRoute) + " || " + says(ofHost) + ")"
}

// loginFailures writes a JSON line to Envoy's stderr for each login that fails and for each invalid id_token, with
// the reason and the service. Requests that only lack a session are not logged there.
func loginFailures() (*accesslogv3.AccessLog, error) {
	failed, err := seam.CEL(`response.code == 401 ? !` + asksForTokens() + ` && !(` + ofOthers() + ` || ` + notLoggedIn() +
		`) : ` + unverified() + ` && !` + asksForTokens() + ` || ` + notAllowed)
	if err != nil {
		return nil, err
	}
	config, err := seam.Pack(&streamv3.StderrAccessLog{
		AccessLogFormat: &streamv3.StderrAccessLog_LogFormat{LogFormat: seam.JSONFormat(map[string]string{
			"gatehouse":  LoginFailed,
			"service":    "%CEL(xds.virtual_host_name)%",
			"login":      "%CEL(xds.virtual_host_metadata.filter_metadata['" + seam.Metadata + "']['login'])%",
			"what":       seam.DetailWords,
			"status":     `%CEL(re.extract(` + seam.Details + `, r"response code: ([0-9]+)", r"\1"))%`,
			"error":      `%CEL(re.extract(` + seam.Details + `, r'[?&"]error(?:=|" *: *")([a-z_]+)', r'\1'))%`,
			"request_id": seam.RequestID,
		})},
	})
	return &accesslogv3.AccessLog{
		Name: "envoy.access_loggers.stderr", ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: config},
		Filter: seam.AllOf(seam.StatusAtLeast(http.StatusUnauthorized), seam.StatusAtMost(http.StatusForbidden), failed),
	}, err
}

// KeyUnknown is the value of the field "gatehouse" in the line of a token whose key is not known.
const KeyUnknown = "key_unknown"

// unknownKeys writes a JSON line to Envoy's stderr for each token with a key or an algorithm that its issuer's last
// key set does not have. The control plane then fetches the key set again.
func unknownKeys() (*accesslogv3.AccessLog, error) {
	unknown, err := seam.CEL(seam.Details + ".startsWith('jwt_authn_access_denied{Jwks_doesn') && " + asksForTokens())
	if err != nil {
		return nil, err
	}
	config, err := seam.Pack(&streamv3.StderrAccessLog{
		AccessLogFormat: &streamv3.StderrAccessLog_LogFormat{LogFormat: seam.JSONFormat(map[string]string{
			"gatehouse": KeyUnknown,
			"route":     "%CEL(xds.route_metadata.filter_metadata['" + seam.Metadata + "']['tokens'])%",
			"host":      "%CEL(xds.virtual_host_metadata.filter_metadata['" + seam.Metadata + "']['tokens'])%",
		})},
	})
	return &accesslogv3.AccessLog{
		Name: "envoy.access_loggers.stderr", ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: config},
		Filter: seam.AllOf(seam.StatusAtLeast(http.StatusUnauthorized), seam.StatusAtMost(http.StatusUnauthorized), unknown),
	}, err
}

// clientField is the name of the API key or user that a filter has accepted: at most one of the filters finds one.
func clientField() map[string]string {
	var found []seam.Command
	for _, filter := range []string{seam.KeyFilter, AnyKeyFilter, basicAuthFilter, anyBasicAuthFilter} {
		found = append(found, seam.Command{Name: "DYNAMIC_METADATA", Parameter: filter + ":" + seam.User})
	}
	return map[string]string{"client": seam.FirstOf(256, found...)}
}

// subjectField is who a token was issued for.
func subjectField() map[string]string {
	return map[string]string{"subject": seam.ClaimFormat("sub")}
}
