package sqlstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
)

// beforeTrustedHops turns a database into what version 4 of the schema would have left,
// with its history.
var beforeTrustedHops = []string{
	`ALTER TABLE change_log DROP COLUMN message`,
	`ALTER TABLE token DROP COLUMN tags`,
	`ALTER TABLE token DROP COLUMN hosts`,
	`ALTER TABLE token DROP COLUMN ports`,
	`ALTER TABLE token DROP COLUMN max_objects`,
	`DROP TABLE key`,
	`DROP TABLE keyset`,
	`ALTER TABLE proxy DROP COLUMN trusted_hops`,
	`ALTER TABLE proxy DROP COLUMN escaped_slashes`,
	`ALTER TABLE proxy DROP COLUMN underscore_headers`,
	`ALTER TABLE proxy DROP COLUMN tls_min_version`,
	`ALTER TABLE proxy DROP COLUMN http3`,
	`ALTER TABLE proxy DROP COLUMN alt_svc_port`,
	`ALTER TABLE proxy DROP COLUMN ports`,
	`ALTER TABLE service DROP COLUMN https`,
	`ALTER TABLE service DROP COLUMN hsts_seconds`,
	`ALTER TABLE service DROP COLUMN hsts_subdomains`,
	`ALTER TABLE service DROP COLUMN client_ca_certificate`,
	`ALTER TABLE service DROP COLUMN public`,
	`ALTER TABLE upstream DROP COLUMN validation_alt_names`,
	`ALTER TABLE upstream DROP COLUMN priority`,
	`ALTER TABLE upstream DROP COLUMN zone`,
	`ALTER TABLE upstream DROP COLUMN zone_min_count`,
	`ALTER TABLE upstream DROP COLUMN slow_start_seconds`,
	`ALTER TABLE upstream DROP COLUMN dns`,
	`ALTER TABLE upstream DROP COLUMN dns_family`,
	`ALTER TABLE upstream DROP COLUMN dns_refresh_seconds`,
	`ALTER TABLE upstream DROP COLUMN proxy_protocol`,
	`DROP INDEX service_port`,
	`ALTER TABLE service DROP COLUMN mode`,
	`ALTER TABLE service DROP COLUMN exempt_filters`,
	`DROP TABLE proxy_filter`,
	`ALTER TABLE service DROP COLUMN port`,
	`ALTER TABLE upstream DROP COLUMN hc_type`,
	`ALTER TABLE upstream DROP COLUMN retry_budget_percent`,
	`ALTER TABLE upstream DROP COLUMN retry_budget_min_count`,
	`ALTER TABLE upstream DROP COLUMN tls_insecure`,
	`ALTER TABLE upstream DROP COLUMN client_certificate`,
	`UPDATE change_log SET before = replace(before, '"trusted_hops":0,"escaped_slashes":"","underscore_headers":"","tls_min_version":"","http3":false,"alt_svc_port":0,', ''), ` +
		`after = replace(after, '"trusted_hops":0,"escaped_slashes":"","underscore_headers":"","tls_min_version":"","http3":false,"alt_svc_port":0,', '')`,
	`UPDATE change_log SET after = replace(after, '"https":"","hsts_seconds":0,"hsts_subdomains":false,"client_validation_cacertificate":"","certificate":"","public":false,"mode":"","port":0,"exempt_filters":[],', '')`,
	`UPDATE change_log SET after = replace(after, '"upstream_tls_insecure":false,"upstream_client_certificate":"",', '')`,
	`DROP TABLE note`,
	`DROP TABLE consumer`,
	`DROP TABLE list`,
	`ALTER TABLE service DROP COLUMN certificate`,
	`DROP TABLE automatic_certificate`,
	`DROP TABLE automatic_account`,
	`DROP TABLE automatic_lease`,
	`DROP TABLE automatic_hold`,
	`DROP TABLE proxy_token`,
	`DROP TABLE session`,
	`DROP TABLE IF EXISTS replica_report`, // PostgreSQL only
	`ALTER TABLE revision DROP COLUMN id`,
	`ALTER TABLE change_log DROP COLUMN parent`,
	`DELETE FROM goose_db_version WHERE version_id >= 5`,
}

