package credential

import (
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// keyClientsFilter is the name of the filter that knows which clients are allowed. seam.KeyFilter knows the keys. It
	// is delivered on its own (ECDS), so that neither listeners nor routes change when keys do.
	keyClientsFilter                      = "envoy.filters.http.rbac/clients"
	keysKey          seam.Key[*KeyAccess] = "keys"
)

const (
	// keyHeader carries the key as the password of its client.
	keyHeader = model.KeyHeader
	// anyKeyHeader carries the key for AnyKeyFilter, which does not require one.
	anyKeyHeader = model.AnyKeyHeader
	// clientHeader carries the name of the client.
	clientHeader = model.ClientHeader
	// clientRefused is the policy that refuses keys of clients that are not allowed.
	clientRefused = "client_refused"
)

// KeyAccess requires an API key.
type KeyAccess struct {
	// From has the places of the key in their order. Names of headers are in lower case.
	From []model.KeySource `json:"from"`
	// Forward passes the key on to the backend.
	Forward bool `json:"forward,omitempty"`
	// Set is the name of the key set. Clients are its allowed clients; nil means
	// all.
	Set     string   `json:"set"`
	Clients []string `json:"clients,omitempty"`
}

func addKeys(_ *KeyAccess, f *model.APIKeyFilter, _ seam.Place) (*KeyAccess, error) {
	return keyAccess(f), nil
}

func keyAccess(f *model.APIKeyFilter) *KeyAccess {
	a := &KeyAccess{From: f.Sources(), Forward: f.Forward, Set: f.Keys}
	for _, name := range f.Clients {
		a.Clients = append(a.Clients, model.ClientID(f.Keys, name))
	}
	slices.Sort(a.Clients)
	return a
}

// keyNeeds returns the key sets that a host and its routes require.
func keyNeeds(h *ir.Host) (needs ir.Needs) {
	add := func(d demands) {
		if d.keys != nil {
			needs = needs.Merge(ir.Needs{KeySets: []string{d.keys.Set}})
		}
		if d.anyOf != nil && d.anyOf.Keys != nil {
			needs = needs.Merge(ir.Needs{AnyKeySets: []string{d.anyOf.Keys.Set}})
		}
	}
	add(ofHost(h))
	for _, route := range h.Routes {
		for _, r := range route.All() {
			add(ofRoute(r))
		}
	}
	return needs
}

// Keys returns the keys of a set that Envoy accepts: those that have not expired. Envoy would refuse all keys because of
// one malformed key, which only a manually edited database has.
func Keys(set []*model.APIKey) []ir.APIKey {
	list := make([]ir.APIKey, 0, len(set))
	for _, k := range set {
		if !k.IsExpired() && len(k.Validate()) == 0 {
			list = append(list, ir.APIKey{Client: k.Client(), Hash: k.Hash})
		}
	}
	return list
}

func noKeys(ir.Listener) []seam.Message {
	return []seam.Message{{Name: seam.KeyFilter, Config: keyList(nil), Discovered: &basicauthv3.BasicAuth{}}}
}

// keyResources returns the keys once for all listeners of a proxy.
func keyResources(l ir.Listener) (seam.Resources, error) {
	if l.TLS != nil {
		return seam.Resources{}, nil
	}
	list, err := KeyList(seam.KeyFilter, l.Keys)
	return seam.Resources{Extensions: []*corev3.TypedExtensionConfig{list}}, err
}

// KeyList returns the keys for seam.KeyFilter or AnyKeyFilter.
func KeyList(filter string, keys []ir.APIKey) (*corev3.TypedExtensionConfig, error) {
	list := keyList(keys)
	if filter == AnyKeyFilter {
		list = anyKeyList(keys)
	}
	packed, err := seam.Pack(list)
	return &corev3.TypedExtensionConfig{Name: filter, TypedConfig: packed}, err
}

func keyList(keys []ir.APIKey) *basicauthv3.BasicAuth {
	var users strings.Builder
	users.WriteString(nobodysPassword) // a list must not be empty
	for _, k := range keys {
		users.WriteString("\n" + k.Client + ":" + k.Hash)
	}
	return &basicauthv3.BasicAuth{
		Users: seam.Inline(users.String()), AuthenticationHeader: keyHeader, ForwardUsernameHeader: clientHeader,
		EmitDynamicMetadata: true,
	}
}

// key turns the filter on with the listener's configuration.
func key(d demands) []seam.Message {
	if d.keys == nil {
		return nil
	}
	return []seam.Message{{Name: seam.KeyFilter, Config: &routev3.FilterConfig{Config: &anypb.Any{}}}}
}

// keyClients refuses all keys except those of a set, or of some clients in it.
func keyClients(d demands) []seam.Message {
	if d.keys == nil {
		return nil
	}
	client := metadataPrincipal(seam.KeyFilter, []string{seam.User}, clientMatcher(d.keys))
	return []seam.Message{refuseUnless(keyClientsFilter, clientRefused, client)}
}

// clientMatcher matches the clients that are allowed.
func clientMatcher(a *KeyAccess) *matcherv3.ValueMatcher {
	is := &matcherv3.OrMatcher{}
	for _, client := range a.Clients {
		is.ValueMatchers = append(is.ValueMatchers, text(&matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Exact{Exact: client},
		}))
	}
	if a.Clients == nil {
		is.ValueMatchers = append(is.ValueMatchers, text(&matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: a.Set + "/"},
		}))
	}
	return &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_OrMatch{OrMatch: or(is)}}
}
