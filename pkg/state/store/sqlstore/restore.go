package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// RestoreOptions say which copy becomes which database.
type RestoreOptions struct {
	// URL is the database, an SQLite file; its directory must exist.
	URL string
	// From is read to its end. Name is its name in errors.
	From io.Reader
	Name string
	// Sealer must open what is sealed in the copy.
	Sealer model.Sealer
	// AcceptUnopened also restores objects whose secrets the Sealer does not open.
	AcceptUnopened bool
	// CheckOnly does everything except the last step, which replaces the database.
	CheckOnly bool
	// As is what others are told about the process that has the database.
	As string
	// Now is part of the name that the old database gets.
	Now time.Time
	// Doing is as in BackupOptions.
	Doing func(what, file string, size int64)
	// Log receives migrations; nil discards them.
	Log *slog.Logger
}

// Restored is the result of a restore.
type Restored struct {
	Copy
	// Path is the database, Kept the file with the previous one; Kept is empty if there
	// was none.
	Path, Kept string
	// Secrets counts the texts that the key opens. Unopened are the paths of the
	// objects with texts that it does not open.
	Secrets  int
	Unopened []string
	// Tokens are those of the API, ProxyTokens those of the xDS port.
	Tokens      []store.Token
	ProxyTokens []store.ProxyToken
}

// Restore makes a copy that Backup made the database of a server that is not running.
// Before it replaces anything, it reads and migrates the whole copy and opens its
// secrets. At every moment the database is either the old one or the new one.
func Restore(ctx context.Context, o RestoreOptions) (done Restored, err error) {
	path, _, err := databaseFile(o.URL)
	if err != nil {
		return Restored{}, err
	}
	if err := checkOwner(filepath.Dir(path), os.Geteuid()); err != nil {
		return Restored{}, err
	}
	stage, remove, err := makePartial(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return Restored{}, targetError(path, err)
	}
	defer remove()
	if err := copyTo(ctx, stage, o); err != nil {
		return Restored{}, err
	}
	if done, err = o.check(ctx, stage); err != nil {
		return Restored{}, err
	}
	done.Path = path
	if o.CheckOnly {
		return done, nil
	}
	release, err := Claim(ctx, o.URL, o.As)
	if err != nil {
		return Restored{}, err
	}
	defer func() { err = errors.Join(err, release()) }()
	unlock, err := lockDirectory(ctx, filepath.Dir(path)) // no command can open it meanwhile
	if err != nil {
		return Restored{}, err
	}
	defer unlock()
	done.Kept, err = replaceDatabase(ctx, path, stage, o.Now)
	return done, err
}

func copyTo(ctx context.Context, stage string, o RestoreOptions) error {
	if o.Doing != nil {
		o.Doing("reading the backup", stage, 0)
	}
	f, err := os.OpenFile(stage, os.O_WRONLY, 0)
	if err != nil {
		return targetError(stage, err)
	}
	_, err = io.Copy(f, readUntil(ctx, o.From))
	if err = errors.Join(err, f.Close()); err != nil {
		return fileError(ctx, "copying "+o.Name+" to "+filepath.Dir(stage), "check that it can be read, and that the disk is not full", err)
	}
	return nil
}

