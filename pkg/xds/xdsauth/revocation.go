package xdsauth

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// revocations are certificate revocation lists (RFC 5280, 5).
type revocations []revocation

type revocation struct {
	*x509.RevocationList
	serials map[string]bool
	// by is the authority that signed it.
	by *x509.Certificate
}

// parseRevocations reads the lists of a file: PEM, any number of them, or one in DER. It refuses a list that none of
// the authorities has signed: it would revoke nothing.
func parseRevocations(data []byte, authorities []*x509.Certificate) (revocations, error) {
	ders, err := splitRevocations(data)
	if err != nil {
		return nil, err
	}
	var all revocations
	for i, der := range ders {
		list, err := x509.ParseRevocationList(der)
		if err != nil {
			return nil, fmt.Errorf("revocation list %d cannot be read: %w", i+1, err)
		}
		if err := isComplete(list); err != nil {
			return nil, fmt.Errorf("revocation list %d, of %s: %w", i+1, list.Issuer, err)
		}
		by, err := signerOf(list, authorities)
		if err != nil {
			return nil, fmt.Errorf("revocation list %d, of %s: %w", i+1, list.Issuer, err)
		}
		r := revocation{list, map[string]bool{}, by}
		for _, e := range list.RevokedCertificateEntries {
			r.serials[serialKey(e.SerialNumber)] = true
		}
		all = append(all, r)
	}
	return all, nil
}

func splitRevocations(data []byte) (ders [][]byte, err error) {
	if !bytes.Contains(data, []byte("-----BEGIN ")) {
		return [][]byte{data}, nil
	}
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "X509 CRL" {
			return nil, fmt.Errorf("the file has a %s among the revocation lists (X509 CRL)", block.Type)
		}
		ders = append(ders, block.Bytes)
	}
	if len(bytes.TrimSpace(data)) > 0 {
		return nil, errors.New("the PEM of the file is damaged")
	}
	return ders, nil
}

// isComplete returns an error for a list that needs other lists, or is only about some certificates: it has a critical
// extension (RFC 5280, 5.2), of the list or of an entry.
func isComplete(list *x509.RevocationList) error {
	for _, e := range list.Extensions {
		if e.Critical {
			return fmt.Errorf("it has the critical extension %s: only complete lists of one authority are supported", e.Id)
		}
		if e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 27}) { // always critical, according to the RFC
			return errors.New("it is a delta list: only complete lists are supported")
		}
	}
	for _, entry := range list.RevokedCertificateEntries {
		for _, e := range entry.Extensions {
			if e.Critical {
				return fmt.Errorf("its entry of the serial number %s has the critical extension %s, which is not supported",
					entry.SerialNumber, e.Id)
			}
		}
	}
	return nil
}

// signerOf returns the authority that signed a list.
func signerOf(list *x509.RevocationList, authorities []*x509.Certificate) (*x509.Certificate, error) {
	err := errors.New("none of the client authorities has this name, so the list would revoke nothing; " +
		"add the certificate of its authority to them, also if it is an intermediate one")
	for _, a := range authorities {
		if !bytes.Equal(a.RawSubject, list.RawIssuer) {
			continue
		}
		wrong := list.CheckSignatureFrom(a)
		if wrong == nil {
			return a, nil
		}
		err = fmt.Errorf("it is not signed by the authority of this name: %w", wrong)
	}
	return nil, err
}

func serialKey(n *big.Int) string { return string(n.Bytes()) }

// revokes returns a certificate of the chain that is in a list. The last one of the chain counts too: it may be that of
// an authority below another one.
func (r revocations) revokes(chain []*x509.Certificate) (cert *x509.Certificate, revoked bool) {
	for _, cert := range chain {
		for _, list := range r {
			if list.serials[serialKey(cert.SerialNumber)] && bytes.Equal(list.RawIssuer, cert.RawIssuer) &&
				list.signerIssued(cert) {
				return cert, true
			}
		}
	}
	return nil, false
}

// signerIssued reports whether the signer of the list issued a certificate, other than its own.
func (r revocation) signerIssued(cert *x509.Certificate) bool {
	return !bytes.Equal(cert.Raw, r.by.Raw) && cert.CheckSignatureFrom(r.by) == nil
}

// stale returns a list whose next update is overdue.
func (r revocations) stale(now time.Time) (list *x509.RevocationList, found bool) {
	for _, list := range r {
		if !list.NextUpdate.IsZero() && now.After(list.NextUpdate) {
			return list.RevocationList, true
		}
	}
	return nil, false
}
