//go:build cluster

package cluster

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("500 requests a second in mode kubernetes", Ordered, func() {
	var g installed

	BeforeAll(func(ctx SpecContext) {
		g = install()
		echo(g.ns, 3)
		g.host("")
		g.answers(ctx, "/")
	})

	It("are not affected by a rolling restart of the control plane", func(ctx SpecContext) {
		before := g.pods("app.kubernetes.io/component=control-plane")
		Expect(before).To(HaveLen(2))
		traffic := g.traffic()
		kubectl("rollout", "restart", "deployment/gatehouse-control-plane", "--namespace", g.ns)
		rolledOut(g.ns, "deployment/gatehouse-control-plane")
		Eventually(func() []string { return g.pods("app.kubernetes.io/component=control-plane") }).Should(And(
			HaveLen(2), Not(ContainElement(BeElementOf(before)))))
		noneFailed(traffic.Stop())

		By("a change after it")
		g.host("rewrite: {prefix: /changed/}")
		g.answers(ctx, "/changed/")
	})

	It("are not affected by the replacement of each endpoint, and reach the new ones", func() {
		before := g.pods("app=echo")
		Expect(before).To(HaveLen(3))
		traffic := g.traffic()
		kubectl("rollout", "restart", "deployment/echo", "--namespace", g.ns)
		rolledOut(g.ns, "deployment/echo")
		var after []string
		Eventually(func() []string { after = g.pods("app=echo"); return after }).Should(And(
			HaveLen(3), Not(ContainElement(BeElementOf(before)))))
		Eventually(traffic.Report).Should(HaveField("Backends", And(HaveKey(after[0]), HaveKey(after[1]), HaveKey(after[2]))))
		noneFailed(traffic.Stop())
	})

	It("leave a terminating endpoint before it stops", func() {
		before := g.pods("app=echo")
		victim := before[0]
		traffic := g.traffic()
		Eventually(traffic.Report).Should(HaveField("Backends", HaveKey(victim)))
		kubectl("delete", "pod", victim, "--namespace", g.ns, "--wait=false")

		By("no new requests while it still runs")
		Eventually(func() bool {
			had := traffic.Report()
			Eventually(traffic.Report).Should(HaveField("Requests", BeNumerically(">", had.Requests+250)))
			return traffic.Report().Backends[victim] == had.Backends[victim]
		}).Should(BeTrue())
		Expect(terminating(g.ns, victim)).To(BeTrue(), "the Pod has ended by now: this says nothing")

		By("until it has stopped, and another one has replaced it")
		kubectl("wait", "pod/"+victim, "--namespace", g.ns, "--for=delete", "--timeout=1m")
		rolledOut(g.ns, "deployment/echo")
		after := g.pods("app=echo")
		fresh := slices.IndexFunc(after, func(p string) bool { return !slices.Contains(before, p) })
		Expect(fresh).NotTo(Equal(-1))
		Eventually(traffic.Report).Should(HaveField("Backends", HaveKey(after[fresh])))
		noneFailed(traffic.Stop())
	})
})

// terminating reports whether a Pod exists, was told to stop, and its container runs.
func terminating(namespace, pod string) bool {
	GinkgoHelper()
	var p struct {
		Metadata struct{ DeletionTimestamp *time.Time }
		Status   struct {
			ContainerStatuses []struct{ State struct{ Running *struct{} } }
		}
	}
	Expect(object(namespace, "pod/"+pod, &p)).To(Succeed())
	return p.Metadata.DeletionTimestamp != nil && len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Running != nil
}
