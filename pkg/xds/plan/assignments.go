package plan

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// The endpoints of some clusters are separate resources, assignments. The Envoy requests them
// by the names of the clusters, after it has read those. It does not use such a cluster, or its
// new version, before it has read the assignment that was sent after it. The answer to the
// assignment proves this. The answer to the cluster may be delayed by another cluster.
//
// A new version of an assignment is sent at any time: endpoints are not part of a revision, and
// nothing waits for them.

// noteUnassigned records that clusters are sent or removed.
func (s *Stream) noteUnassigned(f *flight) {
	for _, r := range f.Resources {
		delete(s.unassigned, r.Name)
		if r.Discovered && has(s.want.Endpoints, r.Name) {
			s.unassigned[r.Name] = f.number
		}
	}
	for _, name := range f.Removed {
		delete(s.unassigned, name)
	}
}

// noteAssigned records that the Envoy has read assignments.
func (s *Stream) noteAssigned(f *flight) {
	for _, r := range f.Resources {
		if number, ok := s.unassigned[r.Name]; ok && number < f.number {
			delete(s.unassigned, r.Name)
		}
	}
}

// lacksAssignment reports whether a cluster may still be without endpoints.
func (s *Stream) lacksAssignment(cluster string) bool {
	_, lacks := s.unassigned[cluster]
	return lacks
}

// isAssigned reports whether every wanted cluster has its endpoints, and no assignment was
// refused.
func (s *Stream) isAssigned() bool {
	for name := range s.unassigned {
		if s.endpoints.exists(name) {
			return false
		}
	}
	return len(s.endpoints.refused) == 0
}

// wantAssignments sets the new list of assignments. It does not look into what lies between two
// differences.
func (s *Stream) wantAssignments(all []*snapshot.Resource) {
	n := &s.endpoints
	old := n.all
	n.all = all
	changes := map[string]*snapshot.Resource{}
	for len(old) > 0 || len(all) > 0 {
		switch {
		case len(old) > 0 && len(all) > 0 && old[0] == all[0]: // nearly all
			old, all = old[1:], all[1:]
		case len(all) == 0 || len(old) > 0 && old[0].Name < all[0].Name:
			changes[old[0].Name] = nil
			old = old[1:]
		case len(old) == 0 || all[0].Name < old[0].Name:
			changes[all[0].Name] = all[0]
			all = all[1:]
		default:
			changes[all[0].Name] = all[0]
			old, all = old[1:], all[1:]
		}
	}
	s.changeAssignments(changes)
}

// changeAssignments applies changes: nil for an assignment that is gone.
func (s *Stream) changeAssignments(changes map[string]*snapshot.Resource) {
	n := &s.endpoints
	for name, r := range changes {
		switch {
		case r == nil:
			if n.names[name] && !n.held.has(name) {
				n.unknown = append(n.unknown, name) // the cluster still waits for the assignment
			}
		case !n.names[name]:
			delete(changes, name)
		}
	}
	if len(changes) == 0 {
		return
	}
	wanted := snapshot.Merge(n.wanted, changes)
	if slices.Equal(wanted, n.all) {
		wanted = n.all // all streams share the list
	}
	n.want(wanted)
	for name, r := range changes {
		number, lacks := s.unassigned[name]
		switch h, ok := n.held.find(name); {
		case !lacks || r == nil || n.refused[name].Version == r.Version:
		case number > 0 && (!ok || h.sentIn < number):
			n.todo[name] = r // the Envoy may have it from before the cluster
		case ok && h.sent == r.Version && h.sentIn == h.readIn:
			delete(s.unassigned, name) // the Envoy reported it
		}
	}
}

// subscribeAssignments records that the Envoy requests assignments. An assignment that it
// requests again without a version is sent again. It returns false if there is no room for a
// name that does not exist.
func (s *Stream) subscribeAssignments(names []string, initial map[string]string) bool {
	n := &s.endpoints
	n.subscribed = true
	changes := map[string]*snapshot.Resource{}
	var again []*snapshot.Resource
	add := func(name string) bool {
		r, _ := n.find(name)
		if r == nil && !n.names[name] && !s.clusters.held.has(name) && !takeRoom(&s.room) {
			return false
		}
		n.names[name] = true
		if r != nil {
			changes[name] = r
		}
		return true
	}
	for name, version := range initial {
		if !add(name) {
			continue
		}
		if !n.held.has(name) {
			n.held.set(name, &resourceState{sent: version, acked: version})
		}
		if r := changes[name]; r != nil && r.Version != version {
			s.unassigned[name] = 0 // any answer proves it
		}
	}
	for _, name := range names {
		if !add(name) {
			return false
		}
		r, h := changes[name], n.held.own(name)
		switch {
		case h == nil && r == nil:
			n.unknown = append(n.unknown, name)
		case h != nil && initial[name] == "":
			h.sent = ""
			if r != nil {
				again = append(again, r)
			}
		}
	}
	s.changeAssignments(changes)
	for _, r := range again {
		n.need(r)
	}
	return true
}

// Serves reports whether a name is that of one of the Envoy's clusters, or of an assignment.
func (s *Stream) Serves(name string) bool {
	return s.clusters.held.has(name) || s.endpoints.exists(name)
}

// leaveUnassigned drops the answer that an assignment does not exist if the Envoy uses an older
// version of the cluster: the answer would remove the endpoints of that version.
func (s *Stream) leaveUnassigned() {
	s.endpoints.unknown = slices.DeleteFunc(s.endpoints.unknown, func(name string) bool {
		h, ok := s.clusters.held.find(name)
		return ok && (h.acked != "" || h.serves)
	})
}

// countForeignAssignments counts the requested names that neither an assignment nor a cluster
// has.
func (s *Stream) countForeignAssignments() int {
	n := &s.endpoints
	if len(n.names) == len(n.wanted) {
		return 0
	}
	foreign := 0
	for name := range n.names {
		if !has(n.wanted, name) && !s.clusters.held.has(name) {
			foreign++
		}
	}
	return foreign
}
