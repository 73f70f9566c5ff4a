package credential

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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
	// Require are conditions on claims of the token, Scopes are words of one claim. All must match.
	Require []ClaimMatch `json:"require,omitempty"`
	Scopes  []string     `json:"scopes,omitempty"`
	// Others are further issuers, whose tokens are in the same place. They have no others.
	Others []*Tokens `json:"others,omitempty"`
}

// issuers returns what is required of the tokens of each issuer.
func (t *Tokens) issuers() []*Tokens { return append([]*Tokens{t}, t.Others...) }

// claimHeaders returns the headers that carry claims of tokens.
func (t *Tokens) claimHeaders() (names []string) {
	for _, one := range t.issuers() {
		names = append(names, claimHeaders(one.Check)...)
	}
	return names
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
	if fault := keysFault(f); fault != "" {
		return errors.New("the keys of its tokens are not known: " + fault)
	}
	tokens, err := tokensOf(f, "", at)
	h.Filters = tokensKey.In(h.Filters, tokens)
	return err
}

// addRouteTokens omits details for clients of a closed route. The condition reports that the
// issuer fails.
func addRouteTokens(r *ir.Route, f *model.JWTFilter, at seam.Place) error {
	if keysFault(f) != "" {
		return errors.New("the keys of its tokens are not known")
	}
	tokens, err := tokensOf(f, "", at)
	r.Filters = tokensKey.In(r.Filters, tokens)
	return err
}

// keysFault says why no keys are known; empty means that those of an issuer are. One issuer that does not answer does not
// close what accepts the tokens of another.
func keysFault(f *model.JWTFilter) (first string) {
	for _, t := range f.Issuers() {
		_, fault := t.Keys()
		if fault == "" {
			return ""
		}
		first = cmp.Or(first, fault)
	}
	return first
}

// tokensOf compiles a filter of which some keys are known. in is its place in the JSON, for model.SharedKeyPlace.
func tokensOf(f *model.JWTFilter, in string, at seam.Place) (*Tokens, error) {
	base := TokenCheck{Header: "authorization", Prefix: "Bearer ", Forward: f.Forward, Optional: f.Optional || in != ""}
	if p := f.From; p != nil {
		base.Header, base.Prefix, base.Cookie, base.Query = strings.ToLower(p.Header), p.Prefix, p.Cookie, p.Query
	}
	var list []*Tokens
	for place, t := range f.Issuers() {
		keys, err := keysOf(t, in+place, at)
		if err != nil {
			return nil, err
		}
		list = append(list, &Tokens{Check: checkOf(t, base), Require: claimsOfList(t.Require), Scopes: t.Scopes})
		list[len(list)-1].Check.JWKS = keys
	}
	all := list[0]
	all.Others = list[1:]
	all.Check.Name = checkName(string(at.Key.Kind)+"/"+at.Key.Name(), all.checks()...)
	for i, other := range all.Others {
		other.Check.Name = fmt.Sprint(all.Check.Name, "/", i+1)
	}
	return all, nil
}

// checks are those of all issuers.
func (t *Tokens) checks() (list []*TokenCheck) {
	for _, one := range t.issuers() {
		list = append(list, one.Check)
	}
	return list
}

// checkOf returns the check of an issuer's tokens, without its name and keys.
func checkOf(t *model.TokenIssuer, base TokenCheck) *TokenCheck {
	check := base
	check.Issuer, check.Audiences = t.Issuer, t.Audiences
	for _, c := range t.ClaimHeaders {
		check.ClaimHeaders = append(check.ClaimHeaders, ClaimHeader{Header: strings.ToLower(c.Header), Claim: c.Claim})
	}
	slices.SortFunc(check.ClaimHeaders, func(a, b ClaimHeader) int { return cmp.Compare(a.Header, b.Header) })
	return &check
}

