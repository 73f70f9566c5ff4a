package rest

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// The tokens of the xDS port. The path names no proxy for those of the rate-limit
// engine, so that the name of the proxy is empty: store.ProxyToken has it so.

// listProxyTokens returns those of a proxy, also of one that is gone.
func (s *server) listProxyTokens(ctx context.Context, n names) ([]shownToken, error) {
	tokens, err := s.proxyTokens.ProxyTokens(ctx, n[model.KindProxy])
	if err == nil && len(tokens) == 0 {
		err = s.knownProxy(ctx, n)
	}
	shown := make([]shownToken, len(tokens))
	for i, t := range tokens {
		shown[i] = shownToken{Name: t.Name, Proxy: t.Proxy, CreateTS: t.CreateTS, LastUsed: lastUsed(t.LastUsedTS)}
	}
	return shown, err
}

// knownProxy returns a NotFound error if a path leads through a proxy that does not
// exist.
func (s *server) knownProxy(ctx context.Context, n names) error {
	if _, ok := n[model.KindProxy]; !ok {
		return nil
	}
	return s.read(ctx, func(r store.Reader) error {
		_, err := r.Get(model.ProxyKey(n[model.KindProxy]))
		return err
	})
}

func (s *server) createProxyToken(c *gin.Context, n names, sent []form.Value) (made madeToken, path string, err error) {
	t := store.ProxyToken{Proxy: n[model.KindProxy], CreateTS: model.At(s.now())}
	errs := bindToken(sent, []tokenField{textField("Token_name", &t.Name)}, &t)
	if err := invalidFields(errs); err != nil {
		return madeToken{}, "", err
	}
	text := store.MakeProxyToken()
	t.Hash = store.HashToken(text)
	if err := s.proxyTokens.CreateProxyToken(c.Request.Context(), t); err != nil {
		return madeToken{}, "", err
	}
	s.proxyTokensChanged(c.Request.Context())
	return madeToken{Name: t.Name, Proxy: t.Proxy, Token: text}, t.Path(), nil
}

func (s *server) deleteProxyToken(ctx context.Context, n names) error {
	err := s.proxyTokens.DeleteProxyToken(ctx, n[model.KindProxy], n[kindToken])
	if model.IsKind(err, model.NotFound) {
		if _, unknown := s.listProxyTokens(ctx, n); unknown != nil {
			return unknown
		}
	}
	if err == nil {
		s.proxyTokensChanged(ctx)
	}
	return err
}

func noProxyToken(n names) error {
	return store.ProxyToken{Proxy: n[model.KindProxy], Name: n[kindToken]}.NotFound()
}
