package model

import (
	"math"
	"net/netip"
	"strings"
)

// IPAccessFilter allows requests from some addresses, countries and networks, and refuses others. The filters of a
// service and a route both apply: a client must be in one of the allow lists of each filter that has any, and in no
// deny list.
// +page=ipaccess.md
// +minProperties=1
// +example={allow: [192.0.2.0/24, "2001:db8::/32"], deny: [192.0.2.7]}
type IPAccessFilter struct {
	// Addresses and ranges that are allowed. Without any allow list, all are.
	// +minItems=1
	// +maxItems=maxRanges
	Allow []string `json:"allow"`
	// Addresses and ranges that are denied, also if allow has them.
	// +maxItems=maxRanges
	Deny []string `json:"deny"`
	// Names of lists of addresses that are allowed, beside allow.
	// +minItems=1
	// +maxItems=maxLists
	// +items={type: string, minLength: 1}
	AllowLists []string `json:"allow_lists"`
	// Names of lists of addresses that are denied, also if an allow list has the client.
	// +maxItems=maxLists
	// +items={type: string, minLength: 1}
	DenyLists []string `json:"deny_lists"`
	// Countries that are allowed, as codes of ISO 3166-1 such as DE, or XK.
	// +minItems=1
	// +maxItems=maxCountries
	AllowCountries []string `json:"allow_countries"`
	// Countries that are denied, also if an allow list has the client.
	// +maxItems=maxCountries
	DenyCountries []string `json:"deny_countries"`
	// Networks that are allowed, as numbers of autonomous systems.
	// +minItems=1
	// +maxItems=maxNetworks
	AllowASNs []int `json:"allow_asns"`
	// Networks that are denied, also if an allow list has the client.
	// +maxItems=maxNetworks
	DenyASNs []int `json:"deny_asns"`
	// What happens to addresses of no known country or network, such as private ones; absent means that an allow list
	// does not have them, and a deny list neither. An address in allow is never refused for this.
	// +enum=[AccessAllow, AccessRefuse]
	Unknown string `json:"unknown"`
	// What happens to all addresses on an Envoy without the database that the lists need.
	// +enum=[AccessAllow, AccessRefuse]
	NoDatabase string `json:"no_database"`
}

// AccessAllow and AccessRefuse are what may happen to addresses about which nothing is known.
const (
	AccessAllow  = "allow"
	AccessRefuse = "refuse"
)

// maxRanges bounds a list: an Envoy gets it for each route that has it.
const maxRanges = 2000

// These bound the lists of countries and networks, which Envoy compares as one expression.
const (
	maxCountries = 250
	maxNetworks  = 500
)

func readIPAccess(v *validator, at, _ string, config JSON) Spec {
	var f IPAccessFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	if f.Allow == nil && len(f.Deny) == 0 && f.AllowLists == nil && len(f.DenyLists) == 0 && !f.Locates() &&
		f.AllowCountries == nil && f.AllowASNs == nil {
		v.add(at, `has no address; set allow or deny, such as {"allow":["192.0.2.0/24"]}`)
	}
	for _, list := range []struct {
		name, one string
		empty     bool
	}{
		{"allow", "address", f.Allow != nil && len(f.Allow) == 0},
		{"allow_lists", "list", f.AllowLists != nil && len(f.AllowLists) == 0},
		{"allow_countries", "country", f.AllowCountries != nil && len(f.AllowCountries) == 0},
		{"allow_asns", "network", f.AllowASNs != nil && len(f.AllowASNs) == 0},
	} {
		if list.empty {
			v.add(at+"."+list.name, "is empty, so no client would be allowed; name at least one %s, or omit %s", list.one, list.name)
		}
	}
	v.ranges(at+".allow", f.Allow, maxRanges)
	v.ranges(at+".deny", f.Deny, maxRanges)
	v.lists(at+".allow_lists", f.AllowLists)
	v.lists(at+".deny_lists", f.DenyLists)
	v.countries(at+".allow_countries", f.AllowCountries)
	v.countries(at+".deny_countries", f.DenyCountries)
	v.networks(at+".allow_asns", f.AllowASNs)
	v.networks(at+".deny_asns", f.DenyASNs)
	for _, choice := range []struct{ name, value string }{{"unknown", f.Unknown}, {"no_database", f.NoDatabase}} {
		if choice.value == "" {
			continue
		}
		v.oneOf(at+"."+choice.name, choice.value, []string{AccessAllow, AccessRefuse})
		if !f.Locates() {
			v.add(at+"."+choice.name, "is about lists of countries and networks, and the filter has none: set one, or omit %s", choice.name)
		}
	}
	return &f
}

// Locates reports whether the filter needs to know the country or the network of a client.
func (f *IPAccessFilter) Locates() bool { return f.LocatesCountry() || f.LocatesNetwork() }

// LocatesCountry reports whether the filter needs to know the country of a client.
func (f *IPAccessFilter) LocatesCountry() bool { return len(f.AllowCountries)+len(f.DenyCountries) > 0 }

// LocatesNetwork reports whether the filter needs to know the network of a client.
func (f *IPAccessFilter) LocatesNetwork() bool { return len(f.AllowASNs)+len(f.DenyASNs) > 0 }

func (f *IPAccessFilter) uses() []Key { return listKeys(f.AllowLists, f.DenyLists) }

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

func (v *validator) ranges(field string, list []string, most int) {
	if len(list) > most {
		v.add(field, "has %d entries; at most %d are allowed", len(list), most)
		return
	}
	for _, text := range list {
		if _, ok := ParseRange(text); !ok {
			v.add(field, "%q is not an address or a range such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32", text)
		}
	}
}

// countries checks codes of countries, which may be in lower case.
func (v *validator) countries(field string, list []string) {
	if len(list) > maxCountries {
		v.add(field, "has %d entries; at most %d are allowed", len(list), maxCountries)
		return
	}
	for _, code := range list {
		if !isCountry(strings.ToUpper(code)) {
			v.add(field, "%q is not the code of a country with two letters (ISO 3166-1), such as DE", code)
		}
	}
}

// networks checks numbers of autonomous systems (RFC 6793).
func (v *validator) networks(field string, list []int) {
	if len(list) > maxNetworks {
		v.add(field, "has %d entries; at most %d are allowed", len(list), maxNetworks)
		return
	}
	for _, n := range list {
		if n < 1 || n > math.MaxUint32 {
			v.add(field, "%d is not the number of an autonomous system: these are from 1 to %d", n, uint32(math.MaxUint32))
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
