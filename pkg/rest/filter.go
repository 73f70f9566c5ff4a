package rest

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

func (s *server) addFilter() {
	k := kind{kind: model.KindFilter, base: "/filter", at: filterAt}
	s.addObjects(k)
	s.addUpload(k, "config", "Filter_config")
	of := func(n names) store.Query { return store.Query{Filter: n[model.KindFilter]} }
	s.addLinked(linked{
		path: "/filter/:filter/route", kind: model.KindRoute, link: model.KindRouteFilter,
		from: filterAt, links: of, target: model.Object.Owner,
	})
	s.addLinked(linked{
		path: "/filter/:filter/service", kind: model.KindService, link: model.KindServiceFilter,
		from: filterAt, links: of, target: model.Object.Owner,
	})
}

func filterAt(n names) []model.Key { return []model.Key{model.FilterKey(n[model.KindFilter])} }
