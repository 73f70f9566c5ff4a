package egress

import "net/netip"

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
	switch {
	case addr.IsLoopback():
		return "a loopback address"
	case addr.IsUnspecified() || netip.PrefixFrom(netip.IPv4Unspecified(), 8).Contains(addr):
		return "an unspecified address"
	case addr.IsLinkLocalUnicast():
		return "a link-local address"
	case addr.IsMulticast() || netip.PrefixFrom(netip.AddrFrom4([4]byte{240}), 4).Contains(addr):
		return "a multicast or reserved address"
	}
	for _, a := range metadataServices() {
		if addr == a {
			return "the address of a cloud's metadata service"
		}
	}
	return ""
}

// metadataServices are those that are not link-local: of Amazon over IPv6, of Alibaba and
// of Azure.
func metadataServices() [3]netip.Addr {
	return [3]netip.Addr{
		netip.MustParseAddr("fd00:ec2::254"), netip.AddrFrom4([4]byte{100, 100, 100, 200}), netip.AddrFrom4([4]byte{168, 63, 129, 16}),
	}
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
	case netip.MustParsePrefix("::/96").Contains(addr) && !addr.IsLoopback() && !addr.IsUnspecified():
	case netip.MustParsePrefix("2002::/16").Contains(addr):
		at = 2
	default:
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(b[at : at+4])), true
}
