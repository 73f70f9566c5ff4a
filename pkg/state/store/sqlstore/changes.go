package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
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
			change.Entries, err = r.loadAll(ctx, now)
		}
		if errors.Is(err, errUnreadable) {
			// The objects can still be read; an error here would stop every change.
			r.store.log.Warn("change log cannot be read; everything is read instead", "rev", at.Revision, "err", err)
			change.Full = true
			change.Entries, err = r.loadAll(ctx, now)
		}
		return err
	})
	if err != nil {
		return model.Change{}, err
	}
	return change, nil
}

// leadsFrom reports whether the change log leads from a mark to now. It does not if the
// log starts later, or if the database was restored and was never at the mark.
func (r *reader) leadsFrom(at, now model.Mark) (leads, restored bool, err error) {
	if at == (model.Mark{}) || at.Revision >= now.Revision {
		return false, at != model.Mark{}, nil
	}
	var parent string
	err = r.db().Raw("SELECT parent FROM change_log WHERE revision = ? AND seq = 1", at.Revision+1).Row().Scan(&parent)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	// A program older than these IDs writes neither them nor the column id.
	leads = parent == at.ID || parent == ""
	return leads, !leads, r.fail("reading the change log", err)
}

// changedAfter loads the last state of every object that was written after a revision.
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
		// This program does not know a kind that only a newer one writes.
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

// errUnreadable is the error for an entry of the change log that another version wrote.
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
	// One lookup for each revision: with "seq = 1" alone, or counted, the database would read every entry, and one
	// revision may have many thousands. Its entries are numbered from 1.
	err := r.db().Raw("WITH RECURSIVE its (revision, nth) AS ("+
		"SELECT max(revision), 1 FROM change_log WHERE revision < ? "+
		"UNION ALL SELECT (SELECT max(revision) FROM change_log WHERE change_log.revision < its.revision), nth + 1 "+
		"FROM its WHERE nth < ? AND its.revision IS NOT NULL) "+
		revisionsOfIts,
		before, limit).Scan(&list).Error
	return list, r.fail("reading the change log", err)
}

// revisionsOfIts reads the revisions of a table called its.
const revisionsOfIts = "SELECT first.revision, at, actor, request, message, " +
	"(SELECT max(seq) FROM change_log AS every WHERE every.revision = its.revision) AS changes " +
	"FROM its JOIN change_log AS first ON first.revision = its.revision AND first.seq = 1 ORDER BY first.revision DESC"

// RevisionsOf implements store.Reader. It reads the change log to its end, which KeepEntries bounds.
func (r *reader) RevisionsOf(q store.RevisionQuery, before int64, limit int) ([]store.Revision, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	where, args := "revision < ?", []any{before}
	and := func(condition string, more ...any) {
		where, args = where+" AND "+condition, append(args, more...)
	}
	if q.Object != (model.Key{}) {
		condition, more := changesOf(q.Object)
		and(condition, more...)
	}
	if q.Kind != "" {
		and("kind = ?", string(q.Kind))
	}
	if q.Actor != "" {
		and("actor = ?", q.Actor)
	}
	if !q.Since.IsZero() {
		and("at >= ?", q.Since)
	}
	var list []store.Revision
	err := r.db().Raw("WITH its AS (SELECT DISTINCT revision FROM change_log WHERE "+where+" ORDER BY revision DESC LIMIT ?) "+
		revisionsOfIts, append(args, limit)...).Scan(&list).Error
	return list, r.fail("reading the change log", err)
}

// changesOf selects the entries of an object, of its parts and of what is attached to it.
func changesOf(key model.Key) (condition string, args []any) {
	below := []model.Kind{""} // none: a list must not be empty
	for _, kind := range model.Kinds() {
		if way := key.Kind.Row().Path; kind != key.Kind && kind.Row().StartsWith(way) {
			below = append(below, kind)
		}
	}
	prefix := key.Text() + "/"
	return "(kind = ? AND name = ? OR kind IN ? AND substr(name, 1, ?) = ?)",
		[]any{string(key.Kind), key.Text(), below, utf8.RuneCountInString(prefix), prefix}
}

// Entries implements store.Reader.
func (r *reader) Entries(revision int64) store.Changes {
	return func(kinds ...model.Kind) iter.Seq2[store.Written, error] {
		return func(yield func(store.Written, error) bool) {
			for seq, more := 0, true; more; {
				rows, err := r.page(revision, seq, kinds)
				if err != nil {
					yield(store.Written{}, err)
					return
				}
				for _, row := range rows {
					seq = row.Seq
					if _, known := r.store.tables[row.Kind]; !known {
						continue
					}
					w, err := decodeBoth(row)
					if !yield(w, err) || err != nil {
						return
					}
				}
				more = len(rows) == batchSize
			}
		}
	}
}

