package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// versions returns the resourceVersions of all objects of a kind, by name.
func (p place) versions(kind string) map[string]string {
	GinkgoHelper()
	var list struct {
		Items []struct {
			Metadata struct{ Name, ResourceVersion string }
		}
	}
	text, err := p.get(kind, "", "application/json")
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal([]byte(text), &list)).To(Succeed())
	versions := map[string]string{}
	for _, i := range list.Items {
		versions[i.Metadata.Name] = i.Metadata.ResourceVersion
	}
	return versions
}

// statusWrites returns how often the status of a GatewayHost was written, in all namespaces.
func (p place) statusWrites() (n int) {
	GinkgoHelper()
	text, err := p.Read(limit(), "/metrics", "text/plain")
	Expect(err).NotTo(HaveOccurred())
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `resource="gatewayhosts"`) && strings.Contains(line, `subresource="status"`) {
			count, err := strconv.Atoi(line[strings.LastIndex(line, " ")+1:])
			Expect(err).NotTo(HaveOccurred())
			n += count
		}
	}
	return n
}

// leader returns the index of the replica that holds the Lease.
func (p place) leader(all ...gateway) int {
	GinkgoHelper()
	found := -1
	Eventually(func() int {
		holder := p.jsonPath("lease", "gatehouse-status-gatehouse", "{.spec.holderIdentity}")
		found = slices.IndexFunc(all, func(g gateway) bool { return holder != "" && g.replica() == holder })
		return found
	}).ShouldNot(Equal(-1))
	return found
}

// replica returns the name of a replica.
func (g gateway) replica() string {
	GinkgoHelper()
	a, err := g.API.Get(limit(), "/status")
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`"replica":"([^"]+)"`).FindStringSubmatch(a.Body) // its own comes first
	Expect(found).NotTo(BeNil(), a.Body)
	return found[1]
}

const filterYAML = `
apiVersion: gateway.gatehouse.dev/v1
kind: RouteFilter
metadata: {name: headers}
spec: {name: headers, type: route_filter_headers, routeFilterConfig: {config: %q}}
`

