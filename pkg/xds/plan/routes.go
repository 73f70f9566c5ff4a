package plan

import (
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// routes is what one Envoy has of its route configuration, piece by piece.
type routes struct {
	names    map[string]bool   // subscribed
	reported map[string]string // versions that the Envoy said it has
	// known says that acked is what the Envoy has. It is not after a
	// reconnect with another version than ours.
	known       bool
	acked, sent []*snapshot.Host
	flight      *flight
	refused     string    // version
	since       time.Time // when the first configuration began to wait
	again       bool      // subscribed anew: an answer is owed
}

func (r *routes) subscribe(names []string, initial map[string]string) {
	for _, name := range names {
		r.again = r.again || r.names[name]
		r.names[name] = true
		if v := initial[name]; v != "" {
			r.reported[name] = v
		}
	}
}

func (r *routes) unsubscribe(names []string) {
	for _, name := range names {
		delete(r.names, name)
		delete(r.reported, name)
	}
	if len(r.names) == 0 {
		*r = routes{names: r.names, reported: r.reported}
	}
}

func (r *routes) ack(f *flight) {
	if r.flight == f {
		r.flight, r.acked, r.known, r.refused = nil, f.hosts, true, ""
	}
}

// nack leaves the Envoy with what it acknowledged before.
func (r *routes) nack(f *flight) {
	if r.flight == f {
		r.flight, r.sent, r.refused = nil, r.acked, f.Resources[0].Version
	}
}

// has reports whether the Envoy acknowledged exactly these hosts.
func (r *routes) has(hosts []*snapshot.Host) bool {
	return r.known && r.flight == nil && same(r.acked, hosts)
}

// nextRoutes returns the route configuration to send now, or nil. It is put
// together host by host: the new piece where its clusters are usable, else the
// piece that the Envoy has.
func (s *Stream) nextRoutes(now time.Time, next *due) *flight {
	r := &s.routes
	name := s.want.RouteName()
	if name == "" || !r.names[name] || r.flight != nil {
		return nil
	}
	if r.since.IsZero() {
		r.since = now
	}
	hosts, until := s.choose(now)
	if !until.IsZero() {
		if first := r.since.Add(s.opts.WarmBound); !r.known && now.Before(first) {
			// A first configuration that is not complete would answer 404
			// for hosts that exist.
			next.by(first)
			next.by(until)
			return nil
		}
		next.by(until)
	}
	if r.known && same(hosts, r.sent) && !r.again {
		return nil
	}
	resource := s.want.Routes(hosts)
	if resource.Version == r.refused {
		return nil
	}
	if !r.known && r.reported[name] == resource.Version && !r.again {
		r.known, r.acked, r.sent = true, hosts, hosts
		return nil
	}
	r.sent, r.again = hosts, false
	r.flight = &flight{Message: Message{Type: snapshot.RouteType, Resources: []*snapshot.Resource{resource}}, hosts: hosts}
	return r.flight
}

// choose picks the piece of each host, and says until when one waits for a
// cluster.
func (s *Stream) choose(now time.Time) (hosts []*snapshot.Host, until time.Time) {
	want, have := s.want.Hosts, s.routes.sent
	if same(want, have) {
		return want, time.Time{}
	}
	var wait due
	hosts = make([]*snapshot.Host, 0, len(want))
	for _, h := range want {
		for len(have) > 0 && have[0].Name < h.Name {
			have = have[1:]
		}
		var old *snapshot.Host
		if len(have) > 0 && have[0].Name == h.Name {
			old = have[0]
		}
		if old != nil && old.Version == h.Version || s.ready(h, now, &wait) {
			hosts = append(hosts, h)
		} else if old != nil {
			hosts = append(hosts, old)
		}
	}
	return hosts, wait.at
}

// same compares what the hosts are; most are the same pointers.
func same(a, b []*snapshot.Host) bool {
	return slices.EqualFunc(a, b, func(x, y *snapshot.Host) bool { return x == y || x.Version == y.Version })
}

// ready reports whether every cluster that the host names is usable.
func (s *Stream) ready(h *snapshot.Host, now time.Time, wait *due) bool {
	ready := true
	for _, name := range h.Clusters {
		ok, until := s.clusters.usable(name, now, s.opts.WarmBound)
		if !ok {
			ready = false
			if !until.IsZero() {
				wait.by(until)
			}
		}
	}
	return ready
}
