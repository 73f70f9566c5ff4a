package rest

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

func (s *server) addGlobalConfig() {
	k := kind{kind: model.KindGlobalConfig, base: "/globalconfig", at: globalConfigAt}
	s.addObjects(k)
	s.addUpload(k, "config", "config")
	s.addLinked(linked{
		path: "/globalconfig/:globalconfig/proxy", kind: model.KindProxy, link: model.KindProxyGlobalConfig,
		from: globalConfigAt, target: model.Object.Owner,
		links: func(n names) store.Query { return store.Query{GlobalConfig: n[model.KindGlobalConfig]} },
	})
}

func globalConfigAt(n names) []model.Key {
	return []model.Key{model.GlobalConfigKey(n[model.KindGlobalConfig])}
}
