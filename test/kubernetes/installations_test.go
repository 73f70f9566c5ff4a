package kubernetes_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// install runs a control plane of its own installation, whose namespace is home, that reads the namespace of the place.
func (p place) install(home string, more ...string) gateway {
	GinkgoHelper()
	port := freePort()
	env, args := []string{"POD_NAMESPACE=" + home}, p.serveArgs(port, more...)
	g, err := testkit.StartGatehouse(limit(), env, args...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(g.Kill)
	Expect(g.WaitReady(limit())).To(Succeed(), g.Stderr.String)
	return gateway{g, port, env, args}
}

var _ = Describe("Two installations with one proxy name", func() {
	const shared = "another installation serves the objects of this one"
	var (
		p            place
		first        gateway
		homeA, homeB string
	)
	controller := func() string {
		return p.jsonPath("gatewayhost", "web", "{.status.controller}")
	}

	BeforeEach(func() {
		p = newPlace(cluster)
		homeA, homeB = p.namespace+"-a", p.namespace+"-b"
		Expect(p.Namespace(limit(), homeA)).To(Succeed())
		Expect(p.Namespace(limit(), homeB)).To(Succeed())
		p.service("web", backend("blue"))
		p.host("web", "web.example", "web")
		first = p.install(homeA)
		first.envoy()
		Eventually(p.row("gatewayhost", "web")).Should(Equal("web web.example gatehouse True Programmed"))
	})

	It("do not write over each other's status, and both say so, until the first is gone", func() {
		leaseA, leaseB := homeA+"/gatehouse-status-gatehouse", homeB+"/gatehouse-status-gatehouse"
		Expect(controller()).To(Equal(leaseA))
		second := p.install(homeB) // without an Envoy, so that its status would be another
		const advice = "; give each installation its own names of proxies, or its own namespaces"
		Eventually(second.conditions).Should(ContainElement("/kubernetes/Lease KubernetesShared: installation " + leaseA +
			" writes the status of objects that this one serves, too, such as GatewayHost " + p.namespace + "/web" + advice))
		Eventually(first.conditions).Should(ContainElement(
			"/kubernetes/Lease KubernetesShared: installation " + leaseB + " serves objects whose status this one writes" + advice))
		Expect(second.Records(shared)).To(HaveLen(1))
		Expect(first.Records(shared)).To(HaveLen(1))
		writes := p.statusWrites()
		Consistently(p.statusWrites).WithTimeout(5 * time.Second).Should(Equal(writes))
		Expect(controller()).To(Equal(leaseA))

		By("a change: the first one writes it, once")
		p.host("web", "new.example", "web")
		Eventually(p.row("gatewayhost", "web")).Should(Equal("web new.example gatehouse True Programmed"))
		Eventually(p.statusWrites).Should(Equal(writes + 1))
		Consistently(p.statusWrites).WithTimeout(3 * time.Second).Should(Equal(writes + 1))

		Expect(first.Kill()).To(Succeed())
		Eventually(controller).WithTimeout(2 * time.Minute).Should(Equal(leaseB))
		Eventually(second.conditions).ShouldNot(ContainElement(ContainSubstring("KubernetesShared")))
	})

	It("say so without the right to see each other, and leave the status to the first for good", func() {
		user := "blind-" + p.namespace
		kubeconfig, err := p.User(limit(), user, append(rightsBut(""), testkit.KubernetesRule{
			Groups: []string{"gateway.gatehouse.dev"}, Resources: []string{"gatewayhosts/status"}, Verbs: []string{"patch"},
		}, testkit.KubernetesRule{
			Namespace: homeB, Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"},
		})...)
		Expect(err).NotTo(HaveOccurred())
		second := p.install(homeB, "--kubeconfig", kubeconfig)
		Eventually(second.conditions).Should(ContainElement(HavePrefix("/kubernetes/Lease KubernetesShared: installation " + homeA +
			"/gatehouse-status-gatehouse writes the status of objects that this one serves, too, such as GatewayHost " + p.namespace +
			"/web, or did before it was removed: Leases of all namespaces cannot be listed: ")))
		writes := p.statusWrites()
		Consistently(p.statusWrites).WithTimeout(3 * time.Second).Should(Equal(writes))
	})
})
