package layout

import "fmt"

// PerService is how many of the initial routes share a service, and so a host, unless
// each has its own.
const PerService = 10

// Node is the name of the proxy, and the node id of the Envoys.
const Node = "gw"

// Route is a route of a service and its one upstream on this machine.
type Route struct {
	Service  string `json:"service"`
	Name     string `json:"name"`
	Prefix   string `json:"prefix"`
	Upstream string `json:"upstream"`
	Port     int    `json:"port"`
}

// Address is the address of every upstream.
const Address = "127.0.0.1"

// FQDN is the host of a service.
func FQDN(service string) string { return service + ".bench.example" }

// FQDN is the host of the route's service.
func (r Route) FQDN() string { return FQDN(r.Service) }

// Services lists the services of n routes, of which per share one.
func Services(n, per int) []string {
	var list []string
	for i := range (n + per - 1) / per {
		list = append(list, fmt.Sprintf("s%04d", i))
	}
	return list
}

// Routes returns the n initial routes, of which per share a service. Their names have
// the same length, so that none is a prefix of another.
func Routes(n, per, port int) []Route {
	services := Services(n, per)
	list := make([]Route, n)
	for i := range list {
		list[i] = route(services[i/per], fmt.Sprintf("r%05d", i), port)
	}
	return list
}

// Added returns the i-th route that is added to n initial ones: each to another of
// their services, as long as there are some.
func Added(i, n, per, port int) Route {
	services := Services(n, per)
	return route(services[i%len(services)], fmt.Sprintf("new%05d", i), port)
}

func route(service, name string, port int) Route {
	return Route{Service: service, Name: name, Prefix: "/" + name, Upstream: "u-" + name, Port: port}
}
