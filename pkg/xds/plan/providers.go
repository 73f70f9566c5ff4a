package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// providers are the pieces of the extension that verifies tokens. A provider must exist
// before a host that names it, and is removed after the last such host.
type providers struct {
	// chosen are the pieces of the newest version of the extension. The next version is
	// made only after this one is answered.
	chosen  []*snapshot.Resource
	version string
	// flying means that the newest version is not answered.
	flying bool
	// acked are the pieces that the Envoy has. known is false if that is unknown.
	acked []*snapshot.Resource
	known bool
	// retired are providers that nothing wants but that hosts of the Envoy may name, with
	// the time since when none does; the zero time means that one does.
	retired map[string]retiredProvider
	refused map[string]Refusal
	// most and limited are the same as in routes.
	most    int
	limited bool
}

type retiredProvider struct {
	*snapshot.Resource
	since time.Time
}

func newProviders() providers {
	return providers{retired: map[string]retiredProvider{}, refused: map[string]Refusal{}}
}

// want compares what is wanted with what the Envoy has. Providers that are gone stay for
// the hosts that the Envoy still has.
func (p *providers) want(list []*snapshot.Resource) {
	had := p.acked
	if p.flying { // a host may name a provider whose wait exceeded its bound
		had = p.chosen
	}
	for _, old := range had {
		if _, is := p.retired[old.Name]; !is && !has(list, old.Name) {
			p.retired[old.Name] = retiredProvider{Resource: old}
		}
	}
	for name := range p.retired {
		if has(list, name) {
			delete(p.retired, name)
		}
	}
	for name, r := range p.refused {
		if wanted := resourceIn(list, name); wanted == nil || wanted.Version != r.Version {
			delete(p.refused, name)
		}
	}
}

// isSame reports whether two lists are the same slice.
func isSame(a, b []*snapshot.Resource) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// learn records what the Envoy has of the extension if that was unknown.
func (p *providers) learn(n *named, name string) {
	switch h, ok := n.held.find(name); {
	case !n.names[name]:
		p.acked, p.known = nil, false // it has no listener that uses the extension
	case p.known:
	case !ok:
		p.known = true
	case h.acked == p.version:
		p.acked, p.known = p.chosen, true // the Envoy reported this version
	}
}

// chooseExtensions chooses the extensions that the Envoy should have now.
func (s *Stream) chooseExtensions(now time.Time, next *due) {
	list := s.withRetired(s.withProviders(now, next), now, next)
	if !slices.Equal(list, s.extensions.all) {
		s.extensions.wantAll(list)
	}
}

// withProviders returns the extensions with the one that verifies tokens as the Envoy should have it now.
func (s *Stream) withProviders(now time.Time, next *due) []*snapshot.Resource {
	list, name := s.want.Extensions, s.want.ExtensionName()
	if name == "" {
		return list
	}
	p := &s.providers
	p.expire(s, now, next)
	form := resourceIn(s.extensions.all, name)
	if p.flying = s.extensions.unanswered > 0; form == nil || !p.flying {
		pieces := p.choose(s.want.Providers)
		if form == nil || form.Version != p.version || !isSame(pieces, p.chosen) {
			form = s.want.Extension(pieces)
			p.chosen, p.version = pieces, form.Version
		}
	}
	p.learn(&s.extensions, name)
	if i, ok := slices.BinarySearchFunc(list, name, compareName); ok && list[i] != form {
		list = slices.Clone(list)
		list[i] = form
	}
	return list
}

// expire forgets retired providers that no host has named for the grace period.
func (p *providers) expire(s *Stream, now time.Time, next *due) {
	if len(p.retired) == 0 || !s.routesKnown() {
		return
	}
	named := map[string]bool{}
	for _, hosts := range [][]*snapshot.Host{s.routes.acked, s.routes.sent} {
		for _, h := range hosts {
			for _, provider := range h.Providers {
				named[provider] = true
			}
		}
	}
	for name, r := range p.retired {
		switch {
		case named[name]: // no time has been noted yet
		case r.since.IsZero():
			r.since = now
			fallthrough
		case now.Before(r.since.Add(s.opts.Grace)):
			next.add(r.since.Add(s.opts.Grace))
		default:
			delete(p.retired, name)
			continue
		}
		p.retired[name] = r
	}
}

