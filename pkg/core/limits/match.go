package limits

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Met returns the paths of the limits that requests with a filter may meet.
func Met(f *model.RateLimitFilter, rules []model.RateLimitRule) []string {
	var list []string
	for _, d := range f.Descriptors {
		eachMatch(partsOf(d), rules, nil, false, func(path []part) bool {
			list = append(list, formatPath(path))
			return false
		})
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Unmet returns, for each descriptor that can never meet a limit, which limit is
// nearest to it. It omits a descriptor that meets one for some request.
func Unmet(f *model.RateLimitFilter, d *Domain) []string {
	var list []string
	for _, descriptor := range f.Descriptors {
		parts := partsOf(descriptor)
		if !eachMatch(parts, d.Descriptors, nil, false, func([]part) bool { return true }) {
			list = append(list, fmt.Sprintf("descriptor %s meets no rate of domain %q%s", formatPath(parts), d.Domain,
				nearest(parts, d.Descriptors)))
		}
	}
	return list
}

// eachMatch calls enough with each limit that some request's descriptor has under
// these rules, until enough returns true. within are the rules around them. limit
// means that the last of those has a limit. It follows the lookup of the engine: the
// engine joins key and value with "_" and uses the exact value, otherwise a
// wildcard, otherwise the key alone, and does not backtrack.
func eachMatch(parts []part, rules []model.RateLimitRule, within []part, limit bool, enough func([]part) bool) bool {
	if len(parts) == 0 {
		return limit && enough(within)
	}
	p := parts[0]
	if p.optional && eachMatch(parts[1:], rules, within, limit, enough) {
		return true
	}
	best := 0
	for _, r := range rules {
		best = max(best, p.rank(r))
	}
	return slices.ContainsFunc(rules, func(r model.RateLimitRule) bool {
		fit := p.rank(r)
		// If the value is unknown, any rule that fits may be used.
		return fit > 0 && (fit == best || p.value == "") &&
			eachMatch(parts[1:], r.Descriptors, append(slices.Clip(within), part{key: r.Key, value: r.Value}),
				r.RateLimit != nil, enough)
	})
}

// part is what is known about one part of a descriptor without a request.
type part struct {
	key string
	// value is empty if it comes from the request.
	value string
	// optional means that the part may be missing.
	optional bool
	// mayBe reports whether a request can have a value; nil means any.
	mayBe func(value string) bool
}

func partsOf(d model.RateLimitDescriptor) []part {
	parts := make([]part, len(d))
	for i, e := range d {
		parts[i] = part{key: e.SentKey(), value: e.Value, optional: e.SkipIfAbsent}
		switch e.Kind {
		case "remote_address":
			parts[i].mayBe = isAddress
		case "masked_remote_address":
			parts[i].mayBe = isNetwork
		}
	}
	return parts
}

// rank returns 3 for a rule with exactly the part's value, 2 for one with a
// wildcard, 1 for one with the key alone, and 0 for one that no value of the part
// meets.
func (p part) rank(r model.RateLimitRule) int {
	rule := joinEntry(r.Key, r.Value)
	prefix, wildcard := strings.CutSuffix(rule, "*")
	before := p.key + "_"
	switch own := joinEntry(p.key, p.value); {
	case p.value != "" && rule == own:
		return 3
	case p.value != "" && wildcard && strings.HasPrefix(own, prefix):
		return 2
	case rule == p.key:
		return 1
	case p.value != "":
		return 0
	case wildcard && (strings.HasPrefix(prefix, before) || strings.HasPrefix(before, prefix)):
		return 2
	case strings.HasPrefix(rule, before) && (p.mayBe == nil || p.mayBe(rule[len(before):])):
		return 3
	}
	return 0
}

func joinEntry(key, value string) string {
	if value == "" {
		return key
	}
	return key + "_" + value
}

func isAddress(value string) bool {
	_, err := netip.ParseAddr(value)
	return err == nil
}

func isNetwork(value string) bool {
	_, err := netip.ParsePrefix(value)
	return err == nil
}
