package model

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
)

// The types of secrets; a secret without uploads has the empty type.
const (
	SecretTLS     = "tls"
	SecretGeneric = "generic"
)

// Secret is a certificate with its key, a certificate authority, or a text.
// +example={secret_name: shop-tls, secret_type: tls, secret_sni: shop.example.com, fingerprint: "sha256:0f1e",
// subject: CN=shop.example.com, issuer: CN=R11, host_names: [shop.example.com],
// not_after: "2027-11-21T08:07:39.000000+00:00"}
type Secret struct {
	ID   int64  `json:"secret_id"`
	Name string `json:"secret_name" form:"Secret_name,required"`
	// Derived from the contents of the secret; optional.
	// +enum=[tls, generic, ""]
	Type string `json:"secret_type" form:"Secret_type"`
	// Host name of the certificate; empty means the names in the certificate.
	SNI string `json:"secret_sni" form:"Secret_sni"`
	// Certificate in PEM, followed by its chain.
	// +writeOnly=true
	Cert string `json:"secret_cert" form:"Secret_cert,pem=openssl x509 -inform der"` // no secret
	// Private key in PEM, RSA or ECDSA.
	// +writeOnly=true
	PrivateKey string `json:"secret_key" form:"Secret_key,pem=openssl pkey -inform der"` // stored sealed
	// A value, instead of a certificate and key.
	// +maxLength=65536
	// +writeOnly=true
	Value string `json:"secret_value" form:"Secret_value"` // stored sealed
	// SHA-256 of the certificate, or of the sealed value.
	Fingerprint string `json:"fingerprint"`
	// Subject of the certificate.
	Subject string `json:"subject"`
	// Expiry of the certificate.
	NotAfter *Time `json:"not_after"`
	Tags     Tags  `json:"tags" form:"tags"`
	CreateTS Time  `json:"create_ts"`
	UpdateTS Time  `json:"update_ts"`
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
		v.add("Secret_type", "%q does not match what the secret contains", s.Type)
	}
	s.validateCertificate(&v)
	if s.PrivateKey != "" && s.PrivateKey != Redacted && !IsSealed(s.PrivateKey) {
		if _, err := readPrivateKey(s.PrivateKey); err != nil {
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

func (s *Secret) validateCertificate(v *validator) {
	if s.Cert == "" {
		return
	}
	_, certs, err := readCertificates(s.Cert)
	if err != nil {
		v.add("Secret_cert", "%s", err)
		return
	}
	leaf := certs[0]
	if s.PrivateKey == "" && isAuthority(leaf) {
		return // a set of authorities, in any order
	}
	if err := checkPublicKey(leaf.PublicKey); err != nil {
		v.add("Secret_cert", "has a key that %s", err)
	}
	if err := checkChain(certs); err != nil {
		v.add("Secret_cert", "%s", err)
	}
	if demandsStaple(leaf) {
		v.add("Secret_cert", "requires a stapled OCSP response (must-staple), and Gatehouse sends none, "+
			"so Envoy would refuse it; have it issued without must-staple")
	}
	if names := NamesOf(leaf); s.SNI != "" && !namesCover(names, s.SNI) {
		if len(names) == 0 {
			v.add("Secret_sni", "the certificate has no host name: its subject alternative name (SAN) is empty; "+
				"have it issued for %q", s.SNI)
		} else {
			v.add("Secret_sni", "%q is not a name of the certificate, which is for %s; leave this empty to serve all of them",
				s.SNI, strings.Join(names, ", "))
		}
	}
}

// Seal implements Confidential, and sets the type and what is derived from the
// contents.
func (s *Secret) Seal(sealer Sealer, stored Object) error {
	old, _ := stored.(*Secret)
	if old == nil {
		old = &Secret{}
	}
	s.tidy()
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

// tidy leaves nothing but the blocks of what is in PEM.
func (s *Secret) tidy() {
	if blocks, _, err := readCertificates(s.Cert); err == nil {
		s.Cert = writePEM(blocks)
	}
	if s.PrivateKey == Redacted || IsSealed(s.PrivateKey) {
		return
	}
	if block, err := readPrivateKey(s.PrivateKey); err == nil {
		s.PrivateKey = writePEM([]*pem.Block{block})
	}
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
	_, certs, err := readCertificates(s.Cert)
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

// OpenValue returns the text of a secret that is no certificate; empty if it has none.
func (s *Secret) OpenValue(open func(sealed, place string) (string, error)) (string, error) {
	if s.Value == "" {
		return "", nil
	}
	value, err := open(s.Value, s.place("value"))
	if err != nil {
		return "", fmt.Errorf("reading secret %q: %w", s.Name, err)
	}
	return value, nil
}

// IsPair reports whether there is a certificate with its key.
func (s *Secret) IsPair() bool { return s.Cert != "" && s.PrivateKey != "" }

// Leaf returns the first certificate; nil if there is none, or if it cannot be read.
func (s *Secret) Leaf() *x509.Certificate {
	block, _ := pem.Decode([]byte(s.Cert))
	if block == nil {
		return nil
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return leaf
}

// NotAuthorities says in words, which follow the name of the secret in a sentence, why
// it has no authorities to verify others with; empty means that it has.
func (s *Secret) NotAuthorities() string {
	if s.Cert == "" {
		return "has no certificate"
	}
	_, certs, err := readCertificates(s.Cert)
	if err != nil {
		return err.Error()
	}
	for i, cert := range certs {
		if !isAuthority(cert) {
			return fmt.Sprintf("has no certificates of authorities: "+
				"number %d (%s) may not sign others (basicConstraints CA:TRUE)", i+1, cert.Subject)
		}
	}
	return ""
}

// NotFor says in words, which follow the name of the secret in a sentence, why its
// certificate cannot be shown for the host of a service; empty means that it can, or
// that there is no certificate yet.
func (s *Secret) NotFor(fqdn string) string {
	leaf := s.Leaf()
	if leaf == nil {
		return ""
	}
	names := s.names(leaf)
	switch {
	case len(names) == 0:
		return "has a certificate without a host name: its subject alternative name (SAN) is empty"
	case !namesServe(names, fqdn):
		return "has a certificate for " + strings.Join(names, ", ")
	}
	return ""
}

// names are those that the certificate is shown for.
func (s *Secret) names(leaf *x509.Certificate) []string {
	if s.SNI != "" {
		return []string{strings.ToLower(s.SNI)}
	}
	return NamesOf(leaf)
}

// HostsFor are the hosts of a service, or wildcards for them, that the pair is shown
// for: its fqdn, or the names below it; none if there is no pair.
func (s *Secret) HostsFor(fqdn string) []string {
	leaf := s.Leaf()
	if leaf == nil || !s.IsPair() {
		return nil
	}
	fqdn = strings.ToLower(fqdn)
	suffix, wildcard := strings.CutPrefix(fqdn, "*")
	if !wildcard {
		if namesCover(s.names(leaf), fqdn) {
			return []string{fqdn}
		}
		return nil
	}
	return slices.DeleteFunc(s.names(leaf), func(name string) bool { return !strings.HasSuffix(name, suffix) })
}

// ShownFor reports whether the pair is shown for a host, or a wildcard.
func (s *Secret) ShownFor(host string) bool {
	leaf := s.Leaf()
	return leaf != nil && s.IsPair() && namesCover(s.names(leaf), host)
}

// Certificates are those of Cert; none if they cannot be read.
func (s *Secret) Certificates() []*x509.Certificate {
	_, certs, _ := readCertificates(s.Cert)
	return certs
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
