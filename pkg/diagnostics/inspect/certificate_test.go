package inspect

import (
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

var _ = Describe("The status of a secret", func() {
	var asked map[string]map[string]bool
	with := func(uses map[string][]explain.Use) *Inspector {
		asked = map[string]map[string]bool{}
		return New(Sources{Certificates: func(proxy string, secrets map[string]bool) ([]explain.Use, error) {
			asked[proxy] = secrets
			return uses[proxy], nil
		}})
	}
	block := func(key model.Key, proxies ...string) *ObjectStatus { return &ObjectStatus{key: key, proxies: proxies} }

	It("has the names for which its certificate is presented, and those for which another one is", func() {
		a, b, service := block(model.SecretKey("a"), "gw", "edge"), block(model.SecretKey("b"), "gw"), block(model.ServiceKey("a"), "other")
		Expect(with(map[string][]explain.Use{
			"gw": {
				{Secret: "a", Service: "shop", Name: "shop.example", Answers: true, Message: "it is the best"},
				{Secret: "a", Service: "api", Name: "*.example", Message: "b is better"},
				{Secret: "b", Name: "", Answers: true, Message: "it is the oldest"},
			},
			"edge": {{Secret: "a", Service: "shop", Name: "a.example", Answers: true, Message: "it is the only one"}},
		}).addCertificates([]*ObjectStatus{a, b, service})).To(Succeed())
		Expect(asked).To(Equal(map[string]map[string]bool{"gw": {"a": true, "b": true}, "edge": {"a": true}}))
		Expect(a.Conditions).To(Equal([]ObjectCondition{
			{Code: "CertificateBeaten", Status: true, Message: "*.example on proxy gw: b is better", Path: "/proxy/gw/service/api"},
			{Code: "CertificateServed", Status: true, Message: "a.example on proxy edge: it is the only one", Path: "/proxy/edge/service/shop"},
			{Code: "CertificateServed", Status: true, Message: "shop.example on proxy gw: it is the best", Path: "/proxy/gw/service/shop"},
		}))
		Expect(b.Conditions).To(Equal([]ObjectCondition{
			{Code: "CertificateServed", Status: true, Message: "clients that name no host on proxy gw: it is the oldest"},
		}))
		Expect(service.Conditions).To(BeEmpty())
	})

	DescribeTable("has at most 20 names, and counts the rest", func(names, listed int, last ObjectCondition) {
		uses := make([]explain.Use, names)
		for i := range uses {
			uses[i] = explain.Use{Secret: "a", Service: "shop", Name: fmt.Sprintf("%02d.example", names-i), Answers: true, Message: "m"}
		}
		a := block(model.SecretKey("a"), "gw")
		Expect(with(map[string][]explain.Use{"gw": uses}).addCertificates([]*ObjectStatus{a})).To(Succeed())
		Expect(a.Conditions).To(HaveLen(listed))
		Expect(a.Conditions[0].Message).To(Equal("01.example on proxy gw: m"))
		Expect(a.Conditions[listed-1]).To(Equal(last))
	},
		Entry("20", 20, 20, ObjectCondition{Code: "CertificateServed", Status: true, Message: "20.example on proxy gw: m", Path: "/proxy/gw/service/shop"}),
		Entry("21", 21, 21, ObjectCondition{Code: "CertificateServed", Status: true, Message: "and 1 more host names"}),
		Entry("23", 23, 21, ObjectCondition{Code: "CertificateServed", Status: true, Message: "and 3 more host names"}),
	)

	It("has none if they are not known, and is not read if they cannot be", func() {
		a := block(model.SecretKey("a"), "gw")
		Expect(New(Sources{}).addCertificates([]*ObjectStatus{a})).To(Succeed())
		Expect(a.Conditions).To(BeEmpty())
		in := New(Sources{Certificates: func(string, map[string]bool) ([]explain.Use, error) { return nil, errors.New("no listener") }})
		Expect(in.addCertificates([]*ObjectStatus{a})).To(MatchError(`reading the certificates of proxy "gw": no listener`))
	})
})
