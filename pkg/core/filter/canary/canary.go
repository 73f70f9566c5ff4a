// Package canary is route_filter_canary: it divides requests among upstreams in place of the route's own. Envoy's
// router does that, so there is no filter on the listener.
package canary

import (
	"fmt"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Filter returns the filter.
func Filter() seam.Filter {
	c := seam.LastOf(divide, split)
	c.Forwards = true
	return seam.Filter{Type: model.FilterCanary, Config: c, DescribeForward: describe}
}

// weighted returns the cluster of an upstream with a share.
func weighted(u model.CanaryUpstream, share int, at seam.Place) (ir.WeightedCluster, error) {
	cluster, err := at.Named(u.Name)
	return ir.WeightedCluster{
		Cluster: cluster, Share: share, Request: seam.ChangesOf(u.Request), Response: seam.ChangesOf(u.Response),
	}, err
}

// describe says which upstreams get changed requests, or whose responses change.
func describe(r *routev3.RouteAction) []string {
	var told []string
	for _, c := range r.GetWeightedClusters().GetClusters() {
		var names []string
		for _, h := range slices.Concat(c.GetRequestHeadersToAdd(), c.GetResponseHeadersToAdd()) {
			if name := h.GetHeader().GetKey(); name != "set-cookie" { // others say so
				names = append(names, name)
			}
		}
		names = slices.Concat(names, c.GetRequestHeadersToRemove(), c.GetResponseHeadersToRemove())
		if slices.Sort(names); len(names) > 0 {
			told = append(told, "requests to "+c.GetName()+" and their answers get changes of headers: "+strings.Join(slices.Compact(names), ", "))
		}
	}
	return told
}

// divide sets the clusters with their shares, without those of weight 0.
func divide(r *ir.Route, f *model.CanaryFilter, at seam.Place) error {
	if r.Forward == nil {
		return nil
	}
	for _, u := range f.Upstreams {
		one, err := weighted(u, u.Weight, at)
		if err != nil {
			return err
		}
		if u.Weight > 0 {
			r.Forward.Clusters = append(r.Forward.Clusters, one)
		}
	}
	return nil
}

// split adds routes before a route: for clients that send the canary's header, for clients with a cookie, and for
// clients that receive a cookie over HTTPS, which is never sent over plain HTTP. A forged cookie can only choose among
// the upstreams with a weight.
func split(r *ir.Route, f *model.CanaryFilter, at seam.Place) error {
	if r.Forward == nil {
		return nil
	}
	all := r.Forward.Clusters
	if f.Header != nil {
		last, err := weighted(f.Upstreams[len(f.Upstreams)-1], 1, at)
		if err != nil {
			return err
		}
		one := only(r, last)
		chosen := ir.ValueMatch{Name: strings.ToLower(f.Header.Name), Exact: f.Header.Value}
		one.Match.Headers = append(slices.Clone(r.Match.Headers), chosen)
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
	overHTTPS := ir.ValueMatch{Name: "x-forwarded-proto", Exact: "https"}
	secure.Match.Headers = append(slices.Clone(r.Match.Headers), overHTTPS)
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
		const cookie = "%s=%s; Path=/; HttpOnly; SameSite=Lax%s"
		list[i].SetCookie = fmt.Sprintf(cookie, f.Cookie(), c.Upstreams[0], attribute)
	}
	return list
}
