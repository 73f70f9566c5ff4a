package compile

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostIPAccess(h *ir.Host, f *model.IPAccessFilter, _ Place) error {
	h.IPAccess = withIPAccess(h.IPAccess, f)
	return nil
}

func addRouteIPAccess(r *ir.Route, f *model.IPAccessFilter) { r.IPAccess = withIPAccess(r.IPAccess, f) }

// withIPAccess returns the lists of a and f.
func withIPAccess(a *ir.IPAccess, f *model.IPAccessFilter) *ir.IPAccess {
	if a == nil {
		a = &ir.IPAccess{}
	}
	both := &ir.IPAccess{Allow: a.Allow, Deny: sortRanges(append(slices.Clone(a.Deny), parseRanges(f.Deny)...))}
	if f.Allow != nil {
		both.Allow = append(slices.Clone(a.Allow), sortRanges(parseRanges(f.Allow)))
	}
	return both
}

// parseRanges parses ranges and clears the bits after the prefix. All ranges are valid: a
// filter with an invalid one has a fault.
func parseRanges(list []string) []netip.Prefix {
	ranges := make([]netip.Prefix, 0, len(list))
	for _, text := range list {
		if p, ok := model.ParseRange(text); ok {
			ranges = append(ranges, p.Masked())
		}
	}
	return ranges
}

func sortRanges(list []netip.Prefix) []netip.Prefix {
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	return slices.Compact(list)
}
