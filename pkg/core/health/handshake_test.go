package health_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
)

// link is a certificate with its key.
type link struct {
	*x509.Certificate
	key *ecdsa.PrivateKey
}

// sign makes a certificate; it is self-signed if by is nil.
func sign(by *link, name string, from, to time.Time, isCA bool, names ...string) *link {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: to, IsCA: isCA, BasicConstraintsValid: isCA,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.Certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	Expect(err).NotTo(HaveOccurred())
	cert, err := x509.ParseCertificate(der)
	Expect(err).NotTo(HaveOccurred())
	return &link{cert, key}
}

var _ = Describe("A handshake with an upstream", func() {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	from, to := now.Add(-24*time.Hour), now.Add(24*time.Hour)
	chain := func(list ...*link) (certs []*x509.Certificate) {
		for _, l := range list {
			certs = append(certs, l.Certificate)
		}
		return certs
	}
	expected := func(root *link) health.Expected {
		want := health.Expected{Verified: true, Roots: x509.NewCertPool(), RootsName: "the authorities of the system", Name: "a.test"}
		want.Roots.AddCert(root.Certificate)
		return want
	}

	It("shows what is wrong with the certificate", func() {
		root := sign(nil, "root", from, to, true)
		between := sign(root, "between", from, to, true)
		ended := sign(root, "ended", from, now.Add(-time.Hour), true)
		for _, c := range []struct {
			chain           []*x509.Certificate
			reason, message string
		}{
			{chain(sign(root, "", from, to, false, "a.test")), "", ""},
			{chain(sign(root, "", from, to, false, "*.test")), "", ""},
			{chain(sign(between, "", from, to, false, "a.test"), between), "", ""},
			{
				chain(sign(between, "", from, to, false, "a.test")), health.Authority,
				`its certificate is issued by "CN=between", which does not lead to the authorities of the system: name a secret with its authority in ` +
					"Upstream_validation_cacertificate, or complete the chain at the upstream",
			},
			{
				chain(sign(nil, "x", from, to, false, "a.test")), health.SelfSigned,
				"its certificate is self-signed, and is not among the authorities of the system: store it as a secret and name that in " +
					"Upstream_validation_cacertificate, or have it signed",
			},
			{
				chain(sign(root, "", from, now.Add(-time.Second), false, "a.test")), health.Expired,
				"its certificate expired on 2026-11-22 11:59:59 UTC: renew it at the upstream",
			},
			{
				chain(sign(root, "", now.Add(time.Minute), to, false, "a.test")), health.Expired,
				"its certificate is not valid before 2026-11-22 12:01:00 UTC: replace it at the upstream, or check the clocks",
			},
			{
				chain(sign(ended, "", from, to, false, "a.test"), ended), health.Expired,
				"the certificate of an authority that signed its certificate has expired: renew the chain at the upstream",
			},
			{
				chain(sign(root, "", from, to, false, "b.test", "10.0.0.1")), health.OtherName,
				"its certificate is for b.test, 10.0.0.1, not for a.test: set Upstream_validation_subjectname to one of its names, or renew it",
			},
			{
				chain(sign(root, "", from, to, false, "1.b", "2.b", "3.b", "4.b", "5.b", "6.b", "7.b")), health.OtherName,
				"its certificate is for 1.b, 2.b, 3.b, 4.b, 5.b and 2 more, not for a.test: set Upstream_validation_subjectname to one of its names, or renew it",
			},
			{
				chain(sign(root, "a.test", from, to, false)), health.OtherName,
				"its certificate names no host: renew it with a subject alternative name (SAN) a.test",
			},
		} {
			h := health.Handshake{Chain: c.chain}
			Expect(h.Find(expected(root), now)).To(Equal(health.Finding{Reason: c.reason, Message: c.message}))
			Expect(h.Find(health.Expected{}, now)).To(Equal(health.Finding{}), "every certificate is accepted")
		}
	})

	DescribeTable("shows other faults", func(h health.Handshake, want health.Expected, reason string) {
		Expect(h.Find(want, now).Reason).To(Equal(reason))
	},
		Entry("nothing", health.Handshake{}, health.Expected{HTTP2: true, Verified: true}, ""),
		Entry("no TLS", health.Handshake{NotTLS: true}, health.Expected{}, health.NoTLS),
		Entry("HTTP/2 refused", health.Handshake{Refused: true}, health.Expected{HTTP2: true}, health.NoHTTP2),
		Entry("HTTP/2 not chosen", health.Handshake{Chain: []*x509.Certificate{{}}}, health.Expected{HTTP2: true}, health.NoHTTP2),
		Entry("HTTP/2 chosen", health.Handshake{Chain: []*x509.Certificate{{}}, Protocol: "h2"}, health.Expected{HTTP2: true}, ""),
		Entry("a client certificate", health.Handshake{AsksForCertificate: true}, health.Expected{}, health.ClientCertificate),
		Entry("another client certificate", health.Handshake{AsksForCertificate: true}, health.Expected{ClientCertificate: "gw"}, health.ClientCertificate),
	)

	It("replaces only the reason that it explains", func() {
		found := health.Finding{Reason: health.Expired, Message: "it ended"}
		of := func(protocol string, own health.Own, c health.Counts) (string, string) {
			own.Resolved = true
			said := health.Of(health.Facts{Protocol: protocol, Own: &own, Counts: c, Finding: found, Checked: own.Failed})
			return said.Reason, said.Message
		}
		reason, message := of("tls", health.Own{}, health.Counts{Unconnected: 2, Causes: health.Causes{Certificate: 2}})
		Expect(reason + ": " + message).To(Equal("certificate_expired: it ended; 2 of its last 2 attempts to connect failed"))
		reason, message = of("tls", health.Own{Ejected: true}, health.Counts{Unconnected: 2, Causes: health.Causes{TLS: 2}})
		Expect(reason + ": " + message).To(Equal("certificate_expired: it ended; 2 of its last 2 attempts to connect failed; it gets no requests for a moment"))
		reason, message = of("tls", health.Own{Failed: true, CheckTLS: 1}, health.Counts{})
		Expect(reason + ": " + message).To(Equal("certificate_expired: its health check fails: it ended"))
		reason, _ = of("tls", health.Own{}, health.Counts{Failed: 2, Causes: health.Causes{ServerError: 2}})
		Expect(reason).To(Equal(health.ServerError))
		reason, _ = of("tls", health.Own{}, health.Counts{Unconnected: 2, Causes: health.Causes{Refused: 2}})
		Expect(reason).To(Equal(health.Refused))
	})

	DescribeTable("is made if it can show more", func(f health.Facts, want bool) {
		Expect(f.NeedsHandshake(health.Of(f))).To(Equal(want))
	},
		Entry("a failed connection", health.Facts{Protocol: "tls", Own: &health.Own{Resolved: true}, Counts: health.Counts{Unconnected: 1, Causes: health.Causes{TLS: 1}}}, true),
		Entry("a closed connection", health.Facts{Protocol: "h2", Own: &health.Own{Resolved: true}, Counts: health.Counts{Failed: 1, Causes: health.Causes{Closed: 1}}}, true),
		Entry("no TLS", health.Facts{Protocol: "http", Own: &health.Own{Resolved: true}, Counts: health.Counts{Failed: 1, Causes: health.Causes{Closed: 1}}}, false),
		Entry("an Envoy elsewhere", health.Facts{Protocol: "tls", Counts: health.Counts{Unconnected: 1}}, false),
		Entry("an answer of 5xx", health.Facts{Protocol: "tls", Own: &health.Own{Resolved: true}, Counts: health.Counts{Failed: 1, Causes: health.Causes{ServerError: 1}}}, false),
		Entry("a healthy upstream", health.Facts{Protocol: "tls", Own: &health.Own{Resolved: true}, Counts: health.Counts{Succeeded: 1}}, false),
	)
})
