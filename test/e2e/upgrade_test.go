package e2e_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("An update with several control planes on one PostgreSQL", func() {
	It("loses no request: the older ones continue after the newer one has migrated, and only a new start of them is refused", func() {
		url, db := newDatabase()
		dir := GinkgoT().TempDir()
		key := filepath.Join(dir, "secret.key")
		g := serve("--database-url", url, "--secret-key-file", key)
		other := serve("--database-url", url, "--secret-key-file", key)
		gw := gateway{g.API, freePort()}
		blue, green := backend("blue"), backend("green")
		post(g.API, "/upstream", "Upstream_name=shop", "Upstream_ip="+blue.IP, "Upstream_port="+strconv.Itoa(blue.Port))
		addService(g.API, "shop", "*", "shop")
		addProxy(g.API, "gw", gw.port, "shop")
		envoyFor("gw", g.XDSAddr)
		gw.expect("shop.example", "/", "blue")
		_, stopTraffic := gw.traffic("shop.example", 200)

		By("a migration that adds columns and a table, as those of this program do")
		db.exec(`ALTER TABLE upstream ADD COLUMN later TEXT NOT NULL DEFAULT ''`, `ALTER TABLE service ADD COLUMN later TEXT NOT NULL DEFAULT ''`,
			`ALTER TABLE change_log ADD COLUMN later TEXT NOT NULL DEFAULT ''`, `CREATE TABLE later_kind (name TEXT NOT NULL PRIMARY KEY)`,
			`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, true)`)
		for range 3 { // each of their connections has statements that it prepared before
			for _, to := range []string{strconv.Itoa(green.Port), strconv.Itoa(blue.Port)} {
				for _, plane := range []gateway{{g.API, gw.port}, {other.API, gw.port}} {
					a := patch(plane.api, "/upstream/shop", "Upstream_port="+to)
					Expect(a.Status).To(Equal(http.StatusOK), a.Body)
					Expect(read(plane.api, "/service")).To(ContainSubstring(`"shop"`))
					Expect(read(plane.api, "/revision")).To(ContainSubstring(`PATCH /upstream/shop`))
				}
			}
		}
		a := patch(g.API, "/upstream/shop?wait=applied", "Upstream_port="+strconv.Itoa(green.Port))
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Expect(gw.answers("shop.example", "/")).To(Equal("green"))

		Expect(refuses(1, nil, "serve", "--database-url", url, "--secret-key-file", key, "--data-dir", dir, "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0")).
			To(MatchRegexp(`^gatehouse: the database has version 9000 of the schema, and this program knows versions up to \d+ ` +
				`\(a newer gatehouse has migrated it: run that version, or restore the backup from before the update, see docs/operations\.md\)$`))
		for _, plane := range []gateway{{g.API, gw.port}, {other.API, gw.port}} {
			Expect(read(plane.api, "/ready")).NotTo(BeEmpty())
		}
		Expect(g.Records("store task stopped, trying again")).To(BeEmpty())
		stopTraffic()
	})

	It("loses no request when they are replaced one after the other, stopped or killed", func() {
		url, _ := newDatabase()
		dir := GinkgoT().TempDir()
		serveOn := func(xds string) *testkit.Gatehouse {
			GinkgoHelper()
			return start(nil, "serve", "--database-url", url, "--data-dir", dir, "--api-addr", "127.0.0.1:0", "--xds-addr", xds)
		}
		one, two := fmt.Sprintf("127.0.0.1:%d", freePort()), fmt.Sprintf("127.0.0.1:%d", freePort())
		a, b := serveOn(one), serveOn(two)
		gw := gateway{a.API, freePort()}
		blue, green := backend("blue"), backend("green")
		post(a.API, "/upstream", "Upstream_name=shop", "Upstream_ip="+blue.IP, "Upstream_port="+strconv.Itoa(blue.Port))
		addService(a.API, "shop", "*", "shop")
		addProxy(a.API, "gw", gw.port, "shop")
		balancer, err := testkit.StartBalancer(one, two)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(balancer.Close)
		envoyFor("gw", balancer.Addr)
		gw.expect("shop.example", "/", "blue")
		_, stopTraffic := gw.traffic("shop.example", 200)
		leadTo := func(g *testkit.Gatehouse, to *testkit.Backend) {
			GinkgoHelper()
			answer := patch(g.API, "/upstream/shop", "Upstream_port="+strconv.Itoa(to.Port))
			Expect(answer.Status).To(Equal(http.StatusOK), answer.Body)
			gw.expect("shop.example", "/", to.Name)
		}

		Expect(a.Stop(limit())).To(BeZero())
		leadTo(b, green)
		a = serveOn(one)
		leadTo(a, blue)
		Expect(b.Kill()).To(Succeed())
		leadTo(a, green)
		b = serveOn(two)
		leadTo(b, blue)
		stopTraffic()
	})
})
