package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// stormWriter changes hosts and upstreams that no other writer changes, one call at a
// time.
type stormWriter struct {
	*storm
	id    int
	rng   *rand.Rand
	mine  []*stormHost
	ups   map[string]*stormUpstream
	pool  []stormBackend
	own   map[*testkit.Backend]bool // backends that the writer starts and stops
	count int                       // for new names
	kind  string                    // of the current change
	kinds map[string]int
	turns []stormKind
	// attaches says that the call attaches a host again, which must be live afterwards.
	attaches bool
}

// stormBackend is a backend and its protocol.
type stormBackend struct {
	*testkit.Backend
	protocol string
}

// run makes changes at random moments until stop is closed.
func (w *stormWriter) run(stop <-chan struct{}, mean time.Duration) error {
	next := time.Now()
	for {
		next = next.Add(time.Duration(w.rng.ExpFloat64() * float64(mean)))
		select {
		case <-stop:
			return nil
		case <-time.After(time.Until(next)):
		}
		if err := w.change(); err != nil {
			return err
		}
	}
}

// change makes a change of the next possible kind. Each kind has its turn, in a random
// order.
func (w *stormWriter) change() error {
	const tries = 10
	for {
		if len(w.turns) == 0 {
			w.turns = w.all()
			w.rng.Shuffle(len(w.turns), func(i, j int) { w.turns[i], w.turns[j] = w.turns[j], w.turns[i] })
		}
		k := w.turns[0]
		w.turns, w.kind = w.turns[1:], k.name
		for range tries {
			made, err := k.make()
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			if made {
				w.kinds[k.name]++
				return nil
			}
		}
	}
}

// do makes one call. change updates the model, and hosts are those whose answers may
// change. applied reports whether they have changed everywhere.
func (w *stormWriter) do(method, path, contentType, body string, change func(), hosts ...*stormHost) (applied bool, err error) {
	wait := w.rng.IntN(2) == 0 || w.kind == "backend replaced" || w.attaches
	w.mu.Lock()
	now := time.Now()
	var names []string
	note := func() {
		for _, h := range hosts {
			if h.attached {
				names = append(names, h.fqdn)
			}
		}
	}
	note()
	before := map[*stormHost]string{}
	for _, h := range hosts {
		before[h] = h.fqdn
	}
	change()
	note()
	for _, h := range hosts {
		if before[h] != h.fqdn {
			w.expect(before[h], nil, now)
		}
		w.expect(h.fqdn, h.answers(), now)
	}
	at := len(w.changes)
	w.changes = append(w.changes, stormChange{from: now, kind: w.kind, call: method + " " + path + " " + body})
	w.mu.Unlock()

	if wait {
		path += "?wait=applied&timeout=60s"
	}
	status, err := w.call(method, path, contentType, body)

	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes[at].to, w.changes[at].result = time.Now(), fmt.Sprint("-> ", status)
	applied = wait && err == nil && (status == http.StatusOK || status == http.StatusCreated)
	if applied {
		w.changes[at].result += " applied"
		for _, name := range names {
			w.settle(name, w.changes[at].to)
		}
	}
	return applied, err
}

// call makes a call until it is answered. It is not an error if a killed control plane
// had already made the change.
func (w *stormWriter) call(method, path, contentType, body string) (status int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for again := false; ; again = true {
		a, err := w.api.Do(ctx, method, path, contentType, body)
		switch {
		case err != nil && (!w.kills || ctx.Err() != nil):
			return 0, err
		case err != nil || w.kills && a.Status == http.StatusServiceUnavailable:
			<-time.After(50 * time.Millisecond)
		case a.Status == http.StatusOK, a.Status == http.StatusCreated,
			w.kills && a.Status == http.StatusAccepted,
			again && (a.Status == http.StatusConflict || a.Status == http.StatusNotFound):
			return a.Status, nil
		default:
			return a.Status, fmt.Errorf("%s %s %s: status %d: %s", method, path, body, a.Status, a.Body)
		}
	}
}

func (w *stormWriter) form(method, path string, fields url.Values, change func(), hosts ...*stormHost) error {
	_, err := w.do(method, path, formType, fields.Encode(), change, hosts...)
	return err
}

