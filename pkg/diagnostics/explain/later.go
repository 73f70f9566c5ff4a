package explain

import routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

// maxLater bounds the number of listed routes after the chosen one.
const maxLater = 20

// describeLater lists the routes after the selected one in their order. If
// there are too many, routes that would match have priority.
func (a *Answer) describeLater(s subject, routes []*routev3.Route) error {
	tried := make([]Route, len(routes))
	matching := 0
	for i, r := range routes {
		var err error
		if tried[i], err = s.tryRoute(r); err != nil {
			return err
		}
		tried[i].Message = "is not reached and would not match"
		if tried[i].Matches {
			matching++
			tried[i].Message = "would match, but comes later"
		}
	}
	others := max(0, maxLater-matching)
	for _, r := range tried {
		if !r.Matches {
			if others == 0 {
				continue
			}
			others--
		}
		if len(a.Later) == maxLater {
			break
		}
		a.Later = append(a.Later, r)
	}
	a.MoreRoutes = len(routes) - len(a.Later)
	return nil
}
