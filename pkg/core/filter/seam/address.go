package seam

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Ranges returns the ranges of before and those of texts, without the bits after their prefix, sorted and without
// duplicates. All texts are valid: a filter with an invalid one has a fault.
func Ranges(before []netip.Prefix, texts []string) []netip.Prefix {
	list := append([]netip.Prefix{}, before...)
	for _, text := range texts {
		if p, ok := model.ParseRange(text); ok {
			list = append(list, p.Masked())
		}
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	return slices.Compact(list)
}

// FormsOf returns a range in each form that an address may have: proxies in front that listen on IPv6 write an IPv4
// address in its IPv6 form.
func FormsOf(p netip.Prefix) []netip.Prefix {
	if !p.Addr().Is4() {
		return []netip.Prefix{p}
	}
	return []netip.Prefix{p, netip.PrefixFrom(netip.AddrFrom16(p.Addr().As16()), p.Bits()+96)}
}
