package build

import (
	"errors"
	"fmt"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit/limits"
)

// RouteRefusals says which routes of one configuration cannot become a working one.
type RouteRefusals struct{ clusters *clusterCache }

// NewRouteRefusals returns what makes each cluster of a configuration once.
func NewRouteRefusals() RouteRefusals { return RouteRefusals{newClusterCache(newSecretCache())} }

// Of says why a route cannot become a working configuration. A route that has no
// upstream yet can.
func (r RouteRefusals) Of(t *model.RouteTree) error {
	if made := (builder{clusters: r.clusters, settings: anything()}).route(t); made.condition != nil && made.condition.Code == model.Quarantined {
		return errors.New(made.condition.Message)
	}
	return nil
}

// ServiceRefusal says why a service with its filters cannot become a working
// configuration, its routes left aside.
func ServiceRefusal(t *model.ServiceTree) error {
	for _, f := range t.Filters {
		if f.Fault != nil {
			return fmt.Errorf("the service has filter %s, which cannot be read (%w)", f.Name, f.Fault)
		}
	}
	host, _ := compile.Host(&model.ServiceTree{Service: t.Service, Filters: t.Filters}, nil, anything(), nil)
	_, err := encodeHost(host, nil, t.Service.Key())
	return err
}

// ProxyRefusal says the same of a proxy.
func ProxyRefusal(t *model.ProxyTree) error {
	_, _, err := encodeListener(compile.Listener(t, compile.Settings{}, ir.Needs{}), t.Proxy.Key())
	return err
}

// GlobalConfigRefusal says the same of a global config.
func GlobalConfigRefusal(g *model.GlobalConfig) error {
	d := limits.DomainOf(g.Parse())
	if d == nil {
		return nil
	}
	return ratelimit.Check(d)
}

// Forwards reports whether a route sends requests to an upstream.
func Forwards(t *model.RouteTree) bool {
	r, _ := compile.Route(t, anything())
	return r.Forward != nil
}

// anything are settings under which a route is judged by itself: what a configuration
// becomes on this machine is not asked.
func anything() compile.Settings {
	return compile.Settings{Authorities: "any", Open: func(string, string) (string, error) { return "", nil }}
}
