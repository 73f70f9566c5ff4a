package v1

// Route sends the requests that match its conditions to Services.
//
// +kubebuilder:validation:XValidation:rule="!has(self.conditions) || self.conditions.filter(c, has(c.prefix) || has(c.segment) || has(c.exact) || has(c.template) || has(c.regex)).size() <= 1",message="all conditions must hold, so only one of them can have a path; write a route for each path",fieldPath=.conditions
// +kubebuilder:validation:XValidation:rule="!has(self.conditions) || self.conditions.filter(c, has(c.methods)).size() <= 1",message="all conditions must hold, so only one of them can have methods; list all methods there",fieldPath=.conditions
// +kubebuilder:validation:XValidation:rule="!has(self.rewrite) || !has(self.rewrite.prefix) || !has(self.conditions) || !self.conditions.exists(c, has(c.regex))",message="there is no prefix to replace where a condition has a regex; use rewrite.regex and rewrite.substitution",fieldPath=.rewrite
// +kubebuilder:validation:XValidation:rule="!has(self.rewrite) || !has(self.rewrite.prefix) || !has(self.conditions) || !self.conditions.exists(c, has(c.template))",message="there is no prefix to replace where a condition has a template; use rewrite.template",fieldPath=.rewrite
// +kubebuilder:validation:XValidation:rule="!has(self.rewrite) || !has(self.rewrite.template) || has(self.conditions) && self.conditions.exists(c, has(c.template))",message="requires a condition with a template, whose variables it takes",fieldPath=.rewrite.template
type Route struct {
	// The name of the route, unique within the host. Status, metrics and explain show it.
	// Without it, the gateway makes a name from the conditions.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*|[.]{3,})$`
	Name string `json:"name,omitempty"`
	// The conditions on a request. All of them must match, and only one may have a path. Without a
	// path, the route matches all paths.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Conditions []Condition `json:"conditions,omitempty"`
	// Comes before all else that orders routes: of the routes that match a request, one with the highest number takes it.
	// Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000000
	Priority int32 `json:"priority,omitempty"`
	// The Services that share the requests by weight. Without a Service, the route answers 503.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Services []Backend `json:"services,omitempty"`
	// Filters for the route: names of RouteFilters in the host's namespace. Their order has no
	// effect.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Filters []FilterReference `json:"filters,omitempty"`
	// The path and host that the Service receives instead of the request's own.
	// +optional
	Rewrite *Rewrite `json:"rewrite,omitempty"`
	// Time limits of a request.
	// +optional
	Timeouts *Timeouts `json:"timeouts,omitempty"`
	// When a request is retried. Without it: at most twice, if the request cannot have reached the
	// Service.
	// +optional
	Retries *Retries `json:"retries,omitempty"`
	// Whether a client may upgrade to a WebSocket. Default: true.
	// +optional
	Websocket *bool `json:"websocket,omitempty"`
	// Exempts the route from the login of its host and of a GlobalConfig of type globalconfig_oauth.
	// Default: false.
	// +optional
	Public bool `json:"public,omitempty"`
	// Exempts the route from filters of its host.
	// +optional
	Exempt *Exemption `json:"exempt,omitempty"`
	// Words that group routes. They do not change how requests are handled.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Tags []Tag `json:"tags,omitempty"`
}

// Exemption names filters that do not apply to a route. A filter of the proxy has its exemptions in its GlobalConfig.
type Exemption struct {
	// Filters of the host: names of RouteFilters in its spec.filters. Another name has no effect.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Host []ObjectName `json:"host" model:"service"`
}

// Tag is a word that groups objects.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:/-]+$`
type Tag string

// Condition is a condition on a request. All of its fields must match.
//
// +kubebuilder:validation:XValidation:rule="[has(self.prefix), has(self.segment), has(self.exact), has(self.template), has(self.regex)].filter(x, x).size() <= 1",message="takes only one of prefix, segment, exact, template and regex"
type Condition struct {
	// A prefix of the path: /shop also matches /shopping.
	// +optional
	Prefix *URLPath `json:"prefix,omitempty"`
	// A prefix of the path in whole segments: /shop matches /shop and /shop/cart, but not /shopping.
	// +optional
	Segment *URLPath `json:"segment,omitempty"`
	// The whole path.
	// +optional
	Exact *URLPath `json:"exact,omitempty"`
	// The whole path with variables, such as /users/{id} or /files/{rest=**}: {id} and * match one segment, {rest=**} and
	// ** match the rest of the path. At most 5 variables may have a name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must start with /"
	Template *string `json:"template,omitempty"`
	// A regular expression (RE2) for the whole path, such as /shop/[0-9]+.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must start with /"
	Regex *string `json:"regex,omitempty"`
	// HTTP methods, such as GET. The request must have one of them. Empty means all methods.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Methods []Method `json:"methods,omitempty"`
	// Conditions on headers. All must match.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Headers []HeaderMatch `json:"headers,omitempty"`
	// Conditions on query parameters. All must match.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Query []QueryMatch `json:"query,omitempty"`
	// Ports of the proxy. The request must come at one of them; behind a load balancer, that is the port to which it
	// connects. Empty means all ports.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Ports []PortNumber `json:"ports,omitempty"`
}

