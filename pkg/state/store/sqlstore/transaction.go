package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, fn func(store.Reader) error) error {
	return s.view(ctx, func(r *reader) error { return fn(r) })
}

// ReadForBuild is Read with the connections of the build loop.
func (s *Store) ReadForBuild(ctx context.Context, fn func(store.Reader) error) error {
	return s.viewIn(ctx, s.build, func(r *reader) error { return fn(r) })
}

// view runs fn on one snapshot.
func (s *Store) view(ctx context.Context, fn func(*reader) error) error {
	return s.viewIn(ctx, s.r, fn)
}

// viewIn is view with the connections of a pool.
func (s *Store) viewIn(ctx context.Context, pool *gorm.DB, fn func(*reader) error) error {
	return s.transact(ctx, pool, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, func(tx *gorm.DB, step func()) error {
		return fn(&reader{store: s, tx: tx, step: step})
	})
}

// Write implements store.Store.
func (s *Store) Write(ctx context.Context, origin store.Origin, fn func(store.Writer) error) (int64, error) {
	var mark model.Mark
	changed := false
	err := s.transact(ctx, s.w, nil, func(tx *gorm.DB, step func()) error {
		w := newWriter(reader{store: s, tx: tx, step: step}, origin)
		var err error
		if mark, err = s.lockWriters(tx); err != nil {
			return err
		}
		w.parent = mark
		if err := fn(w); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
		if changed = w.revision != 0; !changed {
			return nil
		}
		mark = model.Mark{Revision: w.revision, ID: w.id}
		if s.notify == nil {
			return nil
		}
		return w.fail("telling other processes", s.notify(tx, mark))
	})
	if err != nil {
		return 0, err
	}
	if changed {
		s.signal(mark)
	}
	return mark.Revision, nil
}

// lockWriters blocks every other writer until the end of the transaction and returns
// the current mark.
func (s *Store) lockWriters(tx *gorm.DB) (mark model.Mark, err error) {
	var ignored string
	err = tx.Raw(s.lockRevision).Row().Scan(&mark.Revision, &mark.ID, &ignored)
	return mark, s.fail(tx.Statement.Context, "waiting for other writers", err)
}

// transact runs fn in a transaction and returns its error unchanged. Each step of it
// has stepTimeout; fn calls step where the next one begins.
func (s *Store) transact(ctx context.Context, db *gorm.DB, opts *sql.TxOptions, fn func(tx *gorm.DB, step func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	bound := time.AfterFunc(s.stepTimeout, func() { cancel(errTooSlow) })
	defer bound.Stop()
	step := func() { bound.Reset(s.stepTimeout) }
	var err error
	// Postgres may have closed every connection of the pool since its last use (a
	// restart). That shows when a transaction begins, one connection at a time.
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
