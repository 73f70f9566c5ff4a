package engine

import (
	"errors"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// RouteRefusal says why a route cannot become a working configuration. A route
// that has no upstream yet can.
func RouteRefusal(t *model.RouteTree) error {
	if r := buildRoute(t, clusterCache{}); r.condition != nil && r.condition.Code == model.Quarantined {
		return errors.New(r.condition.Message)
	}
	return nil
}

// ServiceRefusal says the same of a service, its routes left aside.
func ServiceRefusal(s *model.Service) error {
	host := &ir.Host{Name: s.Name, Domain: compile.Domain(s)}
	_, err := snapshot.NewHost(translate.VirtualHost(host), nil)
	return err
}

// ProxyRefusal says the same of a proxy.
func ProxyRefusal(p *model.Proxy) error {
	_, err := snapshot.NewListener(translate.Listener(compile.Listener(&model.ProxyTree{Proxy: p}, compile.Settings{})))
	return err
}

// GlobalConfigRefusal says the same of a global config.
func GlobalConfigRefusal(g *model.GlobalConfig) error {
	d, ok := rateLimitDomain(g)
	if !ok {
		return nil
	}
	return ratelimit.Check(d)
}
