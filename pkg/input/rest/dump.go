package rest

import (
	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// The dump of a service has exactly the keys of the specification ("Dump of a
// service"), in its order. What it leaves open has the shape of its upstreams.
type (
	dumpedService struct {
		ID       int64          `json:"service_id"`
		Name     string         `json:"service_name"`
		FQDN     string         `json:"fqdn"`
		CreateTS model.Time     `json:"create_ts"`
		Routes   []dumpedRoute  `json:"routes"`
		Secrets  []dumpedSecret `json:"service_secrets"`
		Filters  []dumpedFilter `json:"service_filters"`
	}
	dumpedRoute struct {
		ID        int64                 `json:"route_id"`
		Name      string                `json:"route_name"`
		Prefix    string                `json:"route_prefix"`
		Upstreams []dumpedRouteUpstream `json:"route_upstreams"`
		Filters   []dumpedFilter        `json:"route_filters"`
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
	dumpedFilter struct {
		Filter struct {
			ID     int64      `json:"filter_id"`
			Name   string     `json:"filter_name"`
			Type   string     `json:"filter_type"`
			Config model.JSON `json:"filter_config"`
		} `json:"filter"`
	}
	dumpedSecret struct {
		Secret struct {
			ID   int64  `json:"secret_id"`
			Name string `json:"secret_name"`
			Type string `json:"secret_type"`
		} `json:"secret"`
	}
	dumpedProxy struct {
		*model.Proxy
		Services      []dumpedProxyService `json:"proxy_services"`
		Filters       []dumpedFilter       `json:"proxy_filters"`
		GlobalConfigs []dumpedGlobalConfig `json:"proxy_globalconfigs"`
	}
	dumpedProxyService struct {
		Service dumpedService `json:"service"`
	}
	dumpedGlobalConfig struct {
		GlobalConfig struct {
			ID     int64      `json:"globalconfig_id"`
			Name   string     `json:"globalconfig_name"`
			Type   string     `json:"globalconfig_type"`
			Config model.JSON `json:"config"`
		} `json:"globalconfig"`
	}
)

// addDump shares its paths with the objects of a service or proxy called
// "dump", which is why that name is reserved.
func (s *server) addDump() {
	s.get("/service/dump/:service", func(c *gin.Context) error {
		return s.dump(c, model.KindService, func(r store.Reader, n names) (any, error) {
			d, err := dumpService(r, n[model.KindService])
			return []dumpedService{d}, err
		})
	})
	s.get("/proxy/dump/:proxy", func(c *gin.Context) error {
		return s.dump(c, model.KindProxy, func(r store.Reader, n names) (any, error) {
			d, err := dumpProxy(r, n[model.KindProxy])
			return []dumpedProxy{d}, err
		})
	})
	s.get("/proxy/dump", func(c *gin.Context) error {
		return s.dump(c, model.KindProxy, func(r store.Reader, _ names) (any, error) { return dumpProxies(r) })
	})
}

func (s *server) dump(c *gin.Context, kind model.Kind, read func(store.Reader, names) (any, error)) error {
	if err := noQuery(c); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	var dump any
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		dump, err = read(r, n)
		return err
	})
	if err != nil {
		return err
	}
	s.answerRead(c, kind, dump)
	return nil
}

func dumpProxies(r store.Reader) ([]dumpedProxy, error) {
	proxies, err := r.List(store.Query{Kind: model.KindProxy})
	if err != nil {
		return nil, err
	}
	dumps := make([]dumpedProxy, len(proxies))
	for i, p := range proxies {
		if dumps[i], err = dumpProxy(r, p.Key().Name()); err != nil {
			return nil, err
		}
	}
	return dumps, nil
}

