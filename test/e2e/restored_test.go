package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

// database is a PostgreSQL database that can be restored to an older state while
// programs use it, as pg_restore does.
type database struct {
	conn   *pgx.Conn
	tables []string
}

func newDatabase() (url string, d *database) {
	GinkgoHelper()
	server, err := postgres.Start(limit(), GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	Expect(server.CreateDatabase(limit(), "gatehouse")).To(Succeed())
	url = server.URL("gatehouse")
	conn, err := pgx.Connect(limit(), url)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return conn.Close(context.Background()) })
	return url, &database{conn: conn}
}

func (d *database) exec(statements ...string) {
	GinkgoHelper()
	tx, err := d.conn.Begin(limit())
	Expect(err).NotTo(HaveOccurred())
	for _, s := range statements {
		_, err := tx.Exec(limit(), s)
		Expect(err).NotTo(HaveOccurred(), s)
	}
	Expect(tx.Commit(limit())).To(Succeed())
}

func (d *database) backUp() {
	GinkgoHelper()
	rows, err := d.conn.Query(limit(), "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
	Expect(err).NotTo(HaveOccurred())
	d.tables, err = pgx.CollectRows(rows, pgx.RowTo[string])
	Expect(err).NotTo(HaveOccurred())
	statements := []string{"CREATE SCHEMA backup"}
	for _, t := range d.tables {
		statements = append(statements, fmt.Sprintf("CREATE TABLE backup.%[1]q AS TABLE public.%[1]q", t))
	}
	d.exec(statements...)
}

func (d *database) restore() {
	GinkgoHelper()
	statements := []string{"SET LOCAL session_replication_role = replica"} // rows come in any order
	for _, t := range d.tables {
		statements = append(statements, fmt.Sprintf("DELETE FROM public.%q", t),
			fmt.Sprintf("INSERT INTO public.%[1]q OVERRIDING SYSTEM VALUE SELECT * FROM backup.%[1]q", t))
	}
	d.exec(statements...)
}

// patch changes fields of an object and returns the answer.
func patch(api testkit.API, path string, fields ...string) testkit.Answer {
	GinkgoHelper()
	a, err := api.Do(limit(), http.MethodPatch, path, "application/x-www-form-urlencoded", strings.Join(fields, "&"))
	Expect(err).NotTo(HaveOccurred())
	return a
}

var _ = Describe("After the restore of an older backup", func() {
	var (
		g           *testkit.Gatehouse
		gw          gateway
		db          *database
		blue, green *testkit.Backend
	)

	// In the backup upstream "shop" is blue, and in the database after it green.
	BeforeEach(func() {
		var url string
		url, db = newDatabase()
		g = serve("--database-url", url)
		gw = gateway{g.API, freePort()}
		blue, green = backend("blue"), backend("green")
		post(g.API, "/upstream", "Upstream_name=shop", "Upstream_ip="+blue.IP, "Upstream_port="+strconv.Itoa(blue.Port))
		addService(g.API, "shop", "*", "shop")
		addProxy(g.API, "gw", gw.port, "shop")
		envoyFor("gw", g.XDSAddr)
		gw.expect("shop.example", "/", "blue")
		db.backUp()
		a := patch(g.API, "/upstream/shop?wait=applied", "Upstream_ip="+green.IP, "Upstream_port="+strconv.Itoa(green.Port))
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Expect(gw.answers("shop.example", "/")).To(Equal("green"))
	})

	It("serves what the database has when as many writes follow as were lost", func() {
		lost := revisionOf(g.API)
		db.restore()
		a := patch(g.API, "/service/shop?wait=applied", "fqdn=shop.example")
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Expect(a.Header.Get("Gatehouse-Revision")).To(Equal(lost), "the revision has the number of the one that was lost")
		Expect(gw.answers("shop.example", "/")).To(Equal("blue"))
		Expect(gw.answers("other.example", "/")).To(Equal("404"))
		Eventually(g.Records).WithArguments("the database has changed under the running program, as after the restore of a backup; everything is loaded again").Should(HaveLen(1))

		By("and follows changes as before")
		a = patch(g.API, "/upstream/shop?wait=applied", "Upstream_ip="+green.IP, "Upstream_port="+strconv.Itoa(green.Port))
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Expect(gw.answers("shop.example", "/")).To(Equal("green"))
	})

	It("serves it when more writes follow, fewer, or none", func() {
		patch(g.API, "/service/shop?wait=applied", "fqdn=a.example")
		db.restore()
		gw.expect("shop.example", "/", "blue") // no notification; the next read of the database
		By("more")
		db.restore()
		a := patch(g.API, "/upstream/shop?wait=applied", "Upstream_weight=7")
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		patch(g.API, "/upstream/shop?wait=applied", "Upstream_ip="+green.IP, "Upstream_port="+strconv.Itoa(green.Port))
		Expect(gw.answers("shop.example", "/")).To(Equal("green"))
		db.restore()
		for _, weight := range []string{"1", "2", "3"} {
			patch(g.API, "/upstream/shop", "Upstream_weight="+weight)
		}
		a = patch(g.API, "/upstream/shop?wait=applied", "Upstream_weight=4")
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Expect(gw.answers("shop.example", "/")).To(Equal("blue"))
	})
})

// revisionOf is the newest revision, as the status shows it.
func revisionOf(api testkit.API) string {
	GinkgoHelper()
	var status struct {
		Data struct {
			Status []struct {
				Revision json.Number `json:"revision"`
			} `json:"core_db_status"`
		} `json:"data"`
	}
	Expect(json.Unmarshal([]byte(read(api, "/status")), &status)).To(Succeed())
	return status.Data.Status[0].Revision.String()
}
