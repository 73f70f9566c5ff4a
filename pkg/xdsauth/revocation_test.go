package xdsauth_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// listWith returns a list of the authority with a change.
func (p *port) listWith(by *testkit.Authority, change func(*x509.RevocationList)) string {
	GinkgoHelper()
	list, err := by.RevokeWith(change)
	Expect(err).NotTo(HaveOccurred())
	return list
}

// leafOf returns the certificate of a pair.
func leafOf(pair testkit.Pair) *x509.Certificate {
	GinkgoHelper()
	block, _ := pem.Decode([]byte(pair.Cert))
	cert, err := x509.ParseCertificate(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	return cert
}

func extension(critical bool, id ...int) pkix.Extension {
	return pkix.Extension{Id: id, Critical: critical, Value: []byte{asn1.TagInteger, 1, 1}}
}

var _ = Describe("A revocation list", func() {
	DescribeTable("is not used, and the one before stays", func(text func(p *port) string, says string) {
		p := newPort().open()
		bad := client(p.authority)
		p.write("crl", p.revoke(p.authority, bad))
		Expect(p.handshake(bad)).To(HaveOccurred())
		p.write("crl", text(p))
		Expect(string(p.log.Contents())).To(ContainSubstring(says))
		Expect(p.handshake(bad)).To(HaveOccurred(), "it is still revoked")
	},
		Entry("if it is that of an authority that is not one of the clients'", func(p *port) string { return p.revoke(newTestAuthority("another")) },
			"revocation list 1, of CN=another: none of the client authorities has this name, so the list would revoke nothing"),
		Entry("if a second one is", func(p *port) string { return p.revoke(p.authority) + p.revoke(newTestAuthority("another")) }, "revocation list 2, of CN=another: none of"),
		Entry("if it has the name of an authority that did not sign it", func(*port) string {
			list, err := newTestAuthority("clients").Revoke()
			Expect(err).NotTo(HaveOccurred())
			return list
		}, "it is not signed by the authority of this name"),
		Entry("if it is a delta list", func(p *port) string {
			return p.listWith(p.authority, func(l *x509.RevocationList) { l.ExtraExtensions = []pkix.Extension{extension(true, 2, 5, 29, 27)} })
		}, "has the critical extension 2.5.29.27"),
		Entry("if it is a delta list that does not say how important that is", func(p *port) string {
			return p.listWith(p.authority, func(l *x509.RevocationList) { l.ExtraExtensions = []pkix.Extension{extension(false, 2, 5, 29, 27)} })
		}, "it is a delta list: only complete lists are possible"),
		Entry("if it is about some certificates only", func(p *port) string {
			return p.listWith(p.authority, func(l *x509.RevocationList) { l.ExtraExtensions = []pkix.Extension{extension(true, 2, 5, 29, 28)} })
		}, "has the critical extension 2.5.29.28"),
		Entry("if an entry is that of another authority", func(p *port) string {
			return p.listWith(p.authority, func(l *x509.RevocationList) {
				l.RevokedCertificateEntries = []x509.RevocationListEntry{{
					SerialNumber: leafOf(client(p.authority)).SerialNumber, RevocationTime: p.clock, ExtraExtensions: []pkix.Extension{extension(true, 2, 5, 29, 29)},
				}}
			})
		}, "has the critical extension 2.5.29.29, which is not possible"),
		Entry("if there is a certificate among them", func(p *port) string { return p.revoke(p.authority) + p.authority.PEM }, "the file has a CERTIFICATE among the revocation lists"),
		Entry("if it is cut off", func(p *port) string {
			return p.revoke(p.authority) + strings.TrimSuffix(p.revoke(p.authority), "-----\n")
		}, "the PEM of the file is damaged"),
		Entry("if it is empty", func(*port) string { return " " }, "cannot be read"),
	)

	It("stops the program at the start if it is not usable", func() {
		p := newPort()
		p.files["crl"] = p.revoke(newTestAuthority("another"))
		Expect(p.start()).To(MatchError(ContainSubstring("--xds-tls-client-crl crl: revocation list 1, of CN=another: none of the client authorities has this name")))
	})

	It("revokes nothing of another authority, even with the same serial number", func() {
		p := newPort().open()
		next := newTestAuthority("next")
		p.write("ca", p.authority.PEM+next.PEM)
		good := client(next)
		p.write("crl", p.listWith(p.authority, func(l *x509.RevocationList) {
			l.RevokedCertificateEntries = []x509.RevocationListEntry{{SerialNumber: leafOf(good).SerialNumber, RevocationTime: time.Now()}}
		}))
		Expect(p.handshake(good)).To(Succeed())
		p.write("crl", p.revoke(p.authority)+p.revoke(next, good))
		Expect(p.handshake(good)).To(HaveOccurred(), "the second list counts too")
	})

	It("of an authority between them and the clients revokes, if this one is known", func() {
		p := newPort().open()
		between, err := p.authority.Authority("between")
		Expect(err).NotTo(HaveOccurred())
		bad, good := client(between), client(between)
		bad.Cert += between.PEM
		good.Cert += between.PEM
		Expect(p.handshake(bad)).To(Succeed())
		p.write("ca", p.authority.PEM+between.PEM)
		p.write("crl", p.revoke(between, bad))
		Expect(p.handshake(bad)).To(HaveOccurred())
		Expect(p.handshake(good)).To(Succeed())
		By("and does not protect it from being revoked itself")
		p.write("crl", p.revoke(p.authority, testkit.Pair{Cert: between.PEM}))
		Expect(p.handshake(good)).To(HaveOccurred())
	})
})

var _ = Describe("The files of a port", func() {
	It("say when each of their parts ends", func() {
		p := newPort()
		p.files["crl"] = p.revoke(p.authority)
		Expect(p.start()).To(Succeed())
		block, _ := pem.Decode([]byte(p.files["cert"]))
		cert, err := x509.ParseCertificate(block.Bytes)
		Expect(err).NotTo(HaveOccurred())
		ends := p.tls.Ends()
		Expect(ends).To(HaveLen(3))
		Expect(ends[0]).To(And(HaveField("Kind", "certificate"), HaveField("File", "cert"), HaveField("At", cert.NotAfter),
			HaveField("Notice", min(14*24*time.Hour, cert.NotAfter.Sub(cert.NotBefore)/4))))
		Expect(ends[1]).To(And(HaveField("Kind", "client_ca"), HaveField("What", "the client authority CN=clients"), HaveField("File", "ca")))
		Expect(ends[2]).To(And(HaveField("Kind", "client_crl"), HaveField("What", "the revocation list of CN=clients"), HaveField("File", "crl"),
			HaveField("At", BeTemporally("~", time.Now().Add(time.Hour), time.Minute)), HaveField("Notice", time.Duration(0))))
	})
})
