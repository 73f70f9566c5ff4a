package e2e_test

import (
	"encoding/json"
	"net/http"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("Explain about the health of upstreams", func() {
	// health is the health of each upstream; empty means not known.
	health := func(api testkit.API) map[string]string {
		GinkgoHelper()
		var answer struct {
			Data struct {
				List []explain.Answer `json:"core_db_explain"`
			}
		}
		Expect(json.Unmarshal([]byte(read(api, "/proxy/gw/explain?url=http://shop.example/")), &answer)).To(Succeed())
		Expect(answer.Data.List).To(HaveLen(1))
		of := map[string]string{}
		forward := answer.Data.List[0].Forward
		if forward == nil { // the route is not live yet
			return of
		}
		for _, c := range forward.Clusters {
			for _, e := range c.Endpoints {
				of[e.Upstream] = string(e.Health)
			}
		}
		return of
	}

	It("uses the Envoy that standalone runs", func() {
		_, gw := standalone("--access-log", "off")
		blue, green, white, grey := backend("blue"), backend("green"), backend("white"), backend("grey")
		for _, b := range []*testkit.Backend{blue, green} {
			addUpstream(gw.api, b, "Upstream_hc_path="+testkit.HealthPath, "Upstream_hc_intervalseconds=1", "Upstream_hc_timeoutseconds=1")
		}
		for _, b := range []*testkit.Backend{white, grey} {
			addUpstream(gw.api, b, "Upstream_outlier_ejectionseconds=60")
		}
		post(gw.api, "/upstream", "Upstream_name=dns", "Upstream_ip=localhost", "Upstream_port="+strconv.Itoa(blue.Port))
		addService(gw.api, "shop", "*", "blue", "green", "white", "grey", "dns")
		addProxy(gw.api, "gw", gw.port, "shop")
		Eventually(health).WithArguments(gw.api).Should(Equal(map[string]string{
			"blue": "healthy", "green": "healthy", "white": "not_checked", "grey": "not_checked", "dns": "not_checked",
		}))
		green.SetHealthy(false)
		white.Kill()
		Eventually(func() map[string]string {
			_, err := gw.send(http.MethodGet, "shop.example", "/")
			Expect(err).NotTo(HaveOccurred())
			return health(gw.api)
		}).Should(Equal(map[string]string{
			"blue": "healthy", "green": "unhealthy", "white": "ejected", "grey": "answering", "dns": "answering",
		}))
	})

	It("uses the load reports of an Envoy elsewhere", func() {
		g := serve()
		blue := backend("blue")
		addUpstream(g.API, blue)
		addService(g.API, "shop", "*", "blue")
		port := freePort()
		addProxy(g.API, "gw", port, "shop")
		envoyFor("gw", g.XDSAddr)
		gw := gateway{g.API, port}
		gw.expect("shop.example", "/", "blue")
		Eventually(func() map[string]string {
			gw.get("shop.example", "/") // Envoy counts from its first report
			return health(g.API)
		}).Should(Equal(map[string]string{"blue": "answering"}))
	})
})
