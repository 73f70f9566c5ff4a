package model

import (
	"net/netip"
	"strings"
)

// Automatic says that the gateway orders the certificate of a service itself. It is not a part of the configuration: it
// has no revision, and is in no document.
type Automatic struct {
	// Host is the name that it was ordered for.
	Host string
	// Secret has the certificate and its key; nil before there is one.
	Secret *Secret
	// Placeholder says that the gateway has signed the certificate itself, until the authority issues one.
	Placeholder bool
	// Challenge is what the authority asks for while an order runs; nil otherwise.
	Challenge *Challenge
}

// Challenge is a request of an authority by which it sees that a host is the gateway's (RFC 8555 section 8.3).
type Challenge struct {
	// Token is the last segment of the path, Answer the body of the answer.
	Token, Answer string
}

// ChallengePath is where authorities ask for the answers of challenges.
const ChallengePath = "/.well-known/acme-challenge/"

// automaticPrefix begins the names of the secrets of automatic certificates: no stored secret has a colon.
const automaticPrefix = "automatic:"

// AutomaticHost returns the host of an automatic certificate from the name of its secret.
func AutomaticHost(secret string) (host string, is bool) {
	return strings.CutPrefix(secret, automaticPrefix)
}

// AutomaticSecret returns the secret of the automatic certificate of a host. The key may be sealed.
func AutomaticSecret(host, cert, key string) *Secret {
	s := &Secret{Name: automaticPrefix + host, Type: SecretTLS, Cert: cert, PrivateKey: key}
	if leaf := s.Leaf(); leaf != nil {
		s.Fingerprint, s.Subject, s.NotAfter = fingerprint(leaf.Raw), leaf.Subject.String(), new(At(leaf.NotAfter))
	}
	return s
}

// KeyPlace is the place that the private key is sealed for.
func (s *Secret) KeyPlace() string { return s.place("key") }

// IsAutomatic reports whether the service itself says that the gateway orders its certificate.
func (s *Service) IsAutomatic() bool {
	return s.Certificate == CertificateAuto || s.Certificate == CertificateAutoDNS
}

// ProvesByDNS reports whether its host can or shall be proven by a record in DNS only.
func (s *Service) ProvesByDNS() bool {
	return s.Certificate == CertificateAutoDNS || strings.HasPrefix(s.FQDN, "*")
}

// NotAutomatic says why no certificate can be ordered for the host of a service; empty means that one can.
func (s *Service) NotAutomatic() string {
	_, notIP := netip.ParseAddr(strings.Trim(s.FQDN, "[]"))
	switch {
	case s.IsL4():
		return "is for mode http: the authority asks for a path"
	case s.FQDN == "*":
		return `requires a host name or "*.suffix" in fqdn: no authority issues certificates for every name`
	case notIP == nil:
		return "requires a host name in fqdn, and not an address"
	}
	return ""
}

// ByHand reports whether one of the secrets has a certificate for the host of a service: it is used in place of an
// automatic one.
func ByHand(s *Service, secrets []*Secret) bool {
	for _, secret := range secrets {
		if secret.IsPair() && secret.NotFor(s.FQDN) == "" {
			return true
		}
	}
	return false
}

// addAutomatic adds the automatic certificate to a service.
func (c *Config) addAutomatic(t *ServiceTree) {
	a := c.automatic[t.Service.Key()]
	if a == nil || t.Service.Certificate == CertificateManual || !strings.EqualFold(a.Host, t.Service.FQDN) {
		return
	}
	t.Automatic = a
	if a.Secret != nil && !ByHand(t.Service, t.Secrets) {
		t.Secrets = append(t.Secrets, a.Secret)
		sortByName(t.Secrets)
	}
}
