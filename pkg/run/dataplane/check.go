package dataplane

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

// Check reads the certificates of cfg and says why a control plane would refuse them at the
// given time. An error that is fs.ErrNotExist is about a file that is not on this machine.
func Check(cfg config.Config, now time.Time) error {
	c := cfg.Connect
	if c.TLSCA == "" {
		return nil
	}
	ca, err := readFile("xds-tls-ca", c.TLSCA, `it is the authority of the control plane ("gatehouse pki init DIR" `+
		`makes its ca.crt)`)
	if err != nil {
		return err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return fmt.Errorf("--xds-tls-ca: %s has no certificate in PEM: give the authority of the control plane's certificate",
			c.TLSCA)
	}
	if c.TLSCert == "" {
		return nil
	}
	issue := fmt.Sprintf(`issue one with "gatehouse pki issue DIR proxy %s"`, cfg.Proxy)
	cert, err := readFile("xds-tls-cert", c.TLSCert, issue)
	if err != nil {
		return err
	}
	key, err := readFile("xds-tls-key", c.TLSKey, "it was made with --xds-tls-cert")
	if err != nil {
		return err
	}
	if leaf, err := firstCertificate(cert); err != nil {
		return fmt.Errorf("--xds-tls-cert: %s %w", c.TLSCert, err)
	} else if err := checkLeaf(leaf, cfg.Proxy, c.TokenFile != "", now); err != nil {
		return fmt.Errorf("--xds-tls-cert: %s %w: %s", c.TLSCert, err, issue)
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return fmt.Errorf("--xds-tls-key: %s is not the key, in PEM, of the certificate in %s: "+
			"give the two that were made together", c.TLSKey, c.TLSCert)
	}
	return nil
}

// checkLeaf continues the sentence that begins with the name of the file. With a token, a
// certificate need not name a proxy.
func checkLeaf(leaf *x509.Certificate, proxy string, token bool, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("ended at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("begins at %s; check the clock of this machine", leaf.NotBefore.UTC().Format(time.RFC3339))
	case !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) &&
		!slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny):
		return errors.New("is not for clients (extended key usage clientAuth)")
	}
	proxies := namedProxies(leaf)
	if slices.Contains(proxies, proxy) || token && len(proxies) == 0 {
		return nil
	}
	if len(proxies) == 0 {
		return fmt.Errorf("names no proxy (subject alternative name URI:spiffe://gatehouse/proxy/%s or DNS:%s)", proxy, proxy)
	}
	return fmt.Errorf("is for %s and not for proxy %q", strings.Join(proxies, ", "), proxy)
}

// namedProxies returns the proxies that a certificate names: a URI
// spiffe://ANY-TRUST-DOMAIN/proxy/NAME, or a DNS name.
func namedProxies(leaf *x509.Certificate) []string {
	spiffe := regexp.MustCompile(`^spiffe://[a-z0-9._-]+/proxy/([A-Za-z0-9._-]+)$`)
	var list []string
	for _, u := range leaf.URIs {
		if found := spiffe.FindStringSubmatch(u.String()); found != nil {
			list = append(list, found[1])
		}
	}
	return append(list, leaf.DNSNames...)
}

// firstCertificate continues the sentence, too.
func firstCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("does not begin with a certificate in PEM: give the one of this Envoy, " +
			"before those of its authorities")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("is not a certificate: %w", err)
	}
	return leaf, nil
}

// maxToken is longer than any token, in bytes.
const maxToken = 4096

// readToken reads the token; no error contains a part of it.
func readToken(path, proxy string) (string, error) {
	data, err := readFile("xds-token-file", path, fmt.Sprintf("POST /proxy/%s/token answers a token", proxy))
	if err != nil {
		return "", err
	}
	token := string(bytes.TrimSpace(data))
	switch {
	case token == "":
		return "", fmt.Errorf("--xds-token-file: %s is empty: write the token that POST /proxy/%s/token answers to it", path,
			proxy)
	case strings.ContainsAny(token, "{}\":, \t\r\n") || len(token) > maxToken:
		return "", fmt.Errorf(`--xds-token-file: %s is not a token in one line: write only the value of "token" to it`, path)
	}
	return token, nil
}

func readFile(flag, path, hint string) ([]byte, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--%s: there is no file %s: %s%w", flag, path, hint, hidden{err})
	case err != nil:
		cause := err
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			cause = p.Err
		}
		return nil, fmt.Errorf("--%s: reading %s: %w: it must be a file that this user can read", flag, path, cause)
	}
	return data, nil
}

// hidden is an error whose text is not repeated in the sentence.
type hidden struct{ error }

func (hidden) Error() string   { return "" }
func (h hidden) Unwrap() error { return h.error }
