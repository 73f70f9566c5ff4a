package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	// skew is how far other clocks may be behind.
	skew = 5 * time.Minute
	// Types of PEM blocks (RFC 7468).
	certificateBlock, keyBlock, crlBlock = "CERTIFICATE", "PRIVATE KEY", "X509 CRL"
)

// Authority is a certificate authority with its key.
type Authority struct {
	Cert *x509.Certificate
	key  crypto.Signer
}

// Pair is a certificate with its key.
type Pair struct {
	Cert *x509.Certificate
	Key  crypto.Signer
}

// NewAuthority makes a P-256 root that signs certificates and revocation lists, and no
// other authority. It is valid for lifetime from now.
func NewAuthority(now time.Time, lifetime time.Duration) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		// Each authority has a different name, for programs that look them up by name.
		Subject:   pkix.Name{CommonName: fmt.Sprintf("Gatehouse xDS %x", serial.Bytes()[:4])},
		NotBefore: now.Add(-skew), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	cert, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &Authority{cert, key}, nil
}

// Issue makes a certificate for i, valid for lifetime from now, with a new P-256 key,
// or with key if that is not nil.
func (a *Authority) Issue(i Identity, key crypto.Signer, now time.Time, lifetime time.Duration) (Pair, error) {
	if i.Purpose == Server && len(i.Hosts) == 0 {
		return Pair{}, errors.New("a server needs --host: the names and addresses under which Envoys reach it")
	}
	end := now.Add(lifetime)
	if end.After(a.Cert.NotAfter) {
		return Pair{}, fmt.Errorf("the certificate would end on %s, and its authority ends on %s (give fewer --days, "+
			"or make a new authority in another directory: gatehouse pki init DIR)",
			end.UTC().Format(time.DateOnly), a.Cert.NotAfter.UTC().Format(time.DateOnly))
	}
	serial, err := newSerial()
	if err != nil {
		return Pair{}, err
	}
	if key == nil {
		if key, err = newKey(); err != nil {
			return Pair{}, err
		}
	}
	usage := x509.ExtKeyUsageClientAuth
	if i.Purpose == Server {
		usage = x509.ExtKeyUsageServerAuth
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: commonName(i)},
		NotBefore: now.Add(-skew), NotAfter: end,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	if err := addNames(template, i); err != nil {
		return Pair{}, fmt.Errorf("naming %s: %w", i, err)
	}
	cert, err := sign(template, a.Cert, key.Public(), a.key)
	return Pair{cert, key}, err
}

// commonName is for people only: no program identifies by it. It has at most 64
// characters (RFC 5280, A.1).
func commonName(i Identity) string {
	name := "Gatehouse " + i.String()
	if len(name) > 64 {
		return "Gatehouse " + string(i.Purpose)
	}
	return name
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}

// newSerial returns 127 random bits. The first byte is never zero, so that all
// serials have the same length.
func newSerial() (*big.Int, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b), nil
}

func certificatePEM(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: cert.Raw})
}

func keyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// parseCertificate parses the single certificate of a file. Its errors do not quote the
// file.
func parseCertificate(text []byte) (*x509.Certificate, error) {
	der, err := decode(text, certificateBlock)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func parseKey(text []byte) (crypto.Signer, error) {
	der, err := decode(text, keyBlock)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("the key cannot be read") // the cause may quote it
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	return signer, nil
}

func decode(text []byte, kind string) ([]byte, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != kind || len(rest) > 0 {
		return nil, fmt.Errorf("it is not one PEM block %q", kind)
	}
	return block.Bytes, nil
}

// belongs reports whether key is the key of cert.
func belongs(key crypto.Signer, cert *x509.Certificate) bool {
	public, ok := key.Public().(interface {
		Equal(other crypto.PublicKey) bool
	})
	return ok && public.Equal(cert.PublicKey)
}
