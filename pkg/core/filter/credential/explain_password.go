package credential

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func refusePassword(r seam.Request) (*seam.Refusal, error) {
	message, err := seam.MessageOf(basicAuthFilter, r, &basicauthv3.BasicAuthPerRoute{})
	if err != nil {
		return nil, err
	}
	_, why := userAmong(r, message)
	if why == "" {
		return nil, nil
	}
	return passwordRequired(r, model.FilterBasicAuth, "requires a user name and a password: "+why), nil
}

// passwordRequired is the refusal of a request by a filter of a type, which does something with passwords.
func passwordRequired(r seam.Request, filterType, does string) *seam.Refusal {
	return &seam.Refusal{
		Code: "password_required", Type: filterType, Status: http.StatusUnauthorized, Body: challengeBody(r, "Basic "),
		Message: "a " + filterType + " " + does,
	}
}

// userAmong returns the user whose correct password the request has. If there is none, why is the reason.
func userAmong(r seam.Request, users *basicauthv3.BasicAuthPerRoute) (name, why string) {
	text := r.Header("authorization")
	rest, isBasic := strings.CutPrefix(text, "Basic ")
	name, password, ok := decodeBasic(rest)
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

func describePassword(r seam.Request) (string, error) {
	message, err := seam.MessageOf(basicAuthFilter, r, &basicauthv3.BasicAuthPerRoute{})
	if err != nil {
		return "", err
	}
	if name, _ := userAmong(r, message); name != "" {
		return "takes the request as one of " + name + ", as the backend sees in " + clientHeader, nil
	}
	return "finds no user with that password", nil
}

func describePasswordRemoved(seam.Request) (string, error) {
	return "removes Authorization from the request to the backend", nil
}

// isOn reports whether a filter that is off on the listener is on for a request.
func isOn(r seam.Request, name string) bool {
	return !seam.IsOff(&hcmv3.HttpFilter{Name: name, Disabled: true}, r.VirtualHost, r.Route)
}

// decodeBasic decodes Basic credentials like Envoy, which does not require padding.
func decodeBasic(encoded string) (name, secret string, ok bool) {
	for range 2 {
		encoded = strings.TrimSuffix(encoded, "=")
	}
	plain, err := base64.RawStdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return "", "", false
	}
	return strings.Cut(string(plain), ":")
}

// challengeBody returns the body of the listener's challenge with a scheme.
func challengeBody(r seam.Request, scheme string) string {
	for _, m := range r.Listener.GetLocalReplyConfig().GetMappers() {
		for _, h := range m.GetHeadersToAdd() {
			if strings.HasPrefix(h.GetHeader().GetValue(), scheme) {
				return m.GetBody().GetInlineString()
			}
		}
	}
	return ""
}
