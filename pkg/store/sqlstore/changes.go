package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// Since implements store.Source.
func (s *Store) Since(ctx context.Context, at model.Mark) (model.Change, error) {
	var change model.Change
	err := s.viewIn(ctx, s.build, func(r *reader) error {
		now, err := r.Mark()
		if err != nil {
			return err
		}
		change = model.Change{Revision: now.Revision, ID: now.ID}
		if now == at {
			return nil
		}
		leads, restored, err := r.leadsFrom(at, now)
		if err != nil {
			return err
		}
		if leads {
			change.Entries, err = r.changedAfter(at.Revision)
		} else {
			change.Full, change.Restored = true, restored
			change.Entries, err = r.everything()
		}
		if errors.Is(err, errUnreadable) {
			// The rows may still be read, and everybody's changes would wait.
			r.store.log.Warn("change log cannot be read; everything is read instead", "rev", at.Revision, "err", err)
			change.Full = true
			change.Entries, err = r.everything()
		}
		return err
	})
	if err != nil {
		return model.Change{}, err
	}
	return change, nil
}

// leadsFrom reports whether the change log leads from a mark to now. It does
// not where it starts later, and where the database was restored: it was never
// at the mark.
func (r *reader) leadsFrom(at, now model.Mark) (leads, restored bool, err error) {
	if at == (model.Mark{}) || at.Revision >= now.Revision {
		return false, at != model.Mark{}, nil
	}
	var parent string
	err = r.db().Raw("SELECT parent FROM change_log WHERE revision = ? AND seq = 1", at.Revision+1).Row().Scan(&parent)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	// A program that is older than these IDs writes none, nor the column id.
	leads = parent == at.ID || parent == ""
	return leads, !leads, r.fail("reading the change log", err)
}

// everything loads every object, one before what refers to it.
func (r *reader) everything() ([]model.Entry, error) {
	var entries []model.Entry
	for _, kind := range model.Kinds() {
		list, err := r.List(store.Query{Kind: kind})
		if err != nil {
			return nil, err
		}
		entries = slices.Grow(entries, len(list))
		for _, obj := range list {
			entries = append(entries, model.Entry{Key: obj.Key(), Object: obj})
		}
	}
	return entries, nil
}

// changedAfter loads the last state of every object that was written after
// revision.
func (r *reader) changedAfter(revision int64) ([]model.Entry, error) {
	var rows []changeLog
	err := r.db().Select("kind", "name", "after").Where("revision > ?", revision).
		Order("revision, seq").Find(&rows).Error
	if err != nil {
		return nil, r.fail("reading the change log", err)
	}
	last := map[model.Key]int{}
	for i, row := range rows {
		last[row.key()] = i
	}
	var entries []model.Entry
	for i, row := range rows {
		key := row.key()
		// A kind that a newer program wrote means nothing to this one.
		if _, known := r.store.tables[row.Kind]; !known || last[key] != i {
			continue
		}
		obj, err := decode(row, row.After)
		if err != nil {
			return nil, err
		}
		entries = append(entries, model.Entry{Key: key, Object: obj})
	}
	sortEntries(entries)
	return entries, nil
}

// errUnreadable is an entry of the change log that this program did not write.
var errUnreadable = errors.New("it is not an object of this version")

func decode(row changeLog, text *string) (model.Object, error) {
	if text == nil {
		return nil, nil
	}
	obj := model.New(row.Kind)
	if err := json.Unmarshal([]byte(*text), obj); err != nil {
		return nil, fmt.Errorf("reading %s %q from the change log: %w: %w", row.Kind, row.Name, errUnreadable, err)
	}
	return obj, nil
}

// Revisions implements store.Reader.
func (r *reader) Revisions(before int64, limit int) ([]store.Revision, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	var list []store.Revision
	err := r.db().Raw("SELECT revision, at, actor, request, "+
		"(SELECT count(*) FROM change_log AS every WHERE every.revision = first.revision) AS changes "+
		"FROM change_log AS first WHERE seq = 1 AND revision < ? ORDER BY revision DESC LIMIT ?", before, limit).Scan(&list).Error
	return list, r.fail("reading the change log", err)
}

// Entries implements store.Reader.
func (r *reader) Entries(revision int64) ([]store.Written, error) {
	var rows []changeLog
	if err := r.db().Where("revision = ?", revision).Order("seq").Find(&rows).Error; err != nil {
		return nil, r.fail("reading the change log", err)
	}
	var list []store.Written
	for _, row := range rows {
		if _, known := r.store.tables[row.Kind]; !known {
			continue
		}
		before, err := decode(row, row.Before)
		if err != nil {
			return nil, err
		}
		after, err := decode(row, row.After)
		if err != nil {
			return nil, err
		}
		list = append(list, store.Written{Key: row.key(), Before: before, After: after})
	}
	return list, nil
}

// Befores implements store.Reader.
func (r *reader) Befores(revision int64, fn func(at int64, key model.Key, before model.Object)) error {
	for last := (changeLog{Revision: revision, Seq: math.MaxInt32}); ; {
		var rows []changeLog
		err := r.db().Select("revision", "seq", "kind", "name", "before").Where("(revision, seq) > (?, ?)", last.Revision, last.Seq).
			Order("revision, seq").Limit(batchSize).Find(&rows).Error
		if err != nil || len(rows) == 0 {
			return r.fail("reading the change log", err)
		}
		for _, row := range rows {
			if _, known := r.store.tables[row.Kind]; !known {
				continue
			}
			before, err := decode(row, row.Before)
			if err != nil {
				return err
			}
			fn(row.Revision, row.key(), before)
		}
		last = rows[len(rows)-1]
	}
}

// sortEntries puts what is there in the order of model.Kinds and behind it what
// is gone, the other way round. Within a kind the order of commit stays.
func sortEntries(entries []model.Entry) {
	rank := map[model.Kind]int{}
	for i, kind := range model.Kinds() {
		rank[kind] = i + 1
	}
	place := func(e model.Entry) int {
		if e.Object == nil {
			return 2*len(rank) - rank[e.Key.Kind] + 1
		}
		return rank[e.Key.Kind]
	}
	slices.SortStableFunc(entries, func(a, b model.Entry) int { return cmp.Compare(place(a), place(b)) })
}

// compact removes from the change log what is too old or too much; the newest
// revision stays.
func (s *Store) compact(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepTimeout, errTooSlow)
	defer cancel()
	tx := s.w.WithContext(ctx)
	cut, err := s.compactionCut(tx)
	if err != nil {
		return s.fail(ctx, "reading the change log", err)
	}
	err = tx.Where("revision <= ?", cut).Where("revision < (SELECT revision FROM revision)").Delete(&changeLog{}).Error
	return s.fail(ctx, "compacting the change log", err)
}

// compactionCut is the newest revision that may go.
func (s *Store) compactionCut(tx *gorm.DB) (int64, error) {
	var byAge, byCount sql.NullInt64
	err := tx.Raw("SELECT max(revision) FROM change_log WHERE at < ?", model.At(s.opts.Now().Add(-s.opts.KeepAge))).
		Row().Scan(&byAge)
	if err != nil {
		return 0, err
	}
	err = tx.Raw("SELECT max(revision) FROM (SELECT revision FROM change_log ORDER BY revision DESC, seq DESC LIMIT 1 OFFSET ?) AS beyond",
		s.opts.KeepEntries).Row().Scan(&byCount)
	return max(byAge.Int64, byCount.Int64), err
}
