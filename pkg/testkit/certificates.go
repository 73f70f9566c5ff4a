package testkit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"time"
)

// Authority is a certificate authority for tests.
type Authority struct {
	// PEM is its certificate.
	PEM  string
	cert *x509.Certificate
	key  crypto.Signer
}

// CertificateOptions describe a certificate. The zero value has a P-256 key and no
// names, and expires in an hour.
type CertificateOptions struct {
	// Names are DNS names, wildcards and IP addresses.
	Names []string
	// URIs are URIs, such as SPIFFE IDs.
	URIs []string
	// Subject is the common name.
	Subject string
	RSA     bool
	// NotBefore is the beginning of its validity; the zero value is two days ago.
	// NotAfter is the end; the zero value is an hour from now.
	NotBefore, NotAfter time.Time
	// Client says that it is a client certificate.
	Client bool
	// Change changes the template in any other way; nil changes nothing.
	Change func(*x509.Certificate)
}

// Pair is a certificate with its key, both in PEM.
type Pair struct{ Cert, Key string }

// NewAuthority makes a certificate authority.
func NewAuthority(name string) (*Authority, error) { return newAuthority(name, nil) }

// Authority makes an intermediate authority that this one has signed.
func (a *Authority) Authority(name string) (*Authority, error) { return newAuthority(name, a) }

// ReadAuthority reads the certificate of an authority, for example one made by openssl.
// The result cannot issue certificates.
func ReadAuthority(text string) (*Authority, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("reading an authority: there is no PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading an authority: %w", err)
	}
	return &Authority{PEM: text, cert: cert}, nil
}

func newAuthority(name string, parent *Authority) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of an authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	if parent == nil {
		parent = &Authority{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent.cert, key.Public(), parent.key)
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{PEM: toPEM("CERTIFICATE", der), cert: cert, key: key}, err
}

// CrossSign makes another certificate of an authority, with the same name and key, that this one has signed.
func (a *Authority) CrossSign(other *Authority, notAfter time.Time) (string, error) {
	template := *other.cert
	template.SerialNumber, template.NotAfter = serial(), notAfter
	der, err := x509.CreateCertificate(rand.Reader, &template, a.cert, other.key.Public(), a.key)
	if err != nil {
		return "", fmt.Errorf("signing another authority: %w", err)
	}
	return toPEM("CERTIFICATE", der), nil
}

// Issue makes a certificate.
func (a *Authority) Issue(o CertificateOptions) (Pair, error) {
	var key crypto.Signer
	var err error
	if o.RSA {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return Pair{}, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: o.Subject},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: o.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if !o.NotBefore.IsZero() {
		template.NotBefore = o.NotBefore
	}
	if o.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	if o.Client {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	for _, name := range o.Names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	for _, text := range o.URIs {
		uri, err := url.Parse(text)
		if err != nil {
			return Pair{}, fmt.Errorf("reading the URI of a certificate: %w", err)
		}
		template.URIs = append(template.URIs, uri)
	}
	if o.Change != nil {
		o.Change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("making a certificate: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	return Pair{Cert: toPEM("CERTIFICATE", der), Key: toPEM("PRIVATE KEY", encoded)}, err
}

// Revoke makes a revocation list of certificates, in PEM.
func (a *Authority) Revoke(pairs ...Pair) (string, error) {
	var entries []x509.RevocationListEntry
	for _, p := range pairs {
		block, _ := pem.Decode([]byte(p.Cert))
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", fmt.Errorf("revoking a certificate: %w", err)
		}
		entries = append(entries,
			x509.RevocationListEntry{SerialNumber: cert.SerialNumber, RevocationTime: time.Now().Add(-time.Minute)})
	}
	return a.RevokeWith(func(list *x509.RevocationList) { list.RevokedCertificateEntries = entries })
}

// RevokeWith makes a revocation list with a change, in PEM.
func (a *Authority) RevokeWith(change func(*x509.RevocationList)) (string, error) {
	template := &x509.RevocationList{
		Number: big.NewInt(time.Now().UnixNano()), ThisUpdate: time.Now().Add(-time.Hour),
		NextUpdate: time.Now().Add(time.Hour),
	}
	change(template)
	der, err := x509.CreateRevocationList(rand.Reader, template, a.cert, a.key)
	if err != nil {
		return "", fmt.Errorf("making a revocation list: %w", err)
	}
	return toPEM("X509 CRL", der), nil
}

// Pool returns a pool with only this authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// TLS returns the pair in the form of Go's TLS.
func (p Pair) TLS() (tls.Certificate, error) { return tls.X509KeyPair([]byte(p.Cert), []byte(p.Key)) }

func toPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // the system has no random numbers
	}
	return n
}
