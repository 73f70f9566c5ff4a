package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// writerCache lets a transaction keep 32 MiB of changed pages until it commits. Beyond that SQLite writes them before, and
// many of them again; its own bound is 2 MiB.
const writerCache = "cache_size(-32768)"

// openSQLite opens a pool with one connection that writes, and pools with several that
// read: in WAL mode neither waits for the other.
func (s *Store) openSQLite(ctx context.Context, u *url.URL) error {
	path, err := sqlitePath(u)
	if err != nil {
		return err
	}
	if s.opts.InUse {
		if err := s.checkInUse(ctx, path); err != nil {
			return err
		}
	}
	if err := createFile(path); err != nil {
		return err
	}
	s.awayHint = fmt.Sprintf("check that the disk of %s is not full and that no other program locks the file, then try again", path)
	s.dialect = dialect{rows: 100, placeholder: "?"}
	s.lockRevision = "SELECT revision, id, '' FROM revision" // BEGIN IMMEDIATE has locked it
	s.timesAreText = true

	writer, err := s.openPool(path, 1, url.Values{"_txlock": {"immediate"}, "_pragma": {writerCache}})
	if err != nil {
		return err
	}
	unlock, err := lockDirectory(ctx, filepath.Dir(path))
	if err != nil {
		return err
	}
	err = migrate(ctx, s.log, writer, goose.DialectSQLite3, "sqlite")
	unlock()
	if err != nil {
		return s.openError(ctx, path, err)
	}
	if s.w, err = openGORM(writer); err != nil {
		return s.openError(ctx, path, err)
	}
	for _, p := range []struct {
		db   **gorm.DB
		size int
	}{{&s.r, max(4, runtime.NumCPU())}, {&s.build, 2}, {&s.load, maxLoaders - 1}, {&s.access, 2}} {
		pool, err := s.openPool(path, p.size, url.Values{"_pragma": {"query_only(1)"}})
		if err != nil {
			return err
		}
		if p.db == &s.load {
			pool.SetMaxIdleConns(0)
		}
		if *p.db, err = openGORM(pool); err != nil {
			return s.openError(ctx, path, err)
		}
	}
	return nil
}

// sqlitePath returns the file that a URL names.
func sqlitePath(u *url.URL) (string, error) {
	path := u.Path
	if u.Host != "" || u.Opaque != "" || u.RawQuery != "" || u.Fragment != "" || !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return "", urlError("must have an absolute path after sqlite://, and nothing after the path")
	}
	return path, nil
}

func openGORM(pool *sql.DB) (*gorm.DB, error) {
	return gorm.Open(gormsqlite.New(gormsqlite.Config{Conn: pool}), gormConfig())
}

func (s *Store) openPool(path string, size int, params url.Values) (*sql.DB, error) {
	// FULL makes an acknowledged write survive a power cut; in WAL mode NORMAL does
	// not.
	for _, pragma := range []string{"busy_timeout(5000)", "journal_mode(wal)", "synchronous(full)", "foreign_keys(1)"} {
		params.Add("_pragma", pragma)
	}
	params.Set("_time_format", "sqlite")
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: params.Encode()}
	plain, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("opening SQLite: %w", err)
	}
	pool := sql.OpenDB(preparing{plain.Driver(), dsn.String()})
	if err := plain.Close(); err != nil { // it has no connection
		return nil, fmt.Errorf("opening SQLite: %w", err)
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	s.pools = append(s.pools, pool)
	return pool, nil
}

// checkInUse refuses a file that is no database of this program, and does not change
// it.
func (s *Store) checkInUse(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return notInUseError("the database file " + path + " does not exist")
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&_pragma=busy_timeout(5000)"}
	pool, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return fmt.Errorf("opening SQLite: %w", err)
	}
	var found bool
	err = pool.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'revision')").Scan(&found)
	if err = errors.Join(err, pool.Close()); err != nil {
		return s.openError(ctx, path, err)
	}
	if !found {
		return notInUseError("the file " + path + " is not a database of Gatehouse")
	}
	return nil
}

// createFile makes the database file readable only for its owner; SQLite gives the
// files next to it the same mode.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		return nil
	}
	hint := "check the path and the permissions"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint = "create the directory first: mkdir -p " + filepath.Dir(path)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		hint = "the user that runs the program needs to write it and its directory"
	case errors.Is(err, syscall.EISDIR):
		hint = "name a file, not a directory"
	}
	return &model.Error{Kind: model.Unavailable, Message: "the database file cannot be opened", Hint: hint, Err: err}
}

// openError tells a user why an SQLite file cannot be used.
func (s *Store) openError(ctx context.Context, path string, err error) error {
	if _, ok := errors.AsType[*model.Error](err); ok { // the database has a newer schema
		return err
	}
	err = s.fail(ctx, "opening "+path, err)
	if e, ok := errors.AsType[*model.Error](err); ok {
		e.Message = "the database file cannot be used"
		e.Hint = "check that it is an SQLite database, that the user that runs the program may write it and its directory, and that the disk is not full"
	}
	return err
}

// lockDirectory lets one process at a time migrate: SQLite's own lock is per
// transaction, and a migration has several. Closing a file of the database would
// release SQLite's locks on it, so the lock is on the directory.
func lockDirectory(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			break
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for another process to migrate the database: %w", ctx.Err()), f.Close())
		case <-tick.C:
		}
	}
	return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, err), f.Close())
}
