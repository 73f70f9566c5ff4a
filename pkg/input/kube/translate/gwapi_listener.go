package translate

import (
	"fmt"
	"slices"
	"strings"

	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// listenerReading is a listener of a Gateway or ListenerSet, without what depends on other listeners.
type listenerReading struct {
	spec  *gwapi.Listener
	state listenerState
	kinds []gwapi.RouteGroupKind
	// resolved says which reference cannot be used; empty means that all can.
	resolved gwapi.ListenerConditionReason
	why      string
}

// refusal says why a listener serves nothing; the zero one that it does. conflict is set if another listener has it.
type refusal struct {
	reason   gwapi.ListenerConditionReason
	conflict bool
	message  string
}

// readListener reads a listener.
func (s *scope) readListener(spec *gwapi.Listener, i int) *listenerReading {
	l := &listenerReading{spec: spec, kinds: []gwapi.RouteGroupKind{}, state: listenerState{
		owner: s.of, name: string(spec.Name), port: spec.Port, protocol: spec.Protocol, host: hostname(spec.Hostname),
		from: gwapi.NamespacesFromSame,
	}}
	l.state.decrypts = spec.Protocol == gwapi.HTTPSProtocolType || spec.Protocol == gwapi.TLSProtocolType && !isPassthrough(spec)
	l.resolved, l.why = s.routesOf(spec, l)
	if l.state.decrypts {
		if bad, text := s.certificates(spec, i, &l.state); bad != "" {
			l.resolved, l.why = bad, text
		}
	}
	return l
}

// decide says what a listener serves.
func (l *listenerReading) decide(ports listenerPorts, refused refusal) (listenerState, ListenerResult) {
	state := l.state
	state.entry = entry{strings.ToLower(string(l.spec.Protocol)), ports.of(l.spec)}
	state.refused = refused.message
	if state.refused == "" && state.lacksCertificate() && modeOf(state.protocol) != "" {
		state.refused = l.why // without a certificate, connections would be passed on as they are
	}
	conflicted := Verdict{string(gwapi.ListenerConditionConflicted), false, string(gwapi.ListenerReasonNoConflicts), "no other listener wants the same"}
	if refused.conflict {
		conflicted = Verdict{string(gwapi.ListenerConditionConflicted), true, string(refused.reason), refused.message}
	}
	return state, ListenerResult{
		Name: l.spec.Name, SupportedKinds: l.kinds,
		Served: state.refused == "" && !state.lacksCertificate() && l.resolved == "",
		Conditions: []Verdict{
			verdict(gwapi.ListenerConditionAccepted, gwapi.ListenerReasonAccepted, "it is a part of the configuration", refused.reason, refused.message),
			conflicted,
			verdict(gwapi.ListenerConditionResolvedRefs, gwapi.ListenerReasonResolvedRefs, "every object that it names exists and may be used", l.resolved, l.why),
		},
	}
}

func (l *listenerState) lacksCertificate() bool { return l.decrypts && len(l.secrets) == 0 }

// refusedListener says why a listener of a Gateway serves nothing.
func refusedListener(spec *gwapi.Listener, all []gwapi.Listener, ports listenerPorts) refusal {
	same := 0
	for i := range all {
		if isSame(spec, &all[i]) {
			same++
		}
	}
	switch {
	case kindsOf(spec.Protocol) == nil:
	case spec.Protocol != gwapi.UDPProtocolType && ports.shared[spec.Port]:
		return refusal{gwapi.ListenerReasonProtocolConflict, true, fmt.Sprintf("listeners of several protocols want port %d", spec.Port)}
	case same > 1:
		return refusal{gwapi.ListenerReasonHostnameConflict, true, fmt.Sprintf("another listener has the same host name on port %d", spec.Port)}
	}
	return unservable(spec, ports)
}

// isSame reports whether two listeners want the same connections.
func isSame(a, b *gwapi.Listener) bool {
	return a.Port == b.Port && a.Protocol == b.Protocol && hostname(a.Hostname) == hostname(b.Hostname)
}

// unservable says what of a listener cannot be done.
func unservable(spec *gwapi.Listener, ports listenerPorts) refusal {
	service := &model.Service{Mode: modeOf(spec.Protocol), Port: int(spec.Port)}
	switch {
	case kindsOf(spec.Protocol) == nil:
		return refusal{reason: gwapi.ListenerReasonUnsupportedProtocol, message: fmt.Sprintf("the protocol %s is not supported: use HTTP, HTTPS, TLS, TCP or UDP", spec.Protocol)}
	case ports.of(spec) == 0:
		return refusal{reason: gwapi.ListenerReasonPortUnavailable, message: fmt.Sprintf("its Envoys have no port for it: another listener has port %d there", ports.wanted(spec.Port))}
	case portOwner(spec.Protocol) == "" && ports.proxy.PortRefusal(service) != "":
		return refusal{reason: gwapi.ListenerReasonPortUnavailable, message: "it " + ports.proxy.PortRefusal(service)}
	case spec.Protocol == gwapi.HTTPSProtocolType && spec.TLS != nil && text(spec.TLS.Mode, string(gwapi.TLSModeTerminate)) != string(gwapi.TLSModeTerminate):
		return refusal{reason: gwapi.ListenerReasonUnsupportedValue, message: "tls.mode must be Terminate for protocol HTTPS"}
	case spec.TLS != nil && len(spec.TLS.Options) > 0:
		return refusal{reason: gwapi.ListenerReasonUnsupportedValue, message: "tls.options: none is supported"}
	}
	return refusal{}
}

// withAttached returns the results of the listeners of a Gateway or ListenerSet with the number of routes.
func (w *World) withAttached(owner Ref, list []ListenerResult) []ListenerResult {
	n := map[string]int32{}
	for user := range w.users[owner] {
		if r := w.resultOf(user); r != nil {
			for _, name := range r.attached[owner] {
				n[name]++
			}
		}
	}
	list = slices.Clone(list)
	for i := range list {
		list[i].Attached = n[string(list[i].Name)]
	}
	return list
}
