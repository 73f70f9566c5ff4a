package document

import (
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// DeleteOptions say how a document is deleted.
type DeleteOptions struct {
	// Tag, if set, must be a tag of every object of the document except routes and keys.
	Tag string
	// Force deletes what was changed after the revision that the document comes from.
	Force bool
	// CheckProxy refuses to delete a proxy that is in use; nil means that none is.
	CheckProxy func(store.Reader, model.Key) error
}

// Delete deletes what a document names, objects before what they need: first what its lists attach, then the objects with
// all that is inside of them. What does not exist is skipped. Run it in one transaction, and roll that back on an error,
// which names the object and its line; it is InUse for what an object needs that the document does not name.
func Delete(w store.Writer, doc *Document, opts DeleteOptions) (Result, error) {
	a := &applier{w: w, opts: ApplyOptions{Tag: opts.Tag, Force: opts.Force}}
	if err := a.checkTags(doc); err != nil {
		return Result{}, err
	}
	before := w.Count()
	for _, item := range doc.Items {
		for _, list := range listsOf(item.Object.Key().Kind) {
			for _, l := range item.Lists[list.kind] {
				err := w.Remove(linkKey(list.kind, item.Object.Key(), l.Name))
				if err != nil && !model.IsKind(err, model.NotFound) {
					return Result{}, locate(err, l.Line, item.At+"."+list.key)
				}
			}
		}
	}
	for _, item := range slices.Backward(doc.Items) {
		if err := deleteItem(w, item.Object.Key(), opts); err != nil && !model.IsKind(err, model.NotFound) {
			return Result{}, locate(err, item.Line, item.At)
		}
	}
	if err := a.checkBase(doc); err != nil {
		return Result{}, err
	}
	done := w.Count()
	a.result.Deleted = done.Deleted - before.Deleted
	return a.result, nil
}

func deleteItem(w store.Writer, key model.Key, opts DeleteOptions) error {
	obj, err := w.Get(key)
	if err != nil {
		return err
	}
	if tagged, is := obj.(model.Tagged); is && opts.Tag != "" && !isPart(key.Kind) && !tagged.TagList().Has(opts.Tag) {
		return &model.Error{
			Kind: model.Conflict, Path: key.Path(),
			Message: fmt.Sprintf("the stored object does not have the tag %q that this call is limited to", opts.Tag),
		}
	}
	if key.Kind == model.KindProxy && opts.CheckProxy != nil {
		if err := opts.CheckProxy(w, key); err != nil {
			return err
		}
	}
	return store.Delete(w, key)
}
