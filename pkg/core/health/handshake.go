package health

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The reasons that only a handshake of Gatehouse itself reveals; Envoy counts failures.
const (
	Expired           = "certificate_expired"
	Authority         = "certificate_authority"
	SelfSigned        = "certificate_self_signed"
	OtherName         = "certificate_name"
	ClientCertificate = "client_certificate"
	NoTLS             = "no_tls"
	NoHTTP2           = "no_http2"
)

// Handshake is the result of a TLS handshake with an upstream, in which nothing was
// verified. The zero value has no result.
type Handshake struct {
	// NotTLS says that the server does not use TLS.
	NotTLS bool
	// Refused says that none of the offered protocols was accepted. Protocol is the
	// accepted one; empty means that the upstream does not choose.
	Refused  bool
	Protocol string
	// Chain is the upstream's certificate, followed by the others that it sends; nil
	// means that it sent none.
	Chain []*x509.Certificate
	// AsksForCertificate says that it requests a client certificate.
	AsksForCertificate bool
}

// Expected is what a handshake with an upstream should show.
type Expected struct {
	HTTP2 bool
	// Verified says that its certificate is verified: it must be signed by one of Roots,
	// which RootsName describes, and contain Name.
	Verified        bool
	Roots           *x509.CertPool
	RootsName, Name string
	// AltNames are names of which it must contain one, in place of Name; empty means Name.
	AltNames []string
	// ClientCertificate is the secret with the client certificate; empty means none.
	ClientCertificate string
}

// Finding is why a handshake cannot succeed. The zero value means that nothing was
// found.
type Finding struct{ Reason, Message string }

// Find compares a handshake with what is expected.
func (h Handshake) Find(want Expected, now time.Time) Finding {
	if h.NotTLS {
		return Finding{NoTLS, "the port does not speak TLS: use Upstream_protocol http or h2c, or another port"}
	}
	if want.Verified && len(h.Chain) > 0 {
		if f := verify(h.Chain, want, now); f.Reason != "" {
			return f
		}
	}
	switch {
	case want.HTTP2 && (h.Refused || len(h.Chain) > 0 && h.Protocol != "h2"):
		return Finding{
			NoHTTP2, "it does not offer HTTP/2 in the TLS handshake (ALPN): use Upstream_protocol tls, or enable it there",
		}
	case h.AsksForCertificate && want.ClientCertificate == "":
		return Finding{
			ClientCertificate,
			"it requests a client certificate, and none is presented: name a secret with a pair in Upstream_client_certificate",
		}
	case h.AsksForCertificate:
		return Finding{ClientCertificate, fmt.Sprintf(
			"it requests a client certificate, and probably does not accept that of secret %q: "+
				"another authority may have signed it, or it has expired", want.ClientCertificate)}
	}
	return Finding{}
}

func verify(chain []*x509.Certificate, want Expected, now time.Time) Finding {
	leaf, between := chain[0], x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	const day = "2006-01-02 15:04:05 UTC"
	switch {
	case now.After(leaf.NotAfter):
		return Finding{
			Expired, fmt.Sprintf("its certificate expired on %s: renew it at the upstream", leaf.NotAfter.UTC().Format(day)),
		}
	case now.Before(leaf.NotBefore):
		return Finding{
			Expired,
			fmt.Sprintf("its certificate is not valid before %s: replace it at the upstream, or check the clocks",
				leaf.NotBefore.UTC().Format(day)),
		}
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: want.Roots, Intermediates: between, CurrentTime: now})
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return Finding{
			Expired, "the certificate of an authority that signed its certificate has expired: renew the chain at the upstream",
		}
	case errors.As(err, &invalid):
		return Finding{Certificate, "its certificate is not valid: " + err.Error()}
	case leaf.CheckSignature(leaf.SignatureAlgorithm, leaf.RawTBSCertificate, leaf.Signature) == nil:
		return Finding{SelfSigned, fmt.Sprintf(
			"its certificate is self-signed, and is not among %s: "+
				"store it as a secret and name that in Upstream_validation_cacertificate, or have it signed", want.RootsName)}
	default:
		return Finding{Authority, fmt.Sprintf(
			"its certificate is issued by %q, which does not lead to %s: "+
				"name a secret with its authority in Upstream_validation_cacertificate, or complete the chain at the upstream",
			leaf.Issuer, want.RootsName)}
	}
	if want.names(leaf) {
		return Finding{}
	}
	names, field := slices.Clone(leaf.DNSNames), "Upstream_validation_subjectname"
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	for _, uri := range leaf.URIs {
		names = append(names, uri.String())
	}
	if len(want.AltNames) > 0 {
		want.Name, field = strings.Join(want.AltNames, " or "), "Upstream_validation_altnames"
	}
	if len(names) == 0 {
		return Finding{
			OtherName, "its certificate names no host: renew it with a subject alternative name (SAN) " + want.Name,
		}
	}
	const most = 5
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return Finding{OtherName, fmt.Sprintf(
		"its certificate is for %s, not for %s: set %s to one of its names, or renew it", text, want.Name, field)}
}

// names reports whether a certificate has the name, or one of several.
func (e Expected) names(leaf *x509.Certificate) bool {
	if len(e.AltNames) == 0 {
		return leaf.VerifyHostname(e.Name) == nil
	}
	return slices.ContainsFunc(e.AltNames, func(name string) bool {
		return leaf.VerifyHostname(name) == nil || slices.ContainsFunc(leaf.URIs, func(u *url.URL) bool { return u.String() == name })
	})
}

// NeedsHandshake reports whether a handshake can reveal more than is known.
func (f Facts) NeedsHandshake(c Condition) bool {
	return c.State.Bad() && f.Own != nil && (f.Protocol == "tls" || f.Protocol == "h2") && isUnclear(c.Reason)
}

// isUnclear reports whether the cause behind a reason may be in TLS.
func isUnclear(reason string) bool {
	switch reason {
	case TLSError, Certificate, NotConnected, ProtocolError, Closed, NoAnswer, "":
		return true
	}
	return false
}

// explains reports whether the finding explains a reason.
func (f Finding) explains(reason string) bool { return f.Reason != "" && isUnclear(reason) }
