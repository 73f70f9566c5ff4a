package precheck

import (
	"fmt"

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
			if o.Type == model.FilterCompress || o.Type == model.FilterBodyLimit {
				err = w.addLinks([]model.Key{c.Key}, true)
			}
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
		links, err := store.List[*model.RouteUpstream](w.reader, store.Query{Kind: model.KindRouteUpstream, To: []model.Key{r.Key()}, Limit: mostPlaces})
		if err != nil {
			return "", err
		}
		for _, l := range links {
			u, found, err := find[*model.Upstream](w.reader, model.UpstreamKey(l.Upstream))
			if err != nil {
				return "", err
			}
			if found && (u.Protocol == "h2" || u.Protocol == "h2c") {
				return fmt.Sprintf("holds requests to upstream %s of %s until they are complete: streams, such as those of gRPC, would wait", u.Name, r.Key().Path()), nil
			}
		}
	}
	return "", nil
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
