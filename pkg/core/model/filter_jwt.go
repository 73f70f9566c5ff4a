package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
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
	TokenIssuer
	// Further issuers, whose tokens are accepted too, each with its own keys and conditions.
	// +maxItems=maxOtherIssuers
	OtherIssuers []TokenIssuer `json:"other_issuers"`
	// Where the token is in a request. Absent means Authorization: Bearer.
	From *TokenSource `json:"from"`
	// Whether requests without a token are allowed too. A token that a request has must be right. Default: false.
	Optional bool `json:"optional"`
	// Whether the upstream receives the token too. Default: false.
	Forward bool `json:"forward"`
}

// TokenIssuer is an issuer of tokens, with its keys and with what its tokens must have.
type TokenIssuer struct {
	// The issuer (iss), exactly as in the tokens. Without jwks, jwks_uri and hmac_key it is a URL, and its discovery
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
	// The secret key with which the issuer signs, in place of public keys. Whoever can verify such a token can also make
	// one, so prefer public keys.
	HMACKey SharedKey `json:"hmac_key"`
	// The algorithm of hmac_key, the only one that is accepted. Default: HS256.
	// +enum=[HS256, HS384, HS512]
	HMACAlgorithm string `json:"hmac_algorithm"`
	// Name of the upstream through which the keys are fetched. Without it, they are fetched from the host of the URL.
	Upstream string `json:"upstream"`
	// Claims that the token must have, all of them; otherwise a request gets 403.
	// +maxItems=maxRequired
	Require []RequiredClaim `json:"require"`
	// Scopes that the token must have, all of them; otherwise a request gets 403. They are the words of the claim scope or
	// scp, or the elements of the list that one of them is.
	// +minItems=1
	// +maxItems=maxTokenScopes
	// +items={type: string, minLength: 1, maxLength: maxWord}
	Scopes []string `json:"scopes"`
	// Claims that the upstream receives in headers. The gateway removes these headers from clients' requests, on all
	// routes of the service.
	// +maxItems=maxClaimHeaders
	ClaimHeaders []ClaimHeader `json:"claim_headers"`

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

const (
	// otherIssuers is the path of further issuers in the JSON.
	otherIssuers = "other_issuers"
	// maxOtherIssuers bounds the keys that each token may be compared with.
	maxOtherIssuers = 9
	// maxTokenScopes bounds regular expressions that each request is compared with.
	maxTokenScopes = 10
)

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

// Issuers returns all issuers. in is where each is in the JSON of the filter, with a dot behind it, or empty: what its key
// is sealed for.
func (f *JWTFilter) Issuers() iter.Seq2[string, *TokenIssuer] {
	return func(yield func(string, *TokenIssuer) bool) {
		if !yield("", &f.TokenIssuer) {
			return
		}
		for i := range f.OtherIssuers {
			if !yield(otherIssuers+"["+f.OtherIssuers[i].Issuer+"].", &f.OtherIssuers[i]) {
				return
			}
		}
	}
}

func (f *JWTFilter) check(v *validator, at string) {
	f.TokenIssuer.check(v, at, f.From)
	if f.From != nil {
		f.From.check(v, at+".from")
	}
	if len(f.OtherIssuers) > maxOtherIssuers {
		v.add(at+"."+otherIssuers, "has %d issuers; at most %d are allowed", len(f.OtherIssuers), maxOtherIssuers)
		return
	}
	seen := map[string]bool{f.Issuer: true}
	for i := range f.OtherIssuers {
		other, field := &f.OtherIssuers[i], fmt.Sprintf("%s.%s[%d]", at, otherIssuers, i)
		if seen[other.Issuer] && other.Issuer != "" {
			v.add(field+".issuer", "%q is listed twice: the keys of one issuer are in one place", clipField(other.Issuer))
		}
		seen[other.Issuer] = true
		other.check(v, field, f.From)
	}
}

// check accepts an issuer whose tokens are in a place.
func (t *TokenIssuer) check(v *validator, at string, from *TokenSource) {
	t.checkKeys(v, at)
	if t.Audiences != nil && len(t.Audiences) == 0 {
		v.add(at+".audiences", "is empty, so no token would be accepted; name at least one audience, or omit audiences")
	}
	v.words(at+".audiences", t.Audiences, maxAudiences, isText, "an audience, such as https://api.example.com")
	v.requiredClaims(at+".require", t.Require)
	if t.Scopes != nil && len(t.Scopes) == 0 {
		v.add(at+".scopes", "is empty; name at least one scope, or omit scopes")
	}
	v.words(at+".scopes", t.Scopes, maxTokenScopes, isScope, "a scope, such as read")
	if len(t.ClaimHeaders) > maxClaimHeaders {
		v.add(at+".claim_headers", "has %d headers; at most %d are allowed", len(t.ClaimHeaders), maxClaimHeaders)
		return
	}
	seen := map[string]bool{}
	for i, c := range t.ClaimHeaders {
		field := fmt.Sprintf("%s.claim_headers[%d]", at, i)
		if from != nil && strings.EqualFold(c.Header, from.Header) && c.Header != "" {
			v.add(field+".header", "%q carries the token; choose another header", c.Header)
			continue
		}
		v.claimHeader(field+".header", c.Header, seen)
		v.claim(field+".claim", c.Claim)
	}
}

// checkKeys accepts an issuer with the place of its keys.
func (t *TokenIssuer) checkKeys(v *validator, at string) {
	keys := at + ".jwks"
	switch {
	case t.Issuer == "":
		v.add(at+".issuer", "is required: it is the iss of the tokens")
	case !isText(t.Issuer) || len(t.Issuer) > maxURL:
		v.add(at+".issuer", "has a control character, or more than %d bytes", maxURL)
	case t.discovers():
		v.provider(at, t.Issuer, "", "")
	}
	if t.JWKSURI != "" {
		v.loginURL(at+".jwks_uri", t.JWKSURI)
	}
	if t.Upstream != "" {
		v.name(at+".upstream", t.Upstream, true)
	}
	if t.HMACKey.IsSet() || t.HMACAlgorithm != "" {
		t.checkSharedKey(v, at)
		return
	}
	if t.JWKS == nil {
		return
	}
	if t.JWKSURI != "" || t.Upstream != "" {
		v.add(keys, "cannot be combined with jwks_uri or upstream; remove these")
	}
	if symmetricKey(t.JWKS) {
		v.add(keys, "has a symmetric key (oct): whoever can verify with it can sign; use public keys")
	} else if _, err := ReadKeys(t.JWKS); err != nil {
		v.add(keys, "%s", err)
	}
}

// checkWritten refuses keys that anybody on the way to a public host could replace.
func (f *JWTFilter) checkWritten(v *validator, at string) {
	f.TokenIssuer.checkWritten(v, at)
	for i := range f.OtherIssuers {
		f.OtherIssuers[i].checkWritten(v, fmt.Sprintf("%s.%s[%d]", at, otherIssuers, i))
	}
}

func (t *TokenIssuer) checkWritten(v *validator, at string) {
	u, err := url.Parse(t.JWKSURI)
	if err == nil && u.Scheme == "http" && t.Upstream == "" && isPublicHost(u.Hostname()) {
		v.add(at+".jwks_uri", "%q is plain HTTP to a public host: %s. Use https, "+
			"or name the upstream through which the keys are fetched", t.JWKSURI, onTheWay)
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
	var keys []Key
	for _, t := range f.Issuers() {
		var key Key
		switch {
		case t.Upstream != "":
			key = UpstreamKey(t.Upstream)
		case t.HMACKey.Secret != "":
			key = SecretKey(t.HMACKey.Secret)
		default:
			continue
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// jwtSecrets are the paths of the shared keys in the JSON.
func jwtSecrets() []string { return []string{sharedKeyKey, otherIssuers + "." + sharedKeyKey} }

func jwtNames() map[string]Kind {
	names := map[string]Kind{}
	for _, in := range []string{"", otherIssuers + "."} {
		names[in+"upstream"], names[in+sharedKeyKey+".secret"] = KindUpstream, KindSecret
	}
	return names
}

func (f *JWTFilter) learn(all Providers) Spec {
	known := *f
	known.OtherIssuers = slices.Clone(f.OtherIssuers)
	for _, t := range known.Issuers() {
		t.provider = all.Of(t.source())
	}
	return &known
}

// discovers reports whether the issuer says where the keys are.
func (t *TokenIssuer) discovers() bool { return t.JWKS == nil && t.JWKSURI == "" && !t.HMACKey.IsSet() }

// Sources are what has to be asked to know the keys.
func (f *JWTFilter) Sources() []ProviderSource {
	var list []ProviderSource
	for _, t := range f.Issuers() {
		list = append(list, t.source())
	}
	return list
}

// source is what has to be asked to know the keys; the zero value means nothing.
func (t *TokenIssuer) source() ProviderSource {
	if t.JWKS != nil || t.HMACKey.IsSet() {
		return ProviderSource{}
	}
	s := ProviderSource{JWKSURI: t.JWKSURI, Upstream: t.Upstream, Discover: t.discovers()}
	if s.Discover {
		s.Issuer = t.Issuer
	}
	if t.Upstream != "" {
		s.UpstreamFor = t.JWKSURI + s.Issuer // one of them
	}
	return s
}

// Keys are the JSON of the public keys. If they are not known, fault says why. There are none beside a shared key.
func (t *TokenIssuer) Keys() (keys, fault string) {
	if t.HMACKey.IsSet() {
		return "", ""
	}
	if t.JWKS != nil {
		keys, _ = ReadKeys(t.JWKS) // which check has seen
		return keys, ""
	}
	switch p := t.provider; {
	case p == nil:
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
	for _, t := range f.Issuers() {
		of := ""
		if len(f.OtherIssuers) > 0 {
			of = " for " + t.Issuer
		}
		if len(t.Audiences) == 0 {
			list = append(list, "has no audiences"+of+": it accepts every token of the issuer, also those issued for other programs")
		}
		for _, c := range []struct{ name, url string }{{"issuer", t.source().Issuer}, {"jwks_uri", t.JWKSURI}} {
			if u, err := url.Parse(c.url); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
				list = append(list, fmt.Sprintf("has %s %s, which is plain HTTP: %s", c.name, c.url, onTheWay))
			}
		}
	}
	if f.From != nil && f.From.Query != "" {
		list = append(list, "accepts tokens in the query: whoever sees a URL has its token, "+
			"and URLs appear in logs and browser histories")
	}
	return append(list, f.sharedHeaders()...)
}

// sharedHeaders says which headers carry claims of several issuers, if no header says of which one.
func (f *JWTFilter) sharedHeaders() []string {
	from := map[string]string{}
	for _, t := range f.Issuers() {
		for _, c := range t.ClaimHeaders {
			if c.Claim == "iss" {
				return nil
			}
		}
	}
	for _, t := range f.Issuers() {
		for _, c := range t.ClaimHeaders {
			header := strings.ToLower(c.Header)
			if of, twice := from[header]; twice {
				return []string{fmt.Sprintf("sets %s from tokens of %s and of %s: each of them can name the users of the other; "+
					"use other headers, or add one with the claim iss", header, of, t.Issuer)}
			}
			from[header] = t.Issuer
		}
	}
	return nil
}