// keysOf returns the key set for Envoy: public keys, or the shared key alone.
func keysOf(t *model.TokenIssuer, in string, at seam.Place) (string, error) {
	key := t.HMACKey.Text
	switch name := t.HMACKey.Secret; {
	case name != "":
		value, err := at.Secret(name)
		if err != nil {
			return "", err
		}
		if what := t.SharedKeyFault(value); what != "" {
			return "", fmt.Errorf("the value of secret %s is not a key for %s: it %s", name, t.Algorithm(), what)
		}
		key = value
	case key == "":
		keys, _ := t.Keys()
		return cmp.Or(keys, nobodysKeys), nil
	case model.IsSealed(key):
		if at.Open == nil {
			return "", errors.New("its key cannot be read")
		}
		value, err := at.Open(key, model.SharedKeyPlace(at.Key.Name(), in))
		if err != nil {
			return "", errors.New("its key cannot be read: it was sealed with another key")
		}
		key = value
	}
	// Envoy takes this key for this algorithm only.
	return `{"keys":[{"alg":"` + t.Algorithm() + `","k":"` + base64.RawURLEncoding.EncodeToString([]byte(key)) + `","kty":"oct"}]}`, nil
}

// checkName derives the name of the checks of one place from their owner and their content. So checks with the same
// name differ only in their keys.
func checkName(of string, checks ...*TokenCheck) string {
	sum := sha256.New()
	for _, check := range checks {
		said, _ := json.Marshal(check) // strings only
		sum.Write(said)
	}
	return of + "/" + hex.EncodeToString(sum.Sum(nil)[:4])
}

// noTokens is the filter that verifies tokens, without its configuration. It is delivered on its own (ECDS), so that
// no listener changes when issuers or keys do.
func noTokens(ir.Listener) []seam.Message {
	return []seam.Message{{Name: seam.TokenFilter, Discovered: &jwtv3.JwtAuthentication{}}}
}

// nobodysKeys verify no token: nobody has the private key.
const nobodysKeys = `{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"nobody",` +
	`"x":"whHJsSWc4DMBNhP1UhMCumiqzONBXRFAsragNaPTqHU","y":"zXtSTJxMC_bjbtLs64feuXEeQkGMP4EMWnFI-NMzB_I"}]}`

// ClosedTokenChecks is the filter without issuers. It refuses everything, and applies to a host
// whose own message Envoy cannot read.
func ClosedTokenChecks() *jwtv3.JwtAuthentication {
	const nobody = "nobody"
	return &jwtv3.JwtAuthentication{
		Providers: map[string]*jwtv3.JwtProvider{nobody: {
			Issuer:              "https://nobody.invalid",
			JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: seam.Inline(nobodysKeys)},
		}},
		Rules: []*jwtv3.RequirementRule{{
			Match:           &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			RequirementType: &jwtv3.RequirementRule_Requires{Requires: provider(nobody)},
		}},
	}
}

// Config is the part of the filter that verifies the id_token of a login, or the token of a request, which may be of one
// of several issuers. It always sets where the token is, since Envoy would otherwise look in the query too.
func (t *TokenCheck) Config(others ...*TokenCheck) *jwtv3.JwtAuthentication {
	out := &jwtv3.JwtAuthentication{Providers: map[string]*jwtv3.JwtProvider{}}
	var list []*jwtv3.JwtRequirement
	for _, one := range append([]*TokenCheck{t}, others...) {
		out.Providers[one.Name] = one.provider()
		list = append(list, provider(one.Name))
	}
	if t.Optional {
		list = append(list, &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_AllowMissing{AllowMissing: &emptypb.Empty{}}})
	}
	requirement := list[0]
	if len(list) > 1 {
		requirement = &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_RequiresAny{
			RequiresAny: &jwtv3.JwtRequirementOrList{Requirements: list},
		}}
	}
	out.RequirementMap = map[string]*jwtv3.JwtRequirement{t.Name: requirement}
	return out
}

func (t *TokenCheck) provider() *jwtv3.JwtProvider {
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
	return p
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
