package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// JWTFilter accepts requests that have a token (JWT) of an issuer. The signature, the issuer, the audience and the
// expiry of the token are verified. A route's filter replaces its service's.
// At most 64 KiB.
// +page=jwt.md
// +example={issuer: "https://login.example.com", audiences: [shop-api], require: [{claim: scope, values: [shop, admin]}],
// claim_headers: [{claim: sub, header: x-user}]}
type JWTFilter struct {
	// The issuer (iss), exactly as in the tokens. Without jwks and jwks_uri it is a URL, and its discovery
	// document says where the keys are.
	// +required
	// +minLength=1
	// +maxLength=maxURL
	Issuer string `json:"issuer"`
	// A token must be for one of these (aud). Absent means that the audience is not checked.
	// +minItems=1
	// +maxItems=maxAudiences
	// +items={type: string, minLength: 1, maxLength: maxWord}
	Audiences []string `json:"audiences"`
	// The public keys themselves, a key set (RFC 7517). Specify at most one of jwks and jwks_uri.
	// +anyOf=[{type: object, required: [keys], additionalProperties: true, properties: {keys: {type: array, items: {type: object}}}}]
	JWKS json.RawMessage `json:"jwks"`
	// URL of the key set. Plain HTTP is for hosts in private networks, and for an upstream.
	// +maxLength=maxURL
	JWKSURI string `json:"jwks_uri"`
	// Name of the upstream through which the keys are fetched. Without it, they are fetched from the host of the URL.
	Upstream string `json:"upstream"`
	// Where the token is in a request. Absent means Authorization: Bearer.
	From *TokenSource `json:"from"`
	// Claims that the token must have, all of them; otherwise a request gets 403.
	// +maxItems=maxRequired
	Require []RequiredClaim `json:"require"`
	// Claims that the upstream receives in headers. The gateway removes these headers from clients' requests, on all
	// routes of the service.
	// +maxItems=maxClaimHeaders
	ClaimHeaders []ClaimHeader `json:"claim_headers"`
	// Whether the upstream receives the token too. Default: false.
	Forward bool `json:"forward"`

	provider *Provider
}

// TokenSource is where a token is: in a header, a cookie or a query parameter. Specify exactly one.
type TokenSource struct {
	Header string `json:"header"`
	// The text before the token in the header, such as "Bearer ".
	// +maxLength=maxWord
	Prefix string `json:"prefix"`
	Cookie string `json:"cookie"`
	// Anyone who sees the URL has the token: URLs appear in logs and browser histories.
	Query string `json:"query"`
}

// RequiredClaim is a claim of a token: a string, or a list with one. Dots separate the steps to the claim.
// +example={claim: realm_access.roles, values: [staff]}
type RequiredClaim struct {
	// +required
	// +minLength=1
	// +maxLength=maxWord
	Claim string `json:"claim"`
	// The claim must have one of these values.
	// +required
	// +minItems=1
	// +maxItems=maxRequiredValues
	// +items={type: string, minLength: 1, maxLength: maxWord}
	Values []string `json:"values"`
}

// ClaimHeader is a header in which the upstream receives a claim. Dots separate the steps to the claim.
// +example={claim: sub, header: x-user}
type ClaimHeader struct {
	// +required
	// +minLength=1
	// +maxLength=maxWord
	Claim string `json:"claim"`
	// +required
	// +minLength=1
	// +maxLength=maxHeaderName
	Header string `json:"header"`
}

func readJWT(v *validator, at, _ string, config JSON) Spec {
	var f JWTFilter
	if v.login(at, config, &f) {
		f.check(v, at)
	}
	return &f
}

