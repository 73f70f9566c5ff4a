package acme

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// makeKey returns a new key of a type of model, in PEM too.
func makeKey(kind string) (text string, key crypto.Signer, err error) {
	switch kind {
	case model.KeyP384:
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case model.KeyRSA2048:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case model.KeyRSA4096:
		key, err = rsa.GenerateKey(rand.Reader, 4096)
	default:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return "", nil, fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", nil, fmt.Errorf("writing a key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), key, nil
}

// readKey reads what makeKey wrote. Its errors say nothing about the text.
func readKey(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("a stored key is not in PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, errors.New("a stored key cannot be read")
	}
	return signer, nil
}

// request returns the signing request for a host. It has no common name, which is limited to 64 bytes and not needed.
func request(host string, key crypto.Signer) ([]byte, error) {
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{host}}, key)
}

// placeholderLife is how long a placeholder is valid.
const placeholderLife = 10 * 365 * 24 * time.Hour

// selfSigned returns a certificate for a host that no client trusts.
func selfSigned(host string, now time.Time) (cert, key string, err error) {
	key, signer, err := makeKey(model.KeyP256)
	if err != nil {
		return "", "", err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return "", "", fmt.Errorf("making a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, DNSNames: []string{host}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(placeholderLife),
		Subject:  pkix.Name{CommonName: "Gatehouse placeholder"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return "", "", fmt.Errorf("signing a placeholder: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), key, nil
}