var _ = Describe("The conditions of objects", func() {
	It("show in kubectl the field and what to do", func() {
		p := newPlace(cluster)
		g := p.serve()
		p.service("web", backend("blue"))
		p.host("good", "good.example", "web")
		Eventually(p.row("gatewayhost", "good")).Should(Equal("good good.example gatehouse False NotConnected"))
		Expect(p.condition("gatewayhost", "good", "Programmed")()).To(Equal("False NotConnected (1): no Envoy of proxy gatehouse is connected"))

		g.envoy()
		Eventually(p.row("gatewayhost", "good")).Should(Equal("good good.example gatehouse True Programmed"))
		Expect(p.condition("gatewayhost", "good", "Accepted")()).To(Equal("True Accepted (1): it is a part of the configuration"))
		Expect(p.condition("gatewayhost", "good", "ResolvedRefs")()).To(Equal("True ResolvedRefs (1): every object that it names exists and may be used"))
		Expect(p.condition("gatewayhost", "good", "Programmed")()).To(Equal("True Programmed (1): every connected Envoy has it"))
		Expect(p.jsonPath("gatewayhost", "good", "{.status.envoys} {.status.observedGeneration}")).To(Equal("1 1"))

		By("a missing Service")
		p.host("lost", "lost.example", "nowhere")
		Eventually(p.row("gatewayhost", "lost")).Should(Equal("lost lost.example gatehouse False RefNotFound"))
		Expect(p.condition("gatewayhost", "lost", "ResolvedRefs")()).To(MatchRegexp(`^False RefNotFound \(1\): spec.routes\[0\].services\[0\].name: .*nowhere`))
		Expect(p.condition("gatewayhost", "lost", "Accepted")()).To(HavePrefix("True Accepted"))
		p.service("nowhere", backend("green"))
		Eventually(p.row("gatewayhost", "lost")).Should(Equal("lost lost.example gatehouse True Programmed"))

		By("a missing Secret")
		p.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: sealed}
spec:
  virtualhost: {fqdn: sealed.example, tls: {secretName: absent}}
  routes: [{conditions: [{prefix: /}], services: [{name: web, port: 80}]}]
`)
		Eventually(p.row("gatewayhost", "sealed")).Should(Equal("sealed sealed.example gatehouse False RefNotFound"))
		Expect(p.condition("gatewayhost", "sealed", "ResolvedRefs")()).To(MatchRegexp(`^False RefNotFound \(1\): spec.virtualhost.tls.secretName: .*absent`))

		By("a reference that is not permitted")
		p.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: abroad}
spec:
  virtualhost: {fqdn: abroad.example}
  routes: [{conditions: [{prefix: /}], services: [{name: web, namespace: elsewhere, port: 80}]}]
`)
		Eventually(p.row("gatewayhost", "abroad")).Should(Equal("abroad abroad.example gatehouse False RefNotPermitted"))
		Expect(p.condition("gatewayhost", "abroad", "ResolvedRefs")()).To(MatchRegexp(`spec.routes\[0\].services\[0\].namespace: .*ReferenceGrant.*elsewhere|ReferenceGrant`))

		By("a host name that another GatewayHost has")
		p.host("twice", "good.example", "web")
		Eventually(p.row("gatewayhost", "twice")).Should(Equal("twice good.example gatehouse False HostConflict"))
		Expect(p.condition("gatewayhost", "twice", "Accepted")()).To(ContainSubstring(p.namespace + "/good"))

		By("invalid JSON in a filter: on the filter, and on the host that uses it")
		p.apply(filterYAML, `{"nonsense": 1}`)
		Consistently(p.row("routefilter", "headers")).WithTimeout(time.Second).Should(Equal("headers route_filter_headers"), "nobody uses it")
		p.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: filtered}
spec:
  virtualhost: {fqdn: filtered.example}
  routes: [{conditions: [{prefix: /}], services: [{name: web, port: 80}], filters: [{name: headers}]}]
`)
		Eventually(p.row("routefilter", "headers")).Should(Equal("headers route_filter_headers False False Invalid"))
		Expect(p.condition("routefilter", "headers", "Accepted")()).To(MatchRegexp(`^False Invalid \(1\): spec.routeFilterConfig.config.*nonsense`))
		Eventually(p.row("gatewayhost", "filtered")).Should(MatchRegexp(`^filtered filtered.example gatehouse False (Invalid|RefNotFound)$`))
		Expect(p.condition("gatewayhost", "filtered", "Programmed")()).To(MatchRegexp(`spec.routes\[0\].filters\[0\].*headers`))
		p.apply(filterYAML, `{"request": {"set": {"x-a": "b"}}}`)
		Eventually(p.row("routefilter", "headers")).Should(Equal("headers route_filter_headers True True Programmed"), p.condition("routefilter", "headers", "Accepted"))
		Eventually(p.row("gatewayhost", "filtered")).Should(Equal("filtered filtered.example gatehouse True Programmed"))

		By("the others are unchanged")
		Expect(p.row("gatewayhost", "good")()).To(Equal("good good.example gatehouse True Programmed"))
	})

	It("ignore objects of another installation", func() {
		p := newPlace(cluster)
		g := p.serve()
		g.envoy()
		p.service("web", backend("blue"))
		p.host("ours", "ours.example", "web")
		p.apply("%s", strings.Replace(hostYAML("theirs", "theirs.example", "web"), "spec:\n", "spec:\n  proxy: other\n", 1))
		Eventually(p.row("gatewayhost", "ours")).Should(Equal("ours ours.example gatehouse True Programmed"))
		Expect(p.row("gatewayhost", "theirs")()).To(Equal("theirs theirs.example"))
	})

	It("report what all replicas' Envoys have, and which one lacks a new generation", func() {
		p := newPlace(cluster)
		p.service("web", backend("blue"))
		p.host("old", "old.example", "web")
		p.host("web", "web.example", "web")
		a, b := p.serve(), p.serve()
		a.envoy()
		ofB := b.envoy()
		for _, host := range []string{"web", "old"} {
			Eventually(func() string {
				return p.jsonPath("gatewayhost", host, "{.status.envoys}")
			}).Should(Equal("2"))
		}
		Eventually(p.row("gatewayhost", "web")).Should(Equal("web web.example gatehouse True Programmed"))
		Eventually(p.row("gatewayhost", "old")).Should(Equal("old old.example gatehouse True Programmed"))
		before := p.jsonPath("gatewayhost", "old", "{.status}")

		By("an Envoy of the other replica that does not answer")
		Expect(ofB.Freeze()).To(Succeed())
		thaw := func() { Expect(ofB.Thaw()).To(Succeed()) }
		DeferCleanup(thaw)
		p.host("web", "new.example", "web")
		Eventually(p.row("gatewayhost", "web")).Should(Equal("web new.example gatehouse False Waiting"))
		Expect(p.condition("gatewayhost", "web", "Programmed")()).To(MatchRegexp(
			`^False Waiting \(2\): the Envoy at 127\.0\.0\.1:\d+ \(replica ` + regexp.QuoteMeta(b.replica()) + `\) has not answered yet$`))
		Expect(p.row("gatewayhost", "old")()).To(Equal("old old.example gatehouse True Programmed"))
		thaw()
		Eventually(p.row("gatewayhost", "web")).Should(Equal("web new.example gatehouse True Programmed"))
		Expect(p.jsonPath("gatewayhost", "old", "{.status}")).To(Equal(before))

		By("a killed leader: the other one takes over, and nothing that was true changes")
		both := []gateway{a, b}
		leader := p.leader(both...)
		left, name := both[1-leader], both[leader].replica()
		conditions := func() string {
			return p.jsonPath("gatewayhost", "", `{.items[?(@.metadata.name!="next")].status.conditions}`)
		}
		were := conditions()
		Expect(both[leader].Kill()).To(Succeed())
		Eventually(func(g Gomega) string {
			g.Expect(conditions()).To(Equal(were))
			return p.jsonPath("lease", "gatehouse-status-gatehouse", "{.spec.holderIdentity}")
		}).Should(Equal(left.replica()))
		p.host("next", "next.example", "web")
		Eventually(p.condition("gatewayhost", "next", "Programmed")).Should(
			Equal("Unknown ReplicaUnheard (1): replica " + name + " is not heard: the state of its Envoys is unknown"))
		Expect(conditions()).To(Equal(were))
	})

	It("are Unknown for new objects while a Pod of the control plane reports nothing", func() {
		p := newPlace(cluster)
		p.service("web", backend("blue"))
		p.apply(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: xds-1, labels: {kubernetes.io/service-name: xds}}
addressType: IPv4
ports: []
endpoints: [{addresses: [10.0.0.1], targetRef: {kind: Pod, name: mute}}]
`)
		leader := p.serve("--kubernetes-xds-service", "xds")
		leader.envoy()
		user := "mute-" + p.namespace
		kubeconfig, err := p.User(limit(), user, rightsBut("")...)
		Expect(err).NotTo(HaveOccurred())
		mute, err := testkit.StartGatehouse(limit(), []string{"POD_NAMESPACE=" + p.namespace, "POD_NAME=mute"}, p.serveArgs(freePort(), "--kubeconfig", kubeconfig)...)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(mute.Kill)
		Expect(mute.WaitReady(limit())).To(Succeed(), mute.Stderr.String)
		gateway{Gatehouse: mute}.envoy()
		p.host("web", "web.example", "web")
		Eventually(p.condition("gatewayhost", "web", "Programmed")).Should(
			Equal("Unknown ReplicaUnheard (1): replica mute is not heard: the state of its Envoys is unknown"))
		Eventually(mute.Stderr.String).Should(ContainSubstring("writing ConfigMap " + p.namespace + "/gatehouse-replica-mute"))

		By("until it can")
		_, err = p.User(limit(), user, append(rightsBut(""), testkit.KubernetesRule{
			Namespace: p.namespace, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
		})...)
		Expect(err).NotTo(HaveOccurred())
		Eventually(p.condition("gatewayhost", "web", "Programmed")).Should(HavePrefix("True Programmed (1)"))
		Expect(p.jsonPath("gatewayhost", "web", "{.status.envoys}")).To(Equal("2"))
	})

	It("are written once for the one of 500 hosts that is changed", func() {
		p := newPlace(cluster)
		p.service("web", backend("blue"))
		var all strings.Builder
		for n := range 500 {
			all.WriteString(hostYAML(fmt.Sprintf("h%03d", n), fmt.Sprintf("h%03d.example", n), "web") + "---\n")
		}
		p.apply("%s", all.String())
		g := p.serve()
		g.envoy()
		began := time.Now()
		Eventually(func() int {
			return strings.Count(strings.Join(p.rows("gatewayhost", ""), "\n"), " True ")
		}).Should(Equal(500))
		AddReportEntry("until 500 hosts say Programmed", time.Since(began).Round(time.Millisecond))
		before, writes := p.versions("gatewayhost"), p.statusWrites()
		p.host("h250", "changed.example", "web")
		Eventually(p.condition("gatewayhost", "h250", "Programmed")).Should(HavePrefix("True Programmed (2)"))
		Consistently(p.statusWrites).WithTimeout(3 * time.Second).Should(Equal(writes + 1))
		after := p.versions("gatewayhost")
		delete(after, "h250")
		delete(before, "h250")
		Expect(after).To(Equal(before))
		Expect(p.kubectl("get", "gatewayhost", "h250", "--show-managed-fields", "--output", "jsonpath={range .metadata.managedFields[*]}{.subresource} {end}")).To(ContainSubstring("status"))
	})
})
