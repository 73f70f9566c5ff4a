package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// stormKind is a kind of change. make returns false if there is currently nothing to
// change.
type stormKind struct {
	name string
	make func() (bool, error)
}

func (w *stormWriter) all() []stormKind {
	return []stormKind{
		{"route moved", w.move},
		{"prefix edited", w.editPrefix},
		{"route config edited", w.editConfig},
		{"route condition turned", w.turnCondition},
		{"route added", w.addRoute},
		{"route removed", w.removeRoute},
		{"upstream added", w.addUpstream},
		{"upstream removed", w.removeUpstream},
		{"upstream attached", w.attachUpstream},
		{"upstream detached", w.detachUpstream},
		{"upstream re-weighted", w.weigh},
		{"port and protocol changed", w.changePort},
		{"backend replaced", w.replaceBackend},
		{"address or name", w.changeAddress},
		{"health check on or off", w.toggleCheck},
		{"strategy changed", w.changeStrategy},
		{"service attached or detached", w.toggleService},
		{"fqdn renamed", w.rename},
		{"service created again", w.recreate},
		{"filter attached and detached", w.toggleFilter},
		{"document", w.putDocument},
	}
}

func (w *stormWriter) link(h *stormHost, route string, u *stormUpstream) error {
	return w.form(http.MethodPost, h.route(route)+"/upstream/"+u.name, nil, func() { h.routes[route].upstreams[u.name] = u }, h)
}

func (w *stormWriter) unlink(h *stormHost, route string, u *stormUpstream) error {
	return w.form(http.MethodDelete, h.route(route)+"/upstream/"+u.name, nil, func() { delete(h.routes[route].upstreams, u.name) }, h)
}

// patch changes one upstream.
func (w *stormWriter) patch(u *stormUpstream, change func()) (applied bool, err error) {
	saved := *u
	change()
	after := *u
	*u = saved
	return w.do(http.MethodPatch, "/upstream/"+u.name, formType, after.form().Encode(), func() { *u = after }, w.users(u)...)
}

