package explain

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

const (
	basicAuthFilter = "envoy.filters.http.basic_auth"
	// passwordFilter removes the password.
	passwordFilter = "envoy.filters.http.header_mutation/password"
)

// passBasicAuth reports whether the request has the password of a user, or needs none. If not, it ends with the answer.
func (a *Answer) passBasicAuth(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	f := findFilter(l, basicAuthFilter)
	if f == nil || isOff(f, vh, r) {
		return true, nil
	}
	message, err := messageFor(basicAuthFilter, vh, r, &basicauthv3.BasicAuthPerRoute{})
	if err != nil {
		return false, err
	}
	if _, why := s.userAmong(message); why != "" {
		a.Body = challengeBody(l, "Basic ")
		a.endWith(PasswordRequired, http.StatusUnauthorized, "refused", "a http_filter_basicauth requires a user name and a password: "+why)
		return false, nil
	}
	return true, nil
}

// userAmong returns the user whose correct password the request has. If there is none, why is the reason.
func (s subject) userAmong(users *basicauthv3.BasicAuthPerRoute) (name, why string) {
	text := s.headers.get("authorization")
	rest, isBasic := strings.CutPrefix(text, "Basic ")
	name, password, ok := credentials(rest)
	known := strings.Split(users.GetUsers().GetInlineString(), "\n")
	switch {
	case text == "":
		return "", "the request has no Authorization"
	case !isBasic:
		return "", "Authorization does not begin with Basic"
	case !ok:
		return "", "Authorization is not the base64 of a name, a colon and a password"
	case slices.ContainsFunc(known, func(line string) bool { return strings.HasPrefix(line, name+":") }):
		if !slices.Contains(known, name+":"+model.HashKey([]byte(password))) {
			return "", "the password is wrong"
		}
		return name, ""
	}
	return "", "no user has that name"
}

// credentials decodes Basic credentials like Envoy, which does not require padding.
func credentials(encoded string) (name, secret string, ok bool) {
	for range 2 {
		encoded = strings.TrimSuffix(encoded, "=")
	}
	plain, err := base64.RawStdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return "", "", false
	}
	return strings.Cut(string(plain), ":")
}

func (f *Filter) describeBasicAuth(p passed) error {
	message, err := messageFor(basicAuthFilter, p.vh, p.route, &basicauthv3.BasicAuthPerRoute{})
	if err != nil {
		return err
	}
	name, _ := p.request.userAmong(message)
	if f.Message = "finds no user with that password"; name != "" {
		f.Message = "takes the request as one of " + name + ", as the backend sees in " + model.ClientHeader
	}
	return nil
}

func (f *Filter) describePasswordRemoved(passed) error {
	f.Message = "removes Authorization from the request to the backend"
	return nil
}
