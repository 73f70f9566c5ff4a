package credential

import (
	"errors"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// These are the filters for one of several credentials. The key and user filters allow a request without a credential.
// Envoy has that setting only on the listener, so these filters exist in addition to the strict ones. anyFilter checks
// what the others found.
const (
	AnyKeyFilter       = "envoy.filters.http.basic_auth/any_key"
	anyBasicAuthFilter = "envoy.filters.http.basic_auth/any"
	anyFilter          = "envoy.filters.http.rbac/any"
)

// noCredential is the policy that refuses requests without a credential. noPassword is the same where a browser may ask
// its user for a password.
const (
	noCredential = "no_credential"
	noPassword   = "no_credential_or_password"
)

const anyOfKey seam.Key[*AnyOf] = "anyOf"

// AnyOf requires one of several credentials. A nil field is not an alternative. A credential of the request must be
// right.
type AnyOf struct {
	Keys      *KeyAccess `json:"keys,omitempty"`
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
	Tokens    *Tokens    `json:"tokens,omitempty"`
}

func addAnyOf(_ *AnyOf, f *model.AnyOfFilter, at seam.Place) (*AnyOf, error) { return anyOf(f, at) }

// anyOf compiles a filter if all of its parts can be enforced. Without one of them, its credentials would be
// refused for no visible reason.
func anyOf(f *model.AnyOfFilter, at seam.Place) (*AnyOf, error) {
	a := &AnyOf{}
	if f.APIKey != nil {
		a.Keys = keyAccess(f.APIKey)
	}
	if f.BasicAuth != nil {
		var err error
		if a.BasicAuth, err = basicAuthOf(f.BasicAuth, model.BasicAuthInAnyOf+".", at); err != nil {
			return nil, err
		}
	}
	if f.JWT != nil {
		if keysFault(f.JWT) != "" {
			return nil, errors.New("the keys of its tokens are not known")
		}
		var err error
		if a.Tokens, err = tokensOf(f.JWT, model.JWTInAnyOf+".", at); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func noAnyKeys(ir.Listener) []seam.Message {
	return []seam.Message{{Name: AnyKeyFilter, Config: anyKeyList(nil), Discovered: &basicauthv3.BasicAuth{}}}
}

// anyKeyList allows requests without a key.
func anyKeyList(keys []ir.APIKey) *basicauthv3.BasicAuth {
	list := optional(keyList(keys))
	list.AuthenticationHeader = anyKeyHeader
	return list
}

// optional makes b allow requests without a credential.
func optional(b *basicauthv3.BasicAuth) *basicauthv3.BasicAuth {
	b.AllowMissing, b.EmitDynamicMetadata = true, true
	return b
}

func anyKeyResources(l ir.Listener) (seam.Resources, error) {
	if l.TLS != nil {
		return seam.Resources{}, nil
	}
	list, err := KeyList(AnyKeyFilter, l.AnyKeys)
	return seam.Resources{Extensions: []*corev3.TypedExtensionConfig{list}}, err
}

func anyKey(d demands) []seam.Message {
	if d.anyOf == nil || d.anyOf.Keys == nil {
		return nil
	}
	return []seam.Message{{Name: AnyKeyFilter, Config: &routev3.FilterConfig{Config: &anypb.Any{}}}}
}

// noAnyPasswords knows no users.
func noAnyPasswords(ir.Listener) []seam.Message {
	return []seam.Message{{Name: anyBasicAuthFilter, Config: optional(&basicauthv3.BasicAuth{
		Users: seam.Inline(nobodysPassword), ForwardUsernameHeader: clientHeader,
	})}}
}

func anyPassword(d demands) []seam.Message {
	if d.anyOf == nil || d.anyOf.BasicAuth == nil {
		return nil
	}
	return []seam.Message{{Name: anyBasicAuthFilter, Config: usersOf(d.anyOf.BasicAuth)}}
}

// anyCredential refuses a request for which no credential was found. The filters write what they found into metadata
// that nothing else writes.
func anyCredential(d demands) []seam.Message {
	a := d.anyOf
	if a == nil {
		return nil
	}
	name := noCredential
	var found []*rbacconfigv3.Principal
	if a.Keys != nil {
		found = append(found, metadataPrincipal(AnyKeyFilter, []string{seam.User}, clientMatcher(a.Keys)))
	}
	if a.BasicAuth != nil {
		name = noPassword
		found = append(found, metadataPrincipal(anyBasicAuthFilter, []string{seam.User}, &matcherv3.ValueMatcher{
			MatchPattern: &matcherv3.ValueMatcher_PresentMatch{PresentMatch: true},
		}))
	}
	if a.Tokens != nil {
		found = append(found, issuedToken(a.Tokens))
	}
	return []seam.Message{refuseUnless(anyFilter, name, orAll(found))}
}
