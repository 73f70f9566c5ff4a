package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addCanary does nothing. canaryOf and splitCanary do the work, before and after all other filters.
func addCanary(*ir.Route, *model.CanaryFilter) {}

// canaryOf returns the filter that splits the requests of a route: the last by name on the route, or
// else on its service; nil means that the route's own upstreams are used.
func canaryOf(t *model.RouteTree) (found *model.CanaryFilter) {
	for _, f := range slices.Concat(t.ServiceFilters, t.Filters) {
		if c, ok := f.Spec.(*model.CanaryFilter); ok && f.Fault == nil {
			found = c
		}
	}
	return found
}

// canaryClusters returns the clusters of a canary with their shares, without those of weight 0.
func canaryClusters(f *model.CanaryFilter, t *model.RouteTree, s Settings) ([]ir.WeightedCluster, error) {
	var list []ir.WeightedCluster
	for _, u := range f.Upstreams {
		cluster, err := namedCluster(u.Name, t.Named, s)
		if err != nil {
			return nil, err
		}
		if u.Weight > 0 {
			list = append(list, ir.WeightedCluster{Cluster: cluster, Share: u.Weight})
		}
	}
	return list, nil
}

// splitCanary adds routes before a route with a canary: for clients that send the canary's header, for
// clients with a cookie, and for clients that receive a cookie over HTTPS, which is never sent over
// plain HTTP. A forged cookie can only choose among the upstreams with a weight.
func splitCanary(r *ir.Route, t *model.RouteTree, s Settings) error {
	f := canaryOf(t)
	if f == nil || r.Forward == nil {
		return nil
	}
	all := r.Forward.Clusters
	if f.Header != nil {
		last, err := namedCluster(f.Upstreams[len(f.Upstreams)-1].Name, t.Named, s)
		if err != nil {
			return err
		}
		one := only(r, ir.WeightedCluster{Cluster: withAffinity(last, r.Forward.Affinity), Share: 1})
		one.Match.Headers = append(slices.Clone(r.Match.Headers), ir.ValueMatch{Name: strings.ToLower(f.Header.Name), Exact: f.Header.Value})
		r.Before = append(r.Before, one)
	}
	if f.Sticky != model.StickyCookie || len(all) == 1 {
		return nil
	}
	for _, c := range all {
		one := only(r, c)
		one.Match.Cookies = []ir.ValueMatch{{Name: f.Cookie(), Exact: c.Upstreams[0]}}
		r.Before = append(r.Before, one)
	}
	secure := only(r, withCookies(all, f, "; Secure")...)
	secure.Match.Headers = append(slices.Clone(r.Match.Headers), ir.ValueMatch{Name: "x-forwarded-proto", Exact: "https"})
	r.Before = append(r.Before, secure)
	r.Forward.Clusters = withCookies(all, f, "")
	return nil
}

// only returns a route that forwards to some of the clusters of r.
func only(r *ir.Route, clusters ...ir.WeightedCluster) *ir.Route {
	one, forward := *r, *r.Forward
	forward.Clusters = clusters
	one.Forward, one.Before = &forward, nil
	return &one
}

func withCookies(clusters []ir.WeightedCluster, f *model.CanaryFilter, attribute string) []ir.WeightedCluster {
	list := slices.Clone(clusters)
	for i, c := range list {
		list[i].SetCookie = fmt.Sprintf("%s=%s; Path=/; HttpOnly; SameSite=Lax%s", f.Cookie(), c.Upstreams[0], attribute)
	}
	return list
}
