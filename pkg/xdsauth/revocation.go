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
}

// parseRevocations reads the lists of a file: PEM, any number of them, or one in DER. It refuses a list with the name of an
// authority that none of the authorities with this name has signed: it would revoke nothing.
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
		if err := isSigned(list, authorities); err != nil {
			return nil, fmt.Errorf("revocation list %d, of %s: %w", i+1, list.Issuer, err)
		}
		r := revocation{list, map[string]bool{}}
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
	if len(bytes.TrimSpace(data)) > 0 || len(ders) == 0 {
		return nil, errors.New("the PEM of the file is damaged")
	}
	return ders, nil
}

// isComplete returns an error for a list that needs other lists, or is only about some certificates: it has a critical
// extension (RFC 5280, 5.2), of the list or of an entry.
func isComplete(list *x509.RevocationList) error {
	for _, e := range list.Extensions {
		if e.Critical {
			return fmt.Errorf("it has the critical extension %s: only complete lists of one authority are possible", e.Id)
		}
		if e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 27}) { // always critical, according to the RFC
			return errors.New("it is a delta list: only complete lists are possible")
		}
	}
	for _, entry := range list.RevokedCertificateEntries {
		for _, e := range entry.Extensions {
			if e.Critical {
				return fmt.Errorf("its entry of the serial number %s has the critical extension %s, which is not possible", entry.SerialNumber, e.Id)
			}
		}
	}
	return nil
}

// isSigned returns an error if there are authorities with the list's name and none has signed it. There may be none: the
// list is then that of an authority between them and the clients.
func isSigned(list *x509.RevocationList, authorities []*x509.Certificate) error {
	var err error
	for _, a := range authorities {
		if !bytes.Equal(a.RawSubject, list.RawIssuer) {
			continue
		}
		if err = list.CheckSignatureFrom(a); err == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("it is not signed by the authority of this name: %w", err)
	}
	return nil
}

func serialKey(n *big.Int) string { return string(n.Bytes()) }

// revokes returns a list that contains a certificate of the chain, with the certificate. The chain ends with its root.
func (r revocations) revokes(chain []*x509.Certificate) (cert *x509.Certificate, revoked bool) {
	for i, cert := range chain[:len(chain)-1] {
		issuer := chain[i+1]
		for _, list := range r {
			if list.serials[serialKey(cert.SerialNumber)] && bytes.Equal(list.RawIssuer, cert.RawIssuer) && list.CheckSignatureFrom(issuer) == nil {
				return cert, true
			}
		}
	}
	return nil, false
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
