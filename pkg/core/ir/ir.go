package ir

import (
	"net/netip"
	"slices"
	"time"
)

// Gateway is everything that one proxy must do.
type Gateway struct {
	// Name is the proxy's name, which is the node id of its Envoys.
	Name     string   `json:"name"`
	Listener Listener `json:"listener"`
	// HTTPS is the HTTPS listener; nil while no host has a certificate.
	HTTPS *Listener `json:"https,omitempty"`
	// L4 are the listeners that are not HTTP, sorted by address.
	L4 []*L4Listener `json:"l4,omitempty"`
	// More are listeners for HTTP and HTTPS at more ports.
	More []Listener `json:"more,omitempty"`
	// HTTP3 is the listener of HTTP/3; nil if the proxy has none, or no host has a certificate.
	HTTP3 *Listener `json:"http3,omitempty"`
	// Hosts are sorted by name.
	Hosts []*Host `json:"hosts"`
	// Assignments are the endpoints of the discovered clusters that the hosts name, sorted by name.
	Assignments []*Assignment `json:"assignments,omitempty"`
}

// Listener is where a proxy accepts requests.
type Listener struct {
	Address string `json:"address"`
	Port    int    `json:"port"`
	// Named means that routes see at which port a request came. More means that the port is not the proxy's only one for
	// HTTP or HTTPS, but an additional one.
	Named bool `json:"named,omitempty"`
	More  bool `json:"more,omitempty"`
	// TLS makes the listener an HTTPS listener; nil means plain HTTP.
	TLS *TLS `json:"tls,omitempty"`
	// HTTP3 makes the HTTPS listener one of HTTP/3: its port is one of UDP, and TLS is in QUIC.
	HTTP3 bool `json:"http3,omitempty"`
	// AltSvc is the UDP port that responses name as the one of HTTP/3 (RFC 7838); 0 names none.
	AltSvc int `json:"altSvc,omitempty"`
	// TrustedHops is the position of the client's address in X-Forwarded-For, counted from the right; 0 means that the
	// address of the connection is the client's.
	TrustedHops int `json:"trustedHops,omitempty"`
	// EscapedSlashes sets what happens to escaped slashes in a path: "keep" keeps them, "reject" refuses the request.
	// Empty redirects the client to the unescaped path.
	EscapedSlashes string `json:"escapedSlashes,omitempty"`
	// UnderscoreHeaders sets what happens to headers with an underscore in their name: "drop" removes them, "allow"
	// forwards them. Empty refuses the request.
	UnderscoreHeaders string `json:"underscoreHeaders,omitempty"`
	// AccessLog writes a JSON line for every request to Envoy's stdout.
	AccessLog bool `json:"accessLog,omitempty"`
	// AccessLogs are logs of the requests, in addition to AccessLog.
	AccessLogs []AccessLog `json:"accessLogs,omitempty"`
	// Lean costs less for each request: fewer fields in AccessLog, fewer statistics, no headers about upstreams.
	Lean bool `json:"lean,omitempty"`
	// Metrics counts requests by service; nil means not at all.
	Metrics *Metrics `json:"metrics,omitempty"`
	// Tracing sends spans of requests to a collector; nil means that there are none.
	Tracing *Tracing `json:"tracing,omitempty"`
	// RefusalPage is the page for browsers whose requests are refused. {title}, {status} and {request_id} are replaced.
	// Empty means the built-in page.
	RefusalPage string `json:"refusalPage,omitempty"`
	// ProxyProtocol sets who says whose connection it is; nil means that connections are those of clients.
	ProxyProtocol *ProxyProtocol `json:"proxyProtocol,omitempty"`
	// Clients bounds what connections may cost; nil means the defaults.
	Clients *Clients `json:"clients,omitempty"`
	// Databases are those of the Envoy that gets the listener. What is compiled has none, since an Envoy that has no file
	// would end (ADR 0120).
	Databases Databases `json:"databases,omitzero"`
	// LocationHeaders tell backends where clients are.
	LocationHeaders LocationHeaders `json:"locationHeaders,omitzero"`
	// RateLimitEngine is the address of the rate-limit engine; nil means that there is none.
	RateLimitEngine *RateLimitEngine `json:"rateLimitEngine,omitempty"`
	// RateLimit sets how the rate-limit engine is asked in the proxy's own domain; nil means that the proxy has none.
	RateLimit *RateLimitService `json:"rateLimit,omitempty"`
	// DomainLimits are the named domains that routes use, by the name that the routes use.
	DomainLimits map[string]*RateLimitService `json:"domainLimits,omitempty"`
	// Keys are the API keys of all sets that routes require. They are set on the plain HTTP listener and delivered
	// separately from it.
	Keys []APIKey `json:"keys,omitempty"`
	// AnyKeys are the keys of the sets that are one of several credentials.
	AnyKeys []APIKey `json:"anyKeys,omitempty"`
	// Consumers are all consumers if a route looks them up, set and delivered as Keys are.
	Consumers []Consumer `json:"consumers,omitempty"`
	// AddressLists are the lists of addresses that filters of hosts and routes compare, delivered as Keys are.
	AddressLists []AddressList `json:"addressLists,omitempty"`
}