// choose selects the version of each piece: the wanted one, or if that was refused, the
// one that the Envoy has.
func (p *providers) choose(want []*snapshot.Resource) []*snapshot.Resource {
	p.limited = false
	if len(p.retired) == 0 && len(p.refused) == 0 && p.most == 0 {
		return want // all streams share the list
	}
	pieces := make([]*snapshot.Resource, 0, len(want)+len(p.retired))
	changed := 0
	for _, r := range want {
		old := resourceIn(p.acked, r.Name)
		next := r
		if p.refused[r.Name].Version == r.Version {
			next = old
		}
		if next != nil && (old == nil || old.Version != next.Version) {
			if p.most > 0 && changed == p.most {
				p.limited, next = true, old
			} else {
				changed++
			}
		}
		if next != nil {
			pieces = append(pieces, next)
		}
	}
	for _, r := range p.retired {
		pieces = append(pieces, r.Resource)
	}
	slices.SortFunc(pieces, func(a, b *snapshot.Resource) int { return cmp.Compare(a.Name, b.Name) })
	if slices.Equal(pieces, p.chosen) {
		return p.chosen
	}
	return pieces
}

// ack records that the Envoy accepted a version.
func (p *providers) ack(f *flight, name string) {
	if r := resourceIn(f.Resources, name); r == nil || r.Version != p.version {
		return
	}
	p.acked, p.known, p.flying = p.chosen, true, false
	for name, r := range p.retired {
		if had := resourceIn(p.acked, name); had != nil {
			r.Resource = had // with its newest keys
			p.retired[name] = r
		}
	}
	p.most *= 2
	if !p.limited {
		p.most = 0
	}
}

// nack searches for the guilty piece like routes.nack. It returns the piece, and whether
// to send the Envoy another version.
func (p *providers) nack(
	want []*snapshot.Resource, version, text string, revision int64, now time.Time,
) (guilty string, other bool) {
	p.flying = false
	if version != p.version || !p.known {
		return "", false
	}
	maps.DeleteFunc(p.retired, func(name string, _ retiredProvider) bool { return resourceIn(p.acked, name) == nil })
	var changed []*snapshot.Resource
	for _, r := range p.chosen {
		if old := resourceIn(p.acked, r.Name); old == nil || old.Version != r.Version {
			changed = append(changed, r)
		}
	}
	switch len(changed) {
	case 0:
		return "", false
	case 1:
		r := changed[0]
		if wanted := resourceIn(want, r.Name); wanted != nil && wanted.Version == r.Version {
			p.refused[r.Name] = Refusal{
				Type: snapshot.ExtensionType, Resource: r.Name, Version: r.Version, Objects: r.Objects, Revision: revision,
				Text: text, At: now,
			}
		}
		p.most *= 2
		return r.Name, true
	}
	p.most = len(changed) / 2
	return "", true
}

// ready reports whether the Envoy verifies tokens with the wanted version of a provider.
// If not, refused means that only another version will help.
func (p *providers) ready(name string, want []*snapshot.Resource) (ok, refused bool) {
	r := resourceIn(want, name)
	if r == nil {
		return false, false
	}
	if r.Version == p.refused[name].Version {
		return false, true
	}
	isIn := func(pieces []*snapshot.Resource) bool {
		piece := resourceIn(pieces, name)
		return piece != nil && piece.Version == r.Version
	}
	return isIn(p.acked) && (!p.flying || isIn(p.chosen)), false
}

// hasAll reports whether the Envoy has everything that is wanted.
func (p *providers) hasAll(want []*snapshot.Resource) bool {
	if len(p.acked) == 0 {
		return len(want) == 0
	}
	return !slices.ContainsFunc(want, func(r *snapshot.Resource) bool {
		had := resourceIn(p.acked, r.Name)
		return had != r && (had == nil || had.Version != r.Version)
	})
}

// resourceIn finds a resource in a sorted list; nil if it is not in it.
func resourceIn(list []*snapshot.Resource, name string) *snapshot.Resource {
	if i, ok := slices.BinarySearchFunc(list, name, compareName); ok {
		return list[i]
	}
	return nil
}
