package pipeline

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/addresslist"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// keyLists are the parts of lists that a proxy's routes have required since the program started: sets of keys, all
// consumers, and lists of addresses, by the list that contains them. Envoys may still have routes that require them.
type keyLists map[string]map[string]bool

// lists returns the names of the lists, in their order.
func lists() []string {
	return []string{credential.AnyKeyFilter, seam.KeyFilter, credential.ConsumerFilter, seam.AddressFilter}
}

// newKeyLists returns lists without parts.
func newKeyLists() keyLists {
	k := keyLists{}
	for _, list := range lists() {
		k[list] = map[string]bool{}
	}
	return k
}

// partNames returns the parts that routes require, by the list that contains them.
func partNames(needs ir.Needs) map[string][]string {
	parts := map[string][]string{
		seam.KeyFilter: needs.KeySets, credential.AnyKeyFilter: needs.AnyKeySets, seam.AddressFilter: needs.AddressLists,
	}
	if needs.Consumers {
		parts[credential.ConsumerFilter] = []string{credential.AllConsumers}
	}
	return parts
}

// partsOf returns the parts of lists that a host with the needs names.
func partsOf(needs ir.Needs) []snapshot.Part {
	var parts []snapshot.Part
	for _, list := range lists() {
		for _, name := range partNames(needs)[list] {
			parts = append(parts, snapshot.Part{Extension: list, Name: name})
		}
	}
	return parts
}

// hasAny reports whether a list has, or had, something that a change touched.
func (k keyLists) hasAny(touched model.Touched) bool {
	return touched.Consumers && k[credential.ConsumerFilter][credential.AllConsumers] ||
		slices.ContainsFunc(touched.KeySets, func(set string) bool {
			return k[seam.KeyFilter][set] || k[credential.AnyKeyFilter][set]
		}) ||
		slices.ContainsFunc(touched.Lists, func(list string) bool { return k[seam.AddressFilter][list] })
}

// listKeys returns the lists of a proxy. Parts that are no longer required have what is valid now: a revoked key is
// revoked everywhere.
func (b *Build) listKeys(p *proxy) []*snapshot.List {
	var all []*snapshot.List
	for _, list := range lists() {
		had, wanted := p.keyLists[list], partNames(p.needs)[list]
		for _, name := range wanted {
			had[name] = true
		}
		var others []string
		for name := range had {
			if !slices.Contains(wanted, name) && !b.isEmpty(list, name) {
				others = append(others, name)
			}
		}
		slices.Sort(others)
		all = append(all, snapshot.NewList(list, wanted, others, b.joiner(list, slices.Concat(wanted, others))))
	}
	return all
}

// isEmpty reports whether a part of a list has nothing.
func (b *Build) isEmpty(list, part string) bool {
	switch list {
	case credential.ConsumerFilter:
		return len(b.config.Consumers()) == 0
	case seam.AddressFilter:
		return len(b.addressLists([]string{part})) == 0
	}
	return len(b.config.Keys(part)) == 0
}

// joiner returns what joins a list from parts with what they have now.
func (b *Build) joiner(list string, parts []string) func(parts []string) (*snapshot.Resource, error) {
	if list == credential.ConsumerFilter {
		if len(parts) == 0 {
			return nil
		}
		consumers := b.config.Consumers()
		return func([]string) (*snapshot.Resource, error) {
			out, err := credential.ConsumerList(credential.Consumers(consumers))
			if err != nil {
				return nil, err
			}
			return snapshot.NewExtension(out)
		}
	}
	if list == seam.AddressFilter {
		return joinAddresses(b.addressLists(slices.Sorted(slices.Values(parts))))
	}
	keys := map[string][]ir.APIKey{}
	for _, set := range parts {
		keys[set] = credential.Keys(b.config.Keys(set))
	}
	return func(sets []string) (*snapshot.Resource, error) {
		var all []ir.APIKey
		for _, set := range sets {
			all = append(all, keys[set]...)
		}
		out, err := credential.KeyList(list, all)
		if err != nil {
			return nil, err
		}
		return snapshot.NewExtension(out)
	}
}

// joinAddresses returns what joins lists of addresses.
func joinAddresses(existing []ir.AddressList) func(names []string) (*snapshot.Resource, error) {
	return func(names []string) (*snapshot.Resource, error) {
		out, err := addresslist.Extension(slices.DeleteFunc(slices.Clone(existing), func(l ir.AddressList) bool {
			return !slices.Contains(names, l.Name)
		}))
		if err != nil {
			return nil, err
		}
		return snapshot.NewExtension(out)
	}
}

// addressLists returns those of lists that exist and can be read. An Envoy refuses clients for the others.
func (b *Build) addressLists(names []string) (lists []ir.AddressList) {
	for _, name := range names {
		if l := b.config.List(name); l != nil && l.Fault == nil {
			if list, ok := l.Spec.(*model.AddressList); ok {
				lists = append(lists, ir.AddressList{Name: name, Ranges: list.Ranges()})
			}
		}
	}
	return lists
}
