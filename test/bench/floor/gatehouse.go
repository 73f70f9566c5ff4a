package main

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// asGatehouse writes messages with Gatehouse's own packages.
type asGatehouse struct{}

func (asGatehouse) routeConfiguration() *routev3.RouteConfiguration {
	return translate.RouteConfiguration()
}

func (asGatehouse) build(s *service) (err error) {
	s.clusters = nil
	host, _ := compile.Host(s.tree(), nil, compile.Settings{}, func(t *model.RouteTree) *ir.Route {
		r, _ := compile.Route(t, compile.Settings{})
		return r
	})
	if s.host, err = translate.VirtualHost(host); err != nil {
		return err
	}
	for _, r := range host.Routes {
		route, err := translate.Route(r)
		if err != nil {
			return err
		}
		s.host.Routes = append(s.host.Routes, route)
		if r.Forward == nil {
			continue
		}
		for _, c := range r.Forward.Clusters {
			cluster, err := translate.Cluster(c.Cluster)
			if err != nil {
				return err
			}
			s.clusters = append(s.clusters, cluster)
		}
	}
	return nil
}

// tree returns the service as Gatehouse's packages read it.
func (s *service) tree() *model.ServiceTree {
	t := &model.ServiceTree{Service: &model.Service{Name: s.name, FQDN: layout.FQDN(s.name)}}
	for _, r := range s.routes {
		route := &model.RouteTree{Route: &model.Route{ID: r.id, Service: r.Service, Name: r.Name, Prefix: r.Prefix}}
		if r.attached {
			u := model.NewUpstream()
			u.Name, u.IP, u.Port = r.Upstream, layout.Address, r.Port
			route.Upstreams = []*model.Upstream{u}
		}
		t.Routes = append(t.Routes, route)
	}
	return t
}
