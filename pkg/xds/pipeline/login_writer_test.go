package pipeline_test

import (
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// opened opens what the writer seals: a key is derived from its place, and any other text
// is what follows the mark.
func opened(sealed, place string) (string, error) {
	text := strings.TrimPrefix(sealed, "sealed:v1:")
	switch {
	case strings.HasSuffix(place, "/key"):
		return keyOf(sealed, place)
	case text == "lost":
		return "", fmt.Errorf("%s was sealed with another key", place)
	}
	return text, nil
}

// login is the configuration that a filter and a global config share.
func (w *writer) login(clientSecret any) map[string]any {
	l := map[string]any{"client_id": w.name("client", 2), "client_secret": clientSecret}
	if w.rng.IntN(3) == 0 {
		l["upstream"] = w.name("u", 6)
	}
	if w.rng.IntN(2) == 0 {
		l["scopes"] = []string{"email", w.pick("openid", "offline_access")}
	}
	if w.rng.IntN(8) == 0 {
		l["access_token_cookie"] = false
	}
	return l
}

// provider sets where an identity provider is, and where it sends browsers back to.
func (w *writer) provider(l map[string]any) (provider map[string]any, redirect, path string) {
	provider, path = map[string]any{}, w.pick("/callback", "/back")
	if w.rng.IntN(3) > 0 {
		provider["authorization_endpoint"], provider["token_endpoint"] = "https://idp.test/auth", w.pick("https", "https", "http")+"://"+w.name("idp", 2)+".test/token"
	}
	if len(provider) == 0 || w.rng.IntN(3) == 0 {
		provider["issuer"] = "https://" + w.name("idp", 2) + ".test"
		if w.rng.IntN(2) == 0 {
			l["claim_headers"], l["require"] = map[string]string{"x-user": "email"}, map[string][]string{"groups": {"a", "b"}}
		}
	}
	return provider, w.pick("", "", "https://host0.test", "https://login.test") + path, path
}

func (w *writer) oidc() *model.Filter {
	secret := any("sealed:v1:" + w.pick("one", "two"))
	if w.rng.IntN(2) == 0 {
		secret = map[string]string{"secret": w.name("v", 3)}
	}
	l := w.login(secret)
	provider, redirect, _ := w.provider(l)
	for key, value := range provider {
		l[key] = value
	}
	l["redirect_uri"], l["cookie_secret"], l["logout_uri"] = redirect, w.name("v", 3), w.pick("", "/logout")
	return &model.Filter{Type: model.FilterOIDC, Config: w.json(l)}
}

func (w *writer) oauth() *model.GlobalConfig {
	l := w.login(w.name("v", 3))
	l["provider"], l["redirect_url"], l["redirect_path_matcher"] = w.provider(l)
	l["hmac_secret"] = w.name("v", 3)
	all := map[string]any{"openid_connect": l}
	if _, named := l["upstream"]; !named && w.rng.IntN(3) == 0 {
		all["external_oauth_service"] = map[string]any{"name": "192.0.2.7", "port": 443, "protocol": w.pick("tls", "tcp")}
	}
	return &model.GlobalConfig{Type: model.GlobalConfigOAuth, Config: w.json(all)}
}

// json is a configuration. One of twelve cannot be read.
func (w *writer) json(v map[string]any) model.JSON {
	if w.rng.IntN(12) == 0 {
		v["colour"] = "red"
	}
	text, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	return model.JSON(text)
}

// learn returns what identity providers publish for some of the filters and global configs.
func (w *writer) learn() map[model.Key]model.Providers {
	said := map[model.Key]model.Providers{}
	for i := range 6 {
		key := []model.Key{model.FilterKey(fmt.Sprint("f", i/2)), model.GlobalConfigKey(fmt.Sprint("g", i/2))}[i%2]
		var l *model.Login
		switch o := w.objects[key].(type) {
		case *model.Filter:
			l = model.LoginOf(o.Parse().Spec)
		case *model.GlobalConfig:
			l = model.LoginOf(o.Parse().Spec)
		}
		if w.rng.IntN(6) > 0 {
			continue
		}
		w.learned[key] = nil
		if l != nil && w.rng.IntN(8) > 0 {
			w.learned[key] = model.Providers{{
				Source: l.Source(), AuthorizationEndpoint: "https://idp.test/said", TokenEndpoint: "https://" + w.name("said", 2) + ".test/token",
				EndSessionEndpoint: w.pick("", "https://idp.test/end"), JWKS: w.pick("", `{"keys":[]}`, `{"keys": []}`, `{"keys":[]} `),
			}}
		}
		said[key] = w.learned[key]
	}
	return said
}

// loginsOf counts the logins that hosts require, by the object that requires them.
func loginsOf(g *ir.Gateway, count map[string]int) {
	for _, h := range g.Hosts {
		if login := credential.LoginOf(h); login != nil {
			kind, _, _ := strings.Cut(login.Name, "/")
			count[kind]++
			if login.Token != nil {
				count[kind+" verified"]++
			}
		}
	}
}
