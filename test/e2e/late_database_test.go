package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A database that is late", func() {
	const waiting = "waiting for the database, which does not answer"
	// spawn runs the program on a database that is away, and returns once its API says so.
	spawn := func(api, reason string, args ...string) *testkit.Gatehouse {
		GinkgoHelper()
		p, err := testkit.SpawnGatehouse(nil, args...)
		Expect(err).NotTo(HaveOccurred())
		g := &testkit.Gatehouse{Process: p, API: testkit.API{URL: "http://" + api}}
		DeferCleanup(g.Kill)
		Eventually(func() (string, error) {
			a, err := g.API.Get(limit(), "/ready")
			return fmt.Sprint(a.Status, " ", a.Body), err
		}).Should(And(HavePrefix("503 "), ContainSubstring(`"detail":"not ready: waiting for the database: `+reason)))
		return g
	}
	address := func() string { return fmt.Sprintf("127.0.0.1:%d", freePort()) }

	It("is waited for by a server, which serves its Envoys as soon as the database answers", func() {
		db, api, xds := startPostgres(), address(), address()
		Expect(db.Stop()).To(Succeed())
		url := strings.Replace(db.URL("gatehouse"), "postgres@", "postgres:hunter2@", 1)
		_, at, _ := strings.Cut(url, "@")
		at, _, _ = strings.Cut(at, "/")
		g := spawn(api, "Postgres at "+at+" refuses the connection (check that it is running and listens there)",
			"serve", "--data-dir", GinkgoT().TempDir(), "--database-url", url, "--api-addr", api, "--xds-addr", xds)

		Expect(read(g.API, "/health")).To(Equal(`{"status":"ok"}`))
		for _, call := range [][2]string{{"GET", "/upstream"}, {"POST", "/upstream"}, {"DELETE", "/upstream/blue"}, {"PUT", "/health"}} {
			a, err := g.API.Do(limit(), call[0], call[1], formType, "")
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusServiceUnavailable), "%v: %s", call, a.Body)
			Expect(a.Header.Get("Retry-After")).To(Equal("1"))
			Expect(a.Header.Get("Content-Type")).To(Equal("application/problem+json"))
			Expect(a.Body).To(ContainSubstring("waiting for the database"))
		}
		ctx, dir, envoy := limit(), GinkgoT().TempDir(), make(chan *testkit.Envoy, 1)
		go func() {
			defer GinkgoRecover()
			e, err := testkit.StartEnvoy(ctx, dir, "gw", xds) // returns once the Envoy has received an answer
			Expect(err).NotTo(HaveOccurred())
			envoy <- e
		}()
		Consistently(g.Exited()).ShouldNot(BeClosed())
		Expect(envoy).NotTo(Receive())

		Expect(db.Restart(limit())).To(Succeed())
		Expect(g.WaitReady(limit())).To(Succeed())
		var e *testkit.Envoy
		Eventually(envoy).Should(Receive(&e))
		DeferCleanup(e.Kill)
		gw := gateway{g.API, freePort()}
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "shop.example", "blue")
		addProxy(g.API, "gw", gw.port, "shop")
		gw.expect("shop.example", "/", "blue")

		warned := g.Records(waiting)
		Expect(warned).NotTo(BeEmpty())
		Expect(warned[0]["level"]).To(Equal("WARN"))
		Expect(warned[0]["err"]).To(ContainSubstring("refuses the connection"))
		Expect(len(warned)).To(BeNumerically("<=", 3), "once for each reason")
		Expect(g.Records("the database answers")).To(HaveLen(1))
		Expect(g.Stderr.String()).NotTo(ContainSubstring("hunter2"))
		Expect(g.Stop(limit())).To(BeZero(), g.Stderr.String())
	})

	It("is waited for by standalone, whose Envoy starts then", func() {
		db, api := startPostgres(), address()
		Expect(db.Stop()).To(Succeed())
		port := freePort()
		g := spawn(api, "Postgres at ", append(standaloneArgs(GinkgoT().TempDir(), port), "--database-url", db.URL("gatehouse"), "--api-addr", api)...)
		Expect(g.Records("envoy is ready")).To(BeEmpty())
		Expect(db.Restart(limit())).To(Succeed())
		Expect(g.WaitReady(limit())).To(Succeed())
		gw := gateway{g.API, port}
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "shop.example", "blue")
		post(g.API, "/proxy", "Name=gw")
		post(g.API, "/proxy/gw/service/shop")
		gw.expect("shop.example", "/", "blue")
		Expect(g.Stop(limit())).To(BeZero(), g.Stderr.String())
	})

	DescribeTable("keeps no server from stopping", func(signal syscall.Signal) {
		api := address()
		g := spawn(api, "Postgres at 127.0.0.1:1 refuses the connection", "serve", "--data-dir", GinkgoT().TempDir(),
			"--database-url", "postgres://gatehouse@127.0.0.1:1/gatehouse", "--api-addr", api, "--xds-addr", "127.0.0.1:0")
		Expect(g.Signal(signal)).To(Succeed())
		Expect(g.Wait(limit())).To(BeZero(), g.Stderr.String())
		Expect(g.Stderr.String()).NotTo(ContainSubstring("gatehouse: "))
	},
		Entry(nil, syscall.SIGTERM),
		Entry(nil, syscall.SIGINT),
	)

	DescribeTable("never makes systemd give up a unit", func(unit string) {
		text, err := os.ReadFile(filepath.Join("..", "..", "hack", "systemd", unit))
		Expect(err).NotTo(HaveOccurred())
		section, rest, _ := strings.Cut(string(text), "[Service]")
		Expect(section).To(ContainSubstring("\nStartLimitIntervalSec=0\n"))
		Expect(rest).To(ContainSubstring("\nRestart=on-failure\n"))
	},
		Entry(nil, "gatehouse.service"),
		Entry(nil, "gatehouse-envoy@.service"),
	)
})
