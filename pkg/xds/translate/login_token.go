package translate

import (
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// JWTFilter is the name of the filter that verifies tokens. It is delivered on its own (ECDS),
// so that no listener changes when issuers or keys do.
const JWTFilter = "envoy.filters.http.jwt_authn"

// idToken is the key of a verified token's claims in the request's metadata, both for logins
// and for tokens of requests.
const idToken = "id_token"

// clockSkewSeconds is the accepted difference between the clocks of an issuer and an Envoy.
const clockSkewSeconds = 60

func jwtFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: JWTFilter, discovered: &jwtv3.JwtAuthentication{}}}
}

// ClosedTokenChecks is the filter without issuers. It refuses everything, and applies to a host
// whose own message Envoy cannot read.
func ClosedTokenChecks() *jwtv3.JwtAuthentication {
	const nobody = "nobody"
	return &jwtv3.JwtAuthentication{
		Providers: map[string]*jwtv3.JwtProvider{nobody: {
			Issuer: "https://nobody.invalid",
			// Nobody has the private key.
			JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: inline(
				`{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"nobody","x":"whHJsSWc4DMBNhP1UhMCumiqzONBXRFAsragNaPTqHU","y":"zXtSTJxMC_bjbtLs64feuXEeQkGMP4EMWnFI-NMzB_I"}]}`)},
		}},
		Rules: []*jwtv3.RequirementRule{{
			Match:           &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			RequirementType: &jwtv3.RequirementRule_Requires{Requires: provider(nobody)},
		}},
	}
}

// TokenCheck is the part of the filter that verifies the id_token of a login, or the token of a
// request. It always sets where the token is, since Envoy would otherwise look in the query
// too.
func TokenCheck(t *ir.TokenCheck) *jwtv3.JwtAuthentication {
	p := &jwtv3.JwtProvider{
		Issuer: t.Issuer, Audiences: t.Audiences, RequireExpiration: true, Forward: t.Forward,
		PayloadInMetadata: idToken, ClockSkewSeconds: clockSkewSeconds, JwtCacheConfig: &jwtv3.JwtCacheConfig{},
		JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: inline(t.JWKS)},
	}
	switch {
	case t.Cookie != "":
		p.FromCookies = []string{t.Cookie}
	case t.Query != "":
		p.FromParams = []string{t.Query}
	default:
		p.FromHeaders = []*jwtv3.JwtHeader{{Name: t.Header, ValuePrefix: t.Prefix}}
	}
	for _, c := range t.ClaimHeaders {
		p.ClaimToHeaders = append(p.ClaimToHeaders, &jwtv3.JwtClaimToHeader{HeaderName: c.Header, ClaimName: c.Claim})
	}
	return &jwtv3.JwtAuthentication{
		Providers:      map[string]*jwtv3.JwtProvider{t.Name: p},
		RequirementMap: map[string]*jwtv3.JwtRequirement{t.Name: requirement(t)},
	}
}

func requirement(t *ir.TokenCheck) *jwtv3.JwtRequirement {
	if !t.Optional {
		return provider(t.Name)
	}
	missing := &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_AllowMissing{AllowMissing: &emptypb.Empty{}}}
	return &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_RequiresAny{
		RequiresAny: &jwtv3.JwtRequirementOrList{Requirements: []*jwtv3.JwtRequirement{provider(t.Name), missing}},
	}}
}

func provider(name string) *jwtv3.JwtRequirement {
	return &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_ProviderName{ProviderName: name}}
}

func tokenCheckOfHost(h *ir.Host) ([]filterConfig, error) {
	switch {
	case h.AllTokens() != nil:
		return tokenCheck(h.AllTokens().Check), nil
	case h.Login != nil && h.Login.Token != nil:
		return tokenCheck(h.Login.Token), nil
	}
	return nil, nil
}

func tokenCheckOfRoute(r *ir.Route) ([]filterConfig, error) {
	if r.AllTokens() == nil {
		return exemptRoute(JWTFilter)(r)
	}
	return tokenCheck(r.AllTokens().Check), nil
}

