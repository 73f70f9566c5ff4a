package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// routes is what one Envoy has of its route configuration, piece by piece.
type routes struct {
	names    map[string]bool   // subscribed
	reported map[string]string // versions that the Envoy reported
	// known means that acked is what the Envoy has. It is false after a reconnect with a
	// version that is not ours.
	known       bool
	acked, sent []*snapshot.Host
	// ackedFor is the snapshot from which acked was chosen.
	ackedFor *snapshot.Snapshot
	flight   *flight
	since    time.Time // when the first configuration began to wait
	resend   bool      // subscribed again: an answer is owed
	// refused are the pieces that the Envoy refused, by host. refusedWhole is the
	// version of a refused configuration if no piece can be blamed.
	refused      map[string]refusal
	refusedWhole Refusal
	// waiting are the hosts that the last choice held back.
	waiting map[string]Wait
	// most is how many changed pieces a message may contain during the search for a
	// guilty one; 0 means any number.
	most    int
	limited bool // the last choice omitted pieces because of most
	// searched is the version of the last configuration that the Envoy refused during the search.
	searched string
	pace     pace
}

// refusal is a piece that is not sent again.
type refusal struct {
	Refusal
	// unavailable means that its fixed answer was refused too.
	unavailable bool
}

func newRoutes() routes {
	return routes{
		names: map[string]bool{}, reported: map[string]string{},
		refused: map[string]refusal{}, waiting: map[string]Wait{},
	}
}

func (r *routes) subscribe(names []string, initial map[string]string, want *snapshot.Snapshot, room *int) bool {
	for _, name := range names {
		if !r.names[name] && (want == nil || name != want.RouteName()) && !takeRoom(room) {
			return false
		}
		r.resend = r.resend || r.names[name]
		r.names[name] = true
		if v := initial[name]; v != "" {
			r.reported[name] = v
		}
	}
	return true
}

// countForeign counts the requested names of configurations that do not exist.
func (r *routes) countForeign(want *snapshot.Snapshot) int {
	if want != nil && r.names[want.RouteName()] {
		return len(r.names) - 1
	}
	return len(r.names)
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
	r.has(f.hosts, f.want)
	r.flight, r.refusedWhole, r.searched = nil, Refusal{}, ""
	r.pace.answered = r.most == 0 // a search does not rest
	r.most *= 2
	if !r.limited {
		r.most = 0
	}
}

// has records which pieces the Envoy has, and from which snapshot they are.
func (r *routes) has(hosts []*snapshot.Host, of *snapshot.Snapshot) {
	r.acked, r.ackedFor, r.known = hosts, of, true
}

// namedOf returns those of clusters that the Envoy's hosts name. It looks into the hosts
// only if necessary: the hosts of a snapshot name only clusters of that snapshot.
func (r *routes) namedOf(clusters map[string]time.Time) map[string]bool {
	named := map[string]bool{}
	if r.ackedFor != nil && same(r.acked, r.ackedFor.Hosts) {
		possible := func(c string) bool { return has(r.ackedFor.Clusters, c) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(clusters)), possible) {
			return named
		}
	}
	for _, h := range r.acked {
		for _, c := range h.Clusters {
			if _, ok := clusters[c]; ok {
				named[c] = true
			}
		}
	}
	return named
}

// nack returns the guilty host. The Envoy keeps what it acknowledged before. While
// several hosts may be guilty, the next message contains half of them.
func (r *routes) nack(f *flight, text string, now time.Time) (guilty string) {
	if r.flight != f {
		return ""
	}
	changed := changedPieces(r.acked, f.hosts)
	if keeper := f.want.KeeperName(); len(changed) > 1 {
		// The keeper is in every message.
		changed = slices.DeleteFunc(changed, func(h *snapshot.Host) bool { return h.Name == keeper })
	}
	r.flight, r.sent = nil, r.acked
	switch {
	case len(changed) == 0 || !r.known && len(r.reported) > 0:
		// The Envoy has a configuration that we do not know piece by piece. One with
		// fewer hosts would remove hosts from it.
		whole := f.Resources[0]
		r.refusedWhole = Refusal{
			Type: snapshot.RouteType, Resource: whole.Name, Version: whole.Version, Revision: f.Revision, Text: text, At: now,
		}
	case len(changed) > 1 && r.searched != f.Resources[0].Version:
		r.most, r.searched = len(changed)/2, f.Resources[0].Version
	default: // several are inseparable (settleDomains)
		for _, h := range changed {
			r.blame(h, f.Revision, text, now)
		}
		guilty = changed[0].Name
		r.most *= 2
	}
	return guilty
}

// blame records a refused piece.
func (r *routes) blame(h *snapshot.Host, revision int64, text string, now time.Time) {
	if h.Unavailable {
		r.refused[h.Name] = refusal{r.refused[h.Name].Refusal, true}
		return
	}
	r.refused[h.Name] = refusal{Refusal: Refusal{
		Type: snapshot.RouteType, Resource: h.Name, Version: h.Version, Objects: []snapshot.ObjectRef{h.Object},
		Revision: revision, Text: text, At: now,
	}}
}

// changedPieces returns the pieces of to whose version is not in from.
func changedPieces(from, to []*snapshot.Host) []*snapshot.Host {
	var changed []*snapshot.Host
	for _, h := range to {
		old := pieceOf(&from, h)
		if old != h && (old == nil || old.Version != h.Version) {
			changed = append(changed, h)
		}
	}
	return changed
}

