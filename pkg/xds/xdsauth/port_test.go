package xdsauth_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/xdsauth"
)

// port is an xDS port with TLS, whose files are in memory and whose clock is the spec's.
type port struct {
	addr              string
	tls               *xdsauth.TLS
	refusals          *server.Refusals
	log               *gbytes.Buffer
	issuer, authority *testkit.Authority // issuer of its own certificate, authority of its clients'

	mu    sync.Mutex
	files map[string]string
	// denied is the file that may not be read.
	denied string
	clock  time.Time
}

func newTestAuthority(name string) *testkit.Authority {
	GinkgoHelper()
	a, err := testkit.NewAuthority(name)
	Expect(err).NotTo(HaveOccurred())
	return a
}

func newPort() *port {
	GinkgoHelper()
	p := &port{issuer: newTestAuthority("port"), authority: newTestAuthority("clients"), files: map[string]string{}, log: gbytes.NewBuffer()}
	p.clock = time.Now().Truncate(time.Second) // as times in certificates
	p.renew()
	p.files["ca"] = p.authority.PEM
	p.files["crl"] = p.revoke(p.authority)
	return p
}

// open serves until the end of the spec.
func (p *port) open() *port {
	GinkgoHelper()
	Expect(p.start()).To(Succeed())
	s := server.New(server.Options{
		Status: status.NewRegistry(), Log: slog.New(slog.DiscardHandler), Refusals: p.refusals,
		Authenticate: xdsauth.New(xdsauth.Options{Tokens: tokens{
			"ghx_edge": {Name: "laptop", Proxy: "edge", Revoked: make(chan struct{})},
		}}).Authenticate,
	})
	s.Publish(1, map[string]*snapshot.Snapshot{})
	g := s.GRPC(grpc.Creds(xdsauth.NewCredentials(p.tls, "edge")))
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	p.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- g.Serve(l) }()
	DeferCleanup(func() {
		g.Stop()
		Expect(<-done).To(Or(Succeed(), MatchError(grpc.ErrServerStopped)))
		Eventually(p.tls.Open).Should(BeZero(), "nothing is kept of streams that are gone")
	})
	return p
}

func (p *port) read(name string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, ok := p.files[name]
	if !ok {
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	}
	if name == p.denied {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EACCES}
	}
	return []byte(text), nil
}

func (p *port) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock
}

// start reads the files for the first time.
func (p *port) start() (err error) {
	log := slog.New(slog.NewTextHandler(p.log, nil))
	p.refusals = server.NewRefusals(log)
	p.tls, err = xdsauth.OpenTLS(xdsauth.TLSOptions{
		Cert: "cert", Key: "key", ClientCA: "ca", ClientCRL: "crl", ReadFile: p.read, Now: p.now, Refusals: p.refusals, Log: log,
	})
	return err
}

// write changes a file, or deletes it, and makes the port check its files.
func (p *port) write(name, text string) {
	p.mu.Lock()
	p.files[name] = text
	if text == "" {
		delete(p.files, name)
	}
	p.mu.Unlock()
	p.look()
}

// later moves the clock and makes the port check its files.
func (p *port) later(d time.Duration) {
	p.mu.Lock()
	p.clock = p.clock.Add(d)
	p.mu.Unlock()
	p.look()
}

func (p *port) look() {
	if p.tls != nil {
		p.tls.Check()
	}
}

// renew gives the port a new certificate.
func (p *port) renew() testkit.Pair {
	GinkgoHelper()
	pair, err := p.issuer.Issue(testkit.CertificateOptions{
		Names: []string{"127.0.0.1"}, NotBefore: p.clock.Add(-2 * 24 * time.Hour), NotAfter: p.clock.Add(30 * 24 * time.Hour),
	})
	Expect(err).NotTo(HaveOccurred())
	p.write("key", pair.Key)
	p.write("cert", pair.Cert)
	return pair
}

func (p *port) revoke(by *testkit.Authority, pairs ...testkit.Pair) string {
	GinkgoHelper()
	list, err := by.Revoke(pairs...)
	Expect(err).NotTo(HaveOccurred())
	return list
}

// issue makes the certificate of a client.
func issue(by *testkit.Authority, o testkit.CertificateOptions) testkit.Pair {
	GinkgoHelper()
	if o.URIs == nil && o.Names == nil {
		o.URIs = []string{"spiffe://gatehouse/proxy/edge"}
	}
	pair, err := by.Issue(o)
	Expect(err).NotTo(HaveOccurred())
	return pair
}

func client(by *testkit.Authority, names ...string) testkit.Pair {
	GinkgoHelper()
	return issue(by, testkit.CertificateOptions{Client: true, Names: names})
}

// bearer sends a token.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

// config returns the TLS configuration of a client with certificates; without any, it
// presents none.
func (p *port) config(pairs ...testkit.Pair) *tls.Config {
	GinkgoHelper()
	c := &tls.Config{RootCAs: p.issuer.Pool(), NextProtos: []string{"h2"}, ServerName: "127.0.0.1"}
	for _, pair := range pairs {
		shown, err := pair.TLS()
		Expect(err).NotTo(HaveOccurred())
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }
	}
	return c
}

// dial opens a stream as an Envoy of edge. Its handshake must succeed.
func (p *port) dial(c *tls.Config, options ...grpc.DialOption) (x *testkit.XDSClient, served <-chan struct{}) {
	GinkgoHelper()
	answered := make(chan struct{})
	once := sync.OnceFunc(func() { close(answered) })
	x, err := testkit.DialXDS(p.addr, "edge", func(r *testkit.XDSResponse) { _ = r.Ack(); once() },
		append(options, grpc.WithTransportCredentials(credentials.NewTLS(c)))...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(x.Close)
	_ = x.Subscribe(snapshot.ClusterType) // the end of the stream shows what is wrong
	return x, answered
}

// connected returns a client that is served.
func (p *port) connected(pair testkit.Pair, options ...grpc.DialOption) *testkit.XDSClient {
	GinkgoHelper()
	x, served := p.dial(p.config(pair), options...)
	Eventually(served).Should(BeClosed())
	return x
}

// handshake presents a certificate and returns the port's answer: nil, or an alert.
func (p *port) handshake(pair testkit.Pair) error {
	GinkgoHelper()
	conn, err := testkit.Bounded(tls.DialWithDialer(testkit.Dialer(), "tcp", p.addr, p.config(pair)))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	Expect(conn.SetReadDeadline(time.Now().Add(10 * time.Second))).To(Succeed())
	if _, err = conn.Read(make([]byte, 1)); err != nil { // HTTP/2's settings
		return fmt.Errorf("reading: %w", err)
	}
	return nil
}

// conn returns a connection for many streams.
func (p *port) conn(pair testkit.Pair) *grpc.ClientConn {
	GinkgoHelper()
	conn, err := grpc.NewClient(p.addr, grpc.WithTransportCredentials(credentials.NewTLS(p.config(pair))))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	return conn
}

// stream opens a stream and returns its error.
func (p *port) stream(conn *grpc.ClientConn) error {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rpc, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	Expect(err).NotTo(HaveOccurred())
	_ = rpc.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "edge"}, TypeUrl: snapshot.ClusterType}) // Recv returns what is wrong
	_, err = rpc.Recv()
	return err
}

// ending returns how a stream ends, as text.
func ending(x *testkit.XDSClient) string {
	GinkgoHelper()
	Eventually(x.Ended()).Should(BeClosed())
	s := grpcstatus.Convert(x.Err())
	return s.Code().String() + ": " + s.Message()
}
