package model

import (
	"cmp"
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
	// Name of the header that has the key. Default: x-api-key.
	// +maxLength=maxHeaderName
	Header string `json:"header,omitempty"`
	// Names of the keys that are accepted; absent means all keys of the set.
	// +minItems=1
	// +maxItems=maxKeyClients
	Clients []string `json:"clients,omitempty"`
}

// DefaultKeyHeader is where a key is looked for.
const DefaultKeyHeader = "x-api-key"

// maxKeyClients bounds a list that Envoy compares one by one.
const maxKeyClients = 100

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
	f.Header = strings.ToLower(cmp.Or(f.Header, DefaultKeyHeader))
	switch {
	case slices.Contains([]string{"authorization", "cookie", KeyHeader, AnyKeyHeader, ClientHeader}, f.Header):
		v.add(at+".header", "%q has another meaning; choose a header such as %s", f.Header, DefaultKeyHeader)
	case strings.ContainsAny(f.Header, "%()?|:"): // Envoy reads them in the command that takes the key
		v.add(at+".header", "%q has a character that is not allowed in the name of this header", f.Header)
	default:
		v.headerName(at+".header", f.Header, map[string]bool{})
	}
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

func (f *APIKeyFilter) uses() []Key {
	if f.Keys == "" {
		return nil
	}
	return []Key{KeySetKey(f.Keys)}
}
