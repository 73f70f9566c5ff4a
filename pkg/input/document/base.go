package document

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// checkBase refuses a document that undoes changes which its writer has not seen: those of objects
// that it changes too, made after the revision that it comes from. It is the last step, when it is
// known what the document changes.
func (a *applier) checkBase(doc *Document) error {
	if doc.Base == (model.Mark{}) || a.opts.Force {
		return nil
	}
	keys := map[model.Key]bool{}
	for change, err := range a.w.Written()() {
		if err != nil {
			return err
		}
		keys[change.Key] = true
	}
	if len(keys) == 0 {
		return nil
	}
	changed, known, err := a.w.ChangedSince(doc.Base, keys)
	switch {
	case model.IsKind(err, model.Compacted):
		return &model.Error{
			Kind: model.Conflict, Hint: overwriteHint,
			Message: fmt.Sprintf("the document comes from revision %d, and the history no longer reaches back to it",
				doc.Base.Revision),
		}
	case err != nil:
		return err
	case !known:
		a.result.Warnings = append(a.result.Warnings, fmt.Sprintf(
			"the document comes from revision %d of another gateway, or of a time before a restore: "+
				"nothing was compared with what changed since", doc.Base.Revision))
		return nil
	case len(changed) == 0:
		return nil
	}
	e := &model.Error{Kind: model.Conflict, Hint: overwriteHint, Message: fmt.Sprintf(
		"the document changes what was changed after revision %d, from which it comes; nothing was changed",
		doc.Base.Revision)}
	for key, by := range changed {
		e.Fields = append(e.Fields, model.FieldError{
			Field: key.Path(), Message: fmt.Sprintf("changed in revision %d by %s: %s", by.Revision, by.Actor, by.Request),
		})
	}
	slices.SortFunc(e.Fields, func(a, b model.FieldError) int { return cmp.Compare(a.Field, b.Field) })
	e.Fields = e.Fields[:min(len(e.Fields), maxErrors)]
	return e
}

const overwriteHint = "read it again and repeat the edit, or overwrite these changes: ?force=true, " +
	"gatehouse apply --force"