func dumpProxy(r store.Reader, name string) (dumpedProxy, error) {
	dump := dumpedProxy{Services: []dumpedProxyService{}, Filters: []dumpedFilter{}, GlobalConfigs: []dumpedGlobalConfig{}}
	var err error
	if dump.Proxy, err = store.Get[*model.Proxy](r, model.ProxyKey(name)); err != nil {
		return dump, err
	}
	err = eachLinked(r, model.KindProxyService, model.ProxyKey(name), func(_, used model.Object) error {
		d, err := dumpService(r, used.Key().Name())
		dump.Services = append(dump.Services, dumpedProxyService{d})
		return err
	})
	if err != nil {
		return dump, err
	}
	err = eachLinked(r, model.KindProxyFilter, model.ProxyKey(name), func(_, used model.Object) error {
		dump.Filters = append(dump.Filters, dumpFilter(used.(*model.Filter)))
		return nil
	})
	if err != nil {
		return dump, err
	}
	err = eachLinked(r, model.KindProxyGlobalConfig, model.ProxyKey(name), func(_, used model.Object) error {
		var d dumpedGlobalConfig
		g := used.(*model.GlobalConfig).Redact().(*model.GlobalConfig)
		d.GlobalConfig.ID, d.GlobalConfig.Name, d.GlobalConfig.Type, d.GlobalConfig.Config = g.ID, g.Name, g.Type, g.Config
		dump.GlobalConfigs = append(dump.GlobalConfigs, d)
		return nil
	})
	return dump, err
}

func dumpService(r store.Reader, name string) (dumpedService, error) {
	svc, err := store.Get[*model.Service](r, model.ServiceKey(name))
	if err != nil {
		return dumpedService{}, err
	}
	dump := dumpedService{
		ID: svc.ID, Name: svc.Name, FQDN: svc.FQDN, CreateTS: svc.CreateTS,
		Secrets: []dumpedSecret{}, Filters: []dumpedFilter{},
	}
	if dump.Routes, err = dumpRoutes(r, name); err != nil {
		return dumpedService{}, err
	}
	err = eachLinked(r, model.KindServiceFilter, model.ServiceKey(name), func(_, used model.Object) error {
		dump.Filters = append(dump.Filters, dumpFilter(used.(*model.Filter)))
		return nil
	})
	if err != nil {
		return dumpedService{}, err
	}
	err = eachLinked(r, model.KindServiceSecret, model.ServiceKey(name), func(_, used model.Object) error {
		var d dumpedSecret
		secret := used.(*model.Secret)
		d.Secret.ID, d.Secret.Name, d.Secret.Type = secret.ID, secret.Name, secret.Type
		dump.Secrets = append(dump.Secrets, d)
		return nil
	})
	return dump, err
}

// dumpRoutes lists the routes of a service, each with its upstreams and
// filters in the order in which they were attached.
func dumpRoutes(r store.Reader, service string) ([]dumpedRoute, error) {
	routes, err := store.List[*model.Route](r,
		store.Query{Kind: model.KindRoute, To: []model.Key{model.ServiceKey(service)}})
	if err != nil {
		return nil, err
	}
	upstreams := map[string][]dumpedRouteUpstream{}
	err = eachLinked(r, model.KindRouteUpstream, model.ServiceKey(service), func(l, used model.Object) error {
		route, u := l.(*model.RouteUpstream).Route, used.(*model.Upstream)
		upstreams[route] = append(upstreams[route], dumpedRouteUpstream{dumpedUpstream{u.ID, u.Name, u.IP, u.Port}})
		return nil
	})
	if err != nil {
		return nil, err
	}
	filters := map[string][]dumpedFilter{}
	err = eachLinked(r, model.KindRouteFilter, model.ServiceKey(service), func(l, used model.Object) error {
		route := l.(*model.RouteFilter).Route
		filters[route] = append(filters[route], dumpFilter(used.(*model.Filter)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	dumps := make([]dumpedRoute, len(routes))
	for i, route := range routes {
		dumps[i] = dumpedRoute{
			ID: route.ID, Name: route.Name, Prefix: route.Prefix,
			Upstreams: notNull(upstreams[route.Name]), Filters: notNull(filters[route.Name]),
		}
	}
	return dumps, nil
}

func dumpFilter(f *model.Filter) (d dumpedFilter) {
	f = f.Redact().(*model.Filter)
	d.Filter.ID, d.Filter.Name, d.Filter.Type, d.Filter.Config = f.ID, f.Name, f.Type, f.Config
	return d
}

// eachLinked calls fn with each link of a kind to an object, the oldest first, and the object that it attaches, which is
// read once.
func eachLinked(r store.Reader, kind model.Kind, to model.Key, fn func(link, used model.Object) error) error {
	links, err := r.List(store.Query{Kind: kind, To: []model.Key{to}})
	if err != nil {
		return err
	}
	seen := map[model.Key]model.Object{}
	for _, l := range links {
		key := usedByLink(l)
		if seen[key] == nil {
			if seen[key], err = r.Get(key); err != nil {
				return err
			}
		}
		if err := fn(l, seen[key]); err != nil {
			return err
		}
	}
	return nil
}
