package plan

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// Options bound what a stream waits for. A zero field means its default.
type Options struct {
	// Grace is how long a cluster stays after the last route that named it is gone, so that retries
	// can end. Default 2 s.
	Grace time.Duration
	// WarmBound is how long a host waits for a new cluster that warms. It is longer than all of
	// Envoy's own bounds. Default 20 s.
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
	// Joined returns the encoded Resources in one piece, which other streams share. If it is nil, they
	// are encoded one by one.
	Joined func() []byte
}

// Stream is what one Envoy has and should have. It is not safe for concurrent use.
type Stream struct {
	opts      Options
	want      *snapshot.Snapshot
	clusters  collection
	listeners collection
	routes    routes
	// The Envoy subscribes to secrets, extensions and endpoints by name.
	secrets, extensions, endpoints named
	// certificates are the certificates with which secrets were last compared.
	certificates   []*snapshot.Certificate
	providers      providers
	retired        retired
	retiredSecrets retiredSecrets
	// unassigned are clusters that were sent and whose assignment the Envoy is not known to have read
	// since: the number of the flight by name.
	unassigned map[string]int
	// listening are the clusters that the Envoy's listeners may name, by listener, as far as that is known.
	listening map[string][]string
	flights   map[string]*flight
	nonce     int
	// overdue are secrets and providers whose wait exceeded its bound, until they are reported.
	overdue []Overdue
	// room is how many more unknown names may be kept.
	room int
}

// flight is a message that was sent and not yet answered.
type flight struct {
	Message
	number int              // flights are read in this order
	states []*resourceState // one for each resource of a collection, unless it is a group
	group  *group           // the group that was sent; nil: none
	hosts  []*snapshot.Host // of a route configuration
	want   *snapshot.Snapshot
	gone   int // how many of Removed the Envoy had; they are kept until it answers
}

// NewStream returns the state of a new stream.
func NewStream(opts Options) *Stream {
	return &Stream{
		opts:       opts.withDefaults(),
		clusters:   newCollection(snapshot.ClusterType),
		listeners:  newCollection(snapshot.ListenerType),
		routes:     newRoutes(),
		secrets:    newNamed(snapshot.SecretType),
		extensions: newNamed(snapshot.ExtensionType),
		endpoints:  newNamed(snapshot.EndpointType),
		providers:  newProviders(),
		retired:    retired{},
		unassigned: map[string]int{},
		listening:  map[string][]string{},
		flights:    map[string]*flight{},
		room:       math.MaxInt,
	}
}

// SetRoom bounds how many unknown names may be kept from now on: names that the Envoy requests and
// that do not exist, and resources that it reports and that are not wanted. Without a call, there is
// no bound.
func (s *Stream) SetRoom(names int) { s.room = names }

// Foreign returns how many unknown names are kept.
func (s *Stream) Foreign() int {
	n := len(s.clusters.gone) + len(s.listeners.gone) + s.routes.countForeign(s.want)
	for _, named := range []*named{&s.secrets, &s.extensions} {
		n += len(named.gone) + named.countForeign()
	}
	n += s.countForeignAssignments()
	for _, f := range s.flights {
		n += f.gone
	}
	return n
}

// Unanswered returns how many messages have no answer.
func (s *Stream) Unanswered() int { return len(s.flights) }

// Want sets what the Envoy should have. Before the first call, Next returns nothing.
func (s *Stream) Want(want *snapshot.Snapshot) {
	s.retired.want(want, s.want)
	s.want = want
	s.clusters.joined = want.JoinedClusters
	s.clusters.want(want.Clusters)
	s.listeners.want(want.Listeners)
	s.routes.forget(want.Hosts)
	s.retiredSecrets.settled = false
	s.providers.want(want.Providers)
	certificates := !slices.Equal(s.certificates, want.Certificates)
	s.certificates, s.secrets.lookup = want.Certificates, want.Certificate
	s.wantAssignments(want.Endpoints)
	if certificates || !slices.Equal(want.Secrets, s.secrets.all) {
		s.secrets.wantAll(want.Secrets)
		s.secrets.noteChanges(want.Revision)
	}
}

