package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// Snapshot contains all resources that the Envoys of one proxy should have at one revision.
type Snapshot struct {
	Revision int64
	// Clusters, Listeners and Hosts are sorted by name.
	Clusters  []*Resource
	Listeners []*Resource
	Hosts     []*Host
	// Envoys request Secrets, Extensions and Endpoints by name. They are sorted by name.
	Secrets, Extensions, Endpoints []*Resource
	// Providers are the pieces of one of the Extensions, sorted by name.
	Providers []*Resource
	// Lists are those of the Extensions that have parts.
	Lists []*List
	// Envoys request Certificates by host name. They are sorted by name.
	Certificates []*Certificate
	// Wants are the kinds of files that an Envoy should have.
	Wants Wants
	// Beaten are certificates that lose to one of Certificates, by name. Callers must not change
	// the map.
	Beaten map[string][]*Certificate

	head *RouteHead
	jwt  *ExtensionHead
	// pairs are the pairs of Secrets.
	pairs  []string
	routes func() *Resource
	joined func() []byte
	others *variants
	// forFiles make listeners for WithFiles, by name.
	forFiles map[string]func(Files) (*Resource, error)
	// loopback makes OnLoopback; nil if that is the snapshot itself.
	loopback func() *Snapshot
}

// Empty returns the snapshot of a proxy that does not exist.
func Empty(revision int64) *Snapshot { return &Snapshot{Revision: revision} }

// RouteName returns the name of the proxy's route configuration; empty if it has none.
func (s *Snapshot) RouteName() string {
	if s.head == nil {
		return ""
	}
	return s.head.Name()
}

// RouteConfiguration returns the proxy's route configuration without its hosts; nil if it has
// none. Callers must not change it.
func (s *Snapshot) RouteConfiguration() *routev3.RouteConfiguration {
	if s.head == nil {
		return nil
	}
	return s.head.config
}

// HasSecret reports whether Secrets contains a secret with the name.
func (s *Snapshot) HasSecret(name string) bool {
	_, found := search(s.Secrets, name, resourceName)
	return found
}

// Routes returns the route configuration of the given hosts. The configuration of all hosts of the
// snapshot is made once and shared. So are a few variants that differ in the keeper.
func (s *Snapshot) Routes(hosts []*Host) *Resource {
	if slices.Equal(hosts, s.Hosts) {
		return s.routes()
	}
	if r := s.others.routes(hosts); r != nil {
		return r
	}
	return s.head.Join(hosts)
}

// JoinedClusters returns the concatenated Wire of all Clusters. It is made once, and all streams
// share the bytes, so callers must not change them.
func (s *Snapshot) JoinedClusters() []byte {
	if s.joined == nil {
		return nil
	}
	return s.joined()
}

// joinWires concatenates the list at the first call.
func joinWires(list []*Resource) func() []byte {
	return sync.OnceValue(func() []byte {
		size := 0
		for _, r := range list {
			size += len(r.wire)
		}
		out := make([]byte, 0, size)
		for _, r := range list {
			out = append(out, r.wire...)
		}
		return out
	})
}

// Unavailable returns a host that answers every request with 503.
func (s *Snapshot) Unavailable(h *Host) *Host { return s.head.Unavailable(h) }

// Parts are a host and the resources that it names.
type Parts struct {
	Host *Host
	// Domain is the host name that it claims. If two hosts claim the same, the one with the lower
	// Order wins and the other is omitted.
	Domain string
	Order  int64
	// Certificates are for the host. If several have the same name, the first wins.
	Certificates []*Certificate
	Named
}

// Named are resources that hosts or listeners name. Several may name the same resource.
type Named struct {
	Clusters, Secrets, Extensions []*Resource
	// Providers are made by NewProvider.
	Providers []*Resource
	// Lists describe those of Extensions that have parts.
	Lists []*List
	// ForFiles make listeners, by name, for Envoys with files. One that is not here is the same for all.
	ForFiles map[string]func(Files) (*Resource, error)
	// Wants are the kinds of files that the proxy needs.
	Wants Wants
}

// Builder keeps what one proxy should have and makes a Snapshot of it. The work for a Snapshot is
// proportional to the change, except for copies of the lists of pointers. A Builder is not safe
// for concurrent use.
type Builder struct {
	head      *RouteHead
	jwt       *ExtensionHead // nil: none
	listeners []*Resource
	parts     map[string]*Parts
	claims    map[string][]string // domain -> names of hosts
	served    map[string]*Parts   // the winners
	lost      map[string]struct{}
	// named are the resources that the listeners name.
	named                                    Named
	clusters, secrets, extensions, providers *counts
	certificates                             *certificates
	pairs                                    []string // of the keeper

	// assign returns the assignment of a discovered cluster; see AssignWith. endpoints are those of
	// clusters that are in use, sorted.
	assign    func(cluster *Resource) *Resource
	endpoints []*Resource
	// members are the upstreams of the discovered clusters in use, by cluster. containing is the
	// reverse.
	members    map[string][]ObjectRef
	containing map[ObjectRef]map[string]struct{}
	moved      map[string]struct{} // clusters whose assignment may have changed

	hosts        []*Host
	changedHosts map[string]*Host
	// routes joins hosts; nil if it must be made again.
	routes func() *Resource
}

