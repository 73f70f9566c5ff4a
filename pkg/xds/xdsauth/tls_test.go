package xdsauth_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// changed returns a function that makes a client certificate with a change.
func changed(change func(*x509.Certificate)) func(*port) testkit.Pair {
	return func(p *port) testkit.Pair {
		return issue(p.authority, testkit.CertificateOptions{Client: true, Change: change})
	}
}

var _ = Describe("A port with TLS", func() {
	It("serves a client whose certificate names the proxy", func() {
		p := newPort().open()
		p.connected(client(p.authority))
		p.connected(client(p.authority, "other", "edge"))
		between, err := p.authority.Authority("between")
		Expect(err).NotTo(HaveOccurred())
		pair := client(between)
		pair.Cert += between.PEM
		p.connected(pair)
		p.connected(changed(func(c *x509.Certificate) { c.KeyUsage = 0 })(p))
		Expect(p.tls.Open()).To(Equal(4))
	})

	DescribeTable("refuses in the handshake", func(pair func(p *port) testkit.Pair, reason, alert, logged string) {
		p := newPort().open()
		Expect(p.handshake(pair(p))).To(MatchError(ContainSubstring(alert)))
		Eventually(func() int64 { return p.refusals.Counts()[reason] }).Should(Equal(int64(1)))
		Eventually(p.log).Should(gbytes.Say(`level=WARN msg="xds client refused" address=127.0.0.1:\d+ reason=` + reason + ` err="[^"]*` + logged))
	},
		Entry("a certificate of an unknown authority", func(*port) testkit.Pair { return client(newTestAuthority("clients")) },
			"certificate", "unknown certificate authority", "signed by unknown authority"),
		Entry("a certificate of the port's own authority", func(p *port) testkit.Pair { return client(p.issuer) },
			"certificate", "unknown certificate authority", "signed by unknown authority"),
		Entry("one that has expired", func(p *port) testkit.Pair {
			return issue(p.authority, testkit.CertificateOptions{Client: true, NotAfter: p.clock.Add(-time.Minute)})
		}, "certificate_expired", "expired certificate", "has expired"),
		Entry("one that is not valid yet", func(p *port) testkit.Pair {
			return issue(p.authority, testkit.CertificateOptions{Client: true, NotBefore: p.clock.Add(time.Minute)})
		}, "certificate_expired", "expired certificate", "is not yet valid"),
		Entry("one for servers", func(p *port) testkit.Pair { return issue(p.authority, testkit.CertificateOptions{}) },
			"certificate", "bad certificate", "specifies an incompatible key usage"),
		Entry("one for another purpose", changed(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection} }),
			"certificate", "bad certificate", "specifies an incompatible key usage"),
		Entry("one for no purpose", changed(func(c *x509.Certificate) { c.ExtKeyUsage = nil }),
			"certificate", "bad certificate", "lacks the extended key usage clientAuth"),
		Entry("one that may not sign", changed(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyAgreement }),
			"certificate", "bad certificate", "has a key usage without digitalSignature"),
		Entry("one of an authority", changed(func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }),
			"certificate", "bad certificate", "is the certificate of an authority"),
		Entry("one that is revoked", func(p *port) testkit.Pair {
			pair := client(p.authority)
			p.write("crl", p.revoke(p.authority, client(p.authority), pair))
			return pair
		}, "certificate_revoked", "bad certificate", "is revoked"),
		Entry("one whose intermediate authority is revoked", func(p *port) testkit.Pair {
			between, err := p.authority.Authority("between")
			Expect(err).NotTo(HaveOccurred())
			pair := client(between)
			pair.Cert += between.PEM
			p.write("crl", p.revoke(p.authority, testkit.Pair{Cert: between.PEM}))
			return pair
		}, "certificate_revoked", "bad certificate", "is revoked"),
	)

	It("logs which certificate it refuses", func() {
		p := newPort().open()
		between, err := p.authority.Authority("between")
		Expect(err).NotTo(HaveOccurred())
		pair := client(between)
		pair.Cert += between.PEM
		p.write("crl", p.revoke(p.authority, testkit.Pair{Cert: between.PEM}))
		Expect(p.handshake(pair)).To(HaveOccurred())
		revoked := leafOf(testkit.Pair{Cert: between.PEM}).SerialNumber
		Eventually(p.log).Should(gbytes.Say(`detail="serial number %x of CN=clients, shown by the certificate of spiffe://gatehouse/proxy/edge, serial number %x of CN=between"`, revoked, leafOf(pair).SerialNumber))
		nameless := issue(newTestAuthority("another"), testkit.CertificateOptions{Client: true, Names: []string{}})
		Expect(p.handshake(nameless)).To(HaveOccurred())
		Eventually(p.log).Should(gbytes.Say(`detail="a certificate without a name, serial number %x of CN=another"`, leafOf(nameless).SerialNumber))
	})

	It("refuses anything but TLS 1.3, always with a log line", func() {
		p := newPort().open()
		old := p.config()
		old.MaxVersion = tls.VersionTLS12
		_, err := tls.DialWithDialer(testkit.Dialer(), "tcp", p.addr, old)
		Expect(err).To(MatchError(ContainSubstring("protocol version")))
		Eventually(func() int64 { return p.refusals.Counts()["handshake"] }).Should(Equal(int64(1)))
		Eventually(p.log).Should(gbytes.Say(`reason=handshake err="the handshake failed: tls: client offered only unsupported versions`))
	})

	It("requires a token from clients without a certificate, and refuses a bad credential even with a good one", func() {
		p := newPort().open()
		nobody := p.config()
		x, _ := p.dial(nobody)
		Expect(ending(x)).To(HavePrefix("Unauthenticated: the client does not authenticate"))
		x, _ = p.dial(nobody, grpc.WithPerRPCCredentials(bearer("ghx_wrong")))
		Expect(ending(x)).To(HavePrefix("Unauthenticated: the token is not valid here"))
		_, served := p.dial(nobody, grpc.WithPerRPCCredentials(bearer("ghx_edge")))
		Eventually(served).Should(BeClosed())
		p.connected(client(p.authority), grpc.WithPerRPCCredentials(bearer("ghx_edge")))
		x, _ = p.dial(p.config(client(p.authority)), grpc.WithPerRPCCredentials(bearer("ghx_wrong")))
		Expect(ending(x)).To(HavePrefix("Unauthenticated: the token is not valid here"))
		x, _ = p.dial(p.config(client(p.authority, "other")), grpc.WithPerRPCCredentials(bearer("ghx_edge")))
		Expect(ending(x)).To(HavePrefix(`PermissionDenied: certificate other and token laptop may not use the node id "edge"`))
		By("a certificate that names nobody requires a token")
		x, _ = p.dial(p.config(client(p.authority, "*.mesh")))
		Expect(ending(x)).To(HavePrefix(`PermissionDenied: certificate *.mesh may not use the node id "edge"`))
		p.connected(client(p.authority, "*.mesh"), grpc.WithPerRPCCredentials(bearer("ghx_edge")))
		Expect(string(p.log.Contents())).NotTo(ContainSubstring("ghx_"))
	})
})

