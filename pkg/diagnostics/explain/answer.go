package explain

import (
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
)

// Answer describes what happens to a request, and why.
type Answer struct {
	// Code is one of the codes below.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Status is the status of the gateway's own response; 0 means that the upstream
	// responds.
	Status int `json:"status,omitempty"`
	// GRPCStatus is the grpc-status of the gateway's own response to a gRPC client.
	// Status is then 200.
	GRPCStatus int `json:"grpc_status,omitempty"`
	// RefusedBy are the paths of the objects that cause the gateway's own response. A caller that knows them sets it, from
	// FilterType: the type of the filter that responds; empty means no filter, or one that is not known.
	RefusedBy  []string `json:"refused_by,omitempty"`
	FilterType string   `json:"-"`
	// Body and Location are parts of the gateway's own response.
	Body     string `json:"body,omitempty"`
	Location string `json:"location,omitempty"`
	// Request is the request as it is compared with routes.
	Request Seen `json:"request"`
	// TLS describes the TLS connection; nil for plain HTTP.
	TLS *TLS `json:"tls,omitempty"`
	// Service and Route are the chosen ones; empty if there is none.
	Service string `json:"service,omitempty"`
	Route   string `json:"route,omitempty"`
	// Steps are what happened, in order.
	Steps []Step `json:"steps"`
	// Hosts are the services whose host matches, the best first. Only the first one
	// is used.
	Hosts []Host `json:"hosts"`
	// Routes are the routes that were tried, in order. The last one matches unless
	// Code is NoRoute.
	Routes []Route `json:"routes"`
	// Later are routes after the chosen one, which are not tried. MoreRoutes is the
	// number of omitted ones.
	Later      []Route `json:"later_routes,omitempty"`
	MoreRoutes int     `json:"more_routes,omitempty"`
	// Filters are the filters that the request passes, in order.
	Filters []Filter `json:"filters"`
	// UnknownFilters are filters that this package does not know, in order. The
	// request passes them, and they may change the answer.
	UnknownFilters []string `json:"unknown_filters,omitempty"`
	// Forward describes where the request is sent; nil means nowhere.
	Forward *Forward `json:"forward,omitempty"`
	// Envoy are the names of the resources that were used, as Envoy's own tools show
	// them.
	Envoy Names `json:"envoy"`

	// direct means that the gateway's own response is not turned into one for clients of gRPC.
	direct bool
	// port is that of the listener.
	port uint32
}

// These are the codes of an Answer. A filter of pkg/core/filter has its own.
const (
	Forwarded      = "forwarded"       // an upstream answers
	DirectResponse = "direct_response" // the route has a fixed answer
	Redirected     = "redirected"      // 307: the path has escaped slashes; 301 or 308: to https
	BadRequest     = "bad_request"     // 400: no route is tried
	NoListener     = "no_listener"     // no listener is open
	NoCertificate  = "no_certificate"  // the TLS handshake fails
	Misdirected    = "misdirected"     // 421: the connection is for another host
	NoHost         = "no_host"         // 404: no service has the host
	NoRoute        = "no_route"        // 404: no route of the service matches
	NoUpgrade      = "no_upgrade"      // 403: the upgrade is not allowed
	NoCluster      = "no_cluster"      // 503: the Envoy has no such cluster
	NoEndpoints    = "no_endpoints"    // 503: the upstreams have no endpoint
	PassedOn       = "passed_on"       // the backend decrypts the connection
	Closed         = "closed"          // the connection is closed, or the datagram dropped
	// 503: no upstream is healthy.
	NoHealthyUpstream = "no_healthy_upstream"
	// 403: the host requires a client certificate, and this connection has none.
	CertificateRequired = "client_certificate_required"
)

// Seen is the request after Envoy has normalized it.
type Seen struct {
	Method string `json:"method"`
	Host   string `json:"host"`
	Path   string `json:"path"`
	Query  string `json:"query,omitempty"`
}

// Step is one thing that happened. Codes: listener, tls, certificate,
// client_certificate, client, refused, path, redirect, host, filter, route, upgrade,
// login, token, access, answer, forward, health.
type Step struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Host is a service whose host matches.
type Host struct {
	Service string `json:"service"`
	Domain  string `json:"domain"`
	// Kind is exact, suffix, prefix or any.
	Kind    string `json:"kind"`
	Chosen  bool   `json:"chosen"`
	Message string `json:"message"`
}

// Route is a route that was tried, or one after the chosen one.
type Route struct {
	Route   string `json:"route"`
	Matches bool   `json:"matches"`
	// Message describes what happens to a route after the chosen one.
	Message string `json:"message,omitempty"`
	// Checks are all conditions of the route.
	Checks []Check `json:"checks"`
}

