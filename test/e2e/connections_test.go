package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/http2"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// client is a connection to the gateway.
type client struct {
	net.Conn
	in *bufio.Reader
}

func (g gateway) connect() *client {
	GinkgoHelper()
	small := func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}
	conn, err := (&net.Dialer{Control: small}).DialContext(limit(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(g.port)))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = conn.Close() }) // it may be closed already
	Expect(conn.SetDeadline(time.Now().Add(20 * time.Second))).To(Succeed())
	return &client{conn, bufio.NewReader(conn)}
}

// ask sends a request and returns the status of its answer, and whether the connection ends with it. 0 means that the
// connection was closed instead.
func (c *client) ask(path string, header ...string) (status int, last bool) {
	GinkgoHelper()
	request := "GET " + path + " HTTP/1.1\r\nHost: shop.example\r\n"
	for _, h := range header {
		request += h + "\r\n"
	}
	if _, err := io.WriteString(c, request+"\r\n"); err != nil {
		return 0, true
	}
	return c.answer()
}

func (c *client) answer() (status int, last bool) {
	GinkgoHelper()
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, true
	}
	_, err = io.Copy(io.Discard, res.Body)
	Expect(err).NotTo(HaveOccurred())
	return res.StatusCode, res.Close
}

// ends waits until the gateway closes the connection.
func (c *client) ends() {
	GinkgoHelper()
	_, err := io.Copy(io.Discard, c.in)
	Expect(err).To(Or(BeNil(), MatchError(syscall.ECONNRESET)))
}

// bound replaces the bounds of connections.
func (g gateway) bound(config string) {
	GinkgoHelper()
	a, err := g.api.Do(limit(), http.MethodPut, "/globalconfig/bounds?wait=applied&timeout=20s", "application/json",
		`{"globalconfig_type": "globalconfig_connections", "config": `+config+`}`)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.Body)
}

