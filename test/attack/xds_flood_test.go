package attack_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// unproven is the maximum number of connections of one client that have not
// authenticated (pkg/xds/xdsauth).
const unproven = 512

// flood opens connections from an address and calls begin with each, until one is closed
// immediately or their number is reached. It returns those that are open.
func (l *xdsLab) flood(ctx context.Context, address string, most int, begin func(net.Conn) error) (open []net.Conn, refused int) {
	GinkgoHelper()
	for range most {
		conn, err := from(address).DialContext(ctx, "tcp", l.XDSAddr)
		if err == nil {
			err = begin(conn)
		}
		if err != nil {
			refused++
			continue
		}
		DeferCleanup(func() { _ = conn.Close() }) // the port may have closed it
		open = append(open, conn)
	}
	return open, refused
}

// isClosed reports whether the port has closed a connection on which no answer is due.
func isClosed(conn net.Conn) bool {
	GinkgoHelper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	Expect(err).NotTo(HaveOccurred())
	closed := false
	err = raw.Control(func(fd uintptr) { // a read with a deadline may end before it has looked
		for b := make([]byte, 1024); ; {
			n, err := syscall.Read(int(fd), b) //nolint:gosec // a file descriptor
			if n <= 0 && !errors.Is(err, syscall.EINTR) {
				closed = !errors.Is(err, syscall.EAGAIN)
				return
			}
		}
	})
	Expect(err).NotTo(HaveOccurred())
	return closed
}

// countOpen counts the connections that the port has not closed.
func countOpen(conns []net.Conn) (open int) {
	for _, conn := range conns {
		if !isClosed(conn) {
			open++
		}
	}
	return open
}

// descriptors returns how many files and connections the program has open.
func (l *xdsLab) descriptors() int {
	GinkgoHelper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", l.Pid()))
	Expect(err).NotTo(HaveOccurred())
	return len(list)
}

var _ = Describe("A flood of connections at the xDS port", func() {
	var l *xdsLab
	BeforeEach(func(ctx SpecContext) { l = startXDSLab(ctx) }, NodeTimeout(2*time.Minute))
	// served checks what another client receives on a new connection.
	served := func(ctx context.Context, address string) {
		GinkgoHelper()
		conn := l.dial(address, l.issued("edge"))
		defer conn.Close()
		Expect(ask(ctx, conn, callADS, "edge")).To(BeNil())
	}
	hello := func() string {
		here, there := net.Pipe()
		defer here.Close()
		go func() { _ = tls.Client(there, l.tlsConfig(nil)).Handshake(); _ = there.Close() }()
		b := make([]byte, 4096)
		n, err := here.Read(b)
		Expect(err).NotTo(HaveOccurred())
		return string(b[:n])
	}

	DescribeTable("delays nobody else, and uses a limited part of the program", func(ctx SpecContext, begin func(net.Conn) error) {
		before := l.descriptors()
		if begin == nil {
			half := hello()[:100]
			begin = func(conn net.Conn) error { _, err := conn.Write([]byte(half)); return err }
		}
		conns, refused := l.flood(ctx, "127.0.9.1", 2*unproven, begin)
		Eventually(func() int { return countOpen(conns) }).Should(BeNumerically("<=", unproven))
		Expect(l.descriptors()).To(BeNumerically("<=", before+unproven+50))
		Eventually(func() int { return l.refusals(ctx, "connections") }).Should(BeNumerically(">=", unproven-refused))
		Eventually(l.refusedFrom).WithArguments("127.0.9.1").Should(ContainElement("connections"))
		Expect(strings.Count(strings.Join(l.refusedFrom("127.0.9.1"), " "), "connections")).To(Equal(1))
		served(ctx, "127.0.9.2")
		Expect(l.served("/")).To(Equal("blue"))

		By("and leaves nothing behind")
		for _, conn := range conns {
			_ = conn.Close()
		}
		Eventually(l.descriptors).Should(BeNumerically("<=", before+50))
		served(ctx, "127.0.9.1")
	},
		Entry("that send nothing", SpecTimeout(2*time.Minute), func(net.Conn) error { return nil }),
		Entry("with half a handshake", SpecTimeout(2*time.Minute), nil),
	)

	It("of TLS clients without credentials delays nobody else", func(ctx SpecContext) {
		config := l.tlsConfig(nil)
		conns, _ := l.flood(ctx, "127.0.9.1", unproven+100, func(conn net.Conn) error {
			t := tls.Client(conn, config)
			if err := t.HandshakeContext(ctx); err != nil {
				return err
			}
			_, err := t.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
			return err
		})
		// Those that were opened long ago may be closed by now, which makes room.
		Expect(countOpen(conns)).To(BeNumerically("<=", unproven))
		served(ctx, "127.0.9.2")
	}, SpecTimeout(2*time.Minute))

	It("does not count clients that have authenticated", func(ctx SpecContext) {
		for range 20 {
			s := openStream(context.Background(), l.dial("127.0.9.1", l.issued("edge")))
			s.say(firstRequest("edge", clusterType))
			_, err := s.Recv()
			Expect(err).NotTo(HaveOccurred())
		}
		before := l.descriptors()
		conns, refused := l.flood(ctx, "127.0.9.1", unproven-1, func(net.Conn) error { return nil })
		Expect(refused).To(BeZero())
		Eventually(l.descriptors).Should(BeNumerically(">=", before+len(conns)))
		served(ctx, "127.0.9.1")
		Expect(l.refusals(ctx, "connections")).To(BeZero())
	}, SpecTimeout(2*time.Minute))

	It("ends slow handshakes", func(ctx SpecContext) {
		conn, err := from("127.0.9.1").DialContext(ctx, "tcp", l.XDSAddr)
		Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		text := hello()
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for i := 0; !isClosed(conn); i++ { // a byte at a time, which takes minutes
			Expect(i).To(BeNumerically("<", len(text)))
			_, _ = conn.Write([]byte{text[i]}) // it may be closed
			select {
			case <-tick.C:
			case <-ctx.Done():
				Fail("the port waits for the whole handshake")
			}
		}
		served(ctx, "127.0.9.1")
	}, SpecTimeout(time.Minute))
})