// pieceOf finds a host in a sorted list and drops everything up to it. Most hosts are
// the same pointer and are not compared further.
func pieceOf(list *[]*snapshot.Host, host *snapshot.Host) *snapshot.Host {
	for len(*list) > 0 && (*list)[0] != host && (*list)[0].Name < host.Name {
		*list = (*list)[1:]
	}
	if len(*list) == 0 || (*list)[0] != host && (*list)[0].Name != host.Name {
		return nil
	}
	found := (*list)[0]
	*list = (*list)[1:]
	return found
}

// forget drops the refusals of pieces that are no longer wanted.
func (r *routes) forget(want []*snapshot.Host) {
	for name, refused := range r.refused {
		if h := hostIn(want, name); h == nil || h.Version != refused.Version {
			delete(r.refused, name)
		}
	}
}

// hostIn finds a host in a sorted list; nil if it is not in it.
func hostIn(list []*snapshot.Host, name string) *snapshot.Host {
	i, found := slices.BinarySearchFunc(list, name, func(h *snapshot.Host, name string) int {
		return cmp.Compare(h.Name, name)
	})
	if !found {
		return nil
	}
	return list[i]
}

// hasAll reports whether the Envoy acknowledged exactly these hosts.
func (r *routes) hasAll(hosts []*snapshot.Host) bool {
	return r.known && r.flight == nil && same(r.acked, hosts)
}

// nextRoutes returns the route configuration to send now, or nil. It is assembled host
// by host: the new piece if its clusters are usable, otherwise the piece that the Envoy
// has.
func (s *Stream) nextRoutes(now time.Time, next *due) *flight {
	r := &s.routes
	name := s.want.RouteName()
	if name == "" || !r.names[name] || r.flight != nil || !s.knowsLogins() || s.changesLogins() {
		return nil
	}
	if now.Before(r.pace.restUntil) {
		next.add(r.pace.restUntil)
		return nil
	}
	if r.since.IsZero() {
		r.since = now
	}
	hosts, until := s.choosePieces(now)
	if !until.IsZero() {
		if first := r.since.Add(s.opts.WarmBound); !r.known && now.Before(first) {
			// An incomplete first configuration would answer 404 for hosts that exist.
			next.add(first)
			next.add(until)
			return nil
		}
		next.add(until)
	}
	if r.known && same(hosts, r.sent) && !r.resend {
		r.pace.noteIdle()
		return nil
	}
	if r.pace.mustRest(now) {
		next.add(r.pace.restUntil)
		return nil
	}
	resource := s.want.Routes(hosts)
	if resource.Version == r.refusedWhole.Version {
		return nil
	}
	if !r.known && r.reported[name] == resource.Version && !r.resend {
		r.has(hosts, s.want)
		r.sent = hosts
		return nil
	}
	r.sent, r.resend, r.pace.sentAt = hosts, false, now
	r.flight = &flight{
		Message: Message{Type: snapshot.RouteType, Resources: []*snapshot.Resource{resource}}, hosts: hosts, want: s.want,
	}
	return r.flight
}

// choosePieces selects the piece of each host. until is when the earliest wait for what
// a host names ends.
func (s *Stream) choosePieces(now time.Time) (hosts []*snapshot.Host, until time.Time) {
	// isStuck reports whether domains move between more hosts than a message may contain.
	isStuck := func(most int) bool {
		s.routes.most = most
		hosts, until = s.chooseSome(now)
		return s.routes.limited && same(hosts, s.routes.sent)
	}
	few := s.routes.most
	if !isStuck(few) {
		return hosts, until
	}
	enough := 2 * few
	for isStuck(enough) {
		few, enough = enough, 2*enough
	}
	for few+1 < enough { // more than necessary would be blamed with the guilty ones
		if middle := (few + enough) / 2; isStuck(middle) {
			few = middle
		} else {
			enough = middle
		}
	}
	_ = isStuck(enough)
	return hosts, until
}

// chooseSome is choosePieces with at most s.routes.most changed pieces. The keeper waits for nothing.
func (s *Stream) chooseSome(now time.Time) (hosts []*snapshot.Host, until time.Time) {
	want, have := s.hosts(), s.routes.sent
	s.routes.limited = false
	keeper := s.want.KeeperName()
	if same(want, have) {
		clear(s.routes.waiting)
		return want, time.Time{}
	}
	var wait due
	hosts = make([]*snapshot.Host, 0, len(want))
	waiting := map[string]Wait{}
	changed := 0
	for _, h := range want {
		old := pieceOf(&have, h)
		next := h
		switch {
		case old == h || old != nil && old.Version == h.Version:
		case s.routes.refused[h.Name].Version == h.Version:
			next = old
			if old == nil && !s.routes.refused[h.Name].unavailable {
				next = s.want.Unavailable(h)
			}
		default:
			if missing := s.missing(h, now); !missing.isOver() {
				next = old
				if old == nil && missing.Until.IsZero() {
					// Something it needs was refused. A 503 tells clients that the host
					// exists.
					next = s.want.Unavailable(h)
				}
				waiting[h.Name] = missing
				wait.add(missing.Until)
			}
		}
		if next != old && next != nil && (old == nil || old.Version != next.Version) && h.Name != keeper {
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
	if slices.Equal(hosts, want) {
		hosts = want // all streams share the list
	} else {
		hosts = s.settleDomains(hosts, want, s.routes.sent, waiting)
	}
	s.routes.waiting = waiting
	return hosts, wait.at
}

// same compares the versions of hosts; most are the same pointers.
func same(a, b []*snapshot.Host) bool {
	return slices.EqualFunc(a, b, func(x, y *snapshot.Host) bool { return x == y || x.Version == y.Version })
}
