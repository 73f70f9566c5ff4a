package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	// The machine may be busy with the tests of other packages.
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "End to end")
}

// The cleanups of an ordered container come after those of its specs, so the suite is
// the smallest unit that can be checked.
var _ = BeforeSuite(func() {
	before := gleak.Goroutines()
	DeferCleanup(func() {
		Eventually(gleak.Goroutines).WithTimeout(10 * time.Second).ShouldNot(gleak.HaveLeaked(before))
	})
	startProvider()
})

// limit bounds the start and the end of a process.
func limit() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	DeferCleanup(cancel)
	return ctx
}

// start runs the program until it is ready. At the end of the spec it must obey
// SIGTERM, unless it has ended before.
func start(env []string, args ...string) *testkit.Gatehouse {
	GinkgoHelper()
	g, err := testkit.StartGatehouse(limit(), env, args...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		select {
		case <-g.Exited():
		default:
			Expect(g.Stop(ctx)).To(BeZero(), g.Stderr.String())
		}
		expectNoPanic(g.Stderr.String())
	}, NodeTimeout(time.Minute))
	Expect(g.WaitReady(limit())).To(Succeed())
	return g
}

func expectNoPanic(log string) {
	GinkgoHelper()
	Expect(log).NotTo(Or(ContainSubstring("goroutine "), ContainSubstring("panic"), ContainSubstring("DATA RACE")))
}

// serve runs a control plane on free ports.
func serve(args ...string) *testkit.Gatehouse {
	GinkgoHelper()
	return start(nil, append([]string{
		"serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0",
	}, args...)...)
}

// gateway is where requests go, and the API that configures it.
type gateway struct {
	api  testkit.API
	port int
}

// standaloneArgs returns the arguments of a gateway on free ports.
func standaloneArgs(dir string, port int) []string {
	GinkgoHelper()
	return []string{
		"standalone", "--data-dir", dir, "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0",
		"--admin-addr", "127.0.0.1:0", "--http-port", strconv.Itoa(port), "--https-port", strconv.Itoa(freePort()),
	}
}

// standalone runs a gateway on free ports.
func standalone(args ...string) (*testkit.Gatehouse, gateway) {
	GinkgoHelper()
	port := freePort()
	g := start(nil, append(standaloneArgs(GinkgoT().TempDir(), port), args...)...)
	return g, gateway{g.API, port}
}

// shop runs a gateway with a service for every host in front of blue.
func shop(args ...string) (*testkit.Gatehouse, gateway, *testkit.Backend) {
	GinkgoHelper()
	g, gw := standalone(args...)
	blue := backend("blue")
	addUpstream(g.API, blue)
	addService(g.API, "shop", "*", "blue")
	post(g.API, "/proxy", "Name=gw")
	post(g.API, "/proxy/gw/service/shop")
	gw.expect("shop.example", "/", "blue")
	return g, gw, blue
}

// adminOf returns the admin endpoint of the Envoy that a gateway runs.
func adminOf(g *testkit.Gatehouse) testkit.API {
	GinkgoHelper()
	Eventually(g.Records).WithArguments("envoy is ready").ShouldNot(BeEmpty())
	socket, _ := g.Records("envoy is ready")[0]["admin_socket"].(string)
	return testkit.API{URL: "http://envoy", Socket: socket}
}

func freePort() int {
	GinkgoHelper()
	port, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	return port
}

// envoyFor runs an Envoy under a proxy name until the end of the spec.
func envoyFor(proxy, xdsAddr string) *testkit.Envoy {
	GinkgoHelper()
	e, err := testkit.StartEnvoy(limit(), GinkgoT().TempDir(), proxy, xdsAddr)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.Kill)
	return e
}

// backend runs a backend until the end of the spec.
func backend(name string) *testkit.Backend {
	GinkgoHelper()
	return backendWith(name, testkit.BackendOptions{})
}

func backendWith(name string, o testkit.BackendOptions) *testkit.Backend {
	GinkgoHelper()
	b, err := testkit.StartBackend(name, o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.Close)
	return b
}

// post makes a call that must create something.
func post(api testkit.API, path string, fields ...string) testkit.Answer {
	GinkgoHelper()
	a, err := api.Post(limit(), path, fields...)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusCreated), "POST %s %q: %s", path, fields, a.Body)
	return a
}

