package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
)

// boardChannel announces posts on the board, each by the name of its replica.
const boardChannel = "gatehouse_replicas"

// board is a table of PostgreSQL without a write-ahead log. After a crash of the
// server it is empty, and every replica posts again. The only clock is that of the
// database.
type board struct {
	pool    *sql.DB
	changed chan struct{}

	mu  sync.Mutex
	own string // the replica that posts here
}

var _ replicas.Board = (*board)(nil)

func newBoard(pool *sql.DB) *board { return &board{pool: pool, changed: make(chan struct{}, 1)} }

// Board returns the board for the posts of replicas; nil if the database allows only one
// server.
func (s *Store) Board() replicas.Board {
	if s.board == nil {
		return nil
	}
	return s.board
}

// signal tells the reader of Changed that a replica has posted; empty means any.
func (b *board) signal(replica string) {
	b.mu.Lock()
	own := b.own
	b.mu.Unlock()
	if replica != "" && replica == own {
		return
	}
	select {
	case b.changed <- struct{}{}:
	default: // the reader has not looked yet, and will see this post too
	}
}

// Changed implements replicas.Board.
func (b *board) Changed() <-chan struct{} { return b.changed }

// Pace implements replicas.Board.
func (b *board) Pace() replicas.Pace { return replicas.DefaultPace() }

// publishPost leaves columns unchanged for which it gets NULL, except in a new row. A
// buried replica lives again with its next report. The second part always returns a row,
// so that the announcement is made.
const publishPost = `WITH post AS (
	INSERT INTO replica_report AS r (replica, heard, version, report, mail_version, mail)
	VALUES ($1, clock_timestamp(), $2, coalesce($3, ''::bytea), $4, coalesce($5, ''::bytea))
	ON CONFLICT (replica) DO UPDATE SET heard = excluded.heard, ended = r.ended AND $3 IS NULL,
		version = excluded.version, report = coalesce($3, r.report),
		mail_version = excluded.mail_version, mail = coalesce($5, r.mail))
SELECT pg_notify('` + boardChannel + `', $1::text)`

// Publish implements replicas.Board.
func (b *board) Publish(ctx context.Context, p replicas.Post) error {
	b.mu.Lock()
	b.own = p.Replica
	b.mu.Unlock()
	if _, err := b.pool.ExecContext(ctx, publishPost, p.Replica, p.Versions.Report, p.Report, p.Versions.Mail, p.Mail); err != nil {
		return fmt.Errorf("posting what this replica knows: %w", err)
	}
	return nil
}

// Beat implements replicas.Board. A post without a report belongs to a buried replica, or
// is mail that came after the database had lost the rest.
func (b *board) Beat(ctx context.Context, replica string) (kept bool, err error) {
	result, err := b.pool.ExecContext(ctx, "UPDATE replica_report SET heard = clock_timestamp() WHERE replica = $1 AND report <> ''", replica)
	if err != nil {
		return false, fmt.Errorf("giving a sign of life: %w", err)
	}
	rows, err := result.RowsAffected()
	return rows > 0, err
}

// readPosts returns NULL for what the reader already has.
const readPosts = `SELECT r.replica, extract(epoch FROM clock_timestamp() - r.heard)::float8, r.ended,
	r.version, CASE WHEN r.version = h.version OR r.replica = $1 THEN NULL ELSE r.report END,
	r.mail_version, CASE WHEN r.mail_version = h.mail OR r.replica = $1 THEN NULL ELSE r.mail END
FROM replica_report r
LEFT JOIN unnest($2::text[], $3::bigint[], $4::bigint[]) AS h(replica, version, mail) ON h.replica = r.replica`

// Read implements replicas.Board.
func (b *board) Read(ctx context.Context, replica string, have map[string]replicas.Versions) (list []replicas.Notice, kept bool, err error) {
	list, kept, old, err := b.readPosts(ctx, replica, have)
	if err != nil {
		return nil, false, fmt.Errorf("reading what other replicas know: %w", err)
	}
	if old {
		_, err = b.pool.ExecContext(ctx, "DELETE FROM replica_report WHERE heard < clock_timestamp() - make_interval(secs => $1)", b.Pace().Forget.Seconds())
	}
	return list, kept, err
}

// readPosts also reports whether some posts are too old.
func (b *board) readPosts(ctx context.Context, replica string, have map[string]replicas.Versions) (list []replicas.Notice, kept, old bool, err error) {
	names, reports, mails := make([]string, 0, len(have)), make([]int64, 0, len(have)), make([]int64, 0, len(have))
	for name, v := range have {
		names, reports, mails = append(names, name), append(reports, v.Report), append(mails, v.Mail)
	}
	rows, err := b.pool.QueryContext(ctx, readPosts, replica, names, reports, mails)
	if err != nil {
		return nil, false, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var n replicas.Notice
		var age float64
		if err := rows.Scan(&n.Replica, &age, &n.Ended, &n.Versions.Report, &n.Report, &n.Versions.Mail, &n.Mail); err != nil {
			return nil, false, false, err
		}
		n.Age = time.Duration(max(0, age) * float64(time.Second))
		old = old || n.Age > b.Pace().Forget
		if n.Replica == replica {
			kept = true
		} else {
			list = append(list, n)
		}
	}
	return list, kept, old, rows.Err()
}

// End implements replicas.Board. The post stays without its content, so that a post that
// the database has lost does not look like an end.
func (b *board) End(ctx context.Context, replica string) error {
	_, err := b.pool.ExecContext(ctx, `WITH ended AS (
	UPDATE replica_report SET ended = true, heard = clock_timestamp(), report = '', mail = '' WHERE replica = $1)
SELECT pg_notify('`+boardChannel+`', $1::text)`, replica)
	if err != nil {
		return fmt.Errorf("recording that this replica has ended: %w", err)
	}
	return nil
}

// Bury implements replicas.Board.
func (b *board) Bury(ctx context.Context, replica string) error {
	_, err := b.pool.ExecContext(ctx, `WITH buried AS (
	UPDATE replica_report SET ended = true, report = '', mail = ''
	WHERE replica = $1 AND NOT ended AND heard < clock_timestamp() - make_interval(secs => $2) RETURNING replica)
SELECT pg_notify('`+boardChannel+`', replica) FROM buried`, replica, b.Pace().Gone.Seconds())
	if err != nil {
		return fmt.Errorf("recording that replica %s is gone: %w", replica, err)
	}
	return nil
}
