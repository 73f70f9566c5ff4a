package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// named is what one Envoy has of a type that it subscribes to by name (secrets,
// extension configs, endpoints).
type named struct {
	collection
	all   []*snapshot.Resource // all that exist, requested or not; sorted
	names map[string]bool      // subscribed
	// logins are the pairs of names. kept are names of retired secrets that use no room:
	// those that were wanted before, and some that the Envoy reported.
	logins logins
	kept   map[string]struct{}
	// lookup makes a resource for a name that a client of the Envoy requested, in a
	// handshake that waits for the answer; nil for a type without such names. A name
	// that does not exist is answered immediately and forgotten. Otherwise Envoy would
	// let the handshake hang and keep the subscription forever.
	lookup  func(name string) (*snapshot.Resource, string)
	unknown []string // names to answer like this
	// recent are names without a certificate of exactly that name that were answered
	// with one: clients can invent any number of them. The oldest is dropped first.
	recent []string
	// hopeless are certificates that the Envoy refused for a name for which it has no
	// other, by the certificate's name.
	hopeless map[string]Refusal
	// changes are changes of secrets that the Envoy is not known to have read, by name.
	changes map[string]change
	// compared means that the existing resources were compared with what the Envoy has.
	compared bool
}

// maxRecent is how many recent names an Envoy keeps. Each costs it about 33 kB.
const maxRecent = 1000

func newNamed(typeURL string) named {
	return named{
		collection: newCollection(typeURL), names: map[string]bool{}, hopeless: map[string]Refusal{},
		changes: map[string]change{}, kept: map[string]struct{}{},
	}
}

// isLookup reports whether a name was requested by a client. Names that resources use
// have a slash.
func (n *named) isLookup(name string) bool {
	return n.typeURL == snapshot.SecretType && (!strings.Contains(name, "/") || name == snapshot.DefaultCertificate)
}

// find returns the resource of a name, and whether clients can invent more names for it;
// nil if there is none.
func (n *named) find(name string) (r *snapshot.Resource, madeUp bool) {
	if i, ok := slices.BinarySearchFunc(n.all, name, compareName); ok {
		return n.all[i], false
	}
	if n.lookup == nil || !n.isLookup(name) {
		return nil, false
	}
	r, pattern := n.lookup(name)
	return r, pattern != name
}

// origin returns the certificate from which the secret of a name is made; nil if there
// is none.
func (n *named) origin(name string) *snapshot.Resource {
	if n.lookup == nil || !n.isLookup(name) {
		return nil
	}
	_, pattern := n.lookup(name)
	r, _ := n.lookup(pattern)
	return r
}

func (n *named) exists(name string) bool {
	r, _ := n.find(name)
	return r != nil
}

// subscribe adds names. A name that the Envoy requests again is sent again.
func (n *named) subscribe(names []string, initial map[string]string, room *int, revision int64) bool {
	n.subscribed = true
	for name, version := range initial {
		r, madeUp := n.find(name)
		if !n.names[name] && r == nil && !n.isFree(name) && !takeRoom(room) {
			continue
		}
		if !n.held.has(name) {
			n.held.set(name, &resourceState{sent: version, acked: version})
		}
		n.add(name, madeUp && r != nil)
	}
	for _, name := range names {
		r, madeUp := n.find(name)
		if n.isLookup(name) && n.isHopeless(name, r) {
			n.unknown = append(n.unknown, name)
			continue
		}
		if !n.names[name] && r == nil && !n.isFree(name) && !takeRoom(room) {
			return false
		}
		n.add(name, madeUp && r != nil)
		switch h := n.held.own(name); {
		case h == nil && n.typeURL == snapshot.SecretType && r == nil && !n.isLogin(name):
			n.unknown = append(n.unknown, name)
		case h != nil && initial[name] == "":
			h.sent = ""
		}
		if r != nil {
			n.wantOne(r)
			if n.typeURL == snapshot.SecretType && !n.isLookup(name) {
				n.noteChange(r, revision)
			}
		}
	}
	if len(initial) > 0 || !n.compared {
		n.compared = true
		n.wanted = nil
		n.wantAll(n.all)
		if n.typeURL == snapshot.SecretType {
			n.noteChanges(revision)
		}
	}
	return true
}

// wantOne adds one resource to the wanted ones without looking at the others.
func (n *named) wantOne(r *snapshot.Resource) {
	delete(n.kept, r.Name)
	i, found := slices.BinarySearchFunc(n.wanted, r.Name, compareName)
	if !found {
		// The list may be in use by a message.
		n.wanted = slices.Concat(n.wanted[:i], []*snapshot.Resource{r}, n.wanted[i:])
	}
	n.need(r)
}

// isHopeless reports whether a client's name has no certificate that the Envoy has or
// would accept.
func (n *named) isHopeless(name string, r *snapshot.Resource) bool {
	if h, _ := n.held.find(name); h.acked != "" {
		return false // if it is gone, a removal is sent
	}
	return r == nil || n.isRefused(name)
}

