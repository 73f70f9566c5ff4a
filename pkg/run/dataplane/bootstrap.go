package dataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/envoy"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

// Params returns the parameters of the Envoy's bootstrap. The paths in it are absolute.
// It reads the token; Check reads the certificates.
func Params(cfg config.Config) (envoy.Params, error) {
	c := cfg.Connect
	p := envoy.Params{
		Node: cfg.Proxy, XDSAddr: cfg.XDSAddr, AdminAddr: cfg.AdminAddr, AdminSocket: cfg.AdminSocket,
		MaxConnections: c.MaxConnections, MaxHeap: c.MaxHeap, Loopback: c.Sidecar, Instance: c.Instance, Zone: cfg.Zone,
		Metadata: c.NodeMetadata, StatsTags: c.StatsTags,
	}
	var err error
	if c.TokenFile != "" {
		if p.Token, err = readToken(c.TokenFile, cfg.Proxy); err != nil {
			return p, err
		}
	}
	if c.TLSCA == "" {
		return p, nil
	}
	p.TLS = &envoy.TLS{ServerName: c.TLSServerName}
	for _, f := range []struct {
		from string
		to   *string
	}{{c.TLSCA, &p.TLS.CA}, {c.TLSCert, &p.TLS.Cert}, {c.TLSKey, &p.TLS.Key}} {
		if f.from == "" {
			continue
		}
		// Envoy may have a different working directory.
		if *f.to, err = filepath.Abs(f.from); err != nil {
			return p, fmt.Errorf("looking for %s: %w", f.from, err)
		}
	}
	return p, nil
}

// Names of the files in --sds-dir.
const (
	certificateFile = "xds-certificate.json"
	authorityFile   = "xds-ca.json"
)

// WriteFollowed writes the files through which Envoy watches its certificates to an
// existing directory, and sets their names in p. They contain no secret.
func WriteFollowed(p *envoy.Params, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("--sds-dir: %w", err)
	}
	p.TLS.CAFile = filepath.Join(dir, authorityFile)
	certificate, authorities, err := envoy.Follow(*p.TLS, p.XDSAddr)
	if err != nil {
		return err
	}
	if certificate != nil {
		p.TLS.CertFile = filepath.Join(dir, certificateFile)
		if err := replaceFile(p.TLS.CertFile, certificate); err != nil {
			return err
		}
	}
	return replaceFile(p.TLS.CAFile, authorities)
}

// replaceFile replaces a file with a rename, so that an Envoy that watches it never
// reads half of it.
func replaceFile(path string, content []byte) error {
	next := path + ".new"
	err := os.WriteFile(next, content, 0o644) //nolint:gosec // no secret, and Envoy may be another user's
	if err == nil {
		err = os.Rename(next, path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--sds-dir: there is no directory %s: make it, on the machine of the Envoy", filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("--sds-dir: %w", err)
	}
	return nil
}

// JSON returns a bootstrap, which is YAML, as JSON.
func JSON(bootstrap []byte) ([]byte, error) {
	out, err := yaml.YAMLToJSON(bootstrap)
	if err != nil {
		return nil, fmt.Errorf("writing the bootstrap as JSON: %w", err)
	}
	return append(out, '\n'), nil
}
