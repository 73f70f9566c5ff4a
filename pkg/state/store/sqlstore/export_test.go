package sqlstore

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// SetStepTimeout is for a store that is not in use yet.
func SetStepTimeout(s *Store, d time.Duration) { s.stepTimeout = d }

// SetMemory is for a store that is not in use yet.
func SetMemory(s *Store, generation, kept int) { s.generationSize, s.keptBytes = generation, kept }

// Pragma reads a setting of the connection that writes.
func Pragma(s *Store, name string) (value string, err error) {
	err = s.pools[0].QueryRow("PRAGMA " + name).Scan(&value)
	return value, err
}

// CheckOwner is checkOwner.
var CheckOwner = checkOwner

// PrefixEnd is prefixEnd.
var PrefixEnd = prefixEnd

// SetLoaders is for a store that is not in use yet.
func SetLoaders(s *Store, n int) { s.loaders = n }

// HelpsAt reports whether a helper reads for a load at a revision.
func HelpsAt(ctx context.Context, s *Store, mark model.Mark) (helps bool, err error) {
	err = s.viewAt(ctx, mark, func(r *reader) error {
		helps = true
		_, err := r.List(store.Query{Kind: model.KindProxy})
		return err
	})
	return helps, err
}

// Preparing opens connections that keep their statements.
func Preparing(d driver.Driver, dsn string) driver.Connector { return preparing{d, dsn} }

// KeptStatements is keptStatements.
const KeptStatements = keptStatements
