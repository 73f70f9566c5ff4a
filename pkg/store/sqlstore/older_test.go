package sqlstore_test

import (
	"context"
	"database/sql"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/store/sqlstore"
)

// beforeTrustedHops makes of a database what version 4 of the schema would have
// left, with its history.
var beforeTrustedHops = []string{
	`ALTER TABLE proxy DROP COLUMN trusted_hops`,
	`ALTER TABLE proxy DROP COLUMN escaped_slashes`,
	`ALTER TABLE proxy DROP COLUMN underscore_headers`,
	`UPDATE change_log SET before = replace(before, '"trusted_hops":0,"escaped_slashes":"","underscore_headers":"",', ''), ` +
		`after = replace(after, '"trusted_hops":0,"escaped_slashes":"","underscore_headers":"",', '')`,
	`DROP TABLE note`,
	`ALTER TABLE revision DROP COLUMN id`,
	`ALTER TABLE change_log DROP COLUMN parent`,
	`DELETE FROM goose_db_version WHERE version_id >= 5`,
}

var _ = Describe("A database of a version that knew no trusted hops", func() {
	DescribeTable("opens, with none, and so does its history", func(ctx SpecContext, driver string, locate func(context.Context) (url, dsn string)) {
		url, dsn := locate(ctx)
		s, err := sqlstore.Open(ctx, sqlstore.Options{URL: url})
		Expect(err).NotTo(HaveOccurred())
		Expect(addProxy(ctx, s, "gw")).To(Succeed())
		Expect(s.Close()).To(Succeed())
		db, err := sql.Open(driver, dsn)
		Expect(err).NotTo(HaveOccurred())
		for _, statement := range beforeTrustedHops {
			_, err := db.ExecContext(ctx, statement)
			Expect(err).NotTo(HaveOccurred(), statement)
		}
		var after string
		Expect(db.QueryRowContext(ctx, `SELECT after FROM change_log`).Scan(&after)).To(Succeed())
		Expect(after).To(And(ContainSubstring(`"name":"gw"`), Not(ContainSubstring("trusted_hops"))))
		Expect(db.Close()).To(Succeed())

		newer := openStore(ctx, url)
		hops := func() (n int) {
			GinkgoHelper()
			Expect(newer.Read(ctx, func(r store.Reader) error {
				p, err := store.Get[*model.Proxy](r, model.ProxyKey("gw"))
				if err == nil {
					n = p.TrustedHops
					Expect(p.EscapedSlashes + " " + p.UnderscoreHeaders).To(Equal("redirect reject"))
				}
				return err
			})).To(Succeed())
			return n
		}
		write := func(change func(w store.Writer) error) {
			GinkgoHelper()
			_, err := newer.Write(ctx, store.Origin{Actor: "tester"}, change)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(hops()).To(Equal(0))
		write(func(w store.Writer) error {
			stored, err := store.Get[*model.Proxy](w, model.ProxyKey("gw"))
			if err != nil {
				return err
			}
			changed := *stored
			changed.TrustedHops = 2
			return w.Replace(&changed)
		})
		Expect(hops()).To(Equal(2))
		write(func(w store.Writer) error { return store.Delete(w, model.ProxyKey("gw")) })
		write(func(w store.Writer) error { return store.Rollback(w, 1) })
		Expect(hops()).To(Equal(0))
		write(func(w store.Writer) error { return store.Rollback(w, 2) })
		Expect(hops()).To(Equal(2))
	},
		Entry("SQLite", "sqlite", func(context.Context) (url, dsn string) {
			path := filepath.Join(GinkgoT().TempDir(), "gatehouse.db")
			return "sqlite://" + path, path
		}),
		Entry("Postgres", "pgx", func(ctx context.Context) (url, dsn string) {
			url = newPostgres(ctx)
			return url, url
		}),
	)
})