// page reads the entries of a revision after seq.
func (r *reader) page(revision int64, seq int, kinds []model.Kind) (rows []changeLog, err error) {
	tx := r.db().Select("seq", "kind", "name", "before", "after").Where("revision = ? AND seq > ?", revision, seq)
	if len(kinds) > 0 {
		tx = tx.Where("kind IN ?", kinds)
	}
	err = tx.Order("seq").Limit(batchSize).Find(&rows).Error
	return rows, r.fail("reading the change log", err)
}

func decodeBoth(row changeLog) (w store.Written, err error) {
	w.Key = row.key()
	if w.Before, err = decode(row, row.Before); err == nil {
		w.After, err = decode(row, row.After)
	}
	return w, err
}

// ChangedSince implements store.Writer.
func (w *writer) ChangedSince(at model.Mark, keys map[model.Key]bool) (changed map[model.Key]store.Revision, known bool, err error) {
	if at == w.parent {
		return nil, true, nil
	}
	leads, restored, err := w.leadsFrom(at, w.parent)
	switch {
	case err != nil:
		return nil, false, err
	case restored:
		return nil, false, nil
	case !leads:
		return nil, true, store.CompactedError(at.Revision)
	}
	rows, err := w.db().Raw("SELECT kind, name, revision, actor, request FROM change_log WHERE revision > ? AND revision <= ? ORDER BY revision",
		at.Revision, w.parent.Revision).Rows()
	if err != nil {
		return nil, false, w.fail("reading the change log", err)
	}
	changed = map[model.Key]store.Revision{}
	for rows.Next() && err == nil {
		var row changeLog
		if err = rows.Scan(&row.Kind, &row.Name, &row.Revision, &row.Actor, &row.Request); err == nil && keys[row.key()] {
			changed[row.key()] = store.Revision{Revision: row.Revision, Actor: row.Actor, Request: row.Request}
		}
	}
	return changed, true, w.fail("reading the change log", errors.Join(err, rows.Err(), rows.Close()))
}

// FirstEntries implements store.Writer.
func (w *writer) FirstEntries(revision int64) (map[model.Kind][]store.LogPosition, error) {
	if err := w.flush(); err != nil {
		return nil, err
	}
	now, err := w.Revision()
	if err != nil {
		return nil, err
	}
	// A gap between revisions was compacted away, or has kinds that a newer program
	// wrote.
	var logged int64
	known := slices.Collect(maps.Keys(w.store.tables))
	err = w.db().Raw("SELECT count(DISTINCT revision) FROM change_log WHERE revision > ? AND kind IN ?", revision, known).Row().Scan(&logged)
	if err != nil {
		return nil, w.fail("reading the change log", err)
	}
	if logged != now-revision {
		return nil, store.CompactedError(revision)
	}
	rows, err := w.db().Raw("SELECT kind, revision, seq, kept FROM (SELECT kind, revision, seq, "+
		"count(before) OVER same = count(*) OVER same AND count(after) OVER same = count(*) OVER same AS kept, "+
		"row_number() OVER (PARTITION BY kind, name ORDER BY revision, seq) AS nth FROM change_log WHERE revision > ? "+
		"WINDOW same AS (PARTITION BY kind, name)) AS every WHERE nth = 1 ORDER BY revision, seq", revision).Rows()
	if err != nil {
		return nil, w.fail("reading the change log", err)
	}
	firsts := map[model.Kind][]store.LogPosition{}
	for rows.Next() && err == nil {
		var kind model.Kind
		var at store.LogPosition
		err = rows.Scan(&kind, &at.Revision, &at.Seq, &at.Kept)
		firsts[kind] = append(firsts[kind], at)
	}
	return firsts, w.fail("reading the change log", errors.Join(err, rows.Err(), rows.Close()))
}

// ObjectsBefore implements store.Writer.
func (w *writer) ObjectsBefore(places []store.LogPosition) ([]model.Entry, error) {
	nth := make(map[[2]int64]int, len(places))
	wanted := make([]string, len(places))
	for i, at := range places {
		nth[[2]int64{at.Revision, int64(at.Seq)}] = i
		wanted[i] = fmt.Sprintf("(%d, %d)", at.Revision, at.Seq)
	}
	var rows []changeLog
	// A join, as in keyCondition.
	err := w.db().Raw("SELECT its.revision, its.seq, its.kind, its.name, its.before FROM (VALUES " + strings.Join(wanted, ", ") + ") AS wanted " +
		"JOIN change_log AS its ON its.revision = wanted.column1 AND its.seq = wanted.column2").Scan(&rows).Error
	if err != nil {
		return nil, w.fail("reading the change log", err)
	}
	list := make([]model.Entry, len(places))
	for _, row := range rows {
		before, err := decode(row, row.Before)
		if err != nil {
			return nil, err
		}
		list[nth[[2]int64{row.Revision, int64(row.Seq)}]] = model.Entry{Key: row.key(), Object: before}
	}
	return list, nil
}

// sortEntries puts existing objects first, in the order of model.Kinds, then the
// deleted ones in reverse. Within a kind the order of commit stays.
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

// compact removes entries from the change log that are too old or too many; the newest
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

// compactionCut returns the newest revision that may be removed.
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
