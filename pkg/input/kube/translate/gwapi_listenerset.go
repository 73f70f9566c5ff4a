package translate

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// A Gateway has the listeners of so many ListenerSets, and so many listeners with its own ones: any change of one is
// work for each of them.
const (
	maxSets      = 64
	maxListeners = 256
)

// The reasons that are not the Gateway API's.
const (
	reasonTooManySets       gwapi.ListenerSetConditionReason = "TooManyListenerSets"
	reasonListenerOtherHost gwapi.ListenerConditionReason    = HostNotAllowed
)

// setState is what a Gateway needs to know of a ListenerSet.
type setState struct {
	gateway Ref
	// allowed says that the Gateway takes it.
	allowed   bool
	listeners []*listenerReading
}

func setsOf(gateway Ref) Ref { return Ref{kindSets, gateway.Namespace, gateway.Name} }

// gatewayOfSet returns the Gateway that a ListenerSet is for; false if its parent is none.
func gatewayOfSet(o *gwapi.ListenerSet) (Ref, bool) {
	p := &o.Spec.ParentRef
	return Ref{KindGateway, text(p.Namespace, o.Namespace), string(p.Name)},
		text(p.Group, gwapi.GroupName) == gwapi.GroupName && text(p.Kind, KindGateway) == KindGateway
}

// putSet records the Gateway of a ListenerSet in the place of the one that it had; nil means that it was not there, or is
// gone.
func (w *World) putSet(ref Ref, old, now *gwapi.ListenerSet) {
	if old != nil && now != nil && reflect.DeepEqual(old.Spec.ParentRef, now.Spec.ParentRef) &&
		old.CreationTimestamp.Equal(&now.CreationTimestamp) {
		return
	}
	change := func(o *gwapi.ListenerSet, there bool) {
		if o == nil {
			return
		}
		gateway, is := gatewayOfSet(o)
		if !is {
			return
		}
		of := w.sets[gateway]
		if of == nil {
			of = map[Ref]struct{}{}
			w.sets[gateway] = of
		}
		if delete(of, ref); there {
			of[ref] = struct{}{}
		}
		if len(of) == 0 {
			delete(w.sets, gateway)
		}
		w.markUsers(setsOf(gateway))
	}
	change(old, false)
	change(now, true)
}

// touchOwners notes that the results of ListenerSets, which their Gateway decides, and the listeners that count routes may
// have changed.
func (w *World) touchOwners(old, now *result) {
	for _, r := range []*result{old, now} {
		for set := range r.sets {
			w.touched[set] = struct{}{}
		}
	}
	if reflect.DeepEqual(old.attached, now.attached) {
		return
	}
	for _, r := range []*result{old, now} {
		for owner := range r.attached {
			w.touched[owner] = struct{}{}
		}
	}
}

// markSets has the ListenerSets of a Gateway translated again: it says which ones it takes.
func (w *World) markSets(gateway Ref) {
	for set := range w.sets[gateway] {
		w.mark(set)
	}
}

// listenerSet reads a ListenerSet. Nothing that it names is read before its Gateway allows it.
func (s *scope) listenerSet(o *gwapi.ListenerSet) {
	ref, _ := gatewayOfSet(o)
	gateway, _ := s.world.objectOf(ref).(*gwapi.Gateway) // a change of it leads here by markSets
	if _, is := s.world.sets[ref][s.of]; !is || gateway == nil {
		s.ignored = true
		return
	}
	class := Ref{Kind: KindGatewayClass, Name: string(gateway.Spec.GatewayClassName)}
	s.use(class)
	if r := s.world.resultOf(class); r == nil || !r.class {
		s.ignored = true
		return
	}
	s.proxies = []string{objectName(ref.Namespace, ref.Name)}
	s.set = &setState{gateway: ref}
	if a := gateway.Spec.AllowedListeners; a != nil && a.Namespaces != nil {
		from := gwapi.FromNamespaces(text(a.Namespaces.From, string(gwapi.NamespacesFromNone)))
		s.set.allowed = s.selects(from, a.Namespaces.Selector, ref.Namespace, s.of.Namespace)
	}
	if !s.set.allowed {
		return
	}
	for i := range o.Spec.Listeners {
		spec := gwapi.Listener(o.Spec.Listeners[i])
		s.set.listeners = append(s.set.listeners, s.readListener(&spec, i))
	}
}

// attachSets adds the listeners of the ListenerSets of a Gateway to its own ones: those of the oldest set first. It
// returns how many sets are accepted.
func (s *scope) attachSets(o *gwapi.Gateway, g *gatewayState, ports listenerPorts, accepted bool) (n int32) {
	s.use(setsOf(s.of))
	s.sets = map[Ref]*SetResult{}
	m := merging{world: s.world, gateway: g, ports: ports, entries: map[entry]bool{}}
	for i := range o.Spec.Listeners {
		m.hold(&o.Spec.Listeners[i], &g.listeners[i])
	}
	for _, ref := range slices.SortedFunc(maps.Keys(s.world.sets[s.of]), s.world.compareSets) {
		s.use(ref)
		r := s.world.resultOf(ref)
		if r == nil || r.set == nil || !r.set.allowed {
			continue
		}
		result := &SetResult{}
		reason, message := gwapi.ListenerSetConditionReason(""), ""
		switch {
		case !accepted:
			reason, message = gwapi.ListenerSetReasonParentNotAccepted, "the Gateway is not accepted"
		case len(s.sets) >= maxSets:
			reason, message = reasonTooManySets, fmt.Sprintf("a Gateway has the listeners of %d sets, and older ones came first", maxSets)
		default:
			reason, message = m.add(r.set, result)
		}
		s.sets[ref] = result
		v := verdict(gwapi.ListenerSetConditionAccepted, gwapi.ListenerSetReasonAccepted, "it is a part of the configuration", reason, message)
		if result.Conditions = []Verdict{v}; v.True {
			n++
		}
	}
	return n
}

