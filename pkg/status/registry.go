package status

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// Registry is safe for use by many goroutines. Use NewRegistry.
type Registry struct {
	mu         sync.Mutex
	envoys     map[int64]*Envoy
	conditions map[string][]model.Condition // by source
}

// Envoy is one connected Envoy.
type Envoy struct {
	// ID is unique for each connection in the life of this process.
	ID int64
	// Proxy is its node id.
	Proxy     string
	Address   string
	Version   string
	Connected time.Time
	// Applied is the revision that it has in full; 0 means none yet.
	Applied int64
	// Types holds the last answers by type URL.
	Types map[string]Answers
}

// Answers are the last acknowledgement and the last refusal of a type.
type Answers struct {
	Acked    Answer
	Rejected Answer
}

// Answer is what an Envoy said to a response. The zero value means that it
// never did.
type Answer struct {
	// Revision is the configuration revision of the response.
	Revision int64
	// Resources are the names and versions of the response.
	Resources []Resource
	At        time.Time
	// Text is Envoy's reason for a refusal.
	Text string
}

// Resource names a resource and the version of its content.
type Resource struct {
	Name    string
	Version string
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{envoys: map[int64]*Envoy{}, conditions: map[string][]model.Condition{}}
}

// Connect records an Envoy. The caller removes it with Disconnect.
func (r *Registry) Connect(e Envoy) {
	e.Types = map[string]Answers{}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.envoys[e.ID] = &e
}

// Disconnect forgets an Envoy.
func (r *Registry) Disconnect(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.envoys, id)
}

// Acked records an acknowledgement.
func (r *Registry) Acked(id int64, typeURL string, a Answer) {
	r.answer(id, typeURL, func(t *Answers) { t.Acked = a })
}

// Rejected records a refusal.
func (r *Registry) Rejected(id int64, typeURL string, a Answer) {
	r.answer(id, typeURL, func(t *Answers) { t.Rejected = a })
}

func (r *Registry) answer(id int64, typeURL string, apply func(*Answers)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.envoys[id]; e != nil {
		t := e.Types[typeURL]
		apply(&t)
		e.Types[typeURL] = t
	}
}

// Applied records the revision that an Envoy has in full.
func (r *Registry) Applied(id, revision int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.envoys[id]; e != nil {
		e.Applied = revision
	}
}

// Envoys lists the connected Envoys, the longest connected first.
func (r *Registry) Envoys() []Envoy {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Envoy, 0, len(r.envoys))
	for _, e := range r.envoys {
		c := *e
		c.Types = maps.Clone(e.Types)
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Envoy) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// SetConditions replaces what a source, such as the compilation of one
// service, has to say.
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
		return cmp.Or(cmp.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.Code, b.Code))
	})
	return list
}
