package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// maxAlone is how many messages of a type may be unanswered when another resource is sent
// alone. An Envoy that refuses a large message receives each resource of it alone, and delays
// its answers while one warms.
const maxAlone = 1000

// collection is what one Envoy has of a type other than routes.
type collection struct {
	typeURL    string
	subscribed bool
	wanted     []*snapshot.Resource
	// joined returns the encoded resources of a message with everything that is wanted; nil
	// means none.
	joined func() []byte
	held   resourceStates
	// unanswered is the number of messages without an answer.
	unanswered int
	// todo is wanted and not sent. alone must be sent in messages of their own.
	todo  map[string]*snapshot.Resource
	alone []*snapshot.Resource
	// gone is held and no longer wanted, with the time since when nothing names it; the zero
	// time means unknown.
	gone map[string]time.Time
	// refused are versions that are not sent again.
	refused map[string]Refusal
	// owed means that a new subscription needs an answer, even an empty one.
	owed bool
	// overdue are resources whose wait exceeded its bound, until they are reported.
	overdue []string
}

func newCollection(typeURL string) collection {
	return collection{
		typeURL: typeURL,
		todo:    map[string]*snapshot.Resource{}, gone: map[string]time.Time{}, refused: map[string]Refusal{},
	}
}

func (c *collection) subscribe(initial map[string]string, room *int) {
	c.owed = c.subscribed || len(initial) == 0
	c.subscribed = true
	for name, version := range initial {
		if !c.held.has(name) && (c.wants(name) || takeRoom(room)) {
			c.held.set(name, &resourceState{sent: version, acked: version})
		}
	}
	// What the Envoy reports may be wanted or not.
	wanted := c.wanted
	c.wanted = nil
	c.want(wanted)
	for name := range initial {
		if c.held.has(name) && !c.wants(name) {
			c.gone[name] = time.Time{}
		}
	}
}

func (c *collection) wants(name string) bool { return has(c.wanted, name) }

// takeRoom reports whether there is room for one more name, and uses it.
func takeRoom(room *int) bool {
	*room--
	return *room >= 0
}

// want compares the new list, sorted by name, with the previous one. It does nothing until the
// Envoy subscribes.
func (c *collection) want(list []*snapshot.Resource) {
	old := c.wanted
	c.wanted = list
	if !c.subscribed {
		return
	}
	if len(old) == 0 && len(c.todo) == 0 {
		c.todo = make(map[string]*snapshot.Resource, len(list))
	}
	for len(old) > 0 || len(list) > 0 {
		switch {
		case len(old) > 0 && len(list) > 0 && old[0] == list[0]: // nearly all; their content is not compared
			old, list = old[1:], list[1:]
		case len(list) == 0 || len(old) > 0 && old[0].Name < list[0].Name:
			c.drop(old[0].Name)
			old = old[1:]
		case len(old) == 0 || list[0].Name < old[0].Name:
			c.need(list[0])
			list = list[1:]
		default:
			c.need(list[0])
			old, list = old[1:], list[1:]
		}
	}
}

func (c *collection) need(r *snapshot.Resource) {
	if _, unused := c.gone[r.Name]; unused {
		if h := c.held.own(r.Name); h != nil && h.acked != r.Version {
			// Nothing waited for the changes since then, so the version that the Envoy has may
			// lead to a backend that is gone. Treat it as new.
			h.acked, h.sentAt, h.overdue = "", time.Time{}, false
		}
	}
	delete(c.gone, r.Name)
	delete(c.todo, r.Name)
	if refusal, ok := c.refused[r.Name]; ok {
		if refusal.Version == r.Version {
			return
		}
		delete(c.refused, r.Name)
	}
	if h, ok := c.held.find(r.Name); !ok || h.sent != r.Version {
		c.todo[r.Name] = r
	}
}

func (c *collection) drop(name string) {
	delete(c.todo, name)
	delete(c.refused, name)
	if c.held.has(name) {
		c.retire(name)
	}
}

// retire records that something the Envoy has is no longer wanted.
func (c *collection) retire(name string) {
	if !c.isLogin(name) {
		c.gone[name] = time.Time{}
	}
}

// isLogin reports whether a name is that of a secret that is never removed.
func (c *collection) isLogin(name string) bool {
	return c.typeURL == snapshot.SecretType && strings.HasPrefix(name, loginPrefix)
}

// supply returns the messages to send now and counts them as sent.
func (c *collection) supply(now time.Time) []*flight {
	if !c.subscribed {
		return nil
	}
	flights := c.supplyAlone(now)
	if len(c.todo) > 0 {
		flights = append(flights, c.supplyTodo(now))
		c.todo = map[string]*snapshot.Resource{} // a large map would stay large
	}
	if c.owed && len(flights) == 0 {
		flights = append(flights, &flight{Message: Message{Type: c.typeURL}})
	}
	c.owed = false
	return flights
}

// supplyAlone sends the resources that must be sent alone, as many as may be unanswered.
func (c *collection) supplyAlone(now time.Time) []*flight {
	var flights []*flight
	for len(c.alone) > 0 && c.unanswered+len(flights) < maxAlone {
		r := c.alone[0]
		c.alone = c.alone[1:]
		// It may have been replaced or dropped since the refusal.
		if i, ok := slices.BinarySearchFunc(c.wanted, r.Name, compareName); ok && c.wanted[i].Version == r.Version {
			flights = append(flights, c.sendSome([]*snapshot.Resource{r}, now))
			delete(c.todo, r.Name)
		}
	}
	for _, r := range c.alone { // these are sent later
		if c.todo[r.Name] != nil && c.todo[r.Name].Version == r.Version {
			delete(c.todo, r.Name)
		}
	}
	return flights
}

