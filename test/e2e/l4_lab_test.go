package e2e_test

import (
	"bufio"
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

// talker is a backend that speaks no HTTP: it says its name, and then repeats lines.
type talker struct {
	name string
	port int
	// accepted counts its connections.
	accepted *atomic.Int64
}

// talk runs a talker until the end of the spec; with a configuration, over TLS.
func talk(name string, config *tls.Config) talker {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	t := talker{name, l.Addr().(*net.TCPAddr).Port, &atomic.Int64{}}
	var all sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.accepted.Add(1)
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			all.Go(func() {
				defer func() { _ = conn.Close() }()
				var c io.ReadWriter = conn
				if config != nil {
					c = tls.Server(conn, config)
				}
				if _, err := io.WriteString(c, name+"\n"); err == nil {
					_, _ = io.Copy(c, c)
				}
			})
		}
	})
	DeferCleanup(func() {
		_ = l.Close()
		mu.Lock()
		for conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return t
}

// addTalker creates the upstream of a talker, under its name.
func addTalker(api testkit.API, t talker, fields ...string) {
	GinkgoHelper()
	post(api, "/upstream", append([]string{
		"Upstream_name=" + t.name, "Upstream_ip=127.0.0.1", "Upstream_port=" + strconv.Itoa(t.port),
	}, fields...)...)
}

// addL4 creates a service of a mode with a route to upstreams, and attaches it to proxy gw.
func addL4(api testkit.API, name, mode string, port int, fqdn string, upstreams ...string) {
	GinkgoHelper()
	post(api, "/service", "Service_Name="+name, "Mode="+mode, "Port="+strconv.Itoa(port), "fqdn="+fqdn)
	addRoute(api, name, "root", "/", "", upstreams...)
	applied(api, http.MethodPost, "/proxy/gw/service/"+name)
}

// talking is an open connection through the gateway to a talker.
type talking struct {
	net.Conn
	lines *bufio.Reader
}

// hear connects to a port, over TLS with a configuration, and returns who answers.
func hear(port int, config *tls.Config) (*talking, string, error) {
	var conn net.Conn
	conn, err := testkit.Bounded(testkit.Dialer().Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))))
	if err != nil {
		return nil, "", err
	}
	if config != nil {
		conn = tls.Client(conn, config)
	}
	h := &talking{conn, bufio.NewReader(conn)}
	name, err := h.lines.ReadString('\n')
	if err != nil {
		_ = conn.Close()
		return nil, "", fmt.Errorf("waiting for a name: %w", err)
	}
	return h, name[:len(name)-1], nil
}

// repeats sends a line and expects it back.
func (h *talking) repeats(line string) error {
	if _, err := io.WriteString(h, line+"\n"); err != nil {
		return err
	}
	back, err := h.lines.ReadString('\n')
	if err == nil && back != line+"\n" {
		err = fmt.Errorf("sent %q, received %q", line, back)
	}
	return err
}

// who returns who answers on a port, or why nobody does.
func who(port int, config *tls.Config) string {
	h, name, err := hear(port, config)
	if err != nil {
		return err.Error()
	}
	_ = h.Close()
	return name
}

// crowd has many connections to talkers: new ones all the time, and some that stay open.
type crowd struct {
	stop   chan struct{}
	end    func()
	all    sync.WaitGroup
	made   atomic.Int64
	mu     sync.Mutex
	failed []string
}

// gather starts a crowd. hear makes a connection.
func gather(hear func() (*talking, string, error)) *crowd {
	c := &crowd{stop: make(chan struct{})}
	c.end = sync.OnceFunc(func() {
		close(c.stop)
		c.all.Wait()
	})
	DeferCleanup(c.end)
	fail := func(what string, err error) {
		c.mu.Lock()
		c.failed = append(c.failed, time.Now().Format("05.000 ")+what+": "+err.Error())
		c.mu.Unlock()
	}
	for i := range 4 {
		c.all.Go(func() { // new connections
			for !c.isOver() {
				h, _, err := hear()
				if err != nil {
					fail("new", err)
					continue
				}
				if err := h.repeats("hello"); err != nil {
					fail("new, first line", err)
				}
				_ = h.Close()
				c.made.Add(1)
			}
		})
		c.all.Go(func() { // one that stays
			h, _, err := hear()
			if err != nil {
				fail("kept", err)
				return
			}
			defer func() { _ = h.Close() }()
			for n := 0; !c.isOver(); n++ {
				_ = h.SetDeadline(time.Now().Add(testkit.Patience))
				if err := h.repeats(fmt.Sprint(i, " ", n)); err != nil {
					fail("kept, line "+strconv.Itoa(n), err)
					return
				}
				select {
				case <-time.After(2 * time.Millisecond):
				case <-c.stop:
				}
			}
		})
	}
	return c
}

func (c *crowd) isOver() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// expectNone ends the crowd, once it has made some connections, and expects that none was lost.
func (c *crowd) expectNone() {
	GinkgoHelper()
	Eventually(c.made.Load).Should(BeNumerically(">", 20))
	c.end()
	_, _ = fmt.Fprintln(GinkgoWriter, "connections:", c.made.Load())
	Expect(c.failed).To(BeEmpty())
}

// echoDatagrams runs a backend that answers datagrams with a text and what they have, until the end of the spec.
func echoDatagrams(first string) talker {
	GinkgoHelper()
	return answerDatagrams(strings.TrimSpace(first), func(question []byte) []byte { return append([]byte(first), question...) })
}

// answerDatagrams runs a backend that answers datagrams until the end of the spec.
func answerDatagrams(name string, answer func(question []byte) []byte) talker {
	GinkgoHelper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	Expect(err).NotTo(HaveOccurred())
	t := talker{name, conn.LocalAddr().(*net.UDPAddr).Port, &atomic.Int64{}}
	var all sync.WaitGroup
	all.Go(func() {
		buffer := make([]byte, 65536)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			t.accepted.Add(1)
			_, _ = conn.WriteTo(answer(buffer[:n]), from)
		}
	})
	DeferCleanup(func() {
		_ = conn.Close()
		all.Wait()
	})
	return t
}

// session is a client of a UDP port, always from the same one.
type session struct{ *net.UDPConn }

// datagrams connects to a UDP port until the end of the spec.
func datagrams(port int) session {
	GinkgoHelper()
	conn, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	return session{conn}
}

// ask sends a datagram and returns the answer, or why there is none.
func (s session) ask(text string) string {
	_ = s.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := s.Write([]byte(text)); err != nil {
		return err.Error()
	}
	buffer := make([]byte, 65536)
	n, err := s.Read(buffer)
	if err != nil {
		return err.Error()
	}
	return string(buffer[:n])
}

// freeDatagramPort returns a UDP port without a listener. freePort reserves those of its own numbers.
func freeDatagramPort() int {
	GinkgoHelper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	Expect(conn.Close()).To(Succeed())
	return conn.LocalAddr().(*net.UDPAddr).Port
}
