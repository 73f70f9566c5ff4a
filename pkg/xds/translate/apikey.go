package translate

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

const (
	// KeyFilter is the name of the filter that knows the API keys. It is delivered on its own (ECDS), so that neither
	// listeners nor routes change when keys do.
	KeyFilter = "envoy.filters.http.basic_auth/key"
	// KeyClientsFilter is the name of the filter that knows which clients are allowed.
	KeyClientsFilter = "envoy.filters.http.rbac/clients"
)

const (
	// keyHeader carries the key as the password of its client.
	keyHeader = "x-gatehouse-key"
	// anyKeyHeader carries the key for AnyKeyFilter, which does not require one.
	anyKeyHeader = "x-gatehouse-any-key"
	// clientHeader carries the name of the client.
	clientHeader = "x-client"
	// clientName is the field of the request's metadata where the filter writes the name of the client.
	clientName = "username"
	// clientRefused is the policy that refuses keys of clients that are not allowed.
	clientRefused = "client_refused"
)

func keyFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: KeyFilter, config: keyList(nil), discovered: &basicauthv3.BasicAuth{}}}
}

// keyResources returns the keys once for all listeners of a proxy.
func keyResources(l ir.Listener) (Resources, error) {
	if l.TLS != nil {
		return Resources{}, nil
	}
	list, err := KeyList(KeyFilter, l.Keys)
	return Resources{Extensions: []*corev3.TypedExtensionConfig{list}}, err
}

// KeyList returns the keys for KeyFilter or AnyKeyFilter.
func KeyList(filter string, keys []ir.APIKey) (*corev3.TypedExtensionConfig, error) {
	list := keyList(keys)
	if filter == AnyKeyFilter {
		list = anyKeyList(keys)
	}
	packed, err := pack(list)
	return &corev3.TypedExtensionConfig{Name: filter, TypedConfig: packed}, err
}

func keyList(keys []ir.APIKey) *basicauthv3.BasicAuth {
	var users strings.Builder
	users.WriteString(nobodysPassword) // a list must not be empty
	for _, k := range keys {
		users.WriteString("\n" + k.Client + ":" + k.Hash)
	}
	return &basicauthv3.BasicAuth{
		Users: inline(users.String()), AuthenticationHeader: keyHeader, ForwardUsernameHeader: clientHeader, EmitDynamicMetadata: true,
	}
}

func keysOfHost(h *ir.Host) ([]filterConfig, error) { return askForKey(h.Keys), nil }

func keysOfRoute(r *ir.Route) ([]filterConfig, error) {
	return append(askForKey(r.Keys), yield(KeyFilter, r)...), nil
}

// yield turns a filter of the host off for routes that accept one of several credentials.
func yield(filter string, r *ir.Route) []filterConfig {
	if r.AnyOf == nil {
		return nil
	}
	return []filterConfig{{name: filter, config: &routev3.FilterConfig{Disabled: true}}}
}

// askForKey turns the filter on with the listener's configuration.
func askForKey(a *ir.KeyAccess) []filterConfig {
	if a == nil {
		return nil
	}
	return []filterConfig{{name: KeyFilter, config: &routev3.FilterConfig{Config: &anypb.Any{}}}}
}

// keyClientsFilter refuses every request.
func keyClientsFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: KeyClientsFilter, config: &rbacv3.RBAC{Rules: refuseAll(clientRefused)}}}
}

func keyClientsOfHost(h *ir.Host) ([]filterConfig, error) { return keyClients(h.Keys), nil }

func keyClientsOfRoute(r *ir.Route) ([]filterConfig, error) {
	return append(keyClients(r.Keys), yield(KeyClientsFilter, r)...), nil
}

// keyClients refuses all keys except those of a set, or of some clients in it.
func keyClients(a *ir.KeyAccess) []filterConfig {
	if a == nil {
		return nil
	}
	client := metadataPrincipal(KeyFilter, []string{clientName}, clientMatcher(a))
	return []filterConfig{{name: KeyClientsFilter, config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{
		Action: rbacconfigv3.RBAC_DENY,
		Policies: map[string]*rbacconfigv3.Policy{clientRefused: {
			Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
			Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_NotId{NotId: client}}},
		}},
	}}}}}
}