func (f *JWTFilter) check(v *validator, at string) {
	f.checkKeys(v, at)
	if f.Audiences != nil && len(f.Audiences) == 0 {
		v.add(at+".audiences", "is empty, so no token would be accepted; name at least one audience, or omit audiences")
	}
	v.words(at+".audiences", f.Audiences, maxAudiences, isText, "an audience, such as https://api.example.com")
	if f.From != nil {
		f.From.check(v, at+".from")
	}
	v.requiredClaims(at+".require", f.Require)
	if len(f.ClaimHeaders) > maxClaimHeaders {
		v.add(at+".claim_headers", "has %d headers; at most %d are allowed", len(f.ClaimHeaders), maxClaimHeaders)
		return
	}
	seen := map[string]bool{}
	for i, c := range f.ClaimHeaders {
		field := fmt.Sprintf("%s.claim_headers[%d]", at, i)
		if f.From != nil && strings.EqualFold(c.Header, f.From.Header) && c.Header != "" {
			v.add(field+".header", "%q carries the token; choose another header", c.Header)
			continue
		}
		v.claimHeader(field+".header", c.Header, seen)
		v.claim(field+".claim", c.Claim)
	}
}

// checkKeys accepts an issuer with the place of its keys.
func (f *JWTFilter) checkKeys(v *validator, at string) {
	keys := at + ".jwks"
	switch {
	case f.Issuer == "":
		v.add(at+".issuer", "is required: it is the iss of the tokens")
	case !isText(f.Issuer) || len(f.Issuer) > maxURL:
		v.add(at+".issuer", "has a control character, or more than %d bytes", maxURL)
	case f.discovers():
		v.provider(at, f.Issuer, "", "")
	}
	if f.JWKSURI != "" {
		v.loginURL(at+".jwks_uri", f.JWKSURI)
	}
	if f.Upstream != "" {
		v.name(at+".upstream", f.Upstream, true)
	}
	if f.JWKS == nil {
		return
	}
	if f.JWKSURI != "" || f.Upstream != "" {
		v.add(keys, "cannot be combined with jwks_uri or upstream; remove these")
	}
	if symmetricKey(f.JWKS) {
		v.add(keys, "has a symmetric key (oct): whoever can verify with it can sign; use public keys")
	} else if _, err := ReadKeys(f.JWKS); err != nil {
		v.add(keys, "%s", err)
	}
}

// checkWritten refuses keys that anybody on the way to a public host could replace.
func (f *JWTFilter) checkWritten(v *validator, at string) {
	u, err := url.Parse(f.JWKSURI)
	if err == nil && u.Scheme == "http" && f.Upstream == "" && isPublicHost(u.Hostname()) {
		v.add(at+".jwks_uri", "%q is plain HTTP to a public host: %s. Use https, "+
			"or name the upstream through which the keys are fetched", f.JWKSURI, onTheWay)
	}
}

// isPublicHost reports whether a host is reached through networks of others: it is not an address of a private network,
// and not a name that only one has (RFC 6761, RFC 6762, RFC 9476).
func isPublicHost(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return !addr.IsLoopback() && !addr.IsPrivate() && !addr.IsLinkLocalUnicast()
	}
	name := strings.ToLower(host)
	_, domain, dotted := strings.Cut(name, ".")
	last := domain[strings.LastIndex(domain, ".")+1:]
	return dotted && !slices.Contains([]string{"localhost", "local", "internal"}, last) && !strings.HasSuffix(name, ".svc")
}

// symmetricKey reports whether a key set has one.
func symmetricKey(text json.RawMessage) bool {
	var set struct{ Keys []object }
	return json.Unmarshal(text, &set) == nil && slices.ContainsFunc(set.Keys, func(k object) bool {
		_, secret := k["k"]
		return secret || k.text("kty") == "oct"
	})
}

