package translate

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// World has the objects of Kubernetes, and their translation. It belongs to one goroutine. The
// objects that it receives must not change anymore.
//
// Upsert, Delete and the methods for Secrets record what happened. Settle then translates what
// that changes, and lists the Secrets that must be read first. Take returns the difference
// since the previous Take:
//
//	w.Upsert(host)
//	for refs := w.Settle(); len(refs) > 0; refs = w.Settle() {
//		// read each of them: Upsert, SecretAbsent or SecretUnreadable
//	}
//	step := w.Take()
//
// The work is in proportion to what changed and to the objects that name it.
type World struct {
	// ClusterDomain is the domain of the cluster's DNS names; empty means the default. Set it before the first object.
	ClusterDomain string

	proxies  []*model.Proxy
	hosts    HostNames
	services map[Ref]*corev1.Service
	// slices are the EndpointSlices of each Service by their names, sliceOf is the Service of each.
	slices  map[Ref]map[string]*discoveryv1.EndpointSlice
	sliceOf map[Ref]Ref
	// grants are by namespace and name.
	grants map[string]map[string]*gatewayv1.ReferenceGrant
	// secrets are the Secrets that units use, and no others.
	secrets map[Ref]*secretState
	// unread are the Secrets that units use and that were not read yet.
	unread map[Ref]bool
	// unreadable says, by kind, why objects of it cannot be read.
	unreadable map[string]string

	units map[Ref]*unit
	// users are the units that read something, by what they read.
	users map[Ref]map[Ref]struct{}
	// claims are the units that claim something that only one can have; the first one has it.
	claims map[claim][]*unit
	// exempt are the routes that a filter of the proxy does not apply to, by host and GlobalConfig; none means all.
	exempt map[Ref]map[Ref][]string
	// onAll are the filters that are on all proxies, those of Gateways included.
	onAll map[string]struct{}
	// dirty are the units to translate, by kind.
	dirty map[string]map[Ref]struct{}
	// stale are the Services whose endpoints changed.
	stale map[Ref]struct{}

	outcome
	gatewayAPI
}

// unit is an object with a translation of its own.
type unit struct {
	ref Ref
	// object is nil if the object is gone.
	object metav1.Object
	claims []claim
	// result is what the object became; nil before it is translated.
	result *result
	// said is the Object that Take last returned for the unit.
	said *Object
}

// kindProxy is the kind of the unit that the proxies of the installation are.
const kindProxy = "Proxy"

// translated lists the kinds of units in the order of their translation: each after those that it
// reads.
func translated() []string {
	kinds := []string{gatewayv1.KindRouteFilter, gatewayv1.KindGlobalConfig, gatewayv1.KindConsumer, gatewayv1.KindGatewayHost}
	return append(append(kinds, apiKinds()...), kindProxy)
}

// New returns a World that has only the proxies of the installation. The first proxy is for objects
// that name none. hosts are the host names that GatewayHosts may have.
func New(proxies []*model.Proxy, hosts HostNames) *World {
	w := &World{
		hosts:    hosts,
		services: map[Ref]*corev1.Service{}, slices: map[Ref]map[string]*discoveryv1.EndpointSlice{}, sliceOf: map[Ref]Ref{},
		grants: map[string]map[string]*gatewayv1.ReferenceGrant{}, secrets: map[Ref]*secretState{}, unread: map[Ref]bool{},
		unreadable: map[string]string{}, units: map[Ref]*unit{}, users: map[Ref]map[Ref]struct{}{},
		claims: map[claim][]*unit{}, exempt: map[Ref]map[Ref][]string{}, onAll: map[string]struct{}{}, dirty: map[string]map[Ref]struct{}{}, stale: map[Ref]struct{}{}, outcome: newOutcome(),
		gatewayAPI: newGatewayAPI(),
	}
	w.SetProxies(proxies)
	return w
}

// SetProxies replaces the proxies of the installation.
func (w *World) SetProxies(proxies []*model.Proxy) {
	w.proxies = proxies
	ref := Ref{Kind: kindProxy}
	w.units[ref] = &unit{ref: ref, result: w.resultOf(ref)}
	for _, u := range w.units {
		w.claim(u, w.claimsOf(u))
		w.mark(u.ref)
	}
}

func (w *World) resultOf(ref Ref) *result {
	if u := w.units[ref]; u != nil {
		return u.result
	}
	return nil
}

