package attack_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// echo is a backend that repeats what it receives, over TCP and UDP, and counts connections and datagrams.
type echo struct {
	port int
	seen atomic.Int64
}

func startEcho() *echo {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	c := &echo{port: l.Addr().(*net.TCPAddr).Port}
	u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: c.port})
	Expect(err).NotTo(HaveOccurred())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.seen.Add(1)
			all.Go(func() {
				_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			})
		}
	})
	all.Go(func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := u.ReadFrom(buffer)
			if err != nil {
				return
			}
			c.seen.Add(1)
			_, _ = u.WriteTo(buffer[:n], from)
		}
	})
	DeferCleanup(func() {
		_, _ = l.Close(), u.Close()
		all.Wait()
	})
	return c
}

// addL4 creates a service of a mode in front of a counter until the end of the spec, with fields of its upstream.
func (t target) addL4(ctx context.Context, c *echo, name, mode string, port int, fqdn string, fields ...string) {
	GinkgoHelper()
	t.add(ctx, "/upstream", append([]string{"Upstream_name=" + name, "Upstream_ip=127.0.0.1", "Upstream_port=" + strconv.Itoa(c.port)}, fields...)...)
	t.add(ctx, "/service", "Service_Name="+name, "Mode="+mode, "Port="+strconv.Itoa(port), "fqdn="+fqdn)
	t.add(ctx, "/service/"+name+"/route", "Route_Name=root", "Route_prefix=/")
	t.link(ctx, "/service/"+name+"/route/root/upstream/"+name)
	t.link(ctx, "/proxy/gw/service/"+name+"?wait=applied")
}

