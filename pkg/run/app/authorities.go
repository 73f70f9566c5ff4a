package app

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

// authorityFiles are where systems keep their certificate authorities: Debian,
// Fedora and Red Hat, SUSE, OpenELEC, CentOS 7, Alpine and macOS.
func authorityFiles() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	}
}

// readAuthorities reads the authorities that verify upstreams which name none: the file
// of the setting, otherwise the file of SSL_CERT_FILE, otherwise the first in the usual
// places. An empty result means that none was found.
func readAuthorities(setting string, getenv func(string) string, usual []string) (string, error) {
	file, from := setting, "--upstream-ca-file"
	if file == "" {
		file, from = getenv("SSL_CERT_FILE"), "SSL_CERT_FILE"
	}
	if file != "" {
		text, err := readCertificates(file)
		if err != nil {
			return "", fmt.Errorf("%s: reading the certificate authorities for upstreams: %w", from, err)
		}
		return text, nil
	}
	for _, file := range usual {
		if text, err := readCertificates(file); err == nil {
			return text, nil
		}
	}
	return "", nil
}

// readCertificates returns the certificates of a PEM file, each once, without the text
// between them. Envoy would refuse them all for one that Go cannot read.
func readCertificates(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	seen := map[string]bool{}
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" || seen[string(block.Bytes)] {
			continue
		}
		seen[string(block.Bytes)] = true
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			_ = pem.Encode(&out, &pem.Block{Type: block.Type, Bytes: block.Bytes}) // a buffer accepts every write
		}
	}
	if out.Len() == 0 {
		return "", fmt.Errorf("%s has no PEM certificate (-----BEGIN CERTIFICATE-----)", file)
	}
	return out.String(), nil
}
