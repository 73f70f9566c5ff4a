package kubernetes_test

import (
	"encoding/base64"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// withKey sends a request with an API key to a host, and returns the status.
func (g gateway) withKey(host, key string) int {
	req, err := http.NewRequestWithContext(limit(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", g.port), http.NoBody)
	if err != nil {
		return 0
	}
	req.Host = host
	req.Header.Set("X-Api-Key", key)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

var _ = Describe("A key set of a cluster", func() {
	It("is a Secret with the hashes of its keys: they open the host, and nothing else does", func() {
		p := newPlace(cluster)
		p.service("web", backend("blue"))
		secret := func(entries string) {
			p.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: partners}\nstringData: {%s}\n", entries)
		}
		key := func(name, secret string) string {
			return base64.StdEncoding.EncodeToString([]byte(p.namespace + ".partners/" + name + ":" + secret))
		}
		mobile, web := model.HashKey([]byte("the secret of mobile")), model.HashKey([]byte("the secret of web"))
		secret(fmt.Sprintf("mobile: %q, web: %q", mobile, web))
		p.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: RouteFilter
metadata: {name: keys}
spec: {type: http_filter_apikey, routeFilterConfig: {config: '{"keys": "partners"}'}}
---
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: shop}
spec:
  virtualhost: {fqdn: shop.example}
  filters: [{name: keys}]
  routes: [{conditions: [{prefix: /}], services: [{name: web, port: 80}]}]
`)
		g := p.serve()
		g.envoy()
		answers := func() []int {
			return []int{
				g.withKey("shop.example", key("mobile", "the secret of mobile")), g.withKey("shop.example", key("web", "the secret of web")),
				g.withKey("shop.example", key("web", "the secret of mobile")), g.withKey("shop.example", "none"),
			}
		}
		Eventually(answers).Should(Equal([]int{200, 200, 401, 401}))
		Eventually(p.row("gatewayhost", "shop")).Should(Equal("shop shop.example gatehouse True Programmed"))

		By("revoking one")
		p.kubectl("patch", "secret", "partners", "--type", "json", "--patch", `[{"op":"remove","path":"/data/mobile"}]`)
		Eventually(answers).Should(Equal([]int{401, 200, 401, 401}))

		By("an entry that is not a hash")
		secret(fmt.Sprintf("web: %q, other: plain", web))
		Eventually(answers).Should(Equal([]int{503, 503, 503, 503}))
		Eventually(p.condition("gatewayhost", "shop", "Accepted")).Should(ContainSubstring("is no key set: its entry other must be {SHA}"))
	})
})
