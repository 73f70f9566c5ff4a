package oidc

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"

	"github.com/gatehouse-gateway/gatehouse/pkg/egress"
)

// Rules say where providers may be asked. The zero value allows all but addresses that
// are special (egress.Special).
type Rules struct {
	// Upstreams are the rules for upstreams, which hold for providers too.
	Upstreams egress.Lists
	// Allow are special addresses, or the names of hosts that may have them.
	Allow []egress.Entry
	// Machine is the one that the program runs on. Places are where it listens, which is
	// no provider; nil means nowhere.
	Machine egress.Machine
	Places  func() []egress.Place
}

// refusal is an address that may not be asked.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

// checkHost refuses a host that a list names.
func (r Rules) checkHost(host string) error {
	if why := r.Upstreams.Refusal(host); why != "" {
		return refusal("may not be asked: " + why)
	}
	return nil
}

// control returns what net.Dialer calls with the address that a connection is made to, so
// that a resolver cannot lie. An address that somebody has given to an upstream may be
// special.
func (r Rules) control(host string, upstream bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return refusal(fmt.Sprintf("has the address %q, which is none", address))
		}
		return r.checkAddr(host, netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), upstream)
	}
}

// checkEndpoint refuses a URL that Envoy is to connect to, as far as its host says
// where that is.
func (r Rules) checkEndpoint(u *url.URL) error {
	host := u.Hostname()
	if err := r.checkHost(host); err != nil {
		return err
	}
	port, _ := strconv.ParseUint(portOf(u), 10, 16) // 0 is no port of ours
	for _, addr := range egress.KnownAddrs(host) {
		if err := r.checkAddr(host, netip.AddrPortFrom(addr, uint16(port)), false); err != nil {
			return err
		}
	}
	return nil
}

func (r Rules) checkAddr(host string, at netip.AddrPort, upstream bool) error {
	addr := at.Addr()
	deny := egress.Lists{Deny: r.Upstreams.Deny}
	if why := deny.Refusal(addr.String()); why != "" && !egress.Contains(r.Upstreams.Allow, host) {
		return refusal("may not be asked: " + why)
	}
	if r.Places != nil {
		if p := r.Machine.Find(r.Places(), addr.String(), int(at.Port())); p != nil {
			return refusal(fmt.Sprintf("may not be asked: its address %s is that of %s", at, p.What))
		}
	}
	what := egress.Special(addr)
	if what == "" || upstream || egress.Contains(r.Allow, host) || egress.Contains(r.Allow, addr.String()) {
		return nil
	}
	return refusal(fmt.Sprintf("may not be asked: its address %s is %s; if the provider is there, name an upstream with this address in the configuration, or start with --provider-allow %s",
		addr, what, addr))
}
