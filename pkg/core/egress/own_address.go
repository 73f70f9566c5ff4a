package egress

import (
	"net/netip"
	"slices"
)

// OwnAddress is an address where the gateway itself listens.
type OwnAddress struct {
	// What describes it: "the REST API".
	What string
	Addr netip.AddrPort
}

// Machine is the machine that the program runs on.
type Machine struct {
	Addrs []netip.Addr
	// Names are the names of this machine, in addition to localhost.
	Names []string
}

// Find returns the own address that an upstream's address leads to; nil means none. A
// loopback address belongs to this machine for every Envoy that runs here.
func (m Machine) Find(own []OwnAddress, address string, port int) *OwnAddress {
	for i := range own {
		if p := &own[i]; int(p.Addr.Port()) == port && m.connects(p.Addr.Addr().Unmap(), address) {
			return p
		}
	}
	return nil
}

// Local reports whether an address means this machine.
func (m Machine) Local(address string) bool {
	return m.hasName(address) || slices.ContainsFunc(KnownAddrs(address), m.local)
}

func (m Machine) local(a netip.Addr) bool {
	return a.IsLoopback() || a.IsUnspecified() || slices.Contains(m.Addrs, a)
}

func (m Machine) hasName(address string) bool {
	return slices.ContainsFunc(m.Names, func(name string) bool { return normalize(name) == normalize(address) })
}

// connects reports whether a connection to an address may reach a listener.
func (m Machine) connects(listener netip.Addr, address string) bool {
	if listener.IsUnspecified() || m.hasName(address) {
		return m.Local(address)
	}
	return slices.ContainsFunc(KnownAddrs(address), func(a netip.Addr) bool {
		return a == listener || a.IsLoopback() && listener.IsLoopback()
	})
}
