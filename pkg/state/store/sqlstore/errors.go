package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// class is the kind of a failure, in terms of both databases.
type class int

const (
	classOther class = iota
	classDuplicate
	classForeignKey
	classText
	classAway
)

// fail turns an error of the database into one of the store's. If the caller's context
// has ended, the error stays a context error.
func (s *Store) fail(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*model.Error](err); ok {
		return err
	}
	if cause := ctx.Err(); cause != nil {
		if errors.Is(context.Cause(ctx), errTooSlow) {
			return s.stepTimeoutError(fmt.Errorf("%s: %w", doing, errTooSlow))
		}
		return fmt.Errorf("%s: %w", doing, cause)
	}
	switch classify(err) {
	case classAway:
		return s.unavailableError(fmt.Errorf("%s: %w", doing, err))
	case classText:
		return &model.Error{
			Kind: model.Invalid, Message: "the text contains a character that the database cannot store",
			Hint: "send valid UTF-8 without the NUL character", Err: err,
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// stepTimeoutError returns the error of a step that took longer than stepTimeout.
func (s *Store) stepTimeoutError(err error) error {
	return &model.Error{
		Kind: model.Unavailable, Err: err,
		Message: fmt.Sprintf("a step of the transaction took longer than %s and was canceled; nothing was stored", s.stepTimeout),
		Hint:    "try again; if it happens often, look for a large write that blocks others, or for a slow disk, database or network",
	}
}

// unavailableError returns the error of a database that does not answer.
func (s *Store) unavailableError(err error) error {
	return &model.Error{Kind: model.Unavailable, Message: "the database does not answer", Hint: s.awayHint, Err: err}
}

// awayError says that a database could not be opened, and may be later, without another setting.
type awayError struct{ cause *model.Error }

func (e *awayError) Error() string { return e.cause.Error() }

// Unwrap returns what a user can read.
func (e *awayError) Unwrap() error { return e.cause }

// IsAway reports whether Open failed because the database is away: the same call may work later. Only PostgreSQL can
// be away.
func IsAway(err error) bool {
	_, ok := errors.AsType[*awayError](err)
	return ok
}

// mayReturn reports whether a database that cannot be opened may be open later. One that refuses the user or the
// password answers.
func mayReturn(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(e.Code, "28") {
		return false
	}
	return classify(err) == classAway
}

// failWrite is fail for a statement that wrote obj.
func (w *writer) failWrite(obj model.Object, doing string, err error) error {
	key := obj.Key()
	switch classify(err) {
	case classDuplicate:
		return model.ExistsError(key)
	case classForeignKey:
		if doing == "removing" {
			return &model.Error{
				Kind: model.InUse, Path: key.Path(), Message: fmt.Sprintf("%s %q is in use", key.Kind, key.Text()),
				Hint: "detach or delete what refers to it, then delete it", Err: err,
			}
		}
		return foreignKeyError(key, err)
	}
	return w.fail(fmt.Sprintf("%s %s %q", doing, key.Kind, key.Text()), err)
}

func foreignKeyError(key model.Key, err error) error {
	return &model.Error{
		Kind: model.NotFound, Path: key.Path(),
		Message: fmt.Sprintf("%s %q refers to an object that does not exist", key.Kind, key.Text()), Err: err,
	}
}

func classify(err error) class {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classifyPostgres(e.Code)
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return classifySQLite(e.Code())
	}
	for _, gone := range []error{
		driver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone, gorm.ErrInvalidTransaction, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		context.DeadlineExceeded,
	} {
		if errors.Is(err, gone) {
			return classAway
		}
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return classAway
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || pgconn.SafeToRetry(err) {
		return classAway
	}
	return classOther
}

// lostConnection reports whether an open connection to Postgres was lost, so that
// another may work.
func lostConnection(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return false
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "57P01" || e.Code == "57P02" // the server was stopped, or crashed
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// classifyPostgres knows the codes of the manual's appendix A.
func classifyPostgres(code string) class {
	switch code {
	case "23505":
		return classDuplicate
	case "23503", "23001":
		return classForeignKey
	case "22021", "22P05":
		return classText
	case "25006", "40001", "40P01", "55P03", "25P03":
		return classAway
	}
	switch code[:min(2, len(code))] {
	// Connection, authorization, resources, operator's intervention, system.
	case "08", "28", "53", "57", "58":
		return classAway
	}
	return classOther
}

// classifySQLite knows the result codes of sqlite.org/rescode.html.
func classifySQLite(code int) class {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return classDuplicate
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return classForeignKey
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB,
		sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT:
		return classAway
	}
	return classOther
}
