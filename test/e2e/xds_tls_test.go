package e2e_test

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

const clusterTypeURL = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// keyring is a directory with the certificates of a control plane and its Envoys.
type keyring struct {
	dir             string
	server, clients *testkit.Authority
}

func newKeyring() *keyring {
	GinkgoHelper()
	k := &keyring{dir: GinkgoT().TempDir(), server: newAuthority("control plane"), clients: newAuthority("envoys")}
	k.renewServer()
	k.write("clients.crt", k.clients.PEM)
	return k
}

func newAuthority(name string) *testkit.Authority {
	GinkgoHelper()
	a, err := testkit.NewAuthority(name)
	Expect(err).NotTo(HaveOccurred())
	return a
}

func (k *keyring) path(name string) string { return filepath.Join(k.dir, name) }

func (k *keyring) write(name, content string) {
	GinkgoHelper()
	writeFile(k.path(name), content, true)
}

// renewServer issues a new certificate of its authority to the control plane.
func (k *keyring) renewServer() {
	GinkgoHelper()
	p, err := k.server.Issue(testkit.CertificateOptions{Names: []string{"127.0.0.1", "localhost"}})
	Expect(err).NotTo(HaveOccurred())
	k.write("server.key", p.Key)
	k.write("server.crt", p.Cert)
}

// args returns the settings of a control plane with TLS.
func (k *keyring) args(more ...string) []string {
	return append([]string{
		"--xds-tls-cert", k.path("server.crt"), "--xds-tls-key", k.path("server.key"), "--xds-tls-client-ca", k.path("clients.crt"),
	}, more...)
}

// issue makes a client certificate.
func (k *keyring) issue(by *testkit.Authority, o testkit.CertificateOptions) testkit.Pair {
	GinkgoHelper()
	o.Client = true
	p, err := by.Issue(o)
	Expect(err).NotTo(HaveOccurred())
	return p
}

// proxy makes a client certificate that names a proxy.
func (k *keyring) proxy(name string) testkit.Pair {
	GinkgoHelper()
	return k.issue(k.clients, testkit.CertificateOptions{URIs: []string{"spiffe://gatehouse/proxy/" + name}})
}

// credentials returns those of a client with certificates; without any, it presents none.
func (k *keyring) credentials(pairs ...testkit.Pair) grpc.DialOption {
	GinkgoHelper()
	return grpc.WithTransportCredentials(credentials.NewTLS(k.config(pairs...)))
}

func (k *keyring) config(pairs ...testkit.Pair) *tls.Config {
	GinkgoHelper()
	c := &tls.Config{RootCAs: k.server.Pool(), NextProtos: []string{"h2"}}
	for _, p := range pairs {
		pair, err := p.TLS()
		Expect(err).NotTo(HaveOccurred())
		// Whatever authorities the server names.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return c
}

// dial opens a stream of a node and subscribes to its clusters. The certificates must be valid for a
// handshake.
func (k *keyring) dial(addr, node string, pairs ...testkit.Pair) *testkit.XDSClient {
	GinkgoHelper()
	x, err := testkit.DialXDS(addr, node, nil, k.credentials(pairs...))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(x.Close)
	Expect(x.Subscribe(clusterTypeURL)).To(Succeed())
	return x
}

// envoy runs an Envoy whose bootstrap has a certificate.
func (k *keyring) envoy(proxy, xdsAddr string, p testkit.Pair) *testkit.Envoy {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	plain, err := testkit.PrintBootstrap(limit(), proxy, xdsAddr, "--admin-socket", filepath.Join(dir, "admin.sock"))
	Expect(err).NotTo(HaveOccurred())
	for name, content := range map[string]string{"ca.crt": k.server.PEM, "tls.crt": p.Cert, "tls.key": p.Key} {
		writeFile(filepath.Join(dir, name), content, true)
	}
	const place = "    connect_timeout: 1s\n"
	Expect(strings.Count(plain, place)).To(Equal(1))
	bootstrap := strings.Replace(plain, place, place+`    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context:
          tls_params: {tls_minimum_protocol_version: TLSv1_3, tls_maximum_protocol_version: TLSv1_3}
          alpn_protocols: [h2]
          tls_certificates:
          - certificate_chain: {filename: `+filepath.Join(dir, "tls.crt")+`}
            private_key: {filename: `+filepath.Join(dir, "tls.key")+`}
          validation_context:
            trusted_ca: {filename: `+filepath.Join(dir, "ca.crt")+`}
            match_typed_subject_alt_names:
            - {san_type: IP_ADDRESS, matcher: {exact: 127.0.0.1}}
`, 1)
	e, err := testkit.RunEnvoy(limit(), dir, bootstrap)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.Kill)
	return e
}

