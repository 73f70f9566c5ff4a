package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// providers are the pieces of the extension that verifies tokens. Hosts name them, so that
// one has to be there before a host that names it, and goes after the last.
type providers struct {
	// chosen are the pieces of the newest form, and version is the form's. There is no
	// newer one before that is answered.
	chosen  []*snapshot.Resource
	version string
	// flying says that the newest form is not answered.
	flying bool
	// acked are the pieces that the Envoy has, if that is known.
	acked []*snapshot.Resource
	known bool
	// retired are those that nothing wants and that hosts of the Envoy may name, with the
	// moment since when none does; the zero time means that one does.
	retired map[string]retiredProvider
	refused map[string]Refusal
	// most and limited are as for routes.
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

// want compares what is wanted with what the Envoy has. Those that are gone stay for the
// hosts that it still has.
func (p *providers) want(list []*snapshot.Resource) {
	had := p.acked
	if !p.known {
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

// isSame reports whether two lists are one.
func isSame(a, b []*snapshot.Resource) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// learn notes what the Envoy has of the extension when that was not yet known.
func (p *providers) learn(n *named, name string) {
	switch h, ok := n.held.find(name); {
	case !n.names[name]:
		p.acked, p.known = nil, false // it has no listener that uses it
	case p.known:
	case !ok:
		p.known = true
	case h.acked == p.version:
		p.acked, p.known = p.chosen, true // which it has reported
	}
}

// chooseExtensions puts the extension together that the Envoy should have now.
func (s *Stream) chooseExtensions(now time.Time, next *due) {
	name := s.want.ExtensionName()
	if name == "" {
		return
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
	list := s.want.Extensions
	if i, ok := slices.BinarySearchFunc(list, name, compareName); ok && list[i] != form {
		list = slices.Clone(list)
		list[i] = form
	}
	if !slices.Equal(list, s.extensions.all) {
		s.extensions.wantAll(list)
	}
}

// expire forgets the retired providers that no host has named for the grace.
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
		case named[name]:
			r.since = time.Time{}
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

// choose selects the form of each piece: the wanted one, or where that was refused the one
// that the Envoy has.
func (p *providers) choose(want []*snapshot.Resource) []*snapshot.Resource {
	p.limited = false
	if len(p.retired) == 0 && len(p.refused) == 0 && p.most == 0 {
		return want // all streams share it
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

// ack notes that the Envoy took a form.
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

// nack looks for the piece to blame, as routes do. It returns the piece, and whether the
// Envoy is to be sent another form.
func (p *providers) nack(want []*snapshot.Resource, version, text string, revision int64, now time.Time) (guilty string, other bool) {
	p.flying = false
	if version != p.version || !p.known {
		return "", false
	}
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
				Type: snapshot.ExtensionType, Resource: r.Name, Version: r.Version, Objects: r.Objects, Revision: revision, Text: text, At: now,
			}
		}
		p.most *= 2
		return r.Name, true
	}
	p.most = len(changed) / 2
	return "", true
}

// ready reports whether the Envoy verifies what a provider demands. If not, refused says
// that only another version will help.
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

// hasAll reports whether the Envoy has all that is wanted.
func (p *providers) hasAll(want []*snapshot.Resource) bool {
	if len(p.acked) == 0 {
		return len(want) == 0
	}
	return !slices.ContainsFunc(want, func(r *snapshot.Resource) bool {
		had := resourceIn(p.acked, r.Name)
		return had != r && (had == nil || had.Version != r.Version)
	})
}

// resourceIn finds a resource in a sorted list; nil when it is not there.
func resourceIn(list []*snapshot.Resource, name string) *snapshot.Resource {
	if i, ok := slices.BinarySearchFunc(list, name, compareName); ok {
		return list[i]
	}
	return nil
}
