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

// Explained is an answer with the addresses of the Envoys that it applies to; none
// means that it is from what Envoys should have.
type Explained struct {
	Envoys []string
	explain.Answer
}

// explainNothing is the Explain of an API without Envoys.
func explainNothing(_ context.Context, _ string, r explain.Request) ([]Explained, error) {
	a, err := explain.Explain(explain.State{}, r)
	return []Explained{{Answer: a}}, err
}

// Basis returns what an answer is based on.
func (e Explained) Basis() (basis string, envoys []string) {
	if len(e.Envoys) == 0 {
		return "wanted", []string{}
	}
	return "envoys", e.Envoys
}

// NameObjects names the objects that cause the gateway's own responses: what is stored now, while an Envoy may have an
// older version.
func (in *Inspector) NameObjects(r store.Reader, list []Explained) error {
	for i := range list {
		a := &list[i].Answer
		if a.Service == "" || in.nameCondition(a) || a.FilterType == "" {
			continue
		}
		names, err := refusers(r, a)
		if err != nil {
			return err
		}
		nameFilters(a, names)
	}
	return nil
}

// nameCondition says why a service or a route cannot work, if that is the reason of the response.
func (in *Inspector) nameCondition(a *explain.Answer) bool {
	if in.Status == nil || a.Code != explain.DirectResponse || a.Status != http.StatusServiceUnavailable {
		return false
	}
	service := model.ServiceKey(a.Service)
	for _, c := range in.Status.Conditions() {
		closes := c.Key == service || c.Key.Kind == model.KindServiceFilter && c.Key.Owner() == service ||
			c.Key == model.RouteKey(a.Service, a.Route)
		if closes && (c.Code == model.Quarantined || c.Code == model.NoUpstream) {
			a.Retell(a.Message, c.Message)
			a.RefusedBy = []string{c.Key.Path()}
			return true
		}
	}
	return false
}

// refusers returns the filters of the type that responds: those of the route, and those of the service that apply
// there too.
func refusers(r store.Reader, a *explain.Answer) ([]string, error) {
	var names []string
	add := func(name string) error {
		f, err := store.Get[*model.Filter](r, model.FilterKey(name))
		if model.IsKind(err, model.NotFound) {
			return nil
		}
		if err == nil && f.Type == a.FilterType && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return err
	}
	own, err := store.List[*model.RouteFilter](r,
		store.Query{Kind: model.KindRouteFilter, To: []model.Key{model.RouteKey(a.Service, a.Route)}, ByName: true})
	for _, l := range own {
		if err == nil {
			err = add(l.Filter)
		}
	}
	if err != nil || len(names) > 0 && !model.AddsUp(a.FilterType) {
		return names, err
	}
	wide, err := store.List[*model.ServiceFilter](r,
		store.Query{Kind: model.KindServiceFilter, To: []model.Key{model.ServiceKey(a.Service)}, ByName: true})
	for _, l := range wide {
		if err == nil {
			err = add(l.Filter)
		}
	}
	return names, err
}

// nameFilters adds the names of filters to the messages, which have only their type.
func nameFilters(a *explain.Answer, names []string) {
	if len(names) == 0 {
		return
	}
	for _, name := range names {
		a.RefusedBy = append(a.RefusedBy, model.FilterKey(name).Path())
	}
	named := a.FilterType + " " + strings.Join(names, " or ")
	for _, before := range []string{"an " + a.FilterType, "a " + a.FilterType} {
		a.Retell(before, named)
	}
	a.Retell("the route answers", named+" answers")
}
