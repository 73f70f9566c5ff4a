package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

//go:embed migrations
var migrations embed.FS

// migrationsFor lists the migrations for a database by their names: those for both databases, NUMBER_NAME.sql, and its
// own, NUMBER_NAME.DATABASE.sql. foreign are those of the other one.
func migrationsFor(database string) (files, foreign []string, err error) {
	entries, err := migrations.ReadDir("migrations") // in the order of their names
	if err != nil {
		return nil, nil, fmt.Errorf("reading the embedded migrations: %w", err)
	}
	for _, e := range entries {
		_, of, only := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), ".")
		if only && of != database {
			foreign = append(foreign, e.Name())
		} else {
			files = append(files, e.Name())
		}
	}
	return files, foreign, nil
}

// migrate brings the schema to this program's version. The caller's options hold the lock
// that lets one process migrate at a time.
func migrate(ctx context.Context, log *slog.Logger, db *sql.DB, d goose.Dialect, database string, opts ...goose.ProviderOption) error {
	_, foreign, err := migrationsFor(database)
	if err != nil {
		return err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("reading the embedded migrations: %w", err)
	}
	opts = append(opts, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()), goose.WithExcludeNames(foreign))
	provider, err := goose.NewProvider(d, db, files, opts...)
	if err != nil {
		return fmt.Errorf("reading the embedded migrations: %w", err)
	}
	had, err := version(ctx, provider)
	if err != nil {
		return err
	}
	done, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	if n := len(done); n > 0 && had > 0 { // an empty database has nothing to migrate
		log.Info("migrated the database", "from", had, "version", done[n-1].Source.Version)
	}
	return nil
}

// version returns the version of the database's schema; 0 means that it has none. It
// returns an error if this program does not know the version: this program's writes could
// have another meaning there.
func version(ctx context.Context, provider *goose.Provider) (has int64, err error) {
	if has, err = provider.GetDBVersion(ctx); err != nil {
		return 0, fmt.Errorf("reading the version of the schema: %w", err)
	}
	sources := provider.ListSources()
	if known := sources[len(sources)-1].Version; has > known {
		return 0, newerError("the database", has, known)
	}
	return has, nil
}

// knownSchema is the newest version of the schema that this program knows.
func knownSchema(database string) (int64, error) {
	files, _, err := migrationsFor(database)
	if err != nil {
		return 0, err
	}
	return goose.NumericComponent(files[len(files)-1])
}

func newerError(what string, has, known int64) error {
	return &model.Error{
		Kind: model.Conflict, Message: fmt.Sprintf("%s has version %d of the schema, and this program knows versions up to %d", what, has, known),
		Hint: "a newer gatehouse has migrated it: run that version, or restore the backup from before the update, see docs/operations.md",
	}
}
