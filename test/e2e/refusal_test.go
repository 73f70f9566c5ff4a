package e2e_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A resource that an Envoy refuses", func() {
	It("harms nobody else: the guilty host is found, and the others are updated", func() {
		g := serve()
		gw := gateway{g.API, freePort()}
		strict, err := testkit.StartStrictEnvoy(limit(), GinkgoT().TempDir(), "gw", g.XDSAddr)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(strict.Kill)
		addUpstream(gw.api, backend("blue"))
		addProxy(gw.api, "gw", gw.port)
		for i := range 10 {
			name := fmt.Sprintf("good%d", i)
			addService(gw.api, name, name+".example", "blue")
			post(gw.api, "/proxy/gw/service/"+name)
		}
		addService(gw.api, "bad", "bad.example", "blue")
		post(gw.api, "/proxy/gw/service/bad")
		gw.expect("bad.example", "/", "blue")

		addRoute(gw.api, "bad", "large", testkit.LargeExpression, `{"match":"regex"}`, "blue")
		addService(gw.api, "worse", "worse.example", "blue")
		addRoute(gw.api, "worse", "large", testkit.LargeExpression, `{"match":"regex"}`, "blue")
		post(gw.api, "/proxy/gw/service/worse")
		for i := range 10 {
			addRoute(gw.api, fmt.Sprintf("good%d", i), "new", "/new", `{"rewrite":{"host":"changed"}}`, "blue")
		}

		for i := range 10 {
			host := fmt.Sprintf("good%d.example", i)
			Eventually(func() string { return gw.get(host, "/new").Echo.Host }).Should(Equal("changed"), host)
		}
		Expect(gw.answers("bad.example", "/")).To(Equal("blue"), "it was served before, and is served so")
		gw.expect("worse.example", "/", "503")
		Expect(gw.answers("worse.example", "/x")).To(Equal("503"))
		Eventually(g.Stderr.String).Should(And(ContainSubstring(`"guilty":"bad"`), ContainSubstring(`"guilty":"worse"`)))

		By("the next write that fixes it releases it")
		remove(gw.api, "/service/worse/route/large")
		gw.expect("worse.example", "/", "blue")
	})
})
