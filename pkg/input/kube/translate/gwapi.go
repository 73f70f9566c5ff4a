package translate

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"
)

// The kinds of the Gateway API that are read, and namespaces, whose labels allow routes.
const (
	KindGatewayClass = "GatewayClass"
	KindGateway      = "Gateway"
	KindListenerSet  = "ListenerSet"
	KindHTTPRoute    = "HTTPRoute"
	KindGRPCRoute    = "GRPCRoute"
	KindTLSRoute     = "TLSRoute"
	KindTCPRoute     = "TCPRoute"
	KindUDPRoute     = "UDPRoute"
	// KindAPIGrant is the Gateway API's ReferenceGrant. Gatehouse has a kind of its own with this name.
	KindAPIGrant  = "ReferenceGrant.gateway.networking.k8s.io"
	KindNamespace = "Namespace"
	// KindBackendTLSPolicy says how Services are verified.
	KindBackendTLSPolicy = "BackendTLSPolicy"
)

const (
	// kindHosts stands for the host names of a Gateway, kindFront for the Services in front of it.
	kindHosts = "hosts of Gateway"
	kindFront = "Services of Gateway"
	// kindSets stands for the ListenerSets of a Gateway.
	kindSets = "ListenerSets of Gateway"
	// kindHolder stands for the GatewayHost that has a host name of a proxy.
	kindHolder = "holder of host"
)

// gatewayAPI is what a World has of the Gateway API.
type gatewayAPI struct {
	// Controller is the controllerName of the GatewayClasses of this installation; empty means none. Set it before the
	// first object.
	Controller string

	// apiGrants are by namespace and name.
	apiGrants map[string]map[string]*gwapi.ReferenceGrant
	// labels are those of the namespaces.
	labels map[string]map[string]string
	// hostCount counts who serves a host name of a Gateway at an entry.
	hostCount map[Ref]map[hostOn]int
	// fronts are the Services in front of Gateways.
	fronts map[Ref]map[Ref]struct{}
	// sets are the ListenerSets of Gateways.
	sets map[Ref]map[Ref]struct{}
	// policies are the BackendTLSPolicies of Services.
	policies map[Ref]map[Ref]struct{}
}

// hostOn is a host name of a Gateway at an entry.
type hostOn struct {
	gateway Ref
	host    string
	entry
}

func newGatewayAPI() gatewayAPI {
	return gatewayAPI{
		apiGrants: map[string]map[string]*gwapi.ReferenceGrant{}, labels: map[string]map[string]string{},
		hostCount: map[Ref]map[hostOn]int{}, fronts: map[Ref]map[Ref]struct{}{}, sets: map[Ref]map[Ref]struct{}{}, policies: map[Ref]map[Ref]struct{}{},
	}
}

// upsertAPI records an object of the Gateway API, or a namespace.
func (w *World) upsertAPI(ref Ref, object metav1.Object) {
	switch o := object.(type) {
	case *gwapi.ReferenceGrant:
		w.putAPIGrant(ref, o)
	case *metav1.PartialObjectMetadata:
		if o.Kind == KindNamespace {
			w.putNamespace(ref.Name, o.Labels, true)
		}
	default:
		kind, spec := apiUnit(object)
		if kind == "" {
			return
		}
		ref.Kind = kind
		_, was := apiUnit(w.objectOf(ref))
		if o, ok := object.(*gwapi.BackendTLSPolicy); ok {
			w.putPolicy(ref, o)
		}
		if o, ok := object.(*gwapi.ListenerSet); ok {
			old, _ := w.objectOf(ref).(*gwapi.ListenerSet)
			w.putSet(ref, old, o)
		}
		if kind == KindGateway && !reflect.DeepEqual(was, spec) {
			w.markSets(ref)
		}
		w.putUnit(ref, object, reflect.DeepEqual(was, spec))
	}
}

// apiUnit returns the kind and the spec of an object of the Gateway API with a translation of its own.
func apiUnit(object metav1.Object) (kind string, spec any) {
	switch o := object.(type) {
	case *gwapi.GatewayClass:
		return KindGatewayClass, o.Spec
	case *gwapi.Gateway:
		return KindGateway, o.Spec
	case *gwapi.ListenerSet:
		return KindListenerSet, o.Spec
	case *gwapi.HTTPRoute:
		return KindHTTPRoute, o.Spec
	case *gwapi.GRPCRoute:
		return KindGRPCRoute, o.Spec
	case *gwapi.TLSRoute:
		return KindTLSRoute, o.Spec
	case *gwapi.TCPRoute:
		return KindTCPRoute, o.Spec
	case *gwapi.UDPRoute:
		return KindUDPRoute, o.Spec
	case *gwapi.BackendTLSPolicy:
		return KindBackendTLSPolicy, o.Spec
	}
	return "", nil
}

// apiKinds lists the kinds of the Gateway API with a translation of their own, each after those that it reads.
func apiKinds() []string {
	return append([]string{KindGatewayClass, KindListenerSet, KindGateway, KindBackendTLSPolicy}, RouteKinds()...)
}

// RouteKinds lists the kinds of the Gateway API's routes.
func RouteKinds() []string {
	return []string{KindHTTPRoute, KindGRPCRoute, KindTLSRoute, KindTCPRoute, KindUDPRoute}
}

