package inspect

import (
	"context"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// RateLimits tells what was counted in some domains, for each in their order.
type RateLimits func(ctx context.Context, domains []*limits.Domain) []RateLimitCounts

// RateLimitCounts is what was counted in one domain.
type RateLimitCounts struct {
	// Counted is false if nobody counts, or nobody says what was counted.
	Counted bool
	// Note is for people: why something is not known.
	Note   string
	Limits []RateLimit
	// Top are the values that were limited most in the last minutes, the most
	// limited first; nil if that is not known.
	Top []RateLimited
	// Engines are those that were asked; nil if this process counts.
	Engines []RateLimitEngine
}

// RateLimitEngine is an engine that was asked what it has counted.
type RateLimitEngine struct {
	URL     string `json:"url"`
	Address string `json:"address,omitempty"`
	// Error is why it is not in the numbers; empty when it is.
	Error string `json:"error,omitempty"`
}

// RateLimit is what one limit has seen since those who count have started.
type RateLimit struct {
	// Limit is its path, such as "generic_key=shop > remote_address".
	Limit string `json:"limit"`
	// With are the paths of limits whose numbers are in these too: the engine
	// does not tell them apart.
	With []string `json:"with,omitempty"`
	// Hits is how much was counted, Over what was over the limit, Near what was
	// within it but above 80 % of it, and Shadow the part of Over that was let
	// through.
	Hits   uint64 `json:"hits"`
	Near   uint64 `json:"near"`
	Over   uint64 `json:"over"`
	Shadow uint64 `json:"shadow"`
	// Unit and RequestsPerUnit are the rate. Unit is empty if it is not known,
	// or if there is none.
	Unit            string `json:"unit,omitempty"`
	RequestsPerUnit *int64 `json:"requests_per_unit,omitempty"`
	// ResetsIn is how many seconds the present window still takes.
	ResetsIn int64 `json:"resets_in,omitempty"`
	// Routes are those whose requests may meet it, service/route, or service/*
	// for all of a service; MoreRoutes counts those that are not shown.
	Routes     []string `json:"routes,omitempty"`
	MoreRoutes int      `json:"more_routes,omitempty"`
}

// RateLimited is a value that went over its limit.
type RateLimited struct {
	Limit string `json:"limit"`
	// Value is what was counted, such as "remote_address=10.0.0.1".
	Value string `json:"value"`
	// Shadow says that it was let through.
	Shadow bool `json:"shadow"`
	// Over is the number of hits over the limit, too high by at most Error.
	Over  uint64 `json:"over"`
	Error uint64 `json:"error"`
}

// RateLimitStatus is what is known of one globalconfig_ratelimit of a proxy, or
// of the limits that filters state themselves.
type RateLimitStatus struct {
	// Config is empty for the limits that filters state themselves.
	Config  string            `json:"globalconfig_name"`
	Domain  string            `json:"domain"`
	Counted bool              `json:"counted"`
	Note    string            `json:"note,omitempty"`
	Limits  []RateLimit       `json:"limits"`
	Top     []RateLimited     `json:"top"`
	Engines []RateLimitEngine `json:"engines,omitempty"`
}

// RateLimitScope are the rate limits of a proxy, as they are stored.
type RateLimitScope struct {
	domains []*limits.Domain
	views   []RateLimitStatus // one for each domain
	places  []limitPlace
}

// RateLimitsOf reads the rate limits of a proxy.
func RateLimitsOf(r store.Reader, proxy string) (s RateLimitScope, err error) {
	if s.domains, s.views, err = rateLimitDomains(r, proxy); err != nil {
		return s, err
	}
	if s.places, err = limitPlaces(r, proxy); err != nil {
		return s, err
	}
	if rules := statedRules(s.places); len(rules) > 0 {
		s.domains = append(s.domains, limits.StatedDomain(rules))
		s.views = append(s.views, RateLimitStatus{Domain: model.StatedDomain, Limits: []RateLimit{}})
	}
	return s, nil
}

// RateLimitStatus says what the rate limits of a proxy have counted.
func (in *Inspector) RateLimitStatus(ctx context.Context, scope RateLimitScope) []RateLimitStatus {
	if in.RateLimits == nil || len(scope.domains) == 0 {
		return scope.views
	}
	for i, counts := range in.RateLimits(ctx, scope.domains) {
		v := &scope.views[i]
		v.Counted, v.Note, v.Engines = counts.Counted, counts.Note, counts.Engines
		v.Limits, v.Top = append(v.Limits, counts.Limits...), counts.Top
		in.describeLimits(v.Limits, scope.domains[i], scope.places, i == 0)
	}
	return scope.views
}

// rateLimitDomains are those that a proxy may use: of those that hold for it, the
// first by name of each domain. One that is attached to no proxy holds for all.
func rateLimitDomains(r store.Reader, proxy string) (domains []*limits.Domain, views []RateLimitStatus, err error) {
	links, err := r.List(store.Query{Kind: model.KindProxyGlobalConfig})
	if err != nil {
		return nil, nil, err
	}
	attached, own := map[model.Key]bool{}, map[model.Key]bool{}
	for _, l := range links {
		attached[usedByLink(l)] = true
		if l.Key().Owner().Name() == proxy {
			own[usedByLink(l)] = true
		}
	}
	all, err := store.List[*model.GlobalConfig](r, store.Query{Kind: model.KindGlobalConfig, ByName: true})
	if err != nil {
		return nil, nil, err
	}
	views = []RateLimitStatus{}
	for _, g := range all {
		d := limits.DomainOf(g.Parse())
		if holds := own[g.Key()] || !attached[g.Key()]; !holds || d == nil {
			continue
		}
		if slices.ContainsFunc(views, func(v RateLimitStatus) bool { return v.Domain == d.Domain }) {
			continue
		}
		domains = append(domains, d)
		views = append(views, RateLimitStatus{Config: g.Name, Domain: d.Domain, Limits: []RateLimit{}})
	}
	return domains, views, nil
}
