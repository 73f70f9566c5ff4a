package limits

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/suggest"
)

// mostNames bounds the work of comparing names.
const mostNames = 1000

// nearest says which limit is the most like a descriptor, and what is different.
func nearest(parts []part, rules []model.RateLimitRule) string {
	var paths [][]part
	eachLimit(nil, rules, func(path []part, _ *model.RateLimit) { paths = append(paths, path) })
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
		if difference(parts, path) == least && len(names) < mostNames {
			names = append(names, formatPath(path))
		}
	}
	name, _ := suggest.Nearest(formatPath(parts), names)
	return "; the nearest is " + name + differences()[least]
}

// differences are what can be different between a descriptor and a limit, the
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

// difference is the index in differences of what makes a limit another one than
// the descriptor's.
func difference(parts, limit []part) int {
	a, b := keys(parts), keys(limit)
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

func keys(parts []part) []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.key
	}
	return names
}
