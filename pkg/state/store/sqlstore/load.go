package sqlstore

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// maxLoaders bounds the transactions that load everything together: few kinds have many
// objects.
const maxLoaders = 4

func loaders() int { return min(runtime.GOMAXPROCS(0), maxLoaders) }

// loadAll loads every object, each before those that refer to it. The kinds are shared
// among several transactions. Each of them sees what the reader sees, whose revision is
// now, because every change of an object makes a new revision.
func (r *reader) loadAll(ctx context.Context, now model.Mark) ([]model.Entry, error) {
	kinds := model.Kinds()
	lists := make([][]model.Entry, len(kinds))
	var taken atomic.Int64
	load := func(r *reader) error {
		for {
			i := int(taken.Add(1)) - 1
			if i >= len(kinds) {
				return nil
			}
			list, err := r.List(store.Query{Kind: kinds[i]})
			if err != nil {
				return err
			}
			lists[i] = make([]model.Entry, len(list))
			for j, obj := range list {
				lists[i][j] = model.Entry{Key: obj.Key(), Object: obj}
			}
		}
	}
	var helpers errgroup.Group
	for range r.store.loaders - 1 {
		helpers.Go(func() error { return r.store.viewAt(ctx, now, load) })
	}
	if err := errors.Join(load(r), helpers.Wait()); err != nil {
		return nil, err
	}
	return slices.Concat(lists...), nil
}

// viewAt runs fn on one snapshot, unless that has another revision or none is
// available: others then do the work.
func (s *Store) viewAt(ctx context.Context, mark model.Mark, fn func(*reader) error) (err error) {
	_ = s.viewIn(ctx, s.load, func(r *reader) error {
		if now, failed := r.Mark(); failed == nil && now == mark {
			err = fn(r)
		}
		return nil
	})
	return err
}
