package ir

import (
	"slices"
	"time"
)

// Gateway is all that one proxy must do.
type Gateway struct {
	// Name is the proxy's name, which is the node id of its Envoys.
	Name     string   `json:"name"`
	Listener Listener `json:"listener"`
	// HTTPS is where it accepts HTTPS; nil while no host has a certificate.
	HTTPS *Listener `json:"https,omitempty"`
	// Hosts are sorted by name.
	Hosts []*Host `json:"hosts"`
	// Assignments are those of the discovered clusters that the hosts name, sorted by name.
	Assignments []*Assignment `json:"assignments,omitempty"`
}

// Listener is where a proxy accepts requests.
type Listener struct {
	Address string `json:"address"`
	Port    int    `json:"port"`
	// TLS makes it one of HTTPS; nil means plain HTTP.
	TLS *TLS `json:"tls,omitempty"`
	// TrustedHops says that the client's address is so many from the right in
	// X-Forwarded-For; 0 means that of the connection.
	TrustedHops int `json:"trustedHops,omitempty"`
	// EscapedSlashes in a path are kept (keep) or refused (reject); empty means
	// that the client is sent to the path without them.
	EscapedSlashes string `json:"escapedSlashes,omitempty"`
	// UnderscoreHeaders, by their names, are left out (drop) or passed on
	// (allow); empty means that the request is refused.
	UnderscoreHeaders string `json:"underscoreHeaders,omitempty"`
	// AccessLog writes a JSON line for every request to Envoy's stdout.
	AccessLog bool `json:"accessLog,omitempty"`
	// RateLimitEngine is where the rate-limit engine is; nil means that there is
	// none.
	RateLimitEngine *RateLimitEngine `json:"rateLimitEngine,omitempty"`
	// RateLimit says how the rate-limit engine is asked; nil means that no
	// request is limited.
	RateLimit *RateLimitService `json:"rateLimit,omitempty"`
	// DomainLimits are those that routes name, by the domain's name there.
	DomainLimits map[string]*RateLimitService `json:"domainLimits,omitempty"`
	// Keys are the API keys of all sets that routes ask for, on the listener of plain HTTP. They are
	// delivered beside it.
	Keys []APIKey `json:"keys,omitempty"`
	// AnyKeys are those of the sets whose keys are one of several credentials.
	AnyKeys []APIKey `json:"anyKeys,omitempty"`
}

// Host is a host name and the routes under it.
type Host struct {
	// Name is the service's name, unique within the gateway.
	Name string `json:"name"`
	// Domain is an exact host in lower case, "*.suffix" or "*".
	Domain string `json:"domain"`
	// Certificates are what the HTTPS listener shows for it.
	Certificates []Certificate `json:"certificates,omitempty"`
	// ClientCA is the secret with the authorities that verify clients; empty means that
	// clients need no certificate. It is never for plain HTTP then.
	ClientCA string `json:"clientCA,omitempty"`
	// HSTSSeconds is for how long a browser that came over HTTPS keeps away from plain
	// HTTP; 0 means that it is not told.
	HSTSSeconds int `json:"hstsSeconds,omitempty"`
	// Login is what every request needs; nil means that nobody has to log in.
	Login *Login `json:"login,omitempty"`
	// Tokens are what a request has to bring on routes that say nothing of it; nil means
	// nothing. A host has a login or tokens.
	Tokens *Tokens `json:"tokens,omitempty"`
	// Reserved are routes whose requests the login answers. They come before Routes.
	Reserved []*Route `json:"reserved,omitempty"`
	// First are routes that come before all others; they differ from proxy to proxy.
	First []*Route `json:"first,omitempty"`
	// CSRF is for routes that have none of their own.
	CSRF *CSRF `json:"csrf,omitempty"`
	// IPAccess says whose requests pass on routes that have none of their own; nil means
	// everybody's.
	IPAccess *IPAccess `json:"ipAccess,omitempty"`
	// Keys says which API keys pass on routes that ask for none of their own; nil means that none
	// is needed.
	Keys *KeyAccess `json:"keys,omitempty"`
	// BasicAuth says whose passwords let requests pass on routes that say nothing of who may ask. A host has a login,
	// tokens or this.
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
	// AnyOf says which credentials let requests pass on routes that ask for none of their own. A host that has it asks for
	// no other.
	AnyOf *AnyOf `json:"anyOf,omitempty"`
	// ExtAuthz is asked about requests on routes that have none of their own; nil means that nobody is.
	ExtAuthz *ExtAuthz `json:"extAuthz,omitempty"`
	// ExtProc is for routes that have none of their own; nil means that there is none.
	ExtProc *ExtProc `json:"extProc,omitempty"`
	// Asked are the clusters that its filters ask, sorted by name.
	Asked []*Cluster `json:"asked,omitempty"`
	// Maintenance answers in place of the routes; nil means that they answer.
	Maintenance *Maintenance `json:"maintenance,omitempty"`
	// Compress and Fault are for routes that have none of their own.
	Compress *Compress `json:"compress,omitempty"`
	Fault    *Fault    `json:"fault,omitempty"`
	// Access are rules for routes that have none of their own; a request has to pass each.
	Access []*Access `json:"access,omitempty"`
	// Lua runs on routes that have none of their own; nil means nothing.
	Lua *Lua `json:"lua,omitempty"`
	// Headers are changed on all routes, before what the routes change.
	Headers *Headers `json:"headers,omitempty"`
	// Routes are in the order in which they are tried.
	Routes []*Route `json:"routes"`
	// Last come behind all others.
	Last []*Route `json:"last,omitempty"`
}

