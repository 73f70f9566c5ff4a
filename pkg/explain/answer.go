package explain

import "github.com/gatehouse-gateway/gatehouse/pkg/health"

// Answer is what happens to a request, and why.
type Answer struct {
	// Code is one of the codes below.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Status is the status of the gateway's own answer; 0 means that the upstream
	// answers.
	Status int `json:"status,omitempty"`
	// GRPCStatus is the grpc-status of the gateway's own answer to a gRPC
	// client, whose Status is then 200.
	GRPCStatus int `json:"grpc_status,omitempty"`
	// Body and Location are parts of the gateway's own answer.
	Body     string `json:"body,omitempty"`
	Location string `json:"location,omitempty"`
	// Request is the request as routes are compared with it.
	Request Seen `json:"request"`
	// TLS is how the connection is made; nil for plain HTTP.
	TLS *TLS `json:"tls,omitempty"`
	// Service and Route are the chosen ones, empty if none was.
	Service string `json:"service,omitempty"`
	Route   string `json:"route,omitempty"`
	// Steps tell the way to the answer, in order.
	Steps []Step `json:"steps"`
	// Hosts are the services whose host matches, the best first: it is taken
	// and the others are not asked.
	Hosts []Host `json:"hosts"`
	// Routes are those that were tried, in order; the last one matches unless
	// Code is NoRoute.
	Routes []Route `json:"routes"`
	// Later are routes behind the chosen one, which are not asked; MoreRoutes
	// counts those that there was no room for.
	Later      []Route `json:"later_routes,omitempty"`
	MoreRoutes int     `json:"more_routes,omitempty"`
	// Filters are those that the request passes, in order.
	Filters []Filter `json:"filters"`
	// UnknownFilters are those that this package does not know, in order: the
	// request passes them, and the answer may be different for what they do.
	UnknownFilters []string `json:"unknown_filters,omitempty"`
	// Forward says where the request goes; nil means nowhere.
	Forward *Forward `json:"forward,omitempty"`
	// Envoy are the names of what was used, as Envoy's own tools show them.
	Envoy Names `json:"envoy"`
}

// The codes of an Answer.
const (
	Forwarded      = "forwarded"       // an upstream answers
	DirectResponse = "direct_response" // the route has a fixed answer
	Redirected     = "redirected"      // 307: the path has escaped slashes; 301 or 308: to https
	BadRequest     = "bad_request"     // 400: no route is looked for
	NoListener     = "no_listener"     // nothing listens
	NoCertificate  = "no_certificate"  // the TLS handshake fails
	Misdirected    = "misdirected"     // 421: the connection is for another host
	NoHost         = "no_host"         // 404: no service has the host
	NoRoute        = "no_route"        // 404: the service has no route for it
	NoUpgrade      = "no_upgrade"      // 403: the upgrade is not allowed
	NoCluster      = "no_cluster"      // 503: the Envoy has no such cluster
	NoEndpoints    = "no_endpoints"    // 503: nobody is behind the upstreams
	LoginRequired  = "login_required"  // 302: the browser is sent to log in
	LoginRefused   = "login_refused"   // 401: no session, and nobody can be sent to log in
	LoginCallback  = "login_callback"  // 302 or 401: a browser comes back from a login
	SignedOut      = "signed_out"      // 302: the session ends
	// 403: clients have to show a certificate, and this connection has none.
	CertificateRequired = "client_certificate_required"
	KeyRequired         = "key_required"       // 401: a http_filter_apikey finds no key that it knows
	PasswordRequired    = "password_required"  // 401: a http_filter_basicauth finds no user with that password
	NoCredential        = "no_credential"      // 401: a http_filter_anyof finds none of those that it takes
	KeyRefused          = "client_refused"     // 403: the key is not of the set, or not one that may ask
	AddressRefused      = "address_refused"    // 403: a vh_filter_ipaccess does not let the address in
	TokenRefused        = "token_refused"      // 401: no token, or what is none
	ClaimRefused        = "claim_refused"      // 403: the token lacks a claim
	CrossSiteRefused    = "cross_site_refused" // 403: an http_filter_csrf refuses what a page of another site asks for
	Preflight           = "preflight"          // 200: a vh_filter_cors answers the browser
	Maintenance         = "maintenance"        // 503, or as it says: a vh_filter_maintenance closes the service
	BodyTooLarge        = "body_too_large"     // 413: a route_filter_bodylimit is in the way
	Fault               = "fault"              // a route_filter_fault fails all requests
	AccessRefused       = "access_refused"     // 403: a vh_filter_rbac does not allow it
	UnknownCall         = "unknown_call"       // 404 or 400: an http_filter_grpcjson has no call for it
)