var _ = Describe("The proof of a stream", func() {
	It("expires with the certificate, and not before", func() {
		p := newPort().open()
		short := p.connected(issue(p.authority, testkit.CertificateOptions{
			Client: true, URIs: []string{"spiffe://gatehouse/proxy/edge"}, NotAfter: p.clock.Add(10 * time.Minute),
		}))
		long := p.connected(client(p.authority))
		p.later(9 * time.Minute)
		Consistently(short.Ended()).WithTimeout(100 * time.Millisecond).ShouldNot(BeClosed())
		p.later(time.Minute + time.Second)
		Expect(ending(short)).To(HavePrefix("Unauthenticated: certificate spiffe://gatehouse/proxy/edge: the client certificate has expired"))
		Expect(long.Err()).NotTo(HaveOccurred())
		Expect(p.refusals.Counts()["ended"]).To(Equal(int64(1)))
	})

	DescribeTable("expires with an authority of the certificate", func(issue func(p *port, o testkit.CertificateOptions) (testkit.Pair, error)) {
		p := newPort().open() // its authority is valid for a day
		pair, err := issue(p, testkit.CertificateOptions{Client: true, URIs: []string{"spiffe://gatehouse/proxy/edge"}, NotAfter: p.clock.Add(48 * time.Hour)})
		Expect(err).NotTo(HaveOccurred())
		x := p.connected(pair)
		p.later(23 * time.Hour)
		Expect(x.Err()).NotTo(HaveOccurred())
		p.later(2 * time.Hour)
		Expect(ending(x)).To(ContainSubstring("has expired"))
	},
		Entry("that issued it", func(p *port, o testkit.CertificateOptions) (testkit.Pair, error) { return p.authority.Issue(o) }),
		Entry("between them", func(p *port, o testkit.CertificateOptions) (testkit.Pair, error) {
			between, err := p.authority.Authority("between")
			Expect(err).NotTo(HaveOccurred())
			pair, err := between.Issue(o)
			pair.Cert += between.PEM
			return pair, err
		}),
		Entry("above another one, which is valid longer", func(p *port, o testkit.CertificateOptions) (testkit.Pair, error) {
			between := newTestAuthority("between")
			longer, err := p.authority.CrossSign(between, o.NotAfter)
			Expect(err).NotTo(HaveOccurred())
			pair, err := between.Issue(o)
			pair.Cert += longer
			return pair, err
		}),
	)

	It("stays while one of two paths to the authorities is not revoked", func() {
		p := newPort()
		second := newTestAuthority("second")
		p.files["ca"] += second.PEM
		p.open()
		between := newTestAuthority("between")
		pair := client(between)
		var paths []testkit.Pair
		for _, authority := range []*testkit.Authority{p.authority, second} {
			cert, err := authority.CrossSign(between, p.clock.Add(time.Hour))
			Expect(err).NotTo(HaveOccurred())
			pair.Cert += cert
			paths = append(paths, testkit.Pair{Cert: cert})
		}
		x := p.connected(pair)
		first, other := p.revoke(p.authority, paths[0]), p.revoke(second, paths[1])
		p.write("crl", first)
		Expect(p.handshake(pair)).To(Succeed())
		p.write("crl", other)
		Expect(p.handshake(pair)).To(Succeed())
		Expect(x.Err()).NotTo(HaveOccurred())
		p.write("crl", first+other)
		Expect(ending(x)).To(ContainSubstring("the client certificate is revoked"))
		Expect(p.handshake(pair)).To(HaveOccurred())
	})

	It("is withdrawn by a revocation, and only then", func() {
		p := newPort().open()
		bad, good := client(p.authority), client(p.authority)
		x, y := p.connected(bad), p.connected(good)
		p.write("crl", "damaged")
		p.write("crl", p.revoke(newTestAuthority("clients"), bad))
		p.write("crl", "")
		Consistently(x.Ended()).WithTimeout(100 * time.Millisecond).ShouldNot(BeClosed())
		Expect(string(p.log.Contents())).To(ContainSubstring("it is not signed by the authority of this name"))
		p.write("crl", p.revoke(p.authority, bad))
		Expect(ending(x)).To(Equal("Unauthenticated: certificate spiffe://gatehouse/proxy/edge: the client certificate is revoked"))
		Expect(y.Err()).NotTo(HaveOccurred())
		By("a list in DER, and an outdated one, also revoke")
		block, _ := pem.Decode([]byte(p.revoke(p.authority, good)))
		p.write("crl", string(block.Bytes))
		Expect(ending(y)).To(ContainSubstring("is revoked"))
		p.later(2 * time.Hour)
		Eventually(p.log).Should(gbytes.Say("a revocation list of the xds port is out of date and stays in use"))
		Expect(p.handshake(good)).To(HaveOccurred())
	})

	It("ends when its authority is removed from the file, and not when another one is added", func() {
		p := newPort().open()
		next := newTestAuthority("next")
		old := p.connected(client(p.authority))
		Expect(p.handshake(client(next))).To(HaveOccurred())
		p.write("ca", p.authority.PEM+next.PEM)
		fresh := p.connected(client(next))
		Expect(old.Err()).NotTo(HaveOccurred())
		By("an unusable file changes nothing")
		p.write("ca", "nothing")
		Consistently(old.Ended()).WithTimeout(100 * time.Millisecond).ShouldNot(BeClosed())
		p.write("ca", next.PEM)
		Expect(ending(old)).To(HavePrefix("Unauthenticated: certificate spiffe://gatehouse/proxy/edge: the client certificate is not valid here"))
		Expect(fresh.Err()).NotTo(HaveOccurred())
		Expect(p.handshake(client(p.authority))).To(HaveOccurred())
	})

	It("ends on every stream that the change concerns", func() {
		p := newPort().open()
		x, y := p.connected(client(p.authority)), p.connected(client(p.authority))
		p.write("ca", newTestAuthority("next").PEM)
		Expect(ending(x)).To(ContainSubstring("the client certificate is not valid here"))
		Expect(ending(y)).To(ContainSubstring("the client certificate is not valid here"))
	})

	It("is withdrawn by a list that is there before its authority", func() {
		p := newPort().open()
		next := newTestAuthority("next")
		bad := client(next)
		p.write("crl", p.revoke(next, bad))
		Expect(string(p.log.Contents())).To(ContainSubstring("none of the client authorities has this name"))
		p.write("ca", p.authority.PEM+next.PEM)
		Expect(p.handshake(client(next))).To(Succeed())
		Expect(p.handshake(bad)).To(HaveOccurred())
	})

	It("is checked again when a connection opens a second stream", func() {
		p := newPort().open()
		pair := client(p.authority)
		conn := p.conn(pair)
		Expect(p.stream(conn)).To(Succeed())
		p.write("crl", p.revoke(p.authority, pair))
		Expect(p.stream(conn)).To(MatchError(ContainSubstring("the client certificate is revoked")))
		By("and the connection is closed")
		Eventually(conn.GetState).ShouldNot(Equal(connectivity.Ready))
	})

	It("ends together with its connection, so that the client presents its next certificate", func() {
		p := newPort().open()
		pair := client(p.authority)
		conn := p.conn(pair)
		ended := make(chan error, 1)
		rpc, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(context.Background())
		Expect(err).NotTo(HaveOccurred())
		Expect(rpc.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "edge"}, TypeUrl: snapshot.ClusterType})).To(Succeed())
		_, err = rpc.Recv()
		Expect(err).NotTo(HaveOccurred())
		go func() { _, err := rpc.Recv(); ended <- err }()
		p.write("crl", p.revoke(p.authority, pair))
		Eventually(ended).Should(Receive(MatchError(ContainSubstring("the client certificate is revoked"))), "it is told why")
		Eventually(conn.GetState).ShouldNot(Equal(connectivity.Ready))
	})
})

