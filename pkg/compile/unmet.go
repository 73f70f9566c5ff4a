package compile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/suggest"
)

// UnmetDescriptors says of each descriptor that meets no rate, whatever the
// request, which rate is nearest to it. A descriptor that some request could
// make meet one is not told.
func UnmetDescriptors(f *model.RateLimitFilter, r *Rates) []string {
	var list []string
	for _, d := range f.Descriptors {
		parts := partsOf(d)
		if !meets(parts, r.Descriptors, false) {
			list = append(list, fmt.Sprintf("descriptor %s meets no rate of domain %q%s", rulePath(parts), r.Domain, nearest(parts, r.Descriptors)))
		}
	}
	return list
}

// MetRates lists the paths of the rates that requests with a filter may meet,
// such as "generic_key=shop > remote_address".
func MetRates(f *model.RateLimitFilter, rules []model.RateLimitRule) []string {
	var list []string
	for _, d := range f.Descriptors {
		eachMatch(partsOf(d), rules, nil, false, func(path []part) bool {
			list = append(list, rulePath(path))
			return false
		})
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func partsOf(d model.RateLimitDescriptor) []part {
	var parts []part
	for _, e := range d {
		parts = append(parts, partOf(rateLimitEntry(e), e.Kind))
	}
	return parts
}

// meets reports whether some request's descriptor has a rate under these rules;
// rate says that the part before has one.
func meets(parts []part, rules []model.RateLimitRule, rate bool) bool {
	return eachMatch(parts, rules, nil, rate, func([]part) bool { return true })
}

// eachMatch calls enough with each rate that some request's descriptor has under
// these rules, until that says true; within are the rules around them. It follows
// the lookup of the engine, which joins key and value with "_" and takes the
// exact value, else a wildcard, else the key alone, and does not go back.
func eachMatch(parts []part, rules []model.RateLimitRule, within []part, rate bool, enough func([]part) bool) bool {
	if len(parts) == 0 {
		return rate && enough(within)
	}
	p := parts[0]
	if p.optional && eachMatch(parts[1:], rules, within, rate, enough) {
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
	// value is empty where it comes from the request.
	value string
	// optional says that the part may be left out.
	optional bool
	// mayBe reports whether the request can bring a value; nil means any.
	mayBe func(value string) bool
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

// rulePath formats parts like a rule: "generic_key=shop > remote_address".
func rulePath(parts []part) string {
	text := make([]string, len(parts))
	for i, p := range parts {
		text[i] = p.key
		if p.value != "" {
			text[i] += "=" + p.value
		}
	}
	return strings.Join(text, " > ")
}

// nearest says which rate is the most like a descriptor, and what is different.
func nearest(parts []part, rules []model.RateLimitRule) string {
	paths := ratePaths(nil, nil, rules)
	if len(paths) == 0 {
		return ", which has none"
	}
	least := len(differences()) - 1
	for _, path := range paths {
		least = min(least, difference(parts, path))
	}
	// Of equally like ones, the one that reads most like it.
	var names []string
	for _, path := range paths {
		if difference(parts, path) == least && len(names) < manyRates {
			names = append(names, rulePath(path))
		}
	}
	name, _ := suggest.Nearest(rulePath(parts), names)
	return "; the nearest is " + name + differences()[least]
}

// manyRates bounds the work of comparing names.
const manyRates = 1000

// differences are what can be different between a descriptor and a rate, the
// least first.
func differences() []string {
	return []string{
		", with another value",
		", which is deeper: a rate holds at its own depth only",
		", which has fewer parts: a rate holds at its own depth only",
		", in another order",
		"",
	}
}

// difference is the index in differences of what makes a rate another one than
// the descriptor.
func difference(parts, rate []part) int {
	keys := func(list []part) []string {
		names := make([]string, len(list))
		for i, p := range list {
			names[i] = p.key
		}
		return names
	}
	a, b := keys(parts), keys(rate)
	same := min(len(a), len(b))
	switch {
	case slices.Equal(a, b):
		return 0
	case slices.Equal(a[:same], b[:same]) && len(a) < len(b):
		return 1
	case slices.Equal(a[:same], b[:same]):
		return 2
	case slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))):
		return 3
	}
	return 4
}

// ratePaths lists the rules that have a rate, each with those that it is in.
func ratePaths(list [][]part, within []part, rules []model.RateLimitRule) [][]part {
	for _, r := range rules {
		path := append(slices.Clip(within), part{key: r.Key, value: r.Value})
		if r.RateLimit != nil {
			list = append(list, path)
		}
		list = ratePaths(list, path, r.Descriptors)
	}
	return list
}
