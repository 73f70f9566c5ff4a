package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Registry is safe for concurrent use. Use NewRegistry.
type Registry struct {
	mu         sync.Mutex
	envoys     map[int64]*Envoy
	conditions map[string][]model.Condition // by source

	feed    *Feed
	changed chan struct{} // capacity 1
}

// Envoy is one connected Envoy.
type Envoy struct {
	// ID is unique among the connections of this process.
	ID int64
	// Proxy is its node id.
	Proxy     string
	Address   string
	Version   string
	Connected time.Time
	// Instance is its name among the Envoys of the proxy, which it keeps when it connects elsewhere; empty if it has
	// none.
	Instance string
	// Identity says how it has authenticated, and as whom; empty if it has not.
	Identity string
	Progress
	// Types holds the last answers by type URL.
	Types map[string]Answers

	engine bool
}

// Progress is how far an Envoy has come towards the configuration that it should have.
type Progress struct {
	// Applied is the revision that it has in full; 0 means none yet.
	Applied int64
	// Waiting are the hosts whose newest version waits for something.
	Waiting []Wait
	// Refused is what the Envoy refused and does not receive again.
	Refused []Refusal
}

// Wait is a host whose newest version is held back.
type Wait struct {
	// Host is its name, Object what it was made from.
	Host   string    `json:"host"`
	Object model.Key `json:"object"`
	// Clusters, Secrets and Providers (which verify tokens) are not ready in the Envoy.
	Clusters  []Awaited `json:"clusters,omitempty"`
	Secrets   []Awaited `json:"secrets,omitempty"`
	Providers []Awaited `json:"providers,omitempty"`
	Since     time.Time `json:"since"`
	// Until is when the wait ends at the latest; the zero time means that only a change
	// of the configuration ends it.
	Until time.Time `json:"until,omitzero"`
}

