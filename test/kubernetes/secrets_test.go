package kubernetes_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// slowSecrets is a proxy of a kube-apiserver that does not answer requests for single Secrets while hangs is set.
type slowSecrets struct {
	kubeconfig string
	hangs      atomic.Bool
	// hanging counts the requests that it has not answered.
	hanging atomic.Int32
}

func newSlowSecrets(p place) *slowSecrets {
	GinkgoHelper()
	config, err := kube.Config(p.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	to, err := url.Parse(p.URL)
	Expect(err).NotTo(HaveOccurred())
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = transport, -1
	s := &slowSecrets{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.hangs.Load() && strings.Contains(r.URL.Path, "/secrets/") {
			s.hanging.Add(1)
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	DeferCleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if t, ok := transport.(*http.Transport); ok {
			t.CloseIdleConnections()
		}
	})
	s.kubeconfig = file("slow.kubeconfig", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "slow", "users": [{"name": "slow"}],
"clusters": [{"name": "slow", "cluster": {"server": %q}}], "contexts": [{"name": "slow", "context": {"cluster": "slow", "user": "slow"}}]}`, server.URL))
	return s
}

// securedYAML is a host whose certificate is the Secret of its name.
func securedYAML(name string) string {
	return fmt.Sprintf(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: %[1]s}
spec:
  virtualhost: {fqdn: %[1]s.example, tls: {secretName: %[1]s}}
  routes: [{conditions: [{prefix: /}], services: [{name: web, port: 80}]}]
`, name)
}

var _ = Describe("The Secrets of a cluster", func() {
	It("delay neither endpoints nor other objects while the kube-apiserver does not answer for them", func() {
		p := newPlace(cluster)
		blue, green := backend("blue"), backend("green")
		p.service("web", blue)
		p.host("shop", "shop.example", "web")
		slow := newSlowSecrets(p)
		const n = 48
		pair := func(content string) {
			var all strings.Builder
			for i := range n {
				fmt.Fprintf(&all, "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s%d}\nstringData: {value: %s}\n", i, content)
			}
			p.apply("%s", all.String())
		}
		pair("old")
		var hosts strings.Builder
		for i := range n {
			hosts.WriteString("---" + securedYAML(fmt.Sprintf("s%d", i)))
		}
		p.apply("%s", hosts.String())
		g := p.serve("--kubeconfig", slow.kubeconfig)
		g.envoy()
		g.expect("shop.example", "200 blue")

		slow.hangs.Store(true)
		pair("new")
		Eventually(slow.hanging.Load).Should(BeNumerically(">", 0))
		p.endpoints("web", green)
		Eventually(func() string { return g.request("shop.example", "/") }).WithTimeout(4 * time.Second).Should(Equal("200 green"))

		By("a new object that needs none of them")
		p.host("more", "more.example", "web")
		Eventually(func() string { return g.request("more.example", "/") }).WithTimeout(4 * time.Second).Should(Equal("200 green"))

		By("a new object that needs one that was not read: it waits for no longer than one request")
		p.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: late}\nstringData: {value: late}\n")
		p.apply("%s", securedYAML("late"))
		p.endpoints("web", blue)
		Eventually(func() string { return g.request("shop.example", "/") }).WithTimeout(4 * time.Second).Should(Equal("200 blue"))
		Eventually(p.condition("gatewayhost", "late", "ResolvedRefs")).Should(ContainSubstring("cannot be read: the kube-apiserver does not answer"))

		By("answering again")
		slow.hangs.Store(false)
		Eventually(p.condition("gatewayhost", "late", "Accepted")).Should(ContainSubstring("it needs the entries tls.crt and tls.key"))
	})

	It("are read again if they may be fetched and not listed", func() {
		p := newPlace(cluster)
		user := "no-lists-" + p.namespace
		config, err := p.User(limit(), user, append(rightsBut("secrets"),
			testkit.KubernetesRule{Resources: []string{"secrets"}, Verbs: []string{"get"}},
			testkit.KubernetesRule{Groups: []string{"gateway.gatehouse.dev"}, Resources: []string{"gatewayhosts/status"}, Verbs: []string{"patch"}},
			testkit.KubernetesRule{Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}},
		)...)
		Expect(err).NotTo(HaveOccurred())
		p.service("web", backend("blue"))
		p.apply("%s", securedYAML("shop"))
		p.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: shop}\nstringData: {value: one}\n")
		g := p.serve("--kubeconfig", config)
		g.envoy()
		Eventually(p.condition("gatewayhost", "shop", "Accepted")).Should(ContainSubstring("it needs the entries tls.crt and tls.key"))
		p.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: shop}\nstringData: {value: one, other: two, tls.key: three, tls.crt: four}\n")
		Eventually(p.condition("gatewayhost", "shop", "Accepted")).ShouldNot(ContainSubstring("it needs the entries tls.crt and tls.key"))
		p.kubectl("delete", "secret", "shop")
		Eventually(p.condition("gatewayhost", "shop", "ResolvedRefs")).Should(ContainSubstring("Secret " + p.namespace + "/shop "))
	})
})
