package pki_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/pki"
)

var _ = Describe("Certificates", func() {
	var l lab
	var now time.Time
	BeforeEach(func() {
		now = time.Now().Truncate(time.Second)
		l = newLab(now)
		l.issue(now, "server", "", "gatehouse.example", "127.0.0.1", "::1")
		l.issue(now, "proxy", "edge")
		l.issue(now, "ratelimit", "")
	})

	It("are for one purpose and one name each", func() {
		ca := l.cert("ca.crt")
		Expect(ca.IsCA).To(BeTrue())
		Expect(ca.MaxPathLen).To(BeZero())
		Expect(ca.MaxPathLenZero).To(BeTrue())
		Expect(ca.KeyUsage).To(Equal(x509.KeyUsageCertSign | x509.KeyUsageCRLSign))
		Expect(ca.NotBefore).To(BeTemporally("==", now.Add(-5*time.Minute)))
		Expect(ca.NotAfter).To(BeTemporally("==", now.Add(3650*day)))

		server, proxy, engine := l.cert("server.crt"), l.cert("edge.crt"), l.cert("ratelimit.crt")
		Expect(server.DNSNames).To(Equal([]string{"gatehouse.example"}))
		Expect(server.IPAddresses).To(HaveLen(2))
		Expect(server.IPAddresses[0].Equal(net.IPv4(127, 0, 0, 1))).To(BeTrue())
		Expect(server.IPAddresses[1].Equal(net.IPv6loopback)).To(BeTrue())
		Expect(server.URIs).To(BeEmpty())
		Expect(server.ExtKeyUsage).To(Equal([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}))
		for cert, uri := range map[*x509.Certificate]string{proxy: "spiffe://gatehouse/proxy/edge", engine: "spiffe://gatehouse/ratelimit"} {
			Expect(cert.URIs).To(HaveLen(1))
			Expect(cert.URIs[0].String()).To(Equal(uri))
			Expect(cert.DNSNames).To(BeEmpty())
			Expect(cert.ExtKeyUsage).To(Equal([]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}))
		}
		for _, cert := range []*x509.Certificate{server, proxy, engine} {
			Expect(cert.IsCA).To(BeFalse())
			Expect(cert.BasicConstraintsValid).To(BeTrue())
			Expect(cert.KeyUsage).To(Equal(x509.KeyUsageDigitalSignature))
			Expect(cert.NotBefore).To(BeTemporally("==", now.Add(-5*time.Minute)))
			Expect(cert.NotAfter).To(BeTemporally("==", now.Add(90*day)))
			Expect(cert.PublicKey.(*ecdsa.PublicKey).Curve).To(Equal(elliptic.P256()))
			Expect(cert.SerialNumber.BitLen()).To(Equal(127))
			Expect(cert.Subject.CommonName).NotTo(BeElementOf("edge", "gatehouse.example"))
		}
	})

	It("satisfy openssl", func() {
		Expect(l.openssl("verify", "-x509_strict", "-CAfile", "ca.crt", "-purpose", "sslserver", "-verify_hostname", "gatehouse.example", "server.crt")).To(Equal("server.crt: OK\n"))
		Expect(l.openssl("verify", "-x509_strict", "-CAfile", "ca.crt", "-purpose", "sslserver", "-verify_ip", "127.0.0.1", "server.crt")).To(Equal("server.crt: OK\n"))
		Expect(l.openssl("verify", "-x509_strict", "-CAfile", "ca.crt", "-purpose", "sslclient", "edge.crt", "ratelimit.crt")).To(Equal("edge.crt: OK\nratelimit.crt: OK\n"))
		for _, name := range []string{"server", "edge", "ratelimit", "ca"} {
			Expect(l.openssl("x509", "-in", name+".crt", "-noout", "-pubkey")).To(Equal(l.openssl("pkey", "-in", name+".key", "-pubout")), name)
		}
		By("a certificate for one purpose is not valid for another")
		Expect(l.openssl("verify", "-CAfile", "ca.crt", "-purpose", "sslclient", "server.crt")).To(ContainSubstring("unsuitable certificate purpose"))
		Expect(l.openssl("verify", "-CAfile", "ca.crt", "-purpose", "sslserver", "edge.crt")).To(ContainSubstring("unsuitable certificate purpose"))
		Expect(l.openssl("verify", "-CAfile", "ca.crt", "-verify_hostname", "other.example", "server.crt")).To(ContainSubstring("hostname mismatch"))
	})

	It("are in the revocation list that openssl reads once they are revoked", func() {
		other := l.issue(now, "proxy", "other")
		verify := func() string {
			return l.openssl("verify", "-crl_check", "-CRLfile", "ca.crl", "-CAfile", "ca.crt", "edge.crt")
		}
		Expect(verify()).To(Equal("edge.crt: OK\n"))
		l.revoke(now, "edge.crt")
		Expect(verify()).To(ContainSubstring("certificate revoked"))
		l.revoke(now, other.Serial)
		Expect(verify()).To(ContainSubstring("certificate revoked"), "the list grows")
		text := l.openssl("crl", "-in", "ca.crl", "-noout", "-text", "-CAfile", "ca.crt")
		Expect(text).To(ContainSubstring("verify OK"))
		Expect(strings.ToLower(text)).To(MatchRegexp(`crl number: *\n *(0x)?3\n`))
		Expect(strings.ToLower(text)).To(ContainSubstring("serial number: " + other.Serial))
	})

	It("allow a TLS connection on which each side authenticates the other", func() {
		connect := func(server, client, host string) (*x509.Certificate, error) {
			GinkgoHelper()
			pool := x509.NewCertPool()
			pool.AddCert(l.cert("ca.crt"))
			load := func(name string) []tls.Certificate {
				pair, err := tls.LoadX509KeyPair(l.file(name+".crt"), l.file(name+".key"))
				Expect(err).NotTo(HaveOccurred())
				return []tls.Certificate{pair}
			}
			listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: load(server), ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert})
			Expect(err).NotTo(HaveOccurred())
			defer listener.Close()
			var s *tls.Conn
			served := make(chan error, 1)
			go func() {
				conn, err := listener.Accept()
				if err == nil {
					s = conn.(*tls.Conn)
					defer s.Close()
					err = s.Handshake()
				}
				served <- err
			}()
			c, err := testkit.Bounded(tls.DialWithDialer(testkit.Dialer(), "tcp", listener.Addr().String(), &tls.Config{Certificates: load(client), RootCAs: pool, ServerName: host}))
			if err == nil {
				defer c.Close()
			}
			if err = errors.Join(err, <-served); err != nil {
				return nil, err
			}
			return s.ConnectionState().PeerCertificates[0], nil
		}
		peer, err := connect("server", "edge", "gatehouse.example")
		Expect(err).NotTo(HaveOccurred())
		Expect(peer.URIs[0].String()).To(Equal("spiffe://gatehouse/proxy/edge"))
		_, err = connect("server", "edge", "::1")
		Expect(err).NotTo(HaveOccurred())
		_, err = connect("server", "edge", "other.example")
		Expect(err).To(HaveOccurred())
		_, err = connect("edge", "edge", "gatehouse.example")
		Expect(err).To(HaveOccurred(), "an Envoy's certificate is not valid for a server")
		_, err = connect("server", "server", "gatehouse.example")
		Expect(err).To(HaveOccurred(), "a server's certificate is not valid for an Envoy")
	})

	It("do not outlive their authority", func() {
		_, err := l.try(now.Add(3600*day), "proxy", "late", nil, nil)
		Expect(err).To(MatchError(And(ContainSubstring("its authority ends on "), ContainSubstring("fewer --days"))))
		_, err = l.try(now.Add(3560*day), "proxy", "late", nil, nil)
		Expect(err).NotTo(HaveOccurred())
	})

	It("have a common name that every program accepts", func() {
		l.issue(now, "proxy", strings.Repeat("a", 200))
		cert := l.cert(strings.Repeat("a", 200) + ".crt")
		Expect(cert.Subject.CommonName).To(Equal("Gatehouse proxy"))
		Expect(cert.URIs[0].String()).To(Equal("spiffe://gatehouse/proxy/" + strings.Repeat("a", 200)))
		Expect(l.cert("edge.crt").Subject.CommonName).To(Equal("Gatehouse proxy edge"))
	})
})

