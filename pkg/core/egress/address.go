package egress

import (
	"net/netip"
	"strconv"
	"strings"
)

// normalize returns an address in the form that lists and places use: lower case and
// without the final dot of a DNS name.
func normalize(address string) string { return strings.ToLower(strings.TrimSuffix(address, ".")) }

// KnownAddrs returns the IP addresses that an address certainly means; none for a DNS name
// that only a resolver knows. A connection to 0.0.0.0 is one to this machine.
func KnownAddrs(address string) []netip.Addr {
	name := normalize(address)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") || name == "localhost.localdomain" ||
		name == "ip6-localhost" || name == "ip6-loopback" {
		return loopbacks()
	}
	addr, err := netip.ParseAddr(name)
	if err != nil {
		var ok bool
		if addr, ok = oddIPv4(name); !ok {
			return nil
		}
	}
	addr = addr.Unmap().WithZone("")
	if addr.IsUnspecified() {
		return append(loopbacks(), addr)
	}
	return []netip.Addr{addr}
}

func loopbacks() []netip.Addr {
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}

// oddIPv4 reads an IPv4 address as inet_aton and some resolvers do: 0x7f000001 and 0177.1
// are 127.0.0.1.
func oddIPv4(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var sum uint64
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 0, 32)
		last := i == len(parts)-1
		if err != nil || strings.Contains(p, "_") || !last && n > 0xff || last && n>>(8*(5-len(parts))) > 0 {
			return netip.Addr{}, false
		}
		if last {
			sum |= n
		} else {
			sum |= n << (24 - 8*i)
		}
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}
