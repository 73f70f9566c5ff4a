package model

import (
	"net/netip"
	"strings"
)

// IPAccessFilter allows requests from some addresses, and refuses others. The filters of a service
// and a route both apply: a client must be in the allow of each that has one, and in no deny.
// +page=ipaccess.md
// +minProperties=1
// +example={allow: [192.0.2.0/24, "2001:db8::/32"], deny: [192.0.2.7]}
type IPAccessFilter struct {
	// Addresses and ranges that are allowed; absent means all.
	// +minItems=1
	// +maxItems=maxRanges
	Allow []string `json:"allow"`
	// Addresses and ranges that are denied, also if allow has them.
	// +maxItems=maxRanges
	Deny []string `json:"deny"`
}

// maxRanges bounds a list: an Envoy gets it for each route that has it.
const maxRanges = 2000

func readIPAccess(v *validator, at, _ string, config JSON) Spec {
	var f IPAccessFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	if f.Allow == nil && len(f.Deny) == 0 {
		v.add(at, `has no address; set allow or deny, such as {"allow":["192.0.2.0/24"]}`)
	}
	if f.Allow != nil && len(f.Allow) == 0 {
		v.add(at+".allow", "is empty, so no client would be allowed; name at least one address, or omit allow")
	}
	v.ranges(at+".allow", f.Allow)
	v.ranges(at+".deny", f.Deny)
	return &f
}

func (f *IPAccessFilter) uses() []Key { return nil }

// Advice says which ranges are written in a way that suggests another one.
func (f *IPAccessFilter) Advice() []string {
	return append(adviseRanges("allow", f.Allow), adviseRanges("deny", f.Deny)...)
}

func adviseRanges(name string, ranges []string) (list []string) {
	for _, text := range ranges {
		if p, ok := ParseRange(text); ok && p != p.Masked() {
			list = append(list, name+" has "+text+", which is all of "+p.Masked().String()+": write that, or the address alone")
		}
	}
	return list
}

func (v *validator) ranges(field string, list []string) {
	if len(list) > maxRanges {
		v.add(field, "has %d entries; at most %d are allowed", len(list), maxRanges)
		return
	}
	for _, text := range list {
		if _, ok := ParseRange(text); !ok {
			v.add(field, "%q is not an address or a range such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32", text)
		}
	}
}

// ParseRange reads an address or a range of addresses. An IPv4 address inside of IPv6
// has to be written as IPv4, and a zone is no part of an address that a client has.
func ParseRange(text string) (netip.Prefix, bool) {
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		return netip.PrefixFrom(a, a.BitLen()), err == nil && a.Zone() == "" && !a.Is4In6()
	}
	p, err := netip.ParsePrefix(text)
	return p, err == nil && !p.Addr().Is4In6()
}
