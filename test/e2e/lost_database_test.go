package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A database that was lost", func() {
	const held = "no envoy is answered, because the database seems to be lost"
	var api, xds string
	startOn := func(dir string, more ...string) *testkit.Gatehouse {
		GinkgoHelper()
		g, err := testkit.StartGatehouse(limit(), nil, append([]string{"serve", "--data-dir", dir, "--api-addr", api, "--xds-addr", xds, "--access-log", "off"}, more...)...)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(g.Kill)
		return g
	}
	ready := func(g *testkit.Gatehouse) func() (int, error) {
		return func() (int, error) {
			a, err := g.API.Get(limit(), "/ready")
			return a.Status, err
		}
	}
	expectHeld := func(g *testkit.Gatehouse, reason string) {
		GinkgoHelper()
		Eventually(g.Records).WithArguments(held).Should(HaveLen(1))
		Eventually(func() (string, error) {
			a, err := g.API.Get(limit(), "/ready")
			return fmt.Sprint(a.Status, a.Body), err
		}).Should(And(HavePrefix("503"), ContainSubstring("not ready: Envoys are held: "+reason)))
		Expect(read(g.API, "/status")).To(ContainSubstring(`"held":"` + reason))
		Expect(cliOf(g).good("status", "-o", "table")).To(ContainSubstring("\nENVOYS ARE HELD: " + reason))
	}
	BeforeEach(func() {
		api, xds = fmt.Sprintf("127.0.0.1:%d", freePort()), fmt.Sprintf("127.0.0.1:%d", freePort())
	})
	// served runs a gateway with the traffic of a shop.
	served := func(dir string) (*testkit.Gatehouse, gateway, string) {
		GinkgoHelper()
		g := startOn(dir)
		gw := gateway{g.API, freePort()}
		envoyFor("gw", xds)
		Eventually(g.Records).WithArguments("envoy connected").Should(HaveLen(1))
		Eventually(ready(g)).Should(Equal(http.StatusOK), "all is new, and nothing is held")
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "shop.example", "blue")
		addProxy(g.API, "gw", gw.port, "shop")
		gw.expect("shop.example", "/", "blue")
		Expect(g.Records(held)).To(BeEmpty())
		return g, gw, document(cliOf(g).good("dump"))
	}

	It("does not empty an Envoy that has a configuration, until one exists again", func() {
		g, gw, dump := served(GinkgoT().TempDir())
		_, stop := gw.traffic("shop.example", 100)
		Expect(g.Kill()).To(Succeed())
		g = startOn(GinkgoT().TempDir())
		expectHeld(g, "the database has no configuration and never had one, but an Envoy of gw has one that it got before")
		gw.expect("shop.example", "/", "blue")

		cliOf(g).good("apply", "-f", dump, "--force")
		Eventually(ready(g)).Should(Equal(http.StatusOK))
		Expect(read(g.API, "/status")).NotTo(ContainSubstring(`"held"`))
		addService(g.API, "news", "news.example", "blue")
		post(g.API, "/proxy/gw/service/news")
		gw.expect("news.example", "/", "blue")
		stop()
	})

	It("is accepted as empty when the program is told so, or when everything was deleted", func() {
		dir := GinkgoT().TempDir()
		g, gw, dump := served(dir)
		cliOf(g).good("apply", "-f", document("version: 1\n"), "--prune")
		gw.expect("shop.example", "/", fmt.Sprintf("Get \"http://127.0.0.1:%d/\": dial tcp 127.0.0.1:%d: connect: connection refused", gw.port, gw.port))
		cliOf(g).good("apply", "-f", dump, "--force")
		gw.expect("shop.example", "/", "blue")
		Expect(g.Kill()).To(Succeed())

		g = startOn(GinkgoT().TempDir(), "--allow-empty")
		Eventually(gw.answers).WithArguments("shop.example", "/").Should(ContainSubstring("connection refused"))
		Eventually(ready(g)).Should(Equal(http.StatusOK))
		Expect(g.Records(held)).To(BeEmpty())
	})

	It("is recognized by the key that it left behind, and then a new Envoy is not answered either", func() {
		dir := GinkgoT().TempDir()
		g, gw, dump := served(dir)
		Expect(g.Kill()).To(Succeed())
		files, err := filepath.Glob(filepath.Join(dir, "gatehouse.db*"))
		Expect(err).NotTo(HaveOccurred())
		for _, f := range files {
			Expect(os.Remove(f)).To(Succeed())
		}
		reason := "the database is new, but the key file " + dir + "/secret.key is not"
		for range 2 { // a restart changes nothing
			g = startOn(dir)
			expectHeld(g, reason)
			gw.expect("shop.example", "/", "blue")
			Expect(g.Kill()).To(Succeed())
		}
		g = startOn(dir)
		ctx, dirOfEnvoy, fresh := limit(), GinkgoT().TempDir(), make(chan *testkit.Envoy, 1)
		go func() {
			defer GinkgoRecover()
			e, err := testkit.StartEnvoy(ctx, dirOfEnvoy, "other", xds) // returns once the Envoy has received an answer
			Expect(err).NotTo(HaveOccurred())
			fresh <- e
		}()
		Eventually(g.Records).WithArguments("envoy connected").Should(HaveLen(2))
		expectHeld(g, reason)
		Expect(fresh).NotTo(Receive())
		cliOf(g).good("apply", "-f", dump, "--force")
		Eventually(ready(g)).Should(Equal(http.StatusOK))
		gw.expect("shop.example", "/", "blue")
		var answered *testkit.Envoy
		Eventually(fresh).Should(Receive(&answered))
		Expect(answered.Kill()).To(Succeed())
	})
})