// isNamedAPI reports whether an object without a namespace is one of a kind that has none.
func isNamedAPI(object metav1.Object) bool {
	switch o := object.(type) {
	case *gwapi.GatewayClass:
	case *metav1.PartialObjectMetadata:
		if o.Kind != KindNamespace {
			return false
		}
	default:
		return false
	}
	return object.GetNamespace() == "" && len(validation.IsDNS1123Subdomain(object.GetName())) == 0
}

func (w *World) putAPIGrant(ref Ref, grant *gwapi.ReferenceGrant) {
	of := w.apiGrants[ref.Namespace]
	switch old := of[ref.Name]; {
	case grant == nil && old == nil, grant != nil && old != nil && reflect.DeepEqual(old.Spec, grant.Spec):
		return
	case grant == nil:
		if delete(of, ref.Name); len(of) == 0 {
			delete(w.apiGrants, ref.Namespace)
		}
	case of == nil:
		w.apiGrants[ref.Namespace] = map[string]*gwapi.ReferenceGrant{ref.Name: grant}
	default:
		of[ref.Name] = grant
	}
	w.markUsers(Ref{Kind: KindAPIGrant, Namespace: ref.Namespace})
}

func (w *World) putNamespace(name string, labels map[string]string, there bool) {
	old, had := w.labels[name]
	if there == had && maps.Equal(old, labels) {
		return
	}
	if delete(w.labels, name); there {
		w.labels[name] = labels
	}
	w.markUsers(Ref{Kind: KindNamespace, Name: name})
}

// permitsAPI reports whether a ReferenceGrant of the Gateway API lets the object name another one.
func (s *scope) permitsAPI(path string, to Ref) bool {
	s.use(Ref{Kind: KindAPIGrant, Namespace: to.Namespace})
	for _, grant := range s.world.apiGrants[to.Namespace] {
		from, target := false, false
		for _, f := range grant.Spec.From {
			from = from || f.Group == gwapi.GroupName && string(f.Kind) == s.of.Kind && string(f.Namespace) == s.of.Namespace
		}
		for _, t := range grant.Spec.To {
			target = target || t.Group == "" && string(t.Kind) == to.Kind &&
				(t.Name == nil || *t.Name == "" || string(*t.Name) == to.Name)
		}
		if from && target {
			return true
		}
	}
	s.problem(path, RefNotPermitted, "%s may not be named from namespace %s: a ReferenceGrant in namespace %s must allow it "+
		"(group %s, from kind %s of namespace %s, to kind %s)", to, s.of.Namespace, to.Namespace, gwapi.GroupName, s.of.Kind, s.of.Namespace, to.Kind)
	return false
}

// resultAPI is what a unit of the Gateway API became, beside objects of the store.
type resultAPI struct {
	// api is the result that Object has.
	api any
	// class says that a GatewayClass is of this installation and accepted.
	class bool
	// state is what routes need to know of a Gateway.
	state *gatewayState
	// set is what a Gateway needs to know of a ListenerSet, sets what became of those of a Gateway.
	set  *setState
	sets map[Ref]*SetResult
	// policy is what routes need to know of a BackendTLSPolicy.
	policy policyState
	// serves are the host names that it serves on Gateways, attached the listeners that take the route, by their Gateway or
	// ListenerSet.
	serves   map[hostOn]struct{}
	attached map[Ref][]string
}

// isAPI reports whether a kind is one of the Gateway API.
func isAPI(kind string) bool {
	return slices.Contains(apiKinds(), kind)
}

// replaceHosts counts the host names that a unit serves. When one appears, or is gone, the routes that are for what no
// other route serves are translated again.
func (w *World) replaceHosts(old, now map[hostOn]struct{}) {
	change := func(h hostOn, by int) {
		of := w.hostCount[h.gateway]
		if of == nil {
			of = map[hostOn]int{}
			w.hostCount[h.gateway] = of
		}
		before := of[h]
		if of[h] += by; of[h] == 0 {
			delete(of, h)
		}
		if len(of) == 0 {
			delete(w.hostCount, h.gateway)
		}
		if before == 0 || before+by == 0 {
			w.markUsers(Ref{kindHosts, h.gateway.Namespace, h.gateway.Name})
		}
	}
	for h := range now {
		if _, had := old[h]; !had {
			change(h, 1)
		}
	}
	for h := range old {
		if _, still := now[h]; !still {
			change(h, -1)
		}
	}
}

// isServed reports whether a Gateway has a host name for requests, at any entry.
func (w *World) isServed(g *gatewayState, host string) bool {
	return slices.ContainsFunc(g.entries(), func(at entry) bool { return w.hostCount[g.ref][hostOn{g.ref, host, at}] > 0 })
}

// covers reports whether each name that a host pattern stands for also matches another pattern: a name, *.SUFFIX or *.
func covers(pattern, host string) bool {
	suffix, wild := strings.CutPrefix(pattern, "*")
	switch {
	case pattern == host, pattern == "*":
		return true
	case !wild:
		return false
	}
	return len(host) > len(suffix) && strings.HasSuffix(host, suffix)
}

// intersection returns the narrower one of two host patterns; empty if they have no name in common.
func intersection(a, b string) string {
	switch {
	case covers(a, b):
		return b
	case covers(b, a):
		return a
	}
	return ""
}

// hostname returns a host pattern in lower case; * for an absent one.
func hostname(h *gwapi.Hostname) string {
	if h == nil || *h == "" {
		return "*"
	}
	return strings.ToLower(string(*h))
}

// text returns what a pointer leads to, or a default.
func text[T ~string](p *T, absent string) string {
	if p == nil {
		return absent
	}
	return string(*p)
}
