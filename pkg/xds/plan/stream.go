package plan

import (
	"slices"
	"strconv"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// Options bound what a stream waits for. A zero field means its default.
type Options struct {
	// Grace is how long a cluster stays after the last route that named it is
	// gone, so that retries end. Default 2 s.
	Grace time.Duration
	// WarmBound is how long a host waits for a new cluster that warms. It is
	// longer than each of Envoy's own bounds. Default 20 s.
	WarmBound time.Duration
}

func (o Options) withDefaults() Options {
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	if o.WarmBound == 0 {
		o.WarmBound = 20 * time.Second
	}
	return o
}

// Message is one response of the delta protocol.
type Message struct {
	Type      string
	Nonce     string
	Revision  int64
	Resources []*snapshot.Resource
	Removed   []string
}

// Stream is what one Envoy has, and should have. It belongs to one goroutine.
// The zero time of Next's second result means that there is nothing to wait
// for but events.
type Stream struct {
	opts      Options
	want      *snapshot.Snapshot
	clusters  collection
	listeners collection
	routes    routes
	flights   map[string]*flight
	nonce     int
}

// flight is a message that was sent and not yet answered.
type flight struct {
	Message
	holdings []*holding       // one for each resource of a collection
	hosts    []*snapshot.Host // of a route configuration
}

// NewStream returns the state of a stream on which nothing was said yet.
func NewStream(opts Options) *Stream {
	return &Stream{
		opts:      opts.withDefaults(),
		clusters:  newCollection(snapshot.ClusterType),
		listeners: newCollection(snapshot.ListenerType),
		routes:    newRoutes(),
		flights:   map[string]*flight{},
	}
}

// Want sets what the Envoy should have. Before the first call Next is silent.
func (s *Stream) Want(want *snapshot.Snapshot) {
	s.want = want
	s.clusters.want(want.Clusters)
	s.listeners.want(want.Listeners)
	s.routes.forget(want.Hosts)
}

// Subscribe notes a subscription: names for routes, a wildcard for the other
// types. initial are the versions that the Envoy reports to have.
func (s *Stream) Subscribe(typeURL string, names []string, initial map[string]string) {
	switch typeURL {
	case snapshot.ClusterType:
		s.clusters.subscribe(initial)
	case snapshot.ListenerType:
		s.listeners.subscribe(initial)
	case snapshot.RouteType:
		s.routes.subscribe(names, initial)
	}
}

// Unsubscribe notes the end of a subscription.
func (s *Stream) Unsubscribe(typeURL string, names []string) {
	if typeURL == snapshot.RouteType {
		s.routes.unsubscribe(names)
	}
}

// Ack notes that the Envoy took a message and returns it; nil for a nonce that
// was not sent on this stream.
func (s *Stream) Ack(nonce string) *Message {
	f := s.land(nonce)
	if f == nil {
		return nil
	}
	switch f.Type {
	case snapshot.ClusterType:
		s.clusters.ack(f)
	case snapshot.ListenerType:
		s.listeners.ack(f)
	case snapshot.RouteType:
		s.routes.ack(f)
	}
	return &f.Message
}

// Nack notes that the Envoy refused a message and returns it; nil for a nonce
// that was not sent on this stream. guilty is the resource, or the host of a
// route configuration, that is to blame; empty while it is looked for.
func (s *Stream) Nack(nonce string) (m *Message, guilty string) {
	f := s.land(nonce)
	if f == nil {
		return nil, ""
	}
	switch f.Type {
	case snapshot.ClusterType:
		guilty = s.clusters.nack(f)
	case snapshot.ListenerType:
		guilty = s.listeners.nack(f)
	case snapshot.RouteType:
		guilty = s.routes.nack(f)
	}
	return &f.Message, guilty
}

func (s *Stream) land(nonce string) *flight {
	f := s.flights[nonce]
	delete(s.flights, nonce)
	return f
}

// Next returns the messages that are safe to send now, in order, and when to
// ask again if nothing happens before.
func (s *Stream) Next(now time.Time) (messages []Message, wake time.Time) {
	if s.want == nil {
		return nil, time.Time{}
	}
	var next due
	for _, f := range append(s.clusters.supply(now), s.listeners.supply(now)...) {
		messages = append(messages, s.send(f))
	}
	if f := s.nextRoutes(now, &next); f != nil {
		messages = append(messages, s.send(f))
	}
	if removed := s.removableListeners(); len(removed) > 0 {
		s.listeners.remove(removed)
		messages = append(messages, s.send(&flight{Message: Message{Type: snapshot.ListenerType, Removed: removed}}))
	}
	if removed := s.removableClusters(now, &next); len(removed) > 0 {
		s.clusters.remove(removed)
		messages = append(messages, s.send(&flight{Message: Message{Type: snapshot.ClusterType, Removed: removed}}))
	}
	return messages, next.at
}

func (s *Stream) send(f *flight) Message {
	s.nonce++
	f.Nonce = strconv.Itoa(s.nonce)
	f.Revision = s.want.Revision
	s.flights[f.Nonce] = f
	return f.Message
}

// Applied is the revision that the Envoy has in full, removals aside; false
// while it is on the way to the one it should have, or was refused part of it.
func (s *Stream) Applied() (revision int64, ok bool) {
	if s.want == nil || !s.clusters.settled() || !s.listeners.settled() {
		return 0, false
	}
	for _, f := range s.flights {
		warms := slices.ContainsFunc(f.Resources, func(r *snapshot.Resource) bool { return r.Warms })
		if warms || f.Type != snapshot.ClusterType && len(f.Resources) > 0 {
			return 0, false
		}
	}
	if len(s.want.Listeners) > 0 && !s.routes.has(s.want.Hosts) {
		return 0, false
	}
	return s.want.Revision, true
}

// removableListeners go at once, since Envoy drains them, but not before the
// ones that take their place are acknowledged.
func (s *Stream) removableListeners() []string {
	if len(s.listeners.gone) == 0 || !s.listeners.settled() {
		return nil
	}
	for _, f := range s.flights {
		if f.Type == snapshot.ListenerType && len(f.Resources) > 0 {
			return nil
		}
	}
	return sortedKeys(s.listeners.gone)
}

// removableClusters are those that nothing wants, and that no route that the
// Envoy has, or is being sent, has named for the grace.
func (s *Stream) removableClusters(now time.Time, next *due) []string {
	if len(s.clusters.gone) == 0 || !s.routesKnown() {
		return nil
	}
	named := map[string]bool{}
	mark := func(hosts []*snapshot.Host) {
		for _, h := range hosts {
			for _, c := range h.Clusters {
				if _, candidate := s.clusters.gone[c]; candidate {
					named[c] = true
				}
			}
		}
	}
	mark(s.routes.acked)
	if s.routes.flight != nil {
		mark(s.routes.flight.hosts)
	}
	var removed []string
	for name, since := range s.clusters.gone {
		switch {
		case named[name]:
			s.clusters.gone[name] = time.Time{}
		case since.IsZero():
			s.clusters.gone[name] = now
			next.by(now.Add(s.opts.Grace))
		case now.Before(since.Add(s.opts.Grace)):
			next.by(since.Add(s.opts.Grace))
		default:
			removed = append(removed, name)
		}
	}
	slices.Sort(removed)
	return removed
}

// routesKnown reports whether we know every route that the Envoy has. After a
// reconnect we do once its route configuration was told or sent anew, or when
// it has no listener to use one.
func (s *Stream) routesKnown() bool {
	return s.routes.known || s.listeners.subscribed && len(s.listeners.held) == 0 && len(s.routes.names) == 0
}

// due is the earliest of some moments; the zero value is none.
type due struct{ at time.Time }

func (d *due) by(t time.Time) {
	if d.at.IsZero() || t.Before(d.at) {
		d.at = t
	}
}