// checkOwner refuses to write files as root that the server, which runs as another
// user, could not open. For any other user the operating system does that.
func checkOwner(dir string, euid int) error {
	info, err := os.Stat(dir)
	if err != nil {
		return targetError(dir, err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || euid != 0 || owner.Uid == 0 {
		return nil
	}
	return &model.Error{
		Kind: model.Conflict, Message: fmt.Sprintf("the directory %s belongs to the user with the number %d, who could not use what root restores", dir, owner.Uid),
		Hint: fmt.Sprintf("run this as that user: sudo -u '#%d' gatehouse restore ...", owner.Uid),
	}
}

// readUntil returns a reader that ends with ctx.
func readUntil(ctx context.Context, from io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return from.Read(p)
	})
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// check reads the copy, migrates it and opens its secrets.
func (o RestoreOptions) check(ctx context.Context, stage string) (done Restored, err error) {
	if o.Doing != nil {
		o.Doing("checking the backup", stage, 0)
	}
	if err := makeSingle(ctx, stage); err != nil {
		return done, copyError(ctx, o.Name, err)
	}
	if done.Copy, err = CheckCopy(ctx, stage, o.Name, o.Sealer); err != nil {
		return done, err
	}
	s, err := Open(ctx, Options{URL: (&url.URL{Scheme: "sqlite", Path: stage}).String(), Sealer: o.Sealer, InUse: true, Log: o.Log})
	if errors.Is(err, ErrOtherKey) {
		return done, &model.Error{
			Kind: model.Invalid, Message: "the secrets of " + o.Name + " were sealed with another key, and nothing was restored",
			Hint: "put the key file that was used when the backup was made into place, or name it with --secret-key-file", Err: ErrOtherKey,
		}
	}
	if err != nil {
		return done, err
	}
	if err = s.openSecrets(ctx, &done); err == nil {
		done.Tokens, err = s.Tokens(ctx)
	}
	if err == nil {
		done.ProxyTokens, _, err = s.ProxyTokensSince(ctx, "")
	}
	if err == nil {
		err = s.dropSessions(ctx) // those that were signed out since would come back
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return done, err
	}
	if len(done.Unopened) > 0 && !o.AcceptUnopened {
		return done, &model.Error{
			Kind:    model.Invalid,
			Message: fmt.Sprintf("the key does not open the secrets of %d objects in %s, such as %s, and nothing was restored", len(done.Unopened), o.Name, done.Unopened[0]),
			Hint:    "give the key file that was used when the backup was made; or restore without them with --accept-unopened, and set them again afterwards",
		}
	}
	if err := makeSingle(ctx, stage); err != nil {
		return done, fileError(ctx, "closing the copy of "+o.Name, "check that the disk is not full", err)
	}
	return done, syncFile(stage)
}

// openSecrets counts the sealed texts of the configuration that the key opens, and
// lists the objects with texts that it does not open.
func (s *Store) openSecrets(ctx context.Context, done *Restored) error {
	return s.view(ctx, func(r *reader) error {
		for _, kind := range model.Kinds() {
			if _, ok := model.New(kind).(model.Confidential); !ok {
				continue
			}
			if err := r.openSecrets(kind, done); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *reader) openSecrets(kind model.Kind, done *Restored) error {
	for after := int64(0); ; {
		list, err := r.List(store.Query{Kind: kind, After: after, Limit: resealPage})
		if err != nil || len(list) == 0 {
			return err
		}
		for _, obj := range list {
			after = *obj.Meta().ID
			opened, err := r.store.openTexts(obj)
			if err != nil && !model.IsKind(err, model.Invalid) {
				return err
			}
			if done.Secrets += opened; err != nil {
				done.Unopened = append(done.Unopened, obj.Key().Path())
			}
		}
	}
}

// openTexts opens each sealed text of an object.
func (s *Store) openTexts(obj model.Object) (opened int, err error) {
	c, ok := obj.(model.Confidential)
	if !ok {
		return 0, nil
	}
	err = c.MapSealed(func(sealed, place string) (string, error) {
		_, err := s.opts.Sealer.Unseal(sealed, place)
		if err == nil {
			opened++
		}
		return sealed, err
	})
	return opened, err
}

// makeSingle makes a database a single file again, without a log file. It fails while
// another program has the database open.
func makeSingle(ctx context.Context, path string) error {
	db, err := openFile(path, "rw")
	if err != nil {
		return err
	}
	var mode string
	err = db.QueryRowContext(ctx, "PRAGMA journal_mode = delete").Scan(&mode)
	if err == nil && mode != "delete" {
		err = errLogInUse
	}
	return errors.Join(err, db.Close())
}

// errLogInUse is why a database cannot be made a single file.
var errLogInUse = errors.New("its log is in use")

// isInUse reports whether an error of makeSingle means that another program has the
// database open.
func isInUse(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	code := 0
	if ok {
		code = e.Code() & 0xff
	}
	return errors.Is(err, errLogInUse) || code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// replaceDatabase puts stage in place of the database at path, which gets another name.
func replaceDatabase(ctx context.Context, path, stage string, now time.Time) (kept string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", targetError(path, err)
	}
	if info.Size() > 0 {
		if kept, err = keepDatabase(ctx, path, now); err != nil {
			return "", err
		}
	}
	// SQLite would take a remaining log for one of the new database.
	for _, name := range []string{path + "-wal", path + "-shm", path + "-journal"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return kept, targetError(name, err)
		}
	}
	if err := os.Rename(stage, path); err != nil {
		return kept, targetError(path, err)
	}
	return kept, syncFile(filepath.Dir(path))
}

// keepDatabase gives a database a second name. Its log is first written into it; the
// log of a damaged database is kept next to it.
func keepDatabase(ctx context.Context, path string, now time.Time) (kept string, err error) {
	if kept, err = linkFree(path, path+".before-restore-"+now.UTC().Format("20060102T150405Z")); err != nil {
		return "", targetError(kept, err)
	}
	keptLog := kept + "-wal"
	if err := os.Link(path+"-wal", keptLog); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", errors.Join(targetError(keptLog, err), os.Remove(kept))
	}
	err = makeSingle(ctx, path)
	used := isInUse(err)
	if err == nil || used || ctx.Err() != nil {
		_ = os.Remove(keptLog) // it may not exist
	}
	if !used && ctx.Err() == nil {
		return kept, nil
	}
	err = &model.Error{
		Kind: model.Conflict, Message: "the database " + path + " is used by another program, and nothing was restored",
		Hint: "end commands that use it, such as gatehouse backup or sqlite3, then run this again", Err: err,
	}
	if cause := ctx.Err(); cause != nil {
		err = cause
	}
	return "", errors.Join(err, os.Remove(kept))
}

// linkFree gives a file a second name: base, or base with a number.
func linkFree(path, base string) (name string, err error) {
	name = base
	for n := 2; ; n++ {
		if err := os.Link(path, name); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}