var _ = Describe("The certificate of the port", func() {
	shown := func(p *port) string {
		GinkgoHelper()
		conn, err := testkit.Bounded(tls.DialWithDialer(testkit.Dialer(), "tcp", p.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})) //nolint:gosec // it is looked at
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = conn.Close() }()
		return fmt.Sprintf("%x", conn.ConnectionState().PeerCertificates[0].Raw)
	}
	hexOf := func(pair testkit.Pair) string {
		block, _ := pem.Decode([]byte(pair.Cert))
		return fmt.Sprintf("%x", block.Bytes)
	}

	It("is read again when it changes, and this ends no stream", func() {
		p := newPort().open()
		x := p.connected(client(p.authority))
		first := shown(p)
		pair := p.renew() // the key first: with it alone the old pair stays
		Expect(shown(p)).To(And(Equal(hexOf(pair)), Not(Equal(first))))
		Eventually(p.log).Should(gbytes.Say(`level=WARN msg="new files of the xds port not used, what they held before stays" what=certificate .*they must be a PEM certificate chain and its key`))
		Eventually(p.log).Should(gbytes.Say(`level=INFO msg="new files of the xds port in use" what=certificate files="\[cert key\]"`))
		p.write("cert", "")
		p.look()
		Expect(shown(p)).To(Equal(hexOf(pair)))
		Expect(strings.Count(string(p.log.Contents()), "the user that runs the program needs to read it")).To(Equal(1))
		p.write("cert", pair.Cert)
		Consistently(x.Ended()).WithTimeout(100 * time.Millisecond).ShouldNot(BeClosed())
	})

	It("causes a warning before it expires, once a day, and then that it has expired, once a day", func() {
		p := newPort().open() // 32 days, of which 30 are left
		warned := func(text string) int {
			return strings.Count(string(p.log.Contents()), `level=WARN msg="the certificate of the xds port `+text)
		}
		p.later(22 * 24 * time.Hour)
		Expect(warned("ends soon")).To(Equal(0))
		p.later(time.Second)
		p.look()
		p.later(24*time.Hour - 1)
		Expect(warned(`ends soon" cert=cert end=`)).To(Equal(1))
		p.later(1)
		Expect(warned("ends soon")).To(Equal(2))
		p.later(7*24*time.Hour - time.Second)
		Expect(warned("ends soon")).To(Equal(3))
		Expect(warned("has expired")).To(Equal(0))
		p.later(1)
		Expect(warned("has expired")).To(Equal(1))
		p.look()
		p.later(24 * time.Hour)
		p.look()
		Expect(warned(`has expired: envoys that connect refuse it" cert=cert end=`)).To(Equal(2))
		Expect(warned("ends soon")).To(Equal(3))
	})

	It("causes a warning at the start too", func() {
		p := newPort()
		p.clock = p.clock.Add(29 * 24 * time.Hour)
		Expect(p.start()).To(Succeed())
		Expect(p.log).To(gbytes.Say("the certificate of the xds port ends soon"))
	})
})

