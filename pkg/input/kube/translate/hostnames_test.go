package translate_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// allowing returns a cluster in which namespaces may have these host names.
func allowing(hosts translate.HostNames, documents ...string) *cluster {
	GinkgoHelper()
	c := &cluster{World: translate.New(proxies("gatehouse", "edge"), hosts), secrets: map[translate.Ref]metav1.Object{}}
	c.apply(documents...)
	return c
}

func hostIn(namespace, name, fqdn, created string) string {
	return `
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: ` + name + `, namespace: ` + namespace + `, creationTimestamp: "` + created + `"}
spec:
  virtualhost: {fqdn: "` + fqdn + `"}`
}

var _ = Describe("Host names of namespaces", func() {
	DescribeTable("allow", func(fqdn string, allowed bool) {
		hosts := translate.HostNames{"shop": {"Shop.example.com", "*.shop.example.com"}}
		step := allowing(hosts, hostIn("shop", "one", fqdn, "2026-01-01T00:00:00Z")).step()
		problems := objectIn(step, "GatewayHost shop/one").Problems
		if allowed {
			Expect(problems).To(BeEmpty())
			Expect(find[*model.Service](step, model.ServiceKey("shop.one")).FQDN).To(Equal(fqdn))
			return
		}
		Expect(problems).To(ConsistOf(translate.Problem{
			Path: "spec.virtualhost.fqdn", Reason: "HostNotAllowed",
			Message: "namespace shop may not have the host " + fqdn +
				"; it may have Shop.example.com, *.shop.example.com: change the host, or ask whoever runs the gateway to allow it",
		}))
		Expect(shown(step)).To(Equal([]string{"+ /proxy/edge", "+ /proxy/gatehouse"}))
	},
		Entry("a name", "shop.example.com", true),
		Entry("a name in other letter case", "SHOP.Example.com", true),
		Entry("a name below a wildcard", "a.shop.example.com", true),
		Entry("a name far below it", "a.b.shop.example.com", true),
		Entry("the wildcard itself", "*.shop.example.com", true),
		Entry("a wildcard below it", "*.a.shop.example.com", true),
		Entry("not a wider wildcard", "*.example.com", false),
		Entry("not every host", "*", false),
		Entry("not a name that only ends alike", "othershop.example.com", false),
		Entry("not a name that goes on", "shop.example.com.evil.example", false),
		Entry("not the name that a wildcard is below", "example.com", false),
	)

	It("of the namespace * are for those that are not named, and a named one has only its own", func() {
		hosts := translate.HostNames{"*": {"*.apps.example.com"}, "shop": {"shop.example.com"}, "operators": {"*"}}
		step := allowing(hosts,
			hostIn("shop", "own", "shop.example.com", "2026-01-01T00:00:00Z"), hostIn("shop", "app", "shop.apps.example.com", "2026-01-01T00:00:00Z"),
			hostIn("team", "own", "shop.example.com", "2025-01-01T00:00:00Z"), hostIn("team", "app", "team.apps.example.com", "2026-01-01T00:00:00Z"),
			hostIn("operators", "all", "*", "2026-01-01T00:00:00Z"),
		).step()
		Expect(shown(step)).To(ContainElements("+ /service/shop.own", "+ /service/team.app", "+ /service/operators.all"))
		Expect(shown(step)).NotTo(ContainElements("+ /service/shop.app"))
		Expect(objectIn(step, "GatewayHost shop/app").Problems[0].Reason).To(Equal("HostNotAllowed"))
		By("an older GatewayHost that may not have a name not keeping it from one that may")
		Expect(objectIn(step, "GatewayHost team/own").Problems[0].Reason).To(Equal("HostNotAllowed"))
		Expect(objectIn(step, "GatewayHost shop/own").Problems).To(BeEmpty())
	})

	It("say that a namespace may have none", func() {
		step := allowing(translate.HostNames{"shop": {"shop.example.com"}}, hostIn("team", "own", "team.example.com", "2026-01-01T00:00:00Z")).step()
		Expect(objectIn(step, "GatewayHost team/own").Problems[0].Message).To(ContainSubstring("; it may have no host name: "))
	})
})
