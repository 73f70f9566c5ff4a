package rest

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

func (s *server) addService() {
	s.addObjects(kind{kind: model.KindService, base: "/service", at: serviceAt})
	s.addLinked(linked{
		path: "/service/:service/proxy",
		kind: model.KindProxy, link: model.KindProxyService,
		from: serviceAt, links: ofService,
		target: model.Object.Owner,
	})
	s.addServiceFilter()
	s.addServiceSecret()
}

// addServiceFilter registers the link from a service to a filter.
func (s *server) addServiceFilter() {
	const base = "/service/:service/filter"
	s.addLink(link{
		kind: model.KindServiceFilter, path: base + "/:filter",
		make: func(n names) model.Object {
			return &model.ServiceFilter{Service: n[model.KindService], Filter: n[model.KindFilter]}
		},
		ends: func(n names) []model.Key { return append(serviceAt(n), filterAt(n)...) },
	})
	s.addLinked(linked{
		path: base, kind: model.KindFilter, link: model.KindServiceFilter,
		from: serviceAt, links: ofService, target: usedByLink,
	})
}

// addServiceSecret registers the link from a service to its certificate.
func (s *server) addServiceSecret() {
	const base = "/service/:service/secret"
	s.addLink(link{
		kind: model.KindServiceSecret, path: base + "/:secret",
		make: func(n names) model.Object {
			return &model.ServiceSecret{Service: n[model.KindService], Secret: n[model.KindSecret]}
		},
		ends: func(n names) []model.Key { return append(serviceAt(n), secretAt(n)...) },
	})
	s.addLinked(linked{
		path: base, kind: model.KindSecret, link: model.KindServiceSecret,
		from: serviceAt, links: ofService, target: usedByLink,
	})
}

func serviceAt(n names) []model.Key {
	return []model.Key{model.ServiceKey(n[model.KindService])}
}

func ofService(n names) store.Query { return store.Query{Service: n[model.KindService]} }
