package attack_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// The paths that the specification names, and others that only read.
var adminReads = []string{"/stats", "/stats?filter=http.http", "/ready", "/stats/prometheus", "/clusters", "/clusters?format=json", "/listeners", "/server_info", "/memory", "/certs"}

// The comments say what Envoy itself would do.
var adminEvil = []struct{ method, path string }{
	{"POST", "/runtime_modify?ratelimit.http_filter_enabled=0"}, // no limits anymore
	{"POST", "/quitquitquit"},                                   // stops Envoy
	{"GET", "/config_dump"},                                     // shows what is confidential
	{"POST", "/healthcheck/fail"},                               // removes it from the load balancer
	{"POST", "/drain_listeners"},                                // stops listening
	{"POST", "/stats/recentlookups/enable"},
	{"POST", "/reset_counters"},
	{"POST", "/cpuprofiler?enable=y"},
	{"POST", "/heapprofiler?enable=y"},
	{"POST", "/heap_dump"},
	{"POST", "/allocprofiler?enable=y"},
	{"POST", "/reopen_logs"},
	{"POST", "/tap"},
	{"POST", "/drain_listeners?graceful"},
	{"GET", "/runtime"},
	{"GET", "/config_dump?resource=dynamic_active_clusters"},
	{"GET", "/config_dump/"},
	{"GET", "/init_dump"},
	{"GET", "/contention"},
	{"GET", "/hot_restart_version"},
	{"GET", "/help"},
	{"GET", "/"},
	{"POST", "/%71uitquitquit"},
	{"POST", "//quitquitquit"},
	{"POST", "/stats/../quitquitquit"},
	{"POST", "/stats/%2e%2e/quitquitquit"},
	{"POST", "/stats%2f..%2fquitquitquit"},
	{"POST", "/logging/../quitquitquit"},
	{"POST", "/logging;/quitquitquit"},
	{"POST", "/logging%3f/quitquitquit"},
	{"POST", "/Quitquitquit"},
	{"GET", "/stats/"},
	{"GET", "/statsx"},
	{"GET", "/stats%20/config_dump"},
	// A method that the path does not allow.
	{"GET", "/logging?level=trace"},
	{"POST", "/stats"},
	{"PUT", "/logging?level=trace"},
	{"DELETE", "/stats"},
	{"PATCH", "/stats"},
	{"TRACE", "/stats"},
}

