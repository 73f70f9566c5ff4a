package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// commanded is an Envoy that "gatehouse envoy" runs.
type commanded struct {
	*testkit.Process
	admin testkit.API
}

// command runs "gatehouse envoy" for proxy gw, with an admin socket, until the end of the
// spec. It has no temporary directory to write to.
func command(xdsAddr string, more ...string) *commanded {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	socket := filepath.Join(dir, "admin.sock")
	p, err := testkit.SpawnGatehouse([]string{"TMPDIR=/not/there", "GATEHOUSE_MAX_CONNECTIONS=999"},
		append([]string{"envoy", "--proxy", "gw", "--xds-addr", xdsAddr, "--admin-socket", socket}, more...)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Kill)
	return &commanded{p, testkit.API{URL: "http://envoy", Socket: socket}}
}

// state returns the answer of the admin endpoint to /ready, or the error.
func (c *commanded) state() string {
	a, err := c.admin.Get(limit(), "/ready")
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(a.Body)
}

// programOf returns the file that a process runs.
func programOf(pid int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return err.Error()
	}
	return filepath.Base(path)
}

// slow sends a slow request, and returns its answer on a channel.
func slow(gw gateway, b *testkit.Backend, delay string) <-chan string {
	GinkgoHelper()
	answer, before := make(chan string, 1), b.Requests()
	go func() {
		resp, err := http.Get("http://127.0.0.1:" + strconv.Itoa(gw.port) + "/?delay=" + delay)
		if err != nil {
			answer <- err.Error()
			return
		}
		_ = resp.Body.Close()
		answer <- fmt.Sprint(resp.StatusCode)
	}()
	Eventually(b.Requests).Should(BeNumerically(">", before))
	return answer
}

