package store

import (
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
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

// Rollback makes the configuration what it was at a revision. If the change log no
// longer has that revision, it returns a Compacted error. In memory it has one page of
// objects at a time and, for all others, only their places in the change log.
func Rollback(w Writer, revision int64) error {
	firsts, err := w.FirstEntries(revision)
	if err != nil {
		return err
	}
	for _, kind := range slices.Backward(model.Kinds()) {
		var places []LogPosition
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

// removeOthers removes the current objects of one kind that are not the object that had
// the key then: that one may have been deleted and another created under its name.
func removeOthers(w Writer, places []LogPosition) error {
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

// putBack restores the former content of objects of one kind.
func putBack(w Writer, places []LogPosition) error {
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

// readPage reads the objects as they were, and the objects that have their keys now.
func readPage(w Writer, page []LogPosition) ([]model.Entry, error) {
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
