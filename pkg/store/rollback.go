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
	seen := revision
	gap := false
	err = w.Befores(revision, func(at int64, key model.Key, before model.Object) {
		gap = gap || at > seen+1
		seen = at
		if _, known := was[key]; !known {
			was[key] = before
			keys = append(keys, key)
		}
	})
	if err != nil {
		return err
	}
	if gap || seen < now {
		return CompactedError(revision)
	}
	if err := prefetch(w, keys); err != nil {
		return err
	}
	rank := map[model.Kind]int{}
	for i, kind := range model.Kinds() {
		rank[kind] = i
	}
	slices.SortStableFunc(keys, func(a, b model.Key) int { return rank[a.Kind] - rank[b.Kind] })
	var gone []model.Key
	for _, key := range slices.Backward(keys) {
		if len(gone) > 0 && gone[0].Kind != key.Kind {
			if err := w.RemoveAll(gone); err != nil {
				return err
			}
			gone = gone[:0]
		}
		other, err := isOther(w, key, was[key])
		if err != nil {
			return err
		}
		if other {
			gone = append(gone, key)
		}
	}
	if err := w.RemoveAll(gone); err != nil {
		return err
	}
	for _, key := range keys {
		then := was[key]
		delete(was, key) // the writer has a copy from now on
		if then == nil {
			continue
		}
		err := w.Replace(then)
		if model.IsKind(err, model.NotFound) {
			err = w.Restore(then)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isOther reports whether something has the key now that is not the object was:
// that may have been deleted, and its name taken by another.
func isOther(w Writer, key model.Key, was model.Object) (bool, error) {
	now, err := w.Get(key)
	switch {
	case model.IsKind(err, model.NotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return was == nil || *now.Meta().ID != *was.Meta().ID, nil
}

// prefetch reads what the keys name now, in pages: the writer remembers it, and
// a query for each object would take minutes where there are many.
func prefetch(w Writer, keys []model.Key) error {
	const page = 200
	names := map[model.Kind][]string{}
	for _, key := range keys {
		names[key.Kind] = append(names[key.Kind], key.Root().Name())
	}
	for kind, list := range names {
		slices.Sort(list)
		for some := range slices.Chunk(slices.Compact(list), page) {
			var err error
			switch kind {
			case model.KindProxyService, model.KindProxyGlobalConfig:
				for _, proxy := range some {
					if _, err = w.List(Query{Kind: kind, Proxy: proxy}); err != nil {
						return err
					}
				}
			case model.KindRoute, model.KindRouteUpstream, model.KindRouteFilter, model.KindServiceFilter, model.KindServiceSecret:
				_, err = w.List(Query{Kind: kind, Services: some})
			default:
				_, err = w.List(Query{Kind: kind, Names: some})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
