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

// RouteUpstreamKey is the key of such a link.
func RouteUpstreamKey(service, route, upstream string) Key {
	return NewKey(KindRouteUpstream, service, route, upstream)
}

// Key implements Object.
func (l *RouteUpstream) Key() Key { return RouteUpstreamKey(l.Service, l.Route, l.Upstream) }

// Meta implements Object.
func (l *RouteUpstream) Meta() Meta { return Meta{&l.ID, &l.CreateTS, &l.UpdateTS} }

// Validate implements Object.
func (l *RouteUpstream) Validate() []FieldError { return nil }

// RouteFilter attaches a filter to a route.
type RouteFilter struct {
	ID       int64  `json:"route_filter_id"`
	Service  string `json:"service_name"`
	Route    string `json:"route_name"`
	Filter   string `json:"filter_name"`
	CreateTS Time   `json:"create_ts"`
	UpdateTS Time   `json:"update_ts"`
}

// RouteFilterKey is the key of such a link.
func RouteFilterKey(service, route, filter string) Key {
	return NewKey(KindRouteFilter, service, route, filter)
}

// Key implements Object.
func (l *RouteFilter) Key() Key { return RouteFilterKey(l.Service, l.Route, l.Filter) }

// Meta implements Object.
func (l *RouteFilter) Meta() Meta { return Meta{&l.ID, &l.CreateTS, &l.UpdateTS} }

// Validate implements Object.
func (l *RouteFilter) Validate() []FieldError { return nil }

// ServiceFilter attaches a filter to a service, for all its routes.
type ServiceFilter struct {
	ID       int64  `json:"service_filter_id"`
	Service  string `json:"service_name"`
	Filter   string `json:"filter_name"`
	CreateTS Time   `json:"create_ts"`
	UpdateTS Time   `json:"update_ts"`
}

// ServiceFilterKey is the key of such a link.
func ServiceFilterKey(service, filter string) Key { return NewKey(KindServiceFilter, service, filter) }

// Key implements Object.
func (l *ServiceFilter) Key() Key { return ServiceFilterKey(l.Service, l.Filter) }

// Meta implements Object.
func (l *ServiceFilter) Meta() Meta { return Meta{&l.ID, &l.CreateTS, &l.UpdateTS} }

// Validate implements Object.
func (l *ServiceFilter) Validate() []FieldError { return nil }

// ServiceSecret gives a service a certificate.
type ServiceSecret struct {
	ID       int64  `json:"service_secret_id"`
	Service  string `json:"service_name"`
	Secret   string `json:"secret_name"`
	CreateTS Time   `json:"create_ts"`
	UpdateTS Time   `json:"update_ts"`
}

// ServiceSecretKey is the key of such a link.
func ServiceSecretKey(service, secret string) Key { return NewKey(KindServiceSecret, service, secret) }

// Key implements Object.
func (l *ServiceSecret) Key() Key { return ServiceSecretKey(l.Service, l.Secret) }

// Meta implements Object.
func (l *ServiceSecret) Meta() Meta { return Meta{&l.ID, &l.CreateTS, &l.UpdateTS} }

// Validate implements Object.
func (l *ServiceSecret) Validate() []FieldError { return nil }

// ProxyService attaches a service to a proxy.
type ProxyService struct {
	ID       int64  `json:"proxy_service_id"`
	Proxy    string `json:"proxy_name"`
	Service  string `json:"service_name"`
	CreateTS Time   `json:"create_ts"`
	UpdateTS Time   `json:"update_ts"`
}

// ProxyServiceKey is the key of such a link.
func ProxyServiceKey(proxy, service string) Key { return NewKey(KindProxyService, proxy, service) }

// Key implements Object.
func (l *ProxyService) Key() Key { return ProxyServiceKey(l.Proxy, l.Service) }

// Meta implements Object.
func (l *ProxyService) Meta() Meta { return Meta{&l.ID, &l.CreateTS, &l.UpdateTS} }

// Validate implements Object.
func (l *ProxyService) Validate() []FieldError { return nil }

// ProxyFilter attaches a filter to a proxy, for all its services.
type ProxyFilter struct {
	ID       int64  `json:"proxy_filter_id"`
	Proxy    string `json:"proxy_name"`
	Filter   string `json:"filter_name"`
	CreateTS Time   `json:"create_ts"`
	UpdateTS Time   `json:"update_ts"`
}

// ProxyFilterKey is the key of such a link.
func ProxyFilterKey(proxy, filter string) Key { return NewKey(KindProxyFilter, proxy, filter) }

// Key implements Object.
func (l *ProxyFilter) Key() Key { return ProxyFilterKey(l.Proxy, l.Filter) }

// Meta implements Object.
func (l *ProxyFilter) Meta() Meta { return Meta{&l.ID, &l.CreateTS, &l.UpdateTS} }

// Validate implements Object.
func (l *ProxyFilter) Validate() []FieldError { return nil }

// ProxyGlobalConfig limits a global config to the proxies that it is attached to.
type ProxyGlobalConfig struct {
	ID           int64  `json:"proxy_globalconfig_id"`
	Proxy        string `json:"proxy_name"`
	GlobalConfig string `json:"globalconfig_name"`
	CreateTS     Time   `json:"create_ts"`
	UpdateTS     Time   `json:"update_ts"`
}

// ProxyGlobalConfigKey is the key of such a link.
func ProxyGlobalConfigKey(proxy, globalConfig string) Key {
	return NewKey(KindProxyGlobalConfig, proxy, globalConfig)
}

// Key implements Object.
func (l *ProxyGlobalConfig) Key() Key { return ProxyGlobalConfigKey(l.Proxy, l.GlobalConfig) }

// Meta implements Object.
func (l *ProxyGlobalConfig) Meta() Meta { return Meta{&l.ID, &l.CreateTS, &l.UpdateTS} }

// Validate implements Object.
func (l *ProxyGlobalConfig) Validate() []FieldError { return nil }
