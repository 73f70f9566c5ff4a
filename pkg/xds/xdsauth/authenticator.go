package xdsauth

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// Tokens knows the tokens of Envoys and rate-limit engines.
type Tokens interface {
	// Find returns the token with the hash of its text. It is called at the start of each stream,
	// and answers from memory: if the database is unavailable, access stays as it is. ctx is that
	// of the stream.
	Find(ctx context.Context, hash [sha256.Size]byte) (Token, bool)
}

// Token is an existing token.
type Token struct {
	// Name is the name that it was created with.
	Name string
	// Proxy is the node id that its holder may use; empty for a token of rate-limit engines.
	Proxy string
	// RateLimits says that its holder is a rate-limit engine.
	RateLimits bool
	// Revoked is closed when the token is deleted; it is required.
	Revoked <-chan struct{}
}

// Options of an Authenticator. The zero value accepts nobody.
type Options struct {
	// Open says that a client that presents nothing has full access.
	Open bool
	// Tokens knows the tokens; nil means that there are none.
	Tokens Tokens
}

// Authenticator authenticates clients. Use New.
type Authenticator struct{ opts Options }

// New returns an authenticator.
func New(opts Options) *Authenticator { return &Authenticator{opts} }

// proof is what a client presents: a certificate or a token.
type proof = server.Identity

// Authenticate is the server.Authenticate of a port.
func (a *Authenticator) Authenticate(ctx context.Context) (server.Identity, error) {
	id, err := a.identify(ctx)
	if err == nil {
		proven(ctx)
	}
	return id, err
}

func (a *Authenticator) identify(ctx context.Context) (server.Identity, error) {
	certificate, err := a.certificate(ctx)
	if err != nil {
		return server.Identity{}, err
	}
	token, err := a.token(ctx)
	switch {
	case err != nil:
		return server.Identity{}, err
	case certificate != nil && token != nil:
		return both(ctx, *certificate, *token), nil
	case certificate != nil:
		return *certificate, nil
	case token != nil:
		return *token, nil
	case a.opts.Open:
		return server.Identity{Any: true}, nil
	}
	return server.Identity{}, &server.Refusal{
		Reason: server.ReasonNone,
		Message: "the client does not authenticate: give the Envoy a client certificate or a token (see gatehouse " +
			"bootstrap --help)",
	}
}

// certificate returns what the client's certificate proves; nil if there is none.
func (a *Authenticator) certificate(ctx context.Context) (*proof, error) {
	client, ok := peer.FromContext(ctx)
	if !ok {
		return nil, nil //nolint:nilnil // no proof is no error
	}
	if known, ok := client.AuthInfo.(interface {
		identity(ctx context.Context) (*proof, error)
	}); ok {
		return known.identity(ctx)
	}
	return nil, nil //nolint:nilnil // see above
}

// token returns what the metadata "authorization: Bearer TOKEN" proves; nil if there is none.
func (a *Authenticator) token(ctx context.Context) (*proof, error) {
	values := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(values) == 0 {
		return nil, nil //nolint:nilnil // no proof is no error
	}
	refused := &server.Refusal{
		Reason: server.ReasonToken, Message: "the token is not valid here: it is mistyped or revoked",
	}
	if len(values) > 1 {
		refused.Message = "there is more than one authorization in the metadata"
		return nil, refused
	}
	scheme, text, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		refused.Message = "the authorization in the metadata is not of the form: Bearer TOKEN"
		return nil, refused
	}
	if a.opts.Tokens == nil {
		return nil, refused
	}
	found, ok := a.opts.Tokens.Find(ctx, sha256.Sum256([]byte(text)))
	if !ok {
		return nil, refused
	}
	id := &proof{
		Name: "token " + found.Name, RateLimits: found.RateLimits,
		Ended: found.Revoked, Why: func() string { return "the token was revoked" },
	}
	if found.Proxy != "" {
		id.Proxies = []string{found.Proxy}
	}
	return id, nil
}

// both returns what a client with two proofs may do: only what both allow. A certificate that
// names neither proxies nor engines, such as one of a mesh, only adds that the client has it.
func both(ctx context.Context, certificate, token proof) server.Identity {
	id := token
	id.Name = certificate.Name + " and " + token.Name
	if len(certificate.Proxies) > 0 || certificate.RateLimits {
		id.Proxies = slices.DeleteFunc(slices.Clone(token.Proxies), func(name string) bool {
			return !slices.Contains(certificate.Proxies, name)
		})
		id.RateLimits = token.RateLimits && certificate.RateLimits
	}
	ended := make(chan struct{})
	var why string
	go func() {
		select {
		case <-certificate.Ended:
			why = certificate.Why()
		case <-token.Ended:
			why = token.Why()
		case <-ctx.Done():
			return
		}
		close(ended)
	}()
	id.Ended, id.Why = ended, func() string { return why }
	return id
}