// SetUnreadable says that no object of a kind can be read, and why, such as "the ServiceAccount may
// not list secrets"; an empty why revokes that. The problem of each reference to a missing object
// of the kind includes it.
func (w *World) SetUnreadable(kind, why string) {
	if w.unreadable[kind] == why {
		return
	}
	w.unreadable[kind] = why
	for dep := range w.users {
		if dep.Kind == kind {
			w.markUsers(dep)
		}
	}
}

// Upsert records a new or changed object: a GatewayHost, RouteFilter, GlobalConfig, ReferenceGrant,
// Service, EndpointSlice or Secret. A Secret that nothing uses is forgotten immediately. An object
// of another kind changes nothing.
func (w *World) Upsert(object metav1.Object) {
	ref := Ref{Namespace: object.GetNamespace(), Name: object.GetName()}
	if !isNamed(ref) && !isNamedAPI(object) {
		return // an API server does not send it
	}
	switch o := object.(type) {
	case *gatewayv1.GatewayHost:
		ref.Kind = gatewayv1.KindGatewayHost
		old, _ := w.objectOf(ref).(*gatewayv1.GatewayHost)
		w.putUnit(ref, o, old != nil && reflect.DeepEqual(old.Spec, o.Spec))
	case *gatewayv1.RouteFilter:
		ref.Kind = gatewayv1.KindRouteFilter
		old, _ := w.objectOf(ref).(*gatewayv1.RouteFilter)
		w.putUnit(ref, o, old != nil && old.Spec == o.Spec)
	case *gatewayv1.GlobalConfig:
		ref.Kind = gatewayv1.KindGlobalConfig
		old, _ := w.objectOf(ref).(*gatewayv1.GlobalConfig)
		w.putUnit(ref, o, old != nil && reflect.DeepEqual(old.Spec, o.Spec))
		w.setExempt(ref, exemptionsOf(old), o.Spec.Exempt)
	case *gatewayv1.Consumer:
		ref.Kind = gatewayv1.KindConsumer
		old, _ := w.objectOf(ref).(*gatewayv1.Consumer)
		w.putUnit(ref, o, old != nil && reflect.DeepEqual(old.Spec, o.Spec))
	case *gatewayv1.ReferenceGrant:
		w.putGrant(ref, o)
	case *corev1.Service:
		ref.Kind = KindService
		w.putService(ref, o)
	case *discoveryv1.EndpointSlice:
		ref.Kind = KindEndpointSlice
		w.putSlice(ref, o)
	case *corev1.Secret:
		ref.Kind = KindSecret
		w.putSecret(ref, &secretState{object: o})
	case *corev1.ConfigMap:
		ref.Kind = KindConfigMap
		w.putSecret(ref, &secretState{object: authoritiesIn(o)})
	default:
		w.upsertAPI(ref, object)
	}
}

// Delete records that an object is gone.
func (w *World) Delete(ref Ref) {
	if u := w.units[ref]; u != nil && ref.Kind != kindProxy {
		if o, ok := u.object.(*gatewayv1.GlobalConfig); ok {
			w.setExempt(ref, exemptionsOf(o), nil)
		}
		if o, ok := u.object.(*gwapi.ListenerSet); ok {
			w.putSet(ref, o, nil)
		}
		u.object = nil
		w.claim(u, nil)
		w.mark(ref)
		w.markUsers(ref)
		switch ref.Kind {
		case KindBackendTLSPolicy:
			w.putPolicy(ref, nil)
		case KindGateway:
			w.markSets(ref)
		}
		return
	}
	switch ref.Kind {
	case gatewayv1.KindReferenceGrant:
		w.putGrant(ref, nil)
	case KindAPIGrant:
		w.putAPIGrant(ref, nil)
	case KindNamespace:
		w.putNamespace(ref.Name, nil, false)
	case KindService:
		w.putService(ref, nil)
	case KindEndpointSlice:
		w.putSlice(ref, nil)
	case KindSecret, KindConfigMap:
		w.SecretAbsent(ref)
	}
}

func (w *World) objectOf(ref Ref) metav1.Object {
	if u := w.units[ref]; u != nil {
		return u.object
	}
	return nil
}

