package sqlstore

import (
	"context"
	"database/sql/driver"
)

// keptStatements is how many statements a connection to SQLite keeps when nobody uses them, and keptText how long a text of
// such a statement may be, in bytes. The program has some 200 texts.
const (
	keptStatements = 256
	keptText       = 32 << 10
)

// preparing opens connections to SQLite that keep their statements: SQLite takes as long to parse a small statement as to
// run it, and a prepared statement of database/sql ends with its transaction.
type preparing struct {
	driver driver.Driver
	dsn    string
}

// sqliteConn is what database/sql uses of a connection.
type sqliteConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ConnBeginTx
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// sqliteStmt is what preparedConn uses of a statement.
type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// Connect implements driver.Connector.
func (p preparing) Connect(context.Context) (driver.Conn, error) {
	c, err := p.driver.Open(p.dsn)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(sqliteConn)
	if !ok {
		return c, nil // it works as well, and only slower
	}
	return &preparedConn{conn, map[string]sqliteStmt{}}, nil
}

// Driver implements driver.Connector.
func (p preparing) Driver() driver.Driver { return p.driver }

// preparedConn is a connection that keeps its statements. A statement has one user at a time: idle are those without.
type preparedConn struct {
	sqliteConn
	idle map[string]sqliteStmt
}

// ExecContext implements driver.ExecerContext.
func (c *preparedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := s.ExecContext(ctx, args)
	return result, c.putBack(query, s, err)
}

// QueryContext implements driver.QueryerContext.
func (c *preparedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, c.putBack(query, s, err)
	}
	return &preparedRows{rows, func(err error) error { return c.putBack(query, s, err) }}, nil
}

// Close implements driver.Conn.
func (c *preparedConn) Close() error {
	for query, s := range c.idle {
		delete(c.idle, query)
		_ = s.Close() // the connection ends it in any case
	}
	return c.sqliteConn.Close()
}

func (c *preparedConn) take(ctx context.Context, query string) (sqliteStmt, error) {
	if s, ok := c.idle[query]; ok {
		delete(c.idle, query)
		return s, nil
	}
	s, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if kept, ok := s.(sqliteStmt); ok {
		return kept, nil
	}
	_ = s.Close()
	return nil, driver.ErrSkip // database/sql prepares it itself
}

// putBack keeps a statement for its next user, unless it failed.
func (c *preparedConn) putBack(query string, s sqliteStmt, err error) error {
	_, taken := c.idle[query] // it was running twice
	if err != nil || taken || len(query) > keptText {
		if closed := s.Close(); err == nil {
			err = closed
		}
		return err
	}
	if len(c.idle) >= keptStatements {
		for one, old := range c.idle { // any of them
			delete(c.idle, one)
			_ = old.Close()
			break
		}
	}
	c.idle[query] = s
	return nil
}

// preparedRows are rows of a statement that is kept.
type preparedRows struct {
	driver.Rows
	putBack func(error) error
}

// Close implements driver.Rows.
func (r *preparedRows) Close() error { return r.putBack(r.Rows.Close()) }
