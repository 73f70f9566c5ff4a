package plan

import (
	"cmp"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// domainChange is a host that has other domains than the Envoy knows: want is nil if the host is deleted, old if it is new.
// next is the piece that is chosen for it; nil means none.
type domainChange struct {
	name            string
	old, want, next *snapshot.Host
}

func (c *domainChange) isHeld() bool { return c.next == c.old }

// settleDomains changes a choice of pieces so that hosts between which a domain moves change together. Envoy refuses a
// configuration with a domain in two hosts; and a domain whose new host still waits would get 404.
func (s *Stream) settleDomains(hosts, want, have []*snapshot.Host, waiting map[string]Wait) []*snapshot.Host {
	changes := domainChanges(hosts, want, have)
	settled := false
	for again := true; again; {
		again = false
		held, awaited := map[string]*domainChange{}, map[string]*domainChange{}
		for _, c := range changes {
			if !c.isHeld() {
				continue
			}
			for _, d := range domainsOf(c.old) {
				held[d] = c
			}
			if w, waits := waiting[c.name]; waits && !w.Until.IsZero() || !waits && s.routes.limited { // not for a refusal, which may stay
				for _, d := range domainsOf(c.want) {
					awaited[d] = c
				}
			}
		}
		for _, c := range changes {
			by := c.heldBy(held, awaited)
			if by == nil {
				continue
			}
			c.next, again, settled = c.old, true, true
			if w, waits := waiting[by.name]; waits && c.want != nil {
				w.Host, w.Object = c.name, c.want.Object
				if earlier, waited := s.routes.waiting[c.name]; waited {
					w.Since = earlier.Since
				}
				waiting[c.name] = w
			}
		}
	}
	if !settled {
		return hosts
	}
	return withChanges(hosts, changes)
}

// heldBy returns the host that c has to wait for: one that keeps a domain of c's next piece, or one that waits and gets a
// domain that c would give up.
func (c *domainChange) heldBy(held, awaited map[string]*domainChange) *domainChange {
	if c.isHeld() {
		return nil
	}
	for _, d := range domainsOf(c.next) {
		if by := held[d]; by != nil {
			return by
		}
	}
	for _, d := range domainsOf(c.old) {
		if by := awaited[d]; by != nil {
			return by
		}
	}
	return nil
}

// domainChanges compares the domains of the wanted hosts with those that the Envoy has. All lists are sorted by name.
func domainChanges(hosts, want, have []*snapshot.Host) []*domainChange {
	var list []*domainChange
	for len(want)+len(have) > 0 {
		c := &domainChange{}
		if len(have) == 0 || len(want) > 0 && want[0].Name <= have[0].Name {
			c.want, c.name, want = want[0], want[0].Name, want[1:]
		}
		if len(have) > 0 && (c.want == nil || have[0].Name == c.name) {
			c.old, c.name, have = have[0], have[0].Name, have[1:]
		}
		if c.old != c.want && !slices.Equal(domainsOf(c.old), domainsOf(c.want)) {
			c.next = hostIn(hosts, c.name)
			list = append(list, c)
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