func (p *TokenSource) check(v *validator, at string) {
	given := 0
	for _, f := range []string{p.Header, p.Cookie, p.Query} {
		if f != "" {
			given++
		}
	}
	switch lower := strings.ToLower(p.Header); {
	case given != 1:
		v.add(at, `takes exactly one of header, cookie and query, because it would be unclear which of two tokens counts`)
	case p.Prefix != "" && p.Header == "":
		v.add(at+".prefix", "requires header")
	case lower == "host" || lower == "cookie" || slices.Contains(connectionHeaders(), lower):
		v.add(at+".header", "%q cannot carry a token; for a cookie, use the field cookie", p.Header)
	case p.Header != "":
		v.token(at+".header", p.Header)
		if len(p.Prefix) > maxWord || strings.ContainsFunc(p.Prefix, isNoASCIIText) {
			v.add(at+".prefix", "%q cannot precede a token in a header; an example is %q", clipField(p.Prefix), "Bearer ")
		}
	case !isPlainWord(p.Cookie + p.Query):
		v.add(at, "%q must be a name of A-Z a-z 0-9 _ - of at most %d characters", clipField(p.Cookie+p.Query), maxWord)
	}
}

func isPlainWord(s string) bool {
	return len(s) <= maxWord && !strings.ContainsFunc(s, func(r rune) bool {
		return !isAlphanumeric(r) && r != '_' && r != '-'
	})
}

// requiredClaims accepts conditions on claims.
func (v *validator) requiredClaims(at string, list []RequiredClaim) {
	if len(list) > maxRequired {
		v.add(at, "has %d claims; at most %d are allowed", len(list), maxRequired)
		return
	}
	for i, c := range list {
		field := fmt.Sprintf("%s[%d]", at, i)
		v.claim(field+".claim", c.Claim)
		if len(c.Values) == 0 {
			v.add(field+".values", "must list at least one value; a token needs one of them")
		}
		v.words(field+".values", c.Values, maxRequiredValues, isText, "a value of a claim")
	}
}

func (f *JWTFilter) uses() []Key {
	if f.Upstream == "" {
		return nil
	}
	return []Key{UpstreamKey(f.Upstream)}
}

func jwtNames() map[string]Kind { return map[string]Kind{"upstream": KindUpstream} }

func (f *JWTFilter) learn(p *Provider) Spec {
	known := *f
	known.provider = p
	return &known
}

// discovers reports whether the issuer says where the keys are.
func (f *JWTFilter) discovers() bool { return f.JWKS == nil && f.JWKSURI == "" }

// Source is what has to be asked to know the keys; the zero value means nothing.
func (f *JWTFilter) Source() ProviderSource {
	if f.JWKS != nil {
		return ProviderSource{}
	}
	s := ProviderSource{JWKSURI: f.JWKSURI, Upstream: f.Upstream, Discover: f.discovers()}
	if s.Discover {
		s.Issuer = f.Issuer
	}
	if f.Upstream != "" {
		s.UpstreamFor = f.JWKSURI + s.Issuer // one of them
	}
	return s
}

// Keys are the JSON of the keys. If they are not known, fault says why.
func (f *JWTFilter) Keys() (keys, fault string) {
	if f.JWKS != nil {
		keys, _ = ReadKeys(f.JWKS) // which check has seen
		return keys, ""
	}
	switch p := f.provider; {
	case p == nil || p.Source != f.Source():
		return "", "the issuer has not answered yet"
	case p.JWKS == "":
		return "", cmp.Or(p.Fault, "the issuer has none")
	default:
		return p.JWKS, ""
	}
}

// Advice says what works, but probably not as intended. Each sentence follows the path of the filter.
func (f *JWTFilter) Advice() []string {
	var list []string
	if len(f.Audiences) == 0 {
		list = append(list, "has no audiences: it accepts every token of the issuer, also those issued for other programs")
	}
	for _, c := range []struct{ name, url string }{{"issuer", f.Source().Issuer}, {"jwks_uri", f.JWKSURI}} {
		if u, err := url.Parse(c.url); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
			list = append(list, fmt.Sprintf("has %s %s, which is plain HTTP: %s", c.name, c.url, onTheWay))
		}
	}
	if f.From != nil && f.From.Query != "" {
		list = append(list, "accepts tokens in the query: whoever sees a URL has its token, "+
			"and URLs appear in logs and browser histories")
	}
	return list
}