// Route is what to do with the requests that match.
type Route struct {
	// Name is the route's name, unique within the host.
	Name  string `json:"name"`
	Match Match  `json:"match"`
	// Exactly one of Forward, Respond, Redirect and Preflight is set.
	Forward  *Forward  `json:"forward,omitempty"`
	Respond  *Respond  `json:"respond,omitempty"`
	Redirect *Redirect `json:"redirect,omitempty"`
	// Public says that nobody has to log in for the route, nor is the host's ExtAuthz asked.
	// Preflight says that CORS answers each of its requests.
	Preflight bool `json:"preflight,omitempty"`
	// CORS is about web pages; nil means that the gateway says nothing of them. It does nothing for Respond and
	// Redirect: ReadBy makes their headers, on a route for pages that it allows.
	CORS   *CORS `json:"cors,omitempty"`
	ReadBy *CORS `json:"readBy,omitempty"`
	// Public says that nobody has to log in for the route.
	Public bool `json:"public,omitempty"`
	// Tokens and BasicAuth take the place of the host's, whichever it has, and of its login. A route has one of them.
	Tokens    *Tokens    `json:"tokens,omitempty"`
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
	// AnyOf takes the place of all that the host asks for, and each that a route asks for that of the host's AnyOf.
	AnyOf *AnyOf `json:"anyOf,omitempty"`
	// CSRF takes the place of the host's, and so does IPAccess.
	CSRF     *CSRF     `json:"csrf,omitempty"`
	IPAccess *IPAccess `json:"ipAccess,omitempty"`
	// Compress and Fault take the place of the host's.
	Compress *Compress `json:"compress,omitempty"`
	Fault    *Fault    `json:"fault,omitempty"`
	// BodyLimit bounds the bodies of requests; nil means that nothing does.
	BodyLimit *BodyLimit `json:"bodyLimit,omitempty"`
	// GRPCWeb makes gRPC of gRPC-Web. GRPCJSON makes it of JSON; nil means that nothing does. Both are for routes with
	// Forward.
	GRPCWeb  bool      `json:"grpcWeb,omitempty"`
	GRPCJSON *GRPCJSON `json:"grpcJSON,omitempty"`
	// Keys takes the place of the host's.
	Keys *KeyAccess `json:"keys,omitempty"`
	// Access take the place of the host's, which do not hold if the route is Unruled.
	Access  []*Access `json:"access,omitempty"`
	Unruled bool      `json:"unruled,omitempty"`
	// Unverified says that nobody has to show a certificate for the route.
	Unverified bool `json:"unverified,omitempty"`
	// ExtAuthz and ExtProc take the place of the host's.
	ExtAuthz *ExtAuthz `json:"extAuthz,omitempty"`
	ExtProc  *ExtProc  `json:"extProc,omitempty"`
	// Asked are the clusters that its filters ask, sorted by name.
	Asked []*Cluster `json:"asked,omitempty"`
	// Lua runs in place of the host's.
	Lua *Lua `json:"lua,omitempty"`
	// Headers are changed beside those of the host.
	Headers *Headers `json:"headers,omitempty"`
	// RateLimits are the descriptors that are sent for a request; they are for
	// routes with Forward.
	RateLimits []RateLimit `json:"rateLimits,omitempty"`
	// DomainLimits are the same in a named domain. A listener that does not
	// know the domain ignores them.
	DomainLimits map[string][]RateLimit `json:"domainLimits,omitempty"`
	// Before are routes for some of its requests, in the order in which they are tried: all come before it.
	Before []*Route `json:"before,omitempty"`
}

// SaysWho reports whether the route itself says whose requests pass, in the place of its host.
func (r *Route) SaysWho() bool { return r.Tokens != nil || r.BasicAuth != nil || r.AnyOf != nil }

