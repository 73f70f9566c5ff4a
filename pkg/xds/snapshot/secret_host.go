package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// SecretHost makes the host that keeps the secrets of logins in a route configuration. An
// Envoy crashes when a secret that it was given leaves.
type SecretHost struct {
	// Host is the host without routes.
	Host *routev3.VirtualHost
	// Route makes the route that names the secrets of a pair.
	Route func(pair string) (*routev3.Route, error)
}

// loginPrefix is the prefix of the names of login secrets: PAIR/client and PAIR/hmac.
const loginPrefix = "login/"

// LoginPair returns the pair of a login's secret; ok is false for any other name. A pair
// is "login/KIND/NAME".
func LoginPair(secret string) (pair string, ok bool) {
	parts := strings.Split(secret, "/")
	if len(parts) != 4 || parts[0]+"/" != loginPrefix || parts[3] != "client" && parts[3] != "hmac" {
		return "", false
	}
	if parts[1] != "filter" && parts[1] != "globalconfig" || parts[2] == "" ||
		strings.ContainsFunc(parts[2], func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", false
	}
	return strings.Join(parts[:3], "/"), true
}

// secretHost makes the host, and the bytes of each of its routes only once.
type secretHost struct {
	host  *Host // without routes
	route func(pair string) (*routev3.Route, error)

	mu     sync.Mutex
	routes map[string]*Route
}

// maxKeptRoutes bounds the routes whose bytes are cached, since an Envoy may request
// made-up names.
const maxKeptRoutes = 10_000

func newKeeper(by *SecretHost) (*secretHost, error) {
	if by == nil {
		return nil, nil
	}
	host, err := NewHost(by.Host, nil, ObjectRef{})
	if err != nil {
		return nil, err
	}
	k := &secretHost{host: host, route: by.Route, routes: map[string]*Route{}}
	if _, err := k.routeOf(loginPrefix + "filter/a"); err != nil {
		return nil, fmt.Errorf("making the host that keeps secrets: %w", err)
	}
	return k, nil
}

// routeOf returns the route of a pair.
func (k *secretHost) routeOf(pair string) (*Route, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.routes[pair]; r != nil {
		return r, nil
	}
	m, err := k.route(pair)
	if err != nil {
		return nil, err
	}
	r, err := NewRoute(m)
	if err != nil {
		return nil, err
	}
	if len(k.routes) == maxKeptRoutes {
		clear(k.routes)
	}
	k.routes[pair] = r
	return r, nil
}

// Keeper returns the host that keeps the secrets of pairs, which must be sorted; nil if
// pairs is empty or the configuration has no keeper.
func (h *RouteHead) Keeper(pairs []string) *Host {
	if h.keeper == nil || len(pairs) == 0 {
		return nil
	}
	routes := make([]*Route, 0, len(pairs))
	for _, pair := range pairs {
		if r, err := h.keeper.routeOf(pair); err == nil { // every LoginPair is valid for Envoy
			routes = append(routes, r)
		}
	}
	host := hostOf(h.keeper.host.Name, h.keeper.host.Domains, h.keeper.host.body, routes)
	host.Clusters, host.pairs = nil, pairs // no request matches its routes
	return host
}

// keep updates the keeper to the secrets.
func (b *Builder) keep(secrets []*Resource) {
	if b.head == nil || b.head.keeper == nil {
		return
	}
	if pairs := pairsOf(secrets); !slices.Equal(pairs, b.pairs) {
		b.pairs = pairs
		b.changedHosts[b.head.keeper.host.Name] = b.head.Keeper(pairs)
	}
}

// pairsOf returns the pairs of login secrets, sorted. secrets must be sorted by name, so
// that those of logins are consecutive.
func pairsOf(secrets []*Resource) []string {
	first, _ := search(secrets, loginPrefix, resourceName)
	var pairs []string
	for _, r := range secrets[first:] {
		if !strings.HasPrefix(r.Name, loginPrefix) {
			break
		}
		if pair, ok := LoginPair(r.Name); ok && (len(pairs) == 0 || pairs[len(pairs)-1] != pair) {
			pairs = append(pairs, pair)
		}
	}
	slices.Sort(pairs)
	return slices.Compact(pairs)
}
