package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"github.com/gatehouse-gateway/gatehouse/pkg/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/seal"
	"github.com/gatehouse-gateway/gatehouse/pkg/store/sqlstore"
)

// claim makes this process the only server of its database, where that takes
// one only. It comes before everything that another server would notice.
func claim(ctx context.Context, cfg config.Config, as string) (release func() error, err error) {
	dsn, err := databaseURL(cfg)
	if err != nil {
		return nil, err
	}
	return sqlstore.Claim(ctx, dsn, as)
}

// openStore opens the database with the key that its secrets are stored under.
func openStore(ctx context.Context, cfg config.Config, log *slog.Logger) (*sqlstore.Store, error) {
	dsn, err := databaseURL(cfg)
	if err != nil {
		return nil, err
	}
	path, err := secretKeyFile(cfg)
	if err != nil {
		return nil, err
	}
	keyring, created, err := seal.OpenOrCreate(path)
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.Open(ctx, sqlstore.Options{
		URL: dsn, Log: log, Sealer: keyring, KeepAge: cfg.RevisionKeepAge, KeepEntries: cfg.RevisionKeepEntries,
	})
	if err != nil {
		if created { // it would stand in the way of the right one
			if errors.Is(err, sqlstore.ErrOtherKey) {
				err = seal.MissingError(path)
			}
			err = errors.Join(err, os.Remove(path))
		}
		return nil, err
	}
	log.Info("database open", "url", config.RedactURL(dsn), "secret_key_file", path)
	if created {
		log.Info("key for secrets made; keep a copy apart from the database", "file", path)
	}
	return store, nil
}

// databaseURL is the URL of the settings, or that of a file in the data
// directory, which it makes.
func databaseURL(cfg config.Config) (string, error) {
	if cfg.DatabaseURL != "" {
		return cfg.DatabaseURL, nil
	}
	dir, err := makeDataDir(cfg)
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "sqlite", Path: filepath.Join(dir, "gatehouse.db")}).String(), nil
}

// secretKeyFile is the file of the settings, or one in the data directory,
// which it makes.
func secretKeyFile(cfg config.Config) (string, error) {
	if cfg.SecretKeyFile != "" {
		return cfg.SecretKeyFile, nil
	}
	if cfg.DataDir == "" {
		return "", errors.New("--secret-key-file: not given, and neither is --data-dir, where the key would be made; give one of them")
	}
	dir, err := makeDataDir(cfg)
	return filepath.Join(dir, "secret.key"), err
}

func makeDataDir(cfg config.Config) (string, error) {
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return "", fmt.Errorf("finding the data directory %q: %w", cfg.DataDir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the data directory: %w: choose another with --data-dir", err)
	}
	return dir, nil
}