// collection returns what is known about a type; nil for routes and for an unknown type.
func (s *Stream) collection(typeURL string) *collection {
	switch typeURL {
	case snapshot.ClusterType:
		return &s.clusters
	case snapshot.ListenerType:
		return &s.listeners
	}
	if n := s.findNamed(typeURL); n != nil {
		return &n.collection
	}
	return nil
}

func (s *Stream) findNamed(typeURL string) *named {
	for _, n := range []*named{&s.secrets, &s.extensions, &s.endpoints} {
		if n.typeURL == typeURL {
			return n
		}
	}
	return nil
}

// Subscribe records a subscription: a wildcard for clusters and listeners, names for the other types.
// initial are the versions that the Envoy reports. Reported resources without room are forgotten and
// stay in the Envoy unused. It returns false, half done, if there is no room for a requested name.
func (s *Stream) Subscribe(typeURL string, names []string, initial map[string]string) bool {
	switch n := s.findNamed(typeURL); {
	case typeURL == snapshot.RouteType:
		s.retiredSecrets.replaced = len(initial) > 0
		return s.routes.subscribe(names, initial, s.want, &s.room)
	case n == &s.endpoints:
		return s.subscribeAssignments(names, initial)
	case n != nil:
		revision := int64(0)
		if s.want != nil {
			revision = s.want.Revision
		}
		if n == &s.secrets {
			s.retiredSecrets.heard = true
			s.retiredSecrets.settled = s.retiredSecrets.settled && !s.isNewPair(names, initial)
		}
		return n.subscribe(names, initial, &s.room, revision)
	case s.collection(typeURL) != nil:
		s.collection(typeURL).subscribe(initial, &s.room)
	}
	return true
}

// Unsubscribe records the end of a subscription.
func (s *Stream) Unsubscribe(typeURL string, names []string) {
	if typeURL == snapshot.RouteType {
		s.routes.unsubscribe(names)
	} else if n := s.findNamed(typeURL); n != nil {
		n.unsubscribe(names)
		s.retiredSecrets.settled = false
	}
}

// Ack records that the Envoy accepted a message, and returns the message; nil if the nonce was not
// sent on this stream.
func (s *Stream) Ack(nonce string) *Message {
	f := s.takeFlight(nonce)
	if f == nil {
		return nil
	}
	if f.Type != snapshot.ClusterType {
		for _, earlier := range s.flights {
			if earlier.Type == snapshot.ClusterType && earlier.number < f.number {
				s.clusters.held.read(earlier, false)
			}
		}
	}
	if f.Type == snapshot.RouteType {
		s.routes.ack(f)
	} else {
		s.collection(f.Type).held.read(f, true)
	}
	switch f.Type {
	case snapshot.ListenerType:
		s.noteListening(f)
	case snapshot.SecretType:
		s.secrets.noteRead(&f.Message)
	case snapshot.RouteType:
		s.retiredSecrets.replaced = true
	case snapshot.ExtensionType:
		s.providers.ack(f, s.want.ExtensionName())
	case snapshot.EndpointType:
		s.noteAssigned(f)
	}
	return &f.Message
}

// Nack records that the Envoy refused a message, with its reason and the time. It returns the message;
// nil if the nonce was not sent on this stream. guilty is the guilty resource, or the guilty host of a
// route configuration; empty while the search for it continues.
func (s *Stream) Nack(nonce, text string, now time.Time) (m *Message, guilty string) {
	f := s.takeFlight(nonce)
	if f == nil {
		return nil, ""
	}
	if f.Type == snapshot.RouteType {
		s.retiredSecrets.replaced = true
		return &f.Message, s.routes.nack(f, text, now)
	}
	guilty = s.collection(f.Type).nack(f, text, now)
	if f.Type == snapshot.SecretType && guilty != "" {
		s.secrets.giveUp(guilty)
	}
	if f.Type == snapshot.ExtensionType && guilty != "" && guilty == s.want.ExtensionName() {
		if piece, other := s.providers.nack(s.want.Providers, f.Resources[0].Version, text, f.Revision, now); other {
			delete(s.extensions.refused, guilty)
			guilty = piece
		}
	}
	return &f.Message, guilty
}

