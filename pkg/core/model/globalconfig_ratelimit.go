package model

import (
	"fmt"
	"slices"
)

// RateLimitConfig has the limits of a domain: how many requests are allowed. Two sibling rules with the same key
// and value are refused.
// +page=ratelimit.md
// +example={domain: shop, on_error: deny, headers: true, status: 429, shadow: false, descriptors: [
// {key: remote_address, rate_limit: {unit: second, requests_per_unit: 10}},
// {key: api_key, value: gold, rate_limit: {unlimited: true}}]}
type RateLimitConfig struct { // specification, "Rate-limit global config"
	// +required
	// +minLength=1
	Domain      string          `json:"domain"`
	Descriptors []RateLimitRule `json:"descriptors"`
	// What happens to a request while the rate-limit engine does not answer; deny answers 503. Default: allow.
	// +enum=[allow, deny]
	OnError string `json:"on_error,omitempty"`
	// Add x-ratelimit headers to answers. Default: true.
	Headers *bool `json:"headers,omitempty"`
	// Status of the answer to a request over its limit. Default: 429.
	// +minimum=400
	// +maximum=599
	Status int `json:"status,omitempty"` // a parsed config has none that Envoy refuses
	// Count, but never limit.
	Shadow bool `json:"shadow,omitempty"` // a parsed config has it in each rule
}

// RateLimitRule matches a part of a descriptor. It has a limit, or rules for the
// next part, or both.
type RateLimitRule struct {
	// The key that a filter sends, such as remote_address.
	// +required
	// +minLength=1
	Key string `json:"key"`
	// Only this value; without it each value counts by itself.
	Value       string          `json:"value,omitempty"`
	RateLimit   *RateLimit      `json:"rate_limit,omitempty"`
	Descriptors []RateLimitRule `json:"descriptors,omitempty"`
	// Count, but never limit.
	ShadowMode bool `json:"shadow_mode,omitempty"`
}

// RateLimit is a number of requests in a window of time.
type RateLimit struct {
	Name string `json:"name,omitempty"`
	// +enum=RateLimitUnits
	Unit string `json:"unit,omitempty"`
	// +minimum=0
	// +maximum=4294967295
	RequestsPerUnit int64 `json:"requests_per_unit,omitempty"`
	Unlimited       bool  `json:"unlimited,omitempty"`
}

// RateLimitUnits lists the allowed values of RateLimit.Unit.
func RateLimitUnits() []string {
	return []string{"second", "minute", "hour", "day", "week", "month", "year"}
}

func readRateLimitConfig(v *validator, at, _ string, config JSON) Spec {
	var c RateLimitConfig
	if v.decode(at, config, &c) {
		c.check(v, at)
	}
	if !knownToEnvoy(c.Status) {
		c.Status = 0
	}
	if c.Shadow {
		c.Descriptors = withShadow(c.Descriptors)
	}
	return &c
}

func (c *RateLimitConfig) uses() []Key { return nil }

func (c *RateLimitConfig) check(v *validator, at string) {
	if c.Domain == "" {
		v.add(at+".domain", "is required")
	}
	v.refuseStatedDomain(at+".domain", c.Domain)
	if c.OnError != "" {
		v.oneOf(at+".on_error", c.OnError, []string{"allow", "deny"})
	}
	switch {
	case c.Status == 0:
	case c.Status < 400 || c.Status > 599:
		v.checkRange(at+".status", c.Status, 400, 599)
	case !knownToEnvoy(c.Status):
		v.add(at+".status", "%d is not a status that Envoy knows", c.Status)
	}
	checkRateLimitRules(v, at+".descriptors", c.Descriptors)
}

// knownToEnvoy reports whether Envoy can answer with a status above 399 (type.v3.StatusCode).
func knownToEnvoy(status int) bool {
	unknown := []int{418, 419, 420, 425, 427, 430, 509}
	return (status >= 400 && status <= 431 || status >= 500 && status <= 511) && !slices.Contains(unknown, status)
}

// withShadow returns the rules with ShadowMode in each.
func withShadow(rules []RateLimitRule) []RateLimitRule {
	list := make([]RateLimitRule, len(rules))
	for i, r := range rules {
		r.ShadowMode, r.Descriptors = true, withShadow(r.Descriptors)
		list[i] = r
	}
	return list
}

func checkRateLimitRules(v *validator, at string, rules []RateLimitRule) {
	for i, r := range rules {
		at := fmt.Sprintf("%s[%d]", at, i)
		if r.Key == "" {
			v.add(at+".key", "is required")
		}
		if l := r.RateLimit; l != nil {
			switch {
			case l.Unlimited && (l.Unit != "" || l.RequestsPerUnit != 0):
				v.add(at+".rate_limit.unlimited", "cannot be combined with unit or requests_per_unit")
			case !l.Unlimited:
				v.oneOf(at+".rate_limit.unit", l.Unit, RateLimitUnits())
			}
			if l.RequestsPerUnit < 0 || l.RequestsPerUnit > 1<<32-1 {
				v.add(at+".rate_limit.requests_per_unit", "%d is not between 0 and 4294967295", l.RequestsPerUnit)
			}
		}
		checkRateLimitRules(v, at+".descriptors", r.Descriptors)
	}
}
