package app

import (
	"context"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/metrics"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/providers"
)

// addMetrics makes the API serve metrics and count its own answers in them.
func addMetrics(o *rest.Options, registry *status.Registry, p *controlPlane, version string) error {
	m, err := metrics.New(registry, version)
	if err != nil {
		return err
	}
	if err := m.AddCertificates(p.expiry.Ends); err != nil {
		return err
	}
	if err := m.AddXDSCertificates(p.expiry.PortEnds); err != nil {
		return err
	}
	if err := m.AddProviders(func() []metrics.Provider { return providerMetrics(p.providers.Reports()) }); err != nil {
		return err
	}
	if err := m.AddLogins(p.logins.Totals); err != nil {
		return err
	}
	if err := m.AddXDS(p.xds.refusals.Counts); err != nil {
		return err
	}
	o.Metrics, o.Observe = m.Handler(), m.CountAnswer
	wait := o.Wait
	o.Wait = func(ctx context.Context, revision int64, changed []model.Key) []status.Lag {
		lags := wait(ctx, revision, changed)
		m.CountWait(len(lags) == 0)
		return lags
	}
	return nil
}

func providerMetrics(reports []providers.Report) []metrics.Provider {
	list := make([]metrics.Provider, len(reports))
	for i, r := range reports {
		list[i] = metrics.Provider{Object: r.Object, Answered: r.Age >= 0, Age: r.Age.Seconds(), Failures: r.Failures}
	}
	return list
}
