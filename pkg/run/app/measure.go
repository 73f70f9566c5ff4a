package app

import (
	"context"
	"fmt"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/telemetry"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/metrics"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/providers"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// observe makes the API serve metrics and count its own answers in them, and sends metrics and spans to collectors.
func (p *controlPlane) observe(
	ctx context.Context, cfg config.Config, registry *status.Registry, ads *server.Server, o *rest.Options, version string,
) error {
	m, err := metrics.New(registry, version)
	if err != nil {
		return err
	}
	if err := p.addMetrics(m, ads); err != nil {
		return err
	}
	if err := p.send(ctx, cfg, registry, m, version); err != nil {
		return err
	}
	o.Store = p.tracer.Store(o.Store)
	o.Metrics, o.Observe = m.Handler(), func(ctx context.Context, method, path string, code int, took time.Duration) {
		telemetry.Answered(ctx, method, path, code)
		m.CountAnswer(method, path, code, took, telemetry.TraceID(ctx))
	}
	wait := o.Wait
	o.Wait = func(ctx context.Context, revision int64, changed []model.Key) []status.Lag {
		ctx, end := p.tracer.Start(ctx, "wait")
		defer end()
		lags := wait(ctx, revision, changed)
		m.CountWait(len(lags) == 0)
		return lags
	}
	return nil
}

// send opens the ways to the collectors.
func (p *controlPlane) send(
	ctx context.Context, cfg config.Config, registry *status.Registry, m *metrics.Metrics, version string,
) (err error) {
	program, failures := telemetry.Program{Version: version, Instance: p.replica}, map[string]func() int64{}
	if cfg.OTLPTraces != "" {
		link := telemetry.NewLink("spans", p.log)
		failures["traces"] = link.Failures
		p.tracer, err = telemetry.NewTracer(ctx, telemetry.Options{
			URL: cfg.OTLPTraces, Program: program, Feed: registry.Feed(), Envoys: registry.Envoys, Link: link,
		})
		if err != nil {
			return fmt.Errorf("sending spans to --otlp-traces: %w", err)
		}
	}
	if cfg.OTLPMetrics != "" {
		link := telemetry.NewLink("metrics", p.log)
		failures["metrics"] = link.Failures
		if p.pushed, err = telemetry.PushMetrics(ctx, cfg.OTLPMetrics, program, m, link); err != nil {
			return fmt.Errorf("sending metrics to --otlp-metrics: %w", err)
		}
	}
	return m.AddOTLP(failures)
}

// addMetrics adds the metrics of the parts.
func (p *controlPlane) addMetrics(m *metrics.Metrics, ads *server.Server) error {
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
	if p.acme != nil {
		if err := m.AddOrders(p.acme.Attempts); err != nil {
			return err
		}
	}
	if err := m.AddXDS(p.xds.refusals.Counts); err != nil {
		return err
	}
	return m.AddUpstreams(func() []metrics.Upstream { return upstreamMetrics(ads.Requests()) })
}

func upstreamMetrics(requests []server.Requests) []metrics.Upstream {
	list := make([]metrics.Upstream, len(requests))
	for i, r := range requests {
		list[i] = metrics.Upstream{Proxy: r.Proxy, Name: r.Upstream, Counts: r.Counts, Active: r.Active}
	}
	return list
}

func providerMetrics(reports []providers.Report) []metrics.Provider {
	list := make([]metrics.Provider, len(reports))
	for i, r := range reports {
		list[i] = metrics.Provider{Object: r.Object, Answered: r.Age >= 0, Age: r.Age.Seconds(), Failures: r.Failures}
	}
	return list
}
