package precheck

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/grpcjson"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// policyWarnings warns of written or attached filters that do not fit their place, and of filters that lost
// what they need when another one was detached.
func policyWarnings(r store.Reader, written store.Changes) ([]string, error) {
	w := warner{checker: checker{reader: r}, attachments: map[model.Key]bool{}}
	advisers := w.advisers()
	var list []string
	for c, err := range written(model.KindFilter, model.KindRouteFilter, model.KindServiceFilter) {
		if err != nil {
			return nil, err
		}
		switch {
		case c.Key.Kind == model.KindFilter:
			f, written := c.After.(*model.Filter)
			if !written {
				continue
			}
			if list = append(list, adviseCalls(f)...); advisers[f.TypeName()] != nil && !isPlainLimit(f) {
				err = w.addLinks([]model.Key{c.Key}, true)
			}
		case c.After != nil:
			w.attachments[c.Key] = true
		default:
			err = w.addBereft(c.Key)
		}
		if err != nil || len(w.attachments) > maxAttachments {
			return list, err
		}
	}
	for _, link := range sortedKeys(w.attachments) {
		f, found, err := find[*model.Filter](r, link.Attached())
		if err != nil {
			return nil, err
		}
		if !found || advisers[f.TypeName()] == nil || link.Kind == model.KindProxyFilter { // which is not for one service
			continue // or deleted again in the same transaction
		}
		what, err := advisers[f.TypeName()](link, f)
		if err != nil {
			return nil, err
		}
		if what != "" {
			list = append(list, link.Path()+" "+what)
		}
	}
	return list, nil
}

// advisers return, by type of filter, what is unusual about a filter at its place; empty means nothing.
func (w warner) advisers() map[string]func(model.Key, *model.Filter) (string, error) {
	return map[string]func(model.Key, *model.Filter) (string, error){
		model.FilterBodyLimit: w.adviseBodyLimit,
		model.FilterGRPCJSON:  w.adviseGRPC,
		model.FilterGRPCWeb:   w.adviseGRPC,
		model.FilterRateLimit: w.adviseCounted,
		model.FilterRBAC:      w.adviseAccess,
		model.FilterAccessLog: w.adviseLogs(),
	}
}

// isPlainLimit reports whether a filter is a limit that needs no identity.
func isPlainLimit(f *model.Filter) bool {
	spec, ok := f.Parse().Spec.(*model.RateLimitFilter)
	return ok && countedBy(spec) == identity{}
}

// adviseBodyLimit warns of routes with requests whose body has no end.
func (w warner) adviseBodyLimit(link model.Key, _ *model.Filter) (string, error) {
	routes, err := w.routesOf(link)
	if err != nil {
		return "", err
	}
	for _, r := range routes {
		if r.Config.Websocket != nil && *r.Config.Websocket {
			return fmt.Sprintf("refuses the websockets that %s allows: the limit would wait for their end", r.Key().Path()), nil
		}
		u, err := w.findUpstream(r, carriesGRPC)
		if err != nil {
			return "", err
		}
		if u != nil {
			return fmt.Sprintf("holds requests to upstream %s of %s until they are complete: streams, such as those of gRPC, "+
				"would wait", u.Name, r.Key().Path()), nil
		}
	}
	return "", nil
}

