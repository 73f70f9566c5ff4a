package explain

import (
	"net/http"
	"strings"

	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// These are the filters for one of several credentials, in their order.
const (
	anyKeyFilter       = "envoy.filters.http.basic_auth/any_key"
	anyBasicAuthFilter = "envoy.filters.http.basic_auth/any"
	anyFilter          = "envoy.filters.http.rbac/any"
)

// credentialsOf are the valid credentials of a request.
type credentialsOf struct{ client, user string }

// passCredentials reports whether the request has the API key, or one of several credentials, that it needs. If not, it
// ends with the answer.
func (a *Answer) passCredentials(have State, s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	if passes, err := a.passKey(have, s, l, vh, r); !passes {
		a.FilterType = model.FilterAPIKey
		return false, err
	}
	passes, err := a.passAnyOf(have, s, l, vh, r)
	if !passes {
		a.FilterType = model.FilterAnyOf
	}
	return passes, err
}

// passAnyOf reports whether the request has one of several credentials, and none that is wrong. If not, it ends with
// the answer. It assumes that a token is valid.
func (a *Answer) passAnyOf(have State, s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	on := func(name string) bool {
		f := findFilter(l, name)
		return f != nil && !isOff(f, vh, r)
	}
	if !on(anyFilter) {
		return true, nil
	}
	var found credentialsOf
	if on(anyKeyFilter) {
		client, why, err := s.clientOfKey(have, anyKeyFilter, vh, r)
		if err != nil {
			return false, err
		}
		if header, _ := keyHeaderOf(anyKeyFilter, vh, r); client == "" && s.headers[header] != nil {
			a.Body = challengeBody(l, "ApiKey")
			a.endWith(KeyRequired, http.StatusUnauthorized, "refused", "a http_filter_anyof accepts an API key: "+why)
			return false, nil
		}
		found.client = client
	}
	if on(anyBasicAuthFilter) {
		message, err := messageFor(anyBasicAuthFilter, vh, r, &basicauthv3.BasicAuthPerRoute{})
		if err != nil {
			return false, err
		}
		user, why := s.userAmong(message)
		if user == "" && strings.HasPrefix(s.headers.get("authorization"), "Basic ") {
			a.Body = challengeBody(l, "Basic ")
			a.endWith(PasswordRequired, http.StatusUnauthorized, "refused", "a http_filter_anyof accepts a user name and a password: "+why)
			return false, nil
		}
		found.user = user
	}
	return a.passFound(s, found, l, vh, r)
}

// passFound reports whether one of the credentials is accepted.
func (a *Answer) passFound(s subject, found credentialsOf, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	message, err := messageFor(anyFilter, vh, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return false, err
	}
	for name, policy := range message.GetRbac().GetRules().GetPolicies() {
		for _, p := range policy.GetPrincipals()[0].GetNotId().GetOrIds().GetIds() {
			counts, err := s.counts(p, found, vh, r)
			if counts || err != nil {
				return counts, err
			}
		}
		return false, a.endRefused(l, name, NoCredential, "a http_filter_anyof requires one of several credentials, and the request has none that it accepts")
	}
	return true, nil
}

// counts reports whether a principal matches a credential of the request.
func (s subject) counts(p *rbacconfigv3.Principal, found credentialsOf, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	m := p.GetSourcedMetadata().GetMetadataMatcher()
	switch m.GetFilter() {
	case anyKeyFilter:
		return found.client != "" && isClient(found.client, m.GetValue()), nil
	case anyBasicAuthFilter:
		return found.user != "", nil
	}
	place := tokenPlaceOf(vh, r)
	if place == nil || place.find(s) == "" {
		return false, nil
	}
	claims, _ := claimsOf(place.find(s))
	for i, required := range p.GetAndIds().GetIds() {
		if i == 0 {
			continue // the issuer, which Envoy has compared
		}
		has, err := caller{s, claims, true}.is(required)
		if has != yes || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (f *Filter) describeAnyKey(p passed) error {
	client, _, err := p.request.clientOfKey(p.have, anyKeyFilter, p.vh, p.route)
	if f.Message = "finds no known API key, and requires none"; client != "" {
		f.Message = "takes the API key as that of " + client
	}
	return err
}

func (f *Filter) describeAnyBasicAuth(p passed) error {
	message, err := messageFor(anyBasicAuthFilter, p.vh, p.route, &basicauthv3.BasicAuthPerRoute{})
	user, _ := p.request.userAmong(message)
	if f.Message = "finds no user with that password, and requires none"; user != "" {
		f.Message = "takes the request as one of " + user
	}
	return err
}

func (f *Filter) describeAnyOf(passed) error {
	f.Message = "allows requests whose client one of the filters before it has identified"
	return nil
}