// Clients bounds what the connections of clients to a listener may cost. 0 means the default of translate, which is
// no limit for MaxConnections, MaxRequests, MaxAge, Keepalive and SlowReaderTimeout.
type Clients struct {
	MaxConnections    int           `json:"maxConnections,omitempty"`
	NewPerClient      *NewPerClient `json:"newPerClient,omitempty"`
	MaxRequests       int           `json:"maxRequests,omitempty"`
	MaxAge            time.Duration `json:"maxAge,omitempty"`
	IdleTimeout       time.Duration `json:"idleTimeout,omitempty"`
	DrainTimeout      time.Duration `json:"drainTimeout,omitempty"`
	Keepalive         time.Duration `json:"keepalive,omitempty"`
	HeadersTimeout    time.Duration `json:"headersTimeout,omitempty"`
	RequestTimeout    time.Duration `json:"requestTimeout,omitempty"`
	StreamIdleTimeout time.Duration `json:"streamIdleTimeout,omitempty"`
	SlowReaderTimeout time.Duration `json:"slowReaderTimeout,omitempty"`
	HeadersKiB        int           `json:"headersKiB,omitempty"`
	Headers           int           `json:"headers,omitempty"`
	MaxStreams        int           `json:"maxStreams,omitempty"`
}

// NewPerClient limits the new connections of an address. The rate-limit engine has the limit.
type NewPerClient struct {
	// Domain and Entry say which limit it is.
	Domain string         `json:"domain"`
	Entry  RateLimitEntry `json:"entry"`
}

// ProxyProtocol means that each connection begins with the PROXY protocol.
type ProxyProtocol struct {
	// From are the addresses that may connect; empty means that none may.
	From []netip.Prefix `json:"from"`
	// TLVs are what access logs may name of it.
	TLVs []TLV `json:"tlvs,omitempty"`
}

// TLV is the name of a type of what a load balancer adds to the PROXY protocol.
type TLV struct {
	Type int    `json:"type"`
	Name string `json:"name"`
}

// Host is a host name and the routes under it.
type Host struct {
	// Name is the service's name, unique within the gateway.
	Name string `json:"name"`
	// Domain is an exact host in lower case, "*.suffix" or "*".
	Domain string `json:"domain"`
	// Certificates are what the HTTPS listener serves for the host.
	Certificates []Certificate `json:"certificates,omitempty"`
	// ClientCA is the secret with the authorities that verify clients; empty means that clients need no certificate. A
	// host with a ClientCA is never on plain HTTP.
	ClientCA string `json:"clientCA,omitempty"`
	// HSTS is the value of Strict-Transport-Security, which tells browsers to avoid plain HTTP; empty sends no header.
	HSTS string `json:"hsts,omitempty"`
	// Reserved are routes that a login answers. They come before Routes.
	Reserved []*Route `json:"reserved,omitempty"`
	// First are routes that come before all others. They differ from proxy to proxy.
	First []*Route `json:"first,omitempty"`
	// Identity are the headers with which the filters of the host and its routes say who a client is, in lower case and
	// sorted. Clients may set them on none of its routes.
	Identity []string `json:"identity,omitempty"`
	// Counted means that the proxy has metrics of its services.
	Counted bool `json:"counted,omitempty"`
	// Asked are the clusters that the host's filters ask, sorted by name.
	Asked []*Cluster `json:"asked,omitempty"`
	// Filters are what the filters of pkg/core/filter do. They apply to routes without one of their own.
	Filters Filters `json:"-"`
	// Routes are in the order in which they are tried.
	Routes []*Route `json:"routes"`
	// Last are routes that come after all others.
	Last []*Route `json:"last,omitempty"`
}