// Check is one condition. Codes: path_prefix, path_segment, path_exact,
// path_regex, header, method, query, port, cookie.
type Check struct {
	Code    string `json:"code"`
	Holds   bool   `json:"holds"`
	Message string `json:"message"`
}

// Filter is an HTTP filter that the request passes.
type Filter struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	// From are the paths of the links that attach filters of its type to the proxy, the service and the route. A caller that
	// knows them sets it, see TypeOf; empty means that the gateway itself has the filter.
	From []string `json:"from,omitempty"`
	// Descriptors are what the rate-limit filter sends for the request, in order.
	Descriptors []Descriptor `json:"descriptors,omitempty"`
}

// Forward describes where a request is sent.
type Forward struct {
	// Host and Path are what the upstream receives. Path includes the query.
	Host string `json:"host"`
	Path string `json:"path"`
	// Clusters share requests randomly, in proportion to Weight.
	Clusters []Cluster `json:"clusters"`
	// Timeout bounds the whole exchange, IdleTimeout the time without a byte; "none"
	// means no bound.
	Timeout     string   `json:"timeout"`
	IdleTimeout string   `json:"idle_timeout"`
	Retries     *Retries `json:"retries,omitempty"`
}

// Cluster is a set of endpoints with equal settings.
type Cluster struct {
	Name        string `json:"name"`
	Weight      uint32 `json:"weight"`
	Policy      string `json:"policy"`
	HealthCheck bool   `json:"health_check"`
	// Protocol is http, h2c, tls or h2.
	Protocol  string     `json:"protocol"`
	Endpoints []Endpoint `json:"endpoints"`
	// retries are those of all its requests; nil leaves them to the route.
	retries *routev3.RetryPolicy
	// zoneMin is how many endpoints of the Envoy's zone must be healthy to receive all requests; 0 means that zones do not
	// matter.
	zoneMin uint32
	// stays means that one endpoint receives all requests.
	stays bool
	// Panics means that unhealthy endpoints receive requests too while too few are healthy.
	Panics bool `json:"-"`
}

// Endpoint is one address.
type Endpoint struct {
	// Upstream is the name of the upstream; empty in a cluster without upstreams.
	Upstream string `json:"upstream,omitempty"`
	Address  string `json:"address"`
	Port     uint32 `json:"port"`
	Weight   uint32 `json:"weight"`
	// Percent is the share of the route's requests. If endpoints have priorities, it takes their health into account, as far
	// as that is known; otherwise it is the share while all are healthy.
	Percent float64 `json:"percent"`
	// Draining means that the endpoint receives no new requests.
	Draining bool `json:"draining,omitempty"`
	// Zone is the zone of the endpoint; empty means unknown.
	Zone string `json:"zone,omitempty"`
	// Priority is 0 for the endpoints that receive requests first; those with a higher number do when too few of them are
	// healthy.
	Priority uint32 `json:"priority,omitempty"`
	// Health, its reason and its message are set by a caller that knows them (see
	// DescribeHealth); empty means unknown.
	Health        health.State `json:"health,omitempty"`
	HealthReason  string       `json:"health_reason,omitempty"`
	HealthMessage string       `json:"health_message,omitempty"`
	// DNS means that the address is a name.
	DNS bool `json:"-"`
	// TLS describes how connections to it are secured; nil means that they are not,
	// or that it is unknown.
	TLS *UpstreamTLS `json:"-"`
}

// Retries is a retry policy.
type Retries struct {
	Attempts uint32 `json:"attempts"`
	On       string `json:"on"`
	PerTry   string `json:"per_try,omitempty"`
	// Hedge means that an attempt continues after PerTry.
	Hedge bool `json:"hedge,omitempty"`
}

// Names are names of Envoy's resources.
type Names struct {
	Listener           string   `json:"listener,omitempty"`
	FilterChain        string   `json:"filter_chain,omitempty"`
	RouteConfiguration string   `json:"route_configuration,omitempty"`
	VirtualHost        string   `json:"virtual_host,omitempty"`
	Route              string   `json:"route,omitempty"`
	Clusters           []string `json:"clusters,omitempty"`
}

func (a *Answer) step(code, message string) {
	a.Steps = append(a.Steps, Step{code, message})
}

// Retell replaces a text in the message and in the last step.
func (a *Answer) Retell(before, after string) {
	a.Message = strings.Replace(a.Message, before, after, 1)
	if last := len(a.Steps) - 1; last >= 0 {
		a.Steps[last].Message = strings.Replace(a.Steps[last].Message, before, after, 1)
	}
}

// endWith adds the last step: the gateway answers itself.
func (a *Answer) endWith(code string, status int, step, message string) {
	a.Code, a.Status, a.Message = code, status, message
	a.step(step, message)
}
