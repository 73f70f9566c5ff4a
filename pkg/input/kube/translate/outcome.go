package translate

import (
	"maps"
	"reflect"
	"slices"

	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// outcome is the result of all units, with the part that Take has not returned yet.
type outcome struct {
	wanted map[model.Key]*wanted
	// served are the upstreams of each Service.
	served map[Ref]map[model.Key]struct{}
	// endpoints are the endpoints of the discovered upstreams.
	endpoints map[model.Key]*model.Endpoints
	// moved are the upstreams whose endpoints may have changed.
	moved map[model.Key]struct{}

	// was and wasAt are what Take last returned for objects and endpoints that have changed
	// since.
	was   map[model.Key]model.Object
	wasAt map[model.Key]*model.Endpoints
	// touched are the units whose Object may have changed.
	touched map[Ref]struct{}
}

// wanted is an object of the store.
type wanted struct {
	object model.Object
	// users counts the units that need it.
	users int
	// backend is where an upstream's endpoints come from; nil means that it is not discovered.
	backend *backend
}

func newOutcome() outcome {
	return outcome{
		wanted: map[model.Key]*wanted{}, served: map[Ref]map[model.Key]struct{}{},
		endpoints: map[model.Key]*model.Endpoints{},
		moved:     map[model.Key]struct{}{}, was: map[model.Key]model.Object{}, wasAt: map[model.Key]*model.Endpoints{},
		touched: map[Ref]struct{}{},
	}
}

// replace replaces a result of a unit with another.
func (o *outcome) replace(old, now *result) {
	for key, made := range now.made {
		want := o.wanted[key]
		if want == nil {
			o.note(key, nil)
			want = &wanted{object: made.object}
			o.wanted[key] = want
		} else if !reflect.DeepEqual(want.object, made.object) {
			o.note(key, want.object)
			want.object = made.object
		}
		if _, had := old.made[key]; !had {
			want.users++
		}
		o.serve(key, want, made.backend)
	}
	for key := range old.made {
		if _, still := now.made[key]; still {
			continue
		}
		want := o.wanted[key]
		if want.users--; want.users > 0 {
			continue
		}
		o.note(key, want.object)
		o.serve(key, want, nil)
		delete(o.wanted, key)
	}
}

// note remembers what an object was when Take last returned.
func (o *outcome) note(key model.Key, object model.Object) {
	if _, noted := o.was[key]; !noted {
		o.was[key] = object
	}
}

// serve records where the endpoints of an upstream come from.
func (o *outcome) serve(key model.Key, want *wanted, now *backend) {
	old := want.backend
	if old == now || old != nil && now != nil && *old == *now {
		return
	}
	want.backend = now
	o.moved[key] = struct{}{}
	if old != nil {
		delete(o.served[old.service], key)
		if len(o.served[old.service]) == 0 {
			delete(o.served, old.service)
		}
	}
	if now != nil {
		if o.served[now.service] == nil {
			o.served[now.service] = map[model.Key]struct{}{}
		}
		o.served[now.service][key] = struct{}{}
	}
}

// settleEndpoints sets the endpoints of the upstreams from the EndpointSlices.
func (w *World) settleEndpoints() {
	for service := range w.stale {
		for key := range w.served[service] {
			w.moved[key] = struct{}{}
		}
		delete(w.stale, service)
	}
	found := map[backend]*model.Endpoints{}
	for key := range w.moved {
		delete(w.moved, key)
		var now *model.Endpoints
		if want := w.wanted[key]; want != nil && want.backend != nil {
			if now = found[*want.backend]; now == nil {
				now = w.endpointsOf(*want.backend)
				found[*want.backend] = now
			}
		}
		old := w.endpoints[key]
		if old.Equal(now) {
			continue
		}
		if _, noted := w.wasAt[key]; !noted {
			w.wasAt[key] = old
		}
		if now == nil {
			delete(w.endpoints, key)
		} else {
			w.endpoints[key] = now
		}
	}
}

// TakeEndpoints returns the new endpoints of discovered upstreams since the last call of it or Take, without anything
// else: after a Settle that has listed Secrets, Take has to wait for them, and endpoints must not.
func (w *World) TakeEndpoints() map[model.Key]*model.Endpoints {
	taken := map[model.Key]*model.Endpoints{}
	for key, was := range w.wasAt {
		if now := w.endpoints[key]; was != nil && now != nil && !was.Equal(now) {
			taken[key] = now
			delete(w.wasAt, key)
		}
	}
	return taken
}

// Take settles, and returns the changes since its last call. What needs a Secret that Settle
// has listed and that was not read is closed.
func (w *World) Take() Step {
	w.Settle()
	var step Step
	for key, was := range w.was {
		want := w.wanted[key]
		switch {
		case want != nil && (was == nil || !reflect.DeepEqual(was, want.object)):
			step.Ops = append(step.Ops, Op{key, cloneOf(want.object)})
		case want == nil && was != nil:
			step.Ops = append(step.Ops, Op{Key: key})
		}
		if svc, ok := was.(*model.Service); ok && want != nil && svc.FQDN != want.object.(*model.Service).FQDN {
			step.Ops = append(step.Ops, w.reattach(svc.Name)...)
		}
	}
	step.Ops = ordered(step.Ops)
	for key, was := range w.wasAt {
		if now := w.endpoints[key]; !was.Equal(now) {
			if step.Endpoints == nil {
				step.Endpoints = map[model.Key]*model.Endpoints{}
			}
			step.Endpoints[key] = now
		}
	}
	for ref := range w.touched {
		u := w.units[ref]
		if u == nil {
			continue
		}
		said := w.describe(u)
		if u.object == nil {
			delete(w.units, ref)
		}
		if said == nil && u.said == nil || said != nil && u.said != nil && reflect.DeepEqual(*said, *u.said) {
			continue
		}
		u.said = said
		if step.Objects == nil {
			step.Objects = map[Ref]*Object{}
		}
		step.Objects[ref] = said
	}
	clear(w.was)
	clear(w.wasAt)
	clear(w.touched)
	return step
}

// reattach detaches a service whose host changes from its proxies, and attaches it again:
// another service may have the host until that has changed, too.
func (w *World) reattach(service string) (ops []Op) {
	for _, p := range w.proxies {
		key := model.ProxyServiceKey(p.Name, service)
		was, noted := w.was[key]
		want := w.wanted[key]
		if want == nil || noted && was == nil {
			continue // it is detached, or attached, anyway
		}
		ops = append(ops, Op{Key: key})
		if !noted || reflect.DeepEqual(was, want.object) {
			ops = append(ops, Op{key, cloneOf(want.object)})
		}
	}
	return ops
}

// describe returns the Object of a unit; nil if it is gone.
func (w *World) describe(u *unit) *Object {
	if u.object == nil {
		return nil
	}
	r := u.result
	o := &Object{
		Generation: u.object.GetGeneration(), Ignored: r.ignored, Proxies: r.proxies, Made: r.list(),
		Problems: r.allProblems(), API: r.api,
	}
	if g, ok := r.api.(*GatewayResult); ok {
		counted := *g
		counted.Listeners = w.withAttached(u.ref, g.Listeners)
		o.API = &counted
		// An Envoy that refuses a listener refuses the proxy, also one of the installation.
		if r.state != nil {
			if key := model.ProxyKey(r.state.proxy); r.made[key].object == nil {
				o.Made = append(o.Made, Made{Key: key})
			}
		}
	}
	if r.set != nil {
		if said := w.setResult(u.ref, r.set); said != nil {
			o.API = said
		}
	}
	if p, ok := r.api.(*PolicyResult); ok {
		o.API = w.withAncestors(u.object.(*gwapi.BackendTLSPolicy), p)
	}
	if u.ref.Kind == gatewayv1.KindRouteFilter {
		o.Proxies = w.proxiesUsing(u.ref)
		o.Ignored = len(o.Proxies) == 0 && len(w.users[u.ref]) > 0 // by hosts of other installations only
	}
	return o
}

// proxiesUsing lists the proxies of the GatewayHosts that name a RouteFilter, sorted; for a list, those of the filters
// that name it.
func (w *World) proxiesUsing(filter Ref) []string {
	proxies := map[string]bool{}
	named := w.resultOf(filter)
	isList := named != nil && named.filter.list != ""
	for user := range w.users[filter] {
		r := w.resultOf(user)
		if r == nil {
			continue
		}
		of := r.proxies
		if user.Kind == gatewayv1.KindRouteFilter && isList { // filters can name each other, and themselves, as lists
			of = w.proxiesUsing(user)
		}
		for _, p := range of {
			proxies[p] = true
		}
	}
	return slices.Sorted(maps.Keys(proxies))
}

// cloneOf returns a copy that a store may write to.
func cloneOf(obj model.Object) model.Object {
	copied := reflect.New(reflect.TypeOf(obj).Elem())
	copied.Elem().Set(reflect.ValueOf(obj).Elem())
	return copied.Interface().(model.Object)
}
