package scrape

import (
	"maps"
	"slices"
	"strings"

	"github.com/envoyproxy/ratelimit/src/utils"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit"
)

// series identifies the metrics of a limit. The engine splits the limit's name at
// each dot, uses the first three parts as labels and drops the others
// (src/stats/prom/default_mapper.yaml of the upstream).
type series struct{ domain, key1, key2 string }

// group contains the limits that share a series, by path.
type group struct {
	series series
	paths  []string
}

// groups returns the series of the limits of a domain, in the order of their first
// paths. The paths in untold have none: the engine mistakes the end of such a name
// for the kind of the metric.
func groups(d *limits.Domain) (list []*group, untold []string) {
	paths := ratelimit.Paths(ratelimit.Configs([]*limits.Domain{d})[0])
	bySeries := map[series]*group{}
	lost := map[series]bool{}
	for name, path := range paths {
		s, told := seriesOf(name)
		if bySeries[s] == nil {
			bySeries[s] = &group{series: s}
		}
		bySeries[s].paths = append(bySeries[s].paths, path)
		lost[s] = lost[s] || !told
	}
	for s, g := range bySeries {
		if lost[s] {
			untold = append(untold, g.paths...)
			delete(bySeries, s)
			continue
		}
		slices.Sort(g.paths)
	}
	slices.Sort(untold)
	return slices.SortedFunc(maps.Values(bySeries),
		func(a, b *group) int { return strings.Compare(a.paths[0], b.paths[0]) }), untold
}

// seriesOf returns the series of a limit by its name in the engine, and whether
// the engine shows it.
func seriesOf(name string) (s series, told bool) {
	parts := append(strings.Split(utils.SanitizeStatName(name), "."), "", "")
	s = series{parts[0], parts[1], parts[2]}
	return s, !slices.ContainsFunc(parts[3:], hidesMetric)
}

// hidesMetric reports whether a part of a name that the engine drops hides the
// kind of the metric: the engine looks for ".near_limit" and the like anywhere in
// it, and not beyond the end of a line.
func hidesMetric(part string) bool {
	for _, end := range names() {
		if strings.HasPrefix(part, end) {
			return true
		}
	}
	return strings.HasPrefix(part, "within_limit") || strings.Contains(part, "\n")
}
