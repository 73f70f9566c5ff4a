package xdsauth

import (
	"crypto/x509"
	"time"
)

// longestNotice is how long before its end a certificate is reported; less for one of a short lifetime.
const longestNotice = 14 * 24 * time.Hour

// End says when a part of the files ends.
type End struct {
	// Kind is certificate, client_ca or client_crl; What names the part in a sentence, and File is where it is.
	Kind, What, File string
	At               time.Time
	// Notice is how long before At it is to be reported.
	Notice time.Duration
	// Effect says what happens then.
	Effect string
}

// Ends returns when each part of the files ends.
func (t *TLS) Ends() (list []End) {
	m := t.current()
	list = append(list, End{"certificate", "the certificate", t.opts.Cert, m.pair.Leaf.NotAfter, noticeOf(m.pair.Leaf), "Envoys that connect refuse it"})
	for _, a := range m.authorities {
		list = append(list, End{
			"client_ca", "the client authority " + a.Subject.String(), t.opts.ClientCA, a.NotAfter, noticeOf(a), "Envoys with certificates of this authority are refused",
		})
	}
	for _, r := range m.revoked {
		if !r.NextUpdate.IsZero() {
			list = append(list, End{
				"client_crl", "the revocation list of " + r.Issuer.String(), t.opts.ClientCRL, r.NextUpdate, 0, "it stays in use, without what was revoked since: write the next one",
			})
		}
	}
	return list
}

// noticeOf returns how long before its end a certificate is reported.
func noticeOf(cert *x509.Certificate) time.Duration {
	return min(longestNotice, cert.NotAfter.Sub(cert.NotBefore)/4)
}
