package model

import (
	"slices"
	"strings"
)

// AnyOfFilter accepts requests that have one of several credentials: an API key, the password of a user or a token. A
// route's filter replaces its service's.
// +page=anyof.md
// +example={apikey: {keys: partners}, basicauth: {users: [{name: ann, password: correct-horse-battery}]}}
type AnyOfFilter struct {
	// Accepts an API key, as an http_filter_apikey does.
	APIKey *APIKeyFilter `json:"apikey,omitempty"`
	// Accepts a user name and a password, as an http_filter_basicauth does.
	BasicAuth *BasicAuthFilter `json:"basicauth,omitempty"`
	// Accepts a token, as an http_filter_jwt does.
	JWT *JWTFilter `json:"jwt,omitempty"`
}

// BasicAuthInAnyOf and JWTInAnyOf are the keys of AnyOfFilter.BasicAuth and JWT in JSON.
const (
	BasicAuthInAnyOf = "basicauth"
	JWTInAnyOf       = "jwt"
)

func readAnyOf(v *validator, at, name string, config JSON) Spec {
	f := &AnyOfFilter{}
	var sent struct {
		APIKey    *JSON `json:"apikey"`
		BasicAuth *JSON `json:"basicauth"`
		JWT       *JSON `json:"jwt"`
	}
	if !v.decode(at, config, &sent) {
		return f
	}
	given := 0
	read := func(key string, part *JSON, with func(v *validator, at, name string, config JSON) Spec) Spec {
		if part == nil {
			return nil
		}
		given++
		if part.text()[0] != '{' {
			v.add(at+"."+key, "must be an object")
			return nil
		}
		return with(v, at+"."+key, name, *part)
	}
	f.APIKey, _ = read("apikey", sent.APIKey, readAPIKey).(*APIKeyFilter)
	f.BasicAuth, _ = read(BasicAuthInAnyOf, sent.BasicAuth, readBasicAuth).(*BasicAuthFilter)
	f.JWT, _ = read(JWTInAnyOf, sent.JWT, readJWT).(*JWTFilter)
	switch {
	case given < 2:
		v.add(at, "has %d credentials; specify at least two of apikey, basicauth and jwt, "+
			"or attach the filter of a single credential instead", given)
	case f.APIKey != nil && strings.ContainsAny(f.APIKey.Header, `'\`): // Envoy reads it in an expression
		v.add(at+".apikey.header", "%q has a character that is not allowed in the name of this header", f.APIKey.Header)
	case f.JWT != nil && f.JWT.Optional:
		v.add(at+".jwt.optional", "is not possible here: a request needs one of the credentials, whichever it is")
	case f.BasicAuth != nil && f.JWT != nil && f.JWT.From == nil && f.BasicAuth.Forward != f.JWT.Forward:
		v.add(at+".jwt.forward", "must equal basicauth.forward: both credentials are in Authorization, "+
			"which is either removed or kept")
	}
	return f
}

func anyOfSecrets() []string {
	paths := []string{BasicAuthInAnyOf + "." + passwordKey}
	for _, path := range jwtSecrets() {
		paths = append(paths, JWTInAnyOf+"."+path)
	}
	return paths
}

func anyOfNames() map[string]Kind {
	names := map[string]Kind{"apikey.keys": KindKeySet, BasicAuthInAnyOf + "." + passwordKey + ".secret": KindSecret}
	for path, kind := range jwtNames() {
		names[JWTInAnyOf+"."+path] = kind
	}
	return names
}

func (f *AnyOfFilter) checkWritten(v *validator, at string) {
	if f.JWT != nil {
		f.JWT.checkWritten(v, at+".jwt")
	}
}

func (f *AnyOfFilter) uses() []Key {
	var keys []Key
	if f.APIKey != nil {
		keys = f.APIKey.uses()
	}
	if f.BasicAuth != nil {
		keys = slices.Concat(keys, f.BasicAuth.uses())
	}
	if f.JWT != nil {
		keys = slices.Concat(keys, f.JWT.uses())
	}
	return keys
}

func (f *AnyOfFilter) learn(all Providers) Spec {
	if f.JWT == nil {
		return f
	}
	known := *f
	known.JWT, _ = f.JWT.learn(all).(*JWTFilter)
	return &known
}

// Sources are what has to be asked to know the keys of tokens.
func (f *AnyOfFilter) Sources() []ProviderSource {
	if f.JWT == nil {
		return nil
	}
	return f.JWT.Sources()
}

// Advice is that of its parts.
func (f *AnyOfFilter) Advice() []string {
	var list []string
	if f.APIKey != nil {
		list = f.APIKey.Advice()
	}
	if f.BasicAuth != nil {
		list = append(list, f.BasicAuth.Advice()...)
	}
	if f.JWT != nil {
		list = append(list, f.JWT.Advice()...)
	}
	return list
}
