package model

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Route sends the requests of a service that match it to its upstreams.
// +example={service_name: shop, route_name: root, route_prefix: /}
type Route struct {
	ID      int64  `json:"route_id"`
	Service string `json:"service_name"`
	Name    string `json:"route_name" form:"Route_Name,required"`
	// What the path is compared with. /shop also matches /shopping, unless match changes that.
	// +pattern="^/"
	Prefix string `json:"route_prefix" form:"Route_prefix,required"`
	// A JSON object, or a string that contains one.
	Config   RouteConfig `json:"route_config" form:"Route_config"`
	Tags     Tags        `json:"tags" form:"tags"`
	CreateTS Time        `json:"create_ts"`
	UpdateTS Time        `json:"update_ts"`
}

// RouteConfig is the optional JSON of Route_config. The zero value is a plain
// string prefix without conditions.
type RouteConfig struct {
	// Match says how Route_prefix is compared with the path: "prefix" (the
	// default, a string prefix: /shop also matches /shopping), "segment"
	// (whole path segments), "exact", "template" (a PathTemplate), or "regex"
	// (RE2, on the whole path).
	Match string `json:"match,omitempty"`
	// Methods limits the route to these HTTP methods; empty means all.
	Methods []string `json:"methods,omitempty"`
	// Headers and Query are conditions that must all hold.
	Headers []ValueMatch `json:"headers,omitempty"`
	Query   []ValueMatch `json:"query,omitempty"`
	// Ports limits the route to requests at these ports of the proxy; empty means all. Behind a load balancer, they are
	// the ports to which it connects.
	// +maxItems=MaxPorts
	Ports []int `json:"ports,omitempty"`
	// Priority comes before all else that orders routes: of the routes of a service that match a request, one with the
	// highest number takes it. Default: 0.
	// +minimum=0
	// +maximum=100000000
	Priority int      `json:"priority,omitempty"`
	Rewrite  *Rewrite `json:"rewrite,omitempty"`
	// Timeouts are durations such as "1.5s".
	Timeouts *Timeouts `json:"timeouts,omitempty"`
	Retries  *Retries  `json:"retries,omitempty"`
	// Websocket allows upgrades; nil means true.
	Websocket *bool `json:"websocket,omitempty"`
	// Public says that nobody has to log in for the route, whatever its service and
	// proxy ask for.
	Public bool `json:"public,omitempty"`
	// Exempt names filters that do not apply to the route.
	Exempt *Exempt `json:"exempt,omitempty"`
	// Unreadable is a stored text that is not a route configuration. Only a
	// database that was edited by hand or belongs to another version has one. The
	// route answers 503 until it is written again. Empty means none.
	Unreadable string `json:"-"`
}

// Exempt names filters of a route's service, and of the proxies that serve it, that do not apply to the route. Those of
// proxies are apart since only an admin may name them. A name that no filter has is ignored.
type Exempt struct {
	Service []string `json:"service,omitempty"`
	Proxy   []string `json:"proxy,omitempty"`
}

// maxExempt bounds the names in one place of an Exempt.
const maxExempt = 32

func (e Exempt) validate(v *validator, field string) {
	if len(e.Service)+len(e.Proxy) == 0 {
		v.add(field, "names no filter; leave it out")
	}
	for _, place := range []struct {
		key   string
		names []string
	}{{".service", e.Service}, {".proxy", e.Proxy}} {
		if len(place.names) > maxExempt {
			v.add(field+place.key, "has %d names; at most %d are allowed", len(place.names), maxExempt)
			continue
		}
		for i, name := range place.names {
			v.name(fmt.Sprintf("%s%s[%d]", field, place.key, i), name, false)
		}
	}
}

// MatchTemplate is the Match of a route whose Route_prefix is a PathTemplate.
const MatchTemplate = "template"

