package rest

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

func (s *server) addRoute() {
	s.addObjects(kind{
		kind: model.KindRoute, base: "/service/:service/route", at: routeAt, siblings: ofService,
		make: func(n names, _ []form.Value) model.Object { return &model.Route{Service: n[model.KindService]} },
	})
	s.addRouteUpstream()
	s.addRouteFilter()
}

// addRouteUpstream registers the link from a route to an upstream.
func (s *server) addRouteUpstream() {
	const base = "/service/:service/route/:route/upstream"
	s.addLink(link{
		kind: model.KindRouteUpstream, path: base + "/:upstream",
		make: func(n names) model.Object {
			return &model.RouteUpstream{
				Service: n[model.KindService], Route: n[model.KindRoute], Upstream: n[model.KindUpstream],
			}
		},
		ends: func(n names) []model.Key { return append(routeAt(n), upstreamAt(n)...) },
	})
	s.addLinked(linked{
		path: base, kind: model.KindUpstream, link: model.KindRouteUpstream,
		from: routeAt, links: ofRoute, target: usedByLink,
	})
}

// addRouteFilter registers the link from a route to a filter.
func (s *server) addRouteFilter() {
	const base = "/service/:service/route/:route/filter"
	s.addLink(link{
		kind: model.KindRouteFilter, path: base + "/:filter",
		make: func(n names) model.Object {
			return &model.RouteFilter{
				Service: n[model.KindService], Route: n[model.KindRoute], Filter: n[model.KindFilter],
			}
		},
		ends: func(n names) []model.Key { return append(routeAt(n), filterAt(n)...) },
	})
	s.addLinked(linked{
		path: base, kind: model.KindFilter, link: model.KindRouteFilter,
		from: routeAt, links: ofRoute, target: usedByLink,
	})
}

func routeAt(n names) []model.Key {
	return append(serviceAt(n), model.RouteKey(n[model.KindService], n[model.KindRoute]))
}

func ofRoute(n names) store.Query {
	return store.Query{Service: n[model.KindService], Route: n[model.KindRoute]}
}
