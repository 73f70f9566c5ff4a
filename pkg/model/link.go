package model

// RouteUpstream attaches an upstream to a route.
type RouteUpstream struct {
	ID       int64  `json:"route_upstream_id"`
	Service  string `json:"service_name"`
	Route    string `json:"route_name"`
	Upstream string `json:"upstream_name"`
	CreateTS Time   `json:"create_ts"`
	UpdateTS Time   `json:"update_ts"`
}

// Key implements Object.
func (l *RouteUpstream) Key() Key { return RouteUpstreamKey(l.Service, l.Route, l.Upstream) }

// Meta implements Object.
func (l *RouteUpstream) Meta() Meta { return Meta{&l.ID, &l.CreateTS, &l.UpdateTS} }

// Owner implements Object: the link goes with its route.
func (l *RouteUpstream) Owner() Key { return RouteKey(l.Service, l.Route) }

// Uses implements Object: the upstream stays while it is attached.
func (l *RouteUpstream) Uses() []Key { return []Key{UpstreamKey(l.Upstream)} }

// Validate implements Object.
func (l *RouteUpstream) Validate() []FieldError { return nil }

// ProxyService attaches a service to a proxy.
type ProxyService struct {
	ID       int64  `json:"proxy_service_id"`
	Proxy    string `json:"proxy_name"`
	Service  string `json:"service_name"`
	CreateTS Time   `json:"create_ts"`
	UpdateTS Time   `json:"update_ts"`
}

// Key implements Object.
func (l *ProxyService) Key() Key { return ProxyServiceKey(l.Proxy, l.Service) }

// Meta implements Object.
func (l *ProxyService) Meta() Meta { return Meta{&l.ID, &l.CreateTS, &l.UpdateTS} }

// Owner implements Object: the link goes with its proxy.
func (l *ProxyService) Owner() Key { return ProxyKey(l.Proxy) }

// Uses implements Object: the service stays while it is attached.
func (l *ProxyService) Uses() []Key { return []Key{ServiceKey(l.Service)} }

// Validate implements Object.
func (l *ProxyService) Validate() []FieldError { return nil }
