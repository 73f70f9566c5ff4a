package limits

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// Met lists the paths of the limits that requests with a filter may meet.
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

// Unmet says of each descriptor that meets no limit, whatever the request, which
// limit is nearest to it. A descriptor that some request could make meet one is
// not told.
func Unmet(f *model.RateLimitFilter, d *Domain) []string {
	var list []string
	for _, descriptor := range f.Descriptors {
		parts := partsOf(descriptor)
		if !eachMatch(parts, d.Descriptors, nil, false, func([]part) bool { return true }) {
			list = append(list, fmt.Sprintf("descriptor %s meets no rate of domain %q%s", formatPath(parts), d.Domain, nearest(parts, d.Descriptors)))
		}
	}
	return list
}

// eachMatch calls enough with each limit that some request's descriptor has under
// these rules, until that returns true; within are the rules around them, and
// limit says that the last of those has one. It follows the lookup of the engine,
// which joins key and value with "_" and takes the exact value, else a wildcard,
// else the key alone, and does not go back.
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
		// Where the value is not known, any rule that fits may be taken.
		return fit > 0 && (fit == best || p.value == "") &&
			eachMatch(parts[1:], r.Descriptors, append(slices.Clip(within), part{key: r.Key, value: r.Value}), r.RateLimit != nil, enough)
	})
}

// part is what is known of one part of a descriptor before there is a request.
type part struct {
	key string
	// value is empty if it comes from the request.
	value string
	// optional says that the part may be left out.
	optional bool
	// mayBe reports whether the request can bring a value; nil means any.
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

// rank returns 3 for a rule with the part's very value, 2 for one with a wildcard, 1
// for one with the key alone and 0 for one that no value of the part meets.
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