// putUnit records an object with a translation of its own. sameSpec says that only its metadata or
// status may have changed.
func (w *World) putUnit(ref Ref, object metav1.Object, sameSpec bool) {
	u := w.units[ref]
	if u == nil {
		u = &unit{ref: ref}
		w.units[ref] = u
	}
	old := u.object
	u.object = object
	if sameSpec && old.GetGeneration() == object.GetGeneration() &&
		old.GetCreationTimestamp().Time.Equal(object.GetCreationTimestamp().Time) {
		return
	}
	w.claim(u, nil) // its age may have changed
	w.claim(u, w.claimsOf(u))
	w.mark(ref)
	if old == nil {
		w.markUsers(ref)
	}
}

func (w *World) putGrant(ref Ref, grant *gatewayv1.ReferenceGrant) {
	of := w.grants[ref.Namespace]
	switch old := of[ref.Name]; {
	case grant == nil && old == nil, grant != nil && old != nil && reflect.DeepEqual(old.Spec, grant.Spec):
		return
	case grant == nil:
		delete(of, ref.Name)
	case of == nil:
		w.grants[ref.Namespace] = map[string]*gatewayv1.ReferenceGrant{ref.Name: grant}
	default:
		of[ref.Name] = grant
	}
	if len(of) == 0 && grant == nil {
		delete(w.grants, ref.Namespace)
	}
	w.markUsers(grantsOf(ref.Namespace))
}

// grantsOf returns a reference that stands for all ReferenceGrants of a namespace.
func grantsOf(namespace string) Ref {
	return Ref{Kind: gatewayv1.KindReferenceGrant, Namespace: namespace}
}

func (w *World) putService(ref Ref, service *corev1.Service) {
	old := w.services[ref]
	w.putFront(ref, old, service)
	if service == nil {
		delete(w.services, ref)
	} else {
		w.services[ref] = service
	}
	if old != nil && service != nil && sameService(old, service) {
		return
	}
	w.stale[ref] = struct{}{}
	w.markUsers(ref)
}

func (w *World) putSlice(ref Ref, slice *discoveryv1.EndpointSlice) {
	was, known := w.sliceOf[ref]
	var is Ref
	if slice != nil {
		is = Ref{KindService, ref.Namespace, slice.Labels[discoveryv1.LabelServiceName]}
	}
	if known && was != is {
		delete(w.slices[was], ref.Name)
		if len(w.slices[was]) == 0 {
			delete(w.slices, was)
		}
		delete(w.sliceOf, ref)
		w.stale[was] = struct{}{}
	}
	if slice == nil || is.Name == "" {
		return
	}
	of := w.slices[is]
	if of == nil {
		of = map[string]*discoveryv1.EndpointSlice{}
		w.slices[is] = of
	}
	if old := of[ref.Name]; old == nil || !sameSlice(old, slice) {
		w.stale[is] = struct{}{}
	}
	of[ref.Name], w.sliceOf[ref] = slice, is
}

// SecretAbsent records that there is no Secret with this name.
func (w *World) SecretAbsent(ref Ref) { w.putSecret(ref, &secretState{}) }

// SecretUnreadable records that a Secret that Settle has listed cannot be read, and why. A Secret
// that was read before stays as it was.
func (w *World) SecretUnreadable(ref Ref, why string) {
	if old := w.secrets[ref]; old == nil || old.object == nil {
		w.putSecret(ref, &secretState{unreadable: why})
	}
}

// UsesSecret reports whether an object names the Secret and may do so: the Secret must then be read
// again when it changes.
func (w *World) UsesSecret(ref Ref) bool { return len(w.users[ref]) > 0 }

// UsedSecrets lists the Secrets that objects name and may name, sorted.
func (w *World) UsedSecrets() []Ref {
	return slices.SortedFunc(maps.Keys(w.secrets), Ref.Compare)
}

func (w *World) putSecret(ref Ref, s *secretState) {
	if !w.UsesSecret(ref) {
		return
	}
	old := w.secrets[ref]
	delete(w.unread, ref)
	if old != nil && old.same(s) {
		return
	}
	w.secrets[ref] = s
	w.markUsers(ref)
}

func (w *World) mark(ref Ref) {
	of := w.dirty[ref.Kind]
	if of == nil {
		of = map[Ref]struct{}{}
		w.dirty[ref.Kind] = of
	}
	of[ref] = struct{}{}
}

func (w *World) markUsers(dep Ref) {
	for user := range w.users[dep] {
		w.mark(user)
	}
}