// For names the first things that the host waits for.
func (w Wait) For() string {
	const most = 3
	all := slices.Concat(w.Clusters, w.Secrets, w.Providers)
	names := make([]string, 0, most)
	for _, a := range all[:min(most, len(all))] {
		names = append(names, a.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(all) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Awaited is a cluster, a secret or a jwt provider that is not ready in an Envoy.
type Awaited struct {
	Name string `json:"name"`
	// Objects are what it was made from.
	Objects []model.Key `json:"objects,omitempty"`
}

// Refusal is a resource, or the host of a route configuration, that an Envoy
// refused.
type Refusal struct {
	TypeURL  string `json:"type_url"`
	Resource string `json:"resource"`
	Version  string `json:"version,omitempty"`
	// Objects are what it was made from; nil means the proxy.
	Objects []model.Key `json:"objects,omitempty"`
	// Revision is the revision of the refused message.
	Revision int64 `json:"revision"`
	// Text is Envoy's reason.
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// Answers are the last response of a type, and Envoy's last answer to one.
type Answers struct {
	Sent     Answer `json:"sent,omitzero"`
	Acked    Answer `json:"acked,omitzero"`
	Rejected Answer `json:"rejected,omitzero"`
}

// Answer is one response with the Envoy's answer. The zero value means that there was
// none.
type Answer struct {
	// Revision is the configuration revision of the response.
	Revision int64 `json:"revision"`
	// Resources are the first names and versions of the response, More the number of
	// others. MaxNamed of them are enough.
	Resources []Resource `json:"-"`
	More      int        `json:"more,omitempty"`
	At        time.Time  `json:"at"`
	// Text is Envoy's reason for a refusal.
	Text string `json:"text,omitempty"`
}

// IsZero reports whether there was none.
func (a Answer) IsZero() bool { return a.At.IsZero() }

// Resource names a resource and the version of its content.
type Resource struct {
	Name    string
	Version string
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{
		envoys: map[int64]*Envoy{}, conditions: map[string][]model.Condition{}, feed: newFeed(),
		changed: make(chan struct{}, 1),
	}
}

// Changed receives, without data, after something about an Envoy or an engine has
// changed. It has capacity 1 and one reader.
func (r *Registry) Changed() <-chan struct{} { return r.changed }

func (r *Registry) signal() {
	select {
	case r.changed <- struct{}{}:
	default: // the reader has not looked yet, and will see this too
	}
}

// Connect records an Envoy. The caller removes it with Disconnect.
func (r *Registry) Connect(e Envoy) {
	e.Types = map[string]Answers{}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.envoys[e.ID] = &e
	r.signal()
	r.feed.Publish(e.event(EventConnect))
}

// ConnectEngine records a rate-limit engine, which has no proxy. Otherwise it is like an
// Envoy.
func (r *Registry) ConnectEngine(e Envoy) {
	e.engine = true
	r.Connect(e)
}

// Disconnect forgets an Envoy or an engine.
func (r *Registry) Disconnect(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.envoys[id]; e != nil {
		r.feed.Publish(e.event(EventDisconnect))
	}
	delete(r.envoys, id)
	r.signal()
}

// RecordSent records a response.
func (r *Registry) RecordSent(id int64, typeURL string, a Answer) {
	r.answer(id, typeURL, func(t *Answers) { t.Sent = a }, "", a)
}

// RecordAck records an acknowledgment.
func (r *Registry) RecordAck(id int64, typeURL string, a Answer) {
	r.answer(id, typeURL, func(t *Answers) { t.Acked = a }, EventAck, a)
}

// RecordNack records a refusal.
func (r *Registry) RecordNack(id int64, typeURL string, a Answer) {
	r.answer(id, typeURL, func(t *Answers) { t.Rejected = a }, EventNack, a)
}

// answer records an answer, and publishes it if it is an event.
func (r *Registry) answer(id int64, typeURL string, apply func(*Answers), event string, a Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.envoys[id]
	if e == nil {
		return
	}
	t := e.Types[typeURL]
	apply(&t)
	e.Types[typeURL] = t
	r.signal()
	if event != "" {
		r.feed.Publish(e.answerEvent(event, typeURL, a))
	}
}

// RecordOverdue records that the routes of an Envoy no longer wait for a resource.
func (r *Registry) RecordOverdue(id int64, typeURL, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.envoys[id]; e != nil {
		overdue := e.event(EventOverdue)
		overdue.Type, overdue.Resources = TypeName(typeURL), []string{name}
		r.feed.Publish(overdue)
	}
}

// SetProgress records the progress of an Envoy. The caller must not change the lists
// afterwards.
func (r *Registry) SetProgress(id int64, p Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.envoys[id]
	if e == nil {
		return
	}
	newer := p.Applied > e.Applied
	e.Progress = p
	r.signal()
	if newer {
		applied := e.event(EventApplied)
		applied.Revision = p.Applied
		r.feed.Publish(applied)
	}
}

// Envoys lists the connected Envoys, the longest connected first.
func (r *Registry) Envoys() []Envoy { return r.connected(false) }

// Engines lists the connected rate-limit engines, the longest connected first.
func (r *Registry) Engines() []Envoy { return r.connected(true) }

func (r *Registry) connected(engines bool) []Envoy {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Envoy, 0, len(r.envoys))
	for _, e := range r.envoys {
		if e.engine != engines {
			continue
		}
		c := *e
		c.Types = maps.Clone(e.Types)
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Envoy) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// HasAnswered reports whether the Envoy has answered everything that it was sent of some
// types.
func (e Envoy) HasAnswered(typeURLs ...string) bool {
	for _, typeURL := range typeURLs {
		t := e.Types[typeURL]
		if t.Sent.At.After(t.Acked.At) && t.Sent.At.After(t.Rejected.At) {
			return false
		}
	}
	return true
}

// SetConditions replaces the conditions of a source, such as the compilation of one
// service.
func (r *Registry) SetConditions(source string, conditions []model.Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(conditions) == 0 {
		delete(r.conditions, source)
		return
	}
	r.conditions[source] = conditions
}

// Conditions lists everything that is not live as written, sorted by object.
func (r *Registry) Conditions() []model.Condition {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []model.Condition
	for _, c := range r.conditions {
		list = append(list, c...)
	}
	slices.SortFunc(list, func(a, b model.Condition) int {
		return cmp.Or(cmp.Compare(a.Key.Text(), b.Key.Text()), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	// Services that share an upstream have the same conditions for it.
	return slices.CompactFunc(list, func(a, b model.Condition) bool {
		return a.Key == b.Key && a.Code == b.Code && a.Message == b.Message && slices.Equal(a.Proxies, b.Proxies)
	})
}