var _ = Describe("A database of a version before trusted hops", func() {
	DescribeTable("opens with none, and so does its history", func(ctx SpecContext, driver string, locate func(context.Context) (url, dsn string)) {
		url, dsn := locate(ctx)
		var log bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&log, nil))
		s, err := sqlstore.Open(ctx, sqlstore.Options{URL: url, Log: logger})
		Expect(err).NotTo(HaveOccurred())
		_, err = s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
			return errors.Join(w.Insert(&model.Proxy{Name: "gw"}), w.Insert(&model.Service{Name: "shop", FQDN: "*"}), w.Insert(&model.Upstream{Name: "blue"}))
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Close()).To(Succeed())
		Expect(log.String()).NotTo(ContainSubstring("migrated"), "it was empty")
		db, err := sql.Open(driver, dsn)
		Expect(err).NotTo(HaveOccurred())
		for _, statement := range beforeTrustedHops {
			_, err := db.ExecContext(ctx, statement)
			Expect(err).NotTo(HaveOccurred(), statement)
		}
		var after string
		Expect(db.QueryRowContext(ctx, `SELECT after FROM change_log WHERE after LIKE '%"name":"gw"%'`).Scan(&after)).To(Succeed())
		Expect(after).To(And(ContainSubstring(`"name":"gw"`), Not(ContainSubstring("trusted_hops")), Not(ContainSubstring("tls_min_version"))))
		for _, field := range []string{`"https"`, `"upstream_tls_insecure"`} {
			var rows int
			Expect(db.QueryRowContext(ctx, `SELECT count(*) FROM change_log WHERE after LIKE '%`+field+`%'`).Scan(&rows)).To(Succeed())
			Expect(rows).To(BeZero(), field)
		}
		Expect(db.Close()).To(Succeed())

		s, err = sqlstore.Open(ctx, sqlstore.Options{URL: url, Log: logger})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Close()).To(Succeed())
		Expect(log.String()).To(MatchRegexp(`"msg":"migrated the database","from":4,"version":\d+`))
		newer := openStore(ctx, url)
		hops := func() (n int) {
			GinkgoHelper()
			Expect(newer.Read(ctx, func(r store.Reader) error {
				p, err := store.Get[*model.Proxy](r, model.ProxyKey("gw"))
				if err == nil {
					n = p.TrustedHops
					Expect(p.EscapedSlashes + " " + p.UnderscoreHeaders + " " + p.TLSMinVersion).To(Equal("redirect reject 1.2"))
				}
				shop, missing := store.Get[*model.Service](r, model.ServiceKey("shop"))
				if missing == nil {
					Expect([]any{shop.HTTPS, shop.HSTSSeconds, shop.ClientCACertificate}).To(Equal([]any{"both", 0, ""}))
				}
				blue, missingToo := store.Get[*model.Upstream](r, model.UpstreamKey("blue"))
				if missingToo == nil {
					Expect([]any{blue.TLSInsecure, blue.ClientCertificate}).To(Equal([]any{false, ""}))
				}
				return errors.Join(err, missing, missingToo)
			})).To(Succeed())
			return n
		}
		write := func(change func(w store.Writer) error) {
			GinkgoHelper()
			_, err := newer.Write(ctx, store.Origin{Actor: "tester"}, change)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(hops()).To(Equal(0))
		Expect(newer.CreateProxyToken(ctx, store.ProxyToken{Proxy: "gw", Name: "ci", CreateTS: model.At(time.Now())})).To(Succeed())
		Expect(newer.ProxyTokens(ctx, "gw")).To(HaveLen(1))
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
		write(func(w store.Writer) error {
			return errors.Join(store.Delete(w, model.ProxyKey("gw")), store.Delete(w, model.ServiceKey("shop")), store.Delete(w, model.UpstreamKey("blue")))
		})
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
			url = emptyPostgres(ctx)
			return url, url
		}),
	)
})
