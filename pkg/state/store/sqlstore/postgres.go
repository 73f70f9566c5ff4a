package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// channel announces revisions within a database.
	channel = "gatehouse_changed"

	connectTimeout = 5 * time.Second
	// maxConnections are for callers that read, maxWriters for those that write: one of
	// them writes, and the next have already sent their statement to the server.
	maxConnections = 8
	maxWriters     = 4
	// An unused connection is closed after a while. A long-lived one is replaced, so
	// that load returns to a server that came back.
	idleTime, lifeTime = 5 * time.Minute, time.Hour

	minBackOff, maxBackOff = 250 * time.Millisecond, 10 * time.Second
)

func (s *Store) openPostgres(ctx context.Context) error {
	cfg, err := pgx.ParseConfig(s.opts.URL)
	if err != nil {
		// The cause may quote a part of the password.
		return urlError("cannot be read")
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "gatehouse"
	}
	// A silently lost peer is noticed within half a minute.
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}
	cfg.DialFunc = (&net.Dialer{Timeout: cfg.ConnectTimeout, KeepAliveConfig: keepAlive}).DialContext

	s.awayHint = "check that Postgres at " + address(cfg) + " runs and can be reached, then try again"
	// The row lock keeps writers in line. A writer that stops in the middle (a paused
	// machine) must not hold it forever.
	s.dialect = dialect{rows: batchSize, placeholder: "$", numbered: true} // the driver prepares each statement, and keeps it
	s.lockRevision = "SELECT revision, id, set_config('idle_in_transaction_session_timeout', '30s', true) FROM revision FOR UPDATE"
	s.notify = func(tx *gorm.DB, mark model.Mark) error {
		return tx.Exec("SELECT pg_notify(?, ?)", channel, strconv.FormatInt(mark.Revision, 10)+" "+mark.ID).Error
	}
	s.listen = func(ctx context.Context) error { return s.keepListening(ctx, cfg) }

	pool := s.openPostgresPool(cfg, maxWriters)
	if err := pool.PingContext(ctx); err != nil {
		return s.connectError(ctx, cfg, err)
	}
	if s.opts.InUse {
		var found bool
		if err := pool.QueryRowContext(ctx, "SELECT to_regclass('revision') IS NOT NULL").Scan(&found); err != nil {
			return s.connectError(ctx, cfg, err)
		}
		if !found {
			return notInUseError(fmt.Sprintf("the database %q of Postgres at %s holds no tables of Gatehouse", cfg.Database, address(cfg)))
		}
	}
	// Tried every second, for up to five minutes.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return fmt.Errorf("preparing the migration lock: %w", err)
	}
	if err := migrate(ctx, s.log, pool, goose.DialectPostgres, "postgres", goose.WithSessionLocker(locker)); err != nil {
		return s.connectError(ctx, cfg, err)
	}
	load := s.openPostgresPool(cfg, maxLoaders-1)
	load.SetMaxIdleConns(0) // it is only used at the start
	for _, p := range []struct {
		db   **gorm.DB
		pool *sql.DB
	}{
		{&s.w, pool}, {&s.r, s.openPostgresPool(cfg, maxConnections)},
		{&s.build, s.openPostgresPool(cfg, 2)}, {&s.load, load}, {&s.access, s.openPostgresPool(cfg, 2)},
	} {
		if *p.db, err = gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: p.pool}), gormConfig()); err != nil {
			return s.fail(ctx, "opening Postgres", err)
		}
	}
	s.board = newBoard(s.openPostgresPool(cfg, 1))
	return nil
}

func (s *Store) openPostgresPool(cfg *pgx.ConnConfig, size int) *sql.DB {
	pool := stdlib.OpenDB(*cfg)
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	pool.SetConnMaxIdleTime(idleTime)
	pool.SetConnMaxLifetime(lifeTime)
	s.pools = append(s.pools, pool)
	return pool
}

func address(cfg *pgx.ConnConfig) string {
	return net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
}

// connectError tells a user in one line why Postgres cannot be used.
func (s *Store) connectError(ctx context.Context, cfg *pgx.ConnConfig, err error) error {
	if _, ok := errors.AsType[*model.Error](err); ok { // the database has a newer schema
		return err
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("connecting to Postgres at %s: %w", address(cfg), cause)
	}
	e := &model.Error{Kind: model.Unavailable, Hint: "check the database URL and that Postgres is running"}
	var timeout net.Error
	pg, isPostgres := errors.AsType[*pgconn.PgError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case isPostgres:
		e.Message = "says: " + pg.Message
		switch pg.Code {
		case "28P01", "28000":
			e.Hint = "check the user and the password of the database URL, and the server's pg_hba.conf"
		case "3D000":
			e.Hint = "create the database first: createdb " + cfg.Database
		case "42501":
			e.Hint = fmt.Sprintf("user %q needs to own the database, or the right to create tables in its schema", cfg.User)
		case "57P03", "53300":
			e.Hint = "try again in a moment"
		}
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message = "refuses the connection"
		e.Hint = "check that it is running and listens there"
	case isDNS:
		e.Message = "cannot be found: its host name does not resolve"
		e.Hint = "check the host of the database URL"
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Message = "does not answer"
		e.Hint = "check the address, and that no firewall is in between"
	default:
		// The last cause is one line and contains no part of the URL.
		cause := err
		for next := errors.Unwrap(cause); next != nil; next = errors.Unwrap(cause) {
			cause = next
		}
		e.Message = "cannot be used: " + cause.Error()
	}
	e.Message = "Postgres at " + address(cfg) + " " + e.Message
	if mayReturn(err) {
		return &awayError{e}
	}
	return e
}

// keepListening receives the revisions of every process on this database
// until ctx ends.
func (s *Store) keepListening(ctx context.Context, cfg *pgx.ConnConfig) error {
	wait := minBackOff
	for {
		err := s.listenOnce(ctx, cfg, func() { wait = minBackOff })
		if ctx.Err() != nil {
			return nil
		}
		if wait == minBackOff {
			s.log.Warn("lost the connection for notifications of changes, reconnecting", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = min(2*wait, maxBackOff)
	}
}

// listenOnce calls connected once it listens, and returns when the connection is lost.
func (s *Store) listenOnce(ctx context.Context, cfg *pgx.ConnConfig, connected func()) error {
	conn, err := pgx.ConnectConfig(ctx, cfg.Copy())
	if err != nil {
		return fmt.Errorf("connecting to Postgres: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // nothing is left to lose on it
	}()
	for _, c := range []string{channel, boardChannel, automaticChannel} {
		if _, err := conn.Exec(ctx, "LISTEN "+c); err != nil {
			return fmt.Errorf("listening for changes: %w", err)
		}
	}
	// Finds what was announced while nobody listened.
	if err := s.poll(ctx); err != nil {
		return err
	}
	s.board.signal("")
	s.signalAutomatic()
	connected()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("listening for changes: %w", err)
		}
		switch n.Channel {
		case boardChannel:
			s.board.signal(n.Payload)
			continue
		case automaticChannel:
			s.signalAutomatic()
			continue
		}
		number, id, _ := strings.Cut(n.Payload, " ") // an older program sends no ID
		revision, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return fmt.Errorf("listening for changes: %q is not a revision", n.Payload)
		}
		s.signal(model.Mark{Revision: revision, ID: id})
	}
}
