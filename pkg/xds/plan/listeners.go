package plan

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// This file is about listeners that name clusters themselves, as routes do, and about listeners with one address.

// isL4 reports whether a listener is not for HTTP. Nothing replaces it when it is unwanted.
func isL4(listener string) bool {
	return strings.HasPrefix(listener, "tcp-") || strings.HasPrefix(listener, "udp-")
}

// addressOf returns the transport and the address of a listener.
func addressOf(listener string) string {
	address := listener[strings.LastIndexByte(listener, '-')+1:]
	if kind, _, _ := strings.Cut(listener, "-"); kind == "udp" || kind == "http3" {
		return "udp " + address
	}
	return address
}

// holdListeners takes the listeners that must wait from what is to be sent, and returns them: Envoy refuses a listener
// while another one has the address, and closes connections for a cluster that it does not have. A cluster that Envoy
// refused is not waited for: others may share the listener.
func (s *Stream) holdListeners(now time.Time, next *due) map[string]*snapshot.Resource {
	held := map[string]*snapshot.Resource{}
	for name, r := range s.listeners.todo {
		if s.isAddressTaken(name) || !s.hasClusters(r, now, next) {
			held[name] = r
		}
	}
	for name := range held {
		delete(s.listeners.todo, name)
	}
	return held
}

// isAddressTaken reports whether the Envoy has an unwanted listener with the address of another one.
func (s *Stream) isAddressTaken(listener string) bool {
	for other := range s.listeners.gone {
		if addressOf(other) == addressOf(listener) {
			return true
		}
	}
	return false
}

func (s *Stream) hasClusters(listener *snapshot.Resource, now time.Time, next *due) bool {
	all := true
	for _, name := range listener.Clusters {
		ok, until := s.clusters.usable(name, !s.lacksAssignment(name), now, s.opts.WarmBound)
		if !ok && !until.IsZero() {
			next.add(until)
			all = false
		}
	}
	return all
}

// noteListeners records which clusters the listeners of a message name. Until it is acknowledged, the Envoy may have
// those of the version before.
func (s *Stream) noteListeners(f *flight) {
	for _, r := range f.Resources {
		s.listening[r.Name] = append(slices.Clip(s.listening[r.Name]), r.Clusters...)
	}
	for _, name := range f.Removed {
		delete(s.listening, name)
	}
}

// noteListening records that the Envoy has the listeners of a message.
func (s *Stream) noteListening(f *flight) {
	for _, r := range f.Resources {
		if h, ok := s.listeners.held.find(r.Name); ok && h.sentIn == f.number {
			s.listening[r.Name] = r.Clusters
		}
	}
}

// addListening adds the clusters that the Envoy's listeners name. It returns false if that is unknown: the Envoy has a
// listener from before a reconnect in another version.
func (s *Stream) addListening(named map[string]bool) bool {
	for name := range s.listeners.held.all() {
		if _, known := s.listening[name]; known {
			continue
		}
		h, _ := s.listeners.held.find(name)
		r := resourceIn(s.listeners.wanted, name)
		if r == nil || h.acked != r.Version {
			if strings.HasPrefix(name, "http-") {
				continue // which names none
			}
			return false
		}
		s.listening[name] = r.Clusters
	}
	for clusters := range maps.Values(s.listening) {
		for _, c := range clusters {
			named[c] = true
		}
	}
	return true
}

// removableListeners returns unwanted listeners: those for HTTP as soon as the listeners that replace them are
// acknowledged. Envoy drains a removed listener.
func (s *Stream) removableListeners() []string {
	if len(s.listeners.gone) == 0 || !s.listeners.subscribed {
		return nil
	}
	replaced := s.areReplaced()
	return slices.DeleteFunc(sortedKeys(s.listeners.gone), func(name string) bool { return !replaced && !isL4(name) })
}

// areReplaced reports whether all wanted listeners for HTTP are acknowledged, but for those that wait for an address.
func (s *Stream) areReplaced() bool {
	c := &s.listeners
	for name := range c.todo {
		if !isL4(name) && !s.isAddressTaken(name) {
			return false
		}
	}
	for name := range c.refused {
		if !isL4(name) {
			return false
		}
	}
	if slices.ContainsFunc(c.alone, func(r *snapshot.Resource) bool { return !isL4(r.Name) }) {
		return false
	}
	for _, f := range s.flights {
		if f.Type == snapshot.ListenerType &&
			slices.ContainsFunc(f.Resources, func(r *snapshot.Resource) bool { return !isL4(r.Name) }) {
			return false
		}
	}
	return true
}
