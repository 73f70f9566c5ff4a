package compile

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostKeys(h *ir.Host, f *model.APIKeyFilter, _ Place) error {
	h.Keys = keyAccess(f)
	return nil
}

func addRouteKeys(r *ir.Route, f *model.APIKeyFilter, _ Place) error {
	r.Keys = keyAccess(f)
	return nil
}

func keyAccess(f *model.APIKeyFilter) *ir.KeyAccess {
	a := &ir.KeyAccess{Header: f.Header, Set: f.Keys}
	for _, name := range f.Clients {
		a.Clients = append(a.Clients, model.ClientID(f.Keys, name))
	}
	slices.Sort(a.Clients)
	return a
}

// keyNeeds returns the key sets that a host and its routes require.
func keyNeeds(h *ir.Host) (needs ir.Needs) {
	add := func(a *ir.KeyAccess, either *ir.AnyOf) {
		if a != nil {
			needs = needs.Merge(ir.Needs{KeySets: []string{a.Set}})
		}
		if either != nil && either.Keys != nil {
			needs = needs.Merge(ir.Needs{AnyKeySets: []string{either.Keys.Set}})
		}
	}
	add(h.Keys, h.AnyOf)
	for _, route := range h.Routes {
		for _, r := range route.All() {
			add(r.Keys, r.AnyOf)
		}
	}
	return needs
}

// Keys returns the keys of a set that Envoy accepts. Envoy would refuse all keys because of one
// malformed key, which only a manually edited database has.
func Keys(set []*model.APIKey) []ir.APIKey {
	list := make([]ir.APIKey, 0, len(set))
	for _, k := range set {
		if len(k.Validate()) == 0 {
			list = append(list, ir.APIKey{Client: k.Client(), Hash: k.Hash})
		}
	}
	return list
}
