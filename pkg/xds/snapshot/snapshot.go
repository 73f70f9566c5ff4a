package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// Snapshot is what one proxy should have at one revision.
type Snapshot struct {
	Revision int64
	// Clusters, Listeners and Hosts are sorted by name.
	Clusters  []*Resource
	Listeners []*Resource
	Hosts     []*Host
	// Secrets, Extensions and Endpoints are asked for by name; sorted by name.
	Secrets, Extensions, Endpoints []*Resource
	// Providers are the pieces that one of Extensions is joined from; sorted by name.
	Providers []*Resource
	// Certificates are asked for by host names; sorted by name.
	Certificates []*Certificate
	// Beaten are those that one of Certificates goes before, by name. Nobody changes it.
	Beaten map[string][]*Certificate

	head *RouteHead
	jwt  *ExtensionHead
	// pairs are those of Secrets.
	pairs  []string
	routes func() *Resource
	joined func() []byte
	others *variants
	// loopback makes OnLoopback; nil where that is the same.
	loopback func() *Snapshot
}

// Empty is the snapshot of a proxy that does not exist.
func Empty(revision int64) *Snapshot { return &Snapshot{Revision: revision} }

// RouteName is the name of the proxy's route configuration; empty when it has
// none.
func (s *Snapshot) RouteName() string {
	if s.head == nil {
		return ""
	}
	return s.head.Name()
}

// RouteConfiguration is the proxy's route configuration without its hosts; nil
// when it has none. Nobody changes it.
func (s *Snapshot) RouteConfiguration() *routev3.RouteConfiguration {
	if s.head == nil {
		return nil
	}
	return s.head.config
}

// HasSecret reports whether a secret of that name is among Secrets.
func (s *Snapshot) HasSecret(name string) bool {
	_, found := search(s.Secrets, name, resourceName)
	return found
}

// Routes is the route configuration of the given hosts. That of all hosts of
// the snapshot is made once and shared, and so are some that differ in the keeper.
func (s *Snapshot) Routes(hosts []*Host) *Resource {
	if slices.Equal(hosts, s.Hosts) {
		return s.routes()
	}
	if r := s.others.routes(hosts); r != nil {
		return r
	}
	return s.head.Join(hosts)
}

// JoinedClusters are Clusters one after the other, each as its Wire. They are joined once, and all
// streams share the bytes, so nobody changes them.
func (s *Snapshot) JoinedClusters() []byte {
	if s.joined == nil {
		return nil
	}
	return s.joined()
}

// joinWires joins a list when it is asked for.
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

// Unavailable is a host that answers 503 to everything.
func (s *Snapshot) Unavailable(h *Host) *Host { return s.head.Unavailable(h) }

// Parts are a host and what it names.
type Parts struct {
	Host *Host
	// Domain is the host that it claims; of two that claim the same, the one
	// with the lower Order wins and the other is left out.
	Domain string
	Order  int64
	// Certificates are for the host; of several with one name the first goes before.
	Certificates []*Certificate
	Named
}

// Named are resources that hosts, or listeners, name. Several may name the same.
type Named struct {
	Clusters, Secrets, Extensions []*Resource
	// Providers are made by NewProvider.
	Providers []*Resource
}

// Builder keeps what one proxy should have and makes a Snapshot of it. The work
// for a Snapshot is in proportion to the change, but for copying the lists of
// pointers. It belongs to one goroutine.
type Builder struct {
	head      *RouteHead
	jwt       *ExtensionHead // nil: none
	listeners []*Resource
	parts     map[string]*Parts
	claims    map[string][]string // domain -> names of hosts
	served    map[string]*Parts   // the winners
	lost      map[string]struct{}
	// named is what the listeners name.
	named                                    Named
	clusters, secrets, extensions, providers *counts
	certificates                             *certificates
	pairs                                    []string // which the keeper has

	// assignments are those of all discovered clusters there are, by name; endpoints, sorted,
	// those of the clusters that something names.
	assignments map[string]*Resource
	endpoints   []*Resource
	moved       map[string]struct{} // of assignments

	hosts        []*Host
	changedHosts map[string]*Host
	// routes joins hosts; nil when that is not made yet.
	routes func() *Resource
}

// NewBuilder returns a builder for a proxy that has nothing yet. The providers that its
// hosts name are joined to jwt, which the proxy has with none too; nil means that they go
// nowhere.
func NewBuilder(head *RouteHead, jwt *ExtensionHead) *Builder {
	b := &Builder{
		head: head, jwt: jwt, parts: map[string]*Parts{}, claims: map[string][]string{}, served: map[string]*Parts{}, lost: map[string]struct{}{},
		clusters: newCounts(), secrets: newCounts(), extensions: newCounts(), providers: newCounts(),
		certificates: newCertificates(), changedHosts: map[string]*Host{},
		assignments: map[string]*Resource{}, moved: map[string]struct{}{},
	}
	if jwt != nil {
		b.extensions.add(jwt.Join(nil))
	}
	return b
}

// SetListeners replaces the listeners and what they name.
func (b *Builder) SetListeners(listeners []*Resource, named Named) {
	b.listeners = slices.Clone(listeners)
	slices.SortFunc(b.listeners, byName)
	b.count(named, (*counts).add)
	b.count(b.named, (*counts).drop)
	b.named = named
}

// SetAssignment replaces or, with nil, removes the assignment of a cluster. It reports whether
// the proxy has such a cluster: the snapshot has the assignments of those.
func (b *Builder) SetAssignment(cluster string, r *Resource) bool {
	if r == nil {
		delete(b.assignments, cluster)
	} else {
		b.assignments[cluster] = r
	}
	b.moved[cluster] = struct{}{}
	return b.clusters.byName[cluster] != nil
}

// assigned are the assignments of the clusters that something names, the same slice as before
// when nothing changed.
func (b *Builder) assigned() []*Resource {
	changes := map[string]*Resource{}
	for _, names := range []map[string]struct{}{b.moved, b.clusters.changed} {
		for name := range names {
			var r *Resource
			if c := b.clusters.byName[name]; c != nil && c.resource.Discovered {
				r = b.assignments[name]
			}
			i, found := search(b.endpoints, name, resourceName)
			if found && (r == nil || r.Version != b.endpoints[i].Version) || !found && r != nil {
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

// SetHost replaces or, with nil, removes a host.
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
	// What claims a domain that this host has left or come to is looked at
	// again, the host itself first.
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

// Conflicts returns the hosts that are left out, with the host that has the
// domain instead.
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

// updateHost makes the served pieces of one host what is wanted.
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
		b.certificates.add(want) // after the drop: both may have the same ones
	}
}

// count adds or drops one user of each.
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

// Snapshot is what the proxy should have now.
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
		Secrets: secrets, Extensions: b.extensions.sorted(), Endpoints: endpoints, Providers: providers.sorted(), Certificates: b.certificates.all(), Beaten: b.certificates.beaten,
		head: b.head, jwt: b.jwt, pairs: b.pairs, others: &variants{},
	}
	s.routes, s.joined = b.routes, joinWires(s.Clusters)
	s.loopback = sync.OnceValue(s.buildLoopback)
	return s
}

// Merge returns a list that is sorted by name with changes made; a nil change removes. The
// list itself stays as it is.
func Merge(list []*Resource, changes map[string]*Resource) []*Resource {
	return merge(list, changes, resourceName)
}

// merge returns the sorted list with the changes made; a nil change removes.
// What lies between two changes is copied and not looked at.
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
