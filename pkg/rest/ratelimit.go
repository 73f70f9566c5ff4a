package rest

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// RateLimits tells what was counted under some globalconfig_ratelimit, for each
// in their order.
type RateLimits func(ctx context.Context, configs []*model.GlobalConfig) []RateLimitCounts

// RateLimitCounts is what was counted under one globalconfig_ratelimit.
type RateLimitCounts struct {
	// Counted is false where nobody counts, or nobody says what was counted.
	Counted bool
	// Note is for people: why something is not known.
	Note   string
	Limits []RateLimit
	// Top are the values that were limited most in the last minutes, the most
	// limited first; nil where that is not known.
	Top []RateLimited
	// Engines are those that were asked; nil where this process counts.
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
	// Unit and RequestsPerUnit are the rate. Unit is empty where it is not known,
	// or where there is none.
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

type rateLimitView struct {
	// Config is empty for the limits that filters state themselves.
	Config  string            `json:"globalconfig_name"`
	Domain  string            `json:"domain"`
	Counted bool              `json:"counted"`
	Note    string            `json:"note,omitempty"`
	Limits  []RateLimit       `json:"limits"`
	Top     []RateLimited     `json:"top"`
	Engines []RateLimitEngine `json:"engines,omitempty"`
}

func (s *server) addRateLimits() {
	s.get("/proxy/:proxy/ratelimit", s.readRateLimits)
}

func (s *server) readRateLimits(c *gin.Context) error {
	if _, err := readQuery(c, nil); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	var configs []*model.GlobalConfig
	var views []rateLimitView
	var places []limitPlace
	err = s.read(c.Request.Context(), func(r store.Reader) (err error) {
		if err := exist(r, proxyAt(n)); err != nil {
			return err
		}
		configs, views, err = rateLimitConfigs(r, n[model.KindProxy])
		if err != nil {
			return err
		}
		if places, err = limitPlaces(r, n[model.KindProxy]); err != nil {
			return err
		}
		stated, err := statedLimits(places)
		if stated != nil {
			configs = append(configs, stated)
			views = append(views, rateLimitView{Domain: model.StatedDomain, Limits: []RateLimit{}})
		}
		return err
	})
	if err != nil {
		return err
	}
	if s.rateLimits != nil && len(configs) > 0 {
		for i, counts := range s.rateLimits(c.Request.Context(), configs) {
			v := &views[i]
			v.Counted, v.Note, v.Engines = counts.Counted, counts.Note, counts.Engines
			v.Limits, v.Top = append(v.Limits, counts.Limits...), counts.Top
			s.describeLimits(v.Limits, configs[i], places, i == 0)
		}
	}
	s.answer(c, s.word+"_ratelimit", views)
	return nil
}

// rateLimitConfigs are those that a proxy may use: of those that hold for it, the
// first by name of each domain. One that is attached to no proxy holds for all.
func rateLimitConfigs(r store.Reader, proxy string) (configs []*model.GlobalConfig, views []rateLimitView, err error) {
	links, err := r.List(store.Query{Kind: model.KindProxyGlobalConfig})
	if err != nil {
		return nil, nil, err
	}
	attached, own := map[model.Key]bool{}, map[model.Key]bool{}
	for _, l := range links {
		attached[usedByLink(l)] = true
		if l.Owner().Name == proxy {
			own[usedByLink(l)] = true
		}
	}
	all, err := store.List[*model.GlobalConfig](r, store.Query{Kind: model.KindGlobalConfig, ByName: true})
	if err != nil {
		return nil, nil, err
	}
	views = []rateLimitView{}
	for _, g := range all {
		holds := own[g.Key()] || !attached[g.Key()]
		if !holds || g.Type != model.GlobalConfigRateLimit {
			continue
		}
		var config model.RateLimitConfig
		if err := json.Unmarshal([]byte(g.Config), &config); err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(views, func(v rateLimitView) bool { return v.Domain == config.Domain }) {
			continue
		}
		configs = append(configs, g)
		views = append(views, rateLimitView{Config: g.Name, Domain: config.Domain, Limits: []RateLimit{}})
	}
	return configs, views, nil
}
