package model

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// The types of secrets; a secret without uploads has the empty type.
const (
	SecretTLS     = "tls"
	SecretGeneric = "generic"
)

// Secret is a certificate with its key, a certificate authority, or a text.
type Secret struct {
	ID   int64  `json:"secret_id"`
	Name string `json:"secret_name"`
	// Type is SecretTLS, SecretGeneric or empty.
	Type string `json:"secret_type"`
	// SNI is the host name that a TLS pair is for; empty means those of the
	// certificate.
	SNI string `json:"secret_sni"`
	// Cert is a PEM chain, the leaf first. It is no secret.
	Cert string `json:"secret_cert"`
	// PrivateKey (PEM) and Value are stored sealed.
	PrivateKey string `json:"secret_key"`
	Value      string `json:"secret_value"`
	// Fingerprint is the SHA-256 of the leaf certificate, or of the sealed
	// value. Subject and NotAfter are the leaf's.
	Fingerprint string `json:"fingerprint"`
	Subject     string `json:"subject"`
	NotAfter    *Time  `json:"not_after"`
	Tags        Tags   `json:"tags"`
	CreateTS    Time   `json:"create_ts"`
	UpdateTS    Time   `json:"update_ts"`
}

// Key implements Object.
func (s *Secret) Key() Key { return SecretKey(s.Name) }

// Meta implements Object.
func (s *Secret) Meta() Meta { return Meta{&s.ID, &s.CreateTS, &s.UpdateTS} }

// TagList implements Tagged.
func (s *Secret) TagList() *Tags { return &s.Tags }

// Validate implements Object. Whether key and certificate belong together is
// checked by Seal, which can read the stored half.
func (s *Secret) Validate() []FieldError {
	var v validator
	v.name("Secret_name", s.Name, false)
	if s.Type != "" {
		v.oneOf("Secret_type", s.Type, []string{SecretTLS, SecretGeneric})
	}
	isTLS := s.Cert != "" || s.PrivateKey != "" || s.SNI != ""
	switch {
	case s.Value != "" && isTLS:
		v.add("Secret_value", "cannot be combined with a certificate, a key or a host name")
	case s.Type == SecretGeneric && isTLS, s.Type == SecretTLS && s.Value != "":
		v.add("Secret_type", "%q does not fit what the secret holds", s.Type)
	}
	if s.Cert != "" {
		if _, err := parseCertificates(s.Cert); err != nil {
			v.add("Secret_cert", "%s", err)
		}
	}
	if s.PrivateKey != "" && s.PrivateKey != Redacted && !IsSealed(s.PrivateKey) {
		if err := checkPrivateKey(s.PrivateKey); err != nil {
			v.add("Secret_key", "%s", err)
		}
	}
	if len(s.Value) > 64<<10 && !IsSealed(s.Value) {
		v.add("Secret_value", "has %d bytes; at most 65536 are allowed", len(s.Value))
	}
	if s.SNI != "" {
		v.fqdn("Secret_sni", s.SNI)
	}
	v.tags(s.Tags)
	return v.errs
}

// Seal implements Confidential, and sets the type and what is derived from the
// contents.
func (s *Secret) Seal(sealer Sealer, stored Object) error {
	old, _ := stored.(*Secret)
	if old == nil {
		old = &Secret{}
	}
	var bad []FieldError
	for _, f := range []struct {
		name, stored, place string
		text                *string
	}{
		{"Secret_key", old.PrivateKey, s.place("key"), &s.PrivateKey},
		{"Secret_value", old.Value, s.place("value"), &s.Value},
	} {
		sealed, message, err := sealText(sealer, *f.text, f.stored, f.place)
		if err != nil {
			return fmt.Errorf("sealing secret %q: %w", s.Name, err)
		}
		if message != "" {
			bad = append(bad, FieldError{Field: f.name, Message: message})
		}
		*f.text = sealed
	}
	if len(bad) > 0 {
		return invalid(bad)
	}
	return s.derive(sealer)
}

func (s *Secret) place(field string) string { return "secret/" + s.Name + "/" + field }