// Route sets what to do with the requests that match.
type Route struct {
	// Name is the route's name, unique within the host.
	Name  string `json:"name"`
	Match Match  `json:"match"`
	// Exactly one of Forward, Respond, Redirect and Preflight is set.
	Forward  *Forward  `json:"forward,omitempty"`
	Respond  *Respond  `json:"respond,omitempty"`
	Redirect *Redirect `json:"redirect,omitempty"`
	// Preflight means that a filter answers every request of the route.
	Preflight bool `json:"preflight,omitempty"`
	// Public means that the route requires no login and no other credential of the host, and asks none of the host's
	// authorization servers.
	Public bool `json:"public,omitempty"`
	// Unruled means that the host's rules for access do not apply.
	Unruled bool `json:"unruled,omitempty"`
	// Unverified means that the route requires no client certificate.
	Unverified bool `json:"unverified,omitempty"`
	// Bare means that no filter of the host applies.
	Bare bool `json:"bare,omitempty"`
	// Asked are the clusters that the route's filters ask, sorted by name.
	Asked []*Cluster `json:"asked,omitempty"`
	// RateLimits are the descriptors that are sent for a request, on routes with Forward.
	RateLimits []RateLimit `json:"rateLimits,omitempty"`
	// DomainLimits are descriptors for named domains. A listener ignores a domain that it does not know.
	DomainLimits map[string][]RateLimit `json:"domainLimits,omitempty"`
	// Filters replace the host's, one by one.
	Filters Filters `json:"-"`
	// Before are routes for some of the route's requests. They come before it, in the order in which they are tried.
	Before []*Route `json:"before,omitempty"`
}

// Answering returns a route that answers the requests of r. The same filters apply to it.
func (r *Route) Answering(with *Respond) *Route {
	answer := *r
	answer.Before, answer.Forward, answer.Redirect = nil, nil, nil
	answer.Respond = with
	return &answer
}

// All returns the route after the routes of Before.
func (r *Route) All() []*Route { return append(slices.Clone(r.Before), r) }

// PathKind is a way to compare a path.
type PathKind string

// The ways to compare a path.
const (
	PathPrefix  PathKind = "prefix"
	PathSegment PathKind = "segment"
	PathExact   PathKind = "exact"
	PathRegex   PathKind = "regex"
	// PathTemplate matches a path with variables, such as /users/{id}.
	PathTemplate PathKind = "template"
)

// Match selects requests. All conditions must match.
type Match struct {
	PathKind PathKind `json:"pathKind"`
	Path     string   `json:"path"`
	// Methods is a list of alternatives; empty means all.
	Methods []string     `json:"methods,omitempty"`
	Headers []ValueMatch `json:"headers,omitempty"`
	Query   []ValueMatch `json:"query,omitempty"`
	// Ports is a list of alternatives; empty means all.
	Ports []int `json:"ports,omitempty"`
	// Cookies are matched exactly.
	Cookies []ValueMatch `json:"cookies,omitempty"`
}