// adviseLogs warns of logs that a proxy of the service does not have.
func (w warner) adviseLogs() func(model.Key, *model.Filter) (string, error) {
	read := sync.OnceValues(func() (globalConfigs, error) {
		all, err := readInForce(w.reader)
		maps.DeleteFunc(all, func(_ model.Key, obj model.Object) bool {
			g, is := obj.(*model.GlobalConfig)
			return is && g.TypeName() != model.GlobalConfigAccessLog
		})
		return all, err
	})
	return func(link model.Key, f *model.Filter) (string, error) {
		links, err := store.List[*model.ProxyService](w.reader, store.Query{
			Kind: model.KindProxyService, To: []model.Key{model.ServiceKey(link.Part(model.KindService))}, Limit: maxAttachments,
		})
		if err != nil {
			return "", err
		}
		logs, err := read()
		if err != nil {
			return "", err
		}
		spec, is := f.Parse().Spec.(*model.AccessLogFilter)
		if !is {
			return "", nil // it closes what it is on
		}
		proxies := map[string]bool{}
		for _, l := range links {
			proxies[l.Proxy] = true
		}
		trees := logs.trees(proxies)
		for _, name := range slices.Sorted(maps.Keys(trees)) {
			var known []string
			for _, g := range trees[name].GlobalConfigs {
				known = append(known, g.Name)
			}
			for _, log := range spec.Logs {
				if slices.Contains(known, log) {
					continue
				}
				what := fmt.Sprintf("names the log %s, and no globalconfig_accesslog of proxy %s has that name", log, name)
				if best, near := suggest.Nearest(log, known); near {
					what += fmt.Sprintf("; the nearest is %q", best)
				}
				return what, nil
			}
		}
		return "", nil
	}
}

// adviseCalls warns of paths that do not determine what a call is about.
func adviseCalls(f *model.Filter) (list []string) {
	spec, is := f.Parse().Spec.(*model.GRPCJSONFilter)
	if !is {
		return nil
	}
	calls, err := grpcjson.Read(spec.Set(), grpcjson.Options{Services: spec.Services, AutoMapping: spec.AutoMapping})
	if err != nil {
		return nil // this is refused
	}
	for _, what := range calls.Overriding {
		list = append(list, f.Key().Path()+" makes rules by path unreliable: "+what)
	}
	return list
}

// adviseGRPC warns of upstreams that receive calls which they cannot handle.
func (w warner) adviseGRPC(link model.Key, _ *model.Filter) (string, error) {
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
			return fmt.Sprintf("converts requests of %s to gRPC, and upstream %s has the protocol %s, which cannot carry gRPC: "+
				"set its Upstream_protocol to h2c, or to h2 if it has TLS", r.Key().Path(), u.Name, u.Protocol), nil
		}
	}
	return "", nil
}

// carriesGRPC reports whether an upstream speaks HTTP/2.
func carriesGRPC(u *model.Upstream) bool { return u.Protocol == "h2" || u.Protocol == "h2c" }

// findUpstream returns an upstream of a route for which isSuch is true; nil means none.
func (w warner) findUpstream(r *model.Route, isSuch func(*model.Upstream) bool) (*model.Upstream, error) {
	upstreams, err := w.upstreamsOf(r)
	at := slices.IndexFunc(upstreams, isSuch)
	if err != nil || at < 0 {
		return nil, err
	}
	return upstreams[at], nil
}

// filtersOf returns the filters at the end of links.
func (w warner) filtersOf(q store.Query) (list []*model.Filter, err error) {
	q.Limit = maxAttachments
	links, err := w.reader.List(q)
	for _, l := range links {
		f, found, err := find[*model.Filter](w.reader, l.Key().Attached())
		if err != nil {
			return nil, err
		}
		if found {
			list = append(list, f)
		}
	}
	return list, err
}

func (w warner) upstreamsOf(r *model.Route) (list []*model.Upstream, err error) {
	links, err := store.List[*model.RouteUpstream](w.reader,
		store.Query{Kind: model.KindRouteUpstream, To: []model.Key{r.Key()}, Limit: maxAttachments})
	for _, l := range links {
		u, found, err := find[*model.Upstream](w.reader, model.UpstreamKey(l.Upstream))
		if err != nil {
			return nil, err
		}
		if found {
			list = append(list, u)
		}
	}
	return list, err
}

// routesOf returns the routes to which a filter's link applies.
func (w warner) routesOf(link model.Key) ([]*model.Route, error) {
	if link.Kind == model.KindServiceFilter {
		return store.List[*model.Route](w.reader,
			store.Query{Kind: model.KindRoute, To: []model.Key{link.Owner()}, Limit: maxAttachments})
	}
	r, found, err := find[*model.Route](w.reader, link.Owner())
	if err != nil || !found {
		return nil, err
	}
	return []*model.Route{r}, nil
}