// fields returns a form of name=value.
func fields(pairs ...string) url.Values {
	form := url.Values{}
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		form.Set(name, value)
	}
	return form
}

func (h *stormHost) at() string                 { return "/service/" + h.service }
func (h *stormHost) route(name string) string   { return h.at() + "/route/" + name }
func (h *stormHost) proxied() string            { return "/proxy/gw" + h.at() }
func (r *stormRoute) has(u *stormUpstream) bool { return r.upstreams[u.name] == u }

// serving returns how many upstreams get traffic, without one of them.
func (r *stormRoute) serving(without *stormUpstream) (n int) {
	for _, u := range r.upstreams {
		if u != without && u.weight > 0 {
			n++
		}
	}
	return n
}

func (r *stormRoute) form() url.Values {
	return fields("Route_prefix="+r.path, "Route_config="+string(r.json()))
}

func (r *stormRoute) json() []byte {
	config := maps.Clone(r.config)
	if config == nil {
		config = map[string]any{}
	}
	config["match"] = r.match
	if r.match == "regex" { // this match cannot be rewritten so
		delete(config, "rewrite")
	}
	if r.off {
		config["methods"] = []string{http.MethodPost, http.MethodPut}
	}
	text, _ := json.Marshal(config) // of texts and numbers
	return text
}

func (u *stormUpstream) form() url.Values {
	ip := u.backend.IP
	if u.dns {
		ip = "localhost"
	}
	form := fields("Upstream_ip="+ip, "Upstream_port="+strconv.Itoa(u.backend.Port), "Upstream_weight="+strconv.Itoa(u.weight),
		"Upstream_strategy="+u.strategy, "Upstream_protocol="+u.protocol, "Upstream_hc_path=", "Upstream_hc_intervalseconds=1",
		"Upstream_validation_cacertificate=", "Upstream_validation_subjectname=")
	if u.check {
		form.Set("Upstream_hc_path", testkit.HealthPath)
	}
	if u.protocol == "tls" || u.protocol == "h2" {
		form.Set("Upstream_validation_cacertificate", "ca")
		form.Set("Upstream_validation_subjectname", "example.com")
	}
	return form
}

// document returns a document for PUT /config with hosts and the writer's upstreams.
func (w *stormWriter) document(hosts []*stormHost) string {
	doc := map[string]any{"version": 1}
	var upstreams, services []any
	for _, name := range slices.Sorted(maps.Keys(w.ups)) {
		u := map[string]any{"upstream_name": name}
		for field, values := range w.ups[name].form() {
			u[strings.ToLower(field)] = values[0]
		}
		upstreams = append(upstreams, u)
	}
	for _, h := range hosts {
		var routes []any
		for _, name := range slices.Sorted(maps.Keys(h.routes)) {
			r := h.routes[name]
			routes = append(routes, map[string]any{
				"route_name": name, "route_prefix": r.path, "route_config": json.RawMessage(r.json()),
				"upstreams": slices.Sorted(maps.Keys(r.upstreams)),
			})
		}
		services = append(services, map[string]any{"service_name": h.service, "fqdn": h.fqdn, "routes": routes})
	}
	doc["upstreams"], doc["services"] = upstreams, services
	text, _ := json.Marshal(doc) // of texts and numbers
	return string(text)
}

// anyOf picks a value of a map, always the same for the same state of the random
// numbers.
func anyOf[T any](rng *rand.Rand, m map[string]T) (string, T) {
	keys := slices.Sorted(maps.Keys(m))
	key := keys[rng.IntN(len(keys))]
	return key, m[key]
}

func (w *stormWriter) host() *stormHost { return w.mine[w.rng.IntN(len(w.mine))] }

func (w *stormWriter) name(kind string) string {
	w.count++
	return fmt.Sprintf("w%d-%s%d", w.id, kind, w.count)
}

// users returns the hosts with a route to an upstream.
func (w *stormWriter) users(u *stormUpstream) (list []*stormHost) {
	for _, h := range w.mine {
		for _, r := range h.routes {
			if r.has(u) {
				list = append(list, h)
				break
			}
		}
	}
	return list
}
