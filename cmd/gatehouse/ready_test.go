package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
)

var _ = Describe("gatehouse ready", func() {
	var answer func(w http.ResponseWriter)
	var asked []string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Host+r.URL.Path)
		answer(w)
	})

	BeforeEach(func() {
		asked = nil
		answer = func(http.ResponseWriter) {}
		DeferCleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	})

	It("calls the address from the settings", func() {
		server := httptest.NewServer(handler)
		DeferCleanup(server.Close)
		addr := server.Listener.Addr().String()
		GinkgoT().Setenv("GATEHOUSE_API_ADDR", addr)
		GinkgoT().Setenv("HTTP_PROXY", "http://127.0.0.1:1")
		Expect(run1("", "ready")).To(Equal(result{}))
		Expect(asked).To(Equal([]string{"GET " + addr + "/ready"}))
	})

	It("reads the file that --config names, and ignores settings of other commands", func() {
		server := httptest.NewServer(handler)
		DeferCleanup(server.Close)
		file := filepath.Join(GinkgoT().TempDir(), "settings.yaml")
		Expect(os.WriteFile(file, []byte("api-addr: "+server.Listener.Addr().String()+"\nhttp-port: 8081\napi-admin-token-file: /not/there\n"), 0o600)).To(Succeed())
		Expect(run1("", "ready", "--config", file)).To(Equal(result{}))
	})

	DescribeTable("calls the loopback address if the API listens on all addresses", func(host string) {
		server := httptest.NewServer(handler)
		DeferCleanup(server.Close)
		_, port, err := net.SplitHostPort(server.Listener.Addr().String())
		Expect(err).NotTo(HaveOccurred())
		Expect(run1("", "ready", "--api-addr", host+":"+port)).To(Equal(result{}))
		Expect(asked).To(Equal([]string{"GET 127.0.0.1:" + port + "/ready"}))
	},
		Entry("0.0.0.0", "0.0.0.0"),
		Entry("no host", ""),
	)

	It("speaks HTTPS if the API has a certificate, without verifying it", func() {
		server := httptest.NewTLSServer(handler)
		DeferCleanup(server.Close)
		Expect(run1("", "ready", "--api-addr", server.Listener.Addr().String(), "--api-tls-cert", "/not/there")).To(Equal(result{}))
	})

	It("fails with the reason if the gateway is not ready", func() {
		server := httptest.NewServer(handler)
		DeferCleanup(server.Close)
		answer = func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"title":"Not ready","status":503,"detail":"the first configuration is not published yet"}`))
		}
		addr := server.Listener.Addr().String()
		Expect(run1("", "ready", "--api-addr", addr)).To(Equal(result{
			code: 1, stderr: "gatehouse: http://" + addr + "/ready answers 503: the first configuration is not published yet\n",
		}))
	})

	It("fails if no server answers", func() {
		r := run1("", "ready", "--api-addr", "127.0.0.1:1")
		Expect(r.code).To(Equal(1))
		Expect(r.stderr).To(ContainSubstring("gatehouse: the gateway does not answer: "))
		Expect(r.stderr).To(ContainSubstring("connection refused"))
	})

	It("calls the admin endpoint of an Envoy, at its address or socket", func() {
		server := httptest.NewUnstartedServer(handler)
		socket := filepath.Join(GinkgoT().TempDir(), "admin.sock")
		l, err := net.Listen("unix", socket)
		Expect(err).NotTo(HaveOccurred())
		Expect(server.Listener.Close()).To(Succeed())
		server.Listener = l
		server.Start()
		DeferCleanup(server.Close)
		GinkgoT().Setenv("GATEHOUSE_API_ADDR", "127.0.0.1:1")
		Expect(run1("", "ready", "--admin", "--admin-socket", socket)).To(Equal(result{}))
		Expect(asked).To(Equal([]string{"GET localhost/ready"}))

		other := httptest.NewServer(handler)
		DeferCleanup(other.Close)
		answer = func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("PRE_INITIALIZING\n"))
		}
		addr := other.Listener.Addr().String()
		Expect(run1("", "ready", "--admin", "--admin-addr", addr)).To(Equal(result{
			code: 1, stderr: "gatehouse: http://" + addr + "/ready answers 503: PRE_INITIALIZING\n",
		}))
	})

	DescribeTable("recognizes a container that runs only an Envoy by its process 1", func(cmdline string, want bool) {
		proc := fstest.MapFS{"1/cmdline": {Data: []byte(cmdline)}}
		Expect(app.RunsEnvoyAlone(proc)).To(Equal(want))
	},
		Entry("Envoy instead of gatehouse envoy", "/usr/local/bin/envoy\x00-c\x00/dev/fd/7\x00", true),
		Entry("Envoy as the entrypoint", "envoy\x00-c\x00/etc/envoy.yaml\x00", true),
		Entry("gatehouse envoy that drains", "/usr/local/bin/gatehouse\x00envoy\x00--drain-time\x0010s\x00", true),
		Entry("a whole gateway", "/usr/local/bin/gatehouse\x00standalone\x00", false),
		Entry("a control plane", "/usr/local/bin/gatehouse\x00serve\x00", false),
		Entry("a machine", "/sbin/init\x00", false),
		Entry("a proxy of that name", "/usr/local/bin/gatehouse\x00standalone\x00--proxy\x00envoy\x00", false),
	)

	It("calls a URL until it answers as expected", func() {
		server := httptest.NewServer(handler)
		DeferCleanup(server.Close)
		answer = func(w http.ResponseWriter) {
			if len(asked) < 2 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}
		Expect(run1("", "ready", "--url", server.URL+"/ready")).To(Equal(result{stdout: server.URL + "/ready answers\n"}))
		Expect(asked).To(HaveLen(2))
		By("accepting any status")
		answer = func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }
		Expect(run1("", "ready", "--url", server.URL, "--any-status").code).To(BeZero())
		Expect(run1("", "ready", "--url", server.URL, "--timeout", "1s").stderr).To(ContainSubstring("answers 404"))
		By("not accepting a failed connection")
		server.Close()
		Expect(run1("", "ready", "--url", server.URL, "--any-status", "--timeout", "100ms").stderr).To(ContainSubstring("the server does not answer"))
	})

	It("does not guess a port", func() {
		Expect(run1("", "ready", "--api-addr", "127.0.0.1:0")).To(Equal(result{
			code: 1, stderr: "gatehouse: --api-addr 127.0.0.1:0 names no port: give the one that was chosen\n",
		}))
	})
})