var _ = Describe("The authorities of clients", func() {
	DescribeTable("are not read from a file that is not usable, and those before stay", func(text func(p *port) string, says string) {
		p := newPort().open()
		good := client(p.authority)
		p.write("ca", text(p))
		Expect(p.log).To(gbytes.Say(`level=WARN msg="new files of the xds port not used, what they held before stays" what="client authorities" files=\[ca\] err="?` + says))
		Expect(p.handshake(good)).To(Succeed())
		before := string(p.log.Contents())
		p.look()
		Expect(string(p.log.Contents())).To(Equal(before), "it says so once")
	},
		Entry("which is missing", func(*port) string { return "" }, "open ca: file does not exist: the user that runs the program needs to read it"),
		Entry("without PEM", func(*port) string { return "nothing" }, "the file has no certificate in PEM"),
		Entry("which is cut off", func(p *port) string { return p.authority.PEM + "-----BEGIN CERT" }, "the PEM of the file is damaged"),
		Entry("with the certificate of a client", func(p *port) string {
			return p.authority.PEM + issue(p.authority, testkit.CertificateOptions{Client: true, Subject: "laptop"}).Cert
		}, "certificate 2, of CN=laptop, is not that of an authority"),
		Entry("with a key", func(p *port) string { return p.authority.PEM + client(p.authority).Key }, "the file has a PRIVATE KEY among the certificates"),
		Entry("with a revocation list", func(p *port) string { return p.authority.PEM + p.revoke(p.authority) }, "the file has a X509 CRL among the certificates"),
		Entry("with a certificate that cannot be read", func(p *port) string {
			return p.authority.PEM + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
		}, "certificate 2 cannot be read: x509: "),
	)
})

