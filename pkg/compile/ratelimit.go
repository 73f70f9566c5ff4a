package compile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// idBase writes the id of a global config without the characters that join the
// keys of the engine's counters.
const idBase = 36

// RateLimits is what a globalconfig_ratelimit says, and the id under which the
// engine knows it; false for another type, and for one that cannot be read.
func RateLimits(g *model.GlobalConfig) (id string, c model.RateLimitConfig, ok bool) {
	if g.Type != model.GlobalConfigRateLimit || json.Unmarshal([]byte(g.Config), &c) != nil {
		return "", c, false
	}
	if c.Shadow {
		c.Descriptors = shadowed(c.Descriptors)
	}
	return strconv.FormatInt(g.ID, idBase), c, true
}

func shadowed(rules []model.RateLimitRule) []model.RateLimitRule {
	list := make([]model.RateLimitRule, len(rules))
	for i, r := range rules {
		r.ShadowMode, r.Descriptors = true, shadowed(r.Descriptors)
		list[i] = r
	}
	return list
}

// rateLimitService is how the proxy's listener asks the engine: in the domain
// of the first of its rate-limit configurations, by name.
func rateLimitService(t *model.ProxyTree) *ir.RateLimitService {
	for _, g := range t.GlobalConfigs {
		id, c, ok := RateLimits(g)
		if !ok {
			continue
		}
		return &ir.RateLimitService{
			Domain: id + "/" + c.Domain,
			Deny:   c.OnError == "deny", Headers: c.Headers == nil || *c.Headers,
			Status: cmp.Or(c.Status, http.StatusTooManyRequests),
		}
	}
	return nil
}

// rateLimits are the descriptors of the filters, in their order. A filter that
// cannot be read must not open the route.
func rateLimits(filters []*model.Filter) (list []ir.RateLimit, err error) {
	for _, f := range filters {
		if f.Type != model.FilterRateLimit {
			continue
		}
		config, err := model.ParseRateLimitFilter(f.Config)
		if err != nil {
			return nil, fmt.Errorf("filter %s: %w", f.Name, err)
		}
		for _, d := range config.Descriptors {
			var limit ir.RateLimit
			for _, e := range d {
				limit = append(limit, rateLimitEntry(e))
			}
			list = append(list, limit)
		}
	}
	return list, nil
}

func rateLimitEntry(e model.RateLimitEntry) ir.RateLimitEntry {
	out := ir.RateLimitEntry{
		Kind: ir.RateLimitKind(e.Kind), Key: e.Key, Value: e.Value, SkipIfAbsent: e.SkipIfAbsent,
		Name: cmp.Or(e.HeaderName, e.ParameterName), Headers: valueMatches(e.Headers), NoMatch: e.NoMatch,
	}
	switch e.Kind {
	case "path", "method":
		out.Kind, out.Name, out.Key = ir.RateLimitHeader, ":"+e.Kind, cmp.Or(e.Key, e.Kind)
	case "masked_remote_address":
		out.V4Mask, out.V6Mask = cmp.Or(e.V4Mask, 32), cmp.Or(e.V6Mask, 64)
	}
	return out
}
