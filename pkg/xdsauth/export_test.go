package xdsauth

import (
	"crypto/x509"
	"time"
)

// NamesOf is namesOf.
func NamesOf(cert *x509.Certificate) (proxies []string, rateLimits bool, err error) {
	n, err := namesOf(cert)
	return n.proxies, n.rateLimits, err
}

// LookEvery changes how often Run looks for changes.
func (s *TokenSet) LookEvery(d time.Duration) { s.every = d }
