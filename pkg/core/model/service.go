package model

import (
	"cmp"
	"fmt"
)

// Service is a host name and the routes under it, or a port whose connections go to upstreams.
// +example={service_name: shop, fqdn: shop.example.com}
type Service struct {
	ID   int64  `json:"service_id"`
	Name string `json:"service_name" form:"Service_Name,required"`
	// The host: a name, "*.suffix", or "*" for any. Two services of one proxy cannot have the same host. That of mode
	// tcp or udp is "*", since connections name no host.
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
	// Empty means that clients need none. Clients present it over HTTPS, plain HTTP then gets 403, and fqdn must be a
	// host name; or to a service of mode tcp with a certificate.
	ClientCACertificate string `json:"client_validation_cacertificate" form:"Client_validation_cacertificate"`
	// Who provides the certificate: you (manual), by attaching a secret, or the gateway (auto), which orders one for fqdn
	// from the authority of a globalconfig_acme and renews it; auto_dns proves the host by a record in DNS, as auto does for
	// "*.suffix". An attached certificate for the host is used in its place.
	// Empty means manual, or auto where the global config has every_service.
	// +schema=CertificateFrom
	Certificate string `json:"certificate" form:"Certificate"`
	// Exempts the service from the login of a globalconfig_oauth. The service's own login filter still applies.
	Public bool `json:"public" form:"Public"`
	// What the service is for: http for requests, tcp for connections to a port, tls for TLS connections that name the
	// host, which are passed on without being decrypted, udp for datagrams to a port. A service of a mode other than
	// http has one route, whose prefix is /.
	// +schema=Mode
	Mode string `json:"mode" form:"Mode"`
	// The port of a service of mode tcp or udp, and of mode tls; 0 is the proxy's HTTPS port, beside its services of
	// mode http. A service of mode http is on the ports of its proxy, and has 0.
	Port int `json:"port" form:"Port" range:"0-65535"`
	// Names of filters of a proxy that do not apply to the service. A name that no filter has is ignored.
	ExemptFilters Tags `json:"exempt_filters" form:"Exempt_filters"`
	Tags          Tags `json:"tags" form:"tags"`
	CreateTS      Time `json:"create_ts"`
	UpdateTS      Time `json:"update_ts"`
}

// What becomes of a request over plain HTTP to a service that has a certificate.
const (
	HTTPSBoth     = "both"     // it is served
	HTTPSRedirect = "redirect" // the client is sent to https
	HTTPSOnly     = "only"     // 403
)

// Who provides the certificate of a service.
const (
	CertificateManual = "manual"
	CertificateAuto   = "auto"
	// CertificateAutoDNS is auto, proven by a record in DNS.
	CertificateAutoDNS = "auto_dns"
)

// What a service is for.
const (
	ModeHTTP = "http" // requests
	ModeTCP  = "tcp"  // connections to a port
	ModeTLS  = "tls"  // TLS connections by the name that they request, not decrypted
	ModeUDP  = "udp"  // datagrams to a port
)

// NewService returns a service with the defaults of rest-api.md.
func NewService() *Service {
	return &Service{HTTPS: HTTPSBoth, Mode: ModeHTTP}
}

// IsL4 reports whether the service is for connections or datagrams, and not for requests.
func (s *Service) IsL4() bool { return s.Mode != ModeHTTP && s.Mode != "" }

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
	case s.ClientCACertificate != "" && s.Mode == ModeTCP:
		return fmt.Sprintf("service %q requests client certificates and has no certificate itself: it lets nobody in; "+
			"attach a secret with a certificate and its key", s.Name)
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
		if s.FQDN == "*" && !s.IsL4() {
			v.add("Client_validation_cacertificate", "requires a host name in fqdn: "+
				"the gateway requests client certificates by the host name that a client connects to")
		}
	}
	s.validateCertificate(&v)
	if len(s.ExemptFilters) > 32 {
		v.add("Exempt_filters", "has %d names; at most 32 are allowed", len(s.ExemptFilters))
	}
	for _, name := range s.ExemptFilters {
		v.name("Exempt_filters", name, false)
	}
	s.validateMode(&v)
	v.tags(s.Tags)
	return v.finish(s)
}

func (s *Service) validateCertificate(v *validator) {
	v.oneOf("Certificate", cmp.Or(s.Certificate, CertificateManual), []string{CertificateManual, CertificateAuto, CertificateAutoDNS})
	if why := s.NotAutomatic(); s.IsAutomatic() && why != "" {
		v.add("Certificate", "%s %s", s.Certificate, why)
	}
}

func (s *Service) validateMode(v *validator) {
	v.oneOf("Mode", s.Mode, []string{ModeHTTP, ModeTCP, ModeTLS, ModeUDP})
	switch s.Mode {
	case ModeHTTP:
		if s.Port != 0 {
			v.add("Port", "is for mode tcp, tls and udp: a service of mode http is on the ports of its proxy (Http_port, Https_port)")
		}
		return
	case ModeTCP, ModeUDP:
		if s.Port == 0 {
			v.add("Port", "is required for mode %s", s.Mode)
		}
		if s.FQDN != "*" {
			v.add("fqdn", `must be "*" for mode %s: its connections name no host`, s.Mode)
		}
	case ModeTLS:
		if s.FQDN == "*" {
			v.add("fqdn", `must be a host name or "*.suffix" for mode tls, which finds the service by the name in the TLS handshake`)
		}
	default:
		return
	}
	const only = "is for mode http: a service of mode %s has no requests"
	if s.HTTPS != HTTPSBoth {
		v.add("Https", only, s.Mode)
	}
	if s.HSTSSeconds != 0 {
		v.add("Hsts_seconds", only, s.Mode)
	}
	if s.ClientCACertificate != "" && s.Mode != ModeTCP {
		v.add("Client_validation_cacertificate", "is for mode http and tcp: a service of mode %s decrypts nothing", s.Mode)
	}
	if s.Public {
		v.add("Public", only, s.Mode)
	}
}
