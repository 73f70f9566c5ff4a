package plan

import (
	"math"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// change is a secret that the Envoy has and that is different, or gone, or a new one
// that a resource names. What clients ask for is none: they may ask for more and more.
type change struct {
	revision int64 // the oldest that the Envoy may not have read
	removed  bool
}

// noteChange notes that a resource has to be sent at a revision, if it has.
func (n *named) noteChange(r *snapshot.Resource, revision int64) {
	if n.todo[r.Name] == nil {
		return
	}
	if old, ok := n.changes[r.Name]; ok {
		revision = old.revision
	}
	n.changes[r.Name] = change{revision: revision}
}

// noteChanges notes what a new list at a revision has changed.
func (n *named) noteChanges(revision int64) {
	for name, c := range n.changes {
		if !c.removed && n.has(name, math.MaxInt64) {
			delete(n.changes, name) // it is not wanted, or again what the Envoy has
		}
	}
	for _, r := range n.todo {
		n.noteChange(r, revision)
	}
	for _, r := range n.wanted {
		// One that is wanted again may be under way since it was wanted before.
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

// noteRead takes away the changes that the Envoy has read with a message.
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

// reached reports whether the Envoy has read the changes up to a revision, and else
// what stands in the way.
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

// isAwaited reports whether anything that is wanted was not read.
func (n *named) isAwaited() bool {
	for _, c := range n.changes {
		if !c.removed {
			return true
		}
	}
	return false
}
