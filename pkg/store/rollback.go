package store

import (
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// CompactedError says that the change log does not reach back to a revision.
func CompactedError(revision int64) *model.Error {
	return &model.Error{
		Kind: model.Compacted, Message: fmt.Sprintf("the history does not reach back to revision %d any more", revision),
		Hint: "GET /revision lists what is kept; --revision-keep-age and --revision-keep-entries say how long",
	}
}

// Rollback makes the configuration what it was at a revision. What the change
// log does not hold any more is a Compacted error.
func Rollback(w Writer, revision int64) error {
	now, err := w.Revision()
	if err != nil {
		return err
	}
	// What an object was at the revision is what its first later change found.
	was := map[model.Key]model.Object{}
	var keys []model.Key
	for n := revision + 1; n <= now; n++ {
		entries, err := w.Entries(n)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return CompactedError(revision)
		}
		for _, e := range entries {
			if _, seen := was[e.Key]; !seen {
				was[e.Key] = e.Before
				keys = append(keys, e.Key)
			}
		}
	}
	rank := map[model.Kind]int{}
	for i, kind := range model.Kinds() {
		rank[kind] = i
	}
	slices.SortStableFunc(keys, func(a, b model.Key) int { return rank[a.Kind] - rank[b.Kind] })
	for _, key := range slices.Backward(keys) {
		if err := removeOther(w, key, was[key]); err != nil {
			return err
		}
	}
	for _, key := range keys {
		if was[key] == nil {
			continue
		}
		err := w.Replace(was[key])
		if model.IsKind(err, model.NotFound) {
			err = w.Restore(was[key])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeOther removes what has the key now, unless it is the object was: that
// may have been deleted, and its name taken by another.
func removeOther(w Writer, key model.Key, was model.Object) error {
	now, err := w.Get(key)
	switch {
	case model.IsKind(err, model.NotFound):
		return nil
	case err != nil:
		return err
	case was != nil && *now.Meta().ID == *was.Meta().ID:
		return nil
	}
	return w.Remove(key)
}
