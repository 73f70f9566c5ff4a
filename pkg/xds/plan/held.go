package plan

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// resourceStates are the resources of a type that were sent to the Envoy, or reported
// by it. They are nearly always what a snapshot lists: then all streams share that
// list, and other has only what differs.
type resourceStates struct {
	group *group // nil: none
	// other is in place of the group's; nil of a name: the Envoy does not have
	// it.
	other map[string]*resourceState
}

// group is a list that was sent in one message, or that the Envoy has for
// certain.
type group struct {
	list     []*snapshot.Resource // sorted by name
	number   int                  // of the flight; 0: the Envoy has it
	revision int64
	sentAt   time.Time
	// read says that the Envoy has read the message, acked that it took it.
	read, acked bool
}

// resourceState is the state of one resource that was sent to the Envoy, or that it
// reported.
type resourceState struct {
	sent  string // version; empty: which one the Envoy has is not known
	acked string // version; empty: none yet
	// sentIn is the number of the flight that last held it, readIn of the last
	// one that the Envoy has read for certain: it was acknowledged, or sent
	// before something of another type that was.
	sentIn, readIn int
	// readRev is the newest revision whose form of the resource it has read.
	readRev int64
	warms   bool
	// serves says of a cluster that the Envoy has read a form of it that waits for nothing, so that it is in use.
	// The answer to it may be held back by another cluster.
	serves  bool
	sentAt  time.Time // of the first version since a refusal
	overdue bool      // the bound of the wait for it ran out
	of      *group    // which it was sent with; nil: none
	// doubtful says that the Envoy refused a message with a newer version than acked and other resources since:
	// it may have taken that version.
	doubtful bool
}

// read notes that the Envoy has read a flight.
func (h *resourceState) read(f *flight) {
	h.readIn, h.readRev = max(h.readIn, f.number), max(h.readRev, f.Revision)
}

// isRead reports whether the Envoy has read one of the list for certain. What
// warms is there when it is acknowledged.
func (g *group) isRead(r *snapshot.Resource) bool { return g.acked || g.read && !r.Warms }

// state returns what is known of one of the list.
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

// find returns what is known of a resource; false if the Envoy does not have it. It
// is asked for all resources of all streams, and so allocates nothing.
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

// own returns what is known of a resource, to be changed; nil if the Envoy does
// not have it.
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

// forget notes that the Envoy does not have a resource.
func (s *resourceStates) forget(name string) {
	delete(s.other, name)
	if s.group != nil && has(s.group.list, name) {
		s.set(name, nil)
	}
}

// all returns the names of what the Envoy has, in any order.
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

// sentWith returns what is known of the i-th resource of a flight, to be changed;
// nil if it was removed, and perhaps sent again, since.
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

// isUnread reports whether the i-th resource of a flight, if nothing newer was
// sent since, may not be read yet.
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

// read notes that the Envoy has read a flight: all of it when it was acknowledged,
// else what is active at once. What was removed since, and perhaps sent again, has
// another state.
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

// settle takes a list that the Envoy has for certain in place of what is known of
// each resource of it.
func (s *resourceStates) settle(list []*snapshot.Resource, revision int64) {
	*s = resourceStates{group: &group{list: list, revision: revision, acked: true}}
}

func compareName(r *snapshot.Resource, name string) int { return cmp.Compare(r.Name, name) }
