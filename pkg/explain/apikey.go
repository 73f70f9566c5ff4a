package explain

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

const (
	// keyFilter knows the API keys. keyClientsFilter knows which clients are allowed.
	keyFilter        = "envoy.filters.http.basic_auth/key"
	keyClientsFilter = "envoy.filters.http.rbac/clients"
)

// passKey reports whether the request has an allowed API key, or needs none. If not, it ends with the
// answer.
func (a *Answer) passKey(have State, s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	f := findFilter(l, keyFilter)
	if f == nil || isOff(f, vh, r) {
		return true, nil
	}
	client, why, err := s.clientOfKey(have, keyFilter, vh, r)
	if err != nil {
		return false, err
	}
	if client == "" {
		a.Body = challengeBody(l, "ApiKey")
		a.endWith(KeyRequired, http.StatusUnauthorized, "refused", "a http_filter_apikey requires an API key: "+why)
		return false, nil
	}
	message, err := messageFor(keyClientsFilter, vh, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return false, err
	}
	for _, policy := range message.GetRbac().GetRules().GetPolicies() {
		for _, p := range policy.GetPrincipals() { // the clients that are refused
			if !isClient(client, p.GetNotId().GetSourcedMetadata().GetMetadataMatcher().GetValue()) {
				return false, a.endRefused(l, KeyRefused, KeyRefused, fmt.Sprintf("a http_filter_apikey does not allow client %s", client))
			}
		}
	}
	return true, nil
}

// isClient reports whether a matcher names a client.
func isClient(client string, m *matcherv3.ValueMatcher) bool {
	return slices.ContainsFunc(m.GetOrMatch().GetValueMatchers(), func(v *matcherv3.ValueMatcher) bool {
		text := v.GetStringMatch()
		return text.GetExact() == client || text.GetPrefix() != "" && strings.HasPrefix(client, text.GetPrefix())
	})
}

// clientOfKey returns the client of the request's API key; empty if the request has no key that the
// Envoy knows, and why is the reason.
func (s subject) clientOfKey(have State, filter string, vh *routev3.VirtualHost, r *routev3.Route) (client, why string, err error) {
	header, err := keyHeaderOf(filter, vh, r)
	if err != nil {
		return "", "", err
	}
	text, there := s.headers[header]
	if !there || len(text) == 0 {
		return "", "the request has no " + header, nil
	}
	first := text[0]
	if filter == anyKeyFilter { // its header joins all values
		first = strings.Join(text, ",")
	}
	client, secret, ok := credentials(first)
	if !ok {
		return "", "the value of " + header + " does not have the form of a key", nil
	}
	known, err := have.knowsUser(filter, client+":"+model.HashKey([]byte(secret)))
	if err != nil || known {
		return client, "", err
	}
	return "", "the value of " + header + " is not a key that the Envoy knows", nil
}

// keyHeaderOf returns the header that contains the key: the route's, or else the service's.
func keyHeaderOf(filter string, vh *routev3.VirtualHost, r *routev3.Route) (string, error) {
	inner := model.KeyHeader
	if filter == anyKeyFilter {
		inner = model.AnyKeyHeader
	}
	for _, config := range []interface {
		GetTypedPerFilterConfig() map[string]*anypb.Any
	}{r, vh} {
		packed := config.GetTypedPerFilterConfig()[spoofFilter]
		if packed == nil {
			continue
		}
		var message headermutationv3.HeaderMutationPerRoute
		if err := packed.UnmarshalTo(&message); err != nil {
			return "", fmt.Errorf("decoding filter %q: %w", spoofFilter, err)
		}
		for _, m := range message.GetMutations().GetRequestMutations() {
			if h := m.GetAppend().GetHeader(); h.GetKey() == inner {
				if _, name, plain := strings.Cut(h.GetValue(), "%REQ("); plain {
					return strings.TrimSuffix(name, ")%"), nil
				}
				return strings.Split(h.GetValue(), "'")[1], nil // of an optional key
			}
		}
	}
	return "", fmt.Errorf("explaining filter %q: nothing gives it a key", keyFilter)
}

// knowsUser reports whether the Envoy's list of keys contains a line.
func (s State) knowsUser(filter, line string) (bool, error) {
	var list basicauthv3.BasicAuth
	has, err := s.discovered(filter, &list)
	return has && slices.Contains(strings.Split(list.GetUsers().GetInlineString(), "\n"), line), err
}

// challengeBody returns the body of a challenge with a scheme.
func challengeBody(l *hcmv3.HttpConnectionManager, scheme string) string {
	for _, m := range l.GetLocalReplyConfig().GetMappers() {
		for _, h := range m.GetHeadersToAdd() {
			if strings.HasPrefix(h.GetHeader().GetValue(), scheme) {
				return m.GetBody().GetInlineString()
			}
		}
	}
	return ""
}

func (f *Filter) describeKey(p passed) error {
	client, _, err := p.request.clientOfKey(p.have, keyFilter, p.vh, p.route)
	if f.Message = "finds no known API key"; client != "" {
		f.Message = "takes the API key as that of " + client + ", as the backend sees in " + model.ClientHeader
	}
	return err
}

func (f *Filter) describeKeyClients(p passed) error {
	message, err := messageFor(keyClientsFilter, p.vh, p.route, &rbacv3.RBACPerRoute{})
	var clients []string
	for _, policy := range message.GetRbac().GetRules().GetPolicies() {
		for _, m := range policy.GetPrincipals()[0].GetNotId().GetSourcedMetadata().GetMetadataMatcher().GetValue().GetOrMatch().GetValueMatchers() {
			text := m.GetStringMatch().GetExact()
			if prefix := m.GetStringMatch().GetPrefix(); prefix != "" {
				text = prefix + "*"
			}
			if !slices.Contains(clients, text) {
				clients = append(clients, text)
			}
		}
	}
	f.Message = "allows the keys of " + strings.Join(clients, ", ")
	return err
}
