package rest

import (
	"encoding/json"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// RateLimits tells what was counted under a globalconfig_ratelimit: every limit,
// and the values that were limited most in the last minutes, the most limited
// first.
type RateLimits func(g *model.GlobalConfig) ([]RateLimit, []RateLimited)

// RateLimit is what one limit has seen since the process started.
type RateLimit struct {
	// Limit is its path, such as "generic_key=shop > remote_address".
	Limit string `json:"limit"`
	// Hits is how much was counted, Over what was over the limit, Near what was
	// within it but above 80 % of it, and Shadow the part of Over that was let
	// through.
	Hits   uint64 `json:"hits"`
	Near   uint64 `json:"near"`
	Over   uint64 `json:"over"`
	Shadow uint64 `json:"shadow"`
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
	Config string `json:"globalconfig_name"`
	Domain string `json:"domain"`
	// Counted is false where another process counts, or none.
	Counted bool          `json:"counted"`
	Limits  []RateLimit   `json:"limits"`
	Top     []RateLimited `json:"top"`
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
	var g *model.GlobalConfig
	err = s.read(c.Request.Context(), func(r store.Reader) (err error) {
		if err := exist(r, proxyAt(n)); err != nil {
			return err
		}
		g, err = rateLimitConfig(r, n[model.KindProxy])
		return err
	})
	if err != nil {
		return err
	}
	views := []rateLimitView{}
	if g != nil {
		var config model.RateLimitConfig
		if err := json.Unmarshal([]byte(g.Config), &config); err != nil {
			return err
		}
		view := rateLimitView{Config: g.Name, Domain: config.Domain, Limits: []RateLimit{}, Top: []RateLimited{}}
		if s.rateLimits != nil {
			limits, top := s.rateLimits(g)
			view.Counted, view.Limits, view.Top = true, append(view.Limits, limits...), append(view.Top, top...)
		}
		views = append(views, view)
	}
	s.answer(c, s.word+"_ratelimit", views)
	return nil
}

// rateLimitConfig is the one that a proxy uses: the first by name of those that
// hold for it. One that is attached to no proxy holds for all.
func rateLimitConfig(r store.Reader, proxy string) (first *model.GlobalConfig, err error) {
	links, err := r.List(store.Query{Kind: model.KindProxyGlobalConfig})
	if err != nil {
		return nil, err
	}
	attached, own := map[model.Key]bool{}, map[model.Key]bool{}
	for _, l := range links {
		attached[usedByLink(l)] = true
		if l.Owner().Name == proxy {
			own[usedByLink(l)] = true
		}
	}
	all, err := store.List[*model.GlobalConfig](r, store.Query{Kind: model.KindGlobalConfig})
	for _, g := range all {
		holds := own[g.Key()] || !attached[g.Key()]
		if holds && g.Type == model.GlobalConfigRateLimit && (first == nil || g.Name < first.Name) {
			first = g
		}
	}
	return first, err
}
