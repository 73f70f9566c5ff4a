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

// keyNeeds are the key sets that a host and its routes ask for.
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

// Keys are those of a set that Envoy takes. It would refuse all for one that is not in order, which
// only a database edited by hand has.
func Keys(set []*model.APIKey) []ir.APIKey {
	list := make([]ir.APIKey, 0, len(set))
	for _, k := range set {
		if len(k.Validate()) == 0 {
			list = append(list, ir.APIKey{Client: k.Client(), Hash: k.Hash})
		}
	}
	return list
}
