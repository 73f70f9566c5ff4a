package e2e_test

import (
	"net/http"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("An upstream that was briefly unused", func() {
	It("gets traffic again only in its newest form", func() {
		g := serve("--access-log", "off")
		gw := gateway{g.API, freePort()}
		addUpstream(g.API, backend("blue"))
		one := backend("one")
		addUpstream(g.API, one)
		addService(g.API, "shop", "shop.example", "one")
		addProxy(g.API, "gw", gw.port, "shop")
		envoyFor("gw", g.XDSAddr)
		gw.expect("shop.example", "/", "one")

		const link = "/service/shop/route/root/upstream/"
		applied(g.API, http.MethodPost, link+"blue")
		applied(g.API, http.MethodDelete, link+"one")
		Expect(gw.answers("shop.example", "/")).To(Equal("blue"))
		// Its backend moves to an address where the health check is slow; the old one
		// is stopped.
		a, err := g.API.Do(limit(), http.MethodPatch, "/upstream/one", formType,
			"Upstream_port="+strconv.Itoa(holeInTheGround())+"&Upstream_hc_path="+testkit.HealthPath+"&Upstream_hc_timeoutseconds=10")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		post(g.API, link+"one")
		remove(g.API, link+"blue")
		Consistently(gw.answers).WithArguments("shop.example", "/").WithTimeout(3 * time.Second).Should(Equal("blue"))
	})
})
