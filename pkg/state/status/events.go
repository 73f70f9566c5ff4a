package status

import (
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// MaxNamed is how many resources an event names.
const MaxNamed = 10

// Feed is where the registry publishes what happens.
func (r *Registry) Feed() *Feed { return r.feed }

// RecordChange records a stored revision. The caller does so in the order of revisions,
// and before each is published.
func (r *Registry) RecordChange(e Event) {
	e.Event = EventChange
	r.feed.Publish(e)
}

// RecordRestore records that the database was restored from an older backup: what a
// reader keeps of revisions may belong to others with the same numbers.
func (r *Registry) RecordRestore(revision int64) {
	r.feed.Publish(Event{
		Event: EventReset, Revision: revision, Message: "the database was restored from a backup: " +
			"read again what you keep, then go on with what follows",
	})
}

// RecordCertificate records that a certificate expires soon, or has expired.
func (r *Registry) RecordCertificate(c model.Condition) {
	r.feed.Publish(Event{Event: EventCertificate, Object: c.Key.Path(), Code: c.Code, Message: c.Message})
}

// RecordKey records that an API key expires soon, or has expired.
func (r *Registry) RecordKey(c model.Condition) {
	r.feed.Publish(Event{Event: EventKey, Object: c.Key.Path(), Code: c.Code, Message: c.Message})
}

// RecordProvider records what was learned from an identity provider, or that it fails.
func (r *Registry) RecordProvider(e Event) {
	e.Event = EventProvider
	r.feed.Publish(e)
}

// RecordLogin records why logins fail at a service.
func (r *Registry) RecordLogin(c model.Condition) {
	r.feed.Publish(Event{Event: EventLogin, Object: c.Key.Path(), Code: c.Code, Message: c.Message})
}

// RecordPublish records a revision that is published to the Envoys: the number of
// changes since the previous one, the proxies that it changes, and how long it took to
// build.
func (r *Registry) RecordPublish(revision int64, changes int, proxies []string, took time.Duration) {
	proxies = slices.Sorted(slices.Values(proxies))
	r.feed.Publish(Event{
		Event: EventPublish, Revision: revision, Changes: changes, Proxies: proxies,
		TookMS: float64(took.Microseconds()) / 1000,
	})
}

// RecordOf records an event of another replica, as it was reported there.
func (r *Registry) RecordOf(replica string, e Event) {
	e.Replica = replica
	r.feed.publishOf(e)
}

// RecordReplica records that another replica came, went, or is not heard.
func (r *Registry) RecordReplica(replica, message string) {
	r.feed.Publish(Event{Event: EventReplica, Replica: replica, Message: message})
}

// event is an event of one Envoy.
func (e *Envoy) event(name string) Event {
	return Event{Event: name, Proxy: e.Proxy, Envoy: e.Address, Version: e.Version}
}

// answerEvent returns the event of an Envoy's answer to a response.
func (e *Envoy) answerEvent(name, typeURL string, a Answer) Event {
	v := e.event(name)
	v.Revision, v.Type, v.Message = a.Revision, TypeName(typeURL), a.Text
	for _, r := range a.Resources[:min(MaxNamed, len(a.Resources))] {
		v.Resources = append(v.Resources, r.Name)
	}
	v.More = a.More + len(a.Resources) - len(v.Resources)
	return v
}

// TypeName returns the short name of a type URL, such as cluster; for an unknown type
// its last word.
func TypeName(typeURL string) string {
	word := typeURL[strings.LastIndexByte(typeURL, '.')+1:]
	switch word {
	case "ClusterLoadAssignment":
		return "endpoint"
	case "RouteConfiguration":
		return "route"
	case "TypedExtensionConfig":
		return "extension"
	}
	return strings.ToLower(word)
}
