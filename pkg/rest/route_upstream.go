package rest

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

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
		path: base,
		kind: model.KindUpstream, link: model.KindRouteUpstream,
		from: routeAt,
		links: func(n names) store.Query {
			return store.Query{Service: n[model.KindService], Route: n[model.KindRoute]}
		},
		target: func(o model.Object) model.Key {
			return model.UpstreamKey(o.(*model.RouteUpstream).Upstream)
		},
	})
}
