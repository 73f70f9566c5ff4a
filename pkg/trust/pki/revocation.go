package pki

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// revocations returns the revocation list of an authority. It is valid until the
// authority expires: the file is replaced when something is revoked, and a date for the
// next update would only lock out everybody who forgets it.
func (a *Authority) revocations(
	before *x509.RevocationList, more []*x509.Certificate, now time.Time,
) (*x509.RevocationList, error) {
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now.Add(-skew), NextUpdate: a.Cert.NotAfter}
	if before != nil {
		list.Number = new(big.Int).Add(before.Number, big.NewInt(1))
		list.RevokedCertificateEntries = before.RevokedCertificateEntries
	}
	for _, cert := range more {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: cert.SerialNumber, RevocationTime: now})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.Cert, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing the list of revoked certificates: %w", err)
	}
	return x509.ParseRevocationList(der)
}

func revocationsPEM(list *x509.RevocationList) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: crlBlock, Bytes: list.Raw})
}

func parseRevocations(text []byte) (*x509.RevocationList, error) {
	der, err := decode(text, crlBlock)
	if err != nil {
		return nil, err
	}
	return x509.ParseRevocationList(der)
}

// revokedAt returns when the certificate of a serial was revoked; nil if it was not.
func revokedAt(list *x509.RevocationList, serial *big.Int) *time.Time {
	for _, entry := range list.RevokedCertificateEntries {
		if entry.SerialNumber.Cmp(serial) == 0 {
			return &entry.RevocationTime
		}
	}
	return nil
}

// serialText returns a serial as List and openssl show it, in hexadecimal digits.
func serialText(serial *big.Int) string { return fmt.Sprintf("%x", serial) }

// parseSerial reads hexadecimal digits, with colons or without.
func parseSerial(given string) (*big.Int, bool) {
	digits := strings.TrimPrefix(strings.ToLower(strings.ReplaceAll(given, ":", "")), "0x")
	if digits == "" || strings.Trim(digits, "0123456789abcdef") != "" {
		return nil, false
	}
	return new(big.Int).SetString(digits, 16)
}

// siblings returns cert, and those of all that must be revoked with it: they have the
// same key or, with alike, the same purpose and names.
func siblings(cert *x509.Certificate, all []*x509.Certificate, alike bool) []*x509.Certificate {
	list := []*x509.Certificate{cert}
	identity, known := identityOf(cert)
	for _, other := range all {
		if other.SerialNumber.Cmp(cert.SerialNumber) == 0 {
			continue
		}
		theirs, ok := identityOf(other)
		if string(other.RawSubjectPublicKeyInfo) == string(cert.RawSubjectPublicKeyInfo) ||
			alike && known && ok && identity.equal(theirs) {
			list = append(list, other)
		}
	}
	return list
}
