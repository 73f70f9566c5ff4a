package credential

import (
	"cmp"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// StandIn returns a configuration with the answer of its identity provider, and objects that stand in for those that it
// names, so that it can be checked by itself.
func StandIn(spec model.Spec) (model.Spec, []model.Object) {
	if model.LoginOf(spec) == nil {
		var all model.Providers
		for _, s := range model.SourcesOf(spec) {
			all = append(all, &model.Provider{Source: s, JWKS: `{"keys":[]}`})
		}
		spec = model.Learned(spec, all)
	}
	users, _ := spec.(*model.BasicAuthFilter)
	if f, ok := spec.(*model.AnyOfFilter); ok {
		users = f.BasicAuth
	}
	var named []model.Object
	secret := func(name string) {
		if name != "" {
			named = append(named, &model.Secret{Name: name, Value: model.SealedPrefix})
		}
	}
	tokens, _ := spec.(*model.JWTFilter)
	if f, ok := spec.(*model.AnyOfFilter); ok {
		tokens = f.JWT
	}
	if tokens != nil {
		for _, t := range tokens.Issuers() {
			secret(t.HMACKey.Secret)
		}
	}
	if users != nil {
		for _, u := range users.Users {
			secret(u.Password.Secret)
		}
	}
	l := model.LoginOf(spec)
	if l == nil {
		return spec, named
	}
	secret(l.ClientSecret.Secret)
	secret(l.CookieSecret)
	base := cmp.Or(l.TokenEndpoint, l.AuthorizationEndpoint, l.Issuer)
	if l.Upstream != "" {
		u := model.NewUpstream()
		u.Name, u.IP, u.Port = l.Upstream, "192.0.2.1", 1
		if strings.HasPrefix(strings.ToLower(base), "https:") {
			u.Protocol = "tls"
		}
		named = append(named, u)
	}
	return model.Learned(spec, model.Providers{{
		Source: l.Source(), AuthorizationEndpoint: base, TokenEndpoint: base, JWKS: `{"keys":[]}`,
	}}), named
}
