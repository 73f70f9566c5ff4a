package plan

import (
	"cmp"
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
	since       time.Time // when the first configuration began to wait
	again       bool      // subscribed anew: an answer is owed
	// refused are the pieces that the Envoy refused, by host; refusedWhole is
	// the version of a configuration of which no piece is to blame.
	refused      map[string]refusal
	refusedWhole string
	// most is how many changed pieces a message may hold while a guilty one
	// is looked for; 0 means any number.
	most    int
	limited bool // the last choice left pieces out for that
}

// refusal is a piece that is not sent again.
type refusal struct {
	version string
	// unavailable says that its fixed answer was refused too.
	unavailable bool
}

func newRoutes() routes {
	return routes{names: map[string]bool{}, reported: map[string]string{}, refused: map[string]refusal{}}
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
		*r = newRoutes()
	}
}

func (r *routes) ack(f *flight) {
	if r.flight != f {
		return
	}
	r.flight, r.acked, r.known, r.refusedWhole = nil, f.hosts, true, ""
	r.most *= 2
	if !r.limited {
		r.most = 0
	}
}

// nack leaves the Envoy with what it acknowledged before and returns the host
// to blame. While there is more than one that may be, the next message holds
// half of them.
func (r *routes) nack(f *flight) (guilty string) {
	if r.flight != f {
		return ""
	}
	changed := changedPieces(r.acked, f.hosts)
	r.flight, r.sent = nil, r.acked
	switch {
	case len(changed) == 0 || !r.known && len(r.reported) > 0:
		// The Envoy has a configuration that we do not know piece by piece:
		// one with fewer hosts would take hosts away.
		r.refusedWhole = f.Resources[0].Version
	case len(changed) > 1:
		r.most = len(changed) / 2
	default:
		h := changed[0]
		if h.Unavailable {
			r.refused[h.Name] = refusal{r.refused[h.Name].version, true}
		} else {
			r.refused[h.Name] = refusal{version: h.Version}
		}
		guilty = h.Name
		r.most *= 2
	}
	return guilty
}

// changedPieces are those of to that from has not, or not so.
func changedPieces(from, to []*snapshot.Host) []*snapshot.Host {
	var changed []*snapshot.Host
	for _, h := range to {
		old := pieceOf(&from, h.Name)
		if old == nil || old.Version != h.Version {
			changed = append(changed, h)
		}
	}
	return changed
}

// pieceOf finds a host in a sorted list and drops what comes before it.
func pieceOf(list *[]*snapshot.Host, name string) *snapshot.Host {
	for len(*list) > 0 && (*list)[0].Name < name {
		*list = (*list)[1:]
	}
	if len(*list) > 0 && (*list)[0].Name == name {
		return (*list)[0]
	}
	return nil
}

// forget drops the refusals of hosts that nobody wants any more.
func (r *routes) forget(want []*snapshot.Host) {
	for name := range r.refused {
		_, found := slices.BinarySearchFunc(want, name, func(h *snapshot.Host, name string) int { return cmp.Compare(h.Name, name) })
		if !found {
			delete(r.refused, name)
		}
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
	if resource.Version == r.refusedWhole {
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
	changed := 0
	s.routes.limited = false
	for _, h := range want {
		old := pieceOf(&have, h.Name)
		next := h
		switch {
		case old != nil && old.Version == h.Version:
		case s.routes.refused[h.Name].version == h.Version:
			next = old
			if old == nil && !s.routes.refused[h.Name].unavailable {
				next = s.want.Unavailable(h)
			}
		case !s.ready(h, now, &wait):
			next = old
		}
		if next != nil && (old == nil || old.Version != next.Version) {
			if s.routes.most > 0 && changed == s.routes.most {
				s.routes.limited, next = true, old
			} else {
				changed++
			}
		}
		if next != nil {
			hosts = append(hosts, next)
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
