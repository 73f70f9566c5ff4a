package kubernetes_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// rightsBut returns the permissions that a control plane needs, except those for a resource.
func rightsBut(without string) (rules []testkit.KubernetesRule) {
	for _, r := range []testkit.KubernetesRule{
		{Groups: []string{"gateway.gatehouse.dev"}, Resources: []string{"gatewayhosts", "routefilters", "globalconfigs", "referencegrants", "consumers"}},
		{Resources: []string{"services", "secrets"}},
		{Groups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}},
	} {
		r.Resources = slices.DeleteFunc(r.Resources, func(s string) bool { return s == without })
		r.Verbs = []string{"get", "list", "watch"}
		rules = append(rules, r)
	}
	return rules
}

// conditions returns the conditions of the status, as PATH CODE: MESSAGE.
func (g gateway) conditions() (list []string) {
	GinkgoHelper()
	var status struct {
		Data struct {
			Status []struct {
				Conditions []struct{ Path, Code, Message string }
			} `json:"core_db_status"`
		}
	}
	a, err := g.API.Get(limit(), "/status")
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal([]byte(a.Body), &status)).To(Succeed())
	for _, c := range status.Data.Status[0].Conditions {
		list = append(list, c.Path+" "+c.Code+": "+c.Message)
	}
	return list
}

// ready returns the answer of /ready.
func (g gateway) ready() string {
	GinkgoHelper()
	a, err := g.API.Get(limit(), "/ready")
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprint(a.Status, " ", a.Body)
}

// auditOf counts the program's requests that were allowed according to the audit log, as VERB RESOURCE. A list may also be
// the start of a watch.
func auditOf(k *testkit.Kubernetes) map[string]int {
	GinkgoHelper()
	f, err := os.Open(k.AuditLog)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = f.Close() }()
	counts := map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	seen := map[string]bool{}
	for lines.Scan() {
		var e struct {
			AuditID, Verb, UserAgent, RequestURI string
			ObjectRef                            struct{ Resource string }
			ResponseStatus                       struct{ Code int }
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.UserAgent != "gatehouse" || seen[e.AuditID] || e.ResponseStatus.Code != 200 {
			continue
		}
		seen[e.AuditID] = true
		verb := e.Verb
		if strings.Contains(e.RequestURI, "sendInitialEvents=true") {
			verb = "list"
		}
		counts[verb+" "+e.ObjectRef.Resource]++
	}
	return counts
}