var _ = DescribeTable("An identity", func(purpose, name string, hosts []string, want string) {
	i, err := pki.NewIdentity(purpose, name, hosts)
	if err == nil {
		err = pki.Request{Identity: i, Lifetime: day}.Check()
	}
	if want == "" {
		Expect(err).NotTo(HaveOccurred())
		return
	}
	Expect(err).To(MatchError(ContainSubstring(want)))
},
	Entry("of a proxy", "proxy", "edge", nil, ""),
	Entry("of a proxy with every allowed character", "proxy", "E-d.g_e1", nil, ""),
	Entry("of a proxy called proxy", "proxy", "proxy", nil, ""),
	Entry("of a proxy without a name", "proxy", "", nil, "the proxy needs a name"),
	Entry("of a proxy with a slash", "proxy", "../edge", nil, "only the characters"),
	Entry("of a proxy with a line break", "proxy", "a\nb", nil, "only the characters"),
	Entry("of a proxy named like a directory", "proxy", "..", nil, `cannot have the name ".."`),
	Entry("of a proxy with 254 characters", "proxy", strings.Repeat("a", 254), nil, "at most 253"),
	Entry("of a proxy whose file name would be too long", "proxy", strings.Repeat("a", 241), nil, "choose another name for the files with --file NAME"),
	Entry("of a proxy called ca", "proxy", "ca", nil, "those of the authority (choose another name for the files with --file NAME)"),
	Entry("of a proxy called server", "proxy", "server", nil, "server.crt and server.key are for the certificate of the server (choose"),
	Entry("of a proxy called ratelimit", "proxy", "ratelimit", nil, "ratelimit.crt and ratelimit.key are for the certificate of the ratelimit (choose"),
	Entry("of a proxy with a host", "proxy", "edge", []string{"a.example"}, "--host is for a server"),
	Entry("of a rate-limit engine", "ratelimit", "", nil, ""),
	Entry("of a rate-limit engine with a name", "ratelimit", "x", nil, "only a proxy has a name"),
	Entry("of something else", "client", "", nil, `"client" is not one of server, proxy, ratelimit`),
	Entry("of a server without a host", "server", "", nil, "a server needs --host"),
	Entry("of a server with a name", "server", "x", []string{"a.example"}, "only a proxy has a name"),
	Entry("of a server in a container network", "server", "", []string{"gatehouse", "gate_house-1", "LOCALHOST", "*.cp.example", "10.0.0.1", "::1", "[::1]"}, ""),
	Entry("of a server with an empty host", "server", "", []string{""}, "is empty"),
	Entry("of a server with a port", "server", "", []string{"a.example:18000"}, "has a port"),
	Entry("of a server with a URL", "server", "", []string{"https://a.example"}, "give the host alone"),
	Entry("of a server that listens everywhere", "server", "", []string{"0.0.0.0"}, "an address to listen on"),
	Entry("of a server with a zone", "server", "", []string{"fe80::1%eth0"}, "has a zone"),
	Entry("of a server with a mistyped address", "server", "", []string{"10.0.0.256"}, "neither a DNS name nor an IP address"),
	Entry("of a server with an empty label", "server", "", []string{"a..example"}, "neither a DNS name nor an IP address"),
	Entry("of a server with a space", "server", "", []string{"a example"}, "neither a DNS name nor an IP address"),
	Entry("of a server with a trailing dot", "server", "", []string{"a.example."}, "ends with a dot"),
	Entry("of a server with non-ASCII characters", "server", "", []string{"bücher.example"}, "xn--"),
	Entry("of a server with a wildcard for a top-level domain", "server", "", []string{"*.example"}, "top-level domain"),
)
