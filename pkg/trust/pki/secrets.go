package pki

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"time"
)

// The keys of a Kubernetes Secret: those of type kubernetes.io/tls, and ca.crt as in
// cert-manager.
const (
	secretCert  = "tls.crt"
	secretKey   = "tls.key"
	secretCA    = "ca.crt"
	secretCAKey = "ca.key"
)

// Lifetimes say how long certificates are valid, and how long before their expiry they
// are renewed.
type Lifetimes struct{ Authority, Certificate, RenewWithin time.Duration }

// Refresh returns the contents that a set of Secrets should have: authority has the
// certificate and the key of an authority, and each of pairs, by identity, a
// certificate of that authority. A valid certificate stays, one that expires soon is
// renewed with the same key, and a missing one is created. A certificate of another
// authority, or with other names, is replaced together with its key. The arguments are
// not changed. A broken authority is an error, because a new one would lock out
// everybody who trusts it.
func Refresh(
	authority map[string][]byte, pairs []SecretPair, now time.Time, l Lifetimes,
) (newAuthority map[string][]byte, newPairs []map[string][]byte, err error) {
	a, newAuthority, err := refreshAuthority(authority, now, l)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range pairs {
		data, err := a.refresh(p, now, l)
		if err != nil {
			return nil, nil, fmt.Errorf("making the certificate of %s: %w", p.Identity, err)
		}
		newPairs = append(newPairs, data)
	}
	return newAuthority, newPairs, nil
}

// SecretPair is a Secret that has, or should have, the certificate of an identity.
type SecretPair struct {
	Identity Identity
	Data     map[string][]byte
}

func refreshAuthority(data map[string][]byte, now time.Time, l Lifetimes) (*Authority, map[string][]byte, error) {
	if len(data[secretCA]) == 0 && len(data[secretCAKey]) == 0 {
		a, err := NewAuthority(now, l.Authority)
		if err != nil {
			return nil, nil, err
		}
		key, err := keyPEM(a.key)
		return a, with(data, map[string][]byte{secretCA: certificatePEM(a.Cert), secretCAKey: key}), err
	}
	cert, err := parseCertificate(data[secretCA])
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s of the authority: %w", secretCA, err)
	}
	key, err := parseKey(data[secretCAKey])
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s of the authority: %w", secretCAKey, err)
	}
	if !belongs(key, cert) {
		return nil, nil, errors.New("the key of the authority is not that of its certificate")
	}
	if cert.NotAfter.Before(now.Add(l.Certificate)) {
		return nil, nil, fmt.Errorf("the authority ends on %s: remove %s and %s from its Secret, and a new one is made",
			cert.NotAfter.UTC().Format(time.DateOnly), secretCA, secretCAKey)
	}
	return &Authority{cert, key}, maps.Clone(data), nil
}

// refresh returns what the Secret of a pair should contain.
func (a *Authority) refresh(p SecretPair, now time.Time, l Lifetimes) (map[string][]byte, error) {
	ca := certificatePEM(a.Cert)
	cert, key, right := a.present(p)
	if right && cert.NotAfter.After(now.Add(l.RenewWithin)) && bytes.Equal(p.Data[secretCA], ca) {
		return maps.Clone(p.Data), nil
	}
	if !right {
		key = nil
	}
	pair, err := a.Issue(p.Identity, key, now, l.Certificate)
	if err != nil {
		return nil, err
	}
	text, err := keyPEM(pair.Key)
	return with(p.Data, map[string][]byte{secretCert: certificatePEM(pair.Cert), secretKey: text, secretCA: ca}), err
}

// present returns the pair in a Secret, and whether it is one of this authority for the
// identity.
func (a *Authority) present(p SecretPair) (pair *x509.Certificate, key crypto.Signer, right bool) {
	cert, err := parseCertificate(p.Data[secretCert])
	if err != nil {
		return nil, nil, false
	}
	if key, err = parseKey(p.Data[secretKey]); err != nil || !belongs(key, cert) ||
		cert.CheckSignatureFrom(a.Cert) != nil {
		return nil, nil, false
	}
	i, ok := identityOf(cert)
	return cert, key, ok && i.equal(p.Identity)
}

// with returns data with the entries of more added.
func with(data, more map[string][]byte) map[string][]byte {
	all := map[string][]byte{}
	maps.Copy(all, data)
	maps.Copy(all, more)
	return all
}
