package egress

import (
	"net/netip"
	"slices"
)

// Contains reports whether a list has an address. A DNS name matches only by name.
func Contains(list []Entry, address string) bool {
	return find(list, address, KnownAddrs(address)) != nil
}

// Special describes an address that no service of others can have: of the machine itself,
// of the link, of a cloud's own services, or of many. Empty means that it is none of
// these.
func Special(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if inner, ok := translated(addr); ok {
		if what := Special(inner); what != "" {
			return what
		}
	}
	for _, r := range reserved() {
		if r.network.Contains(addr) {
			return r.what
		}
	}
	return ""
}

// reservedNetwork is a network whose addresses are special.
type reservedNetwork struct {
	network netip.Prefix
	what    string
}

const (
	loopback    = "a loopback address"
	unspecified = "an unspecified address"
	linkLocal   = "a link-local address"
	many        = "a multicast or reserved address"
	translates  = "an address that a gateway translates into another"
	metadata    = "the address of a cloud's metadata service"
)

// reserved lists the networks of the IANA registries of special-purpose addresses that no service of others can be in,
// and what clouds serve at addresses of their own. Private networks (10.0.0.0/8, fc00::/7) and those of carriers
// (100.64.0.0/10), which clusters use for Pods, are not among them.
func reserved() []reservedNetwork {
	list := func(what string, networks ...string) (of []reservedNetwork) {
		for _, n := range networks {
			of = append(of, reservedNetwork{netip.MustParsePrefix(n), what})
		}
		return of
	}
	return slices.Concat(
		list(loopback, "127.0.0.0/8", "::1/128"),
		list(unspecified, "0.0.0.0/8", "::/128"),
		list(linkLocal, "169.254.0.0/16", "fe80::/10", "fec0::/10"), // the last is site-local (RFC 3879)
		list(metadata,
			"fd00:ec2::/32",      // Amazon over IPv6
			"fd20:ce::254/128",   // Google over IPv6
			"fd00:42::42/128",    // Scaleway over IPv6
			"fd00:c1::/32",       // Oracle over IPv6
			"192.0.0.192/32",     // Oracle
			"100.100.100.200/32", // Alibaba
			"168.63.129.16/32",   // Azure
		),
		list(many, "192.0.0.0/24", "224.0.0.0/4", "240.0.0.0/4", "ff00::/8"),
		list(translates, "64:ff9b:1::/48", "2001::/32"), // NAT64 of a site (RFC 8215), Teredo (RFC 4380)
	)
}

// translated returns the IPv4 address in an IPv6 address that a gateway translates: NAT64
// (RFC 6052), 6to4 (RFC 3056) or an IPv4-compatible address (RFC 4291).
func translated(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return netip.Addr{}, false
	}
	b := addr.As16()
	at := 12
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(addr):
	case netip.MustParsePrefix("::ffff:0:0:0/96").Contains(addr): // SIIT (RFC 2765)
	case netip.MustParsePrefix("::/96").Contains(addr) && !addr.IsLoopback() && !addr.IsUnspecified():
	case netip.MustParsePrefix("2002::/16").Contains(addr):
		at = 2
	default:
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(b[at : at+4])), true
}
