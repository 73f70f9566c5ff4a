package rest

import (
	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// addProxyService registers the link from a proxy to a service.
func (s *server) addProxyService() {
	const base = "/proxy/:proxy/service"
	l := link{
		kind: model.KindProxyService, path: base + "/:service",
		make: func(n names) model.Object {
			return &model.ProxyService{Proxy: n[model.KindProxy], Service: n[model.KindService]}
		},
		ends: func(n names) []model.Key { return append(proxyAt(n), serviceAt(n)...) },
	}
	s.addLink(l)
	s.addLinked(linked{
		path: base,
		kind: model.KindService, link: model.KindProxyService,
		from:  proxyAt,
		links: func(n names) store.Query { return store.Query{Proxy: n[model.KindProxy]} },
		target: func(o model.Object) model.Key {
			return model.ServiceKey(o.(*model.ProxyService).Service)
		},
	})
	// The service is shown only through a proxy that it is attached to.
	s.get(l.path, func(c *gin.Context) error {
		return s.readObject(c, model.KindService, func(n names) []model.Key {
			return append(l.at(n), serviceAt(n)...)
		})
	})
}
