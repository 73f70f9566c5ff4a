package xdsauth_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/peer"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/xdsauth"
)

// connect returns both ends of a TCP connection.
func connect() (client, accepted net.Conn) {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	client, err = testkit.Bounded(net.Dial("tcp", l.Addr().String()))
	Expect(err).NotTo(HaveOccurred())
	accepted, err = testkit.Bounded(l.Accept())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		_ = client.Close()
		_ = accepted.Close()
	})
	return client, accepted
}

var _ = DescribeTable("A handshake that fails", func(act func(client, accepted net.Conn), recorded int64, says string) {
	p := newPort()
	Expect(p.start()).To(Succeed())
	client, accepted := connect()
	done := make(chan struct{})
	go func() {
		defer close(done)
		act(client, accepted)
	}()
	_, _, err := xdsauth.NewCredentials(p.tls, "").ServerHandshake(accepted)
	Expect(err).To(HaveOccurred())
	_ = accepted.Close()
	<-done
	Expect(p.refusals.Counts()["handshake"]).To(Equal(recorded))
	Expect(string(p.log.Contents())).To(ContainSubstring(says))
},
	Entry("because the client closes, as a probe does, is not recorded", func(client, _ net.Conn) { _ = client.Close() }, int64(0), ""),
	Entry("because the client resets, as a probe does, is not recorded", func(client, _ net.Conn) {
		_ = client.(*net.TCPConn).SetLinger(0)
		_ = client.Close()
	}, int64(0), ""),
	Entry("because the port closes is not recorded", func(_, accepted net.Conn) { _ = accepted.Close() }, int64(0), ""),
	Entry("because the client does not speak TLS says what it needs", func(client, _ net.Conn) { _, _ = fmt.Fprint(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") },
		int64(1), "the client does not speak TLS: it needs a bootstrap for TLS (see gatehouse bootstrap --help)"),
	Entry("because the client does not trust the port says so", func(client, _ net.Conn) {
		_ = tls.Client(client, &tls.Config{RootCAs: newTestAuthority("another").Pool(), ServerName: "127.0.0.1"}).HandshakeContext(context.Background())
	}, int64(1), "the handshake failed: remote error: tls: bad certificate"),
)

// sessions counts the sessions that a client could resume.
type sessions struct{ n atomic.Int64 }

func (*sessions) Get(string) (*tls.ClientSessionState, bool)    { return nil, false }
func (s *sessions) Put(_ string, state *tls.ClientSessionState) { s.n.Add(1) }

var _ = Describe("A handshake", func() {
	It("gives the client no session, which would outlive what the certificate proves", func() {
		p := newPort().open()
		kept := &sessions{}
		c := p.config(client(p.authority))
		c.ClientSessionCache = kept
		conn, err := testkit.Bounded(tls.DialWithDialer(testkit.Dialer(), "tcp", p.addr, c))
		Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1)) // a session would come before HTTP/2's settings
		Expect(err).NotTo(HaveOccurred())
		Expect(kept.n.Load()).To(BeZero())
	})

	It("proves what its certificate says until that ends, once", func() {
		p := newPort()
		Expect(p.start()).To(Succeed())
		pair := client(p.authority)
		shown, accepted := connect()
		done := make(chan error, 1)
		go func() { done <- tls.Client(shown, p.config(pair)).HandshakeContext(context.Background()) }()
		_, info, err := xdsauth.NewCredentials(p.tls, "").ServerHandshake(accepted)
		Expect(err).NotTo(HaveOccurred())
		Expect(<-done).To(Succeed())
		ctx, cancel := context.WithCancel(context.Background())
		id, err := xdsauth.New(xdsauth.Options{}).Authenticate(peer.NewContext(ctx, &peer.Peer{AuthInfo: info}))
		Expect(err).NotTo(HaveOccurred())
		Expect(id.Proxies).To(Equal([]string{"edge"}))
		Expect(shown.SetReadDeadline(time.Now().Add(500 * time.Millisecond))).To(Succeed())
		_, err = shown.Read(make([]byte, 1))
		Expect(err).To(MatchError(os.ErrDeadlineExceeded), "the connection stays")
		p.write("crl", p.revoke(p.authority, pair))
		Expect(id.Ended).To(BeClosed())
		Expect(id.Why()).To(Equal("the client certificate is revoked"))
		p.write("crl", p.revoke(p.authority)+p.revoke(p.authority, pair)) // the stream is still open
		cancel()
		Eventually(p.tls.Open).Should(BeZero())
	})

	It("asks for no certificate if there are no authorities of clients", func() {
		p := newPort()
		var err error
		p.tls, err = xdsauth.OpenTLS(xdsauth.TLSOptions{Cert: "cert", Key: "key", ReadFile: p.read, Now: p.now, Log: slog.New(slog.DiscardHandler)})
		Expect(err).NotTo(HaveOccurred())
		shown, accepted := connect()
		done := make(chan error, 1)
		go func() {
			done <- tls.Client(shown, p.config(client(p.authority))).HandshakeContext(context.Background())
		}()
		_, info, err := xdsauth.NewCredentials(p.tls, "").ServerHandshake(accepted)
		Expect(err).NotTo(HaveOccurred())
		Expect(<-done).To(Succeed())
		_, err = xdsauth.New(xdsauth.Options{}).Authenticate(peer.NewContext(context.Background(), &peer.Peer{AuthInfo: info}))
		Expect(reasonOf(err)).To(Equal("none"))
	})
})
