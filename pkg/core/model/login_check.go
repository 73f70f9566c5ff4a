package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// The bounds of a login. Envoy gets all of it with each host that asks for it.
const (
	// maxLogin bounds the JSON, in bytes.
	maxLogin = 64 << 10
	// maxURL bounds a URL of a provider.
	maxURL = 2048
	// maxWord bounds a client ID, scope, audience, claim and a value of a claim.
	maxWord = 255
	// maxClientSecret bounds the text of a client secret.
	maxClientSecret = 4096

	maxScopes, maxAudiences        = 50, 20
	maxClaimHeaders                = 20
	maxRequired, maxRequiredValues = 10, 50
)

// login reads the JSON of a login.
func (v *validator) login(at string, config JSON, into any) bool {
	if len(config) > maxLogin {
		v.add(at, "has %d bytes; at most %d are allowed", len(config), maxLogin)
		return false
	}
	return v.decode(at, config, into)
}

// provider accepts an issuer, or two endpoints.
func (v *validator) provider(at, issuer, authorization, token string) {
	if issuer != "" {
		v.loginURL(at+".issuer", issuer)
		if strings.Contains(issuer, "?") {
			v.add(at+".issuer", "%q must have no query: it is the provider's own name, "+
				"and the address of its discovery document", issuer)
		}
	}
	for _, f := range []struct{ name, value string }{
		{"authorization_endpoint", authorization}, {"token_endpoint", token},
	} {
		switch {
		case f.value != "":
			v.loginURL(at+"."+f.name, f.value)
		case issuer == "":
			v.add(at+"."+f.name, "is required, unless issuer is given")
		}
	}
}

// redirect accepts where the provider sends browsers back to, and the path that signs
// a user out.
func (v *validator) redirect(uriField, uri, signOutField, signOut string) Redirect {
	r, err := ParseRedirect(uri)
	switch {
	case uri == "":
		v.add(uriField, "is required")
	case err != nil:
		v.add(uriField, "%s", err)
	}
	switch err := checkLoginPath(signOut); {
	case signOut == "":
	case err != nil:
		v.add(signOutField, "%q %s", signOut, err)
	case signOut == r.Path:
		v.add(signOutField, "%q is the path that the identity provider sends users back to", signOut)
	}
	return r
}

// secretName accepts the name of a secret. It does not repeat a text that is none: it
// may be the secret itself.
func (v *validator) secretName(field, name string) {
	var check validator
	check.name(field, name, false)
	switch {
	case name == "":
		v.add(field, "is required")
	case len(check.errs) > 0:
		v.add(field, "must be the name of a secret, of A-Z a-z 0-9 . _ -; "+
			"create a secret with the text as its Secret_value, and give its name")
	}
}

// clientID accepts the identifier of a client (RFC 6749 appendix A.1).
func (v *validator) clientID(field, s string) {
	switch {
	case s == "":
		v.add(field, "is required")
	case len(s) > maxWord:
		v.add(field, "has %d bytes; at most %d are allowed", len(s), maxWord)
	case s != strings.TrimSpace(s) || strings.ContainsFunc(s, isNoASCIIText):
		v.add(field, "%q begins or ends with a space, or has a character that is not printable ASCII", s)
	}
}

func isNoASCIIText(r rune) bool { return r < ' ' || r >= 0x7f }

// words accepts a list of scopes, audiences or values, each of which is what is says.
func (v *validator) words(field string, list []string, most int, is func(string) bool, what string) {
	if len(list) > most {
		v.add(field, "has %d elements; at most %d are allowed", len(list), most)
		return
	}
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case len(s) > maxWord:
			v.add(at, "has %d bytes; at most %d are allowed", len(s), maxWord)
		case !is(s):
			v.add(at, "%q is not %s", s, what)
		case slices.Contains(list[:i], s):
			v.add(at, "%q is named twice", s)
		}
	}
}

// isScope follows RFC 6749 section 3.3.
func isScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' })
}

// isText reports whether a text is there and has no control character.
func isText(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}

// check reports what is wrong with the fields that both forms have.
func (o LoginOptions) check(v *validator, at, issuer string) {
	if o.JWKSURI != "" {
		v.loginURL(at+".jwks_uri", o.JWKSURI)
	}
	if o.EndSessionEndpoint != "" {
		v.loginURL(at+".end_session_endpoint", o.EndSessionEndpoint)
	}
	if o.TokenEndpointAuthMethod != "" {
		v.oneOf(at+".token_endpoint_auth_method", o.TokenEndpointAuthMethod, []string{ClientSecretPost, ClientSecretBasic})
	}
	v.words(at+".audiences", o.Audiences, maxAudiences, isText, "an audience, such as https://api.example.com")
	o.checkClaims(v, at, issuer)
	if o.ForwardTokens && !o.KeepsAccessToken() {
		v.add(at+".forward_tokens", "requires the access token: remove access_token_cookie")
	}
}