func (s *Stream) takeFlight(nonce string) *flight {
	f := s.flights[nonce]
	delete(s.flights, nonce)
	s.retiredSecrets.heard = true
	if f != nil && f.Type != snapshot.RouteType {
		s.collection(f.Type).unanswered--
	}
	return f
}

// Next returns the messages that can safely be sent now, in order, and when to call it again if
// nothing happens before; the zero time means that only an event matters.
func (s *Stream) Next(now time.Time) (messages []Message, wake time.Time) {
	if s.want == nil {
		return nil, time.Time{}
	}
	var next due
	s.chooseExtensions(now, &next)
	for _, f := range s.supply(now, &next) {
		messages = append(messages, s.send(f))
	}
	if f := s.nextRoutes(now, &next); f != nil {
		messages = append(messages, s.send(f))
	}
	if removed := s.removableListeners(); len(removed) > 0 {
		s.listeners.remove(removed)
		messages = append(messages,
			s.send(&flight{Message: Message{Type: snapshot.ListenerType, Removed: removed}, gone: len(removed)}))
	}
	if removed := s.removableClusters(now, &next); len(removed) > 0 {
		s.clusters.remove(removed)
		messages = append(messages,
			s.send(&flight{Message: Message{Type: snapshot.ClusterType, Removed: removed}, gone: len(removed)}))
	}
	s.leaveUnassigned()
	for _, n := range []*named{&s.secrets, &s.extensions, &s.endpoints} {
		removed := s.removable(n, now, &next)
		n.remove(removed)
		removed = append(removed, n.leaveUnused()...)
		gone := len(removed)
		if removed = append(removed, n.refuse()...); len(removed) > 0 {
			messages = append(messages, s.send(&flight{Message: Message{Type: n.typeURL, Removed: removed}, gone: gone}))
		}
	}
	for _, c := range []*collection{
		&s.clusters, &s.listeners, &s.secrets.collection, &s.extensions.collection, &s.endpoints.collection,
	} {
		if c != &s.secrets.collection || len(s.secrets.names) == len(s.secrets.wanted) { // retired secrets are not forgotten
			c.settle(s.want.Revision)
		}
	}
	if s.needsProof() || s.needsAnswer() {
		messages = append(messages, s.send(&flight{Message: Message{Type: snapshot.ListenerType}}))
	}
	return messages, next.at
}

// supply returns what is new or changed, in the order of dependencies. The assignment of a cluster
// follows the cluster, changed or not: without it, Envoy would warm the cluster until a timeout.
func (s *Stream) supply(now time.Time, next *due) []*flight {
	flights := append(s.supplySecrets(now, next), s.extensions.supply(now)...)
	clusters := s.clusters.supply(now)
	for _, f := range clusters {
		for _, r := range f.Resources {
			s.endpoints.resend(r.Name)
		}
	}
	flights = append(append(flights, clusters...), s.endpoints.supply(now)...)
	waiting := s.holdListeners(now, next)
	flights = append(flights, s.listeners.supply(now)...)
	maps.Copy(s.listeners.todo, waiting)
	return flights
}

// needsProof reports whether no unanswered message will prove that a cluster was read. Envoy delays
// every answer about clusters while one warms, but reads a stream in order. So its answer to an empty
// message of another type proves that it has read what came before.
func (s *Stream) needsProof() bool {
	unread, warms, proof := 0, false, 0
	for _, f := range s.flights {
		if f.Type != snapshot.ClusterType {
			proof = max(proof, f.number)
			continue
		}
		for i, r := range f.Resources {
			warms = warms || r.Warms
			if !r.Warms && s.clusters.held.isUnread(f, i) {
				unread = max(unread, f.number)
			}
		}
	}
	return warms && unread > proof && s.listeners.subscribed
}

