package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Copy describes a copy of an SQLite database.
type Copy struct {
	// Revision is the newest one, Schema the version of its tables.
	Revision, Schema int64
	// Size is in bytes.
	Size int64
	// KeyOpens reports whether the sealer opens what is sealed in it; false without a
	// sealer.
	KeyOpens bool
}

// BackupOptions say what to copy, and where to.
type BackupOptions struct {
	// URL is the database, an SQLite file. It may be in use.
	URL string
	// Path is the file to create; empty means Out.
	Path string
	// Replace allows Path to exist.
	Replace bool
	// Out receives the copy once it is complete and checked.
	Out io.Writer
	// Sealer is tried on the copy; nil means none.
	Sealer model.Sealer
	// Doing is called at the start of a step, with the file and its approximate size in
	// bytes; nil means that nothing is called.
	Doing func(what, file string, size int64)
}

// Backup copies a database that may be in use: the state at one moment, complete or not at
// all, readable only for its owner. It takes no lock that a writer would wait for, and
// does not migrate. The copy gets its name after it was checked.
func Backup(ctx context.Context, o BackupOptions) (Copy, error) {
	database, err := sqliteFile(o.URL)
	if err != nil {
		return Copy{}, err
	}
	dir := filepath.Dir(database)
	if o.Path != "" {
		if err := checkTarget(o.Path, database, o.Replace); err != nil {
			return Copy{}, err
		}
		dir = filepath.Dir(o.Path)
	}
	partial, remove, err := makePartial(dir, filepath.Base(o.Path))
	if err != nil {
		return Copy{}, targetError(dir, err)
	}
	defer remove()
	size, err := vacuumInto(ctx, database, partial, o.tell)
	if err != nil {
		return Copy{}, fileError(ctx, "copying the database "+database, "check that it is a database of Gatehouse, that this user may read it, and that the disk of "+dir+" is not full", err)
	}
	o.tell("checking the backup", partial, size)
	made, err := CheckCopy(ctx, partial, "the copy of "+database, o.Sealer)
	if err != nil {
		return Copy{}, err
	}
	if o.Path == "" {
		return made, writeOut(o.Out, partial)
	}
	if err := publish(partial, o.Path, o.Replace); err != nil {
		return Copy{}, targetError(o.Path, err)
	}
	return made, nil
}

func (o BackupOptions) tell(what, file string, size int64) {
	if o.Doing != nil {
		o.Doing(what, file, size)
	}
}

// sqliteFile returns the database file of a URL; the file must exist.
func sqliteFile(databaseURL string) (string, error) {
	path, found, err := databaseFile(databaseURL)
	if err == nil && !found {
		err = notInUseError("the database file " + path + " does not exist")
	}
	return path, err
}

// databaseFile returns the file that a URL leads to, or would lead to if found is false.
func databaseFile(databaseURL string) (path string, found bool, err error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", false, urlError("is not a URL")
	}
	if path, err = sqlitePath(u); err != nil {
		return "", false, err
	}
	file, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("finding the database file: %w", err)
	}
	return file, true, nil
}

// beside returns the names that an SQLite database and its server use.
func beside(database string) []string {
	return []string{database, database + "-wal", database + "-shm", database + "-journal", database + claimSuffix}
}

// checkTarget refuses a file that a backup must not replace, before any work is done.
func checkTarget(path, database string, replace bool) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return targetError(path, err)
	}
	// The target of a link is the file that would be lost.
	target, err := os.Stat(path)
	for _, name := range beside(database) {
		used, statErr := os.Stat(name)
		if err == nil && statErr == nil && os.SameFile(used, target) {
			return &model.Error{Kind: model.Conflict, Message: path + " belongs to the database that is backed up", Hint: "name another file"}
		}
	}
	if !info.Mode().IsRegular() {
		return &model.Error{Kind: model.Conflict, Message: path + " is not a regular file", Hint: "name a file, or - for standard output"}
	}
	if !replace {
		return existsError(path)
	}
	return nil
}

func existsError(path string) error {
	return &model.Error{Kind: model.Conflict, Message: path + " exists", Hint: "name another file, or give --force to replace it"}
}

// makePartial makes an empty file in dir that is to become base, and removes the partial
// files of killed processes. Others in dir cannot predict its name. remove removes the
// file, unless it has become base.
func makePartial(dir, base string) (path string, remove func(), err error) {
	if dir, err = filepath.Abs(dir); err != nil { // SQLite and this program then find it from any directory
		return "", nil, err
	}
	pattern := "." + base + ".*.partial"
	sweepPartials(filepath.Join(dir, pattern))
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", nil, err
	}
	// Closing the file would drop the locks that SQLite has on it, so it stays open.
	remove = func() {
		for _, name := range beside(f.Name()) {
			_ = os.Remove(name) // most do not exist
		}
		_ = f.Close() // this releases the lock
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil && !isAt(f, f.Name()) { // another process removed it before it was locked
		err = fs.ErrNotExist
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("locking %s, for another process that does the same: %w", f.Name(), err)
	}
	return f.Name(), remove, nil
}

// sweepPartials removes the partial files that no process has locked.
func sweepPartials(pattern string) {
	names, _ := filepath.Glob(pattern) // for an odd directory name the pattern may match nothing
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && isAt(f, name) {
			for _, left := range beside(name) {
				_ = os.Remove(left) // most do not exist
			}
		}
		_ = f.Close()
	}
}

