package egress

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// Entry is one line of a list: a network, or a DNS name.
type Entry struct {
	text    string
	network netip.Prefix
	// name is in lower case; a name that begins with a dot stands for all names below
	// it.
	name string
}

// ParseEntry reads 10.0.0.0/8, 192.0.2.1, api.example.com or *.example.com.
func ParseEntry(text string) (Entry, error) {
	if network, err := netip.ParsePrefix(text); err == nil {
		if network.Addr().Is4In6() {
			return Entry{}, fmt.Errorf("%q is an IPv4 network in the form of IPv6; write it as IPv4", text)
		}
		if network != network.Masked() {
			return Entry{}, fmt.Errorf("%q has bits after its prefix length; %s is meant, or a single address", text,
				network.Masked())
		}
		return Entry{text: text, network: network}, nil
	}
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return Entry{text: text, network: netip.PrefixFrom(addr, addr.BitLen())}, nil
	}
	name := normalize(text)
	below, wildcard := strings.CutPrefix(name, "*.")
	if !isName(below) {
		return Entry{}, fmt.Errorf("%q is not a network, an address or a DNS name", text)
	}
	if wildcard {
		below = "." + below
	}
	return Entry{text: text, name: below}, nil
}

// isName reports whether s can be a DNS name, and is not a mistyped address or network.
func isName(s string) bool {
	if _, number := oddIPv4(s); number || s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := s[strings.LastIndexByte(s, '.')+1:]
	return strings.Trim(last, "0123456789") != ""
}

// String implements fmt.Stringer.
func (e Entry) String() string { return e.text }

func (e Entry) contains(address string, addrs []netip.Addr) bool {
	if e.network.IsValid() {
		for _, a := range addrs {
			if e.network.Contains(a) {
				return true
			}
		}
		return false
	}
	name := normalize(address)
	if strings.HasPrefix(e.name, ".") {
		return strings.HasSuffix(name, e.name)
	}
	return name == e.name
}

// socketPrefix begins an address that is a Unix socket.
const socketPrefix = "unix:"

// Lists are the operator's rules for the addresses of upstreams. The zero value allows
// all.
type Lists struct {
	// Allow has the addresses that upstreams may have; an empty list allows all.
	Allow []Entry
	// Deny has the addresses that they must not have; it takes precedence.
	Deny []Entry
	// Sockets are the directories whose Unix sockets upstreams may be; empty means that none may.
	Sockets []string
	// AnySocket allows all of them: for checks of everything but addresses.
	AnySocket bool
}

// Refusal says why an upstream must not have an address; "" if it may.
func (l Lists) Refusal(address string) string {
	if socket, is := strings.CutPrefix(address, socketPrefix); is {
		// Not those below: what makes private directories in a listed one, such as a temporary one, keeps them private.
		if l.AnySocket || slices.Contains(l.Sockets, path.Dir(socket)) && path.Clean(socket) == socket {
			return ""
		}
		return fmt.Sprintf("its address %s is not in a directory that --upstream-sockets names", address)
	}
	addrs := KnownAddrs(address)
	if e := find(l.Deny, address, addrs); e != nil {
		return fmt.Sprintf("its address %s is in %s, which --upstream-deny names", address, e)
	}
	if len(l.Allow) > 0 && find(l.Allow, address, addrs) == nil {
		return fmt.Sprintf("its address %s is in nothing that --upstream-allow names", address)
	}
	return ""
}

// MayResolveToDenied reports whether the address is a DNS name that may resolve into a
// denied network and is not allowed by name.
func (l Lists) MayResolveToDenied(address string) bool {
	if strings.HasPrefix(address, socketPrefix) {
		return false
	}
	networks := false
	for _, e := range l.Deny {
		networks = networks || e.network.IsValid()
	}
	return networks && len(KnownAddrs(address)) == 0 && find(l.Allow, address, nil) == nil
}

func find(list []Entry, address string, addrs []netip.Addr) *Entry {
	for i := range list {
		if list[i].contains(address, addrs) {
			return &list[i]
		}
	}
	return nil
}