// ValueMatch is a condition on a header or a query parameter. At most one of
// Exact, Prefix and Regex is set; none means that it must be present.
type ValueMatch struct {
	Name   string  `json:"name"`
	Exact  *string `json:"exact,omitempty"`
	Prefix *string `json:"prefix,omitempty"`
	Regex  *string `json:"regex,omitempty"`
	// Invert turns the condition round (headers only).
	Invert bool `json:"invert,omitempty"`
}

// Rewrite changes what the upstream sees. Prefix replaces the matched
// Route_prefix; Regex and Substitution replace in the whole path, with \1 for
// the first group; Template is the path, with {id} for a variable of a
// Route_prefix that is a template; Host replaces the Host header.
type Rewrite struct {
	Prefix       string `json:"prefix,omitempty"`
	Regex        string `json:"regex,omitempty"`
	Substitution string `json:"substitution,omitempty"`
	Template     string `json:"template,omitempty"`
	Host         string `json:"host,omitempty"`
}

// Timeouts bound one request. Request is the whole exchange (default: no
// bound), Idle the time without a byte (default: the listener's 300 s).
type Timeouts struct {
	Request Duration `json:"request,omitempty"`
	Idle    Duration `json:"idle,omitempty"`
	// GRPC is the longest time that a client may ask for in grpc-timeout, which then bounds the
	// exchange; 0 means that grpc-timeout is ignored.
	GRPC Duration `json:"grpc,omitempty"`
	// Stream is how long a request and its response may last, streams and websockets included; 0 means no bound.
	Stream Duration `json:"stream,omitempty"`
}

// Retries replace the default retry policy. Attempts 0 switches retries off.
type Retries struct {
	Attempts int `json:"attempts"`
	// On is Envoy's retry_on list, for example ["connect-failure", "5xx"];
	// empty means the default conditions.
	On []string `json:"on,omitempty"`
	// Methods are those of the requests that are tried again; empty means all.
	Methods []string `json:"methods,omitempty"`
	// PerTry bounds each attempt; 0 means no bound of its own.
	PerTry Duration `json:"per_try,omitempty"`
	// Hedge lets an attempt whose PerTry is over go on beside the next one: the first answer wins. Envoy
	// does so for all requests of the route, whatever Methods are.
	Hedge bool `json:"hedge,omitempty"`
	// Backoff is the longest wait before the first retry. It doubles with each
	// one up to MaxBackoff; each wait is random below that. 0 means 5 ms, and
	// 20 times Backoff.
	Backoff    Duration `json:"backoff,omitempty"`
	MaxBackoff Duration `json:"max_backoff,omitempty"`
}

// Waits are Backoff and MaxBackoff with their defaults.
func (r Retries) Waits() (first, most time.Duration) {
	first, most = time.Duration(r.Backoff), time.Duration(r.MaxBackoff)
	if first == 0 {
		first = 5 * time.Millisecond
	}
	if most == 0 {
		most = 20 * first
	}
	return first, most
}

// Duration is a time.Duration written as text, for example "1.5s".
type Duration time.Duration

// MarshalText writes the duration as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a duration with its unit.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as \"1.5s\"", b)
	}
	*d = Duration(v)
	return nil
}

// ParseRouteConfig reads the JSON of Route_config; an unknown key is an error
// that names it. Empty text is the zero value.
func ParseRouteConfig(text string) (RouteConfig, error) {
	var c RouteConfig
	if text = strings.TrimSpace(text); text == "" || text == "{}" { // as most routes have
		return c, nil
	}
	if err := decodeStrict(text, &c); err != nil {
		return RouteConfig{}, fmt.Errorf("is not a route configuration: %w", err)
	}
	return c, nil
}

// Value stores the configuration as JSON text (database/sql).
func (c RouteConfig) Value() (driver.Value, error) {
	if c.Unreadable != "" {
		return c.Unreadable, nil
	}
	b, err := json.Marshal(c)
	return string(b), err
}

// Scan reads what Value stores (database/sql). A text that is no route
// configuration is kept: an error would withhold every other route too.
func (c *RouteConfig) Scan(src any) error {
	text, err := scanText(src)
	if err != nil {
		return fmt.Errorf("reading route configuration: %w", err)
	}
	if *c, err = ParseRouteConfig(text); err != nil {
		c.Unreadable = text
	}
	return nil
}