// clientMatcher matches the clients that are allowed.
func clientMatcher(a *ir.KeyAccess) *matcherv3.ValueMatcher {
	is := &matcherv3.OrMatcher{}
	text := func(m *matcherv3.StringMatcher) {
		is.ValueMatchers = append(is.ValueMatchers, &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{StringMatch: m}})
	}
	for _, client := range a.Clients {
		text(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: client}})
	}
	if a.Clients == nil {
		text(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: a.Set + "/"}})
	}
	return &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_OrMatch{OrMatch: or(is)}}
}

// or repeats a single matcher, since Envoy requires at least two.
func or(m *matcherv3.OrMatcher) *matcherv3.OrMatcher {
	if len(m.GetValueMatchers()) == 1 {
		m.ValueMatchers = append(m.ValueMatchers, m.GetValueMatchers()[0])
	}
	return m
}

// spoofOfHost removes the headers that only the gateway may set, on all routes of the host, and passes a key to the
// filter that reads it.
func spoofOfHost(h *ir.Host) ([]filterConfig, error) {
	names := h.Identity
	if slices.Contains(names, clientHeader) {
		names = slices.Concat(names, []string{keyHeader, anyKeyHeader})
	}
	list := removeHeaders(withoutNames(claimHeaders(tokenOfHost(h)), names))
	list = append(list, removeHeaders(names)...)
	list = append(list, passKeys(h.Keys, h.AnyOf)...)
	if list == nil {
		return nil, nil
	}
	return []filterConfig{requestMutations(SpoofFilter, list)}, nil
}

// spoofOfRoute also removes the host's key headers that no filter on the route reads. credentialReplies would
// otherwise take a refusal of another credential for a refusal of a key.
func spoofOfRoute(r *ir.Route) ([]filterConfig, error) {
	var list []*mutationv3.HeaderMutation
	if t := r.AllTokens(); t != nil {
		list = removeHeaders(claimHeaders(t.Check))
	}
	if r.Keys != nil || r.SaysWho() {
		list = append(list, removeHeader(anyKeyHeader))
	}
	if r.Keys != nil || r.AnyOf != nil {
		list = append(list, removeHeader(keyHeader))
	}
	list = append(list, passKeys(r.Keys, r.AnyOf)...)
	if list == nil {
		return nil, nil
	}
	return []filterConfig{requestMutations(SpoofFilter, list)}, nil
}

// removeKey removes a key after the filter that reads it.
func removeKey(a *ir.KeyAccess) []*mutationv3.HeaderMutation {
	if a == nil {
		return nil
	}
	return []*mutationv3.HeaderMutation{removeHeader(keyHeader), removeHeader(anyKeyHeader), removeHeader(a.Header)}
}

func removeHeaders(names []string) []*mutationv3.HeaderMutation {
	var list []*mutationv3.HeaderMutation
	for _, name := range names {
		list = append(list, removeHeader(name))
	}
	return list
}

// withoutNames returns the names that are not among others.
func withoutNames(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

func removeHeader(name string) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Remove{Remove: name}}
}

// passKeys sets the header that a filter reads. A key consists of the client's name and its secret, in the format of
// Basic. An optional key that is missing sets no header.
func passKeys(needed *ir.KeyAccess, either *ir.AnyOf) []*mutationv3.HeaderMutation {
	var list []*mutationv3.HeaderMutation
	pass := func(to, value string) {
		list = append(list, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: setHeader(to, value)}})
	}
	if needed != nil {
		pass(keyHeader, "Basic %REQ("+needed.Header+")%")
	}
	if either != nil && either.Keys != nil {
		pass(anyKeyHeader, fmt.Sprintf(`%%CEL('%[1]s' in request.headers ? re.extract(request.headers['%[1]s'], r'^(.*)$', r'Basic \1') : '')%%`, either.Keys.Header))
	}
	return list
}

// keyReplies turn the refusals into responses. For this challenge, no browser asks its user for a password.
func keyReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	unknown, err := celFilter(ofCredentials + " && ('" + keyHeader + "' in request.headers || '" + anyKeyHeader + "' in request.headers) && !('" + clientHeader + "' in request.headers)")
	if err != nil {
		return nil, err
	}
	refused, err := refusalReply(clientRefused, http.StatusForbidden, "this API key is for something else\n")
	return []*hcmv3.ResponseMapper{challenge(unknown, "ApiKey", "a valid API key is needed\n"), refused}, err
}
