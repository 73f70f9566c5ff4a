package compile_test

import (
	"errors"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("The certificates of a service", func() {
	rsa := &ir.Pair{Secret: "rsa", RSA: true, Names: []string{"*.shop.test", "shop.test"}}
	curve := &ir.Pair{Secret: "curve", Names: []string{"a.shop.test"}}
	wild := &ir.Pair{Secret: "wild", Names: []string{"*.shop.test", "*.other.test"}}

	// compiled returns the host of a service, and what it needs from the HTTPS listener.
	compiled := func(domain string, ca *model.Secret, pairs ...*ir.Pair) (*ir.Host, ir.Needs) {
		GinkgoHelper()
		s := &model.Service{Name: "shop", FQDN: domain}
		if ca != nil {
			s.ClientCACertificate = ca.Name
		}
		tree := &model.ServiceTree{Service: s, ClientCA: ca}
		h, c := compile.Host(tree, pairs, compile.Settings{}, nil)
		Expect(c).To(BeNil())
		return h, compile.Needs(h, tree, pairs)
	}

	It("are those whose keys can be opened, the one that is valid longest first", func() {
		authority, err := testkit.NewAuthority("shop")
		Expect(err).NotTo(HaveOccurred())
		pair := func(valid time.Duration, rsa bool) testkit.Pair {
			p, err := authority.Issue(testkit.CertificateOptions{Names: []string{"shop.test"}, RSA: rsa, NotAfter: time.Now().Add(valid)})
			Expect(err).NotTo(HaveOccurred())
			return p
		}
		short, long, middle := pair(time.Hour, false), pair(3*time.Hour, true), pair(2*time.Hour, false)
		tree := &model.ServiceTree{Service: &model.Service{Name: "shop"}, Secrets: []*model.Secret{
			{Name: "short", Cert: short.Cert, PrivateKey: short.Key},
			{Name: "long", Cert: long.Cert, PrivateKey: long.Key},
			{Name: "middle", Cert: middle.Cert, PrivateKey: middle.Key},
			{Name: "lost", Cert: middle.Cert, PrivateKey: "lost"},
			{Name: "other", Cert: middle.Cert, PrivateKey: short.Key},
			{Name: "authority", Cert: authority.PEM},
			{Name: "key", PrivateKey: short.Key},
		}}
		open := func(sealed, _ string) (string, error) {
			if sealed == "lost" {
				return "", errors.New("another key")
			}
			return sealed, nil
		}
		var kinds []string
		for _, p := range compile.Pairs(tree, open) {
			Expect(p.Names).To(Equal([]string{"shop.test"}))
			kind := " curve"
			if p.RSA {
				kind = " rsa"
			}
			kinds = append(kinds, p.Secret+kind)
		}
		Expect(kinds).To(Equal([]string{"long rsa", "middle curve", "short curve"}))
		Expect(compile.Pairs(tree, nil)).To(BeEmpty())
	})

	DescribeTable("are served for each name that clients may ask for, the exact one first", func(domain string, pairs []*ir.Pair, want ...string) {
		h, _ := compiled(domain, nil, pairs...)
		var served []string
		for _, c := range h.Certificates {
			served = append(served, c.Name+"="+c.Pair.Secret)
		}
		Expect(strings.Join(served, " ")).To(Equal(strings.Join(want, " ")))
	},
		Entry("of a host", "a.shop.test", []*ir.Pair{wild, curve, rsa}, "a.shop.test=curve", "a.shop.test=wild", "a.shop.test=rsa"),
		Entry("of a host that one is for", "b.shop.test", []*ir.Pair{curve, wild}, "b.shop.test=wild"),
		Entry("of a host that only a deeper wildcard would match", "c.b.shop.test", []*ir.Pair{wild}),
		Entry("of a wildcard", "*.shop.test", []*ir.Pair{curve, wild}, "*.shop.test=wild", "a.shop.test=curve", "a.shop.test=wild"),
		Entry("of a wildcard whose parent is another host", "*.shop.test", []*ir.Pair{rsa}, "*.shop.test=rsa"),
		Entry("of an address", "192.0.2.1", []*ir.Pair{curve, wild}, "=curve", "=wild"),
		Entry("of an IPv6 address", "[2001:db8::1]", []*ir.Pair{curve}, "=curve"),
		Entry("of all hosts", "*", []*ir.Pair{curve, wild}, "=curve", "=wild", "*.other.test=wild", "*.shop.test=wild", "a.shop.test=curve", "a.shop.test=wild"),
	)

	It("get a chain of their own if clients of both kinds can be served", func() {
		_, needs := compiled("a.shop.test", nil, rsa, curve)
		Expect(needs.HTTPS).To(BeTrue())
		Expect(needs.Chains).To(Equal([]ir.TLSChain{{Name: "pairs curve rsa", ServerNames: []string{"a.shop.test"}, Pairs: []*ir.Pair{curve, rsa}}}))
	})

	DescribeTable("are looked up", func(domain string, pairs ...*ir.Pair) {
		_, needs := compiled(domain, nil, pairs...)
		Expect(needs).To(Equal(ir.Needs{HTTPS: true}))
	},
		Entry("if all are of one kind", "a.shop.test", curve, wild),
		Entry("if those of the other kind are for other names", "b.shop.test", rsa, curve),
		Entry("if no name tells the connections from others", "*", rsa, curve),
	)

	It("are not needed for a chain that verifies clients", func() {
		ca := &model.Secret{Name: "staff", Cert: "pem"}
		chain := ir.TLSChain{Name: "lookup client staff", ServerNames: []string{"a.shop.test"}, ClientCA: &ir.Authorities{Secret: "staff", PEM: "pem"}}
		_, needs := compiled("a.shop.test", ca)
		Expect(needs).To(Equal(ir.Needs{Chains: []ir.TLSChain{chain}}))
		chain.Name, chain.Pairs = "pairs curve rsa client staff", []*ir.Pair{curve, rsa}
		_, needs = compiled("a.shop.test", ca, rsa, curve)
		Expect(needs).To(Equal(ir.Needs{HTTPS: true, Chains: []ir.TLSChain{chain}}))
	})

	It("of the service with the most exact host win", func() {
		Expect(compile.Rank("a.shop.test")).To(BeNumerically("<", compile.Rank("*.shop.test")))
		Expect(compile.Rank("*.shop.test")).To(BeNumerically("<", compile.Rank("*.test")))
		Expect(compile.Rank("*.test")).To(BeNumerically("<", compile.Rank("*")))
	})
})

var _ = Describe("A service that verifies clients", func() {
	closed := func(domain string, ca *model.Secret) string {
		c := compile.ClosedHost(&model.ServiceTree{Service: &model.Service{Name: "shop", FQDN: domain, ClientCACertificate: "staff"}, ClientCA: ca})
		if c == nil {
			return ""
		}
		Expect(c.Code).To(Equal(model.Quarantined))
		_, why, _ := strings.Cut(c.Message, "client certificates: ")
		return why
	}
	DescribeTable("is closed", func(domain string, ca *model.Secret, why string) {
		Expect(closed(domain, ca)).To(HavePrefix(why))
	},
		Entry("without its authority", "shop.test", nil, "secret staff has no certificate authority"),
		Entry("if the authority has no certificate", "shop.test", &model.Secret{Name: "staff"}, "secret staff has no certificate authority"),
		Entry("if it is for every host", "*", &model.Secret{Name: "staff", Cert: "pem"}, "it is for every host"),
	)
	It("is served if clients can be verified", func() {
		Expect(closed("shop.test", &model.Secret{Name: "staff", Cert: "pem"})).To(BeEmpty())
	})
})
