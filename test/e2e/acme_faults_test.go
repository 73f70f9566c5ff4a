package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// once returns an answer for the first request below a path.
func once(path string, answer func(w http.ResponseWriter, r *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	var done atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) bool {
		return strings.HasPrefix(r.URL.Path, path) && done.CompareAndSwap(false, true) && answer(w, r)
	}
}

func net127(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

var _ = Describe("An automatic certificate", func() {
	It("survives an authority with faults, and says what they are", func() {
		s := order(testkit.PebbleOptions{Env: []string{"PEBBLE_WFE_NONCEREJECT=40"}}, "")
		problem := func(status int, kind, detail string) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Retry-After", "3600")
				s.pebble.Problem(w, status, kind, detail)
				return true
			}
		}
		retried := func(host string) {
			GinkgoHelper()
			s.pebble.Answer(nil)
			Expect(renew(s.api, host).Status).To(Equal(200))
			Eventually(stateOf(s.api, host), orderTime).Should(Equal("issued"))
		}
		By("an order that is answered with 500")
		failing := problem(500, "serverInternal", "out of\norder")
		s.pebble.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			return r.URL.Path == testkit.PebbleNewOrder && failing(w, r) // a client may try that again at once
		})
		automatic(s.api, "a", "a.test")
		Eventually(stateOf(s.api, "a.test"), orderTime).Should(Equal("failing: serverInternal: out of?order"))
		Expect(holding(s.api, "/service/a")).To(ContainElement("CertificateFailing"))
		retried("a.test")
		Expect(holding(s.api, "/service/a")).NotTo(ContainElement("CertificateFailing"))

		By("a certificate for another key")
		other, err := s.pebble.Authority.Issue(testkit.CertificateOptions{Names: []string{"b.test"}})
		Expect(err).NotTo(HaveOccurred())
		s.pebble.Answer(once(testkit.PebbleCertificate, func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/pem-certificate-chain")
			_, _ = w.Write([]byte(other.Cert))
			return true
		}))
		automatic(s.api, "b", "b.test")
		Eventually(stateOf(s.api, "b.test"), orderTime).Should(Equal("failing: the authority sent a certificate for another key"))
		_, err = s.handshake("b.test")
		Expect(err).To(HaveOccurred(), "it is not served")
		retried("b.test")

		By("a host that it refuses")
		automatic(s.api, "c", "blocked.test")
		Eventually(stateOf(s.api, "blocked.test"), orderTime).Should(HavePrefix("failing: rejectedIdentifier: "))
		Expect(certificatesOf(s.api)["blocked.test"].Advice).To(ContainSubstring("issues no certificates for blocked.test"))

		By("a limit for a registered domain, which holds back the hosts below it and no other")
		s.pebble.Answer(once(testkit.PebbleNewOrder, problem(429, "rateLimited", "too many certificates for limited.test")))
		automatic(s.api, "d", "d.limited.test")
		Eventually(stateOf(s.api, "d.limited.test"), orderTime).Should(Equal("failing: rateLimited: too many certificates for limited.test"))
		automatic(s.api, "e", "e.limited.test")
		automatic(s.api, "f", "f.test")
		Eventually(stateOf(s.api, "f.test"), orderTime).Should(Equal("issued"))
		Eventually(stateOf(s.api, "e.limited.test")).Should(HavePrefix("waiting: the authority limits orders for limited.test until "))
		Expect(holding(s.api, "/service/e")).To(ContainElement("CertificatePending"))
		Expect(certificatesOf(s.api)["e.limited.test"].Failures).To(BeZero())
	})

	It("is ordered for no token that could be another path", func() {
		s := order(testkit.PebbleOptions{}, "")
		s.pebble.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, "/authZ/") {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"status":"pending","identifier":{"type":"dns","value":"shop.test"},"challenges":[`+
				`{"type":"http-01","status":"pending","url":%q,"token":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/../../../admin"}]}`, s.pebble.Directory)
			return true
		})
		automatic(s.api, "shop", "shop.test")
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("failing: the authority sent a token that is not base64url"))
		Expect(read(adminOf(s.Gatehouse), "/config_dump?resource=dynamic_route_configs")).NotTo(ContainSubstring("acme-challenge"))
	})

	It("is renewed without a failed request, and its keys are nowhere in the clear", func() {
		dir := GinkgoT().TempDir()
		s := order(testkit.PebbleOptions{}, "", "--data-dir", dir)
		told, _ := eventsOf(s.api)
		automatic(s.api, "shop", "shop.test")
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("issued"))
		first := certificatesOf(s.api)["shop.test"].Serial
		Eventually(func() string { return s.serialOf("shop.test") }).Should(Equal(first))
		traffic := testkit.StartTraffic(testkit.TrafficOptions{Addr: s.addr(), TLS: s.trusting(), Rate: 100, Host: "shop.test", Path: "/"})
		DeferCleanup(traffic.Stop)
		Expect(renew(s.api, "shop.test").Status).To(Equal(200))
		Eventually(func() string { return s.serialOf("shop.test") }, orderTime).ShouldNot(Equal(first))
		report := traffic.Stop()
		Expect(report.Failures).To(BeEmpty())
		Expect(report.Requests).To(BeNumerically(">", 10))
		Expect(s.pebble.Count(testkit.PebbleNewOrder)).To(Equal(2))
		Eventually(told).Should(ContainSubstring(`"code":"CertificateIssued"`))

		for _, text := range []string{
			told(), s.Stderr.String(), s.Stdout.String(), read(s.api, "/config?secrets=sealed"), read(s.api, "/config"),
			read(s.api, "/certificate"), read(adminOf(s.Gatehouse), "/config_dump"),
		} {
			Expect(text).NotTo(ContainSubstring("PRIVATE KEY"))
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		Expect(err).NotTo(HaveOccurred())
		found := false
		for _, file := range files {
			content, err := os.ReadFile(file) //nolint:gosec // a file of this test
			if err == nil && strings.Contains(filepath.Base(file), "gatehouse.db") {
				found = found || strings.Contains(string(content), "sealed:v1:")
				Expect(string(content)).NotTo(ContainSubstring("PRIVATE KEY"), file)
			}
		}
		Expect(found).To(BeTrue())
	})

	DescribeTable("is ordered once, and by one account, if the program dies when it sends", func(path string, accounts, orders int) {
		xds, port := net127(freePort()), freePort()
		dir := GinkgoT().TempDir()
		run := func() *testkit.Gatehouse {
			return start(nil, "serve", "--data-dir", dir, "--api-addr", "127.0.0.1:0", "--xds-addr", xds, "--provider-allow", "127.0.0.1")
		}
		g := run()
		p := pebbleWith(testkit.PebbleOptions{HTTPPort: port})
		addUpstream(g.API, backend("blue"))
		addProxy(g.API, "gw", port)
		orderFrom(g.API, p, "")
		envoyFor("gw", xds)
		died := make(chan struct{})
		p.Answer(once(path, func(http.ResponseWriter, *http.Request) bool {
			defer close(died)
			Expect(g.Kill()).To(Succeed())
			return false // the authority gets it, and nobody its answer
		}))
		automatic(g.API, "shop", "shop.test")
		Eventually(died, orderTime).Should(BeClosed())
		again := run()
		Eventually(stateOf(again.API, "shop.test"), orderTime).Should(Equal("issued"))
		Expect([]int{p.Count(testkit.PebbleNewAccount), p.Count(testkit.PebbleNewOrder)}).To(Equal([]int{accounts, orders}))
	},
		// The key of the account is the same, so the authority answers with the same account.
		Entry("the account", testkit.PebbleNewAccount, 2, 1),
		Entry("the order", testkit.PebbleNewOrder, 1, 2),
		Entry("the answer to the challenge", testkit.PebbleChallenge, 1, 1),
		Entry("the signing request", testkit.PebbleFinalize, 1, 1),
		Entry("the question for the certificate", testkit.PebbleCertificate, 1, 1),
	)

	// make soak tries more hosts.
	It("is there for each host once, whichever replica dies at any moment", func() {
		hosts, kills := 10, 1
		if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_ACME_HOSTS")); err == nil {
			hosts, kills = n, n/15
		}
		i, port := newInstallation(), freePort()
		p := pebbleWith(testkit.PebbleOptions{HTTPPort: port})
		addresses := []string{net127(freePort()), net127(freePort()), net127(freePort())}
		replica := func(n int) *testkit.Gatehouse {
			return i.replica("--xds-addr", addresses[n], "--provider-allow", "127.0.0.1")
		}
		replicas := []*testkit.Gatehouse{replica(0), replica(1), replica(2)}
		addUpstream(replicas[0].API, backend("blue"))
		addProxy(replicas[0].API, "gw", port)
		orderFrom(replicas[0].API, p, "")
		addService(replicas[0].API, "plain", "plain.test", "blue")
		post(replicas[0].API, "/proxy/gw/service/plain")
		for _, at := range addresses {
			envoyFor("gw", at)
		}
		Eventually(func() int { return len(envoysOf(replicas[0])()) }).Should(Equal(3))
		Eventually(func() string { return gateway{replicas[0].API, port}.answers("plain.test", "/") }).Should(Equal("blue"))

		traffic := testkit.StartTraffic(testkit.TrafficOptions{Addr: net127(port), Rate: 50, Host: "plain.test", Path: "/"})
		DeferCleanup(traffic.Stop)
		for n := range hosts {
			automatic(replicas[0].API, fmt.Sprintf("s%d", n), fmt.Sprintf("h%d.x%d.test", n, n))
		}
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 1)) //nolint:gosec // no secret
		for range kills {
			next := p.Count("/") + 1 + random.IntN(6*hosts/kills)
			Eventually(func() int { return p.Count("/") }, 2*orderTime).Should(BeNumerically(">=", next))
			n := random.IntN(3)
			Expect(replicas[n].Kill()).To(Succeed())
			replicas[n] = replica(n)
		}
		all := func() (issued []string) {
			for host, c := range certificatesOf(replicas[0].API) {
				if c.State == "issued" {
					issued = append(issued, host)
				}
			}
			return issued
		}
		Eventually(all, 4*orderTime).Should(HaveLen(hosts))
		Expect(traffic.Stop().Failures).To(BeEmpty())
		Expect(i.count("SELECT count(*) FROM automatic_certificate WHERE gone = 0")).To(BeEquivalentTo(hosts))
		Expect(i.count("SELECT count(*) FROM automatic_account")).To(BeEquivalentTo(1))
		AddReportEntry("orders", fmt.Sprintf("%d for %d hosts, %d kills", p.Count(testkit.PebbleNewOrder), hosts, kills))
		// A replica has up to 8 orders on the way when it dies, whose answers are lost.
		Expect(p.Count(testkit.PebbleNewOrder)).To(BeNumerically("<=", hosts+8*kills))
		for _, r := range replicas {
			Eventually(func() map[string]listed { return certificatesOf(r.API) }).Should(Equal(certificatesOf(replicas[0].API)), "all know the same")
		}
	})
})
