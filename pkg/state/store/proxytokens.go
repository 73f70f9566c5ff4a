package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// ProxyToken lets its holder connect to the xDS port as an Envoy of one proxy, or as the
// rate-limit engine. Like a Token it is not part of the configuration. It stays when its
// proxy is deleted: the Envoys must still learn that nothing is left.
type ProxyToken struct {
	// Proxy is the name of the proxy. Empty, which no proxy is named, means the
	// rate-limit engine.
	Proxy string
	// Name is unique among the tokens of the proxy.
	Name string
	// Hash is HashToken of the token itself, which is not stored.
	Hash [sha256.Size]byte
	// CreateTS is when it was created.
	CreateTS model.Time
	// LastUsedTS is when a connection last used it, to about a minute; zero means never.
	LastUsedTS model.Time
}

// ProxyTokens keeps the tokens of the xDS port.
type ProxyTokens interface {
	// CreateProxyToken stores a new, valid token. A taken name is an Exists error, a
	// proxy that does not exist a NotFound error.
	CreateProxyToken(ctx context.Context, t ProxyToken) error
	// ProxyTokens lists the tokens of a proxy by name; those of the rate-limit engine if
	// proxy is empty.
	ProxyTokens(ctx context.Context, proxy string) ([]ProxyToken, error)
	// DeleteProxyToken deletes a token, or returns a NotFound error.
	DeleteProxyToken(ctx context.Context, proxy, name string) error
	// ProxyTokensSince returns all tokens with their version, or nothing if version is
	// the current one: then the cost does not depend on their number. The version is a
	// random text that each CreateProxyToken and DeleteProxyToken changes; empty means
	// that there has never been a token.
	ProxyTokensSince(ctx context.Context, version string) (all []ProxyToken, now string, err error)
	// TouchProxyTokens records that the tokens with these hashes were used. A deleted
	// token, and a time before the recorded one, change nothing.
	TouchProxyTokens(ctx context.Context, hashes [][sha256.Size]byte, at time.Time) error
	// HasProxyTokens reports whether there are any.
	HasProxyTokens(ctx context.Context) (bool, error)
}

// MakeProxyToken returns the text of a new token of a proxy: 256 random bits.
func MakeProxyToken() string { return makeToken(proxyTokenPrefix) }

// IsProxyToken reports whether MakeProxyToken could have returned the text.
func IsProxyToken(text string) bool { return isToken(proxyTokenPrefix, text) }

// Path returns the token's path in the REST API.
func (t ProxyToken) Path() string {
	if t.Proxy == "" {
		return "/ratelimit/token/" + t.Name
	}
	return model.ProxyKey(t.Proxy).Path() + "/token/" + t.Name
}

// Text names the token in messages.
func (t ProxyToken) Text() string {
	if t.Proxy == "" {
		return fmt.Sprintf("token %q of the rate-limit engine", t.Name)
	}
	return fmt.Sprintf("token %q of proxy %q", t.Name, t.Proxy)
}

// NotFound returns the error for a token that does not exist.
func (t ProxyToken) NotFound() error {
	return &model.Error{Kind: model.NotFound, Path: t.Path(), Message: t.Text() + " does not exist"}
}

// Validate returns what is wrong with the name, by the field of POST
// /proxy/{proxy}/token.
func (t ProxyToken) Validate() []model.FieldError { return validateTokenName(t.Name) }
