package compile_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("HTTP/3 with many certificates", func() {
	certificates := func(n int) (list []ir.Certificate) {
		for i := range n {
			pair := &ir.Pair{Secret: fmt.Sprintf("s%03d", i)}
			list = append(list, ir.Certificate{Name: fmt.Sprintf("n%03d.test", i), Pair: pair}, ir.Certificate{Name: fmt.Sprintf("*.n%03d.test", i), Pair: pair})
		}
		return list
	}
	proxy := model.NewProxy()
	proxy.Name, proxy.HTTP3 = "gw", true
	tree := &model.ProxyTree{Proxy: proxy}
	https := &ir.Listener{AltSvc: 443, TLS: &ir.TLS{}}

	It("has a chain for each of 100 secrets", func() {
		l := compile.HTTP3Listener(https, certificates(100))
		Expect(l.TLS.Chains).To(HaveLen(100))
		Expect(l.TLS.Chains[99]).To(HaveField("ServerNames", []string{"n099.test", "*.n099.test"}))
		Expect(l.TLS.Closed).To(BeEmpty())
		Expect(compile.NoHTTP3(tree, certificates(100))).To(BeEmpty())
	})

	It("closes the names of more, and says so", func() {
		l := compile.HTTP3Listener(https, certificates(102))
		Expect(l.TLS.Chains).To(HaveLen(100))
		Expect(l.TLS.Closed).To(Equal([]string{"*.n100.test", "*.n101.test", "n100.test", "n101.test"}))
		Expect(compile.NoHTTP3(tree, certificates(102))).To(ConsistOf(model.Condition{
			Key: proxy.Key(), Code: "NoHTTP3",
			Message: "HTTP/3 is served with the certificates of the first 100 secrets by name, and not with those of 2 more: " +
				"use certificates for several names, or spread the services over several proxies",
		}))
	})
})
