package explain

import (
	"cmp"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/type/metadata/v3"
)

// isOn reports whether a filter that is off on the listener is on for the route.
func (p passed) isOn(name string) bool {
	return !isOff(&hcmv3.HttpFilter{Name: name, Disabled: true}, p.vh, p.route)
}

// uncounted returns why none of the limits can count: nothing on the route provides what they count
// by. Empty means that at least one may count.
func uncounted(p passed, limits []*routev3.RateLimit) (why string) {
	for _, limit := range limits {
		missing := ""
		for _, action := range limit.GetActions() {
			switch filter := action.GetMetadata().GetMetadataKey().GetKey(); {
			case filter == jwtFilter && !p.isOn(jwtFilter):
				missing = "limits nothing: it counts by claims, which neither a http_filter_jwt nor a login verifies there"
			case filter == keyFilter && !p.isOn(keyFilter):
				missing = "limits nothing: it counts by the client of an API key, and no http_filter_apikey requires one there"
			}
		}
		if missing == "" {
			return ""
		}
		why = cmp.Or(why, missing)
	}
	return why
}

// identify returns the request with what earlier filters have found about the client. Filters that are
// off find nothing.
func (p passed) identify() (s subject, err error) {
	s = p.request
	s.knownClaims = true
	if p.isOn(jwtFilter) {
		place := tokenPlaceOf(p.vh, p.route)
		if s.knownClaims = place != nil; s.knownClaims {
			s.claims, _ = claimsOf(place.find(s))
		}
	}
	if p.isOn(keyFilter) {
		s.apiClient, _, err = s.clientOfKey(p.have, keyFilter, p.vh, p.route)
	}
	return s, err
}

// metadata returns what a filter has found about the request. If there is nothing, missing is the
// reason.
func (s subject) metadata(key *metadatav3.MetadataKey) (value, missing string) {
	if key.GetKey() == keyFilter {
		if s.apiClient == "" {
			return "", "the request has no API key that a filter requires"
		}
		return s.apiClient, ""
	}
	var steps []string
	for _, step := range key.GetPath() {
		steps = append(steps, step.GetKey())
	}
	steps = steps[min(1, len(steps)):] // after the prefix of all claims
	claim := strings.Join(steps, ".")
	if !s.knownClaims {
		return "(claim " + claim + ")", "" // only Envoy sees the id_token
	}
	var found any = s.claims
	for _, step := range steps {
		object, _ := found.(map[string]any)
		found = object[step]
	}
	if text, ok := found.(string); ok && text != "" {
		return text, ""
	}
	return "", "claim " + claim + " is not a string in the token"
}
