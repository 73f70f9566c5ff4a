package snapshot

import (
	"slices"
	"strings"
	"sync"
)

// variants are forms of a snapshot for Envoys that have more than it lists. Envoys of one
// proxy mostly have the same, so that they share them.
type variants struct {
	mu         sync.Mutex
	hosts      []*hostVariant
	extensions map[string]*Resource // by the versions of the pieces
}

// hostVariant is the list of hosts for the Envoys that had the secrets of some more pairs.
type hostVariant struct {
	retired string
	hosts   []*Host
	routes  func() *Resource
}

// maxVariants bounds what a snapshot keeps. What is not kept is made for each stream.
const maxVariants = 8

// KeeperName is the name of the host that keeps the secrets of logins; empty if nothing
// keeps them.
func (s *Snapshot) KeeperName() string {
	if s.head == nil || s.head.keeper == nil {
		return ""
	}
	return s.head.keeper.host.Name
}

// Pairs are the pairs of the secrets of logins, sorted.
func (s *Snapshot) Pairs() []string { return s.pairs }

// Keeping are the hosts for an Envoy that also has the secrets of retired pairs, which are
// sorted and none of Pairs.
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
		s.others.hosts = append(s.others.hosts, &hostVariant{key, hosts, sync.OnceValue(func() *Resource { return s.head.Join(hosts) })})
	}
	return hosts
}

// routes is the route configuration of hosts that Keeping has returned; nil if it is not
// kept.
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

// ExtensionName is the name of the extension that is joined from providers; empty if there
// is none.
func (s *Snapshot) ExtensionName() string {
	if s.jwt == nil {
		return ""
	}
	return s.jwt.Name()
}

// Extension is the extension of the given providers, which are sorted by name. That of all
// providers of the snapshot is among Extensions.
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
