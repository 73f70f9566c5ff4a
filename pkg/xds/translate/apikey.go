package translate

import (
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

func keysOfHost(h *ir.Host) ([]filterConfig, error)   { return askForKey(h.Keys), nil }
func keysOfRoute(r *ir.Route) ([]filterConfig, error) { return askForKey(r.Keys), nil }

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

func keyClientsOfHost(h *ir.Host) ([]filterConfig, error)   { return keyClients(h.Keys), nil }
func keyClientsOfRoute(r *ir.Route) ([]filterConfig, error) { return keyClients(r.Keys), nil }

// keyClients refuses all but the keys of a set, or some of them.
func keyClients(a *ir.KeyAccess) []filterConfig {
	if a == nil {
		return nil
	}
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
	client := &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_SourcedMetadata{SourcedMetadata: &rbacconfigv3.SourcedMetadata{
		MetadataMatcher: &matcherv3.MetadataMatcher{
			Filter: KeyFilter, Path: segments([]string{clientName}),
			Value: &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_OrMatch{OrMatch: or(is)}},
		},
	}}}
	return []filterConfig{{name: KeyClientsFilter, config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{
		Action: rbacconfigv3.RBAC_DENY,
		Policies: map[string]*rbacconfigv3.Policy{clientRefused: {
			Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
			Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_NotId{NotId: client}}},
		}},
	}}}}}
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
	names := h.Keys != nil || h.BasicAuth != nil
	for _, route := range h.Routes {
		for _, r := range route.All() {
			names = names || r.Keys != nil || r.BasicAuth != nil
		}
	}
	return names
}

// spoofOfHost removes what only the gateway may set, on all routes of the host, and gives a key to
// the filter that reads it.
func spoofOfHost(h *ir.Host) ([]filterConfig, error) {
	list := spoofable(tokenOfHost(h))
	if namesClients(h) {
		list = append(list, removeHeader(clientHeader), removeHeader(keyHeader))
	}
	if h.Keys != nil {
		list = append(list, passKey(h.Keys.Header))
	}
	if list == nil {
		return nil, nil
	}
	return []filterConfig{requestMutations(SpoofFilter, list)}, nil
}

func spoofOfRoute(r *ir.Route) ([]filterConfig, error) {
	var list []*mutationv3.HeaderMutation
	if r.Tokens != nil {
		list = spoofable(r.Tokens.Check)
	}
	if r.Keys != nil {
		list = append(list, removeHeader(keyHeader), passKey(r.Keys.Header))
	}
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
	return []*mutationv3.HeaderMutation{removeHeader(keyHeader), removeHeader(a.Header)}
}

func removeHeader(name string) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Remove{Remove: name}}
}

// passKey makes the header that the filter reads: a key is the name of its client and its secret,
// in the form of Basic.
func passKey(from string) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: keyHeader, Value: "Basic %REQ(" + from + ")%"},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}}}
}

// keyReplies are what becomes of the refusals. The challenge is none that a browser would ask its
// user for a password for.
func keyReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	unknown, err := celFilter(ofCredentials + " && '" + keyHeader + "' in request.headers && !('" + clientHeader + "' in request.headers)")
	if err != nil {
		return nil, err
	}
	refused, err := refusalReply(clientRefused, http.StatusForbidden, "this API key is for something else\n")
	return []*hcmv3.ResponseMapper{challenge(unknown, "ApiKey", "a valid API key is needed\n"), refused}, err
}
