package translate

import (
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// BasicAuthFilter is the name of the filter that asks for a user and a password.
const BasicAuthFilter = "envoy.filters.http.basic_auth"

// nobodysPassword is a list of users, which must not be empty, with one that nobody can be: no text
// is known whose SHA-1 is all zeros.
const nobodysPassword = "-:{SHA}AAAAAAAAAAAAAAAAAAAAAAAAAAA="

// basicAuthFilter lets nobody in.
func basicAuthFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: BasicAuthFilter, config: &basicauthv3.BasicAuth{Users: inline(nobodysPassword)}}}
}
