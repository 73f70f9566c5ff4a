package kubernetes_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Host names of namespaces", func() {
	It("keep a namespace from the host of another, and from every host", func() {
		shop, team := newPlace(cluster), newPlace(cluster)
		g := shop.serve("--kubernetes-namespaces", shop.namespace+","+team.namespace,
			"--kubernetes-host-names", shop.namespace+"=shop.example,"+team.namespace+"=*.team.example")
		g.envoy()
		team.service("web", backend("green"))
		team.host("taken", "shop.example", "web")
		team.host("every", `"*"`, "web")
		team.host("own", "a.team.example", "web")
		g.expect("a.team.example", "200 green")
		Eventually(team.row("gatewayhost", "taken")).Should(Equal("taken shop.example gatehouse False HostNotAllowed"))
		Eventually(team.row("gatewayhost", "every")).Should(Equal("every * gatehouse False HostNotAllowed"))
		Expect(team.condition("gatewayhost", "taken", "Accepted")()).To(Equal("False HostNotAllowed (1): spec.virtualhost.fqdn: namespace " + team.namespace +
			" may not have the host shop.example; it may have *.team.example: change the host, or ask whoever runs the gateway to allow it"))
		g.expect("shop.example", "404")

		By("its own namespace having it, though the other one's object is older")
		shop.service("web", backend("blue"))
		shop.host("shop", "shop.example", "web")
		g.expect("shop.example", "200 blue")
		Eventually(shop.row("gatewayhost", "shop")).Should(Equal("shop shop.example gatehouse True Programmed"))
	})
})