var _ = Describe("The admin port", func() {
	It("has what the specification names, and only endpoints that read", func(ctx SpecContext) {
		for _, path := range adminReads {
			a := try(ctx, gw.Admin, http.MethodGet, path, "")
			Expect(a.Status).To(Equal(http.StatusOK), "GET %s: %s", path, a.Body)
			Expect(a.Body).NotTo(BeEmpty(), path)
		}
		a := try(ctx, gw.Admin, http.MethodPost, "/logging?level=trace", "")
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Expect(a.Body).To(MatchRegexp(`(?m)^\s*http: trace$`))
		a = try(ctx, gw.Admin, http.MethodPost, "/logging?level=warning", "")
		Expect(a.Body).To(MatchRegexp(`(?m)^\s*http: warning$`))
		a = try(ctx, gw.Admin, http.MethodPost, "/logging?level=loud", "")
		Expect(a.Status).To(Equal(http.StatusBadRequest))
	}, SpecTimeout(time.Minute))

	It("has nothing else, and names the socket that does", func(ctx SpecContext) {
		for _, e := range some(12, adminEvil) {
			a := try(ctx, gw.Admin, e.method, e.path, "")
			Expect(a.Status).To(BeElementOf(http.StatusNotFound, http.StatusMethodNotAllowed), "%s %s: %s", e.method, e.path, a.Body)
			Expect(a.Header.Get("Content-Type")).To(Equal("application/problem+json"))
			if a.Status == http.StatusNotFound {
				Expect(a.Body).To(ContainSubstring("curl --unix-socket "+adminSocket()), "%s %s", e.method, e.path)
			}
		}
	}, SpecTimeout(time.Minute))

	It("does not do anything for a web page", func(ctx SpecContext) {
		for _, p := range some(3, evilPages()) {
			for _, path := range []string{"/logging?level=trace", "/runtime_modify?ratelimit.http_filter_enabled=0", "/quitquitquit"} {
				a := try(ctx, gw.Admin, http.MethodPost, path, "x", append([]string{"Content-Type: text/plain"}, p.headers...)...)
				Expect(a.Status).To(Equal(http.StatusForbidden), "a page %s: %s: %s", p.name, path, a.Body)
			}
		}
		// A request that is not known to be from another site may not read either.
		for _, host := range []string{"evil.example", "evil.example:9001", "127.0.0.1.evil.example", ""} {
			for _, path := range []string{"/stats", "/clusters", "/config_dump", "/server_info"} {
				a := try(ctx, gw.Admin, http.MethodGet, path, "", "Host: "+host)
				if host != "" { // otherwise net/http sends the address
					Expect(a.Status).To(Equal(http.StatusForbidden), "Host %q: %s", host, a.Body)
				}
			}
		}
		a := try(ctx, gw.Admin, http.MethodOptions, "/logging", "", "Origin: http://evil.example", "Access-Control-Request-Method: POST")
		Expect(a.Header).NotTo(HaveKey("Access-Control-Allow-Origin"))
		for _, host := range []string{"localhost", "localhost:9001", "[::1]:9001"} {
			Expect(try(ctx, gw.Admin, http.MethodGet, "/stats", "", "Host: "+host).Status).To(Equal(http.StatusOK), host)
		}
	}, SpecTimeout(time.Minute))

	It("leads to a socket that only this user can open", func(ctx SpecContext) {
		path := adminSocket()
		info, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode()).To(Equal(os.ModeSocket | 0o600))
		dir, err := os.Stat(filepath.Dir(path))
		Expect(err).NotTo(HaveOccurred())
		Expect(dir.Mode()).To(Equal(os.ModeDir | 0o700))
		socket := testkit.API{URL: "http://envoy", Socket: path}
		Expect(try(ctx, socket, http.MethodGet, "/config_dump", "").Status).To(Equal(http.StatusOK))
		a := try(ctx, socket, http.MethodPost, "/runtime_modify?ratelimit.http_filter_enabled=0", "")
		Expect(a.Status).To(Equal(http.StatusServiceUnavailable), "there is no layer to change: %s", a.Body)
	}, SpecTimeout(time.Minute))

	It("answers others while some never read their answers", func(ctx SpecContext) {
		addr := strings.TrimPrefix(gw.Admin.URL, "http://")
		for range 50 {
			conn, err := testkit.Bounded(net.Dial("tcp", addr))
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(conn.Close)
			for range 20 {
				_, err = fmt.Fprintf(conn, "GET /stats HTTP/1.1\r\nHost: %s\r\n\r\n", addr)
				Expect(err).NotTo(HaveOccurred())
			}
		}
		Eventually(func() int {
			a, err := gw.Admin.Get(ctx, "/ready")
			Expect(err).NotTo(HaveOccurred())
			return a.Status
		}).Should(Equal(http.StatusOK))
	}, SpecTimeout(time.Minute))

	It("requires a token as soon as there is one", func(ctx SpecContext) {
		const token = "an-admin-token-of-this-spec"
		t := startEmpty(ctx, []string{"GATEHOUSE_API_ADMIN_TOKEN=" + token})
		Eventually(func() int { return try(ctx, t.Admin, http.MethodGet, "/ready", "").Status }).Should(Equal(http.StatusOK))
		for _, e := range []struct{ method, path string }{{"GET", "/stats"}, {"POST", "/logging?level=trace"}, {"POST", "/quitquitquit"}} {
			Expect(try(ctx, t.Admin, e.method, e.path, "").Status).To(Equal(http.StatusUnauthorized), e.path)
		}
		Expect(try(ctx, t.Admin, http.MethodGet, "/stats", "", "Authorization: Bearer "+token).Status).To(Equal(http.StatusOK))
		Expect(try(ctx, t.Admin, http.MethodPost, "/logging?level=error", "", "Authorization: Bearer "+token).Status).To(Equal(http.StatusOK))
	}, SpecTimeout(time.Minute))

	It("does not listen on a network without a token", func(ctx SpecContext) {
		p, err := testkit.SpawnGatehouse(nil, "standalone", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0",
			"--admin-addr", "0.0.0.0:0")
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Wait(ctx)).To(Equal(2))
		Expect(p.Stderr.String()).To(And(ContainSubstring("--admin-addr 0.0.0.0:0 is not a loopback address"), ContainSubstring("--insecure-api")))
	}, SpecTimeout(time.Minute))
})

var _ = Describe("The admin port of an Envoy elsewhere", func() {
	It("has what the specification names, and only endpoints that read", func(ctx SpecContext) {
		e, err := testkit.StartEnvoyOnPort(ctx, GinkgoT().TempDir(), "gw-elsewhere", gw.XDSAddr)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(e.Kill)
		for _, path := range adminReads {
			Expect(try(ctx, e.Admin, http.MethodGet, path, "").Status).To(Equal(http.StatusOK), path)
		}
		Expect(try(ctx, e.Admin, http.MethodPost, "/logging?level=warning", "").Status).To(Equal(http.StatusOK))
		for _, a := range adminEvil {
			if a.method == http.MethodPost && a.path != "/stats" || strings.HasPrefix(a.path, "/config_dump") {
				Expect(try(ctx, e.Admin, a.method, a.path, "").Status).To(BeElementOf(http.StatusForbidden, http.StatusNotFound), "%s %s", a.method, a.path)
			}
		}
		Expect(e.Exited()).NotTo(BeClosed())
	}, SpecTimeout(time.Minute))
})

// adminSocket is where the gateway's Envoy has its own admin endpoint.
func adminSocket() string {
	GinkgoHelper()
	Eventually(gw.Records).WithArguments("envoy is ready").ShouldNot(BeEmpty())
	path, _ := gw.Records("envoy is ready")[0]["admin_socket"].(string)
	Expect(path).NotTo(BeEmpty())
	return path
}
