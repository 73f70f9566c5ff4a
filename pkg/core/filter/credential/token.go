package credential

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const tokensKey seam.Key[*Tokens] = "tokens"

// clockSkewSeconds is the accepted difference between the clocks of an issuer and an Envoy.
const clockSkewSeconds = 60

// Tokens requires a token of an issuer.
type Tokens struct {
	Check *TokenCheck `json:"check"`
	// Require are conditions on claims of the token. All must match.
	Require []ClaimMatch `json:"require,omitempty"`
}

// TokenCheck sets how to verify the id_token of a login, or the token of a request.
type TokenCheck struct {
	// Name is unique. It covers every field except the keys.
	Name   string `json:"name"`
	Issuer string `json:"issuer,omitempty"`
	// Audiences are the accepted audiences.
	Audiences []string `json:"audiences"`
	// Cookie is the name of the cookie with the token. If it is empty, the token is in the
	// query parameter Query, or in Header after Prefix.
	Cookie string `json:"cookie,omitempty"`
	Header string `json:"header,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	Query  string `json:"query,omitempty"`
	// Forward passes the token on to the backend.
	Forward bool `json:"forward,omitempty"`
	// Optional allows requests without a token.
	Optional bool `json:"optional,omitempty"`
	// JWKS is the JSON of the key set (RFC 7517).
	JWKS string `json:"-"`
	// ClaimHeaders are sent to the backend, sorted by header.
	ClaimHeaders []ClaimHeader `json:"claimHeaders,omitempty"`
}

// ClaimHeader is a header that carries a claim to the backend.
type ClaimHeader struct {
	// Header is in lower case.
	Header string `json:"header"`
	// Claim is the path to the claim, with dots between its steps.
	Claim string `json:"claim"`
}

func addHostTokens(h *ir.Host, f *model.JWTFilter, at seam.Place) error {
	if _, fault := f.Keys(); fault != "" {
		return errors.New("the keys of its tokens are not known: " + fault)
	}
	h.Filters = tokensKey.In(h.Filters, tokensOf(f, at, false))
	return nil
}

// addRouteTokens omits details for clients of a closed route. The condition reports that the
// issuer fails.
func addRouteTokens(r *ir.Route, f *model.JWTFilter, at seam.Place) error {
	if _, fault := f.Keys(); fault != "" {
		return errors.New("the keys of its tokens are not known")
	}
	r.Filters = tokensKey.In(r.Filters, tokensOf(f, at, false))
	return nil
}

// tokensOf compiles a filter whose keys are known.
func tokensOf(f *model.JWTFilter, at seam.Place, optional bool) *Tokens {
	check := &TokenCheck{
		Issuer: f.Issuer, Audiences: f.Audiences, Header: "authorization", Prefix: "Bearer ", Forward: f.Forward,
		Optional: optional,
	}
	if p := f.From; p != nil {
		check.Header, check.Prefix, check.Cookie, check.Query = strings.ToLower(p.Header), p.Prefix, p.Cookie, p.Query
	}
	for _, c := range f.ClaimHeaders {
		check.ClaimHeaders = append(check.ClaimHeaders, ClaimHeader{Header: strings.ToLower(c.Header), Claim: c.Claim})
	}
	slices.SortFunc(check.ClaimHeaders, func(a, b ClaimHeader) int { return cmp.Compare(a.Header, b.Header) })
	check.Name = checkName(string(at.Key.Kind)+"/"+at.Key.Name(), check)
	check.JWKS, _ = f.Keys()
	return &Tokens{Check: check, Require: claimsOfList(f.Require)}
}

// checkName derives the name of a check from its owner and its content. So checks with the same
// name differ only in their keys.
func checkName(of string, check *TokenCheck) string {
	said, _ := json.Marshal(check) // strings only
	sum := sha256.Sum256(said)
	return of + "/" + hex.EncodeToString(sum[:4])
}

// noTokens is the filter that verifies tokens, without its configuration. It is delivered on its own (ECDS), so that
// no listener changes when issuers or keys do.
func noTokens(ir.Listener) []seam.Message {
	return []seam.Message{{Name: seam.TokenFilter, Discovered: &jwtv3.JwtAuthentication{}}}
}

// ClosedTokenChecks is the filter without issuers. It refuses everything, and applies to a host
// whose own message Envoy cannot read.
func ClosedTokenChecks() *jwtv3.JwtAuthentication {
	const nobody = "nobody"
	return &jwtv3.JwtAuthentication{
		Providers: map[string]*jwtv3.JwtProvider{nobody: {
			Issuer: "https://nobody.invalid",
			// Nobody has the private key.
			JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: seam.Inline(
				`{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"nobody",` +
					`"x":"whHJsSWc4DMBNhP1UhMCumiqzONBXRFAsragNaPTqHU","y":"zXtSTJxMC_bjbtLs64feuXEeQkGMP4EMWnFI-NMzB_I"}]}`)},
		}},
		Rules: []*jwtv3.RequirementRule{{
			Match:           &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			RequirementType: &jwtv3.RequirementRule_Requires{Requires: provider(nobody)},
		}},
	}
}

// Config is the part of the filter that verifies the id_token of a login, or the token of a
// request. It always sets where the token is, since Envoy would otherwise look in the query
// too.
func (t *TokenCheck) Config() *jwtv3.JwtAuthentication {
	p := &jwtv3.JwtProvider{
		Issuer: t.Issuer, Audiences: t.Audiences, RequireExpiration: true, Forward: t.Forward || t.Query != "", // see hide.go
		PayloadInMetadata: seam.Claims, ClockSkewSeconds: clockSkewSeconds, JwtCacheConfig: &jwtv3.JwtCacheConfig{},
		JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: seam.Inline(t.JWKS)},
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

func requirement(t *TokenCheck) *jwtv3.JwtRequirement {
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

func token(d demands) []seam.Message {
	t := d.tokenCheck()
	if t == nil {
		return nil
	}
	return []seam.Message{{Name: seam.TokenFilter, Config: &jwtv3.PerRouteConfig{
		RequirementSpecifier: &jwtv3.PerRouteConfig_RequirementName{RequirementName: t.Name},
	}}}
}
