package limits

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
)

// mostNames bounds how many names are compared.
const mostNames = 1000

// nearest returns which limit is most similar to a descriptor, and how they
// differ.
func nearest(parts []part, rules []model.RateLimitRule) string {
	var paths [][]part
	eachLimit(nil, rules, func(path []part, _ *model.RateLimit) { paths = append(paths, path) })
	if len(paths) == 0 {
		return ", which has no rates"
	}
	least := len(differences()) - 1
	for _, path := range paths {
		least = min(least, difference(parts, path))
	}
	// Among equally similar limits, use the one with the most similar text.
	var names []string
	for _, path := range paths {
		if difference(parts, path) == least && len(names) < mostNames {
			names = append(names, formatPath(path))
		}
	}
	name, _ := suggest.Nearest(formatPath(parts), names)
	return "; the nearest is " + name + differences()[least]
}

// differences are the possible differences between a descriptor and a limit, the
// smallest first.
func differences() []string {
	return []string{
		", with another value",
		", which is deeper: a rate applies at its own depth only",
		", which has fewer parts: a rate applies at its own depth only",
		", in another order",
		"",
	}
}

// difference returns the index in differences of what distinguishes a limit from
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
