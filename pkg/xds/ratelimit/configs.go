package ratelimit

import (
	"cmp"
	"math"
	"slices"
	"strings"

	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Configs returns the message of each domain, in the order of their WireIDs.
func Configs(domains []*limits.Domain) []*rlsconf.RateLimitConfig {
	configs := make([]*rlsconf.RateLimitConfig, len(domains))
	for i, d := range domains {
		configs[i] = buildConfig(d.WireID(), d.Wire(), d.Descriptors)
	}
	slices.SortStableFunc(configs, func(a, b *rlsconf.RateLimitConfig) int { return cmp.Compare(a.Name, b.Name) })
	return configs
}

func buildConfig(name, domain string, rules []model.RateLimitRule) *rlsconf.RateLimitConfig {
	return &rlsconf.RateLimitConfig{Name: name, Domain: domain, Descriptors: buildDescriptors(rules)}
}

func buildDescriptors(rules []model.RateLimitRule) []*rlsconf.RateLimitDescriptor {
	var descriptors []*rlsconf.RateLimitDescriptor
	for _, r := range rules {
		descriptors = append(descriptors, &rlsconf.RateLimitDescriptor{
			Key: r.Key, Value: r.Value, ShadowMode: r.ShadowMode,
			RateLimit: buildPolicy(r.RateLimit), Descriptors: buildDescriptors(r.Descriptors),
		})
	}
	return descriptors
}

func buildPolicy(l *model.RateLimit) *rlsconf.RateLimitPolicy {
	if l == nil {
		return nil
	}
	return &rlsconf.RateLimitPolicy{
		Name: l.Name, Unlimited: l.Unlimited,
		// An invalid unit becomes UNKNOWN, which the loader refuses.
		Unit:            rlsconf.RateLimitUnit(rlsconf.RateLimitUnit_value[strings.ToUpper(l.Unit)]),
		RequestsPerUnit: uint32(min(max(l.RequestsPerUnit, 0), math.MaxUint32)),
	}
}
