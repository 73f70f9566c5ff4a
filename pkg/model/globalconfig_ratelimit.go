package model

import (
	"fmt"
	"slices"
)

// RateLimitConfig is the JSON of a globalconfig_ratelimit: the limits of a
// domain (specification, "Rate-limit global config").
type RateLimitConfig struct {
	Domain      string          `json:"domain"`
	Descriptors []RateLimitRule `json:"descriptors"`
	// OnError says what happens to a request when the engine does not answer:
	// allow (empty means that) or deny, with 503.
	OnError string `json:"on_error,omitempty"`
	// Headers adds x-ratelimit headers to answers; nil means true.
	Headers *bool `json:"headers,omitempty"`
	// Status is the status of the answer to a request over its limit; 0 means 429. A
	// parsed config has none that Envoy refuses.
	Status int `json:"status,omitempty"`
	// Shadow counts and never limits. A parsed config has it in each rule.
	Shadow bool `json:"shadow,omitempty"`
}

// RateLimitRule matches a part of a descriptor. It has a limit, or rules for the
// next part, or both.
type RateLimitRule struct {
	Key string `json:"key"`
	// Value restricts the rule to one value; empty means each value by itself.
	Value       string          `json:"value,omitempty"`
	RateLimit   *RateLimit      `json:"rate_limit,omitempty"`
	Descriptors []RateLimitRule `json:"descriptors,omitempty"`
	// ShadowMode counts and never limits.
	ShadowMode bool `json:"shadow_mode,omitempty"`
}

// RateLimit is a number of requests in a window of time.
type RateLimit struct {
	Name            string `json:"name,omitempty"`
	Unit            string `json:"unit,omitempty"`
	RequestsPerUnit int64  `json:"requests_per_unit,omitempty"`
	Unlimited       bool   `json:"unlimited,omitempty"`
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
