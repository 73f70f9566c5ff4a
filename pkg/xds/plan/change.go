package plan

import (
	"math"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// change is a secret that the Envoy has and that is different or gone, or a new secret
// that a resource names. Certificates that clients request do not count: clients may
// request more and more.
type change struct {
	revision int64 // the oldest revision that the Envoy may not have read
	removed  bool
}

// noteChange records that a resource must be sent at a revision, if it is to be sent.
func (n *named) noteChange(r *snapshot.Resource, revision int64) {
	if n.todo[r.Name] == nil {
		return
	}
	if old, ok := n.changes[r.Name]; ok {
		revision = old.revision
	}
	n.changes[r.Name] = change{revision: revision}
}

// noteChanges records the changes in a new list at a revision.
func (n *named) noteChanges(revision int64) {
	for name, c := range n.changes {
		if !c.removed && n.has(name, math.MaxInt64) {
			delete(n.changes, name) // it is not wanted, or equals what the Envoy has again
		}
	}
	for _, r := range n.todo {
		n.noteChange(r, revision)
	}
	for _, r := range n.wanted {
		// A resource that is wanted again may still be unanswered from before.
		if _, noted := n.changes[r.Name]; !noted && !n.isLookup(r.Name) && !n.has(r.Name, math.MaxInt64) {
			n.changes[r.Name] = change{revision: revision}
		}
	}
	for name := range n.gone {
		if n.isLookup(name) {
			n.changes[name] = change{revision: revision, removed: true}
		}
	}
}

// noteRead removes the changes that the Envoy has read with a message.
func (n *named) noteRead(m *Message) {
	for _, r := range m.Resources {
		if c, ok := n.changes[r.Name]; ok && !c.removed && n.has(r.Name, math.MaxInt64) {
			delete(n.changes, r.Name)
		}
	}
	for _, name := range m.Removed {
		if c := n.changes[name]; c.removed && c.revision <= m.Revision {
			delete(n.changes, name)
		}
	}
}

// reached reports whether the Envoy has read the changes up to a revision. If not, it
// returns what is missing.
func (n *named) reached(revision int64) (Lack, bool) {
	for _, r := range n.hopeless {
		if r.Revision >= revision {
			return Lack{Refusal: &r}, false
		}
	}
	waits := false
	for name, c := range n.changes {
		if c.revision > revision || !c.removed && n.has(name, revision) {
			continue
		}
		switch r, refused := n.refused[name]; {
		case !refused:
			waits = true
		case r.Revision >= revision:
			return Lack{Refusal: &r}, false
		}
	}
	return Lack{}, !waits
}

// isAwaited reports whether the Envoy has not yet read something that is wanted.
func (n *named) isAwaited() bool {
	for _, c := range n.changes {
		if !c.removed {
			return true
		}
	}
	return false
}
