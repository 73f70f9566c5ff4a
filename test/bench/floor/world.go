package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// world is the configuration, and the messages made of it.
type world struct {
	listener *listenerv3.Listener
	services map[string]*service
	sorted   []*service // by name
	lastID   int64
}

type service struct {
	tree     *model.ServiceTree
	host     *routev3.VirtualHost
	clusters []*clusterv3.Cluster
}

// newWorld holds what is in a JSON file of routes; without a name it is empty.
func newWorld(l ir.Listener, file string) (*world, error) {
	listener, err := translate.Listener(l)
	if err != nil {
		return nil, err
	}
	w := &world{listener: listener, services: map[string]*service{}}
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
	for _, r := range routes {
		w.put(r, upstream(r))
	}
	for _, s := range w.sorted {
		if err := s.build(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// addRoute adds a route that has no upstream yet: it answers 503.
func (w *world) addRoute(r layout.Route) error {
	if s := w.services[r.Service]; s != nil && s.find(r.Name) >= 0 {
		return fmt.Errorf("route %q is there already", r.Name)
	}
	return w.put(r).build()
}

// attach gives a route its upstream.
func (w *world) attach(r layout.Route) error {
	s, i, err := w.route(r)
	if err != nil {
		return err
	}
	s.tree.Routes[i] = &model.RouteTree{Route: s.tree.Routes[i].Route, Upstreams: []*model.Upstream{upstream(r)}}
	return s.build()
}

// remove takes a route and its upstream away.
func (w *world) remove(r layout.Route) error {
	s, i, err := w.route(r)
	if err != nil {
		return err
	}
	s.tree.Routes = slices.Delete(s.tree.Routes, i, i+1)
	return s.build()
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
func (w *world) put(r layout.Route, upstreams ...*model.Upstream) *service {
	s := w.services[r.Service]
	if s == nil {
		s = &service{tree: &model.ServiceTree{Service: &model.Service{Name: r.Service, FQDN: r.FQDN()}}}
		w.services[r.Service] = s
		i, _ := slices.BinarySearchFunc(w.sorted, r.Service, func(s *service, name string) int {
			return cmp.Compare(s.tree.Service.Name, name)
		})
		w.sorted = slices.Insert(w.sorted, i, s)
	}
	w.lastID++
	s.tree.Routes = append(s.tree.Routes, &model.RouteTree{
		Route:     &model.Route{ID: w.lastID, Service: r.Service, Name: r.Name, Prefix: r.Prefix},
		Upstreams: upstreams,
	})
	return s
}

func upstream(r layout.Route) *model.Upstream {
	u := model.NewUpstream()
	u.Name, u.IP, u.Port = r.Upstream, layout.Address, r.Port
	return u
}

func (s *service) find(route string) int {
	return slices.IndexFunc(s.tree.Routes, func(t *model.RouteTree) bool { return t.Route.Name == route })
}

// build makes the messages of one service anew.
func (s *service) build() (err error) {
	s.clusters = nil
	host := compile.Host(s.tree, func(t *model.RouteTree) *ir.Route {
		r, _ := compile.Route(t, egress.Lists{})
		return r
	})
	if s.host, err = translate.VirtualHost(host); err != nil {
		return err
	}
	for _, r := range host.Routes {
		route, err := translate.Route(r)
		if err != nil {
			return err
		}
		s.host.Routes = append(s.host.Routes, route)
		if r.Forward == nil {
			continue
		}
		for _, c := range r.Forward.Clusters {
			cluster, err := translate.Cluster(c.Cluster)
			if err != nil {
				return err
			}
			s.clusters = append(s.clusters, cluster)
		}
	}
	return nil
}