// ValueMatch is a condition on a header or a query parameter. At most one of Exact, Prefix, Regex and Above is set. If
// none is set, the value must be present.
type ValueMatch struct {
	Name   string `json:"name"`
	Exact  string `json:"exact,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	Regex  string `json:"regex,omitempty"`
	Invert bool   `json:"invert,omitempty"`
	// Above matches a header with a larger number.
	Above int `json:"above,omitempty"`
}

// Forward sends the request to one of the clusters.
type Forward struct {
	// Clusters are sorted by name; there is at least one.
	Clusters []WeightedCluster `json:"clusters"`
	Rewrite  Rewrite           `json:"rewrite,omitzero"`
	// HostRewrite replaces Rewrite.Host.
	HostRewrite *HostRewrite `json:"hostRewrite,omitempty"`
	// Timeout bounds the whole exchange; 0 means no bound.
	Timeout time.Duration `json:"timeout,omitempty"`
	// IdleTimeout bounds the time without a byte; 0 means the listener's timeout.
	IdleTimeout time.Duration `json:"idleTimeout,omitempty"`
	// GRPCTimeout is the longest timeout that a grpc-timeout header may set; 0 means that the header is ignored.
	GRPCTimeout time.Duration `json:"grpcTimeout,omitempty"`
	// StreamTimeout bounds a request and its response, streams and websockets included; 0 means no bound.
	StreamTimeout time.Duration `json:"streamTimeout,omitempty"`
	// Retries replace those of the clusters; nil means that the clusters have theirs.
	Retries *Retries `json:"retries,omitempty"`
	// NoUpgrade refuses websocket upgrades.
	NoUpgrade bool `json:"noUpgrade,omitempty"`
	// Filters are what filters do with the requests. A route that answers itself does none of it, even if it is a copy.
	Filters Filters `json:"-"`
}

// Respond answers without an upstream.
type Respond struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
	// Headers are set on the response.
	Headers []HeaderChange `json:"headers,omitempty"`
}

// Redirect sends the client to another URL. Empty fields keep the request's own values.
type Redirect struct {
	Status int    `json:"status"`
	Scheme string `json:"scheme,omitempty"`
	Host   string `json:"host,omitempty"`
	Port   int    `json:"port,omitempty"`
	// Path replaces the path, and also the query if Path has one.
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
	// Template makes the path from the variables of a PathTemplate.
	Template string `json:"template,omitempty"`
	Host     string `json:"host,omitempty"`
}

// HostRewrite replaces the Host header and adds the original to X-Forwarded-Host. Exactly one of Host, Header and Regex
// is set.
type HostRewrite struct {
	Host string `json:"host,omitempty"`
	// Header is the name of the header with the new host.
	Header string `json:"header,omitempty"`
	// Regex matches whole paths. Substitution makes the host from the match.
	Regex        string `json:"regex,omitempty"`
	Substitution string `json:"substitution,omitempty"`
}

// Retries is a retry policy.
type Retries struct {
	Attempts int `json:"attempts"`
	// On lists Envoy's retry conditions; empty means those of a cluster. Idempotent chooses those of RetriesIdempotent.
	On         []string `json:"on,omitempty"`
	Idempotent bool     `json:"idempotent,omitempty"`
	// Methods are the methods to retry; empty means all.
	Methods []string      `json:"methods,omitempty"`
	PerTry  time.Duration `json:"perTry,omitempty"`
	// Hedge starts the next attempt after PerTry and keeps the previous one running.
	Hedge bool `json:"hedge,omitempty"`
	// Backoff bounds the wait before the first retry. The bound doubles with each retry, up to MaxBackoff.
	Backoff    time.Duration `json:"backoff"`
	MaxBackoff time.Duration `json:"maxBackoff"`
}

// WeightedCluster is a cluster and its share of the requests.
type WeightedCluster struct {
	*Cluster
	Share int `json:"share"`
	// SetCookie is added to the cluster's responses; empty adds nothing.
	SetCookie string `json:"setCookie,omitempty"`
	// Request and Response are changes of the headers of its requests and responses: first those that remove.
	Request  []HeaderChange `json:"request,omitempty"`
	Response []HeaderChange `json:"response,omitempty"`
}

// Cluster is a set of endpoints with equal settings.
type Cluster struct {
	// Name is made from the names of the upstreams, in or out of rotation.
	Name string `json:"name"`
	// Upstreams are the names of the upstreams, in or out of rotation, sorted.
	Upstreams []string `json:"-"`
	// Discovered means that the endpoints are in the Assignment with the cluster's name, and that Endpoints is empty.
	Discovered bool `json:"discovered,omitempty"`
	// Endpoints are sorted by priority, zone and name.
	Endpoints   []Endpoint   `json:"endpoints"`
	Strategy    string       `json:"strategy"`
	Protocol    string       `json:"protocol"`
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`
	// TLS sets how connections are secured; nil means plaintext.
	TLS         *UpstreamTLS `json:"tls,omitempty"`
	Connections Connections  `json:"connections"`
	Limits      Limits       `json:"limits"`
	// Outlier ejects endpoints that fail, for a while; nil means never.
	Outlier *Outlier `json:"outlier,omitempty"`
	// Call is set in a cluster for the calls of a filter, whose name is that of the upstream's own cluster, a slash and a
	// hash of Call. No upstream's name has a slash. nil means that requests and answers stay as they are.
	Call *Call `json:"call,omitempty"`
	// Retries are the cluster's own. Routes with other retries have a cluster of their own for the same upstreams, whose
	// name ends in a slash and the value of Retries.
	Retries ClusterRetries `json:"retries,omitempty"`
	// Credential is a header of all requests; nil means none.
	Credential *Credential `json:"credential,omitempty"`
	// MaxDuration bounds a request and its response; 0 means no bound of the cluster's.
	MaxDuration time.Duration `json:"maxDuration,omitempty"`
	// Streams means that requests last as long as their connections.
	Streams bool `json:"streams,omitempty"`
	// PanicThreshold is a percentage. When a smaller share of the endpoints is healthy, all of them receive requests. 0
	// means that an unhealthy endpoint never receives one.
	PanicThreshold int `json:"panicThreshold,omitempty"`
	// Priorities means that the endpoints have different priorities.
	Priorities bool `json:"priorities,omitempty"`
	// ZoneMin is the number of healthy endpoints in the Envoy's zone from which on they receive all requests; 0 means that
	// zones do not matter.
	ZoneMin int `json:"zoneMin,omitempty"`
	// SlowStart is how long the share of an endpoint grows after it became healthy; 0 means not at all.
	SlowStart time.Duration `json:"slowStart,omitempty"`
	// DNS sets how names are resolved.
	DNS DNS `json:"dns,omitzero"`
	// ProxyProtocol is the version of the PROXY protocol with which connections begin, v1 or v2; empty means none.
	ProxyProtocol string `json:"proxyProtocol,omitempty"`
}

