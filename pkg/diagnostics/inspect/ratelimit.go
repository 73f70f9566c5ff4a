package inspect

import (
	"context"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// RateLimits returns what was counted in each of some domains, in their order.
type RateLimits func(ctx context.Context, domains []*limits.Domain) []RateLimitCounts

// RateLimitCounts is what was counted in one domain.
type RateLimitCounts struct {
	// Counted is false if nothing counts, or the counts cannot be read.
	Counted bool
	// Note is for people: why something is not known.
	Note   string
	Limits []RateLimit
	// Top are the values that were limited most in the last minutes, most limited
	// first; nil if they are not known.
	Top []RateLimited
	// Engines are the engines that were asked; nil if this process counts.
	Engines []RateLimitEngine
}

// RateLimitEngine is an engine that was asked for its counts.
type RateLimitEngine struct {
	URL     string `json:"url"`
	Address string `json:"address,omitempty"`
	// Error is why the numbers do not include it; empty if they do.
	Error string `json:"error,omitempty"`
}

// RateLimit has the counts of one limit since the engines started.
type RateLimit struct {
	// Limit is its path, such as "generic_key=shop > remote_address".
	Limit string `json:"limit"`
	// With are the paths of limits whose counts are included in these: the engine does
	// not separate them.
	With []string `json:"with,omitempty"`
	// Hits is the number of hits, Over those over the limit, Near those within it but
	// above 80% of it, and Shadow those of Over that were allowed.
	Hits   uint64 `json:"hits"`
	Near   uint64 `json:"near"`
	Over   uint64 `json:"over"`
	Shadow uint64 `json:"shadow"`
	// Unit and RequestsPerUnit are the rate. Unit is empty if there is none, or it is
	// not known.
	Unit            string `json:"unit,omitempty"`
	RequestsPerUnit *int64 `json:"requests_per_unit,omitempty"`
	// ResetsIn is how many seconds remain of the current window.
	ResetsIn int64 `json:"resets_in,omitempty"`
	// Routes are those whose requests may meet it: service/route, or service/* for a
	// whole service. MoreRoutes counts the rest.
	Routes     []string `json:"routes,omitempty"`
	MoreRoutes int      `json:"more_routes,omitempty"`
}

// RateLimited is a value that exceeded its limit.
type RateLimited struct {
	Limit string `json:"limit"`
	// Value is the counted value, such as "remote_address=10.0.0.1".
	Value string `json:"value"`
	// Shadow says that the requests were allowed.
	Shadow bool `json:"shadow"`
	// Over is the number of hits over the limit, too high by at most Error.
	Over  uint64 `json:"over"`
	Error uint64 `json:"error"`
}

// RateLimitStatus is what is known of one globalconfig_ratelimit of a proxy, or of the
// limits that filters themselves have.
type RateLimitStatus struct {
	// Config is empty for the limits that filters themselves have.
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
	configs, err := globalConfigsOf(r, proxy)
	if err != nil {
		return s, err
	}
	s.domains, s.views = rateLimitDomains(configs)
	if s.places, err = limitPlaces(r, proxy); err != nil {
		return s, err
	}
	s.places = append(s.places, connectionPlaces(configs)...)
	if rules := statedRules(s.places); len(rules) > 0 {
		s.domains = append(s.domains, limits.StatedDomain(rules))
		s.views = append(s.views, RateLimitStatus{Domain: model.StatedDomain, Limits: []RateLimit{}})
	}
	return s, nil
}

// RateLimitStatus returns what the rate limits of a proxy have counted.
func (in *Inspector) RateLimitStatus(ctx context.Context, scope RateLimitScope) []RateLimitStatus {
	if in.RateLimits == nil || len(scope.domains) == 0 {
		return scope.views
	}
	for i, counts := range in.RateLimits(ctx, scope.domains) {
		v := &scope.views[i]
		v.Counted, v.Note, v.Engines = counts.Counted, counts.Note, counts.Engines
		v.Limits, v.Top = append(v.Limits, counts.Limits...), counts.Top
		in.describeLimits(v.Limits, scope.domains[i], scope.places, i == 0 && v.Config != "")
	}
	return scope.views
}

// globalConfigsOf returns the global configs that apply to a proxy, by name. One that is attached to no proxy applies to
// all.
func globalConfigsOf(r store.Reader, proxy string) ([]*model.GlobalConfig, error) {
	links, err := r.List(store.Query{Kind: model.KindProxyGlobalConfig})
	if err != nil {
		return nil, err
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
		return nil, err
	}
	return slices.DeleteFunc(all, func(g *model.GlobalConfig) bool { return attached[g.Key()] && !own[g.Key()] }), nil
}

// rateLimitDomains returns the domains that a proxy may use: of its global configs, the first by name of each domain.
func rateLimitDomains(configs []*model.GlobalConfig) (domains []*limits.Domain, views []RateLimitStatus) {
	views = []RateLimitStatus{}
	for _, g := range configs {
		d := limits.DomainOf(g.Parse())
		if d == nil || slices.ContainsFunc(views, func(v RateLimitStatus) bool { return v.Domain == d.Domain }) {
			continue
		}
		domains = append(domains, d)
		views = append(views, RateLimitStatus{Config: g.Name, Domain: d.Domain, Limits: []RateLimit{}})
	}
	return domains, views
}
