package logintest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
)

// askAuthorization sends the request to which the gateway redirects browsers. A
// provider refuses an unknown client or redirect URI before it asks who the user is.
func (r *run) askAuthorization(ctx context.Context) {
	const name = "authorization"
	if r.request == nil {
		return
	}
	reply, err := r.Client.Page(ctx, r.request.String(),
		r.via.Beside(r.compiled.TokenEndpoint, r.compiled.AuthorizationEndpoint))
	if err != nil {
		r.unclear(name, "", "the authorization endpoint %s %s; the browsers of users call it, from their own network",
			r.compiled.AuthorizationEndpoint, err)
		return
	}
	code, description := refusalIn(reply)
	switch {
	case code != "":
		r.fail(name, r.authorizationAdvice(code, description), "the identity provider refuses the request of the gateway: %s",
			describeError(code, description))
	case reply.Location != nil:
		reply.Location.RawQuery = ""
		r.ok(name, "the identity provider sends users on to %s", plain(reply.Location.String()))
	case reply.Status >= http.StatusBadRequest:
		r.fail(name, r.authorizationAdvice("", ""), "the identity provider refuses the request of the gateway with status %d",
			reply.Status)
	default:
		r.ok(name, "the identity provider answers with a page (%d)", reply.Status)
	}
}

func (r *run) authorizationAdvice(code, description string) string {
	uri := "register " + r.redirectURI() + " at the identity provider, exactly so, as a redirect URI of client " +
		strconv.Quote(r.compiled.ClientID)
	switch {
	case strings.Contains(code+description, "redirect"):
		return uri
	case code == "invalid_client":
		return "write the client_id that the identity provider has assigned"
	case code == "invalid_scope":
		return "remove from scopes those that the identity provider does not have, or allow them for the client there"
	case code == "unauthorized_client", code == "unsupported_response_type":
		return "allow the client the authorization code flow at the identity provider"
	}
	return "check client_id, and " + uri
}

// trySecret sends an invalid code: a provider checks the secret first.
func (r *run) trySecret(ctx context.Context) {
	const name = "secret"
	l := r.compiled
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {"gatehouse-login-test-" + rand.Text()},
		"redirect_uri": {r.redirectURI()}, "code_verifier": {rand.Text() + rand.Text()},
	}
	user, password := "", ""
	if l.BasicAuth {
		user, password = l.ClientID, l.ClientSecret
	} else {
		form.Set("client_id", l.ClientID)
		form.Set("client_secret", l.ClientSecret)
	}
	reply, err := r.Client.Token(ctx, l.TokenEndpoint, form, user, password, r.via)
	switch {
	case oidc.IsRefused(err):
		r.unclear(name, "a login shows it", "the token endpoint %s %s", l.TokenEndpoint, err)
		return
	case err != nil:
		r.fail(name, "", "the token endpoint %s %s", l.TokenEndpoint, err)
		return
	}
	code, description := refusalIn(reply)
	switch {
	case code == "invalid_grant":
		r.ok(name, "the token endpoint accepts the client with its secret, and refuses an invented code, as it must")
	case code == "invalid_client", reply.Status == http.StatusUnauthorized:
		advice := "write the client_secret that the identity provider has assigned for client " + strconv.Quote(l.ClientID)
		if !l.BasicAuth {
			advice += `; a provider that accepts it only in the header needs "token_endpoint_auth_method": "client_secret_basic"`
		} else {
			advice += `; a provider that accepts it only in the body needs "token_endpoint_auth_method": "client_secret_post"`
		}
		r.fail(name, advice, "the token endpoint refuses the client: %s", describeError(code, description))
	case code == "unauthorized_client", code == "unsupported_grant_type":
		r.fail(name, "allow the client the authorization code flow at the identity provider",
			"the token endpoint refuses the client: %s", describeError(code, description))
	case reply.Location != nil, reply.Status == http.StatusNotFound, reply.Status == http.StatusMethodNotAllowed:
		r.fail(name, "write the token_endpoint of the identity provider",
			"there is no token endpoint at %s: the answer is %d", l.TokenEndpoint, reply.Status)
	case reply.Status < http.StatusBadRequest:
		r.fail(name, "write the token_endpoint of the identity provider",
			"the token_endpoint %s accepts an invented code, and answers %d", l.TokenEndpoint, reply.Status)
	default:
		r.unclear(name, "a login shows it", "the token endpoint answers %d to an invented code, "+
			"which says nothing about the secret: %s", reply.Status, describeError(code, description))
	}
}

// errorCode matches the errors of RFC 6749 and of OpenID Connect, and providers' terms
// for a redirect URI that is not registered, in a page.
var errorCode = regexp.MustCompile(`\b(invalid_client|invalid_redirect_uri|redirect_uri_mismatch|unauthorized_client|unsupported_response_type|invalid_scope|invalid_request)\b`)

// refusalIn returns the error in an answer of a provider; empty if it has none.
func refusalIn(reply oidc.Reply) (code, description string) {
	if reply.Location != nil {
		q := reply.Location.Query()
		return plain(q.Get("error")), plain(q.Get("error_description"))
	}
	if reply.Status < http.StatusBadRequest {
		return "", ""
	}
	var body struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(reply.Body, &body) == nil && body.Error != "" {
		return plain(body.Error), plain(body.Description)
	}
	return errorCode.FindString(string(reply.Body)), ""
}

func describeError(code, description string) string {
	switch {
	case code == "":
		return "it does not say why"
	case description == "":
		return code
	}
	return code + " (" + description + ")"
}

// plain returns a text of the provider for use in a sentence.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 200)]
}
