package credential

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// tokenPlace is where a route or its host looks for tokens.
type tokenPlace struct {
	name, header, prefix, cookie, query string
	// optional means that requests without a token are allowed.
	optional bool
}

// tokenPlaceOf returns where the tokens of a route are; nil if it requires none.
func tokenPlaceOf(r seam.Request) *tokenPlace {
	said := r.Route.GetMetadata()
	if seam.Said(said, "tokens") == nil {
		said = r.VirtualHost.GetMetadata()
	}
	if seam.Said(said, "tokens") == nil {
		return nil
	}
	text := func(key string) string { return seam.Said(said, key).GetStringValue() }
	return &tokenPlace{
		text("tokens"), text("header"), text("prefix"), text("cookie"), text("query"), text("optional") != "",
	}
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

// tokenFilterOf returns the type of the filter that reads the tokens of a route.
func tokenFilterOf(r seam.Request) string {
	if r.Passes(anyFilter) {
		return model.FilterAnyOf
	}
	return model.FilterJWT
}

// find returns the token of a request; empty if there is none.
func (p *tokenPlace) find(r seam.Request) string {
	switch {
	case p.cookie != "":
		value, _ := r.Cookie(p.cookie)
		return value
	case p.query != "":
		return queryParam(r.Query, p.query)
	}
	// Envoy looks for the prefix anywhere in the value.
	_, token, found := strings.Cut(r.Header(p.header), p.prefix)
	if !found {
		return ""
	}
	return token
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

// refuseToken refuses a request without a token. It assumes that the signature, the expiry and the audience of a token
// are valid.
func refuseToken(r seam.Request) (*seam.Refusal, error) {
	place := tokenPlaceOf(r)
	if place == nil {
		return nil, nil
	}
	token := place.find(r)
	refused := func(body, why string) (*seam.Refusal, error) {
		return &seam.Refusal{
			Code: "token_refused", Type: tokenFilterOf(r), Status: http.StatusUnauthorized, Body: body, Step: "token",
			Message: fmt.Sprintf("%s requires a token in %s, and %s", place.filter(), place, why),
		}, nil
	}
	_, readable := claimsOf(token)
	switch {
	case token == "" && place.optional:
		return nil, nil
	case token == "":
		return refused("Jwt is missing\n", "the request has none there")
	case !readable:
		return refused("", "the value there is not a token")
	}
	r.Step("token", fmt.Sprintf("the request has a token for %s in %s, whose signature, expiry, issuer and audience only "+
		"Envoy checks; the next steps assume a valid token", place.filter(), place))
	return nil, nil
}

// findClaim returns a claim of the request's token, for limits that count by it.
func findClaim(r seam.Request, path []string) (value, missing string, err error) {
	steps := path[min(1, len(path)):] // after the prefix of all claims
	claim := strings.Join(steps, ".")
	var found any
	if isOn(r, seam.TokenFilter) {
		place := tokenPlaceOf(r)
		if place == nil {
			return "(claim " + claim + ")", "", nil // only Envoy sees the id_token
		}
		claims, _ := claimsOf(place.find(r))
		found = claims
	}
	for _, step := range steps {
		object, _ := found.(map[string]any)
		found = object[step]
	}
	if text, ok := found.(string); ok && text != "" {
		return text, "", nil
	}
	return "", "claim " + claim + " is not a string in the token", nil
}

func describeToken(r seam.Request) (string, error) {
	message, err := seam.MessageOf(seam.TokenFilter, r, &jwtv3.PerRouteConfig{})
	if err != nil {
		return "", err
	}
	if place := tokenPlaceOf(r); place != nil {
		return fmt.Sprintf("verifies the token in %s: signature, issuer, audience and expiry, as %s says. A missing or "+
			"wrong token gets 401, a token for another audience 403", place, message.GetRequirementName()), nil
	}
	return fmt.Sprintf("verifies the id_token of the session: signature, issuer, audience and expiry, as %s says. A "+
		"wrong id_token gets 401, an id_token for another audience 403", message.GetRequirementName()), nil
}