// Settle translates what changed. It returns, sorted, the Secrets that must be read to complete the
// translation: those that objects name and may name. Until then, what needs them is closed.
func (w *World) Settle() []Ref {
	for _, kind := range translated() {
		for len(w.dirty[kind]) > 0 { // a route may change what others are for
			for ref := range w.dirty[kind] {
				delete(w.dirty[kind], ref)
				w.translate(w.units[ref])
			}
		}
	}
	w.settleEndpoints()
	return slices.SortedFunc(maps.Keys(w.unread), Ref.Compare)
}

// translate updates the result of a unit.
func (w *World) translate(u *unit) {
	s := &scope{world: w, of: u.ref, result: newResult()}
	switch o := u.object.(type) {
	case *gatewayv1.GatewayHost:
		s.gatewayHost(u, o)
	case *gatewayv1.RouteFilter:
		s.routeFilter(o)
	case *gatewayv1.GlobalConfig:
		s.globalConfig(u, o)
	case *gatewayv1.Consumer:
		s.consumer(u, o)
	case *gwapi.GatewayClass:
		s.gatewayClass(o)
	case *gwapi.Gateway:
		s.gateway(o)
	case *gwapi.ListenerSet:
		s.listenerSet(o)
	case *gwapi.HTTPRoute:
		s.httpRoute(o, precedence)
	case *gwapi.GRPCRoute:
		s.grpcRoute(o)
	case *gwapi.TLSRoute:
		s.connections(u, tlsRoute(o))
	case *gwapi.TCPRoute:
		s.connections(u, tcpRoute(o))
	case *gwapi.UDPRoute:
		s.connections(u, udpRoute(o))
	case *gwapi.BackendTLSPolicy:
		s.backendTLSPolicy(o)
	default:
		if u.ref.Kind == kindProxy {
			for _, p := range w.proxies {
				s.make(s.proxy(p), "")
			}
		}
	}
	old, now := u.result, s.result
	if old == nil {
		old = newResult()
	}
	w.replaceUses(u.ref, old.uses, now.uses)
	w.replace(old, now)
	w.replaceHosts(old.serves, now.serves)
	u.result = now
	if u.ref.Kind == gatewayv1.KindRouteFilter && (old.filter != now.filter || old.closed() != now.closed()) {
		w.markUsers(u.ref)
	}
	if old.onAll != now.onAll {
		w.replaceOnAll(old.onAll, now.onAll)
	}
	if old.class != now.class || !reflect.DeepEqual(old.state, now.state) || old.policy != now.policy || !reflect.DeepEqual(old.set, now.set) {
		w.markUsers(u.ref)
	}
	if u.ref.Kind == kindProxy {
		return
	}
	w.touched[u.ref] = struct{}{}
	w.touchOwners(old, now)
	if !slices.Equal(old.proxies, now.proxies) || !maps.Equal(old.uses, now.uses) || !reflect.DeepEqual(old.attached, now.attached) {
		for _, uses := range []map[Ref]struct{}{old.uses, now.uses} {
			for dep := range uses {
				w.touchFilter(dep)
				w.touchPolicies(dep)
			}
		}
	}
}

// touchFilter notes that the proxies of a RouteFilter, which are those of its users, may have changed, and so those of the
// lists that it names.
func (w *World) touchFilter(ref Ref) {
	if ref.Kind != gatewayv1.KindRouteFilter {
		return
	}
	w.touched[ref] = struct{}{}
	if r := w.resultOf(ref); r != nil {
		for dep := range r.uses {
			if dep.Kind == gatewayv1.KindRouteFilter {
				w.touched[dep] = struct{}{}
			}
		}
	}
}

// replaceUses records what a unit reads. Secrets that no unit reads anymore are forgotten.
func (w *World) replaceUses(user Ref, old, now map[Ref]struct{}) {
	for dep := range now {
		of := w.users[dep]
		if of == nil {
			of = map[Ref]struct{}{}
			w.users[dep] = of
		}
		of[user] = struct{}{}
		if IsFetched(dep.Kind) && w.secrets[dep] == nil {
			w.unread[dep] = true
		}
	}
	for dep := range old {
		if _, still := now[dep]; still {
			continue
		}
		delete(w.users[dep], user)
		if len(w.users[dep]) == 0 {
			delete(w.users, dep)
			delete(w.secrets, dep)
			delete(w.unread, dep)
		}
	}
}
