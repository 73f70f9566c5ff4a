package rest

import "github.com/gatehouse-gateway/gatehouse/pkg/model"

func (s *server) addFilter() {
	k := kind{kind: model.KindFilter, base: "/filter", at: filterAt}
	s.addObjects(k)
	s.addUpload(k, "config", "Filter_config")
}

func filterAt(n names) []model.Key { return []model.Key{model.FilterKey(n[model.KindFilter])} }
