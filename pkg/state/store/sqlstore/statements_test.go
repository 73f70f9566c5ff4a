package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
)

// counting counts the statements that its connections prepare.
type counting struct {
	driver.Driver
	prepared int
}

// sqliteConn is what the connections of SQLite are, beyond driver.Conn.
type sqliteConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ConnBeginTx
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type countingConn struct {
	sqliteConn
	of *counting
}

func (c *counting) Open(name string) (driver.Conn, error) {
	conn, err := c.Driver.Open(name)
	if err != nil {
		return nil, err
	}
	return &countingConn{conn.(sqliteConn), c}, nil //nolint:forcetypeassert // the specs need it
}

func (c *countingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.of.prepared++
	return c.sqliteConn.PrepareContext(ctx, query)
}

var _ = Describe("Statements of SQLite", func() {
	var prepared *counting
	var db *sql.DB
	BeforeEach(func(ctx SpecContext) {
		plain, err := sql.Open("sqlite", "")
		Expect(err).NotTo(HaveOccurred())
		prepared = &counting{Driver: plain.Driver()}
		Expect(plain.Close()).To(Succeed())
		db = sql.OpenDB(sqlstore.Preparing(prepared, "file:"+filepath.Join(GinkgoT().TempDir(), "a.db")))
		db.SetMaxOpenConns(1)
		DeferCleanup(db.Close)
		_, err = db.ExecContext(ctx, "CREATE TABLE n (v INTEGER UNIQUE)")
		Expect(err).NotTo(HaveOccurred())
		prepared.prepared = 0
	})
	insert := func(ctx context.Context, v int) error {
		tx, err := db.BeginTx(ctx, nil)
		Expect(err).NotTo(HaveOccurred())
		if _, err = tx.ExecContext(ctx, "INSERT INTO n VALUES (?)", v); err != nil {
			Expect(tx.Rollback()).To(Succeed())
			return err
		}
		return tx.Commit()
	}
	first := func(ctx context.Context, query string, args ...any) (v int) {
		Expect(db.QueryRowContext(ctx, query, args...).Scan(&v)).To(Succeed())
		return v
	}

	It("are parsed once, also in other transactions", func(ctx SpecContext) {
		for v := range 20 {
			Expect(insert(ctx, v)).To(Succeed())
			Expect(first(ctx, "SELECT v FROM n WHERE v = ?", v)).To(Equal(v))
		}
		Expect(prepared.prepared).To(Equal(2))
	})

	It("are not kept after an error, and work again", func(ctx SpecContext) {
		Expect(insert(ctx, 1)).To(Succeed())
		Expect(insert(ctx, 1)).To(MatchError(ContainSubstring("UNIQUE")))
		Expect(insert(ctx, 2)).To(Succeed())
		Expect(prepared.prepared).To(Equal(2))
		Expect(first(ctx, "SELECT count(*) FROM n")).To(Equal(2))
	})

	It("run twice at the same time", func(ctx SpecContext) {
		Expect(insert(ctx, 1)).To(Succeed())
		Expect(insert(ctx, 2)).To(Succeed())
		tx, err := db.BeginTx(ctx, nil)
		Expect(err).NotTo(HaveOccurred())
		defer func() { Expect(tx.Rollback()).To(Succeed()) }()
		const query = "SELECT v FROM n WHERE v >= ? ORDER BY v"
		outer, err := tx.QueryContext(ctx, query, 1)
		Expect(err).NotTo(HaveOccurred())
		var seen []int
		for outer.Next() {
			var v, w int
			Expect(outer.Scan(&v)).To(Succeed())
			Expect(tx.QueryRowContext(ctx, query, v).Scan(&w)).To(Succeed())
			seen = append(seen, v, w)
		}
		Expect(outer.Err()).NotTo(HaveOccurred())
		Expect(outer.Close()).To(Succeed())
		Expect(seen).To(Equal([]int{1, 1, 2, 2}))
	})

	It("are as many as the bound", func(ctx SpecContext) {
		for i := range sqlstore.KeptStatements + 50 {
			Expect(first(ctx, fmt.Sprintf("SELECT %d", i))).To(Equal(i))
		}
		before := prepared.prepared
		for i := range sqlstore.KeptStatements + 50 {
			Expect(first(ctx, fmt.Sprintf("SELECT %d", i))).To(Equal(i))
		}
		Expect(prepared.prepared - before).To(BeNumerically(">=", 50))
	})
})
