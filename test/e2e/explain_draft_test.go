package e2e_test

import (
	"encoding/json"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("Explain under a draft", func() {
	type explained struct {
		Basis string `json:"basis"`
		explain.Answer
	}
	of := func(a testkit.Answer, err error) explained {
		GinkgoHelper()
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		var answer struct {
			Data struct {
				List []explained `json:"core_db_explain"`
			}
		}
		Expect(json.Unmarshal([]byte(a.Body), &answer)).To(Succeed())
		Expect(answer.Data.List).To(HaveLen(1))
		return answer.Data.List[0]
	}

	It("says what Envoy then does, and changes nothing", func() {
		_, gw, _ := shop()
		green := backend("green")
		addUpstream(gw.api, green)
		addRoute(gw.api, "shop", "cart", "/cart", "{}", "blue")
		gw.expect("shop.example", "/cart", "blue")
		const asked = "/proxy/gw/explain?url=http://shop.example/cart/1"
		draft := func(document string) explained {
			GinkgoHelper()
			return of(gw.api.Do(limit(), http.MethodPost, asked, "application/yaml", document))
		}
		apply := func(document string) {
			GinkgoHelper()
			a, err := gw.api.Do(limit(), http.MethodPut, "/config?wait=applied", "application/yaml", document)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		}
		before := of(gw.api.Do(limit(), http.MethodGet, asked, "", ""))
		Expect(before.Forward.Clusters[0].Endpoints[0].Upstream).To(Equal("blue"))
		stored := read(gw.api, "/config")

		By("a document that changes nothing")
		same := draft("version: 1\n")
		Expect(same.Basis).To(Equal("draft"))
		Expect(same.Steps).To(Equal(before.Steps))
		Expect(same.Routes).To(Equal(before.Routes))

		By("a route to another upstream")
		moved := "version: 1\nservices: [{service_name: shop, fqdn: '*', routes: [{route_name: cart, route_prefix: /cart, upstreams: [green]}]}]\n"
		e := draft(moved)
		Expect(e.Route).To(Equal("cart"))
		Expect(e.Forward.Clusters[0].Endpoints[0].Upstream).To(Equal("green"))

		By("a new filter, which is named")
		closed := "version: 1\nfilters: [{filter_name: gone, filter_type: route_filter_directresponse, filter_config: {status: 410, body: gone}}]\n" +
			"services: [{service_name: shop, fqdn: '*', routes: [{route_name: cart, route_prefix: /cart, upstreams: [green], filters: [gone]}]}]\n"
		e = draft(closed)
		Expect(e.Status).To(Equal(410))
		Expect(e.RefusedBy).To(Equal([]string{"/filter/gone"}))

		By("a new service and upstream")
		fresh := "version: 1\nupstreams: [{upstream_name: white, upstream_ip: 127.0.0.2, upstream_port: 9}]\n" +
			"services: [{service_name: special, fqdn: shop.example, proxies: [gw], routes: [{route_name: all, route_prefix: /, upstreams: [white]}]}]\n"
		e = draft(fresh)
		Expect(e.Service).To(Equal("special"))
		Expect(e.Forward.Clusters[0].Endpoints[0].Upstream).To(Equal("white"))

		By("nothing has changed, and each draft comes true when it is applied")
		Expect(read(gw.api, "/config")).To(Equal(stored))
		Expect(gw.answers("shop.example", "/cart/1")).To(Equal("blue"))
		apply(moved)
		gw.expect("shop.example", "/cart/1", "green")
		apply(closed)
		gw.expect("shop.example", "/cart/1", "410")
	})
})
