package e2e_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The commands for one object", func() {
	It("make a gateway from nothing, and change it", func() {
		g, gw := standalone()
		c := cliOf(g)
		blue, green := backend("blue"), backend("green")
		for name, b := range map[string]string{"blue": fmt.Sprint(blue.Port), "green": fmt.Sprint(green.Port)} {
			c.good("create", "upstream", name, "ip=127.0.0.1", "port="+b)
		}
		c.good("create", "service/shop", "fqdn=*")
		c.good("create", "route", "shop/root", "prefix=/", "config.timeouts.request=5s")
		c.good("attach", "upstream/blue", "route/shop/root")
		c.good("attach", "upstream/green", "route/shop/root")
		c.good("create", "proxy", "gw", fmt.Sprintf("http_port=%d", gw.port))
		c.good("attach", "service/shop", "proxy/gw", "--wait")

		By("a weight of 0 takes an upstream out of Envoy's hands")
		c.good("set", "upstream", "green", "weight=0", "--wait")
		Eventually(gw.tally).WithArguments(10).Should(Equal(map[string]int{"blue": 10}))
		c.good("set", "upstream/green", "weight=", "--wait")
		c.good("set", "upstream/blue", "Upstream_Weight=0", "--wait")
		Eventually(gw.tally).WithArguments(10).Should(Equal(map[string]int{"green": 10}))

		By("a key inside a configuration changes, and the others stay")
		c.good("set", "route", "shop/root", "config.match=exact", "--wait")
		Eventually(gw.answers).WithArguments("shop.example", "/other").Should(Equal("404"))
		Expect(c.good("get", "route", "shop/root", "-o", "yaml")).To(ContainSubstring("timeouts:\n    request: 5s\n"))
		c.good("set", "route", "shop/root", "config.match=", "--wait")
		Eventually(gw.answers).WithArguments("shop.example", "/other").Should(Equal("green"))

		By("a wrong value changes nothing")
		code, _, stderr := c.run("set", "upstream/blue", "weight=-1", "prot=1")
		Expect(code).To(Equal(2))
		Expect(stderr).To(Equal("gatehouse: \"prot\" is not a field of an upstream; did you mean port?\n"))
		code, _, stderr = c.run("set", "upstream/blue", "weight=-1", "port=x")
		Expect(code).To(Equal(1))
		Expect(strings.Split(strings.TrimSpace(stderr), "\n")).To(HaveLen(3), stderr)
		Expect(c.good("get", "upstream", "blue", "-o", "yaml")).To(And(ContainSubstring(fmt.Sprintf("upstream_port: %d\n", blue.Port)), ContainSubstring("upstream_weight: 0\n")))

		By("an object that is there is not created again")
		code, _, stderr = c.run("create", "upstream", "blue", "ip=127.0.0.1", "port=1")
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring("409"))
	})
})
