package plan

import (
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// isOver reports whether the host waits for nothing.
func (w *Wait) isOver() bool { return len(w.Clusters)+len(w.Secrets)+len(w.Providers) == 0 }

// missing returns what a host needs that is not usable, and when the longest of the waits
// ends; the zero time means that something was refused.
func (s *Stream) missing(h *snapshot.Host, now time.Time) Wait {
	w := Wait{Host: h.Name, Object: h.Object, Since: now}
	earlier, waited := s.routes.waiting[h.Name]
	if waited {
		w.Since = earlier.Since
	}
	refused := false
	for _, name := range h.Clusters {
		ok, until := s.clusters.usable(name, !s.lacksAssignment(name), now, s.opts.WarmBound)
		if ok {
			continue
		}
		w.Clusters = append(w.Clusters, Awaited{name, s.clusters.objects(name)})
		refused = refused || until.IsZero()
		if until.After(w.Until) {
			w.Until = until
		}
	}
	until := now.Add(s.opts.WarmBound)
	if waited && !earlier.Until.IsZero() { // nothing was refused
		until = earlier.Until
	}
	refused = s.missLogin(&w, h, now, until) || refused
	if refused {
		w.Until = time.Time{}
	}
	return w
}

// missLogin adds the secrets and providers whose wanted version the Envoy does not have,
// until the bound. It reports whether one was refused.
func (s *Stream) missLogin(w *Wait, h *snapshot.Host, now, until time.Time) (refused bool) {
	add := func(list *[]Awaited, typeURL, name string, of []*snapshot.Resource, wasRefused bool) {
		if !wasRefused && !now.Before(until) {
			s.overdue = append(s.overdue, Overdue{typeURL, name})
			return
		}
		awaited := Awaited{Name: name}
		if r := resourceIn(of, name); r != nil {
			awaited.Objects = r.Objects
		}
		*list = append(*list, awaited)
		refused = refused || wasRefused
		if until.After(w.Until) {
			w.Until = until
		}
	}
	if name := s.want.ExtensionName(); len(h.Secrets) > 0 && name != "" && !s.providers.known {
		// An Envoy that requests the extension has the login filters on its listeners. An
		// Envoy without them would require no login and allow every request.
		w.Providers = append(w.Providers, Awaited{Name: name})
		if !now.Before(until) {
			return true
		}
		w.Until = until
	}
	for _, name := range h.Secrets {
		// An Envoy requests secrets only after it has a first configuration.
		if !s.routes.known && !s.secrets.names[name] || s.secrets.hasNewest(name) {
			continue
		}
		_, wasRefused := s.secrets.refused[name]
		add(&w.Secrets, snapshot.SecretType, name, s.want.Secrets, wasRefused)
	}
	for _, name := range h.Providers {
		if ok, wasRefused := s.providers.ready(name, s.want.Providers); !ok {
			add(&w.Providers, snapshot.ExtensionType, name, s.want.Providers, wasRefused)
		}
	}
	return refused
}

// hasNewest reports whether the Envoy has acknowledged the wanted version of a resource.
func (n *named) hasNewest(name string) bool {
	r := resourceIn(n.wanted, name)
	h, ok := n.held.find(name)
	return r != nil && ok && h.acked == r.Version
}
