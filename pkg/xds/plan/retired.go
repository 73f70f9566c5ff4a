package plan

import (
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// retired are parts of extensions that nothing wants but that hosts of the Envoy may name, with the time
// since when none does; the zero time means that one does, or that this is unknown. Such a part stays in
// its extension, as it is now.
type retired map[snapshot.Part]time.Time

// want compares the parts of a new snapshot with those of the previous one, which may be nil.
func (r retired) want(want, old *snapshot.Snapshot) {
	if old != nil {
		for _, l := range old.Lists {
			for _, name := range l.Parts {
				r[snapshot.Part{Extension: l.Name, Name: name}] = time.Time{}
			}
		}
	}
	for _, l := range want.Lists {
		for _, name := range l.Parts {
			delete(r, snapshot.Part{Extension: l.Name, Name: name})
		}
	}
}

// expire forgets the parts that no host has named for the grace period.
func (r retired) expire(s *Stream, now time.Time, next *due) {
	if len(r) == 0 {
		return
	}
	named := map[snapshot.Part]bool{}
	for _, h := range slices.Concat(s.routes.acked, s.routes.sent) {
		for _, part := range h.Parts {
			named[part] = true
		}
	}
	for part, since := range r {
		switch {
		case named[part]: // no time has been noted yet
		case since.IsZero():
			r[part] = now
			next.add(now.Add(s.opts.Grace))
		case now.Before(since.Add(s.opts.Grace)):
			next.add(since.Add(s.opts.Grace))
		default:
			delete(r, part)
		}
	}
}

// lacksRoutes reports whether the Envoy has a route configuration that is not known piece by piece.
func (s *Stream) lacksRoutes() bool { return len(s.routes.reported) > 0 && !s.routes.known }

// withRetired returns the extensions with the parts that are retired.
func (s *Stream) withRetired(list []*snapshot.Resource, now time.Time, next *due) []*snapshot.Resource {
	if s.lacksRoutes() {
		s.retireUnknown()
	}
	s.retired.expire(s, now, next)
	for _, l := range s.want.Lists {
		var names []string
		for part := range s.retired {
			if part.Extension == l.Name {
				names = append(names, part.Name)
			}
		}
		i, ok := slices.BinarySearchFunc(list, l.Name, compareName)
		if r := l.With(names); ok && r != nil {
			list = slices.Clone(list)
			list[i] = r
		}
	}
	return list
}

// retireUnknown retires everything that unknown hosts of the Envoy may name, unless the Envoy reported
// that its extension already lacks it.
func (s *Stream) retireUnknown() {
	for _, l := range s.want.Lists {
		h, _ := s.extensions.held.find(l.Name)
		if r := resourceIn(s.want.Extensions, l.Name); r == nil || h.acked == r.Version {
			continue
		}
		for _, name := range l.Others {
			s.retired[snapshot.Part{Extension: l.Name, Name: name}] = time.Time{}
		}
	}
}