var _ = Describe("serve --mode kubernetes, when something fails", func() {
	It("continues while the kube-apiserver is away, lists hardly anything again, and has the next change when it is back", func() {
		k := startCluster(testkit.KubernetesOptions{Audit: true})
		applyCRDs(k)
		p := newPlace(k)
		blue, green := backend("blue"), backend("green")
		p.service("web", blue)
		p.service("other", green)
		p.host("shop", "shop.example", "web")
		g := p.serve()
		g.envoy()
		g.expect("shop.example", "200 blue")
		lists := auditOf(k)
		Expect(lists).To(HaveKeyWithValue("list gatewayhosts", 1))

		away := 4 * time.Second
		if long, err := time.ParseDuration(os.Getenv("GATEHOUSE_TEST_AWAY")); err == nil {
			away = long
		}
		Expect(k.Stop()).To(Succeed())
		traffic := testkit.StartTraffic(testkit.TrafficOptions{Addr: fmt.Sprintf("127.0.0.1:%d", g.port), Host: "shop.example", Rate: 100})
		DeferCleanup(traffic.Stop)
		Eventually(g.ready).Should(And(HavePrefix("200 "), ContainSubstring("the kube-apiserver does not answer"), ContainSubstring("what is live of GatewayHosts stays live")))
		Consistently(func() string { return g.request("shop.example", "/") }).WithTimeout(away).Should(Equal("200 blue"))

		Expect(k.Start(limit())).To(Succeed())
		p.host("shop", "shop.example", "other")
		began := time.Now()
		g.expect("shop.example", "200 green")
		AddReportEntry("the change arrived after", time.Since(began).String())
		report := traffic.Stop()
		Expect(report.Failures).To(BeEmpty())
		Eventually(g.ready).Should(Equal(`200 {"status":"ok"}`))
		after := auditOf(k)
		// An API server that starts has no history: a client that has seen nothing newer than the last write, such as that
		// of a Lease, lists once.
		for _, resource := range []string{"services", "endpointslices", "secrets"} {
			Expect(after).To(HaveKeyWithValue("list "+resource, BeNumerically("<=", lists["list "+resource]+1)))
		}
		// A kube-apiserver that starts ends the watches of custom resources once or twice.
		for _, resource := range []string{"gatewayhosts", "globalconfigs", "routefilters", "referencegrants"} {
			Expect(after).To(HaveKeyWithValue("list "+resource, BeNumerically("<=", 4)))
		}
	})

	It("reports which permission is missing, closes what needs it, and reopens it when it is granted", func() {
		p := newPlace(cluster)
		user := "no-filters-" + p.namespace
		config, err := p.User(limit(), user, rightsBut("routefilters")...)
		Expect(err).NotTo(HaveOccurred())
		p.service("web", backend("blue"))
		p.host("open", "open.example", "web")
		p.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: RouteFilter
metadata: {name: headers}
spec: {type: route_filter_headers, routeFilterConfig: {config: '{"response": {"set": {"x-seen": "1"}}}'}}
---
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: closed}
spec:
  virtualhost: {fqdn: closed.example}
  filters: [{name: headers}]
  routes: [{services: [{name: web, port: 80}]}]
`)
		g := p.serve("--kubeconfig", config)
		g.envoy()
		g.expect("open.example", "200 blue")
		g.expect("closed.example", "503")
		says := `RouteFilters cannot be read: User "` + user + `" cannot list resource "routefilters" in API group "gateway.gatehouse.dev" in the namespace "` + p.namespace +
			`"; allow get, list and watch`
		Expect(g.ready()).To(Equal(`200 {"status":"ok","degraded":["` + strings.ReplaceAll(says, `"`, `\"`) + `; routes and hosts with a filter are closed"]}`))
		Eventually(g.conditions).Should(ContainElement("/kubernetes/routefilters KubernetesUnreadable: " + says))
		Eventually(g.Records).WithArguments("objects of Kubernetes cannot be read; what is live stays live").Should(ContainElement(HaveKeyWithValue("reason", says)))

		_, err = p.User(limit(), user, rightsBut("")...)
		Expect(err).NotTo(HaveOccurred())
		g.expect("closed.example", "200 blue")
		Expect(g.ready()).To(Equal(`200 {"status":"ok"}`))
		Eventually(g.conditions).ShouldNot(ContainElement(ContainSubstring("KubernetesUnreadable")))
	})

	It("answers no Envoy while essential objects cannot be read", func() {
		p := newPlace(cluster)
		config, err := p.User(limit(), "no-configs-"+p.namespace, rightsBut("globalconfigs")...)
		Expect(err).NotTo(HaveOccurred())
		g := p.spawn("", "--kubeconfig", config)
		Eventually(g.ready).Should(And(HavePrefix("503 "), ContainSubstring(
			"not ready: waiting for the kube-apiserver: GlobalConfigs cannot be read: User ")))
	})

	It("waits at startup for the CRDs, and serves when they are applied", func() {
		k := startCluster(testkit.KubernetesOptions{})
		p := newPlace(k)
		p.service("web", backend("blue"))
		g := p.spawn("")
		Eventually(g.ready).Should(And(HavePrefix("503 "), ContainSubstring("the kind GatewayHost is not installed (gatewayhosts.gateway.gatehouse.dev): apply the CRDs of the chart")))
		applyCRDs(k)
		p.host("shop", "shop.example", "web")
		Expect(g.WaitReady(limit())).To(Succeed(), g.Stderr.String)
		g.envoy()
		g.expect("shop.example", "200 blue")
	})

	It("loses nothing in a restart, and does not resend to an Envoy what it has", func() {
		p := newPlace(cluster)
		p.service("web", backend("blue"))
		for i := range 20 {
			p.host(fmt.Sprintf("shop%d", i), fmt.Sprintf("shop%d.example", i), "web")
		}
		g := p.serve()
		e := g.envoy()
		g.expect("shop19.example", "200 blue")
		updates := func() string {
			GinkgoHelper()
			a, err := e.Admin.Get(limit(), "/stats?filter=(cluster|listener)_(added|modified|removed)|config_reload$")
			Expect(err).NotTo(HaveOccurred())
			return a.Body
		}
		before := updates()
		traffic := testkit.StartTraffic(testkit.TrafficOptions{Addr: fmt.Sprintf("127.0.0.1:%d", g.port), Host: "shop7.example", Rate: 200})
		DeferCleanup(traffic.Stop)
		Expect(g.Kill()).To(Succeed())
		again := g.again()
		Eventually(func() []map[string]any { return again.Records("envoy connected") }).Should(HaveLen(1))
		Eventually(func() (string, error) {
			a, err := again.API.Get(limit(), "/proxy/gatehouse/status")
			return a.Body, err
		}).Should(ContainSubstring(`"state":"current"`))
		Expect(updates()).To(Equal(before))
		p.host("shop20", "shop20.example", "web")
		again.expect("shop20.example", "200 blue")
		Expect(traffic.Stop().Failures).To(BeEmpty())
	})

	It("serves good objects among a thousand broken ones", func() {
		p := newPlace(cluster)
		p.service("web", backend("blue"))
		g := p.serve()
		g.envoy()
		var broken strings.Builder
		for i := range 1000 {
			switch i % 4 {
			case 0: // no Service
				broken.WriteString("---" + hostYAML(fmt.Sprintf("b%d", i), fmt.Sprintf("b%d.example", i), "missing"))
			case 1: // the same host
				broken.WriteString("---" + hostYAML(fmt.Sprintf("b%d", i), "same.example", "web"))
			case 2: // the filter does not exist
				fmt.Fprintf(&broken, "---\napiVersion: gateway.gatehouse.dev/v1\nkind: GatewayHost\nmetadata: {name: b%d}\n"+
					"spec: {virtualhost: {fqdn: b%d.example}, filters: [{name: missing}], routes: [{services: [{name: web, port: 80}]}]}\n", i, i)
			default: // invalid JSON
				fmt.Fprintf(&broken, "---\napiVersion: gateway.gatehouse.dev/v1\nkind: RouteFilter\nmetadata: {name: b%d}\n"+
					"spec: {type: route_filter_headers, routeFilterConfig: {config: '{'}}\n", i)
			}
		}
		p.apply("%s", hostYAML("before", "before.example", "web"))
		p.apply("%s", broken.String())
		p.apply("%s", hostYAML("after", "after.example", "web"))
		g.expect("before.example", "200 blue")
		g.expect("after.example", "200 blue")
		g.expect("b0.example", "503")
		g.expect("b2.example", "503")
		g.expect("same.example", "200 blue")
		Expect(g.Records("an object of Kubernetes is left out, because the store refuses what it became")).To(BeEmpty())
	})

	It("closes what a login protects when a Secret of the login is deleted, and reopens it when it is back", func() {
		p := newPlace(cluster)
		p.service("web", backend("blue"))
		secret := func(name string) {
			p.kubectl("create", "secret", "generic", name, "--from-literal=value=8Jc1vF3h0yQm2Wd7Zt5Rk9Xb4Ns6Lp0A")
		}
		secret("oauth-client")
		secret("oauth-hmac")
		p.host("shop", "shop.example", "web")
		p.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: public}
spec:
  virtualhost: {fqdn: public.example}
  public: true
  routes: [{conditions: [{prefix: /}], services: [{name: web, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: login}
spec: {type: ExternalName, externalName: login.example.com, ports: [{port: 443}]}
---
apiVersion: gateway.gatehouse.dev/v1
kind: GlobalConfig
metadata: {name: oauth}
spec:
  name: oauth
  type: globalconfig_oauth
  config: |
    {"openid_connect": {
       "provider": {"authorization_endpoint": "https://login.example.com/auth", "token_endpoint": "https://login.example.com/token"},
       "client_id": "gateway", "client_secret": "oauth-client", "hmac_secret": "oauth-hmac", "scopes": ["email"],
       "redirect_url": "%%REQ(x-forwarded-proto)%%://%%REQ(:authority)%%/oauth2/callback", "redirect_path_matcher": "/oauth2/callback", "default_signout_path": "/signout"},
     "external_oauth_service": {"name": "login", "port": 443, "protocol": "tls"}}
`)
		g := p.serve()
		g.envoy()
		g.expect("public.example", "200 blue")
		g.expect("shop.example", "302")

		for _, name := range []string{"oauth-hmac", "oauth-client"} {
			p.kubectl("delete", "secret", name)
			g.expect("shop.example", "503")
			Expect(g.request("public.example", "/")).To(Equal("200 blue"))
			secret(name)
			g.expect("shop.example", "302")
		}
	})
})
