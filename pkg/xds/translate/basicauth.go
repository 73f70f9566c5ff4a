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
	// BasicAuthFilter is the name of the filter that requires a user name and a password.
	BasicAuthFilter = "envoy.filters.http.basic_auth"
	// PasswordFilter is the name of the filter that removes the password before the backend. It has its own row, since
	// a route may keep what its host removes.
	PasswordFilter = "envoy.filters.http.header_mutation/password"
)

// nobodysPassword is a list with one user, since a list must not be empty. Nobody can be that user: no text is known
// whose SHA-1 is all zeros.
const nobodysPassword = "-:{SHA}AAAAAAAAAAAAAAAAAAAAAAAAAAA="

// basicAuthFilter refuses every request. It names the user to the upstream in the same header as the client of an API
// key. A user name has no slash; a client's name has one.
func basicAuthFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: BasicAuthFilter, config: &basicauthv3.BasicAuth{Users: inline(nobodysPassword), ForwardUsernameHeader: clientHeader, EmitDynamicMetadata: true}}}
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

// passwordOfHost removes the password on all routes without a setting of their own. Public routes are among them: a
// browser repeats a password on the host's other paths.
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

// browserChallenge is a challenge for which browsers ask their user.
const browserChallenge = `Basic realm="gateway", charset="UTF-8"`

// ofCredentials is the condition that a filter for users or keys refused a request.
const ofCredentials = details + ".endsWith('_for_basic_auth')"

// credentialReplies turn refusals of keys, of passwords and of one of several credentials into responses. A host has
// one realm. Envoy's own realm contains the path, so browsers would ask again for each path.
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

// challenge is a 401 that names the scheme to use.
func challenge(filter *accesslogv3.AccessLogFilter, scheme, body string) *hcmv3.ResponseMapper {
	return &hcmv3.ResponseMapper{
		Filter: filter, StatusCode: u32(http.StatusUnauthorized), Body: inline(body), HeadersToAdd: []*corev3.HeaderValueOption{setHeader("www-authenticate", scheme)},
	}
}
