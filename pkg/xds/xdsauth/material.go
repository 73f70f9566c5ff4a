package xdsauth

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// material is the contents of the files. It is immutable.
type material struct {
	pair tls.Certificate
	// clients are the authorities of client certificates; nil if clients have none.
	clients     *x509.CertPool
	authorities []*x509.Certificate
	revoked     revocations
}

// parseAuthorities reads the certificates of a bundle.
func parseAuthorities(data []byte) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	rest := data
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("the file has a %s among the certificates", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d cannot be read: %w", len(list)+1, err)
		}
		if !cert.IsCA {
			return nil, fmt.Errorf("certificate %d, of %s, is not that of an authority", len(list)+1, cert.Subject)
		}
		list = append(list, cert)
	}
	if bytes.Contains(rest, []byte("-----BEGIN ")) {
		return nil, errors.New("the PEM of the file is damaged")
	}
	if len(list) == 0 {
		return nil, errors.New("the file has no certificate in PEM")
	}
	return list, nil
}

func poolOf(list []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, cert := range list {
		pool.AddCert(cert)
	}
	return pool
}

// verify checks the certificates that a client presented, its own first. They are valid until the returned time, if
// nothing changes.
func (m *material) verify(shown []*x509.Certificate, now time.Time) (until time.Time, err error) {
	leaf := shown[0]
	between := poolOf(shown[1:])
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots: m.clients, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	switch {
	case err != nil:
	case leaf.IsCA:
		err = errors.New("it is the certificate of an authority, not of a client")
	case !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth):
		err = errors.New("it lacks the extended key usage clientAuth")
	case leaf.KeyUsage != 0 && leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		err = errors.New("it has a key usage without digitalSignature")
	}
	if err != nil {
		return time.Time{}, refuseCertificate(leaf, err)
	}
	var revoked *x509.Certificate
	for _, chain := range chains {
		if cert, found := m.revoked.revokes(chain); found {
			revoked = cert
			continue
		}
		if end := endOf(chain); end.After(until) {
			until = end
		}
	}
	if until.IsZero() {
		return time.Time{}, &server.Refusal{
			Reason: server.ReasonRevoked, Message: "the client certificate is revoked",
			Detail: fmt.Sprintf("serial number %x of %s, shown by %s", revoked.SerialNumber, revoked.Issuer, describe(leaf)),
		}
	}
	return until, nil
}

// endOf returns when the first certificate of a chain expires.
func endOf(chain []*x509.Certificate) time.Time {
	end := chain[0].NotAfter
	for _, cert := range chain[1:] {
		if cert.NotAfter.Before(end) {
			end = cert.NotAfter
		}
	}
	return end
}

// refuseCertificate returns the refusal of a certificate.
func refuseCertificate(leaf *x509.Certificate, err error) *server.Refusal {
	refusal := &server.Refusal{
		Reason: server.ReasonCertificate, Message: "the client certificate is not valid here: " + err.Error(),
		Detail: describe(leaf),
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		refusal.Reason = server.ReasonExpired
		refusal.Message = "the client certificate has expired, or is not valid yet: " + err.Error()
	}
	return refusal
}

// describe says whose certificate it is, for the log.
func describe(leaf *x509.Certificate) string {
	n, err := namesOf(leaf)
	if err != nil || n.san == "" {
		return fmt.Sprintf("a certificate without a name, serial number %x of %s", leaf.SerialNumber, leaf.Issuer)
	}
	return fmt.Sprintf("the certificate of %s, serial number %x of %s", n.san, leaf.SerialNumber, leaf.Issuer)
}
