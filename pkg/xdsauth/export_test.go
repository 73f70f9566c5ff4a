package xdsauth

import "crypto/x509"

// NamesOf is namesOf.
func NamesOf(cert *x509.Certificate) (proxies []string, rateLimits bool, err error) {
	n, err := namesOf(cert)
	return n.proxies, n.rateLimits, err
}