// echoes reports whether a connection or datagram from an address of this machine reaches the backend of a port. first
// is sent before what is repeated.
func echoes(network, from string, port int, first string) bool {
	GinkgoHelper()
	var local net.Addr = &net.TCPAddr{IP: net.ParseIP(from)}
	patience := testkit.Patience
	if network == "udp" {
		local, patience = &net.UDPAddr{IP: net.ParseIP(from)}, 300*time.Millisecond
	}
	conn, err := (&net.Dialer{LocalAddr: local}).Dial(network, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	Expect(conn.SetDeadline(time.Now().Add(patience))).To(Succeed())
	if _, err := io.WriteString(conn, first+"hello"); err != nil {
		return false
	}
	got := make([]byte, 64)
	n, _ := conn.Read(got)
	return n > 0
}

func datagramPort() int {
	GinkgoHelper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	Expect(conn.Close()).To(Succeed())
	return conn.LocalAddr().(*net.UDPAddr).Port
}

var _ = Describe("A service that does not decrypt", Ordered, func() {
	var t secureTarget
	var vault *echo

	BeforeAll(func(ctx SpecContext) {
		t = startSecure(ctx)
		vault = startEcho()
		t.addL4(ctx, vault, "vault", "tls", 0, "*.test")
	}, NodeTimeout(2*time.Minute))

	It("gets no connection for a host of another service, however its name is written", func(ctx SpecContext) {
		for _, try := range some(14, serverNames()) {
			if name := strings.Join(try.names, ""); name == "other.test" || name == "wild.test" {
				continue // which are below *.test, and nobody else's
			}
			Expect(t.shown(ctx, try.names)).To(Equal(try.want), try.what)
		}
		Expect(t.shown(ctx, []string{"bank.test"})).To(Equal("bank.test"), "which verifies clients")
		Expect(vault.seen.Load()).To(BeZero())
	}, SpecTimeout(2*time.Minute))

	It("is not reached by a request for its name, and its name reaches no other service", func(ctx SpecContext) {
		conn, err := (&tls.Dialer{Config: &tls.Config{ServerName: "open.test", RootCAs: t.authority.Pool(), MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", t.addr)
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = conn.Close() }()
		Expect(conn.SetDeadline(time.Now().Add(testkit.Patience))).To(Succeed())
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n")
		Expect(err).NotTo(HaveOccurred())
		answer, err := io.ReadAll(conn)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(answer)).To(HavePrefix("HTTP/1.1 " + strconv.Itoa(http.StatusMisdirectedRequest)))
		Expect(vault.seen.Load()).To(BeZero())
		_, err = (&tls.Dialer{Config: &tls.Config{ServerName: "other.test", MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", t.addr)
		Expect(err).To(MatchError(ContainSubstring("unexpected")), "the vault repeats the handshake")
		Expect(vault.seen.Load()).To(Equal(int64(1)))
	}, SpecTimeout(time.Minute))

	It("cannot take the host of another service", func(ctx SpecContext) {
		for _, host := range []string{"open.test", "BANK.test", "*.wild.test"} {
			a, err := t.API.Post(ctx, "/service", "Service_Name=thief", "Mode=tls", "fqdn="+host)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
			a, err = t.API.Post(ctx, "/proxy/gw/service/thief")
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
			_, err = t.API.Delete(ctx, "/service/thief")
			Expect(err).NotTo(HaveOccurred())
		}
	}, SpecTimeout(time.Minute))
})

var _ = Describe("Allowed addresses of a port", func() {
	It("are those of the connection, and others reach no backend and get no byte", func(ctx SpecContext) {
		port, datagrams := must(testkit.FreePort()), datagramPort()
		tcp, udp := startEcho(), startEcho()
		gw.add(ctx, "/filter", "Filter_name=l4", "Filter_type=vh_filter_ipaccess", `Filter_config={"allow":["127.0.0.0/29"],"deny":["127.0.0.3"]}`)
		gw.addL4(ctx, tcp, "l4-tcp", "tcp", port, "*")
		gw.addL4(ctx, udp, "l4-udp", "udp", datagrams, "*")
		gw.link(ctx, "/service/l4-tcp/filter/l4?wait=applied")
		gw.link(ctx, "/service/l4-udp/route/root/filter/l4?wait=applied")
		Eventually(func() bool { return echoes("tcp", "127.0.0.3", port, "") || echoes("udp", "127.0.0.3", datagrams, "") }).
			WithContext(ctx).Should(BeFalse(), "by a worker that has the listener from before")
		seen := tcp.seen.Load() + udp.seen.Load()
		for _, from := range []string{"127.0.0.3", "127.0.0.9", "127.1.0.1"} {
			for _, first := range []string{"", "PROXY TCP4 127.0.0.1 127.0.0.1 80 80\r\n", "X-Forwarded-For: 127.0.0.1\r\n"} {
				Expect(echoes("tcp", from, port, first)).To(BeFalse(), from+first)
			}
			Expect(echoes("udp", from, datagrams, "")).To(BeFalse(), from)
		}
		Expect(tcp.seen.Load() + udp.seen.Load()).To(Equal(seen))
		Expect(echoes("tcp", "127.0.0.2", port, "")).To(BeTrue())
		Expect(echoes("udp", "127.0.0.2", datagrams, "")).To(BeTrue())
	}, SpecTimeout(time.Minute))

	It("are those of the PROXY protocol, which only load balancers may send", func(ctx SpecContext) {
		own := startTarget(ctx)
		port, c := must(testkit.FreePort()), startEcho()
		own.addL4(ctx, c, "db", "tcp", port, "*")
		own.add(ctx, "/filter", "Filter_name=office", "Filter_type=vh_filter_ipaccess", `Filter_config={"allow":["203.0.113.0/24"]}`)
		own.link(ctx, "/service/db/filter/office")
		own.add(ctx, "/globalconfig", "globalconfig_name=lb", "globalconfig_type=globalconfig_proxyprotocol", `config={"from":["127.0.0.5"]}`)
		const inside, outside = "PROXY TCP4 203.0.113.7 127.0.0.1 80 80\r\n", "PROXY TCP4 198.51.100.7 127.0.0.1 80 80\r\n"
		// Until the list arrives, and in a worker that has the listener from before, all addresses are served.
		Eventually(func(g Gomega) {
			g.Expect(echoes("tcp", "127.0.0.5", port, inside)).To(BeTrue())
			before := c.seen.Load()
			g.Expect(echoes("tcp", "127.0.0.5", port, outside)).To(BeFalse())
			g.Expect(echoes("tcp", "127.0.0.5", port, strings.Repeat("hello ", 50))).To(BeFalse())
			g.Expect(echoes("tcp", "127.0.0.1", port, inside)).To(BeFalse(), "whoever may not send the protocol")
			g.Expect(c.seen.Load()).To(Equal(before))
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(time.Minute))
})

var _ = Describe("A flood of a port", func() {
	It("has a bound: more connections are closed, and more sessions of UDP get no byte", func(ctx SpecContext) {
		port, datagrams := must(testkit.FreePort()), datagramPort()
		tcp, udp := startEcho(), startEcho()
		gw.addL4(ctx, tcp, "few-tcp", "tcp", port, "*", "Upstream_max_connections=2")
		gw.addL4(ctx, udp, "few-udp", "udp", datagrams, "*", "Upstream_max_connections=2")
		open := func(network string, port int) (net.Conn, bool) {
			conn, err := testkit.Bounded(net.Dial(network, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))))
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(conn.Close)
			if network == "udp" {
				Expect(conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))).To(Succeed())
			}
			_, _ = io.WriteString(conn, "hello")
			got := make([]byte, 64)
			n, _ := conn.Read(got)
			Expect(n).To(Or(BeZero(), Equal(len("hello"))), "no answer is larger than the question")
			return conn, n > 0
		}
		for network, port := range map[string]int{"tcp": port, "udp": datagrams} {
			for i := range 4 {
				_, answered := open(network, port)
				Expect(answered).To(Equal(i < 2), fmt.Sprint(network, " ", i))
			}
		}
	}, SpecTimeout(time.Minute))
})

func must(port int, err error) int {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return port
}
