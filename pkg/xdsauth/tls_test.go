package xdsauth_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
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
		Expect(p.tls.Open()).To(Equal(3))
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

	It("refuses anything but TLS 1.3, always with a log line", func() {
		p := newPort().open()
		old := p.config()
		old.MaxVersion = tls.VersionTLS12
		_, err := tls.DialWithDialer(testkit.Dialer(), "tcp", p.addr, old)
		Expect(err).To(MatchError(ContainSubstring("protocol version")))
		Eventually(func() int64 { return p.refusals.Counts()["handshake"] }).Should(Equal(int64(1)))
		Eventually(p.log).Should(gbytes.Say(`reason=handshake err="the handshake failed: tls: client offered only unsupported versions`))
		plain, err := testkit.Bounded(net.Dial("tcp", p.addr))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(plain.Close)
		Expect(fmt.Fprint(plain, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")).To(BeNumerically(">", 0))
		Eventually(func() int64 { return p.refusals.Counts()["handshake"] }).Should(Equal(int64(2)))
	})

	It("requires a token from clients without a certificate, and refuses a bad credential even with a good one", func() {
		p := newPort().open()
		nobody := p.config()
		x, _ := p.dial(nobody)
		Expect(ending(x)).To(HavePrefix("Unauthenticated: the client does not prove who it is"))
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

	It("expires with the authority of the certificate", func() {
		p := newPort()
		between, err := p.authority.Authority("between") // for a day
		Expect(err).NotTo(HaveOccurred())
		p.open()
		pair := issue(between, testkit.CertificateOptions{Client: true, NotAfter: p.clock.Add(48 * time.Hour)})
		pair.Cert += between.PEM
		x := p.connected(pair)
		p.later(23 * time.Hour)
		Expect(x.Err()).NotTo(HaveOccurred())
		p.later(2 * time.Hour)
		Expect(ending(x)).To(ContainSubstring("has expired"))
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
		for _, text := range []string{"", "nothing", next.PEM + "-----BEGIN CERT", next.PEM + client(next).Cert, client(next).Key} {
			p.write("ca", text)
		}
		Expect(strings.Count(string(p.log.Contents()), `msg="new files of the xds port not used, what they held before stays" what="client authorities"`)).To(Equal(5))
		Consistently(old.Ended()).WithTimeout(100 * time.Millisecond).ShouldNot(BeClosed())
		p.write("ca", next.PEM)
		Expect(ending(old)).To(HavePrefix("Unauthenticated: certificate spiffe://gatehouse/proxy/edge: the client certificate is not valid here"))
		Expect(fresh.Err()).NotTo(HaveOccurred())
		Expect(p.handshake(client(p.authority))).To(HaveOccurred())
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
		Eventually(p.log).Should(gbytes.Say(`level=INFO msg="new files of the xds port in use" what=certificate`))
		p.write("cert", "")
		p.look()
		Expect(shown(p)).To(Equal(hexOf(pair)))
		Expect(strings.Count(string(p.log.Contents()), "the user that runs the program needs to read it")).To(Equal(1))
		p.write("cert", pair.Cert)
		Consistently(x.Ended()).WithTimeout(100 * time.Millisecond).ShouldNot(BeClosed())
	})

	It("causes a warning before it expires, once a day", func() {
		p := newPort().open() // 30 days
		p.later(15 * 24 * time.Hour)
		Expect(string(p.log.Contents())).NotTo(ContainSubstring("ends soon"))
		p.later(9 * 24 * time.Hour)
		p.look()
		p.later(23 * time.Hour)
		Expect(strings.Count(string(p.log.Contents()), `msg="the certificate of the xds port ends soon"`)).To(Equal(1))
		p.later(time.Hour)
		Expect(strings.Count(string(p.log.Contents()), `msg="the certificate of the xds port ends soon"`)).To(Equal(2))
		p.later(10 * 24 * time.Hour)
		Eventually(p.log).Should(gbytes.Say("the certificate of the xds port has expired: envoys that connect refuse it"))
	})
})