// DNS sets how names are resolved. The zero value means all addresses, IPv4 rather than IPv6, and a look-up each 5 s.
type DNS struct {
	// Logical means the first address only. The cluster has one endpoint then.
	Logical bool `json:"logical,omitempty"`
	// Family is v6_preferred, v4_only, v6_only or all; empty means v4_preferred.
	Family string `json:"family,omitempty"`
	// TTL means that names are resolved again when their records expire.
	TTL bool `json:"ttl,omitempty"`
	// Refresh is the time between look-ups; 0 means 5 s.
	Refresh time.Duration `json:"refresh,omitempty"`
}

// ClusterRetries are the retries that a cluster has for all its requests, in place of those of a route.
type ClusterRetries string

const (
	// RetriesDefault never repeats a request that may have reached an endpoint.
	RetriesDefault ClusterRetries = ""
	// RetriesIdempotent also repeats a request that may have reached an endpoint.
	RetriesIdempotent ClusterRetries = "idempotent"
	// RetriesOfRoute leaves retries to the route.
	RetriesOfRoute ClusterRetries = "route"
)

// Credential is a header with a key.
type Credential struct {
	Header string `json:"header"`
	// Secret is the name of the secret that has the value.
	Secret string `json:"secret"`
	Value  string `json:"-"`
}

// Call changes the calls of a filter and their answers.
type Call struct {
	// Headers are the only headers of a request that the server receives, sorted and in lower case, besides those that
	// frame it; nil means all.
	Headers []string `json:"headers,omitempty"`
	// OK turns every answer from 201 to 299 into 200.
	OK bool `json:"ok,omitempty"`
}