func tokenCheck(t *ir.TokenCheck) []filterConfig {
	return []filterConfig{{name: JWTFilter, config: &jwtv3.PerRouteConfig{
		RequirementSpecifier: &jwtv3.PerRouteConfig_RequirementName{RequirementName: t.Name},
	}}}
}

// ClaimsFilter is the name of the filter that checks claims.
const ClaimsFilter = "envoy.filters.http.rbac/claims"

// claimsFilter refuses every request.
func claimsFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: ClaimsFilter, config: &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{Action: rbacconfigv3.RBAC_ALLOW}}}}
}

func claimsOfHost(h *ir.Host) ([]filterConfig, error) {
	if h.Tokens != nil {
		return claimsOfTokens(h.Tokens), nil
	}
	if h.Login == nil || len(h.Login.Require) == 0 {
		return nil, nil
	}
	return []filterConfig{{name: ClaimsFilter, config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{
		Action: rbacconfigv3.RBAC_ALLOW,
		Policies: map[string]*rbacconfigv3.Policy{"claims": {
			Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
			Principals:  []*rbacconfigv3.Principal{hasClaims(h.Login.Require)},
		}},
	}}}}}, nil
}

// claimsOfRoute also turns off a login's conditions for a route with its own tokens.
func claimsOfRoute(r *ir.Route) ([]filterConfig, error) {
	if r.Tokens == nil {
		return exemptRoute(ClaimsFilter)(r)
	}
	if len(r.Tokens.Require) == 0 {
		return []filterConfig{{name: ClaimsFilter, config: &routev3.FilterConfig{Disabled: true}}}, nil
	}
	return claimsOfTokens(r.Tokens), nil
}

// claimRefused is the policy that refuses tokens that lack a claim.
const claimRefused = "claim_refused"

// claimsOfTokens refuses requests that lack one of the claims. The name of the policy is in the
// refusal.
func claimsOfTokens(t *ir.Tokens) []filterConfig {
	if len(t.Require) == 0 {
		return nil
	}
	return []filterConfig{{name: ClaimsFilter, config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{
		Action: rbacconfigv3.RBAC_DENY,
		Policies: map[string]*rbacconfigv3.Policy{claimRefused: {
			Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
			Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_NotId{NotId: hasClaims(t.Require)}}},
		}},
	}}}}}
}

func hasClaims(list []ir.ClaimMatch) *rbacconfigv3.Principal {
	var all []*rbacconfigv3.Principal
	for _, c := range list {
		all = append(all, hasClaim(c))
	}
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_AndIds{AndIds: &rbacconfigv3.Principal_Set{Ids: all}}}
}

// hasClaim matches a request whose claim has one of the values. The claim is a string or a
// list.
func hasClaim(c ir.ClaimMatch) *rbacconfigv3.Principal {
	m := &matcherv3.MetadataMatcher{Filter: JWTFilter, Path: segments(append([]string{idToken}, c.Claim...)), Value: &matcherv3.ValueMatcher{}}
	or := &matcherv3.OrMatcher{}
	for _, v := range c.Values {
		text := &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{
			StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: v}},
		}}
		list := &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_ListMatch{ListMatch: &matcherv3.ListMatcher{
			MatchPattern: &matcherv3.ListMatcher_OneOf{OneOf: text},
		}}}
		or.ValueMatchers = append(or.ValueMatchers, text, list)
	}
	m.Value.MatchPattern = &matcherv3.ValueMatcher_OrMatch{OrMatch: or}
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_SourcedMetadata{
		SourcedMetadata: &rbacconfigv3.SourcedMetadata{MetadataMatcher: m},
	}}
}

func segments(keys []string) []*matcherv3.MetadataMatcher_PathSegment {
	var list []*matcherv3.MetadataMatcher_PathSegment
	for _, key := range keys {
		list = append(list, &matcherv3.MetadataMatcher_PathSegment{Segment: &matcherv3.MetadataMatcher_PathSegment_Key{Key: key}})
	}
	return list
}
