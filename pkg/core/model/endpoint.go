package model

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// Endpoints are the addresses of a discovered upstream: what stands in the place of
// Upstream.IP and Upstream.Port, and of Weight within the upstream. They are learned, as
// from the EndpointSlices of a Kubernetes Service, and never stored.
//
// A nil *Endpoints means that the upstream is not discovered: Envoy goes to its IP, or
// resolves it. One without any endpoint means that nobody is there now: requests are
// answered with 503 until somebody is. It is immutable.
type Endpoints struct{ list []Endpoint }

// Endpoint is one address of a discovered upstream. One that may get no request at all, as
// a Pod that is not ready, is left out of Endpoints.
type Endpoint struct {
	// Address is an IPv4 or IPv6 address.
	Address string
	Port    int
	// Draining says that the endpoint is about to go: it gets no new requests, unless every
	// endpoint of the upstream is draining, and finishes those that it has. The zero value
	// is an endpoint that gets its share.
	Draining bool
	// Zone is where it is; empty means that this is not known.
	Zone string
}

// EndpointOf returns the endpoint that an entry of an EndpointSlice with these conditions
// is; false means that it may get no request. It is what kube-proxy does: a ready one gets
// requests, and one that is terminating and serves still is draining.
func EndpointOf(address string, port int, zone string, ready, serving, terminating bool) (Endpoint, bool) {
	e := Endpoint{Address: address, Port: port, Zone: zone, Draining: terminating}
	return e, ready && !terminating || serving && terminating
}

// NewEndpoints returns these endpoints, sorted. Of two with the same address and port, one
// that is not draining goes before. One whose address is no IP address, or whose port is
// none, is left out: nobody could be reached there.
func NewEndpoints(list ...Endpoint) *Endpoints {
	sorted := slices.DeleteFunc(slices.Clone(list), func(e Endpoint) bool {
		address, err := netip.ParseAddr(e.Address)
		return err != nil || address.Zone() != "" || e.Port < 1 || e.Port > 65535
	})
	slices.SortFunc(sorted, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), compareBool(a.Draining, b.Draining),
			cmp.Compare(a.Zone, b.Zone))
	})
	sorted = slices.CompactFunc(sorted, func(a, b Endpoint) bool { return a.Address == b.Address && a.Port == b.Port })
	return &Endpoints{list: slices.Clip(sorted)}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// All returns the endpoints, sorted by address and port. Nobody changes the list.
func (e *Endpoints) All() []Endpoint {
	if e == nil {
		return nil
	}
	return e.list
}

// Equal reports whether both are the same, nil being none.
func (e *Endpoints) Equal(o *Endpoints) bool {
	return e == o || e != nil && o != nil && slices.Equal(e.list, o.list)
}

// IsDiscovered reports whether Endpoints were learned for the upstream, in a Config whose
// trees hold it. No stored upstream is.
func (u *Upstream) IsDiscovered() bool { return u.discovered }

// Discovered returns a copy of the upstream that is discovered, or not.
func (u *Upstream) Discovered(is bool) *Upstream {
	if u.discovered == is {
		return u
	}
	out := *u
	out.discovered = is
	return &out
}

// Upstream returns an upstream as trees hold it, or nil.
func (c *Config) Upstream(name string) *Upstream {
	u, _ := c.objects[UpstreamKey(name)].(*Upstream)
	return u
}

// learnEndpoints takes the endpoints of a change, and returns those from before that it may
// make different.
func (c *Config) learnEndpoints(ch Change) map[Key]*Endpoints {
	if len(c.endpoints) == 0 && len(ch.Endpoints) == 0 {
		return nil
	}
	before := map[Key]*Endpoints{}
	if ch.Full {
		maps.Copy(before, c.endpoints)
	}
	for _, e := range ch.Entries {
		if e.Key.Kind == KindUpstream {
			before[e.Key] = c.endpoints[e.Key]
		}
	}
	for key, endpoints := range ch.Endpoints {
		before[key] = c.endpoints[key]
		if endpoints == nil {
			delete(c.endpoints, key)
		} else {
			c.endpoints[key] = endpoints
		}
	}
	return before
}

// moved names, sorted, the upstreams that have other endpoints than before.
func (c *Config) moved(before map[Key]*Endpoints) []string {
	var names []string
	for key, endpoints := range before {
		if !endpoints.Equal(c.endpoints[key]) {
			names = append(names, key.Name())
		}
	}
	slices.Sort(names)
	return names
}
