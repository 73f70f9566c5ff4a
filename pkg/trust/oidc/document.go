package oidc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// wellKnown is the path of a discovery document below the issuer.
const wellKnown = "/.well-known/openid-configuration"

// object is a JSON object. Its names are case-sensitive: Go's decoding into a struct would accept
// Issuer for issuer.
type object map[string]json.RawMessage

func readObject(text []byte) (object, error) {
	var o object
	if err := json.Unmarshal(text, &o); err != nil || o == nil {
		if bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) {
			return nil, errors.New("is HTML or XML in place of JSON: open it in a browser, the URL may be wrong")
		}
		return nil, errors.New("is not a JSON object: open it in a browser, the URL may be wrong")
	}
	return o, nil
}

// text returns a text; empty if there is none with this name.
func (o object) text(name string) string { return model.TextOf(o[name]) }

// documentURL returns the URL of an issuer's discovery document (section 4 of the specification).
// It keeps the issuer's own path.
func documentURL(issuer string) (string, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", fmt.Errorf("the issuer %s is not a URL without query and fragment: write it as the provider does",
			quote(issuer))
	}
	return strings.TrimSuffix(issuer, "/") + wellKnown, nil
}

// readDocument reads a discovery document, which must be that of the issuer.
func readDocument(text []byte, issuer string) (a Answer, err error) {
	p := &a.Provider
	doc, err := readObject(text)
	if err != nil {
		return a, err
	}
	switch named := doc.text("issuer"); {
	case named == "":
		return a, errors.New("names no issuer: it is not a discovery document of OpenID Connect")
	case named != issuer:
		return a, fmt.Errorf("names the issuer %s, not %s: write the one that it names, if it is the provider that you mean",
			quote(named), quote(issuer))
	}
	for _, f := range []struct {
		name string
		to   *string
	}{
		{"authorization_endpoint", &p.AuthorizationEndpoint}, {"token_endpoint", &p.TokenEndpoint},
		{"end_session_endpoint", &p.EndSessionEndpoint}, {"jwks_uri", &p.JWKSURI},
	} {
		s := doc.text(f.name)
		if s == "" {
			continue
		}
		if why := unusable(s, issuer); why != "" {
			return a, fmt.Errorf("has the %s %s, which %s: change it at the provider", f.name, quote(s), why)
		}
		*f.to = s
	}
	// Without the list, a token endpoint takes client_secret_basic (section 3).
	var methods []string
	_ = json.Unmarshal(doc["token_endpoint_auth_methods_supported"], &methods) // likewise if it is no list of texts
	a.PostsSecret = slices.Contains(methods, "client_secret_post") && !slices.Contains(methods, "client_secret_basic")
	a.NamesItself = string(doc["authorization_response_iss_parameter_supported"]) == "true"
	return a, nil
}

// unusable says why a URL of a discovery document cannot be used; empty if it can.
func unusable(s, issuer string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "" || len(s) > 2048 ||
		strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "is not a URL"
	case u.User != nil || strings.Contains(s, "#"):
		return "has a user or a fragment (#)"
	case u.Scheme == "https", u.Scheme == "http" && strings.HasPrefix(issuer, "http:"):
		if err := model.CheckLoginURL(s); err != nil { // what Envoy reads
			return err.Error()
		}
		return ""
	}
	return "is not https"
}

// quote returns a text of a provider for a message: shortened, and quoted if it is not plain ASCII.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Sprintf("%q", s)
	}
	return s
}
