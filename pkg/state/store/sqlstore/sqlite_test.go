package sqlstore_test

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/storetest"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/migrated"
)

// opener opens one database again and again.
func opener(url string) storetest.Open {
	return func(ctx context.Context, s storetest.Settings) (store.Store, error) {
		opened, err := sqlstore.Open(ctx, sqlstore.Options{
			URL: url, KeepEntries: s.KeepEntries, KeepAge: s.KeepAge, PollInterval: s.PollInterval, Now: s.Now,
			Sealer: s.Sealer, InUse: s.InUse,
		})
		if err != nil {
			return nil, err
		}
		// Small enough that many objects of the suite do not fit.
		sqlstore.SetMemory(opened, 500, 200_000)
		sqlstore.SetLoaders(opened, 3)
		return opened, nil
	}
}

// newSQLite makes a database without objects and returns its URL.
func newSQLite(context.Context) string {
	GinkgoHelper()
	url, err := migrated.SQLite(filepath.Join(GinkgoT().TempDir(), "gatehouse.db"))
	Expect(err).NotTo(HaveOccurred())
	return url
}

var _ = Describe("SQLite", func() {
	storetest.Specs(
		func(ctx context.Context) storetest.Open { return opener(newSQLite(ctx)) },
		func(context.Context) storetest.Open {
			return opener("sqlite://" + filepath.Join(GinkgoT().TempDir(), "gatehouse.db"))
		},
	)

	It("creates files that only their owner can read", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		s := openStore(ctx, "sqlite://"+filepath.Join(dir, "gatehouse.db"))
		Expect(addProxy(ctx, s, "gw")).To(Succeed())
		files, err := os.ReadDir(dir)
		Expect(err).NotTo(HaveOccurred())
		modes := map[string]fs.FileMode{}
		for _, f := range files {
			info, err := f.Info()
			Expect(err).NotTo(HaveOccurred())
			modes[f.Name()] = info.Mode()
		}
		Expect(modes).To(Equal(map[string]fs.FileMode{
			"gatehouse.db": 0o600, "gatehouse.db-wal": 0o600, "gatehouse.db-shm": 0o600,
		}))
	})

	It("opens a path with special characters of a URL", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		s := openStore(ctx, "sqlite://"+dir+"/a%20b%3Fc%23d%25.db")
		Expect(addProxy(ctx, s, "gw")).To(Succeed())
		Expect(filepath.Join(dir, "a b?c#d%.db")).To(BeARegularFile())
	})

	It("runs with SQLite's safest settings", func(ctx SpecContext) {
		path := filepath.Join(GinkgoT().TempDir(), "gatehouse.db")
		s := openStore(ctx, "sqlite://"+path)
		Expect(sqlstore.Pragma(s, "journal_mode")).To(Equal("wal"))
		Expect(sqlstore.Pragma(s, "synchronous")).To(Equal("2")) // FULL
		Expect(sqlstore.Pragma(s, "foreign_keys")).To(Equal("1"))
		Expect(sqlstore.Pragma(s, "cache_size")).To(Equal("-32768"), "changed pages are written once, and not before the commit")
	})

	It("stores several entries of the change log in a page", func(ctx SpecContext) {
		s := openStore(ctx, "sqlite://"+filepath.Join(GinkgoT().TempDir(), "gatehouse.db"))
		pages := func() int {
			text, err := sqlstore.Pragma(s, "page_count")
			Expect(err).NotTo(HaveOccurred())
			n, err := strconv.Atoi(text)
			Expect(err).NotTo(HaveOccurred())
			return n
		}
		before := pages()
		_, err := s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
			for i := range 400 { // each has 1.2 KB in the log
				if err := w.Insert(&model.Upstream{Name: "u" + strconv.Itoa(i), IP: "192.0.2.1", Port: 80}); err != nil {
					return err
				}
			}
			return nil
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(pages()-before).To(BeNumerically("<", 300), "upstreams, their names and the log together")
	})

	It("reports that the database is unavailable while another program locks it", func(ctx SpecContext) {
		path := filepath.Join(GinkgoT().TempDir(), "gatehouse.db")
		s := openStore(ctx, "sqlite://"+path)
		other, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(60000)") // the store may be writing
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(other.Close)
		conn, err := other.Conn(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		Expect(err).NotTo(HaveOccurred())

		err = addProxy(ctx, s, "gw")
		Expect(model.IsKind(err, model.Unavailable)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(HavePrefix("the database does not answer (check that the disk of " + path)))
		Expect(s.Ping(ctx)).To(Succeed(), "readers do not wait")

		Expect(conn.Close()).To(Succeed())
		Expect(other.Close()).To(Succeed())
		Expect(addProxy(ctx, s, "gw")).To(Succeed())
	})

	DescribeTable("reports in one line why it cannot open", func(ctx SpecContext, url func(dir string) string, want, hint string) {
		_, err := sqlstore.Open(ctx, sqlstore.Options{URL: url(GinkgoT().TempDir())})
		Expect(err).To(MatchError(And(HavePrefix(want), ContainSubstring(hint))))
		Expect(err.Error()).NotTo(ContainSubstring("\n"))
	},
		Entry("no such directory", func(dir string) string { return "sqlite://" + dir + "/none/x.db" },
			"the database file cannot be opened", "create the directory first: mkdir -p "),
		Entry("a directory", func(dir string) string { return "sqlite://" + dir },
			"the database file cannot be opened", "name a file, not a directory"),
		Entry("another type of file", func(dir string) string {
			path := filepath.Join(dir, "notes.txt")
			Expect(os.WriteFile(path, []byte("some notes that are long enough to be looked at as a database header, which they are not"), 0o600)).To(Succeed())
			return "sqlite://" + path
		}, "the database file cannot be used", "check that it is an SQLite database"),
		Entry("a relative path", func(string) string { return "sqlite://data/x.db" },
			"the database URL must have an absolute path after sqlite://, and nothing after the path", "use sqlite:///absolute/path.db"),
		Entry("no path", func(string) string { return "sqlite://" }, "the database URL must have an absolute path after sqlite://, and nothing after the path", ""),
		Entry("parameters", func(dir string) string { return "sqlite://" + dir + "/x.db?mode=memory" },
			"the database URL must have an absolute path after sqlite://, and nothing after the path", ""),
	)
})
