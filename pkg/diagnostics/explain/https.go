package explain

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	celv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

const (
	// anybodyFilter closes hosts that verify clients on connections whose client was not verified.
	// verifiedFilter, followed by a slash and the secret of the authorities, closes all other hosts
	// on connections whose client was verified.
	anybodyFilter  = "envoy.filters.http.rbac/anybody"
	verifiedFilter = "envoy.filters.http.rbac/verified"
	// hstsFilter tells browsers to use only HTTPS.
	hstsFilter = "envoy.filters.http.header_mutation/hsts"
)

// These are the policies by which filters refuse a request.
const (
	misdirectedPolicy = "misdirected"
	closedPolicy      = "client_certificate_required"
)

func findFilter(l *hcmv3.HttpConnectionManager, name string) *hcmv3.HttpFilter {
	at := slices.IndexFunc(l.GetHttpFilters(), func(f *hcmv3.HttpFilter) bool { return f.GetName() == name })
	if at < 0 {
		return nil
	}
	return l.GetHttpFilters()[at]
}

// isMisdirected reports whether the Host is not the one that the connection was made for.
func (s subject) isMisdirected(l *hcmv3.HttpConnectionManager) (bool, error) {
	rules, err := hostRules(l)
	condition := rules.GetPolicies()[misdirectedPolicy].GetCondition()
	if err != nil || condition == nil {
		return false, err
	}
	value, err := evaluate(condition, map[string]string{
		"request.host": s.headers.get(authority), "connection.requested_server_name": s.serverName,
	})
	if err != nil {
		return false, fmt.Errorf("explaining filter %q: %w", hostFilter, err)
	}
	return value == true, nil
}

func (a *Answer) endMisdirected(s subject, l *hcmv3.HttpConnectionManager) error {
	made := fmt.Sprintf("for %q", s.serverName)
	if s.serverName == "" {
		made = "for no host name"
	}
	return a.endRefused(l, misdirectedPolicy, Misdirected, fmt.Sprintf(
		"the connection was made %s, so a request for the Host %q gets 421: a client makes another connection for that host", made, a.Request.Host))
}

// findClosing returns the filter that closes a service, or a request without a service, on this
// connection; nil if there is none.
func findClosing(l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) *hcmv3.HttpFilter {
	at := slices.IndexFunc(l.GetHttpFilters(), func(f *hcmv3.HttpFilter) bool {
		return (f.GetName() == anybodyFilter || strings.HasPrefix(f.GetName(), verifiedFilter+"/")) && !seam.IsOff(f, vh, r)
	})
	if at < 0 {
		return nil
	}
	return l.GetHttpFilters()[at]
}

// endClosed refuses a request on a connection that is not for its service.
func (a *Answer) endClosed(s subject, l *hcmv3.HttpConnectionManager, by *hcmv3.HttpFilter) error {
	host := bareHost(a.Request.Host)
	message := fmt.Sprintf("service %s verifies clients (its field Client_validation_cacertificate), and the client has shown no certificate: request https://%s", a.Service, host)
	switch authorities, verified := strings.CutPrefix(by.GetName(), verifiedFilter+"/"); {
	case verified:
		message = fmt.Sprintf("the authorities of secret %s verified the client of this connection, and it serves only services with these authorities, unlike host %q", authorities, host)
	case s.secure:
		message = fmt.Sprintf("service %s verifies clients (its field Client_validation_cacertificate), and this connection did not request a certificate: "+
			"the client must send the host name of the service in the handshake too", a.Service)
	}
	return a.endRefused(l, closedPolicy, CertificateRequired, message)
}

// endRefused ends with the listener's response to the refusal of a policy.
func (a *Answer) endRefused(l *hcmv3.HttpConnectionManager, policy, code, message string) error {
	return a.endReplied(l, seam.Denied(policy), reply{http.StatusForbidden, seam.DeniedBody}, code, message)
}

// reply is a filter's own response.
type reply struct {
	status int
	body   string
}

// endReplied ends with a filter's own response, or with the response that the listener has for its
// details.
func (a *Answer) endReplied(l *hcmv3.HttpConnectionManager, details string, r reply, code, message string) error {
	for _, m := range l.GetLocalReplyConfig().GetMappers() {
		filters := m.GetFilter().GetAndFilter().GetFilters() // the last one is the most expensive
		if len(filters) == 0 {
			filters = []*accesslogv3.AccessLogFilter{m.GetFilter()}
		}
		packed := filters[len(filters)-1].GetExtensionFilter().GetTypedConfig()
		if packed == nil {
			continue
		}
		var on celv3.ExpressionFilter
		if err := packed.UnmarshalTo(&on); err != nil {
			return fmt.Errorf("decoding the answers of the listener: %w", err)
		}
		if on.GetExpression() == "response.code_details == '"+details+"'" {
			r.body = m.GetBody().GetInlineString()
			if status := m.GetStatusCode(); status != nil {
				r.status = int(status.GetValue())
			}
			break // what follows is for other clients than those that get text
		}
	}
	a.Body = r.body
	a.endWith(code, r.status, "refused", message)
	return nil
}

// isForPlain reports whether a route is one of those that come before a service's own and match
// plain HTTP.
func isForPlain(r *routev3.Route) bool {
	return slices.ContainsFunc(r.GetMatch().GetHeaders(), func(m *routev3.HeaderMatcher) bool {
		return m.GetName() == ":scheme" && m.GetStringMatch().GetExact() == "http"
	})
}

// describeHSTS describes what browsers are told.
func (f *Filter) describeHSTS(p passed) error {
	var changes headermutationv3.HeaderMutationPerRoute
	if packed := p.vh.GetTypedPerFilterConfig()[hstsFilter]; packed != nil {
		if err := packed.UnmarshalTo(&changes); err != nil {
			return fmt.Errorf("decoding filter %q: %w", hstsFilter, err)
		}
	}
	var told []string
	for _, m := range changes.GetMutations().GetResponseMutations() {
		told = append(told, m.GetAppend().GetHeader().GetKey()+": "+m.GetAppend().GetHeader().GetValue())
	}
	f.Message = "tells browsers to keep to HTTPS, with " + strings.Join(told, ", ") + " in the answer (field Hsts_seconds of the service)"
	return nil
}

// describeAltSvc describes that clients learn of HTTP/3.
func (f *Filter) describeAltSvc(p passed) error {
	var changes headermutationv3.HeaderMutation
	if err := p.on.GetTypedConfig().UnmarshalTo(&changes); err != nil {
		return fmt.Errorf("decoding filter %q: %w", translate.AltSvcFilter, err)
	}
	for _, m := range changes.GetMutations().GetResponseMutations() {
		f.Message = "tells clients about HTTP/3, with " + m.GetAppend().GetHeader().GetKey() + ": " +
			m.GetAppend().GetHeader().GetValue() + " in the answer (field Http3 of the proxy)"
	}
	return nil
}

// hostRules returns the rules of the filter that checks the host; nil if there is none.
func hostRules(l *hcmv3.HttpConnectionManager) (*rbacconfigv3.RBAC, error) {
	f := findFilter(l, hostFilter)
	if f == nil {
		return nil, nil
	}
	return rulesOf(f)
}