// derive sets the fields that follow from the contents and checks that key and
// certificate belong together.
func (s *Secret) derive(sealer Sealer) error {
	switch {
	case s.Cert != "" || s.PrivateKey != "" || s.SNI != "":
		s.Type = SecretTLS
	case s.Value != "":
		s.Type = SecretGeneric
	}
	s.Fingerprint, s.Subject, s.NotAfter = "", "", nil
	if s.Value != "" {
		s.Fingerprint = fingerprint([]byte(s.Value))
	}
	if s.Cert == "" {
		return nil
	}
	certs, err := parseCertificates(s.Cert)
	if err != nil {
		return invalid([]FieldError{{Field: "Secret_cert", Message: err.Error()}})
	}
	s.Fingerprint, s.Subject = fingerprint(certs[0].Raw), certs[0].Subject.String()
	s.NotAfter = new(At(certs[0].NotAfter))
	if s.PrivateKey == "" {
		return nil
	}
	key, err := s.OpenKey(sealer.Unseal)
	if err != nil {
		return err
	}
	if _, err := tls.X509KeyPair([]byte(s.Cert), []byte(key)); err != nil {
		return invalid([]FieldError{{
			Field: "Secret_key", Message: "does not belong to the certificate; send both in one call to replace both",
		}})
	}
	return nil
}

// OpenKey returns the private key in PEM.
func (s *Secret) OpenKey(open func(sealed, place string) (string, error)) (string, error) {
	key, err := open(s.PrivateKey, s.place("key"))
	if err != nil {
		return "", fmt.Errorf("reading the key of secret %q: %w", s.Name, err)
	}
	return key, nil
}

// HostNames are the host names that the secret is for, in lower case: SNI or,
// without one, those of its leaf certificate.
func (s *Secret) HostNames(leaf *x509.Certificate) []string {
	if s.SNI != "" {
		return []string{strings.ToLower(s.SNI)}
	}
	var names []string
	for _, name := range leaf.DNSNames {
		names = append(names, strings.ToLower(name))
	}
	return names
}

// Redact implements Confidential.
func (s *Secret) Redact() Object {
	c := *s
	for _, text := range []*string{&c.PrivateKey, &c.Value} {
		if *text != "" {
			*text = Redacted
		}
	}
	return &c
}

// MapSealed implements Confidential.
func (s *Secret) MapSealed(change func(sealed, place string) (string, error)) (err error) {
	if s.PrivateKey != "" {
		if s.PrivateKey, err = change(s.PrivateKey, s.place("key")); err != nil {
			return err
		}
	}
	if s.Value != "" {
		s.Value, err = change(s.Value, s.place("value"))
		if IsSealed(s.Value) { // see derive
			s.Fingerprint = fingerprint([]byte(s.Value))
		}
	}
	return err
}

func fingerprint(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// parseCertificates reads a chain of PEM certificates.
func parseCertificates(text string) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	rest := []byte(text)
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("contains a PEM block %q; only CERTIFICATE is possible here", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("contains a certificate that cannot be read: %w", err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("contains no PEM certificate (-----BEGIN CERTIFICATE-----)")
	}
	return certs, nil
}

// checkPrivateKey accepts the keys that Envoy does: RSA of 2048 bits and more,
// and ECDSA on the NIST curves.
func checkPrivateKey(text string) error {
	block, _ := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return errors.New("contains no PEM key (-----BEGIN PRIVATE KEY-----)")
	case strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
		return errors.New("is encrypted; decrypt it first, it is stored sealed")
	}
	key, err := parseKey(block)
	if err != nil {
		return errors.New("is not a private key in PKCS #8, PKCS #1 or SEC 1 form")
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		if k.N.BitLen() < 2048 {
			return fmt.Errorf("is an RSA key of %d bits; Envoy needs 2048 or more", k.N.BitLen())
		}
	case *ecdsa.PrivateKey:
		if k.Curve.Params().BitSize < 256 {
			return fmt.Errorf("is on the curve %s; Envoy needs P-256, P-384 or P-521", k.Curve.Params().Name)
		}
	default:
		return errors.New("is neither an RSA nor an ECDSA key; Envoy accepts no other")
	}
	return nil
}

func parseKey(block *pem.Block) (any, error) {
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	return x509.ParseECPrivateKey(block.Bytes)
}