func (o LoginOptions) checkClaims(v *validator, at, issuer string) {
	if len(o.ClaimHeaders) > maxClaimHeaders {
		v.add(at+".claim_headers", "has %d headers; at most %d are allowed", len(o.ClaimHeaders), maxClaimHeaders)
		return
	}
	if len(o.Require) > maxRequired {
		v.add(at+".require", "has %d claims; at most %d are allowed", len(o.Require), maxRequired)
		return
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(o.ClaimHeaders)) {
		field := at + ".claim_headers." + clipField(name)
		v.claimHeader(field, name, seen)
		v.claim(field, o.ClaimHeaders[name])
	}
	for _, claim := range slices.Sorted(maps.Keys(o.Require)) {
		field := at + ".require." + clipField(claim)
		v.claim(field, claim)
		if len(o.Require[claim]) == 0 {
			v.add(field, "must list at least one value; a user needs one of them")
		}
		v.words(field, o.Require[claim], maxRequiredValues, isText, "a value of a claim")
	}
	if (len(o.Require) > 0 || len(o.ClaimHeaders) > 0) && issuer == "" && o.JWKSURI == "" {
		v.add(at, "claims can be used only if the id_token is verified: set issuer or jwks_uri")
	}
}

// claimHeader accepts a header that tells a claim.
func (v *validator) claimHeader(field, name string, seen map[string]bool) {
	if slices.Contains([]string{"authorization", "cookie", "set-cookie"}, strings.ToLower(name)) {
		v.add(field, "%q carries the tokens of users and cannot be changed; choose another header", name)
	} else {
		v.headerName(field, name, seen)
	}
}

// clipField shortens what a user has sent as a part of the name of a field.
func clipField(s string) string {
	if len(s) > maxWord {
		return strings.ToValidUTF8(s[:maxWord], "") + "..."
	}
	return s
}

// claim accepts the name of a claim, with dots between its steps.
func (v *validator) claim(field, s string) {
	switch {
	case len(s) > maxWord:
		v.add(field, "has a claim of %d bytes; at most %d are allowed", len(s), maxWord)
	case strings.Contains(s, "://"):
		v.add(field, "%q cannot be used: dots separate the steps to a claim, so a name cannot contain one; "+
			"have the provider issue the claim under a plain name too", s)
	case slices.Contains(strings.Split(s, "."), "") ||
		strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		v.add(field, "%q is not the name of a claim, such as email or realm_access.roles", s)
	}
}

// loginURL accepts a URL of a provider.
func (v *validator) loginURL(field, s string) {
	err := CheckLoginURL(s)
	switch {
	case err != nil && len(s) > maxURL:
		v.add(field, "%s", err)
	case err != nil:
		v.add(field, "%q %s", s, err)
	}
}

// CheckLoginURL accepts a URL of an identity provider: absolute, over https or http,
// without user and fragment, and in no other characters than a URL has (RFC 3986).
// Envoy refuses the routes of all hosts for one that it cannot read. The error follows
// the URL in a sentence.
func CheckLoginURL(s string) error {
	if len(s) > maxURL {
		return fmt.Errorf("has %d bytes; at most %d are allowed", len(s), maxURL)
	}
	rest, isHTTPS := strings.CutPrefix(s, "https://")
	rest, isHTTP := strings.CutPrefix(rest, "http://")
	if isHTTPS == isHTTP {
		return errors.New("is not a URL such as https://login.example.com/token")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if strings.Contains(rest[:end], "@") {
		return errors.New("must not have a user before the host")
	}
	if _, err := hostOf(rest[:end]); err != nil {
		return err
	}
	if strings.Contains(rest, "#") {
		return errors.New("must not have a fragment (#)")
	}
	if strings.ContainsFunc(rest[end:],
		func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("/?-._~!$&'()*+,;=:@%", r) }) {
		return errors.New("has a character that must be percent-encoded in a URL")
	}
	if _, err := url.PathUnescape(rest[end:]); err != nil {
		return errors.New("has a percent sign without two hexadecimal digits after it")
	}
	return nil
}

// exactKeys refuses a key of the JSON that is on one of some paths but for the case of its letters. Go
// reads it, and what is sealed is found by its path.
func (v *validator) exactKeys(at string, config JSON, paths []string) {
	var sent any
	if json.Unmarshal([]byte(config.text()), &sent) != nil {
		return // which is said elsewhere
	}
	for _, path := range paths {
		v.exactPath(at, sent, strings.Split(path, "."))
	}
}

func (v *validator) exactPath(at string, sent any, keys []string) {
	switch sent := sent.(type) {
	case []any:
		for i, element := range sent {
			v.exactPath(fmt.Sprintf("%s[%d]", at, i), element, keys)
		}
	case map[string]any:
		for name, value := range sent {
			switch {
			case name == keys[0] && len(keys) > 1:
				v.exactPath(at+"."+name, value, keys[1:])
			case name != keys[0] && strings.EqualFold(name, keys[0]):
				v.add(at+"."+name, "unknown field; write it %s", keys[0])
			}
		}
	}
}
