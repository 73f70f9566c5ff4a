package oidc

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
)

// Rules say which addresses providers may have. The zero value allows all except special
// ones (egress.Special).
type Rules struct {
	// Upstreams are the rules for upstreams, which also apply to providers.
	Upstreams egress.Lists
	// Allow has special addresses that are allowed, or the names of hosts that may have
	// them.
	Allow []egress.Entry
	// Machine is the machine that the program runs on. OwnAddresses returns where it listens,
	// which no provider may be; nil means nowhere.
	Machine      egress.Machine
	OwnAddresses func() []egress.OwnAddress
}

// refusal is an address that must not be connected to.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

// checkHost refuses a host that a list names.
func (r Rules) checkHost(host string) error {
	if why := r.Upstreams.Refusal(host); why != "" {
		return refusal("must not be called: " + why)
	}
	return nil
}

// control returns the function that net.Dialer calls with the address of a connection, so
// that a resolver cannot deceive. An address that a user has given to an upstream may be
// special.
func (r Rules) control(host string, upstream bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return refusal(fmt.Sprintf("has the address %q; expected an IP address and a port", address))
		}
		return r.checkAddr(host, netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), upstream)
	}
}

// checkEndpoint refuses a URL that Envoy would connect to, if its host shows that the
// rules forbid it.
func (r Rules) checkEndpoint(u *url.URL) error {
	host := u.Hostname()
	if err := r.checkHost(host); err != nil {
		return err
	}
	port, _ := strconv.ParseUint(portOf(u), 10, 16) // no port of the program is 0
	for _, addr := range egress.KnownAddrs(host) {
		if err := r.checkAddr(host, netip.AddrPortFrom(addr, uint16(port)), false); err != nil {
			return err
		}
	}
	return nil
}

// DialContext connects to an address that the rules allow.
func (r Rules) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err == nil {
		err = r.checkHost(host)
	}
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{Control: r.control(host, false)}).DialContext(ctx, network, address)
}

func (r Rules) checkAddr(host string, at netip.AddrPort, upstream bool) error {
	addr := at.Addr()
	deny := egress.Lists{Deny: r.Upstreams.Deny}
	if why := deny.Refusal(addr.String()); why != "" && !egress.Contains(r.Upstreams.Allow, host) {
		return refusal("must not be called: " + why)
	}
	if r.OwnAddresses != nil {
		if p := r.Machine.Find(r.OwnAddresses(), addr.String(), int(at.Port())); p != nil {
			return refusal(fmt.Sprintf("must not be called: its address %s is that of %s", at, p.What))
		}
	}
	what := egress.Special(addr)
	if what == "" || upstream || egress.Contains(r.Allow, host) || egress.Contains(r.Allow, addr.String()) {
		return nil
	}
	return refusal(fmt.Sprintf("must not be called: its address %s is %s; if the provider is at this address, "+
		"name an upstream with this address in the configuration, or start with --provider-allow %s", addr, what, addr))
}