// All are the route and those before it, in their order.
func (r *Route) All() []*Route { return append(slices.Clone(r.Before), r) }

// PathKind says how a path is compared.
type PathKind string

// The ways to compare a path.
const (
	PathPrefix  PathKind = "prefix"
	PathSegment PathKind = "segment"
	PathExact   PathKind = "exact"
	PathRegex   PathKind = "regex"
	// PathTemplate has variables, such as /users/{id}.
	PathTemplate PathKind = "template"
)

// Match selects requests. All conditions must hold.
type Match struct {
	PathKind PathKind `json:"pathKind"`
	Path     string   `json:"path"`
	// Methods is a list of alternatives; empty means all.
	Methods []string     `json:"methods,omitempty"`
	Headers []ValueMatch `json:"headers,omitempty"`
	Query   []ValueMatch `json:"query,omitempty"`
	// Cookies are exact.
	Cookies []ValueMatch `json:"cookies,omitempty"`
}

// ValueMatch is a condition on a header or a query parameter. At most one of
// Exact, Prefix and Regex is set; none means present.
type ValueMatch struct {
	Name   string `json:"name"`
	Exact  string `json:"exact,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	Regex  string `json:"regex,omitempty"`
	Invert bool   `json:"invert,omitempty"`
}

// Forward sends the request to one of the clusters.
type Forward struct {
	// Clusters are sorted by name; there is at least one.
	Clusters []WeightedCluster `json:"clusters"`
	Rewrite  Rewrite           `json:"rewrite,omitzero"`
	// Mirror gets a copy of requests; nil means that nobody does.
	Mirror *Mirror `json:"mirror,omitempty"`
	// Affinity keeps a client at one endpoint; nil means that nothing does.
	Affinity *Affinity `json:"affinity,omitempty"`
	// HostRewrite takes the place of Rewrite.Host.
	HostRewrite *HostRewrite `json:"hostRewrite,omitempty"`
	// Timeout bounds the whole exchange; 0 means no bound.
	Timeout time.Duration `json:"timeout,omitempty"`
	// IdleTimeout bounds the time without a byte; 0 means the listener's.
	IdleTimeout time.Duration `json:"idleTimeout,omitempty"`
	// GRPCTimeout is the most that grpc-timeout may ask for; 0 means that it is ignored.
	GRPCTimeout time.Duration `json:"grpcTimeout,omitempty"`
	// Retries replace the default policy; nil means the default.
	Retries *Retries `json:"retries,omitempty"`
	// NoUpgrade refuses websocket upgrades.
	NoUpgrade bool `json:"noUpgrade,omitempty"`
}

// Respond answers without an upstream.
type Respond struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
	// Headers are set on the answer.
	Headers []HeaderChange `json:"headers,omitempty"`
}

// Redirect sends the client to another URL. What is not given stays as it is in the request.
type Redirect struct {
	Status int    `json:"status"`
	Scheme string `json:"scheme,omitempty"`
	Host   string `json:"host,omitempty"`
	Port   int    `json:"port,omitempty"`
	// Path takes the place of the path, and of the query if it has one.
	Path string `json:"path,omitempty"`
	// Rewrite changes the path if Path is empty; its Host is empty.
	Rewrite    Rewrite `json:"rewrite,omitzero"`
	StripQuery bool    `json:"stripQuery,omitempty"`
}

// Rewrite changes the request before it is forwarded. At most one of Prefix,
// Regex and Template is set.
type Rewrite struct {
	Prefix       string `json:"prefix,omitempty"`
	Regex        string `json:"regex,omitempty"`
	Substitution string `json:"substitution,omitempty"`
	// Template is for a PathTemplate, whose variables it takes.
	Template string `json:"template,omitempty"`
	Host     string `json:"host,omitempty"`
}

// HostRewrite changes the Host, and says in a header what it was. Exactly one of Host, Header and Regex is set.
type HostRewrite struct {
	Host string `json:"host,omitempty"`
	// Header has the host.
	Header string `json:"header,omitempty"`
	// Regex matches whole paths, of which Substitution makes the host.
	Regex        string `json:"regex,omitempty"`
	Substitution string `json:"substitution,omitempty"`
}

// Retries is a retry policy.
type Retries struct {
	Attempts int `json:"attempts"`
	// On is a list of Envoy's conditions; empty means the default ones.
	On []string `json:"on,omitempty"`
	// Methods are those that are tried again; empty means all.
	Methods []string      `json:"methods,omitempty"`
	PerTry  time.Duration `json:"perTry,omitempty"`
	// Hedge begins the next attempt when PerTry is over, and lets the one before go on.
	Hedge bool `json:"hedge,omitempty"`
	// Backoff bounds the wait before the first retry. The bound doubles with
	// each one up to MaxBackoff.
	Backoff    time.Duration `json:"backoff"`
	MaxBackoff time.Duration `json:"maxBackoff"`
}

// WeightedCluster is a cluster and its share.
type WeightedCluster struct {
	*Cluster
	Share int `json:"share"`
	// SetCookie is added to its answers; empty means nothing.
	SetCookie string `json:"setCookie,omitempty"`
}

// Cluster is a set of endpoints with the same settings.
type Cluster struct {
	// Name is made of the names of its upstreams, in or out of rotation.
	Name string `json:"name"`
	// Upstreams are the names of its upstreams, in or out of rotation, sorted.
	Upstreams []string `json:"-"`
	// Discovered says that the endpoints are in an Assignment of the cluster's name, and
	// that Endpoints is empty.
	Discovered bool `json:"discovered,omitempty"`
	// Endpoints are sorted by name.
	Endpoints   []Endpoint   `json:"endpoints"`
	Strategy    string       `json:"strategy"`
	Protocol    string       `json:"protocol"`
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`
	// TLS says how connections are secured; nil means that they are in the clear.
	TLS         *UpstreamTLS `json:"tls,omitempty"`
	Connections Connections  `json:"connections"`
	Limits      Limits       `json:"limits"`
	// Outlier takes endpoints that fail out for a while; nil means never.
	Outlier *Outlier `json:"outlier,omitempty"`
	// PanicThreshold is in percent: when less of the endpoints are healthy, all
	// of them get requests. 0 means that an unhealthy one never does.
	PanicThreshold int `json:"panicThreshold,omitempty"`
}

