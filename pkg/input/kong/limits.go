package kong

import (
	"fmt"
	"slices"
)

// Windows of Kong's rate-limiting, which are also those of Gatehouse.
func units() []string { return []string{"second", "minute", "hour", "day", "month", "year"} }

const limitDomain = "kong"

// descriptor is what a filter sends to be counted, in the order of the rules.
type descriptor struct {
	Plugin   map[string]string `yaml:"generic_key"`
	Consumer string            `yaml:"consumer,omitempty"`
	Header   map[string]string `yaml:"request_headers,omitempty"`
	Address  string            `yaml:"remote_address,omitempty"`
}

// limitsOf adds the filter for the rate limits of a route. knows says that the route knows the consumers of requests.
//
// Each plugin counts for itself, on all routes that it applies to. A plugin of a consumer, or of a group of consumers,
// replaces that of the route for these consumers: the consumer's own rule of the route's plugin is unlimited then.
func (b *builder) limitsOf(r *route, knows bool) []string {
	var base *plugin
	for _, p := range b.applying(r) {
		if p.name == "rate-limiting" {
			base = p
		}
	}
	own := map[string]*plugin{} // by consumer
	apart := ""                 // what makes the rules of this route differ from those of others with the same plugin
	for _, c := range b.consumers {
		p := b.tierOf(c, r)
		if p == nil || !knows {
			continue
		}
		own[nameOf(c.name)] = p
		if p.service != "" || p.route != "" {
			apart = "-" + r.name
			b.untranslated(p, false, "the plugin that it replaces counts the requests of its route apart")
		}
	}
	if base == nil && len(own) == 0 {
		return nil
	}
	var descriptors []any
	name := "limits"
	if base != nil {
		name += "-" + base.scope()
		descriptors = append(descriptors, b.limit(base, knows, own, "", apart)...)
	}
	for _, c := range b.consumers {
		if p := own[nameOf(c.name)]; p != nil {
			descriptors = append(descriptors, b.limit(p, true, nil, nameOf(c.name), "")...)
		}
	}
	if len(own) > 0 {
		name += "-" + r.name
	}
	if descriptors = unique(descriptors); len(descriptors) == 0 {
		return nil
	}
	return []string{b.add(nameOf(name), "ratelimit", map[string]any{"descriptors": descriptors})}
}

// tierOf returns the plugin that applies to a consumer in place of that of the route; nil if there is none.
func (b *builder) tierOf(c *consumer, r *route) (best *plugin) {
	rank := func(p *plugin) int { // Kong's order of precedence
		n := 4 * width(p)
		if p.consumer == "" {
			n++
		}
		return n
	}
	for _, p := range b.plugins {
		fits := p.name == "rate-limiting" && (p.consumer == c.name || p.consumer == "" && p.tier != "" && slices.Contains(c.tiers, p.tier)) &&
			(p.route == "" || p.route == r.name) && (p.service == "" || p.service == r.service.name)
		if fits && (best == nil || rank(p) < rank(best)) {
			best = p
		}
	}
	return best
}

// limit adds the rules of a plugin, and returns the descriptors that meet them. If consumer is not empty, they are for
// this consumer only; the consumers of own have other ones.
func (b *builder) limit(p *plugin, knows bool, own map[string]*plugin, consumer, apart string) (descriptors []any) {
	by := get(b.file, p.config, "limit_by", "consumer")
	key, sends := "consumer", descriptor{Consumer: "name"}
	switch {
	case by == "header":
		header := get(b.file, p.config, "header_name", "")
		key, sends = "header", descriptor{Header: map[string]string{"header_name": header, "descriptor_key": "header"}}
	case by == "service" || by == "path" && p.route != "":
		key, sends = "", descriptor{}
	case by == "ip" || !knows:
		key, sends = "remote_address", descriptor{Address: "client"}
	case by == "credential":
		b.untranslated(p, false, "counts each consumer here, and not each credential")
	}
	if consumer != "" || len(own) > 0 {
		key, sends = "consumer", descriptor{Consumer: "name"}
		if by != "consumer" && by != "credential" {
			b.untranslated(p, false, "counts each consumer here, since some consumers have limits of their own")
		}
	}
	if !get(b.file, p.config, "fault_tolerant", true) {
		b.untranslated(p, false, "requests pass here while the counters cannot be reached")
	}
	for _, unit := range units() {
		number := get(b.file, p.config, unit, 0)
		if number == 0 {
			continue
		}
		value := nameOf(p.scope() + apart + "-" + unit)
		rate := map[string]any{"rate_limit": map[string]any{"unit": unit, "requests_per_unit": number}}
		var rules []map[string]any
		sends.Plugin = map[string]string{"descriptor_key": "kong", "descriptor_value": value}
		if key == "" {
			b.rule(value, rate, nil)
		} else {
			rate["key"] = key
			if consumer != "" {
				rate["value"] = consumer
			}
			rules = append(rules, rate)
			for _, c := range b.consumers {
				if own[nameOf(c.name)] != nil {
					rules = append(rules, map[string]any{"key": key, "value": nameOf(c.name), "rate_limit": map[string]any{"unlimited": true}})
				}
			}
			b.rule(value, nil, rules)
		}
		descriptors = append(descriptors, sends)
	}
	b.rest(p.config, "plugin rate-limiting", append(units(), "limit_by", "header_name", "path", "policy", "fault_tolerant", "hide_client_headers",
		"redis", "sync_rate")...)
	return descriptors
}

// rule adds rules under a value of the first part of the descriptors.
func (b *builder) rule(value string, rate map[string]any, inner []map[string]any) {
	r := b.limits[value]
	if r == nil {
		r = map[string]any{"key": "kong", "value": value}
		b.limits[value], b.order = r, append(b.order, value)
	}
	for key, v := range rate {
		r[key] = v
	}
	have, _ := r["descriptors"].([]map[string]any)
	for _, rule := range inner {
		if !slices.ContainsFunc(have, func(h map[string]any) bool { return h["key"] == rule["key"] && h["value"] == rule["value"] }) {
			have = append(have, rule)
		}
	}
	if len(have) > 0 {
		r["descriptors"] = have
	}
}

// addLimits adds the global config with all rules.
func (b *builder) addLimits() {
	if len(b.order) == 0 {
		return
	}
	rules := make([]any, len(b.order))
	for i, value := range b.order {
		rules[i] = b.limits[value]
	}
	b.doc.GlobalConfigs = append(b.doc.GlobalConfigs, map[string]any{
		"globalconfig_name": "kong-limits", "globalconfig_type": "ratelimit", "config": map[string]any{"domain": limitDomain, "descriptors": rules},
	})
}

// unique returns descriptors without repetitions.
func unique(list []any) (out []any) {
	seen := map[string]bool{}
	for _, d := range list {
		if text := fmt.Sprint(d); !seen[text] {
			seen[text] = true
			out = append(out, d)
		}
	}
	return out
}
