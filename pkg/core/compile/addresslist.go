package compile

import (
	"net/netip"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// withLists adds the lists of addresses that filters compare. own are those of the place itself: if they name none, what
// is around the place has the lists.
func withLists(f ir.Filters, own []*model.ParsedFilter, around ...*model.ParsedFilter) ir.Filters {
	if !slices.ContainsFunc(own, func(f *model.ParsedFilter) bool { return len(f.AddressLists()) > 0 }) {
		return f
	}
	var names []string
	for _, one := range slices.Concat(around, own) {
		names = append(names, one.AddressLists()...)
	}
	slices.Sort(names)
	return seam.ListsKey.In(f, slices.Compact(names))
}

// listNeeds returns the lists of addresses that a host and its routes compare.
func listNeeds(h *ir.Host) ir.Needs {
	names := slices.Clone(seam.ListsKey.Of(h.Filters))
	for _, route := range h.Routes {
		for _, r := range route.All() {
			names = append(names, seam.ListsKey.Of(r.Filters)...)
		}
	}
	return ir.Needs{}.Merge(ir.Needs{AddressLists: names})
}

// listedRanges returns the ranges of lists that a filter names. ok is false if one cannot be read.
func listedRanges(named map[model.Key]model.Object, names []string) (ranges []netip.Prefix, ok bool) {
	for _, name := range names {
		l, _ := named[model.ListKey(name)].(*model.ParsedList)
		if l == nil || l.Fault != nil {
			return nil, false
		}
		list, is := l.Spec.(*model.AddressList)
		if !is {
			return nil, false
		}
		ranges = append(ranges, list.Ranges()...)
	}
	return ranges, true
}
