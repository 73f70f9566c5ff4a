package credential

import (
	"net/http"
	"strings"

	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// refuseAnyKey refuses a request with a wrong key.
func refuseAnyKey(r seam.Request) (*seam.Refusal, error) {
	client, why, err := clientOfKey(r, AnyKeyFilter)
	if err != nil {
		return nil, err
	}
	from, _ := keySourcesOf(r, AnyKeyFilter)
	if _, _, there := findKey(r, from, AnyKeyFilter); client != "" || !there {
		return nil, nil
	}
	return keyRequired(r, model.FilterAnyOf, "accepts an API key: "+why), nil
}

// refuseAnyPassword refuses a request with a wrong password.
func refuseAnyPassword(r seam.Request) (*seam.Refusal, error) {
	message, err := seam.MessageOf(anyBasicAuthFilter, r, &basicauthv3.BasicAuthPerRoute{})
	if err != nil {
		return nil, err
	}
	user, why := userAmong(r, message)
	if user != "" || !strings.HasPrefix(r.Header("authorization"), "Basic ") {
		return nil, nil
	}
	return passwordRequired(r, model.FilterAnyOf, "accepts a user name and a password: "+why), nil
}

// refuseNoneOf refuses a request with none of the credentials. It assumes that a token is valid.
func refuseNoneOf(r seam.Request) (*seam.Refusal, error) {
	message, err := seam.MessageOf(anyFilter, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return nil, err
	}
	for name, policy := range message.GetRbac().GetRules().GetPolicies() {
		for _, p := range policy.GetPrincipals()[0].GetNotId().GetOrIds().GetIds() {
			if counts, err := counts(r, p); counts || err != nil {
				return nil, err
			}
		}
		return &seam.Refusal{
			Code: "no_credential", Details: seam.Denied(name), Status: http.StatusForbidden, Body: seam.DeniedBody,
			Message: "a http_filter_anyof requires one of several credentials, and the request has none that it accepts",
		}, nil
	}
	return nil, nil
}

// counts reports whether a principal matches a credential of the request.
func counts(r seam.Request, p *rbacconfigv3.Principal) (bool, error) {
	m := p.GetSourcedMetadata().GetMetadataMatcher()
	switch m.GetFilter() {
	case AnyKeyFilter:
		client, _, err := clientOfKey(r, AnyKeyFilter)
		return client != "" && isClient(client, m.GetValue()), err
	case anyBasicAuthFilter:
		users, err := seam.MessageOf(anyBasicAuthFilter, r, &basicauthv3.BasicAuthPerRoute{})
		user, _ := userAmong(r, users)
		return user != "", err
	}
	place := tokenPlaceOf(r)
	if place == nil || place.find(r) == "" {
		return false, nil
	}
	claims, _ := claimsOf(place.find(r))
	who := caller{Request: r, claims: claims, known: true}
	if p.GetOrIds() != nil { // of one of several issuers
		has, err := who.is(p)
		return has == yes, err
	}
	for i, required := range p.GetAndIds().GetIds() {
		if i == 0 {
			continue // the issuer, which Envoy has compared
		}
		has, err := who.is(required)
		if has != yes || err != nil {
			return false, err
		}
	}
	return true, nil
}

func describeAnyKey(r seam.Request) (string, error) {
	client, _, err := clientOfKey(r, AnyKeyFilter)
	if client == "" {
		return "finds no known API key, and requires none", err
	}
	return "takes the API key as that of " + client, err
}

func describeAnyPassword(r seam.Request) (string, error) {
	message, err := seam.MessageOf(anyBasicAuthFilter, r, &basicauthv3.BasicAuthPerRoute{})
	if user, _ := userAmong(r, message); user != "" {
		return "takes the request as one of " + user, err
	}
	return "finds no user with that password, and requires none", err
}

func describeAny(seam.Request) (string, error) {
	return "allows requests whose client one of the filters before it has identified", nil
}
