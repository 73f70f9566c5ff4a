package xdsauth_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/types"

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
		}, "revocation list 1, of CN=clients: it has the critical extension 2.5.29.27: only complete lists of one authority are supported"),
		Entry("if it is a delta list that does not say how important that is", func(p *port) string {
			return p.listWith(p.authority, func(l *x509.RevocationList) { l.ExtraExtensions = []pkix.Extension{extension(false, 2, 5, 29, 27)} })
		}, "it is a delta list: only complete lists are supported"),
		Entry("if it is about some certificates only", func(p *port) string {
			return p.listWith(p.authority, func(l *x509.RevocationList) { l.ExtraExtensions = []pkix.Extension{extension(true, 2, 5, 29, 28)} })
		}, "has the critical extension 2.5.29.28"),
		Entry("if an entry is that of another authority", func(p *port) string {
			return p.listWith(p.authority, func(l *x509.RevocationList) {
				l.RevokedCertificateEntries = []x509.RevocationListEntry{{
					SerialNumber: leafOf(client(p.authority)).SerialNumber, RevocationTime: p.clock, ExtraExtensions: []pkix.Extension{extension(true, 2, 5, 29, 29)},
				}}
			})
		}, "has the critical extension 2.5.29.29, which is not supported"),
		Entry("if its second entry is, beside a reason", func(p *port) string {
			return p.listWith(p.authority, func(l *x509.RevocationList) {
				l.RevokedCertificateEntries = []x509.RevocationListEntry{
					{SerialNumber: big.NewInt(1), RevocationTime: p.clock, ReasonCode: 1},
					{SerialNumber: big.NewInt(2), RevocationTime: p.clock, ExtraExtensions: []pkix.Extension{extension(false, 2, 5, 29, 24), extension(true, 2, 5, 29, 29)}},
				}
			})
		}, "its entry of the serial number 2 has the critical extension 2.5.29.29, which is not supported"),
		Entry("if there is a certificate among them", func(p *port) string { return p.revoke(p.authority) + p.authority.PEM }, "the file has a CERTIFICATE among the revocation lists"),
		Entry("if it is cut off", func(p *port) string {
			return p.revoke(p.authority) + strings.TrimSuffix(p.revoke(p.authority), "-----\n")
		}, "the PEM of the file is damaged"),
		Entry("if a letter follows it", func(p *port) string { return p.revoke(p.authority) + "x\n" }, "the PEM of the file is damaged"),
		Entry("if it is empty", func(*port) string { return " " }, "revocation list 1 cannot be read"),
	)

	It("may give reasons", func() {
		p := newPort().open()
		bad := client(p.authority)
		p.write("crl", p.listWith(p.authority, func(l *x509.RevocationList) {
			l.RevokedCertificateEntries = []x509.RevocationListEntry{{SerialNumber: leafOf(bad).SerialNumber, RevocationTime: p.clock, ReasonCode: 1}}
		}))
		Expect(p.handshake(bad)).To(HaveOccurred())
	})

	DescribeTable("revokes nothing of another authority, even with the same name and serial number", func(change func(p *port, other *testkit.Authority) (good testkit.Pair, serial *x509.Certificate)) {
		p := newPort().open()
		other := newTestAuthority("clients")
		good, serial := change(p, other)
		p.write("crl", p.listWith(other, func(l *x509.RevocationList) {
			l.RevokedCertificateEntries = []x509.RevocationListEntry{{SerialNumber: serial.SerialNumber, RevocationTime: p.clock}}
		}))
		Expect(p.log).To(gbytes.Say(`new files of the xds port in use" what="client revocation lists"`))
		Expect(p.handshake(good)).To(Succeed())
	},
		Entry("a client", func(p *port, other *testkit.Authority) (testkit.Pair, *x509.Certificate) {
			p.write("ca", p.authority.PEM+other.PEM)
			good := client(p.authority)
			return good, leafOf(good)
		}),
		Entry("an authority that is known by itself", func(p *port, other *testkit.Authority) (testkit.Pair, *x509.Certificate) {
			between, err := p.authority.Authority("between")
			Expect(err).NotTo(HaveOccurred())
			p.write("ca", between.PEM+other.PEM)
			return client(between), leafOf(testkit.Pair{Cert: between.PEM})
		}),
		Entry("nor the authority that signed it", func(p *port, other *testkit.Authority) (testkit.Pair, *x509.Certificate) {
			p.write("ca", other.PEM)
			return client(other), leafOf(testkit.Pair{Cert: other.PEM})
		}),
	)

	DescribeTable("is reported once a day when the next one is due", func(change func(l *x509.RevocationList), reported int) {
		p := newPort()
		next := newTestAuthority("next")
		p.files["ca"] += next.PEM
		p.files["crl"] += p.listWith(next, change)
		Expect(p.start()).To(Succeed())
		p.look()
		const says = `a revocation list of the xds port is out of date and stays in use: write the next one" crl=crl issuer="CN=next" next_update=`
		Expect(strings.Count(string(p.log.Contents()), says)).To(Equal(reported))
	},
		Entry("not before", func(*x509.RevocationList) {}, 0),
		Entry("a second ago", func(l *x509.RevocationList) { l.NextUpdate = time.Now().Add(-time.Second) }, 1),
		Entry("not if nobody knows when", func(l *x509.RevocationList) { l.ThisUpdate, l.NextUpdate = time.Time{}, time.Time{} }, 0),
	)

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
		next := newTestAuthority("next")
		p.files["ca"] += next.PEM
		p.files["crl"] += p.revoke(next) + p.listWith(next, func(l *x509.RevocationList) { l.ThisUpdate, l.NextUpdate = time.Time{}, time.Time{} })
		Expect(p.start()).To(Succeed())
		day, hour := p.clock.Add(24*time.Hour), p.clock.Add(time.Hour)
		end := func(kind, what, file string, at time.Time, notice time.Duration, effect string) types.GomegaMatcher {
			return And(HaveField("Kind", kind), HaveField("What", what), HaveField("File", file), HaveField("At", BeTemporally("~", at, time.Minute)),
				HaveField("Notice", BeNumerically("~", notice, time.Minute)), HaveField("Effect", effect))
		}
		const refused, stale = "Envoys with certificates of this authority are refused", "it stays in use, without what was revoked since: write the next one"
		Expect(p.tls.Ends()).To(HaveExactElements(
			end("certificate", "the certificate", "cert", p.clock.Add(30*24*time.Hour), 8*24*time.Hour, "Envoys that connect refuse it"),
			end("client_ca", "the client authority CN=clients", "ca", day, 25*time.Hour/4, refused),
			end("client_ca", "the client authority CN=next", "ca", day, 25*time.Hour/4, refused),
			end("client_crl", "the revocation list of CN=clients", "crl", hour, 0, stale),
			end("client_crl", "the revocation list of CN=next", "crl", hour, 0, stale),
		))
	})

	DescribeTable("give notice of the end of a certificate", func(lifetime, notice time.Duration) {
		p := newPort()
		pair, err := p.issuer.Issue(testkit.CertificateOptions{Names: []string{"127.0.0.1"}, NotBefore: p.clock, NotAfter: p.clock.Add(lifetime)})
		Expect(err).NotTo(HaveOccurred())
		p.files["cert"], p.files["key"] = pair.Cert, pair.Key
		Expect(p.start()).To(Succeed())
		Expect(p.tls.Ends()[0].Notice).To(Equal(notice))
	},
		Entry("of a day", 24*time.Hour, 6*time.Hour),
		Entry("of eight weeks", 56*24*time.Hour, 14*24*time.Hour),
		Entry("of a year", 365*24*time.Hour, 14*24*time.Hour),
	)
})
