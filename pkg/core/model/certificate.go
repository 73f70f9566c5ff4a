package model

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// The types of PEM blocks (RFC 7468, and openssl for those of keys).
const (
	pemCertificate  = "CERTIFICATE"
	pemECParameters = "EC PARAMETERS" // openssl writes it in front of a key
	pemKeySuffix    = "PRIVATE KEY"
)

// readPEM returns the blocks of a text, all of which must be whole. What is between
// them, such as the comments of openssl, says nothing.
func readPEM(text string) ([]*pem.Block, error) {
	parts := strings.Split(text, "-----BEGIN ")
	var blocks []*pem.Block
	for i, part := range parts[1:] {
		block, _ := pem.Decode([]byte("-----BEGIN " + part))
		if block == nil {
			return nil, fmt.Errorf("has a damaged PEM block, number %d of %d: it is cut off, or is not base64", i+1,
				len(parts)-1)
		}
		blocks = append(blocks, block)
	}
	if strings.Count(text, "-----END ") > len(blocks) {
		return nil, errors.New("has the end of a PEM block without its beginning")
	}
	return blocks, nil
}

// writePEM is the text of blocks alone. Envoy reads less than Go does: lines of more
// than 76 characters, for example, it refuses.
func writePEM(blocks []*pem.Block) string {
	var b strings.Builder
	for _, block := range blocks {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
	}
	return b.String()
}

// readCertificates reads PEM certificates.
func readCertificates(text string) ([]*pem.Block, []*x509.Certificate, error) {
	blocks, err := readPEM(text)
	if err != nil {
		return nil, nil, err
	}
	var certs []*x509.Certificate
	for _, block := range blocks {
		switch {
		case strings.HasSuffix(block.Type, pemKeySuffix):
			return nil, nil, fmt.Errorf("contains a PEM block %q; only %s is allowed here; send the key as Secret_key",
				block.Type, pemCertificate)
		case block.Type != pemCertificate:
			return nil, nil, fmt.Errorf("contains a PEM block %q; only %s is allowed here", block.Type, pemCertificate)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, fmt.Errorf("contains a certificate that cannot be read: %w", err)
		}
		if err := checkKeySize(cert.PublicKey); err != nil {
			return nil, nil, fmt.Errorf("contains a certificate (%s) whose key %w", cert.Subject, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, nil, errors.New("contains no PEM certificate (-----BEGIN CERTIFICATE-----)")
	}
	return blocks, certs, nil
}

// readPrivateKey reads one key of those that Envoy accepts: RSA of 2048 bits and
// more, and ECDSA on the NIST curves.
func readPrivateKey(text string) (*pem.Block, error) {
	blocks, err := readPEM(text)
	if err != nil {
		return nil, err
	}
	blocks = slices.DeleteFunc(blocks, func(b *pem.Block) bool { return b.Type == pemECParameters })
	if len(blocks) == 0 {
		return nil, errors.New("contains no PEM key (-----BEGIN PRIVATE KEY-----)")
	}
	for _, b := range blocks {
		if !strings.HasSuffix(b.Type, pemKeySuffix) {
			return nil, fmt.Errorf("contains a PEM block %q; only a private key is allowed here; "+
				"send certificates as Secret_cert", b.Type)
		}
	}
	block := blocks[0]
	switch {
	case len(blocks) > 1:
		return nil, fmt.Errorf("contains %d keys; only one is allowed", len(blocks))
	case strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
		return nil, errors.New("is encrypted; decrypt it first (Gatehouse stores it sealed)")
	}
	if len(block.Bytes) > maxKeyBytes {
		return nil, fmt.Errorf("has %d bytes; a key has at most %d", len(block.Bytes), maxKeyBytes)
	}
	key, err := parseKey(block)
	if err != nil {
		return nil, errors.New("is not a private key in PKCS #8, PKCS #1 or SEC 1 form")
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return block, checkPublicKey(&k.PublicKey)
	case *ecdsa.PrivateKey:
		return block, checkPublicKey(&k.PublicKey)
	}
	return nil, checkPublicKey(nil)
}

// maxRSABits and maxKeyBytes bound keys: the work for an RSA key grows with the square of its size, and more.
const (
	maxRSABits  = 16384
	maxKeyBytes = 16384
)

// checkKeySize returns an error for a key that would take too much work. The text follows the word key.
func checkKeySize(key any) error {
	if k, ok := key.(*rsa.PublicKey); ok && k.N.BitLen() > maxRSABits {
		return fmt.Errorf("is an RSA key of %d bits; at most %d are allowed", k.N.BitLen(), maxRSABits)
	}
	return nil
}

// checkPublicKey refuses a key that Envoy does not accept for a pair.
func checkPublicKey(key any) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < 2048 {
			return fmt.Errorf("is an RSA key of %d bits; Envoy needs 2048 or more", k.N.BitLen())
		}
	case *ecdsa.PublicKey:
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

// checkChain refuses certificates of a pair in which one did not sign the one before.
func checkChain(certs []*x509.Certificate) error {
	for i, parent := range certs[1:] {
		child := certs[i]
		err := child.CheckSignatureFrom(parent)
		var old x509.InsecureAlgorithmError
		if errors.As(err, &old) && string(child.RawIssuer) == string(parent.RawSubject) {
			err = nil // Go does not verify the algorithm
		}
		if err != nil {
			return fmt.Errorf("has certificate %d (%s), which did not sign certificate %d (%s); "+
				"put the host's certificate first, and after each certificate the one that signed it",
				i+2, parent.Subject, i+1, child.Subject)
		}
	}
	return nil
}

// demandsStaple reports whether a certificate is for servers that staple OCSP answers
// only (RFC 7633).
func demandsStaple(cert *x509.Certificate) bool {
	return slices.ContainsFunc(cert.Extensions, func(e pkix.Extension) bool {
		return e.Id.Equal(asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24})
	})
}

// isAuthority reports whether a certificate may sign others (RFC 5280 section 4.2.1.9).
func isAuthority(cert *x509.Certificate) bool {
	return cert.BasicConstraintsValid && cert.IsCA && (cert.KeyUsage == 0 || cert.KeyUsage&x509.KeyUsageCertSign != 0)
}

// NamesOf are the DNS names, in lower case, and the IP addresses that a certificate
// is for.
func NamesOf(cert *x509.Certificate) []string {
	var names []string
	for _, name := range cert.DNSNames {
		names = append(names, strings.ToLower(name))
	}
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// namesCover reports whether names of a certificate are for a host: the host itself,
// or a wildcard for its first label. A host that is a wildcard must be among them.
func namesCover(names []string, host string) bool {
	host = strings.ToLower(host)
	if ip := net.ParseIP(strings.Trim(host, "[]")); ip != nil {
		return slices.Contains(names, ip.String())
	}
	first, parent, _ := strings.Cut(host, ".")
	return slices.Contains(names, host) || first != "*" && slices.Contains(names, "*."+parent)
}

// namesServe reports whether names of a certificate are for some host of a service:
// for its fqdn, or where that is a wildcard for a name below it.
func namesServe(names []string, fqdn string) bool {
	fqdn = strings.ToLower(fqdn)
	suffix, wildcard := strings.CutPrefix(fqdn, "*")
	return namesCover(names, fqdn) ||
		wildcard && slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, suffix) })
}
