package xdsauth_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/xdsauth"
)

var _ = Describe("A TLS client", func() {
	It("is refused unless it offers HTTP/2", func() {
		p := newPort().open()
		c := p.config(client(p.authority, "edge"))
		c.NextProtos = nil
		conn, err := testkit.Bounded(tls.DialWithDialer(testkit.Dialer(), "tcp", p.addr, c)) // with TLS 1.3 the client finishes first
		if err == nil {
			defer conn.Close()
			_, err = io.ReadAll(conn)
			Expect(err).To(Or(BeNil(), MatchError(syscall.ECONNRESET)))
		}
		Eventually(func() int64 { return p.refusals.Counts()["handshake"] }).Should(BeEquivalentTo(1))
		Eventually(p.log).Should(gbytes.Say(`does not ask for HTTP/2 with ALPN`))
	})
})

var _ = Describe("Connections without a proven identity", func() {
	const most = 512
	var refusals *server.Refusals
	var log *gbytes.Buffer
	var bound net.Listener
	var passed atomic.Int64 // of the clock
	// connection is a connection that the port has accepted, with what gRPC keeps of it.
	type connection struct {
		net.Conn
		info credentials.AuthInfo
	}
	var accepted chan connection
	BeforeEach(func() {
		log = gbytes.NewBuffer()
		refusals = server.NewRefusals(slog.New(slog.NewTextHandler(log, nil)))
		began := time.Now()
		passed.Store(0)
		now := func() time.Time { return began.Add(time.Duration(passed.Load())) }
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		bound, accepted = xdsauth.Bound(listener, refusals, now), make(chan connection, 5*most)
		done := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(done)
			for {
				conn, err := bound.Accept()
				if err != nil {
					return
				}
				secured, info, err := xdsauth.NewCredentials(nil, "").ServerHandshake(conn)
				Expect(err).NotTo(HaveOccurred())
				accepted <- connection{secured, info}
			}
		}()
		DeferCleanup(func() {
			Expect(bound.Close()).To(Succeed())
			<-done
			for len(accepted) > 0 {
				_ = (<-accepted).Close()
			}
		})
	})
	open := func(address string, n int) {
		GinkgoHelper()
		for range n {
			conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).Dial("tcp", bound.Addr().String())
			if errors.Is(err, syscall.ECONNRESET) {
				continue // it is closed already
			}
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() { _ = conn.Close() })
		}
	}
	refused := func() int64 { return refusals.Counts()["connections"] }
	// prove acts as a stream that is opened on a connection.
	prove := func(c connection, open bool, authorization ...string) {
		GinkgoHelper()
		ctx := metadata.NewIncomingContext(context.Background(), metadata.MD{"authorization": authorization})
		_, _ = xdsauth.New(xdsauth.Options{Open: open, Tokens: tokens{"ghx_edge": {Name: "laptop", Proxy: "edge"}}}).
			Authenticate(peer.NewContext(ctx, &peer.Peer{Addr: c.RemoteAddr(), AuthInfo: c.info}))
	}

	It("are limited for each address", func() {
		open("127.0.0.2", most)
		Eventually(accepted).Should(HaveLen(most))
		open("127.0.0.2", 3)
		Eventually(refused).Should(BeEquivalentTo(3))
		Eventually(log).Should(gbytes.Say(`address=127.0.0.2:\d+ reason=connections err="the address has more than 512 unauthenticated connections"`))
		open("127.0.0.3", 1)
		Eventually(accepted).Should(HaveLen(most + 1))

		By("until one is closed")
		first := <-accepted
		Expect(first.Close()).To(Succeed())
		_ = first.Close() // a second time
		open("127.0.0.2", 2)
		Eventually(refused).Should(BeEquivalentTo(4))
		Eventually(accepted).Should(HaveLen(most + 1))
	})

	It("are limited in all, and the oldest of any address makes room", func() {
		for _, address := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"} {
			open(address, most)
		}
		Eventually(accepted).Should(HaveLen(4 * most))
		open("127.0.0.6", 1)
		Eventually(refused).Should(BeEquivalentTo(1))
		Eventually(log).Should(gbytes.Say(`address=127.0.0.6:\d+ reason=connections err="there are more than 2048 unauthenticated connections"`))
		Expect(accepted).To(HaveLen(4 * most))

		By("one that proves its identity makes room")
		first := <-accepted
		defer first.Close()
		prove(first, true)
		open("127.0.0.6", 2)
		Eventually(refused).Should(BeEquivalentTo(2))
		Eventually(accepted).Should(HaveLen(4 * most))

		By("old ones make room")
		second := <-accepted
		defer second.Close()
		passed.Store(int64(2 * time.Second))
		open("127.0.0.6", 1)
		Eventually(refused).Should(BeEquivalentTo(3))
		Eventually(log).Should(gbytes.Say(`address=127.0.0.2:\d+ reason=connections err="there are more than 2048 unauthenticated connections"`))
		Eventually(accepted).Should(HaveLen(4 * most))
		_, err := second.Write([]byte{1})
		Expect(err).To(MatchError(net.ErrClosed))
	})

	It("make room for new ones when they are old, the oldest first", func() {
		open("127.0.0.2", most)
		Eventually(accepted).Should(HaveLen(most))
		first, second, third := <-accepted, <-accepted, <-accepted
		defer first.Close()
		defer second.Close()
		defer third.Close()
		closed := func(c connection) func() bool {
			return func() bool {
				_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
				_, err := c.Read(make([]byte, 1))
				return errors.Is(err, net.ErrClosed)
			}
		}
		passed.Store(int64(2*time.Second - 1))
		open("127.0.0.2", 1)
		Eventually(refused).Should(BeEquivalentTo(1))
		Expect(closed(first)()).To(BeFalse(), "it may still prove something")
		passed.Store(int64(2 * time.Second))
		open("127.0.0.2", 1)
		Eventually(closed(first)).Should(BeTrue())
		Eventually(accepted).Should(HaveLen(most - 3 + 1))
		Expect(refused()).To(BeEquivalentTo(2))
		Expect(closed(second)()).To(BeFalse())
		open("127.0.0.2", 1)
		Eventually(closed(second)).Should(BeTrue(), "also before gRPC closes the first")
		_ = first.Close() // as gRPC does: it does not free a slot a second time
		open("127.0.0.2", 1)
		Eventually(closed(third)).Should(BeTrue())
		Eventually(refused).Should(BeEquivalentTo(4))
	})

	It("count until the client proves its identity", func() {
		open("127.0.0.2", most)
		Eventually(accepted).Should(HaveLen(most))
		var all []connection
		for range 3 {
			all = append(all, <-accepted)
		}
		defer func() {
			for _, c := range all {
				_ = c.Close()
			}
		}()
		prove(all[0], false, "Bearer x")
		prove(all[0], false)
		open("127.0.0.2", 1)
		Eventually(refused).Should(BeEquivalentTo(1), "a bad proof does not count")
		prove(all[0], false, "Bearer ghx_edge")
		prove(all[0], false, "Bearer ghx_edge") // its second stream
		prove(all[1], true)
		open("127.0.0.2", 3)
		Eventually(refused).Should(BeEquivalentTo(2))
		Eventually(accepted).Should(HaveLen(most - 3 + 2))
	})
})
