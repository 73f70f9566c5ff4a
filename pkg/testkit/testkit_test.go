package testkit_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestTestkit(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "Testkit")
}

var _ = BeforeEach(func() {
	before := gleak.Goroutines()
	DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
})

var _ = Describe("A backend", func() {
	DescribeTable("dies in the middle of a request and comes back on its port", func(protocol, scheme string) {
		b, err := testkit.StartBackend("blue", testkit.BackendOptions{Protocol: protocol})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { b.Close() })
		transport := &http.Transport{
			Protocols: &http.Protocols{}, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // of the test
		}
		transport.Protocols.SetHTTP1(protocol == "http" || protocol == "tls")
		transport.Protocols.SetHTTP2(protocol == "h2")
		transport.Protocols.SetUnencryptedHTTP2(protocol == "h2c")
		DeferCleanup(transport.CloseIdleConnections)
		get := func(query string) error {
			resp, err := (&http.Client{Timeout: testkit.Patience, Transport: transport}).Get(fmt.Sprintf("%s://127.0.0.1:%d/%s", scheme, b.Port, query)) //nolint:noctx // ends with the backend
			if err == nil {
				err = resp.Body.Close()
			}
			return err
		}
		Expect(get("")).To(Succeed())
		answered := make(chan error, 1)
		go func() { answered <- get("?delay=1h") }()
		Eventually(b.Requests).Should(Equal(2))

		b.Kill()
		Eventually(answered).Should(Receive(MatchError(ContainSubstring("reset by peer"))))
		Expect(get("")).To(MatchError(ContainSubstring("connection refused")))
		Expect(b.Restart()).To(Succeed())
		Expect(get("")).To(Succeed())
	},
		Entry(nil, "http", "http"),
		Entry(nil, "h2c", "http"),
		Entry(nil, "tls", "https"),
		Entry(nil, "h2", "https"),
	)
})

var _ = Describe("Traffic", func() {
	It("counts every answer, and every failure with its time", func() {
		b, err := testkit.StartBackend("blue", testkit.BackendOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(b.Close)
		b.FailNext(3)
		t := testkit.StartTraffic(testkit.TrafficOptions{Addr: fmt.Sprintf("127.0.0.1:%d", b.Port), Rate: 500, Connections: 5})
		DeferCleanup(t.Stop)
		Eventually(func() int { return t.Report().Requests }).Should(BeNumerically(">", 50))
		report := t.Stop()
		Expect(report.Requests).To(Equal(b.Requests()))
		Expect(report.Backends).To(Equal(map[string]int{"blue": report.Requests - 3}))
		Expect(report.Failures).To(HaveLen(3))
		Expect(report.Failures[0].Reason).To(HavePrefix("status 503"))
		Expect(report.String()).To(ContainSubstring("3 failed"))
	})

	It("counts a connection that is cut", func() {
		b, err := testkit.StartBackend("blue", testkit.BackendOptions{})
		Expect(err).NotTo(HaveOccurred())
		t := testkit.StartTraffic(testkit.TrafficOptions{Addr: fmt.Sprintf("127.0.0.1:%d", b.Port), Rate: 500, Connections: 5})
		DeferCleanup(t.Stop)
		Eventually(func() int { return t.Report().Requests }).Should(BeNumerically(">", 10))
		b.Close()
		Eventually(func() int { return len(t.Report().Failures) }).Should(BeNumerically(">", 0))
	})
})

var _ = Describe("XDSClient", func() {
	const clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

	It("keeps what it acknowledges, and not what it refuses", func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		DeferCleanup(cancel)
		g, err := testkit.StartGatehouse(ctx, nil, "serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(g.Stop(ctx)).To(BeZero()) }, NodeTimeout(time.Minute))
		Expect(g.WaitReady(ctx)).To(Succeed())
		for i, name := range []string{"blue", "green"} {
			post(g.API, "/upstream", "Upstream_name="+name, "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(8081+i))
		}
		post(g.API, "/service", "Service_Name=shop", "fqdn=*")
		post(g.API, "/service/shop/route", "Route_Name=root", "Route_prefix=/")
		post(g.API, "/service/shop/route/root/upstream/blue")
		post(g.API, "/proxy", "Name=gw")
		post(g.API, "/proxy/gw/service/shop")

		refused := make(chan string, 10)
		x, err := testkit.DialXDS(g.XDSAddr, "gw", func(r *testkit.XDSResponse) {
			for _, resource := range r.GetResources() {
				if resource.GetName() == "green" {
					refused <- resource.GetName()
					_ = r.Nack("no green here")
					return
				}
			}
			_ = r.Ack()
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(x.Close)
		Expect(x.Subscribe(clusters)).To(Succeed())
		has := func(name string) func(map[string]*discoveryv3.Resource) bool {
			return func(have map[string]*discoveryv3.Resource) bool { return have[name] != nil }
		}
		Expect(x.Wait(ctx, clusters, has("blue"))).To(Succeed())

		post(g.API, "/service/shop/route", "Route_Name=green", "Route_prefix=/green")
		post(g.API, "/service/shop/route/green/upstream/green")
		Eventually(refused).Should(Receive(Equal("green")))
		Expect(x.Resources(clusters)).To(And(HaveKey("blue"), Not(HaveKey("green"))))
		Eventually(g.Records).WithArguments("envoy refused configuration and keeps what it had").Should(
			ContainElement(HaveKeyWithValue("err", "no green here")))
	})
})

func post(api testkit.API, path string, fields ...string) {
	GinkgoHelper()
	a, err := api.Post(context.Background(), path, fields...)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(201), a.Body)
}
