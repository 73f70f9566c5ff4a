package plan

import (
	"cmp"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// domainChange is a host that has other domains than the Envoy knows: want is nil if the host is deleted, old if it is
// new. next is the piece that is chosen for it; nil means none.
type domainChange struct {
	name            string
	old, want, next *snapshot.Host
}

func (c *domainChange) isHeld() bool { return c.next == c.old }

// settleDomains changes a choice of pieces so that hosts between which a domain moves change together. Envoy refuses a
// configuration with a domain in two hosts; and a domain whose new host still waits would get 404.
func (s *Stream) settleDomains(hosts, want, have []*snapshot.Host, waiting map[string]Wait) []*snapshot.Host {
	changes := domainChanges(hosts, want, have)
	wanting, having := map[string]*domainChange{}, map[string]*domainChange{} // by domain
	var held []*domainChange
	for _, c := range changes {
		for _, d := range domainsOf(c.want) {
			wanting[d] = c
		}
		for _, d := range domainsOf(c.old) {
			having[d] = c
		}
		if c.isHeld() {
			held = append(held, c)
		}
	}
	chosen := len(held)
	hold := func(c, by *domainChange) {
		if c == nil || c.isHeld() {
			return
		}
		c.next, held = c.old, append(held, c)
		if w, waits := waiting[by.name]; waits && c.want != nil {
			w.Host, w.Object = c.name, c.want.Object
			if earlier, waited := s.routes.waiting[c.name]; waited {
				w.Since = earlier.Since
			}
			waiting[c.name] = w
		}
	}
	for i := 0; i < len(held); i++ { // it grows
		c := held[i]
		for _, d := range domainsOf(c.old) {
			hold(wanting[d], c)
		}
		if w, waits := waiting[c.name]; waits && w.Until.IsZero() || !waits && !s.routes.limited {
			continue // the Envoy refused what it needs, which may stay so
		}
		for _, d := range domainsOf(c.want) {
			hold(having[d], c)
		}
	}
	if len(held) == chosen {
		return hosts
	}
	return withChanges(hosts, changes)
}

// domainChanges compares the domains of the wanted hosts with those that the Envoy has; nil if no host gives up a
// domain. All lists are sorted by name.
func domainChanges(hosts, want, have []*snapshot.Host) []*domainChange {
	var list []*domainChange
	rest := want
	for _, h := range have {
		if w := pieceOf(&rest, h); w != h && !slices.Equal(domainsOf(w), h.Domains) {
			list = append(list, &domainChange{name: h.Name, old: h, want: w, next: hostIn(hosts, h.Name)})
		}
	}
	if list == nil {
		return nil
	}
	rest = have
	for _, h := range want {
		if pieceOf(&rest, h) == nil {
			list = append(list, &domainChange{name: h.Name, want: h, next: hostIn(hosts, h.Name)})
		}
	}
	return list
}

func domainsOf(h *snapshot.Host) []string {
	if h == nil {
		return nil
	}
	return h.Domains
}

// withChanges returns the hosts with the chosen pieces of the changes.
func withChanges(hosts []*snapshot.Host, changes []*domainChange) []*snapshot.Host {
	changed := map[string]bool{}
	for _, c := range changes {
		changed[c.name] = true
	}
	list := slices.DeleteFunc(slices.Clone(hosts), func(h *snapshot.Host) bool { return changed[h.Name] })
	for _, c := range changes {
		if c.next != nil {
			list = append(list, c.next)
		}
	}
	slices.SortFunc(list, func(a, b *snapshot.Host) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
