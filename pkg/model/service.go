package model

import "fmt"

// Service is a host name and the routes under it.
type Service struct {
	ID   int64  `json:"service_id"`
	Name string `json:"service_name"`
	// FQDN is the host that the service matches, without regard to case: an
	// exact name, "*.suffix", or "*" for any host.
	FQDN string `json:"fqdn"`
	// HTTPS says what plain HTTP is for: HTTPSBoth, HTTPSRedirect or HTTPSOnly.
	HTTPS string `json:"https"`
	// HSTSSeconds is for how long a browser that came over HTTPS keeps away from plain
	// HTTP (RFC 6797); 0 means that it is not told.
	HSTSSeconds int `json:"hsts_seconds"`
	// ClientCACertificate names the secret with the certificate authorities, one of
	// which must have signed the certificate of a client. Empty: clients need none.
	ClientCACertificate string `json:"client_validation_cacertificate"`
	// Public says that a globalconfig_oauth of its proxies does not hold for it.
	Public   bool `json:"public"`
	Tags     Tags `json:"tags"`
	CreateTS Time `json:"create_ts"`
	UpdateTS Time `json:"update_ts"`
}

// What becomes of a request over plain HTTP to a service that has a certificate.
const (
	HTTPSBoth     = "both"     // it is served
	HTTPSRedirect = "redirect" // the client is sent to https
	HTTPSOnly     = "only"     // 403
)

// maxHSTSSeconds is ten years, more than any preload list asks for.
const maxHSTSSeconds = 315_360_000

// NewService returns a service with the defaults of rest-api.md.
func NewService() *Service { return &Service{HTTPS: HTTPSBoth} }

// Key implements Object.
func (s *Service) Key() Key { return ServiceKey(s.Name) }

// Meta implements Object.
func (s *Service) Meta() Meta { return Meta{&s.ID, &s.CreateTS, &s.UpdateTS} }

// TagList implements Tagged.
func (s *Service) TagList() *Tags { return &s.Tags }

// Names implements Namer: the secret with the authorities of clients.
func (s *Service) Names() []Key {
	if s.ClientCACertificate == "" {
		return nil
	}
	return []Key{SecretKey(s.ClientCACertificate)}
}

// NeedsCertificate says in a sentence what it means that the service has no
// certificate; empty if that is as it should be.
func (s *Service) NeedsCertificate() string {
	switch {
	case s.ClientCACertificate != "":
		return fmt.Sprintf("service %q requests client certificates and has no certificate for %s itself: it answers 403 over plain HTTP, and no client reaches it over HTTPS; attach a secret with a certificate and its key",
			s.Name, s.FQDN)
	case s.HTTPS == HTTPSRedirect:
		return fmt.Sprintf("service %q redirects plain HTTP to HTTPS and has no certificate for %s: unless a proxy in front has one, clients cannot follow the redirect; attach a secret with a certificate and its key",
			s.Name, s.FQDN)
	case s.HTTPS == HTTPSOnly:
		return fmt.Sprintf("service %q answers 403 over plain HTTP and has no certificate for %s: unless a proxy in front has one, no client reaches it; attach a secret with a certificate and its key",
			s.Name, s.FQDN)
	}
	return ""
}

// Validate implements Object.
func (s *Service) Validate() []FieldError {
	var v validator
	v.name("Service_Name", s.Name, true)
	v.fqdn("fqdn", s.FQDN)
	v.oneOf("Https", s.HTTPS, []string{HTTPSBoth, HTTPSRedirect, HTTPSOnly})
	v.checkRange("Hsts_seconds", s.HSTSSeconds, 0, maxHSTSSeconds)
	if s.ClientCACertificate != "" {
		v.name("Client_validation_cacertificate", s.ClientCACertificate, false)
		if s.FQDN == "*" {
			v.add("Client_validation_cacertificate", "requires a host name in fqdn: the gateway requests client certificates by the host name that a client connects to")
		}
	}
	v.tags(s.Tags)
	return v.errs
}
