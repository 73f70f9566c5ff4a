package pipeline

import (
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// keyLists are the sets that a proxy's routes have required since the program started, by the list that
// contains their keys. Envoys may still have routes that require them.
type keyLists map[string]map[string]bool

// setsOf returns the key sets that routes require, by the list that contains their keys.
func setsOf(needs ir.Needs) map[string][]string {
	return map[string][]string{seam.KeyFilter: needs.KeySets, credential.AnyKeyFilter: needs.AnyKeySets}
}

// partsOf returns the parts of lists that a host with the needs names.
func partsOf(needs ir.Needs) []snapshot.Part {
	var list []snapshot.Part
	for _, filter := range []string{credential.AnyKeyFilter, seam.KeyFilter} {
		for _, set := range setsOf(needs)[filter] {
			list = append(list, snapshot.Part{Extension: filter, Name: set})
		}
	}
	return list
}

// hasAny reports whether a list has, or had, one of the sets.
func (k keyLists) hasAny(sets []string) bool {
	return slices.ContainsFunc(sets, func(set string) bool {
		return k[seam.KeyFilter][set] || k[credential.AnyKeyFilter][set]
	})
}

// listKeys returns the lists of a proxy. Sets that are no longer required have the keys that are valid
// now: a revoked key is revoked everywhere.
func (b *Build) listKeys(p *proxy) []*snapshot.List {
	var lists []*snapshot.List
	for _, filter := range []string{credential.AnyKeyFilter, seam.KeyFilter} {
		had := p.keyLists[filter]
		wanted, keys := setsOf(p.needs)[filter], map[string][]ir.APIKey{}
		for _, set := range wanted {
			had[set] = true
		}
		for set := range had {
			if keys[set] = credential.Keys(b.config.Keys(set)); len(keys[set]) == 0 && !slices.Contains(wanted, set) {
				delete(keys, set)
			}
		}
		others := slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), func(set string) bool {
			return slices.Contains(wanted, set)
		})
		lists = append(lists, snapshot.NewList(filter, wanted, others, func(sets []string) (*snapshot.Resource, error) {
			var all []ir.APIKey
			for _, set := range sets {
				all = append(all, keys[set]...)
			}
			out, err := credential.KeyList(filter, all)
			if err != nil {
				return nil, err
			}
			return snapshot.NewExtension(out)
		}))
	}
	return lists
}