// PortNumber is the number of a port.
//
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=65535
type PortNumber int32

// URLPath is an absolute path without a query or fragment.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=4096
// +kubebuilder:validation:Pattern=`^[^?#\s]*$`
// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must start with /"
type URLPath string

// Method is an HTTP method.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="self.matches(\"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$\")",message="must be an HTTP method such as GET"
type Method string

// HeaderMatch is a condition on a header. Without exact, prefix or regex, the header must be present.
//
// +kubebuilder:validation:XValidation:rule="[has(self.exact), has(self.prefix), has(self.regex)].filter(x, x).size() <= 1",message="takes only one of exact, prefix and regex"
type HeaderMatch struct {
	// The name of the header, case-insensitive, or one of :authority, :path, :method and :scheme.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^(:authority|:path|:method|:scheme|[A-Za-z0-9!#$%&'*+.^_`|~-]+)$"
	Name string `json:"name"`
	// The whole value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Exact *string `json:"exact,omitempty"`
	// A prefix of the value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Prefix *string `json:"prefix,omitempty"`
	// A regular expression (RE2) for the whole value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Regex *string `json:"regex,omitempty"`
	// Inverts the condition. Default: false.
	// +optional
	Invert bool `json:"invert,omitempty"`
}

// QueryMatch is a condition on a query parameter. Without exact, prefix or regex, the parameter must be present.
//
// +kubebuilder:validation:XValidation:rule="[has(self.exact), has(self.prefix), has(self.regex)].filter(x, x).size() <= 1",message="takes only one of exact, prefix and regex"
type QueryMatch struct {
	// The name of the parameter.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"
	Name string `json:"name"`
	// The whole value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Exact *string `json:"exact,omitempty"`
	// A prefix of the value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Prefix *string `json:"prefix,omitempty"`
	// A regular expression (RE2) for the whole value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Regex *string `json:"regex,omitempty"`
}

// Rewrite is the path and host that the Service receives instead of the request's own.
//
// +kubebuilder:validation:XValidation:rule="[has(self.prefix), has(self.regex), has(self.template)].filter(x, x).size() <= 1",message="takes only one of prefix, regex and template"
// +kubebuilder:validation:XValidation:rule="!has(self.substitution) || has(self.regex)",message="requires regex",fieldPath=.substitution
type Rewrite struct {
	// Replaces the part of the path that the route's condition matched.
	// +optional
	Prefix *URLPath `json:"prefix,omitempty"`
	// A regular expression (RE2). What it matches in the path is replaced with substitution.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Regex string `json:"regex,omitempty"`
	// The replacement; \1 is the first group of regex.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Substitution string `json:"substitution,omitempty"`
	// The new path, with {id} for a variable of the condition's template.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must start with /"
	Template string `json:"template,omitempty"`
	// The new Host header.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Host string `json:"host,omitempty"`
}

// Timeouts limit one request.
type Timeouts struct {
	// The limit of the whole exchange, such as 15s; at most 24h. Default: no limit.
	// +optional
	Request Duration `json:"request,omitempty"`
	// The limit of the time without a byte, at most 24h. Default: 300s.
	// +optional
	Idle Duration `json:"idle,omitempty"`
	// The maximum of a client's grpc-timeout, which then limits the exchange. Default: grpc-timeout is ignored.
	// +optional
	GRPC Duration `json:"grpc,omitempty"`
	// The limit of a request and its response, streams and WebSockets included, at most 24h. Default: no limit.
	// +optional
	Stream Duration `json:"stream,omitempty"`
}

// Duration is a time with a unit, such as 1.5s, 200ms or 1h30m.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('24h')",message="must be a time with a unit, such as 1.5s, 200ms or 1h30m, and at most 24h"
type Duration string

// Retries say when a request is retried.
type Retries struct {
	// The maximum number of retries. 0 turns retries off.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Attempts int32 `json:"attempts"`
	// What is retried (Envoy's retry_on). Empty means requests that cannot have reached the Service and,
	// if methods contains only idempotent methods, requests that were reset.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	RetryOn []RetryCondition `json:"retryOn,omitempty" model:"on"`
	// Only requests with one of these methods are retried. Empty means all methods.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Methods []Method `json:"methods,omitempty"`
	// The limit of each attempt, at most 24h. Default: no limit of its own.
	// +optional
	PerTry Duration `json:"perTry,omitempty" model:"per_try"`
	// An attempt continues after perTry while the next one runs; the first answer wins. Requires perTry, and a route whose methods are
	// all idempotent.
	// +optional
	Hedge bool `json:"hedge,omitempty"`
	// The longest wait before the first retry, 1ms to 1h. It doubles with each retry; each wait is random
	// below it. Default: 5ms.
	// +optional
	Backoff Duration `json:"backoff,omitempty"`
	// The longest wait before any retry, 1ms to 1h. Default: 20 times backoff.
	// +optional
	MaxBackoff Duration `json:"maxBackoff,omitempty" model:"max_backoff"`
}

// RetryCondition is one of Envoy's conditions for a retry.
//
// +kubebuilder:validation:Enum="5xx";gateway-error;reset;reset-before-request;connect-failure;envoy-ratelimited;retriable-4xx;refused-stream;http3-post-connect-failure
type RetryCondition string
