package kubernetes_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("serve --mode kubernetes", func() {
	It("serves a GatewayHost at the endpoints of its Service, and follows both", func() {
		p := newPlace(cluster)
		g := p.serve()
		Expect(g.Records("migrated the database")).To(BeEmpty(), "its copy of the configuration was never another version's")
		g.envoy()
		blue, green := backend("blue"), backend("green")

		By("creating them")
		p.service("web", blue)
		p.host("shop", "shop.example", "web")
		g.expect("shop.example", "200 blue")

		By("moving the endpoints")
		p.endpoints("web", green)
		g.expect("shop.example", "200 green")
		p.endpoints("web")
		g.expect("shop.example", "503")
		p.endpoints("web", blue)
		g.expect("shop.example", "200 blue")

		By("changing the host")
		p.service("other", green)
		p.host("shop", "store.example", "other")
		g.expect("store.example", "200 green")
		g.expect("shop.example", "404")

		By("deleting it")
		p.kubectl("delete", "gatewayhost", "shop")
		g.expect("store.example", "404")
	})
})
