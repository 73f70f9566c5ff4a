package translate_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// gatewayCluster returns a cluster with a GatewayClass of this installation.
func gatewayCluster() *cluster {
	GinkgoHelper()
	return gatewayClusterOf(newCluster(webService))
}

// gatewayClusterOf adds the GatewayClass of this installation.
func gatewayClusterOf(c *cluster) *cluster {
	GinkgoHelper()
	c.Controller = "gateway.gatehouse.dev/gatehouse"
	var class gwapi.GatewayClass
	Expect(yaml.UnmarshalStrict([]byte("metadata: {name: gatehouse}\nspec: {controllerName: gateway.gatehouse.dev/gatehouse}"), &class)).To(Succeed())
	c.put(&class)
	return c
}

// gateway creates a Gateway with these listeners in namespace shop.
func (c *cluster) gateway(name string, listeners ...string) {
	GinkgoHelper()
	var o gwapi.Gateway
	text := "metadata: {name: %s, namespace: shop}\nspec: {gatewayClassName: gatehouse, listeners: [%s]}"
	Expect(yaml.UnmarshalStrict(fmt.Appendf(nil, text, name, strings.Join(listeners, ", ")), &o)).To(Succeed())
	c.put(&o)
}

// httpRoute creates an HTTPRoute with one rule, for requests with a number of paths, in namespace shop.
func (c *cluster) httpRoute(name, parents, hosts string, matches int) {
	GinkgoHelper()
	var o gwapi.HTTPRoute
	var list []string
	for i := range matches {
		list = append(list, fmt.Sprintf("{path: {type: Exact, value: /%d}}", i))
	}
	text := "metadata: {name: %s, namespace: shop}\nspec: {parentRefs: [%s], hostnames: [%s], rules: [{matches: [%s], backendRefs: [{name: web, port: 80}]}]}"
	Expect(yaml.UnmarshalStrict(fmt.Appendf(nil, text, name, parents, hosts, strings.Join(list, ", ")), &o)).To(Succeed())
	c.put(&o)
}

// parents returns the conditions of each parent of an HTTPRoute that are not as usual.
func parents(step translate.Step, name string) (list []string) {
	GinkgoHelper()
	r, is := objectIn(step, "HTTPRoute shop/"+name).API.(*translate.RouteResult)
	Expect(is).To(BeTrue())
	for _, p := range r.Parents {
		for _, v := range p.Conditions {
			if v.True != slices.Contains([]string{"Accepted", "ResolvedRefs"}, v.Type) {
				list = append(list, fmt.Sprintf("%s %s %t %s: %s", p.Ref.Name, v.Type, v.True, v.Reason, v.Message))
			}
		}
	}
	return list
}

// routesMade counts the routes of the store with an object's name.
func routesMade(step translate.Step, part string) (n int) {
	for _, line := range shown(step) {
		if strings.HasPrefix(line, "+") && strings.Contains(line, "/route/") && strings.Contains(line, part) &&
			!strings.Contains(line, "/upstream/") && !strings.Contains(line, "/filter/") {
			n++
		}
	}
	return n
}

var _ = Describe("An HTTPRoute that becomes very many routes", func() {
	It("is refused as a whole, and said to be, above 20,000 on all its Gateways", func() {
		c := gatewayCluster()
		var all []string
		for _, gateway := range []string{"a", "b", "c"} {
			var listeners []string
			for i := range 64 {
				listeners = append(listeners, fmt.Sprintf("{name: l%d, port: 80, protocol: HTTP, hostname: h%[1]d.example}", i))
			}
			c.gateway(gateway, listeners...)
			all = append(all, "{name: "+gateway+"}")
		}
		names := strings.Join(all, ", ")
		c.httpRoute("many", names, "", 104)
		step := c.step()
		Expect(parents(step, "many")).To(BeEmpty())
		Expect(routesMade(step, "--many--")).To(Equal(19_968)) // 3 * 64 * 104

		c.httpRoute("more", names, "", 105)
		step = c.step()
		says := " Accepted false TooManyRoutes: its 105 matches for each of its hosts are 20160 routes: one HTTPRoute may be 20000"
		Expect(parents(step, "more")).To(Equal([]string{"a" + says, "b" + says, "c" + says}))
		Expect(routesMade(step, "--more--")).To(BeZero())
		By("and served when it is smaller")
		c.httpRoute("more", names, "", 1)
		step = c.step()
		Expect(parents(step, "more")).To(BeEmpty())
		Expect(routesMade(step, "--more--")).To(Equal(192))
	})

	It("keeps its own hosts, whatever hosts others have", func() {
		c := gatewayCluster()
		c.put(secret("shop/pair", "tls.crt", pems.cert, "tls.key", pems.key))
		c.gateway("web", "{name: http, port: 80, protocol: HTTP}", "{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: pair}]}}")
		c.httpRoute("own", "{name: web, sectionName: http}", `"*.example", zoo.example`, 100)
		Expect(parents(c.step(), "own")).To(BeEmpty())
		for i := range 200 {
			c.httpRoute(fmt.Sprintf("other-%d", i), "{name: web, sectionName: https}", fmt.Sprintf("h%d.example", i), 1)
		}
		step := c.step()
		Expect(parents(step, "own")).To(Equal([]string{"web PartiallyInvalid true TooManyRoutes: it does not serve 2 hosts that only other listeners " +
			"have routes for: one HTTPRoute may be 20000 routes"}))
		Expect(routesMade(step, "--own--")).To(Equal(19_800)) // the two hosts of its own were there before
	})
})
