package translate

import (
	"net/http"

	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// These are the filters for one of several credentials. The key and user filters allow a request without a credential.
// Envoy has that setting only on the listener, so these filters exist in addition to the strict ones. AnyFilter checks
// what the others found.
const (
	AnyKeyFilter       = "envoy.filters.http.basic_auth/any_key"
	AnyBasicAuthFilter = "envoy.filters.http.basic_auth/any"
	AnyFilter          = "envoy.filters.http.rbac/any"
)

// noCredential is the policy that refuses requests without a credential. noPassword is the same where a browser may ask
// its user for a password.
const (
	noCredential = "no_credential"
	noPassword   = "no_credential_or_password"
)

func anyKeyFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: AnyKeyFilter, config: anyKeyList(nil), discovered: &basicauthv3.BasicAuth{}}}
}

// anyKeyList allows requests without a key.
func anyKeyList(keys []ir.APIKey) *basicauthv3.BasicAuth {
	list := optional(keyList(keys))
	list.AuthenticationHeader = anyKeyHeader
	return list
}

// optional makes b allow requests without a credential.
func optional(b *basicauthv3.BasicAuth) *basicauthv3.BasicAuth {
	b.AllowMissing, b.EmitDynamicMetadata = true, true
	return b
}

func anyKeyResources(l ir.Listener) (Resources, error) {
	if l.TLS != nil {
		return Resources{}, nil
	}
	list, err := KeyList(AnyKeyFilter, l.AnyKeys)
	return Resources{Extensions: []*corev3.TypedExtensionConfig{list}}, err
}

func anyKeyOfHost(h *ir.Host) ([]filterConfig, error) { return anyKey(h.AnyOf), nil }

func anyKeyOfRoute(r *ir.Route) ([]filterConfig, error) {
	if r.AnyOf == nil || r.AnyOf.Keys == nil {
		return exemptOfAny(AnyKeyFilter, r), nil
	}
	return anyKey(r.AnyOf), nil
}

func anyKey(a *ir.AnyOf) []filterConfig {
	if a == nil || a.Keys == nil {
		return nil
	}
	return []filterConfig{{name: AnyKeyFilter, config: &routev3.FilterConfig{Config: &anypb.Any{}}}}
}

// anyBasicAuthFilter knows no users.
func anyBasicAuthFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: AnyBasicAuthFilter, config: optional(&basicauthv3.BasicAuth{Users: inline(nobodysPassword), ForwardUsernameHeader: clientHeader})}}
}

func anyBasicAuthOfHost(h *ir.Host) ([]filterConfig, error) { return anyBasicAuth(h.AnyOf), nil }

func anyBasicAuthOfRoute(r *ir.Route) ([]filterConfig, error) {
	if r.AnyOf == nil || r.AnyOf.BasicAuth == nil {
		return exemptOfAny(AnyBasicAuthFilter, r), nil
	}
	return anyBasicAuth(r.AnyOf), nil
}

func anyBasicAuth(a *ir.AnyOf) []filterConfig {
	if a == nil || a.BasicAuth == nil {
		return nil
	}
	return []filterConfig{{name: AnyBasicAuthFilter, config: usersOf(a.BasicAuth)}}
}

// anyFilter refuses every request.
func anyFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: AnyFilter, config: &rbacv3.RBAC{Rules: refuseAll(noCredential)}}}
}

func anyOfHost(h *ir.Host) ([]filterConfig, error) { return anyCredential(h.AnyOf), nil }

func anyOfRoute(r *ir.Route) ([]filterConfig, error) {
	if r.AnyOf == nil {
		return exemptOfAny(AnyFilter, r), nil
	}
	return anyCredential(r.AnyOf), nil
}

// exemptOfAny turns a filter of the host off for routes that are public or require a credential of their own.
func exemptOfAny(filter string, r *ir.Route) []filterConfig {
	if !r.Public && !r.SaysWho() && r.Keys == nil {
		return nil
	}
	return []filterConfig{{name: filter, config: &routev3.FilterConfig{Disabled: true}}}
}

// anyCredential refuses a request for which no credential was found. The filters write what they found into metadata
// that nothing else writes.
func anyCredential(a *ir.AnyOf) []filterConfig {
	if a == nil {
		return nil
	}
	name := noCredential
	var found []*rbacconfigv3.Principal
	if a.Keys != nil {
		found = append(found, metadataPrincipal(AnyKeyFilter, []string{clientName}, clientMatcher(a.Keys)))
	}
	if a.BasicAuth != nil {
		name = noPassword
		found = append(found, metadataPrincipal(AnyBasicAuthFilter, []string{clientName}, &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_PresentMatch{PresentMatch: true}}))
	}
	if a.Tokens != nil {
		issued := metadataPrincipal(JWTFilter, []string{idToken, "iss"}, &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{
			StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: a.Tokens.Check.Issuer}},
		}})
		if len(a.Tokens.Require) > 0 {
			issued = &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_AndIds{AndIds: &rbacconfigv3.Principal_Set{Ids: []*rbacconfigv3.Principal{issued, hasClaims(a.Tokens.Require)}}}}
		}
		found = append(found, issued)
	}
	anybody := &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_OrIds{OrIds: &rbacconfigv3.Principal_Set{Ids: found}}}
	return []filterConfig{{name: AnyFilter, config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{
		Action: rbacconfigv3.RBAC_DENY,
		Policies: map[string]*rbacconfigv3.Policy{name: {
			Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
			Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_NotId{NotId: anybody}}},
		}},
	}}}}}
}

func metadataPrincipal(filter string, path []string, value *matcherv3.ValueMatcher) *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_SourcedMetadata{SourcedMetadata: &rbacconfigv3.SourcedMetadata{
		MetadataMatcher: &matcherv3.MetadataMatcher{Filter: filter, Path: segments(path), Value: value},
	}}}
}

// anyReplies turn the refusals into challenges. Where a password can help, browsers ask their user for it.
func anyReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	var list []*hcmv3.ResponseMapper
	for _, r := range []struct{ policy, scheme string }{{noPassword, browserChallenge}, {noCredential, "Bearer"}} {
		m, err := refusalReply(r.policy, http.StatusUnauthorized, "one of the credentials that are taken here is needed\n")
		if err != nil {
			return nil, err
		}
		m.HeadersToAdd = []*corev3.HeaderValueOption{setHeader("www-authenticate", r.scheme)}
		list = append(list, m)
	}
	return list, nil
}
