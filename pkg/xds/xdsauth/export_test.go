package xdsauth

import (
	"context"
	"crypto/x509"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// Both is both.
func Both(ctx context.Context, certificate, token server.Identity) server.Identity {
	return both(ctx, certificate, token)
}

// IdentityOf is what a client with a certificate may do.
func IdentityOf(cert *x509.Certificate) (server.Identity, error) {
	n, err := namesOf(cert)
	return n.identity(), err
}

// LookEvery changes how often Run looks for changes.
func (s *TokenSet) LookEvery(d time.Duration) { s.every = d }
