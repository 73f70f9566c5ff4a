package precheck

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
)

// copiesAt refuses a service, or a route of one, whose filters would be copied into too many routes.
func (c checker) copiesAt(owner model.Key) error {
	if owner.Kind == model.KindRoute {
		if tree := c.routes[owner]; tree != nil {
			return c.copies(owner, owner.Owner(), slices.Concat(tree.ServiceFilters, tree.Apart))
		}
		return nil
	}
	if tree := c.config.Service(owner.Name()); tree != nil {
		return c.copies(owner, owner, slices.Concat(tree.Filters, tree.Apart))
	}
	return nil
}

// copiesOf refuses a filter that would be copied into too many routes of a service that has it.
func (c checker) copiesOf(f *model.Filter) error {
	filters := []*model.ParsedFilter{f.Parse()}
	if _, why := pipeline.MaxRoutes(filters); why == nil {
		return nil
	}
	links, err := c.reader.List(store.Query{Kind: model.KindServiceFilter, To: []model.Key{f.Key()}})
	for _, link := range links {
		if err == nil {
			err = c.copies(f.Key(), link.Key().Owner(), filters)
		}
	}
	return err
}

// copies counts the routes of a service with these filters.
func (c checker) copies(written, service model.Key, filters []*model.ParsedFilter) error {
	most, why := pipeline.MaxRoutes(filters)
	if why == nil || c.counted[service] {
		return nil
	}
	c.counted[service] = true
	routes, err := c.reader.List(store.Query{Kind: model.KindRoute, To: []model.Key{service}, Limit: most + 1})
	if err == nil && len(routes) > most {
		err = refusal(written, why)
	}
	return err
}
