package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// loneRetries is the setting of docs/routing.md for a single upstream that restarts
// within a second.
const loneRetries = `{"methods":["GET"],"retries":{"attempts":15,"backoff":"100ms","max_backoff":"400ms"}}`

// soon waits for d.
func soon(d time.Duration) {
	GinkgoHelper()
	Eventually(time.After(d)).Should(Receive())
}

// ejected reports whether Envoy has ejected a backend because it fails.
func ejected(g *testkit.Gatehouse, b *testkit.Backend) bool {
	GinkgoHelper()
	clusters := read(adminOf(g), "/clusters")
	Expect(clusters).To(ContainSubstring("::%s:%d::health_flags::", b.IP, b.Port))
	return strings.Contains(clusters, fmt.Sprintf("::%s:%d::health_flags::/failed_outlier_check", b.IP, b.Port))
}

var _ = Describe("A backend that dies", func() {
	reached := func(t *testkit.Traffic, requests int) {
		GinkgoHelper()
		Eventually(func() int { return t.Report().Requests }).Should(BeNumerically(">=", requests))
	}
	note := func(r testkit.Report) {
		AddReportEntry("traffic", r.String())
		_, _ = fmt.Fprintln(GinkgoWriter, "traffic:", r)
	}

	// Requests in flight fail if the backend may have processed them: see the table.
	DescribeTable("is one of two, without health checks: at most 1 of 5,000 requests fails", func(config string, failInFlight bool) {
		g, gw := standalone("--access-log", "off")
		blue, green := backend("blue"), backend("green")
		addUpstream(gw.api, blue)
		addUpstream(gw.api, green)
		post(gw.api, "/service", "Service_Name=shop", "fqdn=*")
		addRoute(gw.api, "shop", "root", "/", config, "blue", "green")
		addProxy(gw.api, "gw", gw.port, "shop")
		gw.expect("shop.example", "/", "blue")

		traffic := testkit.StartTraffic(testkit.TrafficOptions{Addr: fmt.Sprintf("127.0.0.1:%d", gw.port), Host: "shop.example"})
		DeferCleanup(traffic.Stop)
		reached(traffic, 1000)
		green.Kill()
		before := traffic.Report()
		Eventually(ejected).WithArguments(g, green).Should(BeTrue())
		reached(traffic, 5000)
		report := traffic.Stop()
		note(report)
		failures := report.Failures
		if failInFlight {
			failures = slices.DeleteFunc(slices.Clone(failures), func(f testkit.Failure) bool { return f.At < before.Took })
		}
		Expect(len(failures)).To(BeNumerically("<=", report.Requests/5000), report.String())
		Expect(before.Backends["green"]).To(BeNumerically(">", 300), "both shared the requests")
		Expect(report.Backends["green"] - before.Backends["green"]).To(BeNumerically("<", 20))
	},
		Entry("if all may be repeated", `{"methods":["GET"]}`, false),
		Entry("if some may not, except those in flight", "", true),
	)

	It("with a request in flight: another one answers it if it may be repeated", func() {
		_, gw := standalone("--access-log", "off")
		blue, green := backend("blue"), backend("green")
		addUpstream(gw.api, blue)
		addUpstream(gw.api, green)
		post(gw.api, "/service", "Service_Name=shop", "fqdn=*")
		addRoute(gw.api, "shop", "any", "/any", "", "blue", "green")
		addRoute(gw.api, "shop", "safe", "/safe", `{"methods":["GET","PUT"]}`, "blue", "green")
		addProxy(gw.api, "gw", gw.port, "shop")
		gw.expect("shop.example", "/any", "blue")
		gw.expect("shop.example", "/safe", "blue")

		const each = 10
		arrived := func() int { return blue.Requests() + green.Requests() }
		already, atGreen := arrived(), green.Requests()
		answers := make(chan string, 3*each)
		for _, request := range []string{"GET /safe", "PUT /safe", "GET /any"} {
			method, path, _ := strings.Cut(request, " ")
			for range each {
				go func() {
					r, err := gw.send(method, "shop.example", path+"?delay=5s")
					answers <- fmt.Sprintln(request, r.Status, r.Header.Get(testkit.BackendHeader), err)
				}()
			}
		}
		Eventually(arrived).Should(Equal(already + 3*each))
		green.Kill()
		ends := map[string]int{}
		for range 3 * each {
			ends[<-answers]++
		}
		lost := ends["GET /any 503  <nil>\n"]
		Expect(lost).To(And(BeNumerically(">", 0), BeNumerically("<", green.Requests()-atGreen)), "some of both routes were at green")
		Expect(ends).To(Equal(map[string]int{
			"GET /safe 200 blue <nil>\n": each, "PUT /safe 200 blue <nil>\n": each,
			"GET /any 200 blue <nil>\n": each - lost, "GET /any 503  <nil>\n": lost,
		}))
	})

	It("is the only one and back within a second: no request fails", func() {
		g, gw := standalone("--access-log", "off")
		blue := backend("blue")
		addUpstream(gw.api, blue)
		post(gw.api, "/service", "Service_Name=shop", "fqdn=*")
		addRoute(gw.api, "shop", "root", "/", loneRetries, "blue")
		addProxy(gw.api, "gw", gw.port, "shop")
		gw.expect("shop.example", "/", "blue")

		// As many connections as there are requests during the outage.
		traffic := testkit.StartTraffic(testkit.TrafficOptions{
			Addr: fmt.Sprintf("127.0.0.1:%d", gw.port), Host: "shop.example", Connections: 1000,
		})
		DeferCleanup(traffic.Stop)
		reached(traffic, 1000)
		blue.Kill()
		// All retries together last 2.8 s on average, but some less than one: their waits are random.
		soon(600 * time.Millisecond)
		Expect(blue.Restart()).To(Succeed())
		Expect(ejected(g, blue)).To(BeFalse())
		before := traffic.Report().Requests
		reached(traffic, before+2000)
		report := traffic.Stop()
		note(report)
		Expect(report.Failures).To(BeEmpty(), report.String())
		Expect(report.Slowest).To(BeNumerically(">", 500*time.Millisecond), "some waited for it")
	})
})

