package plan

import (
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// named is what one Envoy has of a type that it subscribes to by name
// (secrets, extension configs, endpoints).
type named struct {
	collection
	all   []*snapshot.Resource // what there is, asked for or not; sorted
	names map[string]bool      // subscribed
	// refuses says that a name that does not exist is answered at once: Envoy
	// would hang a handshake that waits for a secret, and keep the
	// subscription for ever. Other types are answered when the name comes to
	// exist.
	refuses bool
	unknown []string // to be answered so
}

func newNamed(typeURL string) named {
	return named{
		collection: newCollection(typeURL), names: map[string]bool{}, refuses: typeURL == snapshot.SecretType,
	}
}

// subscribe adds names. A name that the Envoy asks for again is sent again.
func (n *named) subscribe(names []string, initial map[string]string, room *int) bool {
	n.subscribed = true
	for name, version := range initial {
		if !n.names[name] && !has(n.all, name) && !takeRoom(room) {
			continue
		}
		if n.held.find(name) == nil {
			n.held.set(name, &resourceState{sent: version, acked: version})
		}
		n.names[name] = true
	}
	for _, name := range names {
		if !n.names[name] && !has(n.all, name) && !takeRoom(room) {
			return false
		}
		n.names[name] = true
		switch h := n.held.own(name); {
		case h == nil && n.refuses && !has(n.all, name):
			n.unknown = append(n.unknown, name)
		case h != nil && initial[name] == "":
			h.sent = ""
		}
	}
	n.wanted = nil
	n.wantAll(n.all)
	return true
}

// countForeign counts the names that do not exist.
func (n *named) countForeign() int {
	if len(n.names) == 0 {
		return 0
	}
	served := 0
	for _, r := range n.all {
		if n.names[r.Name] {
			served++
		}
	}
	return len(n.names) - served
}

func (n *named) unsubscribe(names []string) {
	for _, name := range names {
		delete(n.names, name)
	}
	n.wantAll(n.all)
	for _, name := range names {
		n.forget(name)
	}
}

// wantAll takes the new list of what there is.
func (n *named) wantAll(all []*snapshot.Resource) {
	n.all = all
	var wanted []*snapshot.Resource
	for _, r := range all {
		if n.names[r.Name] {
			wanted = append(wanted, r)
		}
	}
	n.want(wanted)
	for name := range n.held.all() {
		if _, known := n.gone[name]; !known && !has(wanted, name) {
			n.gone[name] = time.Time{}
		}
	}
}

// resend sends a resource again, even if it has not changed.
func (n *named) resend(name string) {
	if i, ok := slices.BinarySearchFunc(n.wanted, name, compareName); ok && n.refused[name].Version != n.wanted[i].Version {
		n.todo[name] = n.wanted[i]
	}
}

// refuse returns the names to answer with their removal.
func (n *named) refuse() []string {
	unknown := slices.DeleteFunc(n.unknown, func(name string) bool { return has(n.all, name) || !n.names[name] })
	n.unknown = nil
	return unknown
}

func has(list []*snapshot.Resource, name string) bool {
	_, ok := slices.BinarySearchFunc(list, name, compareName)
	return ok
}
