package app

import (
	"crypto/rand"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/acme"
)

// orderCertificates makes the source that adds automatic certificates. With the configuration in Kubernetes there are
// none: each replica has a copy of its own, and cert-manager does it there.
func (p *controlPlane) orderCertificates(
	cfg config.Config, settings compile.Settings, source store.Source, registry *status.Registry,
) (store.Source, error) {
	if p.mirror != nil {
		return source, nil
	}
	rules, err := p.providerRules(cfg, settings)
	if err != nil {
		return nil, err
	}
	p.acme = acme.New(acme.Options{
		Source: source, Store: p.store, Status: registry, Log: p.log, Now: time.Now, Holder: rand.Text(),
		Dial: rules.DialContext, Authorities: settings.Authorities,
	})
	return p.acme, nil
}
