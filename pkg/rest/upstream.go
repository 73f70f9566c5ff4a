package rest

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

func (s *server) addUpstream() {
	s.addObjects(kind{kind: model.KindUpstream, base: "/upstream", at: upstreamAt})
	s.addLinked(linked{
		path: "/upstream/:upstream/route",
		kind: model.KindRoute, link: model.KindRouteUpstream,
		from:   upstreamAt,
		links:  func(n names) store.Query { return store.Query{Upstream: n[model.KindUpstream]} },
		target: model.Object.Owner,
	})
	s.addUsers("/upstream/:upstream/filter", model.KindFilter, upstreamAt)
}

func upstreamAt(n names) []model.Key {
	return []model.Key{model.UpstreamKey(n[model.KindUpstream])}
}
