package snapshot

import (
	"slices"
	"strings"
	"sync"
)

// variants are forms of a snapshot for Envoys that have more than it lists. Most Envoys of
// one proxy have the same, so they share variants.
type variants struct {
	mu         sync.Mutex
	hosts      []*hostVariant
	extensions map[string]*Resource // by the versions of the pieces
}

// hostVariant is the list of hosts for Envoys that also had the secrets of retired pairs.
type hostVariant struct {
	retired string
	hosts   []*Host
	routes  func() *Resource
}

// maxVariants bounds the cached variants of a snapshot. Further ones are made for each
// stream.
const maxVariants = 8

// KeeperName returns the name of the host that keeps the secrets of logins; empty if there
// is none.
func (s *Snapshot) KeeperName() string {
	if s.head == nil || s.head.keeper == nil {
		return ""
	}
	return s.head.keeper.host.Name
}

// Pairs returns the pairs of login secrets, sorted.
func (s *Snapshot) Pairs() []string { return s.pairs }

// Keeping returns the hosts for an Envoy that also has the secrets of retired pairs.
// retired must be sorted and contain none of Pairs.
func (s *Snapshot) Keeping(retired []string) []*Host {
	if len(retired) == 0 || s.KeeperName() == "" {
		return s.Hosts
	}
	key := strings.Join(retired, "\n")
	s.others.mu.Lock()
	defer s.others.mu.Unlock()
	for _, v := range s.others.hosts {
		if v.retired == key {
			return v.hosts
		}
	}
	keeper := s.head.Keeper(union(s.pairs, retired))
	hosts := merge(s.Hosts, map[string]*Host{keeper.Name: keeper}, hostName)
	if len(s.others.hosts) < maxVariants {
		s.others.hosts = append(s.others.hosts,
			&hostVariant{key, hosts, sync.OnceValue(func() *Resource { return s.head.Join(hosts) })})
	}
	return hosts
}

// routes returns the route configuration of hosts that Keeping returned; nil if it is not
// cached.
func (v *variants) routes(hosts []*Host) *Resource {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	kept := slices.Clone(v.hosts)
	v.mu.Unlock()
	for _, k := range kept {
		if slices.Equal(hosts, k.hosts) {
			return k.routes()
		}
	}
	return nil
}

// ExtensionName returns the name of the extension that is joined from providers; empty if
// there is none.
func (s *Snapshot) ExtensionName() string {
	if s.jwt == nil {
		return ""
	}
	return s.jwt.Name()
}

// Extension returns the extension with the given providers, which must be sorted by name.
// The extension with all providers of the snapshot is one of Extensions.
func (s *Snapshot) Extension(providers []*Resource) *Resource {
	if slices.Equal(providers, s.Providers) {
		i, _ := search(s.Extensions, s.jwt.Name(), resourceName)
		return s.Extensions[i]
	}
	var key strings.Builder
	for _, p := range providers {
		key.WriteString(p.Name + " " + p.Version + "\n")
	}
	v := s.others
	v.mu.Lock()
	defer v.mu.Unlock()
	if r := v.extensions[key.String()]; r != nil {
		return r
	}
	r := s.jwt.Join(providers)
	if v.extensions == nil {
		v.extensions = map[string]*Resource{}
	}
	if len(v.extensions) < maxVariants {
		v.extensions[key.String()] = r
	}
	return r
}
