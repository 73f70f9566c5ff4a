package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// Options say which database to open and how to keep it.
type Options struct {
	// URL is sqlite:///absolute/path.db or postgres://user@host:port/name.
	URL string
	// Sealer seals confidential values. It is required once a filter, a global config
	// or a secret is written.
	Sealer model.Sealer
	// InUse says that the database was opened before, with the Sealer's key if there is
	// a Sealer. Any other database is an error and stays unchanged; without InUse a new
	// database is created.
	InUse bool
	// Log receives migrations and lost connections; nil discards them.
	Log *slog.Logger
	// KeepEntries and KeepAge bound the change log: older entries are removed once an
	// hour. 0 means 100000 entries and 30 days.
	KeepEntries int
	KeepAge     time.Duration
	// PollInterval is how often Run looks for changes that were not announced. 0 means
	// 5 s.
	PollInterval time.Duration
	// Now is the clock of timestamps and compaction; nil means time.Now.
	Now func() time.Time
}

const (
	defaultKeepEntries  = 100_000
	defaultKeepAge      = 30 * 24 * time.Hour
	defaultPollInterval = 5 * time.Second
	compactInterval     = time.Hour
	// stepTimeout bounds every step of a transaction, so that a silently lost
	// connection is noticed. A step is a statement and the work until the next; a
	// transaction has as many as its size needs.
	stepTimeout = 30 * time.Second
)

// errTooSlow is the cause when stepTimeout ends the context of a transaction.
var errTooSlow = errors.New("a step of the transaction took too long")

// Store implements store.Store.
type Store struct {
	opts   Options
	log    *slog.Logger
	tables map[model.Kind]table
	// w begins the transactions that write, and r those that read for callers of the
	// API. build reads for the build loop, and load helps it to load everything. access
	// is for the checks of tokens and of readiness. Each has its own connections, so
	// that none waits for another.
	w, r, build, load, access *gorm.DB
	// pools are the underlying pools, to close.
	pools []*sql.DB
	// lockRevision reads the revision with its ID (and a text of no use) and blocks
	// every other writer until the end of the transaction.
	lockRevision string
	// notify announces a revision to other processes within its transaction; nil if the
	// database cannot announce.
	notify func(tx *gorm.DB, mark model.Mark) error
	// listen receives the announcements until ctx ends; nil likewise.
	listen func(ctx context.Context) error
	// board is where replicas leave posts; nil if the database allows only one server.
	board *board
	// firstKey is the result of IsNew.
	firstKey bool
	// timesAreText says that the database has no type for times.
	timesAreText bool
	// dialect is how the database inserts rows.
	dialect dialect
	// awayHint says what to do when the database does not answer.
	awayHint string
	// The constants of this package; tests set other values.
	stepTimeout               time.Duration
	generationSize, keptBytes int
	loaders                   int

	changed, automaticChanged chan struct{}

	mu sync.Mutex
	// signalled is the newest revision that was signalled on changed.
	signalled model.Mark
}

var _ store.Store = (*Store)(nil)

// Open opens the database and migrates it to this program's schema; an SQLite file is
// created if it does not exist. Its errors are one line for a user and never contain a
// password.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.KeepEntries <= 0 {
		opts.KeepEntries = defaultKeepEntries
	}
	if opts.KeepAge <= 0 {
		opts.KeepAge = defaultKeepAge
	}
	if opts.PollInterval <= 0 {
		opts.PollInterval = defaultPollInterval
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Sealer == nil {
		opts.Sealer = noSealer{}
	}
	all, err := tables()
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts, log: opts.Log, tables: all, stepTimeout: stepTimeout, generationSize: generationSize, keptBytes: keptBytes, loaders: loaders(), changed: make(chan struct{}, 1),
		automaticChanged: make(chan struct{}, 1)}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	// The error of url.Parse may quote a part of the password.
	u, err := url.Parse(s.opts.URL)
	if err != nil {
		return urlError("is not a URL")
	}
	switch u.Scheme {
	case "sqlite":
		err = s.openSQLite(ctx, u)
	case "postgres", "postgresql":
		err = s.openPostgres(ctx)
	case "":
		err = urlError("has no scheme")
	default:
		err = urlError(fmt.Sprintf("has the unknown scheme %q", u.Scheme))
	}
	if err != nil {
		return err
	}
	if err := s.checkSealer(ctx); err != nil {
		return err
	}
	s.signalled, err = currentMark(s.r.WithContext(ctx))
	return s.fail(ctx, "reading the revision", err)
}

func urlError(what string) error {
	return &model.Error{
		Kind: model.Invalid, Message: "the database URL " + what,
		Hint: "use sqlite:///absolute/path.db or postgres://user:password@host:5432/name; percent-encode special characters of the password",
	}
}

// gormConfig is how GORM is used here: rows only, no logging (an error is
// returned, and a statement holds values), no transaction of its own, no
// prepared statements (within a transaction they would be prepared again each time;
// the connections keep them instead).
// Queries name their columns: Postgres refuses a "SELECT *" that it planned before
// a newer version added a column.
func gormConfig() *gorm.Config {
	return &gorm.Config{
		QueryFields:            true,
		NamingStrategy:         namingStrategy(),
		Logger:                 logger.Discard,
		SkipDefaultTransaction: true,
	}
}

// Changed implements store.Source.
func (s *Store) Changed() <-chan struct{} { return s.changed }

// signal sends a revision to the reader of Changed, once.
func (s *Store) signal(mark model.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mark == s.signalled {
		return
	}
	s.signalled = mark
	select {
	case s.changed <- struct{}{}:
	default: // the reader has not looked yet, and will see this one too
	}
}

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error {
	return s.viewIn(ctx, s.access, func(r *reader) error {
		_, err := r.Revision()
		return err
	})
}

// Close implements store.Store.
func (s *Store) Close() error {
	var errs []error
	for _, pool := range s.pools {
		errs = append(errs, pool.Close())
	}
	s.pools = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing the database: %w", err)
	}
	return nil
}
