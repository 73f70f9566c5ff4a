package xdsauth

import (
	"crypto/x509"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/trust/expiry"
)

// longestNotice is how long before its end a certificate is reported; less for one of a short lifetime.
const longestNotice = 14 * 24 * time.Hour

// Ends returns when each part of the files ends.
func (t *TLS) Ends() (list []expiry.End) {
	m := t.current()
	leaf := m.pair.Leaf
	list = append(list, expiry.End{
		Kind: "certificate", What: "the certificate", File: t.opts.Cert, At: leaf.NotAfter, Notice: noticeOf(leaf),
		Effect: "Envoys that connect refuse it",
	})
	for _, a := range m.authorities {
		list = append(list, expiry.End{
			Kind: "client_ca", What: "the client authority " + a.Subject.String(), File: t.opts.ClientCA,
			At: a.NotAfter, Notice: noticeOf(a), Effect: "Envoys with certificates of this authority are refused",
		})
	}
	for _, r := range m.revoked {
		if !r.NextUpdate.IsZero() {
			list = append(list, expiry.End{
				Kind: "client_crl", What: "the revocation list of " + r.Issuer.String(), File: t.opts.ClientCRL,
				At: r.NextUpdate, Effect: "it stays in use, without what was revoked since: write the next one",
			})
		}
	}
	return list
}

// noticeOf returns how long before its end a certificate is reported.
func noticeOf(cert *x509.Certificate) time.Duration {
	return min(longestNotice, cert.NotAfter.Sub(cert.NotBefore)/4)
}