var _ = Describe("gatehouse envoy", func() {
	var (
		g    *testkit.Gatehouse
		gw   gateway
		blue *testkit.Backend
	)
	BeforeEach(func() {
		g, blue = serve(), backend("blue")
		gw = gateway{g.API, freePort()}
		specificationCalls(through(g.API), blue, "Http_port="+strconv.Itoa(gw.port), "Listen_ip=127.0.0.1")
	})

	It("becomes an Envoy that routes, with its arguments, its exit code and none of the program's settings", func() {
		e := command(g.XDSAddr, "--node-metadata", "zone=a", "--", "--concurrency", "1", "--log-level", "warning")
		Eventually(e.state).Should(Equal("LIVE"))
		gw.expect("shop.example", "/", "blue")
		Expect(programOf(e.Pid())).To(Equal("envoy"))
		Expect(read(e.admin, "/server_info")).To(And(
			ContainSubstring(`"concurrency": 1`), ContainSubstring(`"log_level": "warning"`), ContainSubstring(`"component_log_level": "oauth2:error"`),
			ContainSubstring(`"disable_hot_restart": true`), ContainSubstring(`"zone": "a"`)))
		Expect(read(e.admin, "/config_dump")).To(ContainSubstring(`"max_active_downstream_connections": "999"`))
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", e.Pid()))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(environ)).To(And(ContainSubstring("TMPDIR=/not/there"), Not(ContainSubstring("GATEHOUSE_"))))
		Expect(e.Stop(limit())).To(BeZero())
	})

	It("starts after an Envoy was killed, but not while one listens", func() {
		e := command(g.XDSAddr)
		Eventually(e.state).Should(Equal("LIVE"))
		again := []string{"envoy", "--proxy", "gw", "--xds-addr", g.XDSAddr, "--admin-socket", e.admin.Socket}
		p, err := testkit.SpawnGatehouse(nil, again...)
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Wait(limit())).To(Equal(1))
		Expect(p.Stderr.String()).To(Equal("gatehouse: --admin-socket: another process listens at " + e.admin.Socket + ": choose another path\n"))

		Expect(e.Kill()).To(Succeed())
		p, err = testkit.SpawnGatehouse(nil, again...)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(p.Kill)
		Eventually(e.state).Should(Equal("LIVE"))
	})

	It("cuts off running requests on SIGTERM, as Envoy does", func() {
		e := command(g.XDSAddr)
		gw.expect("shop.example", "/", "blue")
		answer := slow(gw, blue, "30s")
		Expect(e.Stop(limit())).To(BeZero())
		Eventually(answer).Should(Receive(ContainSubstring("EOF")))
	})

	It("lets running requests finish with --drain-time, and passes signals and exit codes on", func() {
		e := command(g.XDSAddr, "--drain-time", "40s")
		gw.expect("shop.example", "/", "blue")
		Expect(programOf(e.Pid())).To(Equal("gatehouse"))
		Expect(e.Signal(syscall.SIGUSR1)).To(Succeed())
		Eventually(func() string { return read(e.admin, "/stats?filter=^filesystem.reopen_failed$|^server.live$") }).Should(ContainSubstring("server.live: 1"))

		answer := slow(gw, blue, "2s")
		Expect(e.Signal(syscall.SIGTERM)).To(Succeed())
		Eventually(func() error {
			conn, err := testkit.Bounded(net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(gw.port)))
			if err == nil {
				_ = conn.Close()
			}
			return err
		}).Should(MatchError(ContainSubstring("refused")))
		Eventually(answer).Should(Receive(Equal("200")))
		Expect(e.Wait(limit())).To(BeZero())
	})

	It("waits no longer than its drain time", func() {
		e := command(g.XDSAddr, "--drain-time", "500ms")
		gw.expect("shop.example", "/", "blue")
		answer := slow(gw, blue, "50s")
		Expect(e.Stop(limit())).To(BeZero())
		Eventually(answer).Should(Receive(ContainSubstring("EOF")))
		Expect(e.Stderr.String()).To(ContainSubstring(`level=WARN msg="envoy stops with requests running" requests=1 waited=500ms`))
	})

	It("drains through its own socket if none is set", func() {
		dir := GinkgoT().TempDir()
		p, err := testkit.SpawnGatehouse([]string{"TMPDIR=" + dir}, "envoy", "--proxy", "gw", "--xds-addr", g.XDSAddr, "--drain-time", "40s", "--admin-addr", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(p.Kill)
		gw.expect("shop.example", "/", "blue")

		By("and answers on the admin port, too")
		found := regexp.MustCompile(`msg="the admin port is open" admin=(127\.0\.0\.1:\d+)\n`).FindStringSubmatch(p.Stderr.String())
		Expect(found).To(HaveLen(2), p.Stderr.String())
		admin := testkit.API{URL: "http://" + found[1]}
		Expect(read(admin, "/ready")).To(Equal("LIVE\n"))
		Expect(read(admin, "/stats?filter=^server.live$")).To(Equal("server.live: 1\n"))
		for _, path := range []string{"/config_dump", "/quitquitquit", "/drain_listeners", "/healthcheck/fail", "/", "//config_dump", "/stats/../config_dump", "/stats%2F..%2Fconfig_dump"} {
			a, err := admin.Post(limit(), path)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusForbidden), path)
		}
		answer := slow(gw, blue, "1s")
		Expect(p.Stop(limit())).To(BeZero())
		Eventually(answer).Should(Receive(Equal("200")))
		Expect(os.ReadDir(dir)).To(BeEmpty())
	})

	DescribeTable("ends as Envoy ends",
		func(more ...string) {
			e := command(g.XDSAddr, append(more, "--", "--bogus")...)
			Expect(e.Wait(limit())).To(Equal(1))
			Expect(e.Stderr.String()).To(ContainSubstring("Couldn't find match for argument"))
			Expect(e.Stderr.String()).NotTo(ContainSubstring("gatehouse: "))
		},
		Entry("in its place"),
		Entry("as a child", "--drain-time", "1s"),
	)

	It("reports which signal ended the Envoy that it ran as a child", func() {
		e := command(g.XDSAddr, "--drain-time", "1s")
		Eventually(e.state).Should(Equal("LIVE"))
		Expect(syscall.Kill(childOf(e.Pid()), syscall.SIGKILL)).To(Succeed())
		Expect(e.Wait(limit())).To(Equal(128 + 9))
	})

	DescribeTable("refuses to start, before anything else, with",
		func(want string, code int, args ...string) {
			p, err := testkit.SpawnGatehouse(nil, append([]string{"envoy"}, args...)...)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.Wait(limit())).To(Equal(code))
			Expect(p.Stdout.String()).To(BeEmpty())
			Expect(p.Stderr.String()).To(Equal("gatehouse: " + want + "\n"))
		},
		Entry("a missing Envoy", "there is no Envoy at /not/there: run `make envoy` or give another path with --envoy", 1, "--envoy", "/not/there"),
		Entry("the configuration of another Envoy", "Envoy's configuration is the bootstrap that this program makes: leave out -c and --config-path, or start Envoy itself", 1, "--", "-c", "x.yaml"),
		Entry("an argument without --", `unknown argument "x": arguments for Envoy follow --`, 2, "x"),
		Entry("a missing authority", `--xds-tls-ca: there is no file /not/there: it is the authority of the control plane ("gatehouse pki init DIR" makes its ca.crt)`, 2, "--xds-tls-ca", "/not/there"),
		Entry("a missing token", "--xds-token-file: there is no file /not/there: POST /proxy/gw/token answers a token", 2, "--xds-token-file", "/not/there"),
	)
})

