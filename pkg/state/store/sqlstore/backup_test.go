package sqlstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

// namesIn lists a directory.
func namesIn(dir string) (names []string) {
	GinkgoHelper()
	files, err := os.ReadDir(dir)
	Expect(err).NotTo(HaveOccurred())
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

var _ = Describe("A backup of an SQLite database", func() {
	var dir, data, url, file string
	var ring *seal.Keyring
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	BeforeEach(func() {
		var err error
		dir, err = filepath.EvalSymlinks(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		data = filepath.Join(dir, "data")
		Expect(os.Mkdir(data, 0o700)).To(Succeed())
		url, file = "sqlite://"+filepath.Join(data, "gatehouse.db"), filepath.Join(dir, "backup.db")
		ring, _, err = seal.OpenOrCreate(filepath.Join(dir, "secret.key"))
		Expect(err).NotTo(HaveOccurred())
	})
	open := func(ctx context.Context) *sqlstore.Store {
		GinkgoHelper()
		s, err := sqlstore.Open(ctx, sqlstore.Options{URL: url, Sealer: ring})
		Expect(err).NotTo(HaveOccurred())
		return s
	}
	backUp := func(ctx context.Context) (sqlstore.Copy, error) {
		return sqlstore.Backup(ctx, sqlstore.BackupOptions{URL: url, Path: file, Sealer: ring})
	}
	options := func(from io.Reader) sqlstore.RestoreOptions {
		return sqlstore.RestoreOptions{URL: url, From: from, Name: "backup.db", Sealer: ring, As: "gatehouse restore", Now: now}
	}
	restoreWith := func(ctx context.Context, change func(*sqlstore.RestoreOptions)) (sqlstore.Restored, error) {
		GinkgoHelper()
		f, err := os.Open(file)
		Expect(err).NotTo(HaveOccurred())
		defer f.Close()
		o := options(f)
		if change != nil {
			change(&o)
		}
		return sqlstore.Restore(ctx, o)
	}

	It("contains the database of one moment, even if another process writes", func(ctx SpecContext) {
		s := open(ctx)
		DeferCleanup(s.Close)
		Expect(addProxy(ctx, s, "first")).To(Succeed())
		// Each write creates a proxy and an upstream: a copy of half a write would show.
		storm, end := context.WithCancel(ctx)
		var group sync.WaitGroup
		group.Go(func() {
			defer GinkgoRecover()
			for i := 0; storm.Err() == nil; i++ {
				_, err := s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
					return errors.Join(w.Insert(&model.Proxy{Name: fmt.Sprint("p", i)}), w.Insert(&model.Upstream{Name: fmt.Sprint("u", i)}))
				})
				Expect(err).NotTo(HaveOccurred())
			}
		})
		last := int64(0)
		for i := range 5 {
			path := filepath.Join(dir, fmt.Sprint("backup", i))
			made, err := sqlstore.Backup(ctx, sqlstore.BackupOptions{URL: url, Path: path, Sealer: ring})
			Expect(err).NotTo(HaveOccurred())
			Expect(made.KeyOpens).To(BeTrue())
			Expect(made.Revision).To(BeNumerically(">=", last))
			last = made.Revision
			db, err := sql.Open("sqlite", path)
			Expect(err).NotTo(HaveOccurred())
			var proxies, upstreams, logged int64
			Expect(db.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM proxy), (SELECT count(*) FROM upstream), (SELECT count(DISTINCT revision) FROM change_log)").
				Scan(&proxies, &upstreams, &logged)).To(Succeed())
			Expect(db.Close()).To(Succeed())
			Expect([]int64{proxies, upstreams, logged}).To(Equal([]int64{made.Revision, made.Revision - 1, made.Revision}))
			info, err := os.Stat(path)
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Mode()).To(Equal(os.FileMode(0o600)))
		}
		end()
		group.Wait()
		Expect(namesIn(dir)).To(Equal([]string{"backup0", "backup1", "backup2", "backup3", "backup4", "data", "secret.key"}))
	})

	It("replaces the database, and keeps the old one", func(ctx SpecContext) {
		s := open(ctx)
		_, err := s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
			return errors.Join(w.Insert(&model.Proxy{Name: "old"}), w.Insert(&model.Secret{Name: "token", Type: model.SecretGeneric, Value: "s3cret"}))
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.CreateToken(ctx, store.Token{Name: "ann", Role: store.RoleAdmin, Hash: store.HashToken("t")})).To(Succeed())
		Expect(s.CreateProxyToken(ctx, store.ProxyToken{Proxy: "old", Name: "edge", Hash: store.HashToken("p")})).To(Succeed())
		_, err = backUp(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(addProxy(ctx, s, "new")).To(Succeed())
		Expect(s.DeleteProxyToken(ctx, "old", "edge")).To(Succeed())
		Expect(s.Close()).To(Succeed())

		checked, err := restoreWith(ctx, func(o *sqlstore.RestoreOptions) { o.CheckOnly = true })
		Expect(err).NotTo(HaveOccurred())
		Expect(checked.Kept).To(BeEmpty())
		Expect(namesIn(data)).To(Equal([]string{"gatehouse.db"}))
		s = open(ctx)
		Expect(proxyNames(ctx, s)).To(Equal([]string{"old", "new"}))
		Expect(s.Close()).To(Succeed())

		done, err := restoreWith(ctx, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect([]any{done.Revision, done.Secrets, len(done.Unopened), len(done.Tokens), len(done.ProxyTokens)}).To(Equal([]any{int64(1), 1, 0, 1, 1}))
		Expect(done.Kept).To(Equal(filepath.Join(data, "gatehouse.db.before-restore-20260102T030405Z")))
		s = open(ctx)
		Expect(proxyNames(ctx, s)).To(Equal([]string{"old"}))
		Expect(s.Close()).To(Succeed())
		Expect(namesIn(data)).To(Equal([]string{"gatehouse.db", "gatehouse.db.before-restore-20260102T030405Z", "gatehouse.db.lock"}))

		By("the old one can be restored in turn")
		file = done.Kept
		_, err = restoreWith(ctx, nil)
		Expect(err).NotTo(HaveOccurred())
		s = open(ctx)
		Expect(proxyNames(ctx, s)).To(Equal([]string{"old", "new"}))
		Expect(s.Close()).To(Succeed())
	})

	It("replaces what a kill -9 leaves behind, including the log", func(ctx SpecContext) {
		s := open(ctx)
		Expect(addProxy(ctx, s, "old")).To(Succeed())
		_, err := backUp(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(addProxy(ctx, s, "new")).To(Succeed())
		// What a killed process leaves: files that no process has open.
		left := map[string][]byte{}
		for _, name := range []string{"gatehouse.db", "gatehouse.db-wal"} {
			left[name], err = os.ReadFile(filepath.Join(data, name))
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(s.Close()).To(Succeed())
		for name, content := range left {
			Expect(os.WriteFile(filepath.Join(data, name), content, 0o600)).To(Succeed())
		}
		done, err := restoreWith(ctx, nil)
		Expect(err).NotTo(HaveOccurred())
		s = open(ctx)
		Expect(proxyNames(ctx, s)).To(Equal([]string{"old"}))
		Expect(s.Close()).To(Succeed())
		Expect(namesIn(data)).To(HaveExactElements("gatehouse.db", filepath.Base(done.Kept), "gatehouse.db.lock"))
		url = "sqlite://" + done.Kept
		s = open(ctx)
		Expect(proxyNames(ctx, s)).To(Equal([]string{"old", "new"}), "the log was not lost")
		Expect(s.Close()).To(Succeed())
	})

	It("replaces a database that is damaged, and keeps its files", func(ctx SpecContext) {
		s := open(ctx)
		Expect(addProxy(ctx, s, "old")).To(Succeed())
		_, err := backUp(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Close()).To(Succeed())
		Expect(os.WriteFile(filepath.Join(data, "gatehouse.db"), bytes.Repeat([]byte("rubble "), 1000), 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(data, "gatehouse.db-wal"), []byte("more"), 0o600)).To(Succeed())
		done, err := restoreWith(ctx, nil)
		Expect(err).NotTo(HaveOccurred())
		s = open(ctx)
		Expect(proxyNames(ctx, s)).To(Equal([]string{"old"}))
		Expect(s.Close()).To(Succeed())
		Expect(os.ReadFile(done.Kept)).To(HavePrefix("rubble rubble"))
		Expect(os.ReadFile(done.Kept + "-wal")).To(BeEquivalentTo("more"))
	})

	It("is restored by nobody while a server or a command uses the database", func(ctx SpecContext) {
		s := open(ctx)
		Expect(addProxy(ctx, s, "old")).To(Succeed())
		_, err := backUp(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, err = restoreWith(ctx, nil)
		Expect(model.IsKind(err, model.Conflict)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(HavePrefix("the database " + data + "/gatehouse.db is used by another program, and nothing was restored (end commands that use it")))
		Expect(proxyNames(ctx, s)).To(Equal([]string{"old"}))
		Expect(addProxy(ctx, s, "new")).To(Succeed())
		Expect(s.Close()).To(Succeed())

		release, err := sqlstore.Claim(ctx, url, "gatehouse serve")
		Expect(err).NotTo(HaveOccurred())
		_, err = restoreWith(ctx, nil)
		Expect(err).To(MatchError(ContainSubstring(fmt.Sprintf("is used by process %d (gatehouse serve)", os.Getpid()))))
		Expect(release()).To(Succeed())
		Expect(namesIn(data)).To(Equal([]string{"gatehouse.db", "gatehouse.db.lock"}))
	})

	It("needs the key with which its secrets were sealed", func(ctx SpecContext) {
		s := open(ctx)
		_, err := s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
			return w.Insert(&model.Secret{Name: "token", Type: model.SecretGeneric, Value: "s3cret"})
		})
		Expect(err).NotTo(HaveOccurred())
		_, err = backUp(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Close()).To(Succeed())
		other, _, err := seal.OpenOrCreate(filepath.Join(dir, "other.key"))
		Expect(err).NotTo(HaveOccurred())
		_, err = restoreWith(ctx, func(o *sqlstore.RestoreOptions) { o.Sealer = other })
		Expect(err).To(MatchError(HavePrefix("the secrets of backup.db were sealed with another key, and nothing was restored (put the key file that was used when the backup was made into place")))
		made, err := sqlstore.Backup(ctx, sqlstore.BackupOptions{URL: url, Path: file + "2", Sealer: other})
		Expect(err).NotTo(HaveOccurred())
		Expect(made.KeyOpens).To(BeFalse())

		By("for each of its objects")
		sealed, err := other.Seal("s3cret", "secret/token/value")
		Expect(err).NotTo(HaveOccurred())
		execAll(ctx, "sqlite", file, []string{"UPDATE secret SET value = '" + sealed + "'"})
		_, err = restoreWith(ctx, nil)
		Expect(err).To(MatchError(HavePrefix("the key does not open the secrets of 1 objects in backup.db, such as /secret/token, and nothing was restored")))
		Expect(namesIn(data)).To(Equal([]string{"gatehouse.db"}))
		done, err := restoreWith(ctx, func(o *sqlstore.RestoreOptions) { o.AcceptUnopened = true })
		Expect(err).NotTo(HaveOccurred())
		Expect(done.Unopened).To(Equal([]string{"/secret/token"}))
	})

	DescribeTable("is refused with advice", func(ctx SpecContext, spoil func(file string), want string) {
		s := open(ctx)
		for i := range 50 {
			Expect(addProxy(ctx, s, fmt.Sprint("p", i))).To(Succeed())
		}
		_, err := backUp(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Close()).To(Succeed())
		before, err := os.ReadFile(filepath.Join(data, "gatehouse.db"))
		Expect(err).NotTo(HaveOccurred())
		spoil(file)
		_, err = restoreWith(ctx, nil)
		Expect(err).To(MatchError(ContainSubstring(want)))
		Expect(os.ReadFile(filepath.Join(data, "gatehouse.db"))).To(Equal(before))
		Expect(namesIn(data)).To(Equal([]string{"gatehouse.db"}))
	},
		Entry("if it is from a newer version", func(file string) {
			execAll(context.Background(), "sqlite", file, []string{`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, true)`})
		}, "backup.db has version 9000 of the schema, and this program knows versions up to "),
		Entry("if it is truncated", func(file string) {
			info, err := os.Stat(file)
			Expect(err).NotTo(HaveOccurred())
			Expect(os.Truncate(file, info.Size()/2)).To(Succeed())
		}, "use another backup"),
		Entry("if a page is overwritten", func(file string) {
			db, err := sql.Open("sqlite", file)
			Expect(err).NotTo(HaveOccurred())
			var page int64 // the other checks do not look at this one
			Expect(db.QueryRow("SELECT rootpage FROM sqlite_master WHERE name = 'proxy'").Scan(&page)).To(Succeed())
			Expect(db.Close()).To(Succeed())
			f, err := os.OpenFile(file, os.O_WRONLY, 0)
			Expect(err).NotTo(HaveOccurred())
			_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, 64), (page-1)*4096)
			Expect(errors.Join(err, f.Close())).To(Succeed())
		}, "backup.db is damaged (use another backup): *** in database main ***"),
		Entry("if a row refers to nothing", func(file string) {
			execAll(context.Background(), "sqlite", file, []string{`INSERT INTO proxy_service (proxy, service, create_ts, update_ts) VALUES ('p1', 'none', '', '')`})
		}, "backup.db is damaged (use another backup): a row of the table"),
		Entry("if it is a text file", func(file string) {
			Expect(os.WriteFile(file, []byte(strings.Repeat("a dump ", 1000)), 0o600)).To(Succeed())
		}, "backup.db is not a database of Gatehouse (name a file that gatehouse backup has written)"),
		Entry("if it is empty", func(file string) { Expect(os.Truncate(file, 0)).To(Succeed()) }, "backup.db is not a database of Gatehouse"),
		Entry("if it is from another program", func(file string) {
			Expect(os.Remove(file)).To(Succeed())
			execAll(context.Background(), "sqlite", file, []string{"CREATE TABLE proxy (name TEXT)"})
		}, "backup.db is not a database of Gatehouse"),
	)

	It("may have an older schema, which is migrated before the restore", func(ctx SpecContext) {
		s := open(ctx)
		Expect(addProxy(ctx, s, "gw")).To(Succeed())
		_, err := backUp(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Close()).To(Succeed())
		execAll(ctx, "sqlite", file, beforeTrustedHops)
		done, err := restoreWith(ctx, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(done.Schema).To(Equal(int64(4)))
		s = open(ctx)
		Expect(proxyNames(ctx, s)).To(Equal([]string{"gw"}))
		Expect(s.Close()).To(Succeed())
	})

	It("leaves nothing behind if it is interrupted, or if the disk is full", func(ctx SpecContext) {
		s := open(ctx)
		DeferCleanup(s.Close)
		_, err := s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
			for i := range 3000 {
				Expect(w.Insert(&model.Proxy{Name: fmt.Sprint("p", i)})).To(Succeed())
			}
			return nil
		})
		Expect(err).NotTo(HaveOccurred())
		for _, at := range []string{"writing the backup", "checking the backup"} {
			interrupted, interrupt := context.WithCancel(ctx)
			_, err := sqlstore.Backup(interrupted, sqlstore.BackupOptions{URL: url, Path: file, Doing: func(what, partial string, size int64) {
				Expect(size).To(BeNumerically(">", 500_000))
				Expect(filepath.Dir(partial)).To(Equal(dir))
				if what == at {
					interrupt()
				}
			}})
			Expect(err).To(MatchError(context.Canceled), at)
			Expect(namesIn(dir)).To(Equal([]string{"data", "secret.key"}), at)
		}
		By("not even after a kill -9, once a new one is made")
		left := filepath.Join(dir, ".backup.db.123.partial")
		Expect(os.WriteFile(left, []byte("a part"), 0o600)).To(Succeed())
		_, err = backUp(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(namesIn(dir)).To(Equal([]string{"backup.db", "data", "secret.key"}))
	})

	It("replaces a file only on request, and never the database", func(ctx SpecContext) {
		s := open(ctx)
		DeferCleanup(s.Close)
		Expect(addProxy(ctx, s, "gw")).To(Succeed())
		_, err := backUp(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, err = backUp(ctx)
		Expect(err).To(MatchError(file + " exists (name another file, or give --force to replace it)"))
		Expect(addProxy(ctx, s, "gw2")).To(Succeed())
		made, err := sqlstore.Backup(ctx, sqlstore.BackupOptions{URL: url, Path: file, Replace: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(made.Revision).To(Equal(int64(2)))
		link := filepath.Join(dir, "link")
		Expect(os.Symlink(filepath.Join(data, "gatehouse.db-wal"), link)).To(Succeed())
		for path, want := range map[string]string{
			filepath.Join(data, "gatehouse.db"): "belongs to the database that is backed up",
			link:                                "belongs to the database that is backed up",
			dir:                                 "is not a regular file",
			"/dev/null":                         "is not a regular file",
			filepath.Join(dir, "none", "b.db"):  "cannot be written (check that the directory exists",
		} {
			_, err = sqlstore.Backup(ctx, sqlstore.BackupOptions{URL: url, Path: path, Replace: true})
			Expect(err).To(MatchError(ContainSubstring(want)), path)
		}
		Expect(proxyNames(ctx, s)).To(HaveLen(2))
	})

	It("is not restored by root for another user, who could not open it", func() {
		Expect(sqlstore.CheckOwner(data, os.Geteuid())).To(Succeed())
		const root, other = 0, 65534
		if os.Geteuid() == root {
			Expect(os.Chown(data, other, other)).To(Succeed())
		}
		Expect(sqlstore.CheckOwner(data, root)).To(MatchError(MatchRegexp(`^the directory %s belongs to the user with the number \d+, who could not use what root restores \(run this as that user: sudo -u '#\d+' gatehouse restore \.\.\.\)$`, data)))
	})

	It("is written to a stream once it is complete", func(ctx SpecContext) {
		s := open(ctx)
		Expect(addProxy(ctx, s, "gw")).To(Succeed())
		var out bytes.Buffer
		_, err := sqlstore.Backup(ctx, sqlstore.BackupOptions{URL: url, Out: &out})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Close()).To(Succeed())
		Expect(os.Remove(filepath.Join(data, "gatehouse.db"))).To(Succeed())
		done, err := sqlstore.Restore(ctx, options(&out))
		Expect(err).NotTo(HaveOccurred())
		Expect(done.Kept).To(BeEmpty())
		s = open(ctx)
		Expect(proxyNames(ctx, s)).To(Equal([]string{"gw"}))
		Expect(s.Close()).To(Succeed())
		Expect(namesIn(data)).To(Equal([]string{"gatehouse.db", "gatehouse.db.lock"}))
	})

	It("requires a database", func(ctx SpecContext) {
		_, err := backUp(ctx)
		Expect(model.IsKind(err, model.NotFound)).To(BeTrue(), "%v", err)
		execAll(ctx, "sqlite", filepath.Join(data, "gatehouse.db"), []string{"CREATE TABLE proxy (name TEXT)"})
		_, err = backUp(ctx)
		Expect(err).To(MatchError(ContainSubstring("is not a database of Gatehouse")))
		Expect(namesIn(dir)).To(Equal([]string{"data", "secret.key"}))
	})
})