// supplyTodo sends all new and changed resources in one message.
func (c *collection) supplyTodo(now time.Time) *flight {
	if len(c.todo) == len(c.wanted) && c.held.isEmpty() {
		g := &group{list: c.wanted, sentAt: now}
		c.held = resourceStates{group: g}
		return &flight{Message: Message{Type: c.typeURL, Resources: c.wanted, Joined: c.joined}, group: g}
	}
	return c.sendSome(slices.SortedFunc(maps.Values(c.todo),
		func(a, b *snapshot.Resource) int { return cmp.Compare(a.Name, b.Name) }), now)
}

func (c *collection) sendSome(list []*snapshot.Resource, now time.Time) *flight {
	f := &flight{Message: Message{Type: c.typeURL, Resources: list}}
	for _, r := range list {
		f.states = append(f.states, c.count(r, now))
	}
	return f
}

// count records that a resource is sent.
func (c *collection) count(r *snapshot.Resource, now time.Time) *resourceState {
	h := c.held.own(r.Name)
	if h == nil {
		h = &resourceState{}
		c.held.set(r.Name, h)
	}
	if h.sentAt.IsZero() {
		h.sentAt = now
	}
	h.sent, h.warms = r.Version, r.Warms
	return h
}

// nack treats nothing in the message as delivered: Envoy may have dropped good resources
// together with the bad one. Each is sent again alone. If the message had only one resource,
// it is the bad one, and nack returns its name.
func (c *collection) nack(f *flight, text string, now time.Time) (guilty string) {
	for i, r := range f.Resources {
		h := c.held.sentWith(f, i)
		if h == nil {
			continue // removed since
		}
		// Envoy may have accepted some of several resources, including this one.
		h.doubtful = h.doubtful || len(f.Resources) > 1
		if h.sentIn != f.number {
			continue // replaced since
		}
		h.sentAt, h.overdue, h.readRev = time.Time{}, false, 0
		h.sent = ""
		if len(f.Resources) == 1 {
			h.sentIn = h.readIn
			if !h.doubtful {
				h.sent = h.acked
			}
			c.refused[r.Name] = Refusal{
				Type: c.typeURL, Resource: r.Name, Version: r.Version, Objects: r.Objects, Revision: f.Revision, Text: text,
				At: now,
			}
			guilty = r.Name
		} else {
			c.alone = append(c.alone, r)
		}
	}
	return guilty
}

func (c *collection) remove(names []string) {
	for _, name := range names {
		c.forget(name)
	}
}

// pastGrace returns what is gone and has not been named for the grace period, sorted.
func (c *collection) pastGrace(now time.Time, grace time.Duration, next *due, named map[string]bool) []string {
	var removed []string
	for name, since := range c.gone {
		switch {
		case named[name]: // no time has been noted yet
		case since.IsZero():
			c.gone[name] = now
			next.add(now.Add(grace))
		case now.Before(since.Add(grace)):
			next.add(since.Add(grace))
		default:
			removed = append(removed, name)
		}
	}
	slices.Sort(removed)
	return removed
}

func (c *collection) forget(name string) {
	c.held.forget(name)
	delete(c.gone, name)
	delete(c.todo, name)
	delete(c.refused, name)
}

// settle shares the list of the snapshot with other streams, if the Envoy has everything that
// is wanted and nothing is unanswered.
func (c *collection) settle(revision int64) {
	if len(c.held.other) > 0 && c.unanswered == 0 && len(c.gone) == 0 && c.isSettled() {
		c.held.settle(c.wanted, revision)
	}
}

// isSettled reports whether everything that is wanted was sent and nothing was refused.
func (c *collection) isSettled() bool {
	return (c.subscribed || len(c.wanted) == 0) && len(c.todo) == 0 && len(c.alone) == 0 && len(c.refused) == 0
}

// usable reports whether a route may name the cluster. assigned means that the cluster is not
// known to lack its endpoints. If ok is false, until is when the wait for it ends; the zero
// time means that it waits for a new version.
func (c *collection) usable(name string, assigned bool, now time.Time, bound time.Duration) (ok bool, until time.Time) {
	h, ok := c.held.find(name)
	switch {
	case !ok:
		return false, now.Add(bound)
	case h.acked != "":
		return true, time.Time{}
	case h.sent == "":
		if _, refused := c.refused[name]; !refused {
			return false, now.Add(bound) // it will be sent alone
		}
		return false, time.Time{}
	case !h.warms && assigned:
		// Envoy reads a stream in order, so the cluster exists when it reads the route. The
		// acknowledgment may be delayed by another cluster that warms.
		return true, time.Time{}
	}
	if h.sentAt.IsZero() {
		h.sentAt = now
		c.held.own(name).sentAt = now
	}
	until = h.sentAt.Add(bound)
	if now.Before(until) {
		return false, until
	}
	if !h.overdue {
		c.held.own(name).overdue = true
		c.overdue = append(c.overdue, name)
	}
	return true, until
}

// has reports whether the Envoy has the wanted version of a resource, or one that it received
// at or after a revision.
func (c *collection) has(name string, revision int64) bool {
	i, ok := slices.BinarySearchFunc(c.wanted, name, compareName)
	if !ok {
		return true // nothing waits for its removal
	}
	h, ok := c.held.find(name)
	return ok && (h.sent == c.wanted[i].Version && h.readIn == h.sentIn || h.readRev >= revision)
}

func sortedKeys(m map[string]time.Time) []string { return slices.Sorted(maps.Keys(m)) }

// objects returns the objects that a wanted resource is made from.
func (c *collection) objects(name string) []snapshot.ObjectRef {
	if i, ok := slices.BinarySearchFunc(c.wanted, name, compareName); ok {
		return c.wanted[i].Objects
	}
	return nil
}
