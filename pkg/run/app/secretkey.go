package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

// AddSecretKey adds a key to the key file of cfg, for RotateSecretKey to use. It does
// not need the database.
func AddSecretKey(cfg config.Config, env Env) error {
	path, err := secretKeyFile(cfg)
	if err != nil {
		return err
	}
	if err := seal.Add(path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s has one more key: copy it to every control plane, "+
		"then run gatehouse secret-key rotate\n", path)
	return err
}

// RotateSecretKey makes another key the primary one of the key file of cfg and seals
// every secret of the database again with it.
//
// It may be interrupted at any point and run again: the file has the key before
// anything is sealed with it, the database changes in one transaction, and with
// removeOld the old keys are removed when nothing needs them anymore.
func RotateSecretKey(ctx context.Context, cfg config.Config, env Env, removeOld bool) error {
	return withSecrets(ctx, cfg, env, func(db *sqlstore.Store, keyring *seal.Keyring, path string) error {
		if err := seal.Rotate(path); err != nil {
			return err
		}
		if err := sealAgain(ctx, env, db, keyring, path, removeOld); err != nil || removeOld {
			return err
		}
		_, err := fmt.Fprintf(env.Stdout, "the old keys are still in %s; once every control plane has this file: "+
			"gatehouse secret-key remove-old\n", path)
		return err
	})
}

// RemoveOldSecretKeys seals again what is still sealed with an old key of the key file,
// and removes the old keys.
func RemoveOldSecretKeys(ctx context.Context, cfg config.Config, env Env) error {
	return withSecrets(ctx, cfg, env, func(db *sqlstore.Store, keyring *seal.Keyring, path string) error {
		return sealAgain(ctx, env, db, keyring, path, true)
	})
}

func sealAgain(
	ctx context.Context, env Env, db *sqlstore.Store, keyring *seal.Keyring, path string, removeOld bool,
) error {
	// Read before the first text is sealed: while this stays the primary key, nothing
	// was sealed with another.
	primary, err := keyring.Primary()
	if err != nil {
		return err
	}
	done, err := db.Reseal(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(env.Stdout, "sealed again: %s of the configuration, %s of its history\n",
		countText(done.Current, "text"), countText(done.Logged, "text")); err != nil {
		return err
	}
	if !removeOld {
		return nil
	}
	removed, err := seal.RemoveOld(path, primary)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "removed from %s: %s\n", path, countText(removed, "old key"))
	return err
}

func countText(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// withSecrets opens an existing database with its existing key: a new database or key
// would suggest that the old key is not needed anymore.
func withSecrets(
	ctx context.Context, cfg config.Config, env Env, work func(*sqlstore.Store, *seal.Keyring, string) error,
) error {
	path, err := secretKeyFile(cfg)
	if err != nil {
		return err
	}
	dsn, err := databaseURL(cfg)
	if err != nil {
		return err
	}
	keyring, err := seal.Open(path)
	if err != nil {
		return err
	}
	db, err := sqlstore.Open(ctx, sqlstore.Options{URL: dsn, Sealer: keyring, InUse: true})
	if err != nil {
		return err
	}
	if err = printDatabase(env, dsn); err == nil {
		err = work(db, keyring, path)
	}
	return errors.Join(err, db.Close())
}

// NewSecretKey writes a new key file, if there is none.
func NewSecretKey(path string) error {
	_, created, err := seal.OpenOrCreate(path)
	if err == nil && !created {
		err = fmt.Errorf("the key file %s exists", path)
	}
	return err
}