// isAt reports whether a name leads to the file.
func isAt(f *os.File, name string) bool {
	mine, err := f.Stat()
	there, statErr := os.Lstat(name)
	return err == nil && statErr == nil && os.SameFile(mine, there)
}

// vacuumInto copies a database within one read transaction, so that the copy shows one
// moment, however long it takes and whoever writes. The copy has no free pages and no log
// file. size is its maximum size.
func vacuumInto(ctx context.Context, database, partial string, tell func(what, file string, size int64)) (size int64, err error) {
	db, err := openFile(database, "rw") // closing a database that no one else has open removes the log
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").Scan(&size)
	if err != nil {
		return 0, err
	}
	tell("writing the backup", partial, size)
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", partial)
	return size, err
}

// openFile opens an SQLite file on one connection, in a mode of SQLite's URLs.
func openFile(path, mode string) (*sql.DB, error) {
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"mode": {mode}, "_pragma": {"busy_timeout(5000)"}}.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("opening SQLite: %w", err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// CheckCopy reads a database that nobody writes, from its first page to its last. A
// damaged file, or one that is not a database of Gatehouse, is an Invalid error; one of a
// newer version is a Conflict error. name is the file's name in errors.
func CheckCopy(ctx context.Context, path, name string, sealer model.Sealer) (Copy, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Copy{}, fileError(ctx, "reading "+name, "check the path and the permissions", err)
	}
	c := Copy{Size: info.Size()}
	db, err := openFile(path, "ro")
	if err != nil {
		return Copy{}, err
	}
	defer db.Close()
	var found bool
	err = db.QueryRowContext(ctx, "SELECT count(*) = 3 FROM sqlite_master WHERE name IN ('revision', 'change_log', 'goose_db_version')").Scan(&found)
	if err != nil || !found {
		return Copy{}, copyError(ctx, name, err)
	}
	if err := checkPages(ctx, db); err != nil {
		return Copy{}, damageError(ctx, name, err)
	}
	err = db.QueryRowContext(ctx, "SELECT revision, (SELECT max(version_id) FROM goose_db_version WHERE is_applied) FROM revision").Scan(&c.Revision, &c.Schema)
	if err != nil {
		return Copy{}, damageError(ctx, name, err)
	}
	known, err := knownSchema("sqlite")
	if err != nil {
		return Copy{}, err
	}
	if c.Schema > known {
		return Copy{}, newerError(name, c.Schema, known)
	}
	if sealer != nil {
		var sealed string
		err := db.QueryRowContext(ctx, "SELECT sealed FROM seal_check").Scan(&sealed)
		if err == nil {
			_, err = sealer.Unseal(sealed, checkPlace)
		}
		c.KeyOpens = err == nil
	}
	return c, nil
}

// checkPages returns an error if a page or a reference between rows is damaged.
func checkPages(ctx context.Context, db *sql.DB) error {
	var first string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&first); err != nil {
		return err
	}
	if first != "ok" {
		return errors.New(strings.Join(strings.Fields(first), " "))
	}
	var table string
	err := db.QueryRowContext(ctx, "SELECT \"table\" FROM pragma_foreign_key_check LIMIT 1").Scan(&table)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("a row of the table %q refers to one that is missing", table)
}

// publish renames a complete file, so that a reader finds all of it or nothing, even after
// a power cut.
func publish(partial, path string, replace bool) error {
	if err := syncFile(partial); err != nil {
		return err
	}
	// Unlike a rename, a link replaces nothing.
	place := os.Link
	if replace {
		place = os.Rename
	}
	err := place(partial, path)
	if errors.Is(err, fs.ErrExist) && !replace {
		return existsError(path)
	}
	if errors.Is(err, syscall.EPERM) || errors.Is(err, errors.ErrUnsupported) { // a file system without links
		if _, statErr := os.Lstat(path); statErr == nil {
			return existsError(path)
		}
		err = os.Rename(partial, path)
	}
	if err != nil {
		return err
	}
	return syncFile(filepath.Dir(path))
}

// syncFile flushes a file, or the names of a directory, to the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func writeOut(out io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the copy: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(out, f); err != nil {
		return fmt.Errorf("writing the backup to standard output: %w", err)
	}
	return nil
}

// copyError says why a file cannot be a backup; err is nil for a database of another
// program.
func copyError(ctx context.Context, name string, err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlite3.SQLITE_CORRUPT {
		return damageError(ctx, name, err)
	}
	return fileError(ctx, name+" is not a database of Gatehouse", "name a file that gatehouse backup has written", err)
}

func damageError(ctx context.Context, name string, err error) error {
	return fileError(ctx, name+" is damaged", "use another backup", err)
}

// fileError says what is wrong with a database file, unless the context has ended.
func fileError(ctx context.Context, what, hint string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%s: %w", what, cause)
	}
	return &model.Error{Kind: model.Invalid, Message: what, Hint: hint, Err: err}
}

func targetError(path string, err error) error {
	if _, ok := errors.AsType[*model.Error](err); ok {
		return err
	}
	return &model.Error{
		Kind: model.Unavailable, Message: path + " cannot be written",
		Hint: "check that the directory exists, that this user may write it, and that the disk is not full", Err: err,
	}
}
