package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// RateLimitConfig is the JSON of a globalconfig_ratelimit: the rates of a
// domain (specification, "Rate-limit global config").
type RateLimitConfig struct {
	Domain      string          `json:"domain"`
	Descriptors []RateLimitRule `json:"descriptors"`
}

// RateLimitRule is the rate of a descriptor, or of what is nested in it.
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

func checkRateLimitConfig(v *validator, at string, config JSON) {
	var c RateLimitConfig
	if !v.decode(at, config, &c) {
		return
	}
	if c.Domain == "" {
		v.add(at+".domain", "is required")
	}
	checkRateLimitRules(v, at+".descriptors", c.Descriptors)
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
				v.add(at+".rate_limit.unlimited", "takes neither unit nor requests_per_unit beside it")
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

// rateLimitKeys are the attributes of a request that a filter can name.
func rateLimitKeys() []string {
	return []string{
		"remote_address", "masked_remote_address", "generic_key", "request_headers", "query_parameters",
		"header_value_match", "path", "method", "claim",
	}
}

// checkRateLimitFilter accepts the three shapes of rest-api.md: descriptors,
// and descriptors within a level of descriptors, with or without a domain.
func checkRateLimitFilter(v *validator, at string, config JSON) {
	var c struct {
		Domain      *string         `json:"domain"`
		Descriptors json.RawMessage `json:"descriptors"`
	}
	if !v.decode(at, config, &c) {
		return
	}
	if c.Domain != nil && *c.Domain == "" {
		v.add(at+".domain", "must not be empty; leave it out instead")
	}
	checkDescriptors(v, at+".descriptors", c.Descriptors, true)
}

func checkDescriptors(v *validator, at string, raw json.RawMessage, wrapped bool) {
	if wrapped && len(raw) > 0 && raw[0] == '{' {
		raw = json.RawMessage("[" + string(raw) + "]")
	}
	var entries []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &entries); len(raw) == 0 || err != nil || len(entries) == 0 {
		v.add(at, `must be a list of at least one descriptor, such as [{"remote_address":"client"}]`)
		return
	}
	for i, entry := range entries {
		at := fmt.Sprintf("%s[%d]", at, i)
		if inner, ok := entry["descriptors"]; ok && wrapped && len(entry) == 1 {
			checkDescriptors(v, at+".descriptors", inner, false)
			continue
		}
		if len(entry) == 0 {
			v.add(at, "names nothing to count")
		}
		for _, key := range slices.Sorted(maps.Keys(entry)) {
			checkDescriptor(v, at, key, entry[key])
		}
	}
}

func checkDescriptor(v *validator, at, key string, value json.RawMessage) {
	if !slices.Contains(rateLimitKeys(), key) {
		v.oneOf(at, key, rateLimitKeys())
		return
	}
	if value[0] != '"' && value[0] != '{' {
		v.add(at+"."+key, "must be text or an object")
		return
	}
	need := map[string][]string{
		"generic_key": {"descriptor_value"}, "request_headers": {"header_name", "descriptor_key"},
	}[key]
	if len(need) == 0 {
		return
	}
	fields := map[string]json.RawMessage{}
	if value[0] == '{' && json.Unmarshal(value, &fields) != nil {
		v.add(at+"."+key, "cannot be read")
		return
	}
	for _, name := range need {
		var text string
		if json.Unmarshal(fields[name], &text) != nil || text == "" {
			v.add(at+"."+key+"."+name, "is required")
		}
	}
}
