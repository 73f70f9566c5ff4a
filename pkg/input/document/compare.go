package document

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// compare finds the items that are stored as the document says, with the links that
// they list, and leaves the others to the next steps: an unchanged item is read once
// and costs nothing else.
func (a *applier) compare(doc *Document) error {
	for page := range slices.Chunk(doc.Items, pageSize) {
		stored, err := a.getAll(page)
		if err != nil {
			return err
		}
		var there []*Item
		for _, item := range page {
			if stored[item.Object.Key()] != nil {
				there = append(there, item)
			}
		}
		links := map[model.Key][]model.Key{}
		if err := a.links(there, func(of, link model.Key) { links[of] = append(links[of], link) }); err != nil {
			return err
		}
		for _, item := range page {
			key := item.Object.Key()
			switch {
			case stored[key] == nil:
				a.different = append(a.different, item)
			case a.hasFields(item, stored[key]) && a.hasLinks(item, links[key]):
				a.result.Unchanged++
				for _, link := range links[key] {
					if !a.isDone(link) {
						a.result.Unchanged++
					}
				}
			default:
				a.different, a.there = append(a.different, item), append(a.there, item)
			}
		}
	}
	return nil
}

// getAll returns the stored objects of a page of items.
func (a *applier) getAll(page []*Item) (map[model.Key]model.Object, error) {
	keys := make([]model.Key, len(page))
	for i, item := range page {
		keys[i] = item.Object.Key()
	}
	if err := a.w.Prefetch(keys); err != nil {
		return nil, err
	}
	stored := make(map[model.Key]model.Object, len(page))
	for _, key := range keys {
		obj, err := a.get(key)
		if err != nil {
			return nil, err
		}
		stored[key] = obj
	}
	return stored, nil
}

// hasFields reports whether an object is stored as the text says. It returns false for
// an object with secrets, which differ in their seals.
func (a *applier) hasFields(item *Item, stored model.Object) bool {
	if _, sealed := stored.(model.Confidential); sealed {
		return false
	}
	obj := clone(item.Object)
	if proxy, ok := obj.(*model.Proxy); ok && a.fillProxy(item, proxy, stored) != nil {
		return false // put says why
	}
	return sameFields(obj, stored)
}

// hasLinks reports whether an item lists exactly the links that are stored, and no
// object that may be deleted because the document does not name it.
func (a *applier) hasLinks(item *Item, links []model.Key) bool {
	listed := map[model.Key]bool{}
	for kind, names := range item.Lists {
		for _, l := range names {
			key := linkKey(kind, item.Object.Key(), l.Name)
			listed[key] = true
			if a.opts.Prune && (!a.named[key.Owner()] || !a.named[key.Attached()]) {
				return false
			}
		}
	}
	return len(listed) == len(links) && !slices.ContainsFunc(links, func(link model.Key) bool { return !listed[link] })
}

// isDone reports whether a link was handled from its other end, and marks it.
func (a *applier) isDone(link model.Key) bool {
	if link.Kind != model.KindProxyService {
		return false
	}
	was := a.done[link]
	a.done[link] = true
	return was
}
