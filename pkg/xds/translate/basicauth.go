package translate

import (
	"net/http"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

const (
	// BasicAuthFilter is the name of the filter that asks for a user and a password.
	BasicAuthFilter = "envoy.filters.http.basic_auth"
	// PasswordFilter is the name of the one that keeps the password from backends. It has a row of its own,
	// since a route may keep what its host removes.
	PasswordFilter = "envoy.filters.http.header_mutation/password"
)

// nobodysPassword is a list of users, which must not be empty, with one that nobody can be: no text
// is known whose SHA-1 is all zeros.
const nobodysPassword = "-:{SHA}AAAAAAAAAAAAAAAAAAAAAAAAAAA="

// basicAuthFilter lets nobody in. The upstream is told who it is in the header that tells it the holder of a key: a
// name of a user has no slash, that of a holder has one.
func basicAuthFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: BasicAuthFilter, config: &basicauthv3.BasicAuth{Users: inline(nobodysPassword), ForwardUsernameHeader: clientHeader}}}
}

func basicAuthOfHost(h *ir.Host) ([]filterConfig, error) { return askForPassword(h.BasicAuth), nil }

func basicAuthOfRoute(r *ir.Route) ([]filterConfig, error) {
	if r.BasicAuth == nil {
		return exemptRoute(BasicAuthFilter)(r)
	}
	return askForPassword(r.BasicAuth), nil
}

func askForPassword(b *ir.BasicAuth) []filterConfig {
	if b == nil {
		return nil
	}
	return []filterConfig{{name: BasicAuthFilter, config: usersOf(b)}}
}

func usersOf(b *ir.BasicAuth) *basicauthv3.BasicAuthPerRoute {
	var users []string
	for _, u := range b.Users {
		users = append(users, u.Name+":"+u.Hash)
	}
	return &basicauthv3.BasicAuthPerRoute{Users: inline(strings.Join(users, "\n"))}
}

func passwordFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: PasswordFilter, config: &headermutationv3.HeaderMutation{}}}
}

// passwordOfHost takes the password away on all routes that say nothing of it, public ones too: a browser sends it
// along wherever it has sent it before.
func passwordOfHost(h *ir.Host) ([]filterConfig, error) {
	if b := h.AllBasicAuth(); b == nil || b.Forward {
		return nil, nil
	}
	return removePassword(), nil
}

func passwordOfRoute(r *ir.Route) ([]filterConfig, error) {
	switch b := r.AllBasicAuth(); {
	case b != nil && !b.Forward:
		return removePassword(), nil
	case r.SaysWho():
		return []filterConfig{{name: PasswordFilter, config: &routev3.FilterConfig{Disabled: true}}}, nil
	}
	return nil, nil
}

func removePassword() []filterConfig {
	return []filterConfig{requestMutations(PasswordFilter, []*mutationv3.HeaderMutation{removeHeader("authorization")})}
}

// browserChallenge is one for which browsers ask their user.
const browserChallenge = `Basic realm="gateway", charset="UTF-8"`

// ofCredentials is the condition that a filter of users, or of keys, has refused a request.
const ofCredentials = details + ".endsWith('_for_basic_auth')"

// credentialReplies are what becomes of the refusals of keys, of passwords and of one of several. One realm is for all of
// a host: that of Envoy has the path, and browsers would ask again for each.
func credentialReplies(l ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	keys, err := keyReplies(l)
	if err != nil {
		return nil, err
	}
	refused, err := celFilter(ofCredentials)
	if err != nil {
		return nil, err
	}
	several, err := anyReplies(l)
	return append(append(keys, challenge(refused, browserChallenge, "a valid user name and password are needed\n")), several...), err
}

// challenge is a 401 that says how to come back.
func challenge(filter *accesslogv3.AccessLogFilter, scheme, body string) *hcmv3.ResponseMapper {
	return &hcmv3.ResponseMapper{
		Filter: filter, StatusCode: u32(http.StatusUnauthorized), Body: inline(body), HeadersToAdd: []*corev3.HeaderValueOption{setHeader("www-authenticate", scheme)},
	}
}
