package rest

import "github.com/gatehouse-gateway/gatehouse/pkg/model"

func (s *server) addGlobalConfig() {
	k := kind{kind: model.KindGlobalConfig, base: "/globalconfig", at: globalConfigAt}
	s.addObjects(k)
	s.addUpload(k, "config", "config")
}

func globalConfigAt(n names) []model.Key {
	return []model.Key{model.GlobalConfigKey(n[model.KindGlobalConfig])}
}
