package precheck

import (
	"fmt"
	"net/url"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// loginOf returns the login of a filter or global config; nil if there is none.
func loginOf(obj model.Object) *model.Login {
	switch o := obj.(type) {
	case *model.Filter:
		return model.LoginOf(o.Parse().Spec)
	case *model.GlobalConfig:
		return model.LoginOf(o.Parse().Spec)
	}
	return nil
}

// providerOf returns the upstream derived from a login's token endpoint, if the login names
// no upstream; nil if the object is not a login, or if the endpoint must first be learned
// from the provider.
func providerOf(obj model.Object) *model.Upstream {
	l := loginOf(obj)
	if l == nil || l.Upstream != "" {
		return nil
	}
	endpoint, err := url.Parse(l.TokenEndpoint)
	if err != nil || endpoint.Hostname() == "" {
		return nil
	}
	return l.DerivedUpstream(endpoint)
}

// namedText is a field of a login that names a secret with a value.
type namedText struct{ field, secret string }

// textsOf returns the fields of a login that name secrets.
func textsOf(of model.Key, l *model.Login) []namedText {
	if l == nil {
		return nil
	}
	if of.Kind == model.KindGlobalConfig {
		return []namedText{
			{"config.openid_connect.client_secret", l.ClientSecret.Secret},
			{"config.openid_connect.hmac_secret", l.CookieSecret},
		}
	}
	return []namedText{
		{"Filter_config.client_secret", l.ClientSecret.Secret}, {"Filter_config.cookie_secret", l.CookieSecret},
	}
}

// checkLogin refuses an identity provider at an address that upstreams may not have, and
// secrets without a value that a login needs, if a change causes this. The service would
// answer 503.
func (c checker) checkLogin(w store.Written) error {
	if u := providerOf(w.After); u != nil {
		if err := c.address(w.Key.Path(), u); err != nil {
			return err
		}
	}
	if c.rules.Restoring {
		return nil
	}
	if s, ok := w.After.(*model.Secret); ok {
		return c.checkText(s, w.Before)
	}
	was := textsOf(w.Key, loginOf(w.Before))
	for i, f := range textsOf(w.Key, loginOf(w.After)) {
		if f.secret == "" || was != nil && was[i] == f {
			continue
		}
		s, found, err := find[*model.Secret](c.reader, model.SecretKey(f.secret))
		if err != nil {
			return err
		}
		if found && noText(s) != "" {
			return wrongText(w.Key.Path(), f.field, w.Key, f, s)
		}
	}
	return nil
}

// checkText refuses to remove the value of a secret that logins name.
func (c checker) checkText(s *model.Secret, before model.Object) error {
	was, _ := before.(*model.Secret)
	if was == nil || noText(s) == "" || noText(was) != "" {
		return nil
	}
	for _, kind := range []model.Kind{model.KindFilter, model.KindGlobalConfig} {
		users, err := c.reader.List(store.Query{Kind: kind, To: []model.Key{s.Key()}})
		if err != nil {
			return err
		}
		for _, u := range users {
			for _, f := range textsOf(u.Key(), loginOf(u)) {
				if f.secret == s.Name {
					return wrongText(s.Key().Path(), "Secret_value", u.Key(), f, s)
				}
			}
		}
	}
	return nil
}

// noText returns why a secret has no value; empty if it has one.
func noText(s *model.Secret) string {
	switch {
	case s.Cert != "" || s.PrivateKey != "":
		return "is a certificate or a key of one"
	case s.Value == "":
		return "has no value"
	}
	return ""
}

// wrongText refuses a write with a path, for the field sent.
func wrongText(path, sent string, of model.Key, f namedText, s *model.Secret) error {
	message := fmt.Sprintf("names secret %q, which %s", s.Name, noText(s))
	long := fmt.Sprintf("%s of %s %s", f.field, of.Path(), message)
	if sent != f.field {
		message = long
	}
	return &model.Error{
		Kind: model.Unworkable, Path: path, Message: path + " cannot become a working configuration: " + long,
		Hint: "name a secret that was created with Secret_value", Fields: []model.FieldError{{Field: sent, Message: message}},
	}
}
