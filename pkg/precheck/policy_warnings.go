package precheck

import (
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/grpcjson"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// policyWarnings says which filters that were written or attached do not fit where they are.
func policyWarnings(r store.Reader, written store.Changes) ([]string, error) {
	w := warner{checker: checker{reader: r}, places: map[model.Key]bool{}}
	var list []string
	for c, err := range written(model.KindFilter, model.KindRouteFilter, model.KindServiceFilter) {
		if err != nil {
			return nil, err
		}
		switch o := c.After.(type) {
		case *model.Filter:
			if slices.Contains([]string{model.FilterCompress, model.FilterBodyLimit, model.FilterGRPCWeb, model.FilterGRPCJSON}, o.Type) {
				err = w.addLinks([]model.Key{c.Key}, true)
			}
			list = append(list, adviseCalls(o)...)
		case *model.RouteFilter, *model.ServiceFilter:
			w.places[c.Key] = true
		}
		if err != nil || len(w.places) > mostPlaces {
			return list, err
		}
	}
	for _, link := range sortedKeys(w.places) {
		f, found, err := find[*model.Filter](r, link.Attached())
		if err != nil {
			return nil, err
		}
		if !found {
			continue // deleted again in the same transaction
		}
		what := ""
		switch f.Type {
		case model.FilterCompress:
			what, err = w.adviseCompress(link)
		case model.FilterBodyLimit:
			what, err = w.adviseBodyLimit(link)
		case model.FilterGRPCWeb, model.FilterGRPCJSON:
			what, err = w.adviseGRPC(link)
		}
		if err != nil {
			return nil, err
		}
		if what != "" {
			list = append(list, link.Path()+" "+what)
		}
	}
	return list, nil
}

// adviseCompress says that the pages of a login are compressed.
func (w warner) adviseCompress(link model.Key) (string, error) {
	links, err := store.List[*model.ServiceFilter](w.reader, store.Query{Kind: model.KindServiceFilter, To: []model.Key{model.ServiceKey(link.Part(model.KindService))}})
	for _, l := range links {
		f, found, err := find[*model.Filter](w.reader, model.FilterKey(l.Filter))
		if err != nil {
			return "", err
		}
		if found && f.Type == model.FilterOIDC {
			return "compresses answers behind login " + f.Name + ": their length tells something of secrets in them, if they also have text that others choose (BREACH)", nil
		}
	}
	return "", err
}

// adviseBodyLimit says which routes have requests without an end.
func (w warner) adviseBodyLimit(link model.Key) (string, error) {
	routes, err := w.routesOf(link)
	if err != nil {
		return "", err
	}
	for _, r := range routes {
		if r.Config.Websocket != nil && *r.Config.Websocket {
			return fmt.Sprintf("refuses the websockets that %s allows: they have no end that a limit could wait for", r.Key().Path()), nil
		}
		u, err := w.findUpstream(r, carriesGRPC)
		if err != nil {
			return "", err
		}
		if u != nil {
			return fmt.Sprintf("holds requests to upstream %s of %s until they are complete: streams, such as those of gRPC, would wait", u.Name, r.Key().Path()), nil
		}
	}
	return "", nil
}

// adviseCalls says which paths do not say what a call is about.
func adviseCalls(f *model.Filter) (list []string) {
	spec, is := f.Parse().Spec.(*model.GRPCJSONFilter)
	if !is {
		return nil
	}
	calls, err := grpcjson.Read(spec.Set(), grpcjson.Options{Services: spec.Services, AutoMapping: spec.AutoMapping})
	if err != nil {
		return nil // which is refused
	}
	for _, what := range calls.Overriding {
		list = append(list, f.Key().Path()+" is no ground for rules by path: "+what)
	}
	return list
}

// adviseGRPC says which upstreams get calls that they cannot take.
func (w warner) adviseGRPC(link model.Key) (string, error) {
	routes, err := w.routesOf(link)
	if err != nil {
		return "", err
	}
	for _, r := range routes {
		u, err := w.findUpstream(r, func(u *model.Upstream) bool { return !carriesGRPC(u) })
		if err != nil {
			return "", err
		}
		if u != nil {
			return fmt.Sprintf("makes gRPC of requests of %s, and upstream %s has the protocol %s, which carries none: "+
				"set its Upstream_protocol to h2c, or to h2 if it has TLS", r.Key().Path(), u.Name, u.Protocol), nil
		}
	}
	return "", nil
}

// carriesGRPC reports whether an upstream speaks HTTP/2.
func carriesGRPC(u *model.Upstream) bool { return u.Protocol == "h2" || u.Protocol == "h2c" }

// findUpstream returns an upstream of a route that is such; nil means that there is none.
func (w warner) findUpstream(r *model.Route, isSuch func(*model.Upstream) bool) (*model.Upstream, error) {
	links, err := store.List[*model.RouteUpstream](w.reader, store.Query{Kind: model.KindRouteUpstream, To: []model.Key{r.Key()}, Limit: mostPlaces})
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		u, found, err := find[*model.Upstream](w.reader, model.UpstreamKey(l.Upstream))
		if err != nil || found && isSuch(u) {
			return u, err
		}
	}
	return nil, nil
}

// routesOf are the routes that a link of a filter is about.
func (w warner) routesOf(link model.Key) ([]*model.Route, error) {
	if link.Kind == model.KindServiceFilter {
		return store.List[*model.Route](w.reader, store.Query{Kind: model.KindRoute, To: []model.Key{link.Owner()}, Limit: mostPlaces})
	}
	r, found, err := find[*model.Route](w.reader, link.Owner())
	if err != nil || !found {
		return nil, err
	}
	return []*model.Route{r}, nil
}
