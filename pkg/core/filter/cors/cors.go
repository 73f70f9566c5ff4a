// Package cors is vh_filter_cors: it answers preflights and states which web pages may read responses.
package cors

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	name = "envoy.filters.http.cors"
	// key is the policy of a route. It has no effect where the gateway itself answers. There, readBy sets the headers,
	// on a route for pages that it allows.
	key    seam.Key[*Policy] = "cors"
	readBy seam.Key[*Policy] = "readBy"
)

// Policy sets which web pages of other origins may use responses.
type Policy struct {
	// Origins and OriginRegexes match the origins of the pages. A regular expression matches whole origins. AnyOrigin
	// means all.
	Origins       []string `json:"origins,omitempty"`
	OriginRegexes []string `json:"originRegexes,omitempty"`
	AnyOrigin     bool     `json:"anyOrigin,omitempty"`
	Methods       []string `json:"methods,omitempty"`
	Headers       []string `json:"headers,omitempty"`
	Expose        []string `json:"expose,omitempty"`
	// MaxAgeSeconds is how long browsers may cache the answer to a preflight; nil leaves it to them.
	MaxAgeSeconds *int `json:"maxAgeSeconds,omitempty"`
	Credentials   bool `json:"credentials,omitempty"`
}

// Filter returns the filter. Filters of a service are added to each route: Envoy would merge a host's policy into a
// route's, and could combine the credentials of one with the origins of the other.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterCORS, Config: seam.LastOf(add, finish),
		Name: name, Listener: nothing, Disabled: true,
		Route: seam.OfRoute(key, messages), ChangeRoute: setHeaders,
		Refuse: answer, Describe: describe,
	}
}

func add(r *ir.Route, f *model.CORSFilter, _ seam.Place) error {
	p := &Policy{
		Methods: f.Methods, Headers: f.Headers, Expose: f.Expose, MaxAgeSeconds: f.MaxAge, Credentials: f.Credentials,
	}
	for _, o := range f.Origins {
		switch {
		case o.Exact == model.AnyOrigin:
			p.AnyOrigin = true
		case o.Regex != "":
			p.OriginRegexes = append(p.OriginRegexes, o.Regex)
		default:
			p.Origins = append(p.Origins, o.Exact)
		}
	}
	r.Filters = key.In(r.Filters, p)
	return nil
}

// finish adds the routes that come before a route that pages of other origins may use. A preflight has another method
// than its request, and Envoy's filter does nothing where the gateway itself answers.
func finish(r *ir.Route, f *model.CORSFilter, _ seam.Place) error {
	p, allowed := key.Of(r.Filters), ir.ValueMatch{Name: "origin", Regex: f.Expression()}
	answered := func(r *ir.Route) bool { return r.Respond != nil && key.Of(r.Filters) != nil }
	var list []*ir.Route
	rest := slices.Clone(r.Before)
	for ; len(rest) > 0 && answered(rest[0]); rest = rest[1:] {
		list = append(list, readable(rest[0], allowed), rest[0])
	}
	if !p.AnyOrigin {
		list = append(list, refusedPreflight(r, allowed))
	}
	list = append(list, rest...)
	alone := r.Forward == nil
	if methods := r.Match.Methods; alone || len(methods) > 0 && !slices.Contains(methods, "OPTIONS") {
		preflight := &ir.Route{Name: r.Name, Match: r.Match, Preflight: true, Filters: key.In(nil, p)}
		preflight.Match.Methods = []string{"OPTIONS"}
		preflight.Match.Headers = append(slices.Clone(r.Match.Headers), allowed, asksFor(methods))
		list = append(list, preflight)
	}
	if alone {
		list = append(list, readable(r, allowed))
	}
	r.Before = list
	return nil
}

// readable returns a route that answers as r does, for the pages that may read it.
func readable(r *ir.Route, allowed ir.ValueMatch) *ir.Route {
	answer := *r
	answer.Before, answer.Filters = nil, readBy.In(r.Filters, key.Of(r.Filters))
	answer.Match.Headers = append(slices.Clone(r.Match.Headers), allowed)
	return &answer
}

// refusedPreflight returns the route that answers preflights of other origins, without a header that allows anything.
// Otherwise they would reach the upstream, which sees no preflight of the others. All filters of r apply.
func refusedPreflight(r *ir.Route, allowed ir.ValueMatch) *ir.Route {
	allowed.Invert = true
	refused := r.Answering(&ir.Respond{Status: http.StatusNoContent})
	refused.Match.Methods = []string{http.MethodOptions}
	refused.Match.Headers = append(slices.Clone(r.Match.Headers), allowed, asksFor(r.Match.Methods))
	return refused
}