var _ = Describe("A port", func() {
	DescribeTable("does not start without usable files, and names their settings", func(change func(p *port), says string) {
		p := newPort()
		change(p)
		Expect(p.start()).To(MatchError(HavePrefix(says)))
	},
		Entry("its certificate", func(p *port) { p.files["cert"] = "nothing" },
			"reading --xds-tls-cert cert and --xds-tls-key key: tls: failed to find any PEM data in certificate input: they must be a PEM certificate chain and its key"),
		Entry("its key, which it may not read", func(p *port) { p.denied = "key" },
			"reading --xds-tls-cert cert and --xds-tls-key key: open key: permission denied: the user that runs the program needs to read it"),
		Entry("neither of the two", func(p *port) { delete(p.files, "cert"); delete(p.files, "key") },
			"reading --xds-tls-cert cert and --xds-tls-key key: open cert: file does not exist: the user that runs the program needs to read it\nopen key: file does not exist"),
		Entry("the authorities of clients", func(p *port) { p.files["ca"] = "nothing" }, "reading --xds-tls-client-ca ca: the file has no certificate in PEM"),
		Entry("the revocation lists", func(p *port) { p.files["crl"] = p.revoke(newTestAuthority("another")) },
			"reading --xds-tls-client-crl crl: revocation list 1, of CN=another: none of the client authorities has this name"),
	)

	It("checks its files by itself, until it ends", func(ctx SpecContext) {
		p := newPort()
		Expect(p.start()).To(Succeed())
		running, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		before := gleak.Goroutines()
		go func() { done <- p.tls.Run(running) }()
		for _, text := range []string{"nothing", p.authority.PEM, "nothing again"} { // each after another check
			p.mu.Lock()
			p.files["ca"] = text
			p.mu.Unlock()
			Eventually(p.log).Should(gbytes.Say(`new files of the xds port (not used, what they held before stays|in use)" what="client authorities"`))
		}
		cancel()
		Eventually(done).Should(Receive(BeNil()))
		Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before))
	})
})
