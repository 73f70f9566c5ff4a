package model

import "fmt"

// Service is a host name and the routes under it.
// +example={service_name: shop, fqdn: shop.example.com}
type Service struct {
	ID   int64  `json:"service_id"`
	Name string `json:"service_name" form:"Service_Name,required"`
	// The host: a name, "*.suffix", or "*" for any. Two services of one proxy cannot have the same host.
	// +minLength=1
	// +maxLength=255
	FQDN string `json:"fqdn" form:"fqdn,required"`
	// HTTPS says what plain HTTP is for: HTTPSBoth, HTTPSRedirect or HTTPSOnly.
	// +schema=HTTPS
	HTTPS string `json:"https" form:"Https"`
	// How long a browser that used HTTPS uses only HTTPS for the host: max-age of Strict-Transport-Security. 0 means
	// that the header is not sent.
	HSTSSeconds int `json:"hsts_seconds" form:"Hsts_seconds" range:"0-315360000"` // no preload list asks for ten years
	// Adds includeSubDomains: the header then applies to all subdomains of the host too. Requires Hsts_seconds.
	HSTSSubdomains bool `json:"hsts_subdomains" form:"Hsts_subdomains"`
	// Name of the secret with the certificate authorities. One of them must have signed the certificate of a client.
	// Empty means that clients need none. Clients present it over HTTPS; plain HTTP then gets 403. Requires a host
	// name in fqdn.
	ClientCACertificate string `json:"client_validation_cacertificate" form:"Client_validation_cacertificate"`
	// Exempts the service from the login of a globalconfig_oauth. The service's own login filter still applies.
	Public   bool `json:"public" form:"Public"`
	Tags     Tags `json:"tags" form:"tags"`
	CreateTS Time `json:"create_ts"`
	UpdateTS Time `json:"update_ts"`
}

// What becomes of a request over plain HTTP to a service that has a certificate.
const (
	HTTPSBoth     = "both"     // it is served
	HTTPSRedirect = "redirect" // the client is sent to https
	HTTPSOnly     = "only"     // 403
)

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
		return fmt.Sprintf("service %q requests client certificates and has no certificate for %s itself: "+
			"it answers 403 over plain HTTP, and no client reaches it over HTTPS; "+
			"attach a secret with a certificate and its key",
			s.Name, s.FQDN)
	case s.HTTPS == HTTPSRedirect:
		return fmt.Sprintf("service %q redirects plain HTTP to HTTPS and has no certificate for %s: "+
			"unless a proxy in front has one, clients cannot follow the redirect; "+
			"attach a secret with a certificate and its key",
			s.Name, s.FQDN)
	case s.HTTPS == HTTPSOnly:
		return fmt.Sprintf("service %q answers 403 over plain HTTP and has no certificate for %s: "+
			"unless a proxy in front has one, no client reaches it; attach a secret with a certificate and its key",
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
	if s.HSTSSubdomains && s.HSTSSeconds == 0 {
		v.add("Hsts_subdomains", "requires Hsts_seconds: without it the header is not sent")
	}
	if s.ClientCACertificate != "" {
		v.name("Client_validation_cacertificate", s.ClientCACertificate, false)
		if s.FQDN == "*" {
			v.add("Client_validation_cacertificate", "requires a host name in fqdn: "+
				"the gateway requests client certificates by the host name that a client connects to")
		}
	}
	v.tags(s.Tags)
	return v.finish(s)
}
