package store

import (
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// rollbackPage bounds the objects that a rollback has in memory.
const rollbackPage = 500

// CompactedError says that the change log does not reach back to a revision.
func CompactedError(revision int64) *model.Error {
	return &model.Error{
		Kind: model.Compacted, Message: fmt.Sprintf("the history no longer reaches back to revision %d", revision),
		Hint: "GET /revision lists what is kept; --revision-keep-age and --revision-keep-entries say how long",
	}
}

// Rollback makes the configuration what it was at a revision. What the change
// log does not hold any more is a Compacted error. It holds a page of objects
// at a time and, for each other, only its place in the change log.
func Rollback(w Writer, revision int64) error {
	firsts, err := w.FirstEntries(revision)
	if err != nil {
		return err
	}
	for _, kind := range slices.Backward(model.Kinds()) {
		var places []Place
		for _, at := range slices.Backward(firsts[kind]) {
			if !at.Kept {
				places = append(places, at)
			}
		}
		if err := removeOthers(w, places); err != nil {
			return err
		}
	}
	for _, kind := range model.Kinds() {
		if err := putBack(w, firsts[kind]); err != nil {
			return err
		}
	}
	return nil
}

// removeOthers removes what has the key of an object of one kind now and is not
// the object of then, which may have been deleted and its name taken by another.
func removeOthers(w Writer, places []Place) error {
	for page := range slices.Chunk(places, rollbackPage) {
		then, err := readPage(w, page)
		if err != nil {
			return err
		}
		var others []model.Key
		for _, e := range then {
			now, err := w.Get(e.Key)
			if model.IsKind(err, model.NotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if e.Object == nil || *now.Meta().ID != *e.Object.Meta().ID {
				others = append(others, e.Key)
			}
		}
		if err := w.RemoveAll(others); err != nil {
			return err
		}
	}
	return nil
}

// putBack gives objects of one kind back what they were.
func putBack(w Writer, places []Place) error {
	for page := range slices.Chunk(places, rollbackPage) {
		then, err := readPage(w, page)
		if err != nil {
			return err
		}
		for _, e := range then {
			if e.Object == nil {
				continue
			}
			err := w.Replace(e.Object)
			if model.IsKind(err, model.NotFound) {
				err = w.Restore(e.Object)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// readPage reads what objects were, and what has their keys now.
func readPage(w Writer, page []Place) ([]model.Entry, error) {
	then, err := w.ObjectsBefore(page)
	if err != nil {
		return nil, err
	}
	keys := make([]model.Key, len(then))
	for i, e := range then {
		keys[i] = e.Key
	}
	return then, w.Prefetch(keys)
}
