package plan

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// Wait is a host whose newest piece is held back.
type Wait struct {
	Host string
	// Object is the object that the host is made from.
	Object snapshot.ObjectRef
	// Clusters are those that are not usable yet. Secrets and Providers are those whose
	// newest version the Envoy does not have. All are sorted by name.
	Clusters, Secrets, Providers []Awaited
	Since                        time.Time
	// Until is when the wait ends at the latest. The zero time means that one of them was
	// refused, and that the wait ends with another version.
	Until time.Time
}

// Awaited is a cluster, a secret or a jwt provider that is not usable yet.
type Awaited struct {
	Name    string
	Objects []snapshot.ObjectRef
}

// Refusal is a resource, or a host of a route configuration, whose version the Envoy
// refused.
type Refusal struct {
	Type     string
	Resource string
	Version  string
	// Objects are the objects that it is made from; nil means the proxy.
	Objects []snapshot.ObjectRef
	// Revision is the revision of the refused message.
	Revision int64
	// Text is Envoy's reason.
	Text string
	At   time.Time
}

// Waiting returns the hosts that are held back, sorted by name.
func (s *Stream) Waiting() []Wait {
	return sortedValues(s.routes.waiting, func(a, b Wait) int { return cmp.Compare(a.Host, b.Host) })
}

// Refused returns what the Envoy refused and does not receive again, sorted by type and
// name.
func (s *Stream) Refused() []Refusal {
	var list []Refusal
	for _, c := range []*collection{
		&s.clusters, &s.listeners, &s.secrets.collection, &s.extensions.collection, &s.endpoints.collection,
	} {
		list = slices.AppendSeq(list, maps.Values(c.refused))
	}
	list = slices.AppendSeq(list, maps.Values(s.secrets.hopeless))
	list = slices.AppendSeq(list, maps.Values(s.providers.refused))
	for _, r := range s.routes.refused {
		list = append(list, r.Refusal)
	}
	if s.routes.refusedWhole.Version != "" {
		list = append(list, s.routes.refusedWhole)
	}
	slices.SortFunc(list, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Resource, b.Resource))
	})
	return list
}

// RefusedListener is a listener that the Envoy refused.
type RefusedListener struct {
	Name string
	// Text is Envoy's reason.
	Text string
	// Open is the listener that the Envoy still uses: an older version with the same name,
	// or one that is no longer wanted. Empty means none.
	Open string
}

// RefusedListeners returns the listeners that the Envoy refused, sorted by name.
func (s *Stream) RefusedListeners() []RefusedListener {
	var list []RefusedListener
	for _, r := range sortedValues(s.listeners.refused,
		func(a, b Refusal) int { return cmp.Compare(a.Resource, b.Resource) }) {
		list = append(list, RefusedListener{r.Resource, r.Text, s.listeners.openListener(r.Resource)})
	}
	return list
}

// openListener returns the listener that is still open in place of a refused one.
func (c *collection) openListener(name string) string {
	if h, _ := c.held.find(name); h.acked != "" {
		return name
	}
	for _, older := range sortedKeys(c.gone) {
		if h, _ := c.held.find(older); h.acked != "" {
			return older
		}
	}
	return ""
}

// Overdue is a resource whose wait exceeded its bound. A jwt provider has the type of its
// extension.
type Overdue struct{ Type, Name string }

// Overdue returns the clusters, secrets and jwt providers whose wait exceeded its bound,
// each once.
func (s *Stream) Overdue() []Overdue {
	list := s.overdue
	for _, name := range s.clusters.overdue {
		list = append(list, Overdue{snapshot.ClusterType, name})
	}
	s.clusters.overdue, s.overdue = nil, nil
	return list
}

// Hosts returns the hosts that the Envoy has, sorted by name; false while that is unknown.
// Callers must not change the list.
func (s *Stream) Hosts() ([]*snapshot.Host, bool) { return s.routes.acked, s.routes.known }

// Goal is the part of a revision that a caller waits for.
type Goal struct {
	Revision int64
	// Hosts are names of hosts. The goal of a host that no longer exists is that the Envoy
	// does not have it.
	Hosts []string
	// Listeners adds the listeners to the goal. All adds everything.
	Listeners, All bool
	// Newest requires the newest version of the hosts, not only that of the revision: data
	// of identity providers changes without a new revision.
	Newest bool
}

// Lack is why a goal is not reached. If both fields are nil, the Envoy has not answered
// yet.
type Lack struct {
	Refusal *Refusal
	Wait    *Wait
}

