package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// refuses runs the program, which must exit with that code and one line for the user,
// and returns that line. Except for log records, there must be no other output.
func refuses(code int, env []string, args ...string) string {
	GinkgoHelper()
	p, err := testkit.SpawnGatehouse(env, args...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Kill)
	Expect(p.Wait(limit())).To(Equal(code), p.Stderr.String())
	expectNoPanic(p.Stderr.String())
	Expect(p.Stdout.String()).To(BeEmpty())
	var lines []string
	for _, line := range p.Stderr.Lines() {
		if !strings.HasPrefix(line, "{") {
			lines = append(lines, line)
		}
	}
	Expect(lines).To(HaveLen(1), p.Stderr.String())
	Expect(lines[0]).To(HavePrefix("gatehouse: "))
	return lines[0]
}

// taken returns an address that is in use.
func taken() (addr, port string) {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(freePort()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(l.Close)
	_, port, err = net.SplitHostPort(l.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	return l.Addr().String(), port
}

// file makes a file and returns its path.
func file(name, content string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), name)
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

var _ = Describe("A program that cannot start", func() {
	free := func() []string { return standaloneArgs(GinkgoT().TempDir(), freePort()) }

	DescribeTable("reports which port is taken and what to do",
		func(flag, what string, portOnly bool) {
			addr, port := taken()
			value := addr
			if portOnly {
				value = port
			}
			Expect(refuses(1, nil, append(free(), "--"+flag, value)...)).To(And(
				ContainSubstring(what), ContainSubstring("listen on "+addr), ContainSubstring("address already in use"),
				ContainSubstring("stop what uses"), ContainSubstring("--"+flag)))
		},
		Entry("of the API", "api-addr", "REST API", false),
		Entry("of xDS", "xds-addr", "xDS server", false),
		Entry("of the HTTP listener", "http-port", "nvoy", true),
		Entry("of the admin endpoint", "admin-addr", "nvoy", false),
		Entry("of the debug server", "debug-addr", "debug server", false),
	)

	It("reports that it cannot write the database file", func() {
		blocked := file("file", "")
		Expect(refuses(1, nil, append(free(), "--data-dir", blocked+"/below")...)).To(And(ContainSubstring(blocked), ContainSubstring("--data-dir")))
		Expect(refuses(1, nil, append(free(), "--database-url", "sqlite://"+filepath.Dir(blocked))...)).To(
			And(ContainSubstring("cannot be opened"), ContainSubstring("name a file, not a directory")))
		Expect(refuses(1, nil, append(free(), "--database-url", "sqlite://"+filepath.Dir(blocked)+"/no/x.db")...)).To(
			And(ContainSubstring("cannot be opened"), ContainSubstring("mkdir -p")))
		Expect(refuses(1, nil, append(free(), "--database-url", "sqlite://"+file("text.db", strings.Repeat("no database ", 100)))...)).To(
			ContainSubstring("check that it is an SQLite database"))
	})

	It("reports that Postgres has no such database", func() {
		db := startPostgres()
		Expect(refuses(1, nil, append(free(), "--database-url", db.URL("shop"))...)).To(
			And(ContainSubstring(`says: database "shop" does not exist`), ContainSubstring("createdb shop")))
	})

	DescribeTable("reports that a port asks for a proof that nobody has, as a wrong setting", func(command, flag string) {
		args := []string{command, "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0", "--" + flag, "0.0.0.0:0"}
		Expect(refuses(2, nil, args...)).To(HavePrefix("gatehouse: --" + flag + " 0.0.0.0:0 is not a loopback address"))
	},
		Entry("of the API", "serve", "api-addr"),
		Entry("of xDS", "serve", "xds-addr"),
		Entry("of the API of standalone", "standalone", "api-addr"),
		Entry("of the admin port", "standalone", "admin-addr"),
	)

	It("reports a database URL that the driver cannot read as a wrong setting, and so the missing place of a key", func() {
		Expect(refuses(2, nil, append(free(), "--database-url", "postgres://gatehouse@127.0.0.1:1/x?sslmode=no")...)).To(
			ContainSubstring("the database URL cannot be read"))
		Expect(refuses(2, []string{"HOME=", "XDG_DATA_HOME="}, "serve", "--database-url", "postgres://gatehouse@127.0.0.1:1/x", "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0")).To(
			ContainSubstring("--secret-key-file: not given"))
	})

	It("reports that there is no Envoy, or that it is not one", func() {
		Expect(refuses(1, nil, append(free(), "--envoy", "/no/such/envoy")...)).To(
			And(ContainSubstring("/no/such/envoy"), ContainSubstring("make envoy"), ContainSubstring("--envoy")))
		broken := file("envoy", "#!/bin/sh\necho broken >&2\nexit 3\n")
		Expect(os.Chmod(broken, 0o700)).To(Succeed())
		Expect(refuses(1, nil, append(free(), "--envoy", broken)...)).To(And(ContainSubstring(broken), ContainSubstring("broken")))
	})

	DescribeTable("reports which setting is wrong, from where, and what is allowed",
		func(env func() []string, args func() []string, parts ...string) {
			line := refuses(2, env(), args()...)
			for _, part := range parts {
				Expect(line).To(ContainSubstring(part))
			}
		},
		Entry("on the command line", none, words("standalone", "--http-port", "abc"), "--http-port", `"abc"`, "1 to 65535"),
		Entry("in the environment", words("GATEHOUSE_API_ADDR=nonsense"), words("serve"), "--api-addr", `"nonsense"`, "GATEHOUSE_API_ADDR", "HOST:PORT"),
		Entry("in the file", none, func() []string { return []string{"serve", "--config", file("c.yaml", "log-level: loud\n")} },
			"--log-level", `"loud"`, "c.yaml", "debug, info, warn, error"),
		Entry("with an unknown key", none, func() []string { return []string{"serve", "--config", file("c.yaml", "log-levl: info\n")} },
			"log-levl", "c.yaml"),
		Entry("with an unknown flag", none, words("serve", "--colour", "red"), "--colour"),
		Entry("with an unknown database", none, words("serve", "--database-url", "mysql://db/x"), "--database-url", "sqlite://", "postgres://"),
		Entry("with an unknown command", none, words("start"), "start"),
	)
})

func none() []string { return nil }

func words(list ...string) func() []string { return func() []string { return list } }

var _ = Describe("A program that is told to stop", func() {
	// begin sends a request that runs for some time and returns when the backend has
	// received it.
	begin := func(gw gateway, blue *testkit.Backend, delay string) <-chan string {
		GinkgoHelper()
		answer, before := make(chan string, 1), blue.Requests()
		go func() { answer <- gw.answers("shop.example", "/?delay="+delay) }()
		Eventually(blue.Requests).Should(Equal(before + 1))
		return answer
	}

	It("lets running requests end and exits with 0 within 10 seconds", func() {
		g, gw, blue := shop()
		idle := []net.Conn{keptAlive(fmt.Sprintf("127.0.0.1:%d", gw.port)), keptAlive(strings.TrimPrefix(g.API.URL, "http://"))}
		answer := begin(gw, blue, "2s")

		Expect(g.Signal(syscall.SIGTERM)).To(Succeed())
		Eventually(g.Exited()).WithTimeout(10 * time.Second).Should(BeClosed())
		Expect(g.Stop(limit())).To(BeZero(), g.Stderr.String())
		Expect(<-answer).To(Equal("blue"))
		for _, conn := range idle {
			_, err := conn.Read(make([]byte, 1))
			Expect(err).To(HaveOccurred(), "closed by the gateway")
		}
	})

	It("exits with 0 from serve, with an Envoy and a connection to the API open", func() {
		g := serve()
		envoyFor("gw", g.XDSAddr)
		keptAlive(strings.TrimPrefix(g.API.URL, "http://"))
		Expect(g.Signal(syscall.SIGTERM)).To(Succeed())
		Eventually(g.Exited()).WithTimeout(10 * time.Second).Should(BeClosed())
		Expect(g.Stop(limit())).To(BeZero(), g.Stderr.String())
	})

	It("exits immediately on a second signal, and Envoy with it", func() {
		g, gw, blue := shop()
		admin := adminOf(g)
		answer := begin(gw, blue, "1m")

		Expect(g.Signal(syscall.SIGTERM)).To(Succeed())
		// It drains: new connections are refused, and the request continues.
		Eventually(gw.answers).WithArguments("shop.example", "/").Should(ContainSubstring("connection refused"))
		Expect(g.Exited()).NotTo(BeClosed())
		Expect(g.Signal(syscall.SIGTERM)).To(Succeed())
		Expect(g.Wait(limit())).To(Equal(128 + int(syscall.SIGTERM)))
		Expect(<-answer).NotTo(Equal("blue"))
		Eventually(func() error { _, err := admin.Get(limit(), "/ready"); return err }).ShouldNot(Succeed())
	})

	It("restarts an Envoy that was killed", func() {
		g, gw, _ := shop()
		Eventually(g.Records).WithArguments("envoy is ready").Should(HaveLen(1))
		pid, _ := g.Records("envoy is ready")[0]["pid"].(float64)
		Expect(pid).To(BeNumerically(">", 1))
		Expect(syscall.Kill(int(pid), syscall.SIGKILL)).To(Succeed())
		Eventually(g.Records).WithArguments("envoy is ready").Should(HaveLen(2))
		gw.expect("shop.example", "/", "blue")
		exits := g.Records("envoy exited and is started again")
		Expect(exits).To(HaveLen(1))
		Expect(exits[0]["exit"]).To(ContainSubstring("signal 9"))
	})
})

// keptAlive returns a keep-alive connection on which a request was answered.
func keptAlive(addr string) net.Conn {
	GinkgoHelper()
	conn, err := testkit.Bounded(net.Dial("tcp", addr))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	Expect(conn.SetDeadline(time.Now().Add(time.Minute))).To(Succeed())
	_, err = conn.Write([]byte("HEAD /health HTTP/1.1\r\nHost: " + addr + "\r\n\r\n"))
	Expect(err).NotTo(HaveOccurred())
	var answer []byte
	for !strings.HasSuffix(string(answer), "\r\n\r\n") {
		one := make([]byte, 1)
		_, err := conn.Read(one)
		Expect(err).NotTo(HaveOccurred())
		answer = append(answer, one...)
	}
	Expect(string(answer)).To(HavePrefix("HTTP/1.1 200 OK\r\n"))
	return conn
}

var _ = Describe("A database that goes away", func() {
	It("makes reads and writes fail until it is back, while traffic continues", func() {
		db := startPostgres()
		g := serve("--database-url", db.URL("gatehouse"), "--access-log", "off")
		gw := gateway{g.API, freePort()}
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "shop.example", "blue")
		addProxy(g.API, "gw", gw.port, "shop")
		envoyFor("gw", g.XDSAddr)
		gw.expect("shop.example", "/", "blue")
		traffic, stop := gw.traffic("shop.example", 250)

		Expect(db.Stop()).To(Succeed())
		for _, call := range [][2]string{{"POST", "/upstream"}, {"GET", "/upstream"}, {"DELETE", "/upstream/blue"}, {"GET", "/service/dump/shop"}, {"GET", "/ready"}} {
			body := ""
			if call[0] == http.MethodPost {
				body = "Upstream_name=green&Upstream_ip=127.0.0.1&Upstream_port=80"
			}
			a, err := g.API.Do(limit(), call[0], call[1], formType, body)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusServiceUnavailable), "%v: %s", call, a.Body)
			Expect(a.Header.Get("Content-Type")).To(Equal("application/problem+json"))
			Expect(a.Header.Get("Retry-After")).To(MatchRegexp(`^[1-9]\d*$`))
			Expect(a.Body).To(ContainSubstring(`"code":"unavailable"`))
		}
		Expect(read(g.API, "/health")).To(Equal(`{"status":"ok"}`))
		away := traffic.Report().Requests
		Eventually(func() int { return traffic.Report().Requests }).Should(BeNumerically(">", away+250))

		Expect(db.Restart(limit())).To(Succeed())
		Eventually(func() (int, error) {
			a, err := g.API.Get(limit(), "/ready")
			return a.Status, err
		}).Should(Equal(http.StatusOK))
		addUpstream(g.API, backend("green"))
		addService(g.API, "new", "new.example", "green")
		post(g.API, "/proxy/gw/service/new")
		gw.expect("new.example", "/", "green")
		gw.expect("shop.example", "/", "blue")
		stop()
	})
})
