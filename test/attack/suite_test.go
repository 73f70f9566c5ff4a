package attack_test

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestAttack(t *testing.T) {
	RegisterFailHandler(Fail)
	// The machine may be busy with the tests of other packages.
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Attacks")
}

// target is the gateway that all specs attack. It has a service for every host, "shop",
// with a route / to the backend "blue". A spec that adds objects removes them again.
type target struct {
	*testkit.Gatehouse
	// port is where Envoy listens.
	port int
	// httpsPort is where it listens once a service has a certificate.
	httpsPort int
	blue      *testkit.Backend
}

var gw target

var _ = BeforeSuite(func(ctx SpecContext) {
	gw = startTarget(ctx)
}, NodeTimeout(2*time.Minute))

// After every attack the gateway still runs and serves.
var _ = AfterEach(func(ctx SpecContext) {
	Expect(gw.Exited()).NotTo(BeClosed(), gw.Stderr.String())
	Expect(gw.Stderr.String()).NotTo(Or(ContainSubstring("goroutine "), ContainSubstring("panic"), ContainSubstring("DATA RACE")))
	Eventually(served).WithContext(ctx).WithArguments("/").Should(Equal("blue"))
	a, err := gw.API.Get(ctx, "/ready")
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK))
}, NodeTimeout(2*time.Minute))

// startTarget starts a gateway on free ports, with additional arguments, until the end
// of the suite or of the spec that calls it.
func startTarget(ctx context.Context, args ...string) target {
	GinkgoHelper()
	t := startEmpty(ctx, nil, args...)
	for _, call := range [][]string{
		{"/upstream", "Upstream_name=blue", "Upstream_ip=" + t.blue.IP, "Upstream_port=" + strconv.Itoa(t.blue.Port)},
		{"/service", "Service_Name=shop", "fqdn=*"},
		{"/service/shop/route", "Route_Name=root", "Route_prefix=/"},
		{"/service/shop/route/root/upstream/blue"},
		{"/proxy", "Name=gw"},
		{"/proxy/gw/service/shop"},
	} {
		a, err := t.API.Post(ctx, call[0], call[1:]...)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusCreated), "POST %q: %s", call, a.Body)
	}
	Eventually(func() string { return t.served("/") }).WithContext(ctx).Should(Equal("blue"))
	return t
}

// startEmpty starts one without any objects.
func startEmpty(ctx context.Context, env []string, args ...string) target {
	GinkgoHelper()
	port, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	httpsPort, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	t := target{port: port, httpsPort: httpsPort}
	t.blue, err = testkit.StartBackend("blue", testkit.BackendOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(t.blue.Close)
	t.Gatehouse, err = testkit.StartGatehouse(ctx, env, append([]string{
		"standalone", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0",
		"--admin-addr", "127.0.0.1:0", "--http-port", strconv.Itoa(port), "--https-port", strconv.Itoa(httpsPort),
	}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(t.Stop(ctx)).To(BeZero(), t.Stderr.String())
	}, NodeTimeout(time.Minute))
	Expect(t.WaitReady(ctx)).To(Succeed())
	return t
}

func served(path string) string { return gw.served(path) }

// served returns the backend that answers a GET request, or what else happens.
func (t target) served(path string) string {
	a, err := testkit.API{URL: "http://127.0.0.1:" + strconv.Itoa(t.port)}.Get(context.Background(), path)
	switch {
	case err != nil:
		return err.Error()
	case a.Status != http.StatusOK:
		return strconv.Itoa(a.Status)
	}
	return a.Header.Get(testkit.BackendHeader)
}

// all reports whether complete tables are tried.
func all() bool { return os.Getenv("GATEHOUSE_TEST_ATTACKS") == "all" }

// some returns the rows of a table that this run tries: the first n of them, or all of
// them in a long run. So the most important ones come first.
func some[T any](n int, rows []T) []T {
	if all() {
		return rows
	}
	return rows[:min(n, len(rows))]
}

// try sends a request with headers of the form "Name: value"; Host may be one of them.
func try(ctx context.Context, base testkit.API, method, path, body string, headers ...string) testkit.Answer {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(ctx, method, base.URL+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Add(name, value)
	}
	a, err := base.Send(req)
	Expect(err).NotTo(HaveOccurred())
	return a
}

// add creates an object, until the end of the spec.
func (t target) add(ctx context.Context, path string, fields ...string) {
	GinkgoHelper()
	_, name, _ := strings.Cut(fields[0], "=")
	t.call(ctx, path, path+"/"+name, fields...)
}

// addService creates a service in front of blue, with a route /, until the end of the
// spec.
func (t target) addService(ctx context.Context, name, fqdn string) {
	GinkgoHelper()
	t.add(ctx, "/service", "Service_Name="+name, "fqdn="+fqdn)
	t.add(ctx, "/service/"+name+"/route", "Route_Name=root", "Route_prefix=/")
	t.link(ctx, "/service/"+name+"/route/root/upstream/blue")
}

// link creates a link, until the end of the spec.
func (t target) link(ctx context.Context, path string) {
	GinkgoHelper()
	bare, _, _ := strings.Cut(path, "?")
	t.call(ctx, path, bare)
}

// call makes a call, and deletes what it created at the end of the spec.
func (t target) call(ctx context.Context, path, made string, fields ...string) {
	GinkgoHelper()
	a, err := t.API.Post(ctx, path, fields...)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusCreated), "POST %s %q: %s", path, fields, a.Body)
	DeferCleanup(func(ctx SpecContext) {
		a, err := t.API.Delete(ctx, made)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), "DELETE %s: %s", made, a.Body)
	}, NodeTimeout(time.Minute))
}
