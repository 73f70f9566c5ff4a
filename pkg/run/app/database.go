package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/tlsdir"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

// claim makes this process the only server of its database, if the database supports only
// one. It comes before everything that another server would notice.
func claim(ctx context.Context, cfg config.Config, as string) (release func() error, err error) {
	dsn, err := databaseURL(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.DatabaseURL == "" || cfg.SecretKeyFile == "" && cfg.DataDir != "" {
		if err := makeDataDir(cfg); err != nil {
			return nil, err
		}
	}
	return sqlstore.Claim(ctx, dsn, as)
}

// databaseFlag is the flag with which a command works on the database of cfg.
func databaseFlag(cfg config.Config) string {
	if cfg.DatabaseURL != "" {
		return "--database-url " + config.RedactURL(cfg.DatabaseURL)
	}
	return "--data-dir " + cfg.DataDir
}

// printDatabase tells the user of a command which database the command uses, and which
// server uses the same.
func printDatabase(env Env, dsn string) error {
	name := config.RedactURL(dsn)
	if u, err := url.Parse(dsn); err == nil && u.Scheme == "sqlite" {
		name = u.Path
	}
	holder, err := sqlstore.ClaimHolder(dsn)
	if err != nil {
		return err
	}
	if holder != "" {
		name += " beside " + holder
	}
	_, err = fmt.Fprintln(env.Stderr, "using the database "+name)
	return err
}

const (
	// answerStartingAfter is how long a start may take before the API says what it waits for.
	answerStartingAfter = time.Second
	// A database that is away is tried again after a while, which doubles up to the second.
	minDatabaseWait, maxDatabaseWait = 250 * time.Millisecond, 2 * time.Second
	// remindEvery is how often the log repeats that the database is away.
	remindEvery = time.Minute
)

// awaitStore is openStore for a server: it waits for a database that is away, as the server does when it loses the
// database later. Meanwhile api says so.
func awaitStore(
	ctx context.Context, cfg config.Config, api *apiServer, log *slog.Logger,
) (opened *sqlstore.Store, lost string, err error) {
	var reason atomic.Pointer[string]
	api.answerStarting(answerStartingAfter, log, func() error {
		if why := reason.Load(); why != nil {
			return errors.New("waiting for the database: " + *why)
		}
		return errors.New("the database is not open yet")
	})
	began, told, pause := time.Now(), time.Time{}, minDatabaseWait
	for {
		opened, lost, err = openStore(ctx, cfg, log)
		if !sqlstore.IsAway(err) {
			if err == nil && reason.Load() != nil {
				log.Info("the database answers", "waited", time.Since(began).Round(time.Millisecond))
			}
			return opened, lost, err
		}
		why := err.Error()
		if last := reason.Swap(&why); last == nil || *last != why || time.Since(told) >= remindEvery {
			log.Warn("waiting for the database, which does not answer", "err", err,
				"waited", time.Since(began).Round(time.Millisecond))
			told = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil, "", fmt.Errorf("waiting for the database: %w", ctx.Err())
		case <-time.After(pause):
		}
		pause = min(2*pause, maxDatabaseWait)
	}
}

// openStore opens the database with the key that seals its secrets. lost says why the
// database seems to replace one that was lost; empty means that it does not.
func openStore(
	ctx context.Context, cfg config.Config, log *slog.Logger,
) (opened *sqlstore.Store, lost string, err error) {
	dsn, err := databaseURL(cfg)
	if err != nil {
		return nil, "", err
	}
	path, err := secretKeyFile(cfg)
	if err != nil {
		return nil, "", &SettingError{err}
	}
	keyring, created, err := seal.OpenOrCreate(path)
	if err != nil {
		return nil, "", err
	}
	opened, err = sqlstore.Open(ctx, sqlstore.Options{
		URL: dsn, Log: log, Sealer: keyring, KeepAge: cfg.RevisionKeepAge, KeepEntries: cfg.RevisionKeepEntries,
	})
	if err != nil {
		if created { // it would be in the way of the right one
			if errors.Is(err, sqlstore.ErrOtherKey) {
				err = seal.MissingError(path)
			}
			err = errors.Join(err, os.Remove(path))
		}
		if model.IsKind(err, model.Invalid) && !errors.Is(err, sqlstore.ErrOtherKey) { // the URL
			err = &SettingError{err}
		}
		return nil, "", err
	}
	log.Info("database open", "url", config.RedactURL(dsn), "secret_key_file", path)
	if created {
		log.Info("key for secrets created; keep a copy apart from the database", "file", path)
	}
	lost, err = seemsLost(ctx, cfg, opened, path, created)
	if err != nil {
		return nil, "", errors.Join(err, opened.Close())
	}
	return opened, lost, nil
}

// seemsLost says why the database seems to replace one that was lost: it is new, it is in
// the data directory, and the key next to it was made for another database. For a database
// elsewhere the key proves nothing. A note keeps the reason until there is a
// configuration, because a later start cannot detect it anymore.
func seemsLost(
	ctx context.Context, cfg config.Config, s *sqlstore.Store, keyFile string, keyMade bool,
) (string, error) {
	const note = "lost"
	var configured bool
	err := s.Read(ctx, func(r store.Reader) (err error) {
		revision, err := r.Revision()
		if err != nil {
			return err
		}
		configured, err = isConfigured(r, revision)
		return err
	})
	if err != nil || configured {
		return "", err
	}
	lost, err := s.Note(ctx, note)
	if err != nil {
		return "", err
	}
	before := lost
	switch {
	case cfg.AllowEmpty:
		lost = ""
	case s.IsNew() && !keyMade && cfg.SecretKeyFile == "" && cfg.DatabaseURL == "":
		lost = "the database is new, but the key file " + keyFile + " is not"
	}
	if lost == before {
		return lost, nil
	}
	return lost, s.SetNote(ctx, note, lost)
}

// mostCertificates is the highest number of revisions that may all come from a directory
// of certificates.
const mostCertificates = 1000

// isConfigured reports whether anything but --tls-dir has written to the database up to a
// revision. What --tls-dir writes is no configuration: it would end the hold of Envoys
// whose database was lost.
func isConfigured(r store.Reader, revision int64) (bool, error) {
	if revision == 0 || revision > mostCertificates {
		return revision > 0, nil
	}
	list, err := r.Revisions(revision+1, mostCertificates)
	others := slices.ContainsFunc(list, func(rev store.Revision) bool { return rev.Actor != tlsdir.Actor })
	return others || int64(len(list)) < revision, err
}

// databaseURL returns the URL of the settings, or that of a file in the data directory.
func databaseURL(cfg config.Config) (string, error) {
	if cfg.DatabaseURL != "" {
		return cfg.DatabaseURL, nil
	}
	dir, err := dataDir(cfg)
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "sqlite", Path: filepath.Join(dir, "gatehouse.db")}).String(), nil
}

// secretKeyFile returns the file of the settings, or one in the data directory.
func secretKeyFile(cfg config.Config) (string, error) {
	if cfg.SecretKeyFile != "" {
		return cfg.SecretKeyFile, nil
	}
	if cfg.DataDir == "" {
		return "", errors.New("--secret-key-file: not given, and neither is --data-dir, where the key would be made; " +
			"give one of them")
	}
	dir, err := dataDir(cfg)
	return filepath.Join(dir, "secret.key"), err
}

// dataDir returns the absolute path of the data directory.
func dataDir(cfg config.Config) (string, error) {
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return "", fmt.Errorf("finding the data directory %q: %w", cfg.DataDir, err)
	}
	return dir, nil
}

func makeDataDir(cfg config.Config) error {
	dir, err := dataDir(cfg)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the data directory: %w: choose another with --data-dir", err)
	}
	return nil
}
