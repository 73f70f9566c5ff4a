package app

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/tlsdir"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// followCertificates makes the watch that keeps the secrets of --tls-dir. Its writes
// are checked like those of the API. The API warns of writes to secrets that the
// directory holds.
func (p *controlPlane) followCertificates(
	cfg config.Config, registry *status.Registry, access *rest.Options,
) (err error) {
	if cfg.TLSDir == "" {
		return nil
	}
	warn := access.Warn
	p.certificates, err = tlsdir.New(tlsdir.Options{
		Path: cfg.TLSDir, Store: p.store, Check: access.Check, Warn: warn, Status: registry, Log: p.log,
	})
	if err != nil {
		return err
	}
	access.Warn = func(r store.Reader, written store.Changes) ([]string, error) {
		list, err := warn(r, written)
		if err != nil {
			return nil, err
		}
		held, err := p.certificates.Warnings(written)
		return append(list, held...), err
	}
	return nil
}
