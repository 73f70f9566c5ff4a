package kube_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube"
)

var _ = Describe("Positions", func() {
	It("map a revision to what it has, and an unknown revision to what the previous one has", func() {
		p := &kube.Positions{}
		Expect(p.At(1)).To(BeNil())
		p.Add(1, map[string]int64{"GatewayHost": 10})
		p.Add(4, map[string]int64{"GatewayHost": 12})
		p.Add(4, map[string]int64{"GatewayHost": 15}) // this changed nothing
		Expect(p.At(0)).To(BeNil())
		Expect(p.At(1)).To(Equal(map[string]int64{"GatewayHost": 10}))
		Expect(p.At(3)).To(Equal(map[string]int64{"GatewayHost": 10}))
		Expect(p.At(4)).To(Equal(map[string]int64{"GatewayHost": 15}))
		Expect(p.At(9)).To(Equal(map[string]int64{"GatewayHost": 15}))
	})

	It("are limited in number; the newest are kept", func() {
		p := &kube.Positions{}
		for i := range 1000 {
			p.Add(int64(i), map[string]int64{"Service": int64(i)})
		}
		Expect(p.At(10)).To(BeNil())
		Expect(p.At(990)).To(Equal(map[string]int64{"Service": 990}))
	})
})

var _ = Describe("The file of the proxies", func() {
	It("sets the fields of the proxies that it names, and gives the others the defaults", func() {
		list, err := kube.ReadProxies("version: 1\nproxies:\n- {name: edge, http_port: 81}\n", "internal", "edge")
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(HaveLen(2))
		Expect([]any{list[0].Name, list[0].HTTPPort, list[1].Name, list[1].HTTPPort}).To(Equal([]any{"internal", 8080, "edge", 81}))
	})

	DescribeTable("is refused", func(text, says string) {
		_, err := kube.ReadProxies(text, "edge")
		Expect(err).To(MatchError(ContainSubstring(says)))
	},
		Entry("with another proxy", "version: 1\nproxies:\n- {name: other}\n", `line 3: --kubernetes-proxies has no proxy "other"`),
		Entry("with anything else", "version: 1\nservices:\n- {service_name: shop, fqdn: shop.example}\n", "line 3: /service/shop is not a proxy: only proxies are allowed here"),
		Entry("with a wrong port", "version: 1\nproxies:\n- {name: edge, http_port: 0}\n", "http_port"),
	)
})
