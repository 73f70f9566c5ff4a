package app

import (
	"crypto/rand"
	"fmt"
	"os/exec"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/acme"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/expiry"
)

// watchCertificates makes the watch of certificates that end, and the source behind it, which adds automatic ones. With
// the configuration in Kubernetes there are none: each replica has a copy of its own, and cert-manager does it there.
func (p *controlPlane) watchCertificates(
	cfg config.Config, settings compile.Settings, source store.Source, registry *status.Registry,
) error {
	if p.mirror == nil {
		if cfg.ACMEDNSExec != "" {
			if _, err := exec.LookPath(cfg.ACMEDNSExec); err != nil {
				return fmt.Errorf("--acme-dns-exec names no program: %w", err)
			}
		}
		rules, err := p.providerRules(cfg, settings)
		if err != nil {
			return err
		}
		p.acme = acme.New(acme.Options{
			Source: source, Store: p.store, Status: registry, Log: p.log, Now: time.Now, Holder: rand.Text(),
			Dial: rules.DialContext, Authorities: settings.Authorities, DNSExec: cfg.ACMEDNSExec,
		})
		source = p.acme
	}
	p.expiry = expiry.New(expiry.Options{Source: source, Status: registry, Log: p.log, Now: time.Now, Port: p.xds.ends})
	return nil
}

// offerCertificates adds the calls about automatic certificates, and how orders wait for Envoys.
func (p *controlPlane) offerCertificates(access *rest.Options) {
	if p.acme != nil {
		p.acme.WaitWith(access.Wait)
		access.Certificates = p.acme
	}
}
