package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// explain turns the error of a connection into what is wrong, and what to do.
func (c *Client) explain(err error, u *url.URL, via *Via) error {
	host := u.Host
	if via != nil {
		host = fmt.Sprintf("%s (upstream %q, port %d)", via.Upstream.IP, via.Upstream.Name, via.Upstream.Port)
	}
	var refused refusal
	var dns *net.DNSError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("did not arrive within %s: check whether this machine reaches %s", c.opts.Timeout, host)
	case errors.As(err, &dns):
		return fmt.Errorf("cannot be fetched: the name %s does not resolve here: correct it, or check the resolver", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("cannot be fetched: %s refuses connections: is the provider running there?", host)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("cannot be fetched: %s does not speak TLS: is the port right?", host)
	}
	if why := badCertificate(err, via); why != "" {
		return fmt.Errorf("cannot be trusted: the certificate of %s %s", host, why)
	}
	// Go has no type for the alerts that the other side sends.
	if text := err.Error(); via != nil && strings.HasSuffix(text, "tls: certificate required") ||
		strings.HasSuffix(text, "tls: bad certificate") {
		return fmt.Errorf("cannot be fetched: %s requires a client certificate, and got none or one that it refuses: "+
			"name a secret in Upstream_client_certificate of the upstream of the login", host)
	}
	// The cause: url.Error would repeat the URL.
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	return fmt.Errorf("cannot be read from %s: %s", host, plain(err.Error()))
}

// badCertificate says why a certificate is refused; empty if it is not.
func badCertificate(err error, via *Via) string {
	by, name := "the authorities of the system", "write a host that it is for"
	attach := "put the authority into a secret, and name it in Upstream_validation_cacertificate of an upstream of the " +
		"login, or start with --upstream-ca-file"
	if via != nil {
		name = fmt.Sprintf("name one that it is for in Upstream_validation_subjectname of upstream %q", via.Upstream.Name)
		attach = fmt.Sprintf("put the authority into a secret, "+
			"and name it in Upstream_validation_cacertificate of upstream %q", via.Upstream.Name)
		if ca := via.Upstream.ValidationCACertificate; ca != "" {
			by = fmt.Sprintf("the authorities of secret %q", ca)
		}
	}
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		return fmt.Sprintf("is not signed by any of %s: %s", by, attach)
	case errors.As(err, &hostname):
		return fmt.Sprintf("is not for %s, but for %s: %s, or renew it", hostname.Host, namesOf(hostname.Certificate), name)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("is valid from %s to %s: renew it at the provider, or set this machine's clock",
			day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter))
	case errors.As(err, &invalid):
		return fmt.Sprintf("is refused: %s: renew it at the provider", plain(invalid.Error()))
	}
	return ""
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }

// namesOf lists the first names of a certificate.
func namesOf(cert *x509.Certificate) string {
	const most = 5
	names := cert.DNSNames
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no name"
	}
	if len(names) > most {
		names = append(names[:most:most], "others")
	}
	return quote(strings.Join(names, ","))
}

// plain returns a text of a library, which the other side may have influenced, for use
// in a sentence.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 200)]
}
