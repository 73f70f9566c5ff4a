package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

var _ store.Notes = (*Store)(nil)

// Note implements store.Notes.
func (s *Store) Note(ctx context.Context, name string) (text string, err error) {
	err = s.view(ctx, func(r *reader) error {
		err := r.db().Raw("SELECT text FROM note WHERE name = ?", name).Row().Scan(&text)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return r.fail("reading a note", err)
	})
	return text, err
}

// SetNote implements store.Notes.
func (s *Store) SetNote(ctx context.Context, name, text string) error {
	return s.transact(ctx, s.w, nil, func(tx *gorm.DB, _ func()) error {
		return s.fail(ctx, "writing a note", setNote(tx, name, text))
	})
}

func setNote(tx *gorm.DB, name, text string) error {
	return tx.Exec("INSERT INTO note (name, text) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET text = excluded.text", name, text).Error
}