// Connections says how connections to endpoints are made and kept.
type Connections struct {
	ConnectTimeout time.Duration `json:"connectTimeout"`
	// IdleTimeout is how long one without a request is kept; 0 means for ever.
	IdleTimeout time.Duration `json:"idleTimeout,omitempty"`
	// Keepalive is the time of silence after which one is probed, and the time
	// between probes; 0 means that it is not.
	Keepalive time.Duration `json:"keepalive,omitempty"`
}

// Limits bound what a cluster may have at a time.
type Limits struct {
	Connections int `json:"connections"`
	// Pending are the requests that wait for a connection, Requests all.
	Pending  int `json:"pending"`
	Requests int `json:"requests"`
	Retries  int `json:"retries"`
	// RetryBudget takes the place of Retries, if it is given.
	RetryBudget RetryBudget `json:"retryBudget,omitzero"`
}

// RetryBudget bounds retries by a share of the requests at a time, but not below a number. Zero means none.
type RetryBudget struct {
	Percent int `json:"percent"`
	Min     int `json:"min"`
}

// Outlier takes an endpoint out for Ejection, longer each time, after Failures
// in a row to connect or to answer.
type Outlier struct {
	Failures int           `json:"failures"`
	Ejection time.Duration `json:"ejection"`
}

// Endpoint is one address.
type Endpoint struct {
	// Address is an IP address, or a DNS name if DNS is set.
	Address string `json:"address"`
	DNS     bool   `json:"dns,omitempty"`
	Port    int    `json:"port"`
	// Weight is at least 1.
	Weight int `json:"weight"`
	// Upstream is the name of the upstream.
	Upstream string `json:"-"`
}

// Assignment is the endpoints of a discovered cluster. It changes by itself: neither the
// cluster nor a route is different then.
type Assignment struct {
	// Name is the cluster's, Upstream that of its one upstream.
	Name     string `json:"name"`
	Upstream string `json:"-"`
	// Endpoints are sorted by zone, address and port; none means that nobody is there.
	Endpoints []AssignedEndpoint `json:"endpoints"`
}

// AssignedEndpoint is one address of an assignment.
type AssignedEndpoint struct {
	// Address is an IP address.
	Address string `json:"address"`
	Port    int    `json:"port"`
	// Draining says that it gets no new requests.
	Draining bool `json:"draining,omitempty"`
	// Zone is where it is; empty means that this is not known.
	Zone string `json:"zone,omitempty"`
}

// HealthCheck is an active HTTP health check.
type HealthCheck struct {
	Path               string        `json:"path"`
	Host               string        `json:"host,omitempty"`
	Interval           time.Duration `json:"interval"`
	Timeout            time.Duration `json:"timeout"`
	UnhealthyThreshold int           `json:"unhealthyThreshold"`
	HealthyThreshold   int           `json:"healthyThreshold"`
}
