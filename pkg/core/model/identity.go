package model

import (
	"maps"
	"slices"
	"strings"
)

// IdentityHeaders returns the headers with which filters of a service and its routes tell an upstream who a client is,
// in lower case and sorted. A header from which one of the filters reads a credential is not among them: requests
// must keep it until then. A filter that can be read but not enforced counts too: its upstream still trusts the header.
func IdentityHeaders(filters ...[]*ParsedFilter) []string {
	sets, reads := map[string]bool{}, map[string]bool{"authorization": true, "cookie": true}
	for _, list := range filters {
		for _, f := range list {
			if f.Fault == nil {
				addIdentity(f.Spec, sets, reads)
			}
		}
	}
	maps.DeleteFunc(sets, func(name string, _ bool) bool { return reads[name] })
	return slices.Sorted(maps.Keys(sets))
}

// addIdentity adds the headers that a filter sets, and those from which it reads a credential.
func addIdentity(spec Spec, sets, reads map[string]bool) {
	add := func(names ...string) {
		for _, name := range names {
			sets[strings.ToLower(name)] = true
		}
	}
	switch f := spec.(type) {
	case *JWTFilter:
		for _, t := range f.Issuers() {
			for _, c := range t.ClaimHeaders {
				add(c.Header)
			}
		}
		if f.From != nil {
			reads[strings.ToLower(f.From.Header)] = true
		}
	case *OIDCFilter:
		add(slices.Collect(maps.Keys(f.ClaimHeaders))...)
	case *APIKeyFilter:
		add(ClientHeader)
		for _, s := range f.Sources() {
			reads[s.Header] = true
		}
	case *BasicAuthFilter:
		add(ClientHeader)
	case *AnyOfFilter:
		// The Go type of a nil part is not nil.
		if f.APIKey != nil {
			addIdentity(f.APIKey, sets, reads)
		}
		if f.BasicAuth != nil {
			addIdentity(f.BasicAuth, sets, reads)
		}
		if f.JWT != nil {
			addIdentity(f.JWT, sets, reads)
		}
	case *ConsumerFilter:
		add(f.NameHeader, f.GroupsHeader)
	case *ExtAuthzFilter:
		add(f.UpstreamHeaders...)
	case *ExtProcFilter:
		add(f.UpstreamHeaders...)
	case *LuaFilter:
		add(f.UpstreamHeaders...)
	}
}
