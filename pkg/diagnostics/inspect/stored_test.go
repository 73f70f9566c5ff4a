package inspect

import (
	"cmp"
	"errors"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

var errStore = errors.New("the database does not answer")

// stored is a store with objects, at revision 7.
type stored struct {
	store.Reader
	list []model.Object
	// broken is the kind that cannot be read, lost the object that cannot.
	broken model.Kind
	lost   model.Key
}

func (s stored) Revision() (int64, error) {
	if s.broken == "revision" {
		return 0, errStore
	}
	return 7, nil
}

func (s stored) Get(key model.Key) (model.Object, error) {
	if key.Kind == s.broken || key == s.lost {
		return nil, errStore
	}
	for _, o := range s.list {
		if o.Key() == key {
			return o, nil
		}
	}
	return nil, model.NotFoundError(key)
}

func (s stored) List(q store.Query) ([]model.Object, error) {
	if q.Kind == s.broken {
		return nil, errStore
	}
	var list []model.Object
	for _, o := range s.list {
		key := o.Key()
		to := len(q.To) == 0 || slices.ContainsFunc([]model.Key{key.Owner(), key.Root(), key.Attached()}, func(k model.Key) bool { return slices.Contains(q.To, k) })
		if key.Kind == q.Kind && to {
			list = append(list, o)
		}
	}
	if q.ByName {
		slices.SortFunc(list, func(a, b model.Object) int { return cmp.Compare(a.Key().Text(), b.Key().Text()) })
	}
	return list, nil
}
