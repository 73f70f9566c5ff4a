package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// migrate brings the schema to this program's version. The caller's options
// hold the lock that lets one process do it at a time.
func migrate(ctx context.Context, log *slog.Logger, db *sql.DB, d goose.Dialect, dir string, opts ...goose.ProviderOption) error {
	files, err := fs.Sub(migrations, "migrations/"+dir)
	if err != nil {
		return fmt.Errorf("reading the embedded migrations: %w", err)
	}
	opts = append(opts, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	provider, err := goose.NewProvider(d, db, files, opts...)
	if err != nil {
		return fmt.Errorf("reading the embedded migrations: %w", err)
	}
	done, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	if n := len(done); n > 0 {
		log.Info("migrated the database", "version", done[n-1].Source.Version)
	}
	return nil
}