// compareSets compares the age of ListenerSets, and then their names.
func (w *World) compareSets(a, b Ref) int {
	first, second := w.objectOf(a), w.objectOf(b)
	return cmp.Or(
		first.GetCreationTimestamp().Compare(second.GetCreationTimestamp().Time),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
	)
}

// merging adds listeners of ListenerSets to those of a Gateway.
type merging struct {
	world   *World
	gateway *gatewayState
	ports   listenerPorts
	// held are the listeners that have what they want, with their owners. Those of the Gateway have it in any case: what
	// they want is never another one's.
	held []heldListener
	// entries are those of the listeners.
	entries map[entry]bool
}

type heldListener struct {
	*gwapi.Listener
	owner Ref
}

func (m *merging) hold(spec *gwapi.Listener, l *listenerState) {
	m.held = append(m.held, heldListener{spec, l.owner})
	m.entries[l.entry] = true
}

// add adds the listeners of a ListenerSet.
func (m *merging) add(set *setState, result *SetResult) (reason gwapi.ListenerSetConditionReason, message string) {
	valid := 0
	for _, reading := range set.listeners {
		refused := m.refuse(reading)
		l, r := reading.decide(m.ports, refused)
		if refused.message == "" {
			m.hold(reading.spec, &l)
			if l.lacksCertificate() { // what is for its host goes on to a listener with a wider one
				l.refused = reading.why
			}
		}
		if l.refused == "" {
			valid++
		}
		m.gateway.listeners, result.Listeners = append(m.gateway.listeners, l), append(result.Listeners, r)
	}
	if valid == 0 {
		return gwapi.ListenerSetReasonListenersNotValid, "no listener of it serves anything: see their conditions"
	}
	return "", ""
}

// sharesHosts reports whether a later listener changes what an earlier one does for its hosts, though it has another port:
// the certificates of a host are for all ports, and a TLSRoute has no host that there are requests for.
func sharesHosts(earlier, later gwapi.ProtocolType) bool {
	switch earlier {
	case gwapi.HTTPSProtocolType:
		return later == gwapi.HTTPSProtocolType
	case gwapi.TLSProtocolType:
		return modeOf(later) == ""
	}
	return false
}

// refuse says why a listener of a ListenerSet serves nothing.
func (m *merging) refuse(reading *listenerReading) refusal {
	spec, owner := reading.spec, reading.state.owner
	if len(m.held) >= maxListeners {
		return refusal{reason: gwapi.ListenerConditionReason(gwapi.ListenerEntryReasonTooManyListeners),
			message: fmt.Sprintf("a Gateway and its sets have at most %d listeners", maxListeners)}
	}
	for _, h := range m.held {
		switch udp := spec.Protocol == gwapi.UDPProtocolType || h.Protocol == gwapi.UDPProtocolType; {
		case h.Port == spec.Port && h.Protocol != spec.Protocol && !udp:
			return refusal{gwapi.ListenerReasonProtocolConflict, true, fmt.Sprintf("%s has port %d with protocol %s", h.owner, h.Port, h.Protocol)}
		case isSame(h.Listener, spec):
			return refusal{gwapi.ListenerReasonHostnameConflict, true, fmt.Sprintf("%s has the same host name on port %d", h.owner, h.Port)}
		case h.owner.Namespace != owner.Namespace && h.Port != spec.Port && sharesHosts(h.Protocol, spec.Protocol) &&
			intersection(hostname(h.Hostname), hostname(spec.Hostname)) != "":
			return refusal{gwapi.ListenerReasonHostnameConflict, true, fmt.Sprintf("%s has hosts of it on port %d with protocol %s, "+
				"and a host has one owner there", h.owner, h.Port, h.Protocol)}
		}
	}
	if !m.world.hosts.allow(owner.Namespace, reading.state.host) {
		return refusal{reason: reasonListenerOtherHost, message: m.world.hosts.refusal(owner.Namespace, reading.state.host)}
	}
	m.ports.join(spec)
	at := entry{strings.ToLower(string(spec.Protocol)), m.ports.of(spec)}
	if at.envoy != 0 && !m.entries[at] && len(m.entries) >= model.MaxPorts {
		return refusal{reason: gwapi.ListenerReasonPortUnavailable, message: fmt.Sprintf("a Gateway and its sets have at most %d ports", model.MaxPorts)}
	}
	return unservable(spec, m.ports)
}

// setResult returns the result of a ListenerSet, which its Gateway has decided.
func (w *World) setResult(ref Ref, set *setState) *SetResult {
	var decided *SetResult
	if r := w.resultOf(set.gateway); r != nil {
		decided = r.sets[ref]
	}
	switch {
	case !set.allowed:
		return &SetResult{Conditions: []Verdict{{string(gwapi.ListenerSetConditionAccepted), false, string(gwapi.ListenerSetReasonNotAllowed),
			"spec.allowedListeners of the Gateway does not allow sets of this namespace"}}}
	case decided == nil:
		return nil // its Gateway is not translated yet
	}
	return &SetResult{Conditions: decided.Conditions, Listeners: w.withAttached(ref, decided.Listeners)}
}
