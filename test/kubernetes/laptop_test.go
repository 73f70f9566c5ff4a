package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// exchange is a request, with what the client and the backend receive.
type exchange struct{ method, url, answer string }

// visitor sends requests to the listeners of a proxy.
type visitor struct {
	ports     map[string]int // by scheme
	authority *testkit.Authority
}

// ask returns the status, the backend, the path that it received, the header x-seen of the answer, and the target
// of a redirect.
func (v visitor) ask(method, url string) string {
	req, err := http.NewRequest(method, url, http.NoBody)
	if err != nil {
		return err.Error()
	}
	res, err := clientOf(v.ports[req.URL.Scheme], v.authority).Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	var echo testkit.Echo
	_ = json.Unmarshal(body, &echo) // only a backend's answer is JSON
	words := []string{strconv.Itoa(res.StatusCode), echo.Backend, echo.Path, res.Header.Get("X-Seen"), res.Header.Get("Location")}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// expect waits until the first exchange is as it should be, and expects the others.
func (v visitor) expect(all []exchange) {
	GinkgoHelper()
	for _, e := range all {
		Eventually(v.ask).WithArguments(e.method, e.url).Should(Equal(e.answer), "%s %s", e.method, e.url)
	}
	share := map[string]int{}
	for range 200 {
		share[v.ask("GET", "https://shop.example/mixed")]++
	}
	Expect(share).To(HaveLen(2))
	Expect(share["200 blue /mixed yes"]).To(BeNumerically("~", 150, 45), "it has three quarters: 7 standard deviations are 43")
}

// laptopDocument has placeholders for ports, addresses, a certificate and its key.
const laptopDocument = `version: 1
proxies: [{name: edge, http_port: %d, https_port: %d, listen_ip: 127.0.0.1, services: [Shop_1, all]}]
upstreams:
- {upstream_name: blue, upstream_ip: %[3]s, upstream_port: %[4]d}
- {upstream_name: Green_1, upstream_ip: %[3]s, upstream_port: %[5]d}
- {upstream_name: much, upstream_ip: %[3]s, upstream_port: %[4]d, upstream_weight: 3}
- {upstream_name: little, upstream_ip: %[3]s, upstream_port: %[5]d, upstream_weight: 1}
secrets: [{secret_name: shop-tls, secret_cert: %[6]q, secret_key: %[7]q}]
filters: [{filter_name: seen, filter_type: route_filter_headers, filter_config: {response: {set: {x-seen: "yes"}}}}]
services:
- service_name: Shop_1
  fqdn: shop.example
  https: redirect
  secrets: [shop-tls]
  filters: [seen]
  tags: [team:shop]
  routes:
  - {route_name: root, route_prefix: /, upstreams: [blue]}
  - {route_name: mixed, route_prefix: /mixed, upstreams: [much, little]}
  - {route_name: orders, route_prefix: /orders, route_config: {match: segment, methods: [POST], rewrite: {prefix: /v2/orders}}, upstreams: [Green_1]}
  - {route_name: soon, route_prefix: /soon}
- service_name: all
  fqdn: "*.all.example"
  routes:
  - {route_name: number, route_prefix: "/item/[0-9]+", route_config: {match: regex}, upstreams: [Green_1]}
  - {route_name: late, route_prefix: /slow, route_config: {timeouts: {request: 2s}}, upstreams: [blue]}
`

// command runs a command of the program that must succeed, and returns its output.
func command(args ...string) string {
	GinkgoHelper()
	p, err := testkit.SpawnGatehouse([]string{"XDG_CONFIG_HOME=" + GinkgoT().TempDir()}, args...)
	Expect(err).NotTo(HaveOccurred())
	code, err := p.Wait(limit())
	Expect(err).NotTo(HaveOccurred())
	Expect(code).To(BeZero(), "%q: %s", args, p.Stderr)
	return p.Stdout.String()
}

var _ = Describe("A configuration that moves from a laptop to a cluster", func() {
	It("answers the same requests in the same way, and comes back as it was", func() {
		blue, green := backend("blue"), backend("green")
		authority, err := testkit.NewAuthority("laptop")
		Expect(err).NotTo(HaveOccurred())
		pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"shop.example"}})
		Expect(err).NotTo(HaveOccurred())
		v := visitor{map[string]int{"http": freePort(), "https": freePort()}, authority}
		expected := []exchange{
			{"GET", "https://shop.example/a", "200 blue /a yes"},
			{"GET", "http://shop.example/a?b=c", "301 yes https://shop.example/a?b=c"},
			{"POST", "https://shop.example/orders/7", "200 green /v2/orders/7 yes"},
			{"GET", "https://shop.example/orders/7", "200 blue /orders/7 yes"},
			{"GET", "https://shop.example/soon", "503 yes"},
			{"GET", "http://www.all.example/item/12", "200 green /item/12"},
			{"GET", "http://www.all.example/item/x", "404"},
			{"GET", "http://www.all.example/slow", "200 blue /slow"},
			{"GET", "http://www.all.example/slow?delay=20s", "504"},
			{"GET", "http://all.example/item/12", "404"},
		}

		By("in REST mode")
		dir := GinkgoT().TempDir()
		rest := func(dir, doc string) *testkit.Gatehouse {
			g, err := testkit.StartGatehouse(limit(), nil, "serve", "--data-dir", dir, "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0")
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(g.Kill)
			Expect(g.WaitReady(limit())).To(Succeed())
			command("apply", "--server", g.API.URL, "-f", file("gateway.yaml", doc))
			return g
		}
		laptop := rest(dir, fmt.Sprintf(laptopDocument, v.ports["http"], v.ports["https"], blue.IP, blue.Port, green.Port, pair.Cert, pair.Key))
		was := command("dump", "--no-revision", "--server", laptop.API.URL)
		e := envoyOf("edge", laptop.XDSAddr)
		v.expect(expected)
		Expect(e.Kill()).To(Succeed())

		By("as Kubernetes objects")
		p := newPlace(cluster)
		objects := command("export", "crd", "--server", laptop.API.URL, "--namespace", p.namespace, "--secret-values", "--secret-key-file", dir+"/secret.key")
		Expect(laptop.Stop(limit())).To(BeZero())
		p.apply("%s", objects)
		settings := file("proxies.yaml", p.kubectl("get", "configmap", "gatehouse-settings", "--output", `jsonpath={.data.proxies\.yaml}`))
		g := p.serve("--kubernetes-proxies", "edge", "--kubernetes-proxy-settings", settings)
		envoyOf("edge", g.XDSAddr)
		v.expect(expected)
		Eventually(func() string {
			return p.jsonPath("gatewayhost", "", `{range .items[*]}{.spec.virtualhost.fqdn} {.status.conditions[?(@.type=="Programmed")].reason} {end}`)
		}).Should(Equal("*.all.example Programmed shop.example NoUpstream "))

		By("as a document again")
		back := p.kubectl("get", "gatehouse,services,endpointslices,secrets,configmaps", "--output", "yaml")
		again := rest(GinkgoT().TempDir(), command("import", "crd", "--secret-values", file("objects.yaml", back)))
		Expect(command("dump", "--no-revision", "--server", again.API.URL)).To(Equal(was))
		envoyOf("edge", again.XDSAddr)
	})
})