// NewBuilder returns a builder for a proxy without configuration. It joins the providers that the
// proxy's hosts name to jwt, which the proxy has even without providers. If jwt is nil, the
// providers are dropped.
func NewBuilder(head *RouteHead, jwt *ExtensionHead) *Builder {
	b := &Builder{
		head: head, jwt: jwt, parts: map[string]*Parts{}, claims: map[string][]string{}, served: map[string]*Parts{},
		lost:     map[string]struct{}{},
		clusters: newCounts(), secrets: newCounts(), extensions: newCounts(), providers: newCounts(),
		certificates: newCertificates(), changedHosts: map[string]*Host{},
		members: map[string][]ObjectRef{}, containing: map[ObjectRef]map[string]struct{}{}, moved: map[string]struct{}{},
	}
	if jwt != nil {
		b.extensions.add(jwt.Join(nil))
	}
	return b
}

// SetListeners replaces the listeners and the resources that they name.
func (b *Builder) SetListeners(listeners []*Resource, named Named) {
	b.listeners = slices.Clone(listeners)
	slices.SortFunc(b.listeners, byName)
	b.count(named, (*counts).add)
	b.count(b.named, (*counts).drop)
	b.named = named
}

// AssignWith sets the function that returns the assignment of a discovered cluster, under the name of
// any cluster with the same upstreams; nil if it has none.
func (b *Builder) AssignWith(assign func(cluster *Resource) *Resource) { b.assign = assign }

// MoveEndpoints records that the assignments of the clusters of an upstream may have changed. It reports
// whether the proxy had such clusters in its last snapshot.
func (b *Builder) MoveEndpoints(upstream ObjectRef) bool {
	clusters := b.containing[upstream]
	for name := range clusters {
		b.moved[name] = struct{}{}
	}
	return len(clusters) > 0
}

// assigned returns the assignments of the clusters in use. If nothing changed, it returns the same
// slice as before.
func (b *Builder) assigned() []*Resource {
	changes := map[string]*Resource{}
	b.noteMembers()
	for _, names := range []map[string]struct{}{b.moved, b.clusters.changed} {
		for name := range names {
			var r *Resource
			if c := b.clusters.byName[name]; c != nil && c.resource.Discovered && b.assign != nil {
				r = b.assign(c.resource).named(name)
			}
			i, found := search(b.endpoints, name, resourceName)
			if found && (r == nil || r.Version != b.endpoints[i].Version ||
				!slices.Equal(r.Endpoints, b.endpoints[i].Endpoints)) || !found && r != nil {
				changes[name] = r
			}
		}
	}
	clear(b.moved)
	if len(changes) > 0 {
		b.endpoints = merge(b.endpoints, changes, resourceName)
	}
	return b.endpoints
}

// noteMembers records the upstreams of the discovered clusters in use.
func (b *Builder) noteMembers() {
	for name := range b.clusters.changed {
		for _, upstream := range b.members[name] {
			delete(b.containing[upstream], name)
			if len(b.containing[upstream]) == 0 {
				delete(b.containing, upstream)
			}
		}
		delete(b.members, name)
		c := b.clusters.byName[name]
		if c == nil || !c.resource.Discovered {
			continue
		}
		b.members[name] = c.resource.Objects
		for _, upstream := range c.resource.Objects {
			if b.containing[upstream] == nil {
				b.containing[upstream] = map[string]struct{}{}
			}
			b.containing[upstream][name] = struct{}{}
		}
	}
}

// SetHost replaces a host, or removes it if parts is nil.
func (b *Builder) SetHost(name string, parts *Parts) {
	old := b.parts[name]
	if old != nil {
		b.claims[old.Domain] = slices.DeleteFunc(b.claims[old.Domain], func(n string) bool { return n == name })
		delete(b.parts, name)
	}
	if parts != nil {
		b.parts[name] = parts
		b.claims[parts.Domain] = append(b.claims[parts.Domain], name)
	}
	// Check the host first, and then all hosts that claim its old or new domain.
	b.updateHost(name)
	for _, p := range []*Parts{old, parts} {
		if p != nil {
			for _, n := range b.claims[p.Domain] {
				b.updateHost(n)
			}
		}
	}
	if old != nil && len(b.claims[old.Domain]) == 0 {
		delete(b.claims, old.Domain)
	}
}

