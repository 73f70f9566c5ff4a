package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// ErrOtherKey is wrapped in the error of Open for a database whose secrets were sealed
// with another key.
var ErrOtherKey = errors.New("the key does not open the check text")

// noSealer stands for a missing key: nothing confidential can be written or read.
type noSealer struct{}

var errNoSealer = errors.New("no key to seal secrets with was given")

func (noSealer) Seal(string, string) (string, error)   { return "", errNoSealer }
func (noSealer) Unseal(string, string) (string, error) { return "", errNoSealer }

// The content of the check text, and its place.
const (
	checkText  = "gatehouse"
	checkPlace = "check"
)

// checkSealer checks that the key is the one that sealed this database's secrets; the
// first key that is ever used is accepted.
func (s *Store) checkSealer(ctx context.Context) error {
	if _, none := s.opts.Sealer.(noSealer); none {
		return nil
	}
	db := s.w.WithContext(ctx)
	if !s.opts.InUse {
		sealed, err := s.opts.Sealer.Seal(checkText, checkPlace)
		if err != nil {
			return err
		}
		first := db.Exec("INSERT INTO seal_check (id, sealed) VALUES (1, ?) ON CONFLICT DO NOTHING", sealed)
		if first.Error != nil {
			return s.fail(ctx, "checking the key of the secrets", first.Error)
		}
		s.firstKey = first.RowsAffected > 0
	}
	err := s.openCheck(db)
	if model.IsKind(err, model.Invalid) {
		return &model.Error{
			Kind: model.Invalid, Message: "the secrets of this database were sealed with another key",
			Hint: "give the key file that was used before with --secret-key-file", Err: ErrOtherKey,
		}
	}
	return err
}

// Seal seals a text that is not stored for a place.
func (s *Store) Seal(text, place string) (string, error) {
	return s.opts.Sealer.Seal(text, place)
}

// Unseal opens a text that was sealed for a place.
func (s *Store) Unseal(sealed, place string) (string, error) {
	return s.opts.Sealer.Unseal(sealed, place)
}

// IsNew reports whether Open was the first to use a key with the database, which
// a server does at its first start.
func (s *Store) IsNew() bool { return s.firstKey }

// openCheck opens the check text; if the key does not open it, the error is Invalid.
func (s *Store) openCheck(db *gorm.DB) error {
	var stored sql.NullString
	err := db.Raw("SELECT sealed FROM seal_check").Row().Scan(&stored)
	if errors.Is(err, sql.ErrNoRows) {
		return notInUseError("no key was ever used with this database")
	}
	if err != nil {
		return s.fail(db.Statement.Context, "checking the key of the secrets", err)
	}
	_, err = s.opts.Sealer.Unseal(stored.String, checkPlace)
	return err
}

func notInUseError(what string) error {
	return &model.Error{Kind: model.NotFound, Message: what, Hint: "name the one that is in use with --data-dir or --database-url; the first start of a server makes a new one"}
}

// checkedSealer is the Sealer of one transaction. It refuses to seal with an outdated
// key file, for example a copy on another machine, after the secrets were sealed again:
// such a text would be lost with the old key.
type checkedSealer struct{ w *writer }

func (c checkedSealer) Seal(plain, place string) (string, error) {
	if err := c.check(); err != nil {
		return "", err
	}
	return c.w.store.opts.Sealer.Seal(plain, place)
}

func (c checkedSealer) Unseal(sealed, place string) (string, error) {
	if err := c.check(); err != nil {
		return "", err
	}
	return c.w.store.opts.Sealer.Unseal(sealed, place)
}

// check runs once per transaction, which blocks every other writer.
func (c checkedSealer) check() error {
	if _, none := c.w.store.opts.Sealer.(noSealer); none || c.w.keyChecked {
		return nil
	}
	err := c.w.store.openCheck(c.w.db())
	if model.IsKind(err, model.Invalid) {
		return &model.Error{
			Kind: model.Unavailable, Message: "the key file of this server lacks the key that the secrets are sealed with",
			Hint: "copy the key file from where the key was rotated; a restart is not needed", Err: err,
		}
	}
	c.w.keyChecked = err == nil
	return err
}