// isRefused reports whether the Envoy refused the certificate of a name.
func (n *named) isRefused(name string) bool {
	o := n.origin(name)
	return o != nil && n.hopeless[o.Name].Version == o.Version
}

// add records a subscription. If clients have invented too many names, it drops the one
// that was requested the longest ago.
func (n *named) add(name string, madeUp bool) {
	n.names[name] = true
	if n.typeURL == snapshot.SecretType {
		n.logins.add(name)
	}
	if !madeUp {
		return
	}
	n.recent = append(slices.DeleteFunc(n.recent, func(r string) bool { return r == name }), name)
	if len(n.recent) > maxRecent {
		oldest := n.recent[0]
		n.leave(oldest)
		if !n.held.has(oldest) {
			n.unknown = append(n.unknown, oldest) // it still waits for an answer
		}
		n.drop(oldest)
	}
}

// leave records that a name is no longer subscribed.
func (n *named) leave(name string) {
	delete(n.names, name)
	delete(n.kept, name)
	n.logins.leave(name, n.names)
	if !n.changes[name].removed {
		delete(n.changes, name)
	}
	n.recent = slices.DeleteFunc(slices.Clone(n.recent), func(r string) bool { return r == name })
	if has(n.wanted, name) {
		// The list may be in use by a message.
		n.wanted = slices.DeleteFunc(slices.Clone(n.wanted), func(r *snapshot.Resource) bool { return r.Name == name })
	}
}

// isFree reports whether a name needs no room.
func (n *named) isFree(name string) bool {
	if _, is := n.kept[name]; is || !n.isLogin(name) || len(n.kept) >= maxFreeLogins {
		return is
	}
	n.kept[name] = struct{}{}
	return true
}

// countForeign counts the names that do not exist.
func (n *named) countForeign() int {
	return len(n.names) - min(len(n.names), len(n.wanted)+len(n.kept))
}

func (n *named) unsubscribe(names []string) {
	for _, name := range names {
		n.leave(name)
		n.forget(name)
		delete(n.changes, name)
	}
}

// wantAll sets the new list of existing resources.
func (n *named) wantAll(all []*snapshot.Resource) {
	n.all = all
	var wanted []*snapshot.Resource
	for name := range n.names {
		switch r, _ := n.find(name); {
		case r != nil:
			wanted = append(wanted, r)
			delete(n.kept, name)
		case n.isLookup(name) && !n.held.has(name):
			n.unknown = append(n.unknown, name) // it was about to be sent
		case n.isLogin(name) && n.wants(name):
			n.kept[name] = struct{}{}
		}
	}
	slices.SortFunc(wanted, func(a, b *snapshot.Resource) int { return cmp.Compare(a.Name, b.Name) })
	n.want(wanted)
	for name := range n.held.all() {
		if _, known := n.gone[name]; !known && !has(wanted, name) {
			n.retire(name)
		}
	}
	for name, refusal := range n.hopeless {
		if r := n.origin(name); r == nil || r.Version != refusal.Version {
			delete(n.hopeless, name)
		}
	}
}

// leaveUnused returns the clients' names that the Envoy has and should not have, and
// records that it no longer has them. No resource names them, so they are removed
// immediately, whatever is unanswered.
func (n *named) leaveUnused() []string {
	var names []string
	for name := range n.gone {
		if n.isLookup(name) {
			names = append(names, name)
			n.leave(name)
		}
	}
	slices.Sort(names)
	n.remove(names)
	return names
}

// resend sends a resource again even if it has not changed.
func (n *named) resend(name string) {
	if i, ok := slices.BinarySearchFunc(n.wanted, name, compareName); ok &&
		n.refused[name].Version != n.wanted[i].Version {
		n.todo[name] = n.wanted[i]
	}
}

// giveUp answers a client's name whose first certificate the Envoy refused: otherwise
// the handshake would hang.
func (n *named) giveUp(name string) {
	if h, _ := n.held.find(name); !n.isLookup(name) || h.acked != "" {
		return
	}
	if r := n.origin(name); r != nil {
		refusal := n.refused[name]
		refusal.Resource, refusal.Version = r.Name, r.Version
		n.hopeless[r.Name] = refusal
	}
	n.unknown = append(n.unknown, name)
	n.leave(name)
	n.forget(name)
	n.changes[name] = change{removed: true} // it may have been accepted as one of several in a message
}

// refuse returns the names to answer with a removal.
func (n *named) refuse() []string {
	unknown := slices.DeleteFunc(n.unknown, func(name string) bool {
		return n.names[name] && n.exists(name) || !n.names[name] && !n.isLookup(name)
	})
	n.unknown = nil
	slices.Sort(unknown)
	return slices.Compact(unknown)
}

func has(list []*snapshot.Resource, name string) bool {
	_, ok := slices.BinarySearchFunc(list, name, compareName)
	return ok
}
