package document

import (
	"errors"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// pruneOwners deletes the proxies, the services and the parts of objects that the document does not
// name, before others claim what they hold.
func (a *applier) pruneOwners(doc *Document) error {
	if !a.opts.Prune {
		return nil
	}
	if err := a.prune(model.KindProxy); err != nil {
		return err
	}
	for _, s := range sections() {
		if partsOf(s.kind).kind == "" {
			continue
		}
		if err := a.pruneParts(doc, s.kind); err != nil {
			return err
		}
	}
	return a.prune(model.KindService)
}

// pruneUsed deletes what the objects of the document may have used so far.
func (a *applier) pruneUsed(*Document) error {
	if !a.opts.Prune {
		return nil
	}
	for _, kind := range slices.Backward(model.Kinds()) {
		if len(kind.UserKinds()) == 0 || kind == model.KindService {
			continue
		}
		if err := a.prune(kind); err != nil {
			return err
		}
	}
	return nil
}

// prune deletes the objects of a kind that the document does not name.
func (a *applier) prune(kind model.Kind) error {
	if a.opts.Prunable != nil && !a.opts.Prunable(kind) {
		return nil
	}
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

// pruneParts deletes the parts that the document does not name, of the objects of a kind that it
// names. With a tag, only if their owner had the tag before.
func (a *applier) pruneParts(doc *Document, kind model.Kind) error {
	for page := range slices.Chunk(doc.Items, pageSize) {
		owners, err := a.prunableOwners(page, kind)
		if err != nil {
			return err
		}
		if len(owners) == 0 {
			continue
		}
		unnamed := map[model.Key][]model.Key{}
		err = a.each(store.Query{Kind: partsOf(kind).kind, To: owners}, func(part model.Object) {
			if !a.named[part.Key()] {
				unnamed[part.Key().Owner()] = append(unnamed[part.Key().Owner()], part.Key())
			}
		})
		if err != nil {
			return err
		}
		for _, owner := range owners {
			for _, key := range unnamed[owner] {
				if err := store.Delete(a.w, key); err != nil {
					return pruning(err, key)
				}
			}
		}
	}
	return nil
}

// prunableOwners lists the objects of a kind in a page that exist and whose parts may be deleted.
func (a *applier) prunableOwners(page []*Item, kind model.Kind) (owners []model.Key, err error) {
	var keys []model.Key
	for _, item := range page {
		if key := item.Object.Key(); key.Kind == kind {
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
		if stored != nil && (a.opts.Tag == "" || stored.(model.Tagged).TagList().Has(a.opts.Tag)) {
			owners = append(owners, key)
		}
	}
	return owners, nil
}

// pruning explains why an object is deleted that the document does not mention.
func pruning(err error, key model.Key) error {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || e.Kind == model.Unavailable {
		return err
	}
	located := *e
	located.Message = "deleting " + key.Path() + ", which the document does not name: " + e.Message
	return &located
}