// Fault says why Unreadable is not a route configuration; nil if it is empty.
func (c RouteConfig) Fault() error {
	_, err := ParseRouteConfig(c.Unreadable)
	return err
}

// Key implements Object.
func (r *Route) Key() Key { return RouteKey(r.Service, r.Name) }

// Meta implements Object.
func (r *Route) Meta() Meta { return Meta{&r.ID, &r.CreateTS, &r.UpdateTS} }

// TagList implements Tagged.
func (r *Route) TagList() *Tags { return &r.Tags }

// Validate implements Object.
func (r *Route) Validate() []FieldError {
	var v validator
	v.name("Route_Name", r.Name, false)
	switch r.Config.Match {
	case "regex":
		v.pathRegex("Route_prefix", r.Prefix)
	case MatchTemplate:
		v.pathTemplate("Route_prefix", r.Prefix)
	default:
		v.urlPath("Route_prefix", r.Prefix)
	}
	r.Config.validate(&v, r.Prefix)
	v.tags(r.Tags)
	return v.errs
}

// maxPriority bounds the priority of a route.
const maxPriority = 100_000_000

// maxConditions bounds a list of conditions of a route: each may have an expression.
const maxConditions = 100

// mostConditions reports whether a list has at most maxConditions.
func (v *validator) mostConditions(field string, n int) bool {
	if n > maxConditions {
		v.add(field, "has %d entries; at most %d are allowed", n, maxConditions)
	}
	return n <= maxConditions
}

// validate checks the configuration of a route with a Route_prefix.
func (c RouteConfig) validate(v *validator, prefix string) {
	const field = "Route_config."
	if err := c.Fault(); err != nil {
		v.add("Route_config", "the stored text %s; write it again", err)
	}
	if c.Match != "" {
		v.oneOf(field+"match", c.Match, []string{"prefix", "segment", "exact", MatchTemplate, "regex"})
	}
	if !v.mostConditions(field+"methods", len(c.Methods)) || !v.mostConditions(field+"headers", len(c.Headers)) ||
		!v.mostConditions(field+"query", len(c.Query)) {
		return
	}
	v.ports(field+"ports", c.Ports)
	v.checkRange(field+"priority", c.Priority, 0, maxPriority)
	for i, m := range c.Methods {
		v.token(fmt.Sprintf("%smethods[%d]", field, i), m)
	}
	for i, h := range c.Headers {
		h.validate(v, fmt.Sprintf("%sheaders[%d]", field, i))
	}
	for i, q := range c.Query {
		at := fmt.Sprintf("%squery[%d]", field, i)
		q.validate(v, at)
		if q.Invert {
			v.add(at+".invert", "is for headers only")
		}
	}
	if c.Exempt != nil {
		c.Exempt.validate(v, field+"exempt")
	}
	if c.Rewrite != nil {
		c.Rewrite.validate(v, field+"rewrite", c.Match, prefix)
	}
	if c.Timeouts != nil {
		v.duration(field+"timeouts.request", c.Timeouts.Request)
		v.duration(field+"timeouts.idle", c.Timeouts.Idle)
		v.duration(field+"timeouts.grpc", c.Timeouts.GRPC)
		v.duration(field+"timeouts.stream", c.Timeouts.Stream)
	}
	if c.Retries != nil {
		c.Retries.validate(v, field+"retries.", c.Methods)
	}
}