// remove makes a call that must delete something.
func remove(api testkit.API, path string) {
	GinkgoHelper()
	a, err := api.Delete(limit(), path)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), "DELETE %s: %s", path, a.Body)
}

// read makes a call that must find something.
func read(api testkit.API, path string) string {
	GinkgoHelper()
	a, err := api.Get(limit(), path)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), "GET %s: %s", path, a.Body)
	return a.Body
}

// addUpstream creates the upstream of a backend, under the backend's name.
func addUpstream(api testkit.API, b *testkit.Backend, fields ...string) {
	GinkgoHelper()
	post(api, "/upstream", append([]string{
		"Upstream_name=" + b.Name, "Upstream_ip=" + b.IP, "Upstream_port=" + strconv.Itoa(b.Port),
	}, fields...)...)
}

// addRoute creates a route of a service and attaches upstreams.
func addRoute(api testkit.API, service, name, prefix, config string, upstreams ...string) {
	GinkgoHelper()
	fields := []string{"Route_Name=" + name, "Route_prefix=" + prefix}
	if config != "" {
		fields = append(fields, "Route_config="+config)
	}
	post(api, "/service/"+service+"/route", fields...)
	for _, u := range upstreams {
		post(api, "/service/"+service+"/route/"+name+"/upstream/"+u)
	}
}

// addService creates a service with a route / to upstreams.
func addService(api testkit.API, name, fqdn string, upstreams ...string) {
	GinkgoHelper()
	post(api, "/service", "Service_Name="+name, "fqdn="+fqdn)
	addRoute(api, name, "root", "/", "", upstreams...)
}

// addProxy creates a proxy that listens on a port and attaches services.
func addProxy(api testkit.API, name string, port int, services ...string) {
	GinkgoHelper()
	post(api, "/proxy", "Name="+name, "Http_port="+strconv.Itoa(port), "Listen_ip=127.0.0.1")
	for _, s := range services {
		post(api, "/proxy/"+name+"/service/"+s)
	}
}

// reply is an answer through Envoy.
type reply struct {
	testkit.Answer
	// Echo is the request as the backend received it, if one answered.
	Echo testkit.Echo
}

// send sends a request through the gateway; header has Name: value pairs.
func (g gateway) send(method, host, target string, header ...string) (reply, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, fmt.Sprintf("http://127.0.0.1:%d%s", g.port, target), http.NoBody)
	if err != nil {
		return reply{}, err
	}
	req.Host = host
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header[name] = append(req.Header[name], value)
	}
	a, err := testkit.Send(req)
	r := reply{Answer: a}
	if err == nil && a.Header.Get(testkit.BackendHeader) != "" && a.Body != "" {
		err = json.Unmarshal([]byte(a.Body), &r.Echo)
	}
	return r, err
}

// get sends a GET request that must be answered.
func (g gateway) get(host, target string, header ...string) reply {
	GinkgoHelper()
	r, err := g.send(http.MethodGet, host, target, header...)
	Expect(err).NotTo(HaveOccurred())
	return r
}

// answers returns who answers a GET request: the name of the backend, or the status if
// there is none.
func (g gateway) answers(host, target string, header ...string) string {
	r, err := g.send(http.MethodGet, host, target, header...)
	switch {
	case err != nil:
		return err.Error()
	case r.Status != http.StatusOK:
		return strconv.Itoa(r.Status)
	}
	return r.Header.Get(testkit.BackendHeader)
}

// expect waits until a GET request is answered as wanted.
func (g gateway) expect(host, target, want string) {
	GinkgoHelper()
	Eventually(g.answers).WithArguments(host, target).Should(Equal(want))
}

// traffic sends requests until the end of the spec; stop checks that all were answered.
func (g gateway) traffic(host string, rate int) (t *testkit.Traffic, stop func()) {
	t = testkit.StartTraffic(testkit.TrafficOptions{Addr: fmt.Sprintf("127.0.0.1:%d", g.port), Host: host, Rate: rate})
	DeferCleanup(t.Stop)
	return t, func() {
		GinkgoHelper()
		report := t.Stop()
		AddReportEntry("traffic", report.String())
		_, _ = fmt.Fprintln(GinkgoWriter, "traffic:", report)
		Expect(report.Failures).To(BeEmpty(), report.String())
		Expect(report.Requests).To(BeNumerically(">", 0))
	}
}