var _ = Describe("The connections of clients", func() {
	It("have bounds that a proxy states, and no request is lost when they change", func() {
		_, gw, _ := shop()
		traffic, stop := gw.traffic("shop.example", 200)
		gw.bound(`{"max_requests": 3, "idle_timeout": "2s", "headers_timeout": "1s", "request_timeout": "2s", "headers_kib": 8,
			"headers": 20, "max_streams": 7, "slow_reader_timeout": "1s", "max_connections": 1000, "max_age": "1h",
			"stream_idle_timeout": "100s", "drain_timeout": "1s"}`)
		await(traffic, 50)
		stop()

		By("max_requests")
		c := gw.connect()
		for _, last := range []bool{false, false, true} {
			status, closed := c.ask("/")
			Expect([]any{status, closed}).To(Equal([]any{200, last}))
		}
		c.ends()

		By("headers and headers_kib")
		for header, want := range map[string]int{
			"a: " + strings.Repeat("x", 7000): 200, "b: " + strings.Repeat("x", 9000): 431,
			strings.TrimSpace(strings.Repeat("c: x\r\n", 15)): 200, strings.TrimSpace(strings.Repeat("d: x\r\n", 25)): 431,
		} {
			status, _ := gw.connect().ask("/", header)
			Expect(status).To(Equal(want), header[:5])
		}

		By("idle_timeout, headers_timeout, request_timeout and slow_reader_timeout")
		idle, headers, body, reader := gw.connect(), gw.connect(), gw.connect(), gw.connect()
		began := time.Now()
		Expect(io.WriteString(headers, "GET / HTTP/1.1\r\nHost: shop.exa")).NotTo(BeZero())
		Expect(io.WriteString(body, "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 10\r\n\r\nxx")).NotTo(BeZero())
		Expect(io.WriteString(reader, "GET /?bytes=8000000 HTTP/1.1\r\nHost: shop.example\r\n\r\n")).NotTo(BeZero())
		for _, t := range []struct {
			of    *client
			after time.Duration
		}{{headers, time.Second}, {body, 2 * time.Second}} {
			status, _ := t.of.answer()
			Expect(status).To(Equal(408), t.after.String())
			Expect(time.Since(began)).To(BeNumerically(">", t.after*9/10))
		}
		idle.ends()
		Expect(time.Since(began)).To(BeNumerically(">", 1800*time.Millisecond))
		// It was closed before everything was read.
		got, err := io.Copy(io.Discard, reader.in)
		Expect(err).To(Or(BeNil(), MatchError(syscall.ECONNRESET)))
		Expect(got).To(BeNumerically("<", 8_000_000))

		By("keepalive")
		gw.bound(`{"max_streams": 7, "keepalive": "30s"}`)
		Eventually(func() string {
			c := gw.connect()
			if status, _ := c.ask("/"); status != 200 { // the ports open anew, which may reset a connection that arrives just then
				return strconv.Itoa(status)
			}
			return timers(gw.port, c.LocalAddr())
		}).Should(Equal("02"), "the kernel's timer of a keepalive")

		By("max_streams")
		c = gw.connect()
		Expect(io.WriteString(c, http2.ClientPreface)).NotTo(BeZero())
		f := http2.NewFramer(c, c.in)
		Expect(f.WriteSettings()).To(Succeed())
		frame, err := f.ReadFrame()
		Expect(err).NotTo(HaveOccurred())
		n, _ := frame.(*http2.SettingsFrame).Value(http2.SettingMaxConcurrentStreams)
		Expect(n).To(Equal(uint32(7)))
	})

	It("are bounded in number and age, and connections beyond that do not reach a backend", func() {
		_, gw, b := shop()
		gw.bound(`{"max_connections": 3}`)
		// A worker of Envoy may still have the listener from before when the change is acknowledged.
		Eventually(func() (statuses []int) {
			before := b.Requests()
			var open []*client
			for range 6 {
				c := gw.connect()
				status, _ := c.ask("/")
				statuses, open = append(statuses, status), append(open, c)
			}
			for _, c := range open {
				_ = c.Close() // it may be closed already
			}
			return append(statuses, b.Requests()-before)
		}).Should(Equal([]int{200, 200, 200, 0, 0, 0, 3}))

		By("max_age: it ends a connection although that is busy")
		gw.bound(`{"max_age": "1s", "drain_timeout": "1s"}`)
		Eventually(func() time.Duration {
			began, c := time.Now(), gw.connect()
			for last := false; !last; {
				var status int
				status, last = c.ask("/?delay=50ms")
				Expect(status).To(Equal(200))
			}
			return time.Since(began)
		}).Should(BeNumerically("~", 1200*time.Millisecond, 300*time.Millisecond))
	})

	It("are bounded for each address, by the rate-limit engine", func() {
		_, gw, b := shop()
		gw.bound(`{"new_per_client": "3/year"}`)
		clients := 2
		from := func(port int) (statuses []int) { // each time another address
			clients++
			address := fmt.Sprintf("127.0.1.%d", clients)
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
			for range 5 {
				conn, err := dialer.DialContext(limit(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
				Expect(err).NotTo(HaveOccurred())
				status, _ := (&client{conn, bufio.NewReader(conn)}).ask("/")
				Expect(conn.Close()).To(Succeed())
				statuses = append(statuses, status)
			}
			return statuses
		}
		Eventually(from).WithArguments(gw.port).Should(Equal([]int{200, 200, 200, 0, 0}))
		Expect(from(gw.port)).To(Equal([]int{200, 200, 200, 0, 0}))
		// Those of another mode count too, and the refused ones do not reach the backend.
		port, err := testkit.FreePort()
		Expect(err).NotTo(HaveOccurred())
		post(gw.api, "/service", "Service_Name=raw", "fqdn=*", "Mode=tcp", "Port="+strconv.Itoa(port))
		post(gw.api, "/service/raw/route", "Route_Name=all", "Route_prefix=/")
		post(gw.api, "/service/raw/route/all/upstream/"+b.Name)
		post(gw.api, "/proxy/gw/service/raw?wait=applied")
		before := b.Requests()
		Expect(from(port)).To(Equal([]int{200, 200, 200, 0, 0}))
		Expect(b.Requests() - before).To(BeEquivalentTo(3))
		a, err := gw.api.Do(limit(), http.MethodGet, "/proxy/gw/ratelimit", "", "")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Body).To(And(ContainSubstring("connections/bounds"), ContainSubstring(fmt.Sprintf("remote_address=127.0.1.%d", clients))))
	})
})

// timers returns the kernel's timer of the gateway's end of a connection (Documentation/networking/proc_net_tcp.rst of
// Linux).
func timers(port int, client net.Addr) string {
	GinkgoHelper()
	_, theirs, err := net.SplitHostPort(client.String())
	Expect(err).NotTo(HaveOccurred())
	n, err := strconv.Atoi(theirs)
	Expect(err).NotTo(HaveOccurred())
	table, err := os.ReadFile("/proc/net/tcp")
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) > 5 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) && strings.HasSuffix(f[2], fmt.Sprintf(":%04X", n)) {
			timer, _, _ := strings.Cut(f[5], ":")
			return timer
		}
	}
	return ""
}
