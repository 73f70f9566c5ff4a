package migrated

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

// SQLite makes a database file and returns its URL.
func SQLite(path string) (url string, err error) {
	content, err := sqliteFile()
	if err != nil {
		return "", err
	}
	return "sqlite://" + path, os.WriteFile(path, content, 0o600)
}

var sqliteFile = sync.OnceValues(func() (content []byte, err error) {
	dir, err := os.MkdirTemp("", "gatehouse-migrated-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "gatehouse.db")
	if err := migrate(context.Background(), "sqlite://"+path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// template is the database of a server that the others are copies of.
const template = "migrated"

// Postgres makes a database on a server and returns its URL.
func Postgres(ctx context.Context, server *postgres.Server, name string) (url string, err error) {
	err = server.CopyDatabase(ctx, template, name)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "3D000" { // there is no template yet
		if err = server.CreateDatabase(ctx, template); err == nil {
			err = migrate(ctx, server.URL(template))
		}
		if err == nil {
			err = server.CopyDatabase(ctx, template, name)
		}
	}
	return server.URL(name), err
}

func migrate(ctx context.Context, url string) error {
	s, err := sqlstore.Open(ctx, sqlstore.Options{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
}
