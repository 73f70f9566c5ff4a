package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/trust/pki"
)

var _ = Describe("Secrets of an authority", func() {
	const day = 24 * time.Hour
	begin := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	lifetimes := pki.Lifetimes{Authority: 3650 * day, Certificate: 90 * day, RenewWithin: 30 * day}
	identity := func(purpose, name string, hosts ...string) pki.Identity {
		GinkgoHelper()
		i, err := pki.NewIdentity(purpose, name, hosts)
		Expect(err).NotTo(HaveOccurred())
		return i
	}
	refresh := func(authority map[string][]byte, now time.Time, pairs ...pki.SecretPair) (map[string][]byte, []map[string][]byte) {
		GinkgoHelper()
		root, all, err := pki.Refresh(authority, pairs, now, lifetimes)
		Expect(err).NotTo(HaveOccurred())
		return root, all
	}
	parse := func(text []byte) *x509.Certificate {
		GinkgoHelper()
		block, _ := pem.Decode(text)
		Expect(block).NotTo(BeNil())
		cert, err := x509.ParseCertificate(block.Bytes)
		Expect(err).NotTo(HaveOccurred())
		return cert
	}

	It("are filled if they are empty", func() {
		root, all := refresh(nil, begin,
			pki.SecretPair{Identity: identity("server", "", "control.gw.svc", "10.0.0.1")},
			pki.SecretPair{Identity: identity("proxy", "edge"), Data: map[string][]byte{"note": []byte("mine")}},
			pki.SecretPair{Identity: identity("ratelimit", "")})
		Expect(root).To(And(HaveKey("ca.crt"), HaveKey("ca.key"), HaveLen(2)))
		roots := x509.NewCertPool()
		roots.AddCert(parse(root["ca.crt"]))
		for i, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageClientAuth} {
			Expect(all[i]["ca.crt"]).To(Equal(root["ca.crt"]))
			Expect(all[i]).NotTo(HaveKey("ca.key"))
			_, err := parse(all[i]["tls.crt"]).Verify(x509.VerifyOptions{Roots: roots, CurrentTime: begin, KeyUsages: []x509.ExtKeyUsage{usage}})
			Expect(err).NotTo(HaveOccurred())
			Expect(parse(all[i]["tls.crt"]).NotAfter).To(Equal(begin.Add(90 * day)))
		}
		Expect(parse(all[0]["tls.crt"]).DNSNames).To(Equal([]string{"control.gw.svc"}))
		Expect(parse(all[1]["tls.crt"]).URIs[0].String()).To(Equal("spiffe://gatehouse/proxy/edge"))
		Expect(parse(all[2]["tls.crt"]).URIs[0].String()).To(Equal("spiffe://gatehouse/ratelimit"))
		Expect(all[1]).To(HaveKeyWithValue("note", []byte("mine")))
	})

	It("remain until they expire soon, and are then renewed with the same key", func() {
		edge := identity("proxy", "edge")
		root, all := refresh(nil, begin, pki.SecretPair{Identity: edge})
		sameRoot, same := refresh(root, begin.Add(59*day), pki.SecretPair{Identity: edge, Data: all[0]})
		Expect(sameRoot).To(Equal(root))
		Expect(same[0]).To(Equal(all[0]))
		_, renewed := refresh(root, begin.Add(61*day), pki.SecretPair{Identity: edge, Data: all[0]})
		Expect(renewed[0]["tls.key"]).To(Equal(all[0]["tls.key"]))
		Expect(parse(renewed[0]["tls.crt"]).NotAfter).To(Equal(begin.Add(151 * day)))
	})

	DescribeTable("get a new pair if the old one is",
		func(change func(data map[string][]byte), wanted pki.Identity) {
			root, all := refresh(nil, begin, pki.SecretPair{Identity: identity("server", "", "a.example")})
			before := maps.Clone(all[0])
			change(all[0])
			_, after := refresh(root, begin, pki.SecretPair{Identity: wanted, Data: all[0]})
			Expect(after[0]["tls.key"]).NotTo(Equal(before["tls.key"]))
			Expect(after[0]["ca.crt"]).To(Equal(root["ca.crt"]))
		},
		Entry("for other hosts", func(map[string][]byte) {}, pki.Identity{Purpose: pki.Server, Hosts: []string{"a.example", "b.example"}}),
		Entry("for somebody else", func(map[string][]byte) {}, pki.Identity{Purpose: pki.Proxy, Name: "edge"}),
		Entry("not a certificate", func(d map[string][]byte) { d["tls.crt"] = []byte("x") }, pki.Identity{Purpose: pki.Server, Hosts: []string{"a.example"}}),
		Entry("without its key", func(d map[string][]byte) { delete(d, "tls.key") }, pki.Identity{Purpose: pki.Server, Hosts: []string{"a.example"}}),
		Entry("of another authority", func(d map[string][]byte) {
			_, other, err := pki.Refresh(nil, []pki.SecretPair{{Identity: pki.Identity{Purpose: pki.Server, Hosts: []string{"a.example"}}}}, begin, lifetimes)
			Expect(err).NotTo(HaveOccurred())
			maps.Copy(d, other[0])
		}, pki.Identity{Purpose: pki.Server, Hosts: []string{"a.example"}}),
	)

	It("get the authority's certificate if only that changed", func() {
		root, all := refresh(nil, begin, pki.SecretPair{Identity: identity("proxy", "edge")})
		key := all[0]["tls.key"]
		all[0]["ca.crt"] = []byte("old")
		_, after := refresh(root, begin, pki.SecretPair{Identity: identity("proxy", "edge"), Data: all[0]})
		Expect(after[0]["ca.crt"]).To(Equal(root["ca.crt"]))
		Expect(after[0]["tls.key"]).To(Equal(key))
	})

	DescribeTable("are not filled if the authority",
		func(change func(root map[string][]byte), now time.Time, want string) {
			root, _ := refresh(nil, begin)
			change(root)
			_, _, err := pki.Refresh(root, nil, now, lifetimes)
			Expect(err).To(MatchError(ContainSubstring(want)))
		},
		Entry("has no key", func(r map[string][]byte) { delete(r, "ca.key") }, begin, "reading ca.key of the authority"),
		Entry("has no certificate", func(r map[string][]byte) { delete(r, "ca.crt") }, begin, "reading ca.crt of the authority"),
		Entry("has the key of another one", func(r map[string][]byte) {
			other, _, err := pki.Refresh(nil, nil, begin, lifetimes)
			Expect(err).NotTo(HaveOccurred())
			r["ca.key"] = other["ca.key"]
		}, begin, "the key of the authority is not that of its certificate"),
		Entry("expires soon", func(map[string][]byte) {}, begin.Add(3600*day), "the authority ends on 2039-12-31: remove ca.crt and ca.key from its Secret, and a new one is made"),
	)
})
