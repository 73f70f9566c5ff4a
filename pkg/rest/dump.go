package rest

import (
	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// The dump of a service has exactly the keys of the specification ("Dump of a
// service"), in its order.
type (
	dumpedService struct {
		ID       int64         `json:"service_id"`
		Name     string        `json:"service_name"`
		FQDN     string        `json:"fqdn"`
		CreateTS model.Time    `json:"create_ts"`
		Routes   []dumpedRoute `json:"routes"`
		// Secrets and Filters are empty until there are such kinds.
		Secrets []any `json:"service_secrets"`
		Filters []any `json:"service_filters"`
	}
	dumpedRoute struct {
		ID        int64                 `json:"route_id"`
		Name      string                `json:"route_name"`
		Prefix    string                `json:"route_prefix"`
		Upstreams []dumpedRouteUpstream `json:"route_upstreams"`
		Filters   []any                 `json:"route_filters"`
	}
	dumpedRouteUpstream struct {
		Upstream dumpedUpstream `json:"upstream"`
	}
	dumpedUpstream struct {
		ID   int64  `json:"upstream_id"`
		Name string `json:"upstream_name"`
		IP   string `json:"upstream_ip"`
		Port int    `json:"upstream_port"`
	}
)

// addDump shares its path with the objects of a service called "dump", which
// is why that name is reserved.
func (s *server) addDump() {
	s.get("/service/dump/:service", s.dumpService)
}

func (s *server) dumpService(c *gin.Context) error {
	if err := noQuery(c); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	var dump dumpedService
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		dump, err = readDump(r, n[model.KindService])
		return err
	})
	if err != nil {
		return err
	}
	s.answerRead(c, model.KindService, []dumpedService{dump})
	return nil
}

func readDump(r store.Reader, name string) (dumpedService, error) {
	svc, err := store.Get[*model.Service](r, model.ServiceKey(name))
	if err != nil {
		return dumpedService{}, err
	}
	routes, err := store.List[*model.Route](r, store.Query{Kind: model.KindRoute, Service: name})
	if err != nil {
		return dumpedService{}, err
	}
	attached, err := readAttached(r, name)
	if err != nil {
		return dumpedService{}, err
	}
	dump := dumpedService{
		ID: svc.ID, Name: svc.Name, FQDN: svc.FQDN, CreateTS: svc.CreateTS,
		Routes: make([]dumpedRoute, 0, len(routes)), Secrets: []any{}, Filters: []any{},
	}
	for _, route := range routes {
		dump.Routes = append(dump.Routes, dumpedRoute{
			ID: route.ID, Name: route.Name, Prefix: route.Prefix,
			Upstreams: notNull(attached[route.Name]), Filters: []any{},
		})
	}
	return dump, nil
}

// readAttached returns the upstreams of each route of a service, by the
// route's name, in the order in which they were attached.
func readAttached(r store.Reader, service string) (map[string][]dumpedRouteUpstream, error) {
	links, err := store.List[*model.RouteUpstream](r, store.Query{Kind: model.KindRouteUpstream, Service: service})
	if err != nil {
		return nil, err
	}
	byName := map[string]dumpedUpstream{}
	attached := map[string][]dumpedRouteUpstream{}
	for _, l := range links {
		if _, read := byName[l.Upstream]; !read {
			u, err := store.Get[*model.Upstream](r, model.UpstreamKey(l.Upstream))
			if err != nil {
				return nil, err
			}
			byName[l.Upstream] = dumpedUpstream{ID: u.ID, Name: u.Name, IP: u.IP, Port: u.Port}
		}
		attached[l.Route] = append(attached[l.Route], dumpedRouteUpstream{byName[l.Upstream]})
	}
	return attached, nil
}