// Reached reports whether the Envoy has the goal's part at the goal's revision or a newer
// one. If not, it returns what is missing.
func (s *Stream) Reached(g Goal) (Lack, bool) {
	if s.want == nil || s.want.Revision < g.Revision {
		return Lack{}, false
	}
	if g.All {
		rev, ok := s.Applied()
		if ok && rev >= g.Revision {
			return Lack{}, true
		}
		if refused := s.Refused(); len(refused) > 0 {
			return Lack{Refusal: &refused[0]}, false
		}
		if waiting := s.Waiting(); len(waiting) > 0 {
			return Lack{Wait: &waiting[0]}, false
		}
		return Lack{}, false
	}
	if g.Listeners {
		if lack, ok := s.hasListeners(g); !ok {
			return lack, false
		}
		if !s.hasNamedSecrets() {
			return Lack{}, false
		}
	}
	if lack, ok := s.secrets.reached(g.Revision); !ok {
		return lack, false
	}
	for _, name := range g.Hosts {
		if lack, ok := s.hasHost(name, g); !ok {
			return lack, false
		}
	}
	return Lack{}, true
}

// hasListeners leaves out listeners of other services than those of the goal: one of them may be refused.
func (s *Stream) hasListeners(g Goal) (Lack, bool) {
	revision := g.Revision
	for _, l := range s.want.Listeners {
		other := isL4(l.Name) && !slices.ContainsFunc(l.Objects, func(o snapshot.ObjectRef) bool { return slices.Contains(g.Hosts, o.Name) })
		if other || s.listeners.has(l.Name, revision) {
			continue
		}
		if r, ok := s.listeners.refused[l.Name]; ok {
			return Lack{Refusal: &r}, false
		}
		return Lack{}, false
	}
	for _, e := range s.want.Extensions {
		if e.Name == s.want.ExtensionName() || len(s.want.Listeners) == 0 || s.extensions.has(e.Name, revision) {
			continue // the pieces of the first extension are needs of hosts
		}
		if r, ok := s.extensions.refused[e.Name]; ok {
			return Lack{Refusal: &r}, false
		}
		return Lack{}, false
	}
	for _, f := range s.flights {
		if f.Type == snapshot.ListenerType && len(f.Removed) > 0 {
			return Lack{}, false
		}
	}
	return Lack{}, len(s.listeners.gone) == 0
}

// hasNamedSecrets reports whether the Envoy has requested all secrets that its listeners
// and clusters name, which proves that it has read them. Until it has the secrets, a
// listener that names one keeps its older version.
func (s *Stream) hasNamedSecrets() bool {
	return !slices.ContainsFunc(s.want.Secrets, func(r *snapshot.Resource) bool {
		// Without a listener, no route names a secret.
		return !s.secrets.names[r.Name] && (len(s.want.Listeners) > 0 || !s.secrets.isLogin(r.Name))
	})
}

func (s *Stream) hasHost(name string, g Goal) (Lack, bool) {
	if len(s.want.Listeners) == 0 {
		return Lack{}, true // no listener uses the routes
	}
	want := hostIn(s.want.Hosts, name)
	for _, from := range []*snapshot.Snapshot{s.routes.ackedFor, s.want} {
		if !s.routes.known || from == nil || from.Revision < g.Revision || g.Newest && from != s.want {
			continue
		}
		should := hostIn(from.Hosts, name)
		has := sameHost(hostIn(s.routes.acked, name), should)
		if f := s.routes.flight; f != nil { // an older version may be unanswered
			has = has && sameHost(hostIn(f.hosts, name), should)
		}
		if has && (should == nil || s.hasNeeds(should, g)) {
			return Lack{}, true
		}
	}
	if want == nil {
		return Lack{}, false
	}
	if r := s.routes.refused[name]; r.Version == want.Version {
		return Lack{Refusal: &r.Refusal}, false
	}
	for _, c := range want.Clusters {
		if r, ok := s.clusters.refused[c]; ok {
			return Lack{Refusal: &r}, false
		}
		if r, ok := s.endpoints.refused[c]; ok {
			return Lack{Refusal: &r}, false
		}
	}
	for _, p := range want.Providers {
		if r, ok := s.providers.refused[p]; ok {
			return Lack{Refusal: &r}, false
		}
	}
	for _, secret := range want.Secrets {
		if r, ok := s.secrets.refused[secret]; ok {
			return Lack{Refusal: &r}, false
		}
	}
	if w, ok := s.routes.waiting[name]; ok {
		return Lack{Wait: &w}, false
	}
	return Lack{}, false
}

func sameHost(a, b *snapshot.Host) bool {
	return a == b || a != nil && b != nil && a.Version == b.Version
}

// hasNeeds reports whether the Envoy has what a host names.
func (s *Stream) hasNeeds(h *snapshot.Host, g Goal) bool {
	revision := g.Revision
	if g.Newest {
		revision = math.MaxInt64
	}
	return !slices.ContainsFunc(h.Clusters,
		func(c string) bool { return !s.clusters.has(c, revision) || s.lacksAssignment(c) }) &&
		!slices.ContainsFunc(h.Secrets, func(name string) bool { return !s.secrets.hasNewest(name) }) &&
		!slices.ContainsFunc(h.Providers, func(name string) bool {
			ok, _ := s.providers.ready(name, s.want.Providers)
			return !ok
		})
}

func sortedValues[T any](m map[string]T, compare func(a, b T) int) []T {
	return slices.SortedFunc(maps.Values(m), compare)
}