// Seen is the request after Envoy has made it plain.
type Seen struct {
	Method string `json:"method"`
	Host   string `json:"host"`
	Path   string `json:"path"`
	Query  string `json:"query,omitempty"`
}

// Step is one thing that happened. Codes: listener, tls, certificate,
// client_certificate, client, refused, path, redirect, host, filter, route, upgrade,
// login, answer, forward, health.
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

// Route is a route that was tried, or one behind the chosen one.
type Route struct {
	Route   string `json:"route"`
	Matches bool   `json:"matches"`
	// Message says what becomes of a route behind the chosen one.
	Message string `json:"message,omitempty"`
	// Checks are all conditions of the route.
	Checks []Check `json:"checks"`
}

// Check is one condition. Codes: path_prefix, path_segment, path_exact,
// path_regex, header, method, query, cookie.
type Check struct {
	Code    string `json:"code"`
	Holds   bool   `json:"holds"`
	Message string `json:"message"`
}

// Filter is an HTTP filter that the request passes.
type Filter struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	// Descriptors are what the rate-limit filter has for the request, in order.
	Descriptors []Descriptor `json:"descriptors,omitempty"`
}

// Forward is where a request goes.
type Forward struct {
	// Host and Path, with the query, are what the upstream sees.
	Host string `json:"host"`
	Path string `json:"path"`
	// Clusters share the request by chance, in proportion to Weight.
	Clusters []Cluster `json:"clusters"`
	// Timeout bounds the whole exchange, IdleTimeout the time without a byte;
	// "none" means no bound.
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
}

// Endpoint is one address.
type Endpoint struct {
	// Upstream is the name of the upstream; empty in a cluster that has none.
	Upstream string `json:"upstream,omitempty"`
	Address  string `json:"address"`
	Port     uint32 `json:"port"`
	Weight   uint32 `json:"weight"`
	// Percent of the requests of the route, while all are healthy.
	Percent float64 `json:"percent"`
	// Draining says that it gets no new requests.
	Draining bool `json:"draining,omitempty"`
	// Zone is where it is; empty means that this is not known.
	Zone string `json:"zone,omitempty"`
	// Health, with its reason and in words, is filled in by who knows it (see
	// TellHealth); empty means that nobody does.
	Health        health.State `json:"health,omitempty"`
	HealthReason  string       `json:"health_reason,omitempty"`
	HealthMessage string       `json:"health_message,omitempty"`
	// DNS says that the address is a name.
	DNS bool `json:"-"`
	// TLS is how connections to it are secured; nil means that they are not, or not
	// in a way that is known.
	TLS *UpstreamTLS `json:"-"`
}

// Retries is a retry policy.
type Retries struct {
	Attempts uint32 `json:"attempts"`
	On       string `json:"on"`
	PerTry   string `json:"per_try,omitempty"`
	// Hedge says that an attempt goes on when PerTry is over.
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

// endWith adds the last step: the gateway answers by itself.
func (a *Answer) endWith(code string, status int, step, message string) {
	a.Code, a.Status, a.Message = code, status, message
	a.step(step, message)
}
