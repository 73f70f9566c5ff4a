package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// noSealer stands for a key that was not given: nothing confidential can be
// written or read.
type noSealer struct{}

var errNoSealer = errors.New("no key to seal secrets with was given")

func (noSealer) Seal(string, string) (string, error)   { return "", errNoSealer }
func (noSealer) Unseal(string, string) (string, error) { return "", errNoSealer }

// checkPlace is what the check text is sealed for.
const checkPlace = "check"

// checkSealer makes sure that the key is the one that sealed this database's
// secrets; the first key that comes is taken.
func (s *Store) checkSealer(ctx context.Context) error {
	if _, none := s.opts.Sealer.(noSealer); none {
		return nil
	}
	sealed, err := s.opts.Sealer.Seal("gatehouse", checkPlace)
	if err != nil {
		return err
	}
	db := s.w.WithContext(ctx)
	if err := db.Exec("INSERT INTO seal_check (id, sealed) VALUES (1, ?) ON CONFLICT DO NOTHING", sealed).Error; err != nil {
		return s.fail(ctx, "checking the key of the secrets", err)
	}
	var stored sql.NullString
	if err := db.Raw("SELECT sealed FROM seal_check").Row().Scan(&stored); err != nil {
		return s.fail(ctx, "checking the key of the secrets", err)
	}
	if _, err := s.opts.Sealer.Unseal(stored.String, checkPlace); err != nil {
		return &model.Error{
			Kind: model.Invalid, Message: "the secrets of this database were sealed with another key",
			Hint: "give the key file that was used before with --secret-key-file",
		}
	}
	return nil
}
