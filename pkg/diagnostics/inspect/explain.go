package inspect

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// Explain returns what the Envoys of a proxy do with a request: one answer for each
// different state of the Envoys. While no Envoy has a known state, the answer is what
// they should do.
type Explain func(ctx context.Context, proxy string, r explain.Request) ([]Explained, error)

// Draft returns what the Envoys of a proxy should do with a request after some changes. The changes are not stored.
type Draft func(proxy string, changes []model.Entry, r explain.Request) (Explained, error)

// Explained is an answer with the addresses of the Envoys that it applies to; none
// means that it is from what Envoys should have.
type Explained struct {
	Envoys []string
	// Draft says that it is from a draft.
	Draft bool
	explain.Answer
}

// explainNothing is the Explain of an API without Envoys.
func explainNothing(_ context.Context, _ string, r explain.Request) ([]Explained, error) {
	a, err := explain.Explain(explain.State{}, r)
	return []Explained{{Answer: a}}, err
}

// draftNothing is the Drafts of an API without Envoys.
func draftNothing(context.Context) (Draft, error) {
	return func(_ string, _ []model.Entry, r explain.Request) (Explained, error) {
		a, err := explain.Explain(explain.State{}, r)
		return Explained{Draft: true, Answer: a}, err
	}, nil
}

// Basis returns what an answer is based on.
func (e Explained) Basis() (basis string, envoys []string) {
	if e.Draft {
		return "draft", []string{}
	}
	if len(e.Envoys) == 0 {
		return "wanted", []string{}
	}
	return "envoys", e.Envoys
}

// NameObjects names the objects that cause the gateway's own responses: what is stored now, while an Envoy may have an
// older version.
func (in *Inspector) NameObjects(r store.Reader, proxy string, list []Explained) error {
	for i := range list {
		a := &list[i].Answer
		if a.Service == "" {
			continue
		}
		if err := nameSources(r, proxy, a); err != nil {
			return err
		}
		if in.nameCondition(proxy, a) || a.FilterType == "" {
			continue
		}
		links, err := linksOf(r, proxy, a, a.FilterType)
		if err != nil {
			return err
		}
		nameFilters(a, links)
	}
	return nil
}

// nameSources says of each filter that the request passes what attaches filters of its type.
func nameSources(r store.Reader, proxy string, a *explain.Answer) error {
	for i := range a.Filters {
		f := &a.Filters[i]
		filterType := explain.TypeOf(f.Name)
		if filterType == "" {
			continue
		}
		links, err := linksOf(r, proxy, a, filterType)
		if err != nil {
			return err
		}
		for _, link := range slices.Backward(links) { // as they apply: that of the proxy first
			f.From = append(f.From, link.Path())
		}
	}
	return nil
}

// nameCondition says why a service or a route cannot work, if that is the reason of the response.
func (in *Inspector) nameCondition(proxy string, a *explain.Answer) bool {
	if in.Status == nil || a.Code != explain.DirectResponse || a.Status != http.StatusServiceUnavailable {
		return false
	}
	service := model.ServiceKey(a.Service)
	for _, c := range in.Status.Conditions() {
		closes := c.Key == service || c.Key.Kind == model.KindServiceFilter && c.Key.Owner() == service ||
			c.Key == model.RouteKey(a.Service, a.Route) || c.Key.Kind == model.KindProxyFilter && c.Key.Owner() == model.ProxyKey(proxy)
		if closes && (c.Code == model.Quarantined || c.Code == model.NoUpstream) {
			a.Retell(a.Message, c.Message)
			a.RefusedBy = []string{c.Key.Path()}
			return true
		}
	}
	return false
}

// linksOf returns the links of the filters of a type: those of the route, and those of the service and of the proxy that
// apply there too.
func linksOf(r store.Reader, proxy string, a *explain.Answer, filterType string) ([]model.Key, error) {
	var found []model.Key
	var names []string
	addAt := func(name string, at model.Key) error {
		f, err := store.Get[*model.Filter](r, model.FilterKey(name))
		if model.IsKind(err, model.NotFound) {
			return nil
		}
		if err == nil && f.TypeName() == filterType && !slices.Contains(names, name) {
			names, found = append(names, name), append(found, at)
		}
		return err
	}
	own, err := store.List[*model.RouteFilter](r,
		store.Query{Kind: model.KindRouteFilter, To: []model.Key{model.RouteKey(a.Service, a.Route)}, ByName: true})
	isAll := func() bool { return err != nil || len(names) > 0 && !model.Combines(filterType) }
	for _, l := range own {
		if err == nil {
			err = addAt(l.Filter, l.Key())
		}
	}
	if isAll() {
		return found, err
	}
	exempt, err := exemptOf(r, a)
	if err != nil {
		return nil, err
	}
	wide, err := store.List[*model.ServiceFilter](r,
		store.Query{Kind: model.KindServiceFilter, To: []model.Key{model.ServiceKey(a.Service)}, ByName: true})
	for _, l := range wide {
		if err == nil && !slices.Contains(exempt.Service, l.Filter) {
			err = addAt(l.Filter, l.Key())
		}
	}
	if isAll() {
		return found, err
	}
	err = eachOfProxy(r, proxy, a.Service, func(name string) error {
		if slices.Contains(exempt.Proxy, name) {
			return nil
		}
		return addAt(name, model.ProxyFilterKey(proxy, name))
	})
	return found, err
}

// exemptOf returns the names of filters that do not apply to the route of an answer.
func exemptOf(r store.Reader, a *explain.Answer) (model.Exempt, error) {
	route, err := store.Get[*model.Route](r, model.RouteKey(a.Service, a.Route))
	if model.IsKind(err, model.NotFound) || err == nil && route.Config.Exempt == nil {
		return model.Exempt{}, nil // deleted since, or exempt from none
	}
	if err != nil {
		return model.Exempt{}, err
	}
	return *route.Config.Exempt, nil
}

// eachOfProxy calls add with the filters of a proxy from which a service is not exempt.
func eachOfProxy(r store.Reader, proxy, service string, add func(string) error) error {
	links, err := store.List[*model.ProxyFilter](r,
		store.Query{Kind: model.KindProxyFilter, To: []model.Key{model.ProxyKey(proxy)}, ByName: true})
	if err != nil || len(links) == 0 {
		return err
	}
	svc, err := store.Get[*model.Service](r, model.ServiceKey(service))
	if model.IsKind(err, model.NotFound) {
		svc, err = &model.Service{}, nil // deleted since
	}
	for _, l := range links {
		if err == nil && !svc.ExemptFilters.Has(l.Filter) {
			err = add(l.Filter)
		}
	}
	return err
}

// nameFilters adds the names of filters to the messages, which have only their type.
func nameFilters(a *explain.Answer, by []model.Key) {
	if len(by) == 0 {
		return
	}
	var names []string
	for _, link := range by {
		if link.Kind == model.KindProxyFilter {
			a.RefusedBy = append(a.RefusedBy, link.Path()) // which says where it comes from
			names = append(names, link.Name()+" of the proxy")
		} else {
			a.RefusedBy = append(a.RefusedBy, link.Attached().Path())
			names = append(names, link.Name())
		}
	}
	named := a.FilterType + " " + strings.Join(names, " or ")
	for _, before := range []string{"an " + a.FilterType, "a " + a.FilterType} {
		a.Retell(before, named)
	}
	a.Retell("the route answers", named+" answers")
}
