package inspect

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// objectsOf returns the objects that a refused resource was made from.
func objectsOf(e status.Envoy, r status.Refusal) []model.Key {
	if len(r.Objects) == 0 {
		return []model.Key{model.ProxyKey(e.Proxy)}
	}
	return r.Objects
}

func paths(keys []model.Key) []string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.Path()
	}
	return list
}

// subjects returns the objects that a condition on an object or link is about.
func subjects(k model.Key) []model.Key {
	if attached := k.Attached(); attached != (model.Key{}) {
		return []model.Key{k.Owner(), attached}
	}
	return []model.Key{k}
}
