package kube

import (
	"context"
	"log/slog"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// Actor is the actor in the change log of the mirror.
const Actor = "kubernetes"

// mirror is the store that is kept equal to the objects of Kubernetes.
type mirror struct {
	store store.Store
	log   *slog.Logger
	// left are the objects that the rules of the store refuse, which must not happen, with the error messages.
	left map[model.Key]string
}

// write applies operations in one transaction and returns the revision that has them. It leaves out an operation
// that the rules of the store refuse, and those that need it.
func (m *mirror) write(ctx context.Context, request string, ops []translate.Op) (revision int64, err error) {
	var refused map[model.Key]string
	revision, err = m.store.Write(ctx, store.Origin{Actor: Actor, Request: request}, func(w store.Writer) error {
		refused = map[model.Key]string{}
		var again []translate.Op
		for _, op := range ops {
			err := apply(w, op)
			switch {
			case err == nil:
			case isRule(err):
				again = append(again, op)
			default:
				return err
			}
		}
		for _, op := range again { // what blocked it may be gone
			err := apply(w, op)
			if isRule(err) {
				refused[op.Key] = err.Error()
				continue
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, op := range ops {
		delete(m.left, op.Key)
	}
	for key, why := range refused {
		m.left[key] = why
		m.log.Error("an object of Kubernetes is left out, because the store refuses what it became", "object", key.Path(),
			"reason", why)
	}
	return revision, nil
}

// revision returns the current revision of the mirror.
func (m *mirror) revision(ctx context.Context) (revision int64, err error) {
	err = m.store.Read(ctx, func(r store.Reader) (err error) {
		revision, err = r.Revision()
		return err
	})
	return revision, err
}

// apply does one operation, under the rules of the store.
func apply(w store.Writer, op translate.Op) error {
	if op.Object == nil {
		err := store.Delete(w, op.Key)
		if model.IsKind(err, model.NotFound) {
			return nil
		}
		return err
	}
	if bad := validate(op.Object); bad != nil {
		return bad
	}
	if id := op.Object.Meta().ID; id != nil && *id != 0 {
		if _, err := w.Get(op.Key); model.IsKind(err, model.NotFound) {
			return w.Restore(op.Object)
		}
	}
	_, err := store.Put(w, op.Object)
	return err
}

// validate returns what is wrong with an object.
func validate(obj model.Object) error {
	v, ok := obj.(interface{ Validate() []model.FieldError })
	if !ok {
		return nil
	}
	if errs := v.Validate(); len(errs) > 0 {
		return &model.Error{
			Kind: model.Invalid, Path: obj.Key().Path(), Message: errs[0].Field + " " + errs[0].Message, Fields: errs,
		}
	}
	return nil
}

// isRule reports whether an error is about the object rather than the database.
func isRule(err error) bool {
	for _, kind := range []model.ErrorKind{
		model.Invalid, model.NotFound, model.Exists, model.InUse, model.Conflict, model.Unworkable,
	} {
		if model.IsKind(err, kind) {
			return true
		}
	}
	return false
}