// Connections sets how connections to endpoints are made and kept.
type Connections struct {
	ConnectTimeout time.Duration `json:"connectTimeout"`
	// IdleTimeout is how long a connection without a request is kept; 0 means forever.
	IdleTimeout time.Duration `json:"idleTimeout,omitempty"`
	// Keepalive is the idle time before a connection is probed, and the time between probes; 0 means no probes.
	Keepalive time.Duration `json:"keepalive,omitempty"`
}

// Limits bounds what a cluster may have at a time.
type Limits struct {
	Connections int `json:"connections"`
	// Pending bounds requests that wait for a connection, Requests all requests.
	Pending  int `json:"pending"`
	Requests int `json:"requests"`
	Retries  int `json:"retries"`
	// RetryBudget replaces Retries if it is set.
	RetryBudget RetryBudget `json:"retryBudget,omitzero"`
}

// RetryBudget allows retries up to a percentage of the current requests, but at least Min. The zero value means no
// budget.
type RetryBudget struct {
	Percent int `json:"percent"`
	Min     int `json:"min"`
}

// Outlier ejects an endpoint after Failures consecutive failures to connect or to answer. The ejection lasts Ejection,
// and longer each time.
type Outlier struct {
	Failures int           `json:"failures"`
	Ejection time.Duration `json:"ejection"`
}

// Endpoint is one address.
type Endpoint struct {
	// Address is an IP address, or a DNS name if DNS is set. Of a Unix socket, it is the path after "unix:", and Port is 0.
	Address string `json:"address"`
	DNS     bool   `json:"dns,omitempty"`
	Port    int    `json:"port"`
	// Socket is the path of a Unix socket; empty means that it is none.
	Socket string `json:"socket,omitempty"`
	// Weight is at least 1.
	Weight int `json:"weight"`
	// Priority is 0 for the endpoints that receive requests first. Every number below it is that of another endpoint.
	Priority int `json:"priority,omitempty"`
	// Zone is the zone of the endpoint; empty means unknown.
	Zone string `json:"zone,omitempty"`
	// Upstream is the name of the upstream.
	Upstream string `json:"-"`
}

// Assignment holds the endpoints of a discovered cluster. It can change without a change of the cluster or a route.
type Assignment struct {
	// Name is the cluster's name.
	Name string `json:"name"`
	// Upstreams are the names of the cluster's upstreams, in or out of rotation.
	Upstreams []string `json:"-"`
	// Endpoints are sorted by priority, zone, address and port; empty means that there are none.
	Endpoints []AssignedEndpoint `json:"endpoints"`
}

// AssignedEndpoint is one address of an assignment.
type AssignedEndpoint struct {
	// Address is an IP address.
	Address string `json:"address"`
	Port    int    `json:"port"`
	// Draining means that the endpoint receives no new requests.
	Draining bool `json:"draining,omitempty"`
	// Zone is the zone of the endpoint; empty means unknown.
	Zone string `json:"zone,omitempty"`
	// Priority is 0 for the endpoints that receive requests first. Every number below it is that of another endpoint.
	Priority int `json:"priority,omitempty"`
	// Weight is its weight among the endpoints of several upstreams; 0 if the cluster has one upstream, whose endpoints are
	// all alike.
	Weight int `json:"weight,omitempty"`
	// Upstream is the name of the upstream, the first by name if it is an endpoint of several.
	Upstream string `json:"-"`
}

// HealthCheck is an active health check: an HTTP request, or a TCP connection if TCP is set.
type HealthCheck struct {
	TCP                bool          `json:"tcp,omitempty"`
	Path               string        `json:"path,omitempty"`
	Host               string        `json:"host,omitempty"`
	Interval           time.Duration `json:"interval"`
	Timeout            time.Duration `json:"timeout"`
	UnhealthyThreshold int           `json:"unhealthyThreshold"`
	HealthyThreshold   int           `json:"healthyThreshold"`
}
