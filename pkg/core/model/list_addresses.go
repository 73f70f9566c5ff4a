package model

import (
	"cmp"
	"net/netip"
	"slices"
)

// AddressList is a list of addresses and ranges of addresses.
// +page=lists.md
// +example={addresses: [192.0.2.0/24, "2001:db8::/32"]}
type AddressList struct {
	// May be empty: then no address is in the list.
	// +required
	// +maxItems=maxListedRanges
	// +items={type: string, minLength: 1}
	Addresses []string `json:"addresses"`
	ranges    []netip.Prefix
}

// maxListedRanges bounds a list. An Envoy gets each list once.
const maxListedRanges = 10_000

func readAddressList(v *validator, at, _ string, config JSON) Spec {
	var l AddressList
	if !v.decode(at, config, &l) {
		return &l
	}
	if l.Addresses == nil {
		v.add(at+".addresses", `is required, such as {"addresses":["192.0.2.0/24"]}; [] is an empty list`)
	}
	bad := len(v.errs)
	v.ranges(at+".addresses", l.Addresses, maxListedRanges)
	if len(v.errs) == bad {
		l.ranges = disjoint(l.Addresses)
	}
	return &l
}

func (l *AddressList) uses() []Key { return nil }

// Ranges returns the ranges, sorted, without those that lie in another one. A caller must not change them.
func (l *AddressList) Ranges() []netip.Prefix { return l.ranges }

// Advice says which ranges are written in a way that suggests another one.
func (l *AddressList) Advice() []string { return adviseRanges("addresses", l.Addresses) }

// disjoint returns valid ranges, sorted, without those that lie in another one: Envoy would refuse a tree of many ranges
// within each other.
func disjoint(texts []string) []netip.Prefix {
	list := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		p, _ := ParseRange(text)
		list = append(list, p.Masked())
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	out := list[:0]
	for _, p := range list {
		if n := len(out); n == 0 || !out[n-1].Overlaps(p) { // the wider of two comes first
			out = append(out, p)
		}
	}
	return slices.Clip(out)
}
