package attack_test

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// selves returns ways to name the machine on which the gateway runs.
func selves() []string {
	list := []string{
		"127.0.0.1", "localhost", "0.0.0.0", "::1", "127.9.9.9", "::ffff:127.0.0.1", "LOCALHOST.", "x.localhost", "::", "0x7f000001", "ip6-localhost", "127.0.0.1.",
	}
	if name, err := os.Hostname(); err == nil {
		list = append(list, name)
	}
	return list
}

// portOf returns the port of HOST:PORT or a URL.
func portOf(at string) string {
	GinkgoHelper()
	if u, err := url.Parse(at); err == nil && u.Host != "" {
		at = u.Host
	}
	_, port, err := net.SplitHostPort(at)
	Expect(err).NotTo(HaveOccurred())
	return port
}

var _ = Describe("An upstream that leads to the gateway itself", func() {
	It("is refused while the API requires no token", func(ctx SpecContext) {
		places := map[string]string{
			portOf(gw.API.URL): "Gatehouse's own API", portOf(gw.XDSAddr): "Gatehouse's own xDS server", portOf(gw.Admin.URL): "Envoy's admin endpoint",
			strconv.Itoa(gw.port): "the listener of proxy gw",
		}
		for port, what := range places {
			for _, self := range some(6, selves()) {
				a, err := gw.API.Post(ctx, "/upstream", "Upstream_name=self", "Upstream_ip="+self, "Upstream_port="+port)
				Expect(err).NotTo(HaveOccurred())
				if a.Status == http.StatusBadRequest { // no upstream may have it
					Expect(a.Body).To(ContainSubstring("is not an IPv4 address"), self)
					continue
				}
				Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), "%s:%s: %s", self, port, a.Body)
				Expect(a.Body).To(And(ContainSubstring("/upstream/self leads to "+what), ContainSubstring("the API needs no token")), self)
			}
		}
		document := fmt.Sprintf(`{"version":1,"upstreams":[{"upstream_name":"self","upstream_ip":"localhost","upstream_port":%s}]}`, portOf(gw.API.URL))
		a, err := gw.API.Do(ctx, http.MethodPut, "/config", "application/json", document)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
		a, err = gw.API.Do(ctx, http.MethodPatch, "/upstream/blue", "application/json", fmt.Sprintf(`{"upstream_port":%s}`, portOf(gw.API.URL)))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
	}, SpecTimeout(time.Minute))

	It("causes a warning if the API requires one", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "token")
		const token = "0123456789abcdef0123456789abcdef"
		Expect(os.WriteFile(file, []byte(token), 0o600)).To(Succeed())
		g, err := testkit.StartGatehouse(ctx, nil, "serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0",
			"--api-admin-token-file", file)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(g.Stop(ctx)).To(BeZero(), g.Stderr.String()) }, NodeTimeout(time.Minute))
		Expect(g.WaitReady(ctx)).To(Succeed())
		create := func(path, body string) testkit.Answer {
			GinkgoHelper()
			a := try(ctx, g.API, http.MethodPost, path, body, "Authorization: Bearer "+token, "Content-Type: application/x-www-form-urlencoded")
			Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
			return a
		}
		create("/proxy", "Name=edge&Http_port=8085&Https_port=8086&Listen_ip=127.0.0.1")
		for port, what := range map[string]string{
			portOf(g.API.URL): "Gatehouse's own API", portOf(g.XDSAddr): "Gatehouse's own xDS server", "8085": "the listener of proxy edge", "8086": "the listener of proxy edge",
		} {
			a := create("/upstream", "Upstream_name=self"+port+"&Upstream_ip=localhost&Upstream_port="+port)
			Expect(a.Header["Gatehouse-Warning"]).To(ConsistOf(
				"/upstream/self" + port + " leads to " + what + ", at localhost:" + port + ": requests may loop, or reach what only this machine should reach"))
		}
		a := create("/upstream", "Upstream_name=other&Upstream_ip=127.0.0.1&Upstream_port=1")
		Expect(a.Header).NotTo(HaveKey("Gatehouse-Warning"))
	}, SpecTimeout(time.Minute))
})

var _ = Describe("Upstreams that the operator forbids", func() {
	It("are refused", func(ctx SpecContext) {
		t := startTarget(ctx, "--upstream-deny", "169.254.0.0/16, fd00::/8,*.internal,127.6.6.0/24")
		for _, address := range some(4, []string{
			"169.254.169.254", "::ffff:169.254.169.254", "db.internal", "fd00::1", "DB.Internal.", "127.6.6.6", "a.b.internal", "0xa9fea9fe",
		}) {
			a, err := t.API.Post(ctx, "/upstream", "Upstream_name=bad", "Upstream_ip="+address, "Upstream_port=80")
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), "%s: %s", address, a.Body)
			Expect(a.Body).To(And(ContainSubstring("/upstream/bad cannot be used: its address "+address), ContainSubstring("--upstream-deny")))
		}
		a, err := t.API.Post(ctx, "/upstream", "Upstream_name=named", "Upstream_ip=api.example.com", "Upstream_port=80")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
		Expect(a.Header["Gatehouse-Warning"]).To(ConsistOf(ContainSubstring("/upstream/named has a DNS name, which only Envoy resolves")))
	}, SpecTimeout(time.Minute))

	It("are closed if they are already stored", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		begin := func(args ...string) target {
			GinkgoHelper()
			t := target{blue: gw.blue}
			var err error
			t.port, err = testkit.FreePort()
			Expect(err).NotTo(HaveOccurred())
			t.Gatehouse, err = testkit.StartGatehouse(ctx, nil, append([]string{
				"standalone", "--data-dir", dir, "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
				"--http-port", strconv.Itoa(t.port),
			}, args...)...)
			Expect(err).NotTo(HaveOccurred())
			Expect(t.WaitReady(ctx)).To(Succeed())
			return t
		}
		before := begin()
		document := fmt.Sprintf(`{"version":1,"upstreams":[{"upstream_name":"blue","upstream_ip":"127.0.0.1","upstream_port":%d}],"services":[{"service_name":"shop","fqdn":"*",`+
			`"routes":[{"route_name":"root","route_prefix":"/","upstreams":["blue"]}]}],"proxies":[{"name":"gw","services":["shop"]}]}`, gw.blue.Port)
		a, err := before.API.Do(ctx, http.MethodPut, "/config", "application/json", document)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Eventually(before.served).WithContext(ctx).WithArguments("/").Should(Equal("blue"))
		Expect(before.Stop(ctx)).To(BeZero())

		after := begin("--upstream-allow", "10.0.0.0/8")
		DeferCleanup(func(ctx SpecContext) { Expect(after.Stop(ctx)).To(BeZero(), after.Stderr.String()) }, NodeTimeout(time.Minute))
		Eventually(after.served).WithContext(ctx).WithArguments("/").Should(Equal("503"))
		told, err := after.API.Get(ctx, "/status")
		Expect(err).NotTo(HaveOccurred())
		Expect(told.Body).To(ContainSubstring("has upstream blue, whose address --upstream-allow or --upstream-deny rules out"))
		answer := after.raw(ctx, "GET / HTTP/1.1", "Host: shop.example")
		Expect(strings.Contains(answer.Body, "127.0.0.1")).To(BeFalse(), answer.Body)
	}, SpecTimeout(2*time.Minute))
})