// move moves a route from its upstreams to another.
func (w *stormWriter) move() (bool, error) {
	h := w.host()
	name, r := anyOf(w.rng, h.routes)
	_, to := anyOf(w.rng, w.ups)
	if r.has(to) || to.weight == 0 {
		return false, nil
	}
	from := slices.Sorted(maps.Keys(r.upstreams))
	if err := w.link(h, name, to); err != nil {
		return false, err
	}
	for _, u := range from {
		if err := w.unlink(h, name, r.upstreams[u]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// extra picks a route that is not the last resort.
func (w *stormWriter) extra() (h *stormHost, name string, r *stormRoute) {
	h = w.host()
	if name, r = anyOf(w.rng, h.routes); name == "root" {
		return nil, "", nil
	}
	return h, name, r
}

func (w *stormWriter) patchRoute(h *stormHost, name string, change func(*stormRoute)) (bool, error) {
	r := h.routes[name]
	after := *r
	change(&after)
	return true, w.form(http.MethodPatch, h.route(name), after.form(), func() { *r = after }, h)
}

func (w *stormWriter) newPath() string {
	w.count++
	return fmt.Sprintf("/r%d-", w.count)
}

func (w *stormWriter) newMatch() string {
	return []string{"prefix", "segment", "exact", "regex"}[w.rng.IntN(4)]
}

func (w *stormWriter) editPrefix() (bool, error) {
	h, name, _ := w.extra()
	if h == nil {
		return false, nil
	}
	return w.patchRoute(h, name, func(r *stormRoute) { r.path, r.match = w.newPath(), w.newMatch() })
}

func (w *stormWriter) editConfig() (bool, error) {
	h := w.host()
	name, _ := anyOf(w.rng, h.routes)
	return w.patchRoute(h, name, func(r *stormRoute) {
		r.config = []map[string]any{
			nil,
			{"timeouts": map[string]any{"request": "30s", "idle": "20s"}},
			{"retries": map[string]any{"attempts": 3, "on": []string{"connect-failure", "reset"}}},
			{"websocket": false},
			{"rewrite": map[string]any{"host": "inner.example", "prefix": "/inner"}},
		}[w.rng.IntN(5)]
	})
}

func (w *stormWriter) turnCondition() (bool, error) {
	h, name, _ := w.extra()
	if h == nil {
		return false, nil
	}
	return w.patchRoute(h, name, func(r *stormRoute) { r.off = !r.off })
}

func (w *stormWriter) addRoute() (bool, error) {
	h := w.host()
	_, u := anyOf(w.rng, w.ups)
	if len(h.routes) > 3 || u.weight == 0 {
		return false, nil
	}
	name, r := w.name("r"), &stormRoute{path: w.newPath(), match: w.newMatch(), upstreams: map[string]*stormUpstream{}}
	form := r.form()
	form.Set("Route_Name", name)
	// Until it has an upstream the route answers 503, so it must match nothing.
	r.off = true
	form.Set("Route_config", string(r.json()))
	if err := w.form(http.MethodPost, h.at()+"/route", form, func() { h.routes[name] = r }, h); err != nil {
		return false, err
	}
	if err := w.link(h, name, u); err != nil {
		return false, err
	}
	return w.patchRoute(h, name, func(r *stormRoute) { r.off = false })
}

func (w *stormWriter) removeRoute() (bool, error) {
	h, name, _ := w.extra()
	if h == nil {
		return false, nil
	}
	return true, w.form(http.MethodDelete, h.route(name), nil, func() { delete(h.routes, name) }, h)
}

func (w *stormWriter) addUpstream() (bool, error) {
	if len(w.ups) > 7 {
		return false, nil
	}
	b := w.pool[w.rng.IntN(len(w.pool))]
	u := &stormUpstream{
		name: w.name("u"), strategy: "round_robin", backend: b.Backend, protocol: b.protocol, weight: 100, check: w.rng.IntN(2) == 0,
	}
	form := u.form()
	form.Set("Upstream_name", u.name)
	if err := w.form(http.MethodPost, "/upstream", form, func() { w.ups[u.name] = u }); err != nil {
		return false, err
	}
	h := w.host()
	name, _ := anyOf(w.rng, h.routes)
	return true, w.link(h, name, u)
}

func (w *stormWriter) removeUpstream() (bool, error) {
	_, u := anyOf(w.rng, w.ups)
	others := w.serving(u)
	if len(others) < 3 {
		return false, nil
	}
	for _, h := range w.users(u) {
		for _, name := range slices.Sorted(maps.Keys(h.routes)) {
			r := h.routes[name]
			if !r.has(u) {
				continue
			}
			if r.serving(u) == 0 {
				_, other := anyOf(w.rng, others)
				if err := w.link(h, name, other); err != nil {
					return false, err
				}
			}
			if err := w.unlink(h, name, u); err != nil {
				return false, err
			}
		}
	}
	return true, w.form(http.MethodDelete, "/upstream/"+u.name, nil, func() { delete(w.ups, u.name) })
}

func (w *stormWriter) attachUpstream() (bool, error) {
	h := w.host()
	name, r := anyOf(w.rng, h.routes)
	_, u := anyOf(w.rng, w.ups)
	if r.has(u) || len(r.upstreams) > 2 {
		return false, nil
	}
	return true, w.link(h, name, u)
}

func (w *stormWriter) detachUpstream() (bool, error) {
	h := w.host()
	name, r := anyOf(w.rng, h.routes)
	_, u := anyOf(w.rng, r.upstreams)
	if r.serving(u) == 0 {
		return false, nil
	}
	return true, w.unlink(h, name, u)
}

func (w *stormWriter) weigh() (bool, error) {
	_, u := anyOf(w.rng, w.ups)
	weight := max(0, w.rng.IntN(120)-20)
	if weight == 0 && !w.spare(u) {
		return false, nil
	}
	_, err := w.patch(u, func() { u.weight = weight })
	return true, err
}

// serving returns the upstreams in rotation, without one of them.
func (w *stormWriter) serving(without *stormUpstream) map[string]*stormUpstream {
	list := maps.Clone(w.ups)
	maps.DeleteFunc(list, func(_ string, u *stormUpstream) bool { return u == without || u.weight == 0 })
	return list
}

// spare reports whether every route has another upstream, and there are enough others
// for new routes.
func (w *stormWriter) spare(u *stormUpstream) bool {
	for _, h := range w.users(u) {
		for _, r := range h.routes {
			if r.has(u) && r.serving(u) == 0 {
				return false
			}
		}
	}
	return len(w.serving(u)) > 2
}

func (w *stormWriter) changePort() (bool, error) {
	_, u := anyOf(w.rng, w.ups)
	b := w.pool[w.rng.IntN(len(w.pool))]
	if u.backend == b.Backend || w.own[u.backend] {
		return false, nil
	}
	_, err := w.patch(u, func() { u.backend, u.protocol = b.Backend, b.protocol })
	return true, err
}

// replaceBackend does what a deployment does: it starts a new backend, moves all
// traffic there, and stops the old one after its requests have ended.
func (w *stormWriter) replaceBackend() (bool, error) {
	_, u := anyOf(w.rng, w.ups)
	fresh, err := testkit.StartBackend(w.name("b"), testkit.BackendOptions{})
	if err != nil {
		return false, err
	}
	old := u.backend
	w.own[fresh] = true
	applied, err := w.patch(u, func() { u.backend, u.protocol = fresh, "http" })
	if applied && w.own[old] {
		for now := time.Now(); w.oldest().Before(now); {
			<-time.After(10 * time.Millisecond)
		}
		old.Stop()
		delete(w.own, old)
	}
	return true, err
}

func (w *stormWriter) changeAddress() (bool, error) {
	_, u := anyOf(w.rng, w.ups)
	_, err := w.patch(u, func() { u.dns = !u.dns })
	return true, err
}

func (w *stormWriter) toggleCheck() (bool, error) {
	_, u := anyOf(w.rng, w.ups)
	_, err := w.patch(u, func() { u.check = !u.check })
	return true, err
}

func (w *stormWriter) changeStrategy() (bool, error) {
	_, u := anyOf(w.rng, w.ups)
	_, err := w.patch(u, func() {
		u.strategy = []string{"round_robin", "least_request", "random", "ring_hash", "maglev"}[w.rng.IntN(5)]
	})
	return true, err
}

// toggleService leaves at most one of the writer's services detached.
func (w *stormWriter) toggleService() (bool, error) {
	for _, h := range w.mine {
		if !h.attached {
			return true, w.attach(h)
		}
	}
	return true, w.detach(w.host())
}

func (w *stormWriter) attach(h *stormHost) error {
	w.attaches = true
	defer func() { w.attaches = false }()
	return w.form(http.MethodPost, h.proxied(), nil, func() { h.attached = true }, h)
}

func (w *stormWriter) detach(h *stormHost) error {
	return w.form(http.MethodDelete, h.proxied(), nil, func() { h.attached = false }, h)
}

func (w *stormWriter) newFQDN(h *stormHost) string {
	w.count++
	return fmt.Sprintf("%s-%d.example", h.service, w.count)
}

func (w *stormWriter) rename() (bool, error) {
	h := w.host()
	to := w.newFQDN(h)
	return true, w.form(http.MethodPatch, h.at(), fields("fqdn="+to), func() { h.old, h.fqdn = h.fqdn, to }, h)
}

func (w *stormWriter) recreate() (bool, error) {
	h := w.host()
	if !h.attached {
		return false, nil
	}
	if err := w.detach(h); err != nil {
		return false, err
	}
	routes := h.routes
	if err := w.form(http.MethodDelete, h.at(), nil, func() { h.routes = map[string]*stormRoute{"root": routes["root"]} }, h); err != nil {
		return false, err
	}
	to := w.newFQDN(h)
	err := w.form(http.MethodPost, "/service", fields("Service_Name="+h.service, "fqdn="+to), func() { h.old, h.fqdn = h.fqdn, to }, h)
	if err != nil {
		return false, err
	}
	form := h.routes["root"].form()
	form.Set("Route_Name", "root")
	if err := w.form(http.MethodPost, h.at()+"/route", form, func() {}, h); err != nil {
		return false, err
	}
	for _, name := range slices.Sorted(maps.Keys(h.routes["root"].upstreams)) {
		if err := w.link(h, "root", w.ups[name]); err != nil {
			return false, err
		}
	}
	return true, w.attach(h)
}

func (w *stormWriter) toggleFilter() (bool, error) {
	h := w.host()
	name, _ := anyOf(w.rng, h.routes)
	at := h.route(name) + "/filter/limit"
	if err := w.form(http.MethodPost, at, nil, func() {}, h); err != nil {
		return false, err
	}
	return true, w.form(http.MethodDelete, at, nil, func() {}, h)
}

// putDocument changes every host of the writer in one revision.
func (w *stormWriter) putDocument() (bool, error) {
	serving := w.serving(nil)
	after := make([]*stormHost, len(w.mine))
	for i, h := range w.mine {
		next := *h
		next.routes = map[string]*stormRoute{}
		for _, name := range slices.Sorted(maps.Keys(h.routes)) {
			r := *h.routes[name]
			if name != "root" && w.rng.IntN(2) == 0 {
				r.path = w.newPath()
			}
			r.upstreams = map[string]*stormUpstream{}
			for range 1 + w.rng.IntN(2) {
				key, u := anyOf(w.rng, serving)
				r.upstreams[key] = u
			}
			next.routes[name] = &r
		}
		after[i] = &next
	}
	_, err := w.do(http.MethodPut, "/config", "application/json", w.document(after), func() {
		for i, h := range w.mine {
			*h = *after[i]
		}
	}, w.mine...)
	return true, err
}
