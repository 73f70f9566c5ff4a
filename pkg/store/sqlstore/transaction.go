package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, fn func(store.Reader) error) error {
	return s.view(ctx, func(r *reader) error { return fn(r) })
}

// view runs fn on one snapshot.
func (s *Store) view(ctx context.Context, fn func(*reader) error) error {
	return s.transact(ctx, s.r, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, func(tx *gorm.DB, step func()) error {
		return fn(&reader{store: s, tx: tx, step: step})
	})
}

// Write implements store.Store.
func (s *Store) Write(ctx context.Context, origin store.Origin, fn func(store.Writer) error) (int64, error) {
	var revision int64
	changed := false
	err := s.transact(ctx, s.w, nil, func(tx *gorm.DB, step func()) error {
		w := newWriter(reader{store: s, tx: tx, step: step}, origin)
		var err error
		if revision, err = s.lockWriters(tx); err != nil {
			return err
		}
		if err := fn(w); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
		if changed = w.revision != 0; !changed {
			return nil
		}
		revision = w.revision
		if s.notify == nil {
			return nil
		}
		return w.fail("telling other processes", s.notify(tx, revision))
	})
	if err != nil {
		return 0, err
	}
	if changed {
		s.signal(revision)
	}
	return revision, nil
}

// lockWriters keeps every other writer out until the end of the transaction and
// returns the revision.
func (s *Store) lockWriters(tx *gorm.DB) (revision int64, err error) {
	var ignored string
	err = tx.Raw(s.lockRevision).Row().Scan(&revision, &ignored)
	return revision, s.fail(tx.Statement.Context, "waiting for other writers", err)
}

// transact runs fn in a transaction and returns its error unchanged. Each step
// of it has stepTimeout; fn calls step where the next begins.
func (s *Store) transact(ctx context.Context, db *gorm.DB, opts *sql.TxOptions, fn func(tx *gorm.DB, step func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	bound := time.AfterFunc(s.stepTimeout, func() { cancel(errTooSlow) })
	defer bound.Stop()
	step := func() { bound.Reset(s.stepTimeout) }
	var err error
	// Postgres may have ended every connection of the pool since its last use
	// (a restart). That shows when a transaction begins, one at a time.
	for range maxConnections + 1 {
		began := false
		var fnErr error
		err = db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			began = true
			step()
			fnErr = fn(tx, step)
			step() // the commit
			return fnErr
		}, opts)
		if fnErr != nil {
			return fnErr
		}
		if began || !lostConnection(err) {
			break
		}
	}
	return s.fail(ctx, "running a transaction", err)
}
