package rest

import (
	"cmp"

	"github.com/gatehouse-gateway/gatehouse/pkg/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

func (s *server) addProxy() {
	s.addObjects(kind{
		kind: model.KindProxy, base: "/proxy", at: proxyAt,
		make: func(n names, sent []form.Value) model.Object {
			return s.newProxy(cmp.Or(n[model.KindProxy], form.TextOf(sent, "Name")))
		},
		created: func(p model.Object) map[string]any { return map[string]any{"name": p.Key().Name()} },
	})
	s.addProxyService()
	s.addProxyGlobalConfig()
}

// addProxyService registers the link from a proxy to a service.
func (s *server) addProxyService() {
	const base = "/proxy/:proxy/service"
	s.addLink(link{
		kind: model.KindProxyService, path: base + "/:service",
		make: func(n names) model.Object {
			return &model.ProxyService{Proxy: n[model.KindProxy], Service: n[model.KindService]}
		},
		ends: func(n names) []model.Key { return append(proxyAt(n), serviceAt(n)...) },
	})
	s.addLinked(linked{
		path: base, kind: model.KindService, link: model.KindProxyService,
		from: proxyAt, links: ofProxy, target: usedByLink,
	})
}

// addProxyGlobalConfig registers the link from a proxy to a global config.
func (s *server) addProxyGlobalConfig() {
	const base = "/proxy/:proxy/globalconfig"
	s.addLink(link{
		kind: model.KindProxyGlobalConfig, path: base + "/:globalconfig",
		make: func(n names) model.Object {
			return &model.ProxyGlobalConfig{Proxy: n[model.KindProxy], GlobalConfig: n[model.KindGlobalConfig]}
		},
		ends: func(n names) []model.Key { return append(proxyAt(n), globalConfigAt(n)...) },
	})
	s.addLinked(linked{
		path: base, kind: model.KindGlobalConfig, link: model.KindProxyGlobalConfig,
		from: proxyAt, links: ofProxy, target: usedByLink,
	})
}

func proxyAt(n names) []model.Key { return []model.Key{model.ProxyKey(n[model.KindProxy])} }

func ofProxy(n names) store.Query { return store.Query{Proxy: n[model.KindProxy]} }
