package plan

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// resourceStates are the resources of a type that were sent to the Envoy or reported by it. They nearly always
// equal the list of a snapshot. Then all streams share that list, and other contains only the differences.
type resourceStates struct {
	group *group // nil: none
	// other overrides the group. A nil value means that the Envoy does not have the resource.
	other map[string]*resourceState
}

// group is a list that was sent in one message, or that the Envoy certainly has.
type group struct {
	list     []*snapshot.Resource // sorted by name
	number   int                  // of the flight; 0: the Envoy has the list
	revision int64
	sentAt   time.Time
	// read means that the Envoy has read the message, acked that it accepted it.
	read, acked bool
}

// resourceState is the state of one resource that was sent to the Envoy or reported by it.
type resourceState struct {
	sent  string // version; empty: unknown
	acked string // version; empty: none yet
	// sentIn is the number of the last flight that contained the resource. readIn is the number of the last one
	// that the Envoy has certainly read: it acknowledged the flight, or a later message of another type.
	sentIn, readIn int
	// readRev is the newest revision whose version of the resource the Envoy has read.
	readRev int64
	warms   bool
	// serves means that the Envoy has read a version of the cluster that waits for nothing, so the cluster is in
	// use. The answer to it may be delayed by another cluster.
	serves  bool
	sentAt  time.Time // of the first version since a refusal
	overdue bool      // the wait for it exceeded its bound
	of      *group    // the group that it was sent with; nil: none
	// doubtful means that the Envoy has since refused a message with several resources, among them a newer
	// version of this one than acked. It may have accepted that version.
	doubtful bool
}

// read records that the Envoy has read a flight.
func (h *resourceState) read(f *flight) {
	h.readIn, h.readRev = max(h.readIn, f.number), max(h.readRev, f.Revision)
}

// isRead reports whether the Envoy has certainly read a resource of the list. A resource that warms is read when
// it is acknowledged.
func (g *group) isRead(r *snapshot.Resource) bool { return g.acked || g.read && !r.Warms }

// state returns what is known about a resource of the list.
func (g *group) state(r *snapshot.Resource) resourceState {
	h := resourceState{sent: r.Version, sentIn: g.number, warms: r.Warms, sentAt: g.sentAt, of: g}
	if g.acked {
		h.acked = r.Version
	}
	if g.isRead(r) {
		h.readIn, h.readRev, h.serves = g.number, g.revision, !r.Discovered
	}
	return h
}

// find returns what is known about a resource; false if the Envoy does not have it. It is called for all
// resources of all streams, so it does not allocate.
func (s *resourceStates) find(name string) (resourceState, bool) {
	if h, ok := s.other[name]; ok || s.group == nil {
		if h == nil {
			return resourceState{}, false
		}
		return *h, true
	}
	if i, ok := slices.BinarySearchFunc(s.group.list, name, compareName); ok {
		return s.group.state(s.group.list[i]), true
	}
	return resourceState{}, false
}

// has reports whether the Envoy has a resource.
func (s *resourceStates) has(name string) bool {
	if h, ok := s.other[name]; ok || s.group == nil {
		return h != nil
	}
	return has(s.group.list, name)
}

// own returns what is known about a resource, for changes; nil if the Envoy does not have it.
func (s *resourceStates) own(name string) *resourceState {
	if h, ok := s.other[name]; ok {
		return h
	}
	h, ok := s.find(name)
	if !ok {
		return nil
	}
	mine := h
	s.set(name, &mine)
	return &mine
}

func (s *resourceStates) set(name string, h *resourceState) {
	if s.other == nil {
		s.other = map[string]*resourceState{}
	}
	s.other[name] = h
}

// forget records that the Envoy does not have a resource.
func (s *resourceStates) forget(name string) {
	delete(s.other, name)
	if s.group != nil && has(s.group.list, name) {
		s.set(name, nil)
	}
}

// all returns the names of the resources that the Envoy has, in any order.
func (s *resourceStates) all() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, h := range s.other {
			if h != nil && !yield(name) {
				return
			}
		}
		if s.group == nil {
			return
		}
		for _, r := range s.group.list {
			if _, other := s.other[r.Name]; !other && !yield(r.Name) {
				return
			}
		}
	}
}

func (s *resourceStates) isEmpty() bool {
	for range s.all() {
		return false
	}
	return true
}

// sentWith returns what is known about the i-th resource of a flight, for changes; nil if it has been removed
// since, even if it was sent again.
func (s *resourceStates) sentWith(f *flight, i int) *resourceState {
	name := f.Resources[i].Name
	if f.group == nil {
		if h := f.states[i]; h == s.other[name] {
			return h
		}
		return nil
	}
	if h := s.own(name); h != nil && h.of == f.group {
		return h
	}
	return nil
}

// isUnread reports whether the Envoy may not have read the i-th resource of a flight yet. It is false if a newer
// version has been sent since.
func (s *resourceStates) isUnread(f *flight, i int) bool {
	r := f.Resources[i]
	var h *resourceState
	if f.group == nil {
		h = f.states[i]
	} else {
		other, ok := s.other[r.Name]
		if !ok {
			return !f.group.isRead(r)
		}
		if other == nil || other.of != f.group {
			return false
		}
		h = other
	}
	return h.sentIn == f.number && h.readIn < f.number
}

// read records that the Envoy has read a flight: all of it if it was acknowledged, otherwise what does not warm.
// A resource that has been removed since has another state, even if it was sent again.
func (s *resourceStates) read(f *flight, acked bool) {
	note := func(r *snapshot.Resource, h *resourceState) {
		if acked {
			h.acked, h.doubtful = r.Version, false
		}
		if acked || !r.Warms {
			h.read(f)
			h.serves = h.serves || !r.Discovered
		}
	}
	if f.group == nil {
		for i, r := range f.Resources {
			note(r, f.states[i])
		}
		return
	}
	f.group.read, f.group.acked = true, f.group.acked || acked
	for name, h := range s.other {
		if h != nil && h.of == f.group {
			i, _ := slices.BinarySearchFunc(f.Resources, name, compareName)
			note(f.Resources[i], h)
		}
	}
}

// settle replaces the states of the resources by a list that the Envoy certainly has.
func (s *resourceStates) settle(list []*snapshot.Resource, revision int64) {
	*s = resourceStates{group: &group{list: list, revision: revision, acked: true}}
}

func compareName(r *snapshot.Resource, name string) int { return cmp.Compare(r.Name, name) }
