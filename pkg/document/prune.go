package document

import (
	"errors"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// pruneOwners deletes the proxies, services and routes that the document does
// not name, before what they hold is claimed by others.
func (a *applier) pruneOwners(doc *Document) error {
	if !a.opts.Prune {
		return nil
	}
	if err := a.prune(model.KindProxy); err != nil {
		return err
	}
	if err := a.pruneRoutes(doc); err != nil {
		return err
	}
	return a.prune(model.KindService)
}

// pruneUsed deletes what the objects of the document may have used until now.
func (a *applier) pruneUsed(*Document) error {
	if !a.opts.Prune {
		return nil
	}
	for _, kind := range slices.Backward(model.Kinds()) {
		if len(kind.UserKinds()) == 0 || len(kind.OwnedKinds()) > 0 {
			continue
		}
		if err := a.prune(kind); err != nil {
			return err
		}
	}
	return nil
}

// prune deletes what the document does not name of a kind.
func (a *applier) prune(kind model.Kind) error {
	after := ""
	for {
		page, err := a.w.List(store.Query{Kind: kind, Tag: a.opts.Tag, ByName: true, AfterName: after, Limit: pageSize})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, obj := range page {
			key := obj.Key()
			after = key.Name()
			if a.named[key] {
				continue
			}
			if err := store.Delete(a.w, key); err != nil {
				return pruning(err, key)
			}
		}
	}
}

// pruneRoutes deletes the routes that the document does not name of the
// services that it names. With a tag those belong to it whose service carried
// it before.
func (a *applier) pruneRoutes(doc *Document) error {
	for page := range slices.Chunk(doc.Items, pageSize) {
		services, err := a.prunableServices(page)
		if err != nil {
			return err
		}
		if len(services) == 0 {
			continue
		}
		unnamed := map[model.Key][]model.Key{}
		err = a.each(store.Query{Kind: model.KindRoute, To: services}, func(route model.Object) {
			if !a.named[route.Key()] {
				unnamed[route.Key().Owner()] = append(unnamed[route.Key().Owner()], route.Key())
			}
		})
		if err != nil {
			return err
		}
		for _, service := range services {
			for _, key := range unnamed[service] {
				if err := store.Delete(a.w, key); err != nil {
					return pruning(err, key)
				}
			}
		}
	}
	return nil
}

// prunableServices lists the services of a page that exist and whose routes may be deleted.
func (a *applier) prunableServices(page []*Item) (services []model.Key, err error) {
	var keys []model.Key
	for _, item := range page {
		if key := item.Object.Key(); key.Kind == model.KindService {
			keys = append(keys, key)
		}
	}
	if err := a.w.Prefetch(keys); err != nil {
		return nil, err
	}
	for _, key := range keys {
		stored, err := a.get(key)
		if err != nil {
			return nil, err
		}
		if stored != nil && (a.opts.Tag == "" || stored.(*model.Service).Tags.Has(a.opts.Tag)) {
			services = append(services, key)
		}
	}
	return services, nil
}

// pruning says why something is deleted that the document does not speak of.
func pruning(err error, key model.Key) error {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || e.Kind == model.Unavailable {
		return err
	}
	located := *e
	located.Message = "deleting " + key.Path() + ", which the document does not name: " + e.Message
	return &located
}