// asksFor is the condition that a preflight is for one of the methods. An empty list means all.
func asksFor(methods []string) ir.ValueMatch {
	m := ir.ValueMatch{Name: "access-control-request-method"}
	if slices.Contains(methods, "OPTIONS") {
		return m
	}
	quoted := make([]string, len(methods))
	for i, method := range methods {
		quoted[i] = regexp.QuoteMeta(method)
	}
	m.Regex = strings.Join(quoted, "|")
	return m
}

// nothing happens without a route's message.
func nothing(ir.Listener) []seam.Message {
	return []seam.Message{{Name: name, Config: &corsv3.Cors{}}}
}

// messages leave ForwardNotMatchingPreflights at its default. If it were false, Envoy would answer the preflights of
// every origin, with all headers but one.
func messages(p *Policy) ([]seam.Message, error) {
	out := &corsv3.CorsPolicy{
		AllowMethods: strings.Join(p.Methods, ", "), AllowHeaders: strings.Join(p.Headers, ", "),
		ExposeHeaders: strings.Join(p.Expose, ", "),
	}
	exactly := func(text string) *matcherv3.StringMatcher {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: text}}
	}
	if p.AnyOrigin {
		out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, exactly("*"))
	}
	for _, o := range p.Origins {
		out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, exactly(o))
	}
	for _, expr := range p.OriginRegexes {
		out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: expr}},
		})
	}
	if p.MaxAgeSeconds != nil {
		out.MaxAge = strconv.Itoa(*p.MaxAgeSeconds)
	}
	if p.Credentials {
		out.AllowCredentials = wrapperspb.Bool(true)
	}
	return []seam.Message{{Name: name, Config: out}}, nil
}

// setHeaders sets headers that the filter does not set.
func setHeaders(r *ir.Route, out *routev3.Route) error {
	if key.Of(r.Filters) != nil {
		out.ResponseHeadersToRemove = ownHeaders()
		out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, variesByOrigin())
	}
	p := readBy.Of(r.Filters)
	if p == nil {
		return nil
	}
	set := func(name, value string) {
		out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, seam.SetHeader(name, value))
	}
	set("access-control-allow-origin", "%REQ(origin)%")
	if p.Credentials {
		set("access-control-allow-credentials", "true")
	}
	if len(p.Expose) > 0 {
		set("access-control-expose-headers", strings.ReplaceAll(strings.Join(p.Expose, ", "), "%", "%%"))
	}
	return nil
}

// ownHeaders are headers that only the gateway may set where it has a policy. An upstream could otherwise allow more
// than the filter does. They are removed before the filter sets its own.
func ownHeaders() []string {
	const prefix = "access-control-"
	return []string{
		prefix + "allow-origin", prefix + "allow-credentials", prefix + "allow-methods", prefix + "allow-headers",
		prefix + "allow-private-network", prefix + "expose-headers", prefix + "max-age",
	}
}

// variesByOrigin tells caches that a response is for one origin (Fetch, section 3.3.5). The filter does not.
func variesByOrigin() *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: "vary", Value: "origin"},
		AppendAction: corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD,
	}
}

// answer answers a preflight (CorsFilter::decodeHeaders).
func answer(r seam.Request) (*seam.Refusal, error) {
	asks := r.Header(seam.Method) == http.MethodOptions && r.Header("access-control-request-method") != ""
	if r.Route.GetRoute() == nil || !asks {
		return nil, nil
	}
	allowed, err := isReader(r)
	if err != nil || !allowed {
		return nil, err
	}
	return &seam.Refusal{
		Code: "preflight", Status: http.StatusOK, Step: "answer",
		Message: "a vh_filter_cors answers the preflight: it allows requests from pages of " + r.Header("origin"),
	}, nil
}

// isReader reports whether pages of the request's origin may read responses.
func isReader(r seam.Request) (bool, error) {
	policy, err := seam.MessageOf(name, r, &corsv3.CorsPolicy{})
	origin := r.Header("origin")
	if err != nil || origin == "" {
		return false, err
	}
	for _, m := range policy.GetAllowOriginStringMatch() {
		if matches, _, err := seam.Matches(m, "*", origin); matches || err != nil {
			return matches, err
		}
	}
	return false, nil
}

func describe(r seam.Request) (string, error) {
	origin := r.Header("origin")
	allowed, err := isReader(r)
	switch {
	case origin == "":
		return "does nothing: the request has no Origin, so no page of another origin sends it", err
	case r.Route.GetRoute() == nil:
		return "does nothing where a route answers by itself: the headers of the answer say which pages may read it", err
	case allowed:
		return fmt.Sprintf("allows pages of %s to read the answer", origin), err
	}
	return fmt.Sprintf("does not allow pages of %s to read the answer", origin), err
}
