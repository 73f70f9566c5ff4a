package explain

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// claimRefused is the policy in refusals of tokens that lack a claim.
const claimRefused = "claim_refused"

// tokenPlace is where a route or its host looks for tokens.
type tokenPlace struct {
	name, header, prefix, cookie, query string
	// optional means that requests without a token are allowed.
	optional bool
}

// tokenPlaceOf returns where the tokens of a route are; nil if it requires none.
func tokenPlaceOf(vh *routev3.VirtualHost, r *routev3.Route) *tokenPlace {
	said := r.GetMetadata().GetFilterMetadata()["gatehouse"].GetFields()
	if said["tokens"] == nil {
		said = vh.GetMetadata().GetFilterMetadata()["gatehouse"].GetFields()
	}
	if said["tokens"] == nil {
		return nil
	}
	text := func(key string) string { return said[key].GetStringValue() }
	return &tokenPlace{text("tokens"), text("header"), text("prefix"), text("cookie"), text("query"), text("optional") != ""}
}

// String describes the place.
func (p *tokenPlace) String() string {
	switch {
	case p.cookie != "":
		return "cookie " + p.cookie
	case p.query != "":
		return "query parameter " + p.query
	}
	return "header " + p.header
}

// filter returns the kind and name of the filter after which the check is named.
func (p *tokenPlace) filter() string {
	kind, rest, _ := strings.Cut(p.name, "/")
	name, _, _ := strings.Cut(rest, "/")
	return kind + " " + name
}

// tokenFilterOf returns the type of the filter that requires the tokens of a route; empty if none does.
func tokenFilterOf(vh *routev3.VirtualHost, r *routev3.Route) string {
	place := tokenPlaceOf(vh, r)
	if place == nil {
		return ""
	}
	filterType, _, _ := strings.Cut(place.filter(), " ")
	return filterType
}

// find returns the token of a request; empty if there is none.
func (p *tokenPlace) find(s subject) string {
	switch {
	case p.cookie != "":
		return s.cookie(p.cookie)
	case p.query != "":
		for pair := range strings.SplitSeq(strings.TrimPrefix(s.query, "?"), "&") {
			if name, value, _ := strings.Cut(pair, "="); name == p.query {
				return value
			}
		}
		return ""
	}
	// Envoy looks for the prefix anywhere in the value.
	_, token, found := strings.Cut(s.headers.get(p.header), p.prefix)
	if !found {
		return ""
	}
	return token
}

// cookie returns the value of a cookie; empty if there is none.
func (s subject) cookie(name string) string {
	value, _ := s.cookieOf(name)
	return value
}

// claimsOf decodes the claims of a token without verifying it.
func claimsOf(token string) (claims map[string]any, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	return claims, err == nil && json.Unmarshal(text, &claims) == nil
}

// passTokens reports whether a request passes the check of tokens. If not, it ends with the answer.
// It assumes that the signature, the expiry and the audience of a token are valid.
func (a *Answer) passTokens(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) bool {
	on, place := findFilter(l, jwtFilter), tokenPlaceOf(vh, r)
	if on == nil || place == nil || isOff(on, vh, r) {
		return true
	}
	token := place.find(s)
	_, readable := claimsOf(token)
	switch {
	case token == "" && place.optional:
		return true
	case token == "":
		a.Body = "Jwt is missing\n"
		a.endWith(TokenRefused, http.StatusUnauthorized, "token", fmt.Sprintf("%s requires a token in %s, and the request has none there", place.filter(), place))
		return false
	case !readable:
		a.endWith(TokenRefused, http.StatusUnauthorized, "token", fmt.Sprintf("%s requires a token in %s, and the value there is not a token", place.filter(), place))
		return false
	}
	a.step("token", fmt.Sprintf("the request has a token for %s in %s, whose signature, expiry, issuer and audience only Envoy checks; the next steps assume a valid token", place.filter(), place))
	return true
}

// passClaims reports whether the token of a request has the required claims. The token has passed
// passTokens.
func (a *Answer) passClaims(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	on, place := findFilter(l, claimsFilter), tokenPlaceOf(vh, r)
	if on == nil || place == nil || isOff(on, vh, r) {
		return true, nil
	}
	claims, _ := claimsOf(place.find(s))
	message, err := messageFor(claimsFilter, vh, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return false, err
	}
	for _, principal := range message.GetRbac().GetRules().GetPolicies()[claimRefused].GetPrincipals() {
		refused, err := caller{s, claims, true}.is(principal)
		if err != nil {
			return false, err
		}
		if refused == yes {
			return false, a.endRefused(l, claimRefused, ClaimRefused, fmt.Sprintf("%s requires of the token: %s. The token of the request does not have it", place.filter(), requiredClaims(principal)))
		}
	}
	return true, nil
}
