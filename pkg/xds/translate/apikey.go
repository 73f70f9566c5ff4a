package translate

import (
	"fmt"
	"net/http"
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
	// KeyFilter is the name of the filter that knows the API keys. It is delivered by itself
	// (ECDS), so that neither listeners nor routes change with them.
	KeyFilter = "envoy.filters.http.basic_auth/key"
	// KeyClientsFilter is the name of the one that knows which of them may ask.
	KeyClientsFilter = "envoy.filters.http.rbac/clients"
)

const (
	// keyHeader has the key as the password of its holder.
	keyHeader = "x-gatehouse-key"
	// anyKeyHeader has it for a filter that does not ask for one.
	anyKeyHeader = "x-gatehouse-any-key"
	// clientHeader says whose key it was.
	clientHeader = "x-client"
	// clientName is where the filter puts whose key it was into a request's metadata.
	clientName = "username"
	// clientRefused names the refusals of keys that may not ask.
	clientRefused = "client_refused"
)

func keyFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: KeyFilter, config: keyList(nil), discovered: &basicauthv3.BasicAuth{}}}
}

// keyResources are the keys, once for all listeners of a proxy.
func keyResources(l ir.Listener) (Resources, error) {
	if l.TLS != nil {
		return Resources{}, nil
	}
	packed, err := pack(keyList(l.Keys))
	return Resources{Extensions: []*corev3.TypedExtensionConfig{{Name: KeyFilter, TypedConfig: packed}}}, err
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

// yield turns a filter of the host off for routes that take one of several credentials.
func yield(filter string, r *ir.Route) []filterConfig {
	if r.AnyOf == nil {
		return nil
	}
	return []filterConfig{{name: filter, config: &routev3.FilterConfig{Disabled: true}}}
}

// askForKey turns the filter on as the listener has it.
func askForKey(a *ir.KeyAccess) []filterConfig {
	if a == nil {
		return nil
	}
	return []filterConfig{{name: KeyFilter, config: &routev3.FilterConfig{Config: &anypb.Any{}}}}
}

// keyClientsFilter lets nobody in.
func keyClientsFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: KeyClientsFilter, config: &rbacv3.RBAC{Rules: refuseAll(clientRefused)}}}
}

func keyClientsOfHost(h *ir.Host) ([]filterConfig, error) { return keyClients(h.Keys), nil }

func keyClientsOfRoute(r *ir.Route) ([]filterConfig, error) {
	return append(keyClients(r.Keys), yield(KeyClientsFilter, r)...), nil
}

// keyClients refuses all but the keys of a set, or some of them.
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

// clientMatcher is for the keys that may ask.
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

// or is a list of two at least, which Envoy's constraints ask for.
func or(m *matcherv3.OrMatcher) *matcherv3.OrMatcher {
	if len(m.GetValueMatchers()) == 1 {
		m.ValueMatchers = append(m.ValueMatchers, m.GetValueMatchers()[0])
	}
	return m
}

// namesClients reports whether the host, or a route of it, tells the upstream who a client is.
func namesClients(h *ir.Host) bool {
	names := h.AllKeys() != nil || h.AllBasicAuth() != nil
	for _, route := range h.Routes {
		for _, r := range route.All() {
			names = names || r.AllKeys() != nil || r.AllBasicAuth() != nil
		}
	}
	return names
}

// spoofOfHost removes what only the gateway may set, on all routes of the host, and gives a key to
// the filter that reads it.
func spoofOfHost(h *ir.Host) ([]filterConfig, error) {
	list := spoofable(tokenOfHost(h))
	if namesClients(h) {
		list = append(list, removeHeader(clientHeader), removeHeader(keyHeader), removeHeader(anyKeyHeader))
	}
	list = append(list, passKeys(h.Keys, h.AnyOf)...)
	if list == nil {
		return nil, nil
	}
	return []filterConfig{requestMutations(SpoofFilter, list)}, nil
}

// spoofOfRoute also removes the keys that the host has given to filters which do not ask on the route: the answers to
// others tell them by their headers.
func spoofOfRoute(r *ir.Route) ([]filterConfig, error) {
	var list []*mutationv3.HeaderMutation
	if t := r.AllTokens(); t != nil {
		list = spoofable(t.Check)
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

// removeKey takes a key away behind the filter that has read it.
func removeKey(a *ir.KeyAccess) []*mutationv3.HeaderMutation {
	if a == nil {
		return nil
	}
	return []*mutationv3.HeaderMutation{removeHeader(keyHeader), removeHeader(anyKeyHeader), removeHeader(a.Header)}
}

func removeHeader(name string) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Remove{Remove: name}}
}

// passKeys makes the header that a filter reads: a key is the name of its client and its secret,
// in the form of Basic. One that is optional makes none of none.
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

// keyReplies are what becomes of the refusals. The challenge is none that a browser would ask its
// user for a password for.
func keyReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	unknown, err := celFilter(ofCredentials + " && ('" + keyHeader + "' in request.headers || '" + anyKeyHeader + "' in request.headers) && !('" + clientHeader + "' in request.headers)")
	if err != nil {
		return nil, err
	}
	refused, err := refusalReply(clientRefused, http.StatusForbidden, "this API key is for something else\n")
	return []*hcmv3.ResponseMapper{challenge(unknown, "ApiKey", "a valid API key is needed\n"), refused}, err
}
