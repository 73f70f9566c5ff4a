package rest

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

func (s *server) addService() {
	addObjects(s, kind[*model.Service]{
		kind: model.KindService, base: "/service",
		fields: serviceFields(),
		make:   func(names, []value) *model.Service { return &model.Service{} },
		at:     serviceAt,
	})
	s.addLinked(linked{
		path: "/service/:service/proxy",
		kind: model.KindProxy, link: model.KindProxyService,
		from:  serviceAt,
		links: func(n names) store.Query { return store.Query{Service: n[model.KindService]} },
		target: func(o model.Object) model.Key {
			return model.ProxyKey(o.(*model.ProxyService).Proxy)
		},
	})
}

func serviceFields() []field[*model.Service] {
	return []field[*model.Service]{
		need(text("Service_Name", func(o *model.Service) *string { return &o.Name })),
		need(text("fqdn", func(o *model.Service) *string { return &o.FQDN })),
	}
}

func serviceAt(n names) []model.Key {
	return []model.Key{model.ServiceKey(n[model.KindService])}
}