// refusalsByReason returns the log records about refused clients, by reason.
func refusalsByReason(g *testkit.Gatehouse) map[string][]map[string]any {
	lines := map[string][]map[string]any{}
	for _, r := range g.Records("xds client refused") {
		reason, _ := r["reason"].(string)
		lines[reason] = append(lines[reason], r)
	}
	return lines
}

// ending waits for the end of a stream and returns how it ended.
func ending(x *testkit.XDSClient) *status.Status {
	GinkgoHelper()
	Eventually(x.Ended()).Should(BeClosed())
	return status.Convert(x.Err())
}

var _ = Describe("The xDS port with TLS", func() {
	It("serves an Envoy with the certificate of its proxy", func() {
		k := newKeyring()
		g := serve(k.args()...)
		gw := gateway{g.API, freePort()}
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "*", "blue")
		addProxy(g.API, "edge", gw.port, "shop")
		k.envoy("edge", g.XDSAddr, k.proxy("edge"))
		gw.expect("shop.example", "/", "blue")
		Eventually(func() string { return read(g.API, "/status") }).Should(ContainSubstring("spiffe://gatehouse/proxy/edge"))

		By("an Envoy refuses a control plane of another authority")
		_, err := tls.DialWithDialer(testkit.Dialer(), "tcp", g.XDSAddr, &tls.Config{RootCAs: newAuthority("another control plane").Pool()})
		Expect(err).To(HaveOccurred())
		Eventually(func() []map[string]any { return refusalsByReason(g)["handshake"] }).Should(HaveLen(1))
		Expect(refusalsByReason(g)["handshake"][0]["err"]).To(ContainSubstring("bad certificate"))
	})

	It("drops the stream of a certificate that is revoked, or expires, and logs why", func() {
		k := newKeyring()
		list := func(pairs ...testkit.Pair) {
			GinkgoHelper()
			text, err := k.clients.Revoke(pairs...)
			Expect(err).NotTo(HaveOccurred())
			k.write("clients.crl", text)
		}
		list()
		g := serve(k.args("--xds-tls-client-crl", k.path("clients.crl"))...)
		revoked, good := k.proxy("edge"), k.dial(g.XDSAddr, "edge", k.proxy("edge"))
		x := k.dial(g.XDSAddr, "edge", revoked)
		list(revoked)
		Expect(ending(x).Message()).To(Equal("certificate spiffe://gatehouse/proxy/edge: the client certificate is revoked"))
		end := time.Now().Add(6 * time.Second)
		x = k.dial(g.XDSAddr, "inner", k.issue(k.clients, testkit.CertificateOptions{Names: []string{"inner"}, NotAfter: end}))
		Expect(ending(x).Message()).To(HavePrefix("certificate inner: the client certificate has expired"))
		Expect(time.Now()).To(BeTemporally(">=", end.Truncate(time.Second)))
		Expect(good.Err()).NotTo(HaveOccurred())

		By("a handshake with it is refused, logged once and counted each time")
		for range 3 {
			conn, err := testkit.Bounded(tls.DialWithDialer(testkit.Dialer(), "tcp", g.XDSAddr, k.config(revoked)))
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
				_ = conn.Close()
			}
			Expect(err).To(MatchError(ContainSubstring("bad certificate")))
		}
		Eventually(func() string { return read(g.API, "/metrics") }).Should(ContainSubstring(`gatehouse_xds_refusals_total{reason="certificate_revoked"} 3`))
		Eventually(func() int { return len(refusalsByReason(g)["certificate_revoked"]) }).Should(Equal(1))
	})

	It("lets the Envoy of standalone in through a socket, and no other one without proof", func() {
		k := newKeyring()
		g, gw, _ := shop(k.args()...)
		Expect(read(g.API, "/status")).To(And(ContainSubstring(`"identity":"socket of this program"`), ContainSubstring(`"address":"socket:`)))
		x := k.dial(g.XDSAddr, "gw")
		Expect(ending(x).Code()).To(Equal(codes.Unauthenticated))
		gw.expect("shop.example", "/", "blue")
	})
})