// validate checks the retries of a route for some methods; none are all.
func (r Retries) validate(v *validator, at string, methods []string) {
	v.checkRange(at+"attempts", r.Attempts, 0, 100)
	v.duration(at+"per_try", r.PerTry)
	r.validateWaits(v, at)
	for i, on := range r.On {
		v.oneOf(fmt.Sprintf("%son[%d]", at, i), on, retryConditions())
	}
	for i, m := range r.Methods {
		v.token(fmt.Sprintf("%smethods[%d]", at, i), m)
	}
	switch {
	case !r.Hedge:
	case r.PerTry == 0 || r.Attempts == 0:
		v.add(at+"hedge", "requires per_try and attempts: the next attempt begins when per_try is over")
	case !Idempotent(methods):
		v.add(at+"hedge", "sends a request to two upstreams at the same time, whatever retries.methods has: "+
			"set methods of the route, and only methods that can be repeated (GET, HEAD, OPTIONS, TRACE, PUT, DELETE)")
	}
}

// Idempotent reports whether a request that is repeated does no more than one
// (RFC 9110 section 9.2.2). No methods are all methods.
func Idempotent(methods []string) bool {
	return len(methods) > 0 && !slices.ContainsFunc(methods, func(m string) bool {
		return !slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}, m)
	})
}

func (r Retries) validateWaits(v *validator, at string) {
	// Envoy counts these waits in whole milliseconds.
	for _, wait := range []struct {
		name string
		d    Duration
	}{{"backoff", r.Backoff}, {"max_backoff", r.MaxBackoff}} {
		if d := time.Duration(wait.d); d != 0 && (d < time.Millisecond || d > time.Hour) {
			v.add(at+wait.name, "%s is not between 1ms and 1h", d)
		}
	}
	if first, most := r.Waits(); most < first {
		v.add(at+"max_backoff", "%s is below the backoff of %s", most, first)
	}
}

func (m ValueMatch) validate(v *validator, at string) {
	if !slices.Contains([]string{":authority", ":path", ":method", ":scheme"}, m.Name) {
		v.token(at+".name", m.Name)
	}
	kinds := 0
	for _, p := range []*string{m.Exact, m.Prefix, m.Regex} {
		if p != nil {
			kinds++
		}
	}
	if kinds > 1 {
		v.add(at, "takes only one of exact, prefix and regex")
	}
	if m.Exact != nil && *m.Exact == "" {
		v.add(at+".exact", "must not be empty")
	}
	if m.Prefix != nil && *m.Prefix == "" {
		v.add(at+".prefix", "must not be empty")
	}
	if m.Regex != nil {
		v.regex(at+".regex", *m.Regex)
	}
}

// validate checks the rewrite of a route with a kind of match and a Route_prefix.
func (r Rewrite) validate(v *validator, at, match, prefix string) {
	if r.Prefix != "" {
		v.urlPath(at+".prefix", r.Prefix)
		if match == "regex" {
			v.add(at+".prefix", "cannot replace a prefix if match is regex; use regex and substitution")
		}
		if match == MatchTemplate {
			v.add(at+".prefix", "cannot replace a prefix if match is template; use template, such as /v2/{id}")
		}
	}
	if r.Template != "" {
		r.validateTemplate(v, at+".template", match, prefix)
	}
	if len(slices.DeleteFunc([]string{r.Prefix, r.Regex, r.Template}, func(s string) bool { return s == "" })) > 1 {
		v.add(at, "takes only one of prefix, regex and template")
	}
	if r.Regex != "" {
		v.substitution(at, r.Regex, r.Substitution)
	} else if r.Substitution != "" {
		v.add(at+".substitution", "requires regex")
	}
	if r.Host != "" {
		v.headerValue(at+".host", r.Host)
	}
}

func (r Rewrite) validateTemplate(v *validator, at, match, prefix string) {
	if match != MatchTemplate {
		v.add(at, `requires "match":"template", whose variables it uses`)
		return
	}
	t, err := ParsePathTemplate(prefix)
	if err != nil {
		return // of which Route_prefix tells
	}
	if err := t.checkRewrite(r.Template); err != nil {
		v.add(at, "%q %s", r.Template, err)
	}
}

// retryConditions are Envoy's retry_on values for HTTP routes.
func retryConditions() []string {
	return []string{"5xx", "gateway-error", "reset", "reset-before-request", "connect-failure",
		"envoy-ratelimited", "retriable-4xx", "refused-stream", "http3-post-connect-failure"}
}
