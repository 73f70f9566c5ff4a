package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// form says how messages are written.
type form interface {
	// routeConfiguration returns one without hosts.
	routeConfiguration() *routev3.RouteConfiguration
	// build makes the messages of a service.
	build(*service) error
}

// world is the configuration, and the messages made of it.
type world struct {
	form     form
	listener *listenerv3.Listener
	// extensions are the filters that the listener waits for.
	extensions []types.Resource
	services   map[string]*service
	sorted     []*service // by name
	lastID     int64
}

type service struct {
	name     string
	routes   []*route
	host     *routev3.VirtualHost
	clusters []*clusterv3.Cluster
}

type route struct {
	layout.Route
	id       int64
	attached bool // to its upstream; without one it answers 503
}

// newWorld returns the contents of a JSON file of routes; without a name it is empty.
func newWorld(f form, l ir.Listener, file string) (*world, error) {
	listener, err := translate.Listener(l)
	if err != nil {
		return nil, err
	}
	closed, err := anypb.New(credential.ClosedTokenChecks())
	if err != nil {
		return nil, err
	}
	resources, err := translate.ListenerResources(l)
	if err != nil {
		return nil, err
	}
	w := &world{form: f, listener: listener, services: map[string]*service{}}
	for _, e := range append(resources.Extensions, &corev3.TypedExtensionConfig{Name: seam.TokenFilter, TypedConfig: closed}) {
		w.extensions = append(w.extensions, e)
	}
	if file == "" {
		return w, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the routes: %w", err)
	}
	var routes []layout.Route
	if err := json.Unmarshal(text, &routes); err != nil {
		return nil, fmt.Errorf("reading the routes in %s: %w", file, err)
	}
	return w, w.replace(routes)
}

// replace replaces all routes and their upstreams.
func (w *world) replace(routes []layout.Route) error {
	w.services, w.sorted = map[string]*service{}, nil
	for _, r := range routes {
		w.put(r, true)
	}
	for _, s := range w.sorted {
		if err := w.form.build(s); err != nil {
			return err
		}
	}
	return nil
}

// addRoute adds a route that has no upstream yet.
func (w *world) addRoute(r layout.Route) error { return w.create(r, false) }

// add adds a route with its upstream.
func (w *world) add(r layout.Route) error { return w.create(r, true) }

func (w *world) create(r layout.Route, attached bool) error {
	if s := w.services[r.Service]; s != nil && s.find(r.Name) >= 0 {
		return fmt.Errorf("route %q is there already", r.Name)
	}
	return w.form.build(w.put(r, attached))
}

// attach attaches the upstream of a route.
func (w *world) attach(r layout.Route) error {
	s, i, err := w.route(r)
	if err != nil {
		return err
	}
	s.routes[i].attached = true
	return w.form.build(s)
}

// remove removes a route and its upstream.
func (w *world) remove(r layout.Route) error {
	s, i, err := w.route(r)
	if err != nil {
		return err
	}
	s.routes = slices.Delete(s.routes, i, i+1)
	return w.form.build(s)
}

func (w *world) route(r layout.Route) (*service, int, error) {
	s := w.services[r.Service]
	if s == nil {
		return nil, 0, fmt.Errorf("there is no service %q", r.Service)
	}
	i := s.find(r.Name)
	if i < 0 {
		return nil, 0, fmt.Errorf("service %q has no route %q", r.Service, r.Name)
	}
	return s, i, nil
}

// put adds a route, and its service when it is new.
func (w *world) put(r layout.Route, attached bool) *service {
	s := w.services[r.Service]
	if s == nil {
		s = &service{name: r.Service}
		w.services[r.Service] = s
		i, _ := slices.BinarySearchFunc(w.sorted, r.Service, func(s *service, name string) int {
			return cmp.Compare(s.name, name)
		})
		w.sorted = slices.Insert(w.sorted, i, s)
	}
	w.lastID++
	s.routes = append(s.routes, &route{r, w.lastID, attached})
	return s
}

func (s *service) find(name string) int {
	return slices.IndexFunc(s.routes, func(r *route) bool { return r.Name == name })
}
