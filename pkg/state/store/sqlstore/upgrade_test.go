package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

// laterMigration is what a later version could do to a database: it adds columns with a
// default, a kind with a table, and its number.
var laterMigration = []string{
	`ALTER TABLE proxy ADD COLUMN later TEXT NOT NULL DEFAULT 'as it was'`,
	`ALTER TABLE upstream ADD COLUMN later TEXT NOT NULL DEFAULT 'as it was'`,
	`ALTER TABLE change_log ADD COLUMN later TEXT NOT NULL DEFAULT ''`,
	`ALTER TABLE revision ADD COLUMN later TEXT NOT NULL DEFAULT ''`,
	`CREATE TABLE later_kind (name TEXT NOT NULL PRIMARY KEY)`,
	`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, true)`,
}

// onBoth returns the table entries of specs for both databases: the URL of a database
// and what database/sql needs to open it.
func onBoth() []TableEntry {
	return []TableEntry{
		Entry("SQLite", "sqlite", func(context.Context) (url, dsn string) {
			path := filepath.Join(GinkgoT().TempDir(), "gatehouse.db")
			return "sqlite://" + path, path
		}),
		Entry("Postgres", "pgx", func(ctx context.Context) (url, dsn string) {
			url = emptyPostgres(ctx)
			return url, url
		}),
	}
}

func execAll(ctx context.Context, driver, dsn string, statements []string) {
	GinkgoHelper()
	db, err := sql.Open(driver, dsn)
	Expect(err).NotTo(HaveOccurred())
	for _, s := range statements {
		_, err := db.ExecContext(ctx, s)
		Expect(err).NotTo(HaveOccurred(), s)
	}
	Expect(db.Close()).To(Succeed())
}

func proxyNames(ctx context.Context, s store.Store) (names []string) {
	GinkgoHelper()
	Expect(s.Read(ctx, func(r store.Reader) error {
		list, err := r.List(store.Query{Kind: model.KindProxy})
		for _, p := range list {
			names = append(names, p.Key().Text())
		}
		return err
	})).To(Succeed())
	return names
}

var _ = Describe("A database that a newer version has migrated", func() {
	DescribeTable("is refused by this version, which changes nothing in it", func(ctx SpecContext, driver string, locate func(context.Context) (url, dsn string)) {
		url, dsn := locate(ctx)
		s, err := sqlstore.Open(ctx, sqlstore.Options{URL: url})
		Expect(err).NotTo(HaveOccurred())
		Expect(addProxy(ctx, s, "gw")).To(Succeed())
		Expect(s.Close()).To(Succeed())
		execAll(ctx, driver, dsn, laterMigration)
		for _, inUse := range []bool{false, true} {
			_, err = sqlstore.Open(ctx, sqlstore.Options{URL: url, InUse: inUse})
			Expect(model.IsKind(err, model.Conflict)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(MatchRegexp(`^the database has version 9000 of the schema, and this program knows versions up to \d+ ` +
				`\(a newer gatehouse has migrated it: run that version, or restore the backup from before the update, see docs/operations.md\)$`)))
		}
	}, onBoth())

	DescribeTable("can still be used by a running server of this version", func(ctx SpecContext, driver string, locate func(context.Context) (url, dsn string)) {
		url, dsn := locate(ctx)
		s := openStore(ctx, url)
		var mark model.Mark
		use := func(round string) {
			GinkgoHelper()
			// More than one connection has statements that it prepared earlier.
			for i := range 3 {
				name := fmt.Sprint(round, i)
				Expect(addProxy(ctx, s, name)).To(Succeed())
				Expect(proxyNames(ctx, s)).To(ContainElement(name))
				change, err := s.Since(ctx, mark)
				Expect(err).NotTo(HaveOccurred())
				Expect(change.Entries).NotTo(BeEmpty())
				mark = model.Mark{Revision: change.Revision, ID: change.ID}
				_, err = s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
					p, err := store.Get[*model.Proxy](w, model.ProxyKey(name))
					if err != nil {
						return err
					}
					changed := *p
					changed.HTTPPort = 8081
					return w.Replace(&changed)
				})
				Expect(err).NotTo(HaveOccurred())
				_, err = s.Since(ctx, model.Mark{})
				Expect(err).NotTo(HaveOccurred())
			}
		}
		use("before")
		execAll(ctx, driver, dsn, laterMigration)
		use("after")

		By("which keeps what only the newer version knows")
		execAll(ctx, driver, dsn, []string{`UPDATE proxy SET later = 'changed'`,
			`INSERT INTO change_log (revision, seq, kind, name, after, at, actor, request, parent) ` +
				`SELECT revision + 1, 1, 'later_kind', 'x', '{}', '2026-01-01 00:00:00+00:00', 'newer', '', id FROM revision`,
			`UPDATE revision SET revision = revision + 1, id = 'another'`})
		change, err := s.Since(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(change.ID).To(Equal("another"))
		_, err = s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
			p, err := store.Get[*model.Proxy](w, model.ProxyKey("before0"))
			if err != nil {
				return err
			}
			changed := *p
			changed.HTTPPort = 8082
			return w.Replace(&changed)
		})
		Expect(err).NotTo(HaveOccurred())
		db, err := sql.Open(driver, dsn)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(db.Close)
		var later string
		Expect(db.QueryRowContext(ctx, `SELECT later FROM proxy WHERE name = 'before0' AND http_port = 8082`).Scan(&later)).To(Succeed())
		Expect(later).To(Equal("changed"))
	}, onBoth())
})

var _ = Describe("A dump of an older version", func() {
	It("can be restored to an empty database, which is then migrated", func(ctx SpecContext) {
		url, empty := newPostgres(ctx), emptyPostgres(ctx)
		s, err := sqlstore.Open(ctx, sqlstore.Options{URL: url})
		Expect(err).NotTo(HaveOccurred())
		Expect(addProxy(ctx, s, "gw")).To(Succeed())
		Expect(s.Close()).To(Succeed())
		execAll(ctx, "pgx", url, beforeTrustedHops)
		file := filepath.Join(GinkgoT().TempDir(), "gatehouse.dump")
		program := func(name string, args ...string) {
			GinkgoHelper()
			path, err := postgres.Program(name)
			Expect(err).NotTo(HaveOccurred())
			out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
		}
		program("pg_dump", "--format=custom", "--no-owner", "--file="+file, url)
		program("pg_restore", "--no-owner", "--single-transaction", "--dbname="+empty, file)
		Expect(proxyNames(ctx, openStore(ctx, empty))).To(Equal([]string{"gw"}))

		By("over a newer one, it fails on tables that it does not know, and changes nothing")
		again, err := sqlstore.Open(ctx, sqlstore.Options{URL: url})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Close()).To(Succeed())
		path, err := postgres.Program("pg_restore")
		Expect(err).NotTo(HaveOccurred())
		out, err := exec.CommandContext(ctx, path, "--clean", "--if-exists", "--no-owner", "--single-transaction", "--dbname="+url, file).CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(out)).To(ContainSubstring("proxy_filter"))
		Expect(proxyNames(ctx, openStore(ctx, url))).To(Equal([]string{"gw"}))
	})
})

var _ = Describe("A migration", func() {
	It("is for both databases, or its name ends with the one that it is for", func() {
		files, err := os.ReadDir("migrations")
		Expect(err).NotTo(HaveOccurred())
		for _, f := range files {
			Expect(f.Name()).To(MatchRegexp(`^\d{4}_[a-z_]+(\.(sqlite|postgres))?\.sql$`))
		}
	})
})