// needsAnswer reports whether no unanswered message will prove that the Envoy has reported all its
// secrets.
func (s *Stream) needsAnswer() bool {
	if s.knowsLogins() || !s.listeners.subscribed {
		return false
	}
	for _, f := range s.flights {
		if f.Type != snapshot.ClusterType {
			return false
		}
	}
	return true
}

func (s *Stream) send(f *flight) Message {
	s.nonce++
	f.number = s.nonce
	f.Nonce = strconv.Itoa(s.nonce)
	f.Revision = s.want.Revision
	for _, h := range f.states {
		h.sentIn = f.number
	}
	if f.group != nil {
		f.group.number, f.group.revision = f.number, f.Revision
	}
	if f.Type != snapshot.RouteType {
		s.collection(f.Type).unanswered++
	}
	switch f.Type {
	case snapshot.ClusterType:
		s.noteUnassigned(f)
	case snapshot.ListenerType:
		s.noteListeners(f)
	}
	s.flights[f.Nonce] = f
	return f.Message
}

// Applied returns the revision that the Envoy has completely, except for removals; false while it
// still lacks something of the revision that it should have, or has refused part of it.
func (s *Stream) Applied() (revision int64, ok bool) {
	if s.want == nil || !s.clusters.isSettled() || !s.listeners.isSettled() ||
		!s.secrets.isSettled() || !s.extensions.isSettled() || !s.isAssigned() ||
		s.secrets.isAwaited() || len(s.secrets.hopeless) > 0 || !s.hasNamedSecrets() {
		return 0, false
	}
	for _, f := range s.flights {
		if f.Type == snapshot.SecretType || f.Type == snapshot.EndpointType {
			continue // see isAwaited, isAssigned
		}
		if f.Type != snapshot.ClusterType && len(f.Resources) > 0 {
			return 0, false
		}
		for i := range f.Resources {
			if s.collection(f.Type).held.isUnread(f, i) {
				return 0, false
			}
		}
	}
	if len(s.want.Listeners) > 0 && !s.routes.hasAll(s.hosts()) {
		return 0, false
	}
	if s.extensions.names[s.want.ExtensionName()] && !s.providers.hasAll(s.want.Providers) {
		return 0, false
	}
	return s.want.Revision, true
}

// removableClusters returns unwanted clusters that no route and no listener that the Envoy has, or is
// being sent, has named for the grace period.
func (s *Stream) removableClusters(now time.Time, next *due) []string {
	if len(s.clusters.gone) == 0 || !s.routesKnown() {
		return nil
	}
	named := s.routes.namedOf(s.clusters.gone)
	if f := s.routes.flight; f != nil {
		for _, h := range changedPieces(s.routes.acked, f.hosts) {
			for _, c := range h.Clusters {
				named[c] = true
			}
		}
	}
	if !s.addListening(named) {
		return nil
	}
	return s.clusters.pastGrace(now, s.opts.Grace, next, named)
}

// removable returns unwanted secrets and extension configs if everything written since is applied and
// the grace period is over. Then nothing that the Envoy has names them. An assignment is removed with
// its cluster.
func (s *Stream) removable(n *named, now time.Time, next *due) []string {
	if len(n.gone) == 0 || n == &s.endpoints {
		return nil
	}
	if _, applied := s.Applied(); !applied {
		return nil
	}
	return n.pastGrace(now, s.opts.Grace, next, nil)
}

// routesKnown reports whether every route that the Envoy has is known. After a reconnect, it is true
// when the Envoy has reported or received its route configuration, or if it has no listener that uses
// one.
func (s *Stream) routesKnown() bool {
	return s.routes.known || s.listeners.subscribed && s.listeners.held.isEmpty() && len(s.routes.names) == 0
}

// due is the earliest of several times; the zero value means none.
type due struct{ at time.Time }

// add lowers the due time to at; it ignores the zero time.
func (d *due) add(t time.Time) {
	if !t.IsZero() && (d.at.IsZero() || t.Before(d.at)) {
		d.at = t
	}
}
