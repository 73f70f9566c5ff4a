package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// APIKeyFilter requires an API key of a set. A route's filter replaces its service's; each has at most one.
// +page=apikey.md
// +example={keys: partners, header: x-api-key, clients: [mobile, web]}
type APIKeyFilter struct {
	// Name of the key set.
	// +required
	Keys string `json:"keys"`
	// Name of the header that has the key. Default: x-api-key. Specify at most one of header and from.
	// +maxLength=maxHeaderName
	Header string `json:"header,omitempty"`
	// Where the key is. The first of these places that is not empty counts.
	// +minItems=1
	// +maxItems=maxKeySources
	From []KeySource `json:"from,omitempty"`
	// Names of the keys that are accepted; absent means all keys of the set.
	// +minItems=1
	// +maxItems=maxKeyClients
	Clients []string `json:"clients,omitempty"`
	// Whether the upstream receives the key too. Default: false, it is removed from all places that the filter reads.
	Forward bool `json:"forward,omitempty"`
}

// KeySource is a place of an API key: a header, a cookie or a query parameter. Specify exactly one.
type KeySource struct {
	// +maxLength=maxHeaderName
	Header string `json:"header,omitempty"`
	// +maxLength=maxWord
	Cookie string `json:"cookie,omitempty"`
	// Anyone who sees the URL has the key: URLs appear in logs and browser histories.
	// +maxLength=maxWord
	Query string `json:"query,omitempty"`
}

// DefaultKeyHeader is where a key is looked for.
const DefaultKeyHeader = "x-api-key"

// maxKeyClients bounds a list that Envoy compares one by one.
const maxKeyClients = 100

// maxKeySources bounds the places that Envoy looks at for each request.
const maxKeySources = 8

// The headers of API keys that only the gateway sets.
const (
	// KeyHeader is how Envoy reads a key.
	KeyHeader = "x-gatehouse-key"
	// AnyKeyHeader is how it reads one that may be missing.
	AnyKeyHeader = "x-gatehouse-any-key"
	// ClientHeader tells an upstream whose key it was.
	ClientHeader = "x-client"
)

func readAPIKey(v *validator, at, _ string, config JSON) Spec {
	var f APIKeyFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	v.name(at+".keys", f.Keys, false)
	f.checkSources(v, at)
	if f.Clients != nil && len(f.Clients) == 0 {
		v.add(at+".clients", "is empty, so no client would be allowed; name at least one, or omit clients")
	}
	if len(f.Clients) > maxKeyClients {
		v.add(at+".clients", "has %d names; at most %d are allowed: create a key set for these clients", len(f.Clients),
			maxKeyClients)
	}
	for _, name := range f.Clients {
		v.name(at+".clients", name, false)
	}
	return &f
}

func (f *APIKeyFilter) checkSources(v *validator, at string) {
	if f.From == nil {
		f.Header = strings.ToLower(cmp.Or(f.Header, DefaultKeyHeader))
		v.keyHeader(at+".header", f.Header)
		return
	}
	if f.Header != "" {
		v.add(at+".header", "cannot be combined with from; add it to from, at its place in the order")
	}
	switch {
	case len(f.From) == 0:
		v.add(at+".from", "is empty, so no key would be found; name at least one place, or omit from")
	case len(f.From) > maxKeySources:
		v.add(at+".from", "has %d places; at most %d are allowed", len(f.From), maxKeySources)
		return
	}
	seen := map[KeySource]bool{}
	for i := range f.From {
		s := &f.From[i]
		s.Header = strings.ToLower(s.Header)
		s.check(v, fmt.Sprintf("%s.from[%d]", at, i))
		if seen[*s] {
			v.add(fmt.Sprintf("%s.from[%d]", at, i), "is listed twice")
		}
		seen[*s] = true
	}
}

func (s KeySource) check(v *validator, at string) {
	given := 0
	for _, name := range []string{s.Header, s.Cookie, s.Query} {
		if name != "" {
			given++
		}
	}
	switch {
	case given != 1:
		v.add(at, "takes exactly one of header, cookie and query")
	case strings.Contains(s.Header, "'"): // Envoy may read it in an expression
		v.add(at+".header", "%q has a character that is not allowed in the name of this header", s.Header)
	case s.Header != "":
		v.keyHeader(at+".header", s.Header)
	case !isPlainWord(s.Cookie + s.Query):
		v.add(at, "%q must be a name of A-Z a-z 0-9 _ - of at most %d characters", clipField(s.Cookie+s.Query), maxWord)
	}
}

// keyHeader accepts the name of a header that can have a key.
func (v *validator) keyHeader(at, name string) {
	switch {
	case slices.Contains([]string{"authorization", "cookie", KeyHeader, AnyKeyHeader, ClientHeader}, name):
		v.add(at, "%q has another meaning; choose a header such as %s", name, DefaultKeyHeader)
	case strings.ContainsAny(name, "%()?|:"): // Envoy reads them in the command that takes the key
		v.add(at, "%q has a character that is not allowed in the name of this header", name)
	default:
		v.headerName(at, name, map[string]bool{})
	}
}

// Sources returns the places of the key in their order. Names of headers are in lower case.
func (f *APIKeyFilter) Sources() []KeySource {
	if f.From != nil {
		return f.From
	}
	return []KeySource{{Header: f.Header}}
}

// Advice says what works, but probably not as intended. Each sentence follows the path of the filter.
func (f *APIKeyFilter) Advice() []string {
	if !slices.ContainsFunc(f.From, func(s KeySource) bool { return s.Query != "" }) {
		return nil
	}
	return []string{"accepts keys in the query: whoever sees a URL has its key, " +
		"and URLs appear in logs and browser histories"}
}

func (f *APIKeyFilter) uses() []Key {
	if f.Keys == "" {
		return nil
	}
	return []Key{KeySetKey(f.Keys)}
}