var _ = Describe("An upstream", func() {
	It("gets no more than its limits allow", func() {
		_, gw := standalone()
		blue := backend("blue")
		addUpstream(gw.api, blue, "Upstream_max_requests=1")
		addService(gw.api, "shop", "*", "blue")
		addProxy(gw.api, "gw", gw.port, "shop")
		gw.expect("shop.example", "/", "blue")

		before, slow := blue.Requests(), make(chan string, 1)
		go func() { slow <- gw.answers("shop.example", "/?delay=3s") }()
		Eventually(blue.Requests).Should(Equal(before + 1))
		refused := gw.get("shop.example", "/")
		Expect(refused.Status).To(Equal(503))
		Expect(refused.Body).To(Equal("the service is not available at the moment\n"))
		Expect(blue.Requests()).To(Equal(before + 1))
		Eventually(slow).Should(Receive(Equal("blue")))
		gw.expect("shop.example", "/", "blue")
	})

	DescribeTable("can be used again over a connection that was idle", func(protocol string) {
		_, gw := standalone()
		insecure := "Upstream_tls_insecure=" + map[string]string{"h2c": "false", "h2": "true"}[protocol]
		addUpstream(gw.api, backendWith("blue", testkit.BackendOptions{Protocol: protocol}), "Upstream_protocol="+protocol, insecure)
		addService(gw.api, "shop", "*", "blue")
		addProxy(gw.api, "gw", gw.port, "shop")
		gw.expect("shop.example", "/", "blue")
		soon(1200 * time.Millisecond)
		Expect(gw.answers("shop.example", "/")).To(Equal("blue"))
	},
		Entry(nil, "h2c"),
		Entry(nil, "h2"),
	)
})