// Conflicts returns the hosts that are omitted, each with the host that has its domain.
func (b *Builder) Conflicts() map[string]string {
	lost := make(map[string]string, len(b.lost))
	for name := range b.lost {
		lost[name] = b.winner(b.parts[name].Domain)
	}
	return lost
}

func (b *Builder) winner(domain string) string {
	return slices.MinFunc(b.claims[domain], func(x, y string) int {
		return cmp.Or(cmp.Compare(b.parts[x].Order, b.parts[y].Order), cmp.Compare(x, y))
	})
}

// updateHost updates the served pieces of one host.
func (b *Builder) updateHost(name string) {
	want := b.parts[name]
	delete(b.lost, name)
	if want != nil && b.winner(want.Domain) != name {
		b.lost[name] = struct{}{}
		want = nil
	}
	have := b.served[name]
	if have == want {
		return
	}
	if want != nil {
		b.count(want.Named, (*counts).add)
		b.served[name] = want
		b.changedHosts[name] = want.Host
	} else {
		delete(b.served, name)
		b.changedHosts[name] = nil
	}
	if have != nil {
		b.count(have.Named, (*counts).drop)
		b.certificates.drop(have)
	}
	if want != nil {
		b.certificates.add(want) // after the drop, since both may have the same certificates
	}
}

// count adds or drops one user of each resource.
func (b *Builder) count(named Named, by func(*counts, *Resource)) {
	for _, r := range named.Clusters {
		by(b.clusters, r)
	}
	for _, r := range named.Secrets {
		by(b.secrets, r)
	}
	for _, r := range named.Extensions {
		by(b.extensions, r)
	}
	for _, r := range named.Providers {
		by(b.providers, r)
	}
}

// Snapshot returns what the proxy should have now.
func (b *Builder) Snapshot(revision int64) *Snapshot {
	secrets, providers := b.secrets.sorted(), b.providers
	endpoints := b.assigned()
	if len(providers.changed) > 0 && b.jwt != nil {
		b.extensions.replace(b.jwt.Join(providers.sorted()))
	}
	b.keep(secrets)
	if len(b.changedHosts) > 0 {
		for name, h := range b.changedHosts {
			i, found := search(b.hosts, name, hostName)
			if found && h != nil && b.hosts[i].Version == h.Version {
				b.changedHosts[name] = b.hosts[i]
			}
		}
		b.hosts = merge(b.hosts, b.changedHosts, hostName)
		b.changedHosts, b.routes = map[string]*Host{}, nil
	}
	if hosts := b.hosts; b.routes == nil {
		b.routes = sync.OnceValue(func() *Resource { return b.head.Join(hosts) })
	}
	s := &Snapshot{
		Revision: revision, Clusters: b.clusters.sorted(), Listeners: b.listeners, Hosts: b.hosts,
		Secrets: secrets, Extensions: b.extensions.sorted(), Endpoints: endpoints, Providers: providers.sorted(),
		Lists: b.named.Lists, Certificates: b.certificates.all(), Beaten: b.certificates.beaten,
		head: b.head, jwt: b.jwt, pairs: b.pairs, others: &variants{}, forFiles: b.named.ForFiles,
		Wants: b.named.Wants,
	}
	s.routes, s.joined = b.routes, joinWires(s.Clusters)
	s.loopback = sync.OnceValue(s.buildLoopback)
	return s
}

// Merge returns a list, sorted by name, with the changes applied. A nil change removes. The
// original list stays unchanged.
func Merge(list []*Resource, changes map[string]*Resource) []*Resource {
	return merge(list, changes, resourceName)
}

// merge returns the sorted list with the changes applied. A nil change removes. It copies what
// lies between two changes without looking at it.
func merge[T any](list []*T, changes map[string]*T, name func(*T) string) []*T {
	out := make([]*T, 0, len(list)+len(changes))
	for _, n := range slices.Sorted(maps.Keys(changes)) {
		i, found := search(list, n, name)
		out = append(out, list[:i]...)
		if v := changes[n]; v != nil {
			out = append(out, v)
		}
		if found {
			i++
		}
		list = list[i:]
	}
	return append(out, list...)
}

func search[T any](list []*T, name string, nameOf func(*T) string) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(v *T, name string) int { return cmp.Compare(nameOf(v), name) })
}

func hostName(h *Host) string { return h.Name }

func resourceName(r *Resource) string { return r.Name }

func byName(a, b *Resource) int { return cmp.Compare(a.Name, b.Name) }