// childOf returns the child of a process.
func childOf(parent int) int {
	GinkgoHelper()
	found, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	Expect(err).NotTo(HaveOccurred())
	for _, file := range found {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		if fields := strings.Fields(string(text)); len(fields) > 0 {
			pid, err := strconv.Atoi(fields[0])
			Expect(err).NotTo(HaveOccurred())
			return pid
		}
	}
	Fail("it has no child")
	return 0
}

var _ = Describe("The limits of an Envoy elsewhere", func() {
	var (
		g  *testkit.Gatehouse
		gw gateway
	)
	BeforeEach(func() {
		g = serve()
		gw = gateway{g.API, freePort()}
		specificationCalls(through(g.API), backend("blue"), "Http_port="+strconv.Itoa(gw.port), "Listen_ip=127.0.0.1")
	})
	// open opens a connection and sends a text; hear returns its first line, or what
	// happened to it.
	open := func(text string) net.Conn {
		GinkgoHelper()
		conn, err := testkit.Bounded(net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(gw.port)))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = conn.Close() }) // a spec may have closed it
		_, _ = conn.Write([]byte(text))           // Envoy may have closed it
		return conn
	}
	const request = "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"
	hear := func(conn net.Conn) string {
		GinkgoHelper()
		Expect(conn.SetReadDeadline(time.Now().Add(30 * time.Second))).To(Succeed())
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			return "closed"
		}
		return strings.TrimSpace(line)
	}

	It("closes connections above --max-connections, but none of the admin endpoint", func() {
		e := connectedWith(g.XDSAddr, "--max-connections", "2")
		gw.expect("shop.example", "/", "blue")
		Eventually(func() string { return read(e.Admin, "/stats?filter=^http.http.downstream_cx_active$") }).Should(Equal("http.http.downstream_cx_active: 0\n"))
		first, second := open(request), open(request)
		Expect(hear(first)).To(Equal("HTTP/1.1 200 OK"))
		Expect(hear(second)).To(Equal("HTTP/1.1 200 OK"))
		Expect(hear(open(request))).To(Equal("closed"))
		Expect(read(e.Admin, "/ready")).To(Equal("LIVE\n"))

		Expect(first.Close()).To(Succeed())
		Eventually(func() string { return hear(open(request)) }).Should(Equal("HTTP/1.1 200 OK"))
	})

	It("answers 503 or closes connections near --max-heap, and recovers", func() {
		e := connectedWith(g.XDSAddr, "--max-heap", "16MiB")
		gw.expect("shop.example", "/", "blue")
		idle := open(request)
		Expect(hear(idle)).To(Equal("HTTP/1.1 200 OK"))
		// Each makes Envoy buffer most of a request's head, for which it waits 10 s.
		half := "GET / HTTP/1.1\r\nHost: shop.example\r\nX-Long: " + strings.Repeat("a", 50_000)
		var hogs []net.Conn
		heard := map[string]int{}
		Eventually(func() string {
			for range 20 {
				hogs = append(hogs, open(half))
			}
			said := hear(open(request))
			heard[said]++
			return said
		}).Should(Or(Equal("HTTP/1.1 503 Service Unavailable"), Equal("closed")))
		Expect(heard["HTTP/1.1 200 OK"]).NotTo(BeZero())
		Eventually(func() string { return read(e.Admin, "/stats?filter=^overload.*active$") }).Should(
			ContainSubstring("overload.envoy.overload_actions.stop_accepting_requests.active: 1"))
		Expect(read(e.Admin, "/ready")).To(Equal("LIVE\n"))
		// Without requests it would stay for an hour.
		_, err := io.Copy(io.Discard, idle)
		Expect(err).NotTo(HaveOccurred())

		for _, c := range hogs {
			_ = c.Close()
		}
		Eventually(func() string { return hear(open(request)) }).Should(Equal("HTTP/1.1 200 OK"))
	})
})
